/* Claims: the actions that are due on our shards, as many as have capacity, one claim at a time.
 * Called by actions.c on every step; call.c, results.c and topic.c bring the next claim forward. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define MINUTE_US 60000000
#define NS_PER_MS UINT64_C(1000000)

/* Columns of sql/actions/claim. */
enum {
    ACTION_ID, /* NULL in the only row of a round that claimed nothing */
    TOKEN,
    ATTEMPT,
    RUN_ID,
    OP,
    TARGET,
    KEY,
    AGE_MS,
    WAIT_MS,
    LATE_MS,
    BODY,
    WENT_ON, /* of the round, in each of its rows */
    DEFERRED,
    DRAINED, /* shards of which every due row was read */
    OPEN_MS, /* how long the action's window is open; NULL: it has none */
    TRACE,
    LOOKUP, /* id of the pipeline; NULL: it has none */
    STEP,
    SUBJECT, /* the first of four parameters of the look-up */
    ORG_ID,
    CAMPAIGN_ID,
    MESSAGE_ID,
};

/* Keys are NULL for webhooks, traces where the run has none. */
static char *copy(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

/* The window's rest counts from when the claim was sent: PostgreSQL counted from later. */
static uint64_t closing_of(const struct app_actions *actions, const struct rcpt_pg_rows *rows,
                           size_t row)
{
    if (rcpt_pg_rows_text(rows, row, OPEN_MS) == NULL)
        return UINT64_MAX;
    return actions->claimed_ns + (uint64_t)rcpt_pg_rows_int(rows, row, OPEN_MS) * NS_PER_MS;
}

/* Texts are copied: rows live only for the callback. */
static struct actions_item *make_item(struct app_actions *actions, const struct rcpt_pg_rows *rows,
                                      size_t row)
{
    struct actions_item *item = rcpt_calloc(1, sizeof(*item));
    item->actions = actions;
    item->id = rcpt_pg_rows_int(rows, row, ACTION_ID);
    item->token = rcpt_pg_rows_int(rows, row, TOKEN);
    item->attempt = (int)rcpt_pg_rows_int(rows, row, ATTEMPT);
    item->run_id = rcpt_pg_rows_int(rows, row, RUN_ID);
    item->is_webhook = strcmp(rcpt_pg_rows_text(rows, row, OP), "webhook") == 0;
    item->target = copy(rcpt_pg_rows_text(rows, row, TARGET));
    item->key = copy(rcpt_pg_rows_text(rows, row, KEY));
    item->age_ms = rcpt_pg_rows_int(rows, row, AGE_MS);
    item->wait_ms = rcpt_pg_rows_int(rows, row, WAIT_MS);
    item->body = copy(rcpt_pg_rows_text(rows, row, BODY));
    item->closes_ns = closing_of(actions, rows, row);
    item->claimed_ms = actions->claim.sent_ms;
    item->lookup = rcpt_pg_rows_int(rows, row, LOOKUP);
    item->step = rcpt_pg_rows_int(rows, row, STEP);
    for (int index = 0; item->lookup > 0 && index < (int)ACTIONS_LOOKUP_PARAMETERS; index++)
        item->parameters[index] = copy(rcpt_pg_rows_text(rows, row, SUBJECT + index));
    item->trace = copy(rcpt_pg_rows_text(rows, row, TRACE));
    return item;
}

/* Doubles the rows to be read while more than half of them went on without a call, else halves
 * them. Decisions are cheap by the thousand, but rows without capacity are read in vain. */
static void pace_claims(struct app_actions *actions, unsigned went_on)
{
    if (went_on > actions->read_rows / 2)
        actions->read_rows *= 2;
    else
        actions->read_rows /= 2;
    if (actions->read_rows > ACTIONS_READ_MAX)
        actions->read_rows = ACTIONS_READ_MAX;
    if (actions->read_rows < ACTIONS_READ_MIN)
        actions->read_rows = ACTIONS_READ_MIN;
}

/* Every claimed action is called or given back; the summary of the round paces the next one. */
static void take_claimed(struct app_actions *actions, const struct rcpt_pg_rows *rows)
{
    const struct host_context *context = actions->context;
    if (rcpt_pg_rows_count(rows) == 0)
        return; /* this instance no longer owns the shards */
    bool claimed = rcpt_pg_rows_text(rows, 0, ACTION_ID) != NULL;
    bool stale = actions_is_stale(actions, actions->claim.sent_ms);
    for (size_t row = 0; claimed && row < rcpt_pg_rows_count(rows); row++) {
        struct actions_item *item = make_item(actions, rows, row);
        actions->in_flight++;
        /* How late an action runs is measured once, at its first attempt; retries are late on
         * purpose. */
        if (item->attempt == 1 && item->wait_ms == 0)
            rcpt_metrics_observe(context->metrics, RCPT_METRIC_ACTION_LATE_SECONDS, RCPT_NO_LABELS,
                                 (double)rcpt_pg_rows_int(rows, row, LATE_MS) / 1000);
        if (stale) /* others may claim it before an answer could come */
            actions_settle(item, ACTIONS_BACK, "stale");
        else if (item->lookup > 0)
            actions_lookup_add(item);
        else
            actions_call(item);
    }
    actions_lookup_step(actions);
    unsigned drained = (unsigned)rcpt_pg_rows_int(rows, 0, DRAINED);
    int64_t went_on = rcpt_pg_rows_int(rows, 0, WENT_ON);
    int64_t deferred = rcpt_pg_rows_int(rows, 0, DEFERRED);
    rcpt_metrics_add(context->metrics, RCPT_METRIC_ACTIONS_DEFERRED, RCPT_NO_LABELS,
                     (double)deferred);
    pace_claims(actions, (unsigned)went_on);
    if (!claimed && went_on > 0)
        actions->claim.at_ms = 0;
    else if (claimed || went_on > 0 || drained < actions->claiming)
        actions_claim_soon(actions);
}

static void on_claimed(void *context, const struct rcpt_pg_rows *rows)
{
    take_claimed(context, rows);
}

void actions_claim_init(struct app_actions *actions)
{
    actions->read_rows = ACTIONS_READ_MIN;
    actions->claim = actions_ask(actions, "claim", "a claim of actions", on_claimed);
}

/* Rates go to the database as the time between two calls; 0: no limit. */
static int64_t interval_us(unsigned per_minute)
{
    return per_minute > 0 ? (MINUTE_US + per_minute - 1) / per_minute : 0;
}

/* The first parameter: the shards of this instance; returns how many. */
static unsigned put_shards(const struct app_actions *actions, struct rcpt_pg_encoder *encoder)
{
    unsigned owned = 0;
    for (unsigned shard = 0; shard < ACTIONS_SHARDS; shard++)
        owned += actions->owned[shard];
    rcpt_pg_begin_int4_array(encoder, owned);
    for (unsigned shard = 0; shard < ACTIONS_SHARDS; shard++)
        if (actions->owned[shard])
            rcpt_pg_put_int4(encoder, (int32_t)shard);
    return owned;
}

/* Limits of the installation and of organisations are charged by the database, for all instances.
 * */
static void put_claim(struct app_actions *actions, struct rcpt_pg_encoder *encoder, unsigned most)
{
    const struct rcpt_config *config = actions->context->config;
    actions->claiming = put_shards(actions, encoder);
    rcpt_pg_add_text(encoder, actions->me);
    rcpt_pg_add_int4(encoder, (int32_t)actions->read_rows);
    rcpt_pg_add_int4(encoder, (int32_t)most);
    rcpt_pg_add_int8(encoder, config->actions.lease_ms);
    actions_call_put_capacity(actions, encoder);
    rcpt_pg_add_int8(encoder, interval_us(config->actions.org_rate));
    rcpt_pg_add_int8(encoder, config->actions.org_burst);
    rcpt_pg_add_int4(encoder, (int32_t)config->actions.org_concurrency);
    rcpt_pg_add_int8(encoder, interval_us(config->actions.rate));
    rcpt_pg_add_int8(encoder, config->actions.burst);
    rcpt_pg_add_int4(encoder, (int32_t)config->actions.concurrency);
    rcpt_pg_add_text(encoder, config->actions.zone);
    rcpt_pg_add_text(encoder, config->actions.zone_field);
}

/* Claims from all shards at once. One claim is in flight at a time, so that capacity is never
 * promised twice. */
void actions_claim_some(struct app_actions *actions)
{
    const struct rcpt_config *config = actions->context->config;
    unsigned most = config->actions.max_in_flight;
    if (actions->state != ACTIONS_RUNNING || actions->in_flight >= most ||
        host_now(actions->context) >= actions->owned_until_ms)
        return;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&actions->claim);
    if (encoder == NULL)
        return;
    most -= actions->in_flight;
    put_claim(actions, encoder, most < ACTIONS_PER_CLAIM ? most : ACTIONS_PER_CLAIM);
    actions->claim.every_ms = config->actions.poll_interval_ms;
    actions->claimed_ns = uv_hrtime();
    rcpt_ask_send(&actions->claim);
}

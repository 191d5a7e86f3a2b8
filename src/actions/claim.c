/* Claims: the actions that are due on our lanes, as many as have capacity, one claim at a time.
 * Called by actions.c on every step, and by whoever frees capacity (actions_claim_soon). */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define MINUTE_US   60000000
#define STALE_SHARE 3 /* a claim whose answer took this part of the lease is given back */

/* Not at once: what comes to its end until then makes room for one claim of many. */
void actions_claim_soon(struct app_actions *actions)
{
    int64_t soon = actions->claim.sent_ms + ACTIONS_TICK_MS;
    if (soon < actions->claim.at_ms)
        actions->claim.at_ms = soon;
}

static char *copy(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

enum { /* columns of actions_claim() */
       CLAIM_ID,
       CLAIM_TOKEN,
       CLAIM_ATTEMPT,
       CLAIM_RUN,
       CLAIM_KIND = 6,
       CLAIM_TARGET,
       CLAIM_KEY,
       CLAIM_AGE = 10,
       CLAIM_WAIT,
       CLAIM_LATE,
       CLAIM_BODY,
};

enum { SUMMARY_WENT_ON = 1, SUMMARY_DEFERRED, SUMMARY_SEEN }; /* of its last row */

static struct actions_item *make_item(struct app_actions *actions, const struct rcpt_pg_rows *rows,
                                      size_t row)
{
    struct actions_item *item = rcpt_calloc(1, sizeof(*item));
    item->actions = actions;
    item->id = rcpt_pg_rows_int(rows, row, CLAIM_ID);
    item->token = rcpt_pg_rows_int(rows, row, CLAIM_TOKEN);
    item->attempt = (int)rcpt_pg_rows_int(rows, row, CLAIM_ATTEMPT);
    item->run_id = rcpt_pg_rows_int(rows, row, CLAIM_RUN);
    item->is_webhook = strcmp(rcpt_pg_rows_text(rows, row, CLAIM_KIND), "webhook") == 0;
    item->target = copy(rcpt_pg_rows_text(rows, row, CLAIM_TARGET));
    item->key = copy(rcpt_pg_rows_text(rows, row, CLAIM_KEY));
    item->age_ms = rcpt_pg_rows_int(rows, row, CLAIM_AGE);
    item->wait_ms = rcpt_pg_rows_int(rows, row, CLAIM_WAIT);
    item->body = copy(rcpt_pg_rows_text(rows, row, CLAIM_BODY));
    return item;
}

/* Decisions are cheap by the thousand; what has no room is looked at in vain. */
static void pace_claims(struct app_actions *actions, unsigned went_on)
{
    if (went_on > actions->look / 2)
        actions->look *= 2;
    else
        actions->look /= 2;
    if (actions->look > ACTIONS_LOOK_MAX)
        actions->look = ACTIONS_LOOK_MAX;
    if (actions->look < ACTIONS_LOOK_MIN)
        actions->look = ACTIONS_LOOK_MIN;
}

/* Columns as actions_claim() returns them; the last row is a summary. */
static void take_claimed(struct app_actions *actions, const struct rcpt_pg_rows *rows)
{
    const struct app_context *context = actions->context;
    size_t count = rcpt_pg_rows_count(rows);
    bool stale = app_now(actions->context) - actions->claim.sent_ms >
                 context->config->actions.lease_ms / STALE_SHARE;
    for (size_t row = 0; row + 1 < count; row++) {
        struct actions_item *item = make_item(actions, rows, row);
        actions->in_flight++;
        if (item->attempt == 1)
            rcpt_metrics_observe(context->metrics, RCPT_METRIC_ACTION_LATE_SECONDS, RCPT_NO_LABELS,
                                 (double)rcpt_pg_rows_int(rows, row, CLAIM_LATE) / 1000);
        if (stale) /* it may be claimed by others before an answer could come */
            actions_settle(item, ACTIONS_BACK, "stale");
        else
            actions_call(item);
    }
    if (count == 0)
        return; /* the lanes are not ours any more */
    unsigned seen =
        (unsigned)rcpt_pg_rows_int(rows, count - 1, SUMMARY_SEEN); /* to the last due row */
    int64_t went_on = rcpt_pg_rows_int(rows, count - 1, SUMMARY_WENT_ON);
    int64_t deferred = rcpt_pg_rows_int(rows, count - 1, SUMMARY_DEFERRED);
    rcpt_metrics_add(context->metrics, RCPT_METRIC_ACTIONS_DECIDED, RCPT_NO_LABELS,
                     (double)went_on);
    rcpt_metrics_add(context->metrics, RCPT_METRIC_ACTIONS_DEFERRED, RCPT_NO_LABELS,
                     (double)deferred);
    pace_claims(actions, (unsigned)went_on);
    if (count == 1 && went_on > 0)
        actions->claim.at_ms = 0;
    else if (count > 1 || went_on > 0 || seen < actions->claiming)
        actions_claim_soon(actions);
}

static void on_claimed(void *context, const struct rcpt_pg_rows *rows)
{
    take_claimed(context, rows);
}

void actions_claim_init(struct app_actions *actions)
{
    actions->look = ACTIONS_LOOK_MIN;
    actions->claim = actions_ask(actions, "claim", "a claim of actions", on_claimed);
}

static int64_t interval_us(unsigned per_minute)
{
    return per_minute > 0 ? (MINUTE_US + per_minute - 1) / per_minute : 0;
}

static unsigned put_lanes(const struct app_actions *actions, struct rcpt_pg_encoder *encoder)
{
    unsigned owned = 0;
    for (unsigned lane = 0; lane < ACTIONS_LANES; lane++)
        owned += actions->owned[lane];
    rcpt_pg_begin_int4_array(encoder, owned);
    for (unsigned lane = 0; lane < ACTIONS_LANES; lane++)
        if (actions->owned[lane])
            rcpt_pg_put_int4(encoder, (int32_t)lane);
    return owned;
}

static void put_claim(struct app_actions *actions, struct rcpt_pg_encoder *encoder, unsigned most)
{
    const struct rcpt_config *config = actions->context->config;
    actions->claiming = put_lanes(actions, encoder);
    rcpt_pg_add_text(encoder, actions->me);
    rcpt_pg_add_int4(encoder, (int32_t)actions->look);
    rcpt_pg_add_int4(encoder, (int32_t)most);
    rcpt_pg_add_int8(encoder, config->actions.lease_ms);
    actions_call_put_room(actions, encoder);
    rcpt_pg_add_int8(encoder, interval_us(config->actions.org_rate));
    rcpt_pg_add_int8(encoder, config->actions.org_burst);
    rcpt_pg_add_int4(encoder, (int32_t)config->actions.org_concurrency);
    rcpt_pg_add_int8(encoder, interval_us(config->actions.rate));
    rcpt_pg_add_int8(encoder, config->actions.burst);
    rcpt_pg_add_int4(encoder, (int32_t)config->actions.concurrency);
}

/* All lanes at once, but one claim is in flight at a time, so that capacity is never promised
 * twice. */
void actions_claim_some(struct app_actions *actions)
{
    const struct rcpt_config *config = actions->context->config;
    unsigned most = config->actions.max_in_flight;
    if (actions->stopping || !actions->stored || actions->in_flight >= most ||
        app_now(actions->context) >= actions->owned_until_ms)
        return;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&actions->claim);
    if (encoder == NULL)
        return;
    most -= actions->in_flight;
    put_claim(actions, encoder, most < ACTIONS_PER_CLAIM ? most : ACTIONS_PER_CLAIM);
    actions->claim.every_ms = config->actions.poll_interval_ms;
    rcpt_ask_send(&actions->claim);
}

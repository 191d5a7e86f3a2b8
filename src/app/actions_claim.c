#include "actions.h"

#include <stdlib.h>
#include <string.h>

#define MINUTE_US   60000000
#define STALE_SHARE 3 /* a claim whose answer took this part of the lease is given back */

/* Not at once: what comes to its end until then makes room for one claim of many. */
void actions_claim_soon(struct app_actions *actions)
{
    int64_t soon = actions->claimed_at_ms + ACTIONS_TICK_MS;
    if (soon < actions->claim_at_ms)
        actions->claim_at_ms = soon;
}

static char *copy(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

static struct actions_item *make_item(struct app_actions *actions, const struct rcpt_pg_rows *rows,
                                      size_t row)
{
    struct actions_item *item = rcpt_calloc(1, sizeof(*item));
    item->actions = actions;
    item->id = rcpt_pg_rows_int(rows, row, 0);
    item->token = rcpt_pg_rows_int(rows, row, 1);
    item->attempt = (int)rcpt_pg_rows_int(rows, row, 2);
    item->run_id = rcpt_pg_rows_int(rows, row, 3);
    item->is_webhook = strcmp(rcpt_pg_rows_text(rows, row, 6), "webhook") == 0;
    item->target = copy(rcpt_pg_rows_text(rows, row, 7));
    item->key = copy(rcpt_pg_rows_text(rows, row, 8));
    item->age_ms = rcpt_pg_rows_int(rows, row, 10);
    item->wait_ms = rcpt_pg_rows_int(rows, row, 11);
    item->body = copy(rcpt_pg_rows_text(rows, row, 13));
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
    const struct app *app = actions->app;
    size_t count = rcpt_pg_rows_count(rows);
    bool stale = app_now(actions->app) - actions->claimed_at_ms >
                 app->config->actions.lease_ms / STALE_SHARE;
    for (size_t row = 0; row + 1 < count; row++) {
        struct actions_item *item = make_item(actions, rows, row);
        actions->in_flight++;
        if (item->attempt == 1)
            rcpt_metrics_observe(app->figures.metrics, RCPT_METRIC_ACTION_LATE_SECONDS,
                                 RCPT_NO_LABELS, (double)rcpt_pg_rows_int(rows, row, 12) / 1000);
        if (stale) /* it may be claimed by others before an answer could come */
            actions_settle(item, ACTIONS_BACK, "stale");
        else
            actions_call(item);
    }
    if (count == 0)
        return; /* the lanes are not ours any more */
    unsigned seen = (unsigned)rcpt_pg_rows_int(rows, count - 1, 3); /* to the last due row */
    int64_t went_on = rcpt_pg_rows_int(rows, count - 1, 1);
    int64_t deferred = rcpt_pg_rows_int(rows, count - 1, 2);
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_ACTIONS_DECIDED, RCPT_NO_LABELS,
                     (double)went_on);
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_ACTIONS_DEFERRED, RCPT_NO_LABELS,
                     (double)deferred);
    pace_claims(actions, (unsigned)went_on);
    if (count == 1 && went_on > 0)
        actions->claim_at_ms = 0;
    else if (count > 1 || went_on > 0 || seen < actions->claiming)
        actions_claim_soon(actions);
}

static void on_claimed(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->claim_flying = false;
    if (!actions_failed(actions, "a claim of actions", error)) {
        RCPT_ASSERT(row_count == 1);
        take_claimed(actions, rows[0]);
    }
    actions_step(actions);
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

static void claim(struct app_actions *actions, unsigned most)
{
    const struct rcpt_config *config = actions->app->config;
    struct rcpt_pg_encoder *encoder = actions->encoder;
    actions->claimed_at_ms = app_now(actions->app);
    actions->claim_at_ms = app_now(actions->app) + config->actions.poll_interval_ms;
    actions->claim_flying = true;
    rcpt_pg_encoder_reset(encoder);
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
    actions_submit(actions, "claim", on_claimed);
}

/* All lanes at once, but one claim is in flight at a time, so that room is never promised twice. */
void actions_claim_some(struct app_actions *actions)
{
    unsigned most = actions->app->config->actions.max_in_flight;
    int64_t now = app_now(actions->app);
    if (actions->claim_flying || actions->stopping || !actions->stored ||
        actions->in_flight >= most || now >= actions->owned_until_ms ||
        now < actions->claim_at_ms || !actions_can_ask(actions))
        return;
    most -= actions->in_flight;
    claim(actions, most < ACTIONS_PER_CLAIM ? most : ACTIONS_PER_CLAIM);
}

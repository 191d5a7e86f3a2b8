/* Transactions of lanes write down which runs they begin; here they become runs, in transactions of
 * their own. Any instance does this for all: what one has in hand the others pass over. */
#include <stdio.h>
#include <string.h>

#include "actions.h"

#define ENOUGH_RUNS 1500 /* in one transaction; claims wait for it */

/* What lanes of this process have changed may have begun runs, unless no pipeline heard of it; of
 * others we do not hear. */
static bool is_time(struct app_actions *actions)
{
    int64_t now = app_now(actions->app);
    if (now >= actions->begin.at_ms + actions->app->config->actions.poll_interval_ms)
        return true;
    return now >= actions->begin.at_ms && actions->app->changed_loudly != actions->begin.changed;
}

/* Receipts go first: while some wait, runs are made for a share of the time only. */
int64_t actions_begin_pause_ms(const struct app_actions *actions, uint64_t sent_ns)
{
    const struct app *app = actions->app;
    int64_t took_ms = (int64_t)((uv_hrtime() - sent_ns) / 1000000) + 1;
    if (rcpt_engine_bytes(app->engine) == 0)
        return 0;
    return took_ms * (100 - app->config->actions.begin_share) / app->config->actions.begin_share;
}

static void pace(struct actions_beginning *begin, bool more, int64_t runs)
{
    if (runs > ENOUGH_RUNS)
        begin->rows /= 2;
    else if (more && runs < ENOUGH_RUNS / 2)
        begin->rows *= 2;
    if (begin->rows < ACTIONS_BEGIN_MIN)
        begin->rows = ACTIONS_BEGIN_MIN;
    if (begin->rows > ACTIONS_BEGIN_MAX)
        begin->rows = ACTIONS_BEGIN_MAX;
}

static void take_begun(struct app_actions *actions, const struct rcpt_pg_rows *rows)
{
    struct actions_beginning *begin = &actions->begin;
    int64_t taken = rcpt_pg_rows_int(rows, 0, 0), runs = rcpt_pg_rows_int(rows, 0, 1);
    bool more = taken >= begin->rows;
    const char *last = rcpt_pg_rows_text(rows, 0, 3);
    snprintf(begin->last, sizeof(begin->last), "%s",
             strlen(last) < sizeof(begin->last) ? last : "");
    rcpt_metrics_set(actions->app->figures.metrics, RCPT_METRIC_PIPELINE_BEGIN_LAG, RCPT_NO_LABELS,
                     taken > 0 ? (double)rcpt_pg_rows_int(rows, 0, 2) / 1000 : 0);
    begin->at_ms = app_now(actions->app) + actions_begin_pause_ms(actions, begin->sent_ns);
    if (more)
        begin->changed = UINT64_MAX; /* no need to hear of more */
    pace(begin, more, runs);
    if (runs > 0)
        actions_claim_soon(actions);
}

static void on_begun(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->begin.flying = false;
    if (!actions_failed(actions, "making runs", error)) {
        RCPT_ASSERT(row_count == 1 && rcpt_pg_rows_count(rows[0]) == 1);
        take_begun(actions, rows[0]);
    }
    actions_step(actions);
}

void actions_begin_some(struct app_actions *actions)
{
    struct actions_beginning *begin = &actions->begin;
    if (begin->flying || actions->stopping || !actions->stored || !actions_can_ask(actions) ||
        !is_time(actions))
        return;
    begin->flying = true;
    begin->sent_ns = uv_hrtime();
    begin->at_ms = app_now(actions->app);
    begin->changed = actions->app->changed_loudly;
    rcpt_pg_encoder_reset(actions->encoder);
    rcpt_pg_add_int4(actions->encoder, (int32_t)begin->rows);
    rcpt_pg_add_text(actions->encoder, begin->last);
    actions_submit(actions, "begin", on_begun);
}

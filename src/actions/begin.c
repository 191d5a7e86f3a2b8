/* Makes runs. Transactions of lanes write down which runs they begin (run_intent); any instance
 * makes runs of these rows, in transactions of its own, and skips rows that another has locked.
 * Called by actions.c on every step. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define ENOUGH_RUNS 1500 /* in one transaction, as claims wait for it */

/* Batches of this process with the block of actions may have begun runs: asks at once. Runs that
 * other instances began are found by polling. */
static bool is_time(struct app_actions *actions)
{
    int64_t now = host_now(actions->context);
    if (now >= actions->begin.at_ms + actions->context->config->actions.poll_interval_ms)
        return true;
    return now >= actions->begin.at_ms && actions->module->changed != actions->begin.changed;
}

/* Receipts go first: while some are queued, runs are made for actions.begin_share of the time. */
int64_t actions_begin_pause_ms(const struct app_actions *actions, uint64_t sent_ns)
{
    int64_t share = actions->context->config->actions.begin_share;
    int64_t took_ms = (int64_t)((uv_hrtime() - sent_ns) / 1000000) + 1;
    if (rcpt_engine_bytes(receipts_engine(actions->module->receipts)) == 0)
        return 0;
    return took_ms * (100 - share) / share;
}

/* A row may hold any number of runs, so the number of rows is adapted to the runs that they made.
 */
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

/* Columns of sql/actions/begin. */
enum { BEGUN_TAKEN, BEGUN_RUNS, BEGUN_OLDEST_MS, BEGUN_LAST };

static void take_begun(struct app_actions *actions, const struct rcpt_pg_rows *rows)
{
    struct actions_beginning *begin = &actions->begin;
    int64_t taken = rcpt_pg_rows_int(rows, 0, BEGUN_TAKEN),
            runs = rcpt_pg_rows_int(rows, 0, BEGUN_RUNS);
    bool more = taken >= begin->rows;
    const char *last = rcpt_pg_rows_text(rows, 0, BEGUN_LAST);
    snprintf(begin->last, sizeof(begin->last), "%s",
             strlen(last) < sizeof(begin->last) ? last : "");
    rcpt_metrics_set(actions->context->metrics, RCPT_METRIC_PIPELINE_BEGIN_LAG, RCPT_NO_LABELS,
                     taken > 0 ? (double)rcpt_pg_rows_int(rows, 0, BEGUN_OLDEST_MS) / 1000 : 0);
    begin->at_ms = host_now(actions->context) + actions_begin_pause_ms(actions, begin->sent_ns);
    if (more)
        begin->changed = UINT64_MAX; /* asks again as soon as at_ms has come */
    pace(begin, more, runs);
    if (runs > 0)
        actions_claim_soon(actions);
}

static void on_begun(void *context, const struct rcpt_pg_rows *rows)
{
    RCPT_ASSERT(rcpt_pg_rows_count(rows) == 1);
    take_begun(context, rows);
}

void actions_begin_init(struct app_actions *actions)
{
    actions->begin.rows = ACTIONS_BEGIN_MIN;
    actions->begin.ask = actions_ask(actions, "begin", "making runs", on_begun);
}

void actions_begin_some(struct app_actions *actions)
{
    struct actions_beginning *begin = &actions->begin;
    struct rcpt_pg_encoder *encoder =
        actions->state != ACTIONS_RUNNING || !is_time(actions) ? NULL : rcpt_ask_begin(&begin->ask);
    if (encoder == NULL)
        return;
    begin->sent_ns = uv_hrtime();
    begin->at_ms = host_now(actions->context);
    begin->changed = actions->module->changed;
    rcpt_pg_add_int4(encoder, (int32_t)begin->rows);
    rcpt_pg_add_text(encoder, begin->last);
    rcpt_ask_send(&begin->ask);
}

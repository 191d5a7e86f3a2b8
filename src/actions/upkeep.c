/* Upkeep of actions by the timer: rows past their retention are deleted, figures of the database
 * and of this instance become metrics. Called by actions.c. */
#include <string.h>

#include "internal.h"

/* Housekeeping must not disturb claims: small portions, seldom. */
#define TIDY_MS   5000
#define TIDY_ROWS 5000 /* that one statement deletes */
#define COUNT_MS  2000
#define PUSHES_MS 1000

/* A full portion means that there is more: the next step continues at once. */
static void on_tidied(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    if (rcpt_pg_rows_int(rows, 0, 0) >= TIDY_ROWS)
        actions->tidy.at_ms = 0;
}

/* Deletes rows past their retention; the owner of shard 0 does it for all instances. */
static void tidy(struct app_actions *actions)
{
    const struct rcpt_config *config = actions->context->config;
    struct rcpt_pg_encoder *encoder = actions->state >= ACTIONS_STOPPING || !actions->owned[0]
                                          ? NULL
                                          : rcpt_ask_begin(&actions->tidy);
    if (encoder == NULL)
        return;
    rcpt_pg_add_int8(encoder, config->actions.retention_ms);
    rcpt_pg_add_int4(encoder, TIDY_ROWS);
    rcpt_pg_add_int8(encoder, config->actions.once_retention_ms);
    rcpt_pg_add_int8(encoder, config->actions.retry_max_ms);
    rcpt_ask_send(&actions->tidy);
}

/* A push that moved has subjects to go on with. */
static void on_pushes(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    if (rcpt_pg_rows_int(rows, 0, 0) > 0)
        actions_claim_soon(actions);
}

/* Deals and decides pushes whose time has come. Every instance asks: the database lets one do it.
 */
static void move_pushes(struct app_actions *actions)
{
    if (actions->state == ACTIONS_RUNNING && actions->context->recalled &&
        rcpt_ask_begin(&actions->pushes) != NULL)
        rcpt_ask_send(&actions->pushes);
}

/* Columns of sql/actions/counts. */
enum { COUNT_KIND, COUNT_NAME, COUNT_N, COUNT_REPEATED };

/* Rows of several kinds come in one answer; `kind` says which metric one belongs to. */
static void note_count(struct app_actions *actions, const struct rcpt_pg_rows *rows, size_t row)
{
    struct rcpt_metrics *metrics = actions->context->metrics;
    const char *kind = rcpt_pg_rows_text(rows, row, COUNT_KIND);
    const char *name = rcpt_pg_rows_text(rows, row, COUNT_NAME);
    double n = (double)rcpt_pg_rows_int(rows, row, COUNT_N);
    if (strcmp(kind, "action") == 0) {
        rcpt_metrics_set(metrics, RCPT_METRIC_ACTIONS, RCPT_LABELS(name), n);
        if (strcmp(name, "held") == 0)
            actions->held = (int64_t)n;
        else if (strcmp(name, "dead") == 0)
            actions->dead = (int64_t)n;
    } else if (strcmp(kind, "pipeline") == 0) {
        rcpt_metrics_set(metrics, RCPT_METRIC_PIPELINE_RUNS, RCPT_LABELS(name), n);
        rcpt_metrics_set(metrics, RCPT_METRIC_PIPELINE_REPEATED, RCPT_LABELS(name),
                         (double)rcpt_pg_rows_int(rows, row, COUNT_REPEATED));
    } else if (strcmp(kind, "due") == 0) {
        rcpt_metrics_set(metrics, RCPT_METRIC_ACTIONS_DUE, RCPT_NO_LABELS, n / 1000);
    } else if (strcmp(kind, "overlap") != 0) { /* what became of it */
        rcpt_metrics_set(metrics, RCPT_METRIC_PIPELINE_BEYOND_CAP, RCPT_LABELS(name, kind), n);
    } else {
        rcpt_metrics_set(metrics, RCPT_METRIC_ACTION_OVERLAPS, RCPT_NO_LABELS, n);
    }
}

static void on_counted(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    rcpt_metrics_begin(actions->context->metrics, RCPT_METRIC_ACTIONS);
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++)
        note_count(actions, rows, row);
    rcpt_metrics_end(actions->context->metrics, RCPT_METRIC_ACTIONS);
}

/* Figures of this instance at once, those of the database by a statement every COUNT_MS. */
static void count(struct app_actions *actions)
{
    struct rcpt_metrics *metrics = actions->context->metrics;
    rcpt_metrics_set(metrics, RCPT_METRIC_ENDPOINTS_DISABLED, RCPT_NO_LABELS,
                     (double)actions_call_disabled(actions));
    if (actions->state < ACTIONS_STOPPING && rcpt_ask_begin(&actions->counts) != NULL)
        rcpt_ask_send(&actions->counts);
}

void actions_upkeep_init(struct app_actions *actions)
{
    actions->tidy = actions_ask(actions, "tidy", "tidying up of actions", on_tidied);
    actions->tidy.every_ms = TIDY_MS;
    actions->counts = actions_ask(actions, "counts", "counting actions", on_counted);
    actions->counts.every_ms = COUNT_MS;
    actions->pushes = actions_ask(actions, "pushes", "moving pushes on", on_pushes);
    actions->pushes.every_ms = PUSHES_MS;
}

void actions_upkeep_tick(struct app_actions *actions)
{
    tidy(actions);
    count(actions);
    move_pushes(actions);
}

#include "folds.h"

#include <stdlib.h>
#include <string.h>

#define TICK_MS   100
#define TOTALS_MS 2000

static bool can_ask(const struct app_folds *folds)
{
    return folds->up && !folds->stopping && rcpt_pg_is_ready(folds->pg);
}

static bool failed(struct app_folds *folds, const char *what, const struct rcpt_error *error)
{
    if (error == NULL)
        return false;
    if (error->code[0] == '\0' || folds->stopping)
        return true; /* the connection is gone: on_down says it */
    rcpt_log_warn("app", "folds: %s failed, will be tried again: %s (%s)%s%s", what, error->text,
                  error->code, error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
    if (error->decision == RCPT_DECISION_RECONNECT)
        rcpt_pg_reconnect(folds->pg, error);
    return true;
}

/* ---- rules ---- */

static void on_rules(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct app_folds *folds = context;
    folds->rules_flying = false;
    if (failed(folds, "storing the rules", error))
        return;
    RCPT_ASSERT(row_count == 1);
    folds->rules_stored = !folds->rules_again;
    folds->rules_again = false;
    int64_t removed = rcpt_pg_rows_int(rows[0], 0, 0), open = rcpt_pg_rows_int(rows[0], 0, 1);
    const char *unknown = rcpt_pg_rows_text(rows[0], 0, 2);
    if (unknown != NULL)
        rcpt_log_error("app",
                       "folds: the inbox has no such column: %s; it is null in every event, so "
                       "nothing matches it; HINT: add it to the table, then reload",
                       unknown);
    if (removed > 0)
        rcpt_log_info("app",
                      "folds: %lld rules are removed; their %lld open groups are published at once",
                      (long long)removed, (long long)open);
    folds_gather_rules_changed(&folds->lanes[0].gatherer);
    lanes_apply_blocks(folds->app);
}

static void store_rules(struct app_folds *folds)
{
    struct rcpt_pg_query query = {.statement = "rules"};
    if (folds->rules_stored || folds->rules_flying || !can_ask(folds))
        return;
    char *text = folds_rules_text(folds->app->config);
    rcpt_pg_encoder_reset(folds->encoder);
    rcpt_pg_add_text(folds->encoder, text);
    rcpt_pg_encoder_params(folds->encoder, &query.params);
    folds->rules_flying = true;
    rcpt_pg_submit(folds->pg, &query, 1, on_rules, folds);
    free(text);
}

enum folds_told folds_want_transitions(const struct app *app)
{
    enum folds_told told = FOLDS_NOT_TOLD;
    for (size_t index = 0; index < app->config->folds_count; index++) {
        const struct rcpt_fold_config *fold = &app->config->folds[index];
        if (fold->source != RCPT_FOLD_TRANSITIONS)
            continue;
        if (folds_columns(fold, NULL, NULL) > 0)
            return FOLDS_TOLD_COLUMNS;
        told = FOLDS_TOLD;
    }
    return told;
}

/* ---- totals ---- */

enum {
    TOTAL_RULE,
    TOTAL_EVENTS,
    TOTAL_GROUPS,
    TOTAL_QUIET,
    TOTAL_HOLD,
    TOTAL_FULL,
    TOTAL_REMOVED,
    TOTAL_AVOIDABLE,
    TOTAL_OPEN
};

static void show(struct app_folds *folds, enum rcpt_metric metric, const char *const *labels,
                 const struct rcpt_pg_rows *rows, size_t row, int column)
{
    rcpt_metrics_set(folds->app->figures.metrics, metric, labels,
                     (double)rcpt_pg_rows_int(rows, row, column));
}

static void show_rule(struct app_folds *folds, const struct rcpt_pg_rows *rows, size_t row)
{
    static const struct {
        const char *cause;
        int column;
    } causes[] = {{"quiet", TOTAL_QUIET},
                  {"hold", TOTAL_HOLD},
                  {"full", TOTAL_FULL},
                  {"removed", TOTAL_REMOVED}};
    const char *rule = rcpt_pg_rows_text(rows, row, TOTAL_RULE);
    int64_t published = 0, events = rcpt_pg_rows_int(rows, row, TOTAL_EVENTS);
    show(folds, RCPT_METRIC_FOLD_EVENTS, RCPT_LABELS(rule), rows, row, TOTAL_EVENTS);
    show(folds, RCPT_METRIC_FOLD_GROUPS, RCPT_LABELS(rule), rows, row, TOTAL_GROUPS);
    show(folds, RCPT_METRIC_FOLD_AVOIDABLE, RCPT_LABELS(rule), rows, row, TOTAL_AVOIDABLE);
    show(folds, RCPT_METRIC_FOLD_OPEN, RCPT_LABELS(rule), rows, row, TOTAL_OPEN);
    for (size_t index = 0; index < sizeof(causes) / sizeof(causes[0]); index++) {
        show(folds, RCPT_METRIC_FOLD_PUBLISHED, RCPT_LABELS(rule, causes[index].cause), rows, row,
             causes[index].column);
        published += rcpt_pg_rows_int(rows, row, causes[index].column);
    }
    int64_t groups = published + rcpt_pg_rows_int(rows, row, TOTAL_OPEN);
    rcpt_metrics_set(folds->app->figures.metrics, RCPT_METRIC_FOLD_FOLDED, RCPT_LABELS(rule),
                     (double)(events - groups));
    rcpt_metrics_set(folds->app->figures.metrics, RCPT_METRIC_FOLD_RATIO, RCPT_LABELS(rule),
                     events > 0 ? (double)(events - groups) / (double)events : 0);
}

static void on_totals(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct app_folds *folds = context;
    folds->totals_flying = false;
    if (failed(folds, "reading the totals", error))
        return;
    RCPT_ASSERT(row_count == 1);
    for (size_t row = 0; row < rcpt_pg_rows_count(rows[0]); row++)
        show_rule(folds, rows[0], row);
}

static void read_totals(struct app_folds *folds)
{
    struct rcpt_pg_query query = {.statement = "totals"};
    if (folds->totals_flying || !can_ask(folds) || app_now(folds->app) < folds->totals_at_ms)
        return;
    folds->totals_flying = true;
    folds->totals_at_ms = app_now(folds->app) + TOTALS_MS;
    rcpt_pg_submit(folds->pg, &query, 1, on_totals, folds);
}

/* ---- the connection ---- */

static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct app_folds *folds = context;
    (void)pg;
    folds->up = true;
    folds->rules_stored = false; /* the database may have gone back */
    rcpt_log_info("postgres", "folds is connected");
    store_rules(folds);
}

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct app_folds *folds = context;
    (void)pg;
    folds->up = false;
    for (uint32_t index = 0; index < FOLDS_LANES; index++)
        folds_lane_down(&folds->lanes[index]);
    rcpt_metrics_add(folds->app->figures.metrics, RCPT_METRIC_CONNECTION_FAILURES,
                     RCPT_LABELS("folds"), 1);
    rcpt_log_warn("postgres", "folds is not connected: %s%s%s", error->text,
                  error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
}

static void on_reader_ready(void *context, struct rcpt_pg *pg)
{
    struct folds_reader *reader = context;
    (void)pg;
    reader->up = true;
    rcpt_log_info("postgres", "fold-topics is connected");
    folds_reader_up(reader);
}

static void on_reader_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct folds_reader *reader = context;
    (void)pg;
    reader->up = false;
    rcpt_metrics_add(reader->folds->app->figures.metrics, RCPT_METRIC_CONNECTION_FAILURES,
                     RCPT_LABELS("fold-topics"), 1);
    rcpt_log_warn("postgres", "fold-topics is not connected: %s%s%s", error->text,
                  error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
}

static void start_reader(struct app_folds *folds)
{
    struct folds_reader *reader = &folds->reader;
    struct rcpt_pg_settings settings = app_pg_settings(folds->app, "fold-topics");
    reader->folds = folds;
    reader->encoder = rcpt_pg_encoder_new();
    settings.context = reader;
    settings.on_ready = on_reader_ready;
    settings.on_down = on_reader_down;
    settings.statements = rcpt_fold_topic_statements(&settings.statement_count);
    reader->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(reader->pg);
    folds_reader_start(reader);
}

static void on_tick(uv_timer_t *timer)
{
    struct app_folds *folds = timer->data;
    store_rules(folds);
    read_totals(folds);
    for (uint32_t index = 0; index < FOLDS_LANES; index++)
        folds_lane_tick(&folds->lanes[index]);
    folds_reader_tick(&folds->reader);
    if (folds->stopping)
        app_check_drain(folds->app);
}

/* ---- start, reload, end ---- */

static void start(struct app *app)
{
    struct app_folds *folds = rcpt_calloc(1, sizeof(*folds));
    struct rcpt_pg_settings settings = app_pg_settings(app, "folds");
    app->folds = folds;
    folds->app = app;
    folds->encoder = rcpt_pg_encoder_new();
    settings.context = folds;
    settings.synchronous_commit = true; /* claims precede an effect outside the database */
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements = rcpt_fold_statements(&settings.statement_count);
    for (uint32_t index = 0; index < FOLDS_LANES; index++)
        folds_lane_init(folds, index);
    uv_timer_init(&app->loop, &folds->tick);
    folds->tick.data = folds;
    uv_timer_start(&folds->tick, on_tick, TICK_MS, TICK_MS);
    folds->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(folds->pg);
    start_reader(folds);
    folds->calls.folds = folds;
    folds_calls_configure(&folds->calls);
}

void folds_start(struct app *app)
{
    if (app->config->folds_count > 0)
        start(app);
}

static void on_left(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct app *app = context;
    if (error != NULL || app->folds != NULL || app->stopping)
        return; /* asked again on the next connection */
    RCPT_ASSERT(row_count == 1);
    if (!rcpt_pg_rows_bool(rows[0], 0, 0))
        return;
    rcpt_log_info("app", "folds: no rule is configured; what is left of earlier ones is published");
    start(app);
}

void folds_look_for_left(struct app *app)
{
    struct rcpt_pg_query query = {.statement = "folds_left"};
    if (app->folds == NULL && !app->stopping)
        rcpt_pg_submit(app->control, &query, 1, on_left, app);
}

void folds_apply_config(struct app *app, bool rules_changed)
{
    if (app->folds == NULL) {
        folds_start(app);
        return;
    }
    rcpt_pg_set_dsn(app->folds->pg, app->config->postgres.dsn);
    rcpt_pg_set_dsn(app->folds->reader.pg, app->config->postgres.dsn);
    if (!rules_changed)
        return;
    app->folds->rules_again = app->folds->rules_flying;
    app->folds->rules_stored = false;
    store_rules(app->folds);
    folds_reader_reload(&app->folds->reader);
    folds_calls_configure(&app->folds->calls);
}

void folds_stop(struct app *app)
{
    if (app->folds == NULL)
        return;
    app->folds->stopping = true;
    folds_reader_stop(&app->folds->reader);
}

bool folds_are_settled(const struct app *app)
{
    for (uint32_t index = 0; app->folds != NULL && index < FOLDS_LANES; index++)
        if (!folds_lane_is_settled(&app->folds->lanes[index]))
            return false;
    return app->folds == NULL || folds_reader_is_settled(&app->folds->reader);
}

static void on_part_closed(void *context)
{
    struct app_folds *folds = context;
    struct app *app = folds->app;
    if (--folds->closing > 0)
        return;
    rcpt_pg_encoder_free(folds->encoder);
    rcpt_pg_encoder_free(folds->reader.encoder);
    for (uint32_t index = 0; index < FOLDS_LANES; index++)
        folds_gather_fini(&folds->lanes[index].gatherer);
    free(folds);
    app->folds = NULL;
    app->open--;
}

static void on_tick_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

void folds_close(struct app *app)
{
    struct app_folds *folds = app->folds;
    if (folds == NULL)
        return;
    app->open++;
    folds->closing = FOLDS_LANES + 4;
    uv_close((uv_handle_t *)&folds->tick, on_tick_closed);
    rcpt_pg_close(folds->pg, on_part_closed, folds);
    rcpt_pg_close(folds->reader.pg, on_part_closed, folds);
    folds_calls_close(&folds->calls, on_part_closed);
    for (uint32_t index = 0; index < FOLDS_LANES; index++)
        rcpt_transactor_close(folds->lanes[index].transactor, on_part_closed, folds);
}

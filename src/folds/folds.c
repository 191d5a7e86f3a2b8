/* Folds as a whole: the subscription to transitions, the connection with rules and totals, start,
 * reload and end. Folds run (struct app_folds) once a rule is configured, or an earlier one has
 * left work, and then until the process ends. Called by run.c and reload.c. */
#include "internal.h"

#include <stdlib.h>

#include "receiptd/base/error.h"
#include "receiptd/postgres/sql.h"

/* Shards wait at most this long for their next step; answers of PostgreSQL and Kafka do not wait
 * for the tick. */
#define TICK_MS   100
#define TOTALS_MS 2000

/* The part that exists without rules too: it listens for work that earlier rules have left. */
struct folds {
    struct host_context *context;
    struct receipts *receipts;
    struct transition_subscriber subscriber;
    struct control_listener listener;
    struct app_folds *running; /* NULL: no rule was ever configured, and none has left work */
};

/* ---- rules ---- */

/* Columns of sql/fold/rules. */
enum { RULES_REMOVED, RULES_OPEN, RULES_UNKNOWN };

/* A reload may have changed the rules while they were being stored: then they are stored again. */
static void on_rules(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_folds *folds = context;
    folds->rules_stored = !folds->rules_again;
    folds->rules_again = false;
    int64_t removed = rcpt_pg_rows_int(rows, 0, RULES_REMOVED);
    const char *unknown = rcpt_pg_rows_text(rows, 0, RULES_UNKNOWN);
    if (unknown != NULL)
        rcpt_log_error("folds",
                       "folds: the inbox has no such column: %s; it is null in every event, so "
                       "nothing matches it; HINT: add it to the table, then reload",
                       unknown);
    if (removed > 0)
        rcpt_log_info("folds",
                      "folds: %lld rules are removed; their %lld open groups are published at once",
                      (long long)removed, (long long)rcpt_pg_rows_int(rows, 0, RULES_OPEN));
    folds_gather_rules_changed(folds->shards[0].gatherer);
    receipts_apply_subscriptions(folds->folds->receipts);
}

/* Idempotent; sent on every new connection and after a reload. */
static void store_rules(struct app_folds *folds)
{
    struct rcpt_pg_encoder *encoder = folds->rules_stored ? NULL : rcpt_ask_begin(&folds->rules);
    if (encoder == NULL)
        return;
    char *text = folds_rules_text(folds->context->config);
    rcpt_pg_add_text(encoder, text);
    rcpt_ask_send(&folds->rules);
    free(text);
}

/* ---- totals ---- */

/* Columns of sql/fold/totals. */
enum {
    TOTAL_RULE,
    TOTAL_EVENTS,
    TOTAL_QUIET,
    TOTAL_HOLD,
    TOTAL_FULL,
    TOTAL_REMOVED,
    TOTAL_OPEN,
    TOTAL_LAG_MS
};

/* Sets the metric to a column of the totals. */
static void show(struct app_folds *folds, enum rcpt_metric metric, const char *const *labels,
                 const struct rcpt_pg_rows *rows, size_t row, int column)
{
    rcpt_metrics_set(folds->context->metrics, metric, labels,
                     (double)rcpt_pg_rows_int(rows, row, column));
}

/* Series are shown by every instance from the database's totals, so they survive a restart. */
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
    show(folds, RCPT_METRIC_FOLD_EVENTS, RCPT_LABELS(rule), rows, row, TOTAL_EVENTS);
    show(folds, RCPT_METRIC_FOLD_OPEN, RCPT_LABELS(rule), rows, row, TOTAL_OPEN);
    rcpt_metrics_set(folds->context->metrics, RCPT_METRIC_FOLD_LAG, RCPT_NO_LABELS,
                     (double)rcpt_pg_rows_int(rows, row, TOTAL_LAG_MS) / 1000);
    for (size_t index = 0; index < RCPT_COUNT_OF(causes); index++)
        show(folds, RCPT_METRIC_FOLD_PUBLISHED, RCPT_LABELS(rule, causes[index].cause), rows, row,
             causes[index].column);
}

/* A rule that is removed keeps its row of totals, so its counters do not fall. */
static void on_totals(void *context, const struct rcpt_pg_rows *rows)
{
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++)
        show_rule(context, rows, row);
}

/* Every two seconds: figures of the whole installation, from one small table. */
static void read_totals(struct app_folds *folds)
{
    if (rcpt_ask_begin(&folds->totals) != NULL)
        rcpt_ask_send(&folds->totals);
}

/* ---- the connection ---- */

/* The rules must be stored on this connection before anything is gathered or claimed. */
static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct app_folds *folds = context;
    (void)pg;
    folds->asker.up = true;
    folds->rules_stored = false; /* the database may have gone back */
    store_rules(folds);
}

/* Epochs and sums in memory belong to the connection. */
static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct app_folds *folds = context;
    (void)pg;
    host_count_lost(folds->context, "folds", folds->asker.up);
    folds->asker.up = false;
    for (uint32_t index = 0; index < FOLDS_SHARDS; index++)
        folds_shard_down(&folds->shards[index]);
    (void)error; /* logged by the connection */
}

/* The drain waits for shards and topics, whose states change here. */
static void on_tick(uv_timer_t *timer)
{
    struct app_folds *folds = timer->data;
    store_rules(folds);
    read_totals(folds);
    folds_stream_tick(folds);
    for (uint32_t index = 0; index < FOLDS_SHARDS; index++)
        folds_shard_tick(&folds->shards[index]);
    topics_tick(folds->topics.reader);
    if (folds->asker.closed)
        host_check_drain(folds->context);
}

/* ---- start ---- */

/* Rules and totals share one encoder: rcpt_ask_begin() and rcpt_ask_send() enclose its use. */
static void make_asks(struct app_folds *folds)
{
    folds->asker = (struct rcpt_asker){.loop = folds->context->loop,
                                       .component = "folds",
                                       .prefix = "folds: ",
                                       .encoder = rcpt_pg_encoder_new()};
    folds->rules = (struct rcpt_ask){.asker = &folds->asker,
                                     .statement = "rules",
                                     .what = "storing the rules",
                                     .context = folds,
                                     .on_answer = on_rules};
    folds->totals = (struct rcpt_ask){.asker = &folds->asker,
                                      .statement = "totals",
                                      .what = "reading the totals",
                                      .context = folds,
                                      .on_answer = on_totals,
                                      .every_ms = TOTALS_MS};
}

/* Called once in the life of the process; a reload changes what runs. */
static void start(struct folds *module)
{
    struct app_folds *folds = rcpt_calloc(1, sizeof(*folds));
    struct rcpt_pg_settings settings = host_pg_settings(module->context, "folds");
    module->running = folds;
    folds->folds = module;
    folds->context = module->context;
    folds->receipts = module->receipts;
    make_asks(folds);
    folds_stream_init(folds);
    settings.context = folds;
    settings.synchronous_commit = true; /* a claim precedes an effect outside PostgreSQL */
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements = rcpt_fold_statements(&settings.statement_count);
    for (uint32_t index = 0; index < FOLDS_SHARDS; index++)
        folds_shard_init(folds, index);
    uv_timer_init(folds->context->loop, &folds->tick);
    folds->tick.data = folds;
    uv_timer_start(&folds->tick, on_tick, TICK_MS, TICK_MS);
    folds->asker.pg = rcpt_pg_new(&settings);
    rcpt_pg_start(folds->asker.pg);
    folds->topics.folds = folds;
    folds_topics_start(&folds->topics);
    folds_calls_init(&folds->calls, folds);
}

void folds_start(struct folds *folds)
{
    const struct rcpt_config *config = folds->context->config;
    if (config->folds_count > 0 || config->stream.topic != NULL)
        start(folds);
}

/* Earlier rules, which are no longer configured, have left groups, outbox rows or calls. */
static void on_left(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct folds *folds = context;
    if (error != NULL || folds->running != NULL || host_is_stopping(folds->context))
        return; /* the next connection asks again */
    RCPT_ASSERT(row_count == 1);
    if (!rcpt_pg_rows_bool(rows[0], 0, 0))
        return;
    rcpt_log_info("folds", "folds: no rule is configured; the rest of earlier rules is published");
    start(folds);
}

/* Without a rule in the configuration, rows of an earlier one may still have to be published. */
static void on_control_ready(void *context, struct rcpt_pg *pg)
{
    struct folds *folds = context;
    struct rcpt_pg_query query = {.statement = "folds_left"};
    if (folds->running == NULL)
        rcpt_pg_submit(pg, &query, 1, on_left, folds);
}

/* ---- the subscription ---- */

static void want_stream(const struct rcpt_config *config, struct transition_wants *wants)
{
    wants->stream = config->stream.topic != NULL;
    if (!wants->stream)
        return;
    wants->stream_form = 1 + (uint64_t)config->stream.mode;
    for (size_t index = 0; index < config->stream.columns_count; index++)
        wants->stream_form = wants->stream_form * UINT64_C(0x9e3779b97f4a7c15) ^
                             rcpt_text_hash(rcpt_text_of(config->stream.columns[index]));
}

/* Columns of the inbox cost a look at it in every batch: only if a rule names one. */
void folds_want(const struct rcpt_config *config, struct transition_wants *wants)
{
    for (size_t index = 0; index < config->folds_count; index++) {
        const struct rcpt_fold_config *fold = &config->folds[index];
        if (fold->source != RCPT_FOLD_TRANSITIONS)
            continue;
        wants->folds = true;
        wants->fold_columns |= folds_columns(fold, NULL, NULL) > 0;
    }
    want_stream(config, wants);
}

static void want(const void *context, struct transition_wants *wants)
{
    const struct folds *folds = context;
    folds_want(folds->context->config, wants);
}

struct folds *folds_new(struct host_context *context, struct receipts *receipts)
{
    struct folds *folds = rcpt_calloc(1, sizeof(*folds));
    *folds = (struct folds){.context = context,
                            .receipts = receipts,
                            .subscriber = {.context = folds, .want = want},
                            .listener = {.context = folds, .on_ready = on_control_ready}};
    receipts_subscribe(receipts, &folds->subscriber);
    receipts_listen_control(receipts, &folds->listener);
    return folds;
}

/* ---- reload, end ---- */

/* Rules are stored before the shards go on, so that groups follow one version of them. */
void folds_apply_config(struct folds *folds, bool rules_changed, bool stream_changed)
{
    struct app_folds *running = folds->running;
    if (running == NULL) {
        folds_start(folds);
        return;
    }
    struct rcpt_kafka_credentials credentials;
    host_kafka_credentials(folds->context->config, &credentials);
    for (uint32_t index = 0; index < FOLDS_SHARDS; index++)
        rcpt_transactor_set_credentials(running->shards[index].transactor, &credentials);
    rcpt_pg_set_dsn(running->asker.pg, folds->context->config->postgres.dsn);
    topics_apply_config(running->topics.reader);
    if (stream_changed)
        folds_stream_configure(running);
    if (!rules_changed)
        return;
    running->rules_again = running->rules.in_flight;
    running->rules_stored = false;
    store_rules(running);
    folds_topics_reload(&running->topics);
    folds_calls_configure(&running->calls);
}

bool folds_view_stream(const struct folds *folds, struct folds_stream_view *view)
{
    const struct app_folds *running = folds->running;
    if (running == NULL || running->stream.topic == NULL)
        return false;
    *view = (struct folds_stream_view){.lag_seconds = running->stream.lag_seconds,
                                       .published = running->stream.published,
                                       .refused = running->stream.refused};
    return true;
}

const char *folds_reason(const struct folds *folds)
{
    const struct app_folds *running = folds->running;
    if (running == NULL)
        return NULL;
    if (!running->asker.up)
        return "folds are not connected to PostgreSQL";
    return running->rules_stored ? topics_reason(running->topics.reader)
                                 : "the rules of folds are not stored yet";
}

/* Shards give up their producers with the next tick; the drain waits for folds_are_settled. */
void folds_stop(struct folds *folds)
{
    if (folds->running == NULL)
        return;
    folds->running->asker.closed = true;
    folds_topics_stop(&folds->running->topics);
}

/* True without rules as well. */
bool folds_are_settled(const struct folds *folds)
{
    const struct app_folds *running = folds->running;
    for (uint32_t index = 0; running != NULL && index < FOLDS_SHARDS; index++)
        if (!folds_shard_is_settled(&running->shards[index]))
            return false;
    return running == NULL || !topics_is_open(running->topics.reader);
}

/* Counts the parts that folds_close() has begun to close; the last one ends the folds. */
static void on_part_closed(void *context)
{
    struct app_folds *folds = context;
    struct host_context *app = folds->context;
    if (--folds->closing > 0)
        return;
    rcpt_pg_encoder_free(folds->asker.encoder);
    for (uint32_t index = 0; index < FOLDS_SHARDS; index++)
        folds_gather_free(folds->shards[index].gatherer);
    folds_stream_fini(folds);
    folds->folds->running = NULL;
    free(folds);
    host_closed(app);
}

static void on_tick_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

/* Five kinds of parts close by themselves; the last one frees everything. */
void folds_close(struct folds *folds)
{
    struct app_folds *running = folds->running;
    if (running == NULL)
        return;
    host_open(folds->context);
    running->closing = FOLDS_SHARDS + 4;
    uv_close((uv_handle_t *)&running->tick, on_tick_closed);
    rcpt_pg_close(running->asker.pg, on_part_closed, running);
    topics_close(running->topics.reader, on_part_closed, running);
    folds_calls_close(&running->calls, on_part_closed);
    for (uint32_t index = 0; index < FOLDS_SHARDS; index++)
        rcpt_transactor_close(running->shards[index].transactor, on_part_closed, running);
}

void folds_free(struct folds *folds)
{
    free(folds);
}

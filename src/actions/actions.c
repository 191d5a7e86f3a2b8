/* A set of actions as a whole: its life from a start or reload to the next, the pipelines in the
 * database, its shards. The states are enum actions_state; enter() is their only setter. One
 * connection serves all statements, each of them one at a time (postgres/ask.h); actions_step()
 * sends those that can be sent, and is called by the timer and after every answer. Called by run.c
 * and reload.c. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "postgres/sql.h"

#define TIDY_MS        5000
#define COUNT_MS       2000
#define TIDY_ROWS      5000
#define OWN_MS         2000
#define STORE_MS       1000  /* after a failure */
#define STORE_AGAIN_MS 30000 /* after a refusal */
#define AGAIN_MS       200   /* after a failure that may come at once */

static int64_t now_of(const struct app_actions *actions)
{
    return app_now(actions->context);
}

/* ---- states ---- */

static void enter(struct app_actions *actions, enum actions_state state, const char *reason)
{
    static const char *const names[ACTIONS_STATE__COUNT] = {
        [ACTIONS_STORING] = "STORING",   [ACTIONS_RUNNING] = "RUNNING",
        [ACTIONS_STOPPING] = "STOPPING", [ACTIONS_LEFT] = "LEFT",
        [ACTIONS_CLOSING] = "CLOSING",
    };
    static const bool legal[ACTIONS_STATE__COUNT][ACTIONS_STATE__COUNT] = {
        [ACTIONS_STORING] = {[ACTIONS_RUNNING] = true, [ACTIONS_STOPPING] = true},
        [ACTIONS_RUNNING] = {[ACTIONS_STOPPING] = true},
        [ACTIONS_STOPPING] = {[ACTIONS_LEFT] = true, [ACTIONS_CLOSING] = true},
        [ACTIONS_LEFT] = {[ACTIONS_CLOSING] = true},
    };
    RCPT_ASSERT(legal[actions->state][state]);
    rcpt_log_debug("actions", "actions %s: %s -> %s: %s", actions->me, names[actions->state],
                   names[state], reason);
    actions->state = state;
}

static bool is_stopping(const struct app_actions *actions)
{
    return actions->state >= ACTIONS_STOPPING;
}

/* ---- shards, pipelines, housekeeping ---- */

static void on_owned(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    actions->owned_until_ms =
        actions->own.sent_ms + actions->context->config->actions.lane_lease_ms;
    for (size_t shard = 0; shard < ACTIONS_SHARDS; shard++)
        actions->owned[shard] = false;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        uint64_t shard = (uint64_t)rcpt_pg_rows_int(rows, row, 0);
        if (shard < ACTIONS_SHARDS)
            actions->owned[shard] = true;
    }
    rcpt_metrics_set(actions->context->metrics, RCPT_METRIC_ACTION_LANES, RCPT_NO_LABELS,
                     (double)rcpt_pg_rows_count(rows));
}

static void own_shards(struct app_actions *actions)
{
    int64_t lease = actions->context->config->actions.lane_lease_ms;
    struct rcpt_pg_encoder *encoder = is_stopping(actions) ? NULL : rcpt_ask_begin(&actions->own);
    if (encoder == NULL)
        return;
    rcpt_pg_add_text(encoder, actions->me);
    rcpt_pg_add_int8(encoder, lease);
    actions->own.every_ms = lease / 5 < OWN_MS ? lease / 5 : OWN_MS;
    rcpt_ask_send(&actions->own);
}

/* A missing column would be empty in every run, and once_per would let a single run begin. A start
 * fails; after a reload the pipelines before stay in effect, and no action begins. */
static void refuse_columns(struct app_actions *actions, const char *unknown)
{
    struct rcpt_error error;
    rcpt_error_fatal(&error, EX_CONFIG, "pipelines: the inbox has no such column: %s", unknown);
    rcpt_error_hint(&error, "org, subject and once_per name columns of message_inbox");
    actions->store.at_ms = now_of(actions) + STORE_AGAIN_MS;
    if (actions->known)
        rcpt_log_error("actions",
                       "%s; no action begins until that is mended; HINT: %s, then reload",
                       error.text, error.hint);
    else
        app_fail(actions->context, &error);
}

static void on_stored(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    const char *unknown = rcpt_pg_rows_text(rows, 0, 0);
    if (unknown != NULL) {
        refuse_columns(actions, unknown);
        return;
    }
    actions->known = true;
    if (actions->state == ACTIONS_STORING)
        enter(actions, ACTIONS_RUNNING, "the pipelines are stored");
    receipts_on_prepared(actions->module->receipts);
    rcpt_log_info("actions", "%zu pipelines are in effect", actions->pipelines->count);
}

static void store_pipelines(struct app_actions *actions)
{
    struct rcpt_pg_encoder *encoder =
        actions->state == ACTIONS_STORING ? rcpt_ask_begin(&actions->store) : NULL;
    if (encoder == NULL)
        return;
    rcpt_pg_add_text(encoder, actions->pipelines->definitions);
    rcpt_ask_send(&actions->store);
}

static void on_subscription(void *context, const struct rcpt_pg_rows *rows)
{
    const struct app_actions *actions = context;
    struct rcpt_lane_subscription *subscription = rcpt_calloc(1, sizeof(*subscription));
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        int64_t code = rcpt_pg_rows_int(rows, row, 0);
        if (code >= RCPT_LADDER_FIRST_FLAG_CODE)
            subscription->flags |= UINT32_C(1) << (code - RCPT_LADDER_FIRST_FLAG_CODE);
        else
            subscription->tops[code] = true;
    }
    if (!is_stopping(actions))
        receipts_set_subscription(actions->module->receipts, subscription);
    free(subscription);
}

/* Reads to which statuses the pipelines in the database subscribe: batches that reach none of them
 * are sent without the block of actions. PostgreSQL notices when other instances change the
 * pipelines meanwhile (RD003). After a failure the next connection asks again. */
static void subscribe(struct app_actions *actions)
{
    if (actions->subscribed || actions->state != ACTIONS_RUNNING ||
        rcpt_ask_begin(&actions->subscribe) == NULL)
        return;
    actions->subscribed = true;
    rcpt_ask_send(&actions->subscribe);
}

static void on_tidied(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    if (rcpt_pg_rows_int(rows, 0, 0) >= TIDY_ROWS)
        actions->tidy.at_ms = 0;
}

/* Deletes what is past its retention; the owner of shard 0 does it for all. */
static void tidy(struct app_actions *actions)
{
    const struct rcpt_config *config = actions->context->config;
    struct rcpt_pg_encoder *encoder =
        is_stopping(actions) || !actions->owned[0] ? NULL : rcpt_ask_begin(&actions->tidy);
    if (encoder == NULL)
        return;
    rcpt_pg_add_int8(encoder, config->actions.retention_ms);
    rcpt_pg_add_int4(encoder, TIDY_ROWS);
    rcpt_pg_add_int8(encoder, config->actions.once_retention_ms);
    rcpt_ask_send(&actions->tidy);
}

enum { COUNT_KIND, COUNT_NAME, COUNT_N, COUNT_REPEATED }; /* columns of counts */

static void note_count(const struct app_actions *actions, const struct rcpt_pg_rows *rows,
                       size_t row)
{
    struct rcpt_metrics *metrics = actions->context->metrics;
    const char *kind = rcpt_pg_rows_text(rows, row, COUNT_KIND);
    const char *name = rcpt_pg_rows_text(rows, row, COUNT_NAME);
    double n = (double)rcpt_pg_rows_int(rows, row, COUNT_N);
    if (strcmp(kind, "action") == 0) {
        rcpt_metrics_set(metrics, RCPT_METRIC_ACTIONS, RCPT_LABELS(name), n);
    } else if (strcmp(kind, "pipeline") == 0) {
        rcpt_metrics_set(metrics, RCPT_METRIC_PIPELINE_RUNS, RCPT_LABELS(name), n);
        rcpt_metrics_set(metrics, RCPT_METRIC_PIPELINE_REPEATED, RCPT_LABELS(name),
                         (double)rcpt_pg_rows_int(rows, row, COUNT_REPEATED));
    } else {
        rcpt_metrics_set(metrics, RCPT_METRIC_ACTION_OVERLAPS, RCPT_NO_LABELS, n);
    }
}

static void on_counted(void *context, const struct rcpt_pg_rows *rows)
{
    const struct app_actions *actions = context;
    rcpt_metrics_begin(actions->context->metrics, RCPT_METRIC_ACTIONS);
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++)
        note_count(actions, rows, row);
    rcpt_metrics_end(actions->context->metrics, RCPT_METRIC_ACTIONS);
}

static void count(struct app_actions *actions)
{
    struct rcpt_metrics *metrics = actions->context->metrics;
    rcpt_metrics_set(metrics, RCPT_METRIC_ACTIONS_IN_FLIGHT, RCPT_NO_LABELS,
                     (double)actions->in_flight);
    rcpt_metrics_set(metrics, RCPT_METRIC_ENDPOINTS_DISABLED, RCPT_NO_LABELS,
                     (double)actions_call_disabled(actions));
    if (!is_stopping(actions) && rcpt_ask_begin(&actions->counts) != NULL)
        rcpt_ask_send(&actions->counts);
}

/* ---- the end ---- */

static void on_part_closed(void *context)
{
    struct app_actions *actions = context;
    struct actions *module = actions->module;
    if (--actions->open > 0)
        return;
    actions_call_fini(actions);
    actions_results_fini(actions);
    rcpt_pg_encoder_free(actions->asker.encoder);
    pipelines_free(actions->pipelines);
    free(actions);
    module->open--;
    app_check_drain(module->context);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

static void close_all(struct app_actions *actions)
{
    enter(actions, ACTIONS_CLOSING, "nothing is in flight");
    actions->asker.closed = true;
    actions->open++; /* until this returns: everything may close at once */
    uv_close((uv_handle_t *)&actions->timer, on_timer_closed);
    if (actions->asker.pg != NULL)
        rcpt_pg_close(actions->asker.pg, on_part_closed, actions);
    actions_call_close(actions, on_part_closed);
    if (actions->topic != NULL)
        actions_topic_stop(actions->topic, on_part_closed);
    actions->topic = NULL;
    on_part_closed(actions);
}

static void on_left(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    (void)rows;
    enter(actions, ACTIONS_LEFT, "the shards are given away");
}

/* Gives the shards away first, so that other instances take over while the last calls here are in
 * flight. Without a connection results cannot be written: leases end, and others call again. */
static void wind_up(struct app_actions *actions)
{
    bool busy = actions->asker.in_flight > (actions->finish.in_flight ? 1u : 0u) ||
                actions->api_in_flight > 0;
    bool left = actions->state == ACTIONS_LEFT;
    if (!busy && !left && rcpt_asker_is_ready(&actions->asker)) {
        struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&actions->leave);
        if (encoder == NULL)
            return;
        rcpt_pg_add_text(encoder, actions->me);
        rcpt_ask_send(&actions->leave);
        return;
    }
    bool settled = actions->in_flight == 0 && actions_results_are_written(actions);
    if (!busy && !actions->finish.in_flight && ((settled && left) || !actions->asker.up))
        close_all(actions);
}

void actions_step(struct app_actions *actions)
{
    if (actions->asker.closed)
        return;
    actions_results_write(actions);
    store_pipelines(actions);
    subscribe(actions);
    own_shards(actions);
    actions_begin_some(actions);
    actions_claim_some(actions);
    if (is_stopping(actions))
        wind_up(actions);
}

static void on_settled(void *owner)
{
    actions_step(owner);
}

static void on_tick(uv_timer_t *timer)
{
    struct app_actions *actions = timer->data;
    if (actions->asker.closed)
        return;
    tidy(actions);
    count(actions);
    actions_topic_tick(actions->topic);
    actions_step(actions);
}

/* ---- start ---- */

static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct app_actions *actions = context;
    (void)pg;
    actions->asker.up = true;
    actions->own.at_ms = 0;
    actions->subscribed = false;
    actions_step(actions);
}

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    (void)pg;
    actions->asker.up = false;
    rcpt_metrics_add(actions->context->metrics, RCPT_METRIC_CONNECTION_FAILURES,
                     RCPT_LABELS("actions"), 1);
    if (!actions->asker.closed)
        rcpt_log_failure(RCPT_LOG_WARN, "actions", error, "actions is not connected");
    actions_step(actions);
}

static void connect_database(struct app_actions *actions)
{
    struct rcpt_pg_settings settings = app_pg_settings(actions->context, "actions");
    settings.synchronous_commit = true; /* a claim precedes an effect outside PostgreSQL */
    settings.context = actions;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements = rcpt_action_statements(&settings.statement_count);
    actions->asker.pg = rcpt_pg_new(&settings);
    actions->open++;
    rcpt_pg_start(actions->asker.pg);
}

static void make_asks(struct app_actions *actions)
{
    actions->asker = (struct rcpt_asker){.loop = actions->context->loop,
                                         .component = "actions",
                                         .prefix = "",
                                         .encoder = rcpt_pg_encoder_new(),
                                         .on_settled = on_settled,
                                         .owner = actions};
    actions->store = actions_ask(actions, "store", "storing the pipelines", on_stored);
    actions->store.retry_ms = STORE_MS;
    actions->subscribe = actions_ask(actions, "subscriptions", "asking to what pipelines subscribe",
                                     on_subscription);
    actions->own = actions_ask(actions, "own", "sharing out shards of actions", on_owned);
    actions->tidy = actions_ask(actions, "tidy", "tidying up of actions", on_tidied);
    actions->tidy.every_ms = TIDY_MS;
    actions->counts = actions_ask(actions, "counts", "counting actions", on_counted);
    actions->counts.every_ms = COUNT_MS;
    actions->leave = actions_ask(actions, "leave", "giving shards of actions away", on_left);
    actions->leave.retry_ms = AGAIN_MS;
    actions_results_init(actions);
    actions_begin_init(actions);
    actions_claim_init(actions);
}

static struct app_actions *make(struct actions *module, struct pipelines *pipelines_taken)
{
    struct app_actions *actions = rcpt_calloc(1, sizeof(*actions));
    actions->module = module;
    actions->context = module->context;
    actions->pipelines = pipelines_taken;
    actions->random = uv_hrtime() ^ ((uint64_t)getpid() << 32);
    snprintf(actions->me, sizeof(actions->me), "%s-%08" PRIx64, module->context->instance,
             rcpt_random_next(&actions->random) >> 32);
    make_asks(actions);
    uv_timer_init(module->context->loop, &actions->timer);
    actions->timer.data = actions;
    actions->open = 1;
    return actions;
}

bool actions_start(struct actions *module, struct rcpt_error *error)
{
    struct pipelines *pipelines = pipelines_take(module->context->config);
    if (pipelines == NULL || pipelines->count == 0) {
        pipelines_free(pipelines);
        return true;
    }
    struct app_actions *actions = make(module, pipelines);
    module->open++;
    module->running = actions;
    receipts_set_subscription(module->receipts, NULL);
    if (!actions_call_start(actions, error)) {
        actions_stop(module);
        return false;
    }
    connect_database(actions);
    actions->topic = actions_topic_start(actions);
    actions->open += actions->topic != NULL;
    uv_timer_start(&actions->timer, on_tick, ACTIONS_TICK_MS, ACTIONS_TICK_MS);
    return true;
}

void actions_stop(struct actions *module)
{
    struct app_actions *actions = module->running;
    module->running = NULL;
    if (actions == NULL)
        return;
    enter(actions, ACTIONS_STOPPING, "a reload or the end");
    if (actions->asker.pg == NULL)
        close_all(actions);
    else
        actions_step(actions);
}

/* ---- for the life of the process ---- */

static const char *file_of(const void *context)
{
    const struct actions *module = context;
    bool configured = strcmp(module->context->config->pipelines, "[]") != 0;
    return configured ? "lane/subscribers/actions" : NULL;
}

static bool is_prepared(const void *context)
{
    const struct actions *module = context;
    return module->running == NULL || module->running->known;
}

static void on_committed(void *context, uint32_t messages_changed)
{
    struct actions *module = context;
    module->changed += messages_changed;
}

static void on_outdated(void *context)
{
    const struct actions *module = context;
    if (module->running != NULL)
        module->running->subscribed = false; /* the next tick asks */
}

struct actions *actions_new(struct app_context *context, struct receipts *receipts)
{
    struct actions *module = rcpt_calloc(1, sizeof(*module));
    *module = (struct actions){.context = context,
                               .receipts = receipts,
                               .subscriber = {.context = module,
                                              .file = file_of,
                                              .selective = true,
                                              .is_prepared = is_prepared,
                                              .on_committed = on_committed,
                                              .on_outdated = on_outdated}};
    receipts_subscribe(receipts, &module->subscriber);
    return module;
}

bool actions_reload(struct actions *module, struct rcpt_error *error)
{
    bool known = is_prepared(module);
    actions_stop(module);
    if (!actions_start(module, error))
        return false;
    if (module->running != NULL)
        module->running->known = known; /* the pipelines before stay in effect until then */
    return true;
}

void actions_enable(struct actions *module)
{
    if (module->running != NULL)
        actions_call_enable(module->running);
}

bool actions_are_settled(const struct actions *module)
{
    return module->open == 0;
}

void actions_free(struct actions *module)
{
    free(module);
}

#include "receiptd/app/run.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "app.h"

int64_t app_now(const struct app *app)
{
    return (int64_t)uv_now(&app->loop);
}

/* ---- readiness ---- */

static bool lanes_are_up(const struct app *app)
{
    for (unsigned index = 0; index < app->config->postgres.connections; index++) {
        if (!app->connections[index].up)
            return false;
    }
    return true;
}

void app_set_reason(char reason[APP_REASON_BYTES], const struct rcpt_error *error)
{
    snprintf(reason, APP_REASON_BYTES, "%s%s%s", error->text,
             error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
}

static const char *text_or(const char *text, const char *fallback)
{
    return text[0] != '\0' ? text : fallback;
}

unsigned app_reasons(const struct app *app, const char *reasons[APP_MOST_REASONS])
{
    unsigned count = 0;
    if (app->stopping)
        reasons[count++] = "stopping";
    if (app->halted)
        reasons[count++] = app->halt_reason;
    if (app->wanted_connections != 0)
        reasons[count++] = "changing the number of connections";
    else if (!app->control_up || !lanes_are_up(app))
        reasons[count++] = text_or(app->database_reason, "connecting to PostgreSQL");
    if (!app->kafka_healthy)
        reasons[count++] = text_or(app->kafka_reason, "connecting to Kafka");
    if (rcpt_assignment_state(app->assignment) != RCPT_ASSIGNMENT_IDLE)
        reasons[count++] = "reading positions";
    if (app->intake_wanted && !app->intake_ready)
        reasons[count++] = "the intake is not ready";
    if (app->hold != APP_HOLD_NONE)
        reasons[count++] = "an operator has asked to take in nothing more (receiptd ctl resume)";
    RCPT_ASSERT(count <= APP_MOST_REASONS);
    return count;
}

void app_update_readiness(struct app *app)
{
    const char *reasons[APP_MOST_REASONS];
    const char *reason = app_reasons(app, reasons) > 0 ? reasons[0] : NULL;
    const char *text = reason != NULL ? reason : "";
    if (app->ready == (reason == NULL) && strcmp(app->said_reason, text) == 0)
        return;
    app->ready = reason == NULL;
    app->was_ready |= app->ready;
    snprintf(app->said_reason, sizeof(app->said_reason), "%s", text);
    if (app->ready)
        rcpt_log_info("app", "ready");
    else
        rcpt_log_info("app", "not ready: %s", text);
    supervisor_set_ready(&app->supervisor, app->ready);
}

void app_halt(struct app *app, const struct rcpt_error *error)
{
    app->halted = true;
    app_set_reason(app->halt_reason, error);
    rcpt_log_error("app", "stopped consuming: %s", app->halt_reason);
    app_update_readiness(app);
}

static void port_halt(void *context, const struct rcpt_error *error)
{
    app_halt(context, error);
}

void app_set_hold(struct app *app, enum app_hold hold)
{
    static const char *const texts[] = {[APP_HOLD_NONE] = "taking in again",
                                        [APP_HOLD_PAUSED] = "paused: nothing more is taken in",
                                        [APP_HOLD_DRAINING] = "draining: nothing more is taken in",
                                        [APP_HOLD_DRAINED] = "drained: nothing is queued"};
    if (app->hold == hold)
        return;
    app->hold = hold;
    rcpt_log_info("app", "%s", texts[hold]);
    app_update_readiness(app);
    if (hold == APP_HOLD_NONE)
        consume_continue(app);
}

/* ---- the end: stop taking in, settle what is in flight, leave the group, close ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct app *app = handle->data;
    app->open--;
}

static void close_handle(struct app *app, uv_handle_t *handle)
{
    handle->data = app;
    app->open++;
    uv_close(handle, on_handle_closed);
}

static void on_closed(void *context)
{
    struct app *app = context;
    app->open--;
}

static void close_timers(struct app *app)
{
    uv_timer_t *timers[] = {&app->timers.tick,  &app->timers.rollup, &app->timers.parked,
                            &app->timers.evict, &app->timers.commit, &app->timers.stats,
                            &app->timers.watch, &app->deadline};
    for (size_t index = 0; index < sizeof(timers) / sizeof(timers[0]); index++)
        close_handle(app, (uv_handle_t *)timers[index]);
}

static void close_rest(struct app *app)
{
    janitor_log_stats(app);
    rcpt_log_flush();
    app->open++;
    supervisor_close(&app->supervisor, on_closed);
    trace_close(app);
    endpoints_close(app);
    control_close(app);
    close_timers(app);
    supervisor_signals_hold();
    for (size_t index = 0; index < sizeof(app->signals) / sizeof(app->signals[0]); index++)
        close_handle(app, (uv_handle_t *)&app->signals[index]);
    supervisor_signals_leave(app->exit_code);
    for (unsigned index = 0; index < app->config->postgres.connections; index++) {
        app->open++;
        rcpt_pg_close(app->connections[index].pg, on_closed, app);
    }
    app->open++;
    rcpt_pg_close(app->control, on_closed, app);
    folds_close(app);
}

static int64_t remaining_ms(const struct app *app)
{
    uint64_t due = uv_timer_get_due_in(&app->deadline);
    return due > 0 ? (int64_t)due : 1;
}

static void close_kafka(struct app *app)
{
    if (app->kafka == NULL || app->kafka_closing)
        return;
    app->kafka_closing = true;
    app->open++;
    consume_commit(app);
    int64_t remaining = remaining_ms(app);
    rcpt_kafka_close(app->kafka, remaining < 5000 ? remaining : 5000);
}

void app_check_drain(struct app *app)
{
    if (!app->stopping || app->closing || app->intake != NULL ||
        !rcpt_engine_is_settled(app->engine) || app->closing_connections > 0 ||
        app->reload != NULL || !folds_are_settled(app) || app->actions_open > 0)
        return;
    if (app->kafka != NULL) {
        close_kafka(app);
        return;
    }
    app->closing = true;
    close_rest(app);
}

static void on_deadline(uv_timer_t *timer)
{
    struct app *app = timer->data;
    /* What is not settled was not acknowledged anywhere: its positions have not moved, the next
     * owner replays it. */
    rcpt_log_warn(
        "app",
        "the drain took longer than shutdown.deadline; transactions in flight are abandoned");
    janitor_log_stats(app);
    _exit(app->exit_code);
}

static void begin_stop(struct app *app, const char *why)
{
    if (app->stopping)
        return;
    app->stopping = true;
    rcpt_log_info("app", "stopping: %s", why);
    supervisor_stopping(&app->supervisor);
    app_update_readiness(app);
    uv_timer_start(&app->deadline, on_deadline, (uint64_t)app->config->shutdown.deadline_ms, 0);
    if (app->intake != NULL)
        rcpt_intake_drain(app->intake);
    if (app->kafka != NULL)
        rcpt_kafka_stop_polling(app->kafka);
    rcpt_engine_stop(app->engine);
    folds_stop(app);
    actions_stop(app);
    app_check_drain(app);
}

void app_fail(struct app *app, const struct rcpt_error *error)
{
    rcpt_log_error("app", "%s%s%s", error->text, error->hint[0] != '\0' ? "; HINT: " : "",
                   error->hint);
    if (app->exit_code == 0)
        app->exit_code = error->exit_code != 0 ? error->exit_code : EX_SOFTWARE;
    begin_stop(app, "a fatal error");
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct app *app = handle->data;
    if (number == SIGHUP) {
        if (app->intake != NULL)
            rcpt_intake_reload(app->intake);
        rcpt_log_info("app", "SIGHUP: reading the configuration again");
        if (!app->stopping && !reload_begin(app, NULL, NULL))
            reload_after_this(app);
        return;
    }
    if (app->stopping) {
        rcpt_log_warn(
            "app",
            "second signal: leaving at once; what was in flight is replayed by the next owner");
        _exit(app->exit_code != 0 ? app->exit_code : EX_TEMPFAIL);
    }
    begin_stop(app, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

/* ---- start ---- */

/* 0, or libuv's error: the first signal takes a pair of descriptors. */
static int start_signals(struct app *app)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t index = 0; index < sizeof(numbers) / sizeof(numbers[0]); index++) {
        int failure = uv_signal_init(&app->loop, &app->signals[index]);
        if (failure != 0)
            return failure;
        app->signals[index].data = app;
        RCPT_ASSERT(uv_signal_start(&app->signals[index], on_signal, numbers[index]) == 0);
    }
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

/* What the system may refuse before there is anything that could be told or closed. */
static bool open_loop(struct app *app)
{
    int failure = uv_loop_init(&app->loop);
    if (failure == 0 && (failure = start_signals(app)) != 0)
        uv_loop_close(&app->loop);
    if (failure != 0)
        rcpt_log_error("app",
                       "the event loop cannot be made: %s; HINT: look at the limits of open files "
                       "and of memory",
                       uv_strerror(failure));
    return failure == 0;
}

static void on_control_ready(void *context, struct rcpt_pg *pg)
{
    struct app *app = context;
    (void)pg;
    app->control_up = true;
    memset(&app->rollup, 0, sizeof(app->rollup)); /* another server may count from elsewhere */
    rcpt_log_info("postgres", "control is connected");
    positions_tick(app);
    folds_look_for_left(app);
    app_update_readiness(app);
}

static void on_control_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct app *app = context;
    (void)pg;
    app->control_up = false;
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_CONNECTION_FAILURES, RCPT_LABELS("control"),
                     1);
    app_set_reason(app->database_reason, error);
    rcpt_log_warn("postgres", "control is not connected: %s", app->database_reason);
    app_update_readiness(app);
}

struct rcpt_pg_settings app_pg_settings(struct app *app, const char *name)
{
    const struct rcpt_config *config = app->config;
    return (struct rcpt_pg_settings){
        .loop = &app->loop,
        .name = name,
        .instance = app->instance,
        .dsn = config->postgres.dsn,
        .schema = config->postgres.schema,
        .synchronous_commit = false,
        .lock_timeout_ms = (int)config->postgres.lock_timeout_ms,
        .statement_timeout_ms = (int)config->postgres.statement_timeout_ms,
        .connect_timeout_ms = (int)config->postgres.connect_timeout_ms,
        .retry_min_ms = (int)config->postgres.retry_min_ms,
        .retry_max_ms = (int)config->postgres.retry_max_ms,
    };
}

static void start_control(struct app *app)
{
    struct rcpt_pg_settings settings = app_pg_settings(app, "control");
    settings.context = app;
    settings.on_ready = on_control_ready;
    settings.on_down = on_control_down;
    settings.statements = rcpt_control_statements(&settings.statement_count);
    app->encoder = rcpt_pg_encoder_new();
    app->control = rcpt_pg_new(&settings);
    rcpt_pg_start(app->control);
}

void app_engine_settings(const struct app *app, struct rcpt_engine_settings *settings)
{
    const struct rcpt_config *config = app->config;
    *settings = (struct rcpt_engine_settings){
        .lanes = config->lanes,
        .connections = config->postgres.connections,
        .depth = config->postgres.pipeline_depth,
        .batch_max_events =
            (uint32_t)config->batch.max_events * (app->catching_up ? config->batch.catch_up : 1),
        .batch_max_bytes = (uint32_t)config->batch.max_bytes,
        .budget_bytes = config->memory.budget_bytes,
        .linger_ms = config->batch.linger_ms,
        .idle_advance_ms = config->progress.idle_interval_ms,
        .verify_interval_ms = config->progress.verify_interval_ms,
        .rewind_timeout_ms = config->progress.rewind_timeout_ms,
        .retry_min_ms = config->postgres.retry_min_ms,
        .retry_max_ms = config->postgres.retry_max_ms,
        .wake_limit = (uint32_t)config->parked.wake_limit,
        .seed = (uint64_t)getpid() ^ uv_hrtime(),
    };
}

static void start_engine(struct app *app)
{
    const struct rcpt_config *config = app->config;
    struct rcpt_engine_settings settings;
    app_engine_settings(app, &settings);
    struct rcpt_engine_ports ports = {
        .context = app,
        .submit = lanes_port_submit,
        .read_positions = lanes_port_read_positions,
        .rewind = positions_port_rewind,
        .reassign = positions_port_reassign,
        .refresh = positions_port_refresh,
        .halt = port_halt,
    };
    app->engine = rcpt_engine_new(&settings, config->ladder, &ports);
    app->decoder = rcpt_decoder_new(config->ladder, config->lanes);
}

/* ---- the intake, where it runs in this process ---- */

static void on_intake_ready(void *context, bool ready, const char *reason)
{
    struct app *app = context;
    (void)reason; /* logged by the intake */
    app->intake_ready = ready;
    app_update_readiness(app);
}

static void on_intake_closed(void *context)
{
    struct app *app = context;
    app->intake = NULL;
    app_check_drain(app);
}

static bool start_intake(struct app *app, struct rcpt_error *error)
{
    struct rcpt_intake_settings settings = {
        .loop = &app->loop,
        .config = app->config,
        .instance = app->instance,
        .tracer = app->tracer,
        .context = app,
        .on_ready = on_intake_ready,
        .on_closed = on_intake_closed,
    };
    app->intake_wanted = app->config->intake.enabled;
    if (!app->intake_wanted)
        return true;
    app->intake = rcpt_intake_start(&settings, error);
    return app->intake != NULL;
}

/* ---- the service manager ---- */

static bool is_alive(void *context)
{
    const struct app *app = context;
    return measure_turns(app) && measure_works(app);
}

static void start_supervisor(struct app *app)
{
    const struct supervisor_settings settings = {
        .loop = &app->loop, .context = app, .describe = status_describe, .is_alive = is_alive};
    supervisor_start(&app->supervisor, &settings);
}

static void start(struct app *app)
{
    char host[48] = "localhost";
    gethostname(host, sizeof(host) - 1);
    snprintf(app->instance, sizeof(app->instance), "%s-%d", host, (int)getpid());
    uv_timer_init(&app->loop, &app->deadline);
    app->deadline.data = app;
    measure_start(app);
    start_engine(app);
    positions_start(app);
    start_supervisor(app);
    trace_start(app);
    start_control(app);
    lanes_start(app);
    folds_start(app);
    janitor_start(app);
    endpoints_start(app);
    control_start(app);
    struct rcpt_error error;
    if (!consume_start(app, &error) || !start_intake(app, &error) || !actions_start(app, &error))
        app_fail(app, &error);
}

static void finish(struct app *app)
{
    RCPT_ASSERT(app->open == 0);
    int busy = uv_loop_close(&app->loop);
    if (busy != 0)
        rcpt_log_warn("app", "the event loop still has open handles: %s", uv_strerror(busy));
    rcpt_assignment_free(app->assignment);
    rcpt_engine_free(app->engine);
    rcpt_decoder_free(app->decoder);
    lanes_fini(app);
    measure_fini(app);
    rcpt_pg_encoder_free(app->encoder);
}

int rcpt_app_run(struct rcpt_config *config, const char *config_path)
{
    struct app *app = rcpt_calloc(1, sizeof(*app));
    app->config = config;
    app->config_path = config_path;
    /* Records are allocated by librdkafka's threads and freed by ours, of all sizes: few arenas and
     * a fixed threshold for large blocks keep what is resident near what is used. */
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
    rcpt_log_open();
    rcpt_config_apply_log(config);
    rcpt_config_warn_of_secret(config);
    rcpt_log_info("app", "starting: group %s, %u lanes on %u connections, librdkafka %s",
                  config->kafka.group, config->lanes, config->postgres.connections,
                  rcpt_kafka_version());
    if (!open_loop(app)) {
        free(app);
        return EX_OSERR;
    }
    start(app);
    uv_run(&app->loop, UV_RUN_DEFAULT);
    finish(app);
    int exit_code = app->exit_code;
    rcpt_log_info("app", "stopped, exit code %d", exit_code);
    if (rcpt_kafka_has_threads())
        _exit(exit_code);
    free(app);
    return exit_code;
}

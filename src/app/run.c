/* The process: makes the modules and wires them together, handles signals, decides whether the
 * process is ready, and ends it in order. Its life is enum host_phase (host/context.h). Modules
 * reach this file by the callbacks of their context only; commands/run.c calls rcpt_app_run(). */
#include "receiptd/app/run.h"
#include "receiptd/base/error.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "readers.h"
#include "receiptd/actions/actions.h"
#include "receiptd/folds/folds.h"
#include "receiptd/host/places.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/messages/messages.h"
#include "receiptd/operate/control.h"
#include "receiptd/operate/endpoints.h"
#include "receiptd/operate/operate.h"
#include "webhooks.h"

#define LEAVE_MS     5000 /* at most, for Kafka's part of the end */
#define LOG_FLUSH_MS 1000

struct app { /* what the process owns */
    struct host_context context;
    uv_loop_t loop;
    uv_timer_t tick, deadline;
    uv_signal_t signals[3];
    struct receipts *receipts;
    struct folds *folds;
    struct actions *actions;
    struct messages *messages; /* NULL: no topic announces any */
    struct webhooks webhooks;
    struct readers readers;
    struct measure *measure;
    struct status *status;
    struct endpoints *endpoints;
    struct reload *reload;
    struct control *control;
    struct supervisor supervisor;
    struct rcpt_outage database;
    struct host_ticker log_flush;
    int64_t log_flush_at_ms;
    char logged_state[HOST_REASON_BYTES]; /* of the last line about readiness */
    int exit_code;
};

/* ---- readiness ---- */

/* The most important reason comes first: readiness and the status line show that one. */
static unsigned run_reasons(const void *owner, const char *reasons[HOST_MOST_REASONS])
{
    const struct app *app = owner;
    unsigned count = 0;
    if (host_is_stopping(&app->context))
        reasons[count++] = "stopping";
    if (app->context.halted)
        reasons[count++] = app->context.halt_reason;
    count += receipts_reasons(app->receipts, reasons + count);
    if (host_places_reason(app->context.places) != NULL)
        reasons[count++] = host_places_reason(app->context.places);
    if (folds_reason(app->folds) != NULL)
        reasons[count++] = folds_reason(app->folds);
    if (actions_reason(app->actions) != NULL)
        reasons[count++] = actions_reason(app->actions);
    if (messages_reason(app->messages) != NULL)
        reasons[count++] = messages_reason(app->messages);
    if (webhooks_reason(&app->webhooks) != NULL)
        reasons[count++] = webhooks_reason(&app->webhooks);
    if (receipts_hold(app->receipts) != RECEIPTS_HOLD_NONE)
        reasons[count++] = "an operator has asked to take in nothing more (receiptd ctl resume)";
    RCPT_ASSERT(count <= HOST_MOST_REASONS);
    return count;
}

/* A line is logged only where something changed, so modules may call it as often as they like. */
static void run_update_readiness(void *owner)
{
    struct app *app = owner;
    struct host_context *context = &app->context;
    const char *reasons[HOST_MOST_REASONS];
    const char *reason = run_reasons(app, reasons) > 0 ? reasons[0] : NULL;
    char state[HOST_REASON_BYTES];
    host_name_state(state, reason != NULL ? reason : "");
    if (context->ready == (reason == NULL) && strcmp(app->logged_state, state) == 0)
        return;
    context->ready = reason == NULL;
    context->was_ready |= context->ready;
    memcpy(app->logged_state, state, sizeof(state));
    if (context->ready)
        rcpt_log_info("app", "ready");
    else
        rcpt_log_info("app", "not ready: %s", state);
    supervisor_set_ready(&app->supervisor, context->ready);
}

/* ---- the end: stop taking in, settle what is in flight, leave the group, close ---- */

static void on_closed(void *context)
{
    struct app *app = context;
    host_closed(&app->context);
}

static void on_tracer_closed(void *context)
{
    struct app *app = context;
    app->context.tracer = NULL;
    host_closed(&app->context);
}

/* Spans in flight are sent before the tracer closes. */
static void close_tracer(struct app *app)
{
    if (app->context.tracer == NULL)
        return;
    host_open(&app->context);
    rcpt_tracer_close(app->context.tracer, on_tracer_closed, app);
}

/* A second signal while the handles close ends the process at once. */
static void close_signals(struct app *app)
{
    supervisor_signals_hold();
    for (size_t index = 0; index < RCPT_COUNT_OF(app->signals); index++)
        host_close_handle(&app->context, (uv_handle_t *)&app->signals[index]);
    supervisor_signals_leave(app->exit_code);
}

/* All closes are asynchronous and begin at once; the loop ends behind the last of them. Metrics and
 * status answer until here, so that an operator can watch the drain. */
static void close_rest(struct app *app)
{
    status_log_counts(app->status);
    rcpt_log_flush();
    host_open(&app->context);
    supervisor_close(&app->supervisor, on_closed);
    close_tracer(app);
    endpoints_close(app->endpoints);
    control_close(app->control);
    status_close(app->status);
    host_close_handle(&app->context, (uv_handle_t *)&app->tick);
    host_close_handle(&app->context, (uv_handle_t *)&app->deadline);
    close_signals(app);
    receipts_close(app->receipts);
    folds_close(app->folds);
    messages_close(app->messages);
}

/* Time left of shutdown.deadline, for leaving the group; at least 1, since 0 would mean no limit.
 */
static int64_t patience_ms(const struct app *app)
{
    uint64_t due = uv_timer_get_due_in(&app->deadline);
    return due == 0 ? 1 : due < LEAVE_MS ? (int64_t)due : LEAVE_MS;
}

/* Each module calls this when it has settled something; the process goes on when all have. The
 * consumer leaves its group last, so that the next owner finds the final positions. */
static void run_check_drain(void *owner)
{
    struct app *app = owner;
    if (app->context.phase != HOST_STOPPING || app->webhooks.intake != NULL ||
        app->readers.serve != NULL || !receipts_are_settled(app->receipts) ||
        reload_is_under_way(app->reload) || !folds_are_settled(app->folds) ||
        !actions_are_settled(app->actions) || !messages_are_settled(app->messages) ||
        !status_is_settled(app->status))
        return;
    if (receipts_leave(app->receipts, patience_ms(app)))
        return; /* it comes back here */
    host_enter(&app->context, HOST_CLOSING, "everything has settled");
    close_rest(app);
}

/* Transactions that are not settled were acknowledged nowhere, and their positions have not moved:
 * the next owner replays them. */
static void on_deadline(uv_timer_t *timer)
{
    struct app *app = timer->data;
    rcpt_log_warn(
        "app",
        "the drain took longer than shutdown.deadline; transactions in flight are abandoned");
    status_log_counts(app->status);
    _exit(app->exit_code);
}

/* Modules stop taking in, in the order of the data: intake, receipts, what subscribes to them. */
static void begin_stop(struct app *app, const char *why)
{
    if (host_is_stopping(&app->context))
        return;
    host_enter(&app->context, HOST_STOPPING, why);
    rcpt_log_info("app", "stopping: %s", why);
    supervisor_stopping(&app->supervisor);
    run_update_readiness(app);
    uv_timer_start(&app->deadline, on_deadline, (uint64_t)app->context.config->shutdown.deadline_ms,
                   0);
    webhooks_drain(&app->webhooks);
    readers_drain(&app->readers);
    status_leave(app->status);
    messages_stop(app->messages);
    receipts_stop(app->receipts);
    folds_stop(app->folds);
    actions_stop(app->actions);
    run_check_drain(app);
}

/* A module cannot go on: the process ends in order. The first failure decides the exit code. */
static void run_fail(void *owner, const struct rcpt_error *error)
{
    struct app *app = owner;
    rcpt_log_failure(RCPT_LOG_ERROR, "app", error, "fatal");
    if (app->exit_code == 0)
        app->exit_code = error->exit_code != 0 ? error->exit_code : EX_SOFTWARE;
    begin_stop(app, "a fatal error");
}

/* SIGHUP reloads; the first SIGTERM or SIGINT stops; a second one ends the process at once. */
static void on_signal(uv_signal_t *handle, int number)
{
    struct app *app = handle->data;
    if (number == SIGHUP) {
        webhooks_reload(&app->webhooks);
        rcpt_log_info("app", "SIGHUP: reading the configuration again");
        if (!host_is_stopping(&app->context) && !reload_begin(app->reload, NULL, NULL))
            reload_after_this(app->reload);
        return;
    }
    if (host_is_stopping(&app->context)) {
        rcpt_log_warn(
            "app", "second signal: leaving at once; the next owner replays transactions in flight");
        _exit(app->exit_code != 0 ? app->exit_code : EX_TEMPFAIL);
    }
    begin_stop(app, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

/* 0, or libuv's error: the first signal takes a pair of descriptors. */
static int start_signals(struct app *app)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    for (size_t index = 0; index < RCPT_COUNT_OF(numbers); index++) {
        int failure = uv_signal_init(&app->loop, &app->signals[index]);
        if (failure != 0)
            return failure;
        app->signals[index].data = app;
        RCPT_ASSERT(uv_signal_start(&app->signals[index], on_signal, numbers[index]) == 0);
    }
    signal(SIGPIPE, SIG_IGN);
    return 0;
}

/* The system may refuse the loop or the signals' descriptors. Then nothing is open yet. */
static bool open_loop(struct app *app)
{
    int failure = uv_loop_init(&app->loop);
    if (failure == 0 && (failure = start_signals(app)) != 0)
        uv_loop_close(&app->loop);
    if (failure != 0)
        rcpt_log_error("app",
                       "the event loop cannot be made: %s; HINT: check the limits of open files "
                       "and of memory",
                       uv_strerror(failure));
    return failure == 0;
}

/* A reload has changed the configuration. */
static void apply_intake(void *context)
{
    struct app *app = context;
    webhooks_apply_config(&app->webhooks);
    readers_apply_config(&app->readers);
}

/* For the watchdog: the loop turns and the work goes on. */
static bool is_alive(void *context)
{
    const struct app *app = context;
    return measure_turns(app->measure) && measure_works(app->measure);
}

/* The line that `systemctl status` shows. */
static void describe(void *context, char text[SUPERVISOR_STATUS_BYTES])
{
    const struct app *app = context;
    status_describe(app->status, text);
}

static void start_supervisor(struct app *app)
{
    const struct supervisor_settings settings = {
        .loop = &app->loop, .context = app, .describe = describe, .is_alive = is_alive};
    supervisor_start(&app->supervisor, &settings);
}

/* Before the receipts start: their batches make spans. NULL without tracing.endpoint. */
static void start_tracer(struct app *app)
{
    const struct rcpt_config *config = app->context.config;
    const struct rcpt_tracer_settings settings = {
        .loop = &app->loop,
        .endpoint = config->tracing.endpoint,
        .token = config->tracing.token,
        .instance = app->context.instance,
        .queue_bytes = config->tracing.queue_bytes,
        .timeout_ms = config->tracing.timeout_ms,
    };
    if (config->tracing.endpoint != NULL)
        app->context.tracer = rcpt_tracer_new(&settings);
}

/* Lines that a full pipe kept back are tried again each second. */
static void flush_log(void *context)
{
    struct app *app = context;
    if (host_now(&app->context) < app->log_flush_at_ms)
        return;
    app->log_flush_at_ms = host_now(&app->context) + LOG_FLUSH_MS;
    rcpt_log_flush();
}

/* Tickers run in the order of registration, each HOST_TICK_MS. */
static void on_tick(uv_timer_t *timer)
{
    struct app *app = timer->data;
    for (struct host_ticker *ticker = app->context.tickers; ticker != NULL; ticker = ticker->next)
        ticker->tick(ticker->context);
    run_update_readiness(app); /* reasons come and go with time, too */
}

static void start_timers(struct app *app)
{
    uv_timer_init(&app->loop, &app->deadline);
    uv_timer_init(&app->loop, &app->tick);
    app->deadline.data = app->tick.data = app;
    uv_timer_start(&app->tick, on_tick, HOST_TICK_MS, HOST_TICK_MS);
    app->log_flush = (struct host_ticker){.tick = flush_log, .context = app};
    host_add_ticker(&app->context, &app->log_flush);
}

/* The context outlives all modules; they keep pointers to it. */
static void make_context(struct app *app, struct rcpt_config *config, const char *config_path)
{
    struct host_context *context = &app->context;
    host_name_instance(context->instance);
    context->loop = &app->loop;
    context->config = config;
    context->config_path = config_path;
    context->metrics = rcpt_metrics_new(rcpt_metrics_table(), RCPT_METRIC__COUNT);
    context->started_ms = context->loaded_ms = host_wall_ms();
    context->database = &app->database;
    context->host = (struct host_hooks){.owner = app,
                                        .fail = run_fail,
                                        .update_readiness = run_update_readiness,
                                        .check_drain = run_check_drain,
                                        .reasons = run_reasons};
}

/* Endpoints, reload and control see all other modules, so they start last. */
static void start_operation(struct app *app)
{
    app->endpoints = endpoints_new(&(struct endpoints_settings){.context = &app->context,
                                                                .measure = app->measure,
                                                                .status = app->status,
                                                                .begin_runs = actions_on_request,
                                                                .runs = app->actions});
    app->reload = reload_new(&(struct reload_settings){.context = &app->context,
                                                       .receipts = app->receipts,
                                                       .folds = app->folds,
                                                       .actions = app->actions,
                                                       .messages = app->messages,
                                                       .endpoints = app->endpoints,
                                                       .status = app->status,
                                                       .supervisor = &app->supervisor,
                                                       .apply_intake = apply_intake,
                                                       .intake_context = app});
    app->control = control_new(&(struct control_settings){.context = &app->context,
                                                          .receipts = app->receipts,
                                                          .status = app->status,
                                                          .reload = app->reload});
}

/* Modules are made first and started afterwards: they know each other by pointers. */
static void start(struct app *app)
{
    struct host_context *context = &app->context;
    struct rcpt_error error;
    app->receipts = receipts_new(context);
    app->measure = measure_new(context, app->receipts);
    app->folds = folds_new(context, app->receipts);
    app->actions = actions_new(context, app->receipts);
    app->messages = messages_new(context, app->receipts);
    app->status = status_new(context, app->receipts, app->measure, app->folds, app->actions);
    start_timers(app);
    start_supervisor(app);
    start_tracer(app);
    receipts_start(app->receipts);
    folds_start(app->folds);
    messages_start(app->messages);
    start_operation(app);
    /* Consumption begins last: by then every module that a first receipt may reach exists. */
    if (!receipts_consume(app->receipts, &error) ||
        !webhooks_start(&app->webhooks, context, app->measure, &error) ||
        !readers_start(&app->readers, context, app->measure, &error) ||
        !actions_start(app->actions, &error))
        host_fail(context, &error);
    else if (!host_is_stopping(context))
        host_enter(&app->context, HOST_RUNNING, "all modules have started");
}

/* Modules are freed in the reverse order of their creation. */
static void finish(struct app *app)
{
    RCPT_ASSERT(app->context.open == 0);
    host_enter(&app->context, HOST_CLOSED, "all handles are closed");
    /* An open handle here is a bug; the process ends anyway. */
    int busy = uv_loop_close(&app->loop);
    if (busy != 0)
        rcpt_log_warn("app", "the event loop still has open handles: %s", uv_strerror(busy));
    control_free(app->control);
    reload_free(app->reload);
    endpoints_free(app->endpoints);
    status_free(app->status);
    measure_free(app->measure);
    messages_free(app->messages);
    actions_free(app->actions);
    folds_free(app->folds);
    receipts_free(app->receipts);
    rcpt_metrics_free(app->context.metrics);
}

/* Limits of memory come before anything allocates, the log before its first line. */
int rcpt_app_run(struct rcpt_config *config, const char *config_path)
{
    struct app *app = rcpt_calloc(1, sizeof(*app));
    host_limit_memory();
    rcpt_log_open();
    rcpt_config_apply_log(config);
    rcpt_config_warn(config);
    rcpt_log_info("app", "starting: group %s, %u lanes on %u connections, librdkafka %s",
                  config->kafka.group, config->lanes, config->postgres.connections,
                  rcpt_kafka_version());
    if (!open_loop(app)) {
        free(app);
        return EX_OSERR;
    }
    make_context(app, config, config_path);
    start(app);
    uv_run(&app->loop, UV_RUN_DEFAULT);
    finish(app);
    int exit_code = app->exit_code;
    rcpt_log_info("app", "stopped, exit code %d", exit_code);
    /* librdkafka's threads may outlive its consumers; exit() would free what they use. */
    if (rcpt_kafka_has_threads())
        _exit(exit_code);
    free(app);
    return exit_code;
}

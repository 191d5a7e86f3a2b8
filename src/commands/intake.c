/* `receiptd intake`: the process of the intake alone: loop, signals, endpoints, supervisor.
 * Starting → serving → stopping (no new connections, requests in flight are answered) → closing
 * (the tracer first, then the handles). The intake itself is in src/intake. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "process.h"
#include "receiptd/host/context.h"
#include "receiptd/intake/intake.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/operate/endpoints.h"

struct intake_process {
    struct rcpt_config *config;
    const char *config_path;
    struct command_process frame;
    struct rcpt_intake *intake; /* NULL: not started, or closed */
    struct intake_endpoints endpoints;
    struct rcpt_tracer *tracer;         /* NULL: nothing is traced, or closed */
    uint64_t status_records, status_ns; /* acknowledged by the last status line, for its rate */
};

/* The intake calls this when its readiness changes. Service manager and pages show the same
 * state. */
static void on_ready(void *context, bool ready, const char *reason)
{
    struct intake_process *process = context;
    pages_server_set_ready(&process->endpoints.server, ready, reason);
    supervisor_set_ready(&process->frame.supervisor, ready);
}

/* The rate is counted since the last line for the service manager. */
static void describe(void *context, char text[SUPERVISOR_STATUS_BYTES])
{
    struct intake_process *process = context;
    struct rcpt_intake_totals totals = {0};
    uint64_t now = uv_hrtime();
    if (process->intake != NULL)
        rcpt_intake_totals(process->intake, &totals);
    double seconds = process->status_ns > 0 ? (double)(now - process->status_ns) / 1e9 : 0;
    double rate = seconds > 0 ? (double)(totals.records - process->status_records) / seconds : 0;
    process->status_records = totals.records;
    process->status_ns = now;
    if (process->frame.stopping || process->intake == NULL)
        snprintf(text, SUPERVISOR_STATUS_BYTES, process->frame.stopping ? "stopping" : "starting");
    else if (!process->endpoints.server.ready)
        snprintf(text, SUPERVISOR_STATUS_BYTES, "not ready: %s", process->endpoints.server.reason);
    else
        snprintf(text, SUPERVISOR_STATUS_BYTES, "%.0f records/s to Kafka; %zu requests wait", rate,
                 totals.waiting_requests);
}

/* All handles of the loop; afterwards uv_run() returns. */
static void close_handles(struct intake_process *process)
{
    pages_server_close(&process->endpoints.server);
    command_process_close(&process->frame);
}

/* The endpoints read the tracer's figures, so they lose their pointer first. */
static void on_tracer_closed(void *context)
{
    struct intake_process *process = context;
    process->endpoints.tracer = process->tracer = NULL;
    close_handles(process);
}

/* The intake is closed. Spans that are not sent yet are sent before the handles close. */
static void close_rest(struct intake_process *process)
{
    process->intake = process->endpoints.intake = NULL;
    process->frame.deaf = true; /* all that is left are spans on their way */
    if (process->tracer != NULL)
        rcpt_tracer_close(process->tracer, on_tracer_closed, process);
    else
        close_handles(process);
}

static void on_closed(void *context)
{
    close_rest(context);
}

/* Accounts and connection strings go into effect; requests in hand go on. */
static void apply(void *context, struct rcpt_config *fresh, FILE *out)
{
    struct intake_process *process = context;
    struct rcpt_config_changes changes;
    if (process->intake == NULL)
        return;
    rcpt_config_take_over(process->config, fresh, &changes);
    rcpt_config_apply_log(process->config);
    rcpt_intake_apply_config(process->intake);
    reload_print_changes(&changes, out);
}

/* Certificates are read again even where the configuration is refused. */
static void on_hangup(void *context)
{
    struct intake_process *process = context;
    rcpt_intake_reload(process->intake);
    pages_server_reload(&process->endpoints.server);
    if (!process->frame.stopping)
        command_process_reload(&process->frame);
}

static void on_stop(void *context)
{
    const struct intake_process *process = context;
    rcpt_intake_drain(process->intake);
}

/* NULL without tracing.endpoint: nothing is traced then. */
static struct rcpt_tracer *start_tracer(struct intake_process *process)
{
    const struct rcpt_config *config = process->config;
    const struct rcpt_tracer_settings settings = {
        .loop = &process->frame.loop,
        .endpoint = config->tracing.endpoint,
        .token = config->tracing.token,
        .instance = process->frame.instance,
        .queue_bytes = config->tracing.queue_bytes,
        .timeout_ms = config->tracing.timeout_ms,
    };
    return config->tracing.endpoint != NULL ? rcpt_tracer_new(&settings) : NULL;
}

/* A failure of the intake still goes through the orderly end: handles are open. */
static void start(struct intake_process *process)
{
    /* A request gets 2xx only after Kafka's acknowledgement. */
    const struct command_process_settings framed = {
        .context = process,
        .config = process->config,
        .describe = describe,
        .on_hangup = on_hangup,
        .on_stop = on_stop,
        .abandoned = "requests that wait are abandoned and will be sent again",
        .config_path = process->config_path,
        .read = reload_read,
        .apply = apply};
    command_process_start(&process->frame, &framed);
    intake_endpoints_start(&process->endpoints, &process->frame.loop, process->config);
    process->endpoints.tracer = process->tracer = start_tracer(process);
    struct rcpt_error error = {0};
    struct rcpt_intake_settings settings = {
        .loop = &process->frame.loop,
        .config = process->config,
        .instance = process->frame.instance,
        .tracer = process->tracer,
        .context = process,
        .on_ready = on_ready,
        .on_closed = on_closed,
    };
    process->intake = process->endpoints.intake = rcpt_intake_start(&settings, &error);
    if (process->intake != NULL)
        return;
    process->frame.exit_code = command_fail(&error);
    close_rest(process);
}

/* librdkafka's threads may still be ending; exit() would free what they use. */
static int run(struct rcpt_config *config, const char *config_path)
{
    struct intake_process *process = rcpt_calloc(1, sizeof(*process));
    process->config = config;
    process->config_path = config_path;
    start(process);
    int exit_code = command_process_loop(&process->frame, &process->endpoints.server);
    if (rcpt_kafka_has_threads())
        _exit(exit_code);
    free(process);
    return exit_code;
}

int command_intake(const struct command_call *call)
{
    if (command_option(call, "try") != NULL)
        return command_intake_try(call);
    if (command_option(call, "letters") != NULL)
        return command_intake_letters(call);
    return command_process_main(call, run);
}

/* The frame of the processes `receiptd intake` and `receiptd serve`: from the first signal to drain
 * until the last handle is closed. Called by intake.c and serve.c. */
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "receiptd/base/error.h"
#include "receiptd/base/log.h"
#include "receiptd/base/text.h"

/* A configuration that a worker reads. The worker owns `fresh` and `error` until on_read(). */
struct command_reload {
    uv_work_t work;
    struct command_process *process;
    struct reload_dsns before;
    struct rcpt_config *fresh;
    struct rcpt_error error;
};

/* Clients repeat the requests that are abandoned. */
static void on_deadline(uv_timer_t *timer)
{
    const struct command_process *process = timer->data;
    rcpt_log_warn("commands", "the drain took longer than shutdown.deadline; %s",
                  process->settings.abandoned);
    _exit(process->exit_code);
}

/* The first SIGTERM or SIGINT drains, the second ends at once. */
static void stop(struct command_process *process, int number)
{
    if (process->stopping) {
        rcpt_log_warn("commands", "second signal: leaving at once");
        _exit(EX_TEMPFAIL);
    }
    process->stopping = true;
    rcpt_log_info("commands", "stopping: %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
    supervisor_stopping(&process->supervisor);
    uv_timer_start(&process->deadline, on_deadline,
                   (uint64_t)process->settings.config->shutdown.deadline_ms, 0);
    process->settings.on_stop(process->settings.context);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct command_process *process = handle->data;
    if (process->deaf)
        return;
    if (number == SIGHUP)
        process->settings.on_hangup(process->settings.context);
    else
        stop(process, number);
}

/* ---- reloads ---- */

/* Runs in the worker, so it touches the reload and the settings only. */
static void on_read_work(uv_work_t *work)
{
    struct command_reload *reload = work->data;
    const struct command_process_settings *settings = &reload->process->settings;
    reload->fresh = settings->read(settings->config_path, &reload->before, &reload->error);
}

/* A configuration with a fault changes nothing. */
static void take_over(struct command_process *process, struct command_reload *reload)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    if (reload->fresh != NULL)
        process->settings.apply(process->settings.context, reload->fresh, out);
    else
        fprintf(out, "refused: %s\n%s%s", reload->error.text,
                reload->error.hint[0] != '\0' ? "HINT: " : "", reload->error.hint);
    RCPT_ASSERT(fclose(out) == 0);
    reload_log_result(reload->fresh != NULL, text);
    free(text);
}

static void on_read(uv_work_t *work, int status)
{
    struct command_reload *reload = work->data;
    struct command_process *process = reload->process;
    process->reload = NULL;
    if (!process->stopping) {
        if (status == 0)
            take_over(process, reload);
        supervisor_reload_ends(&process->supervisor);
        if (process->reload_again)
            command_process_reload(process);
    }
    rcpt_config_free(reload->fresh);
    reload_free_dsns(&reload->before);
    free(reload);
}

/* The loop does not end before the worker has. */
void command_process_reload(struct command_process *process)
{
    process->reload_again = process->reload != NULL;
    if (process->reload_again)
        return;
    struct command_reload *reload = rcpt_calloc(1, sizeof(*reload));
    reload->process = process;
    reload->work.data = reload;
    reload_note_dsns(&reload->before, process->settings.config);
    process->reload = reload;
    supervisor_reload_begins(&process->supervisor);
    RCPT_ASSERT(uv_queue_work(&process->loop, &reload->work, on_read_work, on_read) == 0);
}

/* ---- life ---- */

static void start_signals(struct command_process *process)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < RCPT_COUNT_OF(numbers); i++) {
        uv_signal_init(&process->loop, &process->signals[i]);
        process->signals[i].data = process;
        uv_signal_start(&process->signals[i], on_signal, numbers[i]);
    }
}

void command_process_start(struct command_process *process,
                           const struct command_process_settings *settings)
{
    process->settings = *settings;
    host_name_instance(process->instance);
    uv_loop_init(&process->loop);
    uv_timer_init(&process->loop, &process->deadline);
    process->deadline.data = process;
    start_signals(process);
    const struct supervisor_settings supervised = {
        .loop = &process->loop, .context = settings->context, .describe = settings->describe};
    supervisor_start(&process->supervisor, &supervised);
}

/* The supervisor's last callback: the process has nothing left to wait for. */
static void on_nothing(void *context)
{
    (void)context;
}

void command_process_close(struct command_process *process)
{
    supervisor_signals_hold();
    for (size_t i = 0; i < RCPT_COUNT_OF(process->signals); i++)
        uv_close((uv_handle_t *)&process->signals[i], NULL);
    supervisor_signals_leave(process->exit_code);
    uv_close((uv_handle_t *)&process->deadline, NULL);
    supervisor_close(&process->supervisor, on_nothing);
}

/* The order matters: memory is bounded before anything allocates, the log is open before its first
 * line, and warnings come before the first request. */
int command_process_main(const struct command_call *call,
                         int (*run)(struct rcpt_config *config, const char *config_path))
{
    struct rcpt_error error = {0};
    struct rcpt_config *config = rcpt_config_load(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    host_limit_memory();
    rcpt_log_open();
    rcpt_config_apply_log(config);
    rcpt_config_warn(config);
    int exit_code = run(config, call->config_path);
    rcpt_config_free(config);
    return exit_code;
}

int command_process_loop(struct command_process *process, struct pages_server *server)
{
    uv_run(&process->loop, UV_RUN_DEFAULT);
    RCPT_ASSERT(uv_loop_close(&process->loop) == 0);
    pages_server_fini(server);
    rcpt_log_info("commands", "stopped, exit code %d", process->exit_code);
    return process->exit_code;
}

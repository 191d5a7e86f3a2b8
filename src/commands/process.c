/* The frame of the processes `receiptd intake` and `receiptd serve`: from the first signal to drain
 * until the last handle is closed. Called by intake.c and serve.c. */
#include "process.h"

#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"

/* Clients send or ask again what is abandoned. */
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

static void start_signals(struct command_process *process)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        uv_signal_init(&process->loop, &process->signals[i]);
        process->signals[i].data = process;
        uv_signal_start(&process->signals[i], on_signal, numbers[i]);
    }
}

void command_process_start(struct command_process *process,
                           const struct command_process_settings *settings)
{
    process->settings = *settings;
    app_name_instance(process->instance);
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
    for (size_t i = 0; i < sizeof(process->signals) / sizeof(process->signals[0]); i++)
        uv_close((uv_handle_t *)&process->signals[i], NULL);
    supervisor_signals_leave(process->exit_code);
    uv_close((uv_handle_t *)&process->deadline, NULL);
    supervisor_close(&process->supervisor, on_nothing);
}

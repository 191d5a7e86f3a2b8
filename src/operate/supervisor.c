/* Messages to the service manager (sd_notify): readiness, reloads, the end, signs of life. A timer
 * sends due messages. Called by run.c, reload.c and the command intake. */
#include "receiptd/operate/operate.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TICK_MS   1000
#define STATUS_MS 5000
/* Time that is asked for while starting or stopping: a process that hangs is found this late. */
#define EXTENSION_US 15000000

/* Appends to a message; an assignment that does not fit is left out as a whole. */
static void add(char message[1024], const char *assignment)
{
    size_t used = strlen(message);
    if (used + strlen(assignment) + 2 <= 1024)
        snprintf(message + used, 1024 - used, "%s\n", assignment);
}

/* An unchanged line is not sent again. */
static void add_status(struct supervisor *supervisor, char message[1024])
{
    char text[SUPERVISOR_STATUS_BYTES] = "", line[SUPERVISOR_STATUS_BYTES + 16];
    supervisor->settings.describe(supervisor->settings.context, text);
    text[strcspn(text, "\n")] = '\0';
    if (strcmp(text, supervisor->last_status) == 0)
        return;
    memcpy(supervisor->last_status, text, sizeof(text));
    snprintf(line, sizeof(line), "STATUS=%s", text);
    add(message, line);
}

static void add_extension(char message[1024])
{
    char line[48];
    snprintf(line, sizeof(line), "EXTEND_TIMEOUT_USEC=%d", EXTENSION_US);
    add(message, line);
}

/* READY=1 may be lost when the manager's queue is full; without it the start would never end, so
 * the timer sends it again. */
static void send_ready(struct supervisor *supervisor)
{
    supervisor->owes_ready = !rcpt_notify_send(&supervisor->notify, "READY=1");
}

/* At most every STATUS_MS, and at changes of readiness. */
static void send_status(struct supervisor *supervisor)
{
    char message[1024] = "";
    supervisor->status_due_ms = (int64_t)uv_now(supervisor->settings.loop) + STATUS_MS;
    add_status(supervisor, message);
    if (message[0] != '\0' && !rcpt_notify_send(&supervisor->notify, message))
        supervisor->last_status[0] = '\0';
}

static bool is_alive(const struct supervisor *supervisor)
{
    return supervisor->settings.is_alive == NULL ||
           supervisor->settings.is_alive(supervisor->settings.context);
}

/* A process that is stuck sends no sign of life, and the manager restarts it. */
static void on_tick(uv_timer_t *timer)
{
    struct supervisor *supervisor = timer->data;
    char message[1024] = "";
    if (supervisor->owes_ready)
        send_ready(supervisor);
    if (!supervisor->was_ready || supervisor->stopping)
        add_extension(message);
    if (supervisor->watched && is_alive(supervisor))
        add(message, "WATCHDOG=1");
    if (message[0] != '\0')
        (void)rcpt_notify_send(&supervisor->notify, message);
    if ((int64_t)uv_now(supervisor->settings.loop) >= supervisor->status_due_ms)
        send_status(supervisor);
}

/* A third of the manager's time-out: one sign may be late and one be lost. */
static uint64_t tick_ms(int64_t watchdog_ms)
{
    if (watchdog_ms == 0 || watchdog_ms / 3 >= TICK_MS)
        return TICK_MS;
    return watchdog_ms >= 3 ? (uint64_t)watchdog_ms / 3 : 1;
}

/* Without NOTIFY_SOCKET the timer never starts. */
void supervisor_start(struct supervisor *supervisor, const struct supervisor_settings *settings)
{
    *supervisor = (struct supervisor){.settings = *settings};
    uv_timer_init(settings->loop, &supervisor->timer);
    supervisor->timer.data = supervisor;
    if (!rcpt_notify_open(&supervisor->notify))
        return;
    int64_t watchdog_ms = rcpt_notify_watchdog_ms();
    supervisor->watched = watchdog_ms > 0;
    uv_timer_start(&supervisor->timer, on_tick, 0, tick_ms(watchdog_ms));
}

/* The manager learns of the first readiness only; later changes are in the status line. */
void supervisor_set_ready(struct supervisor *supervisor, bool ready)
{
    if (supervisor->notify.fd < 0)
        return;
    if (ready && !supervisor->was_ready && !supervisor->stopping) {
        supervisor->was_ready = true;
        send_ready(supervisor);
    }
    send_status(supervisor);
}

/* Before the first READY=1 a reload is part of the start: the READY=1 at its end would be taken for
 * that of the start. */
void supervisor_reload_begins(struct supervisor *supervisor)
{
    char message[96];
    if (!supervisor->was_ready || supervisor->stopping || supervisor->reloading)
        return;
    supervisor->reloading = true;
    snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, uv_hrtime() / 1000);
    (void)rcpt_notify_send(&supervisor->notify, message);
}

/* READY=1 ends a reload for the manager, whatever its result. */
void supervisor_reload_ends(struct supervisor *supervisor)
{
    if (!supervisor->reloading)
        return;
    supervisor->reloading = false;
    if (!supervisor->stopping)
        send_ready(supervisor);
    send_status(supervisor);
}

/* The timer goes on asking for time until the end. */
void supervisor_stopping(struct supervisor *supervisor)
{
    char message[1024] = "STOPPING=1\n";
    if (supervisor->stopping)
        return;
    supervisor->stopping = true;
    supervisor->owes_ready = false;
    if (supervisor->notify.fd < 0)
        return;
    add_extension(message);
    add_status(supervisor, message);
    (void)rcpt_notify_send(&supervisor->notify, message);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct supervisor *supervisor = handle->data;
    rcpt_notify_close(&supervisor->notify);
    supervisor->on_closed(supervisor->settings.context);
}

void supervisor_close(struct supervisor *supervisor, void (*on_closed)(void *context))
{
    supervisor->on_closed = on_closed;
    uv_close((uv_handle_t *)&supervisor->timer, on_timer_closed);
}

static volatile sig_atomic_t last_exit_code;

/* Only async-signal-safe calls. */
static void leave(int number)
{
    (void)number;
    _exit(last_exit_code);
}

static void mask(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(how, &set, NULL);
}

/* librdkafka's and libuv's threads block all signals. */
void supervisor_signals_hold(void)
{
    mask(SIG_BLOCK);
}

void supervisor_signals_leave(int exit_code)
{
    last_exit_code = exit_code;
    signal(SIGTERM, leave);
    signal(SIGINT, leave);
    mask(SIG_UNBLOCK);
}

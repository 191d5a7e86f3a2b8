/* The service manager's view of a process: started, ready, reloading, stopping, alive.
 *
 * For `run` and `intake` alike. Without a manager that listens nothing is ever sent. Call from the
 * loop's thread only.
 *
 * What an outage of Kafka or PostgreSQL does: while starting, the manager is asked for more time as
 * long as the loop turns; later, the status says what is missing. Only a process that does not do
 * what it could is left to the watchdog.
 */
#ifndef RECEIPTD_OPERATE_SUPERVISOR_H
#define RECEIPTD_OPERATE_SUPERVISOR_H

#include <uv.h>

#include "base/notify.h"

#define SUPERVISOR_STATUS_BYTES 256u

struct supervisor_settings {
    uv_loop_t *loop;
    void *context;
    /* One line about the state of the process. */
    void (*describe)(void *context, char text[SUPERVISOR_STATUS_BYTES]);
    /* Whether there is progress where there could be; asked before each sign of life. NULL: a
     * turning loop is enough. */
    bool (*is_alive)(void *context);
};

struct supervisor {
    struct supervisor_settings settings;
    struct rcpt_notify notify;
    uv_timer_t timer;
    int64_t status_due_ms;
    bool watched;                              /* the manager expects signs of life */
    bool was_ready;                            /* once: from then on the start is over */
    bool reloading, stopping;                  /* what goes on now */
    bool owes_ready;                           /* READY=1 has not got through yet */
    char last_status[SUPERVISOR_STATUS_BYTES]; /* that the manager has */
    void (*on_closed)(void *context);
};

void supervisor_start(struct supervisor *supervisor, const struct supervisor_settings *settings);
/* Call at each change; the first `true` ends the start. */
void supervisor_set_ready(struct supervisor *supervisor, bool ready);
void supervisor_reload_begins(struct supervisor *supervisor);
void supervisor_reload_ends(struct supervisor *supervisor);
/* From now on until the end the manager is asked for more time, as long as the loop turns. */
void supervisor_stopping(struct supervisor *supervisor);
/* on_closed is called with the context of the settings, from the loop. */
void supervisor_close(struct supervisor *supervisor, void (*on_closed)(void *context));

/* The end of SIGTERM's and SIGINT's handlers in a loop, without a moment in which they would kill:
 * they wait from hold on, until leave, from where the first of them ends the process at once, with
 * this status. */
void supervisor_signals_hold(void);
void supervisor_signals_leave(int exit_code);

#endif

/* What the processes of `receiptd intake` and `receiptd serve` share: loop, signals, the deadline
 * of the drain, the service manager's view. `receiptd run` has its own (src/app). Private to this
 * folder; all of it on the loop's thread. */
#ifndef RECEIPTD_COMMANDS_PROCESS_H
#define RECEIPTD_COMMANDS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <uv.h>

#include "command.h"
#include "receiptd/config/config.h"
#include "receiptd/host/context.h"
#include "receiptd/operate/endpoints.h"
#include "receiptd/operate/operate.h"

struct command_process_settings {
    void *context;
    const struct rcpt_config *config; /* borrowed; its deadline of the drain may change */
    void (*describe)(void *context, char text[SUPERVISOR_STATUS_BYTES]);
    void (*on_hangup)(void *context); /* SIGHUP, also while the process stops */
    void (*on_stop)(
        void *context);      /* the first SIGTERM or SIGINT: drain. The second ends at once */
    const char *abandoned;   /* what a drain that takes too long abandons, for the log */
    const char *config_path; /* borrowed for life */
    /* In a worker: reads the file, and tries what is new in it. NULL: refused. */
    struct rcpt_config *(*read)(const char *path, const struct reload_dsns *before,
                                struct rcpt_error *error);
    /* What was read goes into effect; says what has changed. Not called while it stops. */
    void (*apply)(void *context, struct rcpt_config *fresh, FILE *out);
};

struct command_reload;

struct command_process { /* embedded */
    struct command_process_settings settings;
    uv_loop_t loop;
    uv_signal_t signals[3];
    uv_timer_t deadline;
    struct supervisor supervisor;
    char instance[APP_INSTANCE_BYTES];
    struct command_reload *reload; /* NULL: none is under way */
    bool reload_again;             /* a signal came while one was */
    bool stopping, deaf;           /* deaf: nothing is left that a signal could reach */
    int exit_code;
};

/* The command of a process: reads the configuration, bounds memory, opens the log and warns of weak
 * settings; then calls `run`, which borrows the configuration. Returns the exit code. */
int command_process_main(const struct command_call *call,
                         int (*run)(struct rcpt_config *config, const char *config_path));

/* Also ignores SIGPIPE: a client that closes its connection must not end the process. */
void command_process_start(struct command_process *process,
                           const struct command_process_settings *settings);
/* Runs the loop until all handles are closed, the endpoints' server among them. Returns the exit
 * code. */
int command_process_loop(struct command_process *process, struct pages_server *server);
/* A worker reads the configuration, then `apply` is called. One at a time. */
void command_process_reload(struct command_process *process);
/* All its handles; when the caller's are closed, too, uv_run() returns. */
void command_process_close(struct command_process *process);

#endif

/* The frame of the processes `receiptd intake` and `receiptd serve`: start, loop, signals, the
 * deadline of the drain, reports to the service manager. `receiptd run` has its own (src/app). All
 * functions run on the loop's thread. Private to this folder. */
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
    /* The first SIGTERM or SIGINT: drain. The second ends the process at once. */
    void (*on_stop)(void *context);
    const char *abandoned;   /* for the log: what a drain past its deadline abandons */
    const char *config_path; /* borrowed for life */
    /* Called in a worker: reads the file, and tries its new connection strings. NULL: refused. */
    struct rcpt_config *(*read)(const char *path, const struct reload_dsns *before,
                                struct rcpt_error *error);
    /* Puts the fresh configuration into effect and prints what has changed. Not called while the
     * process stops. */
    void (*apply)(void *context, struct rcpt_config *fresh, FILE *out);
};

struct command_reload;

struct command_process { /* embedded */
    struct command_process_settings settings;
    uv_loop_t loop;
    uv_signal_t signals[3];
    uv_timer_t deadline;
    struct supervisor supervisor;
    char instance[HOST_INSTANCE_BYTES];
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
/* A worker reads the configuration, then `apply` is called. One reload runs at a time. */
void command_process_reload(struct command_process *process);
/* Closes all handles of the frame. The loop ends when the caller's are closed as well. */
void command_process_close(struct command_process *process);

#endif

/* The operators' view of a process, and their control of it: metrics (measure*.c), state
 * (status.c), a new configuration while running (reload.c), the service manager (supervisor.c).
 * Call from the loop's thread only, unless a function says otherwise.
 */
#ifndef RECEIPTD_OPERATE_OPERATE_H
#define RECEIPTD_OPERATE_OPERATE_H

#include <stdio.h>
#include <uv.h>

#include "receiptd/actions/actions.h"
#include "receiptd/base/json.h"
#include "receiptd/base/notify.h"
#include "receiptd/folds/folds.h"
#include "receiptd/host/metrics.h"
#include "receiptd/intake/intake.h"
#include "receiptd/messages/messages.h"
#include "receiptd/receipts/receipts.h"
#include "receiptd/serve/serve.h"
#include "receiptd/trace/tracer.h"

struct endpoints;

/* ---- measure.c: the metrics of `receiptd run` ---- */

struct measure;

/* A module that brings its metrics up to date before a page is written. */
struct measure_source {
    void (*collect)(void *context, struct rcpt_metrics *metrics);
    void *context;
    struct measure_source *next;
};

/* Observes the lanes and registers a ticker. Call before other modules register theirs. */
struct measure *measure_new(struct host_context *context, struct receipts *receipts);
void measure_free(struct measure *measure);
/* Borrowed for good. */
void measure_add_source(struct measure *measure, struct measure_source *source);
/* Brings every metric up to date and writes the page; the caller frees it. */
char *measure_page(struct measure *measure, enum rcpt_metrics_format format, size_t *size);
/* measure_turns(): whether the loop turns. measure_works(): whether possible work is done. An
 * outage of Kafka or PostgreSQL is no fault of the process. */
bool measure_turns(const struct measure *measure);
bool measure_works(const struct measure *measure);
/* Age of the oldest receipt that is not applied, over all assigned partitions. */
double measure_lag_seconds(const struct measure *measure);
int64_t measure_last_commit_ms(const struct measure *measure); /* since 1970; 0: never */

/* ---- measure_process.c: metrics that all processes have ---- */

/* The process and its log; started_ms: since 1970. */
void measure_process(struct rcpt_metrics *metrics, int64_t started_ms);
void measure_tracing(struct rcpt_metrics *metrics, const struct rcpt_tracer_stats *stats);
void measure_intake(struct rcpt_metrics *metrics, const struct rcpt_intake *intake);

/* ---- measure_serve.c: metrics of the interface for readers ---- */

void measure_serve(struct rcpt_metrics *metrics, const struct rcpt_serve *serve);

/* ---- supervisor.c: the service manager ---- */

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

/* Ends the loop's handlers of SIGTERM and SIGINT, without a moment in which a signal kills the
 * process. From hold until leave, signals wait. From leave on, the first of them ends the process
 * at once, with this status. */
void supervisor_signals_hold(void);
void supervisor_signals_leave(int exit_code);

/* ---- status.c: the state of `receiptd run` ---- */

struct status;

struct status *status_new(struct host_context *context, struct receipts *receipts,
                          const struct measure *measure, const struct folds *folds,
                          const struct actions *actions);
void status_free(struct status *status);

/* {"ready":…,"reasons":[…]} */
void status_write_readiness(const struct status *status, struct rcpt_json *json);
/* Writes the whole state, without secrets, for people and their tools. */
void status_write(const struct status *status, struct rcpt_json *json);
void status_print(const struct status *status, FILE *out);
void status_write_lanes(const struct status *status, struct rcpt_json *json);
void status_print_lanes(const struct status *status, FILE *out);
/* One line with rate and lag, or the first reason why it is not ready; the rate is that since the
 * last call. The context is a struct status. */
void status_describe(void *context, char text[SUPERVISOR_STATUS_BYTES]);

/* A line of the log with what happened since the last one: now, and every log.stats_interval until
 * the end; apply_config takes over another interval. */
void status_log_counts(struct status *status);
void status_apply_config(struct status *status);
/* Takes this instance out of readers' sight; call when it begins to stop, before the receipts do.
 * It is settled when that is done. */
void status_leave(struct status *status);
bool status_is_settled(const struct status *status);
void status_close(struct status *status); /* its timer; host_closed says when */

/* ---- reload.c: a new configuration while running ---- */

struct reload;

/* Modules that take over changed values. */
struct reload_settings {
    struct host_context *context;
    struct receipts *receipts;
    struct folds *folds;
    struct actions *actions;
    struct messages *messages;
    struct endpoints *endpoints;
    struct status *status;
    struct supervisor *supervisor;
    /* The intake, if there is one. */
    void (*apply_intake)(void *context);
    void *intake_context;
};

/* The present connection strings and brokers: changed ones are tried before they are taken. Own
 * copies. */
struct reload_dsns {
    char *postgres, *intake; /* NULL: not given */
    uint64_t kafka;          /* hash of brokers and properties */
};
void reload_note_dsns(struct reload_dsns *dsns, const struct rcpt_config *config);
void reload_free_dsns(struct reload_dsns *dsns);
/* Reads the file and tries its connections; in any thread. NULL: refused. */
RCPT_MUST_CHECK struct rcpt_config *reload_read(const char *path, const struct reload_dsns *before,
                                                struct rcpt_error *error);
/* Prints the keys that are applied, and those that need a restart; one line of the log for each
 * line of a text. */
void reload_print_changes(const struct rcpt_config_changes *changes, FILE *out);
void reload_log_result(bool good, const char *text);

/* The result of a reload, as text for the log and for the client. Called once. */
typedef void (*reload_on_done)(void *context, bool good, const char *text);

struct reload *reload_new(const struct reload_settings *settings);
void reload_free(struct reload *reload);
/* Reads the file in a worker; on_done may be NULL. One at a time: false if one is under way. */
bool reload_begin(struct reload *reload, reload_on_done on_done, void *context);
/* Begins another reload after the one under way, which may have read the file too early. */
void reload_after_this(struct reload *reload);
bool reload_is_under_way(const struct reload *reload);

#endif

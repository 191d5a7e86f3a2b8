/* A new configuration while running. Private to the daemon. */
#ifndef RECEIPTD_OPERATE_RELOAD_H
#define RECEIPTD_OPERATE_RELOAD_H

#include "actions/actions.h"
#include "endpoints.h"
#include "folds/folds.h"
#include "supervisor.h"

struct reload;

/* Modules that take over changed values. */
struct reload_settings {
    struct app_context *context;
    struct receipts *receipts;
    struct folds *folds;
    struct actions *actions;
    struct endpoints *endpoints;
    struct status *status;
    struct supervisor *supervisor;
    /* The intake, if there is one. */
    void (*apply_intake)(void *context);
    void *intake_context;
};

/* How PostgreSQL and Kafka are reached now: another way is tried before it is taken. Own copies. */
struct reload_dsns {
    char *postgres, *intake; /* NULL: not given */
    uint64_t kafka;          /* hash of brokers and properties */
};
void reload_note_dsns(struct reload_dsns *dsns, const struct rcpt_config *config);
void reload_free_dsns(struct reload_dsns *dsns);
/* Reads the file and tries what can only be tried; in any thread. NULL: refused. */
RCPT_MUST_CHECK struct rcpt_config *reload_read(const char *path, const struct reload_dsns *before,
                                                struct rcpt_error *error);
/* Which keys are applied, and which need a restart; one line of the log for each line of a text. */
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

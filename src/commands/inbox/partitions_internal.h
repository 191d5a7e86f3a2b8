/* The layout of the partitions as it is, and scripts of SQL that change it. Private to
 * partitions*.c and adopt.c. */
#ifndef RECEIPTD_COMMANDS_INBOX_PARTITIONS_INTERNAL_H
#define RECEIPTD_COMMANDS_INBOX_PARTITIONS_INTERNAL_H

#include "partitions.h"
#include "place.h"
#include "receiptd/core/id_time.h"
#include "receiptd/postgres/bind.h"

/* The inbox and its partitions, as found. The texts belong to the rows. */
struct layout {
    struct command_context *context;
    struct inbox_place place;
    enum rcpt_id_kind ids;
    int64_t span_ms, now_ms;
    struct rcpt_session_rows *state, *parts; /* partitions/state.sql and list.sql */
    const char *owner, *other;               /* other NULL: no default partition */
    int64_t first_ms, last_ms; /* bounds of all partitions; first > last: there is none */
};

/* False with an empty error: there is no inbox yet. Call layout_forget() in any case. */
RCPT_MUST_CHECK bool layout_read(struct layout *layout, struct command_context *context);
void layout_forget(struct layout *layout);
bool layout_is(const struct layout *layout, const char *column); /* of state.sql */

/* The end of the span that the time is in. */
int64_t layout_span_end(const struct layout *layout, int64_t ms);
/* The time up to which partitions are made: a week from now, or some spans. */
int64_t layout_horizon(const struct layout *layout);
/* The end of an adopted table: the horizon, but at most a week ahead. */
int64_t layout_adopted_end(const struct layout *layout);
/* message_inbox_p20261124, or with the hour where spans are not whole days. */
void layout_name(const struct layout *layout, int64_t start_ms, char name[64]);

/* Statements that run together. */
struct script {
    struct command_context *context;
    FILE *out;
    char *text;
    size_t size;
    bool good;
};

void script_begin(struct script *script, struct command_context *context);
void script_add(struct script *script, const char *file, const struct rcpt_pg_binding *bindings,
                size_t count);
/* Runs the script in one transaction that waits at most LOCK_WAIT_MS for each lock, so that no
 * batch waits longer. Repeats it for a minute while others hold the lock. `what` names the task in
 * the error. Frees the script. */
RCPT_MUST_CHECK bool script_run(struct script *script, const char *what);
/* Frees the script. */
RCPT_MUST_CHECK bool script_run_at_length(
    struct script *script); /* waits for locks as long as it takes */

#define LOCK_WAIT_MS 40

/* True if the last statement failed because of a lock of others: waits a moment, and the caller
 * tries again. False after the last attempt. */
bool script_again(struct command_context *context, unsigned *attempts, const char *what);

/* Lets one run work at a time. False with an empty error: another run works on the partitions,
 * which is printed. */
RCPT_MUST_CHECK bool partitions_lock(struct command_context *context);

/* ---- partitions_external.c ---- */

/* Notes the partitions that are there, as the owner. */
RCPT_MUST_CHECK bool external_note(struct command_context *context);
/* Books partitions that have left. Drops those that an earlier run booked, if inbox.drop_detached
 * is set. `dry_run`: prints which. */
RCPT_MUST_CHECK bool external_retire(struct command_context *context, bool dry_run);
/* Names on stderr the partitions that cannot be booked. */
RCPT_MUST_CHECK bool external_warn(struct command_context *context);

#endif

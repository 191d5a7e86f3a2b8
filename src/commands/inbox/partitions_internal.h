/* What the files that change partitions share: the layout as it is, scripts of SQL, and the way in
 * which they are run. Private to partitions*.c and adopt.c. */
#ifndef RECEIPTD_COMMANDS_INBOX_PARTITIONS_INTERNAL_H
#define RECEIPTD_COMMANDS_INBOX_PARTITIONS_INTERNAL_H

#include "partitions.h"
#include "place.h"
#include "receiptd/core/id_time.h"
#include "receiptd/postgres/bind.h"

/* What is found of the inbox. The texts belong to the rows. */
struct layout {
    struct command_context *context;
    struct inbox_place place;
    enum rcpt_id_kind ids;
    int64_t span_ms, now_ms;
    struct rcpt_session_rows *state, *parts; /* partitions/state.sql and list.sql */
    const char *owner, *other;               /* other NULL: no default partition */
    int64_t first_ms, last_ms; /* bounds of all partitions; first > last: there is none */
};

/* False with an empty error: there is no inbox yet. Forget it in any case. */
RCPT_MUST_CHECK bool layout_read(struct layout *layout, struct command_context *context);
void layout_forget(struct layout *layout);
bool layout_is(const struct layout *layout, const char *column); /* of state.sql */

/* The end of the span that the time is in. */
int64_t layout_span_end(const struct layout *layout, int64_t ms);
/* Up to where partitions are to be there: a week from now, or some spans. */
int64_t layout_horizon(const struct layout *layout);
/* Where an adopted table ends: the horizon, or sooner, a week ahead. */
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
/* In one transaction that waits at most LOCK_WAIT_MS for each lock, so that no batch waits for it
 * longer; repeated while others hold the lock, for a minute. `what` is what does not work
 * otherwise. Frees the script. */
RCPT_MUST_CHECK bool script_run(struct script *script, const char *what);
/* Frees the script. */
RCPT_MUST_CHECK bool script_run_at_length(
    struct script *script); /* waits for locks as long as it takes */

#define LOCK_WAIT_MS 40

/* Whether the last statement met a lock that others held too long; if so, waits a while for the
 * next attempt; false after the last. */
bool script_again(struct command_context *context, unsigned *attempts, const char *what);

/* One run at a time. False with an empty error: another run is at it, which is said. */
RCPT_MUST_CHECK bool partitions_lock(struct command_context *context);

/* ---- partitions_external.c ---- */

/* Notes the partitions that are there, as the owner. */
RCPT_MUST_CHECK bool external_note(struct command_context *context);
/* Books those that have left, and drops those that were booked before where inbox.drop_detached
 * says so; `dry_run`: says which. */
RCPT_MUST_CHECK bool external_retire(struct command_context *context, bool dry_run);
/* Says which ones cannot be booked, on stderr. */
RCPT_MUST_CHECK bool external_warn(struct command_context *context);

#endif

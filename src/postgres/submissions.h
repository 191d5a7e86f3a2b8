/* Submissions that are not answered yet, in libpq's pipeline mode. Private to src/postgres.
 *
 * A transaction ends where its Sync's result arrives: without an error since the Sync before, it is
 * committed. No earlier result proves it: a deferred constraint fails after every statement has
 * succeeded.
 */
#ifndef SRC_POSTGRES_SUBMISSIONS_H
#define SRC_POSTGRES_SUBMISSIONS_H

#include <libpq-fe.h>

#include "receiptd/postgres/connection.h"

struct rcpt_pg_rows {
    PGresult *result;
    uint64_t arrived_ns; /* monotonic */
};

/* Commands up to one Sync, whose answer is owed. */
struct rcpt_pending;

struct rcpt_submissions {
    struct rcpt_pending *first, *last;
    char holder[220]; /* of the lock that the oldest waits for; "": none, or not known */
};

/* Appends; `commands` were or will be sent, followed by one Sync. */
void rcpt_submissions_push(struct rcpt_submissions *submissions, size_t commands,
                           rcpt_pg_on_result on_result, void *context);
bool rcpt_submissions_is_empty(const struct rcpt_submissions *submissions);

/* Number of commands in the oldest entry; 0 when empty. */
size_t rcpt_submissions_commands(const struct rcpt_submissions *submissions);

/* Reads what has arrived, never waits. Returns the oldest entry once its Sync was read, or an
 * answer that does not fit (rcpt_pending_breach); NULL: nothing more now. */
struct rcpt_pending *rcpt_submissions_take_done(struct rcpt_submissions *submissions, PGconn *conn);

/* The oldest entry whether done or not; NULL when empty. */
struct rcpt_pending *rcpt_submissions_take(struct rcpt_submissions *submissions);

/* The error that the oldest entry has met so far, or NULL. */
const struct rcpt_error *rcpt_submissions_error(const struct rcpt_submissions *submissions);

/* If set, an answer did not fit its question, so the connection must not be used again. */
const struct rcpt_error *rcpt_pending_breach(const struct rcpt_pending *pending);

/* Calls the owner's on_result and frees the entry. `lost` non-NULL: its outcome is unknown for this
 * reason. */
void rcpt_pending_answer(struct rcpt_pending *pending_take, const struct rcpt_error *lost);

#endif

/* The queue of unanswered submissions, in the order of sending. Each entry collects the results of
 * its commands until its Sync's own result proves the commit, or keeps the first error. A server
 * whose answers do not fit the questions has broken the protocol; then no further result of the
 * connection is trusted. Called by connection.c and setup.c.
 */
#include "submissions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"

#define PROTOCOL_VIOLATION "08P01"
#define LOCK_TIMEOUT       "55P03"

struct rcpt_pending {
    struct rcpt_pending *next;
    rcpt_pg_on_result on_result;
    void *context;
    struct rcpt_error error;
    bool failed;
    bool broken; /* by an answer that does not fit the question */
    size_t commands;
    size_t received;
    struct rcpt_pg_rows **rows; /* [commands], each into `storage` */
    struct rcpt_pg_rows storage[];
};

/* Results belong to the oldest entry, so entries stand in the order of sending. */
void rcpt_submissions_push(struct rcpt_submissions *submissions, size_t commands,
                           rcpt_pg_on_result on_result, void *context)
{
    struct rcpt_pending *pending =
        rcpt_calloc(1, sizeof(*pending) + commands * sizeof(pending->storage[0]));
    pending->on_result = on_result;
    pending->context = context;
    pending->commands = commands;
    pending->rows = rcpt_calloc(commands, sizeof(struct rcpt_pg_rows *));
    for (size_t index = 0; index < commands; index++)
        pending->rows[index] = &pending->storage[index];
    if (submissions->last != NULL)
        submissions->last->next = pending;
    else
        submissions->first = pending;
    submissions->last = pending;
}

bool rcpt_submissions_is_empty(const struct rcpt_submissions *submissions)
{
    return submissions->first == NULL;
}

size_t rcpt_submissions_commands(const struct rcpt_submissions *submissions)
{
    return submissions->first != NULL ? submissions->first->commands : 0;
}

const struct rcpt_error *rcpt_submissions_error(const struct rcpt_submissions *submissions)
{
    return submissions->first != NULL && submissions->first->failed ? &submissions->first->error
                                                                    : NULL;
}

/* The caller owns the entry, and has to answer it. */
struct rcpt_pending *rcpt_submissions_take(struct rcpt_submissions *submissions)
{
    struct rcpt_pending *pending = submissions->first;
    if (pending != NULL) {
        submissions->first = pending->next;
        if (submissions->first == NULL)
            submissions->last = NULL;
    }
    return pending;
}

/* No correct server sends this: the server or a proxy breaks the protocol, and the outcome is
 * unknown. */
static void RCPT_PRINTF(2, 3) find_breach(struct rcpt_pending *pending, const char *format, ...)
{
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    pending->failed = pending->broken = true;
    rcpt_error_set(&pending->error, RCPT_DECISION_RECONNECT, PROTOCOL_VIOLATION, "%s", text);
}

/* libpq would return this result again and again, because the rows of a COPY are neither taken nor
 * sent here. */
static bool is_copy(ExecStatusType status)
{
    return status == PGRES_COPY_OUT || status == PGRES_COPY_IN || status == PGRES_COPY_BOTH;
}

/* The hint of a lock time-out names the session that holds the lock. */
static void fail(struct rcpt_pending *pending, const PGresult *result, const char *holder)
{
    pending->failed = true;
    rcpt_failure_of_result(result, &pending->error);
    if (strcmp(pending->error.code, LOCK_TIMEOUT) == 0 && holder[0] != '\0')
        rcpt_error_hint(&pending->error, "the lock is held by %s", holder);
}

/* Keeps the result of a command that succeeded, or the first error. Takes the result over. */
static void keep(const struct rcpt_submissions *submissions, PGresult *result_take)
{
    struct rcpt_pending *pending = submissions->first;
    ExecStatusType status = PQresultStatus(result_take);
    bool is_good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
    if (is_good && !pending->failed && pending->received < pending->commands) {
        pending->storage[pending->received].arrived_ns = uv_hrtime();
        pending->storage[pending->received++].result = result_take;
        return;
    }
    if (is_good && !pending->failed)
        find_breach(pending,
                    "the server gave more answers than the %zu statements of a transaction",
                    pending->commands);
    if (is_copy(status))
        find_breach(pending, "the server answered a statement with %s", PQresStatus(status));
    if (!is_good && status != PGRES_PIPELINE_ABORTED && !pending->failed)
        fail(pending, result_take, submissions->holder);
    PQclear(result_take);
}

/* At the Sync: every command must have had its result. */
static void check_count(struct rcpt_pending *pending)
{
    if (!pending->failed && pending->received < pending->commands)
        find_breach(pending, "the server gave %zu answers to the %zu statements of a transaction",
                    pending->received, pending->commands);
}

struct rcpt_pending *rcpt_submissions_take_done(struct rcpt_submissions *submissions, PGconn *conn)
{
    int separators = 0;
    /* Each command's result is followed by NULL. Two in a row: the connection has no further
     * result. */
    while (submissions->first != NULL && separators < 2 && !PQisBusy(conn)) {
        PGresult *result = PQgetResult(conn);
        if (result == NULL) {
            separators++;
        } else if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            PQclear(result);
            check_count(submissions->first);
            return rcpt_submissions_take(submissions);
        } else {
            separators = 0;
            keep(submissions, result);
            if (submissions->first->broken)
                return rcpt_submissions_take(submissions);
        }
    }
    return NULL;
}

const struct rcpt_error *rcpt_pending_breach(const struct rcpt_pending *pending)
{
    return pending->broken ? &pending->error : NULL;
}

/* The owner borrows the rows for the call. */
void rcpt_pending_answer(struct rcpt_pending *pending_take, const struct rcpt_error *lost)
{
    struct rcpt_pending *pending = pending_take;
    const struct rcpt_error *error = lost != NULL ? lost : pending->failed ? &pending->error : NULL;
    RCPT_ASSERT(error != NULL || pending->received == pending->commands);
    pending->on_result(pending->context, pending->rows, pending->received, error);
    for (size_t index = 0; index < pending->received; index++)
        PQclear(pending->storage[index].result);
    free(pending->rows);
    free(pending);
}

size_t rcpt_pg_rows_count(const struct rcpt_pg_rows *rows)
{
    return (size_t)PQntuples(rows->result);
}

const char *rcpt_pg_rows_command(const struct rcpt_pg_rows *rows)
{
    return PQcmdStatus(rows->result);
}

uint64_t rcpt_pg_rows_arrived_ns(const struct rcpt_pg_rows *rows)
{
    return rows->arrived_ns;
}

const char *rcpt_pg_rows_text(const struct rcpt_pg_rows *rows, size_t row, int column)
{
    RCPT_ASSERT(row < rcpt_pg_rows_count(rows) && column < PQnfields(rows->result));
    return PQgetisnull(rows->result, (int)row, column) ? NULL
                                                       : PQgetvalue(rows->result, (int)row, column);
}

int64_t rcpt_pg_rows_int(const struct rcpt_pg_rows *rows, size_t row, int column)
{
    const char *text = rcpt_pg_rows_text(rows, row, column);
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

bool rcpt_pg_rows_bool(const struct rcpt_pg_rows *rows, size_t row, int column)
{
    const char *text = rcpt_pg_rows_text(rows, row, column);
    return text != NULL && text[0] == 't';
}

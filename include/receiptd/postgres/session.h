/* A blocking PostgreSQL session for commands: connect, run a statement, read its rows.
 *
 * Not for the daemon's loop (that is connection.h). In a command, a statement waits in poll(2).
 * SIGINT and SIGTERM cancel it on the server and come back as an error with exit code 130 or 143.
 * Between statements they end the process as usual, and the server rolls back. Errors are FATAL
 * with a sysexits code: 69 not reachable or not writable, 77 not permitted, 78 schema or table
 * missing, 70 else; `code` is the SQLSTATE where there is one. One thread.
 */
#ifndef RECEIPTD_POSTGRES_SESSION_H
#define RECEIPTD_POSTGRES_SESSION_H

#include <stddef.h>
#include <stdint.h>

#include "receiptd/base/error.h"

struct rcpt_pg_params;    /* connection.h */
struct rcpt_pg_statement; /* likewise */
struct rcpt_session;
struct rcpt_session_rows; /* the result of one statement; owned by the caller */

#define RCPT_EXIT_INTERRUPTED 130 /* 128 + SIGINT, as shells show it; 143 for SIGTERM */

struct rcpt_session_settings {
    const char *dsn;     /* libpq conninfo or URI */
    const char *schema;  /* search_path; need not exist yet */
    const char *command; /* application_name is receiptd/<command> */
    int64_t connect_timeout_ms;
    bool read_only; /* every transaction refuses to write */
    /* 0: a command's session. Otherwise one in a worker thread of a daemon: signals stay with the
     * loop, and a statement ends after so long. */
    int64_t worker_timeout_ms;
};

RCPT_MUST_CHECK struct rcpt_session *rcpt_session_open(const struct rcpt_session_settings *settings,
                                                       struct rcpt_error *error);
/* Whether the server accepts a session with this dsn; for any thread. */
RCPT_MUST_CHECK bool rcpt_session_try(const struct rcpt_session_settings *settings,
                                      struct rcpt_error *error);
void rcpt_session_close(struct rcpt_session *session); /* NULL is fine; rolls back what is open */

/* One statement with text parameters ($1 …; a NULL entry is SQL NULL). NULL on error. */
RCPT_MUST_CHECK struct rcpt_session_rows *rcpt_session_query(struct rcpt_session *session,
                                                             const char *sql, size_t count,
                                                             const char *const *values,
                                                             struct rcpt_error *error);
/* The same with parameters in text or binary format. */
RCPT_MUST_CHECK struct rcpt_session_rows *rcpt_session_query_params(
    struct rcpt_session *session, const char *sql, const struct rcpt_pg_params *params,
    struct rcpt_error *error);
/* Called every `every_ms` while a statement waits for the server; it may use other sessions. */
struct rcpt_session_watch {
    int64_t every_ms;
    void (*on_wait)(void *context);
    void *context;
};
/* One or several statements without parameters, whose rows do not matter. `watch` NULL: not
 * watched. */
RCPT_MUST_CHECK bool rcpt_session_execute_watched(struct rcpt_session *session, const char *sql,
                                                  const struct rcpt_session_watch *watch,
                                                  struct rcpt_error *error);
RCPT_MUST_CHECK static inline bool rcpt_session_execute(struct rcpt_session *session,
                                                        const char *sql, struct rcpt_error *error)
{
    return rcpt_session_execute_watched(session, sql, NULL, error);
}

/* An explicit transaction. `modes` as after BEGIN, "" for the default. Rollback cannot fail: the
 * session may be dead. */
RCPT_MUST_CHECK bool rcpt_session_begin(struct rcpt_session *session, const char *modes,
                                        struct rcpt_error *error);
RCPT_MUST_CHECK bool rcpt_session_commit(struct rcpt_session *session, struct rcpt_error *error);
void rcpt_session_rollback(struct rcpt_session *session);

/* Within a transaction: prepares and plans each statement as a connection of the daemon does, with
 * this session's rights, and forgets it again. The first statement that fails is the error. */
RCPT_MUST_CHECK bool rcpt_session_check_statements(struct rcpt_session *session,
                                                   const struct rcpt_pg_statement *statements,
                                                   size_t count, struct rcpt_error *error);

/* The exit code of a command for an SQLSTATE; "": the connection was lost. */
int rcpt_session_exit_code(const char *sqlstate);

/* ---- rows; texts are valid until the rows are freed ---- */
size_t rcpt_session_rows_count(const struct rcpt_session_rows *rows);
int rcpt_session_rows_column(const struct rcpt_session_rows *rows,
                             const char *name); /* asserts that it exists */
const char *rcpt_session_rows_text(const struct rcpt_session_rows *rows, size_t row,
                                   const char *column); /* NULL */
int64_t rcpt_session_rows_int(const struct rcpt_session_rows *rows, size_t row,
                              const char *column); /* 0 for NULL */
bool rcpt_session_rows_bool(const struct rcpt_session_rows *rows, size_t row, const char *column);
/* A bytea value; the caller frees it. NULL for SQL NULL. */
void *rcpt_session_rows_bytes(const struct rcpt_session_rows *rows, size_t row, const char *column,
                              size_t *size);
void rcpt_session_rows_free(struct rcpt_session_rows *rows); /* NULL is fine */

/* Version of libpq as text, e.g. "15.20". */
const char *rcpt_session_libpq_version(char text[16]);

#endif

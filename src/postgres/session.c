/* A blocking session for commands: connect with a time-out, run statements one by one, read rows by
 * the names of their columns. SIGINT and SIGTERM cancel the running statement: a guard blocks them
 * and takes them from a descriptor meanwhile. So a command always ends in its own way and reports
 * what was kept. In a worker thread of a daemon the loop handles signals, and a time-out ends a
 * statement. Called by src/commands, src/receipts/redrive.c and src/serve/redrive.c.
 */
#include "receiptd/postgres/session.h"
#include "receiptd/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "failure.h"
#include "receiptd/base/log.h"
#include "receiptd/postgres/connection.h"
#include "session_error.h"

/* How long a cancelled statement may take to end before the session is dropped. */
#define CANCEL_GRACE_MS 5000

/* `in_transaction` is true from BEGIN to the end of COMMIT or ROLLBACK. */
struct rcpt_session {
    PGconn *connection;
    bool in_transaction;
    int64_t worker_timeout_ms; /* 0: signals are watched */
};

struct rcpt_session_rows {
    PGresult *result;
};

/* ---- waiting ---- */

static int64_t now_ms(void)
{
    return rcpt_monotonic_ns() / RCPT_NS_PER_MS;
}

/* Signals that end a command are taken from a descriptor while a statement runs. */
struct guard {
    sigset_t before;
    int descriptor;
    int caught; /* signal number, 0 if none */
    int64_t give_up_ms;
    bool is_worker;                         /* signals are not taken */
    const struct rcpt_session_watch *watch; /* NULL: none */
};

/* From here to guard_end() the two signals do not end the process. The server has some time to end
 * a worker's statement by itself, which gives the better error. */
static void guard_begin(struct guard *guard, const struct rcpt_session *session)
{
    sigset_t set;
    *guard = (struct guard){.descriptor = -1, .give_up_ms = INT64_MAX};
    guard->is_worker = session->worker_timeout_ms > 0;
    if (guard->is_worker) {
        guard->give_up_ms = now_ms() + session->worker_timeout_ms + CANCEL_GRACE_MS;
        return;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    RCPT_ASSERT(sigprocmask(SIG_BLOCK, &set, &guard->before) == 0);
    guard->descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (guard->descriptor <
        0) /* too many files: a signal ends the process, the server rolls back */
        sigprocmask(SIG_SETMASK, &guard->before, NULL);
}

/* A signal that came and was not read arrives now. */
static void guard_end(struct guard *guard)
{
    if (guard->is_worker)
        return;
    if (guard->descriptor >= 0)
        close(guard->descriptor);
    sigprocmask(SIG_SETMASK, &guard->before, NULL);
}

/* Asks the server to stop; the statement then ends with 57014, or the session is given up after a
 * grace time. */
static void guard_cancel(struct guard *guard, PGconn *connection)
{
    struct signalfd_siginfo info;
    if (read(guard->descriptor, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    char text[256];
    PGcancel *cancel = PQgetCancel(connection);
    if (guard->caught != 0 || cancel == NULL || PQcancel(cancel, text, sizeof(text)) == 0)
        guard->give_up_ms = 0;
    else
        guard->give_up_ms = now_ms() + CANCEL_GRACE_MS;
    PQfreeCancel(cancel);
    guard->caught = (int)info.ssi_signo;
}

/* Waits for the socket or a signal; false when the session is given up. */
static bool guard_wait(struct guard *guard, PGconn *connection, short events)
{
    struct pollfd waits[2] = {{.fd = PQsocket(connection), .events = events},
                              {.fd = guard->descriptor, .events = POLLIN}};
    int64_t left = guard->give_up_ms == INT64_MAX ? -1 : guard->give_up_ms - now_ms();
    bool watched = guard->give_up_ms == INT64_MAX && guard->watch != NULL;
    if (guard->give_up_ms != INT64_MAX && left <= 0)
        return false;
    int ready = poll(waits, 2, (int)(watched ? guard->watch->every_ms : left));
    if (ready < 0)
        RCPT_ASSERT(errno == EINTR);
    else if ((waits[1].revents & POLLIN) != 0)
        guard_cancel(guard, connection);
    else if (ready == 0 && watched)
        guard->watch->on_wait(guard->watch->context);
    return true;
}

/* ---- connecting ---- */

static PGconn *connect_start(const struct rcpt_session_settings *settings)
{
    char name[64], timeout[24];
    snprintf(name, sizeof(name), "receiptd/%s", settings->command);
    snprintf(timeout, sizeof(timeout), "%" PRId64, settings->connect_timeout_ms);
    /* Keywords before dbname give way to the DSN; keywords after it prevail. The TCP time-out also
     * bounds the handshake with each host, so that one dead host of several does not use up all of
     * the time. */
    const char *const keywords[] = {"tcp_user_timeout", "dbname", "client_encoding",
                                    "application_name", NULL};
    const char *const values[] = {timeout, settings->dsn, "UTF8", name, NULL};
    return PQconnectStartParams(keywords, values, 1);
}

/* Each host gets the time-out; libpq tries them in turn. */
static unsigned host_count(PGconn *connection)
{
    unsigned hosts = 1;
    PQconninfoOption *options = PQconninfo(connection);
    for (PQconninfoOption *option = options; option != NULL && option->keyword != NULL; option++) {
        bool is_host =
            strcmp(option->keyword, "host") == 0 || strcmp(option->keyword, "hostaddr") == 0;
        unsigned here = 1;
        for (const char *byte = is_host ? option->val : NULL; byte != NULL && *byte != '\0'; byte++)
            here += *byte == ',';
        hosts = here > hosts ? here : hosts;
    }
    PQconninfoFree(options);
    return hosts;
}

/* Polls in place of PQconnectdb, whose time-out does not bound all of the handshake. */
static bool connect_poll(PGconn *connection, int64_t timeout_ms, struct rcpt_error *error)
{
    int64_t deadline_ms = now_ms() + timeout_ms * host_count(connection);
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    while (status != PGRES_POLLING_OK) {
        struct pollfd wait = {.fd = PQsocket(connection),
                              .events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT};
        int64_t left = deadline_ms - now_ms();
        int ready = left > 0 ? poll(&wait, 1, (int)(left < INT32_MAX ? left : INT32_MAX)) : 0;
        if (ready == 0) {
            session_connect_error(error, connection, "time-out (postgres.connect_timeout)");
            return false;
        }
        status = PQconnectPoll(connection);
        if (status == PGRES_POLLING_FAILED) {
            session_connect_error(error, connection, NULL);
            return false;
        }
    }
    return true;
}

/* For commands the error is final. */
static bool is_too_old(const PGconn *connection, struct rcpt_error *error)
{
    if (!rcpt_failure_of_version(connection, error))
        return false;
    error->decision = RCPT_DECISION_FATAL;
    error->exit_code = EX_CONFIG;
    return true;
}

/* Only warnings: notices of DDL would fill the terminal. */
static void on_notice(void *context, const PGresult *result)
{
    (void)context;
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (severity != NULL && strcmp(severity, "WARNING") == 0 && text != NULL)
        rcpt_log_warn("postgres", "%s", text);
}

/* Without USAGE, PostgreSQL reports that the tables do not exist, and an operator would migrate in
 * vain. */
static bool check_usage(const struct rcpt_session_rows *rows, const char *schema,
                        struct rcpt_error *error)
{
    if (!rcpt_session_rows_bool(rows, 0, "barred"))
        return true;
    rcpt_error_fatal(error, EX_NOPERM, "permission denied for schema %s", schema);
    rcpt_error_hint(error, "%s", rcpt_pg_hint("42501"));
    return false;
}

/* One statement, so one round trip: settings by set_config, which takes parameters, and a check of
 * the rights. To compile what migrate asks the catalogs takes a second, and saves nothing. */
static bool set_up(struct rcpt_session *session, const struct rcpt_session_settings *settings,
                   struct rcpt_error *error)
{
    char *schema =
        PQescapeIdentifier(session->connection, settings->schema, strlen(settings->schema));
    RCPT_ASSERT(schema != NULL);
    char timeout[24];
    snprintf(timeout, sizeof(timeout), "%" PRId64, settings->worker_timeout_ms);
    const char *values[] = {schema, settings->read_only ? "on" : "off", settings->schema, timeout};
    struct rcpt_session_rows *rows = rcpt_session_query(
        session,
        "SELECT set_config('search_path', $1, false), set_config('default_transaction_read_only', "
        "$2, false),"
        " set_config('client_min_messages', 'warning', false), set_config('bytea_output', 'hex', "
        "false),"
        " set_config('datestyle', 'ISO', false), set_config('timezone', 'UTC', false),"
        " set_config('row_security', 'off', false), set_config('jit', 'off', false),"
        " set_config('statement_timeout', $4, false), "
        "set_config('lock_timeout', '0', false),"
        " EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = $3"
        " AND NOT has_schema_privilege(n.oid, 'USAGE')) AS barred",
        4, values, error);
    bool good = rows != NULL && check_usage(rows, settings->schema, error);
    PQfreemem(schema);
    rcpt_session_rows_free(rows);
    return good;
}

/* Verbose messages while connecting hold the SQLSTATE, which libpq gives in no other way then. */
static struct rcpt_session *connect_session(const struct rcpt_session_settings *settings,
                                            struct rcpt_error *error)
{
    if (!session_check_dsn(settings->dsn, error))
        return NULL;
    struct rcpt_session *session = rcpt_calloc(1, sizeof(*session));
    session->worker_timeout_ms = settings->worker_timeout_ms;
    session->connection = connect_start(settings);
    RCPT_ASSERT(session->connection != NULL);
    PQsetErrorVerbosity(session->connection, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(session->connection, on_notice, NULL);
    bool good = PQstatus(session->connection) != CONNECTION_BAD;
    if (!good)
        session_connect_error(error, session->connection, NULL);
    good = good && connect_poll(session->connection, settings->connect_timeout_ms, error);
    PQsetErrorVerbosity(session->connection, PQERRORS_DEFAULT);
    if (!good || is_too_old(session->connection, error)) {
        rcpt_session_close(session);
        return NULL;
    }
    return session;
}

struct rcpt_session *rcpt_session_open(const struct rcpt_session_settings *settings,
                                       struct rcpt_error *error)
{
    struct rcpt_session *session = connect_session(settings, error);
    if (session != NULL && !set_up(session, settings, error)) {
        rcpt_session_close(session);
        return NULL;
    }
    return session;
}

/* Sends no statement: statements watch for signals, which belong to the loop of a daemon. */
bool rcpt_session_try(const struct rcpt_session_settings *settings, struct rcpt_error *error)
{
    struct rcpt_session *session = connect_session(settings, error);
    rcpt_session_close(session);
    return session != NULL;
}

void rcpt_session_close(struct rcpt_session *session)
{
    if (session == NULL)
        return;
    PQfinish(session->connection);
    free(session);
}

/* ---- statements ---- */

/* False: the connection is gone, or the session is given up after a signal. */
static bool flush_and_wait(struct guard *guard, PGconn *connection)
{
    int unsent = PQflush(connection);
    while (unsent == 1) {
        if (!guard_wait(guard, connection, POLLIN | POLLOUT) || PQconsumeInput(connection) == 0)
            return false;
        unsent = PQflush(connection);
    }
    while (unsent == 0 && PQisBusy(connection)) {
        if (!guard_wait(guard, connection, POLLIN) || PQconsumeInput(connection) == 0)
            return false;
    }
    return unsent == 0;
}

/* Reads all results and returns the first that is an error, else the last. NULL: the connection is
 * gone. */
static PGresult *collect(struct guard *guard, PGconn *connection)
{
    PGresult *kept = NULL;
    for (;;) {
        if (!flush_and_wait(guard, connection)) {
            PQclear(kept);
            return NULL;
        }
        PGresult *next = PQgetResult(connection);
        if (next == NULL)
            return kept;
        if (kept != NULL && PQresultStatus(kept) == PGRES_FATAL_ERROR) {
            PQclear(next);
        } else {
            PQclear(kept);
            kept = next;
        }
    }
}

/* Ends the guard. An interrupted statement is reported as such, even where the server's answer to
 * the cancel says something else. */
static struct rcpt_session_rows *finish(struct rcpt_session *session, struct guard *guard,
                                        bool sent, struct rcpt_error *error)
{
    PGresult *result = sent ? collect(guard, session->connection) : NULL;
    ExecStatusType status = PQresultStatus(result);
    bool good = result != NULL && (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK);
    if (!good && guard->caught != 0) {
        rcpt_error_fatal(error, 128 + guard->caught,
                         "interrupted; nothing of the open transaction was kept");
    } else if (result == NULL) {
        session_lost_error(error, session->connection);
    } else if (!good) {
        session_result_error(error, result);
    }
    guard_end(guard);
    if (!good) {
        PQclear(result);
        return NULL;
    }
    struct rcpt_session_rows *rows = rcpt_malloc(sizeof(*rows));
    rows->result = result;
    return rows;
}

struct rcpt_session_rows *rcpt_session_query_params(struct rcpt_session *session, const char *sql,
                                                    const struct rcpt_pg_params *params,
                                                    struct rcpt_error *error)
{
    struct guard guard;
    guard_begin(&guard, session);
    bool sent = PQsendQueryParams(session->connection, sql, params->count, NULL, params->values,
                                  params->lengths, params->formats, 0) == 1;
    return finish(session, &guard, sent, error);
}

/* Values are texts; NULL is SQL NULL. */
struct rcpt_session_rows *rcpt_session_query(struct rcpt_session *session, const char *sql,
                                             size_t count, const char *const *values,
                                             struct rcpt_error *error)
{
    struct rcpt_pg_params params = {.count = (int)count, .values = values};
    return rcpt_session_query_params(session, sql, &params, error);
}

/* Without parameters, so `sql` may hold several statements. */
bool rcpt_session_execute_watched(struct rcpt_session *session, const char *sql,
                                  const struct rcpt_session_watch *watch, struct rcpt_error *error)
{
    struct guard guard;
    guard_begin(&guard, session);
    guard.watch = watch;
    struct rcpt_session_rows *rows =
        finish(session, &guard, PQsendQuery(session->connection, sql) == 1, error);
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good;
}

bool rcpt_session_begin(struct rcpt_session *session, const char *modes, struct rcpt_error *error)
{
    char sql[96];
    RCPT_ASSERT(!session->in_transaction && strlen(modes) < 64);
    snprintf(sql, sizeof(sql), "BEGIN %s", modes);
    session->in_transaction = rcpt_session_execute(session, sql, error);
    return session->in_transaction;
}

bool rcpt_session_commit(struct rcpt_session *session, struct rcpt_error *error)
{
    RCPT_ASSERT(session->in_transaction);
    /* COMMIT of a failed transaction answers ROLLBACK without an error. */
    if (PQtransactionStatus(session->connection) == PQTRANS_INERROR)
        return rcpt_error_fatal(error, EX_SOFTWARE, "the transaction had failed before its commit");
    if (!rcpt_session_execute(session, "COMMIT", error))
        return false;
    session->in_transaction = false;
    return true;
}

/* Does nothing if the connection is gone: then the server rolls back. */
void rcpt_session_rollback(struct rcpt_session *session)
{
    struct rcpt_error ignored;
    if (session->in_transaction && PQstatus(session->connection) == CONNECTION_OK &&
        !rcpt_session_execute(session, "ROLLBACK", &ignored))
        rcpt_log_debug("postgres", "rollback failed, the server does it when the session ends");
    session->in_transaction = false;
}

/* ---- rows ---- */

size_t rcpt_session_rows_count(const struct rcpt_session_rows *rows)
{
    return (size_t)PQntuples(rows->result);
}

/* A column that is not there is a bug of the caller. */
int rcpt_session_rows_column(const struct rcpt_session_rows *rows, const char *name)
{
    int column = 0;
    while (column < PQnfields(rows->result) && strcmp(PQfname(rows->result, column), name) != 0)
        column++;
    RCPT_ASSERT(column < PQnfields(rows->result));
    return column;
}

const char *rcpt_session_rows_text(const struct rcpt_session_rows *rows, size_t row,
                                   const char *column)
{
    int number = rcpt_session_rows_column(rows, column);
    RCPT_ASSERT(row < rcpt_session_rows_count(rows));
    if (PQgetisnull(rows->result, (int)row, number))
        return NULL;
    return PQgetvalue(rows->result, (int)row, number);
}

/* NULL reads as 0. */
int64_t rcpt_session_rows_int(const struct rcpt_session_rows *rows, size_t row, const char *column)
{
    const char *text = rcpt_session_rows_text(rows, row, column);
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

bool rcpt_session_rows_bool(const struct rcpt_session_rows *rows, size_t row, const char *column)
{
    const char *text = rcpt_session_rows_text(rows, row, column);
    return text != NULL && text[0] == 't';
}

/* The caller frees them; one byte more than `size` is there. */
void *rcpt_session_rows_bytes(const struct rcpt_session_rows *rows, size_t row, const char *column,
                              size_t *size)
{
    const char *text = rcpt_session_rows_text(rows, row, column);
    if (text == NULL)
        return NULL;
    unsigned char *raw = PQunescapeBytea((const unsigned char *)text, size);
    RCPT_ASSERT(raw != NULL);
    void *bytes = rcpt_malloc(*size + 1);
    memcpy(bytes, raw, *size);
    PQfreemem(raw);
    return bytes;
}

/* Texts of the rows are borrowed until here. */
void rcpt_session_rows_free(struct rcpt_session_rows *rows)
{
    if (rows == NULL)
        return;
    PQclear(rows->result);
    free(rows);
}

const char *rcpt_session_libpq_version(char text[16])
{
    snprintf(text, 16, "%d.%d", PQlibVersion() / 10000, PQlibVersion() % 10000);
    return text;
}

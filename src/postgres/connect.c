/* From a dsn to a session: resolve the hosts, shake hands, enter libpq's pipeline mode, and give
 * the socket to the loop. States RESOLVING and CONNECTING of the machine (machine.h); connection.c
 * calls it, and setup.c goes on from there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conninfo.h"
#include "failure.h"
#include "machine.h"
#include "receiptd/base/log.h"

#define SEND_BUFFER_BYTES (4 * 1024 * 1024)

static void on_resolved(void *context)
{
    rcpt_pg_raise(context, RCPT_PG_EVENT_RESOLVED, NULL);
}

/* The state is RESOLVING already; without a name to resolve the next step follows at once. */
void rcpt_connect_resolve(struct rcpt_pg *pg)
{
    struct rcpt_hosts hosts;
    struct rcpt_error error;
    if (!rcpt_conninfo_hosts(pg->settings.dsn, &hosts, &error)) {
        rcpt_pg_fail(pg, &error);
        return;
    }
    pg->resolver = rcpt_resolver_start(pg->settings.loop, &hosts, on_resolved, pg);
    if (rcpt_resolver_is_done(pg->resolver))
        on_resolved(pg);
}

/* ---- the socket ---- */

static void on_poll_closed(uv_handle_t *handle)
{
    free(handle);
}

/* Before every step of the hand-shake: libpq may close the socket and open another one under the
 * same number, which the loop would not notice. */
void rcpt_connect_unwatch(struct rcpt_pg *pg)
{
    if (pg->poll == NULL)
        return;
    uv_poll_stop(pg->poll);
    pg->poll->data = NULL;
    uv_close((uv_handle_t *)pg->poll, on_poll_closed);
    pg->poll = NULL;
    pg->polled = 0;
}

/* A status below zero says that the socket is broken: libpq finds out how when it reads. */
static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct rcpt_pg *pg = poll->data;
    (void)events;
    if (status < 0)
        pg->polled = 0;
    rcpt_pg_raise(pg, RCPT_PG_EVENT_SOCKET, NULL);
}

/* False: the connection has failed with an error of its own. */
static bool socket_handle(struct rcpt_pg *pg)
{
    uv_poll_t *poll = rcpt_calloc(1, sizeof(*poll));
    int status = uv_poll_init(pg->settings.loop, poll, PQsocket(pg->conn));
    if (status == 0) {
        poll->data = pg;
        pg->poll = poll;
        return true;
    }
    struct rcpt_error error;
    free(poll);
    rcpt_error_set(&error, RCPT_DECISION_RECONNECT, "RDSOCKET", "socket cannot be watched: %s",
                   uv_strerror(status));
    rcpt_pg_fail(pg, &error);
    return false;
}

/* Starting the poll again with the same events would cost a system call each time. */
void rcpt_connect_watch(struct rcpt_pg *pg, int events)
{
    if (pg->poll == NULL && !socket_handle(pg))
        return;
    if (pg->polled == events)
        return;
    RCPT_ASSERT(uv_poll_start(pg->poll, events, on_socket) == 0);
    pg->polled = events;
}

/* ---- the session ---- */

/* The result holds a notice or, when the server says good-bye unasked, a FATAL error. */
static void on_notice(void *context, const PGresult *result)
{
    struct rcpt_pg *pg = context;
    struct rcpt_error notice;
    rcpt_failure_of_result(result, &notice);
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity != NULL && strcmp(severity, "FATAL") == 0)
        pg->last_words = notice;
    rcpt_log_debug("postgres", "connection %s: notice %s: %s", pg->settings.name, notice.code,
                   notice.text);
}

/* Without the password, so not the whole conninfo. */
static void describe_connecting(struct rcpt_pg *pg, const struct rcpt_conninfo *info)
{
    const char *address = rcpt_conninfo_value(info, "hostaddr");
    const char *name = rcpt_conninfo_value(info, "host");
    rcpt_log_debug("postgres", "connection %s: hosts %s, addresses %s", pg->settings.name,
                   name != NULL ? name : "(default)", address != NULL ? address : "(none)");
}

static bool start_session(struct rcpt_pg *pg, const struct rcpt_hosts *candidates,
                          struct rcpt_error *error)
{
    struct rcpt_conninfo info;
    if (!rcpt_conninfo_init(&info, &pg->settings, candidates, pg->check_count > 0, error))
        return false;
    describe_connecting(pg, &info);
    pg->conn = PQconnectStartParams(info.keywords, info.values, 0);
    rcpt_conninfo_fini(&info);
    RCPT_ASSERT(pg->conn != NULL);
    if (PQstatus(pg->conn) == CONNECTION_BAD) {
        rcpt_failure_of_connection(pg->conn, error);
        return false;
    }
    /* Verbose messages carry the SQLSTATE, which libpq gives in no other way while connecting. */
    PQsetErrorVerbosity(pg->conn, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(pg->conn, on_notice, pg);
    return true;
}

/* libpq gets addresses only, so that no call of its own resolves a name and blocks the loop. */
void rcpt_connect_open(struct rcpt_pg *pg)
{
    struct rcpt_hosts candidates;
    struct rcpt_error error;
    bool started = rcpt_resolver_candidates(pg->resolver, pg->rotation, &candidates, &error) &&
                   start_session(pg, &candidates, &error);
    rcpt_hosts_fini(&candidates);
    if (!started) {
        rcpt_pg_fail(pg, &error);
        return;
    }
    rcpt_pg_enter(pg, RCPT_PG_CONNECTING, "addresses are known");
    rcpt_connect_watch(pg, UV_WRITABLE);
}

/* Whether the kernel would grant a buffer of that size. Asking the connection itself would switch
 * off TCP's own sizing for good, even if net.core.wmem_max grants far less. */
static bool is_granted(int family)
{
    int size = SEND_BUFFER_BYTES, granted = 0;
    socklen_t length = sizeof(granted);
    int probe = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe < 0)
        return false;
    setsockopt(probe, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    getsockopt(probe, SOL_SOCKET, SO_SNDBUF, &granted, &length);
    close(probe);
    return granted >= SEND_BUFFER_BYTES;
}

/* One send() should take a whole batch: a client that is stopped half-way through would leave its
 * locks behind. */
static void widen_send_buffer(int socket_fd)
{
    int family = AF_UNSPEC, size = SEND_BUFFER_BYTES;
    socklen_t length = sizeof(family);
    getsockopt(socket_fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
    if (family == AF_UNIX || is_granted(family))
        setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

/* Pipeline mode before the first statement: the set-up is sent in one go. */
static void connected(struct rcpt_pg *pg)
{
    struct rcpt_error error;
    if (rcpt_failure_of_version(pg->conn, &error)) {
        rcpt_pg_fail(pg, &error);
        return;
    }
    RCPT_ASSERT(PQsetnonblocking(pg->conn, 1) == 0);
    RCPT_ASSERT(PQenterPipelineMode(pg->conn) == 1);
    pg->backend_pid = PQbackendPID(pg->conn);
    widen_send_buffer(PQsocket(pg->conn));
    rcpt_pg_enter(pg, RCPT_PG_SETTING_UP, "session is open");
    rcpt_setup_begin(pg);
}

/* libpq tells after each step which event it awaits next. */
void rcpt_connect_step(struct rcpt_pg *pg)
{
    rcpt_connect_unwatch(pg);
    switch (PQconnectPoll(pg->conn)) {
    case PGRES_POLLING_READING:
        rcpt_connect_watch(pg, UV_READABLE);
        break;
    case PGRES_POLLING_WRITING:
        rcpt_connect_watch(pg, UV_WRITABLE);
        break;
    case PGRES_POLLING_OK:
        connected(pg);
        break;
    default:
        rcpt_pg_fail_by_libpq(pg);
        break;
    }
}

/* PQfinish sends a good-bye; over TLS that one write could wait for a full socket buffer. */
void rcpt_connect_drop(struct rcpt_pg *pg)
{
    rcpt_connect_unwatch(pg);
    rcpt_resolver_free(pg->resolver);
    pg->resolver = NULL;
    PQfinish(pg->conn);
    pg->conn = NULL;
    pg->backend_pid = 0;
    pg->plans_are_small = false;
    rcpt_error_clear(&pg->last_words);
}

/* Takes effect with the next attempt to connect. */
void rcpt_pg_set_dsn(struct rcpt_pg *pg, const char *dsn)
{
    free((void *)(uintptr_t)pg->settings.dsn);
    pg->settings.dsn = rcpt_strdup(dsn);
}

/* ---- the log's lines ---- */

struct rcpt_outage *rcpt_connect_outage(struct rcpt_pg *pg)
{
    return pg->settings.outage != NULL ? pg->settings.outage : &pg->outage;
}

void rcpt_connect_note_down(struct rcpt_pg *pg, const struct rcpt_error *error)
{
    if (rcpt_outage_note(rcpt_connect_outage(pg), &pg->is_down, (int64_t)uv_now(pg->settings.loop),
                         error))
        rcpt_log_failure(RCPT_LOG_WARN, "postgres", error, "%s is not connected",
                         pg->settings.name);
}

/* At the end of an outage one line stands for all its connections. */
void rcpt_connect_note_up(struct rcpt_pg *pg)
{
    if (!pg->is_down)
        rcpt_log_info("postgres", "%s is connected", pg->settings.name);
    rcpt_outage_end(rcpt_connect_outage(pg), &pg->is_down, (int64_t)uv_now(pg->settings.loop),
                    "postgres", "PostgreSQL is connected again");
}

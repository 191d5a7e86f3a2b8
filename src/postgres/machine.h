/* The connection's state machine, shared by connection.c (states, answers), connect.c (until the
 * session is open) and setup.c (until statements may be sent). Private to src/postgres. */
#ifndef SRC_POSTGRES_MACHINE_H
#define SRC_POSTGRES_MACHINE_H

#include <libpq-fe.h>

#include "hosts.h"
#include "receiptd/base/backoff.h"
#include "receiptd/base/outage.h"
#include "submissions.h"

/* The states of a connection.
 *
 *             awaits                        woken by     bounded by
 * IDLE        rcpt_pg_start                 the owner    nothing.
 * RESOLVING   addresses of the hosts        lookups      connect_timeout_ms, until READY.
 * CONNECTING  libpq's hand-shake            the socket   the same.
 * SETTING_UP  identity, statements, plans   the socket   the same.
 * READY       submits and their answers     the socket   a tick that finds overdue answers.
 * LOSING      the loop, to answer as lost   the timer    the loop's next turn.
 * WAITING     the next attempt              the timer    retry_max_ms.
 * CLOSING     the loop, to answer and free  the timer    the loop's next turn. */
enum rcpt_pg_state {
    RCPT_PG_IDLE,
    RCPT_PG_RESOLVING,
    RCPT_PG_CONNECTING,
    RCPT_PG_SETTING_UP,
    RCPT_PG_READY,
    RCPT_PG_LOSING,
    RCPT_PG_WAITING,
    RCPT_PG_CLOSING,
    RCPT_PG_STATE__COUNT,
};

enum rcpt_pg_event {
    RCPT_PG_EVENT_START,
    RCPT_PG_EVENT_RESOLVED, /* all lookups have come back, with or without addresses */
    RCPT_PG_EVENT_SOCKET,   /* readable, writable or broken */
    RCPT_PG_EVENT_TIMER,
    RCPT_PG_EVENT_SET_UP, /* the last answer of the set-up was accepted */
    RCPT_PG_EVENT_FAIL,   /* the failure funnel: with an error */
    RCPT_PG_EVENT_CLOSE,
    RCPT_PG_EVENT__COUNT,
};

struct rcpt_pg {
    struct rcpt_pg_settings settings; /* strings are its own */
    enum rcpt_pg_state state;
    uv_timer_t timer;        /* of the state */
    uint64_t deadline_at_ms; /* of this attempt */

    struct rcpt_resolver *resolver;
    size_t rotation; /* moves on with every attempt that fails, so that the next begins with another
                        host */
    PGconn *conn;
    uv_poll_t *poll; /* one per socket; NULL when not watched */
    int polled;      /* its events */
    int backend_pid;

    struct rcpt_pg *next_peer;
    struct rcpt_submissions submissions;
    uint64_t heard_at_ms;               /* last sign of life, or when the oldest submit was sent */
    size_t check_count;                 /* statements that must use an index … */
    int *parameter_counts;              /* … and how many parameters each of them takes */
    bool plans_are_small;               /* chosen for a table next to empty: check again */
    struct rcpt_pg_identity identity;   /* of the server that was accepted last */
    struct rcpt_pg_identity found;      /* of the one that it is connecting to */
    struct rcpt_pg_lineage own_lineage; /* where the settings name none */
    struct rcpt_pg_lineage accepted;    /* servers that this database may follow */
    unsigned judged;                    /* changes of the lineage when it was compared last */

    struct rcpt_error failure;    /* why it is LOSING */
    struct rcpt_error last_words; /* a FATAL that the server sent unasked; code "" if none */
    uint64_t ready_at_ms;
    bool is_down;                /* its part in the outage */
    struct rcpt_outage outage;   /* of this connection, where the owner gives none to share */
    struct rcpt_backoff backoff; /* reset after a connection that held */

    void (*on_closed)(void *context);
    void *on_closed_context;
};

/* connection.c */
void rcpt_pg_raise(struct rcpt_pg *pg, enum rcpt_pg_event event, const struct rcpt_error *error);
void rcpt_pg_fail(struct rcpt_pg *pg, const struct rcpt_error *error);
void rcpt_pg_enter(struct rcpt_pg *pg, enum rcpt_pg_state state, const char *reason);
/* Sends buffered bytes and watches the socket for the event that libpq needs next. */
void rcpt_pg_settle(struct rcpt_pg *pg);
/* The connection's own message as a failure. */
void rcpt_pg_fail_by_libpq(struct rcpt_pg *pg);

/* peers.c */
void rcpt_peers_join(struct rcpt_pg *pg);
void rcpt_peers_leave(struct rcpt_pg *pg);

/* connect.c */
void rcpt_connect_resolve(struct rcpt_pg *pg);
void rcpt_connect_open(struct rcpt_pg *pg);
void rcpt_connect_step(struct rcpt_pg *pg);
void rcpt_connect_watch(struct rcpt_pg *pg, int events);
void rcpt_connect_unwatch(struct rcpt_pg *pg);
void rcpt_connect_drop(struct rcpt_pg *pg);
/* The log's lines: a cause once for all connections that share the outage. */
struct rcpt_outage *rcpt_connect_outage(struct rcpt_pg *pg);
void rcpt_connect_note_down(struct rcpt_pg *pg, const struct rcpt_error *error);
void rcpt_connect_note_up(struct rcpt_pg *pg);

/* setup.c */
void rcpt_setup_begin(struct rcpt_pg *pg);
void rcpt_setup_recheck_plans(struct rcpt_pg *pg);
/* False: the connection was failed, because the lineage has learnt since that this is the wrong
 * server. */
RCPT_MUST_CHECK bool rcpt_setup_is_accepted(struct rcpt_pg *pg);

#endif

/* Statements that are asked again and again over one connection, each of them one at a time.
 *
 * A module that works by a connection has one rcpt_asker for it and one rcpt_ask per statement,
 * both inside its own struct. Every statement is a transaction of its own. A failure is logged
 * here. A connection that is unusable after it is made again, and the owner asks again by its
 * timer. Transactions of several statements go by rcpt_pg_submit. Call from the loop's thread only.
 */
#ifndef RECEIPTD_POSTGRES_ASK_H
#define RECEIPTD_POSTGRES_ASK_H

#include "receiptd/postgres/arrays.h"
#include "receiptd/postgres/connection.h"

struct rcpt_asker {
    uv_loop_t *loop;
    struct rcpt_pg *pg;
    struct rcpt_pg_encoder *encoder; /* shared: parameters are copied when they are sent */
    const char *component;           /* of its lines in the log */
    const char *prefix;              /* of their text: "folds: ", or "" */
    bool up;                         /* the owner sets it in on_ready and on_down */
    bool closed;                     /* nothing more is asked; failures are not worth a line */
    unsigned in_flight;              /* statements without an answer */
    struct rcpt_outage outage;       /* its members are statements */
    /* Called after each answer or failure has been handled, so that the owner can send the next
     * statement; NULL: no callback. */
    void (*on_settled)(void *owner);
    void *owner;
};

/* The rows of a committed statement. */
typedef void (*rcpt_ask_on_answer)(void *context, const struct rcpt_pg_rows *rows);
/* The statement has failed, which is logged already. */
typedef void (*rcpt_ask_on_failed)(void *context, const struct rcpt_error *error);

struct rcpt_ask {
    struct rcpt_asker *asker;
    const char *statement; /* name of a prepared statement */
    const char *what;      /* it does, for the log: "roll-up of counters" */
    void *context;
    rcpt_ask_on_answer on_answer; /* NULL: the answer does not matter */
    rcpt_ask_on_failed on_failed; /* NULL: nothing to be done */
    int64_t every_ms;             /* at most so often; 0: as often as asked */
    int64_t retry_ms;             /* after a failure not sooner; 0: no such limit */
    int64_t at_ms;                /* not before this time of the loop; the owner may set it */
    int64_t sent_ms;              /* when it was sent last, as of the loop */
    bool in_flight, is_refused;
};

/* Connected, and not closed. */
bool rcpt_asker_is_ready(const struct rcpt_asker *asker);
/* False: there is no error. Otherwise the error is logged, unless the connection is gone, which
 * on_down logs. With the statement's mark `is_refused` a cause is logged once, with NULL each time.
 * If the error demands a new connection, it is made again. */
bool rcpt_asker_failed(struct rcpt_asker *asker, bool *is_refused, const char *what,
                       const struct rcpt_error *error);

/* The encoder for the parameters, empty; NULL: not now, for the statement is in flight, it is too
 * early, or the connection is not ready. */
struct rcpt_pg_encoder *rcpt_ask_begin(const struct rcpt_ask *ask);
/* Sends the statement with the encoder's parameters; after rcpt_ask_begin only. */
void rcpt_ask_send(struct rcpt_ask *ask);

#endif

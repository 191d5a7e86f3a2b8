/* One asynchronous PostgreSQL connection on the libuv loop: connect, prepare, submit, reconnect.
 *
 * Knows no business SQL: statements come in by name and text, transactions as lists of prepared
 * statements with one Sync. libpq-fe.h is used only in this folder. Call from the loop's thread
 * only. No call blocks: host names are resolved by uv_getaddrinfo, everything else is non-blocking
 * libpq.
 */
#ifndef RECEIPTD_POSTGRES_CONNECTION_H
#define RECEIPTD_POSTGRES_CONNECTION_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "receiptd/base/outage.h"
#include "receiptd/postgres/lineage.h"

struct rcpt_pg;
struct rcpt_pg_rows; /* the result of one statement, valid during the callback */

struct rcpt_pg_statement {
    const char *name;
    const char *sql;
    /* If set, the generic plan must reach this relation (or the tables behind it, if it is a view
     * or partitioned) by index conditions only; else the connection does not become ready. A
     * session with this check runs with enable_seqscan=off. A table next to empty is accepted and
     * checked again while it grows. NULL: not checked. */
    const char *must_use_index_on; /* relation name */
    const char *index_over;        /* what the hint says of that index; NULL: the message id */
};

/* Parameters are binary or text as libpq takes them; borrowed until the flush that copies them (the
 * call itself). */
struct rcpt_pg_params {
    int count;
    const char *const *values; /* NULL entry: SQL NULL */
    const int *lengths;
    const int *formats; /* 1 binary, 0 text */
};

struct rcpt_pg_query {
    const char *statement; /* name of a prepared statement */
    /* If set, the query prepares this text under that name. The owner asks for it on each new
     * connection; if PostgreSQL refuses the text, only this submit fails. */
    const char *prepare;
    struct rcpt_pg_params params;
    bool answer_at_once; /* its answer does not wait for the end of the transaction */
};

/* One answer per query, in order; fewer than queried after an error. `error` NULL: the Sync's
 * result arrived without any error: committed. Otherwise code = SQLSTATE ("" and decision
 * RECONNECT: connection lost, outcome unknown). Called exactly once per submit, never from inside
 * it. */
typedef void (*rcpt_pg_on_result)(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                                  const struct rcpt_error *error);

/* The connections of a process to one server. All zero: none yet. */
struct rcpt_pg_peers {
    struct rcpt_pg *first;
};

struct rcpt_pg_settings {
    uv_loop_t *loop;
    /* "lanes-0", "control": for logs and application_name receiptd/<instance>/<name> */
    const char *name;
    const char *instance;
    const char *dsn;    /* libpq conninfo or URI; own defaults are added where it says nothing */
    const char *schema; /* search_path; checked identifier */
    bool synchronous_commit; /* session default; off for lanes */
    bool read_only;          /* transactions refuse to write, and a standby is as good */
    int lock_timeout_ms, statement_timeout_ms;
    int connect_timeout_ms;
    int retry_min_ms, retry_max_ms; /* back-off with decorrelated jitter */
    /* prepared on every connect, in order; borrowed for life */
    const struct rcpt_pg_statement *statements;
    size_t statement_count;
    /* Shared by all connections to the same data; NULL: one of its own. Borrowed for life. */
    struct rcpt_pg_lineage *lineage;
    struct rcpt_outage *outage;  /* shared by connections to one server; NULL: its own */
    struct rcpt_pg_peers *peers; /* NULL: it is in no list. Borrowed for life */
    void *context;
    /* Connected, session set up, statements prepared, plans checked, server identity accepted. */
    void (*on_ready)(void *context, struct rcpt_pg *pg);
    /* The connection is gone (after its pending results were answered), or could not be made; a
     * retry is scheduled. Called once per failure; error->hint has the remedy. */
    void (*on_down)(void *context, struct rcpt_pg *pg, const struct rcpt_error *error);
};

struct rcpt_pg_identity {       /* of the server, read at connect */
    uint64_t system_identifier; /* 0 until first connected */
    int32_t timeline;
    int32_t server_version;
};

struct rcpt_pg *rcpt_pg_new(const struct rcpt_pg_settings *settings);
void rcpt_pg_start(struct rcpt_pg *pg); /* begins to connect; retries until it is closed */
/* Closes; pending results are answered as lost; on_closed is called when memory may go (it has been
 * freed). */
void rcpt_pg_close(struct rcpt_pg *pg, void (*on_closed)(void *context), void *context);

/* Sets the dsn for future connections; the present one stays. Copied. */
void rcpt_pg_set_dsn(struct rcpt_pg *pg, const char *dsn);

/* Sets other texts for the same names, in the same order; borrowed for life. A connection that is
 * up prepares changed texts after the batches submitted before, and later batches use them; their
 * plans are checked again. If PostgreSQL refuses one, the connection goes down. */
void rcpt_pg_set_statements(struct rcpt_pg *pg, const struct rcpt_pg_statement *statements);

bool rcpt_pg_is_ready(const struct rcpt_pg *pg);
int rcpt_pg_backend_pid(const struct rcpt_pg *pg); /* 0 when not connected */
struct rcpt_pg_identity rcpt_pg_identity(const struct rcpt_pg *pg);

/* Queues the queries and ONE Sync: one implicit transaction, unless they begin one or are part of
 * one that was begun. Several submits may be in flight; they are executed in order. Parameters are
 * copied before it returns. Must be ready. */
void rcpt_pg_submit(struct rcpt_pg *pg, const struct rcpt_pg_query *queries, size_t query_count,
                    rcpt_pg_on_result on_result, void *context);

/* Drops the connection and connects again after the back-off (for RECONNECT decisions of the
 * caller). */
void rcpt_pg_reconnect(struct rcpt_pg *pg, const struct rcpt_error *reason);

/* The connection after `before` (NULL: the first); NULL: there are no more. */
struct rcpt_pg *rcpt_pg_next(const struct rcpt_pg_peers *peers, const struct rcpt_pg *before);
const char *rcpt_pg_name(const struct rcpt_pg *pg);
/* For how long the oldest submit has waited for an answer; 0: none does. */
int64_t rcpt_pg_waiting_ms(const struct rcpt_pg *pg);
/* The session that holds the lock that this one waits for, in words, "": none. It is the hint of a
 * lock time-out. Copied. */
void rcpt_pg_set_holder(struct rcpt_pg *pg, const char *holder);

/* When it came, as of uv_hrtime(). Together with the end of its transaction, unless it was asked
 * for at once. */
uint64_t rcpt_pg_rows_arrived_ns(const struct rcpt_pg_rows *rows);

/* ---- reading results (all in text format) ---- */
size_t rcpt_pg_rows_count(const struct rcpt_pg_rows *rows);
/* The command tag of PostgreSQL: "INSERT 0 3". COMMIT of a failed block is "ROLLBACK". */
const char *rcpt_pg_rows_command(const struct rcpt_pg_rows *rows);
const char *rcpt_pg_rows_text(const struct rcpt_pg_rows *rows, size_t row,
                              int column); /* NULL: SQL NULL */
int64_t rcpt_pg_rows_int(const struct rcpt_pg_rows *rows, size_t row, int column); /* 0 for NULL */
bool rcpt_pg_rows_bool(const struct rcpt_pg_rows *rows, size_t row, int column);

/* Finds a weakness of a connection string, and the remedy; NULL: there is none. Reads libpq's
 * environment where the string is silent. The texts contain neither hosts nor secrets. */
const char *rcpt_pg_weakness(const char *dsn, const char **hint);

/* Decision for an SQLSTATE (pure): RETRY 40001 40P01 55P03 57014; REJECT classes 22, 23, 54 and
 * P0001; everything else RECONNECT. Our own (sqlstate.h) are RETRY; their codes differ. */
enum rcpt_decision rcpt_pg_decide(const char *sqlstate);
/* The remedy for operators, e.g. 42P01 → "run receiptd migrate"; "" if there is none. */
const char *rcpt_pg_hint(const char *sqlstate);
/* The same for the message of a connection that failed. Its text counts first: troubles of TLS have
 * no SQLSTATE, or a general one. */
const char *rcpt_pg_hint_of_message(const char *sqlstate, const char *message);

#endif

/* An owner of a connection for the tests, and a second way to the server. RECEIPTD_TEST_DSN names
 * the server: a role that may create schemas and roles and end sessions; tables go to the schema
 * receiptd_test_connection. RECEIPTD_TEST_DEBUG shows the connection's own log. */
#ifndef TESTS_INTEGRATION_PG_OWNER_H
#define TESTS_INTEGRATION_PG_OWNER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libpq-fe.h>
#include <unistd.h>

#include "receiptd/base/log.h"
#include "receiptd/postgres/arrays.h"
#include "receiptd/postgres/connection.h"

#define SCHEMA     "receiptd_test_connection"
#define MAX_SAID   64u
#define PATIENCE_S 60

static const char *dsn;

/* An owner that writes down what it is told. */
struct owner {
    uv_loop_t loop;
    uv_timer_t guard;
    uint64_t started_ns;
    struct rcpt_pg *pg;
    int ready, down, closed, committed, failed, rows, answers; /* rows: before the last error */
    struct rcpt_error error;                                   /* of the last on_down */
    struct rcpt_error answer;                                  /* of the last failed submit */
    char order[MAX_SAID]; /* c committed, f failed, d down, r ready */
    char text[256];
    int64_t number;
    void (*on_answer)(struct owner *owner); /* what the owner does from within */
    void (*on_ready)(struct owner *owner);
    void (*on_down)(struct owner *owner);
};

static inline void said(struct owner *owner, char what)
{
    size_t length = strlen(owner->order);
    if (length + 1 < MAX_SAID)
        owner->order[length] = what;
}

static inline void on_ready(void *context, struct rcpt_pg *pg)
{
    struct owner *owner = context;
    assert_ptr_equal(pg, owner->pg);
    assert_true(rcpt_pg_is_ready(pg));
    assert_true(rcpt_pg_backend_pid(pg) > 0);
    owner->ready++;
    said(owner, 'r');
    if (owner->on_ready != NULL)
        owner->on_ready(owner);
}

static inline void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct owner *owner = context;
    assert_false(rcpt_pg_is_ready(pg));
    assert_int_equal(rcpt_pg_backend_pid(pg), 0);
    assert_int_equal(error->decision, RCPT_DECISION_RECONNECT);
    owner->down++;
    owner->error = *error;
    said(owner, 'd');
    if (owner->on_down != NULL)
        owner->on_down(owner);
}

static inline void on_closed(void *context)
{
    ((struct owner *)context)->closed++;
}

static inline void on_guard(uv_timer_t *timer)
{
    struct owner *owner = timer->data;
    if (uv_hrtime() - owner->started_ns < PATIENCE_S * UINT64_C(1000000000))
        return;
    fprintf(stderr, "order %s, last error %s: %s (%s)\n", owner->order, owner->error.code,
            owner->error.text, owner->error.hint);
    abort(); /* a wait without end is a failed test; the stack shows which */
}

static inline void on_answer(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                             const struct rcpt_error *error)
{
    struct owner *owner = context;
    owner->answers++;
    if (error != NULL) {
        owner->failed++;
        owner->answer = *error;
        owner->rows = (int)row_count;
        said(owner, 'f');
    } else {
        owner->committed++;
        said(owner, 'c');
        if (row_count > 0 && rcpt_pg_rows_count(rows[row_count - 1]) > 0) {
            const char *text = rcpt_pg_rows_text(rows[row_count - 1], 0, 0);
            snprintf(owner->text, sizeof(owner->text), "%s", text != NULL ? text : "(null)");
            owner->number = rcpt_pg_rows_int(rows[row_count - 1], 0, 0);
        }
    }
    if (owner->on_answer != NULL)
        owner->on_answer(owner);
}

static const struct rcpt_pg_statement statements[] = {
    {"round_trip",
     "SELECT string_agg(concat_ws('/', coalesce(t, 'NULL'), s, i, b, encode(y, 'hex'), z),"
     " ' ' ORDER BY n) || $7 || encode($8, 'hex') FROM unnest($1::text[], $2::int2[],"
     " $3::int4[], $4::int8[], $5::bytea[], $6::timestamptz[])"
     " WITH ORDINALITY AS e(t, s, i, b, y, z, n)",
     NULL, NULL},
    {"add", "INSERT INTO numbers VALUES ($1::int4) RETURNING n", NULL, NULL},
    {"divide", "SELECT 1 / $1::int4", NULL, NULL},
    {"later", "INSERT INTO deferred VALUES ($1::int4)", NULL, NULL},
    {"sleep", "SELECT pg_sleep($1::int4)::text", NULL, NULL},
    {"lengths", "SELECT sum(length(y)) FROM unnest($1::bytea[]) y", NULL, NULL},
    {"session",
     "SELECT concat_ws('|', current_setting('application_name'), current_setting('search_path'),"
     " current_setting('synchronous_commit'), current_setting('lock_timeout'),"
     " current_setting('statement_timeout'),"
     " current_setting('idle_in_transaction_session_timeout'), current_setting('jit'),"
     " current_setting('client_connection_check_interval'), current_setting('plan_cache_mode'),"
     " current_setting('transaction_isolation'), current_setting('client_encoding'),"
     " split_part(current_setting('datestyle'), ',', 1), current_setting('timezone'))",
     NULL, NULL},
    {"count", "SELECT count(*) FROM numbers", NULL, NULL},
};

static inline struct rcpt_pg_settings settings_of(struct owner *owner, const char *with_dsn)
{
    return (struct rcpt_pg_settings){
        .loop = &owner->loop,
        .name = "lane-0",
        .instance = "test",
        .dsn = with_dsn,
        .schema = SCHEMA,
        .lock_timeout_ms = 5000,
        .statement_timeout_ms = 10000,
        .connect_timeout_ms = 5000,
        .retry_min_ms = 10,
        .retry_max_ms = 100,
        .statements = statements,
        .statement_count = sizeof(statements) / sizeof(statements[0]),
        .context = owner,
        .on_ready = on_ready,
        .on_down = on_down,
    };
}

static inline struct owner *owner_new(void)
{
    struct owner *owner = calloc(1, sizeof(*owner));
    assert_non_null(owner);
    assert_int_equal(uv_loop_init(&owner->loop), 0);
    assert_int_equal(uv_timer_init(&owner->loop, &owner->guard), 0);
    owner->guard.data = owner;
    owner->started_ns = uv_hrtime();
    uv_timer_start(&owner->guard, on_guard, 10, 10); /* also lets a wait look at its condition */
    uv_unref((uv_handle_t *)&owner->guard);
    return owner;
}

static inline struct owner *owner_with(const struct rcpt_pg_settings *settings, struct owner *owner)
{
    owner->pg = rcpt_pg_new(settings);
    rcpt_pg_start(owner->pg);
    return owner;
}

static inline struct owner *owner_of(const char *with_dsn)
{
    struct owner *owner = owner_new();
    struct rcpt_pg_settings settings = settings_of(owner, with_dsn);
    return owner_with(&settings, owner);
}

/* Waits for a condition, not for a time. */
#define until(owner, condition)                                                                    \
    do {                                                                                           \
        while (!(condition))                                                                       \
            uv_run(&(owner)->loop, UV_RUN_ONCE);                                                   \
    } while (0)

static inline void on_handle(uv_handle_t *handle, void *context)
{
    struct owner *owner = context;
    if (handle != (uv_handle_t *)&owner->guard)
        fail_msg("a handle of type %s is left", uv_handle_type_name(handle->type));
}

static inline void loop_must_be_clean(struct owner *owner)
{
    uv_run(&owner->loop, UV_RUN_DEFAULT); /* ends when nothing is left that could wake it */
    assert_int_equal(owner->closed, 1);
    uv_walk(&owner->loop, on_handle, owner);
    uv_close((uv_handle_t *)&owner->guard, NULL);
    uv_run(&owner->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&owner->loop), 0);
    free(owner);
}

static inline void owner_close(struct owner *owner)
{
    rcpt_pg_close(owner->pg, on_closed, owner);
    loop_must_be_clean(owner);
}

/* ---- a second way to the server ---- */

static inline void admin_at(const char *with_dsn, const char *sql, char *answer, size_t capacity)
{
    PGconn *conn = PQconnectdb(with_dsn);
    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    PQclear(PQexec(conn, "SET client_min_messages = error"));
    PGresult *result = PQexec(conn, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(conn));
    if (answer != NULL)
        snprintf(answer, capacity, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    PQfinish(conn);
}

static inline void admin(const char *sql)
{
    admin_at(dsn, sql, NULL, 0);
}

static inline void terminate(const struct rcpt_pg *pg)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%d)", rcpt_pg_backend_pid(pg));
    admin(sql);
}

static inline void submit_int(struct owner *owner, const char *statement, int32_t value)
{
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_pg_query query = {.statement = statement};
    rcpt_pg_add_int4(encoder, value);
    rcpt_pg_encoder_params(encoder, &query.params);
    int answers = owner->answers;
    rcpt_pg_submit(owner->pg, &query, 1, on_answer, owner);
    assert_int_equal(owner->answers, answers); /* never from inside */
    rcpt_pg_encoder_free(encoder);
}

static inline struct rcpt_error wish(void)
{
    struct rcpt_error error;
    rcpt_error_set(&error, RCPT_DECISION_RECONNECT, "WISH", "owner wants a new connection");
    return error;
}

static inline void server_port(char *port, size_t capacity)
{
    admin_at(dsn, "SHOW port", port, capacity);
}

static inline int make_schema(void **state)
{
    (void)state;
    admin("DROP SCHEMA IF EXISTS " SCHEMA " CASCADE; CREATE SCHEMA " SCHEMA ";"
          "CREATE TABLE " SCHEMA ".numbers (n int);"
          "CREATE TABLE " SCHEMA ".deferred (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    return 0;
}

static inline int drop_schema(void **state)
{
    (void)state;
    admin("DROP SCHEMA IF EXISTS " SCHEMA " CASCADE; DROP ROLE IF EXISTS receiptd_test_password");
    return 0;
}

/* False, with the reason: there is no server. */
static inline bool has_server(void)
{
    dsn = getenv("RECEIPTD_TEST_DSN");
    if (dsn == NULL)
        printf("skipped: RECEIPTD_TEST_DSN is not set\n");
    if (getenv("RECEIPTD_TEST_DEBUG") != NULL)
        rcpt_log_configure(RCPT_LOG_DEBUG, RCPT_LOG_LOGFMT);
    return dsn != NULL;
}

#endif

/* The connection against a real server. RECEIPTD_TEST_DSN names it (a role that may create schemas
 * and end sessions; tables go to the schema receiptd_test_connection); without it everything is
 * skipped. RECEIPTD_TEST_RESTART, a command that restarts the server, and RECEIPTD_TEST_STANDBY,
 * the socket directory of a standby with the same port, switch on more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "receiptd/base/log.h"
#include "receiptd/postgres/arrays.h"
#include "receiptd/postgres/connection.h"

#define SCHEMA     "receiptd_test_connection"
#define MAX_SAID   64u
#define PATIENCE_S 20

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

static void said(struct owner *owner, char what)
{
    size_t length = strlen(owner->order);
    if (length + 1 < MAX_SAID)
        owner->order[length] = what;
}

static void on_ready(void *context, struct rcpt_pg *pg)
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

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
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

static void on_closed(void *context)
{
    ((struct owner *)context)->closed++;
}

static void on_guard(uv_timer_t *timer)
{
    struct owner *owner = timer->data;
    if (uv_hrtime() - owner->started_ns < PATIENCE_S * UINT64_C(1000000000))
        return;
    fprintf(stderr, "order %s, last error %s: %s (%s)\n", owner->order, owner->error.code,
            owner->error.text, owner->error.hint);
    abort(); /* a wait without end is a failed test; the stack shows which */
}

static void on_answer(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
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
     NULL},
    {"add", "INSERT INTO numbers VALUES ($1::int4) RETURNING n", NULL},
    {"divide", "SELECT 1 / $1::int4", NULL},
    {"later", "INSERT INTO deferred VALUES ($1::int4)", NULL},
    {"sleep", "SELECT pg_sleep($1::int4)::text", NULL},
    {"lengths", "SELECT sum(length(y)) FROM unnest($1::bytea[]) y", NULL},
    {"count", "SELECT count(*) FROM numbers", NULL},
};

static struct rcpt_pg_settings settings_of(struct owner *owner, const char *with_dsn)
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

static struct owner *owner_new(void)
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

static struct owner *owner_with(const struct rcpt_pg_settings *settings, struct owner *owner)
{
    owner->pg = rcpt_pg_new(settings);
    rcpt_pg_start(owner->pg);
    return owner;
}

static struct owner *owner_of(const char *with_dsn)
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

static void on_handle(uv_handle_t *handle, void *context)
{
    struct owner *owner = context;
    if (handle != (uv_handle_t *)&owner->guard)
        fail_msg("a handle of type %s is left", uv_handle_type_name(handle->type));
}

static void loop_must_be_clean(struct owner *owner)
{
    uv_run(&owner->loop, UV_RUN_DEFAULT); /* ends when nothing is left that could wake it */
    assert_int_equal(owner->closed, 1);
    uv_walk(&owner->loop, on_handle, owner);
    uv_close((uv_handle_t *)&owner->guard, NULL);
    uv_run(&owner->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&owner->loop), 0);
    free(owner);
}

static void owner_close(struct owner *owner)
{
    rcpt_pg_close(owner->pg, on_closed, owner);
    loop_must_be_clean(owner);
}

/* ---- a second way to the server ---- */

static void admin_at(const char *with_dsn, const char *sql, char *answer, size_t capacity)
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

static void admin(const char *sql)
{
    admin_at(dsn, sql, NULL, 0);
}

static void terminate(const struct rcpt_pg *pg)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%d)", rcpt_pg_backend_pid(pg));
    admin(sql);
}

static void submit_int(struct owner *owner, const char *statement, int32_t value)
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

/* ---- the promises ---- */

static void every_type_comes_back_as_it_was_sent(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_pg_query query = {.statement = "round_trip"};
    until(owner, owner->ready >= 1);
    assert_true(rcpt_pg_identity(owner->pg).system_identifier != 0);
    assert_true(rcpt_pg_identity(owner->pg).timeline >= 1);
    assert_true(rcpt_pg_identity(owner->pg).server_version >= 130000);
    rcpt_pg_begin_text_array(encoder, 2);
    rcpt_pg_put_bytes(encoder, "m\xc3\xa4", 3);
    rcpt_pg_put_null(encoder);
    rcpt_pg_begin_int2_array(encoder, 2);
    rcpt_pg_put_int2(encoder, -600);
    rcpt_pg_put_int2(encoder, 600);
    rcpt_pg_begin_int4_array(encoder, 2);
    rcpt_pg_put_int4(encoder, INT32_MIN);
    rcpt_pg_put_int4(encoder, 1);
    rcpt_pg_begin_int8_array(encoder, 2);
    rcpt_pg_put_int8(encoder, INT64_MAX);
    rcpt_pg_put_int8(encoder, 1);
    rcpt_pg_begin_bytea_array(encoder, 2);
    rcpt_pg_put_bytes(encoder, "\0\xff", 2);
    rcpt_pg_put_bytes(encoder, "", 0);
    rcpt_pg_begin_timestamp_array(encoder, 2);
    rcpt_pg_put_timestamp(encoder, 0);
    rcpt_pg_put_timestamp(encoder, INT64_C(1700000000123456));
    rcpt_pg_add_text(encoder, "|park|");
    memcpy(rcpt_pg_add_bytea(encoder, 2), "ok", 2);
    rcpt_pg_encoder_params(encoder, &query.params);
    rcpt_pg_submit(owner->pg, &query, 1, on_answer, owner);
    rcpt_pg_encoder_reset(encoder); /* parameters are copied before submit returns */
    rcpt_pg_add_text(encoder, "overwritten");
    until(owner, owner->answers >= 1);
    assert_string_equal(owner->text, "m\xc3\xa4/-600/-2147483648/9223372036854775807/00ff/"
                                     "1970-01-01 00:00:00+00 NULL/600/1/1//"
                                     "2023-11-14 22:13:20.123456+00|park|6f6b");
    rcpt_pg_encoder_free(encoder);
    owner_close(owner);
}

static void an_error_stops_its_transaction_and_not_the_next(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    admin("TRUNCATE " SCHEMA ".numbers");
    until(owner, owner->ready >= 1);
    struct rcpt_pg_encoder *zero = rcpt_pg_encoder_new();
    struct rcpt_pg_query batch[3] = {
        {.statement = "add"}, {.statement = "divide"}, {.statement = "add"}};
    rcpt_pg_add_int4(zero, 0);
    for (size_t index = 0; index < 3; index++)
        rcpt_pg_encoder_params(zero, &batch[index].params);
    rcpt_pg_submit(owner->pg, batch, 3, on_answer, owner);
    submit_int(owner, "add", 5);
    until(owner, owner->answers >= 2);
    assert_string_equal(owner->answer.code, "22012");
    assert_int_equal(owner->answer.decision, RCPT_DECISION_REJECT);
    assert_int_equal(owner->rows, 1); /* what came before the error */
    assert_string_equal(owner->order, "rfc");
    assert_int_equal(owner->number, 5);
    struct rcpt_pg_query count = {.statement = "count"};
    rcpt_pg_submit(owner->pg, &count, 1, on_answer, owner);
    until(owner, owner->answers >= 3);
    assert_int_equal(owner->number, 1); /* nothing of the first batch stayed */
    rcpt_pg_encoder_free(zero);
    owner_close(owner);
}

static void a_deferred_constraint_fails_where_only_the_sync_was_due(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    admin("TRUNCATE " SCHEMA ".deferred");
    until(owner, owner->ready >= 1);
    submit_int(owner, "later", 1);
    submit_int(owner, "later", 1);
    submit_int(owner, "later", 2);
    until(owner, owner->answers >= 3);
    assert_string_equal(owner->order, "rcfc");
    assert_string_equal(owner->answer.code, "23505");
    assert_null(strstr(owner->answer.text, "(1)")); /* DETAIL quotes the row */
    owner_close(owner);
}

static void large_batches_flow_while_answers_come_back(void **state)
{
    (void)state;
    static char block[64 * 1024];
    struct owner *owner = owner_of(dsn);
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    until(owner, owner->ready >= 1);
    memset(block, 'x', sizeof(block));
    for (int batch = 0; batch < 12; batch++) {
        struct rcpt_pg_query query = {.statement = "lengths"};
        rcpt_pg_encoder_reset(encoder);
        rcpt_pg_begin_bytea_array(encoder, 48);
        for (int element = 0; element < 48; element++)
            rcpt_pg_put_bytes(encoder, block, sizeof(block));
        rcpt_pg_encoder_params(encoder, &query.params);
        rcpt_pg_submit(owner->pg, &query, 1, on_answer, owner);
    }
    until(owner, owner->answers >= 12);
    assert_int_equal(owner->committed, 12);
    assert_int_equal(owner->number, 48 * (int)sizeof(block));
    rcpt_pg_encoder_free(encoder);
    owner_close(owner);
}

static void an_idle_connection_that_is_ended_comes_back(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    until(owner, owner->ready >= 1);
    int before = rcpt_pg_backend_pid(owner->pg);
    terminate(owner->pg);
    until(owner, owner->ready >= 2);
    assert_string_equal(owner->order, "rdr");
    assert_string_equal(owner->error.code, "57P01");
    assert_true(strlen(owner->error.hint) > 0);
    assert_int_not_equal(before, rcpt_pg_backend_pid(owner->pg));
    submit_int(owner, "add", 1);
    until(owner, owner->committed >= 1);
    owner_close(owner);
}

static void what_was_in_flight_is_unknown_and_told_before_the_loss(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    until(owner, owner->ready >= 1);
    submit_int(owner, "add", 1);
    submit_int(owner, "sleep", 30);
    submit_int(owner, "add", 2);
    until(owner, owner->committed >= 1);
    terminate(owner->pg);
    until(owner, owner->ready >= 2);
    assert_string_equal(owner->order, "rcffdr");
    assert_string_equal(owner->answer.code, "");
    assert_int_equal(owner->answer.decision, RCPT_DECISION_RECONNECT);
    assert_string_equal(owner->error.code, "57P01");
    owner_close(owner);
}

static void a_server_that_hangs_is_given_up(void **state)
{
    (void)state;
    struct owner *owner = owner_new();
    struct rcpt_pg_settings settings = settings_of(owner, dsn);
    settings.statement_timeout_ms = 300;
    settings.connect_timeout_ms = 700;
    owner_with(&settings, owner);
    until(owner, owner->ready >= 1);
    int pid = rcpt_pg_backend_pid(owner->pg);
    if (kill(pid, SIGSTOP) != 0) {
        owner_close(owner);
        print_message("skipped: the server's processes are not ours to stop\n");
        skip();
    }
    submit_int(owner, "add", 1);
    until(owner, owner->down >= 1);
    kill(pid, SIGCONT);
    assert_string_equal(owner->error.code, "RDTIMEOUT");
    until(owner, owner->ready >= 2);
    assert_string_equal(owner->order, "rfdr");
    owner_close(owner);
}

static void a_restart_of_the_server_is_survived(void **state)
{
    (void)state;
    const char *command = getenv("RECEIPTD_TEST_RESTART");
    if (command == NULL) {
        print_message("skipped: RECEIPTD_TEST_RESTART is not set\n");
        skip();
    }
    struct owner *owner = owner_of(dsn);
    until(owner, owner->ready >= 1);
    submit_int(owner, "sleep", 30);
    until(owner, owner->answers >= 0 && uv_run(&owner->loop, UV_RUN_NOWAIT) != 0);
    assert_int_equal(system(command), 0);
    until(owner, owner->ready >= 2);
    assert_int_equal(strncmp(owner->order, "rfd", 3), 0);
    submit_int(owner, "add", 1);
    until(owner, owner->committed >= 1);
    owner_close(owner);
}

static int listener_new(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void server_port(char *port, size_t capacity)
{
    admin_at(dsn, "SHOW port", port, capacity);
}

static void what_is_wrong_is_said_with_a_hint_and_tried_again(void **state)
{
    (void)state;
    int closed_port, fd = listener_new(&closed_port);
    char port[16], rows[5][256];
    close(fd);
    server_port(port, sizeof(port));
    snprintf(rows[0], sizeof(rows[0]), "host=127.0.0.1 port=%d dbname=x user=x", closed_port);
    snprintf(rows[1], sizeof(rows[1]), "%s dbname=receiptd_no_such_database", dsn);
    snprintf(rows[2], sizeof(rows[2]), "%s user=receiptd_no_such_role", dsn);
    snprintf(rows[3], sizeof(rows[3]), "host=bad..name port=%s dbname=x user=x", port);
    snprintf(rows[4], sizeof(rows[4]), "host=/no/such/directory dbname=x user=x");
    static const char *const codes[] = {"", "3D000", "28000", "RDHOST", ""};
    for (size_t index = 0; index < 5; index++) {
        struct owner *owner = owner_of(rows[index]);
        until(owner, owner->down >= 3);
        assert_string_equal(owner->error.code, codes[index]);
        assert_true(strlen(owner->error.hint) > 0 && strlen(owner->error.text) > 0);
        assert_null(strchr(owner->error.text, '\n'));
        assert_string_equal(owner->order, "ddd");
        owner_close(owner);
    }
}

static void a_wrong_password_is_named_and_not_shown(void **state)
{
    (void)state;
    char port[16], with_dsn[256];
    server_port(port, sizeof(port));
    admin("DO $$ BEGIN CREATE ROLE receiptd_test_password LOGIN PASSWORD 'right';"
          " EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    snprintf(with_dsn, sizeof(with_dsn),
             "host=127.0.0.1 port=%s dbname=postgres user=receiptd_test_password password=wr0ng",
             port);
    PGconn *conn = PQconnectdb(with_dsn);
    bool is_trusted = PQstatus(conn) == CONNECTION_OK;
    PQfinish(conn);
    if (is_trusted) {
        print_message("skipped: the server asks receiptd_test_password for no password\n");
        skip();
    }
    struct owner *owner = owner_of(with_dsn);
    until(owner, owner->down >= 2);
    assert_string_equal(owner->error.code, "28P01");
    assert_non_null(strstr(owner->error.hint, "password"));
    assert_null(strstr(owner->error.text, "wr0ng"));
    owner_close(owner);
}

static void a_host_that_never_answers_costs_one_deadline(void **state)
{
    (void)state;
    int silent_port, fd = listener_new(&silent_port);
    char port[16], with_dsn[512], database[64], user[64];
    server_port(port, sizeof(port));
    admin_at(dsn, "SELECT current_database()", database, sizeof(database));
    admin_at(dsn, "SELECT current_user", user, sizeof(user));
    struct owner *owner = owner_new();
    struct rcpt_pg_settings settings = settings_of(owner, with_dsn);
    settings.connect_timeout_ms = 300;
    snprintf(with_dsn, sizeof(with_dsn), "host=127.0.0.1 port=%d dbname=x user=x", silent_port);
    owner_with(&settings, owner);
    until(owner, owner->down >= 2);
    assert_string_equal(owner->error.code, "RDTIMEOUT");
    owner_close(owner);
    /* With another host behind it the next attempt begins there. */
    owner = owner_new();
    snprintf(with_dsn, sizeof(with_dsn), "host=127.0.0.1,localhost port=%d,%s dbname=%s user=%s",
             silent_port, port, database, user);
    settings = settings_of(owner, with_dsn);
    settings.connect_timeout_ms = 1000;
    owner_with(&settings, owner);
    until(owner, owner->ready >= 1);
    assert_string_equal(owner->order, "dr");
    owner_close(owner);
    close(fd);
}

static void a_missing_table_says_migrate_and_recovers_without_restart(void **state)
{
    (void)state;
    static const struct rcpt_pg_statement missing[] = {
        {"fine", "SELECT 1", NULL}, {"apply", "SELECT * FROM comes_later", NULL}};
    admin("DROP TABLE IF EXISTS " SCHEMA ".comes_later");
    struct owner *owner = owner_new();
    struct rcpt_pg_settings settings = settings_of(owner, dsn);
    settings.statements = missing;
    settings.statement_count = 2;
    owner_with(&settings, owner);
    until(owner, owner->down >= 1);
    assert_string_equal(owner->error.code, "42P01");
    assert_string_equal(owner->error.text, "statement \"apply\" cannot be prepared: relation "
                                           "\"comes_later\" does not exist");
    assert_non_null(strstr(owner->error.hint, "receiptd migrate"));
    admin("CREATE TABLE " SCHEMA ".comes_later (n int)");
    until(owner, owner->ready >= 1);
    owner_close(owner);
}

#define UPDATE_SQL                                                                                 \
    "UPDATE mapped m SET status = greatest(m.status, e.s) FROM unnest($1::text[], $2::int2[]) "    \
    "e(i, s)"                                                                                      \
    " WHERE m.message_id = e.i AND e.s > m.status RETURNING 1"

static struct owner *owner_of_update(void)
{
    static const struct rcpt_pg_statement update[] = {{"fine", "SELECT $1::int4", NULL},
                                                      {"apply", UPDATE_SQL, "mapped"}};
    struct owner *owner = owner_new();
    struct rcpt_pg_settings settings = settings_of(owner, dsn);
    settings.statements = update;
    settings.statement_count = 2;
    return owner_with(&settings, owner);
}

static void make_inbox(const char *key, int rows, bool analyze)
{
    char sql[1024];
    snprintf(sql, sizeof(sql),
             "DROP TABLE IF EXISTS " SCHEMA ".base CASCADE;"
             "CREATE TABLE " SCHEMA
             ".base (message_id text COLLATE \"C\" %s, status smallint DEFAULT 0);"
             "CREATE VIEW " SCHEMA ".mapped AS SELECT * FROM " SCHEMA ".base;"
             "INSERT INTO " SCHEMA ".base SELECT 'm' || g FROM generate_series(1, %d) g; %s",
             key, rows, analyze ? "ANALYZE " SCHEMA ".base" : "");
    admin(sql);
}

static void a_statement_that_would_scan_the_inbox_is_refused(void **state)
{
    (void)state;
    static const int sizes[] = {0, 5, 5000};
    for (size_t index = 0; index < 3; index++) {
        make_inbox("", sizes[index], true);
        struct owner *owner = owner_of_update();
        until(owner, owner->down >= 1);
        assert_int_equal(owner->ready, 0);
        assert_string_equal(owner->error.code, "RDPLAN");
        assert_string_equal(owner->error.text,
                            "statement \"apply\" would scan mapped sequentially");
        assert_string_equal(owner->error.hint,
                            "mapped needs an index on the message id; run analyze");
        admin("CREATE UNIQUE INDEX ON " SCHEMA ".base (message_id)");
        until(owner, owner->ready >= 1); /* without restart */
        owner_close(owner);
    }
}

static void a_keyed_inbox_is_accepted_at_any_size(void **state)
{
    (void)state;
    static const int sizes[] = {0, 1, 30, 5000};
    for (size_t index = 0; index < 8; index++) {
        make_inbox("PRIMARY KEY", sizes[index / 2], index % 2 == 0);
        struct owner *owner = owner_of_update();
        until(owner, owner->ready >= 1);
        assert_int_equal(owner->down, 0);
        owner_close(owner);
    }
}

/* The plan of an empty table would read the whole index of the full one, batch for batch, until
 * somebody analyzes. */
static void a_plan_made_for_an_empty_inbox_does_not_outlive_its_growth(void **state)
{
    (void)state;
    char calls[64];
    make_inbox("PRIMARY KEY", 0, true);
    struct owner *owner = owner_of_update();
    until(owner, owner->ready >= 1);
    admin("INSERT INTO " SCHEMA ".base SELECT 'm' || g FROM generate_series(1, 50000) g");
    uint64_t start = uv_hrtime();
    until(owner, uv_hrtime() - start > UINT64_C(2500000000)); /* two ticks */
    admin_at(dsn, "SELECT pg_stat_force_next_flush()", NULL, 0);
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_pg_query query = {.statement = "apply"};
    rcpt_pg_begin_text_array(encoder, 1);
    rcpt_pg_put_bytes(encoder, "m7", 2);
    rcpt_pg_begin_int2_array(encoder, 1);
    rcpt_pg_put_int2(encoder, 300);
    rcpt_pg_encoder_params(encoder, &query.params);
    rcpt_pg_submit(owner->pg, &query, 1, on_answer, owner);
    until(owner, owner->committed >= 1);
    assert_int_equal(owner->number, 1);
    rcpt_pg_encoder_free(encoder);
    owner_close(owner); /* the backend writes its statistics when it ends */
    for (int attempt = 0; attempt < 100; attempt++) {
        admin_at(dsn,
                 "SELECT idx_tup_read FROM pg_stat_all_indexes WHERE schemaname = '" SCHEMA
                 "' AND indexrelname = 'base_pkey'",
                 calls, sizeof(calls));
        if (strcmp(calls, "0") != 0)
            break;
        usleep(20000);
    }
    assert_string_equal(calls, "1");
}

/* ---- the owner acts from within ---- */

static struct rcpt_error wish(void)
{
    struct rcpt_error error;
    rcpt_error_set(&error, RCPT_DECISION_RECONNECT, "WISH", "owner wants a new connection");
    return error;
}

static void reconnect_once(struct owner *owner)
{
    struct rcpt_error error = wish();
    if (owner->ready == 1)
        rcpt_pg_reconnect(owner->pg, &error);
}

static void reconnect_and_submit(struct owner *owner)
{
    reconnect_once(owner);
    if (owner->answers == 1)
        submit_int(owner, "add", 9); /* too late: answered as lost, from the loop */
}

static void close_once(struct owner *owner)
{
    if (owner->closed == 0)
        rcpt_pg_close(owner->pg, on_closed, owner);
    owner->on_answer = owner->on_ready = owner->on_down = NULL;
}

static void submit_another(struct owner *owner)
{
    if (owner->answers < 5)
        submit_int(owner, "add", owner->answers);
}

static void an_owner_may_submit_from_an_answer(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    owner->on_answer = submit_another;
    until(owner, owner->ready >= 1);
    submit_int(owner, "add", 0);
    until(owner, owner->committed >= 5);
    owner_close(owner);
}

static void an_owner_may_reconnect_from_an_answer(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    owner->on_answer = reconnect_and_submit;
    until(owner, owner->ready >= 1);
    submit_int(owner, "add", 1);
    submit_int(owner, "sleep", 30);
    until(owner, owner->ready >= 2);
    assert_string_equal(owner->order, "rcffdr");
    assert_string_equal(owner->error.code, "WISH");
    owner_close(owner);
}

static void an_owner_may_reconnect_when_it_is_told_ready(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    owner->on_ready = reconnect_once;
    until(owner, owner->ready >= 2);
    assert_string_equal(owner->order, "rdr");
    owner_close(owner);
}

static void an_owner_may_close_from_any_call_back(void **state)
{
    (void)state;
    for (int which = 0; which < 4; which++) {
        struct owner *owner =
            owner_of(which == 2 ? "host=/no/such/directory dbname=x user=x" : dsn);
        if (which == 0)
            owner->on_ready = close_once;
        if (which == 2)
            owner->on_down = close_once;
        if (which == 1 || which == 3) {
            until(owner, owner->ready >= 1);
            owner->on_answer = close_once;
            submit_int(owner, which == 1 ? "add" : "sleep", which == 1 ? 1 : 30);
            submit_int(owner, "add", 2);
            if (which == 3)
                terminate(owner->pg);
        }
        until(owner, owner->closed >= 1);
        if (which == 1 || which == 3)
            assert_int_equal(owner->answers, 2);
        loop_must_be_clean(owner);
    }
}

/* The point of closing moves on, turn by turn of the loop, until it has passed through READY. */
static void closing_is_clean_at_every_step(void **state)
{
    (void)state;
    bool was_ready = false;
    for (int turns = -1; turns < 200 && !was_ready; turns++) {
        struct owner *owner = owner_new();
        struct rcpt_pg_settings settings = settings_of(owner, dsn);
        owner->pg = rcpt_pg_new(&settings);
        if (turns >= 0)
            rcpt_pg_start(owner->pg);
        for (int turn = 0; turn < turns && owner->ready == 0; turn++)
            uv_run(&owner->loop, UV_RUN_ONCE);
        was_ready = owner->ready > 0;
        if (was_ready)
            submit_int(owner, "sleep", 30);
        owner_close(owner);
    }
    assert_true(was_ready);
}

static void closing_while_waiting_or_resolving_is_clean(void **state)
{
    (void)state;
    for (int turns = 0; turns < 6; turns++) {
        struct owner *owner = owner_of("host=bad..name,localhost,127.0.0.1 port=1 dbname=x user=x");
        for (int turn = 0; turn < turns; turn++)
            uv_run(&owner->loop, UV_RUN_ONCE);
        owner_close(owner);
    }
    struct owner *owner = owner_new();
    struct rcpt_pg_settings settings = settings_of(owner, "host=/no/such/directory");
    settings.retry_min_ms = settings.retry_max_ms = 60000;
    owner_with(&settings, owner);
    until(owner, owner->down >= 1);
    owner_close(owner);
}

/* A socket directory that leads to the standby, and later to the primary that it has left behind.
 */
static void another_timeline_is_refused(void **state)
{
    (void)state;
    const char *standby = getenv("RECEIPTD_TEST_STANDBY");
    if (standby == NULL) {
        print_message("skipped: RECEIPTD_TEST_STANDBY is not set\n");
        skip();
    }
    char link[] = "/tmp/receiptd-test-XXXXXX", path[64], primary[256], port[16], with_dsn[256];
    assert_non_null(mkdtemp(link));
    snprintf(path, sizeof(path), "%s/s", link);
    server_port(port, sizeof(port));
    admin_at(dsn, "SELECT split_part(current_setting('unix_socket_directories'), ',', 1)", primary,
             sizeof(primary));
    assert_int_equal(symlink(standby, path), 0);
    char user[64], database[64];
    admin_at(dsn, "SELECT current_user", user, sizeof(user));
    admin_at(dsn, "SELECT current_database()", database, sizeof(database));
    snprintf(with_dsn, sizeof(with_dsn), "host=%s port=%s user=%s dbname=%s", path, port, user,
             database);
    struct owner *owner = owner_of(with_dsn);
    until(owner, owner->down >= 1);
    assert_string_equal(owner->error.code, "25006");
    assert_string_equal(owner->error.text, "server is a standby (read-only)");
    admin_at(with_dsn, "SELECT pg_promote()", NULL, 0);
    until(owner, owner->ready >= 1);
    assert_int_equal(rcpt_pg_identity(owner->pg).timeline, 2);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(primary, path), 0);
    struct rcpt_error error = wish();
    rcpt_pg_reconnect(owner->pg, &error);
    until(owner, strcmp(owner->error.code, "RDIDENT") == 0);
    assert_string_equal(owner->error.text, "server is on timeline 1, but was on 2");
    owner_close(owner);
    unlink(path);
    rmdir(link);
}

static int make_schema(void **state)
{
    (void)state;
    admin("DROP SCHEMA IF EXISTS " SCHEMA " CASCADE; CREATE SCHEMA " SCHEMA ";"
          "CREATE TABLE " SCHEMA ".numbers (n int);"
          "CREATE TABLE " SCHEMA ".deferred (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    return 0;
}

static int drop_schema(void **state)
{
    (void)state;
    admin("DROP SCHEMA IF EXISTS " SCHEMA " CASCADE; DROP ROLE IF EXISTS receiptd_test_password");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back_as_it_was_sent),
        cmocka_unit_test(an_error_stops_its_transaction_and_not_the_next),
        cmocka_unit_test(a_deferred_constraint_fails_where_only_the_sync_was_due),
        cmocka_unit_test(large_batches_flow_while_answers_come_back),
        cmocka_unit_test(an_idle_connection_that_is_ended_comes_back),
        cmocka_unit_test(what_was_in_flight_is_unknown_and_told_before_the_loss),
        cmocka_unit_test(a_server_that_hangs_is_given_up),
        cmocka_unit_test(a_restart_of_the_server_is_survived),
        cmocka_unit_test(what_is_wrong_is_said_with_a_hint_and_tried_again),
        cmocka_unit_test(a_wrong_password_is_named_and_not_shown),
        cmocka_unit_test(a_host_that_never_answers_costs_one_deadline),
        cmocka_unit_test(a_missing_table_says_migrate_and_recovers_without_restart),
        cmocka_unit_test(a_statement_that_would_scan_the_inbox_is_refused),
        cmocka_unit_test(a_keyed_inbox_is_accepted_at_any_size),
        cmocka_unit_test(a_plan_made_for_an_empty_inbox_does_not_outlive_its_growth),
        cmocka_unit_test(an_owner_may_submit_from_an_answer),
        cmocka_unit_test(an_owner_may_reconnect_from_an_answer),
        cmocka_unit_test(an_owner_may_reconnect_when_it_is_told_ready),
        cmocka_unit_test(an_owner_may_close_from_any_call_back),
        cmocka_unit_test(closing_is_clean_at_every_step),
        cmocka_unit_test(closing_while_waiting_or_resolving_is_clean),
        cmocka_unit_test(another_timeline_is_refused),
    };
    dsn = getenv("RECEIPTD_TEST_DSN");
    if (dsn == NULL) {
        printf("skipped: RECEIPTD_TEST_DSN is not set\n");
        return 0;
    }
    if (getenv("RECEIPTD_TEST_DEBUG") != NULL)
        rcpt_log_configure(RCPT_LOG_DEBUG, RCPT_LOG_LOGFMT);
    return cmocka_run_group_tests(tests, make_schema, drop_schema);
}

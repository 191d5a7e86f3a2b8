/* Which servers, statements and plans are accepted, and what is said otherwise, against a real
 * server (see pg_owner.h). The socket directories of servers with the same port switch on more:
 * RECEIPTD_TEST_STANDBY of its standby (which gets promoted), RECEIPTD_TEST_OTHER of a stranger. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "pg_owner.h"

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
    const char *tcp = getenv("RECEIPTD_TEST_TCP_DSN"); /* where loopback wants a password */
    const char *password = tcp != NULL ? strstr(tcp, "password=") : NULL;
    snprintf(with_dsn, sizeof(with_dsn), "host=127.0.0.1,localhost port=%d,%s dbname=%s user=%s %s",
             silent_port, port, database, user, password != NULL ? password : "");
    settings = settings_of(owner, with_dsn);
    settings.connect_timeout_ms = 3000; /* more than a slow machine takes */
    owner_with(&settings, owner);
    until(owner, owner->ready >= 1);
    assert_string_equal(owner->order, "dr");
    owner_close(owner);
    close(fd);
}

/* As a balancer does that has no server behind it: a process that accepts, reads and hangs up. */
static pid_t hang_up_at(int listener)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* of a test that failed */
    for (;;) {
        char request[1024];
        int client = accept(listener, NULL, NULL);
        if (client < 0 || read(client, request, sizeof(request)) < 0)
            _exit(1);
        close(client);
    }
}

static void a_host_that_hangs_up_is_followed_by_the_next(void **state)
{
    (void)state;
    int bad_port, fd = listener_new(&bad_port);
    char port[16], with_dsn[512], database[64], user[64];
    server_port(port, sizeof(port));
    admin_at(dsn, "SELECT current_database()", database, sizeof(database));
    admin_at(dsn, "SELECT current_user", user, sizeof(user));
    const char *tcp = getenv("RECEIPTD_TEST_TCP_DSN");
    const char *password = tcp != NULL ? strstr(tcp, "password=") : NULL;
    snprintf(with_dsn, sizeof(with_dsn), "host=127.0.0.1,localhost port=%d,%s dbname=%s user=%s %s",
             bad_port, port, database, user, password != NULL ? password : "");
    pid_t balancer = hang_up_at(fd);
    struct owner *owner = owner_of(with_dsn);
    until(owner, owner->ready >= 1 || owner->down >= 4);
    kill(balancer, SIGKILL);
    waitpid(balancer, NULL, 0);
    close(fd);
    assert_string_equal(owner->order, "dr");
    owner_close(owner);
}

static void a_missing_table_says_migrate_and_recovers_without_restart(void **state)
{
    (void)state;
    static const struct rcpt_pg_statement missing[] = {
        {"fine", "SELECT 1", NULL, NULL}, {"apply", "SELECT * FROM comes_later", NULL, NULL}};
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
    static const struct rcpt_pg_statement update[] = {{"fine", "SELECT $1::int4", NULL, NULL},
                                                      {"apply", UPDATE_SQL, "mapped", NULL}};
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
    for (int attempt = 0; attempt < 1000; attempt++) {
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

/* One in the middle of what is in flight, one before the connection is up, one that is refused. */
static void other_texts_count_from_the_next_submit_on(void **state)
{
    (void)state;
    static const struct rcpt_pg_statement one[] = {
        {"same", "SELECT 7", NULL, NULL}, {"apply", "SELECT 1 FROM pg_sleep(0.2)", NULL, NULL}};
    static const struct rcpt_pg_statement two[] = {{"same", "SELECT 7", NULL, NULL},
                                                   {"apply", "SELECT 2", NULL, NULL}};
    static const struct rcpt_pg_statement bad[] = {
        {"same", "SELECT 7", NULL, NULL}, {"apply", "SELECT * FROM not_there", NULL, NULL}};
    struct rcpt_pg_query query = {.statement = "apply"};
    struct owner *owner = owner_new();
    struct rcpt_pg_settings settings = settings_of(owner, dsn);
    settings.statements = bad;
    settings.statement_count = 2;
    owner_with(&settings, owner);
    rcpt_pg_set_statements(owner->pg, one);
    until(owner, owner->ready == 1);
    rcpt_pg_submit(owner->pg, &query, 1, on_answer, owner);
    rcpt_pg_set_statements(owner->pg, two);
    until(owner, owner->committed == 1);
    assert_int_equal(owner->number, 1);
    rcpt_pg_submit(owner->pg, &query, 1, on_answer, owner);
    until(owner, owner->committed == 2);
    assert_int_equal(owner->number, 2);
    assert_int_equal(owner->down, 0);
    rcpt_pg_set_statements(owner->pg, bad);
    until(owner, owner->down == 1);
    assert_string_equal(owner->error.code, "42P01");
    rcpt_pg_set_statements(owner->pg, two);
    until(owner, owner->ready == 2);
    owner_close(owner);
}

/* A plan that is refused is one of a new text, too. */
static void other_texts_have_their_plans_checked(void **state)
{
    (void)state;
    static const struct rcpt_pg_statement scan[] = {
        {"fine", "SELECT $1::int4", NULL, NULL},
        {"apply",
         "UPDATE mapped m SET status = e.s FROM unnest($1::text[], $2::int2[]) e(i, s)"
         " WHERE m.message_id || '' = e.i RETURNING 1",
         "mapped", NULL}};
    make_inbox("PRIMARY KEY", 5000, true);
    struct owner *owner = owner_of_update();
    until(owner, owner->ready == 1);
    rcpt_pg_set_statements(owner->pg, scan);
    until(owner, owner->down == 1);
    assert_string_equal(owner->error.code, "RDPLAN");
    owner_close(owner);
}

/* A socket directory that leads to one server first and to another one later. */
struct detour {
    char directory[64], path[80], primary[256], dsn[512];
};

static void detour_open(struct detour *detour, const char *first)
{
    char port[16], user[64], database[64];
    server_port(port, sizeof(port));
    admin_at(dsn, "SELECT split_part(current_setting('unix_socket_directories'), ',', 1)",
             detour->primary, sizeof(detour->primary));
    admin_at(dsn, "SELECT current_user", user, sizeof(user));
    admin_at(dsn, "SELECT current_database()", database, sizeof(database));
    snprintf(detour->directory, sizeof(detour->directory), "/tmp/receiptd-test-XXXXXX");
    assert_non_null(mkdtemp(detour->directory));
    snprintf(detour->path, sizeof(detour->path), "%s/s", detour->directory);
    snprintf(detour->dsn, sizeof(detour->dsn), "host=%s port=%s user=%s dbname=%s", detour->path,
             port, user, database);
    const char *target = first != NULL ? first : detour->primary;
    if (target == NULL) {
        fail_msg("neither a socket directory nor a standby is given");
        return;
    }
    assert_int_equal(symlink(target, detour->path), 0);
}

static void detour_turn(struct detour *detour, const char *to)
{
    assert_int_equal(unlink(detour->path), 0);
    if (to == NULL) {
        fail_msg("neither a socket directory nor a standby is given");
        return;
    }
    assert_int_equal(symlink(to, detour->path), 0);
}

static void detour_close(struct detour *detour)
{
    unlink(detour->path);
    rmdir(detour->directory);
}

static void another_database_system_is_refused(void **state)
{
    (void)state;
    struct detour detour;
    const char *other = getenv("RECEIPTD_TEST_OTHER");
    if (other == NULL) {
        print_message("skipped: RECEIPTD_TEST_OTHER is not set\n");
        skip();
    }
    detour_open(&detour, NULL);
    struct owner *owner = owner_of(detour.dsn);
    until(owner, owner->ready >= 1);
    uint64_t known = rcpt_pg_identity(owner->pg).system_identifier;
    detour_turn(&detour, other);
    terminate(owner->pg);
    until(owner, strcmp(owner->error.code, "RDIDENT") == 0);
    assert_non_null(strstr(owner->error.text, "system identifier"));
    assert_true(rcpt_pg_identity(owner->pg).system_identifier == known);
    detour_turn(&detour, detour.primary);
    until(owner, owner->ready >= 2);
    owner_close(owner);
    detour_close(&detour);
}

static void another_timeline_is_refused(void **state)
{
    (void)state;
    const char *standby = getenv("RECEIPTD_TEST_STANDBY");
    if (standby == NULL) {
        print_message("skipped: RECEIPTD_TEST_STANDBY is not set\n");
        skip();
    }
    struct detour detour;
    detour_open(&detour, standby);
    struct owner *owner = owner_of(detour.dsn);
    until(owner, owner->down >= 1);
    assert_string_equal(owner->error.code, "25006");
    assert_string_equal(owner->error.text, "server is a standby (read-only)");
    admin_at(detour.dsn, "SELECT pg_promote()", NULL, 0);
    until(owner, owner->ready >= 1);
    assert_int_equal(rcpt_pg_identity(owner->pg).timeline, 2);
    detour_turn(&detour, detour.primary);
    struct rcpt_error error = wish();
    rcpt_pg_reconnect(owner->pg, &error);
    until(owner, strcmp(owner->error.code, "RDIDENT") == 0);
    assert_string_equal(owner->error.text, "server is on timeline 1, but was on 2");
    owner_close(owner);
    detour_close(&detour);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said_with_a_hint_and_tried_again),
        cmocka_unit_test(a_wrong_password_is_named_and_not_shown),
        cmocka_unit_test(a_host_that_never_answers_costs_one_deadline),
        cmocka_unit_test(a_host_that_hangs_up_is_followed_by_the_next),
        cmocka_unit_test(a_missing_table_says_migrate_and_recovers_without_restart),
        cmocka_unit_test(a_statement_that_would_scan_the_inbox_is_refused),
        cmocka_unit_test(a_keyed_inbox_is_accepted_at_any_size),
        cmocka_unit_test(a_plan_made_for_an_empty_inbox_does_not_outlive_its_growth),
        cmocka_unit_test(other_texts_count_from_the_next_submit_on),
        cmocka_unit_test(other_texts_have_their_plans_checked),
        cmocka_unit_test(another_database_system_is_refused),
        cmocka_unit_test(another_timeline_is_refused),
    };
    return has_server() ? cmocka_run_group_tests(tests, make_schema, drop_schema) : 0;
}

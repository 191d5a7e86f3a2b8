/* Transactions in flight, losses and owners that act from within, against a real server (see
 * pg_owner.h). RECEIPTD_TEST_RESTART, a command that restarts the server, switches on one more. */
#include <signal.h>

#include "pg_owner.h"
#include "receiptd/postgres/ask.h"

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

static void the_session_is_as_the_design_wants_it(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    struct rcpt_pg_query query = {.statement = "session"};
    until(owner, owner->ready >= 1);
    rcpt_pg_submit(owner->pg, &query, 1, on_answer, owner);
    until(owner, owner->answers >= 1);
    assert_string_equal(owner->text,
                        "receiptd/test/lane-0|\"" SCHEMA "\",pg_temp|off|5s|10s|30s|off|5s|"
                        "force_generic_plan|read committed|UTF8|ISO|UTC");
    owner_close(owner);
}

struct asked {
    unsigned answers, failures;
    char code[32];
};

static void on_asked(void *context, const struct rcpt_pg_rows *rows)
{
    struct asked *asked = context;
    assert_int_equal(rcpt_pg_rows_count(rows), 1);
    asked->answers++;
}

static void on_ask_failed(void *context, const struct rcpt_error *error)
{
    struct asked *asked = context;
    asked->failures++;
    snprintf(asked->code, sizeof(asked->code), "%s", error->code);
}

static void a_statement_is_asked_one_at_a_time_and_waits_after_a_failure(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    struct asked asked = {.answers = 0};
    struct rcpt_asker asker = {.loop = &owner->loop,
                               .pg = owner->pg,
                               .encoder = rcpt_pg_encoder_new(),
                               .component = "postgres",
                               .prefix = ""};
    struct rcpt_ask ask = {.asker = &asker,
                           .statement = "divide",
                           .what = "a division",
                           .context = &asked,
                           .on_answer = on_asked,
                           .on_failed = on_ask_failed,
                           .retry_ms = 60000};
    until(owner, owner->ready >= 1);
    assert_null(rcpt_ask_begin(&ask)); /* the owner has not said that it is up */
    asker.up = true;
    rcpt_pg_add_int4(rcpt_ask_begin(&ask), 1);
    rcpt_ask_send(&ask);
    assert_null(rcpt_ask_begin(&ask));
    assert_int_equal(asker.in_flight, 1);
    until(owner, asked.answers >= 1);
    rcpt_pg_add_int4(rcpt_ask_begin(&ask), 0);
    rcpt_ask_send(&ask);
    until(owner, asked.failures >= 1);
    assert_string_equal(asked.code, "22012");
    assert_int_equal(asker.in_flight, 0);
    assert_null(rcpt_ask_begin(&ask)); /* too early */
    ask.at_ms = 0;
    assert_non_null(rcpt_ask_begin(&ask));
    asker.closed = true;
    assert_null(rcpt_ask_begin(&ask));
    rcpt_pg_encoder_free(asker.encoder);
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

#define BLOCK_BYTES (64 * 1024)

static void submit_blocks(struct owner *owner, uint32_t blocks)
{
    static char block[BLOCK_BYTES];
    struct rcpt_pg_query query = {.statement = "lengths"};
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    memset(block, 'x', sizeof(block));
    rcpt_pg_begin_bytea_array(encoder, blocks);
    for (uint32_t element = 0; element < blocks; element++)
        rcpt_pg_put_bytes(encoder, block, sizeof(block));
    rcpt_pg_encoder_params(encoder, &query.params);
    rcpt_pg_submit(owner->pg, &query, 1, on_answer, owner);
    rcpt_pg_encoder_free(encoder);
}

static void large_batches_flow_while_answers_come_back(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    until(owner, owner->ready >= 1);
    for (int batch = 0; batch < 12; batch++)
        submit_blocks(owner, 48);
    until(owner, owner->answers >= 12);
    assert_int_equal(owner->committed, 12);
    assert_int_equal(owner->number, 48 * BLOCK_BYTES);
    owner_close(owner);
}

/* Nothing comes back before all of it is there, so no answer can stand in for the wake-up by the
 * socket. */
static void a_batch_above_all_buffers_is_written_to_its_end(void **state)
{
    (void)state;
    struct owner *owner = owner_of(dsn);
    until(owner, owner->ready >= 1);
    submit_blocks(owner, 768);
    until(owner, owner->answers >= 1);
    assert_int_equal(owner->committed, 1);
    assert_int_equal(owner->number, 768 * BLOCK_BYTES);
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
    settings.connect_timeout_ms = 3000; /* more than a slow machine takes */
    owner_with(&settings, owner);
    until(owner, owner->ready >= 1);
    int pid = rcpt_pg_backend_pid(owner->pg);
    if (kill(pid, SIGSTOP) != 0) {
        owner_close(owner);
        print_message("skipped: the server's processes are not ours to stop\n");
        skip();
        return;
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

/* ---- the owner acts from within ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back_as_it_was_sent),
        cmocka_unit_test(the_session_is_as_the_design_wants_it),
        cmocka_unit_test(a_statement_is_asked_one_at_a_time_and_waits_after_a_failure),
        cmocka_unit_test(an_error_stops_its_transaction_and_not_the_next),
        cmocka_unit_test(a_deferred_constraint_fails_where_only_the_sync_was_due),
        cmocka_unit_test(large_batches_flow_while_answers_come_back),
        cmocka_unit_test(a_batch_above_all_buffers_is_written_to_its_end),
        cmocka_unit_test(an_idle_connection_that_is_ended_comes_back),
        cmocka_unit_test(what_was_in_flight_is_unknown_and_told_before_the_loss),
        cmocka_unit_test(a_server_that_hangs_is_given_up),
        cmocka_unit_test(a_restart_of_the_server_is_survived),
        cmocka_unit_test(an_owner_may_submit_from_an_answer),
        cmocka_unit_test(an_owner_may_reconnect_from_an_answer),
        cmocka_unit_test(an_owner_may_reconnect_when_it_is_told_ready),
        cmocka_unit_test(an_owner_may_close_from_any_call_back),
        cmocka_unit_test(closing_is_clean_at_every_step),
        cmocka_unit_test(closing_while_waiting_or_resolving_is_clean),
    };
    return has_server() ? cmocka_run_group_tests(tests, make_schema, drop_schema) : 0;
}

/* What an SQLSTATE or a message of libpq makes us do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "postgres/failure.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/postgres/sqlstate.h"

static void each_sqlstate_has_its_decision(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        enum rcpt_decision decision;
    } rows[] = {
        {"40001", RCPT_DECISION_RETRY},
        {"40P01", RCPT_DECISION_RETRY},
        {"55P03", RCPT_DECISION_RETRY},
        {"57014", RCPT_DECISION_RETRY},
        {RCPT_SQLSTATE_FENCED, RCPT_DECISION_RETRY},
        {RCPT_SQLSTATE_SUBSCRIBED, RCPT_DECISION_RETRY},
        {"22021", RCPT_DECISION_REJECT},
        {"22P03", RCPT_DECISION_REJECT},
        {"23505", RCPT_DECISION_REJECT},
        {"54000", RCPT_DECISION_REJECT},
        {"P0001", RCPT_DECISION_REJECT},
        {"P0002", RCPT_DECISION_RECONNECT},
        {"40002", RCPT_DECISION_RECONNECT},
        {"42P01", RCPT_DECISION_RECONNECT},
        {"57P01", RCPT_DECISION_RECONNECT},
        {"57P03", RCPT_DECISION_RECONNECT},
        {"08006", RCPT_DECISION_RECONNECT},
        {"0A000", RCPT_DECISION_RECONNECT},
        {"26000", RCPT_DECISION_RECONNECT},
        {"25006", RCPT_DECISION_RECONNECT},
        {"XX000", RCPT_DECISION_RECONNECT},
        {"", RCPT_DECISION_RECONNECT},
    };
    for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++)
        assert_int_equal(rcpt_pg_decide(rows[index].code), rows[index].decision);
}

static void sql_raises_the_codes_that_are_declared_and_no_others(void **state)
{
    (void)state;
    static const char *const declared[] = {RCPT_SQLSTATE_FENCED, RCPT_SQLSTATE_SUBSCRIBED};
    static const char raise[] = "ERRCODE = 'RD";
    bool raised[2] = {false};
    for (size_t file = 0; rcpt_sql_name(file) != NULL; file++) {
        const char *at = rcpt_sql(rcpt_sql_name(file));
        while ((at = strstr(at, raise)) != NULL) {
            size_t index = 0;
            at += sizeof(raise) - 3; /* to the R */
            while (index < 2 && strncmp(at, declared[index], 5) != 0)
                index++;
            if (index == 2)
                fail_msg("sql/%s.sql raises %.5s, which sqlstate.h does not declare",
                         rcpt_sql_name(file), at);
            raised[index] = true;
        }
    }
    for (size_t index = 0; index < 2; index++)
        assert_true(raised[index]);
}

static void operators_are_told_what_to_do(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        const char *part;
    } rows[] = {
        {"42P01", "receiptd migrate"}, {"3F000", "receiptd migrate"}, {"42501", "grant"},
        {"28P01", "password"},         {"28000", "pg_hba.conf"},      {"53300", "max_connections"},
        {"25006", "standby"},          {"57P03", "starts up"},        {"3D000", "database"},
        {"26000", "session pooling"},  {"42P05", "session pooling"},
    };
    for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++)
        assert_non_null(strstr(rcpt_pg_hint(rows[index].code), rows[index].part));
    assert_string_equal(rcpt_pg_hint("40P01"), "");
    assert_string_equal(rcpt_pg_hint(""), "");
}

static void a_message_becomes_one_line_with_its_code(void **state)
{
    (void)state;
    struct rcpt_error error;
    rcpt_failure_of_message(
        "connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  28P01: "
        "password authentication failed for user \"u\"\n"
        "LOCATION:  auth_failed, auth.c:334\n",
        &error);
    assert_string_equal(error.code, "28P01");
    assert_string_equal(error.text,
                        "connection to server at \"127.0.0.1\", port 5432 failed: FATAL:  "
                        "password authentication failed for user \"u\"");
    assert_int_equal(error.decision, RCPT_DECISION_RECONNECT);
    assert_non_null(strstr(error.hint, "password"));
}

static void a_message_without_a_code_asks_whether_the_server_runs(void **state)
{
    (void)state;
    struct rcpt_error error;
    rcpt_failure_of_message("connection failed: Connection refused\n\tIs the server running?\n",
                            &error);
    assert_string_equal(error.code, "");
    assert_string_equal(error.text,
                        "connection failed: Connection refused; Is the server running?");
    assert_non_null(strstr(error.hint, "server runs"));
    rcpt_failure_of_message("", &error);
    assert_string_equal(error.text, "connection to the server is gone");
}

static void details_never_come_through_and_long_messages_are_cut(void **state)
{
    (void)state;
    char message[2048];
    struct rcpt_error error;
    rcpt_failure_of_message(
        "ERROR:  23505: duplicate key\nDETAIL:  Key (message_id)=(m-1) exists.\n", &error);
    assert_string_equal(error.text, "ERROR:  duplicate key");
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    for (size_t at = 100; at < sizeof(message); at += 100)
        message[at] = '\n';
    rcpt_failure_of_message(message, &error);
    assert_true(strlen(error.text) < sizeof(error.text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sqlstate_has_its_decision),
        cmocka_unit_test(sql_raises_the_codes_that_are_declared_and_no_others),
        cmocka_unit_test(operators_are_told_what_to_do),
        cmocka_unit_test(a_message_becomes_one_line_with_its_code),
        cmocka_unit_test(a_message_without_a_code_asks_whether_the_server_runs),
        cmocka_unit_test(details_never_come_through_and_long_messages_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

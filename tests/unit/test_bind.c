#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <cmocka.h>

#include "receiptd/postgres/bind.h"

static const struct rcpt_pg_binding bindings[] = {
    {"schema", "receiptd"}, {"odd", "we\"ird 'x' \\"},   {"number", "-42"}, {"nothing", NULL},
    {"empty", ""},          {"word", "1; DROP TABLE x"}, {"n", "7"},        {"1", "it's"},
    {"12", NULL},
};

struct row {
    const char *sql;
    const char *expected;
};

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        struct rcpt_error error = {0};
        char *text =
            rcpt_pg_bind(rows[index].sql, bindings, sizeof(bindings) / sizeof(bindings[0]), &error);
        assert_string_equal(error.text, "");
        assert_non_null(text);
        assert_string_equal(text, rows[index].expected);
        free(text);
    }
}
#define EXPECT_ROWS(rows) expect_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void variables_become_what_their_quotes_say(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"", ""},
        {"SELECT 1", "SELECT 1"},
        {"CREATE SCHEMA :\"schema\";", "CREATE SCHEMA \"receiptd\";"},
        {":\"schema\".t, :'schema'", "\"receiptd\".t, 'receiptd'"},
        {"LIMIT :number", "LIMIT -42"},
        {"(:n,:n)", "(7,7)"},
        {":'nothing'", "NULL"},
        {":'empty'", "''"},
        {"f($1::text, $12)", "f('it''s'::text, NULL)"},
        {"x=:'word'", "x='1; DROP TABLE x'"},
    };
    EXPECT_ROWS(rows);
}

static void quotes_and_backslashes_in_values_stay_inside_the_quotes(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {":\"odd\"", "\"we\"\"ird 'x' \\\""},
        {"=:'odd'", "= E'we\"ird ''x'' \\\\'"},
    };
    EXPECT_ROWS(rows);
}

static void what_is_not_a_variable_is_left_alone(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a::n, a::\"n\"", "a::n, a::\"n\""},
        {"v := n; v :=n", "v := n; v :=n"},
        {"a[1:2], a[x:unbound]", "a[1:2], a[x:unbound]"},
        {"':n' \":n\" 'it''s :n' \"a\"\":n\"", "':n' \":n\" 'it''s :n' \"a\"\":n\""},
        {"E'\\':n' :n", "E'\\':n' 7"},
        {"'\\' :n", "'\\' 7"},
        {"name'\\' :n", "name'\\' 7"},
        {"$$ :n $x$ :n $$ :n", "$$ :n $x$ :n $$ 7"},
        {"$tag$ :n $$ :n $tag$ :n", "$tag$ :n $$ :n $tag$ 7"},
        {"$3 + :n, a$b a$1 :n $2", "$3 + 7, a$b a$1 7 $2"},
        {"-- :n 'open\n:n", "-- :n 'open\n7"},
        {"/* :n /* :n */ ' :n */ :n", "/* :n /* :n */ ' :n */ 7"},
        {"a - :n / :n", "a - 7 / 7"},
        {"'open :n", "'open :n"},
        {"$$ open :n", "$$ open :n"},
        {"/* open :n", "/* open :n"},
        {":", ":"},
        {":\"broken name\"", ":\"broken name\""},
    };
    EXPECT_ROWS(rows);
}

static void a_variable_without_a_fit_value_is_an_internal_error(void **state)
{
    (void)state;
    static const char *const texts[] = {":\"unbound\"", ":'unbound'", ":word", ":nothing",
                                        ":\"nothing\"", ":\"empty\"", ":empty"};
    for (size_t index = 0; index < sizeof(texts) / sizeof(texts[0]); index++) {
        struct rcpt_error error = {0};
        char *text =
            rcpt_pg_bind(texts[index], bindings, sizeof(bindings) / sizeof(bindings[0]), &error);
        assert_null(text);
        assert_int_equal(error.exit_code, EX_SOFTWARE);
    }
}

static char *bind_strictly(const char *sql, struct rcpt_error *error)
{
    static const struct rcpt_pg_binding parameters[] = {{"=subject", "r.subject"},
                                                        {"=org_id", "r.org_id"}};
    return rcpt_pg_bind_strictly(sql, parameters, sizeof(parameters) / sizeof(parameters[0]),
                                 error);
}

static void parameters_of_an_operators_sql_become_columns(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"id = :subject", "id = r.subject"},
        {"(:subject,:org_id)", "(r.subject,r.org_id)"},
        {":subject::bigint = id::bigint", "r.subject::bigint = id::bigint"},
        {"a[1:2] || a[1 : n]", "a[1:2] || a[1 : n]"},
        {"f(a := 1, b => :org_id)", "f(a := 1, b => r.org_id)"},
        {"':other' || E'\\':other' || \":other\"", "':other' || E'\\':other' || \":other\""},
        {"1 -- :other\n+ /* :other /* $1 */ */ 2", "1 -- :other\n+ /* :other /* $1 */ */ 2"},
        {"$$:other$$ || $q$ :other $1 $q$", "$$:other$$ || $q$ :other $1 $q$"},
        {"it$1 = 2", "it$1 = 2"},
        {"'it''s :other'", "'it''s :other'"},
    };
    for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++) {
        struct rcpt_error error = {0};
        char *text = bind_strictly(rows[index].sql, &error);
        assert_string_equal(error.text, "");
        assert_string_equal(text, rows[index].expected);
        free(text);
    }
}

static void a_parameter_that_there_is_not_is_named(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"id = :subjects", "there is no parameter :subjects"},
        {"id = :sub", "there is no parameter :sub"},
        {"id=:Subject", "there is no parameter :Subject"},
        {"a[1:n]", "there is no parameter :n"},
        {"id = :'subject'", "there is no parameter :'subject'"},
        {"id = :\"subject\"", "there is no parameter :\"subject\""},
        {"id = $1", "there is no parameter $1"},
        {"id = $12 || :subject", "there is no parameter $12"},
        {"'a'':x' || :y", "there is no parameter :y"},
    };
    for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++) {
        struct rcpt_error error = {0};
        assert_null(bind_strictly(rows[index].sql, &error));
        assert_string_equal(error.text, rows[index].expected);
        assert_int_equal(error.exit_code, EX_CONFIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_become_what_their_quotes_say),
        cmocka_unit_test(quotes_and_backslashes_in_values_stay_inside_the_quotes),
        cmocka_unit_test(what_is_not_a_variable_is_left_alone),
        cmocka_unit_test(a_variable_without_a_fit_value_is_an_internal_error),
        cmocka_unit_test(parameters_of_an_operators_sql_become_columns),
        cmocka_unit_test(a_parameter_that_there_is_not_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The parameters of apply are known by number: the table in C and the SQL have to agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/postgres/encode_batch.h"
#include "postgres/sql.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Comments of 10_update.sql name a parameter first as "$2 int2[] highest status". */
static void the_comment_describes_each_parameter_as_the_table_declares_it(void **state)
{
    const char *text = rcpt_sql("lane/apply/10_update");
    (void)state;
    for (size_t number = 1; number <= RCPT_APPLY_PARAMETERS_DAYS; number++) {
        const struct rcpt_apply_parameter *parameter = rcpt_apply_parameter(number);
        char wanted[120];
        snprintf(wanted, sizeof(wanted), "$%zu %s %s", number, parameter->type, parameter->name);
        if (strstr(text, wanted) == NULL)
            fail_msg("sql/lane/apply/10_update.sql does not say \"%s\"", wanted);
    }
}

/* Highest $n in the code of a statement; each one with a cast has the declared type. */
static unsigned long check_casts(const struct rcpt_pg_statement *statement)
{
    unsigned long highest = 0;
    char *copy = strdup(statement->sql), *rest;
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *comment = strstr(line, "--");
        if (comment != NULL)
            *comment = '\0';
        for (char *at = line; (at = strchr(at, '$')) != NULL;) {
            unsigned long number = strtoul(at + 1, &at, 10);
            const char *type = rcpt_apply_parameter(number)->type;
            if (strncmp(at, "::", 2) != 0 || strncmp(at + 2, type, strlen(type)) != 0)
                fail_msg("$%lu is %s in C, and in SQL: $%lu%.20s", number, type, number, at);
            highest = number > highest ? number : highest;
        }
    }
    free(copy);
    return highest;
}

static void the_sql_uses_the_types_and_the_number_of_the_table(void **state)
{
    static const char *const subscribers[] = {"lane/subscribers/folds_columns",
                                              "lane/subscribers/actions"};
    const struct rcpt_lane_variant variant = {
        .subscribers = subscribers, .count = 2, .selective = true, .inserts_unknown = true};
    struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&variant);
    unsigned checked = 0;
    size_t count;
    (void)state;
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    for (size_t index = 0; index < count; index++) {
        bool unsubscribed = strcmp(list[index].name, "apply_unsubscribed") == 0;
        if (!unsubscribed && strcmp(list[index].name, "apply") != 0)
            continue;
        assert_int_equal(check_casts(&list[index]),
                         unsubscribed ? RCPT_APPLY_PARAMETERS_UNSUBSCRIBED : RCPT_APPLY_PARAMETERS);
        checked++;
    }
    assert_int_equal(checked, 2);
    rcpt_lane_statements_free(statements);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_comment_describes_each_parameter_as_the_table_declares_it),
        cmocka_unit_test(the_sql_uses_the_types_and_the_number_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The columns of message_inbox (config/inbox_columns.h), and where SQL has to repeat them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/config/inbox_columns.h"
#include "receiptd/postgres/sql.h"

/* A column of a feature is set by what the feature adds to the statement. */
static bool is_moved(const struct rcpt_inbox_column *column)
{
    return column->filler == RCPT_INBOX_RECEIPTD && *column->feature == '\0';
}

/* From SET to FROM. */
static char *assignments(const char *file)
{
    const char *begin = strstr(rcpt_sql(file), "    SET ");
    const char *end = begin != NULL ? strstr(begin, "    FROM ") : NULL;
    assert_non_null(end);
    return begin != NULL ? strndup(begin, (size_t)(end - begin)) : NULL;
}

static void batches_update_exactly_the_columns_that_receiptd_fills(void **state)
{
    (void)state;
    static const char *const files[] = {"lane/decide", "lane/decide_recent"};
    size_t count;
    const struct rcpt_inbox_column *columns = rcpt_inbox_columns(&count);
    for (size_t file = 0; file < sizeof(files) / sizeof(files[0]); file++) {
        char *set = assignments(files[file]);
        size_t moved = 0, found = 0;
        for (size_t index = 0; index < count; index++) {
            char part[64];
            snprintf(part, sizeof(part), " %s = ", columns[index].name);
            assert_int_equal(strstr(set, part) != NULL, is_moved(&columns[index]));
            moved += is_moved(&columns[index]) ? 1 : 0;
        }
        for (const char *at = set; (at = strstr(at, " = ")) != NULL; at++)
            found++;
        assert_int_equal(found, moved);
        free(set);
    }
}

static void a_table_has_first_times_if_it_has_all_of_their_columns(void **state)
{
    (void)state;
    const char *text = rcpt_sql("functions/inbox_has_times");
    char part[96];
    size_t count, wanted = 0;
    const struct rcpt_inbox_column *columns = rcpt_inbox_columns(&count);
    for (size_t index = 0; index < count; index++) {
        if (strcmp(columns[index].feature, "counters.times") != 0)
            continue;
        wanted++;
        snprintf(part, sizeof(part), "('%s', '%s'::regtype)", columns[index].name,
                 columns[index].type);
        if (strstr(text, part) == NULL)
            fail_msg("sql/functions/inbox_has_times.sql has no: %s", part);
    }
    snprintf(part, sizeof(part), "count(*) = %zu ", wanted);
    assert_non_null(strstr(text, part));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_update_exactly_the_columns_that_receiptd_fills),
        cmocka_unit_test(a_table_has_first_times_if_it_has_all_of_their_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The columns of message_inbox as C declares them (config/inbox_columns.h), and where SQL has to
 * repeat them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/inbox_columns.h"
#include "postgres/sql.h"

enum written { GIVEN, MOVED };

static const struct {
    const char *name;
    enum written written;
} columns[] = {
#define COLUMN(column, written, doc) {#column, written},
    RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
};
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))

/* "a, b, c" of the columns that are written so. */
static void list(enum written written, char text[256])
{
    text[0] = '\0';
    for (size_t index = 0; index < COLUMN_COUNT; index++) {
        size_t used = strlen(text);
        if (columns[index].written == written)
            snprintf(text + used, 256 - used, "%s%s", used > 0 ? ", " : "", columns[index].name);
    }
}

static void assert_has(const char *file, const char *part)
{
    if (strstr(rcpt_sql(file), part) == NULL)
        fail_msg("sql/%s.sql has no: %s", file, part);
}

static void a_role_may_insert_and_update_exactly_these_columns(void **state)
{
    (void)state;
    char names[256], grant[320];
    list(GIVEN, names);
    snprintf(grant, sizeof(grant), "GRANT INSERT (%s) ON message_inbox", names);
    assert_has("migrate/role", grant);
    list(MOVED, names);
    snprintf(grant, sizeof(grant), "GRANT UPDATE (%s) ON message_inbox", names);
    assert_has("migrate/role", grant);
}

static void the_own_table_and_the_mapping_name_them_in_this_order(void **state)
{
    (void)state;
    const char *table = strstr(rcpt_sql("migrate/inbox_table"), "CREATE TABLE");
    const char *view = strstr(rcpt_sql("migrate/inbox_view"), "map_inbox(:");
    for (size_t index = 0; index < COLUMN_COUNT; index++) {
        char part[64];
        snprintf(part, sizeof(part), "\n    %s ", columns[index].name);
        if (table == NULL || (table = strstr(table, part)) == NULL)
            fail_msg("sql/migrate/inbox_table.sql has no:%s", part);
        snprintf(part, sizeof(part), ":'%s'", columns[index].name);
        if (view == NULL || (view = strstr(view, part)) == NULL)
            fail_msg("sql/migrate/inbox_view.sql has no: %s", part);
        snprintf(part, sizeof(part), "(%zu, '%s', %s, ", index + 1, columns[index].name,
                 columns[index].name);
        assert_has("functions/map_inbox", part);
    }
}

/* The part from `UPDATE message_inbox` to `FROM`. */
static char *assignments(const char *file)
{
    const char *begin = strstr(rcpt_sql(file), "    SET ");
    if (begin == NULL)
        abort();
    const char *end = strstr(begin, "    FROM ");
    return end != NULL ? strndup(begin, (size_t)(end - begin)) : strdup(begin);
}

static void batches_and_wakes_update_the_same_columns(void **state)
{
    (void)state;
    char *apply = assignments("lane/apply/11_set"), *wake = assignments("lane/wake/21_set");
    size_t moved = 0, set = 0;
    assert_string_equal(apply, wake);
    free(wake);
    for (size_t index = 0; index < COLUMN_COUNT; index++) {
        char part[64];
        snprintf(part, sizeof(part), " %s = ", columns[index].name);
        assert_int_equal(strstr(apply, part) != NULL, columns[index].written == MOVED);
        moved += columns[index].written == MOVED;
    }
    for (const char *at = apply; (at = strstr(at, " = ")) != NULL; at++)
        set++;
    assert_int_equal(set, moved);
    free(apply);
}

/* Of first times, whose values come from elsewhere in a wake: each column that the one sets. */
static void with_first_times_too(void **state)
{
    (void)state;
    static const char *const files[] = {"lane/apply/11_set_times", "lane/wake/21_set_times"};
    static const char *const times[] = {"first_sent_at",    "first_delivered_at", "first_opened_at",
                                        "first_clicked_at", "first_gateway",      "prev_times"};
    for (size_t file = 0; file < 2; file++) {
        char part[64];
        for (size_t index = 0; index < COLUMN_COUNT; index++) {
            snprintf(part, sizeof(part), " %s = ", columns[index].name);
            assert_int_equal(strstr(rcpt_sql(files[file]), part) != NULL,
                             columns[index].written == MOVED);
        }
        for (size_t index = 0; index < sizeof(times) / sizeof(times[0]); index++) {
            snprintf(part, sizeof(part), " %s = ", times[index]);
            assert_has(files[file], part);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_role_may_insert_and_update_exactly_these_columns),
        cmocka_unit_test(the_own_table_and_the_mapping_name_them_in_this_order),
        cmocka_unit_test(batches_and_wakes_update_the_same_columns),
        cmocka_unit_test(with_first_times_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

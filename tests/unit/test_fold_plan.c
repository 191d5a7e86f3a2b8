/* What a rule would publish with other windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/folds/plan.h"

/* Two groups, not in order: 1 at 0 s, 1 s, 9 s; 2 at 0.5 s. */
static void plan(struct fold_plan_row *rows, size_t count, int64_t hold_ms)
{
    struct fold_plan_event events[] = {{2, 500}, {1, 9000}, {1, 0}, {1, 1000}};
    fold_plan(events, 4, hold_ms, rows, count);
}

static void a_window_folds_what_follows_within_it(void **state)
{
    struct fold_plan_row rows[] = {{.window_ms = 500}, {.window_ms = 2000}, {.window_ms = 10000}};
    (void)state;
    plan(rows, 3, 60000);
    /* Each event alone, half a second later; those at 0.5 s and 1 s are published within one. */
    assert_int_equal(rows[0].events, 4);
    assert_int_equal(rows[0].publications, 4);
    assert_int_equal(rows[0].delay_max_ms, 500);
    assert_int_equal((int)rows[0].delay_ms, 500);
    assert_int_equal(rows[0].peak, 2);
    assert_true(fold_plan_ratio(&rows[0]) < 0.0001);
    /* 0 s and 1 s in one at 3 s. */
    assert_int_equal(rows[1].publications, 3);
    assert_int_equal(rows[1].delay_max_ms, 3000);
    assert_int_equal((int)rows[1].delay_ms, (3000 + 2000 + 2000 + 2000) / 4);
    /* All of group 1 at 19 s. */
    assert_int_equal(rows[2].publications, 2);
    assert_int_equal(rows[2].delay_max_ms, 19000);
    assert_int_equal(rows[2].avoidable, 0);
    assert_true(fold_plan_ratio(&rows[2]) > 0.4999 && fold_plan_ratio(&rows[2]) < 0.5001);
}

static void a_hold_ends_a_window_that_would_go_on(void **state)
{
    struct fold_plan_row rows[] = {{.window_ms = 10000}, {.window_ms = 8000}};
    (void)state;
    /* A hold shorter than the window is as long as the window. */
    plan(rows, 2, 5000);
    assert_int_equal(rows[0].publications, 2);
    assert_int_equal(rows[0].delay_max_ms, 10000);
    /* Published at 8 s, and the event at 9 s was so near that it makes one more. */
    assert_int_equal(rows[1].publications, 3);
    assert_int_equal(rows[1].avoidable, 1);
}

static void no_history_gives_an_empty_plan(void **state)
{
    struct fold_plan_row row = {.window_ms = 1000, .events = 7, .publications = 7};
    (void)state;
    fold_plan(NULL, 0, 1000, &row, 1);
    assert_int_equal(row.window_ms, 1000);
    assert_int_equal(row.events, 0);
    assert_int_equal(row.publications, 0);
    assert_true(fold_plan_ratio(&row) < 0.0001 && fold_plan_ratio(&row) > -0.0001);
}

static void the_table_and_the_picture_say_the_same_figures(void **state)
{
    struct fold_plan_row rows[] = {{.window_ms = 500}, {.window_ms = 2000}};
    char *table = NULL, *picture = NULL;
    size_t size;
    (void)state;
    plan(rows, 2, 60000);
    FILE *out = open_memstream(&table, &size);
    fold_plan_write_table(rows, 2, out);
    fclose(out);
    assert_non_null(strstr(table, "window           events   publications    ratio"));
    assert_non_null(
        strstr(table, "\n500ms                 4              4    0.00%        0.5 s"));
    assert_non_null(
        strstr(table, "\n2s                    4              3   25.00%        2.2 s"));
    out = open_memstream(&picture, &size);
    fold_plan_write_svg("<opens> & clicks", rows, 2, out);
    fclose(out);
    assert_memory_equal(picture, "<svg ", 5);
    assert_non_null(strstr(picture, ">opens  clicks</text>"));
    assert_non_null(strstr(picture, ">500ms</text>"));
    assert_non_null(strstr(picture, ">2s</text>"));
    assert_non_null(strstr(picture, ">2.2 s</text>")); /* the longest mean delay is the axis' end */
    assert_non_null(strstr(picture, "</svg>\n"));
    free(table);
    free(picture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_folds_what_follows_within_it),
        cmocka_unit_test(a_hold_ends_a_window_that_would_go_on),
        cmocka_unit_test(no_history_gives_an_empty_plan),
        cmocka_unit_test(the_table_and_the_picture_say_the_same_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

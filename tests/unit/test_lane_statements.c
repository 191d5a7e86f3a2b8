#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "postgres/sql.h"
#include "postgres/statements.h"

static const char *text_of(const struct rcpt_lane_statements *statements, const char *name)
{
    size_t count;
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    for (size_t index = 0; index < count; index++)
        if (strcmp(list[index].name, name) == 0)
            return list[index].sql;
    fail_msg("no statement %s", name);
    return "";
}

static void without_a_block_the_text_is_that_of_the_file_less_its_optional_lines(void **state)
{
    (void)state;
    struct rcpt_lane_statements *plain = rcpt_lane_statements_new(NULL, 0);
    static const char *const names[] = {"apply", "wake"};
    for (size_t index = 0; index < 2; index++) {
        const char *text = text_of(plain, names[index]);
        const char *file = rcpt_sql(index == 0 ? "lane/apply" : "lane/wake");
        while (*file != '\0') {
            size_t size = strcspn(file, "\n") + 1;
            const char *line = file + strspn(file, " ");
            if (strncmp(line, "--+ ", 4) != 0 && strncmp(line, "--? ", 4) != 0) {
                assert_memory_equal(text, file, size);
                text += size;
            }
            file += size;
        }
        assert_string_equal(text, "");
    }
    assert_string_equal(text_of(plain, "fence"), rcpt_sql("lane/fence"));
    rcpt_lane_statements_free(plain);
}

static void blocks_stand_before_the_answer_and_see_more_columns(void **state)
{
    (void)state;
    static const char *const blocks[] = {"first AS (SELECT 1)", "second AS (SELECT 2)"};
    struct rcpt_lane_statements *composed = rcpt_lane_statements_new(blocks, 2);
    static const char *const names[] = {"apply", "wake"};
    for (size_t index = 0; index < 2; index++) {
        const char *text = text_of(composed, names[index]);
        assert_non_null(
            strstr(text, "\n)\n,\nfirst AS (SELECT 1)\n,\nsecond AS (SELECT 2)\nSELECT"));
        assert_non_null(strstr(text, "\n, m.message_id AS id, "));
        assert_null(strstr(text, "--+ ,"));
        assert_null(strstr(text, ":blocks"));
    }
    assert_string_equal(text_of(composed, "insert"), rcpt_sql("lane/insert"));
    rcpt_lane_statements_free(composed);
}

static void the_quiet_form_has_other_blocks_and_makes_sure_that_it_may(void **state)
{
    (void)state;
    static const char *const blocks[] = {"first AS (SELECT 1)", "second AS (SELECT 2)"};
    struct rcpt_lane_statements *composed = rcpt_lane_statements_new(blocks, 2);
    rcpt_lane_statements_add_unsubscribed(composed, blocks, 1);
    const char *unsubscribed = text_of(composed, "apply_unsubscribed");
    assert_non_null(strstr(unsubscribed, "\n)\n,\nfirst AS (SELECT 1)\nSELECT"));
    assert_non_null(strstr(unsubscribed, "\nactions_quiet($24::int2[], $25::int4) q,\n"));
    assert_null(strstr(text_of(composed, "apply"), "\nactions_quiet("));
    rcpt_lane_statements_free(composed);

    composed = rcpt_lane_statements_new(blocks, 1);
    rcpt_lane_statements_add_unsubscribed(composed, blocks, 0);
    assert_null(strstr(text_of(composed, "apply_unsubscribed"), " AS id, "));
    rcpt_lane_statements_free(composed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_quiet_form_has_other_blocks_and_makes_sure_that_it_may),
        cmocka_unit_test(without_a_block_the_text_is_that_of_the_file_less_its_optional_lines),
        cmocka_unit_test(blocks_stand_before_the_answer_and_see_more_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

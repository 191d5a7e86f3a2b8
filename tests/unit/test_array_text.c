#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/postgres/array_text.h"

static void elements_stand_between_braces_and_commas(void **state)
{
    (void)state;
    struct rcpt_array_text array;
    rcpt_array_text_init(&array);
    rcpt_array_text_add_int(&array, INT64_MIN);
    rcpt_array_text_add_null(&array);
    rcpt_array_text_add_int(&array, 7);
    assert_string_equal(rcpt_array_text_finish(&array), "{-9223372036854775808,NULL,7}");
    rcpt_array_text_fini(&array);
}

static void an_array_without_elements_is_empty(void **state)
{
    (void)state;
    struct rcpt_array_text array;
    rcpt_array_text_init(&array);
    assert_string_equal(rcpt_array_text_finish(&array), "{}");
    rcpt_array_text_fini(&array);
}

static void texts_keep_what_array_in_would_read_as_syntax(void **state)
{
    (void)state;
    static const char text[] = "a,\"b\"\\{NULL} ";
    struct rcpt_array_text array;
    rcpt_array_text_init(&array);
    rcpt_array_text_add(&array, text, strlen(text));
    rcpt_array_text_add(&array, "", 0);
    rcpt_array_text_add(&array, "NULL", 4);
    assert_string_equal(rcpt_array_text_finish(&array),
                        "{\"a,\\\"b\\\"\\\\{NULL} \",\"\",\"NULL\"}");
    rcpt_array_text_fini(&array);
}

static void bytes_become_hexadecimal(void **state)
{
    (void)state;
    struct rcpt_array_text array;
    rcpt_array_text_init(&array);
    rcpt_array_text_add_bytea(&array, "\0\x7f\xff", 3);
    rcpt_array_text_add_bytea(&array, "", 0);
    assert_string_equal(rcpt_array_text_finish(&array), "{\"\\\\x007fff\",\"\\\\x\"}");
    rcpt_array_text_fini(&array);
}

static void an_array_that_was_not_finished_is_freed(void **state)
{
    (void)state;
    struct rcpt_array_text array;
    rcpt_array_text_init(&array);
    rcpt_array_text_add_int(&array, 1);
    rcpt_array_text_fini(&array);
}

static void what_array_out_writes_is_read(void **state)
{
    (void)state;
    static const char *const expected[] = {"a", "",      "NULL", NULL,        "a,\"b\"\\{NULL} ",
                                           "}", "plain", "\\",   "\xc3\xa4 b"};
    struct rcpt_arena arena;
    struct rcpt_array_reader reader;
    struct rcpt_text element;
    rcpt_arena_init(&arena, 64);
    rcpt_array_reader_init(&reader, "{a,\"\",\"NULL\",NULL,\"a,\\\"b\\\"\\\\{NULL} \",\"}\",plain,"
                                    "\"\\\\\",\"\xc3\xa4 b\"}");
    for (size_t index = 0; index < sizeof(expected) / sizeof(expected[0]); index++) {
        assert_true(rcpt_array_reader_next(&reader, &arena, &element));
        assert_int_equal(element.at == NULL, expected[index] == NULL);
        assert_true(expected[index] == NULL || rcpt_text_is(element, expected[index]));
    }
    assert_false(rcpt_array_reader_next(&reader, &arena, &element));
    assert_false(rcpt_array_reader_next(&reader, &arena, &element));
    rcpt_arena_fini(&arena);
}

static void integers_are_read(void **state)
{
    (void)state;
    struct rcpt_array_reader reader;
    int64_t number;
    rcpt_array_reader_init(&reader, "{0,-32768,9223372036854775807}");
    assert_true(rcpt_array_reader_next_int(&reader, &number) && number == 0);
    assert_true(rcpt_array_reader_next_int(&reader, &number) && number == -32768);
    assert_true(rcpt_array_reader_next_int(&reader, &number) && number == INT64_MAX);
    assert_false(rcpt_array_reader_next_int(&reader, &number));
}

static void no_array_has_no_elements(void **state)
{
    (void)state;
    struct rcpt_array_reader reader;
    struct rcpt_text element;
    int64_t number;
    rcpt_array_reader_init(&reader, NULL);
    assert_false(rcpt_array_reader_next(&reader, NULL, &element));
    rcpt_array_reader_init(&reader, "{}");
    assert_false(rcpt_array_reader_next_int(&reader, &number));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_stand_between_braces_and_commas),
        cmocka_unit_test(an_array_without_elements_is_empty),
        cmocka_unit_test(texts_keep_what_array_in_would_read_as_syntax),
        cmocka_unit_test(bytes_become_hexadecimal),
        cmocka_unit_test(an_array_that_was_not_finished_is_freed),
        cmocka_unit_test(what_array_out_writes_is_read),
        cmocka_unit_test(integers_are_read),
        cmocka_unit_test(no_array_has_no_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

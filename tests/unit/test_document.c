/* JSON as a tree: its limits, its elements, and where it is no tree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/document.h"
#include "receiptd/base/error.h"

static const struct rcpt_node *parse(struct rcpt_arena *arena, const char *text,
                                     const char **reason)
{
    *reason = "none";
    return rcpt_document_parse(rcpt_text_of(text), arena, reason);
}

static void elements_are_found_by_their_number(void **state)
{
    struct rcpt_arena arena;
    const char *reason;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    const struct rcpt_node *root = parse(&arena, "{\"a\":[10,true,{\"b\":\" x \"}]}", &reason);
    const struct rcpt_node *array = rcpt_node_get(root, "a");
    assert_true(rcpt_text_is(rcpt_node_text(rcpt_node_element(array, 0)), "10"));
    assert_true(rcpt_node_is_true(rcpt_node_element(array, 1)));
    assert_true(rcpt_text_is(rcpt_node_text_of(rcpt_node_element(array, 2), "b"), "x"));
    assert_null(rcpt_node_element(array, 3));
    assert_null(rcpt_node_element(root, 0)); /* an object has names */
    assert_null(rcpt_node_element(NULL, 0));
    rcpt_arena_fini(&arena);
}

/* Values of which there are one too many, of each kind, are refused and not cut off. */
static void more_values_than_the_limit_are_refused(void **state)
{
    static const char *const last[] = {"1]", "\"x\"]", "true]", "null]", "[]]", "{}]"};
    (void)state;
    for (size_t index = 0; index < sizeof(last) / sizeof(last[0]); index++) {
        struct rcpt_arena arena;
        const char *reason;
        size_t full = 2 * (RCPT_DOCUMENT_MAX_NODES - 2);
        char *text = rcpt_malloc(full + 16);
        rcpt_arena_init(&arena, 65536);
        text[0] = '[';
        for (size_t at = 1; at <= full; at += 2)
            memcpy(text + at, "0,", 2);
        strcpy(text + 1 + full, last[index]);
        assert_non_null(parse(&arena, text, &reason));
        text[full] = ',';
        strcpy(text + 1 + full, "0,");
        strcat(text + 1 + full, last[index]);
        assert_null(parse(&arena, text, &reason));
        assert_string_equal(reason, "too_many_values");
        free(text);
        rcpt_arena_fini(&arena);
    }
}

static void deeper_values_than_the_limit_are_refused(void **state)
{
    struct rcpt_arena arena;
    const char *reason;
    char text[2 * RCPT_DOCUMENT_MAX_DEPTH + 3] = "";
    (void)state;
    rcpt_arena_init(&arena, 4096);
    memset(text, '[', RCPT_DOCUMENT_MAX_DEPTH);
    memset(text + RCPT_DOCUMENT_MAX_DEPTH, ']', RCPT_DOCUMENT_MAX_DEPTH);
    assert_non_null(parse(&arena, text, &reason));
    memset(text, '[', RCPT_DOCUMENT_MAX_DEPTH + 1);
    memset(text + RCPT_DOCUMENT_MAX_DEPTH + 1, ']', RCPT_DOCUMENT_MAX_DEPTH + 1);
    assert_null(parse(&arena, text, &reason));
    assert_string_equal(reason, "too_deep");
    assert_null(parse(&arena, "{\"a\":", &reason));
    assert_string_equal(reason, "invalid_json");
    rcpt_arena_fini(&arena);
}

static void text_is_utf8_as_unicode_defines_it(void **state)
{
    static const struct {
        const char *bytes;
        bool good;
    } examples[] = {
        {"plain and longer than eight bytes", true},
        {"12345678\xc3\xa9", true},
        {"\xf0\x9f\x98\x80", true},
        {"\xc3", false},
        {"\xc0\xaf", false},
        {"\xed\xa0\x80", false},
        {"\xe2\x82(", false},
        {"\xf4\x90\x80\x80", false},
        {"12345678\x80", false},
    };
    (void)state;
    for (size_t index = 0; index < sizeof(examples) / sizeof(examples[0]); index++)
        assert_int_equal(rcpt_text_is_utf8(rcpt_text_of(examples[index].bytes)),
                         examples[index].good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_found_by_their_number),
        cmocka_unit_test(more_values_than_the_limit_are_refused),
        cmocka_unit_test(deeper_values_than_the_limit_are_refused),
        cmocka_unit_test(text_is_utf8_as_unicode_defines_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

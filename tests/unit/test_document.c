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
    char text[2 * RCPT_JSON_READ_MAX_DEPTH + 3] = "";
    (void)state;
    rcpt_arena_init(&arena, 4096);
    memset(text, '[', RCPT_JSON_READ_MAX_DEPTH);
    memset(text + RCPT_JSON_READ_MAX_DEPTH, ']', RCPT_JSON_READ_MAX_DEPTH);
    assert_non_null(parse(&arena, text, &reason));
    memset(text, '[', RCPT_JSON_READ_MAX_DEPTH + 1);
    memset(text + RCPT_JSON_READ_MAX_DEPTH + 1, ']', RCPT_JSON_READ_MAX_DEPTH + 1);
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

/* What verifies a body and what reads it find the same members. */
static void members_are_those_of_the_tree(void **state)
{
    static const char *const texts[] = {
        "{\"a\":1,\"b\":\"x\",\"a\":2}",
        "{\"a\":\"x\",\"a\":null}",
        "{\"a\":\"x\",\" a \":[1,{\"a\":3}],\"b\":{\"a\":{}}}",
        "{\"\\u0061\":\"\\n\",\"c\":{\"a\":\"y\",\"b\":\"z\"}}",
        "{\"b\":true,\"a\":{\"a\":1}}",
        "[{\"a\":1}]",
        "{\"a\":1",
        "{\"a\":1} x",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        "7",
        ""};
    static const char *const names[] = {"a", "b"};
    struct rcpt_arena arena;
    const char *reason;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    for (size_t index = 0; index < sizeof(texts) / sizeof(texts[0]); index++) {
        struct rcpt_node found[2], all[8];
        size_t count = 2, all_count = 8;
        const struct rcpt_node *root = parse(&arena, texts[index], &reason);
        bool good = rcpt_document_members(rcpt_text_of(texts[index]), &arena, names, found, &count,
                                          &reason);
        assert_int_equal(good, root != NULL && root->type == RCPT_NODE_OBJECT);
        for (size_t name = 0; good && name < 2; name++) {
            const struct rcpt_node *node = rcpt_node_get(root, names[name]);
            assert_int_equal(found[name].type, node != NULL ? node->type : RCPT_NODE_NULL);
            assert_true(rcpt_text_equal(rcpt_node_text(&found[name]), rcpt_node_text(node)));
            if (node != NULL)
                assert_true(rcpt_text_equal(found[name].raw, node->raw));
        }
        assert_int_equal(rcpt_document_members(rcpt_text_of(texts[index]), &arena, NULL, all,
                                               &all_count, &reason),
                         good);
        const struct rcpt_node *node = good ? root->first : NULL;
        size_t each = 0;
        for (; node != NULL && each < all_count; each++, node = node->next)
            assert_true(rcpt_text_equal(all[each].key, node->key) &&
                        rcpt_text_equal(all[each].raw, node->raw));
        assert_true(node == NULL && each == all_count);
    }
    rcpt_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_found_by_their_number),
        cmocka_unit_test(members_are_those_of_the_tree),
        cmocka_unit_test(more_values_than_the_limit_are_refused),
        cmocka_unit_test(deeper_values_than_the_limit_are_refused),
        cmocka_unit_test(text_is_utf8_as_unicode_defines_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

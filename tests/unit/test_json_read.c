/* JSON as a stream of tokens: what is JSON and what is not, and what a token says of its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/error.h"
#include "receiptd/base/json_read.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct seen {
    char text[400];
    unsigned left; /* tokens until the callback stops */
};

/* Writes "kind depth end text;" of every token. */
static bool on_token(void *context, const struct rcpt_json_token *token)
{
    static const char kinds[] = "nb1s[{k]";
    struct seen *seen = context;
    size_t used = strlen(seen->text);
    snprintf(seen->text + used, sizeof(seen->text) - used, "%c%u@%zu%.*s;", kinds[token->kind],
             token->depth, token->end, (int)token->text.size, token->text.at);
    return seen->left-- > 0;
}

static enum rcpt_json_result read_text(const char *text, struct seen *seen,
                                       struct rcpt_json_fault *fault)
{
    *seen = (struct seen){.left = 100};
    return rcpt_json_read(rcpt_text_of(text), on_token, seen, fault);
}

static void tokens_say_their_kind_their_depth_and_their_end(void **state)
{
    static const char *const examples[][2] = {
        {"{\"a\":[1,\"x\\ny\",null],\"b\":{}}",
         "{0@1;k1@4a;[1@6;12@71;s2@14x\ny;n2@19;]1@20;k1@24b;{1@26;]1@27;]0@28;"},
        {" -1.50e+3 ", "10@9-1.50e+3;"},
        {"12345678901234567890123", "10@2312345678901234567890123;"},
        {"1e400", "10@51e400;"},
        {"true", "b0@4true;"},
        {"\"\\ud800\"", "s0@8?;"},
        {"\"\\udc00\\ud83d\\ude00\\ud800\\u0041\"", "s0@32?\xf0\x9f\x98\x80?A;"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\"",
         "s0@30\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac;"},
        {"[\"\xff\"]", "[0@1;s1@4\xff;]0@5;"},
    };
    (void)state;
    for (size_t index = 0; index < COUNT(examples); index++) {
        struct seen seen;
        assert_int_equal(read_text(examples[index][0], &seen, NULL), RCPT_JSON_OK);
        assert_string_equal(seen.text, examples[index][1]);
    }
}

static void what_is_no_json_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *fault;
        size_t byte;
    } examples[] = {
        {"", "the text ends too early", 0},
        {"  ", "the text ends too early", 2},
        {"{\"a\":1", "the text ends too early", 6},
        {"{\"a\" 1}", "expected ':'", 5},
        {"{\"a\":1,}", "expected a key", 7},
        {"{\"a\":1]", "expected ',' or '}'", 6},
        {"[1,]", "expected a value", 3},
        {"[01]", "expected ',' or ']'", 2},
        {"[+1]", "expected a value", 1},
        {"-", "a digit is missing", 1},
        {"1.", "a digit is missing behind the point", 2},
        {"1e+", "a digit is missing in the exponent", 3},
        {"NaN", "expected a value", 0},
        {"nul", "not a value", 0},
        {"truE", "not a value", 0},
        {"\"x", "the string does not end", 2},
        {"\"\t\"", "a control character in a string", 1},
        {"\"\\x\"", "no such escape", 2},
        {"\"\\u12g4\"", "four hexadecimal digits are missing", 5},
        {"[1] 2", "trailing bytes", 4},
        {"[]]", "trailing bytes", 2},
        {"{} \"x", "trailing bytes", 3},
        {"{}\v", "trailing bytes", 2},
        {"\f[]", "expected a value", 0},
    };
    (void)state;
    for (size_t index = 0; index < COUNT(examples); index++) {
        struct seen seen;
        struct rcpt_json_fault fault;
        assert_int_equal(read_text(examples[index].text, &seen, &fault), RCPT_JSON_INVALID);
        assert_string_equal(fault.text, examples[index].fault);
        assert_int_equal(fault.byte, examples[index].byte);
    }
}

static void a_callback_stops_the_reading(void **state)
{
    struct seen seen = {.left = 2};
    (void)state;
    assert_int_equal(rcpt_json_read(RCPT_TEXT("[1,2,3]"), on_token, &seen, NULL),
                     RCPT_JSON_STOPPED);
    assert_string_equal(seen.text, "[0@1;11@21;11@42;");
}

static void containers_inside_each_other_are_limited(void **state)
{
    struct seen seen;
    struct rcpt_json_fault fault;
    char text[RCPT_JSON_READ_MAX_DEPTH + 2] = "";
    (void)state;
    memset(text, '[', RCPT_JSON_READ_MAX_DEPTH);
    assert_int_equal(read_text(text, &seen, &fault), RCPT_JSON_INVALID);
    text[RCPT_JSON_READ_MAX_DEPTH] = '{';
    assert_int_equal(read_text(text, &seen, &fault), RCPT_JSON_TOO_DEEP);
    assert_string_equal(fault.text, "nested too deep");
}

/* Unescaped texts live in the reader's memory, and only until the callback returns. */
static void only_texts_outside_of_the_input_are_copied(void **state)
{
    struct rcpt_text input = RCPT_TEXT("\"plain\"");
    char foreign[] = "foreign";
    struct rcpt_arena arena;
    (void)state;
    rcpt_arena_init(&arena, 256);
    struct rcpt_text plain = {input.at + 1, 5};
    assert_ptr_equal(rcpt_json_keep(input, plain, &arena).at, plain.at);
    struct rcpt_text kept = rcpt_json_keep(input, rcpt_text_of(foreign), &arena);
    memset(foreign, 'x', sizeof(foreign) - 1);
    assert_true(rcpt_text_is(kept, "foreign"));
    assert_int_equal(rcpt_json_keep(input, RCPT_TEXT(""), &arena).size, 0);
    rcpt_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_say_their_kind_their_depth_and_their_end),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(a_callback_stops_the_reading),
        cmocka_unit_test(containers_inside_each_other_are_limited),
        cmocka_unit_test(only_texts_outside_of_the_input_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

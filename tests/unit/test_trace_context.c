#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/trace_context.h"

#define GOOD "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void what_is_read_is_written_again(void **state)
{
    static const struct {
        const char *text;
        bool sampled;
    } cases[] = {
        {GOOD, true},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", false},
        {"00-00000000000000000000000000000001-0000000000000001-01", true},
        {"00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-00", false},
    };
    (void)state;
    for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
        struct rcpt_trace_context context;
        char text[RCPT_TRACE_TEXT_BYTES + 1];
        assert_true(rcpt_trace_parse(cases[index].text, strlen(cases[index].text), &context));
        assert_int_equal(context.sampled, cases[index].sampled);
        assert_int_equal(rcpt_trace_is_sampled(cases[index].text, strlen(cases[index].text)),
                         cases[index].sampled);
        rcpt_trace_format(&context, text);
        assert_string_equal(text, cases[index].text);
    }
}

static void other_flags_than_the_one_that_is_known_are_not_passed_on(void **state)
{
    static const char text[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff";
    struct rcpt_trace_context context;
    char again[RCPT_TRACE_TEXT_BYTES + 1];
    (void)state;
    assert_true(rcpt_trace_parse(text, strlen(text), &context));
    assert_true(context.sampled);
    rcpt_trace_format(&context, again);
    assert_string_equal(again, GOOD);
}

static void what_is_malformed_is_no_trace(void **state)
{
    static const char *const texts[] = {
        "",
        "00",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    };
    (void)state;
    for (size_t index = 0; index < sizeof(texts) / sizeof(texts[0]); index++) {
        struct rcpt_trace_context context = {.trace = {7}};
        assert_false(rcpt_trace_parse(texts[index], strlen(texts[index]), &context));
        assert_int_equal(context.trace[0], 7);
    }
}

static void a_state_is_printable_and_not_too_long(void **state)
{
    char text[RCPT_TRACE_STATE_BYTES + 1];
    (void)state;
    memset(text, 'a', sizeof(text));
    assert_true(rcpt_trace_is_state("congo=t61rcWkgMzE,rojo=00f067", 29));
    assert_true(rcpt_trace_is_state(text, RCPT_TRACE_STATE_BYTES));
    assert_true(rcpt_trace_is_state("a", 1));
    assert_false(rcpt_trace_is_state(text, sizeof(text)));
    assert_false(rcpt_trace_is_state("", 0));
    assert_false(rcpt_trace_is_state("a=\n", 3));
    assert_false(rcpt_trace_is_state("a=\xc3\xa9", 4));
    assert_false(rcpt_trace_is_state("a\0b", 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_written_again),
        cmocka_unit_test(other_flags_than_the_one_that_is_known_are_not_passed_on),
        cmocka_unit_test(what_is_malformed_is_no_trace),
        cmocka_unit_test(a_state_is_printable_and_not_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

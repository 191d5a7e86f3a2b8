/* Decimal numbers: which texts are some, and what they say, to the last digit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "receiptd/base/decimal.h"

static void a_number_is_read_to_the_last_digit(void **state)
{
    static const struct {
        const char *text, *expected; /* NULL: it is none, or does not fit */
    } cases[] = {
        {"0", "0"},
        {"-0.0075", "-0.0075"},
        {"0.03330000", "0.03330000"},
        {"007.50", "7.50"},
        {".5", "0.5"},
        {"5.", "5"},
        {"75e-4", "0.0075"},
        {"1.25E+2", "125"},
        {"999999999999999999.999999999999999999", "999999999999999999.999999999999999999"},
        {"1000000000000000000", NULL},
        {"0.0000000000000000001", NULL},
        {"1e19", NULL},
        {"1e-19", NULL},
        {"1e9999999", NULL},
        {"999999999999999999.999999999999999999e36", NULL}, /* more than 128 bits */
        {"", NULL},
        {"-", NULL},
        {".", NULL},
        {"+1", NULL},
        {"1.2.3", NULL},
        {"1,5", NULL},
        {"1 ", NULL},
        {"1e", NULL},
        {"1e-", NULL},
        {"1e1x", NULL},
        {"1x", NULL},
        {"0x10", NULL},
        {"NaN", NULL},
        {"Infinity", NULL},
    };
    (void)state;
    for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
        struct rcpt_decimal decimal = {7, 0};
        char text[RCPT_DECIMAL_TEXT];
        bool good = rcpt_decimal_read(rcpt_text_of(cases[index].text), &decimal);
        rcpt_decimal_text(&decimal, text);
        /* A refused text leaves the result as it was. */
        assert_string_equal(text, cases[index].expected != NULL ? cases[index].expected : "7");
        assert_int_equal(good, cases[index].expected != NULL);
    }
}

static void a_sum_is_exact_or_refused(void **state)
{
    struct rcpt_decimal sum = {0, 0}, value;
    char text[RCPT_DECIMAL_TEXT];
    (void)state;
    for (int index = 0; index < 10; index++) {
        assert_true(rcpt_decimal_read(RCPT_TEXT("0.1"), &value));
        assert_true(rcpt_decimal_add(&sum, value));
    }
    rcpt_decimal_text(&sum, text);
    assert_string_equal(text, "1.0");
    assert_true(rcpt_decimal_read(RCPT_TEXT("999999999999999999e18"), &value));
    sum = value;
    while (rcpt_decimal_add(&sum, sum))
        ;
    struct rcpt_decimal before = sum;
    assert_false(rcpt_decimal_add(&sum, before));
    assert_true(sum.units == before.units && sum.scale == before.scale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_is_read_to_the_last_digit),
        cmocka_unit_test(a_sum_is_exact_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

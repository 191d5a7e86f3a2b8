#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/timestamp.h"

#define LATEST_US INT64_C(253402300799999999)

struct example {
    const char *text;
    int64_t at_us; /* -1: not a time */
};

static const struct example texts[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"2026-11-21T02:30:00Z", INT64_C(1795228200000000)},
    {"2026-11-21T02:30:00.123456Z", INT64_C(1795228200123456)},
    {"2026-11-21t02:30:00.5z", INT64_C(1795228200500000)},
    {"2026-11-21 02:30:00Z", INT64_C(1795228200000000)},
    {"2026-11-21T08:00:00+05:30", INT64_C(1795228200000000)},
    {"2026-11-21T08:00:00+0530", INT64_C(1795228200000000)},
    {"2026-11-20T23:30:00.000-0300", INT64_C(1795228200000000)},
    {"2026-11-21T02:30:00-00:00", INT64_C(1795228200000000)},
    {"2026-11-21T02:30:00.1234567Z", INT64_C(1795228200123456)},
    {"2026-11-21T02:30:00.1234569999999999999999999999Z", INT64_C(1795228200123456)},
    {"2026-11-21T02:30:00.000000999Z", INT64_C(1795228200000000)},
    {"2016-12-31T23:59:60Z", INT64_C(1483228799999999)},
    {"2016-12-31T23:59:60.5Z", INT64_C(1483228799999999)},
    {"2024-02-29T00:00:00Z", INT64_C(1709164800000000)},
    {"2000-02-29T00:00:00Z", INT64_C(951782400000000)},
    {"9999-12-31T23:59:59.999999Z", LATEST_US},
    {"1969-12-31T23:30:00-01:00", INT64_C(1800000000)},
    {"2026-11-21T02:30:00+23:59", INT64_C(1795141860000000)},
    /* beyond 1970…9999 */
    {"1969-12-31T23:59:59Z", -1},
    {"1970-01-01T00:00:00+00:01", -1},
    {"9999-12-31T23:59:59-00:01", -1},
    {"0000-01-01T00:00:00Z", -1},
    {"0001-01-01T00:00:00Z", -1},
    /* no such day or hour */
    {"2023-02-29T00:00:00Z", -1},
    {"2100-02-29T00:00:00Z", -1},
    {"2026-04-31T00:00:00Z", -1},
    {"2026-00-10T00:00:00Z", -1},
    {"2026-13-10T00:00:00Z", -1},
    {"2026-01-00T00:00:00Z", -1},
    {"2026-01-01T24:00:00Z", -1},
    {"2026-01-01T00:60:00Z", -1},
    {"2026-01-01T00:00:61Z", -1},
    {"2026-01-01T00:00:00+24:00", -1},
    {"2026-01-01T00:00:00+00:60", -1},
    /* not the form */
    {"", -1},
    {"2026", -1},
    {"2026-11-21", -1},
    {"2026-11-21T02:30Z", -1},
    {"2026-11-21T02:30:00", -1},
    {"2026-11-21T02:30:00.", -1},
    {"2026-11-21T02:30:00.Z", -1},
    {"2026-11-21T02:30:00,5Z", -1},
    {"2026-11-21T02:30:00+05", -1},
    {"2026-11-21T02:30:00+5:30", -1},
    {"2026-11-21T02:30:00+05:3", -1},
    {"2026-11-21T02:30:00+05-30", -1},
    {"2026-11-21T02:30:00 +05:30", -1},
    {"2026-11-21T02:30:00ZZ", -1},
    {" 2026-11-21T02:30:00Z", -1},
    {"2026-11-21T02:30:00Z ", -1},
    {"2026/11/21T02:30:00Z", -1},
    {"2026-11-21_02:30:00Z", -1},
    {"2026-1-021T02:30:00Z", -1},
    {"+026-11-21T02:30:00Z", -1},
    {"2026-11-21T02:30:0xZ", -1},
    {"1700000000", -1},
};

static const struct example numbers[] = {
    {"0", 0},
    {"0.0", 0},
    {"0e99999999999999999999", 0},
    {"1700000000", INT64_C(1700000000000000)},
    {"1700000000.25", INT64_C(1700000000250000)},
    {"1700000000.1234567", INT64_C(1700000000123456)},
    {"1700000000123", INT64_C(1700000000123000)},
    {"1700000000123.4567", INT64_C(1700000000123456)},
    {"1.7e9", INT64_C(1700000000000000)},
    {"1.7E+9", INT64_C(1700000000000000)},
    {"17000000000e-1", INT64_C(1700000000000000)},
    {"0.00000017e16", INT64_C(1700000000000000)},
    {"99999999999", INT64_C(99999999999000000)},
    {"99999999999.999999", INT64_C(99999999999999999)},
    {"100000000000", INT64_C(100000000000000)},
    {"1e11", INT64_C(100000000000000)},
    {"9.9999999999e10", INT64_C(99999999999000000)},
    {"0.000001", 1},
    {"0.0000009", 0},
    {"1e-300", 0},
    {"1e-99999999999999999999", 0},
    {"253402300799999", INT64_C(253402300799999000)},
    {"253402300799999.999", LATEST_US},
    {"253402300800000", -1},
    {"999999999999999", -1},
    {"1e15", -1},
    {"1e99999999999999999999", -1},
    {"18446744073709551616", -1},
    {"-1", -1},
    {"-0", -1},
    {"+1", -1},
    {"01", -1},
    {"1.", -1},
    {".5", -1},
    {"1e", -1},
    {"1e+", -1},
    {"1.e5", -1},
    {"1.5.5", -1},
    {"", -1},
    {" 1", -1},
    {"1 ", -1},
    {"0x10", -1},
    {"1700000000s", -1},
    {"NaN", -1},
};

static void check(bool (*parse)(const char *, size_t, int64_t *), const struct example *examples,
                  size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t at_us = -7;
        bool valid = parse(examples[i].text, strlen(examples[i].text), &at_us);
        int64_t expected = examples[i].at_us >= 0 ? examples[i].at_us : -7; /* untouched */
        if (valid != (examples[i].at_us >= 0) || at_us != expected)
            fail_msg("\"%s\": valid %d, %lld", examples[i].text, valid, (long long)at_us);
    }
}

static void rfc_3339_texts_are_read_and_nothing_else(void **state)
{
    (void)state;
    check(rcpt_timestamp_parse, texts, sizeof(texts) / sizeof(texts[0]));
}

static void epochs_are_read_exactly_and_nothing_else(void **state)
{
    (void)state;
    check(rcpt_timestamp_parse_epoch, numbers, sizeof(numbers) / sizeof(numbers[0]));
}

static void texts_need_no_terminator(void **state)
{
    (void)state;
    int64_t at_us = 0;
    assert_true(rcpt_timestamp_parse("2026-11-21T02:30:00Z99", 20, &at_us));
    assert_true(rcpt_timestamp_parse_epoch("17000000001", 10, &at_us));
    assert_int_equal(at_us, INT64_C(1700000000000000));
    assert_false(rcpt_timestamp_parse("2026-11-21T02:30:00Z", 19, &at_us));
}

static void times_are_written_in_full(void **state)
{
    (void)state;
    char text[28];
    rcpt_timestamp_format(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
    rcpt_timestamp_format(INT64_C(1795228200123456), text);
    assert_string_equal(text, "2026-11-21T02:30:00.123456Z");
    rcpt_timestamp_format(LATEST_US, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
}

static void every_day_is_written_and_read_back(void **state)
{
    (void)state;
    const int64_t day_us = INT64_C(86400000000);
    char text[28], last[28] = "";
    for (int64_t at_us = day_us - 1; at_us <= LATEST_US; at_us += day_us) {
        int64_t back = -1;
        rcpt_timestamp_format(at_us, text);
        assert_true(rcpt_timestamp_parse(text, strlen(text), &back));
        assert_true(back == at_us);
        assert_true(strcmp(text, last) > 0);
        memcpy(last, text, sizeof(last));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_3339_texts_are_read_and_nothing_else),
        cmocka_unit_test(epochs_are_read_exactly_and_nothing_else),
        cmocka_unit_test(texts_need_no_terminator),
        cmocka_unit_test(times_are_written_in_full),
        cmocka_unit_test(every_day_is_written_and_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

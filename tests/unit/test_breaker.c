#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "actions/breaker.h"

static const struct rcpt_breaker_limits limits = {
    .failures = 3, .open_ms = 100, .disable_after_ms = 5000};

static void it_opens_after_failures_in_a_row_only(void **state)
{
    (void)state;
    struct rcpt_breaker breaker = {0};
    for (int turn = 0; turn < 3; turn++) {
        assert_false(rcpt_breaker_failed(&breaker, &limits, 0));
        assert_false(rcpt_breaker_failed(&breaker, &limits, 0));
        assert_false(rcpt_breaker_succeeded(&breaker));
    }
    rcpt_breaker_failed(&breaker, &limits, 0);
    rcpt_breaker_failed(&breaker, &limits, 0);
    assert_true(rcpt_breaker_failed(&breaker, &limits, 0));
    assert_int_equal(rcpt_breaker_advance(&breaker, 99), RCPT_BREAKER_OPEN);
    assert_int_equal(rcpt_breaker_advance(&breaker, 100), RCPT_BREAKER_PROBING);
    assert_true(rcpt_breaker_succeeded(&breaker));
    assert_int_equal(rcpt_breaker_advance(&breaker, 100), RCPT_BREAKER_CLOSED);
}

static void probes_that_fail_come_less_and_less_often(void **state)
{
    (void)state;
    static const int waits[] = {100, 200, 400, 800, 1600, 1600, 1600};
    const struct rcpt_breaker_limits never = {.failures = 1, .open_ms = 100};
    struct rcpt_breaker breaker = {0};
    int64_t now = 0;
    for (size_t turn = 0; turn < sizeof(waits) / sizeof(waits[0]); turn++) {
        assert_true(rcpt_breaker_failed(&breaker, &never, now));
        assert_int_equal(rcpt_breaker_advance(&breaker, now + waits[turn] - 1), RCPT_BREAKER_OPEN);
        now += waits[turn];
        assert_int_equal(rcpt_breaker_advance(&breaker, now), RCPT_BREAKER_PROBING);
    }
}

static void late_answers_of_others_do_not_prolong_it(void **state)
{
    (void)state;
    struct rcpt_breaker breaker = {0};
    for (int turn = 0; turn < 3; turn++)
        rcpt_breaker_failed(&breaker, &limits, 0);
    for (int turn = 0; turn < 50; turn++)
        assert_false(rcpt_breaker_failed(&breaker, &limits, 50));
    assert_int_equal(rcpt_breaker_advance(&breaker, 100), RCPT_BREAKER_PROBING);
}

static void one_that_fails_for_very_long_is_disabled(void **state)
{
    (void)state;
    struct rcpt_breaker breaker = {0};
    int64_t now = 0;
    while (breaker.state != RCPT_BREAKER_DISABLED && now < 100000) {
        rcpt_breaker_failed(&breaker, &limits, now);
        now += 100;
        rcpt_breaker_advance(&breaker, now);
    }
    assert_in_range(now, 5000, 7000);
    assert_int_equal(rcpt_breaker_advance(&breaker, now + 1000000), RCPT_BREAKER_DISABLED);
    assert_false(rcpt_breaker_failed(&breaker, &limits, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_opens_after_failures_in_a_row_only),
        cmocka_unit_test(probes_that_fail_come_less_and_less_often),
        cmocka_unit_test(late_answers_of_others_do_not_prolong_it),
        cmocka_unit_test(one_that_fails_for_very_long_is_disabled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

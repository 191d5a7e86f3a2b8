#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "receiptd/base/pace.h"

#define SHARE 20

static void runs_that_cost_much_rest_long(void **state)
{
    (void)state;
    struct rcpt_pace pace = {0};
    rcpt_pace_wait_ms(&pace, 500, SHARE);
    assert_int_equal(rcpt_pace_wait_ms(&pace, 500, SHARE), 500 * SHARE);
    assert_int_equal(rcpt_pace_wait_ms(&pace, 600, SHARE), 500 * SHARE);
    assert_int_equal(rcpt_pace_wait_ms(&pace, 600, SHARE), 600 * SHARE);
}

static void a_single_long_run_puts_off_nothing(void **state)
{
    (void)state;
    struct rcpt_pace pace = {0};
    assert_int_equal(rcpt_pace_wait_ms(&pace, 4000, SHARE), 0);
    assert_int_equal(rcpt_pace_wait_ms(&pace, 2, SHARE), 2 * SHARE);
    assert_int_equal(rcpt_pace_wait_ms(&pace, 60000, SHARE), 2 * SHARE);
    assert_int_equal(rcpt_pace_wait_ms(&pace, 3, SHARE), 3 * SHARE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_cost_much_rest_long),
        cmocka_unit_test(a_single_long_run_puts_off_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Causes of an outage: which of them are worth a line, and what ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "receiptd/base/outage.h"

static bool note(struct rcpt_outage *outage, bool *is_down, int64_t now_ms, const char *text)
{
    struct rcpt_error error;
    rcpt_error_set(&error, RCPT_DECISION_RETRY, NULL, "%s", text);
    return rcpt_outage_note(outage, is_down, now_ms, &error);
}

static void each_cause_is_one_line_for_all_members(void **state)
{
    (void)state;
    struct rcpt_outage outage = {0};
    bool first = false, second = false;
    assert_true(note(&outage, &first, 0, "refused"));
    assert_false(note(&outage, &first, 10, "refused"));
    assert_false(note(&outage, &second, 20, "refused"));
    assert_true(note(&outage, &second, 30, "starting up"));
    assert_int_equal(outage.down, 2);
    assert_int_equal(outage.failures, 4);
}

static void a_cause_that_comes_again_after_long_is_a_line_again(void **state)
{
    (void)state;
    struct rcpt_outage outage = {0};
    bool is_down = false;
    assert_true(note(&outage, &is_down, 0, "refused"));
    assert_false(note(&outage, &is_down, RCPT_OUTAGE_AGAIN_MS, "refused"));
    assert_true(note(&outage, &is_down, 2 * RCPT_OUTAGE_AGAIN_MS + 1, "refused"));
}

static void the_last_member_ends_it_and_the_next_failure_begins_another(void **state)
{
    (void)state;
    struct rcpt_outage outage = {0};
    bool first = false, second = false;
    assert_true(note(&outage, &first, 0, "refused"));
    assert_false(note(&outage, &second, 0, "refused"));
    rcpt_outage_end(&outage, &first, 10, "test", "works again");
    assert_int_equal(outage.down, 1);
    rcpt_outage_leave(&outage, &second);
    assert_int_equal(outage.down, 0);
    assert_int_equal(outage.failures, 0);
    assert_true(note(&outage, &first, 20, "refused"));
}

/* Texts may hold a number that changes with each failure. */
static void more_causes_than_are_kept_replace_the_rarest(void **state)
{
    (void)state;
    struct rcpt_outage outage = {0};
    bool is_down = false;
    char text[16] = "cause a";
    assert_true(note(&outage, &is_down, 0, "often"));
    assert_false(note(&outage, &is_down, 0, "often"));
    for (int number = 0; number < 20; number++) {
        text[6] = (char)('a' + number);
        assert_true(note(&outage, &is_down, 0, text));
    }
    assert_false(note(&outage, &is_down, 0, "often"));
    rcpt_outage_end(&outage, &is_down, 10, "test", "works again");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cause_is_one_line_for_all_members),
        cmocka_unit_test(a_cause_that_comes_again_after_long_is_a_line_again),
        cmocka_unit_test(the_last_member_ends_it_and_the_next_failure_begins_another),
        cmocka_unit_test(more_causes_than_are_kept_replace_the_rarest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Classes of reasons: what holds for all of them. */
#include "gateways/reason.h"
#include "intake_fixture.h"

static const char *class_of(const struct rcpt_reason *reasons, size_t count, const char *reason,
                            const char *word, const char *status)
{
    const struct rcpt_text said[] = {rcpt_text_of(reason)};
    return rcpt_reason_class_of(reasons, count, said, 1, rcpt_text_of(word), status);
}

static void without_a_table_the_enhanced_code_or_the_status_tells(void **state)
{
    static const struct {
        const char *reason, *status, *class;
    } cases[] = {
        {"5.1.1", "BOUNCED_HARD", "invalid"}, {"5.2.2", "BOUNCED_SOFT", "absent"},
        {"4.4.7", "BOUNCED_SOFT", "expired"}, {"5.7.26", "BLOCKED", "blocked"},
        {"5.3.4", "FAILED", "content"},       {"4.4.1", "FAILED", "network"},
        {"5.9", "FAILED", "unknown"},         {"6.1.1", "FAILED", "unknown"},
        {"", "EXPIRED", "expired"},           {"", "BOUNCED_HARD", "invalid"},
        {"", "BLOCKED", "blocked"},           {"17", "REJECTED", "unknown"},
        {"", "SUBMIT_FAILED", "unknown"},     {"", "UNKNOWN", "unknown"},
    };
    static const char *const others[] = {"IN_GTW",    "SENT",   "DEFERRED", "SKIPPED",
                                         "DELIVERED", "OPENED", "CLICKED"};
    (void)state;
    for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++)
        assert_string_equal(class_of(NULL, 0, cases[index].reason, "x", cases[index].status),
                            cases[index].class);
    for (size_t index = 0; index < sizeof(others) / sizeof(others[0]); index++)
        assert_null(class_of(NULL, 0, "5.1.1", "x", others[index]));
}

static void the_code_comes_before_the_word_and_that_before_the_status(void **state)
{
    static const struct rcpt_reason table[] = {{"7", RCPT_REASON_CREDIT},
                                               {"bounce/2*", RCPT_REASON_NETWORK}};
    (void)state;
    assert_string_equal(class_of(table, 2, "7", "bounce/21", "BLOCKED"), "credit");
    assert_string_equal(class_of(table, 2, "8", "BOUNCE/21", "BLOCKED"), "network");
    assert_string_equal(class_of(table, 2, "5.1.1", "bounce/21", "BLOCKED"), "invalid");
    assert_string_equal(class_of(table, 2, "8", "bounce/3", "BLOCKED"), "blocked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_table_the_enhanced_code_or_the_status_tells),
        cmocka_unit_test(the_code_comes_before_the_word_and_that_before_the_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

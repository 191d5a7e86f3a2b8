/* What receipts did, told from the status before and after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/outcome.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    TARGETED = 0,
    IN_GTW = 200,
    SENT = 300,
    FAILED = 440,
    DELIVERED = 600,
    OPENED = 700,
    CLICKED = 800,
    COMPLAINED = 9001,
    UNSUBSCRIBED = 9002
};

static struct rcpt_ladder *ladder;

static int make_ladder(void **state)
{
    struct rcpt_error error;
    (void)state;
    ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    return ladder == NULL;
}

static int free_ladder(void **state)
{
    (void)state;
    rcpt_ladder_free(ladder);
    return 0;
}

static void each_receipt_has_one_fate(void **state)
{
    (void)state;
    static const struct {
        int16_t old, new, code;
        uint32_t gained;
        enum rcpt_outcome first, more;
    } cases[] = {
        {TARGETED, SENT, SENT, 0, RCPT_OUTCOME_APPLIED, RCPT_OUTCOME_DUPLICATE},
        {TARGETED, DELIVERED, SENT, 0, RCPT_OUTCOME_APPLIED, RCPT_OUTCOME_DUPLICATE},
        {DELIVERED, DELIVERED, SENT, 0, RCPT_OUTCOME_STALE, RCPT_OUTCOME_STALE},
        {DELIVERED, OPENED, SENT, 0, RCPT_OUTCOME_STALE, RCPT_OUTCOME_STALE},
        {DELIVERED, DELIVERED, DELIVERED, 0, RCPT_OUTCOME_DUPLICATE, RCPT_OUTCOME_DUPLICATE},
        {SENT, DELIVERED, SENT, 0, RCPT_OUTCOME_DUPLICATE, RCPT_OUTCOME_DUPLICATE},
        {FAILED, DELIVERED, DELIVERED, 0, RCPT_OUTCOME_APPLIED, RCPT_OUTCOME_DUPLICATE},
        {FAILED, FAILED, SENT, 0, RCPT_OUTCOME_STALE, RCPT_OUTCOME_STALE},
        {DELIVERED, DELIVERED, FAILED, 0, RCPT_OUTCOME_LOST, RCPT_OUTCOME_LOST},
        {SENT, DELIVERED, FAILED, 0, RCPT_OUTCOME_LOST, RCPT_OUTCOME_LOST},
        {SENT, SENT, COMPLAINED, 0, RCPT_OUTCOME_DUPLICATE, RCPT_OUTCOME_DUPLICATE},
        {SENT, DELIVERED, COMPLAINED, 1, RCPT_OUTCOME_APPLIED, RCPT_OUTCOME_DUPLICATE},
        {SENT, DELIVERED, UNSUBSCRIBED, 1, RCPT_OUTCOME_DUPLICATE, RCPT_OUTCOME_DUPLICATE},
        {4321, 4321, SENT, 0, RCPT_OUTCOME_LOST, RCPT_OUTCOME_LOST}, /* of another ladder */
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        assert_int_equal(rcpt_outcome_of(ladder, cases[index].old, cases[index].new,
                                         cases[index].gained, cases[index].code, true),
                         cases[index].first);
        assert_int_equal(rcpt_outcome_of(ladder, cases[index].old, cases[index].new,
                                         cases[index].gained, cases[index].code, false),
                         cases[index].more);
    }
}

static void moves_across_the_tree_are_corrections(void **state)
{
    (void)state;
    assert_true(rcpt_outcome_is_correction(ladder, FAILED, DELIVERED));
    assert_true(rcpt_outcome_is_correction(ladder, FAILED, CLICKED));
    assert_false(rcpt_outcome_is_correction(ladder, SENT, DELIVERED));
    assert_false(rcpt_outcome_is_correction(ladder, TARGETED, FAILED));
    assert_false(rcpt_outcome_is_correction(ladder, DELIVERED, DELIVERED));
    assert_false(rcpt_outcome_is_correction(ladder, DELIVERED, FAILED));
}

static void sums_hold_every_receipt_once(void **state)
{
    (void)state;
    static const int16_t codes[] = {SENT, CLICKED, COMPLAINED};
    static const int32_t counts[] = {1, 3, 2};
    struct rcpt_outcome_counts sums = {0};
    struct rcpt_outcome_group group = {.old = FAILED,
                                       .new = CLICKED,
                                       .gained = 1,
                                       .messages = 10,
                                       .codes = codes,
                                       .counts = counts,
                                       .size = 3};
    rcpt_outcome_count(&sums, ladder, &group);
    assert_int_equal(sums.receipts[RCPT_OUTCOME_STALE], 10);
    assert_int_equal(sums.receipts[RCPT_OUTCOME_APPLIED], 20);
    assert_int_equal(sums.receipts[RCPT_OUTCOME_DUPLICATE], 30);
    assert_int_equal(sums.receipts[RCPT_OUTCOME_LOST], 0);
    assert_int_equal(sums.corrections, 10);
    group.old = CLICKED;
    group.gained = 0;
    group.size = 1;
    group.messages = 5;
    rcpt_outcome_count(&sums, ladder, &group);
    assert_int_equal(sums.receipts[RCPT_OUTCOME_STALE], 15);
}

static void a_stage_with_the_smallest_code_is_a_stage(void **state)
{
    (void)state;
    static const struct rcpt_status_definition statuses[] = {
        {"ROOT", 0, NULL, false}, {"A", 1, "ROOT", false}, {"B", 2, "A", false}};
    static const struct rcpt_ladder_definition definition = {statuses, 3, NULL, 0, NULL, 0};
    static const int16_t codes[] = {2};
    static const int32_t counts[] = {1};
    struct rcpt_error error;
    struct rcpt_ladder *small = rcpt_ladder_new(&definition, &error);
    assert_non_null(small);
    struct rcpt_outcome_counts sums = {0};
    struct rcpt_outcome_group group = {
        .old = 0, .new = 2, .messages = 1, .codes = codes, .counts = counts, .size = 1};
    rcpt_outcome_count(&sums, small, &group);
    assert_int_equal(sums.receipts[RCPT_OUTCOME_APPLIED], 1);
    rcpt_ladder_free(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_receipt_has_one_fate),
        cmocka_unit_test(moves_across_the_tree_are_corrections),
        cmocka_unit_test(sums_hold_every_receipt_once),
        cmocka_unit_test(a_stage_with_the_smallest_code_is_a_stage),
    };
    return cmocka_run_group_tests(tests, make_ladder, free_ladder);
}

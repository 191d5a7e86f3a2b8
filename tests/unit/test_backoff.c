#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "receiptd/base/backoff.h"

#define SEEDS  200
#define MIN_MS 10
#define MAX_MS 1000

static void a_wait_is_at_most_three_times_the_last_one(void **state)
{
    (void)state;
    bool shortest = false, longest = false;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rcpt_backoff backoff;
        rcpt_backoff_init(&backoff, MIN_MS, MAX_MS, seed);
        int64_t last = MIN_MS;
        for (int turn = 0; turn < 50; turn++) {
            int64_t most = last * 3 < MAX_MS ? last * 3 : MAX_MS;
            last = rcpt_backoff_next_ms(&backoff);
            assert_true(last >= MIN_MS && last <= most);
            shortest |= turn == 0 && last == MIN_MS;
            longest |= turn == 0 && last == 3 * MIN_MS;
        }
    }
    assert_true(shortest && longest);
}

static void waits_grow_to_the_cap(void **state)
{
    (void)state;
    struct rcpt_backoff backoff;
    int64_t longest = 0;
    rcpt_backoff_init(&backoff, MIN_MS, MAX_MS, 1);
    for (int turn = 0; turn < 10000; turn++) {
        int64_t wait = rcpt_backoff_next_ms(&backoff);
        longest = wait > longest ? wait : longest;
    }
    assert_int_equal(longest, MAX_MS);
}

static void a_success_begins_anew(void **state)
{
    (void)state;
    struct rcpt_backoff backoff;
    rcpt_backoff_init(&backoff, MIN_MS, MAX_MS, 1);
    for (int turn = 0; turn < SEEDS; turn++) {
        for (int failure = 0; failure < 20; failure++)
            rcpt_backoff_next_ms(&backoff);
        rcpt_backoff_reset(&backoff);
        assert_true(rcpt_backoff_next_ms(&backoff) <= 3 * MIN_MS);
    }
}

static void bounds_are_at_least_a_millisecond_and_in_order(void **state)
{
    (void)state;
    struct rcpt_backoff backoff;
    rcpt_backoff_init(&backoff, 0, 0, 1);
    for (int turn = 0; turn < SEEDS; turn++)
        assert_int_equal(rcpt_backoff_next_ms(&backoff), 1);
    rcpt_backoff_init(&backoff, 50, 20, 1);
    for (int turn = 0; turn < SEEDS; turn++)
        assert_int_equal(rcpt_backoff_next_ms(&backoff), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_is_at_most_three_times_the_last_one),
        cmocka_unit_test(waits_grow_to_the_cap),
        cmocka_unit_test(a_success_begins_anew),
        cmocka_unit_test(bounds_are_at_least_a_millisecond_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Ids and their time: bounds part ids by their millisecond, in the order of bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/id_time.h"

static void test_bounds_are_the_texts_of_the_definitions(void **state)
{
    static const struct {
        enum rcpt_id_kind kind;
        int64_t ms;
        const char *bound;
    } cases[] = {
        {RCPT_ID_UUIDV7, 0, "00000000-0000"},
        {RCPT_ID_UUIDV7, 0x017F22E279B0, "017f22e2-79b0"}, /* RFC 9562, appendix A.6 */
        {RCPT_ID_UUIDV7, RCPT_ID_MOST_MS, "ffffffff-ffff"},
        {RCPT_ID_ULID, 0, "0000000000"},
        {RCPT_ID_ULID, 1469918176385, "01ARYZ6S41"}, /* the example of the specification */
        {RCPT_ID_ULID, RCPT_ID_MOST_MS, "7ZZZZZZZZZ"},
        {RCPT_ID_KSUID, 1400000000000, "000000000000000000000000000"}, /* the least one */
    };
    (void)state;
    for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
        char bound[RCPT_ID_BOUND_SIZE];
        int64_t ms = -1;
        rcpt_id_bound(cases[index].kind, cases[index].ms, bound);
        assert_string_equal(bound, cases[index].bound);
        assert_true(rcpt_id_time(cases[index].kind, bound, &ms));
        assert_int_equal(ms, cases[index].ms);
    }
}

static void test_whole_ids_have_the_time_they_begin_with(void **state)
{
    int64_t ms = 0;
    (void)state;
    assert_true(rcpt_id_time(RCPT_ID_UUIDV7, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", &ms));
    assert_int_equal(ms, 0x017F22E279B0);
    assert_true(rcpt_id_time(RCPT_ID_ULID, "01ARYZ6S41TSV4RRFFQ69G5FAV", &ms));
    assert_int_equal(ms, 1469918176385);
}

/* The example of the reference implementation, its least and its greatest one. */
static void test_ksuids_have_the_second_of_their_making(void **state)
{
    static const char example[] = "0ujtsYcgvSTl8PAuAdqWYSMnLOv";
    static const char greatest[] = "aWgEPTl1tmebfsQzFP4bxwgy80V";
    static const char *const others[] = {"",
                                         "0ujtsYcgvSTl8PAuAdqWYSMnLO",
                                         "0ujtsYcgvSTl8PAuAdqWYSMnLOvv",
                                         "0ujtsYcgvSTl8PAuAdqWYSMnLO-",
                                         "aWgEPTl1tmebfsQzFP4bxwgy80W",
                                         "zzzzzzzzzzzzzzzzzzzzzzzzzzz"};
    char bound[RCPT_ID_BOUND_SIZE], next[RCPT_ID_BOUND_SIZE], last[RCPT_ID_BOUND_SIZE];
    int64_t ms = 7;
    (void)state;
    for (size_t index = 0; index < sizeof(others) / sizeof(others[0]); index++)
        assert_false(rcpt_id_time(RCPT_ID_KSUID, others[index], &ms));
    assert_int_equal(ms, 7);
    assert_true(rcpt_id_time(RCPT_ID_KSUID, example, &ms));
    assert_int_equal(ms, (INT64_C(1400000000) + 107608047) * 1000);
    rcpt_id_bound(RCPT_ID_KSUID, ms, bound);
    rcpt_id_bound(RCPT_ID_KSUID, ms + 1, next); /* ids have whole seconds */
    rcpt_id_bound(RCPT_ID_KSUID, ms + 1000, last);
    assert_true(strcmp(bound, example) <= 0 && strcmp(example, next) < 0);
    assert_string_equal(next, last);
    assert_true(rcpt_id_time(RCPT_ID_KSUID, greatest, &ms));
    assert_int_equal(ms, (INT64_C(1400000000) + UINT32_MAX) * 1000);
    rcpt_id_bound(RCPT_ID_KSUID, RCPT_ID_MOST_MS, last);
    assert_true(strcmp(last, greatest) <= 0);
    rcpt_id_bound(RCPT_ID_KSUID, 0, bound);
    assert_string_equal(bound, "000000000000000000000000000");
}

static void test_a_bound_stands_between_the_ids_of_two_milliseconds(void **state)
{
    static const char *const rests[][2] = {
        [RCPT_ID_UUIDV7] = {"-7000-8000-000000000000", "-7fff-bfff-ffffffffffff"},
        [RCPT_ID_ULID] = {"0000000000000000", "ZZZZZZZZZZZZZZZZ"}};
    (void)state;
    uint64_t bits = 1;
    for (int turn = 0; turn < 20000; turn++) {
        enum rcpt_id_kind kind = turn % 2 == 0 ? RCPT_ID_UUIDV7 : RCPT_ID_ULID;
        bits = bits * UINT64_C(6364136223846793005) + 1442695040888963407;
        int64_t ms = (int64_t)(bits >> 16) & (RCPT_ID_MOST_MS - 1);
        char bound[RCPT_ID_BOUND_SIZE], next[RCPT_ID_BOUND_SIZE], first[64], last[64];
        rcpt_id_bound(kind, ms, bound);
        rcpt_id_bound(kind, ms + 1, next);
        snprintf(first, sizeof(first), "%s%s", bound, rests[kind][0]);
        snprintf(last, sizeof(last), "%s%s", bound, rests[kind][1]);
        assert_true(strcmp(bound, first) <= 0 && strcmp(last, next) < 0);
    }
}

static void test_what_is_no_such_id_has_no_time(void **state)
{
    static const char *const others[] = {
        "", "017f22e2", "017f22e279b0", "017F22E2-79B0", "017f22e2-79bg", "m1", "017f22e2_79b0"};
    static const char *const no_ulids[] = {"",           "01ARYZ6S4",  "01aryz6s41",
                                           "8ZZZZZZZZZ", "01ARYZ6SI1", "01ARYZ6S-1"};
    int64_t ms = 7;
    (void)state;
    for (size_t index = 0; index < sizeof(others) / sizeof(others[0]); index++)
        assert_false(rcpt_id_time(RCPT_ID_UUIDV7, others[index], &ms));
    for (size_t index = 0; index < sizeof(no_ulids) / sizeof(no_ulids[0]); index++)
        assert_false(rcpt_id_time(RCPT_ID_ULID, no_ulids[index], &ms));
    assert_int_equal(ms, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_are_the_texts_of_the_definitions),
        cmocka_unit_test(test_whole_ids_have_the_time_they_begin_with),
        cmocka_unit_test(test_ksuids_have_the_second_of_their_making),
        cmocka_unit_test(test_a_bound_stands_between_the_ids_of_two_milliseconds),
        cmocka_unit_test(test_what_is_no_such_id_has_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

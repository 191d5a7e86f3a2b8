/* Local times in zones, compared with what the C library makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "receiptd/base/zone.h"

#define FAR (INT64_MAX / 2)

static void offsets_are_fixed_zones(void **state)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } zones[] = {{"Z", 0}, {"+05:30", 19800}, {"-0300", -10800}, {"+00:00", 0}, {"-23:59", -86340}};
    static const char *const wrong[] = {"",        "5",   "+5:30",         "+24:00",  "+05:60",
                                        "+05:30x", "Z+1", "../etc",        "/etc/tz", "No/Where",
                                        "a b",     "+",   "Europe//Berlin"};
    const char *problem;
    (void)state;
    for (size_t index = 0; index < sizeof(zones) / sizeof(zones[0]); index++) {
        struct rcpt_zone *zone = rcpt_zone_new(zones[index].name, &problem);
        assert_non_null(zone);
        assert_int_equal(rcpt_zone_instant(zone, 1000000, FAR), 1000000 - zones[index].seconds);
        rcpt_zone_free(zone);
    }
    for (size_t index = 0; index < sizeof(wrong) / sizeof(wrong[0]); index++) {
        problem = NULL;
        assert_null(rcpt_zone_new(wrong[index], &problem));
        assert_non_null(problem);
    }
}

/* Converts an instant of each hour of ninety years there and back. An hour that comes twice may give
 * its other instant, if that is not too late. */
static void local_times_become_the_instants_that_they_were(void **state)
{
    static const char *const names[] = {
        "Europe/Berlin",     "America/New_York", "Australia/Lord_Howe", "Australia/Sydney",
        "America/Sao_Paulo", "Asia/Kolkata",     "Africa/Casablanca",   "America/St_Johns",
        "Pacific/Apia",      "Europe/Dublin",    "Asia/Kathmandu",      "UTC"};
    const char *problem;
    (void)state;
    for (size_t index = 0; index < sizeof(names) / sizeof(names[0]); index++) {
        struct rcpt_zone *zone = rcpt_zone_new(names[index], &problem);
        size_t twice = 0;
        if (zone == NULL)
            fail_msg("%s %s", names[index], problem);
        assert_int_equal(setenv("TZ", names[index], 1), 0);
        tzset();
        for (int64_t at = 1600000000; at < INT64_C(4400000000); at += 3601) {
            struct tm local;
            time_t instant = (time_t)at;
            assert_non_null(localtime_r(&instant, &local));
            int64_t local_s = at + local.tm_gmtoff;
            if (rcpt_zone_instant(zone, local_s, at) != at)
                fail_msg("%s: %lld becomes %lld", names[index], (long long)at,
                         (long long)rcpt_zone_instant(zone, local_s, at));
            twice += rcpt_zone_instant(zone, local_s, FAR) != at;
        }
        assert_true(twice < 800);
        rcpt_zone_free(zone);
    }
}

/* 2025 in Berlin: forward on 30 March at 2, back on 26 October at 3. */
static void an_hour_that_is_left_out_or_comes_twice_is_decided(void **state)
{
    static const struct {
        int64_t local, latest, at;
    } times[] = {
        {1743298200, FAR, 1743294600},        /* 01:30 */
        {1743301800, FAR, 1743298200},        /* 02:30, which was not: 03:30 */
        {1743305400, FAR, 1743298200},        /* 03:30 */
        {1761445800, FAR, 1761442200},        /* 02:30, later */
        {1761445800, 1761442200, 1761442200}, /* … as it had begun */
        {1761445800, 1761442199, 1761438600}, /* … and not yet: the earlier one */
        {1761445800, 0, 1761438600},
    };
    const char *problem;
    struct rcpt_zone *zone = rcpt_zone_new("Europe/Berlin", &problem);
    (void)state;
    assert_non_null(zone);
    for (size_t index = 0; index < sizeof(times) / sizeof(times[0]); index++)
        assert_int_equal(rcpt_zone_instant(zone, times[index].local, times[index].latest),
                         times[index].at);
    rcpt_zone_free(zone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_are_fixed_zones),
        cmocka_unit_test(local_times_become_the_instants_that_they_were),
        cmocka_unit_test(an_hour_that_is_left_out_or_comes_twice_is_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rules that make cells, each by a table of small batches: what its receipts and rows count. Codes
 * of the default ladder: 200 IN_GTW, 300 SENT, 440 FAILED, 600 DELIVERED, 650 BOUNCED_HARD_EMAIL,
 * 700 OPENED; flags: 9001 COMPLAINED, 9002 UNSUBSCRIBED. */
#include "rules_fixture.h"

#define ONE_DIMENSION .dimension_count = 1, .dimensions = {{"by_channel", "channel"}}
#define TWO_DIMENSIONS                                                                             \
    .dimension_count = 2, .dimensions = {{"by_channel", "channel"}, {"by_variant", "va\"riant"}}

static void play_all(const struct rules_case *cases, size_t count)
{
    for (size_t index = 0; index < count; index++)
        play(&cases[index], say_cells);
}

static void dimensions_count_by_the_values_of_the_row(void **state)
{
    static const struct rules_case cases[] = {
        {.settings = {ONE_DIMENSION},
         .receipts = {{"m", 600}},
         .rows = {{"a", 0, 0, 600, .columns = {"sms"}}},
         .expected =
             "by_channel a/sms 200 1/0, by_channel a/sms 300 1/0, by_channel a/sms 600 1/1"},
        /* NULL and '' are one key; a campaign of size 0 is one. */
        {.settings = {ONE_DIMENSION},
         .receipts = {{"m", 300}, {"n", 300}},
         .rows = {{"", 0, 200, 300, .columns = {NULL}}, {"", 1, 200, 300, .columns = {""}}},
         .expected = "by_channel / 300 2/2"},
        /* A message that did not change counts its receipts, with the flags beside. */
        {.settings = {ONE_DIMENSION},
         .receipts = {{"m", 300, .flags = 3}},
         .rows = {{"a", 0, 600, 600, .same = true, .columns = {"sms"}}},
         .expected =
             "by_channel a/sms 300 0/1, by_channel a/sms 9001 0/1, by_channel a/sms 9002 0/1"},
        /* Two dimensions; what is left is taken off; a flag is gained. */
        {.settings = {TWO_DIMENSIONS},
         .receipts = {{"m", 650}},
         .rows = {{"a", 0, 600, 650, 1, .columns = {"mail", "B"}}},
         .expected = "by_channel a/mail 600 -1/0, by_channel a/mail 650 1/1, "
                     "by_channel a/mail 9001 1/0, by_variant a/B 600 -1/0, by_variant a/B 650 1/1, "
                     "by_variant a/B 9001 1/0"},
        /* Of an id that stands in two rows each counts, under its own values. */
        {.settings = {ONE_DIMENSION},
         .receipts = {{"m", 600}},
         .rows = {{"a", 0, 300, 600, .columns = {"sms"}},
                  {"b", 0, 600, 600, .same = true, .columns = {"rcs"}}},
         .expected = "by_channel a/sms 600 1/1, by_channel b/rcs 600 0/1"},
        /* An echo is none of the events. */
        {.settings = {ONE_DIMENSION, .dedup = false},
         .receipts = {{"m", 600}, {"m", 600, .is_echo = true}},
         .rows = {{"a", 0, 300, 600, .columns = {"sms"}}},
         .expected = "by_channel a/sms 600 1/1"},
        /* What cancels out is not written. */
        {.settings = {ONE_DIMENSION},
         .receipts = {{"m", 650, .is_echo = true}, {"n", 600, .is_echo = true}},
         .rows = {{"a", 0, 600, 650, .columns = {"x"}}, {"a", 1, 650, 600, .columns = {"x"}}},
         .expected = ""},
        /* A status that the ladder does not have has no path. */
        {.settings = {ONE_DIMENSION},
         .receipts = {{"m", 600}},
         .rows = {{"a", 0, 5, 600, .columns = {"sms"}}},
         .expected = "by_channel a/sms 600 0/1"},
    };
    (void)state;
    play_all(cases, LENGTH(cases));
}

static void the_series_counts_in_the_minutes_of_receipts(void **state)
{
    static const struct rules_case cases[] = {
        /* A change counts in the minute of the receipt that made it, each receipt in its own. */
        {.settings = {.series = true},
         .receipts = {{"m", 300, .minute = 1}, {"m", 600, .minute = 7}, {"m", 600, .minute = 5}},
         .rows = {{"a", 0, 0, 600}},
         .expected = "a@1 300 0/1, a@5 200 1/0, a@5 300 1/0, a@5 600 1/1, a@7 600 0/1"},
        /* It is half past: the last minute is that of half past one. */
        {.settings = {.series = true},
         .receipts = {{"m", 600, .minute = 90},
                      {"n", 600, .minute = 91},
                      {"o", 600, .minute = 1e6}},
         .rows = {{"a", 0, 300, 600}, {"a", 1, 300, 600}, {"b", 2, 600, 600, .same = true}},
         .expected = "a@90 600 2/2, b@90 600 0/1"},
        /* Before 1970 there is no minute: it is the first one. */
        {.settings = {.series = true},
         .receipts = {{"m", 600, .minute = -HOUR - 5}, {"n", 600, .minute = -HOUR}},
         .rows = {{"a", 0, 300, 600}, {"a", 1, 300, 600}},
         .expected = "a@-28333320 600 2/2"},
        /* An echo and its flags are none of the events; its duplicate has no time. */
        {.settings = {.series = true, .dedup = true},
         .receipts = {{"m", 600, .flags = 1, .minute = 2, .is_echo = true},
                      {"n", 300, .minute = 3}},
         .rows = {{"a", 0, 600, 600, .same = true}, {"a", 1, 600, 600, .same = true}},
         .expected = "a@3 300 0/1, duplicate a/ 600 0/1"},
        {.settings = {.series = true},
         .receipts = {{"m", 600, .flags = 1, .minute = 2}},
         .rows = {{"", 0, 600, 600, 1}},
         .expected = "@2 600 0/1, @2 9001 1/1"},
    };
    (void)state;
    play_all(cases, LENGTH(cases));
}

/* One duplicate a copy, under its own code; what it names is taken off the funnel, all of it. */
static void a_copy_counts_one_duplicate(void **state)
{
    static const struct rules_case cases[] = {
        {.settings = {.dedup = true},
         .receipts = {{"m", 600, .gateway = TWILIO}},
         .rows = {{"a", 0, 300, 600}},
         .expected = ""},
        {.settings = {.dedup = true},
         .receipts = {{"m", 600, .flags = 3, .gateway = TWILIO, .is_echo = true}},
         .rows = {{"a", 0, 600, 600, .same = true}},
         .expected = "a 600 0/-1, a 9001 0/-1, a 9002 0/-1, duplicate a/twilio 600 0/1"},
        /* A flag's own code; no gateway; a copy of a copy. */
        {.settings = {.dedup = true},
         .receipts = {{"m", 9001, .is_echo = true}, {"m", 9001, .is_echo = true}},
         .rows = {{"", 0, 600, 600, .same = true}},
         .expected = " 9001 0/-2, duplicate / 9001 0/2"},
        /* Stale, beside one that counts: the message changed by the other. */
        {.settings = {.dedup = true},
         .receipts = {{"m", 300, .is_echo = true}, {"m", 600}},
         .rows = {{"a", 0, 300, 600}},
         .expected = "a 300 0/-1, duplicate a/ 300 0/1"},
        /* Of two rows each takes off what it counted. */
        {.settings = {.dedup = true},
         .receipts = {{"m", 300, .is_echo = true}},
         .rows = {{"a", 0, 300, 300, .same = true}, {"b", 0, 600, 600, .same = true}},
         .expected = "a 300 0/-1, b 300 0/-1, duplicate a/ 300 0/1, duplicate b/ 300 0/1"},
        /* An unknown message counts nowhere. */
        {.settings = {.dedup = true}, .receipts = {{"m", 300, .is_echo = true}}, .expected = ""},
    };
    (void)state;
    play_all(cases, LENGTH(cases));
}

static void reasons_count_by_campaign_and_by_gateway(void **state)
{
    static const struct rules_case cases[] = {
        {.settings = {.reasons = true},
         .receipts = {{"m", 440, .gateway = TWILIO, .reason = BLOCKED},
                      {"n", 440, .reason = BLOCKED},
                      {"o", 440}},
         .rows = {{"a", 0, 300, 440}, {"b", 1, 300, 440}, {"b", 2, 300, 440}},
         .expected = "reason a/blocked 440 0/1, reason b/blocked 440 0/1, "
                     "gateway_reason //blocked 440 0/1, gateway_reason /twilio/blocked 440 0/1"},
        {.settings = {.reasons = true},
         .receipts = {{"m", 440, .reason = BLOCKED, .is_echo = true},
                      {"m", 440, .gateway = KANNEL, .reason = INVALID}},
         .rows = {{"a", 0, 440, 440, .same = true}},
         .expected = "reason a/invalid 440 0/1, gateway_reason /kannel/invalid 440 0/1"},
        {.settings = {.reasons = true},
         .receipts = {{"m", 440, .reason = BLOCKED}},
         .expected = ""},
    };
    (void)state;
    play_all(cases, LENGTH(cases));
}

static void gateways_count_in_the_hour_of_now(void **state)
{
    static const struct rules_case cases[] = {
        /* Half an hour late: 1.8 million ms are in bucket 42. Sent and final: first by name. */
        {.settings = {.gateways = true},
         .receipts = {{"m", 600, .gateway = TWILIO}, {"m", 600, .minute = 30, .gateway = KANNEL}},
         .rows = {{"a", 0, 0, 600}},
         .expected = "gateway /kannel@0 600 0/1, gateway /twilio@0 600 0/1, "
                     "gateway_delay /kannel@0 0 0/1, gateway_delay /twilio@0 42 0/1, "
                     "gateway_final /kannel@0 0 1/0, gateway_sent /kannel@0 0 1/0"},
        /* In the future there is no delay; flags beside are none of its own; no gateway. */
        {.settings = {.gateways = true},
         .receipts = {{"m", 300, .flags = 1, .minute = 50}},
         .rows = {{"a", 0, 300, 300, 1}},
         .expected = "gateway /@0 300 0/1, gateway_delay /@0 0 0/1"},
        /* A stage that the message had passed; another branch, that won and lost. */
        {.settings = {.gateways = true},
         .receipts = {{"m", 300, .minute = 30}, {"n", 650, .minute = 30}, {"o", 440, .minute = 30}},
         .rows = {{"a", 0, 600, 600, .same = true},
                  {"a", 1, 600, 650},
                  {"a", 2, 600, 600, .same = true}},
         .expected = "gateway /@0 300 0/1, gateway /@0 440 0/1, gateway /@0 650 0/1, "
                     "gateway_delay /@0 0 0/3, gateway_disorder /@0 300 0/1, "
                     "gateway_lost /@0 440 0/1, gateway_won /@0 650 0/1"},
        /* The stage that the message is in, and one beyond it, are in order; so are flags. */
        {.settings = {.gateways = true},
         .receipts = {{"m", 300, .minute = 30},
                      {"m", 600, .minute = 30},
                      {"m", 9001, .minute = 30}},
         .rows = {{"a", 0, 300, 600, 1}},
         .expected = "gateway /@0 300 0/1, gateway /@0 600 0/1, gateway /@0 9001 0/1, "
                     "gateway_delay /@0 0 0/3, gateway_final /@0 0 1/0"},
        /* One that leaves a final status is taken off. */
        {.settings = {.gateways = true},
         .receipts = {{"m", 600, .minute = 30, .gateway = KANNEL}},
         .rows = {{"a", 0, 440, 310}},
         .expected = "gateway /kannel@0 600 0/1, gateway_delay /kannel@0 0 0/1, "
                     "gateway_final /kannel@0 0 -1/0, gateway_won /kannel@0 600 0/1"},
        {.settings = {.gateways = true, .dedup = true},
         .receipts = {{"m", 600, .flags = 3, .gateway = KANNEL, .is_echo = true}},
         .rows = {{"a", 0, 600, 600, .same = true}},
         .expected = "a 600 0/-1, a 9001 0/-1, a 9002 0/-1, duplicate a/kannel 600 0/1, "
                     "gateway_duplicate /kannel@0 600 0/1"},
        /* Of unknown messages: each receipt once, whatever it names. */
        {.settings = {.gateways = true},
         .receipts = {{"m", 600, .flags = 1, .gateway = KANNEL}, {"m", 300}, {"n", 300}},
         .expected = "gateway_unknown /@0 0 0/2, gateway_unknown /kannel@0 0 0/1"},
    };
    (void)state;
    play_all(cases, LENGTH(cases));
}

static void buckets_of_delays_end_at_powers_of_two(void **state)
{
    static const struct {
        int64_t delay_us;
        int16_t bucket;
    } cases[] = {{-1, 0},
                 {0, 0},
                 {1000, 0},
                 {1001, 1},
                 {1414, 1},
                 {1415, 2},
                 {2000, 2},
                 {2001, 3},
                 {1000000, 20},
                 {3600000000, 44},
                 {INT64_C(800000000000000), 79},
                 {INT64_MAX / 2, 79}};
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_rules *rules =
        rcpt_rules_new(&(struct rcpt_rules_settings){.ladder = fixture->ladder, .gateways = true});
    add_receipt(fixture, &(struct receipt){.id = "m", .code = 600});
    for (size_t index = 0; index < LENGTH(cases); index++) {
        fixture->decoded.events[0].at_us = NOW - cases[index].delay_us;
        rcpt_rules_begin(rules, &fixture->batch, NOW, &test_names);
        add_row(rules, &(struct row){"a", 0, 600, 600, .same = true});
        rcpt_rules_finish(rules);
        uint32_t count;
        struct rcpt_tally_range range = rcpt_rules_range(rules, RCPT_COUNT_GATEWAY_DELAY);
        assert_int_equal(range.end - range.first, 1);
        assert_int_equal(rcpt_rules_cells(rules, &count)[range.first].place.status,
                         cases[index].bucket);
    }
    rcpt_rules_free(rules);
    rules_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimensions_count_by_the_values_of_the_row),
        cmocka_unit_test(the_series_counts_in_the_minutes_of_receipts),
        cmocka_unit_test(a_copy_counts_one_duplicate),
        cmocka_unit_test(reasons_count_by_campaign_and_by_gateway),
        cmocka_unit_test(gateways_count_in_the_hour_of_now),
        cmocka_unit_test(buckets_of_delays_end_at_powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

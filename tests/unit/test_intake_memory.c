/* Aliases, keys and rates: bounded, and scoped by account. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/gateways/memory.h"
#include "receiptd/gateways/stats.h"

static const char *get(struct rcpt_alias_cache *cache, uint32_t scope, const char *id)
{
    struct rcpt_alias found;
    if (!rcpt_alias_cache_get(cache, scope, id, strlen(id), &found))
        return NULL;
    assert_int_equal(strlen(found.message_id), found.message_id_size);
    return found.message_id;
}

static void put(struct rcpt_alias_cache *cache, uint32_t scope, const char *id, const char *ours)
{
    const struct rcpt_alias target = {.message_id = ours, .message_id_size = strlen(ours)};
    rcpt_alias_cache_put(cache, scope, id, strlen(id), &target);
}

static void test_equal_ids_of_two_accounts_do_not_mix(void **state)
{
    (void)state;
    struct rcpt_alias_cache *cache = rcpt_alias_cache_new(10);
    put(cache, 1, "g", "one");
    put(cache, 2, "g", "two");
    assert_string_equal(get(cache, 1, "g"), "one");
    assert_string_equal(get(cache, 2, "g"), "two");
    assert_null(get(cache, 3, "g"));
    put(cache, 1, "g", "another");
    assert_string_equal(get(cache, 1, "g"), "another");
    rcpt_alias_cache_free(cache);
}

static void test_an_alias_keeps_its_part_until_it_is_put_again(void **state)
{
    (void)state;
    struct rcpt_alias_cache *cache = rcpt_alias_cache_new(10);
    const struct rcpt_alias part = {"m", 1, 2, 3};
    struct rcpt_alias found;
    rcpt_alias_cache_put(cache, 1, "g", 1, &part);
    assert_true(rcpt_alias_cache_get(cache, 1, "g", 1, &found));
    assert_int_equal(found.part, 2);
    assert_int_equal(found.parts, 3);
    put(cache, 1, "g", "m");
    assert_true(rcpt_alias_cache_get(cache, 1, "g", 1, &found));
    assert_int_equal(found.parts, 0);
    rcpt_alias_cache_free(cache);
}

static void test_the_alias_not_used_for_longest_is_forgotten(void **state)
{
    (void)state;
    struct rcpt_alias_cache *cache = rcpt_alias_cache_new(100);
    char id[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(id, sizeof(id), "g%d", i);
        put(cache, 0, id, id + 1);
        assert_string_equal(get(cache, 0, "g0"), "0"); /* always in use */
    }
    for (int i = 1; i < 5000; i++) {
        snprintf(id, sizeof(id), "g%d", i);
        if (i < 4901)
            assert_null(get(cache, 0, id));
        else
            assert_string_equal(get(cache, 0, id), id + 1);
    }
    rcpt_alias_cache_free(cache);
}

static struct rcpt_replay_key key(const struct rcpt_replay_memory *memory, uint32_t scope,
                                  const char *text)
{
    return rcpt_replay_key(memory, scope, text, strlen(text));
}

static void test_keys_are_known_for_their_time_and_account(void **state)
{
    (void)state;
    struct rcpt_replay_memory *memory = rcpt_replay_memory_new(50, 42);
    assert_false(rcpt_replay_is_known(memory, key(memory, 1, "k"), 0));
    rcpt_replay_remember(memory, key(memory, 1, "k"), 100);
    assert_true(rcpt_replay_is_known(memory, key(memory, 1, "k"), 99));
    assert_false(rcpt_replay_is_known(memory, key(memory, 1, "k"), 100));
    assert_false(rcpt_replay_is_known(memory, key(memory, 2, "k"), 50));
    rcpt_replay_remember(memory, key(memory, 1, "k"), 200);
    assert_true(rcpt_replay_is_known(memory, key(memory, 1, "k"), 150));
    char text[16];
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "%d", i);
        rcpt_replay_remember(memory, key(memory, 1, text), 1000);
        for (int j = i < 49 ? 0 : i - 49; j <= i; j++) {
            snprintf(text, sizeof(text), "%d", j);
            assert_true(rcpt_replay_is_known(memory, key(memory, 1, text), 0));
        }
    }
    assert_false(rcpt_replay_is_known(memory, key(memory, 1, "900"), 0));
    rcpt_replay_memory_free(memory);
    memory =
        rcpt_replay_memory_new(1000, 42); /* as many as were asked for, whatever their number */
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "%d", i);
        rcpt_replay_remember(memory, key(memory, 1, text), 1000);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "%d", i);
        assert_true(rcpt_replay_is_known(memory, key(memory, 1, text), 0));
    }
    rcpt_replay_memory_free(memory);
}

static void test_a_rate_allows_bursts_of_two_seconds(void **state)
{
    (void)state;
    struct rcpt_rate rate = {0};
    unsigned wait_s = 0, taken = 0;
    for (int i = 0; i < 100; i++)
        taken += rcpt_rate_admit(&rate, 10, 1000, &wait_s);
    assert_int_equal(taken, 20);
    assert_int_equal(wait_s, 1);
    for (int i = 0; i < 100; i++)
        taken += rcpt_rate_admit(&rate, 10, 1500, &wait_s);
    assert_int_equal(taken, 25);
    assert_true(rcpt_rate_admit(&rate, 0, 1500, &wait_s));
}

static void test_observations_fall_into_the_bucket_whose_bound_they_reach(void **state)
{
    (void)state;
    struct rcpt_gateway_histogram seen = {0};
    rcpt_gateway_observe(&seen, 0.0005);
    rcpt_gateway_observe(&seen, 0.0015);
    rcpt_gateway_observe(&seen, 10.5);
    assert_int_equal(seen.buckets[0], 1);
    assert_int_equal(seen.buckets[2], 1);
    assert_int_equal(seen.buckets[RCPT_GATEWAY_BUCKETS], 1);
    assert_int_equal(seen.count, 3);
    assert_int_equal((int)(seen.sum * 1000), 10502);
}

static void test_codes_are_counted_each_and_the_rest_together(void **state)
{
    (void)state;
    struct rcpt_gateway_stats stats = {0};
    uint64_t sum = 0;
    for (unsigned code = 0; code < 20; code++)
        rcpt_gateway_count_code(&stats, 200 + code);
    rcpt_gateway_count_code(&stats, 200);
    assert_int_equal(stats.codes[0].code, 200);
    assert_int_equal(stats.codes[0].count, 2);
    for (unsigned place = 0; place < RCPT_GATEWAY_CODES; place++)
        sum += stats.codes[place].count;
    assert_int_equal(sum, 21);
}

static void test_an_unknown_word_is_shown_and_nothing_else_of_the_gateway(void **state)
{
    static const char *const words[] = {"teleported", "ERR_30007", "sub.state-2", "X",
                                        "abcdefghijklmnopqrstuvwxyz_12345"};
    static const char *const others[] = {"",
                                         "GE\x1bL\xc3\xb6SCHT",
                                         "49171234567",
                                         "+49171234567",
                                         "555-123-4567",
                                         "m.1.2.3.4.5.6.7",
                                         "a@example.com",
                                         "to Ann",
                                         "a\"b",
                                         "a\nb",
                                         "abcdefghijklmnopqrstuvwxyz_123456"};
    (void)state;
    struct rcpt_gateway_stats stats = {0};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        rcpt_gateway_note_unmapped(&stats, rcpt_text_of(words[i]));
        assert_string_equal(stats.unmapped_sample, words[i]);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        rcpt_gateway_note_unmapped(&stats, rcpt_text_of(others[i]));
        assert_string_equal(stats.unmapped_sample, "other");
    }
}

static void test_a_rate_saves_no_more_than_its_burst(void **state)
{
    (void)state;
    struct rcpt_rate rate = {0};
    unsigned wait_s = 0, admitted = 0, again = 0;
    while (rcpt_rate_admit(&rate, 10, 1000, &wait_s))
        admitted++;
    while (rcpt_rate_admit(&rate, 10, 3600 * 1000, &wait_s))
        again++;
    assert_true(admitted >= 10);
    assert_int_equal(again, admitted);
    assert_int_equal(wait_s, 1);
    rcpt_alias_cache_free(NULL);
    rcpt_replay_memory_free(NULL);
}

static void test_an_id_that_is_too_long_is_not_remembered(void **state)
{
    (void)state;
    static char longer[70000];
    struct rcpt_alias_cache *cache = rcpt_alias_cache_new(10);
    memset(longer, 'x', sizeof(longer) - 1);
    put(cache, 1, longer, "m");
    put(cache, 1, "g", longer);
    assert_null(get(cache, 1, "g"));
    longer[65535] = '\0';
    put(cache, 1, longer, "m");
    assert_string_equal(get(cache, 1, longer), "m");
    rcpt_alias_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_observations_fall_into_the_bucket_whose_bound_they_reach),
        cmocka_unit_test(test_codes_are_counted_each_and_the_rest_together),
        cmocka_unit_test(test_an_unknown_word_is_shown_and_nothing_else_of_the_gateway),
        cmocka_unit_test(test_a_rate_saves_no_more_than_its_burst),
        cmocka_unit_test(test_equal_ids_of_two_accounts_do_not_mix),
        cmocka_unit_test(test_an_alias_keeps_its_part_until_it_is_put_again),
        cmocka_unit_test(test_the_alias_not_used_for_longest_is_forgotten),
        cmocka_unit_test(test_an_id_that_is_too_long_is_not_remembered),
        cmocka_unit_test(test_keys_are_known_for_their_time_and_account),
        cmocka_unit_test(test_a_rate_allows_bursts_of_two_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

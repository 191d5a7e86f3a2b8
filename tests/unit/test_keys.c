/* Keys of a batch's receipts: in which order they are stored, which receipts are copies, and which
 * keys go again. */
#include "receiptd/core/keys.h"

#include "rules_fixture.h"

#define DAY INT64_C(1440) /* minutes */

static void begin(struct rules_fixture *fixture, struct rcpt_keys *keys,
                  const struct receipt *receipts)
{
    fixture->batch.message_count = fixture->batch.event_count = 0;
    for (; receipts->id != NULL; receipts++)
        add_receipt(fixture, receipts);
    rcpt_keys_begin(keys, &fixture->batch);
}

/* The place of the key that this receipt of the batch is the first of. */
static uint32_t place_of(const struct rcpt_keys *keys, uint32_t event)
{
    uint32_t count, place = 0;
    const struct rcpt_key *list = rcpt_keys_list(keys, &count);
    while (place < count && list[place].first != event)
        place++;
    assert_true(place < count);
    return place;
}

/* One letter for each receipt: E an echo, c it counts. */
static void assert_echoes(const struct rules_fixture *fixture, const struct rcpt_keys *keys,
                          const char *expected)
{
    char text[MOST + 1] = "";
    for (uint32_t event = 0; event < fixture->batch.event_count; event++)
        text[event] = rcpt_keys_is_echo(keys, event) ? 'E' : 'c';
    assert_string_equal(text, expected);
}

static void copies_in_a_batch_are_found(void **state)
{
    static const struct {
        struct receipt receipts[MOST];
        const char *echoes;
        uint32_t keys;
    } cases[] = {
        {{{"m", 600, .key = 1}, {"m", 600, .key = 2}, {"n", 600, .key = 1}}, "ccc", 3},
        {{{"m", 600, .key = 1}, {"m", 600, .key = 1}, {"m", 600, .key = 1}}, "cEE", 1},
        /* Of copies with different times the earliest counts. */
        {{{"m", 600, .key = 1, .minute = 5}, {"m", 600, .key = 1, .minute = 3}}, "Ec", 1},
        /* Without a key each counts. */
        {{{"m", 600, .key = 0}, {"m", 600, .key = 0}}, "cc", 0},
        /* Of different days, also of one slot. */
        {{{"m", 600, .key = 1}, {"m", 600, .key = 1, .minute = -DAY}}, "cc", 2},
        {{{"m", 600, .key = 1}, {"m", 600, .key = 1, .minute = -16 * DAY}}, "cc", 2},
        {{{"m", 600, .key = 1, .minute = -HOUR - 1}}, "c", 1},
    };
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_keys *keys = rcpt_keys_new();
    for (size_t index = 0; index < LENGTH(cases); index++) {
        uint32_t count;
        begin(fixture, keys, cases[index].receipts);
        rcpt_keys_list(keys, &count);
        assert_int_equal(count, cases[index].keys);
        assert_echoes(fixture, keys, cases[index].echoes);
    }
    rcpt_keys_free(keys);
    rules_fixture_free(fixture);
}

static void keys_come_in_the_order_of_the_store(void **state)
{
    static const struct receipt receipts[MOST] = {
        {"m", 600, .key = UINT64_MAX},
        {"m", 600, .key = 7},
        {"n", 600, .key = 3, .minute = -DAY},
        {"o", 600, .key = 9, .minute = 2 * DAY},
        {"o", 600, .key = 8, .minute = -HOUR - 1},
    };
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_keys *keys = rcpt_keys_new();
    uint32_t count;
    begin(fixture, keys, receipts);
    const struct rcpt_key *list = rcpt_keys_list(keys, &count);
    assert_int_equal(count, 5);
    for (uint32_t place = 0; place < count; place++) {
        const struct rcpt_event *event = fixture->raw[list[place].first].event;
        int64_t minute = receipts[list[place].first].minute + HOUR;
        int64_t day = minute < 0 ? -1 : minute / DAY;
        assert_int_equal(list[place].day, day);
        assert_int_equal(list[place].message, (int64_t)event->hash);
        assert_int_equal(list[place].event, (int64_t)receipts[list[place].first].key);
        assert_int_equal(list[place].at_us, event->at_us);
        if (place == 0)
            continue;
        const struct rcpt_key *before = &list[place - 1];
        assert_true(before->day < list[place].day ||
                    (before->day == list[place].day && (before->message < list[place].message ||
                                                        (before->message == list[place].message &&
                                                         before->event < list[place].event))));
    }
    rcpt_keys_free(keys);
    rules_fixture_free(fixture);
}

/* A wake's events are without: the id says what it is. */
static void a_hash_that_is_not_there_is_made(void **state)
{
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_keys *keys = rcpt_keys_new();
    uint32_t count;
    begin(fixture, keys, (const struct receipt[]){{"m", 600, .key = 1}, {NULL, 0, .key = 0}});
    int64_t hash = rcpt_keys_list(keys, &count)->message;
    fixture->decoded.events[0].hash = 0;
    rcpt_keys_begin(keys, &fixture->batch);
    assert_true(hash != 0);
    assert_int_equal(rcpt_keys_list(keys, &count)->message, hash);
    rcpt_keys_free(keys);
    rules_fixture_free(fixture);
}

static void what_the_store_says_decides(void **state)
{
    static const struct receipt receipts[MOST] = {{"m", 600, .key = 1},
                                                  {"m", 600, .key = 1},
                                                  {"n", 600, .key = 2},
                                                  {"n", 600, .key = 2},
                                                  {"o", 600, .key = 3}};
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_keys *keys = rcpt_keys_new();
    begin(fixture, keys, receipts);
    rcpt_keys_tell(keys, place_of(keys, 0), RCPT_KEY_THERE);
    rcpt_keys_tell(keys, place_of(keys, 2), RCPT_KEY_OUTSIDE);
    assert_echoes(fixture, keys, "EEccc");
    begin(fixture, keys, receipts);
    assert_echoes(fixture, keys, "cEcEc");
    rcpt_keys_free(keys);
    rules_fixture_free(fixture);
}

static void keys_of_unknown_messages_go_again(void **state)
{
    static const struct receipt receipts[MOST] = {{"m", 600, .key = 1},
                                                  {"m", 600, .key = 2},
                                                  {"m", 600, .key = 3},
                                                  {"n", 600, .key = 4},
                                                  {"o", 600, .key = 0}};
    uint32_t count;
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_keys *keys = rcpt_keys_new();
    begin(fixture, keys, receipts);
    rcpt_keys_undone(keys, &count);
    assert_int_equal(count, 0);
    /* Another transaction's, and one that was never stored, stay as they are. */
    rcpt_keys_tell(keys, place_of(keys, 0), RCPT_KEY_THERE);
    rcpt_keys_tell(keys, place_of(keys, 1), RCPT_KEY_OUTSIDE);
    rcpt_keys_missed(keys, 0);
    rcpt_keys_missed(keys, 2);
    const struct rcpt_key *undone = rcpt_keys_undone(keys, &count);
    assert_int_equal(count, 1);
    assert_int_equal(undone->event, 3);
    begin(fixture, keys, receipts);
    rcpt_keys_undone(keys, &count);
    assert_int_equal(count, 0);
    rcpt_keys_free(keys);
    rules_fixture_free(fixture);
}

/* ---- any order ---- */

static uint64_t random_state = 88172645463325252ull;

static uint32_t below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

/* Of each key and day the earliest, whatever stands where. */
static bool is_earliest(const struct receipt *receipts, uint32_t count, uint32_t which)
{
    int64_t minute = receipts[which].minute + HOUR;
    for (uint32_t index = 0; index < count; index++) {
        int64_t other = receipts[index].minute + HOUR;
        if (receipts[index].key == receipts[which].key && other / DAY == minute / DAY &&
            other < minute)
            return false;
    }
    return true;
}

static void of_copies_the_earliest_counts_in_any_order(void **state)
{
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_keys *keys = rcpt_keys_new();
    uint32_t echoes = 0;
    for (uint32_t turn = 0; turn < 20000; turn++) {
        struct receipt receipts[MOST + 1] = {{.id = NULL}};
        uint32_t count = 1 + below(MOST);
        for (uint32_t index = 0; index < count; index++) /* no two at one time */
            receipts[index] = (struct receipt){"m", 600, .key = 1 + below(3),
                                               .minute = 20 * (int64_t)below(200) + index};
        begin(fixture, keys, receipts);
        for (uint32_t index = 0; index < count; index++) {
            bool is_echo = rcpt_keys_is_echo(keys, index);
            assert_int_equal(is_echo, !is_earliest(receipts, count, index));
            echoes += is_echo;
        }
    }
    assert_true(echoes > 10000);
    rcpt_keys_free(keys);
    rules_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_in_a_batch_are_found),
        cmocka_unit_test(keys_come_in_the_order_of_the_store),
        cmocka_unit_test(a_hash_that_is_not_there_is_made),
        cmocka_unit_test(what_the_store_says_decides),
        cmocka_unit_test(keys_of_unknown_messages_go_again),
        cmocka_unit_test(of_copies_the_earliest_counts_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The consumer against a real broker: RECEIPTD_TEST_BROKERS names it, without it everything is
 * skipped. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "kafka/internal.h"
#include "kafka_harness.h"

#define PARTITIONS 8
#define RECORDS    20000

struct fixture {
    uv_loop_t loop;
    char topic[64], group[64];
    const char *topics[1];
    bool cooperative;
    struct owner owner, other;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    uv_loop_init(&fixture->loop);
    unique_name(fixture->topic, sizeof(fixture->topic), "t");
    unique_name(fixture->group, sizeof(fixture->group), "g");
    fixture->topics[0] = fixture->topic;
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    int busy = uv_loop_close(&fixture->loop);
    free(fixture);
    return busy;
}

static void skip_without_brokers(void)
{
    if (test_brokers() != NULL)
        return;
    print_message("RECEIPTD_TEST_BROKERS is not set: there is no broker to test with\n");
    skip();
}

static const struct rcpt_kafka_property cooperative = {"partition.assignment.strategy",
                                                       "cooperative-sticky"};

static struct rcpt_kafka_settings settings_of(struct fixture *fixture, struct owner *owner)
{
    struct rcpt_kafka_settings settings =
        owner_settings(owner, test_brokers(), fixture->topics, fixture->group);
    if (fixture->cooperative) {
        settings.properties = &cooperative;
        settings.property_count = 1;
    }
    return settings;
}

static void skip_without_cooperation(struct fixture *fixture)
{
    struct rcpt_error error;
    fixture->cooperative = true;
    if (rcpt_kafka_check_property(cooperative.name, cooperative.value, &error))
        return;
    print_message("%s\n", error.text);
    skip();
}

static void begin(struct fixture *fixture, int partitions, int records)
{
    skip_without_brokers();
    topic_create(test_brokers(), fixture->topic, partitions);
    if (records > 0)
        produce(test_brokers(), fixture->topic, partitions, records, 100);
    struct rcpt_kafka_settings settings = settings_of(fixture, &fixture->owner);
    owner_start(&fixture->owner, &fixture->loop, &settings);
}

static void assert_exact(const struct positions *positions, uint64_t taken)
{
    assert_int_equal(positions->taken, taken);
    assert_int_equal(positions->skipped, 0);
}

static void partitions_are_read_in_order_from_the_given_offsets(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    uint64_t expected = 0;
    for (int i = 0; i < PARTITIONS; i++) {
        owner->own.next[i] = i * 1000;
        expected += (uint64_t)(RECORDS - i * 1000);
    }
    begin(fixture, PARTITIONS, RECORDS);
    RUN_UNTIL(&fixture->loop, 30000, owner->own.taken == expected);
    assert_exact(&owner->own, expected);
    assert_int_equal(owner->own.repeated, 0);
    assert_int_equal(owner->partition_count, PARTITIONS);
    assert_true(owner->healthy && strlen(owner->cluster_id) > 0);
    for (int i = 0; i < PARTITIONS; i++)
        assert_int_equal(owner->last[i], RECORDS - 1);
    assert_int_equal(rcpt_kafka_high_watermark(owner->kafka, fixture->topic, 3), RECORDS);
    assert_int_equal(rcpt_kafka_high_watermark(owner->kafka, fixture->topic, 30), -1);
    owner_close(owner);
}

static void an_assignment_may_be_held_for_seconds(void **state)
{
    struct fixture *fixture = *state;
    fixture->owner.hold_ms = 3000;
    begin(fixture, 4, 100);
    RUN_UNTIL(&fixture->loop, 10000, fixture->owner.held_count == 4);
    run_for(&fixture->loop, 2500);
    assert_int_equal(fixture->owner.own.taken, 0);
    RUN_UNTIL(&fixture->loop, 10000, fixture->owner.own.taken == 400);
    assert_int_equal(fixture->owner.assignments, 1);
    owner_close(&fixture->owner);
}

static void an_unwanted_partition_stops_alone_and_goes_on_without_a_gap(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    owner->unwanted[2] = true;
    begin(fixture, 4, 5000);
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken == 15000);
    run_for(&fixture->loop, 600);
    assert_int_equal(owner->received[2], 0);
    assert_int_equal(owner->own.taken, 15000);
    owner->unwanted[2] = false;
    rcpt_kafka_kick(owner->kafka);
    RUN_UNTIL(&fixture->loop, 5000, owner->own.taken == 20000);
    assert_exact(&owner->own, 20000);
    assert_int_equal(owner->own.repeated, 0);
    owner_close(owner);
}

/* Records that librdkafka has fetched and nobody has taken. */
static uint64_t lie_in_queues(const struct owner *owner)
{
    uint64_t count = 0;
    for (size_t i = 0; i < owner->kafka->partition_count; i++)
        count += rd_kafka_queue_length(owner->kafka->partitions[i]->queue);
    return count;
}

/* Three partitions are behind a fourth one. True: when that is at its end, so are they, but for
 * `slack` records. */
static bool catch_up(struct fixture *fixture, int records, int slack, unsigned round_messages)
{
    struct owner *owner = &fixture->owner;
    const int ahead = records / 2;
    for (int i = 0; i < 4; i++)
        owner->unwanted[i] = true;
    owner->own.next[3] = ahead;
    begin(fixture, 4, records);
    owner->kafka->round_messages = round_messages;
    RUN_UNTIL(&fixture->loop, 10000, owner->assigned_count == 4);
    RUN_UNTIL(&fixture->loop, 20000, lie_in_queues(owner) >= (uint64_t)(4 * records - ahead));
    for (int i = 0; i < 4; i++)
        owner->unwanted[i] = false;
    rcpt_kafka_kick(owner->kafka);
    RUN_UNTIL(&fixture->loop, 20000, owner->last[3] == records - 1);
    bool together = true;
    for (int i = 0; i < 3; i++)
        together = together && owner->last[i] >= records - slack;
    print_message("of %d records: %lld, %lld, %lld after %u rounds\n", records,
                  (long long)owner->last[0], (long long)owner->last[1], (long long)owner->last[2],
                  owner->rounds);
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken == (uint64_t)(4 * records - ahead));
    assert_exact(&owner->own, (uint64_t)(4 * records - ahead));
    owner_close(owner);
    return together;
}

/* Rounds end by the clock as well, and a busy machine decides what fits into them: one attempt has
 * to succeed. */
static void must_catch_up(int records, int slack, unsigned round_messages)
{
    bool together = false;
    skip_without_brokers();
    for (int attempt = 0; attempt < 5 && !together; attempt++) {
        void *state;
        set_up(&state);
        together = catch_up(state, records, slack, round_messages);
        assert_int_equal(tear_down(&state), 0);
    }
    assert_true(together);
}

static void partitions_that_are_behind_in_time_catch_up(void **state)
{
    (void)state;
    must_catch_up(5000, 512, ROUND_MESSAGES); /* a round and more */
}

/* As on a machine that is so slow that a round ends within a turn. */
static void partitions_catch_up_however_short_the_rounds_are(void **state)
{
    (void)state;
    must_catch_up(200, 50, 1);
}

/* The second turn of a round is cut. */
static void partitions_catch_up_where_rounds_cut_turns(void **state)
{
    (void)state;
    must_catch_up(2000, 200, 36);
}

static void seek_delivers_again_from_the_offset(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    begin(fixture, 2, 2000);
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken == 4000);
    for (int i = 0; i < 20; i++) {
        int64_t target = 100 * i;
        uint64_t other = owner->received[1];
        owner->own.next[0] = target;
        owner->own.taken = 0;
        rcpt_kafka_seek(owner->kafka, fixture->topic, 0, target);
        RUN_UNTIL(&fixture->loop, 5000, owner->own.taken == (uint64_t)(2000 - target));
        assert_exact(&owner->own, (uint64_t)(2000 - target));
        assert_int_equal(owner->received[1], other);
    }
    assert_int_equal(owner->own.repeated, 0);
    owner_close(owner);
}

static void reassign_moves_one_and_the_others_go_on(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    begin(fixture, 4, RECORDS);
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken > 5000);
    for (int i = 0; i < 10; i++) {
        int32_t partition = i % 4;
        int64_t back = owner->own.next[partition] / 2;
        owner->own.taken -= (uint64_t)(owner->own.next[partition] - back);
        owner->own.next[partition] = back;
        rcpt_kafka_reassign(owner->kafka, fixture->topic, partition, back);
        uint64_t before = owner->own.taken;
        RUN_UNTIL(&fixture->loop, 20000, owner->own.taken > before || before == 80000);
    }
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken == 4 * RECORDS);
    assert_exact(&owner->own, 4 * RECORDS);
    assert_int_equal(owner->own.repeated, 0);
    assert_int_equal(owner->assignments, 1);
    owner_close(owner);
}

/* One story, told in its order. NOLINTNEXTLINE(readability-function-size) */
static void members_share_and_take_over_without_a_gap(void **state)
{
    struct fixture *fixture = *state;
    struct owner *a = &fixture->owner, *b = &fixture->other;
    begin(fixture, PARTITIONS, 5000);
    RUN_UNTIL(&fixture->loop, 20000, a->own.taken > 10000);
    b->positions = &a->own;
    struct rcpt_kafka_settings settings = settings_of(fixture, b);
    owner_start(b, &fixture->loop, &settings);
    RUN_UNTIL(&fixture->loop, 20000, a->assigned_count == 4 && b->assigned_count == 4);
    assert_int_equal(a->lost, 0);
    RUN_UNTIL(&fixture->loop, 20000, a->own.taken == 5000 * PARTITIONS);
    produce(test_brokers(), fixture->topic, PARTITIONS, 1000, 100);
    RUN_UNTIL(&fixture->loop, 20000, a->own.taken == 6000 * PARTITIONS);
    assert_true(b->received[0] + b->received[4] > 0);
    owner_close(b);
    RUN_UNTIL(&fixture->loop, 10000, a->assigned_count == PARTITIONS);
    produce(test_brokers(), fixture->topic, PARTITIONS, 1000, 100);
    RUN_UNTIL(&fixture->loop, 20000, a->own.taken == 7000 * PARTITIONS);
    assert_exact(&a->own, 7000 * PARTITIONS);
    assert_int_equal(a->own.repeated, 0);
    owner_close(a);
}

static void a_cooperative_group_reassigns_one_partition(void **state)
{
    skip_without_cooperation(*state);
    reassign_moves_one_and_the_others_go_on(state);
}

static void a_cooperative_group_shares_and_takes_over_without_a_gap(void **state)
{
    skip_without_cooperation(*state);
    members_share_and_take_over_without_a_gap(state);
}

static void an_offset_beyond_the_end_is_told_with_the_logs_ends(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    owner->own.next[1] = 5000;
    owner->own.next[0] = 50;
    begin(fixture, 2, 100);
    RUN_UNTIL(&fixture->loop, 20000, owner->out_of_range == 1);
    assert_int_equal(owner->bad_partition, 1);
    assert_int_equal(owner->bad_wanted, 5000);
    assert_int_equal(owner->bad_low, 0);
    assert_int_equal(owner->bad_high, 100);
    RUN_UNTIL(&fixture->loop, 10000, owner->own.taken == 50);
    run_for(&fixture->loop, 500);
    assert_int_equal(owner->out_of_range, 1);
    assert_int_equal(owner->received[1], 0);
    /* It stands still until it is moved; seek does that too. */
    owner->own.next[1] = 10;
    rcpt_kafka_seek(owner->kafka, fixture->topic, 1, 10);
    RUN_UNTIL(&fixture->loop, 10000, owner->own.taken == 50 + 90);
    assert_exact(&owner->own, 140);
    owner_close(owner);
}

static void records_lost_to_retention_are_told(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    skip_without_brokers();
    topic_create(test_brokers(), fixture->topic, 1);
    produce(test_brokers(), fixture->topic, 1, 1000, 100);
    records_delete(test_brokers(), fixture->topic, 0, 400);
    owner->own.next[0] = 100;
    owner->reset_to_low = true;
    struct rcpt_kafka_settings settings = settings_of(fixture, owner);
    owner_start(owner, &fixture->loop, &settings);
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken == 600);
    assert_int_equal(owner->bad_wanted, 100);
    assert_int_equal(owner->bad_low, 400);
    assert_int_equal(owner->bad_high, 1000);
    assert_int_equal(owner->out_of_range, 1);
    owner_close(owner);
}

static void a_missing_topic_is_named_and_read_once_it_exists(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    skip_without_brokers();
    struct rcpt_kafka_settings settings = settings_of(fixture, owner);
    owner_start(owner, &fixture->loop, &settings);
    RUN_UNTIL(&fixture->loop, 20000, owner->cluster_calls == 1);
    assert_int_equal(owner->partition_count, 0);
    assert_false(owner->healthy);
    assert_non_null(strstr(owner->trouble.text, fixture->topic));
    assert_non_null(strstr(owner->trouble.text, "does not exist"));
    assert_non_null(strstr(owner->trouble.hint, "create it"));
    run_for(&fixture->loop, 1000);
    topic_create(test_brokers(), fixture->topic, 2);
    produce(test_brokers(), fixture->topic, 2, 100, 100);
    RUN_UNTIL(&fixture->loop, 15000, owner->own.taken == 200);
    assert_true(owner->healthy);
    assert_int_equal(owner->partition_count, 2);
    owner_close(owner);
}

static void added_partitions_are_noticed(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    skip_without_brokers();
    topic_create(test_brokers(), fixture->topic, 2);
    struct rcpt_kafka_property quick = {"topic.metadata.refresh.interval.ms", "1000"};
    struct rcpt_kafka_settings settings = settings_of(fixture, owner);
    settings.properties = &quick;
    settings.property_count = 1;
    owner_start(owner, &fixture->loop, &settings);
    RUN_UNTIL(&fixture->loop, 20000, owner->assigned_count == 2);
    topic_grow(test_brokers(), fixture->topic, 5);
    RUN_UNTIL(&fixture->loop, 20000, owner->assigned_count == 5 && owner->partition_count == 5);
    produce(test_brokers(), fixture->topic, 5, 100, 100);
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken == 500);
    owner_close(owner);
}

/* Holds an assignment of two partitions while three more are added. */
static void hold_while_the_topic_grows(struct fixture *fixture)
{
    struct owner *owner = &fixture->owner;
    skip_without_brokers();
    topic_create(test_brokers(), fixture->topic, 2);
    const struct rcpt_kafka_property properties[] = {{"topic.metadata.refresh.interval.ms", "1000"},
                                                     cooperative};
    struct rcpt_kafka_settings settings = settings_of(fixture, owner);
    settings.properties = properties;
    settings.property_count = fixture->cooperative ? 2 : 1;
    owner->hold_ms = -1;
    owner_start(owner, &fixture->loop, &settings);
    RUN_UNTIL(&fixture->loop, 20000, owner->held_count == 2);
    topic_grow(test_brokers(), fixture->topic, 5);
}

static void all_five_are_read_once(struct fixture *fixture)
{
    struct owner *owner = &fixture->owner;
    produce(test_brokers(), fixture->topic, 5, 100, 100);
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken == 500);
    assert_int_equal(owner->assigned_count, 5);
    assert_exact(&owner->own, 500);
    assert_int_equal(owner->own.repeated, 0);
    owner_close(owner);
}

static void an_assignment_that_is_held_may_be_replaced(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    hold_while_the_topic_grows(fixture);
    RUN_UNTIL(&fixture->loop, 20000, owner->held_count == 5);
    assert_int_equal(owner->assignments, 2);
    assert_int_equal(owner->revocations, 1);
    owner_answer(owner);
    all_five_are_read_once(fixture);
}

/* The group has joined again meanwhile, and the answer is to an assignment of the past. */
static void what_was_assigned_may_be_assigned_again_without_a_revoke(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    hold_while_the_topic_grows(fixture);
    sleep(5); /* the loop stands still, librdkafka's threads go on */
    owner_answer(owner);
    RUN_UNTIL(&fixture->loop, 20000, owner->held_count == (fixture->cooperative ? 3 : 5));
    owner_answer(owner);
    all_five_are_read_once(fixture);
}

static void in_a_cooperative_group_what_is_held_grows(void **state)
{
    skip_without_cooperation(*state);
    an_assignment_that_is_held_may_be_replaced(state);
}

static void in_a_cooperative_group_a_late_answer_counts(void **state)
{
    skip_without_cooperation(*state);
    what_was_assigned_may_be_assigned_again_without_a_revoke(state);
}

static void closing_leaves_the_group_at_once(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture, 4, 10);
    RUN_UNTIL(&fixture->loop, 20000, fixture->owner.own.taken == 40);
    int64_t took = owner_close(&fixture->owner);
    print_message("closed in %lld ms\n", (long long)took);
    assert_true(took < 2500);
    assert_int_equal(fixture->owner.revocations, 1);
    /* The session lasts 45 s: only a member that has left makes room at once. */
    struct rcpt_kafka_settings settings = settings_of(fixture, &fixture->other);
    owner_start(&fixture->other, &fixture->loop, &settings);
    RUN_UNTIL(&fixture->loop, 5000, fixture->other.assigned_count == 4);
    owner_close(&fixture->other);
}

static void closing_is_possible_at_any_moment(void **state)
{
    struct fixture *fixture = *state;
    skip_without_brokers();
    topic_create(test_brokers(), fixture->topic, 4);
    for (int delay = 0; delay < 200; delay += 10) {
        struct owner *owner = calloc(1, sizeof(*owner));
        owner->hold_ms = delay % 40 == 0 ? -1 : 5;
        struct rcpt_kafka_settings settings = settings_of(fixture, owner);
        owner_start(owner, &fixture->loop, &settings);
        run_for(&fixture->loop, delay);
        owner_close(owner);
        free(owner);
    }
}

static void the_trace_header_is_handed_over(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture, 1, 0);
    rd_kafka_t *producer = producer_new(test_brokers());
    rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(fixture->topic), RD_KAFKA_V_PARTITION(0),
                      RD_KAFKA_V_VALUE((void *)(uintptr_t) "x", 1),
                      RD_KAFKA_V_HEADER("other", "value", 5),
                      RD_KAFKA_V_HEADER("traceparent", "00-0af7-b7ad-01", 15),
                      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    rd_kafka_flush(producer, 10000);
    rd_kafka_destroy(producer);
    RUN_UNTIL(&fixture->loop, 20000, fixture->owner.own.taken == 1);
    assert_string_equal(fixture->owner.traceparent, "00-0af7-b7ad-01");
    owner_close(&fixture->owner);
}

static int64_t committed(struct fixture *fixture)
{
    run_briefly(&fixture->loop);
    return group_committed(test_brokers(), fixture->group, fixture->topic, 0);
}

static void committed_offsets_reach_the_lag_tools(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    begin(fixture, 1, 100);
    RUN_UNTIL(&fixture->loop, 20000, owner->own.taken == 100);
    struct rcpt_kafka_partition position = {fixture->topic, 0, 77};
    run_for(&fixture->loop, 150);
    uint64_t start = uv_hrtime();
    rcpt_kafka_commit(owner->kafka, &position, 1, NULL);
    position.offset = 99; /* within the interval: left out */
    rcpt_kafka_commit(owner->kafka, &position, 1, NULL);
    bool within = uv_hrtime() - start < UINT64_C(50000000);
    RUN_UNTIL(&fixture->loop, 10000, committed(fixture) >= 77);
    run_for(&fixture->loop, 300);
    if (within)
        assert_int_equal(committed(fixture), 77);
    owner_close(owner);
}

struct lows {
    bool done, failed;
    int64_t low[2];
};

static void on_lows(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                    const struct rcpt_error *error)
{
    struct lows *lows = context;
    assert_int_equal(count, 2);
    lows->done = true;
    lows->failed = error != NULL;
    for (size_t i = 0; i < count; i++)
        lows->low[i] = partitions[i].offset;
}

static void low_watermarks_are_read(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture, 2, 100);
    records_delete(test_brokers(), fixture->topic, 1, 42);
    struct lows lows = {0}, bad = {0};
    struct rcpt_kafka_partition ask[] = {{fixture->topic, 0, 0}, {fixture->topic, 1, 0}};
    rcpt_kafka_query_low(fixture->owner.kafka, ask, 2, on_lows, &lows);
    RUN_UNTIL(&fixture->loop, 20000, lows.done);
    assert_false(lows.failed);
    assert_int_equal(lows.low[0], 0);
    assert_int_equal(lows.low[1], 42);
    ask[1].partition = 77;
    rcpt_kafka_query_low(fixture->owner.kafka, ask, 2, on_lows, &bad);
    RUN_UNTIL(&fixture->loop, 20000, bad.done);
    assert_true(bad.failed);
    assert_int_equal(bad.low[0], 0);
    assert_int_equal(bad.low[1], -1);
    owner_close(&fixture->owner);
}

static int by_value(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static void send_times(struct fixture *fixture, rd_kafka_t *producer, int count)
{
    char key[] = "time";
    for (int i = 0; i < count; i++) {
        int64_t now = (int64_t)uv_hrtime();
        rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(fixture->topic), RD_KAFKA_V_PARTITION(i % 4),
                          RD_KAFKA_V_KEY(key, 4), RD_KAFKA_V_VALUE(&now, sizeof(now)),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        rd_kafka_poll(producer, 0);
        uint64_t next = (uint64_t)now + 1000000;
        while (uv_hrtime() < next) {
            uv_run(&fixture->loop, UV_RUN_NOWAIT);
            usleep(200);
        }
    }
}

/* On a busy machine a second may be slow; then the next one shows that the broker does not wait for
 * more. The tail is the machine's. */
static void records_that_trickle_in_are_not_waited_for(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    begin(fixture, 4, 0);
    RUN_UNTIL(&fixture->loop, 20000, owner->assigned_count == 4);
    rd_kafka_t *producer = producer_new(test_brokers());
    int64_t tenth = INT64_MAX;
    for (int second = 0; second < 20 && tenth >= 25000; second++) {
        owner->latency_count = 0;
        send_times(fixture, producer, 1000);
        RUN_UNTIL(&fixture->loop, 30000, owner->latency_count == 1000);
        qsort(owner->latencies_us, 1000, sizeof(int64_t), by_value);
        tenth = owner->latencies_us[100];
    }
    rd_kafka_destroy(producer);
    print_message("produce to on_message: tenth %lld us, median %lld us, p99 %lld us\n",
                  (long long)tenth, (long long)owner->latencies_us[500],
                  (long long)owner->latencies_us[990]);
    assert_true(tenth < 25000);
    owner_close(owner);
}

static void settings_that_contradict_each_other_are_refused_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct rcpt_error error = {0};
    struct rcpt_kafka_property bad = {"max.poll.interval.ms", "6000"};
    struct rcpt_kafka_settings settings =
        owner_settings(&fixture->owner, "127.0.0.1:1", fixture->topics, "g");
    settings.loop = &fixture->loop;
    settings.properties = &bad;
    settings.property_count = 1;
    assert_null(rcpt_kafka_new(&settings, &error));
    assert_int_equal(error.decision, RCPT_DECISION_FATAL);
    assert_non_null(strstr(error.text, "max.poll.interval.ms"));
}

static void nobody_listening_is_said_and_survived(void **state)
{
    struct fixture *fixture = *state;
    struct owner *owner = &fixture->owner;
    struct rcpt_kafka_settings settings =
        owner_settings(owner, "127.0.0.1:1", fixture->topics, "g");
    owner_start(owner, &fixture->loop, &settings);
    RUN_UNTIL(&fixture->loop, 15000, owner->health_calls > 0);
    assert_false(owner->healthy);
    assert_int_equal(owner->cluster_calls, 0);
    assert_non_null(strstr(owner->trouble.text, "127.0.0.1:1"));
    assert_int_equal(owner->trouble.decision, RCPT_DECISION_RETRY);
    owner_close(owner);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* With an argument: only the tests whose names match it, with * and ?. */
int main(int count, char **arguments)
{
    if (count > 1)
        cmocka_set_test_filter(arguments[1]);
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        TEST(settings_that_contradict_each_other_are_refused_at_once),
        TEST(nobody_listening_is_said_and_survived),
        TEST(partitions_are_read_in_order_from_the_given_offsets),
        TEST(an_assignment_may_be_held_for_seconds),
        TEST(an_unwanted_partition_stops_alone_and_goes_on_without_a_gap),
        TEST(partitions_that_are_behind_in_time_catch_up),
        TEST(partitions_catch_up_however_short_the_rounds_are),
        TEST(partitions_catch_up_where_rounds_cut_turns),
        TEST(seek_delivers_again_from_the_offset),
        TEST(reassign_moves_one_and_the_others_go_on),
        TEST(members_share_and_take_over_without_a_gap),
        TEST(a_cooperative_group_reassigns_one_partition),
        TEST(a_cooperative_group_shares_and_takes_over_without_a_gap),
        TEST(an_offset_beyond_the_end_is_told_with_the_logs_ends),
        TEST(records_lost_to_retention_are_told),
        TEST(a_missing_topic_is_named_and_read_once_it_exists),
        TEST(added_partitions_are_noticed),
        TEST(an_assignment_that_is_held_may_be_replaced),
        TEST(what_was_assigned_may_be_assigned_again_without_a_revoke),
        TEST(in_a_cooperative_group_what_is_held_grows),
        TEST(in_a_cooperative_group_a_late_answer_counts),
        TEST(closing_leaves_the_group_at_once),
        TEST(closing_is_possible_at_any_moment),
        TEST(the_trace_header_is_handed_over),
        TEST(committed_offsets_reach_the_lag_tools),
        TEST(low_watermarks_are_read),
        TEST(records_that_trickle_in_are_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

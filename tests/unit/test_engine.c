/* The engine step by step, where the simulator has no eye for it: what is counted, what an end
 * waits for, and what comes too late. The protocol itself is played in tests/simulation. */
#include "receiptd/core/engine.h"
#include "record_fixture.h"

#define NOBODY UINT32_MAX

/* An engine of four lanes on two connections whose ports only remember. */
struct world {
    struct bench bench;
    struct rcpt_engine *engine;
    const struct rcpt_batch *flying[4]; /* by lane */
    uint32_t reading[4];                /* how often positions were asked for, by lane */
    uint32_t halts, refreshed;
    int64_t rewound_to, reassigned_to;
    char reason[512];
};

static void on_submit(void *context, const struct rcpt_batch *batch)
{
    struct world *world = context;
    world->flying[batch->lane] = batch;
}

static void on_read_positions(void *context, uint32_t lane)
{
    struct world *world = context;
    world->reading[lane]++;
}

static void on_rewind(void *context, uint32_t slot, int64_t offset)
{
    struct world *world = context;
    (void)slot;
    world->rewound_to = offset;
}

static void on_reassign(void *context, uint32_t slot, int64_t offset)
{
    struct world *world = context;
    (void)slot;
    world->reassigned_to = offset;
}

static void on_refresh(void *context, uint32_t slot)
{
    struct world *world = context;
    world->refreshed = slot;
}

static void on_halt(void *context, const struct rcpt_error *error)
{
    struct world *world = context;
    world->halts++;
    snprintf(world->reason, sizeof(world->reason), "%s", error->text);
}

static void open_with(struct world *world, int64_t linger_ms, uint32_t batch_max_events)
{
    struct rcpt_engine_settings settings = {
        .lanes = 4,
        .connections = 2,
        .depth = 2,
        .batch_max_events = batch_max_events,
        .linger_ms = linger_ms,
        .batch_max_bytes = 1u << 20,
        .budget_bytes = 1u << 20,
        .idle_advance_ms = 1000,
        .verify_interval_ms = 5000,
        .rewind_timeout_ms = 2000,
        .retry_min_ms = 10,
        .retry_max_ms = 100,
        .wake_limit = 10,
        .seed = 1,
    };
    memset(world, 0, sizeof(*world));
    world->refreshed = NOBODY;
    world->rewound_to = world->reassigned_to = -1;
    set_up(&world->bench, settings.lanes);
    struct rcpt_engine_ports ports = {
        world, on_submit, on_read_positions, on_rewind, on_reassign, on_refresh, on_halt};
    world->engine = rcpt_engine_new(&settings, world->bench.ladder, &ports);
}

static void open_world(struct world *world)
{
    open_with(world, 0, 100);
}

static void close_world(struct world *world)
{
    rcpt_engine_check(world->engine);
    rcpt_engine_free(world->engine);
    tear_down(&world->bench);
}

static uint32_t assign(struct world *world, int64_t offset, const struct rcpt_engine_anchor *anchor)
{
    int64_t next[4] = {offset, offset, offset, offset};
    uint32_t slot = rcpt_engine_slot(world->engine, "dlr-events", 3);
    rcpt_engine_assign(world->engine, slot, 1, next, anchor, 0);
    return slot;
}

static struct rcpt_record *record_at(struct world *world, int64_t offset, const char *id)
{
    char value[128];
    int size = snprintf(value, sizeof(value), "{\"message_id\":\"%s\",\"status\":\"SENT\"}", id);
    struct rcpt_record_input input = input_of(value, (size_t)size);
    input.offset = offset;
    struct rcpt_record *record = rcpt_record_decode(world->bench.decoder, &input);
    record->offset = offset;
    return record;
}

/* Returns the lane that the message belongs to. */
static uint32_t deliver(struct world *world, uint32_t slot, int64_t offset, const char *id)
{
    struct rcpt_record *record = record_at(world, offset, id);
    uint32_t lane = (uint32_t)(record->events[0].hash & 3);
    rcpt_engine_deliver_take(world->engine, slot, record, 0);
    return lane;
}

static void bring_up(struct world *world, uint32_t connection, uint32_t slot, int64_t offset)
{
    struct rcpt_engine_position row = {slot, offset, 1, true};
    rcpt_engine_connection_up(world->engine, connection, 0);
    for (uint32_t lane = connection; lane < 4; lane += 2)
        rcpt_engine_on_positions(world->engine, lane, &row, 1, 0);
}

/* An id whose message belongs to the lane. */
static void find_id(struct world *world, uint32_t lane, char id[16])
{
    for (int number = 0;; number++) {
        snprintf(id, 16, "m%d", number);
        struct rcpt_record *record = record_at(world, 0, id);
        bool found = (record->events[0].hash & 3) == lane;
        rcpt_record_free(record);
        if (found)
            return;
    }
}

static void commit(struct world *world, uint32_t lane)
{
    struct rcpt_engine_result result = {.outcome = RCPT_ENGINE_COMMITTED};
    world->flying[lane] = NULL;
    rcpt_engine_on_result(world->engine, lane, &result, 0);
}

static void offsets_that_the_log_skips_are_counted(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    const struct rcpt_engine_stats *stats = rcpt_engine_get_stats(world.engine);
    uint32_t slot = assign(&world, 10, NULL);
    deliver(&world, slot, 10, "a");
    deliver(&world, slot, 11, "a");
    assert_int_equal(stats->gaps, 0);
    deliver(&world, slot, 15, "a"); /* compaction, or the marks of transactions */
    assert_int_equal(stats->gaps, 3);
    rcpt_engine_skip_to(world.engine, slot, 20, 0);
    assert_int_equal(stats->gaps, 7);
    rcpt_engine_skip_to(world.engine, slot, 12, 0); /* all of it is on its way */
    assert_int_equal(stats->gaps, 7);
    deliver(&world, slot, 12, "a");
    assert_int_equal(stats->records, 3);
    assert_int_equal(stats->dropped_old, 1);
    close_world(&world);
}

static void an_end_waits_for_every_connection(void **state)
{
    (void)state;
    struct world world;
    char ids[2][16];
    open_world(&world);
    uint32_t slot = assign(&world, 0, NULL);
    for (uint32_t lane = 0; lane < 2; lane++)
        find_id(&world, lane, ids[lane]);
    bring_up(&world, 0, slot, 0);
    bring_up(&world, 1, slot, 0);
    assert_true(rcpt_engine_is_drained(world.engine));
    for (uint32_t lane = 0; lane < 2; lane++)
        assert_int_equal(deliver(&world, slot, lane, ids[lane]), lane);
    assert_true(rcpt_engine_bytes(world.engine) > 0);
    assert_false(rcpt_engine_is_drained(world.engine)); /* queued */
    rcpt_engine_tick(world.engine, 5);
    assert_non_null(world.flying[0]);
    assert_non_null(world.flying[1]);
    for (uint32_t lane = 0; lane < 2; lane++) {
        assert_false(rcpt_engine_is_settled(world.engine));
        commit(&world, lane);
    }
    assert_true(rcpt_engine_is_settled(world.engine));
    assert_true(rcpt_engine_is_drained(world.engine));
    assert_int_equal(rcpt_engine_bytes(world.engine), 0);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->events_committed, 2);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->batches, 2);
    close_world(&world);
}

static void another_topic_under_the_same_name_halts_once(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    struct rcpt_engine_anchor anchor = {.offset = 9, .timestamp_ms = TIMESTAMP_MS, .crc = 1};
    uint32_t slot = assign(&world, 10, &anchor);
    deliver(&world, slot, 9, "a"); /* another record than the one that was applied */
    assert_int_equal(world.halts, 1);
    assert_non_null(strstr(world.reason, "dlr-events partition 3"));
    assert_false(rcpt_engine_admits(world.engine, slot, 10));
    assert_false(rcpt_engine_wants(world.engine, slot));
    deliver(&world, slot, 10, "a");
    assert_int_equal(rcpt_engine_get_stats(world.engine)->records, 0);
    assert_int_equal(world.halts, 1);
    close_world(&world);
}

/* Versions before stored the broker's timestamp as it was. */
static void an_anchor_fits_its_record_whatever_timestamp_a_producer_gave_it(void **state)
{
    (void)state;
    static const int64_t timestamps[] = {-1,
                                         0,
                                         INT64_C(253402300799000),
                                         INT64_C(1795782291000000),
                                         INT64_C(1800000000000000000),
                                         INT64_C(9000000000000000000)};
    for (size_t i = 0; i < COUNT(timestamps); i++) {
        struct world world;
        open_world(&world);
        struct rcpt_record_input input = input_of(EVENT("a"), strlen(EVENT("a")));
        input.offset = 9;
        input.timestamp_ms = timestamps[i];
        struct rcpt_record *record = rcpt_record_decode(world.bench.decoder, &input);
        struct rcpt_engine_anchor anchor = {
            .offset = 9, .timestamp_ms = timestamps[i], .crc = rcpt_record_crc(record)};
        uint32_t slot = assign(&world, 10, &anchor);
        rcpt_engine_deliver_take(world.engine, slot, record, 0);
        assert_int_equal(world.halts, 0);
        deliver(&world, slot, 10, "a");
        assert_int_equal(rcpt_engine_get_stats(world.engine)->records, 1);
        close_world(&world);
    }
}

static void an_anchor_whose_record_is_gone_is_no_reason_to_halt(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    struct rcpt_engine_anchor anchor = {.offset = 9, .timestamp_ms = 1, .crc = 1};
    uint32_t slot = assign(&world, 12, &anchor);
    deliver(&world, slot, 12, "a"); /* retention or compaction took 9 */
    assert_int_equal(world.halts, 0);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->records, 1);
    close_world(&world);
}

static void what_comes_after_the_end_of_an_epoch_changes_nothing(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    uint32_t slot = assign(&world, 10, NULL);
    rcpt_engine_revoke(world.engine, slot);
    assert_false(rcpt_engine_admits(world.engine, slot, 10));
    deliver(&world, slot, 10, "a");
    rcpt_engine_skip_to(world.engine, slot, 100, 0);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->gaps, 0);
    assert_int_equal(rcpt_engine_bytes(world.engine), 0);
    close_world(&world);
}

static void positions_that_come_after_their_connection_went_are_not_believed(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    uint32_t slot = assign(&world, 10, NULL);
    struct rcpt_engine_position row = {slot, 50, 1, true};
    rcpt_engine_connection_up(world.engine, 0, 0);
    assert_int_equal(world.reading[0], 1);
    rcpt_engine_connection_down(world.engine, 0, 0);
    rcpt_engine_on_positions(world.engine, 0, &row, 1, 0);
    rcpt_engine_on_positions_failed(world.engine, 0, 0);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->resync_ahead, 0);
    assert_int_equal(rcpt_engine_committed(world.engine, slot), 10);
    rcpt_engine_connection_up(world.engine, 0, 0);
    assert_int_equal(world.reading[0], 2);
    close_world(&world);
}

/* Beginnings of eight bytes decide most comparisons; here the rest of long ids has to. */
static void messages_of_a_batch_are_in_the_order_of_their_bytes(void **state)
{
    static const char *const tails[] = {"", "!", "!!", "~", "a", "ab", "\xc3\xa9", " "};
    (void)state;
    struct world world;
    open_world(&world);
    uint32_t slot = assign(&world, 0, NULL);
    int64_t offset = 0;
    for (int number = 0; number < 40; number++) {
        for (size_t tail = 0; tail < COUNT(tails); tail++) {
            char id[64];
            snprintf(id, sizeof(id), "a-long-beginning-%d%s", number % 20, tails[tail]);
            deliver(&world, slot, offset++, id);
        }
    }
    bring_up(&world, 0, slot, 0);
    const struct rcpt_batch *batch = world.flying[2];
    assert_non_null(batch);
    assert_true(batch->message_count > 10);
    for (uint32_t index = 1; index < batch->message_count; index++) {
        const struct rcpt_batch_message *left = &batch->messages[index - 1], *right = left + 1;
        size_t common = left->id_size < right->id_size ? left->id_size : right->id_size;
        int order = memcmp(left->id, right->id, common);
        assert_true(order < 0 || (order == 0 && left->id_size < right->id_size));
    }
    commit(&world, 2);
    commit(&world, 0);
    close_world(&world);
}

static void a_full_batch_does_not_linger(void **state)
{
    (void)state;
    struct world world;
    char id[16];
    open_with(&world, 50, 3);
    uint32_t slot = assign(&world, 0, NULL);
    bring_up(&world, 0, slot, 0);
    find_id(&world, 0, id);
    for (int64_t offset = 0; offset < 2; offset++)
        deliver(&world, slot, offset, id);
    rcpt_engine_tick(world.engine, 10);
    assert_null(world.flying[0]); /* more may come to be folded with */
    deliver(&world, slot, 2, id);
    rcpt_engine_tick(world.engine, 11);
    uint32_t events = world.flying[0] != NULL ? world.flying[0]->event_count : 0;
    assert_int_equal(events, 3);
    commit(&world, 0);
    deliver(&world, slot, 3, id);
    rcpt_engine_tick(world.engine, 49);
    assert_null(world.flying[0]);
    rcpt_engine_tick(world.engine, 50);
    assert_non_null(world.flying[0]);
    commit(&world, 0);
    close_world(&world);
}

static void a_reading_of_positions_that_fails_is_done_again(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    uint32_t slot = assign(&world, 10, NULL);
    struct rcpt_engine_position row = {slot, 10, 1, true};
    rcpt_engine_connection_up(world.engine, 0, 0);
    rcpt_engine_on_positions_failed(world.engine, 0, 0); /* a statement time-out, say */
    rcpt_engine_tick(world.engine, 0);
    assert_int_equal(world.reading[0], 1); /* not at once */
    rcpt_engine_tick(world.engine, 1000);
    assert_int_equal(world.reading[0], 2);
    rcpt_engine_on_positions(world.engine, 0, &row, 1, 1000);
    rcpt_engine_tick(world.engine, 1001);
    assert_int_equal(world.reading[0], 2);
    close_world(&world);
}

static void a_batch_lingers_from_its_first_record_on(void **state)
{
    (void)state;
    struct world world;
    char id[16];
    open_with(&world, 50, 3);
    uint32_t slot = assign(&world, 0, NULL);
    bring_up(&world, 0, slot, 0);
    find_id(&world, 0, id);
    rcpt_engine_deliver_take(world.engine, slot, record_at(&world, 0, id), 100);
    rcpt_engine_deliver_take(world.engine, slot, record_at(&world, 1, id), 120);
    rcpt_engine_tick(world.engine, 149);
    assert_null(world.flying[0]);
    rcpt_engine_tick(world.engine, 150);
    assert_non_null(world.flying[0]);
    commit(&world, 0);
    close_world(&world);
}

static void what_a_full_batch_leaves_behind_lingers_from_its_submission_on(void **state)
{
    (void)state;
    struct world world;
    char id[16];
    open_with(&world, 50, 3);
    uint32_t slot = assign(&world, 0, NULL);
    bring_up(&world, 0, slot, 0);
    find_id(&world, 0, id);
    for (int64_t offset = 0; offset < 4; offset++)
        deliver(&world, slot, offset, id);
    rcpt_engine_tick(world.engine, 10);
    assert_non_null(world.flying[0]);
    commit(&world, 0);
    rcpt_engine_tick(world.engine, 59);
    assert_null(world.flying[0]);
    rcpt_engine_tick(world.engine, 60);
    assert_non_null(world.flying[0]);
    commit(&world, 0);
    close_world(&world);
}

/* The answer tells of a moment before the positions with which the partition was assigned. */
static void positions_asked_for_before_an_assignment_are_not_believed(void **state)
{
    (void)state;
    struct world world;
    static const int64_t next[4] = {20, 20, 20, 20};
    open_world(&world);
    uint32_t slot = assign(&world, 10, NULL);
    uint32_t other = rcpt_engine_slot(world.engine, "dlr-events", 4);
    rcpt_engine_assign(world.engine, other, 1, next, NULL, 0);
    rcpt_engine_revoke(world.engine, other);
    rcpt_engine_connection_up(world.engine, 0, 0);
    assert_int_equal(world.reading[0], 1);
    rcpt_engine_assign(world.engine, other, 1, next, NULL, 0);
    const struct rcpt_engine_position rows[] = {{slot, 10, 1, true}, {other, 15, 1, true}};
    rcpt_engine_on_positions(world.engine, 0, rows, 2, 0);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->resync_same, 1);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->resync_back, 0);
    assert_int_equal(rcpt_engine_committed(world.engine, other), 20);
    rcpt_engine_tick(world.engine, 10);
    assert_int_equal(world.reading[0], 2);
    close_world(&world);
}

/* Somebody may have set the database back by hand. */
static void an_idle_lane_compares_its_positions_once_an_interval(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    uint32_t slot = assign(&world, 10, NULL);
    struct rcpt_engine_position row = {slot, 10, 1, true};
    bring_up(&world, 0, slot, 10);
    for (uint32_t turn = 1; turn < 4; turn++) {
        int64_t due = turn * INT64_C(5000);
        rcpt_engine_tick(world.engine, due - 1);
        assert_int_equal(world.reading[0], turn);
        rcpt_engine_tick(world.engine, due);
        assert_int_equal(world.reading[0], turn + 1);
        rcpt_engine_on_positions(world.engine, 0, &row, 1, due);
        rcpt_engine_on_positions(world.engine, 2, &row, 1, due);
        assert_int_equal(world.reading[0], turn + 1);
    }
    close_world(&world);
}

/* Lane 0 may send, and `id` is of a message of it. */
static uint32_t open_lane_zero(struct world *world, char id[16])
{
    open_world(world);
    uint32_t slot = assign(world, 0, NULL);
    bring_up(world, 0, slot, 0);
    find_id(world, 0, id);
    return slot;
}

static void fail_batch(struct world *world, uint32_t lane, enum rcpt_engine_outcome outcome,
                       int64_t now_ms)
{
    struct rcpt_engine_result result = {.outcome = outcome};
    world->flying[lane] = NULL;
    rcpt_engine_on_result(world->engine, lane, &result, now_ms);
}

static void a_batch_that_failed_waits_before_it_is_tried_again(void **state)
{
    (void)state;
    struct world world;
    char id[16];
    uint32_t slot = open_lane_zero(&world, id);
    deliver(&world, slot, 0, id);
    rcpt_engine_tick(world.engine, 100);
    assert_non_null(world.flying[0]);
    fail_batch(&world, 0, RCPT_ENGINE_RETRY, 100);
    rcpt_engine_tick(world.engine, 109);
    assert_null(world.flying[0]); /* retry_min_ms at least */
    rcpt_engine_tick(world.engine, 130);
    assert_non_null(world.flying[0]);
    commit(&world, 0);
    close_world(&world);
}

/* The delay after the first failure, whatever happened before the last commit. */
static void a_commit_ends_the_growth_of_delays(void **state)
{
    (void)state;
    struct world world;
    char id[16];
    int64_t now = 0;
    uint32_t slot = open_lane_zero(&world, id);
    deliver(&world, slot, 0, id);
    for (int turn = 0; turn < 20; turn++) {
        rcpt_engine_tick(world.engine, now);
        assert_non_null(world.flying[0]);
        fail_batch(&world, 0, RCPT_ENGINE_RETRY, now);
        now += 100;
    }
    for (int64_t offset = 1; offset < 20; offset++) {
        rcpt_engine_tick(world.engine, now);
        assert_non_null(world.flying[0]);
        commit(&world, 0);
        deliver(&world, slot, offset, id);
        rcpt_engine_tick(world.engine, now);
        fail_batch(&world, 0, RCPT_ENGINE_RETRY, now);
        now += 3 * 10; /* three times retry_min_ms at most */
    }
    rcpt_engine_tick(world.engine, now);
    commit(&world, 0);
    close_world(&world);
}

static void nothing_begins_while_it_is_held(void **state)
{
    (void)state;
    struct world world;
    char id[16];
    uint32_t slot = open_lane_zero(&world, id);
    rcpt_engine_set_held(world.engine, true, 0);
    deliver(&world, slot, 0, id);
    rcpt_engine_tick(world.engine, 1);
    assert_null(world.flying[0]);
    rcpt_engine_set_held(world.engine, false, 2);
    rcpt_engine_tick(world.engine, 2);
    assert_non_null(world.flying[0]);
    commit(&world, 0);
    close_world(&world);
}

static void the_oldest_of_what_waits_is_seen(void **state)
{
    (void)state;
    struct world world;
    char id[16];
    uint32_t slot = open_lane_zero(&world, id);
    assert_int_equal(rcpt_engine_view_partition(world.engine, slot).oldest_ms, -1);
    deliver(&world, slot, 0, id); /* one */
    assert_int_equal(rcpt_engine_view_partition(world.engine, slot).oldest_ms, TIMESTAMP_MS);
    rcpt_engine_tick(world.engine, 1);
    commit(&world, 0);
    assert_int_equal(rcpt_engine_view_partition(world.engine, slot).oldest_ms, -1);
    close_world(&world);
}

/* Two owners at work: a row that is ahead after a fence. Ahead without one is a batch of our own
 * whose answer was lost. */
static void only_a_fence_makes_a_row_ahead_a_conflict(void **state)
{
    (void)state;
    for (int fenced = 0; fenced < 2; fenced++) {
        struct world world;
        char id[16];
        uint32_t slot = open_lane_zero(&world, id);
        struct rcpt_engine_position row = {slot, 1, 1, true};
        deliver(&world, slot, 0, id);
        rcpt_engine_tick(world.engine, 1);
        assert_non_null(world.flying[0]);
        if (fenced) {
            fail_batch(&world, 0, RCPT_ENGINE_FENCED, 1);
        } else {
            fail_batch(&world, 0, RCPT_ENGINE_UNKNOWN, 1);
            rcpt_engine_connection_down(world.engine, 0, 1);
            rcpt_engine_connection_up(world.engine, 0, 1);
        }
        rcpt_engine_tick(world.engine, 1000);
        rcpt_engine_on_positions(world.engine, 0, &row, 1, 1000);
        assert_int_equal(rcpt_engine_get_stats(world.engine)->resync_ahead, 1);
        assert_int_equal(rcpt_engine_get_stats(world.engine)->contended, fenced);
        close_world(&world);
    }
}

/* The transaction is sent, the rows are read before its commit, and the epoch begins with what they
 * said. */
static void a_transaction_of_an_ended_epoch_is_no_conflict(void **state)
{
    (void)state;
    struct world world;
    char id[16];
    uint32_t slot = open_lane_zero(&world, id);
    const struct rcpt_engine_position row = {slot, 1, 1, true}, further = {slot, 2, 1, true};
    deliver(&world, slot, 0, id);
    rcpt_engine_tick(world.engine, 1);
    assert_non_null(world.flying[0]);
    assign(&world, 0, NULL);
    commit(&world, 0);
    deliver(&world, slot, 0, id);
    rcpt_engine_tick(world.engine, 2);
    fail_batch(&world, 0, RCPT_ENGINE_FENCED, 2);
    rcpt_engine_tick(world.engine, 1000);
    rcpt_engine_on_positions(world.engine, 0, &row, 1, 1000);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->resync_ahead, 1);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->contended, 0);
    deliver(&world, slot, 1, id); /* and now somebody else does */
    rcpt_engine_tick(world.engine, 1001);
    fail_batch(&world, 0, RCPT_ENGINE_FENCED, 1001);
    rcpt_engine_tick(world.engine, 3000);
    rcpt_engine_on_positions(world.engine, 0, &further, 1, 3000);
    assert_int_equal(rcpt_engine_get_stats(world.engine)->contended, 1);
    close_world(&world);
}

static void deliver_value(struct world *world, uint32_t slot, const char *value)
{
    struct rcpt_record_input input = input_of(value, strlen(value));
    input.offset = 0;
    struct rcpt_record *record = rcpt_record_decode(world->bench.decoder, &input);
    record->offset = 0;
    rcpt_engine_deliver_take(world->engine, slot, record, 0);
}

static void assert_letter(const struct rcpt_batch *batch, enum rcpt_reject_reason reason,
                          const char *payload)
{
    assert_int_equal(batch->letter_count, 1);
    assert_int_equal(batch->letters[0].reason, reason);
    assert_int_equal(batch->letters[0].payload_size, strlen(payload));
    assert_memory_equal(batch->letters[0].payload, payload, strlen(payload));
}

static void a_letter_holds_the_bytes_of_its_element(void **state)
{
    (void)state;
    struct world world;
    char id[16], value[256], bad[128];
    bool seen = false;
    uint32_t slot = open_lane_zero(&world, id);
    bring_up(&world, 1, slot, 0);
    snprintf(bad, sizeof(bad), "{\"message_id\":\"%s\",\"status\":\"NONSENSE\"}", id);
    snprintf(value, sizeof(value), "[{\"message_id\":\"%s\",\"status\":\"SENT\"}, %s]", id, bad);
    deliver_value(&world, slot, value);
    rcpt_engine_tick(world.engine, 1);
    for (uint32_t lane = 0; lane < 4; lane++) {
        const struct rcpt_batch *batch = world.flying[lane];
        if (batch == NULL || batch->letter_count == 0)
            continue;
        assert_letter(batch, RCPT_REJECT_UNKNOWN_STATUS, bad);
        seen = true;
    }
    assert_true(seen);
    for (uint32_t lane = 0; lane < 4; lane++)
        if (world.flying[lane] != NULL)
            commit(&world, lane);
    close_world(&world);
}

/* Whether PostgreSQL refuses the batch. */
typedef bool (*refusal_rule)(const struct rcpt_batch *batch, uint32_t turn);

static bool second_event_is_refused(const struct rcpt_batch *batch, uint32_t turn)
{
    (void)turn;
    for (uint32_t event = 0; event < batch->event_count; event++)
        if (batch->events[event].event->index == 1)
            return true;
    return false;
}

static bool both_are_refused_together(const struct rcpt_batch *batch, uint32_t turn)
{
    (void)turn;
    return batch->event_count == 2;
}

static bool only_the_first_time(const struct rcpt_batch *batch, uint32_t turn)
{
    (void)batch;
    return turn == 0;
}

/* The row that makes PostgreSQL refuse the second event is not there for the fourth transaction,
 * which asks for the first two events. */
static bool second_passes_once(const struct rcpt_batch *batch, uint32_t turn)
{
    return turn != 3 && second_event_is_refused(batch, turn);
}

/* The platform deletes the message of the refused event just before that is asked for alone, and
 * the next event is refused. */
static uint32_t refused_index;
static bool each_is_gone_when_it_is_found(const struct rcpt_batch *batch, uint32_t turn)
{
    (void)turn;
    bool refused = false;
    for (uint32_t event = 0; event < batch->event_count; event++)
        refused |= batch->events[event].event->index == refused_index;
    if (!refused || batch->event_count > 1)
        return refused;
    refused_index++;
    return false;
}

/* The events of one message, two or three, meet the rule until a batch commits; returns how many
 * letters it has. What the letter holds is the second event. */
static uint32_t play_refusals_of(uint32_t events, refusal_rule is_refused)
{
    struct world world;
    char id[16], value[512], second[128];
    uint32_t slot = open_lane_zero(&world, id), letters = 0, turn = 0;
    snprintf(second, sizeof(second), "{\"message_id\":\"%s\",\"status\":\"DELIVERED\"}", id);
    snprintf(value, sizeof(value), "[{\"message_id\":\"%s\",\"status\":\"SENT\"}, %s%s%s]", id,
             second, events > 2 ? ", " : "", events > 2 ? second : "");
    deliver_value(&world, slot, value);
    for (int64_t now = 1000;; now += 1000) {
        assert_true(turn < 50);
        rcpt_engine_tick(world.engine, now);
        const struct rcpt_batch *batch = world.flying[0];
        if (batch == NULL)
            continue;
        if (is_refused(batch, turn++)) {
            fail_batch(&world, 0, RCPT_ENGINE_DATA, now);
        } else if (batch->kind == RCPT_BATCH_PROBE) {
            fail_batch(&world, 0, RCPT_ENGINE_PROBED, now);
        } else {
            letters = batch->letter_count;
            if (letters > 0) {
                assert_letter(batch, RCPT_REJECT_DATABASE, second);
                assert_int_equal(batch->letters[0].index, 1);
            }
            commit(&world, 0);
            break;
        }
    }
    close_world(&world);
    return letters;
}

static uint32_t play_refusals(refusal_rule is_refused)
{
    return play_refusals_of(2, is_refused);
}

static void what_was_found_is_looked_at_again(void **state)
{
    (void)state;
    assert_int_equal(play_refusals_of(3, second_passes_once), 1);
}

static void two_suspects_that_pass_alone_are_no_letters(void **state)
{
    (void)state;
    refused_index = 1;
    assert_int_equal(play_refusals_of(3, each_is_gone_when_it_is_found), 0);
    assert_int_equal(refused_index, 3);
}

static void a_refused_row_becomes_a_letter_with_its_bytes(void **state)
{
    (void)state;
    assert_int_equal(play_refusals(second_event_is_refused), 1);
}

/* Of a batch with nothing but one letter. */
static const char *detail_of_letter(const struct rcpt_batch *batch)
{
    bool alone = batch != NULL && batch->event_count == 0 && batch->letter_count == 1;
    return alone ? batch->letters[0].detail : "no letter";
}

/* The second record waits behind the first, so both are in memory at once. */
static void a_refused_row_says_what_postgresql_said(void **state)
{
    (void)state;
    static const char *const details[] = {"22P05: first", "23514: second"};
    struct world world;
    char id[16];
    int64_t now = 1000;
    uint32_t slot = open_lane_zero(&world, id);
    deliver(&world, slot, 0, id);
    rcpt_engine_tick(world.engine, now);
    deliver(&world, slot, 1, id);
    for (size_t record = 0; record < COUNT(details); record++) {
        struct rcpt_engine_result refused = {.outcome = RCPT_ENGINE_DATA};
        snprintf(refused.detail, sizeof(refused.detail), "%s", details[record]);
        while (world.flying[0] != NULL && world.flying[0]->letter_count == 0)
            rcpt_engine_on_result(world.engine, 0, &refused, now += 1000);
        assert_string_equal(detail_of_letter(world.flying[0]), details[record]);
        commit(&world, 0);
    }
    close_world(&world);
}

static void what_is_refused_only_together_ends_too(void **state)
{
    (void)state;
    assert_int_equal(play_refusals(both_are_refused_together), 1);
}

static void a_refusal_that_has_passed_costs_nothing(void **state)
{
    (void)state;
    assert_int_equal(play_refusals(only_the_first_time), 0);
}

static void lanes_are_spread_anew_over_other_connections(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    assign(&world, 0, NULL);
    rcpt_engine_set_connections(world.engine, 1);
    rcpt_engine_connection_up(world.engine, 0, 0);
    for (uint32_t lane = 0; lane < 4; lane++) {
        assert_int_equal(rcpt_engine_view_lane(world.engine, lane).connection, 0);
        assert_int_equal(world.reading[lane], 1);
    }
    rcpt_engine_connection_down(world.engine, 0, 0);
    rcpt_engine_set_connections(world.engine, 4);
    for (uint32_t lane = 0; lane < 4; lane++) {
        assert_int_equal(rcpt_engine_view_lane(world.engine, lane).connection, lane);
        assert_int_equal(world.reading[lane], 1);
        rcpt_engine_connection_up(world.engine, lane, 0);
        assert_int_equal(world.reading[lane], 2);
    }
    close_world(&world);
}

static void what_has_nothing_is_freed_without_harm(void **state)
{
    (void)state;
    rcpt_engine_free(NULL);
    rcpt_decoder_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_that_the_log_skips_are_counted),
        cmocka_unit_test(an_end_waits_for_every_connection),
        cmocka_unit_test(another_topic_under_the_same_name_halts_once),
        cmocka_unit_test(an_anchor_whose_record_is_gone_is_no_reason_to_halt),
        cmocka_unit_test(an_anchor_fits_its_record_whatever_timestamp_a_producer_gave_it),
        cmocka_unit_test(what_comes_after_the_end_of_an_epoch_changes_nothing),
        cmocka_unit_test(positions_that_come_after_their_connection_went_are_not_believed),
        cmocka_unit_test(messages_of_a_batch_are_in_the_order_of_their_bytes),
        cmocka_unit_test(a_full_batch_does_not_linger),
        cmocka_unit_test(a_reading_of_positions_that_fails_is_done_again),
        cmocka_unit_test(a_batch_lingers_from_its_first_record_on),
        cmocka_unit_test(what_a_full_batch_leaves_behind_lingers_from_its_submission_on),
        cmocka_unit_test(positions_asked_for_before_an_assignment_are_not_believed),
        cmocka_unit_test(an_idle_lane_compares_its_positions_once_an_interval),
        cmocka_unit_test(a_batch_that_failed_waits_before_it_is_tried_again),
        cmocka_unit_test(a_commit_ends_the_growth_of_delays),
        cmocka_unit_test(nothing_begins_while_it_is_held),
        cmocka_unit_test(the_oldest_of_what_waits_is_seen),
        cmocka_unit_test(only_a_fence_makes_a_row_ahead_a_conflict),
        cmocka_unit_test(a_transaction_of_an_ended_epoch_is_no_conflict),
        cmocka_unit_test(a_letter_holds_the_bytes_of_its_element),
        cmocka_unit_test(a_refused_row_becomes_a_letter_with_its_bytes),
        cmocka_unit_test(a_refused_row_says_what_postgresql_said),
        cmocka_unit_test(what_is_refused_only_together_ends_too),
        cmocka_unit_test(what_was_found_is_looked_at_again),
        cmocka_unit_test(two_suspects_that_pass_alone_are_no_letters),
        cmocka_unit_test(a_refusal_that_has_passed_costs_nothing),
        cmocka_unit_test(lanes_are_spread_anew_over_other_connections),
        cmocka_unit_test(what_has_nothing_is_freed_without_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

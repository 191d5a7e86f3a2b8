/* What a batch says of the records that are in it: signatures, flags, moves and their anchors. The
 * engine makes it, its ports only remember. */
#include "receiptd/core/batch_build.h"
#include "receiptd/core/engine.h"
#include "record_fixture.h"

#define MAX_LANES 2u

struct world {
    struct bench bench;
    struct rcpt_engine *engine;
    uint32_t lanes, slot;
    int64_t next_offset; /* of the record that is delivered next */
    const struct rcpt_batch *flying[MAX_LANES];
};

static void on_submit(void *context, const struct rcpt_batch *batch)
{
    struct world *world = context;
    world->flying[batch->lane] = batch;
}

static void on_read_positions(void *context, uint32_t lane)
{
    (void)context;
    (void)lane;
}

static void on_offset(void *context, uint32_t slot, int64_t offset)
{
    (void)context;
    (void)slot;
    (void)offset;
}

static void on_refresh(void *context, uint32_t slot)
{
    (void)context;
    (void)slot;
}

static void on_halt(void *context, const struct rcpt_error *error)
{
    (void)context;
    fail_msg("%s", error->text);
}

static struct rcpt_engine_settings settings_of(uint32_t lanes)
{
    return (struct rcpt_engine_settings){
        .lanes = lanes,
        .connections = 1,
        .depth = MAX_LANES,
        .batch_max_events = 100,
        .batch_max_bytes = 1u << 20,
        .budget_bytes = 1u << 20,
        .idle_advance_ms = 1000,
        .verify_interval_ms = 5000,
        .rewind_timeout_ms = 2000,
        .retry_min_ms = 10,
        .retry_max_ms = 100,
        .wake_limit = 10,
    };
}

/* One partition, assigned at offset 0, on one connection that is not there yet. */
static void open_world(struct world *world, const struct rcpt_ladder_definition *definition,
                       uint32_t lanes)
{
    const struct rcpt_engine_settings settings = settings_of(lanes);
    const struct rcpt_engine_ports ports = {
        world, on_submit, on_read_positions, on_offset, on_offset, on_refresh, on_halt};
    const int64_t start[MAX_LANES] = {0, 0};
    struct rcpt_error error;
    memset(world, 0, sizeof(*world));
    world->lanes = lanes;
    world->bench.ladder = rcpt_ladder_new(definition, &error);
    assert_non_null(world->bench.ladder);
    world->bench.decoder = rcpt_decoder_new(world->bench.ladder, lanes);
    world->engine = rcpt_engine_new(&settings, world->bench.ladder, &ports);
    world->slot = rcpt_engine_slot(world->engine, "dlr-events", 3);
    rcpt_engine_assign(world->engine, world->slot, 1, start, NULL, 0);
}

static void commit_all(struct world *world, int64_t now_ms)
{
    const struct rcpt_engine_result result = {.outcome = RCPT_ENGINE_COMMITTED};
    for (uint32_t lane = 0; lane < world->lanes; lane++) {
        if (world->flying[lane] == NULL)
            continue;
        world->flying[lane] = NULL;
        rcpt_engine_on_result(world->engine, lane, &result, now_ms);
    }
}

static void close_world(struct world *world)
{
    commit_all(world, 0);
    rcpt_engine_check(world->engine);
    rcpt_engine_free(world->engine);
    tear_down(&world->bench);
}

/* Returns the record's hash of content. */
static uint32_t deliver(struct world *world, const char *value)
{
    struct rcpt_record_input input = input_of(value, strlen(value));
    input.offset = world->next_offset++;
    struct rcpt_record *record = rcpt_record_decode(world->bench.decoder, &input);
    assert_int_equal(record->reject_count, 0);
    uint32_t crc = rcpt_record_crc(record);
    rcpt_engine_deliver_take(world->engine, world->slot, record, 0);
    return crc;
}

static uint32_t deliver_one(struct world *world, const char *id, const char *rest)
{
    char value[256];
    snprintf(value, sizeof(value), "{\"message_id\":\"%s\",%s}", id, rest);
    return deliver(world, value);
}

/* What is queued is on its way then. */
static void bring_up(struct world *world, int64_t next_offset)
{
    struct rcpt_engine_position row = {world->slot, next_offset, 1, true};
    rcpt_engine_connection_up(world->engine, 0, 0);
    for (uint32_t lane = 0; lane < world->lanes; lane++)
        rcpt_engine_on_positions(world->engine, lane, &row, 1, 0);
}

static const struct rcpt_batch *in_flight(const struct world *world, uint32_t lane)
{
    if (world->flying[lane] == NULL)
        fail_msg("lane %u has nothing in flight", lane);
    return world->flying[lane];
}

struct codes {
    uint32_t size;
    int16_t codes[4];
    int32_t counts[4];
};

static void assert_codes(const struct rcpt_batch *batch, uint32_t message,
                         const struct codes *expected)
{
    const struct rcpt_batch_signature *signature =
        &batch->signatures[batch->messages[message].signature];
    assert_int_equal(signature->size, expected->size);
    for (uint32_t at = 0; at < expected->size; at++) {
        assert_int_equal(batch->signature_codes[signature->first + at], expected->codes[at]);
        assert_int_equal(batch->signature_counts[signature->first + at], expected->counts[at]);
    }
}

static void messages_with_the_same_receipts_share_a_signature(void **state)
{
    (void)state;
    static const struct {
        const char *id, *statuses[3];
        struct codes codes;
        int32_t signature;
    } cases[] = {
        {"a", {"SENT", "DELIVERED", "OPENED"}, {3, {300, 600, 700}, {1, 1, 1}}, 0},
        {"b", {"SENT", "DELIVERED"}, {2, {300, 600}, {1, 1}}, 1},
        {"c", {"SENT", "FAILED"}, {2, {300, 440}, {1, 1}}, 2},
        {"d", {"DELIVERED", "SENT"}, {2, {300, 600}, {1, 1}}, 1},
        {"e", {"SENT", "SENT"}, {1, {300}, {2}}, 3},
        {"f", {"SENT"}, {1, {300}, {1}}, 4},
        {"g", {"SENT"}, {1, {300}, {1}}, 4},
        {"h", {"SENT", "SENT"}, {1, {300}, {2}}, 3},
        {"i", {"OPENED", "SENT", "DELIVERED"}, {3, {300, 600, 700}, {1, 1, 1}}, 0},
    };
    struct world world;
    open_world(&world, rcpt_ladder_default_definition(), 1);
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (size_t at = 0; at < 3 && cases[i].statuses[at] != NULL; at++) {
            char rest[64];
            snprintf(rest, sizeof(rest), "\"status\":\"%s\"", cases[i].statuses[at]);
            deliver_one(&world, cases[i].id, rest);
        }
    }
    bring_up(&world, 0);
    const struct rcpt_batch *batch = in_flight(&world, 0);
    assert_int_equal(batch->message_count, COUNT(cases));
    for (uint32_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(batch->messages[i].id[0], cases[i].id[0]);
        assert_codes(batch, i, &cases[i].codes);
        assert_int_equal(batch->messages[i].signature, cases[i].signature);
    }
    assert_int_equal(batch->signature_count, 5);
    close_world(&world);
}

static void flags_beside_a_status_count_and_lift_as_receipts_of_their_own(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, rcpt_ladder_default_definition(), 1);
    deliver_one(&world, "a", "\"status\":\"OPENED\",\"flags\":[\"AUTORESPONDED\",\"COMPLAINED\"]");
    deliver_one(&world, "b", "\"status\":\"SENT\",\"flags\":[\"REPLIED\"]");
    deliver_one(&world, "c", "\"status\":\"SENT\",\"flags\":[\"RESUBSCRIBED\"]");
    bring_up(&world, 0);
    const struct rcpt_batch *batch = in_flight(&world, 0);
    assert_true(batch->has_flags);
    assert_int_equal(batch->message_count, 3);
    assert_codes(batch, 0, &(struct codes){3, {700, 9001, 9005}, {1, 1, 1}});
    assert_codes(batch, 1, &(struct codes){2, {300, 9004}, {1, 1}});
    assert_codes(batch, 2, &(struct codes){2, {300, 9003}, {1, 1}});
    static const uint32_t masks[] = {1u << 0 | 1u << 4, 1u << 3, 1u << 2};
    static const int16_t tops[] = {700, 600, 300};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(batch->messages[i].mask, masks[i]);
        assert_int_equal(batch->messages[i].top, tops[i]);
    }
    close_world(&world);
}

/* The last entry of one gateway and the first one of the next. */
static void receipts_of_the_largest_ladder_are_told_apart(void **state)
{
    (void)state;
    static char names[RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS][8];
    struct rcpt_status_definition statuses[RCPT_LADDER_MAX_STATUSES];
    struct rcpt_flag_definition flags[RCPT_LADDER_MAX_FLAGS];
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(names[i], sizeof(names[i]), "S%u", (unsigned)i % 1000);
        if (i < COUNT(statuses))
            statuses[i] =
                (struct rcpt_status_definition){names[i], (int)i, i > 0 ? names[0] : NULL, false};
        else
            flags[i - COUNT(statuses)] = (struct rcpt_flag_definition){names[i], NULL};
    }
    const struct rcpt_ladder_definition definition = {
        statuses, COUNT(statuses), flags, COUNT(flags), NULL, 0};
    struct world world;
    open_world(&world, &definition, 1);
    deliver_one(&world, "a", "\"status\":\"S130\"");
    deliver_one(&world, "b", "\"status\":\"S0\",\"gateway\":\"g\"");
    bring_up(&world, 0);
    const struct rcpt_batch *batch = in_flight(&world, 0);
    assert_int_equal(batch->signature_count, 2);
    assert_codes(batch, 0, &(struct codes){1, {RCPT_LADDER_FIRST_FLAG_CODE + 30}, {1}});
    assert_codes(batch, 1, &(struct codes){1, {0}, {1}});
    assert_int_equal(batch->signatures[0].gateway, RCPT_RECORD_NO_GATEWAY);
    assert_int_equal(batch->signatures[1].gateway, 1);
    close_world(&world);
}

/* By size: two of them, or the first one, whatever its size. */
static void a_batch_holds_so_many_bytes_or_one_record(void **state)
{
    (void)state;
    static const char value[] = EVENT("m");
    static const struct {
        uint32_t most_bytes;
        uint32_t events;
    } cases[] = {{2 * (sizeof(value) - 1), 2}, {3 * (sizeof(value) - 1) - 1, 2}, {1, 1}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct world world;
        struct rcpt_engine_settings settings = settings_of(1);
        settings.batch_max_bytes = cases[i].most_bytes;
        open_world(&world, rcpt_ladder_default_definition(), 1);
        rcpt_engine_set_limits(world.engine, &settings);
        for (int record = 0; record < 4; record++)
            deliver(&world, value);
        bring_up(&world, 0);
        assert_int_equal(in_flight(&world, 0)->event_count, cases[i].events);
        close_world(&world);
    }
}

/* An id whose message belongs to the lane, of two. */
static void find_id(struct world *world, uint32_t lane, char id[16])
{
    for (unsigned number = 0;; number++) {
        char value[128];
        snprintf(id, 16, "m%u", number % 1000);
        snprintf(value, sizeof(value), "{\"message_id\":\"%s\",\"status\":\"SENT\"}", id);
        struct rcpt_record *record = decode(&world->bench, value, strlen(value));
        bool found = (record->events[0].hash & 1) == lane;
        rcpt_record_free(record);
        if (found)
            return;
    }
}

/* Also where the lane has no part in that record. */
static void a_move_names_the_last_record_below_it(void **state)
{
    (void)state;
    struct world world;
    char ids[MAX_LANES][16];
    open_world(&world, rcpt_ladder_default_definition(), MAX_LANES);
    for (uint32_t lane = 0; lane < MAX_LANES; lane++)
        find_id(&world, lane, ids[lane]);
    deliver_one(&world, ids[0], "\"status\":\"SENT\"");
    uint32_t last = deliver_one(&world, ids[1], "\"status\":\"DELIVERED\"");
    bring_up(&world, 0);
    for (uint32_t lane = 0; lane < MAX_LANES; lane++) {
        const struct rcpt_batch *batch = in_flight(&world, lane);
        assert_int_equal(batch->event_count, 1);
        assert_int_equal(batch->move_count, 1);
        assert_int_equal(batch->moves[0].expected, 0);
        assert_int_equal(batch->moves[0].next, 2);
        assert_int_equal(batch->moves[0].anchor_offset, 1);
        assert_int_equal(batch->moves[0].anchor_timestamp_ms, TIMESTAMP_MS);
        assert_int_equal(batch->moves[0].anchor_crc, last);
    }
    close_world(&world);
}

/* The database went back, and the log begins behind the place that it went back to: what was
 * delivered before lies above the position that comes of it. */
static void a_record_above_the_position_is_no_anchor(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, rcpt_ladder_default_definition(), 1);
    for (int record = 0; record < 3; record++)
        deliver_one(&world, "m", "\"status\":\"SENT\"");
    bring_up(&world, 0);
    commit_all(&world, 0);
    assert_int_equal(rcpt_engine_committed(world.engine, world.slot), 3);
    rcpt_engine_connection_down(world.engine, 0, 0);
    bring_up(&world, 1);
    rcpt_engine_skip_to(world.engine, world.slot, 2, 0);
    rcpt_engine_tick(world.engine, 1000);
    const struct rcpt_batch *batch = in_flight(&world, 0);
    assert_int_equal(batch->move_count, 1);
    assert_int_equal(batch->moves[0].expected, 1);
    assert_int_equal(batch->moves[0].next, 2);
    assert_int_equal(batch->moves[0].anchor_offset, -1);
    close_world(&world);
}

/* lookup3 can be inverted: ids with one hash are made by the thousand. */
static void ids_with_one_hash_cost_no_more_than_others(void **state)
{
    enum { IDS = 4000 };
    static char value[IDS * 64];
    const uint64_t seeds[] = {1, UINT64_C(0x9e3779b97f4a7c15)};
    struct rcpt_batch batches[COUNT(seeds)];
    struct bench bench;
    size_t used = 0;
    (void)state;
    set_up(&bench, 1);
    for (unsigned index = 0; index < IDS; index++)
        used += (size_t)snprintf(value + used, sizeof(value) - used,
                                 "%s{\"message_id\":\"m-%u\",\"status\":\"SENT\"}",
                                 index == 0 ? "[" : ",", index);
    value[used++] = ']';
    struct rcpt_record *record = decode(&bench, value, used);
    assert_int_equal(record->event_count, IDS);
    for (unsigned index = 0; index < IDS; index++)
        record->events[index].hash = 0;
    const struct rcpt_batch_source source = {record, "dlr-events", 3};
    for (size_t index = 0; index < COUNT(seeds); index++) {
        struct rcpt_batch_builder *builder = rcpt_batch_builder_new(bench.ladder, seeds[index]);
        rcpt_batch_init(&batches[index], 0);
        rcpt_batch_fold(builder, &batches[index], &source, 1, RCPT_BATCH_ALL);
        assert_int_equal(batches[index].message_count, IDS);
        assert_true(rcpt_batch_builder_compared(builder) < 4 * IDS);
        rcpt_batch_builder_free(builder);
    }
    /* The seed is not in the result. */
    for (unsigned index = 0; index < IDS; index++)
        assert_ptr_equal(batches[0].messages[index].id, batches[1].messages[index].id);
    rcpt_batch_fini(&batches[0]);
    rcpt_batch_fini(&batches[1]);
    rcpt_record_free(record);
    tear_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_with_the_same_receipts_share_a_signature),
        cmocka_unit_test(flags_beside_a_status_count_and_lift_as_receipts_of_their_own),
        cmocka_unit_test(receipts_of_the_largest_ladder_are_told_apart),
        cmocka_unit_test(a_batch_holds_so_many_bytes_or_one_record),
        cmocka_unit_test(a_move_names_the_last_record_below_it),
        cmocka_unit_test(a_record_above_the_position_is_no_anchor),
        cmocka_unit_test(ids_with_one_hash_cost_no_more_than_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

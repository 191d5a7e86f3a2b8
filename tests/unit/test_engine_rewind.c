/* Turns of the protocol that the model (docs/model.md) found and that are rare in the simulator:
 * the engine alone, the ports write down what was asked for. */
#include "receiptd/core/engine.h"
#include "record_fixture.h"

#define NOTHING (-1)

struct engine_bench {
    struct bench bench;
    struct rcpt_engine *engine;
    uint32_t slot;
    int64_t rewound_to;    /* NOTHING: no rewind was asked for */
    int64_t reassigned_to; /* likewise */
    int refreshes, halts;
};

static void on_submit(void *context, const struct rcpt_batch *batch)
{
    (void)context;
    (void)batch;
}

static void on_read_positions(void *context, uint32_t lane)
{
    (void)context;
    (void)lane;
}

static void on_rewind(void *context, uint32_t slot, int64_t offset)
{
    struct engine_bench *bench = context;
    assert_int_equal(slot, bench->slot);
    bench->rewound_to = offset;
}

static void on_reassign(void *context, uint32_t slot, int64_t offset)
{
    struct engine_bench *bench = context;
    assert_int_equal(slot, bench->slot);
    bench->reassigned_to = offset;
}

static void on_refresh(void *context, uint32_t slot)
{
    struct engine_bench *bench = context;
    assert_int_equal(slot, bench->slot);
    bench->refreshes++;
}

static void on_halt(void *context, const struct rcpt_error *error)
{
    struct engine_bench *bench = context;
    assert_non_null(strstr(error->text, "is not the one that was consumed"));
    bench->halts++;
}

/* One lane, one partition, assigned at offset 0. */
static void set_up_engine(struct engine_bench *bench)
{
    const struct rcpt_engine_settings settings = {
        .lanes = 1,
        .connections = 1,
        .depth = 1,
        .batch_max_events = 100,
        .batch_max_bytes = 100000,
        .budget_bytes = 1000000,
        .verify_interval_ms = 5000,
        .rewind_timeout_ms = 5000,
        .wake_limit = 100,
        .retry_min_ms = 10,
        .retry_max_ms = 100,
    };
    const struct rcpt_engine_ports ports = {
        .context = bench,
        .submit = on_submit,
        .read_positions = on_read_positions,
        .rewind = on_rewind,
        .reassign = on_reassign,
        .refresh = on_refresh,
        .halt = on_halt,
    };
    static const int64_t start[] = {0};
    set_up(&bench->bench, 1);
    bench->engine = rcpt_engine_new(&settings, bench->bench.ladder, &ports);
    bench->slot = rcpt_engine_slot(bench->engine, "dlr-events", 3);
    bench->rewound_to = bench->reassigned_to = NOTHING;
    bench->refreshes = bench->halts = 0;
    assert_int_equal(rcpt_engine_assign(bench->engine, bench->slot, 1, start, NULL, 0), 0);
    rcpt_engine_connection_up(bench->engine, 0, 0);
}

static void tear_down_engine(struct engine_bench *bench, int refreshes, int halts)
{
    assert_int_equal(bench->refreshes, refreshes);
    assert_int_equal(bench->halts, halts);
    rcpt_engine_check(bench->engine);
    rcpt_engine_free(bench->engine);
    tear_down(&bench->bench);
}

/* The lane's answer to what it asked: its row of consumer_progress. */
static void answer_position(struct engine_bench *bench, int64_t next_offset, int64_t now_ms)
{
    struct rcpt_engine_position row = {
        .slot = bench->slot, .next_offset = next_offset, .generation = 1, .found = true};
    rcpt_engine_on_positions(bench->engine, 0, &row, 1, now_ms);
}

/* As src/receipts/consume.c does. */
static void deliver(struct engine_bench *bench, int64_t offset, int64_t now_ms)
{
    if (!rcpt_engine_admits(bench->engine, bench->slot, offset))
        return;
    struct rcpt_record_input input = input_of(EVENT("m"), sizeof(EVENT("m")) - 1);
    input.offset = offset;
    rcpt_engine_deliver_take(bench->engine, bench->slot,
                             rcpt_record_decode(bench->bench.decoder, &input), now_ms);
}

/* Another owner committed 0 and 1, so our copies of them are dropped; then the database loses that
 * commit. Kafka will not deliver them again unless it is asked to. */
static void what_was_dropped_as_applied_is_read_again_when_the_database_goes_back(void **state)
{
    struct engine_bench bench;
    (void)state;
    set_up_engine(&bench);
    answer_position(&bench, 2, 0);
    deliver(&bench, 0, 1);
    deliver(&bench, 1, 1);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->dropped_old, 2);
    rcpt_engine_connection_down(bench.engine, 0, 2);
    rcpt_engine_connection_up(bench.engine, 0, 3);
    answer_position(&bench, 0, 3);
    assert_int_equal(bench.rewound_to, 0);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->rewinds, 1);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->rewound, 2);

    deliver(&bench, 2, 4); /* fetched before: no gap */
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->records, 0);
    deliver(&bench, 0, 5);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->records, 1);
    assert_int_equal(bench.reassigned_to, NOTHING);
    tear_down_engine(&bench, 0, 0);
}

/* The database went back twice. The second seek was lost, an older record came all the same, and
 * then the first seek took effect: what lies between must not be taken for a gap of the log. */
static void a_gap_behind_a_rewind_is_none_until_an_assignment_says_so(void **state)
{
    struct engine_bench bench;
    (void)state;
    set_up_engine(&bench);
    answer_position(&bench, 6, 0);
    for (int64_t offset = 0; offset < 6; offset++)
        deliver(&bench, offset, 1);
    rcpt_engine_connection_down(bench.engine, 0, 2);
    rcpt_engine_connection_up(bench.engine, 0, 3);
    answer_position(&bench, 0, 3);
    assert_int_equal(bench.rewound_to, 0);
    deliver(&bench, 0, 4);
    assert_false(rcpt_engine_admits(bench.engine, bench.slot, 3));
    deliver(&bench, 3, 4);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->gaps, 0);
    rcpt_engine_tick(bench.engine, 5);
    assert_int_equal(bench.reassigned_to, 1);
    deliver(&bench, 3, 6); /* the first after an assignment: a gap */
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->gaps, 2);
    tear_down_engine(&bench, 0, 0);
}

static void a_database_that_goes_back_above_what_was_delivered_needs_no_rewind(void **state)
{
    struct engine_bench bench;
    (void)state;
    set_up_engine(&bench);
    answer_position(&bench, 2, 0);
    deliver(&bench, 0, 1);
    rcpt_engine_connection_down(bench.engine, 0, 2);
    rcpt_engine_connection_up(bench.engine, 0, 3);
    answer_position(&bench, 1, 3);
    assert_int_equal(bench.rewound_to, NOTHING);
    deliver(&bench, 1, 4);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->records, 1);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->gaps, 0);
    tear_down_engine(&bench, 0, 0);
}

/* Assigned behind a record that the database says was applied; the log may be another one. */
static void assign_behind(struct engine_bench *bench, int64_t next, bool same)
{
    struct rcpt_record_input input = input_of(EVENT("m"), sizeof(EVENT("m")) - 1);
    struct rcpt_record *record = rcpt_record_decode(bench->bench.decoder, &input);
    struct rcpt_engine_anchor anchor = {.offset = next - 1,
                                        .timestamp_ms = record->timestamp_ms,
                                        .crc = rcpt_record_crc(record) ^ !same};
    rcpt_record_free(record);
    assert_int_equal(rcpt_engine_assign(bench->engine, bench->slot, 1, &next, &anchor, 0),
                     next - 1);
    rcpt_engine_connection_down(bench->engine, 0, 0);
    rcpt_engine_connection_up(bench->engine, 0, 0);
}

/* The database goes back between the assignment and the first record: the record to compare with is
 * compared all the same. */
static void a_database_that_goes_back_first_does_not_hide_another_topic(void **state)
{
    struct engine_bench bench;
    (void)state;
    set_up_engine(&bench);
    assign_behind(&bench, 5, false);
    answer_position(&bench, 4, 1);
    assert_int_equal(bench.rewound_to, NOTHING);
    deliver(&bench, 4, 2);
    deliver(&bench, 5, 2);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->records, 0);
    tear_down_engine(&bench, 0, 1);

    set_up_engine(&bench);
    assign_behind(&bench, 5, true);
    answer_position(&bench, 4, 1);
    deliver(&bench, 4, 2); /* compared, and applied: nobody else has it any more */
    deliver(&bench, 5, 2);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->records, 2);
    tear_down_engine(&bench, 0, 0);
}

/* Below the record to compare with the rows name another one: they are read again before anything
 * is taken. */
static void rows_that_go_back_below_the_record_to_compare_with_are_read_again(void **state)
{
    struct engine_bench bench;
    (void)state;
    set_up_engine(&bench);
    assign_behind(&bench, 5, true);
    answer_position(&bench, 2, 1);
    assert_int_equal(bench.refreshes, 1);
    for (int64_t offset = 2; offset < 7; offset++)
        deliver(&bench, offset, 2);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->records, 0);
    rcpt_engine_tick(bench.engine, 100);
    assert_int_equal(bench.refreshes, 1);
    rcpt_engine_tick(bench.engine, 6000); /* nobody has answered */
    assert_int_equal(bench.refreshes, 2);
    assign_behind(&bench, 2, true);
    answer_position(&bench, 2, 6001);
    for (int64_t offset = 1; offset < 7; offset++)
        deliver(&bench, offset, 6002);
    assert_int_equal(rcpt_engine_get_stats(bench.engine)->records, 5);
    tear_down_engine(&bench, 2, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_dropped_as_applied_is_read_again_when_the_database_goes_back),
        cmocka_unit_test(a_gap_behind_a_rewind_is_none_until_an_assignment_says_so),
        cmocka_unit_test(a_database_that_goes_back_above_what_was_delivered_needs_no_rewind),
        cmocka_unit_test(a_database_that_goes_back_first_does_not_hide_another_topic),
        cmocka_unit_test(rows_that_go_back_below_the_record_to_compare_with_are_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

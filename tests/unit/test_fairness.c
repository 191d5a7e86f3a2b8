/* A backlog of one partition and fresh receipts of others: who gets into the next batch. */
#include "receiptd/core/engine.h"
#include "record_fixture.h"

#define BATCH  100
#define BUDGET (UINT64_C(1) << 20)

struct world {
    struct bench bench;
    struct rcpt_engine *engine;
    const struct rcpt_batch *sent; /* in flight */
    int64_t next[3];               /* offset of each partition */
};

static void on_submit(void *context, const struct rcpt_batch *batch)
{
    ((struct world *)context)->sent = batch;
}

static void on_read(void *context, uint32_t lane)
{
    (void)context;
    (void)lane;
}

static void on_offset(void *context, uint32_t slot, int64_t offset)
{
    (void)context;
    (void)slot;
    (void)offset;
    fail();
}

static void on_refresh(void *context, uint32_t slot)
{
    (void)context;
    (void)slot;
    fail();
}

static void on_halt(void *context, const struct rcpt_error *error)
{
    (void)context;
    fail_msg("%s", error->text);
}

/* One lane, one connection, three partitions assigned at 0. */
static void begin(struct world *world)
{
    memset(world, 0, sizeof(*world));
    set_up(&world->bench, 1);
    struct rcpt_engine_settings settings = {.lanes = 1,
                                            .connections = 1,
                                            .depth = 1,
                                            .batch_max_events = BATCH,
                                            .batch_max_bytes = UINT32_MAX,
                                            .budget_bytes = BUDGET,
                                            .idle_advance_ms = 1000,
                                            .verify_interval_ms = 1000,
                                            .rewind_timeout_ms = 1000,
                                            .retry_min_ms = 1,
                                            .retry_max_ms = 1,
                                            .wake_limit = 1};
    struct rcpt_engine_ports ports = {world,     on_submit,  on_read, on_offset,
                                      on_offset, on_refresh, on_halt};
    world->engine = rcpt_engine_new(&settings, world->bench.ladder, &ports);
    struct rcpt_engine_position rows[3];
    for (int32_t partition = 0; partition < 3; partition++) {
        int64_t next = 0;
        uint32_t slot = rcpt_engine_slot(world->engine, "dlr-events", partition);
        rcpt_engine_assign(world->engine, slot, 1, &next, NULL, 0);
        rows[partition] =
            (struct rcpt_engine_position){.slot = slot, .generation = 1, .found = true};
    }
    rcpt_engine_connection_up(world->engine, 0, 0);
    rcpt_engine_on_positions(world->engine, 0, rows, COUNT(rows), 0);
}

static void end(struct world *world)
{
    rcpt_engine_check(world->engine);
    rcpt_engine_free(world->engine);
    tear_down(&world->bench);
}

static void deliver(struct world *world, uint32_t partition, uint32_t records)
{
    for (uint32_t index = 0; index < records; index++) {
        char value[96];
        int size = snprintf(value, sizeof(value), EVENT("p%u-%lld"), partition,
                            (long long)world->next[partition]);
        struct rcpt_record_input input = input_of(value, (size_t)size);
        input.partition = (int32_t)partition;
        input.offset = world->next[partition]++;
        rcpt_engine_deliver_take(world->engine, partition,
                                 rcpt_record_decode(world->bench.decoder, &input), 0);
    }
    rcpt_engine_tick(world->engine, 0);
    rcpt_engine_check(world->engine);
}

static void answer(struct world *world, enum rcpt_engine_outcome outcome)
{
    struct rcpt_engine_result result = {.outcome = outcome};
    world->sent = NULL;
    rcpt_engine_on_result(world->engine, 0, &result, 1);
    rcpt_engine_tick(world->engine, 2);
    rcpt_engine_check(world->engine);
}

/* Events of the batch in flight that stem from the partition. */
static uint32_t sent_of(const struct world *world, int32_t partition)
{
    uint32_t count = 0;
    const struct rcpt_batch *sent = world->sent;
    if (sent == NULL)
        fail_msg("nothing was sent");
    for (uint32_t index = 0; sent != NULL && index < sent->event_count; index++)
        count += sent->record_partitions[sent->events[index].record_index] == partition;
    return count;
}

static void fresh_receipts_do_not_wait_behind_a_backlog(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    deliver(&world, 0, 1000);
    deliver(&world, 1, 3);
    answer(&world, RCPT_ENGINE_COMMITTED);
    assert_int_equal(sent_of(&world, 1), 3);
    assert_int_equal(sent_of(&world, 0), BATCH / 4 - 3);
    end(&world);
}

static void a_backlog_alone_fills_whole_batches(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    deliver(&world, 0, 1000);
    answer(&world, RCPT_ENGINE_COMMITTED);
    assert_int_equal(sent_of(&world, 0), BATCH);
    end(&world);
}

static void backlogs_share_whole_batches_equally(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    deliver(&world, 0, 1000);
    deliver(&world, 1, 1000);
    answer(&world, RCPT_ENGINE_COMMITTED);
    assert_int_equal(sent_of(&world, 0), BATCH / 2);
    assert_int_equal(sent_of(&world, 1), BATCH / 2);
    end(&world);
}

static void a_rolled_back_choice_is_made_again_in_the_order_of_the_partitions(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    deliver(&world, 0, 300);
    deliver(&world, 1, 2);
    uint32_t committed = world.sent->event_count;
    answer(&world, RCPT_ENGINE_COMMITTED);
    assert_int_equal(sent_of(&world, 1), 2);
    answer(&world, RCPT_ENGINE_RETRY);
    assert_int_equal(sent_of(&world, 1), 2);
    deliver(&world, 2, 2);
    while (world.sent != NULL) {
        committed += world.sent->event_count;
        answer(&world, RCPT_ENGINE_COMMITTED);
    }
    assert_int_equal(committed, 304);
    assert_int_equal(rcpt_engine_committed(world.engine, 0), 300);
    assert_int_equal(rcpt_engine_committed(world.engine, 1), 2);
    assert_int_equal(rcpt_engine_committed(world.engine, 2), 2);
    end(&world);
}

static void a_backlog_leaves_room_in_memory_for_the_others(void **state)
{
    (void)state;
    struct world world;
    begin(&world);
    while (rcpt_engine_wants(world.engine, 0))
        deliver(&world, 0, 1);
    assert_true(rcpt_engine_bytes(world.engine) >= BUDGET * 3 / 4);
    assert_true(rcpt_engine_bytes(world.engine) < BUDGET);
    assert_true(rcpt_engine_wants(world.engine, 1));
    while (rcpt_engine_wants(world.engine, 1))
        deliver(&world, 1, 1);
    assert_true(rcpt_engine_bytes(world.engine) < BUDGET);
    assert_true(rcpt_engine_wants(world.engine, 2));
    end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fresh_receipts_do_not_wait_behind_a_backlog),
        cmocka_unit_test(a_backlog_alone_fills_whole_batches),
        cmocka_unit_test(backlogs_share_whole_batches_equally),
        cmocka_unit_test(a_rolled_back_choice_is_made_again_in_the_order_of_the_partitions),
        cmocka_unit_test(a_backlog_leaves_room_in_memory_for_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

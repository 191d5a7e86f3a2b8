/* The assignment machine: every event in every state, what pins and rows decide, and what is done
 * when Kafka's log lacks what is wanted. Its ports only remember; the engine below it is real. */
#include "receiptd/core/assignment.h"
#include "record_fixture.h"

#define LANES    2u
#define TOPIC    "dlr-events"
#define PATIENCE 10000

enum { ASKED_NOTHING, ASKED_READ, ASKED_LOWS, ASKED_INSERT }; /* the last question */

struct world {
    struct bench bench;
    struct rcpt_engine *engine;
    struct rcpt_assignment *assignment;
    uint32_t slot; /* of partition 0 */
    int64_t now_ms;
    bool may_ask;
    int asked;
    uint32_t questions, serial;             /* how many, and of the last one */
    int32_t from, to;                       /* of the last rows that were to be made */
    int64_t low;                            /* of the first of them */
    size_t assigned;                        /* partitions, in the last answer to the group */
    int64_t started_at, sought, reassigned; /* offsets; -1: none */
    uint32_t refusals, read_first;
    size_t read_count;
    enum rcpt_assignment_refusal why;
    char reason[512];
    uint32_t notes[RCPT_NOTE_WENT_ON + 1];
};

/* ---- ports ---- */

static bool on_may_ask(void *context)
{
    return ((const struct world *)context)->may_ask;
}

static void ask(struct world *world, int what, uint32_t serial)
{
    world->asked = what;
    world->serial = serial;
    world->questions++;
}

static void on_read(void *context, uint32_t serial, const uint32_t *slots, size_t count)
{
    struct world *world = context;
    world->read_count = count;
    world->read_first = count > 0 ? slots[0] : UINT32_MAX;
    ask(world, ASKED_READ, serial);
}

static void on_query_lows(void *context, uint32_t serial, const struct rcpt_assignment_new *wanted)
{
    struct world *world = context;
    assert_string_equal(wanted->topic, TOPIC);
    world->from = wanted->from;
    world->to = wanted->to;
    ask(world, ASKED_LOWS, serial);
}

static void on_insert(void *context, uint32_t serial, const struct rcpt_assignment_new *rows)
{
    struct world *world = context;
    assert_int_equal(rows->from, world->from);
    assert_int_equal(rows->to, world->to);
    world->low = rows->lows[0];
    ask(world, ASKED_INSERT, serial);
}

static void on_assign(void *context, const struct rcpt_assignment_start *starts, size_t count)
{
    struct world *world = context;
    world->assigned = count;
    world->started_at = starts[0].offset;
}

static void on_seek(void *context, uint32_t slot, int64_t offset)
{
    (void)slot;
    ((struct world *)context)->sought = offset;
}

static void on_reassign(void *context, uint32_t slot, int64_t offset)
{
    (void)slot;
    ((struct world *)context)->reassigned = offset;
}

static void on_refuse(void *context, enum rcpt_assignment_refusal why, uint32_t slot,
                      const struct rcpt_error *error)
{
    struct world *world = context;
    (void)slot;
    world->refusals++;
    world->why = why;
    snprintf(world->reason, sizeof(world->reason), "%s", error->text);
}

static void on_note(void *context, const struct rcpt_assignment_note *note)
{
    ((struct world *)context)->notes[note->event]++;
}

static void on_changed(void *context)
{
    (void)context;
}

/* The engine's own ports: nothing of it is sent in these tests. */
static void no_batch(void *context, const struct rcpt_batch *batch)
{
    (void)context;
    (void)batch;
}

static void no_reading(void *context, uint32_t lane)
{
    (void)context;
    (void)lane;
}

static void no_move(void *context, uint32_t slot, int64_t offset)
{
    (void)context;
    (void)slot;
    (void)offset;
}

static void no_refresh(void *context, uint32_t slot)
{
    (void)context;
    (void)slot;
}

static void no_halt(void *context, const struct rcpt_error *error)
{
    (void)context;
    (void)error;
}

static void open_world(struct world *world, bool skip_gaps)
{
    const struct rcpt_engine_settings settings = {.lanes = LANES,
                                                  .connections = 1,
                                                  .depth = 1,
                                                  .batch_max_events = 100,
                                                  .batch_max_bytes = 1 << 20,
                                                  .budget_bytes = 1 << 20,
                                                  .wake_limit = 10};
    const struct rcpt_engine_ports engine_ports = {world,   no_batch,   no_reading, no_move,
                                                   no_move, no_refresh, no_halt};
    const struct rcpt_assignment_settings own = {
        .hash_version = 1, .skip_gaps = skip_gaps, .patience_ms = PATIENCE};
    const struct rcpt_assignment_ports ports = {world,     on_may_ask, on_read,   on_query_lows,
                                                on_insert, on_assign,  on_seek,   on_reassign,
                                                on_refuse, on_note,    on_changed};
    memset(world, 0, sizeof(*world));
    world->may_ask = true;
    world->started_at = world->sought = world->reassigned = -1;
    world->now_ms = 1000;
    set_up(&world->bench, LANES);
    world->engine = rcpt_engine_new(&settings, world->bench.ladder, &engine_ports);
    world->assignment = rcpt_assignment_new(&own, &ports, world->engine);
    world->slot = rcpt_engine_slot(world->engine, TOPIC, 0);
    rcpt_assignment_set_cluster(world->assignment, "cluster");
    rcpt_assignment_set_topic(world->assignment, TOPIC, 1);
}

static void close_world(struct world *world)
{
    rcpt_engine_check(world->engine);
    rcpt_assignment_free(world->assignment);
    rcpt_engine_free(world->engine);
    tear_down(&world->bench);
}

/* ---- events ---- */

static const struct rcpt_assignment_pin good_pin = {.topic = TOPIC,
                                                    .cluster_id = "cluster",
                                                    .ladder = "ladder",
                                                    .lanes = LANES,
                                                    .hash_version = 1,
                                                    .partitions = 1};

/* Rows of the partition: lane 0 at the offset, lane 1 three above. */
static void answer_with(struct world *world, uint32_t serial, const struct rcpt_assignment_pin *pin,
                        size_t rows, int64_t offset)
{
    const struct rcpt_assignment_row progress[LANES] = {
        {world->slot, 0, offset, 7, {.offset = -1}},
        {world->slot, 1, offset + 3, 7, {.offset = -1}}};
    const struct rcpt_assignment_answer answer = {.ladder = "ladder",
                                                  .pins = pin,
                                                  .pin_count = pin != NULL,
                                                  .rows = progress,
                                                  .row_count = rows};
    rcpt_assignment_on_read(world->assignment, serial, &answer, world->now_ms);
}

static void start(struct world *world)
{
    rcpt_assignment_start(world->assignment, &world->slot, 1, world->now_ms);
}

static void revoke(struct world *world)
{
    rcpt_assignment_revoke(world->assignment, &world->slot, 1, world->now_ms);
}

static void refresh(struct world *world)
{
    rcpt_assignment_refresh(world->assignment, world->slot, world->now_ms);
}

static void tick(struct world *world)
{
    rcpt_assignment_tick(world->assignment, world->now_ms);
}

static void tick_late(struct world *world)
{
    world->now_ms += 1000;
    tick(world);
}

static void read_good(struct world *world)
{
    answer_with(world, world->serial, &good_pin, LANES, 40);
}

static void read_lacking(struct world *world)
{
    answer_with(world, world->serial, NULL, 0, 0);
}

static void read_other_pins(struct world *world)
{
    struct rcpt_assignment_pin pin = good_pin;
    pin.lanes = 4;
    answer_with(world, world->serial, &pin, LANES, 40);
}

static void read_no_rows(struct world *world)
{
    answer_with(world, world->serial, &good_pin, 1, 40);
}

static void give_low(struct world *world, int64_t low)
{
    rcpt_assignment_on_lows(world->assignment, world->serial, &low, world->now_ms);
}

static void lows(struct world *world)
{
    give_low(world, 17);
}

static void lows_unknown(struct world *world)
{
    give_low(world, -1);
}

static void lows_while_down(struct world *world)
{
    world->may_ask = false;
    give_low(world, 17);
}

static void inserted(struct world *world)
{
    rcpt_assignment_on_inserted(world->assignment, world->serial, world->now_ms);
}

static void failed(struct world *world)
{
    assert_true(rcpt_assignment_on_failed(world->assignment, world->serial, world->now_ms));
}

/* Answers of every kind to what was asked before the last assignment. */
static void stale_answers(struct world *world)
{
    const int64_t low = 5;
    uint32_t serial = world->serial - 1;
    assert_false(rcpt_assignment_awaits(world->assignment, serial));
    answer_with(world, serial, &good_pin, LANES, 40);
    rcpt_assignment_on_lows(world->assignment, serial, &low, world->now_ms);
    rcpt_assignment_on_inserted(world->assignment, serial, world->now_ms);
    assert_false(rcpt_assignment_on_failed(world->assignment, serial, world->now_ms));
}

/* ---- every state × every event ---- */

static void reach(struct world *world, enum rcpt_assignment_state state)
{
    if (state == RCPT_ASSIGNMENT_IDLE)
        return;
    world->may_ask = state != RCPT_ASSIGNMENT_WAITING;
    start(world);
    if (state == RCPT_ASSIGNMENT_REFUSED)
        read_no_rows(world);
    if (state == RCPT_ASSIGNMENT_QUERYING || state == RCPT_ASSIGNMENT_INSERTING)
        read_lacking(world);
    if (state == RCPT_ASSIGNMENT_INSERTING)
        lows(world);
    world->may_ask = true;
    assert_int_equal(rcpt_assignment_state(world->assignment), state);
}

#define IDLE      RCPT_ASSIGNMENT_IDLE
#define WAITING   RCPT_ASSIGNMENT_WAITING
#define READING   RCPT_ASSIGNMENT_READING
#define QUERYING  RCPT_ASSIGNMENT_QUERYING
#define INSERTING RCPT_ASSIGNMENT_INSERTING
#define REFUSED   RCPT_ASSIGNMENT_REFUSED

struct step {
    enum rcpt_assignment_state state;
    void (*event)(struct world *world);
    enum rcpt_assignment_state next;
    uint32_t questions; /* asked by the event */
};

static const struct step steps[] = {
    {IDLE, start, READING, 1},
    {IDLE, refresh, READING, 1},
    {IDLE, revoke, IDLE, 0},
    {IDLE, tick_late, IDLE, 0},
    {IDLE, stale_answers, IDLE, 0},
    {WAITING, start, READING, 1},
    {WAITING, refresh, WAITING, 0},
    {WAITING, revoke, IDLE, 0},
    {WAITING, tick, READING, 1},
    {WAITING, stale_answers, WAITING, 0},
    {READING, start, READING, 1},
    {READING, refresh, READING, 0},
    {READING, revoke, IDLE, 0},
    {READING, tick_late, READING, 0},
    {READING, stale_answers, READING, 0},
    {READING, read_good, IDLE, 0},
    {READING, read_lacking, QUERYING, 1},
    {READING, read_other_pins, REFUSED, 0},
    {READING, read_no_rows, REFUSED, 0},
    {READING, failed, WAITING, 0},
    {QUERYING, start, READING, 1},
    {QUERYING, refresh, QUERYING, 0},
    {QUERYING, revoke, IDLE, 0},
    {QUERYING, tick_late, QUERYING, 0},
    {QUERYING, stale_answers, QUERYING, 0},
    {QUERYING, lows, INSERTING, 1},
    {QUERYING, lows_unknown, WAITING, 0},
    {QUERYING, lows_while_down, WAITING, 0},
    {QUERYING, failed, WAITING, 0},
    {INSERTING, start, READING, 1},
    {INSERTING, refresh, INSERTING, 0},
    {INSERTING, revoke, IDLE, 0},
    {INSERTING, tick_late, INSERTING, 0},
    {INSERTING, stale_answers, INSERTING, 0},
    {INSERTING, inserted, READING, 1},
    {INSERTING, failed, WAITING, 0},
    {REFUSED, start, READING, 1},
    {REFUSED, refresh, REFUSED, 0},
    {REFUSED, revoke, IDLE, 0},
    {REFUSED, tick_late, REFUSED, 0},
    {REFUSED, stale_answers, REFUSED, 0},
};

static void every_event_in_every_state(void **state)
{
    (void)state;
    for (size_t index = 0; index < COUNT(steps); index++) {
        const struct step *step = &steps[index];
        struct world world;
        open_world(&world, false);
        reach(&world, step->state);
        uint32_t before = world.questions;
        step->event(&world);
        if (rcpt_assignment_state(world.assignment) != step->next ||
            world.questions - before != step->questions)
            fail_msg("step %zu: state %d, %u questions", index,
                     rcpt_assignment_state(world.assignment), world.questions - before);
        close_world(&world);
    }
}

static void a_process_that_stops_asks_nothing_and_takes_no_answer(void **state)
{
    (void)state;
    for (int from = WAITING; from < REFUSED; from++) {
        struct world world;
        open_world(&world, false);
        reach(&world, (enum rcpt_assignment_state)from);
        uint32_t before = world.questions;
        rcpt_engine_stop(world.engine);
        tick_late(&world);
        read_good(&world);
        lows(&world);
        inserted(&world);
        assert_false(rcpt_assignment_on_failed(world.assignment, world.serial, world.now_ms));
        assert_int_equal(rcpt_assignment_state(world.assignment), from);
        assert_int_equal(world.questions, before);
        close_world(&world);
    }
}

static void what_failed_is_asked_again_after_a_second(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false);
    start(&world);
    failed(&world);
    world.now_ms += 999;
    tick(&world);
    assert_int_equal(world.questions, 1);
    world.now_ms++;
    world.may_ask = false;
    tick(&world);
    assert_int_equal(world.questions, 1);
    world.may_ask = true;
    tick(&world);
    assert_int_equal(world.questions, 2);
    close_world(&world);
}

/* ---- pins and rows ---- */

static void an_instance_that_is_configured_otherwise_is_refused(void **state)
{
    (void)state;
    struct rcpt_assignment_pin pins[4] = {good_pin, good_pin, good_pin, good_pin};
    static const char *const texts[] = {"Kafka cluster other", "ladder other", "lanes 4",
                                        "hash version 2"};
    pins[0].cluster_id = "other";
    pins[1].ladder = "other";
    pins[2].lanes = 4;
    pins[3].hash_version = 2;
    for (size_t index = 0; index < COUNT(pins); index++) {
        struct world world;
        open_world(&world, false);
        start(&world);
        answer_with(&world, world.serial, &pins[index], LANES, 40);
        assert_int_equal(world.why, RCPT_REFUSED_PINS);
        assert_non_null(strstr(world.reason, texts[index]));
        assert_false(rcpt_engine_is_assigned(world.engine, world.slot));
        close_world(&world);
    }
}

static void new_partitions_begin_at_their_low_watermark(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false);
    rcpt_assignment_set_topic(world.assignment, TOPIC, 3); /* the cluster knows more than we get */
    start(&world);
    read_good(&world);
    assert_int_equal(world.asked, ASKED_LOWS);
    assert_int_equal(world.from, 1);
    assert_int_equal(world.to, 3);
    const int64_t two[2] = {17, 18};
    rcpt_assignment_on_lows(world.assignment, world.serial, two, world.now_ms);
    assert_int_equal(world.low, 17);
    inserted(&world);
    assert_int_equal(world.asked, ASKED_READ);
    assert_int_equal(world.notes[RCPT_NOTE_ROWS_MADE], 1);
    close_world(&world);
}

static void a_partition_that_the_cluster_does_not_name_yet_gets_rows_too(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false);
    world.slot = rcpt_engine_slot(world.engine, TOPIC, 4);
    start(&world);
    read_lacking(&world);
    assert_int_equal(world.from, 0);
    assert_int_equal(world.to, 5);
    close_world(&world);
}

static void nothing_is_consumed_where_rows_of_one_partition_are_missing(void **state)
{
    (void)state;
    struct world world;
    struct rcpt_assignment_pin pin = good_pin;
    open_world(&world, false);
    pin.partitions = 2;
    uint32_t both[2] = {world.slot, rcpt_engine_slot(world.engine, TOPIC, 1)};
    rcpt_assignment_start(world.assignment, both, 2, world.now_ms);
    answer_with(&world, world.serial, &pin, LANES, 40);
    assert_int_equal(world.why, RCPT_REFUSED_ROWS);
    assert_non_null(strstr(world.reason, "0 of 2 rows for topic dlr-events partition 1"));
    assert_false(rcpt_engine_is_assigned(world.engine, both[0]));
    assert_int_equal(world.assigned, 0);
    close_world(&world);
}

static void a_partition_begins_at_the_anchor_of_the_lane_that_is_furthest_behind(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, false);
    start(&world);
    const struct rcpt_assignment_row rows[LANES] = {{world.slot, 0, 50, 7, {48, 1, 1}},
                                                    {world.slot, 1, 40, 7, {36, 1, 1}}};
    const struct rcpt_assignment_answer answer = {"ladder", &good_pin, 1, rows, LANES};
    rcpt_assignment_on_read(world.assignment, world.serial, &answer, world.now_ms);
    assert_int_equal(world.assigned, 1);
    assert_int_equal(world.started_at, 36);
    assert_int_equal(rcpt_engine_committed(world.engine, world.slot), 40);
    close_world(&world);
}

/* Assigned at 40; the group has its answer. */
static void open_assigned(struct world *world, bool skip_gaps)
{
    open_world(world, skip_gaps);
    start(world);
    read_good(world);
    assert_int_equal(world->started_at, 40);
}

static void a_refresh_moves_what_is_consumed_and_answers_no_group(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    world.assigned = 0;
    refresh(&world);
    assert_int_equal(world.notes[RCPT_NOTE_REFRESH], 1);
    answer_with(&world, world.serial, &good_pin, LANES, 45);
    assert_int_equal(world.reassigned, 45);
    assert_int_equal(world.assigned, 0);
    close_world(&world);
}

/* Two partitions, of which the log of one lacks the position. */
static void only_the_partition_whose_log_lacks_something_is_read_again(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    uint32_t other = rcpt_engine_slot(world.engine, TOPIC, 1);
    const int64_t next[LANES] = {40, 40};
    rcpt_engine_assign(world.engine, other, 7, next, NULL, world.now_ms);
    rcpt_assignment_on_out_of_range(world.assignment, other, 40, 50, 60, world.now_ms);
    assert_int_equal(world.read_count, 1);
    assert_int_equal(world.read_first, other);
    assert_false(rcpt_assignment_is_unread(world.assignment));
    assert_true(rcpt_assignment_waits_for_log(world.assignment));
    refresh(&world); /* a generation was raised meanwhile: the reading grows */
    assert_int_equal(world.read_count, 2);
    uint32_t questions = world.questions;
    refresh(&world);
    assert_int_equal(world.questions, questions);
    close_world(&world);
}

static void a_log_that_lacked_a_position_is_forgotten_when_it_says_nothing_more(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    rcpt_assignment_on_out_of_range(world.assignment, world.slot, 40, 50, 60, world.now_ms);
    assert_true(rcpt_assignment_waits_for_log(world.assignment));
    answer_with(&world, world.serial, &good_pin, LANES, 40);
    assert_true(rcpt_assignment_waits_for_log(world.assignment)); /* nobody has moved it */
    world.now_ms += 6000;
    tick(&world);
    assert_false(rcpt_assignment_waits_for_log(world.assignment));
    rcpt_assignment_on_out_of_range(world.assignment, world.slot, 40, 55, 60, world.now_ms);
    answer_with(&world, world.serial, &good_pin, LANES, 57); /* another instance has */
    assert_false(rcpt_assignment_waits_for_log(world.assignment));
    close_world(&world);
}

/* ---- the log lacks what is wanted ---- */

static void out_of_range(struct world *world, int64_t wanted, int64_t low, int64_t high)
{
    world->reassigned = -1;
    rcpt_assignment_on_out_of_range(world->assignment, world->slot, wanted, low, high,
                                    world->now_ms);
}

static void a_passing_answer_of_a_broker_moves_nothing(void **state)
{
    (void)state;
    static const int64_t ends[][2] = {{-1, -1}, {30, 50}, {40, 40}};
    for (size_t index = 0; index < COUNT(ends); index++) {
        struct world world;
        open_assigned(&world, false);
        uint32_t before = world.questions;
        out_of_range(&world, 40, ends[index][0], ends[index][1]);
        assert_int_equal(world.reassigned, 40);
        assert_int_equal(world.questions, before);
        close_world(&world);
    }
}

static void where_only_applied_records_are_gone_it_goes_on_at_the_beginning(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    out_of_range(&world, 36, 39, 60); /* the anchor's record */
    assert_int_equal(world.reassigned, 39);
    assert_int_equal(world.refusals, 0);
    close_world(&world);
}

/* The rows are read again; they say the same; the log lacks it still. */
static void wait_for_a_look(struct world *world)
{
    out_of_range(world, 40, 50, 60);
    assert_int_equal(world->reassigned, 40);
    assert_int_equal(rcpt_assignment_state(world->assignment), READING);
    read_good(world);
    out_of_range(world, 40, 50, 60);
    assert_int_equal(world->reassigned, -1);
    assert_int_equal(rcpt_assignment_state(world->assignment), IDLE);
}

static void look(struct world *world)
{
    world->now_ms += 1000;
    tick(world);
    assert_int_equal(world->reassigned, 40);
    read_good(world);
    out_of_range(world, 40, 50, 60);
}

static void rows_are_read_again_until_patience_ends(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    wait_for_a_look(&world);
    for (int64_t waited = 1000; waited < PATIENCE; waited += 1000) {
        look(&world);
        assert_int_equal(world.refusals, 0);
    }
    look(&world);
    assert_int_equal(world.refusals, 1);
    assert_int_equal(world.why, RCPT_REFUSED_RETENTION);
    assert_non_null(strstr(world.reason, "retention has deleted records 40…49"));
    close_world(&world);
}

static void others_that_go_on_are_waited_for(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    wait_for_a_look(&world);
    world.now_ms += PATIENCE;
    tick(&world);
    answer_with(&world, world.serial, &good_pin, LANES, 45);
    out_of_range(&world, 45, 50, 60); /* moved: the patience begins anew */
    assert_int_equal(world.refusals, 0);
    assert_int_equal(rcpt_assignment_state(world.assignment), READING);
    close_world(&world);
}

static void a_gap_is_skipped_where_the_configuration_says_so(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, true);
    wait_for_a_look(&world);
    world.now_ms += PATIENCE;
    out_of_range(&world, 40, 50, 60);
    assert_int_equal(world.refusals, 0);
    assert_int_equal(world.notes[RCPT_NOTE_SKIPPED], 1);
    assert_int_equal(world.reassigned, 50);
    close_world(&world);
}

static void stand_still(struct world *world)
{
    out_of_range(world, 40, 0, 30);
    assert_int_equal(world->why, RCPT_REFUSED_LOG_END);
    assert_non_null(strstr(world->reason, "ends at 30, but 40 was applied already"));
}

static void what_stands_still_is_not_moved_before_it_is_assigned_anew(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    stand_still(&world);
    world.now_ms += PATIENCE;
    tick(&world);
    rcpt_assignment_rewind(world.assignment, world.slot, 20);
    rcpt_assignment_reassign(world.assignment, world.slot, 20);
    assert_int_equal(world.sought, -1);
    assert_int_equal(world.reassigned, -1);
    start(&world);
    read_good(&world);
    rcpt_assignment_rewind(world.assignment, world.slot, 20);
    assert_int_equal(world.sought, 20);
    rcpt_assignment_reassign(world.assignment, world.slot, 19);
    assert_int_equal(world.reassigned, 19);
    close_world(&world);
}

static void a_rewind_ends_the_wait_for_a_look(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    wait_for_a_look(&world);
    rcpt_assignment_rewind(world.assignment, world.slot, 20);
    world.now_ms += 1000;
    tick(&world);
    assert_int_equal(world.sought, 20);
    assert_int_equal(world.reassigned, -1);
    close_world(&world);
}

/* Cooperative groups: a partition that waits for a look stays assigned while others come. Kafka
 * stands still there until it is moved on. */
static void a_partition_that_waits_for_a_look_outlives_an_assignment_of_others(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    wait_for_a_look(&world);
    uint32_t other = rcpt_engine_slot(world.engine, "other", 0);
    rcpt_assignment_start(world.assignment, &other, 1, world.now_ms);
    rcpt_assignment_revoke(world.assignment, &other, 1, world.now_ms);
    world.now_ms += 1000;
    tick(&world);
    assert_int_equal(world.reassigned, 40);
    close_world(&world);
}

static void nobody_looks_for_a_partition_that_is_gone(void **state)
{
    (void)state;
    struct world world;
    open_assigned(&world, false);
    wait_for_a_look(&world);
    revoke(&world);
    uint32_t before = world.questions;
    world.now_ms += 1000;
    tick(&world);
    assert_int_equal(world.reassigned, -1);
    assert_int_equal(world.questions, before);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_in_every_state),
        cmocka_unit_test(a_process_that_stops_asks_nothing_and_takes_no_answer),
        cmocka_unit_test(what_failed_is_asked_again_after_a_second),
        cmocka_unit_test(an_instance_that_is_configured_otherwise_is_refused),
        cmocka_unit_test(new_partitions_begin_at_their_low_watermark),
        cmocka_unit_test(a_partition_that_the_cluster_does_not_name_yet_gets_rows_too),
        cmocka_unit_test(nothing_is_consumed_where_rows_of_one_partition_are_missing),
        cmocka_unit_test(a_partition_begins_at_the_anchor_of_the_lane_that_is_furthest_behind),
        cmocka_unit_test(a_refresh_moves_what_is_consumed_and_answers_no_group),
        cmocka_unit_test(only_the_partition_whose_log_lacks_something_is_read_again),
        cmocka_unit_test(a_log_that_lacked_a_position_is_forgotten_when_it_says_nothing_more),
        cmocka_unit_test(a_passing_answer_of_a_broker_moves_nothing),
        cmocka_unit_test(where_only_applied_records_are_gone_it_goes_on_at_the_beginning),
        cmocka_unit_test(rows_are_read_again_until_patience_ends),
        cmocka_unit_test(others_that_go_on_are_waited_for),
        cmocka_unit_test(a_gap_is_skipped_where_the_configuration_says_so),
        cmocka_unit_test(what_stands_still_is_not_moved_before_it_is_assigned_anew),
        cmocka_unit_test(a_rewind_ends_the_wait_for_a_look),
        cmocka_unit_test(a_partition_that_waits_for_a_look_outlives_an_assignment_of_others),
        cmocka_unit_test(nobody_looks_for_a_partition_that_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

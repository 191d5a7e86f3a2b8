/* The frame of the engine: slots of partitions, connections and the turns of their lanes (pump). It
 * also compares positions with the database, and handles time and the end. lane.c has the steps of
 * a lane, partition.c the records that a partition takes in. Called through core/engine.h by
 * src/receipts, src/operate, assignment.c and the simulator.
 */
#include "engine_internal.h"

#include <stdlib.h>
#include <string.h>

struct rcpt_engine *rcpt_engine_new(const struct rcpt_engine_settings *settings,
                                    const struct rcpt_ladder *ladder,
                                    const struct rcpt_engine_ports *ports)
{
    RCPT_ASSERT(settings->lanes >= 1 && settings->lanes <= RCPT_ENGINE_MAX_LANES);
    RCPT_ASSERT((settings->lanes & (settings->lanes - 1)) == 0);
    RCPT_ASSERT(settings->connections >= 1 && settings->connections <= settings->lanes);
    RCPT_ASSERT(settings->depth >= 1 && settings->batch_max_events >= 1 &&
                settings->wake_limit >= 1);
    struct rcpt_engine *engine = rcpt_calloc(1, sizeof(*engine));
    engine->settings = *settings;
    engine->ports = *ports;
    engine->builder = rcpt_batch_builder_new(ladder, settings->seed);
    engine->lanes = rcpt_calloc(settings->lanes, sizeof(*engine->lanes));
    engine->connections = rcpt_calloc(settings->connections, sizeof(*engine->connections));
    for (uint32_t index = 0; index < settings->lanes; index++)
        lane_init(engine, &engine->lanes[index], index);
    for (uint32_t index = 0; index < settings->connections; index++)
        engine->connections[index].turn = index;
    return engine;
}

void rcpt_engine_free(struct rcpt_engine *engine)
{
    if (engine == NULL)
        return;
    for (uint32_t index = 0; index < engine->settings.lanes; index++)
        lane_fini(engine, &engine->lanes[index]);
    for (uint32_t index = 0; index < engine->slot_count; index++)
        free(engine->slots[index].topic);
    free(engine->slots);
    free(engine->order);
    free(engine->sources);
    free(engine->shares);
    free(engine->taken);
    free(engine->rest);
    free(engine->lanes);
    free(engine->connections);
    rcpt_batch_builder_free(engine->builder);
    free(engine);
}

/* ---- slots ---- */

static int compare_slots(const struct slot *left, const struct slot *right)
{
    int order = strcmp(left->topic, right->topic);
    if (order != 0)
        return order;
    return (left->partition > right->partition) - (left->partition < right->partition);
}

/* Keeps engine->order sorted by (topic, partition). All writers lock position rows in this order,
 * so they cannot deadlock. */
static void insert_in_order(struct rcpt_engine *engine, uint32_t slot)
{
    uint32_t at = engine->slot_count;
    while (at > 0 &&
           compare_slots(&engine->slots[engine->order[at - 1]], &engine->slots[slot]) > 0) {
        engine->order[at] = engine->order[at - 1];
        at--;
    }
    engine->order[at] = slot;
}

/* Slots are never removed: a number stays valid while records and batches of an ended epoch name
 * it. */
static void grow_slots(struct rcpt_engine *engine)
{
    uint32_t capacity = engine->slot_capacity > 0 ? engine->slot_capacity * 2 : 16;
    engine->slots = rcpt_realloc(engine->slots, capacity * sizeof(*engine->slots));
    engine->order = rcpt_realloc(engine->order, capacity * sizeof(*engine->order));
    engine->shares = rcpt_realloc(engine->shares, capacity * sizeof(*engine->shares));
    engine->taken = rcpt_realloc(engine->taken, capacity * sizeof(*engine->taken));
    for (uint32_t index = 0; index < engine->settings.lanes; index++) {
        struct lane *lane = &engine->lanes[index];
        lane->positions = rcpt_realloc(lane->positions, capacity * sizeof(*lane->positions));
        memset(lane->positions + engine->slot_capacity, 0,
               (capacity - engine->slot_capacity) * sizeof(*lane->positions));
    }
    engine->slot_capacity = capacity;
}

uint32_t rcpt_engine_slot(struct rcpt_engine *engine, const char *topic, int32_t partition)
{
    for (uint32_t index = 0; index < engine->slot_count; index++) {
        if (engine->slots[index].partition == partition &&
            strcmp(engine->slots[index].topic, topic) == 0)
            return index;
    }
    if (engine->slot_count == engine->slot_capacity)
        grow_slots(engine);
    uint32_t slot = engine->slot_count;
    engine->slots[slot] = (struct slot){.topic = rcpt_strdup(topic), .partition = partition};
    insert_in_order(engine, slot);
    engine->slot_count++;
    return slot;
}

const char *rcpt_engine_slot_topic(const struct rcpt_engine *engine, uint32_t slot)
{
    return engine->slots[slot].topic;
}

int32_t rcpt_engine_slot_partition(const struct rcpt_engine *engine, uint32_t slot)
{
    return engine->slots[slot].partition;
}

uint32_t rcpt_engine_slot_count(const struct rcpt_engine *engine)
{
    return engine->slot_count;
}

bool rcpt_engine_is_assigned(const struct rcpt_engine *engine, uint32_t slot)
{
    return slot_is_assigned(&engine->slots[slot]);
}

/* ---- connections ---- */

/* Offers every lane of the connection a turn, until none of them has something to do. The next call
 * goes on behind the lane that was asked last, so that a busy lane cannot starve its neighbours
 * when `depth` allows fewer transactions than there are lanes. */
static void pump(struct rcpt_engine *engine, uint32_t index, int64_t now_ms)
{
    struct connection *connection = &engine->connections[index];
    uint32_t lanes = engine->settings.lanes, stride = engine->settings.connections;
    uint32_t served = (lanes - index + stride - 1) / stride;
    for (uint32_t tried = 0; tried < served && connection->up; tried++) {
        struct lane *lane = &engine->lanes[connection->turn];
        connection->turn += stride;
        if (connection->turn >= lanes)
            connection->turn = index;
        if (lane_step(engine, lane, now_ms))
            tried = 0;
    }
}

/* A new connection proves nothing about transactions of the old one, so each lane reads its
 * positions before its first batch. */
void rcpt_engine_connection_up(struct rcpt_engine *engine, uint32_t connection, int64_t now_ms)
{
    RCPT_ASSERT(!engine->connections[connection].up &&
                engine->connections[connection].in_flight == 0);
    engine->connections[connection].up = true;
    for (uint32_t index = connection; index < engine->settings.lanes;
         index += engine->settings.connections)
        lane_resync(engine, &engine->lanes[index], now_ms, 0);
    pump(engine, connection, now_ms);
}

/* The caller has delivered a result (UNKNOWN at least) for every batch in flight before it calls
 * this. */
void rcpt_engine_connection_down(struct rcpt_engine *engine, uint32_t connection, int64_t now_ms)
{
    (void)now_ms;
    struct connection *lost = &engine->connections[connection];
    lost->up = false;
    for (uint32_t index = connection; index < engine->settings.lanes;
         index += engine->settings.connections) {
        struct lane *lane = &engine->lanes[index];
        RCPT_ASSERT(lane->state != LANE_IN_FLIGHT); /* results come before */
        lane_set_state(lane, LANE_DOWN);
    }
    RCPT_ASSERT(lost->in_flight == 0);
}

/* Compares one row with the lane's position. A row at or above `expected` covers three cases (our
 * own commit, a batch that was never sent, another instance's commit); below it the database has
 * gone back. A transaction of ours may outlive the epoch in which it was sent; that is no conflict
 * with another instance. */
static void resync_row(struct rcpt_engine *engine, struct lane *lane, uint32_t slot,
                       int64_t current, int64_t now_ms)
{
    struct lane_position *position = &lane->positions[slot];
    if (current >= position->expected) {
        if (current == position->expected)
            engine->stats.resync_same++;
        else
            engine->stats.resync_ahead++;
        if (current > position->expected && current > position->ours && lane->fences > 0)
            engine->stats.contended++;
        lane_drop(engine, lane, slot, current);
        position->expected = current;
        if (position->accepted < current)
            position->accepted = current;
        return;
    }
    engine->stats.resync_back++;
    lane_drop(engine, lane, slot, INT64_MAX);
    position->expected = position->accepted = position->ours = current;
    engine_rewind(engine, slot, current, now_ms);
}

void rcpt_engine_on_positions(struct rcpt_engine *engine, uint32_t lane_index,
                              const struct rcpt_engine_position *rows, size_t row_count,
                              int64_t now_ms)
{
    struct lane *lane = &engine->lanes[lane_index];
    if (lane->state != LANE_READING)
        return; /* the connection was lost in between */
    /* A row counts only for the epoch and the generation that the engine assumes. All other rows
     * lead to a second reading. */
    bool again = false;
    for (size_t row = 0; row < row_count && !engine->halted; row++) {
        const struct slot *part = &engine->slots[rows[row].slot];
        if (!slot_is_assigned(part))
            continue;
        if (part->epoch > lane->epochs_at_read) {
            /* Assigned after the question: the answer may be older than its positions. */
            again = true;
        } else if (!rows[row].found || rows[row].generation != part->generation) {
            /* No row: the pins tell whether the database went back to a time before it was made, or
             * an operator deleted it. */
            again = true;
            engine->ports.refresh(engine->ports.context, rows[row].slot);
        } else {
            resync_row(engine, lane, rows[row].slot, rows[row].next_offset, now_ms);
        }
    }
    lane->verified_ms = now_ms;
    if (again)
        lane_resync(engine, lane, now_ms, engine->settings.retry_min_ms);
    else
        lane_set_state(lane, LANE_READY);
    pump(engine, lane->connection, now_ms);
}

void rcpt_engine_on_positions_failed(struct rcpt_engine *engine, uint32_t lane_index,
                                     int64_t now_ms)
{
    struct lane *lane = &engine->lanes[lane_index];
    if (lane->state == LANE_READING)
        lane_resync(engine, lane, now_ms, rcpt_backoff_next_ms(&lane->backoff));
}

void rcpt_engine_on_result(struct rcpt_engine *engine, uint32_t lane_index,
                           const struct rcpt_engine_result *result, int64_t now_ms)
{
    struct lane *lane = &engine->lanes[lane_index];
    RCPT_ASSERT(lane->state == LANE_IN_FLIGHT &&
                engine->connections[lane->connection].in_flight > 0);
    engine->connections[lane->connection].in_flight--;
    lane_on_result(engine, lane, result, now_ms);
    if (result->outcome != RCPT_ENGINE_UNKNOWN)
        pump(engine, lane->connection, now_ms);
}

/* ---- parking, time, end ---- */

/* Sets flags only: the wake itself is a transaction, which the lane sends when it is its turn. */
void rcpt_engine_wake(struct rcpt_engine *engine, uint32_t lane, bool applicable, bool expired,
                      int64_t now_ms)
{
    engine->lanes[lane].wake_applicable |= applicable;
    engine->lanes[lane].wake_expired |= expired;
    pump(engine, engine->lanes[lane].connection, now_ms);
}

void rcpt_engine_resolve_ranges(struct rcpt_engine *engine, uint32_t lane, int64_t now_ms)
{
    engine->lanes[lane].wake_ranges = true;
    pump(engine, engine->lanes[lane].connection, now_ms);
}

void rcpt_engine_set_parking_full(struct rcpt_engine *engine, bool full)
{
    engine->parking_full = full;
}

void rcpt_engine_tick(struct rcpt_engine *engine, int64_t now_ms)
{
    engine_check_rewinds(engine, now_ms);
    for (uint32_t connection = 0; connection < engine->settings.connections; connection++)
        pump(engine, connection, now_ms);
}

void rcpt_engine_stop(struct rcpt_engine *engine)
{
    engine->stopped = true;
}

bool rcpt_engine_is_settled(const struct rcpt_engine *engine)
{
    for (uint32_t index = 0; index < engine->settings.connections; index++) {
        if (engine->connections[index].in_flight > 0)
            return false;
    }
    return true;
}

/* A record is freed with its last reference, so zero bytes means that all queues are empty. */
bool rcpt_engine_is_drained(const struct rcpt_engine *engine)
{
    return rcpt_engine_is_settled(engine) && engine->stats.bytes == 0;
}

uint64_t rcpt_engine_bytes(const struct rcpt_engine *engine)
{
    return engine->stats.bytes;
}

const struct rcpt_engine_stats *rcpt_engine_get_stats(const struct rcpt_engine *engine)
{
    return &engine->stats;
}

/* The queue agrees with the positions: records of the present epoch ascend and lie in [expected,
 * accepted); `queued` counts what is there. */
static void check_lane(const struct rcpt_engine *engine, const struct lane *lane)
{
    RCPT_ASSERT(lane->in_flight <= lane->count && lane->count <= lane->capacity);
    RCPT_ASSERT(lane->in_flight == 0 || lane->state == LANE_IN_FLIGHT);
    for (uint32_t slot = 0; slot < engine->slot_count; slot++) {
        const struct lane_position *position = &lane->positions[slot];
        int64_t last = -1;
        uint32_t queued = 0;
        for (uint32_t index = 0; index < lane->count; index++) {
            const struct rcpt_record *record = lane_record(lane, index);
            if (record->slot != slot)
                continue;
            queued++;
            RCPT_ASSERT(record->refs > 0);
            if (record->epoch != engine->slots[slot].epoch) {
                /* Only a batch in flight may hold records of an ended epoch. */
                RCPT_ASSERT(index < lane->in_flight);
                continue;
            }
            RCPT_ASSERT(record->offset > last && record->offset >= position->expected);
            RCPT_ASSERT(record->offset < position->accepted);
            last = record->offset;
        }
        RCPT_ASSERT(queued == position->queued);
        RCPT_ASSERT(!slot_is_assigned(&engine->slots[slot]) ||
                    position->expected <= position->accepted);
    }
}

void rcpt_engine_check(const struct rcpt_engine *engine)
{
    for (uint32_t index = 0; index < engine->settings.lanes; index++)
        check_lane(engine, &engine->lanes[index]);
    for (uint32_t index = 0; index < engine->settings.connections; index++) {
        uint32_t in_flight = 0;
        for (uint32_t lane = index; lane < engine->settings.lanes;
             lane += engine->settings.connections)
            in_flight += engine->lanes[lane].state == LANE_IN_FLIGHT;
        RCPT_ASSERT(in_flight == engine->connections[index].in_flight);
    }
}

/* Views of a running engine for figures and status, and its changes from outside: limits after a
 * reload, holding, the number of connections. Called by src/operate and src/receipts.
 */
#include <stdlib.h>

#include "engine_internal.h"

/* Shown by `receiptd status` and as label of receiptd_lanes: docs/operations.md names them. */
static const char *const state_names[LANE_STATE__COUNT] = {
    [LANE_DOWN] = "down",   [LANE_UNSYNCED] = "unsynced",   [LANE_READING] = "reading",
    [LANE_READY] = "ready", [LANE_IN_FLIGHT] = "in_flight", [LANE_WAITING] = "waiting",
};

const char *rcpt_engine_lane_state_name(unsigned state)
{
    return state < LANE_STATE__COUNT ? state_names[state] : NULL;
}

struct rcpt_engine_lane_view rcpt_engine_view_lane(const struct rcpt_engine *engine,
                                                   uint32_t lane_index)
{
    const struct lane *lane = &engine->lanes[lane_index];
    return (struct rcpt_engine_lane_view){
        .state = state_names[lane->state],
        .connection = lane->connection,
        .records = lane->count,
        .in_flight = lane->in_flight,
        .fences = lane->fences,
        .batch = lane->batch.number,
    };
}

struct rcpt_engine_partition_view rcpt_engine_view_partition(const struct rcpt_engine *engine,
                                                             uint32_t slot)
{
    const struct slot *part = &engine->slots[slot];
    struct rcpt_engine_partition_view view = {
        .committed = rcpt_engine_committed(engine, slot),
        .delivered = part->position,
        .oldest_ms = -1,
        .newest_ms =
            part->last.offset >= 0 && part->last.timestamp_ms > 0 ? part->last.timestamp_ms : -1,
    };
    for (uint32_t index = 0; index < engine->settings.lanes; index++) {
        const struct lane_position *position = &engine->lanes[index].positions[slot];
        if (position->queued > 0 && position->oldest_ms > 0 &&
            (view.oldest_ms < 0 || position->oldest_ms < view.oldest_ms))
            view.oldest_ms = position->oldest_ms;
    }
    return view;
}

/* The lane may be in flight: it remembers the request until it is READY. */
void rcpt_engine_resync(struct rcpt_engine *engine, uint32_t lane, int64_t now_ms)
{
    engine->lanes[lane].resync_asked = true;
    rcpt_engine_tick(engine, now_ms);
}

/* Lanes, connections and depth are part of running transactions and stay; set_connections() changes
 * one of them when all are down. */
void rcpt_engine_set_limits(struct rcpt_engine *engine, const struct rcpt_engine_settings *settings)
{
    struct rcpt_engine_settings *own = &engine->settings;
    RCPT_ASSERT(settings->batch_max_events >= 1 && settings->wake_limit >= 1);
    own->batch_max_events = settings->batch_max_events;
    own->batch_max_bytes = settings->batch_max_bytes;
    own->budget_bytes = settings->budget_bytes;
    own->linger_ms = settings->linger_ms;
    own->idle_advance_ms = settings->idle_advance_ms;
    own->verify_interval_ms = settings->verify_interval_ms;
    own->rewind_timeout_ms = settings->rewind_timeout_ms;
    own->wake_limit = settings->wake_limit;
}

void rcpt_engine_set_held(struct rcpt_engine *engine, bool held, int64_t now_ms)
{
    engine->held = held;
    if (!held)
        rcpt_engine_tick(engine, now_ms);
}

void rcpt_engine_set_connections(struct rcpt_engine *engine, uint32_t connections)
{
    RCPT_ASSERT(connections >= 1 && connections <= engine->settings.lanes);
    for (uint32_t index = 0; index < engine->settings.connections; index++)
        RCPT_ASSERT(!engine->connections[index].up && engine->connections[index].in_flight == 0);
    free(engine->connections);
    engine->connections = rcpt_calloc(connections, sizeof(*engine->connections));
    engine->settings.connections = connections;
    for (uint32_t index = 0; index < connections; index++)
        engine->connections[index].turn = index;
    for (uint32_t index = 0; index < engine->settings.lanes; index++)
        engine->lanes[index].connection = index % connections;
}

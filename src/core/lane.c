/* A lane's next step (read positions, send a batch, a probe or a wake), and its reaction to the
 * result of a transaction. A lane has one transaction in flight, and takes no other step until its
 * result.
 *
 * States, with one setter and a table of legal changes: DOWN → UNSYNCED (connected) → READING (its
 * positions) → READY → IN_FLIGHT (a transaction) → READY, or WAITING (a back-off), or UNSYNCED
 * (only the rows can tell). enum lane_state names what each awaits. Called by engine.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

#include "receiptd/base/states.h"

/* Which states may follow. */
static const unsigned successors[LANE_STATE__COUNT] = {
    [LANE_DOWN] = RCPT_TO(LANE_DOWN) | RCPT_TO(LANE_UNSYNCED),
    [LANE_UNSYNCED] = RCPT_TO(LANE_DOWN) | RCPT_TO(LANE_UNSYNCED) | RCPT_TO(LANE_READING),
    [LANE_READING] = RCPT_TO(LANE_DOWN) | RCPT_TO(LANE_UNSYNCED) | RCPT_TO(LANE_READY),
    [LANE_READY] = RCPT_TO(LANE_DOWN) | RCPT_TO(LANE_UNSYNCED) | RCPT_TO(LANE_IN_FLIGHT),
    [LANE_IN_FLIGHT] = RCPT_TO(LANE_UNSYNCED) | RCPT_TO(LANE_READY) | RCPT_TO(LANE_WAITING),
    [LANE_WAITING] = RCPT_TO(LANE_DOWN) | RCPT_TO(LANE_UNSYNCED) | RCPT_TO(LANE_READY),
};

void lane_set_state(struct lane *lane, enum lane_state state)
{
    RCPT_ASSERT_FOLLOWS(successors, lane->state, state);
    lane->state = state;
}

void lane_init(struct rcpt_engine *engine, struct lane *lane, uint32_t index)
{
    const struct rcpt_engine_settings *settings = &engine->settings;
    lane->index = index;
    lane->connection = index % settings->connections;
    lane->state = LANE_DOWN;
    lane->wake_limit = settings->wake_limit;
    rcpt_backoff_init(&lane->backoff, settings->retry_min_ms, settings->retry_max_ms,
                      settings->seed + index);
    rcpt_batch_init(&lane->batch, index);
}

void lane_fini(struct rcpt_engine *engine, struct lane *lane)
{
    lane_queue_fini(engine, lane);
    free(lane->positions);
    search_fini(&lane->search);
    rcpt_batch_fini(&lane->batch);
}

/* ---- sealing ---- */

/* Writes the batch's part of each slot to engine->taken. Checks the invariant of the batch's
 * content. */
static void find_taken(struct rcpt_engine *engine, const struct lane *lane, uint32_t record_count)
{
    memset(engine->taken, 0, engine->slot_count * sizeof(*engine->taken));
    for (uint32_t index = 0; index < record_count; index++) {
        struct rcpt_record *record = lane_record(lane, index);
        uint32_t slot = lane_record_slot(lane, index);
        struct taken *taken = &engine->taken[slot];
        RCPT_ASSERT(record->offset >= lane->positions[slot].expected);
        RCPT_ASSERT(taken->last == NULL || record->offset > taken->last->offset);
        taken->last = record;
        taken->records++;
    }
}

static struct rcpt_engine_anchor anchor_at(const struct rcpt_record *record)
{
    return (struct rcpt_engine_anchor){record->offset, record->timestamp_ms,
                                       rcpt_record_crc(record)};
}

/* The batch's move of one row of consumer_progress. `expected` is compared by the fence. `next`
 * goes up to `accepted` if the batch holds everything that the lane has queued of the partition,
 * else only behind the last record that it takes. The anchor is the last record below `next`: a
 * later assignment compares it with the log. */
static struct rcpt_batch_move plan_move(struct rcpt_engine *engine, const struct lane *lane,
                                        uint32_t slot, bool advance)
{
    struct slot *part = &engine->slots[slot];
    const struct lane_position *position = &lane->positions[slot];
    struct rcpt_batch_move move = {
        .topic = part->topic,
        .partition = part->partition,
        .slot = slot,
        .epoch = part->epoch,
        .generation = part->generation,
        .expected = position->expected,
        .next = position->expected,
        .anchor_offset = -1,
    };
    if (!advance)
        return move;
    const struct rcpt_record *last = engine->taken[slot].last;
    struct rcpt_engine_anchor anchor = {.offset = -1};
    if (last != NULL && !last->unreadable)
        anchor = anchor_at(last);
    /* The lane has nothing more below `accepted`. */
    if (position->queued == engine->taken[slot].records) {
        move.next = position->accepted;
        if (part->last.offset > anchor.offset && part->last.offset < position->accepted)
            anchor = *slot_last(part);
    } else if (last != NULL) {
        move.next = last->offset + 1;
    }
    if (move.next > move.expected) {
        move.anchor_offset = anchor.offset;
        move.anchor_timestamp_ms = anchor.timestamp_ms;
        move.anchor_crc = anchor.crc;
    }
    return move;
}

/* Adds a move for every partition that advances (for a wake: for every partition), in the order in
 * which all writers lock the rows. */
static void plan_moves(struct rcpt_engine *engine, struct lane *lane, uint32_t record_count,
                       bool advance)
{
    struct rcpt_batch *batch = &lane->batch;
    batch->moves = rcpt_arena_alloc(&batch->arena, engine->slot_count * sizeof(*batch->moves));
    find_taken(engine, lane, record_count);
    for (uint32_t index = 0; index < engine->slot_count; index++) {
        uint32_t slot = engine->order[index];
        if (!slot_is_assigned(&engine->slots[slot]))
            continue;
        struct rcpt_batch_move move = plan_move(engine, lane, slot, advance);
        RCPT_ASSERT(move.next >= move.expected);
        if (!advance || move.next > move.expected)
            batch->moves[batch->move_count++] = move;
    }
}

/* The port comes last: the engine is consistent when it is called. From here on the lane only waits
 * for the result. */
static void submit(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    lane->batch.number = ++engine->batch_number;
    lane->last_kind = lane->batch.kind;
    lane->oldest_ms = now_ms;
    lane_set_state(lane, LANE_IN_FLIGHT);
    engine->connections[lane->connection].in_flight++;
    engine->stats.batches++;
    engine->ports.submit(engine->ports.context, &lane->batch);
}

/* Folds the next batch from raw records. A batch that failed is never sent again as it was: it
 * comes back here and may get other records. */
static void seal_apply(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    uint32_t record_count = lane_choose(engine, lane);
    rcpt_batch_reset(&lane->batch, RCPT_BATCH_APPLY);
    rcpt_batch_fold(engine->builder, &lane->batch, lane_sources(engine, lane, record_count),
                    record_count, RCPT_BATCH_ALL);
    search_name_refusals(&lane->search, &lane->batch);
    plan_moves(engine, lane, record_count, true);
    lane->in_flight = record_count;
    submit(engine, lane, now_ms);
}

/* A probe holds a part of the same records as the batch that was refused, moves no position and
 * writes no dead letter. */
static void seal_probe(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    uint32_t record_count = lane->search.records;
    rcpt_batch_reset(&lane->batch, RCPT_BATCH_PROBE);
    rcpt_batch_fold(engine->builder, &lane->batch, lane_sources(engine, lane, record_count),
                    record_count, search_ask(&lane->search));
    lane->in_flight = record_count;
    submit(engine, lane, now_ms);
}

/* Moves with next = expected: the fence proves that the lane still owns its rows, and nothing
 * advances. */
static void seal_wake(struct rcpt_engine *engine, struct lane *lane, enum rcpt_batch_kind kind,
                      int64_t now_ms)
{
    rcpt_batch_reset(&lane->batch, kind);
    lane->batch.wake_limit = lane->wake_limit;
    plan_moves(engine, lane, 0, false);
    submit(engine, lane, now_ms);
}

/* ---- what next ---- */

static bool has_wake(const struct lane *lane)
{
    return lane->wake_applicable || lane->wake_expired || lane->wake_discard || lane->wake_ranges;
}

static bool has_assignment(const struct rcpt_engine *engine)
{
    for (uint32_t slot = 0; slot < engine->slot_count; slot++) {
        if (slot_is_assigned(&engine->slots[slot]))
            return true;
    }
    return false;
}

/* The lane has passed offsets without events of its own, which its rows do not show yet. */
static bool is_behind(const struct rcpt_engine *engine, const struct lane *lane)
{
    for (uint32_t slot = 0; slot < engine->slot_count; slot++) {
        if (slot_is_assigned(&engine->slots[slot]) &&
            lane->positions[slot].accepted > lane->positions[slot].expected)
            return true;
    }
    return false;
}

/* DISCARD first: it removes the one parked row that makes every wake fail. */
static void step_wake(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    enum rcpt_batch_kind kind = RCPT_BATCH_RANGES;
    if (lane->wake_discard)
        kind = RCPT_BATCH_DISCARD;
    else if (lane->wake_applicable)
        kind = RCPT_BATCH_WAKE;
    else if (lane->wake_expired)
        kind = RCPT_BATCH_EXPIRE;
    seal_wake(engine, lane, kind, now_ms);
}

/* A small batch waits for `batch.linger`, so that later receipts of the same messages can be folded
 * into it. */
static bool lingers(const struct rcpt_engine *engine, const struct lane *lane, int64_t now_ms)
{
    return engine->settings.linger_ms > 0 &&
           now_ms - lane->oldest_ms < engine->settings.linger_ms && !lane_fills_batch(engine, lane);
}

/* Without idle advance the row of a lane without events would stay behind forever, and so would the
 * offset at which the partition starts. */
static bool is_idle_advance_due(const struct rcpt_engine *engine, const struct lane *lane,
                                int64_t now_ms)
{
    return lane->count == 0 && now_ms - lane->moved_ms >= engine->settings.idle_advance_ms &&
           is_behind(engine, lane);
}

static bool step_ready(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    bool queued = lane->count > 0 && !lingers(engine, lane, now_ms);
    /* Parked rows take turns with fresh ones, so that neither starves. */
    bool woke = lane->last_kind == RCPT_BATCH_WAKE || lane->last_kind == RCPT_BATCH_RANGES;
    bool wakes = has_wake(lane) && has_assignment(engine) && !(queued && woke);
    if (search_is_on(&lane->search)) {
        seal_probe(engine, lane, now_ms);
    } else if (wakes) {
        step_wake(engine, lane, now_ms);
    } else if (queued || is_idle_advance_due(engine, lane, now_ms)) {
        seal_apply(engine, lane, now_ms);
    } else {
        return false;
    }
    return true;
}

/* The search for a refused event starts from nothing after a resync: see search_doubt_database. */
void lane_resync(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms, int64_t delay_ms)
{
    (void)engine;
    search_doubt_database(lane);
    lane->retry_at_ms = now_ms + delay_ms;
    lane_set_state(lane, LANE_UNSYNCED);
}

/* `epochs_at_read` recognises partitions that are assigned while the question is under way. */
static bool read_positions(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    if (!has_assignment(engine) || now_ms < lane->retry_at_ms ||
        engine->connections[lane->connection].in_flight >= engine->settings.depth)
        return false;
    lane->epochs_at_read = engine->epochs;
    lane_set_state(lane, LANE_READING);
    engine->ports.read_positions(engine->ports.context, lane->index);
    return true;
}

/* An idle lane has no fence that could fail: it compares its positions now and then, or would never
 * learn that the database went back. */
static bool verify(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    if (!lane->resync_asked &&
        (lane->count > 0 || now_ms - lane->verified_ms < engine->settings.verify_interval_ms))
        return false;
    lane->resync_asked = false;
    lane_resync(engine, lane, now_ms, 0);
    return read_positions(engine, lane, now_ms);
}

/* In this order: a resync that was asked for, then work, then verification while there is no
 * work. */
bool lane_step(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    if (engine->halted || engine->stopped || engine->held)
        return false;
    if (lane->state == LANE_WAITING && now_ms >= lane->retry_at_ms)
        lane_set_state(lane, LANE_READY);
    if (lane->state == LANE_UNSYNCED)
        return read_positions(engine, lane, now_ms);
    if (lane->state != LANE_READY ||
        engine->connections[lane->connection].in_flight >= engine->settings.depth)
        return false;
    if (lane->resync_asked && verify(engine, lane, now_ms))
        return true;
    return step_ready(engine, lane, now_ms) || verify(engine, lane, now_ms);
}

/* ---- results ---- */

/* The back-off grows until the next commit resets it. */
static void wait_and_retry(struct lane *lane, int64_t now_ms)
{
    lane->retry_at_ms = now_ms + rcpt_backoff_next_ms(&lane->backoff);
    lane_set_state(lane, LANE_WAITING);
}

static void advance_positions(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    for (uint32_t index = 0; index < lane->batch.move_count; index++) {
        const struct rcpt_batch_move *move = &lane->batch.moves[index];
        struct lane_position *position = &lane->positions[move->slot];
        if (move->next > position->ours)
            position->ours = move->next;
        /* A move that was sealed in an earlier epoch says nothing about the present positions. */
        if (slot_is_assigned(&engine->slots[move->slot]) &&
            engine->slots[move->slot].epoch == move->epoch)
            position->expected = move->next;
    }
    if (lane->batch.kind == RCPT_BATCH_APPLY)
        lane->moved_ms = now_ms;
    lane->verified_ms = now_ms;
}

/* Only commits count: a rolled-back batch is applied again and would count twice. */
static void count_commit(struct rcpt_engine *engine, const struct lane *lane,
                         const struct rcpt_engine_result *result)
{
    struct rcpt_engine_stats *stats = &engine->stats;
    stats->events_committed += lane->batch.event_count;
    stats->letters_committed += lane->batch.letter_count;
    stats->messages_changed += result->messages_changed;
    stats->events_parked += result->events_parked;
    if (lane->batch.kind == RCPT_BATCH_WAKE)
        stats->events_woken += result->woken;
    if (lane->batch.kind == RCPT_BATCH_EXPIRE)
        stats->events_expired += result->woken;
    stats->events_moved += result->moved;
}

/* A full answer to a wake means that more rows may be waiting, so the flag stays. */
static void on_committed(struct rcpt_engine *engine, struct lane *lane,
                         const struct rcpt_engine_result *result, int64_t now_ms)
{
    count_commit(engine, lane, result);
    advance_positions(engine, lane, now_ms);
    uint32_t limit = lane->batch.wake_limit;
    bool more = result->woken >= limit || result->moved >= limit || result->made >= limit;
    switch (lane->batch.kind) {
    case RCPT_BATCH_WAKE:
        lane->wake_applicable = more;
        lane->wake_limit = engine->settings.wake_limit;
        break;
    case RCPT_BATCH_EXPIRE:
        lane->wake_expired = more;
        break;
    case RCPT_BATCH_RANGES:
        lane->wake_ranges = result->more_ranges;
        break;
    case RCPT_BATCH_DISCARD:
        lane->wake_discard = false;
        lane->wake_limit = engine->settings.wake_limit;
        break;
    default:
        lane->wake_applicable |= lane->batch.has_held && result->events_parked > 0;
        lane->wake_ranges |= lane->batch.range_count > 0;
        lane_release_batch(engine, lane);
        search_forget(&lane->search);
        break;
    }
    lane->in_flight = 0;
    lane->fences = 0;
    rcpt_backoff_reset(&lane->backoff);
    lane_set_state(lane, LANE_READY);
}

/* Wakes fewer parked rows at once, until a single one is refused and becomes a dead letter. */
static void halve_wake(struct lane *lane)
{
    lane->wake_discard = lane->wake_limit == 1;
    lane->wake_limit = lane->wake_limit > 1 ? lane->wake_limit / 2 : 1;
}

/* Starts or continues the search for the event that PostgreSQL refuses. Where the records have
 * changed since the batch was sealed (an epoch ended), there is nothing to search: the lane tries
 * again. */
static void on_data_error(struct rcpt_engine *engine, struct lane *lane,
                          const struct rcpt_engine_result *result, int64_t now_ms)
{
    uint32_t records = lane->in_flight, events = lane->batch.event_count, before = lane->count;
    lane_requeue(engine, lane);
    bool same_records = lane->count == before && records > 0;
    if (lane->batch.kind == RCPT_BATCH_WAKE) {
        halve_wake(lane);
    } else if (lane->batch.kind == RCPT_BATCH_EXPIRE) {
        lane->wake_expired = false; /* until the next probe */
    } else if (lane->batch.kind == RCPT_BATCH_RANGES) {
        lane->wake_ranges = false; /* likewise */
    } else if (lane->batch.kind == RCPT_BATCH_APPLY && same_records && events > 0) {
        search_begin(&lane->search, records, events, result->detail);
    } else if (lane->batch.kind == RCPT_BATCH_PROBE && search_is_on(&lane->search)) {
        search_on_refused(engine, lane, result->detail);
    } else {
        wait_and_retry(lane, now_ms);
        return;
    }
    lane_set_state(lane, LANE_READY);
}

/* A probe that went through was rolled back, so its records are queued again either way. */
static void on_probed(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms)
{
    lane_requeue(engine, lane);
    if (search_is_on(&lane->search) && !search_on_passed(engine, lane))
        wait_and_retry(lane, now_ms);
    else
        lane_set_state(lane, LANE_READY);
}

/* Rolled back or unknown: the records return to the queue. UNKNOWN may have committed, and only the
 * rows can tell; so the lane reads them before it sends anything. */
void lane_on_result(struct rcpt_engine *engine, struct lane *lane,
                    const struct rcpt_engine_result *result, int64_t now_ms)
{
    switch (result->outcome) {
    case RCPT_ENGINE_COMMITTED:
        on_committed(engine, lane, result, now_ms);
        break;
    case RCPT_ENGINE_PROBED:
        on_probed(engine, lane, now_ms);
        break;
    case RCPT_ENGINE_DATA:
        engine->stats.data_errors++;
        on_data_error(engine, lane, result, now_ms);
        break;
    case RCPT_ENGINE_FENCED:
        engine->stats.fenced++;
        lane_requeue(engine, lane);
        /* One conflict is a takeover or a rollback. Another one without a commit between them means
         * that two instances own the row: each waits, so that they do not fight. */
        lane_resync(engine, lane, now_ms,
                    lane->fences++ > 0 ? rcpt_backoff_next_ms(&lane->backoff) : 0);
        break;
    case RCPT_ENGINE_RETRY:
        engine->stats.retries++;
        lane_requeue(engine, lane);
        wait_and_retry(lane, now_ms);
        break;
    default:
        engine->stats.unknown++;
        lane_requeue(engine, lane);
        lane_resync(engine, lane, now_ms, 0);
        break;
    }
}

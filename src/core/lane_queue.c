/* A lane's queue of raw records, and which of them make up the next batch.
 *
 * The queue is in order of arrival. A batch takes from its front, unless several partitions have
 * queued more than a batch may hold. Then each partition gets the same share, and one that has less
 * leaves the rest to the others (max-min fairness). So the fresh receipts of one partition do not
 * wait behind the backlog of another. This mixed batch is smaller, because the next fresh receipts
 * wait until it is done. The records of one partition keep their order in any case.
 */
#include <stdlib.h>

#include "engine_internal.h"

/* A batch that mixes fresh receipts and a backlog holds at most this fraction of batch_max_events:
 * a quarter. */
#define FRESH_PART 4

/* ---- the end of a record ---- */

/* Few hashes are read, so a record is hashed only when its anchor is needed, or before it is freed.
 */
const struct rcpt_engine_anchor *slot_last(struct slot *part)
{
    if (part->last_record != NULL)
        part->last.crc = rcpt_record_crc(part->last_record);
    part->last_record = NULL;
    return &part->last;
}

/* Every lane with a part in a record holds one reference. The last one frees the record and gives
 * its memory back to the budget. */
void engine_release(struct rcpt_engine *engine, struct rcpt_record *record)
{
    struct slot *part = &engine->slots[record->slot];
    RCPT_ASSERT(record->refs > 0);
    if (--record->refs > 0)
        return;
    RCPT_ASSERT(engine->stats.bytes >= record->memory_bytes);
    engine->stats.bytes -= record->memory_bytes;
    part->bytes -= record->memory_bytes;
    if (part->last_record == record)
        slot_last(part);
    rcpt_record_free(record);
}

/* ---- the ring ---- */

/* Index 0 is the oldest entry. The ring's capacity is a power of two. */
static struct lane_entry *at(const struct lane *lane, uint32_t index)
{
    return &lane->ring[(lane->head + index) & (lane->capacity - 1)];
}

struct rcpt_record *lane_record(const struct lane *lane, uint32_t index)
{
    return at(lane, index)->record;
}

uint32_t lane_record_slot(const struct lane *lane, uint32_t index)
{
    return at(lane, index)->slot;
}

/* The scratch memory is the engine's: only one lane folds at a time. */
const struct rcpt_batch_source *lane_sources(struct rcpt_engine *engine, const struct lane *lane,
                                             uint32_t record_count)
{
    if (record_count > engine->source_capacity) {
        engine->source_capacity = record_count * 2;
        engine->sources =
            rcpt_realloc(engine->sources, engine->source_capacity * sizeof(*engine->sources));
    }
    for (uint32_t index = 0; index < record_count; index++) {
        const struct slot *part = &engine->slots[lane_record_slot(lane, index)];
        engine->sources[index] =
            (struct rcpt_batch_source){lane_record(lane, index), part->topic, part->partition};
    }
    return engine->sources;
}

void lane_queue_fini(struct rcpt_engine *engine, struct lane *lane)
{
    for (uint32_t index = 0; index < lane->count; index++)
        engine_release(engine, lane_record(lane, index));
    free(lane->ring);
}

static void grow_ring(struct lane *lane)
{
    uint32_t capacity = lane->capacity > 0 ? lane->capacity * 2 : 64;
    struct lane_entry *ring = rcpt_malloc(capacity * sizeof(*ring));
    for (uint32_t index = 0; index < lane->count; index++)
        ring[index] = *at(lane, index);
    free(lane->ring);
    lane->ring = ring;
    lane->head = 0;
    lane->capacity = capacity;
}

/* The lane's `oldest_ms` starts its linger; the position's is for the partition's lag. */
void lane_push(struct lane *lane, struct rcpt_record *record, int64_t now_ms)
{
    if (lane->count == lane->capacity)
        grow_ring(lane);
    if (lane->count == lane->in_flight)
        lane->oldest_ms = now_ms;
    *at(lane, lane->count) = (struct lane_entry){
        .record = record,
        .slot = record->slot,
        .events = record->lane_events[lane->index + 1] - record->lane_events[lane->index],
    };
    lane->count++;
    if (lane->positions[record->slot].queued++ == 0)
        lane->positions[record->slot].oldest_ms = record->timestamp_ms;
}

/* ---- leaving ---- */

/* Keeps the entries for which `keeps` is true, from index `from` on, in order; releases the
 * others. */
static void filter(struct rcpt_engine *engine, struct lane *lane, uint32_t from,
                   bool (*keeps)(const struct rcpt_engine *, const struct rcpt_record *, uint32_t,
                                 int64_t),
                   uint32_t slot, int64_t below)
{
    uint32_t kept = from;
    for (uint32_t index = from; index < lane->count; index++) {
        struct lane_entry entry = *at(lane, index);
        if (keeps(engine, entry.record, slot, below)) {
            *at(lane, kept++) = entry;
            continue;
        }
        lane->positions[entry.slot].queued--;
        engine_release(engine, entry.record);
    }
    if (kept != lane->count)
        search_forget(&lane->search); /* the search counts events of records that may be gone */
    lane->count = kept;
}

static bool keeps_above(const struct rcpt_engine *engine, const struct rcpt_record *record,
                        uint32_t slot, int64_t below)
{
    (void)engine;
    return record->slot != slot || record->offset >= below;
}

/* Records of an ended epoch have another owner by now, or Kafka delivers them again. */
static bool keeps_current(const struct rcpt_engine *engine, const struct rcpt_record *record,
                          uint32_t slot, int64_t below)
{
    (void)slot;
    (void)below;
    return slot_is_assigned(&engine->slots[record->slot]) &&
           engine->slots[record->slot].epoch == record->epoch;
}

/* Leaves the batch in flight alone: its memory is in use, and its result decides about it. */
void lane_drop(struct rcpt_engine *engine, struct lane *lane, uint32_t slot, int64_t below)
{
    filter(engine, lane, lane->in_flight, keeps_above, slot, below);
}

void lane_requeue(struct rcpt_engine *engine, struct lane *lane)
{
    lane->in_flight = 0;
    filter(engine, lane, 0, keeps_current, 0, 0);
}

/* The batch was taken from the front, so its records leave by moving the head. */
void lane_release_batch(struct rcpt_engine *engine, struct lane *lane)
{
    for (uint32_t index = 0; index < lane->in_flight; index++) {
        struct lane_entry *entry = at(lane, index);
        lane->positions[entry->slot].queued--;
        lane->positions[entry->slot].oldest_ms = entry->record->timestamp_ms;
        engine_release(engine, entry->record);
    }
    lane->head = lane->capacity > 0 ? (lane->head + lane->in_flight) & (lane->capacity - 1) : 0;
    lane->count -= lane->in_flight;
    lane->in_flight = 0;
}

/* ---- the next batch ---- */

/* The lane's share of the record's payload, by number of events: exact enough for a soft limit,
 * without touching the events. */
static uint64_t bytes_of(const struct lane_entry *entry)
{
    const struct rcpt_record *record = entry->record;
    return record->event_count > 0
               ? (uint64_t)record->value_size * entry->events / record->event_count
               : 0;
}

/* How much more a batch may take. The first record always fits, however large it is. */
struct capacity {
    uint64_t events, bytes, most_events, most_bytes;
    uint32_t taken;
};

static bool fits(struct capacity *capacity, const struct lane_entry *entry)
{
    uint64_t bytes = bytes_of(entry);
    if (capacity->taken > 0 && (capacity->events + entry->events > capacity->most_events ||
                                capacity->bytes + bytes > capacity->most_bytes))
        return false;
    capacity->events += entry->events;
    capacity->bytes += bytes;
    capacity->taken++;
    return true;
}

static struct capacity whole_capacity(const struct rcpt_engine *engine)
{
    return (struct capacity){.most_events = engine->settings.batch_max_events,
                             .most_bytes = engine->settings.batch_max_bytes};
}

/* Takes records in order of arrival: the common case, when the queue fits or comes from one
 * partition. */
static uint32_t take_front(const struct rcpt_engine *engine, const struct lane *lane)
{
    struct capacity capacity = whole_capacity(engine);
    while (capacity.taken < lane->count && fits(&capacity, at(lane, capacity.taken)))
        continue;
    return capacity.taken;
}

/* Events queued by slot, into engine->shares. Returns the number of slots that have records. */
static uint32_t count_by_slot(struct rcpt_engine *engine, const struct lane *lane)
{
    uint32_t slots = 0;
    for (uint32_t slot = 0; slot < engine->slot_count; slot++) {
        engine->shares[slot] = (struct share){0};
        slots += lane->positions[slot].queued > 0;
    }
    if (slots < 2)
        return slots;
    for (uint32_t index = 0; index < lane->count; index++)
        engine->shares[at(lane, index)->slot].queued += at(lane, index)->events;
    return slots;
}

/* Max-min fairness: a partition that has less than an equal share gets all it has, and the rest is
 * shared by the others, until no such partition is left. True: at least one got all it has. */
static bool share_out(struct rcpt_engine *engine, const struct lane *lane, uint32_t slots,
                      uint64_t events)
{
    uint32_t unsettled = slots;
    for (bool again = true; again && unsettled > 0;) {
        uint64_t equal = events / unsettled;
        again = false;
        for (uint32_t slot = 0; slot < engine->slot_count; slot++) {
            struct share *share = &engine->shares[slot];
            if (lane->positions[slot].queued == 0 || share->settled)
                continue;
            share->quota = equal;
            if (share->queued > equal)
                continue;
            share->settled = again = true;
            share->quota = share->queued;
            events -= share->queued;
            unsettled--;
        }
    }
    return unsettled < slots;
}

/* A record that does not fit into its partition's share ends that partition's part of the batch. */
static bool takes(struct share *share, struct capacity *capacity, const struct lane_entry *entry)
{
    if (share->ended || (share->taken > 0 && share->taken + entry->events > share->quota) ||
        !fits(capacity, entry)) {
        share->ended = true;
        return false;
    }
    share->taken += entry->events;
    return true;
}

static void reserve_rest(struct rcpt_engine *engine, uint32_t count)
{
    if (count <= engine->rest_capacity)
        return;
    engine->rest_capacity = count * 2;
    engine->rest = rcpt_realloc(engine->rest, engine->rest_capacity * sizeof(*engine->rest));
}

/* Moves the fair choice to the front; everything else follows in the order of arrival. */
static uint32_t take_fairly(struct rcpt_engine *engine, struct lane *lane, uint64_t events)
{
    struct capacity capacity = whole_capacity(engine);
    capacity.most_events = events;
    uint32_t rest = 0;
    reserve_rest(engine, lane->count);
    for (uint32_t index = 0; index < lane->count; index++) {
        struct lane_entry entry = *at(lane, index);
        if (takes(&engine->shares[entry.slot], &capacity, &entry))
            *at(lane, capacity.taken - 1) = entry;
        else
            engine->rest[rest++] = entry;
    }
    for (uint32_t index = 0; index < rest; index++)
        *at(lane, capacity.taken + index) = engine->rest[index];
    return capacity.taken;
}

/* Lingering longer would not make the batch larger. */
bool lane_fills_batch(const struct rcpt_engine *engine, const struct lane *lane)
{
    uint64_t events = 0;
    for (uint32_t index = 0; index < lane->count; index++) {
        events += at(lane, index)->events;
        if (events >= engine->settings.batch_max_events)
            return true;
    }
    return false;
}

/* While a search is on, or its refusals wait to become dead letters, the batch must consist of the
 * same records. Otherwise a partition that has less than its share shows that fresh receipts meet a
 * backlog: such a batch is kept small. */
uint32_t lane_choose(struct rcpt_engine *engine, struct lane *lane)
{
    if (search_is_on(&lane->search) || lane->search.refusal_count > 0)
        return lane->search.records;
    uint32_t taken = take_front(engine, lane);
    if (taken == lane->count)
        return taken;
    uint32_t slots = count_by_slot(engine, lane);
    if (slots < 2)
        return taken;
    uint64_t whole = engine->settings.batch_max_events, part = whole / FRESH_PART;
    if (share_out(engine, lane, slots, part))
        return take_fairly(engine, lane, part);
    share_out(engine, lane, slots, whole);
    return take_fairly(engine, lane, whole);
}

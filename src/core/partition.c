/* One partition in the engine: its epochs, the records that it takes in, and rewinds.
 *
 * Phases, with one setter and a table of legal changes: UNASSIGNED, CONSUMING, COMPARING (with the
 * anchor), REWINDING, both of these, UNPROVEN (its rows have to be read again). enum
 * partition_phase names what each awaits. Called through core/engine.h by src/receipts/consume.c
 * and the simulator, by assignment.c, and by engine.c after positions were read.
 */
#include "engine_internal.h"

#include <sysexits.h>

#include "receiptd/base/states.h"

static const unsigned successors[PARTITION_PHASE__COUNT] = {
    [PARTITION_UNASSIGNED] =
        RCPT_TO(PARTITION_UNASSIGNED) | RCPT_TO(PARTITION_CONSUMING) | RCPT_TO(PARTITION_COMPARING),
    [PARTITION_CONSUMING] =
        RCPT_TO(PARTITION_UNASSIGNED) | RCPT_TO(PARTITION_CONSUMING) | RCPT_TO(PARTITION_REWINDING),
    [PARTITION_COMPARING] = RCPT_TO(PARTITION_UNASSIGNED) | RCPT_TO(PARTITION_CONSUMING) |
                            RCPT_TO(PARTITION_REWINDING_UNCOMPARED) | RCPT_TO(PARTITION_UNPROVEN),
    [PARTITION_REWINDING] =
        RCPT_TO(PARTITION_UNASSIGNED) | RCPT_TO(PARTITION_CONSUMING) | RCPT_TO(PARTITION_REWINDING),
    [PARTITION_REWINDING_UNCOMPARED] =
        RCPT_TO(PARTITION_UNASSIGNED) | RCPT_TO(PARTITION_CONSUMING) |
        RCPT_TO(PARTITION_COMPARING) | RCPT_TO(PARTITION_REWINDING) |
        RCPT_TO(PARTITION_REWINDING_UNCOMPARED) | RCPT_TO(PARTITION_UNPROVEN),
    [PARTITION_UNPROVEN] = RCPT_TO(PARTITION_UNASSIGNED),
};

static void enter(struct slot *part, enum partition_phase phase)
{
    RCPT_ASSERT_FOLLOWS(successors, part->phase, phase);
    part->phase = phase;
}

/* Rewinding and comparing are independent of each other: the phase keeps the other half. */
static void begin_rewinding(struct slot *part)
{
    enter(part, slot_is_comparing(part) ? PARTITION_REWINDING_UNCOMPARED : PARTITION_REWINDING);
}

static void end_rewinding(struct slot *part)
{
    enter(part, slot_is_comparing(part) ? PARTITION_COMPARING : PARTITION_CONSUMING);
}

static void end_comparing(struct slot *part)
{
    enter(part, slot_is_rewinding(part) ? PARTITION_REWINDING : PARTITION_CONSUMING);
}

/* ---- epochs ---- */

/* A new epoch: results and records of an earlier one change nothing from here on. The start is the
 * lowest position of all lanes; lanes that are ahead drop records that they have applied. */
int64_t rcpt_engine_assign(struct rcpt_engine *engine, uint32_t slot, int64_t generation,
                           const int64_t *next_offsets, const struct rcpt_engine_anchor *anchor,
                           int64_t now_ms)
{
    struct slot *part = &engine->slots[slot];
    if (slot_is_assigned(part))
        rcpt_engine_revoke(engine, slot);
    int64_t start = INT64_MAX;
    for (uint32_t index = 0; index < engine->settings.lanes; index++) {
        struct lane_position *position = &engine->lanes[index].positions[slot];
        RCPT_ASSERT(next_offsets[index] >= 0);
        position->expected = position->accepted = next_offsets[index];
        engine->lanes[index].moved_ms = now_ms;
        if (next_offsets[index] < start)
            start = next_offsets[index];
    }
    /* The anchor lies below all positions, so its record is fetched only to be compared. */
    bool anchored = anchor != NULL && anchor->offset >= 0 && anchor->offset < start;
    enter(part, anchored ? PARTITION_COMPARING : PARTITION_CONSUMING);
    if (anchored) {
        part->anchor = *anchor;
        part->anchor.timestamp_ms = rcpt_record_bound_ms(anchor->timestamp_ms);
        start = anchor->offset;
    }
    engine->assigned++;
    part->epoch = ++engine->epochs;
    part->generation = generation;
    part->position = start;
    part->last.offset = -1;
    part->last_record = NULL;
    part->doubt_below = 0;
    return start;
}

/* Batches in flight keep their records. Their results may commit, and the next owner's fence sees
 * that. */
void rcpt_engine_revoke(struct rcpt_engine *engine, uint32_t slot)
{
    struct slot *part = &engine->slots[slot];
    engine->assigned -= slot_is_assigned(part);
    enter(part, PARTITION_UNASSIGNED);
    part->epoch = ++engine->epochs;
    for (uint32_t index = 0; index < engine->settings.lanes; index++)
        lane_drop(engine, &engine->lanes[index], slot, INT64_MAX);
}

/* ---- delivery ---- */

/* The last quarter of the budget is for partitions that hold less than an equal part of it, so that
 * one with a backlog cannot keep the others out. */
static bool has_budget(const struct rcpt_engine *engine, const struct slot *part)
{
    uint64_t budget = engine->settings.budget_bytes, reserve = budget / 4;
    if (engine->stats.bytes < budget - reserve)
        return true;
    return engine->stats.bytes < budget && part->bytes < reserve / engine->assigned;
}

bool rcpt_engine_wants(const struct rcpt_engine *engine, uint32_t slot)
{
    return !engine->stopped && !engine->halted && !engine->parking_full &&
           slot_is_assigned(&engine->slots[slot]) && has_budget(engine, &engine->slots[slot]);
}

/* The offset below which every lane has each record already, or applied it in an earlier epoch. */
static int64_t lowest_accepted(const struct rcpt_engine *engine, uint32_t slot)
{
    int64_t lowest = INT64_MAX;
    for (uint32_t index = 0; index < engine->settings.lanes; index++) {
        int64_t accepted = engine->lanes[index].positions[slot].accepted;
        if (accepted < lowest)
            lowest = accepted;
    }
    return lowest;
}

/* Decides before the record is decoded. Records that were applied before are counted. */
bool rcpt_engine_admits(struct rcpt_engine *engine, uint32_t slot, int64_t offset)
{
    struct slot *part = &engine->slots[slot];
    if (!slot_is_assigned(part) || engine->halted)
        return false;
    if (part->phase == PARTITION_UNPROVEN)
        return false;
    if (slot_is_rewinding(part) && offset > part->rewind_to) {
        /* Below the old position: either there is a gap at rewind_to, or an earlier rewind took
         * effect late. Assigning the partition again decides which. */
        if (offset < part->rewind_from)
            part->rewind_deadline_ms = INT64_MIN;
        return false;
    }
    if (part->position < part->doubt_below && offset > part->position) {
        /* A gap where records were delivered before the rewind: an earlier seek may have taken
         * effect late. Assigning the partition again decides. */
        begin_rewinding(part);
        part->rewind_to = part->position;
        part->rewind_from = part->doubt_below;
        part->rewind_deadline_ms = INT64_MIN;
        return false;
    }
    if (slot_is_comparing(part) && offset == part->anchor.offset)
        return true;
    if (offset < lowest_accepted(engine, slot)) {
        /* Another instance has applied it, but Kafka delivered it to us: if the database goes back
         * below it, Kafka delivers it again only after a rewind. */
        if (offset >= part->position)
            part->position = offset + 1;
        engine->stats.dropped_old++;
        return false;
    }
    return true;
}

/* Halts for good, because going on would confuse the offsets of two logs: no lane takes another
 * step, but transactions in flight still get their results. */
static void halt_on_anchor(struct rcpt_engine *engine, const struct slot *part)
{
    struct rcpt_error error;
    rcpt_error_fatal(&error, EX_DATAERR,
                     "topic %s partition %d is not the one that was consumed: the record at offset "
                     "%lld differs from "
                     "the one applied last",
                     part->topic, part->partition, (long long)part->anchor.offset);
    rcpt_error_hint(&error,
                    "receiptd positions set %.100s %d beginning, if the topic was deleted and "
                    "created again; likewise its other partitions, then restart",
                    part->topic, part->partition);
    if (engine->halted)
        return;
    engine->halted = true;
    engine->ports.halt(engine->ports.context, &error);
}

/* Returns true if the record was the anchor's: it is compared, and not applied again, unless the
 * database went back to it meanwhile. */
static bool compare_anchor(struct rcpt_engine *engine, uint32_t slot,
                           const struct rcpt_record *record)
{
    struct slot *part = &engine->slots[slot];
    if (!slot_is_comparing(part) || record->offset < part->anchor.offset)
        return false;
    /* If a larger offset comes first, retention or compaction has deleted the anchor's record, and
     * there is nothing to compare. */
    end_comparing(part);
    if (record->offset > part->anchor.offset)
        return false;
    if (record->timestamp_ms != part->anchor.timestamp_ms ||
        rcpt_record_crc(record) != part->anchor.crc) {
        halt_on_anchor(engine, part);
        return true;
    }
    return record->offset < lowest_accepted(engine, slot);
}

/* The record goes to every lane that has not accepted its offset yet; a lane without a part in it
 * only moves on. */
static void admit(struct rcpt_engine *engine, uint32_t slot, struct rcpt_record *record,
                  int64_t now_ms)
{
    record->refs = 1; /* held here until all lanes have theirs */
    engine->stats.bytes += record->memory_bytes;
    engine->slots[slot].bytes += record->memory_bytes;
    for (uint32_t index = 0; index < engine->settings.lanes; index++) {
        struct lane *lane = &engine->lanes[index];
        struct lane_position *position = &lane->positions[slot];
        if (record->offset < position->accepted)
            continue;
        position->accepted = record->offset + 1;
        uint32_t events = record->lane_events[index + 1] - record->lane_events[index];
        uint32_t rejects = record->lane_rejects[index + 1] - record->lane_rejects[index];
        engine->stats.events += events;
        engine->stats.rejects += rejects;
        if (events + rejects == 0)
            continue;
        record->refs++;
        lane_push(lane, record, now_ms);
    }
    engine->stats.records++;
    engine_release(engine, record);
}

/* The only way in. A record that was applied before, or that is only compared, still moves
 * `position`: Kafka has delivered it, and a rewind has to know that. */
void rcpt_engine_deliver_take(struct rcpt_engine *engine, uint32_t slot, struct rcpt_record *record,
                              int64_t now_ms)
{
    struct slot *part = &engine->slots[slot];
    bool admits = rcpt_engine_admits(engine, slot, record->offset);
    if (!admits || compare_anchor(engine, slot, record)) {
        if (admits && record->offset >= part->position)
            part->position = record->offset + 1;
        rcpt_record_free(record);
        return;
    }
    if (slot_is_rewinding(part)) { /* the record that was asked for: the rewind took effect */
        end_rewinding(part);
        if (part->rewind_from > part->doubt_below)
            part->doubt_below = part->rewind_from;
    } else if (record->offset > part->position)
        engine->stats.gaps += (uint64_t)(record->offset - part->position);
    part->position = record->offset + 1;
    if (!record->unreadable) { /* an unreadable record has nothing to compare */
        part->last = (struct rcpt_engine_anchor){.offset = record->offset,
                                                 .timestamp_ms = record->timestamp_ms};
        part->last_record = record;
    }
    record->slot = slot;
    record->epoch = part->epoch;
    admit(engine, slot, record, now_ms);
}

/* Counts only what no lane has applied. A partition that awaits its rows (UNPROVEN) goes on waiting
 * for them. */
void rcpt_engine_skip_to(struct rcpt_engine *engine, uint32_t slot, int64_t offset, int64_t now_ms)
{
    struct slot *part = &engine->slots[slot];
    (void)now_ms;
    if (!slot_is_assigned(part))
        return;
    int64_t lowest = lowest_accepted(engine, slot);
    if (offset > lowest) /* what lies below was applied, or is on its way */
        engine->stats.gaps += (uint64_t)(offset - lowest);
    for (uint32_t index = 0; index < engine->settings.lanes; index++) {
        struct lane_position *position = &engine->lanes[index].positions[slot];
        if (position->accepted < offset)
            position->accepted = offset;
    }
    part->position = offset;
    part->doubt_below = 0;
    if (part->phase != PARTITION_UNPROVEN)
        enter(part, PARTITION_CONSUMING);
}

/* Asks for the rows, and again after rewind_timeout if no answer comes. */
static void ask_again(struct rcpt_engine *engine, uint32_t slot, int64_t now_ms)
{
    engine->slots[slot].ask_ms = now_ms + engine->settings.rewind_timeout_ms;
    engine->ports.refresh(engine->ports.context, slot);
}

/* Called for each lane whose row went back: the lowest offset wins. An anchor above the target no
 * longer proves anything, because the log below it was never compared; so the rows are read again
 * with another anchor. */
void engine_rewind(struct rcpt_engine *engine, uint32_t slot, int64_t offset, int64_t now_ms)
{
    struct slot *part = &engine->slots[slot];
    int64_t before = slot_is_rewinding(part) ? part->rewind_to : part->position;
    if (slot_is_comparing(part) && offset < part->anchor.offset) {
        enter(part, PARTITION_UNPROVEN);
        ask_again(engine, slot, now_ms);
    }
    if (part->phase == PARTITION_UNPROVEN || offset >= before)
        return; /* Kafka has not delivered anything above it yet, or the rewind is under way */
    if (!slot_is_rewinding(part))
        part->rewind_from = part->position;
    begin_rewinding(part);
    part->rewind_to = offset;
    part->rewind_deadline_ms = now_ms + engine->settings.rewind_timeout_ms;
    engine->stats.rewinds++;
    engine->stats.rewound += (uint64_t)(before - offset);
    engine->ports.rewind(engine->ports.context, slot, offset);
}

int64_t rcpt_engine_committed(const struct rcpt_engine *engine, uint32_t slot)
{
    int64_t lowest = INT64_MAX;
    for (uint32_t index = 0; index < engine->settings.lanes; index++) {
        int64_t expected = engine->lanes[index].positions[slot].expected;
        if (expected < lowest)
            lowest = expected;
    }
    return lowest;
}

/* A seek may get lost or take effect late. Assigning again cannot: it discards everything that was
 * fetched. */
void engine_check_rewinds(struct rcpt_engine *engine, int64_t now_ms)
{
    for (uint32_t slot = 0; slot < engine->slot_count; slot++) {
        struct slot *part = &engine->slots[slot];
        if (part->phase == PARTITION_UNPROVEN && now_ms >= part->ask_ms)
            ask_again(engine, slot, now_ms);
        if (!slot_is_rewinding(part) || now_ms < part->rewind_deadline_ms)
            continue;
        /* An assignment discards everything fetched before, so from here on a gap is a real one. */
        end_rewinding(part);
        part->doubt_below = 0;
        part->position = part->rewind_to;
        engine->stats.reassigns++;
        engine->ports.reassign(engine->ports.context, slot, part->rewind_to);
    }
}

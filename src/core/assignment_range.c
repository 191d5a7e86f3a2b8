/* A partition and its log: what the engine asks of Kafka, and what is done when the log does not
 * have the offset that is wanted (retention, truncation, a topic made anew). States: enum
 * range_state. Called by assignment.c, and by the engine's ports.
 *
 * Before anything counts as lost, the rows are read again: others may have gone on since. While a
 * transaction of the owner before may still be on its way, the partition waits and looks again.
 */
#include <string.h>
#include <sysexits.h>

#include "assignment_internal.h"
#include "engine_internal.h"

#define LOOK_MS 1000 /* between two looks at a log that does not have what is wanted */

static const bool legal[RANGE_STATE__COUNT][RANGE_STATE__COUNT] = {
    [RANGE_FOLLOWED] =
        {[RANGE_FOLLOWED] = true, [RANGE_LOOKING] = true, [RANGE_STANDS_STILL] = true},
    [RANGE_LOOKING] =
        {[RANGE_FOLLOWED] = true, [RANGE_LOOKING] = true, [RANGE_STANDS_STILL] = true},
    [RANGE_STANDS_STILL] = {[RANGE_FOLLOWED] = true, [RANGE_STANDS_STILL] = true},
};

static void enter(struct range *range, enum range_state state)
{
    RCPT_ASSERT(legal[range->state][state]);
    range->state = state;
}

static struct range *range_of(struct rcpt_assignment *assignment, uint32_t slot)
{
    if (slot >= assignment->range_count) {
        uint32_t count = rcpt_engine_slot_count(assignment->engine);
        assignment->ranges = rcpt_realloc(assignment->ranges, count * sizeof(*assignment->ranges));
        memset(assignment->ranges + assignment->range_count, 0,
               (count - assignment->range_count) * sizeof(*assignment->ranges));
        assignment->range_count = count;
    }
    return &assignment->ranges[slot];
}

static void note(struct rcpt_assignment *assignment, enum rcpt_assignment_event event,
                 uint32_t slot, int64_t first, int64_t last)
{
    const struct slot *part = &assignment->engine->slots[slot];
    assignment->ports.note(
        assignment->ports.context,
        &(struct rcpt_assignment_note){event, part->topic, part->partition, first, last});
}

/* ---- moving in the log ---- */

/* From here on the partition is read from this offset, whatever was waited for before. */
static void reassign(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset)
{
    struct range *range = range_of(assignment, slot);
    if (range->state == RANGE_LOOKING)
        enter(range, RANGE_FOLLOWED);
    assignment->ports.reassign(assignment->ports.context, slot, offset);
}

/* A partition that waits for its next look goes on waiting: it may stay assigned, Kafka stands
 * still there, and only the look moves it on. */
void range_forget_asked(struct rcpt_assignment *assignment)
{
    for (uint32_t slot = 0; slot < assignment->range_count; slot++)
        assignment->ranges[slot].asked_low = 0;
}

void range_begin(struct rcpt_assignment *assignment, uint32_t slot)
{
    struct range *range = range_of(assignment, slot);
    enter(range, RANGE_FOLLOWED);
    *range = (struct range){.state = RANGE_FOLLOWED};
}

void range_go_on(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset)
{
    enter(range_of(assignment, slot), RANGE_FOLLOWED);
    reassign(assignment, slot, offset);
}

/* ---- what the engine asks for ---- */

void rcpt_assignment_rewind(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset)
{
    struct range *range = range_of(assignment, slot);
    if (range->state == RANGE_STANDS_STILL)
        return; /* nobody has said that the log is the one that was consumed */
    note(assignment, RCPT_NOTE_REWIND, slot, offset, 0);
    enter(range, RANGE_FOLLOWED);
    assignment->ports.seek(assignment->ports.context, slot, offset);
}

void rcpt_assignment_reassign(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset)
{
    if (range_of(assignment, slot)->state == RANGE_STANDS_STILL)
        return;
    note(assignment, RCPT_NOTE_REASSIGN, slot, offset, 0);
    reassign(assignment, slot, offset);
}

/* ---- the log does not have what is wanted ---- */

/* True: others may have gone on since the rows were read, so they are read again before anything is
 * given up, now and then for a while; as long as they do go on, it is not given up either. */
static bool look_again(struct rcpt_assignment *assignment, uint32_t slot, int64_t wanted,
                       int64_t low, int64_t now_ms)
{
    struct range *range = range_of(assignment, slot);
    if (range->asked_low == 0 || wanted > range->asked_at)
        range->since_ms = now_ms;
    bool moved = range->asked_low < low || wanted > range->asked_at;
    if (moved && assignment_refresh(assignment, now_ms)) {
        range->asked_low = low;
        range->asked_at = wanted;
    } else if (assignment->state == RCPT_ASSIGNMENT_IDLE) {
        if (range->state != RANGE_STANDS_STILL)
            enter(range, RANGE_LOOKING);
        range->look_at_ms = now_ms + LOOK_MS;
        return now_ms - range->since_ms < assignment->settings.patience_ms;
    }
    reassign(assignment, slot, wanted); /* it comes back here, whatever becomes of the reading */
    return true;
}

void range_tick(struct rcpt_assignment *assignment, int64_t now_ms)
{
    for (uint32_t slot = 0; slot < assignment->range_count; slot++) {
        struct range *range = &assignment->ranges[slot];
        if (range->state != RANGE_LOOKING || now_ms < range->look_at_ms)
            continue;
        enter(range, RANGE_FOLLOWED);
        if (assignment->engine->stopped || !rcpt_engine_is_assigned(assignment->engine, slot))
            continue;
        (void)assignment_refresh(assignment, now_ms);
        reassign(assignment, slot, range->asked_at);
    }
}

static void go_on_at(struct rcpt_assignment *assignment, uint32_t slot, int64_t low, int64_t now_ms)
{
    rcpt_engine_skip_to(assignment->engine, slot, low, now_ms);
    reassign(assignment, slot, low);
}

/* This partition stands still, the others go on. */
static void stand_still(struct rcpt_assignment *assignment, uint32_t slot, int64_t wanted,
                        int64_t low, int64_t high)
{
    const struct slot *part = &assignment->engine->slots[slot];
    struct range *range = range_of(assignment, slot);
    struct rcpt_error error;
    enter(range, RANGE_STANDS_STILL);
    *range = (struct range){.state = RANGE_STANDS_STILL};
    if (wanted < low) {
        rcpt_error_fatal(&error, EX_DATAERR,
                         "topic %s partition %d: retention has deleted records %lld…%lld before "
                         "they were applied",
                         part->topic, part->partition, (long long)wanted, (long long)low - 1);
        rcpt_error_hint(
            &error,
            "kafka.on_retention_gap: skip goes on behind the gap and counts it; a longer retention "
            "avoids it");
    } else {
        rcpt_error_fatal(&error, EX_DATAERR,
                         "topic %s partition %d ends at %lld, but %lld was applied already: it was "
                         "truncated, or deleted and created anew",
                         part->topic, part->partition, (long long)high, (long long)wanted);
        rcpt_error_hint(
            &error, "compare the topic with consumer_progress; positions must be set on purpose");
    }
    assignment->ports.refuse(assignment->ports.context,
                             wanted < low ? RCPT_REFUSED_RETENTION : RCPT_REFUSED_LOG_END, slot,
                             &error);
}

void rcpt_assignment_on_out_of_range(struct rcpt_assignment *assignment, uint32_t slot,
                                     int64_t wanted, int64_t low, int64_t high, int64_t now_ms)
{
    if (low < 0 || (wanted >= low && wanted <= high)) {
        reassign(assignment, slot, wanted); /* a broker's passing answer */
    } else if (wanted < low && low <= rcpt_engine_committed(assignment->engine, slot)) {
        /* Only what was applied is gone, and with it the record to compare with: nothing is lost.
         */
        go_on_at(assignment, slot, low, now_ms);
    } else if (wanted < low && look_again(assignment, slot, wanted, low, now_ms)) {
        return;
    } else if (wanted < low && assignment->settings.skip_gaps) {
        note(assignment, RCPT_NOTE_SKIPPED, slot, wanted, low - 1);
        go_on_at(assignment, slot, low, now_ms);
    } else {
        stand_still(assignment, slot, wanted, low, high);
    }
}

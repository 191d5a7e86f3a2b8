/* A partition and its log: seeks that the engine asks for, and the reaction when the log lacks the
 * offset to go on at. Causes are retention, truncation, or a topic that was made again. States:
 * enum range_state. Called by assignment.c, and through the engine's ports.
 *
 * Before anything counts as lost, the rows are read again: another instance may have moved them.
 * While a transaction of the previous owner may still commit, the partition waits and asks every
 * second.
 */
#include <string.h>
#include <sysexits.h>

#include "assignment_internal.h"
#include "engine_internal.h"

#include "receiptd/base/states.h"

#define RETRY_MS  1000 /* between two readings while the log lacks the offset */
#define LACKED_MS 5000 /* Kafka has not said for so long that the log lacks it */

static const unsigned successors[RANGE_STATE__COUNT] = {
    [RANGE_FOLLOWED] =
        RCPT_TO(RANGE_FOLLOWED) | RCPT_TO(RANGE_WAITING) | RCPT_TO(RANGE_STANDS_STILL),
    [RANGE_WAITING] =
        RCPT_TO(RANGE_FOLLOWED) | RCPT_TO(RANGE_WAITING) | RCPT_TO(RANGE_STANDS_STILL),
    [RANGE_STANDS_STILL] = RCPT_TO(RANGE_FOLLOWED) | RCPT_TO(RANGE_STANDS_STILL),
};

static void enter(struct range *range, enum range_state state)
{
    RCPT_ASSERT_FOLLOWS(successors, range->state, state);
    range->state = state;
}

/* Slots appear while the process runs; all zero is FOLLOWED. */
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

/* Whether the log lacks the partition's position decides whether the instance is ready. */
static void set_lacking(struct rcpt_assignment *assignment, uint32_t slot, bool lacking)
{
    struct range *range = range_of(assignment, slot);
    bool was = range->lacking;
    range->lacking = lacking;
    if (was != lacking)
        assignment->ports.changed(assignment->ports.context);
}

/* From here on the partition is read from this offset, whatever it waited for before. */
static void reassign(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset)
{
    struct range *range = range_of(assignment, slot);
    if (range->state == RANGE_WAITING)
        enter(range, RANGE_FOLLOWED);
    assignment->ports.reassign(assignment->ports.context, slot, offset);
}

/* A waiting partition goes on waiting: it may stay assigned, since Kafka delivers nothing there,
 * and only range_tick moves it on. */
void range_forget_asked(struct rcpt_assignment *assignment)
{
    for (uint32_t slot = 0; slot < assignment->range_count; slot++)
        assignment->ranges[slot].asked_low = 0;
}

/* Ends the state that stand_still() began. */
static void follow(struct rcpt_assignment *assignment, uint32_t slot)
{
    struct range *range = range_of(assignment, slot);
    bool stood_still = range->state == RANGE_STANDS_STILL;
    enter(range, RANGE_FOLLOWED);
    if (stood_still)
        note(assignment, RCPT_NOTE_WENT_ON, slot, 0, 0);
}

void range_begin(struct rcpt_assignment *assignment, uint32_t slot)
{
    follow(assignment, slot);
    *range_of(assignment, slot) = (struct range){.state = RANGE_FOLLOWED};
}

void range_go_on(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset)
{
    follow(assignment, slot);
    if (offset >= range_of(assignment, slot)->asked_low)
        set_lacking(assignment, slot, false);
    reassign(assignment, slot, offset);
}

void range_end(struct rcpt_assignment *assignment, uint32_t slot)
{
    if (range_of(assignment, slot)->state == RANGE_STANDS_STILL)
        follow(assignment, slot);
}

bool rcpt_assignment_stands_still(const struct rcpt_assignment *assignment, uint32_t slot)
{
    return slot < assignment->range_count && assignment->ranges[slot].state == RANGE_STANDS_STILL;
}

/* ---- what the engine asks for ---- */

void rcpt_assignment_rewind(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset)
{
    struct range *range = range_of(assignment, slot);
    if (range->state == RANGE_STANDS_STILL)
        return; /* it is not proven that the log is the one that was consumed */
    note(assignment, RCPT_NOTE_REWIND, slot, offset, 0);
    enter(range, RANGE_FOLLOWED);
    assignment->ports.seek(assignment->ports.context, slot, offset);
}

/* As in seek: a partition that stands still moves only by an assignment. */
void rcpt_assignment_reassign(struct rcpt_assignment *assignment, uint32_t slot, int64_t offset)
{
    if (range_of(assignment, slot)->state == RANGE_STANDS_STILL)
        return;
    note(assignment, RCPT_NOTE_REASSIGN, slot, offset, 0);
    reassign(assignment, slot, offset);
}

/* ---- the log does not have the offset ---- */

/* True: nothing is given up yet. The rows are read again, at first and whenever the log's begin or
 * the position has changed; without news the partition asks again every second until `patience_ms`
 * is over. */
static bool read_again(struct rcpt_assignment *assignment, uint32_t slot, int64_t requested,
                       int64_t low, int64_t now_ms)
{
    struct range *range = range_of(assignment, slot);
    if (range->asked_low == 0 || requested > range->asked_at)
        range->since_ms = now_ms;
    range->lacked_ms = now_ms;
    set_lacking(assignment, slot, true);
    bool moved = range->asked_low < low || requested > range->asked_at;
    if (moved && assignment_refresh(assignment, slot, now_ms)) {
        range->asked_low = low;
        range->asked_at = requested;
    } else if (!rcpt_assignment_is_unread(assignment)) {
        if (range->state != RANGE_STANDS_STILL)
            enter(range, RANGE_WAITING);
        range->retry_at_ms = now_ms + RETRY_MS;
        return now_ms - range->since_ms < assignment->settings.patience_ms;
    }
    /* the log answers "out of range" again, unless the reading moves the partition on */
    reassign(assignment, slot, requested);
    return true;
}

void range_tick(struct rcpt_assignment *assignment, int64_t now_ms)
{
    for (uint32_t slot = 0; slot < assignment->range_count; slot++) {
        struct range *range = &assignment->ranges[slot];
        if (range->lacking && now_ms - range->lacked_ms > LACKED_MS)
            set_lacking(assignment, slot, false);
        if (range->state != RANGE_WAITING || now_ms < range->retry_at_ms)
            continue;
        enter(range, RANGE_FOLLOWED);
        if (assignment->engine->stopped || !rcpt_engine_is_assigned(assignment->engine, slot))
            continue;
        (void)assignment_refresh(assignment, slot, now_ms);
        reassign(assignment, slot, range->asked_at);
    }
}

bool rcpt_assignment_waits_for_log(const struct rcpt_assignment *assignment)
{
    for (uint32_t slot = 0; slot < assignment->range_count; slot++)
        if (assignment->ranges[slot].lacking && rcpt_engine_is_assigned(assignment->engine, slot))
            return true;
    return false;
}

/* The engine counts the skipped offsets as a gap, but only those that no lane has applied. */
static void go_on_at(struct rcpt_assignment *assignment, uint32_t slot, int64_t low, int64_t now_ms)
{
    rcpt_engine_skip_to(assignment->engine, slot, low, now_ms);
    set_lacking(assignment, slot, false);
    reassign(assignment, slot, low);
}

/* This partition stands still, the others go on. An operator has to decide: see the two hints. */
static void stand_still(struct rcpt_assignment *assignment, uint32_t slot, int64_t requested,
                        int64_t low, int64_t high)
{
    const struct slot *part = &assignment->engine->slots[slot];
    struct range *range = range_of(assignment, slot);
    struct rcpt_error error;
    enter(range, RANGE_STANDS_STILL);
    set_lacking(assignment, slot, false);
    *range = (struct range){.state = RANGE_STANDS_STILL};
    if (requested < low) {
        rcpt_error_fatal(&error, EX_DATAERR,
                         "topic %s partition %d: retention has deleted records %lld…%lld before "
                         "they were applied",
                         part->topic, part->partition, (long long)requested, (long long)low - 1);
        rcpt_error_hint(&error,
                        "receiptd positions skip-gap %.100s %d goes on behind the gap; a longer "
                        "retention avoids it, kafka.on_retention_gap: skip does so each time",
                        part->topic, part->partition);
    } else {
        rcpt_error_fatal(&error, EX_DATAERR,
                         "topic %s partition %d ends at %lld, but %lld was applied already: it was "
                         "truncated, or deleted and created again",
                         part->topic, part->partition, (long long)high, (long long)requested);
        rcpt_error_hint(&error,
                        "receiptd positions set %.100s %d beginning, if it was created again; "
                        "receiptd positions show has position and log",
                        part->topic, part->partition);
    }
    assignment->ports.refuse(assignment->ports.context,
                             requested < low ? RCPT_REFUSED_RETENTION : RCPT_REFUSED_LOG_END, slot,
                             &error);
}

/* The checks go from harmless to loss: a passing answer, only applied records deleted, rows that
 * may have moved, loss that the configuration allows, loss. */
void rcpt_assignment_on_out_of_range(struct rcpt_assignment *assignment, uint32_t slot,
                                     int64_t requested, int64_t low, int64_t high, int64_t now_ms)
{
    if (low < 0 || (requested >= low && requested <= high)) {
        set_lacking(assignment, slot, false);
        reassign(assignment, slot, requested); /* a broker's passing answer */
    } else if (requested < low && low <= rcpt_engine_committed(assignment->engine, slot)) {
        /* Only applied records are gone, and with them the one to compare with: nothing is lost. */
        go_on_at(assignment, slot, low, now_ms);
    } else if (requested < low && read_again(assignment, slot, requested, low, now_ms)) {
        return;
    } else if (requested < low && assignment->settings.skip_gaps) {
        note(assignment, RCPT_NOTE_SKIPPED, slot, requested, low - 1);
        go_on_at(assignment, slot, low, now_ms);
    } else {
        stand_still(assignment, slot, requested, low, high);
    }
}

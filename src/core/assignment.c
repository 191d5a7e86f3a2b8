/* The way of an assignment: asks PostgreSQL and Kafka one question at a time, until every partition
 * has an offset to start at. States and their wake-ups stand at enum rcpt_assignment_state in
 * assignment.h; enter() is the one setter, `handlers` has a cell for each state and event. Called
 * by src/receipts/positions.c and src/receipts/consume.c, and by the simulator.
 */
#include <stdlib.h>
#include <string.h>

#include "assignment_internal.h"
#include "engine_internal.h"

#include "receiptd/base/states.h"

#define RETRY_MS 1000 /* after a question that failed */

/* The legal successors of each state. A new assignment and the end of one are possible at any time.
 */
static const unsigned successors[RCPT_ASSIGNMENT_STATE__COUNT] = {
    [RCPT_ASSIGNMENT_IDLE] = RCPT_TO(RCPT_ASSIGNMENT_IDLE) | RCPT_TO(RCPT_ASSIGNMENT_WAITING),
    [RCPT_ASSIGNMENT_WAITING] = RCPT_TO(RCPT_ASSIGNMENT_IDLE) | RCPT_TO(RCPT_ASSIGNMENT_WAITING) |
                                RCPT_TO(RCPT_ASSIGNMENT_READING),
    [RCPT_ASSIGNMENT_READING] = RCPT_TO(RCPT_ASSIGNMENT_IDLE) | RCPT_TO(RCPT_ASSIGNMENT_WAITING) |
                                RCPT_TO(RCPT_ASSIGNMENT_QUERYING) |
                                RCPT_TO(RCPT_ASSIGNMENT_REFUSED),
    [RCPT_ASSIGNMENT_QUERYING] = RCPT_TO(RCPT_ASSIGNMENT_IDLE) | RCPT_TO(RCPT_ASSIGNMENT_WAITING) |
                                 RCPT_TO(RCPT_ASSIGNMENT_INSERTING),
    [RCPT_ASSIGNMENT_INSERTING] = RCPT_TO(RCPT_ASSIGNMENT_IDLE) | RCPT_TO(RCPT_ASSIGNMENT_WAITING),
    [RCPT_ASSIGNMENT_REFUSED] = RCPT_TO(RCPT_ASSIGNMENT_IDLE) | RCPT_TO(RCPT_ASSIGNMENT_WAITING),
};

static void enter(struct rcpt_assignment *assignment, enum rcpt_assignment_state state)
{
    RCPT_ASSERT_FOLLOWS(successors, assignment->state, state);
    bool was_refused = assignment->state == RCPT_ASSIGNMENT_REFUSED;
    assignment->state = state;
    if (was_refused)
        assignment->ports.note(assignment->ports.context,
                               &(struct rcpt_assignment_note){.event = RCPT_NOTE_WENT_ON});
    assignment->ports.changed(assignment->ports.context);
}

/* ---- events and their handlers ---- */

enum event_kind {
    EVENT_START,   /* the group gave partitions */
    EVENT_REFRESH, /* the positions of partitions that are consumed have to be read again */
    EVENT_REVOKE,  /* the group takes partitions away */
    EVENT_TICK,
    EVENT_READ,     /* answer to READING */
    EVENT_LOWS,     /* answer to QUERYING */
    EVENT_INSERTED, /* answer to INSERTING */
    EVENT_FAILED,   /* instead of any of these answers */
    EVENT__COUNT,
};

struct event {
    int64_t now_ms;
    const uint32_t *slots; /* START, REFRESH */
    size_t count;
    const struct rcpt_assignment_answer *answer; /* READ */
    const int64_t *lows;                         /* LOWS */
};

typedef void (*handler)(struct rcpt_assignment *assignment, const struct event *event);

static void ignore(struct rcpt_assignment *assignment, const struct event *event)
{
    (void)assignment;
    (void)event;
}

/* WAITING is left by the next tick at or after this time, when PostgreSQL can be asked. */
static void wait_until(struct rcpt_assignment *assignment, int64_t at_ms)
{
    assignment->retry_at_ms = at_ms;
    enter(assignment, RCPT_ASSIGNMENT_WAITING);
}

static void read_when_due(struct rcpt_assignment *assignment, const struct event *event)
{
    if (assignment->engine->stopped || event->now_ms < assignment->retry_at_ms ||
        !assignment->ports.may_ask(assignment->ports.context))
        return;
    enter(assignment, RCPT_ASSIGNMENT_READING);
    assignment->ports.read(assignment->ports.context, assignment->serial, assignment->slots,
                           assignment->count);
}

/* Reads without waiting for the next tick, if PostgreSQL can be asked. */
static void read_now(struct rcpt_assignment *assignment, const struct event *event)
{
    wait_until(assignment, event->now_ms);
    read_when_due(assignment, event);
}

static void read_later(struct rcpt_assignment *assignment, const struct event *event)
{
    wait_until(assignment, event->now_ms + RETRY_MS);
}

/* Takes the slots over. The new serial makes every answer to an earlier question void. */
static void begin(struct rcpt_assignment *assignment, uint32_t *slots, size_t count, bool refresh,
                  const struct event *event)
{
    free(assignment->slots);
    assignment->slots = slots;
    assignment->count = count;
    assignment->refresh = refresh;
    assignment->serial++;
    read_now(assignment, event);
}

static void start(struct rcpt_assignment *assignment, const struct event *event)
{
    uint32_t *slots = rcpt_calloc(event->count + 1, sizeof(*slots));
    memcpy(slots, event->slots, event->count * sizeof(*slots));
    begin(assignment, slots, event->count, false, event);
}

/* Reads the positions of some partitions again. The group needs no answer: range_go_on moves each
 * partition. */
static void refresh(struct rcpt_assignment *assignment, const struct event *event)
{
    uint32_t *slots = rcpt_calloc(event->count + 1, sizeof(*slots));
    memcpy(slots, event->slots, event->count * sizeof(*slots));
    begin(assignment, slots, event->count, true, event);
}

static bool includes(const struct rcpt_assignment *assignment, uint32_t slot)
{
    for (size_t index = 0; index < assignment->count; index++)
        if (assignment->slots[index] == slot)
            return true;
    return false;
}

/* Begins again with the partitions that are being read again already and the one that is asked for.
 * An assignment of the group reads all its partitions in any case. */
static void widen(struct rcpt_assignment *assignment, const struct event *event)
{
    uint32_t *slots = rcpt_calloc(assignment->count + event->count + 1, sizeof(*slots));
    size_t count = assignment->count;
    memcpy(slots, assignment->slots, count * sizeof(*slots));
    for (size_t index = 0; index < event->count; index++)
        if (!includes(assignment, event->slots[index]))
            slots[count++] = event->slots[index];
    if (assignment->refresh && count > assignment->count)
        begin(assignment, slots, count, true, event);
    else
        free(slots);
}

/* Ends the assignment, also on a revocation: the group takes back an assignment that was not
 * answered yet, and its answers are void. */
static void end(struct rcpt_assignment *assignment, const struct event *event)
{
    (void)event;
    assignment->serial++;
    assignment->count = 0;
    enter(assignment, RCPT_ASSIGNMENT_IDLE);
}

static struct rcpt_assignment_new new_rows(const struct rcpt_assignment *assignment,
                                           const int64_t *lows)
{
    return (struct rcpt_assignment_new){.topic = assignment->new_topic,
                                        .from = assignment->new_from,
                                        .to = assignment->new_to,
                                        .lows = lows};
}

/* REFUSED lasts until the group assigns again: an operator has to change something first. */
static void refuse(struct rcpt_assignment *assignment, enum rcpt_assignment_refusal why,
                   uint32_t slot, const struct rcpt_error *error)
{
    enter(assignment, RCPT_ASSIGNMENT_REFUSED);
    assignment->ports.refuse(assignment->ports.context, why, slot, error);
}

/* Kafka starts only after every partition has its new epoch in the engine: a record that came
 * earlier would be dropped. */
static void give_positions(struct rcpt_assignment *assignment, const struct event *event)
{
    const struct rcpt_assignment_ports *ports = &assignment->ports;
    size_t count = assignment->count;
    struct rcpt_assignment_start *starts = rcpt_calloc(count + 1, sizeof(*starts));
    for (size_t index = 0; index < count; index++) {
        const struct found_rows *found = &assignment->found;
        uint32_t slot = assignment->slots[index];
        assignment_collect_rows(assignment, event->answer, slot);
        starts[index].slot = slot;
        starts[index].offset = rcpt_engine_assign(assignment->engine, slot, found->generation,
                                                  found->next, &found->anchor, event->now_ms);
    }
    for (size_t index = 0; index < count && assignment->refresh; index++)
        range_go_on(assignment, starts[index].slot, starts[index].offset);
    if (!assignment->refresh) {
        for (size_t index = 0; index < count; index++)
            range_begin(assignment, starts[index].slot);
        ports->assign(ports->context, starts, count);
        ports->note(ports->context, &(struct rcpt_assignment_note){.event = RCPT_NOTE_CONSUMING,
                                                                   .first = (int64_t)count});
    }
    free(starts);
    end(assignment, event);
    rcpt_engine_tick(assignment->engine, event->now_ms);
}

static void take_answer(struct rcpt_assignment *assignment, const struct event *event)
{
    struct rcpt_error error;
    enum pins_verdict verdict = assignment_judge_pins(assignment, event->answer, &error);
    if (verdict == PINS_OTHER) {
        refuse(assignment, RCPT_REFUSED_PINS, 0, &error);
        return;
    }
    if (verdict == PINS_LACKING) {
        struct rcpt_assignment_new rows = new_rows(assignment, NULL);
        enter(assignment, RCPT_ASSIGNMENT_QUERYING);
        assignment->ports.query_lows(assignment->ports.context, assignment->serial, &rows);
        return;
    }
    /* Rows are complete, or nothing is assigned: an engine that starts again where Kafka does not
     * would take the difference for a gap of the log. */
    uint32_t lacking = assignment_find_lacking(assignment, event->answer, &error);
    if (lacking != UINT32_MAX)
        refuse(assignment, RCPT_REFUSED_ROWS, lacking, &error);
    else
        give_positions(assignment, event);
}

/* A row is made at the low watermark, so an unknown one cannot be replaced by a guess: the whole
 * reading is repeated. */
static void take_lows(struct rcpt_assignment *assignment, const struct event *event)
{
    const struct rcpt_assignment_ports *ports = &assignment->ports;
    struct rcpt_assignment_new rows = new_rows(assignment, event->lows);
    for (int32_t partition = rows.from; partition < rows.to; partition++) {
        if (rows.lows[partition - rows.from] >= 0)
            continue;
        ports->note(ports->context, &(struct rcpt_assignment_note){.event = RCPT_NOTE_LOW_UNKNOWN,
                                                                   .topic = rows.topic,
                                                                   .partition = partition});
        read_later(assignment, event);
        return;
    }
    if (!ports->may_ask(ports->context)) {
        wait_until(assignment, event->now_ms);
        return;
    }
    enter(assignment, RCPT_ASSIGNMENT_INSERTING);
    ports->insert(ports->context, assignment->serial, &rows);
}

/* Another instance may have made the rows first, so they are read again: the rows of the database
 * count. */
static void take_inserted(struct rcpt_assignment *assignment, const struct event *event)
{
    assignment->ports.note(assignment->ports.context,
                           &(struct rcpt_assignment_note){.event = RCPT_NOTE_ROWS_MADE,
                                                          .topic = assignment->new_topic,
                                                          .first = assignment->new_from,
                                                          .last = assignment->new_to - 1});
    read_now(assignment, event);
}

/* An empty cell is a bug: answers reach only the state that asked (rcpt_assignment_awaits). */
static const handler handlers[RCPT_ASSIGNMENT_STATE__COUNT][EVENT__COUNT] = {
    [RCPT_ASSIGNMENT_IDLE] = {[EVENT_START] = start,
                              [EVENT_REFRESH] = refresh,
                              [EVENT_REVOKE] = end,
                              [EVENT_TICK] = ignore},
    [RCPT_ASSIGNMENT_WAITING] = {[EVENT_START] = start,
                                 [EVENT_REFRESH] = widen,
                                 [EVENT_REVOKE] = end,
                                 [EVENT_TICK] = read_when_due},
    [RCPT_ASSIGNMENT_READING] = {[EVENT_START] = start,
                                 [EVENT_REFRESH] = widen,
                                 [EVENT_REVOKE] = end,
                                 [EVENT_TICK] = ignore,
                                 [EVENT_READ] = take_answer,
                                 [EVENT_FAILED] = read_later},
    [RCPT_ASSIGNMENT_QUERYING] = {[EVENT_START] = start,
                                  [EVENT_REFRESH] = widen,
                                  [EVENT_REVOKE] = end,
                                  [EVENT_TICK] = ignore,
                                  [EVENT_LOWS] = take_lows,
                                  [EVENT_FAILED] = read_later},
    [RCPT_ASSIGNMENT_INSERTING] = {[EVENT_START] = start,
                                   [EVENT_REFRESH] = widen,
                                   [EVENT_REVOKE] = end,
                                   [EVENT_TICK] = ignore,
                                   [EVENT_INSERTED] = take_inserted,
                                   [EVENT_FAILED] = read_later},
    [RCPT_ASSIGNMENT_REFUSED] = {[EVENT_START] = start,
                                 [EVENT_REFRESH] = ignore,
                                 [EVENT_REVOKE] = end,
                                 [EVENT_TICK] = ignore},
};

static void dispatch(struct rcpt_assignment *assignment, enum event_kind kind,
                     const struct event *event)
{
    handler handle = handlers[assignment->state][kind];
    RCPT_ASSERT(handle != NULL);
    handle(assignment, event);
}

/* ---- from outside ---- */

void rcpt_assignment_start(struct rcpt_assignment *assignment, const uint32_t *slots, size_t count,
                           int64_t now_ms)
{
    range_forget_asked(assignment);
    dispatch(assignment, EVENT_START,
             &(struct event){.now_ms = now_ms, .slots = slots, .count = count});
}

void rcpt_assignment_revoke(struct rcpt_assignment *assignment, const uint32_t *slots, size_t count,
                            int64_t now_ms)
{
    range_forget_asked(assignment);
    dispatch(assignment, EVENT_REVOKE, &(struct event){.now_ms = now_ms});
    for (size_t index = 0; index < count; index++) {
        range_end(assignment, slots[index]);
        if (rcpt_engine_is_assigned(assignment->engine, slots[index]))
            rcpt_engine_revoke(assignment->engine, slots[index]);
    }
}

bool assignment_refresh(struct rcpt_assignment *assignment, uint32_t slot, int64_t now_ms)
{
    dispatch(assignment, EVENT_REFRESH,
             &(struct event){.now_ms = now_ms, .slots = &slot, .count = 1});
    return assignment->refresh && assignment->state != RCPT_ASSIGNMENT_REFUSED;
}

/* Reads the positions of everything assigned, since raising a generation may have moved them all.
 * The note is given once for each reading, not for each partition that asks for it. */
void rcpt_assignment_refresh(struct rcpt_assignment *assignment, uint32_t slot, int64_t now_ms)
{
    if (assignment->state == RCPT_ASSIGNMENT_IDLE)
        assignment->ports.note(
            assignment->ports.context,
            &(struct rcpt_assignment_note){
                .event = RCPT_NOTE_REFRESH,
                .topic = rcpt_engine_slot_topic(assignment->engine, slot),
                .partition = rcpt_engine_slot_partition(assignment->engine, slot)});
    uint32_t known = rcpt_engine_slot_count(assignment->engine);
    uint32_t *slots = rcpt_calloc(known + 1, sizeof(*slots));
    size_t count = 0;
    for (uint32_t each = 0; each < known; each++)
        if (rcpt_engine_is_assigned(assignment->engine, each))
            slots[count++] = each;
    dispatch(assignment, EVENT_REFRESH,
             &(struct event){.now_ms = now_ms, .slots = slots, .count = count});
    free(slots);
}

void rcpt_assignment_tick(struct rcpt_assignment *assignment, int64_t now_ms)
{
    dispatch(assignment, EVENT_TICK, &(struct event){.now_ms = now_ms});
    range_tick(assignment, now_ms);
}

/* False: the answer is to an assignment that has ended since, or the process is about to end. */
bool rcpt_assignment_awaits(const struct rcpt_assignment *assignment, uint32_t serial)
{
    return serial == assignment->serial && !assignment->engine->stopped;
}

void rcpt_assignment_on_read(struct rcpt_assignment *assignment, uint32_t serial,
                             const struct rcpt_assignment_answer *answer, int64_t now_ms)
{
    if (rcpt_assignment_awaits(assignment, serial))
        dispatch(assignment, EVENT_READ, &(struct event){.now_ms = now_ms, .answer = answer});
}

void rcpt_assignment_on_lows(struct rcpt_assignment *assignment, uint32_t serial,
                             const int64_t *lows, int64_t now_ms)
{
    if (rcpt_assignment_awaits(assignment, serial))
        dispatch(assignment, EVENT_LOWS, &(struct event){.now_ms = now_ms, .lows = lows});
}

void rcpt_assignment_on_inserted(struct rcpt_assignment *assignment, uint32_t serial,
                                 int64_t now_ms)
{
    if (rcpt_assignment_awaits(assignment, serial))
        dispatch(assignment, EVENT_INSERTED, &(struct event){.now_ms = now_ms});
}

bool rcpt_assignment_on_failed(struct rcpt_assignment *assignment, uint32_t serial, int64_t now_ms)
{
    if (!rcpt_assignment_awaits(assignment, serial))
        return false;
    dispatch(assignment, EVENT_FAILED, &(struct event){.now_ms = now_ms});
    return true;
}

enum rcpt_assignment_state rcpt_assignment_state(const struct rcpt_assignment *assignment)
{
    return assignment->state;
}

/* A reading of consumed partitions leaves them consumed, so the instance stays ready. After a
 * refusal it is not ready, whatever was read. */
bool rcpt_assignment_is_unread(const struct rcpt_assignment *assignment)
{
    return assignment->state != RCPT_ASSIGNMENT_IDLE &&
           (assignment->state == RCPT_ASSIGNMENT_REFUSED || !assignment->refresh);
}

/* ---- life ---- */

struct rcpt_assignment *rcpt_assignment_new(const struct rcpt_assignment_settings *settings,
                                            const struct rcpt_assignment_ports *ports,
                                            struct rcpt_engine *engine)
{
    struct rcpt_assignment *assignment = rcpt_calloc(1, sizeof(*assignment));
    assignment->settings = *settings;
    assignment->ports = *ports;
    assignment->engine = engine;
    return assignment;
}

void rcpt_assignment_free(struct rcpt_assignment *assignment)
{
    if (assignment == NULL)
        return;
    for (size_t index = 0; index < assignment->topic_count; index++)
        free(assignment->topics[index].name);
    free(assignment->topics);
    free(assignment->cluster_id);
    free(assignment->slots);
    free(assignment->new_topic);
    free(assignment->ranges);
    free(assignment);
}

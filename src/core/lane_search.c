/* The search for an event that PostgreSQL refuses for its content (a CHECK constraint, a trigger).
 *
 * A lane whose batch was refused asks by probes: the events are sent in a transaction that is
 * rolled back on purpose, and PostgreSQL says whether it refuses them. A search is about the first
 * `records` records of the queue; their events are counted through. States: enum search_state.
 * Called by lane.c, and by lane_queue.c when records leave the queue.
 *
 *   CONFIRM  all events:               refused → BISECT, or found if there is only one
 *                                      passed  → IDLE: the refusal was not about them, or is over
 *   BISECT   the first half between    refused → `bad` comes down
 *            `good` and `bad`          passed  → `good` goes up
 *            `good` alone, last        refused → from the start: rows that the platform has made
 *                                                since may be refused as well
 *                                      passed  → ALONE
 *   ALONE    the one that was found    refused → found
 *                                      passed  → DOUBT, or found if the search before ended
 *                                                so with the same event
 *   DOUBT    nothing: the whole batch is tried again
 */
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

#include "receiptd/base/states.h"

static const unsigned successors[SEARCH_STATE__COUNT] = {
    [SEARCH_IDLE] = RCPT_TO(SEARCH_IDLE) | RCPT_TO(SEARCH_CONFIRM),
    [SEARCH_CONFIRM] = RCPT_TO(SEARCH_IDLE) | RCPT_TO(SEARCH_BISECT),
    [SEARCH_BISECT] = RCPT_TO(SEARCH_IDLE) | RCPT_TO(SEARCH_ALONE),
    [SEARCH_ALONE] = RCPT_TO(SEARCH_IDLE) | RCPT_TO(SEARCH_DOUBT),
    [SEARCH_DOUBT] = RCPT_TO(SEARCH_IDLE) | RCPT_TO(SEARCH_CONFIRM),
};

/* The one setter. A search may end at any time: a commit or a resync answers its question. */
static void enter(struct search *search, enum search_state state)
{
    RCPT_ASSERT_FOLLOWS(successors, search->state, state);
    search->state = state;
}

bool search_is_on(const struct search *search)
{
    return search->state != SEARCH_IDLE && search->state != SEARCH_DOUBT;
}

void search_fini(struct search *search)
{
    free(search->refusals);
}

void search_forget(struct search *search)
{
    enter(search, SEARCH_IDLE);
    search->refusal_count = 0;
    search->doubted = NULL;
}

/* `bad` = all events is only assumed here; CONFIRM asks PostgreSQL before anything is halved. */
void search_begin(struct search *search, uint32_t records, uint32_t events, const char *detail)
{
    enter(search, SEARCH_CONFIRM);
    search->records = records;
    search->good = 0;
    search->bad = events;
    memcpy(search->detail, detail, sizeof(search->detail));
}

/* Events are counted without those that are refused already, so a second culprit in the same
 * records is found by a second search. */
struct rcpt_batch_range search_ask(struct search *search)
{
    if (search->state == SEARCH_ALONE)
        return (struct rcpt_batch_range){search->bad - 1, search->bad};
    search->asked = search->state == SEARCH_CONFIRM
                        ? search->bad
                        : search->good + (search->bad - search->good) / 2;
    return (struct rcpt_batch_range){0, search->asked};
}

static struct refusal *add_refusal(struct search *search)
{
    if (search->refusal_count == search->refusal_capacity) {
        RCPT_GROW(search->refusals, search->refusal_capacity, 8);
    }
    return &search->refusals[search->refusal_count++];
}

/* The last of the first `bad` events. */
static struct rcpt_event *suspect_of(struct rcpt_engine *engine, struct lane *lane)
{
    const struct search *search = &lane->search;
    struct rcpt_event *event = rcpt_batch_find_event(lane_sources(engine, lane, search->records),
                                                     search->records, lane->index, search->bad - 1);
    RCPT_ASSERT(event != NULL);
    return event;
}

/* The cause is found: the first `bad` events are refused and the first `bad - 1` are not, so the
 * last of them is the cause. It becomes a dead letter of the next batch. */
static void refuse_culprit(struct rcpt_engine *engine, struct lane *lane)
{
    struct search *search = &lane->search;
    const struct rcpt_batch_source *sources = lane_sources(engine, lane, search->records);
    struct rcpt_event *event = suspect_of(engine, lane);
    event->refused = true;
    struct refusal *refusal = add_refusal(search);
    refusal->index = event->index;
    refusal->record = NULL;
    for (uint32_t index = 0; index < search->records && refusal->record == NULL; index++) {
        const struct rcpt_record *record = sources[index].record;
        if (event >= record->events && event < record->events + record->event_count)
            refusal->record = record;
    }
    memcpy(refusal->detail, search->detail, sizeof(refusal->detail));
    enter(search, SEARCH_IDLE);
}

/* A refusal of `good` events that had passed before means that the platform's rows have changed:
 * the search starts again from zero within the same bounds. */
void search_on_refused(struct rcpt_engine *engine, struct lane *lane, const char *detail)
{
    struct search *search = &lane->search;
    memcpy(search->detail, detail, sizeof(search->detail));
    if (search->state == SEARCH_ALONE) {
        refuse_culprit(engine, lane);
        return;
    }
    if (search->state == SEARCH_CONFIRM)
        enter(search, SEARCH_BISECT);
    else if (search->asked == search->good)
        search->good = 0;
    search->bad = search->asked;
    if (search->bad == 1)
        refuse_culprit(engine, lane);
}

bool search_on_passed(struct rcpt_engine *engine, struct lane *lane)
{
    struct search *search = &lane->search;
    if (search->state == SEARCH_CONFIRM) {
        enter(search, SEARCH_IDLE);
        return false;
    }
    if (search->state == SEARCH_BISECT) {
        if (search->asked == search->good)
            enter(search, SEARCH_ALONE);
        search->good = search->asked;
        return true;
    }
    /* The suspect passes alone, so the whole batch is tried again. If the next search finds the
     * same one, it is refused only together with other events of its message, which pass without
     * it: it becomes a dead letter all the same. If it finds another one, messages that were
     * refused have been deleted meanwhile. */
    const struct rcpt_event *suspect = suspect_of(engine, lane);
    if (search->doubted == suspect) {
        refuse_culprit(engine, lane);
        return true;
    }
    search->doubted = suspect;
    enter(search, SEARCH_DOUBT);
    return false;
}

/* Takes the marks off the events of these records: the next batch holds all of them again. */
void search_doubt_database(struct lane *lane)
{
    struct search *search = &lane->search;
    bool marked = search_is_on(search) || search->refusal_count > 0;
    for (uint32_t index = 0; marked && index < search->records && index < lane->count; index++) {
        struct rcpt_record *record = lane_record(lane, index);
        for (uint32_t event = record->lane_events[lane->index];
             event < record->lane_events[lane->index + 1]; event++)
            record->events[event].refused = false;
    }
    search_forget(search);
}

/* The batch is folded from events, which only carry the mark; the text is kept here. */
void search_name_refusals(const struct search *search, struct rcpt_batch *batch)
{
    for (uint32_t letter = 0; letter < batch->letter_count; letter++) {
        if (batch->letters[letter].reason != RCPT_REJECT_DATABASE)
            continue;
        for (uint32_t index = 0; index < search->refusal_count; index++) {
            const struct refusal *refusal = &search->refusals[index];
            if (refusal->record == batch->letters[letter].record &&
                (int32_t)refusal->index == batch->letters[letter].index)
                batch->letters[letter].detail = refusal->detail;
        }
    }
}

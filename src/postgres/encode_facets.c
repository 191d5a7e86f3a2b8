/* What the rules of sql/lane/rules read of a batch. Gateway and reason of its receipts are numbered
 * together, since few receipts differ in them. Messages whose receipts name the same are alike: the
 * statement reads the receipts of the first of them, and counts them as often as there are such
 * messages. And which messages' receipts are recognised by the row, and on which
 * days messages were inserted. Called by encode_batch.c.
 */
#include <string.h>

#include "encode_batch.h"

#define NUMBERS ((size_t)RCPT_RECORD_MAX_GATEWAYS)
#define MOST    (NUMBERS * NUMBERS)

/* ---- messages that are alike ----
 *
 * What the statement counts by a message's own row (campaign, statuses, dimensions) is not known here, so
 * it groups by that itself, and by the number of the first message that is alike. Times differ
 * from receipt to receipt; their minutes do not.
 */

#define MINUTE_US INT64_C(60000000)

/* What receipts of messages that are alike share, by the receipt's number in the batch. */
typedef int64_t (*read_mark)(const void *context, const struct rcpt_batch *batch, uint32_t event);

struct alike {
    const struct rcpt_batch *batch;
    read_mark mark;
    const void *context;
    uint32_t *buckets; /* open addressing over messages, 1-based; 0 is free */
    uint32_t mask;
};

/* Also of a time before 1970 the minute in which it is. */
static int64_t minute_of(const void *context, const struct rcpt_batch *batch, uint32_t event)
{
    int64_t at_us = batch->events[event].event->at_us;
    (void)context;
    return at_us / MINUTE_US - (at_us % MINUTE_US < 0);
}

static int64_t facet_of(const void *context, const struct rcpt_batch *batch, uint32_t event)
{
    const struct rcpt_encode_facets *facets = context;
    (void)batch;
    return facets->of_events[event];
}

/* Of what are_alike() compares. */
static uint64_t hash_message(const struct alike *alike, uint32_t message)
{
    const struct rcpt_batch *batch = alike->batch;
    uint64_t hash = 0;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        uint64_t mark = (uint64_t)alike->mark(alike->context, batch, at);
        uint64_t named = (uint64_t)batch->events[at].code << 32 | batch->events[at].event->flags;
        hash = (hash ^ mark) * UINT64_C(0x9e3779b97f4a7c15);
        hash = (hash ^ hash >> 32 ^ named) * UINT64_C(0xff51afd7ed558ccd);
    }
    return hash ^ hash >> 32;
}

/* In the order in which they came: another order is another message, which costs time alone. */
static bool are_alike(const struct alike *alike, uint32_t left, uint32_t right)
{
    const struct rcpt_batch *batch = alike->batch;
    uint32_t first = batch->messages[left].first_event, other = batch->messages[right].first_event;
    uint32_t size = rcpt_batch_end(batch, left) - first;
    if (rcpt_batch_end(batch, right) - other != size)
        return false;
    for (uint32_t at = 0; at < size; at++) {
        const struct rcpt_batch_event *a = &batch->events[first + at];
        const struct rcpt_batch_event *b = &batch->events[other + at];
        if (a->code != b->code || a->event->flags != b->event->flags ||
            alike->mark(alike->context, batch, first + at) !=
                alike->mark(alike->context, batch, other + at))
            return false;
    }
    return true;
}

/* Number of the first message that is alike, 1-based; the message itself where none is yet. */
static uint32_t find_alike(struct alike *alike, uint32_t message)
{
    uint32_t bucket = (uint32_t)hash_message(alike, message) & alike->mask;
    for (; alike->buckets[bucket] != 0; bucket = (bucket + 1) & alike->mask)
        if (are_alike(alike, alike->buckets[bucket] - 1, message))
            return alike->buckets[bucket];
    alike->buckets[bucket] = message + 1;
    return message + 1;
}

/* Of each message, in their order. At most half of the buckets are taken, so a search ends soon. */
static int32_t *find_all(const struct rcpt_batch *batch, read_mark mark, const void *context,
                         struct rcpt_arena *arena)
{
    struct alike alike = {.batch = batch, .mark = mark, .context = context, .mask = 63};
    int32_t *found = rcpt_arena_alloc(arena, batch->message_count * sizeof(*found));
    while (alike.mask < batch->message_count * 2)
        alike.mask = alike.mask * 2 + 1;
    alike.buckets = rcpt_arena_alloc(arena, ((size_t)alike.mask + 1) * sizeof(*alike.buckets));
    memset(alike.buckets, 0, ((size_t)alike.mask + 1) * sizeof(*alike.buckets));
    for (uint32_t message = 0; message < batch->message_count; message++)
        found[message] = (int32_t)find_alike(&alike, message);
    return found;
}

static void mark_reasons(const struct rcpt_batch *batch, int32_t *found)
{
    for (uint32_t message = 0; message < batch->message_count; message++) {
        bool has_reason = false;
        for (uint32_t at = batch->messages[message].first_event;
             at < rcpt_batch_end(batch, message); at++)
            has_reason |= batch->events[at].event->reason != 0;
        found[message] = has_reason ? -found[message] : found[message];
    }
}

/* ---- facets ---- */

/* Each combination gets the number of its first appearance, found by a table of all there can be. */
static struct rcpt_encode_facets *number_facets(const struct rcpt_batch *batch,
                                                struct rcpt_arena *arena)
{
    struct rcpt_encode_facets *facets = rcpt_arena_alloc(arena, sizeof(*facets));
    int32_t *numbers = rcpt_arena_alloc(arena, MOST * sizeof(*numbers));
    size_t most = batch->event_count < MOST ? batch->event_count : MOST;
    memset(numbers, 0, MOST * sizeof(*numbers));
    facets->of_events = rcpt_arena_alloc(arena, batch->event_count * sizeof(int32_t));
    facets->first = rcpt_arena_alloc(arena, most * sizeof(*facets->first));
    facets->count = 0;
    for (uint32_t index = 0; index < batch->event_count; index++) {
        const struct rcpt_event *event = batch->events[index].event;
        int32_t *number = &numbers[event->gateway * NUMBERS + event->reason];
        if (*number == 0) {
            facets->first[facets->count++] = event;
            *number = (int32_t)facets->count;
        }
        facets->of_events[index] = *number;
    }
    return facets;
}

const struct rcpt_encode_facets *rcpt_encode_facets(const struct rcpt_batch *batch,
                                                    struct rcpt_arena *arena)
{
    struct rcpt_encode_facets *facets = number_facets(batch, arena);
    int32_t *alike = find_all(batch, facet_of, facets, arena);
    mark_reasons(batch, alike);
    facets->alike_facets = alike;
    facets->alike_minutes = find_all(batch, minute_of, NULL, arena);
    return facets;
}

/* ---- echoes ---- */

/* The lowest status that the message's receipts name, if each of them names another one and no flag:
 * where the row's status is below it, none of them can have come before, and the row takes their
 * keys. Else -1: each is looked up. */
int16_t rcpt_encode_lowest_status(const struct rcpt_batch *batch, uint32_t message)
{
    uint32_t first = batch->messages[message].first_event;
    uint32_t end = rcpt_batch_end(batch, message);
    int16_t lowest = INT16_MAX;
    if (end - first > RCPT_LADDER_MAX_STATUSES)
        return -1;
    for (uint32_t at = first; at < end; at++) {
        int16_t code = batch->events[at].code;
        if (code >= RCPT_LADDER_FIRST_FLAG_CODE || batch->events[at].event->flags != 0)
            return -1;
        for (uint32_t before = first; before < at; before++)
            if (batch->events[before].code == code)
                return -1;
        lowest = code < lowest ? code : lowest;
    }
    return lowest;
}

/* As int8send() writes them. */
void rcpt_encode_keys(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch, bool wanted)
{
    uint32_t count = wanted ? batch->event_count : 0;
    uint8_t *place = rcpt_pg_add_bytea(encoder, (size_t)count * sizeof(uint64_t));
    for (uint32_t index = 0; index < count; index++) {
        const struct rcpt_batch_event *event = &batch->events[index];
        uint64_t key = __builtin_bswap64(rcpt_record_event_key(event->record, event->event));
        memcpy(place + index * sizeof(key), &key, sizeof(key));
    }
}

/* ---- days ---- */

/* NULL compares with nothing, so PostgreSQL prunes all partitions for such a message. */
void rcpt_encode_days(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_begin_int4_array(encoder, batch->message_count);
    for (uint32_t index = 0; index < batch->message_count; index++) {
        if (batch->messages[index].day == 0)
            rcpt_pg_put_null(encoder);
        else
            rcpt_pg_put_int4(encoder, batch->messages[index].day);
    }
}

/* What messages of a batch have in common, so that the statement reads it once for many of them. What it
 * counts by a message's own row (campaign, statuses before and after) is not known here: it groups by
 * that and by the numbers that this gives.
 *
 * - A signature: which statuses and flags the receipts of a message name, how often each; where the series
 *   is counted, receipt by receipt and in which minutes. Times differ; their minutes hardly do.
 * - A kind: signature and gateway as figures have them (the batch's own signatures); where rules read
 *   facets, receipt by receipt with those.
 *
 * Called by encode_batch.c.
 */
#include <string.h>

#include "encode_batch.h"

#define MINUTE_US INT64_C(60000000)

/* ---- items that are alike ---- */

/* Of messages or of the batch's signatures, by their number. */
struct alike {
    const struct rcpt_batch *batch;
    const struct rcpt_encode_facets *facets;
    uint64_t (*hash)(const struct alike *alike, uint32_t item);
    bool (*same)(const struct alike *alike, uint32_t left, uint32_t right);
    /* What receipts of messages that are alike share beside status and flags, by the receipt's
     * number in the batch. */
    int64_t (*mark)(const struct alike *alike, uint32_t event);
};

/* Also of a time before 1970 the minute in which it is. */
static int64_t minute_at(int64_t at_us)
{
    return at_us / MINUTE_US - (at_us % MINUTE_US < 0);
}

static int64_t minute_of(const struct alike *alike, uint32_t event)
{
    return minute_at(alike->batch->events[event].event->at_us);
}

static int64_t facet_of(const struct alike *alike, uint32_t event)
{
    return alike->facets->of_events[event];
}

/* Both halves of a number decide about all bits: codes and minutes differ in few of them. */
static uint64_t mix(uint64_t hash, uint64_t first, uint64_t second)
{
    hash = (hash ^ first) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ second) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

static uint64_t hash_message(const struct alike *alike, uint32_t message)
{
    const struct rcpt_batch *batch = alike->batch;
    uint64_t hash = 0;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++)
        hash = mix(hash, (uint64_t)alike->mark(alike, at),
                   (uint64_t)batch->events[at].code << 32 | batch->events[at].event->flags);
    return hash;
}

/* In the order in which they came: another order is another message, which costs time alone. */
static bool same_messages(const struct alike *alike, uint32_t left, uint32_t right)
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
            alike->mark(alike, first + at) != alike->mark(alike, other + at))
            return false;
    }
    return true;
}

static uint64_t hash_signature(const struct alike *alike, uint32_t item)
{
    const struct rcpt_batch *batch = alike->batch;
    const struct rcpt_batch_signature *signature = &batch->signatures[item];
    uint64_t hash = 0;
    for (uint32_t at = signature->first; at < signature->first + signature->size; at++)
        hash =
            mix(hash, (uint64_t)batch->signature_codes[at], (uint64_t)batch->signature_counts[at]);
    return hash;
}

/* Whatever their gateways. */
static bool same_signatures(const struct alike *alike, uint32_t left, uint32_t right)
{
    const struct rcpt_batch *batch = alike->batch;
    const struct rcpt_batch_signature *a = &batch->signatures[left], *b = &batch->signatures[right];
    return a->size == b->size &&
           memcmp(batch->signature_codes + a->first, batch->signature_codes + b->first,
                  a->size * sizeof(*batch->signature_codes)) == 0 &&
           memcmp(batch->signature_counts + a->first, batch->signature_counts + b->first,
                  a->size * sizeof(*batch->signature_counts)) == 0;
}

/* Items in groups, both numbered from 1 on, and the first item of each group. */
struct grouping {
    int32_t *of_items;
    uint32_t *first; /* 0-based */
    uint32_t count;
};

/* Open addressing over groups; 0 is free. At most half of the buckets are taken, so a search ends
 * soon. */
static struct grouping group(const struct alike *alike, uint32_t count, struct rcpt_arena *arena)
{
    uint32_t mask = 63;
    struct grouping made = {.of_items = rcpt_arena_alloc(arena, count * sizeof(int32_t)),
                            .first = rcpt_arena_alloc(arena, count * sizeof(uint32_t))};
    while (mask < count * 2)
        mask = mask * 2 + 1;
    uint32_t *buckets = rcpt_arena_alloc(arena, ((size_t)mask + 1) * sizeof(*buckets));
    memset(buckets, 0, ((size_t)mask + 1) * sizeof(*buckets));
    for (uint32_t item = 0; item < count; item++) {
        uint32_t bucket = (uint32_t)alike->hash(alike, item) & mask;
        while (buckets[bucket] != 0 && !alike->same(alike, made.first[buckets[bucket] - 1], item))
            bucket = (bucket + 1) & mask;
        if (buckets[bucket] == 0) {
            made.first[made.count++] = item;
            buckets[bucket] = made.count;
        }
        made.of_items[item] = (int32_t)buckets[bucket];
    }
    return made;
}

static struct grouping group_messages(const struct rcpt_batch *batch,
                                      const struct rcpt_encode_facets *facets,
                                      int64_t (*mark)(const struct alike *alike, uint32_t event),
                                      struct rcpt_arena *arena)
{
    const struct alike alike = {.batch = batch,
                                .facets = facets,
                                .hash = hash_message,
                                .same = same_messages,
                                .mark = mark};
    return group(&alike, batch->message_count, arena);
}

/* ---- signatures ---- */

static void allocate_entries(struct rcpt_encode_groups *groups, uint32_t count, size_t entries,
                             struct rcpt_arena *arena)
{
    groups->count = count;
    groups->entries = rcpt_arena_alloc(arena, ((size_t)count + 1) * sizeof(*groups->entries));
    groups->codes = rcpt_arena_alloc(arena, entries * sizeof(*groups->codes));
    groups->counts = rcpt_arena_alloc(arena, entries * sizeof(*groups->counts));
}

/* The batch has a signature for each gateway; here those with the same statuses and counts are one.
 * A batch has few of them, so messages are not compared. */
static void take_signatures(struct rcpt_encode_groups *groups, const struct rcpt_batch *batch,
                            struct rcpt_arena *arena)
{
    const struct alike alike = {.batch = batch, .hash = hash_signature, .same = same_signatures};
    struct grouping made = group(&alike, batch->signature_count, arena);
    uint32_t used = 0;
    allocate_entries(groups, made.count, batch->signature_code_count, arena);
    for (uint32_t number = 0; number < made.count; number++) {
        const struct rcpt_batch_signature *signature = &batch->signatures[made.first[number]];
        groups->entries[number] = (int32_t)used + 1;
        for (uint32_t at = signature->first; at < signature->first + signature->size; at++) {
            groups->codes[used] = batch->signature_codes[at];
            groups->counts[used++] = batch->signature_counts[at];
        }
    }
    groups->entries[made.count] = (int32_t)used + 1;
    groups->signatures = rcpt_arena_alloc(arena, batch->message_count * sizeof(int32_t));
    for (uint32_t message = 0; message < batch->message_count; message++)
        groups->signatures[message] = made.of_items[batch->messages[message].signature];
}

/* As many as add_entries() adds for the first message of each signature. */
static size_t count_entries(const struct rcpt_batch *batch, const struct grouping *made)
{
    size_t count = 0;
    for (uint32_t number = 0; number < made->count; number++)
        for (uint32_t at = batch->messages[made->first[number]].first_event;
             at < rcpt_batch_end(batch, made->first[number]); at++)
            count += 1 + (size_t)__builtin_popcount(batch->events[at].event->flags);
    return count;
}

/* A receipt has an entry for its status and one for each flag beside it, all in its minute. */
static uint32_t add_entries(struct rcpt_encode_groups *groups, const struct rcpt_batch_event *event,
                            uint32_t used)
{
    int64_t minute = minute_at(event->event->at_us);
    groups->codes[used] = event->code;
    groups->counts[used] = 1;
    groups->minutes[used++] = minute;
    for (uint32_t flags = event->event->flags; flags != 0; flags &= flags - 1) {
        groups->codes[used] = (int16_t)(RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(flags));
        groups->counts[used] = 1;
        groups->minutes[used++] = minute;
    }
    return used;
}

/* Also the minute of a change follows from what the receipts name and their minutes. */
static void take_minutes(struct rcpt_encode_groups *groups, const struct rcpt_batch *batch,
                         struct rcpt_arena *arena)
{
    struct grouping made = group_messages(batch, NULL, minute_of, arena);
    size_t entries = count_entries(batch, &made);
    uint32_t used = 0;
    allocate_entries(groups, made.count, entries, arena);
    groups->minutes = rcpt_arena_alloc(arena, entries * sizeof(*groups->minutes));
    groups->changes = rcpt_arena_alloc(arena, made.count * sizeof(*groups->changes));
    for (uint32_t number = 0; number < made.count; number++) {
        uint32_t message = made.first[number];
        groups->entries[number] = (int32_t)used + 1;
        groups->changes[number] = minute_at(batch->messages[message].at_us);
        for (uint32_t at = batch->messages[message].first_event;
             at < rcpt_batch_end(batch, message); at++)
            used = add_entries(groups, &batch->events[at], used);
    }
    groups->entries[made.count] = (int32_t)used + 1;
    groups->signatures = made.of_items;
}

/* ---- kinds ---- */

static bool has_reason(const struct rcpt_batch *batch, uint32_t message)
{
    bool found = false;
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++)
        found |= batch->events[at].event->reason != 0;
    return found;
}

/* Messages with the same receipts and facets are of one kind. Its first message stands for it: the
 * statement reads the receipts of that one (sql/lane/apply/45_alike.sql). */
static void take_facets(struct rcpt_encode_groups *groups, const struct rcpt_batch *batch,
                        const struct rcpt_encode_facets *facets, struct rcpt_arena *arena)
{
    struct grouping made = group_messages(batch, facets, facet_of, arena);
    groups->kinds = made.of_items;
    groups->kind_count = made.count;
    groups->figures = rcpt_arena_alloc(arena, made.count * sizeof(int32_t));
    groups->examples = rcpt_arena_alloc(arena, made.count * sizeof(int32_t));
    for (uint32_t number = 0; number < made.count; number++) {
        uint32_t message = made.first[number];
        int32_t example = (int32_t)message + 1;
        groups->figures[number] = batch->messages[message].signature + 1;
        groups->examples[number] = has_reason(batch, message) ? -example : example;
    }
}

/* Without facets, a kind is what figures are counted by. */
static void take_kinds(struct rcpt_encode_groups *groups, const struct rcpt_batch *batch,
                       struct rcpt_arena *arena)
{
    groups->kinds = rcpt_arena_alloc(arena, batch->message_count * sizeof(int32_t));
    for (uint32_t message = 0; message < batch->message_count; message++)
        groups->kinds[message] = batch->messages[message].signature + 1;
}

const struct rcpt_encode_groups *rcpt_encode_groups(const struct rcpt_batch *batch,
                                                    const struct rcpt_lane_rules *rules,
                                                    const struct rcpt_encode_facets *facets,
                                                    struct rcpt_arena *arena)
{
    struct rcpt_encode_groups *groups = rcpt_arena_alloc(arena, sizeof(*groups));
    *groups = (struct rcpt_encode_groups){0};
    if (rules->minutes)
        take_minutes(groups, batch, arena);
    else
        take_signatures(groups, batch, arena);
    if (rules->facets)
        take_facets(groups, batch, facets, arena);
    else
        take_kinds(groups, batch, arena);
    return groups;
}

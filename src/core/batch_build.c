/* Folds the events of one lane into a batch: one entry for each message, with its highest status,
 * its flags and the count of each status. Entries are sorted by id, the order in which PostgreSQL
 * locks rows. Called by lane.c and lane_search.c.
 */
#include "receiptd/core/batch_build.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/core/hash.h"
#include "receiptd/core/origin.h"

#define NONE                UINT32_MAX
#define SIGNATURE_MAX_CODES (RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS)

/* A message while it is being folded: its events form a chain in order of arrival. */
struct folding {
    const struct rcpt_event *first;
    uint64_t prefix; /* first eight bytes of the id, big-endian: decides most comparisons */
    uint64_t hash;
    uint32_t head, tail; /* into events */
};

struct rcpt_batch_builder {
    const struct rcpt_ladder *ladder;
    uint64_t seed, compared;
    uint32_t *buckets; /* open addressing over messages; NONE is free */
    uint32_t bucket_capacity;
    uint32_t *signature_buckets; /* likewise over signatures of several codes */
    uint32_t signature_capacity;
    struct rcpt_arena scratch; /* of one fold: the same memory for all lanes */
    /* Signature of one receipt of this entry, or -1. */
    int32_t single[RCPT_RECORD_MAX_GATEWAYS][SIGNATURE_MAX_CODES + 1];
};

struct rcpt_batch_builder *rcpt_batch_builder_new(const struct rcpt_ladder *ladder, uint64_t seed)
{
    struct rcpt_batch_builder *builder = rcpt_calloc(1, sizeof(*builder));
    builder->ladder = ladder;
    builder->seed = seed;
    rcpt_arena_init(&builder->scratch, RCPT_BATCH_CHUNK_BYTES);
    return builder;
}

void rcpt_batch_builder_free(struct rcpt_batch_builder *builder)
{
    if (builder == NULL)
        return;
    rcpt_arena_fini(&builder->scratch);
    free(builder->buckets);
    free(builder->signature_buckets);
    free(builder);
}

uint64_t rcpt_batch_builder_compared(const struct rcpt_batch_builder *builder)
{
    return builder->compared;
}

static void *allocate(struct rcpt_batch *batch, size_t count, size_t size)
{
    return rcpt_arena_alloc(&batch->arena, count * size);
}

/* At least twice the count, so that a search ends soon at a free bucket. */
static uint32_t power_above(uint32_t count)
{
    uint32_t power = 64;
    while (power < count * 2)
        power *= 2;
    return power;
}

/* At most half full. Buckets far larger than this batch needs are given back, since clearing them
 * costs more than a new allocation. */
static void clear_buckets(uint32_t **buckets, uint32_t *capacity, uint32_t count)
{
    uint32_t needed = power_above(count);
    if (*capacity < needed || *capacity > needed * 16) {
        free(*buckets);
        *buckets = rcpt_malloc(needed * sizeof(**buckets));
        *capacity = needed;
    }
    memset(*buckets, 0xff, *capacity * sizeof(**buckets));
}

/* A short id is filled with zeros, which sort first, as in the order of bytes. */
static uint64_t id_prefix(const char *id, size_t size)
{
    uint64_t prefix = 0;
    memcpy(&prefix, id, size < sizeof(prefix) ? size : sizeof(prefix));
    return __builtin_bswap64(prefix);
}

/* The order of PostgreSQL's COLLATE "C": bytes, then the shorter one first. */
static int compare_ids(const struct folding *left, const struct folding *right)
{
    if (left->prefix != right->prefix)
        return left->prefix < right->prefix ? -1 : 1;
    const struct rcpt_event *a = left->first, *b = right->first;
    size_t common = a->id_size < b->id_size ? a->id_size : b->id_size;
    int order = memcmp(a->id, b->id, common);
    return order != 0 ? order : (int)a->id_size - (int)b->id_size;
}

/* Bottom-up merge sort: no allocation outside the arena, n log n whatever the input. Returns the
 * sorted one of the two. */
static struct folding *sort_messages(struct folding *items, struct folding *scratch, uint32_t count)
{
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t start = 0; start < count; start += 2 * width) {
            uint32_t left = start, middle = start + width < count ? start + width : count;
            uint32_t end = start + 2 * width < count ? start + 2 * width : count, right = middle;
            for (uint32_t out = start; out < end; out++) {
                bool take_left = left < middle &&
                                 (right >= end || compare_ids(&items[left], &items[right]) <= 0);
                scratch[out] = take_left ? items[left++] : items[right++];
            }
        }
        struct folding *sorted = scratch;
        scratch = items;
        items = sorted;
    }
    return items;
}

static bool same_id(const struct rcpt_event *left, const struct rcpt_event *right)
{
    return left->id_size == right->id_size && memcmp(left->id, right->id, left->id_size) == 0;
}

/* Index of the event's message; a new one is added at the end. */
static uint32_t find_message(struct rcpt_batch_builder *builder, struct folding *messages,
                             uint32_t *count, const struct rcpt_event *event)
{
    uint32_t mask = builder->bucket_capacity - 1;
    /* The lane's hash is PostgreSQL's and public, so a sender could choose ids that collide. */
    uint64_t hash = rcpt_hash_text_extended(event->id, event->id_size, builder->seed);
    uint32_t bucket = (uint32_t)hash & mask;
    for (;; bucket = (bucket + 1) & mask) {
        uint32_t index = builder->buckets[bucket];
        if (index == NONE)
            break;
        builder->compared++;
        if (messages[index].hash == hash && same_id(messages[index].first, event))
            return index;
    }
    builder->buckets[bucket] = *count;
    struct folding *message = &messages[*count];
    message->first = event;
    message->hash = hash;
    message->prefix = id_prefix(event->id, event->id_size);
    message->head = message->tail = NONE;
    return (*count)++;
}

/* ---- signatures ---- */

/* A code and how often the receipts of one message named it. */
struct code_count {
    int16_t code;
    int32_t count;
};

/* Inserts into a short sorted list. Returns how many codes there are now. */
static uint32_t collect_code(struct code_count *codes, uint32_t used, int16_t code)
{
    uint32_t at = used;
    while (at > 0 && codes[at - 1].code > code)
        at--;
    if (at > 0 && codes[at - 1].code == code) {
        codes[at - 1].count++;
        return used;
    }
    memmove(&codes[at + 1], &codes[at], (used - at) * sizeof(*codes));
    codes[at] = (struct code_count){.code = code, .count = 1};
    return used + 1;
}

/* A receipt counts under its status and under every flag, open or click beside it. */
static uint32_t collect_codes(const struct rcpt_batch_event *events, uint32_t size,
                              struct code_count *codes)
{
    uint32_t used = 0;
    for (uint32_t index = 0; index < size; index++) {
        int16_t beside[RCPT_RECORD_MOST_BESIDE];
        uint32_t count = rcpt_event_beside(events[index].event, beside);
        used = collect_code(codes, used, events[index].code);
        for (uint32_t at = 0; at < count; at++)
            used = collect_code(codes, used, beside[at]);
    }
    return used;
}

/* Receipts of a message that come from several gateways count under one name for all of them. */
static uint8_t common_gateway(const struct rcpt_batch_event *events, uint32_t size)
{
    uint8_t gateway = events[0].event->gateway;
    for (uint32_t index = 1; index < size; index++) {
        if (events[index].event->gateway != gateway)
            return RCPT_RECORD_OTHER_GATEWAY;
    }
    return gateway;
}

/* There are never more signatures than events, nor more codes than receipts name: the
 * arrays have these sizes. */
static int32_t append_signature(struct rcpt_batch *batch, uint8_t gateway,
                                const struct code_count *codes, uint32_t size)
{
    struct rcpt_batch_signature *signature = &batch->signatures[batch->signature_count];
    signature->first = batch->signature_code_count;
    signature->size = size;
    signature->gateway = gateway;
    for (uint32_t index = 0; index < size; index++) {
        batch->signature_codes[batch->signature_code_count] = codes[index].code;
        batch->signature_counts[batch->signature_code_count] = codes[index].count;
        batch->signature_code_count++;
    }
    return (int32_t)batch->signature_count++;
}

static bool same_signature(const struct rcpt_batch *batch, uint32_t index, uint8_t gateway,
                           const struct code_count *codes, uint32_t size)
{
    const struct rcpt_batch_signature *signature = &batch->signatures[index];
    if (signature->size != size || signature->gateway != gateway)
        return false;
    for (uint32_t at = 0; at < size; at++) {
        if (batch->signature_codes[signature->first + at] != codes[at].code ||
            batch->signature_counts[signature->first + at] != codes[at].count)
            return false;
    }
    return true;
}

/* Messages with the same receipts share a signature, so the statement counts each combination once.
 * One receipt with a status alone, by far the most common case, needs no hash. */
static int32_t intern_signature(struct rcpt_batch_builder *builder, struct rcpt_batch *batch,
                                const struct rcpt_batch_event *events, uint32_t size)
{
    uint8_t gateway = common_gateway(events, size);
    if (size == 1 && rcpt_event_is_plain(events[0].event)) {
        int32_t *known = &builder->single[gateway][events[0].event->entry];
        if (*known < 0) {
            struct code_count one = {.code = events[0].code, .count = 1};
            *known = append_signature(batch, gateway, &one, 1);
        }
        return *known;
    }
    struct code_count codes[SIGNATURE_MAX_CODES + 1];
    uint32_t used = collect_codes(events, size, codes);
    uint64_t hash = gateway;
    for (uint32_t index = 0; index < used; index++)
        hash = (hash ^ (uint64_t)(codes[index].code * 65537 + codes[index].count)) *
               UINT64_C(0x9e3779b97f4a7c15);
    uint32_t mask = builder->signature_capacity - 1, bucket = (uint32_t)(hash >> 32) & mask;
    for (; builder->signature_buckets[bucket] != NONE; bucket = (bucket + 1) & mask) {
        if (same_signature(batch, builder->signature_buckets[bucket], gateway, codes, used))
            return (int32_t)builder->signature_buckets[bucket];
    }
    int32_t made = append_signature(batch, gateway, codes, used);
    builder->signature_buckets[bucket] = (uint32_t)made;
    return made;
}

/* ---- folding ---- */

struct counts {
    uint32_t events, letters;
    uint32_t beside; /* that events name beside their status */
};

/* Upper bounds for the arrays: refused events are counted as events, too. */
static struct counts count_content(const struct rcpt_batch_source *sources, uint32_t source_count,
                                   uint32_t lane)
{
    struct counts counts = {0};
    for (uint32_t index = 0; index < source_count; index++) {
        const struct rcpt_record *record = sources[index].record;
        for (uint32_t at = record->lane_events[lane]; at < record->lane_events[lane + 1]; at++) {
            counts.beside += (uint32_t)__builtin_popcount(record->events[at].flags) +
                             (uint32_t)__builtin_popcount(record->events[at].machines);
            counts.letters += record->events[at].refused;
        }
        counts.events += record->lane_events[lane + 1] - record->lane_events[lane];
        counts.letters += record->lane_rejects[lane + 1] - record->lane_rejects[lane];
    }
    return counts;
}

struct raw { /* one event before grouping */
    const struct rcpt_event *event;
    uint32_t source;
    uint32_t next; /* of the same message */
};

/* Chains the lane's events per message. Returns the number of messages; *raw_count the number of
 * events. */
static uint32_t chain_events(struct rcpt_batch_builder *builder, struct rcpt_batch *batch,
                             const struct rcpt_batch_source *sources, uint32_t source_count,
                             struct rcpt_batch_range range, struct raw *raws,
                             struct folding *messages, uint32_t *raw_count)
{
    uint32_t message_count = 0, seen = 0, used = 0;
    for (uint32_t source = 0; source < source_count; source++) {
        const struct rcpt_record *record = sources[source].record;
        for (uint32_t at = record->lane_events[batch->lane];
             at < record->lane_events[batch->lane + 1]; at++) {
            const struct rcpt_event *event = &record->events[at];
            if (event->refused) {
                rcpt_batch_add_refused(batch, &sources[source], event);
                continue;
            }
            seen++;
            if (seen <= range.first || seen > range.end)
                continue;
            struct folding *message =
                &messages[find_message(builder, messages, &message_count, event)];
            raws[used] = (struct raw){.event = event, .source = source, .next = NONE};
            if (message->head == NONE)
                message->head = used;
            else
                raws[message->tail].next = used;
            message->tail = used++;
        }
        rcpt_batch_add_rejects(builder->ladder, batch, &sources[source]);
    }
    *raw_count = used;
    return message_count;
}

/* The highest status among what the receipt names and what that implies. */
static int16_t carried_top(const struct rcpt_ladder *ladder, const struct rcpt_ladder_entry *entry,
                           const struct rcpt_event *event)
{
    int16_t top = entry->top, beside[RCPT_RECORD_MOST_BESIDE];
    uint32_t count = rcpt_event_beside(event, beside);
    for (uint32_t at = 0; at < count; at++) {
        int found = rcpt_ladder_find_code(ladder, beside[at], NULL, 0);
        RCPT_ASSERT(found >= 0); /* the decoder found it by its name */
        int16_t implied = rcpt_ladder_entry(ladder, (size_t)found)->top;
        top = implied > top ? implied : top;
    }
    return top;
}

/* Writes one message with its events; the winner's time is the smallest among the receipts of the
 * highest status. */
static void emit_message(struct rcpt_batch_builder *builder, struct rcpt_batch *batch,
                         const struct folding *folding, const struct raw *raws)
{
    struct rcpt_batch_message *message = &batch->messages[batch->message_count++];
    message->id = folding->first->id;
    message->id_size = folding->first->id_size;
    message->first_event = batch->event_count;
    message->mask = 0;
    message->top = -1;
    message->org = (struct rcpt_text){NULL, 0};
    message->whole_us = 0;
    for (uint32_t at = folding->head; at != NONE; at = raws[at].next) {
        const struct rcpt_event *event = raws[at].event;
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(builder->ladder, event->entry);
        int16_t top = carried_top(builder->ladder, entry, event);
        struct rcpt_batch_event *out = &batch->events[batch->event_count++];
        out->record = batch->records[raws[at].source];
        out->event = event;
        out->record_index = raws[at].source;
        out->code = entry->code;
        batch->has_flags |= event->flags != 0;
        message->mask |= entry->mask | event->flags;
        batch->has_held |= event->delivers_part;
        if (event->org_size > 0 || event->delivers_part)
            rcpt_origin_join_org(out->record, event, &message->org, &batch->arena);
        batch->has_orgs |= message->org.at != NULL;
        if (top > message->top || (top == message->top && event->at_us < message->at_us)) {
            message->top = top;
            message->at_us = event->at_us;
        }
    }
    message->signature = intern_signature(builder, batch, &batch->events[message->first_event],
                                          batch->event_count - message->first_event);
}

static void set_records(struct rcpt_batch *batch, const struct rcpt_batch_source *sources,
                        uint32_t source_count)
{
    batch->records = allocate(batch, source_count, sizeof(const struct rcpt_record *));
    batch->record_topics = allocate(batch, source_count, sizeof(*batch->record_topics));
    batch->record_partitions = allocate(batch, source_count, sizeof(*batch->record_partitions));
    batch->record_count = source_count;
    for (uint32_t index = 0; index < source_count; index++) {
        batch->records[index] = sources[index].record;
        batch->has_traceparents |= sources[index].record->traceparent[0] != '\0';
        batch->record_topics[index] = sources[index].topic;
        batch->record_partitions[index] = sources[index].partition;
    }
}

/* Everything is allocated at its largest possible size, so nothing grows while it is filled. */
void rcpt_batch_fold(struct rcpt_batch_builder *builder, struct rcpt_batch *batch,
                     const struct rcpt_batch_source *sources, uint32_t source_count,
                     struct rcpt_batch_range range)
{
    struct counts counts = count_content(sources, source_count, batch->lane);
    uint32_t most = counts.events;
    rcpt_arena_reset(&builder->scratch, RCPT_BATCH_KEEP_BYTES);
    struct raw *raws = rcpt_arena_alloc(&builder->scratch, most * sizeof(*raws));
    struct folding *messages = rcpt_arena_alloc(&builder->scratch, most * sizeof(*messages));
    struct folding *scratch = rcpt_arena_alloc(&builder->scratch, most * sizeof(*scratch));
    batch->letters = allocate(batch, counts.letters, sizeof(*batch->letters));
    batch->ranges = allocate(batch, counts.letters, sizeof(*batch->ranges));
    batch->events = allocate(batch, most, sizeof(*batch->events));
    batch->messages = allocate(batch, most, sizeof(*batch->messages));
    batch->signatures = allocate(batch, most, sizeof(*batch->signatures));
    size_t codes = (size_t)most + counts.beside;
    batch->signature_codes = allocate(batch, codes, sizeof(*batch->signature_codes));
    batch->signature_counts = allocate(batch, codes, sizeof(*batch->signature_counts));
    set_records(batch, sources, source_count);
    clear_buckets(&builder->buckets, &builder->bucket_capacity, most);
    clear_buckets(&builder->signature_buckets, &builder->signature_capacity, most);
    memset(builder->single, 0xff, sizeof(builder->single));

    uint32_t raw_count = 0;
    uint32_t message_count =
        chain_events(builder, batch, sources, source_count, range, raws, messages, &raw_count);
    const struct folding *sorted = sort_messages(messages, scratch, message_count);
    for (uint32_t index = 0; index < message_count; index++)
        emit_message(builder, batch, &sorted[index], raws);
    RCPT_ASSERT(batch->event_count == raw_count);
}

struct rcpt_event *rcpt_batch_find_event(const struct rcpt_batch_source *sources,
                                         uint32_t source_count, uint32_t lane, uint32_t event_index)
{
    for (uint32_t source = 0; source < source_count; source++) {
        struct rcpt_record *record = sources[source].record;
        for (uint32_t at = record->lane_events[lane]; at < record->lane_events[lane + 1]; at++) {
            if (!record->events[at].refused && event_index-- == 0)
                return &record->events[at];
        }
    }
    return NULL;
}

/* Decodes the bytes of a Kafka record. Checks its size, lets record_scan.c read it or else
 * record_parse.c, and puts events and rejects into one piece of memory, sorted by lane. Called by
 * src/receipts/consume.c for each record that the engine takes in.
 */
#include "receiptd/core/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/core/hash.h"
#include "receiptd/core/trace_context.h"
#include "record_internal.h"

/* Scratch memory up to this is kept from one record to the next; the rest is given back, since no
 * budget counts it. */
#define KEPT_EVENTS        2048u
#define KEPT_REJECTS       64u
#define KEPT_STRING_BYTES  (64u * 1024)
#define STRING_CHUNK_BYTES (8u * 1024)
#define LATEST_MS          INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

#define ONES_16 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
#define ONES_64 ONES_16, ONES_16, ONES_16, ONES_16

/* Lane tables of records with at most one thing, so that they need no memory: the table starts so
 * far before the step that the step lies at the thing's lane. */
static const uint32_t step_by_lane[2 * RCPT_RECORD_MAX_LANES + 1] = {
    [RCPT_RECORD_MAX_LANES + 1] = ONES_64, ONES_64, ONES_64, ONES_64};

/* Number 0 of a facet is "none", so the count starts at 1. */
struct rcpt_decoder *rcpt_decoder_new(const struct rcpt_ladder *ladder, uint32_t lanes)
{
    RCPT_ASSERT(lanes >= 1 && lanes <= RCPT_RECORD_MAX_LANES && (lanes & (lanes - 1)) == 0);
    struct rcpt_decoder *decoder = rcpt_calloc(1, sizeof(*decoder));
    decoder->ladder = ladder;
    decoder->lanes = lanes;
    for (size_t facet = 0; facet < RCPT_FACET__COUNT; facet++)
        decoder->facets[facet].count = 1;
    rcpt_machine_find_marks(ladder, &decoder->machine_marks);
    decoder->chunks = rcpt_calloc(lanes, sizeof(struct rcpt_record_chunk *));
    rcpt_arena_init(&decoder->strings, STRING_CHUNK_BYTES);
    return decoder;
}

void rcpt_decoder_free(struct rcpt_decoder *decoder)
{
    if (decoder == NULL)
        return;
    rcpt_arena_fini(&decoder->strings);
    for (uint32_t lane = 0; lane < decoder->lanes; lane++)
        rcpt_record_free_chunk(decoder->chunks[lane]);
    free(decoder->chunks);
    free(decoder->events);
    free(decoder->event_keys);
    free(decoder->rejects);
    free(decoder);
}

void rcpt_decoder_take_ranges(struct rcpt_decoder *decoder)
{
    decoder->takes_ranges = true;
}

void rcpt_decoder_set_machines(struct rcpt_decoder *decoder, const struct rcpt_machine_rules *rules)
{
    decoder->machine_rules = rules;
    rcpt_machine_find_marks(decoder->ladder, &decoder->machine_marks);
}

uint64_t rcpt_decoder_machine_events(const struct rcpt_decoder *decoder,
                                     enum rcpt_machine_kind kind, enum rcpt_machine_policy policy)
{
    return decoder->machine_events[kind][policy];
}

/* Refuses a value that cannot be read at all. Single events with flaws are refused in
 * record_parse.c. */
static void decode_value(struct rcpt_decoder *decoder)
{
    struct rcpt_reject *reject;
    size_t size = decoder->input.value_size;
    if (decoder->input.unreadable != NULL) {
        reject = rcpt_record_refuse(decoder, RCPT_REJECT_RECORD_TOO_LARGE);
        snprintf(reject->detail, sizeof(reject->detail), "%s", decoder->input.unreadable);
    } else if (size == 0) {
        reject = rcpt_record_refuse(decoder, RCPT_REJECT_EMPTY_RECORD);
        snprintf(reject->detail, sizeof(reject->detail), "the record has no value");
    } else if (size > RCPT_RECORD_MAX_BYTES) {
        reject = rcpt_record_refuse(decoder, RCPT_REJECT_RECORD_TOO_LARGE);
        snprintf(reject->detail, sizeof(reject->detail),
                 "the value has %zu bytes, at most %u are allowed", size, RCPT_RECORD_MAX_BYTES);
    } else if (decoder->input.form != NULL) {
        rcpt_record_parse_form(decoder, decoder->input.form);
    } else {
        rcpt_record_parse(decoder);
    }
}

/* Bytes of the value that the record copies: a record that is refused as a whole keeps only its
 * letter's bytes, so that an oversized one costs no memory. */
static size_t kept_bytes(const struct rcpt_decoder *decoder)
{
    bool refused =
        decoder->reject_count == 1 && decoder->rejects[0].index < 0 && decoder->input.form == NULL;
    return refused ? decoder->rejects[0].payload_size : decoder->input.value_size;
}

/* Memory of a record in the making. The same steps run twice: first to sum up, then to hand out. */
struct layout {
    char *base; /* NULL: only sum up */
    size_t used;
};

static void *place(struct layout *layout, size_t bytes, size_t alignment)
{
    size_t at = (layout->used + alignment - 1) & ~(alignment - 1);
    layout->used = at + bytes;
    return layout->base != NULL ? layout->base + at : NULL;
}

struct parts {
    struct rcpt_record *record;
    struct rcpt_event *events;
    uint64_t *keys; /* right behind the events, which are found by their place */
    uint32_t *lane_events;
    struct rcpt_reject *rejects;
    uint32_t *lane_rejects;
    char *value;
    char *key;
    char *traceparent;
    char *tracestate;
    char *ids; /* those that are not in the value, because they were escaped there */
};

/* With the NUL at its end; 0: there is none that could be passed on. */
static size_t traceparent_bytes(const struct rcpt_record_input *input)
{
    struct rcpt_trace_context context;
    return input->traceparent != NULL &&
                   rcpt_trace_parse(input->traceparent, input->traceparent_size, &context)
               ? RCPT_RECORD_TRACEPARENT_BYTES + 1
               : 0;
}

/* Likewise. A tracestate without a valid traceparent means nothing (W3C Trace Context). */
static size_t tracestate_bytes(const struct rcpt_record_input *input)
{
    return input->tracestate != NULL && traceparent_bytes(input) > 0 &&
                   rcpt_trace_is_state(input->tracestate, input->tracestate_size)
               ? input->tracestate_size + 1
               : 0;
}

static void place_parts(struct layout *layout, const struct rcpt_decoder *decoder, size_t id_bytes,
                        struct parts *parts)
{
    size_t table = (decoder->lanes + 1) * sizeof(uint32_t);
    parts->record = place(layout, sizeof(struct rcpt_record), _Alignof(struct rcpt_record));
    parts->events = place(layout, decoder->event_count * sizeof(struct rcpt_event),
                          _Alignof(struct rcpt_event));
    parts->keys = place(layout, decoder->keys ? decoder->event_count * sizeof(uint64_t) : 0, 1);
    parts->rejects = place(layout, decoder->reject_count * sizeof(struct rcpt_reject),
                           _Alignof(struct rcpt_reject));
    parts->lane_events = place(layout, decoder->event_count > 1 ? table : 0, sizeof(uint32_t));
    parts->lane_rejects = place(layout, decoder->reject_count > 1 ? table : 0, sizeof(uint32_t));
    parts->value = place(layout, kept_bytes(decoder) + decoder->rest_size, 1);
    parts->key = place(layout, decoder->input.key_size, 1);
    parts->traceparent = place(layout, traceparent_bytes(&decoder->input), 1);
    parts->tracestate = place(layout, tracestate_bytes(&decoder->input), 1);
    parts->ids = place(layout, id_bytes, 1);
}

/* Ids without escapes point into the value; the others are in decoder->strings. */
static bool is_in_value(const struct rcpt_decoder *decoder, const char *text)
{
    return (uintptr_t)text - (uintptr_t)decoder->input.value < decoder->input.value_size;
}

static size_t count_foreign_id_bytes(const struct rcpt_decoder *decoder)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < decoder->event_count; i++) {
        if (!is_in_value(decoder, decoder->events[i].id))
            bytes += decoder->events[i].id_size;
    }
    for (uint32_t i = 0; i < decoder->reject_count; i++) {
        const struct rcpt_range *range = &decoder->rejects[i].range;
        if (range->recipient_size > 0 && !is_in_value(decoder, range->recipient))
            bytes += range->recipient_size;
    }
    return bytes;
}

/* Into the record's value, or to *next, which moves on. Returns where it is. */
static const char *move_id(const struct rcpt_decoder *decoder, const struct parts *parts,
                           const char *id, size_t size, char **next)
{
    const char *value = decoder->input.value;
    if (is_in_value(decoder, id))
        return parts->value + (id - value);
    char *to = *next;
    RCPT_ASSERT(to != NULL); /* count_foreign_id_bytes() has counted it */
    memcpy(to, id, size);
    *next += size;
    return to;
}

/* The copy moves every id. */
static void copy_value(struct rcpt_decoder *decoder, struct parts *parts)
{
    size_t kept = kept_bytes(decoder);
    if (kept > 0)
        memcpy(parts->value, decoder->input.value, kept);
    if (decoder->rest_size > 0)
        memcpy(parts->value + kept, decoder->rest, decoder->rest_size);
    char *next = parts->ids;
    for (uint32_t i = 0; i < decoder->event_count; i++) {
        struct rcpt_event *event = &decoder->events[i];
        event->id = move_id(decoder, parts, event->id, event->id_size, &next);
    }
    for (uint32_t i = 0; i < decoder->reject_count; i++) {
        struct rcpt_range *range = &decoder->rejects[i].range;
        if (range->recipient_size > 0)
            range->recipient =
                move_id(decoder, parts, range->recipient, range->recipient_size, &next);
    }
}

/* The lane of a reject comes from its position, that of a range from its person. So any instance
 * that decodes the record again gives the reject to the same lane. */
static uint32_t lane_of_reject(const struct rcpt_decoder *decoder, const struct rcpt_reject *reject)
{
    const struct rcpt_record_input *input = &decoder->input;
    const struct rcpt_range *range = &reject->range;
    if (range->recipient_size > 0)
        return (uint32_t)rcpt_hash_text_extended(range->recipient, range->recipient_size, 0) &
               (decoder->lanes - 1);
    if (reject->hash != 0)
        return (uint32_t)reject->hash & (decoder->lanes - 1);
    uint64_t hash =
        rcpt_hash_position(input->topic, input->partition, input->offset, (uint32_t)reject->index);
    return (uint32_t)hash & (decoder->lanes - 1);
}

/* From "how many in lane l" at table[l + 1] to "where lane l begins" at table[l], and the same as
 * cursors. */
static void sum_up(uint32_t *table, uint32_t lanes, uint32_t *cursors)
{
    for (uint32_t lane = 0; lane < lanes; lane++) {
        cursors[lane] = table[lane];
        table[lane + 1] += table[lane];
    }
}

static const uint32_t *step_at(uint32_t lane)
{
    return step_by_lane + RCPT_RECORD_MAX_LANES - lane;
}

static void put_event(const struct rcpt_decoder *decoder, const struct parts *parts, uint32_t from,
                      uint32_t to)
{
    parts->events[to] = decoder->events[from];
    if (decoder->keys)
        parts->keys[to] = decoder->event_keys[from];
}

uint64_t rcpt_record_event_key(const struct rcpt_record *record, const struct rcpt_event *event)
{
    const uint64_t *keys = (const uint64_t *)(record->events + record->event_count);
    return record->has_keys ? keys[event - record->events] : 0;
}

/* Counting sorts: stable, so that the order of the record holds within a lane. Both return the lane
 * table. */
static const uint32_t *group_events(struct rcpt_decoder *decoder, struct parts *parts)
{
    uint32_t cursors[RCPT_RECORD_MAX_LANES];
    uint64_t mask = decoder->lanes - 1;
    if (decoder->event_count == 0)
        return step_by_lane;
    if (decoder->event_count == 1) {
        rcpt_record_count_gateway(decoder, &decoder->events[0]);
        put_event(decoder, parts, 0, 0);
        return step_at((uint32_t)(decoder->events[0].hash & mask));
    }
    memset(parts->lane_events, 0, (decoder->lanes + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < decoder->event_count; i++) {
        parts->lane_events[(decoder->events[i].hash & mask) + 1]++;
        rcpt_record_count_gateway(decoder, &decoder->events[i]);
    }
    sum_up(parts->lane_events, decoder->lanes, cursors);
    for (uint32_t i = 0; i < decoder->event_count; i++)
        put_event(decoder, parts, i, cursors[decoder->events[i].hash & mask]++);
    return parts->lane_events;
}

static const uint32_t *group_rejects(const struct rcpt_decoder *decoder, struct parts *parts)
{
    uint32_t cursors[RCPT_RECORD_MAX_LANES];
    if (decoder->reject_count == 0)
        return step_by_lane;
    if (decoder->reject_count == 1) {
        parts->rejects[0] = decoder->rejects[0];
        return step_at(lane_of_reject(decoder, &decoder->rejects[0]));
    }
    memset(parts->lane_rejects, 0, (decoder->lanes + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < decoder->reject_count; i++)
        parts->lane_rejects[lane_of_reject(decoder, &decoder->rejects[i]) + 1]++;
    sum_up(parts->lane_rejects, decoder->lanes, cursors);
    for (uint32_t i = 0; i < decoder->reject_count; i++) {
        uint32_t lane = lane_of_reject(decoder, &decoder->rejects[i]);
        parts->rejects[cursors[lane]++] = decoder->rejects[i];
    }
    return parts->lane_rejects;
}

/* `bytes` with the NUL at the end; 0: there is no such text. */
static const char *copy_text(char *to, const char *from, size_t bytes, const char *none)
{
    if (bytes == 0)
        return none;
    memcpy(to, from, bytes - 1);
    to[bytes - 1] = '\0';
    return to;
}

/* A record for one lane alone lies beside others of that lane. */
static void *allocate(struct rcpt_decoder *decoder, size_t bytes, struct rcpt_record_chunk **chunk)
{
    *chunk = NULL;
    if (decoder->event_count + decoder->reject_count > 1)
        return rcpt_malloc(bytes);
    uint32_t lane = decoder->event_count > 0
                        ? (uint32_t)decoder->events[0].hash & (decoder->lanes - 1)
                    : decoder->reject_count > 0 ? lane_of_reject(decoder, &decoder->rejects[0])
                                                : 0;
    return rcpt_record_allocate(decoder, lane, bytes, chunk);
}

/* Counts only once the record's events are certain: a scan may have been given up. */
static void count_marks(struct rcpt_decoder *decoder)
{
    for (int kind = 0; kind < RCPT_MACHINE_KIND__COUNT; kind++)
        for (int policy = 0; policy < RCPT_MACHINE_POLICY__COUNT; policy++)
            decoder->machine_events[kind][policy] += decoder->machines[kind][policy];
}

/* Allocates one piece of memory for the whole record, so that its size is known exactly. */
static struct rcpt_record *finish(struct rcpt_decoder *decoder)
{
    const struct rcpt_record_input *input = &decoder->input;
    size_t id_bytes = count_foreign_id_bytes(decoder);
    struct layout layout = {NULL, 0};
    struct parts parts;
    place_parts(&layout, decoder, id_bytes, &parts);
    size_t bytes = layout.used;
    struct rcpt_record_chunk *chunk;
    layout = (struct layout){allocate(decoder, bytes, &chunk), 0};
    place_parts(&layout, decoder, id_bytes, &parts);

    copy_value(decoder, &parts);
    count_marks(decoder);
    if (input->key_size > 0)
        memcpy(parts.key, input->key, input->key_size);
    *parts.record = (struct rcpt_record){
        .offset = input->offset,
        .timestamp_ms = decoder->default_at_us / 1000,
        .traceparent =
            copy_text(parts.traceparent, input->traceparent, traceparent_bytes(input), ""),
        .tracestate = copy_text(parts.tracestate, input->tracestate, tracestate_bytes(input), NULL),
        .value = parts.value,
        .value_size = (uint32_t)kept_bytes(decoder),
        .full_size = (uint32_t)input->value_size,
        .key = parts.key,
        .key_size = (uint32_t)input->key_size,
        .chunk = chunk,
        .unreadable = input->unreadable != NULL,
        .has_keys = decoder->keys,
        .is_formed = input->form != NULL,
        .crc = decoder->raw_crc,
        .memory_bytes = (uint32_t)bytes,
        .event_count = decoder->event_count,
        .reject_count = decoder->reject_count,
        .ignored_count = decoder->ignored_count,
        .events = parts.events,
        .lane_events = group_events(decoder, &parts),
        .rejects = parts.rejects,
        .lane_rejects = group_rejects(decoder, &parts),
    };
    return parts.record;
}

/* A decoder lives as long as the process: one large record must not keep its memory. */
static void shrink(struct rcpt_decoder *decoder)
{
    rcpt_record_forget(decoder);
    rcpt_arena_reset(&decoder->strings, KEPT_STRING_BYTES);
    if (decoder->event_capacity > KEPT_EVENTS) {
        decoder->event_capacity = KEPT_EVENTS;
        decoder->events = rcpt_realloc(decoder->events, KEPT_EVENTS * sizeof(*decoder->events));
        if (decoder->keys)
            decoder->event_keys =
                rcpt_realloc(decoder->event_keys, KEPT_EVENTS * sizeof(*decoder->event_keys));
    }
    if (decoder->reject_capacity > KEPT_REJECTS) {
        decoder->reject_capacity = KEPT_REJECTS;
        decoder->rejects = rcpt_realloc(decoder->rejects, KEPT_REJECTS * sizeof(*decoder->rejects));
    }
    free(decoder->rest);
    decoder->rest = NULL;
    decoder->rest_size = decoder->rest_capacity = 0;
    decoder->input = (struct rcpt_record_input){0};
}

/* A negative timestamp means that there is none. Microseconds and nanoseconds, which some clients
 * write, become the latest moment. */
int64_t rcpt_record_bound_ms(int64_t timestamp_ms)
{
    if (timestamp_ms < 0)
        return 0;
    return timestamp_ms < LATEST_MS ? timestamp_ms : LATEST_MS;
}

/* The record's time replaces a missing `at`. */
struct rcpt_record *rcpt_record_decode(struct rcpt_decoder *decoder,
                                       const struct rcpt_record_input *input)
{
    decoder->input = *input;
    if (input->value == NULL)
        decoder->input.value_size = 0;
    RCPT_ASSERT(decoder->input.value_size < INT32_MAX); /* Kafka's limit too */
    decoder->default_at_us = rcpt_record_bound_ms(input->timestamp_ms) * 1000;
    decoder->raw_crc = input->form == NULL ? 0
                                           : rcpt_hash_record(input->key, input->key_size,
                                                              input->value, input->value_size);

    decode_value(decoder);
    rcpt_record_gather_rests(decoder);
    struct rcpt_record *record = finish(decoder);
    shrink(decoder);
    return record;
}

/* A refused record keeps less of its value, but more than the hash covers. */
uint32_t rcpt_record_crc(const struct rcpt_record *record)
{
    if (record->is_formed)
        return record->crc;
    return rcpt_hash_record(record->key, record->key_size, record->value, record->full_size);
}

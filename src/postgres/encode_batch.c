/* The parameters of a lane's statements, written from a batch as binary arrays. statements.c calls
 * this for each batch that it sends.
 *
 * A statement knows its parameters by number only, so the order here is the order of $1, $2, … in
 * sql/lane. Those of apply stand in one table, which a unit test compares with the SQL.
 */
#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "core/ladder.h"
#include "encode_parameters.h"

#define TIMELINE_TEXT_BYTES 500u

/* PostgreSQL counts array elements and bytes from one, in int4. */
static int32_t one_based(uint64_t index)
{
    RCPT_ASSERT(index < INT32_MAX);
    return (int32_t)index + 1;
}

/* ---- positions ---- */

ELEMENTS(add_topics, text, batch->move_count, put_text(encoder, batch->moves[index].topic))
NUMBERS(add_partitions, int4, batch->move_count, batch->moves[index].partition)
ELEMENTS(add_expected, int8, batch->move_count,
         rcpt_pg_put_int8(encoder, batch->moves[index].expected))
ELEMENTS(add_next, int8, batch->move_count, rcpt_pg_put_int8(encoder, batch->moves[index].next))
ELEMENTS(add_generations, int8, batch->move_count,
         rcpt_pg_put_int8(encoder, batch->moves[index].generation))
ELEMENTS(add_anchor_offsets, int8, batch->move_count,
         rcpt_pg_put_int8(encoder, batch->moves[index].anchor_offset))
ELEMENTS(add_anchor_times, int8, batch->move_count,
         rcpt_pg_put_int8(encoder, batch->moves[index].anchor_timestamp_ms))
ELEMENTS(add_anchor_crcs, int8, batch->move_count,
         rcpt_pg_put_int8(encoder, (int64_t)batch->moves[index].anchor_crc))

static const add_parameter parked_parameters[] = {add_topics, add_partitions, add_lane};
static const add_parameter fence_parameters[] = {
    add_topics,      add_partitions,     add_lane,         add_expected,   add_next,
    add_generations, add_anchor_offsets, add_anchor_times, add_anchor_crcs};

/* One entry for each partition that the batch moves, in the order in which their rows are locked.
 */
void rcpt_encode_fence(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_encoder_reset(encoder);
    ADD_ALL(encoder, &(struct content){.batch = batch}, fence_parameters);
}

void rcpt_encode_parked(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        int64_t max_age_ms)
{
    rcpt_pg_encoder_reset(encoder);
    ADD_ALL(encoder, &(struct content){.batch = batch}, parked_parameters);
    rcpt_pg_add_int4(encoder, (int32_t)batch->wake_limit);
    if (batch->kind == RCPT_BATCH_EXPIRE && max_age_ms >= 0)
        rcpt_pg_add_int8(encoder, max_age_ms);
    if (batch->kind == RCPT_BATCH_DISCARD)
        rcpt_pg_add_text(encoder, batch->letter_count > 0 && batch->letters[0].detail != NULL
                                      ? batch->letters[0].detail
                                      : "refused when it was woken");
}

/* ---- messages and signatures ---- */

ELEMENTS(add_ids, text, batch->message_count,
         rcpt_pg_put_bytes(encoder, batch->messages[index].id, batch->messages[index].id_size))
NUMBERS(add_tops, int2, batch->message_count, batch->messages[index].top)
NUMBERS(add_masks, int4, batch->message_count, (int32_t)batch->messages[index].mask)
NUMBERS(add_times, timestamp, batch->message_count, batch->messages[index].at_us)

static size_t entry_count(const struct content *content)
{
    return (size_t)content->groups->entries[content->groups->count] - 1;
}

WHOLE(add_signatures,
      rcpt_pg_add_int4s(encoder, content->groups->signatures, content->batch->message_count))
/* An array of first places has one element more, the end of the last. */
WHOLE(add_first_codes,
      rcpt_pg_add_int4s(encoder, content->groups->entries, (size_t)content->groups->count + 1))
WHOLE(add_codes, rcpt_pg_add_int2s(encoder, content->groups->codes, entry_count(content)))
WHOLE(add_counts, rcpt_pg_add_int4s(encoder, content->groups->counts, entry_count(content)))
WHOLE(add_kinds, rcpt_pg_add_int4s(encoder, content->groups->kinds, content->batch->message_count))

/* ---- raw events ---- */

/* 0 while the raw events stay here. */
static uint32_t raw_events(const struct content *content)
{
    return content->form.raw ? content->batch->event_count : 0;
}

/* Rules read what each receipt names also without the other arrays of raw events. */
static uint32_t named_events(const struct content *content)
{
    return content->form.rules.receipts ? content->batch->event_count : raw_events(content);
}

NUMBERS(add_first_events, int4, (size_t)batch->message_count + 1,
        one_based(index < batch->message_count ? batch->messages[index].first_event
                                               : batch->event_count))
NUMBERS(add_event_codes, int2, named_events(content), batch->events[index].code)
NUMBERS(add_event_times, timestamp, named_events(content), batch->events[index].event->at_us)
/* Subscribers look up the traceparents of known messages, too. */
NUMBERS(add_event_records, int4, batch->has_traceparents ? batch->event_count : raw_events(content),
        one_based(batch->events[index].record_index))
NUMBERS(add_event_indexes, int4, raw_events(content), (int32_t)batch->events[index].event->index)
/* Most batches have no such flags: then the array is empty, which reads as NULL everywhere. */
NUMBERS(add_event_flags, int4, batch->has_flags ? named_events(content) : 0,
        (int32_t)batch->events[index].event->flags)

/* Payloads lie one behind the other in one bytea; this says where each begins. */
static void add_first_payload_bytes(struct rcpt_pg_encoder *encoder, const struct content *content)
{
    uint32_t count = raw_events(content);
    uint64_t used = 0;
    uint8_t *place = rcpt_pg_add_int4_array(encoder, content->form.raw ? (size_t)count + 1 : 0);
    for (uint32_t index = 0; index < count; index++) {
        place = rcpt_pg_write_int4(place, one_based(used));
        used += content->batch->events[index].event->payload_size;
    }
    if (content->form.raw)
        place = rcpt_pg_write_int4(place, one_based(used));
    rcpt_pg_end_array(encoder, place);
}

static void add_payloads(struct rcpt_pg_encoder *encoder, const struct content *content)
{
    const struct rcpt_batch_event *begin = content->batch->events;
    const struct rcpt_batch_event *end = begin + raw_events(content);
    size_t size = 0, texts = (size_t)raw_events(content) * RCPT_KEPT_TEXTS;
    for (const struct rcpt_batch_event *event = begin; event < end; event++)
        size += event->event->payload_size;
    for (size_t at = 0; at < texts; at++)
        size += content->kept[at].size;
    uint8_t *place = rcpt_pg_add_bytea(encoder, size);
    for (const struct rcpt_batch_event *event = begin; event < end; event++) {
        memcpy(place, event->record->value + event->event->payload, event->event->payload_size);
        place += event->event->payload_size;
    }
    for (size_t at = 0; at < texts; at++) {
        struct rcpt_text text = content->kept[at];
        if (text.size > 0)
            memcpy(place, text.at, text.size);
        place += text.size;
    }
}

/* Behind the payloads, in the same bytea: an element of an array of texts could only be found by
 * walking through those before it. */
static void add_first_text_bytes(struct rcpt_pg_encoder *encoder, const struct content *content)
{
    uint32_t count = raw_events(content);
    uint64_t used = 0;
    uint8_t *place = rcpt_pg_add_int4_array(
        encoder, content->form.raw ? (size_t)count * RCPT_KEPT_TEXTS + 1 : 0);
    for (uint32_t index = 0; index < count; index++)
        used += content->batch->events[index].event->payload_size;
    for (size_t at = 0; at < (size_t)count * RCPT_KEPT_TEXTS; at++) {
        place = rcpt_pg_write_int4(place, one_based(used));
        used += content->kept[at].size;
    }
    if (content->form.raw)
        place = rcpt_pg_write_int4(place, one_based(used));
    rcpt_pg_end_array(encoder, place);
}

/* ---- records ---- */

/* 0 as for raw events: only parked rows and dead letters name their record. */
static uint32_t raw_records(const struct content *content)
{
    return content->form.raw ? content->batch->record_count : 0;
}

ELEMENTS(add_record_topics, text, raw_records(content),
         put_text(encoder, batch->record_topics[index]))
NUMBERS(add_record_partitions, int4, raw_records(content), batch->record_partitions[index])
ELEMENTS(add_record_offsets, int8, raw_records(content),
         rcpt_pg_put_int8(encoder, batch->records[index]->offset))

/* One piece for all records, of which SQL cuts out a message's one: it would walk through an array
 * of texts for each. */
static void add_traceparents(struct rcpt_pg_encoder *encoder, const struct content *content)
{
    const struct rcpt_batch *batch = content->batch;
    uint32_t count = batch->has_traceparents ? batch->record_count : 0;
    size_t size = (size_t)count * RCPT_RECORD_TRACEPARENT_BYTES;
    uint8_t *place = rcpt_pg_add_bytea(encoder, size);
    memset(place, ' ', size);
    for (uint32_t index = 0; index < count; index++) {
        const char *traceparent = batch->records[index]->traceparent;
        memcpy(place, traceparent, strlen(traceparent));
        place += RCPT_RECORD_TRACEPARENT_BYTES;
    }
}

/* ---- apply ---- */

WHOLE(add_unknown_policy, rcpt_pg_add_text(encoder, content->form.unknown_policy))

/* NULL: the message's receipts name none; empty: they differ, and parking decides one by one. */
static void add_orgs(struct rcpt_pg_encoder *encoder, const struct content *content)
{
    const struct rcpt_batch *batch = content->batch;
    uint32_t count = batch->has_orgs ? batch->message_count : 0;
    rcpt_pg_begin_text_array(encoder, count);
    for (uint32_t index = 0; index < count; index++) {
        struct rcpt_text org = batch->messages[index].org;
        if (org.at == NULL)
            rcpt_pg_put_null(encoder);
        else
            rcpt_pg_put_bytes(encoder, org.at, org.size);
    }
}

/* The highest statuses that the messages may reach, each once: a batch has few of them. */
static void add_reached_statuses(struct rcpt_pg_encoder *encoder, const struct content *content)
{
    const struct rcpt_batch *batch = content->batch;
    int16_t tops[RCPT_LADDER_MAX_STATUSES];
    size_t count = 0;
    for (uint32_t index = 0; index < batch->message_count; index++) {
        size_t found = 0;
        while (found < count && tops[found] != batch->messages[index].top)
            found++;
        RCPT_ASSERT(found < RCPT_LADDER_MAX_STATUSES);
        tops[found] = batch->messages[index].top;
        count += found == count;
    }
    uint8_t *place = rcpt_pg_add_int2_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        place = rcpt_pg_write_int2(place, tops[index]);
    rcpt_pg_end_array(encoder, place);
}

/* Of all messages together: the statement only checks that no pipeline subscribes to any. */
static void add_reached_flags(struct rcpt_pg_encoder *encoder, const struct content *content)
{
    uint32_t mask = 0;
    for (uint32_t index = 0; index < content->batch->message_count; index++)
        mask |= content->batch->messages[index].mask;
    rcpt_pg_add_int4(encoder, (int32_t)mask);
}

/* ---- rules ---- */

ELEMENTS(add_event_keys, int8, content->form.rules.keys ? named_events(content) : 0,
         rcpt_pg_put_int8(encoder, (int64_t)rcpt_record_event_key(batch->events[index].record,
                                                                  batch->events[index].event)))
NUMBERS(add_event_facets, int4, content->facets != NULL ? batch->event_count : 0,
        content->facets->of_events[index])

static void put_name(struct rcpt_pg_encoder *encoder, const struct content *content,
                     enum rcpt_facet facet, uint32_t number)
{
    const char *name = rcpt_lane_name(content->form.names, facet, number);
    if (name == NULL || name[0] == '\0')
        rcpt_pg_put_null(encoder);
    else
        put_text(encoder, name);
}

static uint32_t facet_count(const struct content *content)
{
    return content->facets != NULL ? content->facets->count : 0;
}

#define FACET_NAMES(NAME, FACET, MEMBER)                                                           \
    static void NAME(struct rcpt_pg_encoder *encoder, const struct content *content)               \
    {                                                                                              \
        rcpt_pg_begin_text_array(encoder, facet_count(content));                                   \
        for (uint32_t index = 0; index < facet_count(content); index++)                            \
            put_name(encoder, content, FACET, content->facets->first[index]->MEMBER);              \
    }
FACET_NAMES(add_facet_gateways, RCPT_FACET_GATEWAY, gateway)
FACET_NAMES(add_facet_reasons, RCPT_FACET_REASON, reason)

WHOLE(add_change_minutes,
      rcpt_pg_add_int8s(encoder, content->groups->changes,
                        content->form.rules.minutes ? content->groups->count : 0))
WHOLE(add_entry_minutes, rcpt_pg_add_int8s(encoder, content->groups->minutes,
                                           content->form.rules.minutes ? entry_count(content) : 0))
WHOLE(add_figure_kinds,
      rcpt_pg_add_int4s(encoder, content->groups->figures, content->groups->kind_count))
WHOLE(add_examples,
      rcpt_pg_add_int4s(encoder, content->groups->examples, content->groups->kind_count))
WHOLE(add_delay_buckets,
      rcpt_pg_add_int2s(encoder, content->facets != NULL ? content->facets->delays : NULL,
                        content->form.rules.delays ? content->batch->event_count : 0))
WHOLE(add_delays, rcpt_encode_delayed(encoder, content->facets))

WHOLE(add_first_times, rcpt_encode_first_times(encoder, content->batch, &content->form))
WHOLE(add_first_gateways,
      rcpt_encode_first_gateways(encoder, content->batch, &content->form, content->facets))

/* $1 … of sql/lane/apply; behind RCPT_APPLY_PARAMETERS those of its unsubscribed form, then those
 * of rules. */
static const struct {
    struct rcpt_apply_parameter declared;
    add_parameter add;
} apply_parameters[] = {
    {{"ids", "text[]"}, add_ids},
    {{"highest status", "int2[]"}, add_tops},
    {{"flags", "int4[]"}, add_masks},
    {{"event", "timestamptz[]"}, add_times},
    {{"signature", "int4[]"}, add_signatures},
    {{"first entry of each", "int4[]"}, add_first_codes},
    {{"codes", "int2[]"}, add_codes},
    {{"counts", "int4[]"}, add_counts},
    {{"first event of each message", "int4[]"}, add_first_events},
    {{"code", "int2[]"}, add_event_codes},
    {{"time", "timestamptz[]"}, add_event_times},
    {{"record", "int4[]"}, add_event_records},
    {{"index in the record", "int4[]"}, add_event_indexes},
    {{"first payload byte", "int4[]"}, add_first_payload_bytes},
    {{"all payloads", "bytea"}, add_payloads},
    {{"topic", "text[]"}, add_record_topics},
    {{"partition", "int4[]"}, add_record_partitions},
    {{"offset", "int8[]"}, add_record_offsets},
    {{"traceparents", "bytea"}, add_traceparents},
    {{"lane", "int4"}, add_lane},
    {{"what to do with unknown messages", "text"}, add_unknown_policy},
    {{"flags that raw events name", "int4[]"}, add_event_flags},
    {{"organisations", "text[]"}, add_orgs},
    {{"first byte in $15", "int4[]"}, add_first_text_bytes},
    {{"kind of each message's receipts", "int4[]"}, add_kinds},
    {{"statuses of $2", "int2[]"}, add_reached_statuses},
    {{"all flags of $3", "int4"}, add_reached_flags},
    {{"keys of the raw events", "int8[]"}, add_event_keys},
    {{"facet of each raw event", "int4[]"}, add_event_facets},
    {{"gateways", "text[]"}, add_facet_gateways},
    {{"reasons of the facets", "text[]"}, add_facet_reasons},
    {{"minute of the change", "int8[]"}, add_change_minutes},
    {{"minute of each", "int8[]"}, add_entry_minutes},
    {{"kind without that", "int4[]"}, add_figure_kinds},
    {{"a message of each kind", "int4[]"}, add_examples},
    {{"bucket of each raw event's delay", "int2[]"}, add_delay_buckets},
    {{"delays of all receipts", "int4[]"}, add_delays},
    {{"least times of each message", "timestamptz[]"}, add_first_times},
    {{"facet with the first gateway", "int4[]"}, add_first_gateways},
};
_Static_assert(sizeof(apply_parameters) / sizeof(apply_parameters[0]) ==
                   RCPT_APPLY_PARAMETERS_RULES,
               "the declared number of parameters");

const struct rcpt_apply_parameter *rcpt_apply_parameter(size_t number)
{
    RCPT_ASSERT(number >= 1 && number <= RCPT_APPLY_PARAMETERS_RULES);
    return &apply_parameters[number - 1].declared;
}

void rcpt_encode_apply(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                       const struct rcpt_encode_form *form)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 64 * 1024);
    struct rcpt_encode_facets *facets =
        form->rules.receipts ? rcpt_encode_facets(batch, &arena) : NULL;
    if (form->rules.delays)
        rcpt_encode_delays(facets, batch, form->now_us, &arena);
    const struct content content = {
        .batch = batch,
        .form = *form,
        .facets = facets,
        .groups = rcpt_encode_groups(batch, &form->rules, facets, &arena),
        .kept = form->raw ? rcpt_encode_kept(batch, form->names, &arena) : NULL};
    size_t count = form->rules.receipts ? RCPT_APPLY_PARAMETERS_RULES
                   : form->unsubscribed ? RCPT_APPLY_PARAMETERS_UNSUBSCRIBED
                                        : RCPT_APPLY_PARAMETERS;
    rcpt_pg_encoder_reset(encoder);
    for (size_t index = 0; index < count; index++)
        apply_parameters[index].add(encoder, &content);
    rcpt_arena_fini(&arena);
}

static const add_parameter decide_parameters[] = {add_ids, add_tops, add_masks, add_times,
                                                  add_orgs};

void rcpt_encode_decide(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_encoder_reset(encoder);
    ADD_ALL(encoder, &((struct content){.batch = batch}), decide_parameters);
}

/* What gateways write may be long. Cut between two characters. */
static void put_words(struct rcpt_pg_encoder *encoder, struct rcpt_text text)
{
    size_t size = text.size;
    if (size > TIMELINE_TEXT_BYTES) {
        size = TIMELINE_TEXT_BYTES;
        while (size > 0 && ((unsigned char)text.at[size] & 0xc0) == 0x80)
            size--;
    }
    if (size > 0)
        rcpt_pg_put_bytes(encoder, text.at, size);
    else
        rcpt_pg_put_null(encoder);
}

/* What each event says of itself, for support: why it failed, through whom, which part of it. */
ELEMENTS(add_event_accounts, text, batch->event_count,
         put_words(encoder, content->origins[index].gateway))
ELEMENTS(add_event_reasons, text, batch->event_count,
         put_words(encoder, content->origins[index].reason))
ELEMENTS(add_event_classes, text, batch->event_count,
         put_words(encoder, content->origins[index].reason_class))
ELEMENTS(add_event_ids, text, batch->event_count,
         put_words(encoder, content->origins[index].event_id))
NUMBERS(add_event_parts, int2, batch->event_count, batch->events[index].event->part)
NUMBERS(add_event_totals, int2, batch->event_count, batch->events[index].event->parts)
NUMBERS(add_event_held, int2, batch->event_count, batch->events[index].event->delivers_part)

static const add_parameter timeline_parameters[] = {
    add_ids,           add_first_events,      add_event_codes,
    add_event_times,   add_event_records,     add_event_indexes,
    add_record_topics, add_record_partitions, add_record_offsets,
    add_orgs,          add_event_accounts,    add_event_reasons,
    add_event_classes, add_event_ids,         add_event_parts,
    add_event_totals,  add_event_held};

void rcpt_encode_timeline(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 64 * 1024);
    struct rcpt_origin *origins = rcpt_arena_alloc(&arena, batch->event_count * sizeof(*origins));
    for (uint32_t index = 0; index < batch->event_count; index++) {
        const struct rcpt_batch_event *raw = &batch->events[index];
        origins[index] = rcpt_origin_read(raw->record->value + raw->event->payload,
                                          raw->event->payload_size, &arena);
    }
    rcpt_pg_encoder_reset(encoder);
    ADD_ALL(encoder, &((struct content){.batch = batch, .form.raw = true, .origins = origins}),
            timeline_parameters);
    rcpt_arena_fini(&arena);
}

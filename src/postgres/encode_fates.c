/* The rows that a batch writes for receipts which are not counted, and its timeline
 * (encode_fates.h). Only these receipts' own JSON is read again. Called by flights.c.
 */
#include "encode_fates.h"

#include <stdio.h>

#include "encode_parameters.h"
#include "receiptd/core/origin.h"

#define NAMED_CHARACTERS    100u /* of an organisation in a letter's detail */
#define DETAIL_BYTES        1000u
#define TIMELINE_TEXT_BYTES 500u

static struct rcpt_origin origin_of(const struct rcpt_batch_event *raw, struct rcpt_arena *arena)
{
    return rcpt_origin_read(raw->record->value + raw->event->payload, raw->event->payload_size,
                            arena);
}

/* ---- what becomes of them ---- */

/* Cut between two characters. */
static int first_characters(struct rcpt_text text, uint32_t most)
{
    size_t size = 0;
    for (uint32_t count = 0; size < text.size && count < most; count++)
        for (size++; size < text.size && ((unsigned char)text.at[size] & 0xc0) == 0x80;)
            size++;
    return (int)size;
}

static const char *refusal(struct rcpt_text named, struct rcpt_text owner, struct rcpt_arena *arena)
{
    char *detail = rcpt_arena_alloc(arena, DETAIL_BYTES);
    const char *quote = owner.at != NULL ? "\"" : "";
    struct rcpt_text shown = owner.at != NULL ? owner : RCPT_TEXT("none");
    snprintf(detail, DETAIL_BYTES,
             "the receipt is of organisation \"%.*s\", its message of %s%.*s%s",
             first_characters(named, NAMED_CHARACTERS), named.at, quote,
             first_characters(shown, NAMED_CHARACTERS), shown.at, quote);
    return detail;
}

/* Keeps no payload if the message was erased. */
static void add_letter(struct rcpt_uncounted *uncounted, const struct rcpt_batch *batch,
                       uint32_t event, enum rcpt_reject_reason reason, const char *detail,
                       bool erased)
{
    const struct rcpt_batch_event *raw = &batch->events[event];
    uncounted->letters[uncounted->letter_count++] = (struct rcpt_batch_letter){
        .record = raw->record,
        .topic = batch->record_topics[raw->record_index],
        .partition = batch->record_partitions[raw->record_index],
        .index = (int32_t)raw->event->index,
        .reason = reason,
        .detail = detail,
        .at_us = raw->event->at_us,
        .receipts = 1,
        .erased = erased,
        .payload = raw->record->value + raw->event->payload,
        .payload_size = erased ? 0 : raw->event->payload_size,
    };
}

static void park(struct rcpt_uncounted *uncounted, uint32_t event, struct rcpt_origin origin)
{
    uncounted->parked[uncounted->parked_count] = event;
    uncounted->origins[uncounted->parked_count++] = origin;
}

/* If others of the message are refused, receipts without an organisation are parked: the wake
 * decides one by one. */
static void add_event(struct rcpt_uncounted *uncounted, struct rcpt_decided *decided,
                      const struct rcpt_decided_message *message, uint32_t event, bool parks)
{
    const struct rcpt_batch *batch = decided->batch;
    enum rcpt_fate fate = message->fate;
    struct rcpt_origin origin = origin_of(&batch->events[event], &decided->arena);
    if (fate == RCPT_FATE_REFUSED && origin.org_id.at != NULL && origin.org_id.size > 0) {
        add_letter(uncounted, batch, event, RCPT_REJECT_OTHER_ORGANISATION,
                   refusal(origin.org_id, message->owner, &decided->arena), false);
        uncounted->refused++;
    } else if (fate == RCPT_FATE_DELETED || fate == RCPT_FATE_ERASED) {
        add_letter(uncounted, batch, event, RCPT_REJECT_RETIRED_MESSAGE, "its message was deleted",
                   fate == RCPT_FATE_ERASED);
        uncounted->retired++;
    } else if (fate == RCPT_FATE_ABSENT && !parks) {
        add_letter(uncounted, batch, event, RCPT_REJECT_UNKNOWN_MESSAGE, NULL, false);
        uncounted->dead++;
    } else {
        park(uncounted, event, origin);
    }
}

/* The number of events for which room is made: in most batches none. */
static uint32_t count_events(const struct rcpt_decided *decided)
{
    uint32_t count = 0;
    for (uint32_t number = 0; number < decided->batch->message_count; number++)
        if (decided->messages[number].fate != RCPT_FATE_KNOWN)
            count += rcpt_batch_end(decided->batch, number) -
                     decided->batch->messages[number].first_event;
    return count;
}

void rcpt_uncounted_list(struct rcpt_uncounted *uncounted, struct rcpt_decided *decided, bool parks)
{
    const struct rcpt_batch *batch = decided->batch;
    struct rcpt_arena *arena = &decided->arena;
    uint32_t most = count_events(decided);
    *uncounted = (struct rcpt_uncounted){.letter_count = batch->letter_count};
    uncounted->letters =
        rcpt_arena_alloc(arena, (batch->letter_count + most) * sizeof(*uncounted->letters));
    if (batch->letter_count > 0)
        memcpy(uncounted->letters, batch->letters,
               batch->letter_count * sizeof(*uncounted->letters));
    uncounted->parked = rcpt_arena_alloc(arena, most * sizeof(*uncounted->parked));
    uncounted->origins = rcpt_arena_alloc(arena, most * sizeof(*uncounted->origins));
    uncounted->absent = rcpt_arena_alloc(arena, most * sizeof(*uncounted->absent));
    for (uint32_t number = 0; most > 0 && number < batch->message_count; number++) {
        const struct rcpt_decided_message *message = &decided->messages[number];
        if (message->fate == RCPT_FATE_KNOWN)
            continue;
        for (uint32_t at = batch->messages[number].first_event; at < rcpt_batch_end(batch, number);
             at++)
            add_event(uncounted, decided, message, at, parks);
        if (message->fate == RCPT_FATE_ABSENT && parks)
            uncounted->absent[uncounted->absent_count++] = number;
    }
}

/* ---- rows ---- */

static void put_count_or_null(struct rcpt_pg_encoder *encoder, uint8_t value)
{
    if (value > 0)
        rcpt_pg_put_int2(encoder, value);
    else
        rcpt_pg_put_null(encoder);
}

/* Positions of events, as all rows about receipts begin. */
static void add_positions(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                          const uint32_t *events, uint32_t count)
{
#define RECORD (batch->events[events[index]].record_index)
    COLUMN(text, put_text(encoder, batch->record_topics[RECORD]));
    COLUMN(int4, rcpt_pg_put_int4(encoder, batch->record_partitions[RECORD]));
    COLUMN(int8, rcpt_pg_put_int8(encoder, batch->records[RECORD]->offset));
    COLUMN(int4, rcpt_pg_put_int4(encoder, (int32_t)batch->events[events[index]].event->index));
#undef RECORD
}

/* The one gateway that all receipts of the event's message name. */
static void put_gateways(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                         const struct rcpt_uncounted *uncounted,
                         const struct rcpt_lane_names *names)
{
    uint32_t message = 0;
    rcpt_pg_begin_text_array(encoder, uncounted->parked_count);
    for (uint32_t index = 0; index < uncounted->parked_count; index++) {
        while (rcpt_batch_end(batch, message) <= uncounted->parked[index])
            message++;
        uint8_t gateway = batch->signatures[batch->messages[message].signature].gateway;
        put_text_or_null(encoder, rcpt_text_of(rcpt_lane_name(names, RCPT_FACET_GATEWAY, gateway)));
    }
}

/* The key that recognises a copy of the receipt, also after it was parked. */
static void put_key(struct rcpt_pg_encoder *encoder, const struct rcpt_batch_event *raw)
{
    uint64_t key = rcpt_record_event_key(raw->record, raw->event);
    if (key != 0)
        rcpt_pg_put_int8(encoder, (int64_t)key);
    else
        rcpt_pg_put_null(encoder);
}

/* Only if the receipt came under the gateway's id: an alias may lead it elsewhere. */
static void put_gateway_id(struct rcpt_pg_encoder *encoder, const struct rcpt_origin *origin,
                           const struct rcpt_event *event)
{
    if (rcpt_origin_is_gateways(origin, event))
        put_text_or_null(encoder, origin->gateway_message_id);
    else
        rcpt_pg_put_null(encoder);
}

#define RAW    (&batch->events[uncounted->parked[index]])
#define EVENT  (RAW->event)
#define ORIGIN (&uncounted->origins[index])

/* Adds the columns that the batch has decoded already. */
static void add_events(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                       const struct rcpt_uncounted *uncounted)
{
    uint32_t count = uncounted->parked_count;
    COLUMN(text, rcpt_pg_put_bytes(encoder, EVENT->id, EVENT->id_size));
    COLUMN(int2, rcpt_pg_put_int2(encoder, RAW->code));
    COLUMN(int4, rcpt_pg_put_int4(encoder, (int32_t)EVENT->flags));
    COLUMN(timestamp, rcpt_pg_put_timestamp(encoder, EVENT->at_us));
    COLUMN(bytea,
           rcpt_pg_put_bytes(encoder, RAW->record->value + EVENT->payload, EVENT->payload_size));
    COLUMN(text, put_traceparent(encoder, RAW->record));
}

/* Adds the columns from the events' own JSON, which batches of known messages do not read. */
static void add_origins(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        const struct rcpt_uncounted *uncounted)
{
    uint32_t count = uncounted->parked_count;
    COLUMN(text, put_text_or_null(encoder, ORIGIN->org_id));
    COLUMN(text, put_text_or_null(encoder, ORIGIN->gateway));
    COLUMN(text, put_text_or_null(encoder, ORIGIN->campaign_id));
    COLUMN(text, put_gateway_id(encoder, ORIGIN, EVENT));
}

void rcpt_encode_parked_rows(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                             const struct rcpt_uncounted *uncounted,
                             const struct rcpt_lane_names *names)
{
    uint32_t count = uncounted->parked_count;
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_add_int4(encoder, (int32_t)batch->lane);
    add_positions(encoder, batch, uncounted->parked, count);
    add_events(encoder, batch, uncounted);
    put_gateways(encoder, batch, uncounted, names);
    add_origins(encoder, batch, uncounted);
    COLUMN(text, put_text_or_null(encoder, rcpt_text_of(rcpt_lane_name(names, RCPT_FACET_REASON,
                                                                       EVENT->reason))));
    COLUMN(int8, put_key(encoder, RAW));
    COLUMN(int2, put_count_or_null(encoder, EVENT->part));
    COLUMN(int2, put_count_or_null(encoder, EVENT->parts));
    COLUMN(int2, put_count_or_null(encoder, EVENT->machines));
}

#undef RAW
#undef EVENT
#undef ORIGIN

/* ---- the timeline ---- */

/* Texts of gateways may be long: cuts them between two characters. */
static void put_words(struct rcpt_pg_encoder *encoder, struct rcpt_text text)
{
    size_t size = text.size;
    if (size > TIMELINE_TEXT_BYTES) {
        size = TIMELINE_TEXT_BYTES;
        while (size > 0 && ((unsigned char)text.at[size] & 0xc0) == 0x80)
            size--;
    }
    put_text_or_null(encoder, (struct rcpt_text){text.at, size});
}

/* Adds the columns that the wake decides: a delivered part, and the codes beside it. */
static void put_waited(struct rcpt_pg_encoder *encoder, const struct rcpt_decided_message *message,
                       const struct rcpt_event *event)
{
    if (message->fate != RCPT_FATE_HELD)
        rcpt_pg_put_null(encoder);
    else
        put_text(encoder, event->delivers_part ? "part" : "beside");
}

static void put_status(struct rcpt_pg_encoder *encoder, const struct rcpt_decided_message *message,
                       int16_t status)
{
    if (message->fate == RCPT_FATE_KNOWN)
        rcpt_pg_put_int2(encoder, status);
    else
        rcpt_pg_put_null(encoder);
}

struct told { /* the events that are written down, and their messages */
    uint32_t *events, *messages, count;
    struct rcpt_origin *origins;
};

static struct told list_told(const struct rcpt_decided *decided, struct rcpt_arena *arena)
{
    const struct rcpt_batch *batch = decided->batch;
    struct told told = {.count = 0};
    told.events = rcpt_arena_alloc(arena, batch->event_count * sizeof(*told.events));
    told.messages = rcpt_arena_alloc(arena, batch->event_count * sizeof(*told.messages));
    told.origins = rcpt_arena_alloc(arena, batch->event_count * sizeof(*told.origins));
    for (uint32_t number = 0; number < batch->message_count; number++) {
        if (decided->messages[number].fate == RCPT_FATE_ERASED)
            continue;
        for (uint32_t at = batch->messages[number].first_event; at < rcpt_batch_end(batch, number);
             at++) {
            told.origins[told.count] = origin_of(&batch->events[at], arena);
            told.messages[told.count] = number;
            told.events[told.count++] = at;
        }
    }
    return told;
}

#define MESSAGE (&decided->messages[told->messages[index]])
#define EVENT   (decided->batch->events[told->events[index]].event)
#define ORIGIN  (&told->origins[index])

/* The status before and after is the message's, over all receipts of the batch. */
static void add_changes(struct rcpt_pg_encoder *encoder, const struct rcpt_decided *decided,
                        const struct told *told)
{
    uint32_t count = told->count;
    COLUMN(int2, rcpt_pg_put_int2(encoder, decided->batch->events[told->events[index]].code));
    COLUMN(timestamp, rcpt_pg_put_timestamp(encoder, EVENT->at_us));
    COLUMN(int2, put_status(encoder, MESSAGE, MESSAGE->was));
    COLUMN(int2, put_status(encoder, MESSAGE, MESSAGE->is));
    COLUMN(int4, rcpt_pg_put_int4(encoder, (int32_t)MESSAGE->gained));
}

static void add_words(struct rcpt_pg_encoder *encoder, const struct told *told)
{
    uint32_t count = told->count;
    COLUMN(text, put_words(encoder, ORIGIN->gateway));
    COLUMN(text, put_words(encoder, ORIGIN->reason));
    COLUMN(text, put_words(encoder, ORIGIN->reason_class));
    COLUMN(text, put_words(encoder, ORIGIN->event_id));
}

static void add_told(struct rcpt_pg_encoder *encoder, const struct rcpt_decided *decided,
                     const struct told *told)
{
    uint32_t count = told->count;
    COLUMN(text, rcpt_pg_put_bytes(encoder, EVENT->id, EVENT->id_size));
    add_positions(encoder, decided->batch, told->events, count);
    add_changes(encoder, decided, told);
    add_words(encoder, told);
    COLUMN(int2, put_count_or_null(encoder, EVENT->part));
    COLUMN(int2, put_count_or_null(encoder, EVENT->parts));
    COLUMN(text, put_waited(encoder, MESSAGE, EVENT));
}

#undef MESSAGE
#undef EVENT
#undef ORIGIN

void rcpt_encode_timeline(struct rcpt_pg_encoder *encoder, const struct rcpt_decided *decided)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 64 * 1024);
    const struct told told = list_told(decided, &arena);
    rcpt_pg_encoder_reset(encoder);
    add_told(encoder, decided, &told);
    rcpt_arena_fini(&arena);
}

#define MESSAGE (&decided->batch->messages[index])
#define FATE    (&decided->messages[index])

/* An expiry has no place in Kafka: the topic is empty. */
static void add_no_positions(struct rcpt_pg_encoder *encoder, uint32_t count)
{
    COLUMN(text, put_text(encoder, ""));
    COLUMN(int4, rcpt_pg_put_int4(encoder, -1));
    COLUMN(int8, rcpt_pg_put_int8(encoder, -1));
    COLUMN(int4, rcpt_pg_put_int4(encoder, -1));
}

/* Pads with NULLs the columns that only receipts have. */
void rcpt_encode_expired(struct rcpt_pg_encoder *encoder, const struct rcpt_decided *decided)
{
    uint32_t count = decided->batch->message_count;
    rcpt_pg_encoder_reset(encoder);
    COLUMN(text, rcpt_pg_put_bytes(encoder, MESSAGE->id, MESSAGE->id_size));
    add_no_positions(encoder, count);
    COLUMN(int2, rcpt_pg_put_int2(encoder, MESSAGE->top));
    COLUMN(timestamp, rcpt_pg_put_timestamp(encoder, MESSAGE->at_us));
    COLUMN(int2, put_status(encoder, FATE, FATE->was));
    COLUMN(int2, put_status(encoder, FATE, FATE->is));
    COLUMN(int4, rcpt_pg_put_int4(encoder, 0));
    for (int text = 0; text < 4; text++)
        rcpt_pg_begin_text_array(encoder, 0);
    rcpt_pg_begin_int2_array(encoder, 0);
    rcpt_pg_begin_int2_array(encoder, 0);
    rcpt_pg_begin_text_array(encoder, 0);
}

#undef MESSAGE
#undef FATE

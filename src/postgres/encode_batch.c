#include "encode_batch.h"

#include <limits.h>
#include <string.h>

#include "base/error.h"
#include "core/ladder.h"
#include "core/origin.h"

/* PostgreSQL counts array elements and bytes from one, in int4. */
static int32_t one_based(uint64_t index)
{
    RCPT_ASSERT(index < INT32_MAX);
    return (int32_t)index + 1;
}

static void put_text(struct rcpt_pg_encoder *encoder, const char *text)
{
    rcpt_pg_put_bytes(encoder, text, strlen(text));
}

static void put_traceparent(struct rcpt_pg_encoder *encoder, const struct rcpt_record *record)
{
    if (record->traceparent[0] == '\0')
        rcpt_pg_put_null(encoder);
    else
        put_text(encoder, record->traceparent);
}

/* ---- positions ---- */

static void add_pairs(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_begin_text_array(encoder, batch->move_count);
    for (uint32_t index = 0; index < batch->move_count; index++)
        put_text(encoder, batch->moves[index].topic);
    rcpt_pg_begin_int4_array(encoder, batch->move_count);
    for (uint32_t index = 0; index < batch->move_count; index++)
        rcpt_pg_put_int4(encoder, batch->moves[index].partition);
    rcpt_pg_add_int4(encoder, (int32_t)batch->lane);
}

static void add_moves(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_begin_int8_array(encoder, batch->move_count);
    for (uint32_t index = 0; index < batch->move_count; index++)
        rcpt_pg_put_int8(encoder, batch->moves[index].expected);
    rcpt_pg_begin_int8_array(encoder, batch->move_count);
    for (uint32_t index = 0; index < batch->move_count; index++)
        rcpt_pg_put_int8(encoder, batch->moves[index].next);
    rcpt_pg_begin_int8_array(encoder, batch->move_count);
    for (uint32_t index = 0; index < batch->move_count; index++)
        rcpt_pg_put_int8(encoder, batch->moves[index].generation);
}

static void add_anchors(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_begin_int8_array(encoder, batch->move_count);
    for (uint32_t index = 0; index < batch->move_count; index++)
        rcpt_pg_put_int8(encoder, batch->moves[index].anchor_offset);
    rcpt_pg_begin_int8_array(encoder, batch->move_count);
    for (uint32_t index = 0; index < batch->move_count; index++)
        rcpt_pg_put_int8(encoder, batch->moves[index].anchor_timestamp_ms);
    rcpt_pg_begin_int8_array(encoder, batch->move_count);
    for (uint32_t index = 0; index < batch->move_count; index++)
        rcpt_pg_put_int8(encoder, (int64_t)batch->moves[index].anchor_crc);
}

void rcpt_encode_fence(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_encoder_reset(encoder);
    add_pairs(encoder, batch);
    add_moves(encoder, batch);
    add_anchors(encoder, batch);
}

void rcpt_encode_parked(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        int64_t parked_max_age_ms)
{
    rcpt_pg_encoder_reset(encoder);
    add_pairs(encoder, batch);
    rcpt_pg_add_int4(encoder, (int32_t)batch->wake_limit);
    if (batch->kind == RCPT_BATCH_EXPIRE)
        rcpt_pg_add_int8(encoder, parked_max_age_ms);
    if (batch->kind == RCPT_BATCH_DISCARD)
        rcpt_pg_add_text(encoder, batch->letter_count > 0 && batch->letters[0].detail != NULL
                                      ? batch->letters[0].detail
                                      : "refused when it was woken");
}

/* ---- messages ---- */

static void add_messages(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    const struct rcpt_batch_message *end = batch->messages + batch->message_count;
    uint8_t *place;
    rcpt_pg_begin_text_array(encoder, batch->message_count);
    for (const struct rcpt_batch_message *message = batch->messages; message < end; message++)
        rcpt_pg_put_bytes(encoder, message->id, message->id_size);
    place = rcpt_pg_add_int2_array(encoder, batch->message_count);
    for (const struct rcpt_batch_message *message = batch->messages; message < end; message++)
        place = rcpt_pg_write_int2(place, message->top);
    rcpt_pg_end_array(encoder, place);
    place = rcpt_pg_add_int4_array(encoder, batch->message_count);
    for (const struct rcpt_batch_message *message = batch->messages; message < end; message++)
        place = rcpt_pg_write_int4(place, (int32_t)message->mask);
    rcpt_pg_end_array(encoder, place);
    place = rcpt_pg_add_timestamp_array(encoder, batch->message_count);
    for (const struct rcpt_batch_message *message = batch->messages; message < end; message++)
        place = rcpt_pg_write_timestamp(place, message->at_us);
    rcpt_pg_end_array(encoder, place);
    place = rcpt_pg_add_int4_array(encoder, batch->message_count);
    for (const struct rcpt_batch_message *message = batch->messages; message < end; message++)
        place = rcpt_pg_write_int4(place, one_based((uint64_t)message->signature));
    rcpt_pg_end_array(encoder, place);
}

static void add_signatures(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    uint8_t *place = rcpt_pg_add_int4_array(encoder, (size_t)batch->signature_count + 1);
    for (uint32_t index = 0; index < batch->signature_count; index++)
        place = rcpt_pg_write_int4(place, one_based(batch->signatures[index].first));
    place = rcpt_pg_write_int4(place, one_based(batch->signature_code_count));
    rcpt_pg_end_array(encoder, place);
    place = rcpt_pg_add_int2_array(encoder, batch->signature_code_count);
    for (uint32_t index = 0; index < batch->signature_code_count; index++)
        place = rcpt_pg_write_int2(place, batch->signature_codes[index]);
    rcpt_pg_end_array(encoder, place);
    place = rcpt_pg_add_int4_array(encoder, batch->signature_code_count);
    for (uint32_t index = 0; index < batch->signature_code_count; index++)
        place = rcpt_pg_write_int4(place, batch->signature_counts[index]);
    rcpt_pg_end_array(encoder, place);
}

/* ---- raw events ---- */

static void add_first_events(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    uint8_t *place = rcpt_pg_add_int4_array(encoder, (size_t)batch->message_count + 1);
    for (uint32_t index = 0; index < batch->message_count; index++)
        place = rcpt_pg_write_int4(place, one_based(batch->messages[index].first_event));
    place = rcpt_pg_write_int4(place, one_based(batch->event_count));
    rcpt_pg_end_array(encoder, place);
}

static void add_event_records(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    const struct rcpt_batch_event *end = batch->events + batch->event_count;
    uint8_t *place = rcpt_pg_add_int4_array(encoder, batch->event_count);
    for (const struct rcpt_batch_event *event = batch->events; event < end; event++)
        place = rcpt_pg_write_int4(place, one_based(event->record_index));
    rcpt_pg_end_array(encoder, place);
}

/* `count`: all of them, or none. */
static void add_events(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                       uint32_t count)
{
    const struct rcpt_batch_event *end = batch->events + count;
    add_first_events(encoder, batch);
    uint8_t *place = rcpt_pg_add_int2_array(encoder, count);
    for (const struct rcpt_batch_event *event = batch->events; event < end; event++)
        place = rcpt_pg_write_int2(place, event->code);
    rcpt_pg_end_array(encoder, place);
    place = rcpt_pg_add_timestamp_array(encoder, count);
    for (const struct rcpt_batch_event *event = batch->events; event < end; event++)
        place = rcpt_pg_write_timestamp(place, event->event->at_us);
    rcpt_pg_end_array(encoder, place);
    add_event_records(encoder, batch);
    place = rcpt_pg_add_int4_array(encoder, count);
    for (const struct rcpt_batch_event *event = batch->events; event < end; event++)
        place = rcpt_pg_write_int4(place, (int32_t)event->event->index);
    rcpt_pg_end_array(encoder, place);
}

static void add_no_payloads(struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_end_array(encoder, rcpt_pg_add_int4_array(encoder, 0));
    rcpt_pg_add_bytea(encoder, 0);
}

static void add_payloads(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    const struct rcpt_batch_event *end = batch->events + batch->event_count;
    uint64_t used = 0;
    uint8_t *place = rcpt_pg_add_int4_array(encoder, (size_t)batch->event_count + 1);
    for (const struct rcpt_batch_event *event = batch->events; event < end; event++) {
        place = rcpt_pg_write_int4(place, one_based(used));
        used += event->event->payload_size;
    }
    place = rcpt_pg_write_int4(place, one_based(used));
    rcpt_pg_end_array(encoder, place);
    place = rcpt_pg_add_bytea(encoder, (size_t)used);
    for (const struct rcpt_batch_event *event = batch->events; event < end; event++) {
        memcpy(place, event->record->value + event->event->payload, event->event->payload_size);
        place += event->event->payload_size;
    }
}

/* Most batches have none: then the array is empty, which reads as NULL everywhere. */
static void add_flags(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch, bool raw)
{
    uint32_t count = raw && batch->has_flags ? batch->event_count : 0;
    uint8_t *place = rcpt_pg_add_int4_array(encoder, count);
    for (uint32_t index = 0; index < count; index++)
        place = rcpt_pg_write_int4(place, (int32_t)batch->events[index].event->flags);
    rcpt_pg_end_array(encoder, place);
}

static void add_record_positions(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_begin_text_array(encoder, batch->record_count);
    for (uint32_t index = 0; index < batch->record_count; index++)
        put_text(encoder, batch->record_topics[index]);
    rcpt_pg_begin_int4_array(encoder, batch->record_count);
    for (uint32_t index = 0; index < batch->record_count; index++)
        rcpt_pg_put_int4(encoder, batch->record_partitions[index]);
    rcpt_pg_begin_int8_array(encoder, batch->record_count);
    for (uint32_t index = 0; index < batch->record_count; index++)
        rcpt_pg_put_int8(encoder, batch->records[index]->offset);
}

static void add_gateways(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                         const struct rcpt_gateway_names *gateways)
{
    uint32_t count = gateways != NULL && gateways->name != NULL ? batch->signature_count : 0;
    rcpt_pg_begin_text_array(encoder, count);
    for (uint32_t index = 0; index < count; index++) {
        const char *name = gateways->name(gateways->context, batch->signatures[index].gateway);
        if (name == NULL || name[0] == '\0')
            rcpt_pg_put_null(encoder);
        else
            put_text(encoder, name);
    }
}

void rcpt_encode_apply(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                       const char *unknown_policy, const struct rcpt_gateway_names *gateways,
                       bool raw)
{
    rcpt_pg_encoder_reset(encoder);
    add_messages(encoder, batch);
    add_signatures(encoder, batch);
    add_events(encoder, batch, raw ? batch->event_count : 0);
    if (raw)
        add_payloads(encoder, batch);
    else
        add_no_payloads(encoder);
    add_record_positions(encoder, batch);
    rcpt_pg_begin_text_array(encoder, batch->record_count);
    for (uint32_t index = 0; index < batch->record_count; index++)
        put_traceparent(encoder, batch->records[index]);
    rcpt_pg_add_int4(encoder, (int32_t)batch->lane);
    rcpt_pg_add_text(encoder, unknown_policy);
    add_flags(encoder, batch, raw);
    add_gateways(encoder, batch, gateways);
}

void rcpt_encode_reach(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    int16_t tops[RCPT_LADDER_MAX_STATUSES];
    uint32_t mask = 0;
    size_t count = 0;
    for (uint32_t index = 0; index < batch->message_count; index++) {
        const struct rcpt_batch_message *message = &batch->messages[index];
        size_t place = 0;
        mask |= message->mask;
        while (place < count && tops[place] != message->top)
            place++;
        RCPT_ASSERT(place < RCPT_LADDER_MAX_STATUSES);
        tops[place] = message->top;
        count += place == count;
    }
    uint8_t *place = rcpt_pg_add_int2_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        place = rcpt_pg_write_int2(place, tops[index]);
    rcpt_pg_end_array(encoder, place);
    rcpt_pg_add_int4(encoder, (int32_t)mask);
}

void rcpt_encode_timeline(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_begin_text_array(encoder, batch->message_count);
    for (uint32_t index = 0; index < batch->message_count; index++)
        rcpt_pg_put_bytes(encoder, batch->messages[index].id, batch->messages[index].id_size);
    add_events(encoder, batch, batch->event_count);
    add_record_positions(encoder, batch);
}

/* What the message's receipts say in their order: the first that names an organisation, the first
 * that names a campaign. */
static struct rcpt_origin find_origin(const struct rcpt_batch *batch, uint32_t message,
                                      struct rcpt_arena *arena)
{
    struct rcpt_origin found = {0};
    uint32_t end = message + 1 < batch->message_count ? batch->messages[message + 1].first_event
                                                      : batch->event_count;
    for (uint32_t at = batch->messages[message].first_event; at < end; at++) {
        const struct rcpt_batch_event *raw = &batch->events[at];
        struct rcpt_origin origin = rcpt_origin_read(raw->record->value + raw->event->payload,
                                                     raw->event->payload_size, arena);
        if (found.org_id == NULL) {
            found.org_id = origin.org_id;
            found.org_id_size = origin.org_id_size;
        }
        if (found.campaign_id == NULL) {
            found.campaign_id = origin.campaign_id;
            found.campaign_id_size = origin.campaign_id_size;
        }
        if (found.org_id != NULL && found.campaign_id != NULL)
            break;
    }
    return found;
}

static void put_text_or_null(struct rcpt_pg_encoder *encoder, const char *text, size_t size)
{
    if (text != NULL)
        rcpt_pg_put_bytes(encoder, text, size);
    else
        rcpt_pg_put_null(encoder);
}

void rcpt_encode_insert(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 64 * 1024);
    struct rcpt_origin *origins = rcpt_arena_alloc(&arena, batch->message_count * sizeof(*origins));
    for (uint32_t index = 0; index < batch->message_count; index++)
        origins[index] = find_origin(batch, index, &arena);
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_begin_text_array(encoder, batch->message_count);
    for (uint32_t index = 0; index < batch->message_count; index++)
        rcpt_pg_put_bytes(encoder, batch->messages[index].id, batch->messages[index].id_size);
    rcpt_pg_begin_text_array(encoder, batch->message_count);
    for (uint32_t index = 0; index < batch->message_count; index++)
        put_text_or_null(encoder, origins[index].org_id, origins[index].org_id_size);
    rcpt_pg_begin_text_array(encoder, batch->message_count);
    for (uint32_t index = 0; index < batch->message_count; index++)
        put_text_or_null(encoder, origins[index].campaign_id, origins[index].campaign_id_size);
    rcpt_arena_fini(&arena);
}

/* ---- dead letters ---- */

static void add_letter_positions(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    const struct rcpt_batch_letter *end = batch->letters + batch->letter_count;
    rcpt_pg_begin_text_array(encoder, batch->letter_count);
    for (const struct rcpt_batch_letter *letter = batch->letters; letter < end; letter++)
        put_text(encoder, letter->topic);
    rcpt_pg_begin_int4_array(encoder, batch->letter_count);
    for (const struct rcpt_batch_letter *letter = batch->letters; letter < end; letter++)
        rcpt_pg_put_int4(encoder, letter->partition);
    rcpt_pg_begin_int8_array(encoder, batch->letter_count);
    for (const struct rcpt_batch_letter *letter = batch->letters; letter < end; letter++)
        rcpt_pg_put_int8(encoder, letter->record->offset);
    rcpt_pg_begin_int4_array(encoder, batch->letter_count);
    for (const struct rcpt_batch_letter *letter = batch->letters; letter < end; letter++)
        rcpt_pg_put_int4(encoder, letter->index);
    rcpt_pg_add_int4(encoder, (int32_t)batch->lane);
}

static uint32_t kept_bytes(const struct rcpt_batch_letter *letter)
{
    return letter->payload_size < RCPT_RECORD_MAX_LETTER_BYTES ? letter->payload_size
                                                               : RCPT_RECORD_MAX_LETTER_BYTES;
}

/* dead_letters_for_redrive.sql knows a cut letter by these words at the end. */
static void put_detail(struct rcpt_pg_encoder *encoder, const struct rcpt_batch_letter *letter)
{
    char text[512];
    const char *detail = letter->detail != NULL ? letter->detail : "";
    uint32_t size =
        letter->full_size > letter->payload_size ? letter->full_size : letter->payload_size;
    if (size > kept_bytes(letter)) {
        snprintf(text, sizeof(text), "%.400s%sthe first of %u bytes", detail,
                 detail[0] != '\0' ? "; " : "", size);
        put_text(encoder, text);
    } else if (detail[0] == '\0') {
        rcpt_pg_put_null(encoder);
    } else {
        put_text(encoder, detail);
    }
}

void rcpt_encode_letters(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    const struct rcpt_batch_letter *end = batch->letters + batch->letter_count;
    rcpt_pg_encoder_reset(encoder);
    add_letter_positions(encoder, batch);
    rcpt_pg_begin_text_array(encoder, batch->letter_count);
    for (const struct rcpt_batch_letter *letter = batch->letters; letter < end; letter++)
        put_text(encoder, rcpt_reject_name(letter->reason));
    rcpt_pg_begin_text_array(encoder, batch->letter_count);
    for (const struct rcpt_batch_letter *letter = batch->letters; letter < end; letter++)
        put_detail(encoder, letter);
    rcpt_pg_begin_bytea_array(encoder, batch->letter_count);
    for (const struct rcpt_batch_letter *letter = batch->letters; letter < end; letter++)
        rcpt_pg_put_bytes(encoder, letter->payload, kept_bytes(letter));
    rcpt_pg_begin_text_array(encoder, batch->letter_count);
    for (const struct rcpt_batch_letter *letter = batch->letters; letter < end; letter++)
        put_traceparent(encoder, letter->record);
}

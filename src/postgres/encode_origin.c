/* What batches with unknown messages need of each event's own JSON: texts that a parked row keeps,
 * and the bare rows of `unknown: insert`. Called by encode_batch.c and statements.c.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/origin.h"
#include "encode_batch.h"

#define KEY_BYTES  24u /* a 64-bit number in decimal */
#define PART_BYTES 8u

static struct rcpt_origin origin_of(const struct rcpt_batch_event *raw, struct rcpt_arena *arena)
{
    return rcpt_origin_read(raw->record->value + raw->event->payload, raw->event->payload_size,
                            arena);
}

/* Numbers stand for "none" where rules do not want them. */
static void keep_for_rules(const struct rcpt_batch_event *raw, const struct rcpt_lane_names *names,
                           struct rcpt_text *texts, struct rcpt_arena *arena)
{
    const struct rcpt_event *event = raw->event;
    uint64_t number = rcpt_record_event_key(raw->record, event);
    texts[0] = rcpt_text_of(rcpt_lane_name(names, RCPT_FACET_REASON, event->reason));
    texts[1] = (struct rcpt_text){NULL, 0};
    if (number == 0)
        return;
    char *key = rcpt_arena_alloc(arena, KEY_BYTES);
    int size = snprintf(key, KEY_BYTES, "%" PRId64, (int64_t)number);
    texts[1] = (struct rcpt_text){key, (size_t)size};
}

/* What the wake has to know of a part: "2/3". */
static struct rcpt_text part_of(const struct rcpt_event *event, struct rcpt_arena *arena)
{
    if (event->part == 0)
        return (struct rcpt_text){NULL, 0};
    char *text = rcpt_arena_alloc(arena, PART_BYTES);
    int size = snprintf(text, PART_BYTES, "%u/%u", event->part, event->parts);
    return (struct rcpt_text){text, (size_t)size};
}

const struct rcpt_text *rcpt_encode_kept(const struct rcpt_batch *batch,
                                         const struct rcpt_lane_names *names,
                                         struct rcpt_arena *arena)
{
    struct rcpt_text *kept =
        rcpt_arena_alloc(arena, batch->event_count * RCPT_KEPT_TEXTS * sizeof(*kept));
    for (uint32_t index = 0; index < batch->event_count; index++) {
        const struct rcpt_batch_event *raw = &batch->events[index];
        struct rcpt_origin origin = origin_of(raw, arena);
        struct rcpt_text *texts = &kept[index * RCPT_KEPT_TEXTS];
        texts[0] = origin.org_id;
        texts[1] = origin.gateway;
        texts[2] = origin.campaign_id;
        texts[3] = rcpt_origin_is_gateways(&origin, raw->event) ? origin.gateway_message_id
                                                                : (struct rcpt_text){NULL, 0};
        keep_for_rules(raw, names, &texts[4], arena);
        texts[7] = part_of(raw->event, arena);
    }
    for (uint32_t index = 0; index < batch->message_count; index++) {
        uint8_t gateway = batch->signatures[batch->messages[index].signature].gateway;
        for (uint32_t at = batch->messages[index].first_event; at < rcpt_batch_end(batch, index);
             at++)
            kept[at * RCPT_KEPT_TEXTS + 6] =
                rcpt_text_of(rcpt_lane_name(names, RCPT_FACET_GATEWAY, gateway));
    }
    return kept;
}

/* A row to be made. */
struct bare_row {
    const struct rcpt_batch_message *message;
    struct rcpt_text org_id, campaign_id;
    bool waits; /* all its receipts came under the gateway's id */
};

/* What the message's receipts say in their order: the first that names an organisation, the first
 * that names a campaign. */
static struct bare_row find_row(const struct rcpt_batch *batch, uint32_t message,
                                struct rcpt_arena *arena)
{
    struct bare_row row = {.message = &batch->messages[message], .waits = true};
    for (uint32_t at = batch->messages[message].first_event; at < rcpt_batch_end(batch, message);
         at++) {
        const struct rcpt_batch_event *raw = &batch->events[at];
        struct rcpt_origin origin = origin_of(raw, arena);
        row.org_id = row.org_id.at == NULL ? origin.org_id : row.org_id;
        row.campaign_id = row.campaign_id.at == NULL ? origin.campaign_id : row.campaign_id;
        row.waits = row.waits && rcpt_origin_is_gateways(&origin, raw->event);
    }
    return row;
}

/* Texts of an origin are slices and have no end mark. */
static void put_text_or_null(struct rcpt_pg_encoder *encoder, struct rcpt_text text)
{
    if (text.at != NULL)
        rcpt_pg_put_bytes(encoder, text.at, text.size);
    else
        rcpt_pg_put_null(encoder);
}

void rcpt_encode_insert(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        bool aliases)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 64 * 1024);
    struct bare_row *rows = rcpt_arena_alloc(&arena, batch->message_count * sizeof(*rows));
    uint32_t count = 0;
    for (uint32_t index = 0; index < batch->message_count; index++) {
        rows[count] = find_row(batch, index, &arena);
        count += !(aliases && rows[count].waits);
    }
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_begin_text_array(encoder, count);
    for (uint32_t index = 0; index < count; index++)
        rcpt_pg_put_bytes(encoder, rows[index].message->id, rows[index].message->id_size);
    rcpt_pg_begin_text_array(encoder, count);
    for (uint32_t index = 0; index < count; index++)
        put_text_or_null(encoder, rows[index].org_id);
    rcpt_pg_begin_text_array(encoder, count);
    for (uint32_t index = 0; index < count; index++)
        put_text_or_null(encoder, rows[index].campaign_id);
    rcpt_arena_fini(&arena);
}

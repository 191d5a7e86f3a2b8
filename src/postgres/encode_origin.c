/* The bare rows of `unknown: insert`, from each event's own JSON. Called by flights.c.
 */
#include "encode_batch.h"
#include "encode_parameters.h"
#include "receiptd/core/origin.h"

static struct rcpt_origin origin_of(const struct rcpt_batch_event *raw, struct rcpt_arena *arena)
{
    return rcpt_origin_read(raw->record->value + raw->event->payload, raw->event->payload_size,
                            arena);
}

/* A row to be made. */
struct bare_row {
    const struct rcpt_batch_message *message;
    struct rcpt_text org_id, campaign_id;
    bool waits; /* all its receipts came under the gateway's id */
};

/* The first organisation and the first campaign that the message's receipts name, in their order.
 */
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

void rcpt_encode_insert(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        const uint32_t *messages, uint32_t message_count, bool aliases)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 64 * 1024);
    struct bare_row *rows = rcpt_arena_alloc(&arena, message_count * sizeof(*rows));
    uint32_t count = 0;
    for (uint32_t index = 0; index < message_count; index++) {
        rows[count] = find_row(batch, messages != NULL ? messages[index] : index, &arena);
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

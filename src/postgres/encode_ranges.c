/* Receipts of all messages to a person up to a time: the parameters of sql/lane/range_store.sql and
 * sql/lane/range_resolve.sql. Called by statements.c.
 */
#include <string.h>

#include "encode_batch.h"
#include "encode_parameters.h"
#include "receiptd/core/origin.h"

/* Reads the account and organisation of each range from the event's own JSON, into the arena. */
static struct rcpt_origin *read_origins(const struct rcpt_batch *batch, struct rcpt_arena *arena)
{
    struct rcpt_origin *origins = rcpt_arena_alloc(arena, batch->range_count * sizeof(*origins));
    for (uint32_t index = 0; index < batch->range_count; index++) {
        const struct rcpt_batch_range_receipt *range = &batch->ranges[index];
        origins[index] = rcpt_origin_read(range->record->value + range->reject->payload,
                                          range->reject->payload_size, arena);
    }
    return origins;
}

/* An array of one value for each range. */
#define EACH_RANGE(BEGIN, PUT)                                                                     \
    BEGIN(encoder, batch->range_count);                                                            \
    for (uint32_t index = 0; index < batch->range_count; index++) {                                \
        const struct rcpt_batch_range_receipt *range = &batch->ranges[index];                      \
        PUT;                                                                                       \
    }

/* $1 to $5: the place of each range. */
static void add_positions(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    EACH_RANGE(rcpt_pg_begin_text_array,
               rcpt_pg_put_bytes(encoder, range->topic, strlen(range->topic)))
    EACH_RANGE(rcpt_pg_begin_int4_array, rcpt_pg_put_int4(encoder, range->partition))
    EACH_RANGE(rcpt_pg_begin_int8_array, rcpt_pg_put_int8(encoder, range->record->offset))
    EACH_RANGE(rcpt_pg_begin_int4_array, rcpt_pg_put_int4(encoder, range->reject->index))
    rcpt_pg_add_int4(encoder, (int32_t)batch->lane);
}

/* $6 to $8. The decoder has checked that there is an account. */
static void add_persons(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 4096);
    const struct rcpt_origin *origins = read_origins(batch, &arena);
    EACH_RANGE(rcpt_pg_begin_text_array, (void)range;
               rcpt_pg_put_bytes(encoder, origins[index].gateway.at, origins[index].gateway.size))
    EACH_RANGE(rcpt_pg_begin_text_array, rcpt_pg_put_bytes(encoder, range->reject->range.recipient,
                                                           range->reject->range.recipient_size))
    EACH_RANGE(rcpt_pg_begin_text_array, (void)range;
               put_text_or_null(encoder, origins[index].org_id))
    rcpt_arena_fini(&arena);
}

/* $9 and on: the content of the range, and its origin for figures and traces. */
void rcpt_encode_ranges(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        const struct rcpt_lane_names *names)
{
    rcpt_pg_encoder_reset(encoder);
    add_positions(encoder, batch);
    add_persons(encoder, batch);
    EACH_RANGE(rcpt_pg_begin_int2_array, rcpt_pg_put_int2(encoder, range->code))
    EACH_RANGE(rcpt_pg_begin_timestamp_array,
               rcpt_pg_put_timestamp(encoder, range->reject->range.until_us))
    EACH_RANGE(rcpt_pg_begin_timestamp_array,
               rcpt_pg_put_timestamp(encoder, range->reject->range.at_us))
    EACH_RANGE(
        rcpt_pg_begin_text_array,
        put_text_or_null(encoder, rcpt_text_of(rcpt_lane_name(names, RCPT_FACET_GATEWAY,
                                                              range->reject->range.gateway))))
    EACH_RANGE(rcpt_pg_begin_text_array,
               put_text_or_null(encoder, rcpt_text_of(range->record->traceparent)))
}

/* As for parked rows, then the wait and whether the timeline is written. */
void rcpt_encode_resolve(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                         int64_t wait_ms, bool timeline)
{
    rcpt_encode_parked(encoder, batch, -1);
    rcpt_pg_add_int8(encoder, wait_ms);
    rcpt_pg_add_int4(encoder, timeline);
}

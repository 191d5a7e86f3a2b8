/* The parameters of statements about positions and parked rows. Called by statements.c and
 * flights.c. A statement knows its parameters by number only, so the order here is the order of $1,
 * $2, … in sql/lane.
 */
#include "encode_batch.h"

#include "encode_parameters.h"

/* $1 to $3: whose rows they are. */
static void add_pairs(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    uint32_t count = batch->move_count;
    COLUMN(text, put_text(encoder, batch->moves[index].topic));
    COLUMN(int4, rcpt_pg_put_int4(encoder, batch->moves[index].partition));
    rcpt_pg_add_int4(encoder, (int32_t)batch->lane);
}

/* One entry for each partition that the batch moves, in the order in which their rows are locked.
 */
void rcpt_encode_fence(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch)
{
    uint32_t count = batch->move_count;
    const struct rcpt_batch_move *moves = batch->moves;
    rcpt_pg_encoder_reset(encoder);
    add_pairs(encoder, batch);
    COLUMN(int8, rcpt_pg_put_int8(encoder, moves[index].expected));
    COLUMN(int8, rcpt_pg_put_int8(encoder, moves[index].next));
    COLUMN(int8, rcpt_pg_put_int8(encoder, moves[index].generation));
    COLUMN(int8, rcpt_pg_put_int8(encoder, moves[index].anchor_offset));
    COLUMN(int8, rcpt_pg_put_int8(encoder, moves[index].anchor_timestamp_ms));
    COLUMN(int8, rcpt_pg_put_int8(encoder, (int64_t)moves[index].anchor_crc));
}

void rcpt_encode_parked(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        int64_t max_age_ms)
{
    rcpt_pg_encoder_reset(encoder);
    add_pairs(encoder, batch);
    rcpt_pg_add_int4(encoder, (int32_t)batch->wake_limit);
    if (batch->kind == RCPT_BATCH_EXPIRE && max_age_ms >= 0)
        rcpt_pg_add_int8(encoder, max_age_ms);
    if (batch->kind == RCPT_BATCH_DISCARD)
        rcpt_pg_add_text(encoder, batch->letter_count > 0 && batch->letters[0].detail != NULL
                                      ? batch->letters[0].detail
                                      : "refused when it was woken");
}

/* The parameters of a lane's statements, made from a batch: sql/lane/<name>.sql explains each at
 * its top.
 *
 * Each call resets the encoder and leaves the finished parameters in it. Pure apart from that.
 */
#ifndef RECEIPTD_POSTGRES_ENCODE_BATCH_H
#define RECEIPTD_POSTGRES_ENCODE_BATCH_H

#include "receiptd/core/batch.h"
#include "receiptd/core/names.h"
#include "receiptd/postgres/arrays.h"

void rcpt_encode_fence(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);

/* encode_decide.c: of sql/lane/decide. */
struct rcpt_decide_form {
    const struct rcpt_ladder *ladder; /* NULL: rows keep no first times */
    const struct rcpt_lane_names *names;
};
/* `messages`: the messages to ask about; NULL: the first `count`. */
void rcpt_encode_decide(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        const struct rcpt_decide_form *form, const uint32_t *messages,
                        uint32_t count);

/* encode_origin.c: bare rows of these messages. `aliases`: leaves out messages whose receipts came
 * only under the gateway's id, because they wait for an alias. */
void rcpt_encode_insert(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        const uint32_t *messages, uint32_t message_count, bool aliases);
/* encode_letters.c */
void rcpt_encode_letters(struct rcpt_pg_encoder *encoder, uint32_t lane,
                         const struct rcpt_batch_letter *letters, uint32_t count);
/* encode_ranges.c: the ranges of a batch; the parameters that resolve those of a lane (RANGES). */
void rcpt_encode_ranges(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        const struct rcpt_lane_names *names);
void rcpt_encode_resolve(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                         int64_t wait_ms, bool timeline);
/* WAKE, DISCARD, EXPIRE and RANGES begin alike: the pairs that are moved, the lane, the limit. An
 * EXPIRE may need an age too; negative: none. */
void rcpt_encode_parked(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        int64_t max_age_ms);

#endif

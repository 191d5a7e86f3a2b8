/* The parameters of a lane's statements, made from a batch: sql/lane/<name>.sql says at its top
 * what each is.
 *
 * Each call resets the encoder and leaves the finished parameters in it. Pure apart from that.
 */
#ifndef RECEIPTD_POSTGRES_ENCODE_BATCH_H
#define RECEIPTD_POSTGRES_ENCODE_BATCH_H

#include "arrays.h"
#include "core/batch.h"
#include "statements.h"

struct rcpt_gateway_names {
    rcpt_gateway_name name; /* NULL: no gateway has a name */
    const void *context;
};

void rcpt_encode_fence(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);
/* `raw`: with the raw events, which only unknown messages need. `unsubscribed`: for the form of
 * apply without the selective subscriber, which checks what the messages may reach. */
void rcpt_encode_apply(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                       const char *unknown_policy, const struct rcpt_gateway_names *gateways,
                       bool raw, bool unsubscribed);

/* The parameters of apply as they are written; sql/lane/apply/10_update.sql describes them by the
 * same words. */
#define RCPT_APPLY_PARAMETERS              25u
#define RCPT_APPLY_PARAMETERS_UNSUBSCRIBED 27u

struct rcpt_apply_parameter {
    const char *name, *type;
};

const struct rcpt_apply_parameter *rcpt_apply_parameter(size_t number /* from 1 on */);

/* What a parked row keeps of its event beside the payload: organisation, account, campaign, and the
 * gateway's id where the receipt came under that. */
#define RCPT_KEPT_TEXTS 4u
/* RCPT_KEPT_TEXTS for each event of the batch, in the arena or in the records; empty: none. */
const struct rcpt_text *rcpt_encode_kept(const struct rcpt_batch *batch, struct rcpt_arena *arena);

/* `aliases`: without the messages whose receipts came under the gateway's id alone: they wait for
 * an alias. */
void rcpt_encode_insert(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        bool aliases);
void rcpt_encode_letters(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);
/* WAKE, DISCARD and EXPIRE begin alike: the pairs that are moved, the lane, the limit. An EXPIRE may
 * need an age too; negative: none. */
void rcpt_encode_parked(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        int64_t max_age_ms);

/* What the receipts did; of a batch that has messages. */
void rcpt_encode_timeline(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);

#endif

/* The rows of a batch's second flight: parked receipts, dead letters, the timeline, and messages
 * for which a bare row is made. Private to src/postgres. */
#ifndef RECEIPTD_POSTGRES_ENCODE_FATES_H
#define RECEIPTD_POSTGRES_ENCODE_FATES_H

#include "decided.h"
#include "encode_batch.h"
#include "receiptd/core/origin.h"

/* Receipts that are not counted, by the fate of their messages. */
struct rcpt_uncounted {
    uint32_t *parked; /* events of the batch, ascending; likewise the texts that they keep */
    struct rcpt_origin *origins;
    uint32_t parked_count;
    struct rcpt_batch_letter *letters; /* those of the batch, then those of the fates */
    uint32_t letter_count;
    uint32_t *absent; /* messages whose receipts are parked since there is no row */
    uint32_t absent_count;
    uint32_t dead, refused, retired; /* of the letters */
};

/* `parks`: receipts of absent messages wait for their row; otherwise they become dead letters. */
void rcpt_uncounted_list(struct rcpt_uncounted *uncounted, struct rcpt_decided *decided,
                         bool parks);

/* sql/lane/parked, sql/lane/timeline */
void rcpt_encode_parked_rows(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                             const struct rcpt_uncounted *uncounted,
                             const struct rcpt_lane_names *names);
void rcpt_encode_timeline(struct rcpt_pg_encoder *encoder, const struct rcpt_decided *decided);
/* sql/lane/timeline of messages that expire: there is no receipt. */
void rcpt_encode_expired(struct rcpt_pg_encoder *encoder, const struct rcpt_decided *decided);

#endif

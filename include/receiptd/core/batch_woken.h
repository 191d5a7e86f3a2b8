/* A batch of parked receipts whose messages exist by now. They are folded like fresh ones, from the
 * columns of their rows. Pure. Called by postgres/flights.c. */
#ifndef RECEIPTD_CORE_BATCH_WOKEN_H
#define RECEIPTD_CORE_BATCH_WOKEN_H

#include "receiptd/core/batch.h"
#include "receiptd/core/ladder.h"

struct rcpt_woken {           /* texts are borrowed while the batch lives */
    struct rcpt_text id, org; /* org: its message's; at NULL: none */
    bool named;               /* the receipt names it */
    int16_t code;             /* status or flag of the ladder */
    uint32_t flags;           /* beside it */
    uint8_t machines;         /* kinds whose open or click counts beside it */
    int64_t at_us;
    const char *traceparent; /* "": none */
    uint8_t gateway, reason; /* numbers of names (struct rcpt_lane_names); 0: none */
    uint64_t key;            /* of the event; 0: none */
    bool delivers_part; /* of a message in several parts: it proves what stands above DELIVERED */
    struct rcpt_text payload; /* its JSON text; size 0: no rule reads it */
    int64_t whole_us; /* all parts are delivered, the last one then; INT64_MIN: not all are */
};

/* Fills messages, events and signatures. The receipts come sorted by id and organisation, as
 * COLLATE "C" orders them, without an organisation last. Receipts of one id and different
 * organisations make separate messages. The batch's arena holds all of it. */
void rcpt_batch_fold_woken(struct rcpt_batch *batch, const struct rcpt_ladder *ladder,
                           const struct rcpt_woken *woken, uint32_t count);

#endif

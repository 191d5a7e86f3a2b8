/* Shared by the files of a batch in two flights: flights.c (the way), flights_write.c (the rows of
 * the second flight), flights_effects.c (figures). */
#ifndef RECEIPTD_POSTGRES_FLIGHTS_INTERNAL_H
#define RECEIPTD_POSTGRES_FLIGHTS_INTERNAL_H

#include "decided.h"
#include "encode_fates.h"
#include "flights.h"
#include "overdue.h"
#include "woken.h"

struct flights {
    struct rcpt_lane_sender *sender;
    struct rcpt_pg *pg;
    const struct rcpt_batch *batch; /* the engine's, until its result; of the two below, its own */
    uint32_t lane;
    enum rcpt_batch_kind kind;
    bool traced;
    rcpt_lane_on_result on_result;
    void *context;
    struct rcpt_woken_batch *woken; /* NULL: it is no wake, or has not taken anything */
    struct rcpt_batch *overdue;     /* NULL: it is no expiry, or has not found anything yet */
    struct rcpt_lane_names names;   /* of the batch */
    int64_t now_us;                 /* of the transaction */
    size_t decide_at;               /* which answer is that of decide */
    struct rcpt_decided decided;
    struct rcpt_uncounted uncounted;
    struct rcpt_engine_result result;
};

/* flights_write.c: the statements of the second flight, each only if it has rows. */
void flights_add_rows(struct flights *flights, struct rcpt_submission *submission);
/* flights_effects.c: a committed batch, for the sender's observer. */
void flights_report(const struct flights *flights);

#endif

/* A batch in two flights: the first decides what becomes of its messages, C counts, the second
 * writes. Private to src/postgres.
 *
 * For batches of known messages without rules and subscribers, behind a switch: the other form is
 * in statements.c.
 */
#ifndef RECEIPTD_POSTGRES_FLIGHTS_H
#define RECEIPTD_POSTGRES_FLIGHTS_H

#include "core/count.h"
#include "statements.h"

/* One encoder for each statement of a batch, since all parameters of a submission are alive until
 * it is sent. */
struct rcpt_lane_sender {
    const char *unknown_policy; /* of apply: insert is parking with one more statement */
    bool inserts_unknown;
    int64_t parked_max_age_ms;
    int64_t alias_wait_ms; /* of `insert`: negative: the gateway's ids are the platform's own */
    int64_t range_wait_ms;
    bool cannot_insert; /* PostgreSQL has refused a row for parked receipts: they age out */
    struct rcpt_pg_encoder *fence, *address, *work, *insert, *ranges, *letters, *timeline;
    bool writes_timeline;
    rcpt_lane_on_effects on_effects; /* NULL: no observer */
    void *effects_context;
    struct rcpt_lane_names names;
    struct rcpt_lane_rules rules;
    const struct rcpt_ladder *ladder;
    struct rcpt_lane_subscription *subscription; /* NULL: everything may be */
    uint32_t raw_batches;     /* batches still to be sent with their raw events */
    struct rcpt_count *count; /* NULL: batches go in one flight */
};

/* Its result as of rcpt_lane_send(). A message that is unknown, of another organisation, or that
 * another transaction has changed meanwhile ends it with the outcome AGAIN. */
void rcpt_flights_send(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                       const struct rcpt_batch *batch, bool traced, rcpt_lane_on_result on_result,
                       void *context);

/* lane_errors.c: what an error of a transaction means for its batch. */
enum rcpt_engine_outcome rcpt_lane_outcome(const struct rcpt_error *error);
void rcpt_lane_describe(char *detail, size_t capacity, const struct rcpt_error *error);

#endif

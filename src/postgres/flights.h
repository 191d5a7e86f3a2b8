/* A batch in two flights: the first decides the fates of its messages, C counts, the second writes.
 * Private to src/postgres.
 */
#ifndef RECEIPTD_POSTGRES_FLIGHTS_H
#define RECEIPTD_POSTGRES_FLIGHTS_H

#include "receiptd/core/count.h"
#include "receiptd/core/keys.h"
#include "receiptd/core/rules/rules.h"
#include "receiptd/postgres/statements.h"

/* One for each statement of a submission, since all parameters are alive until it is sent. */
enum rcpt_lane_encoder {
    RCPT_ENCODE_FENCE,
    RCPT_ENCODE_DECIDE,
    RCPT_ENCODE_KEYS,
    RCPT_ENCODE_COUNTERS,
    RCPT_ENCODE_GROUPS,
    RCPT_ENCODE_FOLDS,
    RCPT_ENCODE_STREAM,
    RCPT_ENCODE_SUPPRESSIONS,
    RCPT_ENCODE_INTENTS,
    RCPT_ENCODE_PARKED,
    RCPT_ENCODE_INSERT,
    RCPT_ENCODE_RANGES,
    RCPT_ENCODE_LETTERS,
    RCPT_ENCODE_TIMELINE,
    RCPT_LANE_ENCODERS
};

struct rcpt_lane_sender {
    struct rcpt_lane_sender_settings settings;
    bool inserts_unknown, parks_unknown;
    int64_t parked_max_age_ms;
    int64_t alias_wait_ms; /* of `insert`: negative: the gateway's ids are the platform's own */
    int64_t range_wait_ms;
    bool cannot_insert; /* PostgreSQL has refused a row for parked receipts: they age out */
    bool writes_timeline;
    rcpt_lane_on_effects on_effects; /* NULL: no observer */
    void *effects_context;
    struct rcpt_lane_subscription *subscription; /* NULL: everything may be */
    bool subscribed;                             /* the last batch may have begun runs */
    struct rcpt_count *count;
    struct rcpt_rules *rules;
    struct rcpt_keys *keys; /* NULL: copies are not recognised */
    struct rcpt_pg_encoder *encoders[RCPT_LANE_ENCODERS];
};

/* The rows of a second flight and its end. */
#define RCPT_LANE_MOST_QUERIES 16u

struct rcpt_submission {
    struct rcpt_pg_query queries[RCPT_LANE_MOST_QUERIES];
    size_t count;
};

void rcpt_submission_add(struct rcpt_submission *submission, const char *statement,
                         struct rcpt_pg_encoder *encoder);
void rcpt_submission_add_rejects(struct rcpt_submission *submission,
                                 struct rcpt_lane_sender *sender, const struct rcpt_batch *batch,
                                 const struct rcpt_batch_letter *letters, uint32_t letter_count);

/* Sends an APPLY or a PROBE with messages, or a WAKE. The result is that of rcpt_lane_send(). */
void rcpt_flights_send(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                       const struct rcpt_batch *batch, bool traced, rcpt_lane_on_result on_result,
                       void *context);

/* lane_errors.c: the outcome of a batch by the error of its transaction. */
enum rcpt_engine_outcome rcpt_lane_outcome(const struct rcpt_error *error);
void rcpt_lane_describe(char *detail, size_t capacity, const struct rcpt_error *error);

#endif

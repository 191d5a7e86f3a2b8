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

void rcpt_encode_fence(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);

struct rcpt_encode_form {
    const char *unknown_policy;
    const struct rcpt_lane_names *names; /* NULL: nothing has a name */
    bool raw;                            /* with the raw events, which only unknown messages need */
    bool unsubscribed; /* for the form of apply without the selective subscriber, which checks what
                          the messages may reach */
    struct rcpt_lane_rules rules;     /* of the statement */
    const struct rcpt_ladder *ladder; /* of first times */
    int64_t now_us;                   /* until when delays are counted */
};
void rcpt_encode_apply(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                       const struct rcpt_encode_form *form);

/* Of sql/heart/decide. */
void rcpt_encode_decide(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);

/* The parameters of apply as they are written; sql/lane/apply/10_update.sql describes them by the
 * same words. */
#define RCPT_APPLY_PARAMETERS              25u
#define RCPT_APPLY_PARAMETERS_UNSUBSCRIBED 27u
#define RCPT_APPLY_PARAMETERS_RULES        39u

struct rcpt_apply_parameter {
    const char *name, *type;
};

const struct rcpt_apply_parameter *rcpt_apply_parameter(size_t number /* from 1 on */);

/* What a parked row keeps of its event beside the payload: organisation, account, campaign, the
 * gateway's id where the receipt came under that; for rules class of the reason, key;
 * for figures the one gateway of its message's receipts. */
#define RCPT_KEPT_TEXTS 8u
/* RCPT_KEPT_TEXTS for each event of the batch, in the arena or in the records; empty: none. */
const struct rcpt_text *rcpt_encode_kept(const struct rcpt_batch *batch,
                                         const struct rcpt_lane_names *names,
                                         struct rcpt_arena *arena);

/* Gateway and reason of receipts, numbered together; in the arena. */
struct rcpt_encode_facets {
    int32_t *of_events;              /* of each event, 1-based */
    const struct rcpt_event **first; /* with each number */
    uint32_t count;
    int16_t *delays; /* bucket of each event's delay … */
    int32_t *
        delayed; /* … and how many of each facet are in each; both NULL until rcpt_encode_delays() */
};
struct rcpt_encode_facets *rcpt_encode_facets(const struct rcpt_batch *batch,
                                              struct rcpt_arena *arena);
void rcpt_encode_delays(struct rcpt_encode_facets *facets, const struct rcpt_batch *batch,
                        int64_t now_us, struct rcpt_arena *arena);
void rcpt_encode_delayed(struct rcpt_pg_encoder *encoder, const struct rcpt_encode_facets *facets);

/* encode_groups.c: what messages have in common. Numbers and places are 1-based; in the arena. */
struct rcpt_encode_groups {
    int32_t *signatures; /* of each message */
    uint32_t count;      /* of signatures */
    int32_t *entries;    /* first entry of each signature, and the end of the last */
    int16_t *codes;      /* of each entry: what the receipts name … */
    int32_t *counts;     /* … how often … */
    int64_t *minutes; /* … and when, in minutes since 1970; NULL unless the series is counted */
    int64_t
        *changes;   /* the minute in which a change of each signature's messages counts; likewise */
    int32_t *kinds; /* of each message */
    uint32_t kind_count; /* 0: kinds are what figures have, and the next two are NULL */
    int32_t *figures;    /* the kind that figures have for each */
    int32_t *examples;   /* a message of each kind; negative: one of its receipts has a reason */
};
const struct rcpt_encode_groups *rcpt_encode_groups(const struct rcpt_batch *batch,
                                                    const struct rcpt_lane_rules *rules,
                                                    const struct rcpt_encode_facets *facets,
                                                    struct rcpt_arena *arena);

/* encode_times.c: the least event times of each message's receipts that name SENT, DELIVERED,
 * OPENED and CLICKED, as timestamptz[], infinity where none does; and the facet with the first
 * gateway by name of those receipts, 0 where they name none, as int4[]. Empty unless
 * form->rules.times. */
void rcpt_encode_first_times(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                             const struct rcpt_encode_form *form);
void rcpt_encode_first_gateways(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                                const struct rcpt_encode_form *form,
                                const struct rcpt_encode_facets *facets);

/* `aliases`: without the messages whose receipts came under the gateway's id alone: they wait for
 * an alias. */
void rcpt_encode_insert(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        bool aliases);
void rcpt_encode_letters(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);
/* encode_ranges.c: the ranges of a batch; what resolves those of a lane (RANGES). */
void rcpt_encode_ranges(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        const struct rcpt_lane_names *names);
void rcpt_encode_resolve(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                         int64_t wait_ms, bool timeline);
/* WAKE, DISCARD, EXPIRE and RANGES begin alike: the pairs that are moved, the lane, the limit. An
 * EXPIRE may need an age too; negative: none. */
void rcpt_encode_parked(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        int64_t max_age_ms);

/* What the receipts did; of a batch that has messages. */
void rcpt_encode_timeline(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);

#endif

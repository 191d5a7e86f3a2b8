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
    bool rules, keys;  /* the statement has rules; they recognise echoes … */
    bool by_row;       /* … by the message's row */
    const struct rcpt_ladder
        *times; /* the row keeps first times: of these statuses; NULL: it does not */
    bool days;  /* it looks in the days first that the messages' receipts name */
};
void rcpt_encode_apply(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                       const struct rcpt_encode_form *form);

/* The parameters of apply as they are written; sql/lane/apply/10_update.sql describes them by the
 * same words. */
#define RCPT_APPLY_PARAMETERS              24u
#define RCPT_APPLY_PARAMETERS_UNSUBSCRIBED 26u
#define RCPT_APPLY_PARAMETERS_RULES        34u
#define RCPT_APPLY_PARAMETERS_BY_ROW       36u
#define RCPT_APPLY_PARAMETERS_DAYS         37u

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

/* Gateway and reason of receipts, numbered together, and messages whose receipts name the same; in the
 * arena. */
struct rcpt_encode_facets {
    int32_t *of_events;              /* of each event, 1-based */
    const struct rcpt_event **first; /* with each number */
    uint32_t count;
    /* Of each message the first one, 1-based, whose receipts name the same statuses and flags … */
    const int32_t *alike_minutes; /* … in the same minutes */
    const int32_t *alike_facets;  /* … with the same facets; negative: one of them has a reason */
};
const struct rcpt_encode_facets *rcpt_encode_facets(const struct rcpt_batch *batch,
                                                    struct rcpt_arena *arena);

/* encode_times.c: the least event times of each message's receipts that name SENT, DELIVERED, OPENED and
 * CLICKED, as timestamptz[], infinity where none does; and the facet with the first gateway by name of
 * those receipts, 0 where they name none, as int4[]. Empty without form->times. */
void rcpt_encode_first_times(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                             const struct rcpt_encode_form *form);
void rcpt_encode_first_gateways(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                                const struct rcpt_encode_form *form,
                                const struct rcpt_encode_facets *facets);

int16_t rcpt_encode_lowest_status(const struct rcpt_batch *batch, uint32_t message);
void rcpt_encode_days(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);
void rcpt_encode_keys(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch, bool wanted);

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
/* WAKE, DISCARD, EXPIRE and RANGES begin alike: the pairs that are moved, the lane, the limit. An EXPIRE may
 * need an age too; negative: none. */
void rcpt_encode_parked(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch,
                        int64_t max_age_ms);

/* What the receipts did; of a batch that has messages. */
void rcpt_encode_timeline(struct rcpt_pg_encoder *encoder, const struct rcpt_batch *batch);

#endif

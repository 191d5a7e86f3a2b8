/* The effect of receipts on their messages, judged by the status before and after: for figures and
 * explanations.
 *
 * Pure. The order in which the receipts of one batch came makes no difference.
 */
#ifndef RECEIPTD_CORE_OUTCOME_H
#define RECEIPTD_CORE_OUTCOME_H

#include "receiptd/core/ladder.h"

enum rcpt_outcome {
    RCPT_OUTCOME_APPLIED,   /* it moved the message, alone or as a stage on the way */
    RCPT_OUTCOME_STALE,     /* a stage that the message had passed */
    RCPT_OUTCOME_DUPLICATE, /* the status or flag that the message had */
    RCPT_OUTCOME_LOST,      /* another branch, and the status there is lower: a contradiction */
    RCPT_OUTCOME__COUNT,
};

/* The effect of a receipt of `code` on a message that went from `old` to `new` (equal: it stayed)
 * and gained these flags. If several receipts have the same code, one is asked for with `first`;
 * the others are duplicates. */
enum rcpt_outcome rcpt_outcome_of(const struct rcpt_ladder *ladder, int16_t old, int16_t new,
                                  uint32_t gained, int16_t code, bool first);
const char *rcpt_outcome_name(enum rcpt_outcome outcome);

/* Whether every message in `status` has passed `ancestor`, or stands in it. */
bool rcpt_outcome_is_on_path(const struct rcpt_ladder *ladder, int16_t ancestor, int16_t status);
/* Whether this is a move across the tree, like FAILED to DELIVERED: it contradicts the status
 * before. */
bool rcpt_outcome_is_correction(const struct rcpt_ladder *ladder, int16_t old, int16_t new);

struct rcpt_outcome_counts {
    uint64_t receipts[RCPT_OUTCOME__COUNT];
    uint64_t corrections; /* messages */
};

struct rcpt_outcome_group { /* messages of one fate, whose receipts named the same */
    int16_t old, new;
    uint32_t gained, messages;
    const int16_t *codes;  /* what they named, */
    const int32_t *counts; /* how often each, */
    uint32_t size;         /* how many there are */
};

void rcpt_outcome_count(struct rcpt_outcome_counts *sums, const struct rcpt_ladder *ladder,
                        const struct rcpt_outcome_group *group);

#endif

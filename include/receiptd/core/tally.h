/* Counts in cells: sums of messages and events by (kind, campaign, minute, key, status).
 *
 * Pure. The same additions in any order give the same cells in the same order. A steady load
 * allocates nothing. core/rules/rules.h defines the kinds.
 */
#ifndef RECEIPTD_CORE_TALLY_H
#define RECEIPTD_CORE_TALLY_H

#include "receiptd/core/words.h"

#define RCPT_TALLY_KINDS   32u /* most; a kind is a number below */
#define RCPT_TALLY_NO_TIME 0u

struct rcpt_tally;

struct rcpt_tally_place {
    const struct rcpt_word *campaign, *key;
    uint32_t minute; /* rcpt_tally_minute(), or RCPT_TALLY_NO_TIME: not by time */
    int16_t status;  /* or whatever the kind counts by */
    uint8_t kind;
};

struct rcpt_tally_cell {
    struct rcpt_tally_place place;
    int64_t messages, events;
};

struct rcpt_tally_range { /* of cells, from 0; behind the last one */
    uint32_t first, end;
};

struct rcpt_tally *rcpt_tally_new(void);
void rcpt_tally_free(struct rcpt_tally *tally);

/* Empties the tally. */
void rcpt_tally_begin(struct rcpt_tally *tally);
void rcpt_tally_add(struct rcpt_tally *tally, struct rcpt_tally_place place, int64_t messages,
                    int64_t events);
/* The words have ranks. Afterwards the results below hold, until the next begin. */
void rcpt_tally_finish(struct rcpt_tally *tally);

/* Sorted by kind, campaign (memcmp), minute, key (memcmp) and status; no cell is 0 in both numbers.
 */
const struct rcpt_tally_cell *rcpt_tally_cells(const struct rcpt_tally *tally, uint32_t *count);
/* The cells of one kind. */
struct rcpt_tally_range rcpt_tally_range(const struct rcpt_tally *tally, uint8_t kind);

/* The minute since 1970 that places hold. Times before 1970 count as minute 0. */
static inline uint32_t rcpt_tally_minute(int64_t since_1970)
{
    return since_1970 > 0 ? (uint32_t)since_1970 + 1 : 1;
}
static inline int64_t rcpt_tally_since_1970(uint32_t minute)
{
    return (int64_t)minute - 1;
}

#endif

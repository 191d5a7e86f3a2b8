/* Counts a batch: makes cells of the funnel from its folded receipts and the fate of each message.
 *
 * Pure; no message is looked at twice. The same rows in any order give the same cells in the same
 * order. Used between the two flights of a lane's transaction (src/postgres/flights.c).
 */
#ifndef RECEIPTD_CORE_COUNT_H
#define RECEIPTD_CORE_COUNT_H

#include "receiptd/core/batch.h"
#include "receiptd/core/ladder.h"

struct rcpt_count;

/* The fate of a known message. */
struct rcpt_count_row {
    uint32_t message;          /* of the batch */
    int16_t was;               /* status before … */
    uint32_t had;              /* … and flags */
    bool changed;              /* by the statement; with first times that may be a time alone */
    struct rcpt_text campaign; /* borrowed for the call; size 0: none */
    struct rcpt_text org;      /* the organisation; `at` NULL: not asked for */
    const struct rcpt_text *columns; /* rcpt_rules_columns() */
};

/* An addition to a counter of a campaign. */
struct rcpt_cell {
    uint32_t campaign; /* index into the campaigns */
    int16_t code;      /* status, or 9001 + bit of a flag */
    int64_t messages, events;
};

/* Messages that went the same way and whose receipts name the same, over all campaigns. */
struct rcpt_count_kind {
    int16_t old, new;
    uint32_t gained;
    int32_t signature;
    uint32_t messages;
};

struct rcpt_count *rcpt_count_new(void);
void rcpt_count_free(struct rcpt_count *count);

/* Begins an empty count for at most `rows` rows; batch and ladder are borrowed until finish. */
void rcpt_count_begin(struct rcpt_count *count, const struct rcpt_batch *batch,
                      const struct rcpt_ladder *ladder, uint32_t most_rows);
void rcpt_count_add(struct rcpt_count *count, const struct rcpt_count_row *row);
/* Afterwards the results below hold, until the next begin. */
void rcpt_count_finish(struct rcpt_count *count);

/* Sorted by campaign (memcmp) and code; none is 0 in both numbers. */
const struct rcpt_cell *rcpt_count_cells(const struct rcpt_count *count, uint32_t *size);
struct rcpt_text rcpt_count_campaign(const struct rcpt_count *count, uint32_t campaign);
/* The kinds, sorted. */
const struct rcpt_count_kind *rcpt_count_kinds(const struct rcpt_count *count, uint32_t *size);
/* Messages that changed, known messages, receipts of known messages. */
uint32_t rcpt_count_changed(const struct rcpt_count *count);
uint32_t rcpt_count_known(const struct rcpt_count *count);
uint32_t rcpt_count_events(const struct rcpt_count *count);

#endif

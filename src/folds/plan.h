/* What a rule would publish with other windows, from a history of events. Pure. */
#ifndef RECEIPTD_FOLDS_PLAN_H
#define RECEIPTD_FOLDS_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct fold_plan_event {
    uint64_t group; /* hash of the key */
    int64_t at_ms;
};

struct fold_plan_row {
    int64_t window_ms;
    uint64_t events, publications, avoidable, peak; /* peak: publications within one second */
    double delay_ms;                                /* of an event until its publication, mean */
    int64_t delay_max_ms;
};

/* Sorts the events. A group is published `window` after its last event, or `hold` after its first.
 */
void fold_plan(struct fold_plan_event *events, size_t count, int64_t hold_ms,
               struct fold_plan_row *rows, size_t row_count);
double fold_plan_ratio(const struct fold_plan_row *row); /* share of the events that were folded */

void fold_plan_write_table(const struct fold_plan_row *rows, size_t count, FILE *out);
void fold_plan_write_svg(const char *title, const struct fold_plan_row *rows, size_t count,
                         FILE *out);

#endif

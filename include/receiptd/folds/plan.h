/* A plan: the publications of a rule with other windows, computed from a history of events. Pure.
 * Called by the command fold-plan. */
#ifndef RECEIPTD_FOLDS_PLAN_H
#define RECEIPTD_FOLDS_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "receiptd/config/config.h"

/* Finds a rule's events among records, as the daemon does. */
struct fold_finder;

/* topic: reads this one instead of the rule's; NULL: the rule's. Both are borrowed for life. */
struct fold_finder *fold_finder_new(const struct rcpt_fold_config *fold, const char *topic);
void fold_finder_free(struct fold_finder *finder); /* NULL is fine */
/* NULL: the rule reads transitions, and no other topic was given. */
const char *fold_finder_topic(const struct fold_finder *finder);
/* The hash of the record's group. False: the record is no event of the rule. */
bool fold_finder_group(struct fold_finder *finder, const char *topic, const void *value,
                       size_t size, uint64_t *group);

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

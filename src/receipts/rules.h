/* What the configuration lets the statements of lanes count beside the funnel. Also for commands
 * that prepare these statements. */
#ifndef RECEIPTD_RECEIPTS_RULES_H
#define RECEIPTD_RECEIPTS_RULES_H

#include "config/dimensions.h"
#include "config/groups.h"
#include "config/ranges.h"
#include "postgres/statements.h"

#define RULES_MOST     9
#define DEDUP_BINDINGS 2
#define RULE_BINDINGS                                                                              \
    (DEDUP_BINDINGS + RCPT_DIMENSION_BINDINGS + RCPT_GROUP_BINDINGS + RCPT_RANGE_BINDINGS)

/* Not copied: dimensions and groups point into themselves. */
struct rules {
    const char *files[RULES_MOST];
    size_t count; /* 0: none */
    struct rcpt_lane_rules read;
    char window[32]; /* in which echoes are recognised, as an interval of SQL */
    struct rcpt_dimensions dimensions;
    struct rcpt_groups groups;
    struct rcpt_ranges ranges;
    struct rcpt_pg_binding bindings[RULE_BINDINGS]; /* those of all */
    size_t binding_count;
};

void rules_read(const struct rcpt_config *config, struct rules *rules);

#endif

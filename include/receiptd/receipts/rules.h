/* The counts beside the funnel that the configuration switches on in lanes. Also for commands that
 * prepare their statements. */
#ifndef RECEIPTD_RECEIPTS_RULES_H
#define RECEIPTD_RECEIPTS_RULES_H

#include "receiptd/config/rule_columns.h"
#include "receiptd/postgres/statements.h"
#include "receiptd/receipts/receipts.h"

/* Not copied: the settings point into it. */
struct rules {
    struct rcpt_rules_settings settings;
    char window[32]; /* in which copies are recognised, as an interval of SQL */
    char kinds[RCPT_DIMENSIONS][48];
    struct rcpt_kinds dimensions;
    struct rcpt_kinds groups;
    struct rcpt_ranges ranges;
    char stream_columns[RCPT_RULES_STREAM_COLUMNS][64];
};

void rules_read(const struct rcpt_config *config, const struct transition_wants *wants,
                struct rules *rules);
/* Whether rules read reasons and keys of receipts. */
bool rules_read_receipts(const struct rules *rules);

/* The statements for these rules; the caller frees them. recent_since, recent_column: as of struct
 * rcpt_lane_variant. */
struct rcpt_lane_statements *rules_statements(const struct rcpt_config *config,
                                              const struct rules *rules,
                                              const struct transition_wants *wants,
                                              const char *recent_since, const char *recent_column);
/* The statements of an expiry for these rules; candidates: likewise. */
struct rcpt_lane_statements *rules_expiry_statements(const struct rules *rules,
                                                     const struct transition_wants *wants,
                                                     const char *candidates);

#endif

/* Columns of the inbox that rules read: for dimensions, for groups, for ranges. Pure. */
#ifndef RECEIPTD_CONFIG_RULE_COLUMNS_H
#define RECEIPTD_CONFIG_RULE_COLUMNS_H

#include "receiptd/config/config.h"
#include "receiptd/postgres/bind.h"

/* ---- dimensions.c: columns by which messages are counted beside the funnel (counters.by) ---- */

#define RCPT_DIMENSIONS         3u                     /* that there are */
#define RCPT_DIMENSION_BINDINGS (RCPT_DIMENSIONS + 1u) /* columns, and what they are */

/* Names are borrowed from the configuration, or static. The bindings point into the struct: it is
 * not copied. */
struct rcpt_dimensions {
    size_t count;
    const char *names[RCPT_DIMENSIONS];   /* "variant" */
    const char *columns[RCPT_DIMENSIONS]; /* of the inbox */
    char kinds[64];                       /* of counter_delta, as an array of SQL: "{by_variant}" */
    /* Variables of sql/expiry and of the audit; none without dimensions. */
    struct rcpt_pg_binding bindings[RCPT_DIMENSION_BINDINGS];
    size_t binding_count;
};

void rcpt_dimensions_read(const struct rcpt_config *config, struct rcpt_dimensions *dimensions);

/* Whether the view of a mapped inbox shows a column of ours under this name, and none of the table.
 */
bool rcpt_config_is_inbox_column(const char *column);

/* Why counters.by cannot be counted: a sentence; NULL: nothing is wrong. */
const char *rcpt_config_dimensions_problem(const struct rcpt_config *config);

/* ---- groups.c: messages that count as one (counters.groups): those of a customer, and attempts
 * at one logical message ---- */

#define RCPT_GROUPS         2u                 /* kinds that there are */
#define RCPT_GROUP_BINDINGS (RCPT_GROUPS + 1u) /* columns, and what they are */

/* Names are borrowed from the configuration, or static. The bindings point into the struct: it is
 * not copied. */
struct rcpt_groups {
    size_t count;
    const char *names[RCPT_GROUPS];   /* "customer" */
    const char *columns[RCPT_GROUPS]; /* of the inbox */
    char kinds[32];                   /* as an array of SQL: "{customer}" */
    /* Variables of sql/expiry and of the audit; none without groups. */
    struct rcpt_pg_binding bindings[RCPT_GROUP_BINDINGS];
    size_t binding_count;
};

void rcpt_groups_read(const struct rcpt_config *config, struct rcpt_groups *groups);

/* The inbox's column of this kind, which is there; NULL: it is not counted. Borrowed as above. */
const char *rcpt_groups_column(const struct rcpt_config *config, const char *kind);

/* Why counters.groups cannot be counted: a sentence; NULL: nothing is wrong. */
const char *rcpt_config_groups_problem(const struct rcpt_config *config);

/* ---- ranges.c: receipts of all messages to a person up to a time (ranges) ---- */

#define RCPT_RANGE_BINDINGS 3u

/* Names are borrowed from the configuration, or static. */
struct rcpt_ranges {
    bool on;
    const char *recipient, *account, *sent; /* columns of the inbox; NULL: off */
    /* Variables of sql/lane/range_resolve.sql; none where ranges are off. */
    struct rcpt_pg_binding bindings[RCPT_RANGE_BINDINGS];
    size_t binding_count;
};

void rcpt_ranges_read(const struct rcpt_config *config, struct rcpt_ranges *ranges);

/* Why ranges cannot be resolved: a sentence; NULL: nothing is wrong. */
const char *rcpt_config_ranges_problem(const struct rcpt_config *config);

#endif

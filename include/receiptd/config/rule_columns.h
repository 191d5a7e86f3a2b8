/* The columns of the inbox that rules read: for dimensions, for groups, for ranges. Pure. */
#ifndef RECEIPTD_CONFIG_RULE_COLUMNS_H
#define RECEIPTD_CONFIG_RULE_COLUMNS_H

#include "receiptd/config/config.h"
#include "receiptd/postgres/bind.h"

#define RCPT_DIMENSIONS 3u              /* kinds of counters.by */
#define RCPT_GROUPS     2u              /* kinds of counters.groups */
#define RCPT_KINDS      RCPT_DIMENSIONS /* the larger of both */

/* The columns that counters.by or counters.groups names. Names are borrowed from the configuration,
 * or static. The bindings point into the struct, so it must not be copied. */
struct rcpt_kinds {
    size_t count;
    const char *names[RCPT_KINDS];   /* "variant" */
    const char *columns[RCPT_KINDS]; /* of the inbox */
    char sql[64]; /* the kinds as an array of SQL: "{by_variant}", "{customer}" */
    /* Variables of sql/expiry and of the audit for columns and kinds; none without kinds. */
    struct rcpt_pg_binding bindings[RCPT_KINDS + 1];
    size_t binding_count;
};

/* Columns by which messages are counted beside the funnel (counters.by). */
void rcpt_dimensions_read(const struct rcpt_config *config, struct rcpt_kinds *dimensions);

/* Messages that count as one (counters.groups): those of a customer, or attempts at one logical
 * message. */
void rcpt_groups_read(const struct rcpt_config *config, struct rcpt_kinds *kinds);

/* The inbox's column of this kind, borrowed as above; NULL: counters.groups does not name it. */
const char *rcpt_groups_column(const struct rcpt_config *config, const char *kind);

#define RCPT_RANGE_BINDINGS 3u

/* Ranges: receipts of all messages to a person up to a time. Names are borrowed from the
 * configuration, or static. */
struct rcpt_ranges {
    bool on;
    const char *recipient, *account, *sent; /* columns of the inbox; NULL: off */
    /* Variables of sql/lane/range_resolve.sql; none where ranges are off. */
    struct rcpt_pg_binding bindings[RCPT_RANGE_BINDINGS];
    size_t binding_count;
};

void rcpt_ranges_read(const struct rcpt_config *config, struct rcpt_ranges *ranges);

/* Whether the inbox has the columns of counters.by, counters.groups and ranges. False: `error` says
 * what is wrong, and `key` which key of the file it is about. */
RCPT_MUST_CHECK bool rcpt_config_check_rule_columns(const struct rcpt_config *config,
                                                    const char **key, struct rcpt_error *error);

#endif

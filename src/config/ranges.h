/* Receipts of all messages to a person up to a time (ranges): which columns of the inbox say what
 * messages those are. Pure. */
#ifndef RECEIPTD_CONFIG_RANGES_H
#define RECEIPTD_CONFIG_RANGES_H

#include "config.h"
#include "postgres/bind.h"

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

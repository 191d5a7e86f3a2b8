/* What the configuration lets the statements of lanes count beside the funnel. Also for commands that
 * prepare these statements. */
#ifndef RECEIPTD_RECEIPTS_RULES_H
#define RECEIPTD_RECEIPTS_RULES_H

#include "config/dimensions.h"

#define RULES_MOST 7

/* Not copied: the dimensions point into themselves. */
struct rules {
    const char *files[RULES_MOST];
    size_t count;        /* 0: none */
    bool reads_receipts; /* any of them but that of dimensions does */
    bool keys;           /* they recognise echoes */
    struct rcpt_dimensions dimensions;
};

void rules_read(const struct rcpt_config *config, struct rules *rules);

#endif

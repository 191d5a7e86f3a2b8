/* By which columns of the inbox messages are counted beside the funnel (counters.by). Pure. */
#ifndef RECEIPTD_CONFIG_DIMENSIONS_H
#define RECEIPTD_CONFIG_DIMENSIONS_H

#include "config.h"
#include "postgres/bind.h"

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

#endif

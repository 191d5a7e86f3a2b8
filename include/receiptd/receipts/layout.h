/* Whether a partitioned inbox may be used. A receipt names only an id, so its message is looked up
 * in every partition unless the id leads to one. Commands refuse an unusable inbox with the same
 * reason for which the daemon is not ready. */
#ifndef RECEIPTD_RECEIPTS_LAYOUT_H
#define RECEIPTD_RECEIPTS_LAYOUT_H

#include "receiptd/config/config.h"

/* The answer of sql/control/layout.sql. */
struct inbox_layout {
    const char *key;      /* by what it is partitioned */
    const char *below;    /* and by what its partitions are again; NULL: they are not */
    bool leads;           /* the message's id alone leads to the partition */
    int64_t probes;       /* partitions in which one id may be */
    bool by_time;         /* partitioned by created_at, so a recent set has few partitions */
    bool by_id, by_range; /* by the id, which leads nowhere if it is no text; by ranges of it */
};

/* Whether it may be used; false: `error` (EX_CONFIG) says why not and what to do. Pure. */
RCPT_MUST_CHECK bool inbox_layout_check(const struct rcpt_config *config,
                                        const struct inbox_layout *layout,
                                        struct rcpt_error *error);

#endif

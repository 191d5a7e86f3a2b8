/* The receipts that a wake takes: the answer of sql/lane/wake as a batch, and as figures. Private
 * to src/postgres. */
#ifndef RECEIPTD_POSTGRES_WOKEN_H
#define RECEIPTD_POSTGRES_WOKEN_H

#include "receiptd/core/batch_woken.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/postgres/statements.h"

#define RCPT_WOKEN_NAMES    250u /* gateways, reasons: events know them by number */
#define RCPT_WOKEN_GATEWAYS 64u  /* of figures */

struct rcpt_woken_gateways { /* rows that name each */
    struct rcpt_lane_gateway all[RCPT_WOKEN_GATEWAYS];
    uint32_t count, events;
};

struct rcpt_woken_batch {
    struct rcpt_batch batch;
    struct rcpt_text names[RCPT_FACET__COUNT][RCPT_WOKEN_NAMES]; /* number 1 is names[0] */
    uint32_t name_counts[RCPT_FACET__COUNT];
    struct rcpt_woken_gateways applied, refused;
};

/* Copies the answer's texts. The batch has no moves. */
struct rcpt_woken_batch *rcpt_woken_batch_new(uint32_t lane, const struct rcpt_ladder *ladder,
                                              const struct rcpt_pg_rows *answer);
void rcpt_woken_batch_free(struct rcpt_woken_batch *woken); /* NULL is fine */
/* Names of the batch's gateways and reasons. */
struct rcpt_lane_names rcpt_woken_names(const struct rcpt_woken_batch *woken);

#endif

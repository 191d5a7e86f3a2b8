/* Stores the state of this instance in the database every few seconds, for readers elsewhere. */
#ifndef RECEIPTD_OPERATE_STATUS_STORE_H
#define RECEIPTD_OPERATE_STATUS_STORE_H

#include "receiptd/operate/operate.h"

struct status;
struct status_store;

/* Works by a ticker. All pointers are borrowed; free it when tickers no longer run. */
struct status_store *status_store_new(struct host_context *context, struct receipts *receipts,
                                      const struct status *status, const struct measure *measure);
/* Call once, when the process begins to stop and before the receipts do: readers no longer see the
 * instance. */
void status_store_leave(struct status_store *store);
bool status_store_is_settled(const struct status_store *store);
void status_store_free(struct status_store *store);

#endif

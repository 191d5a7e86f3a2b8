/* The messages that `receiptd expire` finds: the answer of sql/expiry/candidates as a batch. They
 * have no receipt, so no rule counts one. Private to src/postgres. */
#ifndef RECEIPTD_POSTGRES_OVERDUE_H
#define RECEIPTD_POSTGRES_OVERDUE_H

#include "receiptd/core/batch.h"
#include "receiptd/postgres/connection.h"

/* Copies the answer's texts. The batch has no moves. */
struct rcpt_batch *rcpt_overdue_batch_new(const struct rcpt_pg_rows *answer);
void rcpt_overdue_batch_free(struct rcpt_batch *batch); /* NULL is fine */

#endif

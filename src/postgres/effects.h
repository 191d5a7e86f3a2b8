/* The effects of a committed batch, read from the arrays that its statement returns. Private to
 * src/postgres. */
#ifndef RECEIPTD_POSTGRES_EFFECTS_H
#define RECEIPTD_POSTGRES_EFFECTS_H

#include "receiptd/postgres/statements.h"

/* Columns of sql/lane/expire. */
enum { EXPIRE_ROWS, EXPIRE_GATEWAYS, EXPIRE_RETIRED, EXPIRE_RETIRED_GATEWAYS };
/* Columns of sql/lane/discard. */
enum { DISCARD_ROWS, DISCARD_GATEWAYS };

/* Does nothing without an observer (on_effects NULL), or where the kind has no effects. */
void rcpt_effects_report(rcpt_lane_on_effects on_effects, void *context, uint32_t lane,
                         enum rcpt_batch_kind kind, const struct rcpt_pg_rows *rows);

/* Reads lines of a number, a blank and a name, at most `capacity` of them. Returns how many; they
 * point into the text, which is cut up. */
uint32_t rcpt_effects_read_gateways(char *text, struct rcpt_lane_gateway *gateways,
                                    uint32_t capacity);

#endif

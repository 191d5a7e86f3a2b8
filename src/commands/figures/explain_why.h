/* Says what a receipt did and why, from a row of sql/command/explain_receipts. Private to this
 * folder. */
#ifndef RECEIPTD_COMMANDS_FIGURES_EXPLAIN_WHY_H
#define RECEIPTD_COMMANDS_FIGURES_EXPLAIN_WHY_H

#include "receiptd/core/ladder.h"
#include "receiptd/postgres/session.h"

#define EXPLAIN_WHY_BYTES 160 /* long enough for two names of statuses */

/* Returns a word for tools, and puts a sentence for people into `why`. */
const char *explain_why(const struct rcpt_ladder *ladder, const struct rcpt_session_rows *rows,
                        size_t row, char why[EXPLAIN_WHY_BYTES]);

/* The row is no receipt: none came in time. */
bool explain_is_expiry(const struct rcpt_session_rows *rows, size_t row);

/* A status's name; `text` is for one that the ladder lacks. */
const char *explain_status(const struct rcpt_ladder *ladder, int64_t code, char text[16]);

#endif

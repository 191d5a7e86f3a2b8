/* Parameters of the statements in sql/lane that write counts (core/count.h, core/rules/rules.h) and
 * the keys of receipts (core/keys.h). */
#ifndef RECEIPTD_POSTGRES_ENCODE_COUNTS_H
#define RECEIPTD_POSTGRES_ENCODE_COUNTS_H

#include "receiptd/core/count.h"
#include "receiptd/core/keys.h"
#include "receiptd/core/rules/rules.h"
#include "receiptd/postgres/arrays.h"

/* Each resets the encoder and gives it the parameters of the statement of the same name. False:
 * there is no row to write, and the statement must not be sent. */
bool rcpt_encode_counters(struct rcpt_pg_encoder *encoder, const struct rcpt_count *counted,
                          const struct rcpt_rules *rules);
bool rcpt_encode_members(struct rcpt_pg_encoder *encoder,
                         const struct rcpt_rules *rules); /* groups */
bool rcpt_encode_folds(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules);
bool rcpt_encode_stream(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules);
bool rcpt_encode_suppressions(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules);
/* window: an interval of whole days, as PostgreSQL reads it. */
bool rcpt_encode_new_keys(struct rcpt_pg_encoder *encoder, const struct rcpt_keys *keys,
                          const char *window); /* keys */
bool rcpt_encode_undone_keys(struct rcpt_pg_encoder *encoder,
                             struct rcpt_keys *keys); /* keys_undo */

#endif

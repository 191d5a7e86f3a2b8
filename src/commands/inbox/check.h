/* Whether an existing table can be the inbox, and whether the daemon's statements can be prepared
 * on what stands there now. For migrate and check-config. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_CHECK_H
#define RECEIPTD_COMMANDS_INBOX_CHECK_H

#include "../command.h"
#include "place.h"

/* The row of sql/migrate/state.sql: what is there. NULL: the query failed. */
struct rcpt_session_rows *inbox_read_state(struct command_context *context);

/* Refuses (EX_CONFIG) an existing table whose receipts could not be exact: each problem on stderr,
 * with the SQL that mends it. Reads catalogs only. */
RCPT_MUST_CHECK bool inbox_check_table(struct command_context *context);

/* Prepares and plans what `run` would with this configuration, in the open transaction; the inbox
 * has to be there. `role`: with its rights, where the session may have them; NULL: with its own. */
RCPT_MUST_CHECK bool inbox_check_statements(struct command_context *context, const char *role);

/* Refuses (EX_CONFIG) pipelines that read a column which the inbox does not have, and notes such
 * rules of folds on stderr. The inbox has to be there. */
RCPT_MUST_CHECK bool inbox_check_fields(struct command_context *context);

#endif

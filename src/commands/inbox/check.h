/* Checks that an existing table can be the inbox, and that the daemon's statements can be prepared
 * on the present one. For migrate and check-config. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_CHECK_H
#define RECEIPTD_COMMANDS_INBOX_CHECK_H

#include "../command.h"
#include "place.h"

/* Reads the row of sql/migrate/state.sql, which describes the inbox. NULL: the query failed. */
struct rcpt_session_rows *inbox_read_state(struct command_context *context);

/* Refuses (EX_CONFIG) an existing table whose receipts could not be exact: each problem on stderr,
 * with the SQL that mends it. Reads catalogs only. */
RCPT_MUST_CHECK bool inbox_check_table(struct command_context *context);

/* Prepares and plans the statements of `receiptd run` with this configuration, in the open
 * transaction. The inbox must exist. `role`: whose rights are used, if the session may take them;
 * NULL: the session's own. */
RCPT_MUST_CHECK bool inbox_check_statements(struct command_context *context, const char *role);

/* Refuses (EX_CONFIG) pipelines that read a column which the inbox does not have, and notes such
 * rules of folds on stderr. The inbox must exist. */
RCPT_MUST_CHECK bool inbox_check_fields(struct command_context *context);

#endif

/* The recent set of the inbox: an index over the newest messages of a large table whose ids are in
 * no order of time, or the newest partitions by created_at. Batches find their messages there first
 * (sql/lane/decide_recent.sql). */
#ifndef RECEIPTD_COMMANDS_INBOX_RECENT_H
#define RECEIPTD_COMMANDS_INBOX_RECENT_H

#include "../command.h"

/* Prints how batches find their messages in this inbox, and what would make that faster. Reads a
 * sample. `if_it_matters`: prints only if the inbox is large, or slow at any size. Prints nothing
 * if there is no inbox. False: the error is in the context. */
RCPT_MUST_CHECK bool recent_describe(struct command_context *context, bool if_it_matters);

/* Makes, moves or drops the recent set, as inbox.recent_rows says, and prints what it does. The
 * session must be the owner's, and in no transaction. A run that was interrupted is mended by the
 * next. */
RCPT_MUST_CHECK bool recent_maintain(struct command_context *context);

#endif

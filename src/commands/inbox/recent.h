/* The recent set of the inbox: an index over the newest messages of a large table whose ids are in
 * no order of time, or the newest partitions by created_at. Batches find their messages there first
 * (sql/lane/decide_recent.sql). */
#ifndef RECEIPTD_COMMANDS_INBOX_RECENT_H
#define RECEIPTD_COMMANDS_INBOX_RECENT_H

#include "../command.h"

/* Prints how batches find their messages in this inbox, and what would make it faster; with
 * `if_it_matters` only of a large one, or one that is slow at any size. Reads a sample. False: the
 * error is in the context. Nothing where there is no inbox. */
RCPT_MUST_CHECK bool recent_describe(struct command_context *context, bool if_it_matters);

/* Makes, moves or drops the recent set, as inbox.recent_rows says, and prints what it does. The
 * session must be the owner's, and in no transaction. A run that was interrupted is mended by the
 * next. */
RCPT_MUST_CHECK bool recent_maintain(struct command_context *context);

#endif

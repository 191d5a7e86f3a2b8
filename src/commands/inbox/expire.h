/* Expiry for other commands: maintain.c and funnel.c. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_EXPIRE_H
#define RECEIPTD_COMMANDS_INBOX_EXPIRE_H

#include "../command.h"
#include "receiptd/base/json.h"

/* Gives messages past their deadline the status of their rule, in steps, and prints their number. A
 * dry run prints the number that it would be. False: the error is in the context. */
RCPT_MUST_CHECK bool expire_messages(struct command_context *context, bool dry_run);

/* Counts messages that a rule of inbox.expiry may still change. The row has messages, due and until
 * (NULL: there is none). `campaign` NULL: all campaigns. NULL: the error is in the context. */
RCPT_MUST_CHECK struct rcpt_session_rows *expire_pending(struct command_context *context,
                                                         const char *campaign);
/* Writes the row as the member `pending` of an object, and prints it as a line for people. NULL:
 * nothing. */
void expire_write_pending(struct rcpt_json *json, const struct rcpt_session_rows *pending);
void expire_print_pending(const struct rcpt_session_rows *pending);

#endif

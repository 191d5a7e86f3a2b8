/* What expire.c offers to the other commands. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_EXPIRE_H
#define RECEIPTD_COMMANDS_INBOX_EXPIRE_H

#include "../command.h"
#include "receiptd/base/json.h"

/* Gives messages that have waited too long the status of their rule, in steps; says on stdout how
 * many. A dry run says how many it would be. False: the error is in the context. */
RCPT_MUST_CHECK bool expire_messages(struct command_context *context, bool dry_run);

/* Messages that a rule of inbox.expiry may still change, as a row: messages, due, until (NULL:
 * there is none). `campaign` NULL: of all. NULL: the error is in the context. */
RCPT_MUST_CHECK struct rcpt_session_rows *expire_pending(struct command_context *context,
                                                         const char *campaign);
/* The row as the member `pending` of an object, and as a line for people where there is one. NULL
 * writes nothing. */
void expire_write_pending(struct rcpt_json *json, const struct rcpt_session_rows *pending);
void expire_print_pending(const struct rcpt_session_rows *pending);

#endif

/* Deletion for `receiptd maintain` (figures/maintain.c). A dry run says what would go. False: the
 * error is in the context. */
#ifndef RECEIPTD_COMMANDS_INBOX_RETIRE_H
#define RECEIPTD_COMMANDS_INBOX_RETIRE_H

#include "../command.h"

/* Partitions whose messages are all past their retention. */
RCPT_MUST_CHECK bool retire_partitions(struct command_context *context, bool dry_run);
/* These, and messages, aliases and parts row by row. */
RCPT_MUST_CHECK bool retire_all(struct command_context *context, bool dry_run);

#endif

/* Work of a command that one session at a time may do, over many transactions. Private to this
 * folder. */
#ifndef RECEIPTD_COMMANDS_TURNS_H
#define RECEIPTD_COMMANDS_TURNS_H

#include "command.h"

/* Takes the turn that the table of our schema stands for, up to command_close(), and says in
 * `taken` whether nobody else had it. False: the error is in the context. */
RCPT_MUST_CHECK bool turns_take(struct command_context *context, const char *table, bool *taken);

/* Within a transaction: runs a file that waits for a lock, and names those that hold it; after half
 * a minute an error says to repeat the command. */
RCPT_MUST_CHECK bool turns_wait(struct command_context *context, const char *file);

#endif

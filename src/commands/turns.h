/* Turns: work over many transactions that one session at a time may do. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_TURNS_H
#define RECEIPTD_COMMANDS_TURNS_H

#include "command.h"

/* Takes the turn of a table in receiptd's schema, up to command_close(). `taken` is false if
 * another session has it. False: the error is in the context. */
RCPT_MUST_CHECK bool turns_take(struct command_context *context, const char *table, bool *taken);

/* Runs a file that waits for a lock, in the open transaction, and names the sessions that hold it.
 * After half a minute an error says to repeat the command. */
RCPT_MUST_CHECK bool turns_wait(struct command_context *context, const char *file);

#endif

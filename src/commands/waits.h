/* Statements that wait for the transactions of others, as CREATE INDEX CONCURRENTLY does. Private
 * to this folder. */
#ifndef RECEIPTD_COMMANDS_WAITS_H
#define RECEIPTD_COMMANDS_WAITS_H

#include "command.h"

/* Runs it, and names on stderr each session that it waits for, by a second connection; where there
 * is none to be had, it runs without. */
RCPT_MUST_CHECK bool waits_execute(struct command_context *context, const char *sql);

#endif

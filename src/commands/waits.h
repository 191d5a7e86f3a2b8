/* Statements that wait for the transactions of others, as CREATE INDEX CONCURRENTLY does. Private
 * to this folder. */
#ifndef RECEIPTD_COMMANDS_WAITS_H
#define RECEIPTD_COMMANDS_WAITS_H

#include "command.h"

/* Runs the statement and names on stderr each session that it waits for. It asks by a second
 * connection, and names none if it cannot open one. */
RCPT_MUST_CHECK bool waits_execute(struct command_context *context, const char *sql);

#endif

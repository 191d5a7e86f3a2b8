/* Shared by the commands that try a sample: `intake --try` and `run --try`. */
#ifndef RECEIPTD_COMMANDS_TRY_H
#define RECEIPTD_COMMANDS_TRY_H

#include "command.h"

/* The standard input, bounded; the caller frees it. */
char *command_try_input(size_t *size);
/* Says that there is no such thing of this name, and which there are. Returns the exit code. */
int command_try_unknown(const char *what, const char *name,
                        const struct rcpt_gateway_account_config *entries, size_t count);
/* The entry of this name; NULL: there is none. */
const struct rcpt_gateway_account_config *command_try_find(
    const struct rcpt_gateway_account_config *entries, size_t count, const char *name);
int command_run_try(const struct command_call *call); /* run --try */

#endif

/* The part of `receiptd maintain` that recounts campaigns. Used by maintain.c. */
#ifndef RECEIPTD_COMMANDS_FIGURES_AUDIT_H
#define RECEIPTD_COMMANDS_FIGURES_AUDIT_H

#include "../command.h"

/* Recounts campaigns whose last recount is a day old, for a hundredth of the time since then, and
 * notes what it found (campaign_proof). False: the error is in the context. */
RCPT_MUST_CHECK bool audit_maintain(struct command_context *context);

#endif

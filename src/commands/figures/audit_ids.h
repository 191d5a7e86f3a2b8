/* `receiptd audit --ids`. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_FIGURES_AUDIT_IDS_H
#define RECEIPTD_COMMANDS_FIGURES_AUDIT_IDS_H

#include "../command.h"

/* Prints what it finds; `twins`: ids that stand in several rows. False: the error is in the
 * context. */
RCPT_MUST_CHECK bool audit_ids(struct command_context *context, enum command_format format,
                               int64_t *twins);

#endif

/* Storage parameters of the inbox, whose partitions and table may come from elsewhere. Private to
 * this folder. */
#ifndef RECEIPTD_COMMANDS_MIGRATE_SETTINGS_H
#define RECEIPTD_COMMANDS_MIGRATE_SETTINGS_H

#include "../command.h"

/* Sets those that are missing and says why; one that is set stays as it is. A table of the platform
 * keeps its parameters: `advises` prints recommendations for it. The session must be the owner's,
 * in no transaction. `dry_run`: prints the SQL instead, if the table is there already. */
RCPT_MUST_CHECK bool settings_apply(struct command_context *context, bool dry_run, bool advises);

#endif

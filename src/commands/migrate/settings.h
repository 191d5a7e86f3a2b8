/* Storage parameters of the inbox, whose partitions and table may come from elsewhere. Private to
 * this folder. */
#ifndef RECEIPTD_COMMANDS_MIGRATE_SETTINGS_H
#define RECEIPTD_COMMANDS_MIGRATE_SETTINGS_H

#include "../command.h"

/* Sets those that are missing and says why; one that is set stays as it is. On a table of the
 * platform's nothing is set: with `advises`, what is recommended is printed. As the owner, in no
 * transaction. `dry_run`: prints the SQL instead, if the table is there already. */
RCPT_MUST_CHECK bool settings_apply(struct command_context *context, bool dry_run, bool advises);

#endif

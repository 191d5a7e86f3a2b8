/* Warns of roles that may do more on the server than their work. For migrate and check-config.
 * Private to this folder. */
#ifndef RECEIPTD_COMMANDS_MIGRATE_POWERS_H
#define RECEIPTD_COMMANDS_MIGRATE_POWERS_H

#include "../command.h"

/* Prints on stderr which unneeded rights the session's role, the owner of the schema and the
 * `count` named roles have, with the SQL that takes them away. It refuses nothing: the first
 * migration needs CREATEROLE. NULL among the names is skipped. False: the query failed. */
RCPT_MUST_CHECK bool powers_describe(struct command_context *context, const char *const *names,
                                     size_t count);

#endif

/* Whether roles of ours may do more on the server than their work: for migrate and check-config.
 * Private to this folder. */
#ifndef RECEIPTD_COMMANDS_MIGRATE_POWERS_H
#define RECEIPTD_COMMANDS_MIGRATE_POWERS_H

#include "../command.h"

/* Says on stderr what the session's role, the owner of the schema and the `count` named roles may
 * do that nothing of ours needs, with the SQL that takes it away. It refuses nothing: the first
 * migration makes roles, so it needs CREATEROLE. NULL among the names is skipped. False: the query
 * failed. */
RCPT_MUST_CHECK bool powers_describe(struct command_context *context, const char *const *names,
                                     size_t count);

#endif

/* `receiptd audit`: messages about partitions that another program detaches or drops
 * (inbox.partitions: external). Private to this folder. */
#ifndef RECEIPTD_COMMANDS_FIGURES_AUDIT_PARTITIONS_H
#define RECEIPTD_COMMANDS_FIGURES_AUDIT_PARTITIONS_H

#include "../command.h"

/* The partitions that need attention, as they were when the audit began. */
struct audit_partitions {
    struct command_context *context;
    struct rcpt_session_rows *rows; /* command/audit_partitions.sql */
};

/* Refuses (EX_DATAERR) a repair while the messages of a partition count twice. Free it in any case.
 */
RCPT_MUST_CHECK bool audit_partitions_read(struct audit_partitions *partitions,
                                           struct command_context *context, bool repair);
void audit_partitions_free(struct audit_partitions *partitions);

/* Prints to stderr. `missing`: messages that the counters have and the inbox has not; `drifted`: a
 * cell was off; `repaired`: the missing ones were booked. */
void audit_partitions_print(const struct audit_partitions *partitions, int64_t missing,
                            bool drifted, bool repaired);

/* Settles dropped partitions, after a repair of all campaigns that left no drift. */
RCPT_MUST_CHECK bool audit_partitions_settle(const struct audit_partitions *partitions);

#endif

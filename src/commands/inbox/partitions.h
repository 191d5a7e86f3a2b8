/* Partitions of the inbox by the time in message ids (inbox.partitions): made ahead, moved into,
 * booked and dropped. Every message has a partition: the default one, message_inbox_other, takes
 * those that no other takes. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_PARTITIONS_H
#define RECEIPTD_COMMANDS_INBOX_PARTITIONS_H

#include "../command.h"
#include "keeps.h"

/* For `receiptd maintain`. With inbox.partitions own, it makes the partitions of the next spans,
 * and moves messages of the default partition that belong there. With external, it warns of
 * partitions that were not made in time or cannot be booked. Prints what it does. The session must
 * be the owner's, and in no transaction. */
RCPT_MUST_CHECK bool partitions_maintain(struct command_context *context);

/* The part of it that makes partitions, for `receiptd migrate`. */
RCPT_MUST_CHECK bool partitions_make(struct command_context *context);

/* For `receiptd retire`: books and drops partitions all of whose messages are past their retention;
 * `dry_run`: says which. */
RCPT_MUST_CHECK bool partitions_retire(struct command_context *context, const struct keeps *keeps,
                                       bool dry_run);

/* For `receiptd maintain`, with inbox.partitions own: freezes the oldest partition that ended two
 * days ago and is not frozen yet; one in a run. In no transaction. */
RCPT_MUST_CHECK bool partitions_freeze(struct command_context *context);

/* Whether retire need not read a part of the inbox with these bounds (NULL: none): it can have no
 * message past its retention, or it will soon be dropped as a whole. */
bool partitions_is_young(const struct rcpt_config *config, int64_t now_ms, const char *lower,
                         const char *upper);

/* Refuses (EX_CONFIG) an inbox that is not as inbox.partitions says, or that has too many
 * partitions which the message's id does not lead to (receipts/layout.h). Reads catalogs only.
 * Passes if there is no inbox. */
RCPT_MUST_CHECK bool partitions_check(struct command_context *context);

/* Warns of messages in the default partition, and of partitions that end soon. For check-config and
 * migrate. The default partition is left out if this role may not read it. */
RCPT_MUST_CHECK bool partitions_note(struct command_context *context);

#endif

/* Partitions of the inbox by the time in message ids (inbox.partitions): made ahead, moved into,
 * booked and dropped. The inbox is never without a partition for a message: those that no other
 * takes are in the default one, message_inbox_other. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_PARTITIONS_H
#define RECEIPTD_COMMANDS_INBOX_PARTITIONS_H

#include "../command.h"
#include "keeps.h"

/* For `receiptd maintain`, with inbox.partitions own: books and drops what a run before has left,
 * and makes the partitions of the next spans; messages of the default partition that belong there
 * are moved. With external: says what somebody else has missed. Prints what it does. The session
 * must be the owner's, and in no transaction. */
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

/* Whether a part of the inbox with these bounds (NULL: none) can have no message past its
 * retention, or will soon be dropped as a whole: then retire need not read it. */
bool partitions_is_young(const struct rcpt_config *config, int64_t now_ms, const char *lower,
                         const char *upper);

/* Refuses (EX_CONFIG) an inbox in too many partitions to which the message's id does not lead
 * (receipts/layout.h), or which is not as inbox.partitions says. Reads catalogs only; nothing where
 * there is no inbox. */
RCPT_MUST_CHECK bool partitions_check(struct command_context *context);

/* Says what is in the default partition, and until when there are partitions, where something is
 * amiss; for check-config and migrate. Nothing where this role may not read it. */
RCPT_MUST_CHECK bool partitions_note(struct command_context *context);

#endif

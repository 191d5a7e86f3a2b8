/* What the adapters of Meta's forms share. Private to src/gateways. */
#ifndef RECEIPTD_GATEWAYS_ADAPTERS_META_H
#define RECEIPTD_GATEWAYS_ADAPTERS_META_H

#include "gateways/gateway.h"

#define RCPT_META_STATUSES "/entry/*/changes/*/value/statuses/*" /* path of WhatsApp's receipts */

/* `other` of an adapter: an element of `changes`. */
const char *rcpt_meta_other(const struct rcpt_node *node);
/* An element of `messaging`: a receipt of Messenger or Instagram, or a message of a person's. */
void rcpt_messenger_item(struct rcpt_reading *reading, struct rcpt_draft *draft);

#endif

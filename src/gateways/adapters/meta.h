/* Shared by the adapters of Meta's forms. Private to src/gateways. */
#ifndef RECEIPTD_GATEWAYS_ADAPTERS_META_H
#define RECEIPTD_GATEWAYS_ADAPTERS_META_H

#include "../gateway.h"

#define RCPT_META_STATUSES "/entry/*/changes/*/value/statuses/*" /* path of WhatsApp's receipts */

/* WhatsApp's codes, which those that resell it pass on. */
/* clang-format off */
#define RCPT_WHATSAPP_REASONS                                                                      \
    {"368", RCPT_REASON_SENDER},     {"130429", RCPT_REASON_NETWORK},                             \
    {"130472", RCPT_REASON_BLOCKED}, {"131000", RCPT_REASON_NETWORK},                             \
    {"131016", RCPT_REASON_NETWORK}, {"131021", RCPT_REASON_INVALID},                             \
    {"131026", RCPT_REASON_INVALID}, {"131031", RCPT_REASON_SENDER},                              \
    {"131042", RCPT_REASON_CREDIT},  {"131045", RCPT_REASON_SENDER},                              \
    {"131047", RCPT_REASON_BLOCKED}, {"131048", RCPT_REASON_SPAM},                                \
    {"131049", RCPT_REASON_BLOCKED}, {"131050", RCPT_REASON_OPTED_OUT},                           \
    {"131051", RCPT_REASON_CONTENT}, {"131052", RCPT_REASON_CONTENT},                             \
    {"131053", RCPT_REASON_CONTENT}, {"1320*", RCPT_REASON_CONTENT},                              \
    {"1321*", RCPT_REASON_CONTENT}
/* clang-format on */

/* `other` of an adapter: an element of `changes`. */
const char *rcpt_meta_other(const struct rcpt_node *node);
/* An element of `messaging`: a receipt of Messenger or Instagram, or a message of a person's. */
void rcpt_messenger_item(struct rcpt_reading *reading, struct rcpt_draft *draft);

#endif

/* Between topics.c, which makes forms of records, and topic_detail.c, which says what a refusal
 * lacks. Private to the two. */
#ifndef RECEIPTD_GATEWAYS_TOPICS_INTERNAL_H
#define RECEIPTD_GATEWAYS_TOPICS_INTERNAL_H

#include "account.h"
#include "receiptd/core/record.h"

enum rcpt_reject_reason rcpt_topic_reason(const char *reason);
/* Names topic, gateway, and the field that is missing or the word that no table knows, with the
 * words that are known. Memory from the arena. */
const char *rcpt_topic_detail(const struct rcpt_gateway_account *account, const char *topic,
                              const struct rcpt_gateway_drop *drop, struct rcpt_arena *arena);

#endif

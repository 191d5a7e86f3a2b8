/* Amazon SNS, for the adapters of what comes through it. Private to src/gateways. */
#ifndef RECEIPTD_GATEWAYS_SNS_H
#define RECEIPTD_GATEWAYS_SNS_H

#include "gateway.h"

/* The envelope, as far as it was verified; NULL: there is none. */
const struct rcpt_node *rcpt_sns_envelope(const struct rcpt_reading *reading);
/* Whether it is https on sns.REGION.amazonaws.com(.cn). */
bool rcpt_sns_is_url(struct rcpt_text url);
/* eu-west-1 of arn:aws:sns:eu-west-1:123456789012:topic; at == NULL: it is no topic. */
struct rcpt_text rcpt_sns_region(const char *arn);
/* `open` of an adapter: takes the message out of the envelope, confirms subscriptions. */
void rcpt_sns_open(struct rcpt_reading *reading);

#endif

/* Amazon SNS, for the adapters whose events come through it. Private to src/gateways. */
#ifndef RECEIPTD_GATEWAYS_SNS_H
#define RECEIPTD_GATEWAYS_SNS_H

#include "gateway.h"

/* The envelope, as far as it was verified; NULL: there is none. */
const struct rcpt_node *rcpt_sns_envelope(const struct rcpt_reading *reading);
/* The region of https://sns.REGION.amazonaws.com(.cn)/…, `path` from the slash on; at == NULL: it
 * is no such URL. */
struct rcpt_text rcpt_sns_url_region(struct rcpt_text url, struct rcpt_text *path);
/* eu-west-1 of arn:aws:sns:eu-west-1:123456789012:topic; at == NULL: it is no topic. */
struct rcpt_text rcpt_sns_region(const char *arn);
/* `open` of an adapter: takes the message out of the envelope, confirms subscriptions. */
void rcpt_sns_open(struct rcpt_reading *reading);

#endif

/* The envelopes of Amazon's services around an event. Private to src/gateways. */
#ifndef RECEIPTD_GATEWAYS_ADAPTERS_AWS_H
#define RECEIPTD_GATEWAYS_ADAPTERS_AWS_H

#include "../gateway.h"
#include "../sns.h"

/* `open` of an adapter: the source's root becomes the event, or an array of events. */
void rcpt_aws_open(struct rcpt_reading *reading);

#endif

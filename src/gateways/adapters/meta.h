/* What Meta's products share. Private to src/gateways. */
#ifndef RECEIPTD_GATEWAYS_ADAPTERS_META_H
#define RECEIPTD_GATEWAYS_ADAPTERS_META_H

#include "gateways/gateway.h"

/* GET with hub.challenge: echoes it when the token is right. */
bool rcpt_meta_challenge(struct rcpt_reading *reading);

#endif

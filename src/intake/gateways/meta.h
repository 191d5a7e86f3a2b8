/* What Meta's products share. Private to the room. */
#ifndef RECEIPTD_INTAKE_META_H
#define RECEIPTD_INTAKE_META_H

#include "../gateway.h"

/* GET with hub.challenge: echoes it when the token is right. */
bool rcpt_meta_challenge(struct rcpt_reading *reading);

#endif

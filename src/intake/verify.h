/* Who has sent a request: one verifier per scheme. Private to the room.
 *
 * All compares are in constant time, all secrets of the account are tried, and nothing that was
 * computed leaves the verifier. OpenSSL's libcrypto does the arithmetic.
 */
#ifndef RECEIPTD_INTAKE_VERIFY_H
#define RECEIPTD_INTAKE_VERIFY_H

#include "receiptd/intake/adapter.h"

struct rcpt_reading;

/* Sets the verdict and its reason, and for schemes with a number used once the replay key. */
typedef void rcpt_verifier(struct rcpt_reading *reading);

rcpt_verifier rcpt_verify_shared, rcpt_verify_basic, rcpt_verify_bearer, rcpt_verify_header,
    rcpt_verify_query, rcpt_verify_hmac_hex, rcpt_verify_hmac_base64, rcpt_verify_standard,
    rcpt_verify_telnyx, rcpt_verify_url_hmac, rcpt_verify_address;
rcpt_verifier rcpt_verify_twilio, rcpt_verify_vonage_sms, rcpt_verify_vonage_messages,
    rcpt_verify_plivo, rcpt_verify_messagebird, rcpt_verify_sns, rcpt_verify_sendgrid,
    rcpt_verify_mailgun, rcpt_verify_meta, rcpt_verify_viber, rcpt_verify_line;

/* Checks address and credentials as the account wants it; fills verdict, reason and answer. True:
 * go on. */
bool rcpt_verify(struct rcpt_reading *reading);

#endif

/* The verifiers, one per scheme: they check the sender of a request, and the parts of it that the
 * verdict covers. Private to src/gateways.
 *
 * Only verified parts are applied. After rcpt_verify the reading's source holds only the verified
 * view, so templates and hooks cannot see parts that the scheme does not cover. All compares are in
 * constant time, all secrets of the account are tried, and no computed value leaves the verifier.
 * Before the verdict a request costs at most a few bytes of memory and a few passes for each of its
 * own bytes. OpenSSL's libcrypto does the arithmetic.
 */
#ifndef RECEIPTD_GATEWAYS_VERIFY_H
#define RECEIPTD_GATEWAYS_VERIFY_H

#include "receiptd/gateways/adapter.h"

struct rcpt_reading;

/* Sets the verdict and its reason, and for schemes with a number used once the replay key. If less
 * than its row's `covers` was signed, it narrows reading->covers, and leaves the signed fields in
 * reading->source. */
typedef void rcpt_verifier(struct rcpt_reading *reading);

rcpt_verifier rcpt_verify_shared, rcpt_verify_basic, rcpt_verify_bearer, rcpt_verify_header,
    rcpt_verify_query, rcpt_verify_hmac_hex, rcpt_verify_hmac_base64, rcpt_verify_standard,
    rcpt_verify_telnyx, rcpt_verify_url_hmac, rcpt_verify_address;
rcpt_verifier rcpt_verify_twilio, rcpt_verify_vonage_sms, rcpt_verify_vonage_messages,
    rcpt_verify_plivo, rcpt_verify_messagebird, rcpt_verify_sns, rcpt_verify_sendgrid,
    rcpt_verify_mailgun, rcpt_verify_meta, rcpt_verify_viber, rcpt_verify_line;

/* Parts of a request that a verdict covers. */
enum {
    RCPT_COVERS_BODY = 1,
    RCPT_COVERS_QUERY = 2,
    RCPT_COVERS_PATH = 4,
    RCPT_COVERS_HEADERS = 8,
    RCPT_COVERS_FORM = 16, /* the fields that the verifier left in source.form, not the body */
    RCPT_COVERS_ROOT = 32, /* the members that it left in source.root */
    RCPT_COVERS_ID = 64,   /* reading->signed_id alone names the message; the rest is hearsay */
    RCPT_COVERS_REQUEST =
        RCPT_COVERS_BODY | RCPT_COVERS_QUERY | RCPT_COVERS_PATH | RCPT_COVERS_HEADERS,
};

/* One row per scheme. docs/gateways.md has the same rows, and a test compares them. */
struct rcpt_scheme {
    const char *name;
    rcpt_verifier *verify;
    unsigned covers;        /* at most */
    const char *headers[2]; /* signed ones, where not all are covered */
    bool signs_url;         /* public_url is needed */
    const char *covered;    /* `covers` in words */
    const char *copy;       /* what a person who has captured a request can do with it */
};

extern const struct rcpt_scheme rcpt_schemes[];
extern const size_t rcpt_scheme_count;
const struct rcpt_scheme *rcpt_scheme_of(rcpt_verifier *verify); /* asserts that there is a row */

/* False after setting verdict and answer: the account does not take requests from this address. */
bool rcpt_verify_allows(struct rcpt_reading *reading);
/* Checks credentials as the account wants it; fills verdict, reason and answer. True: go on, with
 * the verified view. */
bool rcpt_verify(struct rcpt_reading *reading);

#endif

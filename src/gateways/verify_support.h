/* Shared by the verifiers. Private to src/gateways. */
#ifndef RECEIPTD_GATEWAYS_VERIFY_SUPPORT_H
#define RECEIPTD_GATEWAYS_VERIFY_SUPPORT_H

#include "gateway.h"

void rcpt_verdict(struct rcpt_reading *reading, enum rcpt_gateway_verdict verdict,
                  const char *reason);
/* VERIFIED or BAD. */
void rcpt_verdict_of(struct rcpt_reading *reading, bool same);
/* A verified request becomes stale when it was signed too long ago. */
void rcpt_verdict_age(struct rcpt_reading *reading, int64_t signed_us);
/* The replay key of a verified request. */
void rcpt_verdict_once(struct rcpt_reading *reading, struct rcpt_text key);

/* By how much a gateway's clock may differ from ours. */
#define RCPT_CLOCKS_DIFFER_US INT64_C(300000000)

/* A header that was signed stays in view. At most two. */
void rcpt_cover_header(struct rcpt_reading *reading, const char *name, struct rcpt_text value);

/* HMAC-SHA256 of the texts with some secret, in hex or base64. */
bool rcpt_hmac_matches(const struct rcpt_reading *reading, struct rcpt_text given, bool base64,
                       const struct rcpt_text *texts);
/* Sizes of an HMAC-SHA256 as text. */
#define RCPT_HEX_OF_SHA256    64u
#define RCPT_BASE64_OF_SHA256 44u
/* Entries of a list of signatures that are compared. */
#define RCPT_MAX_SIGNATURES 8u
/* Entries of the length that a signature has, behind `prefix`; returns how many, at most
 * RCPT_MAX_SIGNATURES of all that the list has. */
size_t rcpt_split_signatures(struct rcpt_text list, const char *separator, const char *prefix,
                             struct rcpt_text found[RCPT_MAX_SIGNATURES]);
/* The body, "" if there is none. */
struct rcpt_text rcpt_body_of(const struct rcpt_reading *reading);
/* Seconds since 1970 as microseconds; 0: no such number. */
int64_t rcpt_seconds_of(struct rcpt_text text);

/* URLs that the gateway may have signed: as configured, and without or with the port that the
 * scheme implies. `path_only` leaves the query out. Returns how many. */
#define RCPT_MAX_URLS 2u
unsigned rcpt_signed_urls(const struct rcpt_reading *reading, bool path_only,
                          struct rcpt_text urls[RCPT_MAX_URLS]);

/* Fields sorted by name, then value; new memory from the arena. `once`: equal ones count once. */
struct rcpt_form rcpt_sorted(const struct rcpt_form *form, bool once, struct rcpt_arena *arena);

#endif

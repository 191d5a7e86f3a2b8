/* The time that a message id begins with, so that the order of the texts is the order of time.
 * UUIDv7 (RFC 9562, section 5.7) and ULID start with the milliseconds since 1970, 48 bits. KSUID
 * (160 bits in base62) starts with the seconds since 1400000000, 32 bits. A snowflake id is a
 * decimal number that grows with the time. As text it grows only while the number of digits stays
 * the same, so it has an order and no bounds here. Pure. */
#ifndef RECEIPTD_CORE_ID_TIME_H
#define RECEIPTD_CORE_ID_TIME_H

#include <stdint.h>

#include "receiptd/base/error.h"

enum rcpt_id_kind { RCPT_ID_ANY, RCPT_ID_UUIDV7, RCPT_ID_ULID, RCPT_ID_KSUID, RCPT_ID_SNOWFLAKE };

#define RCPT_ID_BOUND_SIZE 32u
#define RCPT_ID_MOST_MS    ((INT64_C(1) << 48) - 1)

/* Whether ids of this kind have bounds: RCPT_ID_ANY and snowflakes do not. */
static inline bool rcpt_id_has_bounds(enum rcpt_id_kind kind)
{
    return kind != RCPT_ID_ANY && kind != RCPT_ID_SNOWFLAKE;
}

/* The least text that is not below any id of that millisecond: their common prefix. All ids of
 * earlier milliseconds are below it, byte by byte. A KSUID's bound is a whole id, of the second
 * that begins then or next. A time outside their range gives their first or last second. Asserts a
 * kind with bounds, and 0 <= ms <= RCPT_ID_MOST_MS. */
void rcpt_id_bound(enum rcpt_id_kind kind, int64_t ms, char bound[RCPT_ID_BOUND_SIZE]);

/* The milliseconds of an id, or of a bound; false if the text does not begin like an id of this
 * kind. */
RCPT_MUST_CHECK bool rcpt_id_time(enum rcpt_id_kind kind, const char *id, int64_t *ms);

/* A regular expression of PostgreSQL that whole ids match: in lower case for UUIDv7, in upper case
 * for ULID, since another case would break the order; letters of both cases for KSUID. */
const char *rcpt_id_pattern(enum rcpt_id_kind kind);

/* "UUIDv7", "ULID", "KSUID" and "snowflake"; asserts another kind than RCPT_ID_ANY. */
const char *rcpt_id_name(enum rcpt_id_kind kind);

#endif

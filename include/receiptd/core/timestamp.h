/* Event times: RFC 3339 texts and epoch numbers. Pure; no time zone database, no locale. */
#ifndef RECEIPTD_CORE_TIMESTAMP_H
#define RECEIPTD_CORE_TIMESTAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 3339 section 5.6 (also a blank or lower-case t/z, and offsets without colon, as gateways send
 * them). Fractions of any length are cut to microseconds; second 60 counts as 59.999999. Years
 * 1970…9999. False: not a time, out untouched. */
bool rcpt_timestamp_parse(const char *text, size_t size, int64_t *at_us);

/* A JSON number as text: epoch in seconds (below 1e11, with or without fraction) or milliseconds.
 * False as above. */
bool rcpt_timestamp_parse_epoch(const char *text, size_t size, int64_t *at_us);

/* "2026-11-21T02:30:00.123456Z". `text` has 28 bytes. */
void rcpt_timestamp_format(int64_t at_us, char text[28]);

#endif

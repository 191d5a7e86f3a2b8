/* Time zones: a fixed offset, or one of the IANA database by name, whose data the system keeps
 * (tzdata).
 *
 * A zone is read once and immutable afterwards. Local times become instants; nothing else is
 * needed here. */
#ifndef RECEIPTD_BASE_ZONE_H
#define RECEIPTD_BASE_ZONE_H

#include <stdint.h>

struct rcpt_zone;

/* "+05:30", "-0300", "Z", or a name such as Europe/Berlin, which is read from $TZDIR or the
 * system's folder. NULL: there is none; `problem` (static) then says why. The caller frees it. */
struct rcpt_zone *rcpt_zone_new(const char *name, const char **problem);
void rcpt_zone_free(struct rcpt_zone *zone);

/* Seconds since 1970 of a local time, itself in seconds since 1970 as if it were UTC.
 *
 * Where clocks go back, an hour comes twice: the later of its instants that is no later than
 * `latest_s` is meant, and the earlier one where neither is. Where they go forward, the hour
 * that is left out counts as if they had not. */
int64_t rcpt_zone_instant(const struct rcpt_zone *zone, int64_t local_s, int64_t latest_s);

#endif

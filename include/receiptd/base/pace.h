/* The rest between runs of work whose cost grows, so that all runs together take a small share of
 * the time.
 *
 * One long run is no proof of its cost: it may have waited for a lock, for the network or for a
 * server that stood still. So the shorter of the last two runs counts. Pure.
 */
#ifndef RECEIPTD_BASE_PACE_H
#define RECEIPTD_BASE_PACE_H

#include <stdint.h>

struct rcpt_pace {
    int64_t last_ms; /* of the run before; zeroed: there was none */
};

/* Notes a run. Returns how long to wait for the next one so that runs take 1/share of the time. */
int64_t rcpt_pace_wait_ms(struct rcpt_pace *pace, int64_t took_ms, int64_t share);

#endif

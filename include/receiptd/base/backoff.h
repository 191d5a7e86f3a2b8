/* Back-off with decorrelated jitter: each wait is drawn between the minimum and three times the
 * last one, capped.
 *
 * Pure: the random state is the caller's. Source of the form: "decorrelated jitter", AWS
 * architecture blog.
 */
#ifndef RECEIPTD_BASE_BACKOFF_H
#define RECEIPTD_BASE_BACKOFF_H

#include <stdint.h>

struct rcpt_backoff {
    int64_t min_ms, max_ms;
    int64_t last_ms; /* 0: the next wait is the first */
    uint64_t random; /* state of the generator; any seed */
};

void rcpt_backoff_init(struct rcpt_backoff *backoff, int64_t min_ms, int64_t max_ms, uint64_t seed);
int64_t rcpt_backoff_next_ms(struct rcpt_backoff *backoff);
void rcpt_backoff_reset(struct rcpt_backoff *backoff); /* after a success */

/* Next number of a splitmix64 sequence (Steele, Lea, Flood 2014); not for secrets. */
uint64_t rcpt_random_next(uint64_t *state);

#endif

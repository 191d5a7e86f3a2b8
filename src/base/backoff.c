/* How long to wait before the next attempt: decorrelated jitter, between the minimum and three
 * times the last wait, never above the maximum. Pure: the state, with its seed, is the caller's.
 * Used for the waits of lanes, publishers, calls of webhooks, connections and the cluster's
 * lookups. */
#include "receiptd/base/backoff.h"

/* splitmix64: good enough for jitter, and the same sequence for the same seed in the simulator. */
uint64_t rcpt_random_next(uint64_t *state)
{
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

void rcpt_backoff_init(struct rcpt_backoff *backoff, int64_t min_ms, int64_t max_ms, uint64_t seed)
{
    backoff->min_ms = min_ms > 0 ? min_ms : 1;
    backoff->max_ms = max_ms > backoff->min_ms ? max_ms : backoff->min_ms;
    backoff->last_ms = 0;
    backoff->random = seed;
}

/* Random within the whole span, so that instances which failed together do not try again
 * together. */
int64_t rcpt_backoff_next_ms(struct rcpt_backoff *backoff)
{
    int64_t last = backoff->last_ms > 0 ? backoff->last_ms : backoff->min_ms;
    int64_t ceiling = last * 3 < backoff->max_ms ? last * 3 : backoff->max_ms;
    uint64_t span = (uint64_t)(ceiling - backoff->min_ms) + 1;
    backoff->last_ms = backoff->min_ms + (int64_t)(rcpt_random_next(&backoff->random) % span);
    return backoff->last_ms;
}

void rcpt_backoff_reset(struct rcpt_backoff *backoff)
{
    backoff->last_ms = 0;
}

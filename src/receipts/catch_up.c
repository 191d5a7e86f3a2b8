/* Longer folding under load. A lane takes the queued records, batch.max_events at most. If all
 * partitions are behind, the limit is batch.catch_up times as high. Then no fresh receipt waits for
 * a long transaction, and more receipts of a message meet in it. Called by receipts.c.
 */
#include "internal.h"

#define BEHIND_MS 2000  /* a partition whose oldest receipt is older, by Kafka's timestamp */
#define IDLE_MS   60000 /* a partition without a receipt for so long is left out */

enum standing { STANDING_IDLE, STANDING_FRESH, STANDING_BEHIND };

/* Judges by the oldest receipt that is queued here, else by the records that lie in Kafka. */
static enum standing standing_of(struct receipts *receipts, uint32_t slot, int64_t now_ms)
{
    struct rcpt_engine_partition_view view = rcpt_engine_view_partition(receipts->engine, slot);
    if (view.oldest_ms >= 0)
        return now_ms - view.oldest_ms < BEHIND_MS ? STANDING_FRESH : STANDING_BEHIND;
    int64_t high = consume_fetched_high(receipts, slot);
    int64_t age_ms = view.newest_ms >= 0 ? now_ms - view.newest_ms : -1;
    if (high < 0)
        return STANDING_FRESH; /* not known yet */
    if (high > consume_stands_at(receipts, slot))
        return age_ms < BEHIND_MS ? STANDING_FRESH : STANDING_BEHIND;
    return age_ms >= 0 && age_ms < IDLE_MS ? STANDING_FRESH : STANDING_IDLE;
}

/* One fresh partition is enough to keep batches short; idle ones do not count. */
static bool all_behind(struct receipts *receipts)
{
    int64_t now_ms = host_wall_ms();
    bool behind = false;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(receipts->engine); slot++) {
        if (!rcpt_engine_is_assigned(receipts->engine, slot))
            continue;
        enum standing standing = standing_of(receipts, slot, now_ms);
        if (standing == STANDING_FRESH)
            return false;
        behind = behind || standing == STANDING_BEHIND;
    }
    return behind;
}

bool catch_up_tick(struct receipts *receipts)
{
    bool behind = all_behind(receipts);
    if (behind == receipts->catching_up.on)
        return false;
    receipts->catching_up.on = behind;
    return true;
}

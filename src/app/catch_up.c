/* Longer folding under load. A lane takes what is queued, batch.max_events at most. Where all
 * partitions are behind, nobody's fresh receipts wait for a long transaction, and in a longer one
 * more receipts of a message meet: then the limit is batch.catch_up times as high.
 */
#include "app.h"

#define BEHIND_MS 2000  /* a partition whose oldest receipt is older, by Kafka's timestamp */
#define QUIET_MS  60000 /* a partition without a receipt for so long keeps nobody waiting */

enum standing { STANDING_QUIET, STANDING_FRESH, STANDING_BEHIND };

static enum standing standing_of(struct app *app, uint32_t slot, int64_t now_ms)
{
    struct rcpt_engine_partition_view view = rcpt_engine_view_partition(app->engine, slot);
    if (view.oldest_ms >= 0)
        return now_ms - view.oldest_ms < BEHIND_MS ? STANDING_FRESH : STANDING_BEHIND;
    int64_t high, lag, age_ms = view.newest_ms >= 0 ? now_ms - view.newest_ms : -1;
    if (!consume_view(app, slot, &high, &lag))
        return STANDING_FRESH; /* nobody knows yet */
    if (lag > 0)
        return age_ms < BEHIND_MS ? STANDING_FRESH : STANDING_BEHIND;
    return age_ms >= 0 && age_ms < QUIET_MS ? STANDING_FRESH : STANDING_QUIET;
}

static bool all_behind(struct app *app)
{
    int64_t now_ms = measure_wall_ms();
    bool behind = false;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(app->engine); slot++) {
        if (!rcpt_engine_is_assigned(app->engine, slot))
            continue;
        enum standing standing = standing_of(app, slot, now_ms);
        if (standing == STANDING_FRESH)
            return false;
        behind = behind || standing == STANDING_BEHIND;
    }
    return behind;
}

void catch_up_tick(struct app *app)
{
    bool behind = all_behind(app);
    if (behind == app->catching_up)
        return;
    app->catching_up = behind;
    struct rcpt_engine_settings settings;
    app_engine_settings(app, &settings);
    rcpt_engine_set_limits(app->engine, &settings);
    rcpt_log_debug("core", "%s; up to %u receipts a transaction",
                   behind ? "all partitions are behind" : "not all partitions are behind",
                   settings.batch_max_events);
}

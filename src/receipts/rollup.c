/* Housekeeping in the database: counters that lanes have appended are added to their totals every
 * counters.rollup_interval, and rows that are too old are deleted: of the timeline, dead letters,
 * ids of deleted messages. Any instance does this for all; two at once do no harm. Started by
 * receipts.c.
 */
#include <stdlib.h>

#include "internal.h"

#define REST        2 /* pause after a roll-up, in multiples of its duration */
#define WHOLE_SHARE 20
#define WHOLE_MS    60000 /* between two whole passes, at least */
#define TRIM_EVERY  10000
#define TRIM_ROWS   10000
#define TRIMS       3

/* A table whose old rows are deleted. */
struct trim {
    struct rollup *rollup;
    struct rcpt_ask ask;
    int64_t (*keep_ms)(const struct rcpt_config *config);
};

/* A roll-up reads above `bound` only, but a whole pass now and then reads all; see
 * sql/control/rollup.sql. */
struct rollup {
    struct receipts *receipts;
    struct rcpt_ask ask;
    struct trim trims[TRIMS];
    struct app_ticker ticker;
    uv_timer_t timer;
    int64_t bound, last, rest_until_ms, whole_at_ms;
    bool whole;
};

/* Columns of sql/control/rollup. */
enum { ROLLUP_ROWS, ROLLUP_LAST };

/* The next pass begins where the one before the last ended: a transaction that takes longer than an
 * interval to commit is found by the next whole pass. */
static void note(struct rollup *rollup, int64_t last)
{
    int64_t now = app_now(rollup->receipts->context);
    rollup->bound = rollup->last;
    if (last > rollup->last)
        rollup->last = last;
    if (!rollup->whole)
        return;
    int64_t wait = (now - rollup->ask.sent_ms) * WHOLE_SHARE;
    rollup->whole_at_ms = now + (wait > WHOLE_MS ? wait : WHOLE_MS);
}

static void roll_up(struct rollup *rollup)
{
    const struct app_context *context = rollup->receipts->context;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&rollup->ask);
    if (encoder == NULL)
        return;
    rollup->whole = app_now(context) >= rollup->whole_at_ms;
    rcpt_pg_add_int4(encoder, (int32_t)context->config->counters.rollup_rows);
    rcpt_pg_add_int8(encoder, rollup->whole ? 0 : rollup->bound);
    rcpt_ask_send(&rollup->ask);
}

/* A full pass is followed by another at once: there may be more rows. */
static void on_rolled_up(void *context, const struct rcpt_pg_rows *rows)
{
    struct rollup *rollup = context;
    const struct app_context *app = rollup->receipts->context;
    note(rollup, rcpt_pg_rows_int(rows, 0, ROLLUP_LAST));
    int64_t now = app_now(app);
    rollup->rest_until_ms = now + (now - rollup->ask.sent_ms) * REST;
    if (rcpt_pg_rows_int(rows, 0, ROLLUP_ROWS) >= (int64_t)app->config->counters.rollup_rows)
        roll_up(rollup);
}

static void on_timer(uv_timer_t *timer)
{
    struct rollup *rollup = timer->data;
    if (app_now(rollup->receipts->context) >= rollup->rest_until_ms)
        roll_up(rollup);
}

/* ---- rows that are too old ---- */

static int64_t timeline_keep(const struct rcpt_config *config)
{
    return config->timeline.retention_ms;
}

static int64_t letters_keep(const struct rcpt_config *config)
{
    return config->dead_letters.retention_ms;
}

static int64_t retired_keep(const struct rcpt_config *config)
{
    return config->inbox.remember_ms;
}

static const struct {
    const char *statement, *what;
    int64_t (*keep_ms)(const struct rcpt_config *config);
} trims[TRIMS] = {
    /* also after the timeline has been switched off, until it is empty */
    {"timeline_trim", "trimming of the timeline", timeline_keep},
    {"letter_trim", "trimming of dead letters", letters_keep},
    {"retired_trim", "trimming of ids of deleted messages", retired_keep},
};

static void trim(struct trim *trim)
{
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&trim->ask);
    if (encoder == NULL)
        return;
    rcpt_pg_add_int8(encoder, trim->keep_ms(trim->rollup->receipts->context->config));
    rcpt_pg_add_int4(encoder, TRIM_ROWS);
    rcpt_ask_send(&trim->ask);
}

static void trim_all(void *context)
{
    struct rollup *rollup = context;
    for (size_t index = 0; index < TRIMS; index++)
        trim(&rollup->trims[index]);
}

/* As long as a statement deletes as many rows as it may, the next follows. */
static void on_trimmed(void *context, const struct rcpt_pg_rows *rows)
{
    struct trim *trimmed = context;
    if (rcpt_pg_rows_int(rows, 0, 0) < TRIM_ROWS)
        return;
    trimmed->ask.at_ms = 0;
    trim(trimmed);
}

/* ---- life ---- */

struct rollup *rollup_new(struct receipts *receipts)
{
    struct rollup *rollup = rcpt_calloc(1, sizeof(*rollup));
    rollup->receipts = receipts;
    rollup->ask = (struct rcpt_ask){.asker = &receipts->control,
                                    .statement = "rollup",
                                    .what = "roll-up of counters",
                                    .context = rollup,
                                    .on_answer = on_rolled_up};
    for (size_t index = 0; index < TRIMS; index++) {
        struct trim *made = &rollup->trims[index];
        made->rollup = rollup;
        made->keep_ms = trims[index].keep_ms;
        made->ask = (struct rcpt_ask){.asker = &receipts->control,
                                      .statement = trims[index].statement,
                                      .what = trims[index].what,
                                      .context = made,
                                      .on_answer = on_trimmed,
                                      .every_ms = TRIM_EVERY};
    }
    rollup->ticker = (struct app_ticker){.tick = trim_all, .context = rollup};
    uv_timer_init(receipts->context->loop, &rollup->timer);
    rollup->timer.data = rollup;
    return rollup;
}

void rollup_start(struct rollup *rollup)
{
    for (size_t index = 0; index < TRIMS; index++)
        rollup->trims[index].ask.at_ms = app_now(rollup->receipts->context) + TRIM_EVERY;
    app_add_ticker(rollup->receipts->context, &rollup->ticker);
    rollup_apply_config(rollup);
}

/* Starting the timer again takes the new interval. */
void rollup_apply_config(struct rollup *rollup)
{
    uint64_t interval = (uint64_t)rollup->receipts->context->config->counters.rollup_interval_ms;
    uv_timer_start(&rollup->timer, on_timer, interval, interval);
}

void rollup_forget(struct rollup *rollup)
{
    rollup->bound = rollup->last = rollup->rest_until_ms = rollup->whole_at_ms = 0;
    rollup->whole = false;
}

void rollup_close(struct rollup *rollup)
{
    app_close_handle(rollup->receipts->context, (uv_handle_t *)&rollup->timer);
}

void rollup_free(struct rollup *rollup)
{
    free(rollup);
}

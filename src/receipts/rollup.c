/* Housekeeping in the database, every counters.rollup_interval. Rows that lanes have appended are
 * added to totals, and to groups of messages. Rows that are too old are deleted: of the timeline,
 * dead letters, ids of deleted messages, counts by time, and receipts remembered for dedup. Any
 * instance does this for all; two at once do no harm. Started by receipts.c.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* Pause after a roll-up, in multiples of its duration. Rules have many times as many cells as the
 * funnel: the longer a roll-up collects, the more changes meet in a cell. */
#define REST        2
#define TALLY_REST  5
#define WHOLE_SHARE 20
#define WHOLE_MS    60000 /* between two whole passes, at least */
#define TRIM_EVERY  10000
#define TRIM_ROWS   10000
#define TRIMS       7
#define PASSES      3

#define PARTS_KEEP_MS INT64_C(2592000000) /* 30 days */

/* A table whose old rows are deleted. */
struct trim {
    struct rollup *rollup;
    struct rcpt_ask ask;
    int64_t (*keep_ms[2])(const struct rcpt_config *config); /* one parameter each */
};

/* A roll-up reads above `bound` only, but a whole pass now and then reads all; see
 * sql/control/rollup.sql. */
struct pass {
    struct rollup *rollup;
    struct rcpt_ask ask;
    const char *deltas; /* $3 of sql/control/rollup; NULL: the statement has none */
    int64_t bound, last, rest, rest_until_ms, whole_at_ms;
    bool whole;
};

struct rollup {
    struct receipts *receipts;
    struct pass passes[PASSES];
    struct trim trims[TRIMS];
    struct host_ticker ticker;
    uv_timer_t timer;
};

/* Columns of sql/control/rollup. */
enum { ROLLUP_ROWS, ROLLUP_LAST };

/* The next pass begins where the one before the last ended: a transaction that takes longer than an
 * interval to commit is found by the next whole pass. */
static void note(struct pass *pass, int64_t last)
{
    int64_t now = host_now(pass->rollup->receipts->context);
    pass->bound = pass->last;
    if (last > pass->last)
        pass->last = last;
    if (!pass->whole)
        return;
    int64_t wait = (now - pass->ask.sent_ms) * WHOLE_SHARE;
    pass->whole_at_ms = now + (wait > WHOLE_MS ? wait : WHOLE_MS);
}

static void roll_up(struct pass *pass)
{
    const struct host_context *context = pass->rollup->receipts->context;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&pass->ask);
    if (encoder == NULL)
        return;
    pass->whole = host_now(context) >= pass->whole_at_ms;
    rcpt_pg_add_int4(encoder, (int32_t)context->config->counters.rollup_rows);
    rcpt_pg_add_int8(encoder, pass->whole ? 0 : pass->bound);
    if (pass->deltas != NULL)
        rcpt_pg_add_text(encoder, pass->deltas);
    rcpt_ask_send(&pass->ask);
}

/* A full pass is followed by another at once: there may be more rows. */
static void on_rolled_up(void *context, const struct rcpt_pg_rows *rows)
{
    struct pass *pass = context;
    const struct host_context *app = pass->rollup->receipts->context;
    note(pass, rcpt_pg_rows_int(rows, 0, ROLLUP_LAST));
    int64_t now = host_now(app);
    pass->rest_until_ms = now + (now - pass->ask.sent_ms) * pass->rest;
    if (rcpt_pg_rows_int(rows, 0, ROLLUP_ROWS) >= (int64_t)app->config->counters.rollup_rows)
        roll_up(pass);
}

static void on_timer(uv_timer_t *timer)
{
    struct rollup *rollup = timer->data;
    for (size_t index = 0; index < PASSES; index++)
        if (host_now(rollup->receipts->context) >= rollup->passes[index].rest_until_ms)
            roll_up(&rollup->passes[index]);
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

static int64_t series_keep(const struct rcpt_config *config)
{
    return config->counters.series_ms;
}

static int64_t gateways_keep(const struct rcpt_config *config)
{
    return config->counters.gateways_ms;
}

/* Longer than any gateway tries to deliver. */
static int64_t parts_keep(const struct rcpt_config *config)
{
    (void)config;
    return PARTS_KEEP_MS;
}

/* Dedup that is off here may be on in another instance, so keys stay for the longest window. */
static int64_t dedup_keep(const struct rcpt_config *config)
{
    return config->dedup.window_ms > 0 ? config->dedup.window_ms : RCPT_CONFIG_LONGEST_WINDOW_MS;
}

static const struct {
    const char *statement, *deltas, *what;
    int64_t rest;
} passes[PASSES] = {
    {"rollup", "funnel", "roll-up of counters", REST},
    {"rollup", "rules", "roll-up of counts by rules", TALLY_REST},
    {"rollup_groups", NULL, "roll-up of groups of messages", REST},
};

static const struct {
    const char *statement, *what;
    int64_t (*keep_ms[2])(const struct rcpt_config *config);
} trims[TRIMS] = {
    /* also after the timeline has been switched off, until it is empty */
    {"timeline_trim", "trimming of the timeline", {timeline_keep, NULL}},
    {"letter_trim", "trimming of dead letters", {letters_keep, NULL}},
    {"retired_trim", "trimming of ids of deleted messages", {retired_keep, NULL}},
    {"tally_trim", "trimming of counts by time", {series_keep, gateways_keep}},
    {"parts_trim", "trimming of parts of messages", {parts_keep, NULL}},
    {"ranges_trim", "trimming of ranges that no lane resolves", {parts_keep, NULL}},
    {"dedup_trim", "trimming of receipts remembered for dedup", {dedup_keep, NULL}},
};

static void trim(struct trim *trim)
{
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&trim->ask);
    if (encoder == NULL)
        return;
    for (size_t index = 0; index < 2 && trim->keep_ms[index] != NULL; index++)
        rcpt_pg_add_int8(encoder, trim->keep_ms[index](trim->rollup->receipts->context->config));
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
    for (size_t index = 0; index < PASSES; index++) {
        struct pass *made = &rollup->passes[index];
        made->rollup = rollup;
        made->deltas = passes[index].deltas;
        made->rest = passes[index].rest;
        made->ask = (struct rcpt_ask){.asker = &receipts->control,
                                      .statement = passes[index].statement,
                                      .what = passes[index].what,
                                      .context = made,
                                      .on_answer = on_rolled_up};
    }
    for (size_t index = 0; index < TRIMS; index++) {
        struct trim *made = &rollup->trims[index];
        made->rollup = rollup;
        memcpy(made->keep_ms, trims[index].keep_ms, sizeof(made->keep_ms));
        made->ask = (struct rcpt_ask){.asker = &receipts->control,
                                      .statement = trims[index].statement,
                                      .what = trims[index].what,
                                      .context = made,
                                      .on_answer = on_trimmed,
                                      .every_ms = TRIM_EVERY};
    }
    rollup->ticker = (struct host_ticker){.tick = trim_all, .context = rollup};
    uv_timer_init(receipts->context->loop, &rollup->timer);
    rollup->timer.data = rollup;
    return rollup;
}

void rollup_start(struct rollup *rollup)
{
    for (size_t index = 0; index < TRIMS; index++)
        rollup->trims[index].ask.at_ms = host_now(rollup->receipts->context) + TRIM_EVERY;
    host_add_ticker(rollup->receipts->context, &rollup->ticker);
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
    for (size_t index = 0; index < PASSES; index++) {
        struct pass *pass = &rollup->passes[index];
        pass->bound = pass->last = pass->rest_until_ms = pass->whole_at_ms = 0;
        pass->whole = false;
    }
}

void rollup_close(struct rollup *rollup)
{
    host_close_handle(rollup->receipts->context, (uv_handle_t *)&rollup->timer);
}

void rollup_free(struct rollup *rollup)
{
    free(rollup);
}

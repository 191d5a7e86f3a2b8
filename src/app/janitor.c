#include <stdio.h>
#include <string.h>

#include "app.h"

#define TICK_MS          50
#define EVICT_MS         1000 /* between two looks at who blocks us */
#define EVICT_MIN_MS     50
#define BLOCKED_AFTER_MS 1500 /* a transaction in flight for this long may wait for somebody */
#define LOOKS_OF_A_WAIT  3    /* at least, before lock_timeout ends it */
#define PROBE_SHARE      20   /* looks at parked rows take at most 1/20 of the time */
#define ROLLUP_REST      2    /* times as long as a roll-up took there is none */
#define WHOLE_ROLLUP_MS  60000
#define SNAPSHOT_WARN_MS (10 * 60 * 1000)
#define WATCH_MS         10000
#define TRIM_ROWS        10000

/* Control statements that fail are tried again by their timers; what needs a new connection gets
 * one. */
static bool failed(struct app *app, const char *what, const struct rcpt_error *error)
{
    if (error == NULL)
        return false;
    if (error->code[0] == '\0' || app->stopping)
        return true; /* the connection is gone: on_down says it */
    rcpt_log_warn("postgres", "%s failed, will be tried again: %s (%s)%s%s", what, error->text,
                  error->code, error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
    if (error->decision == RCPT_DECISION_RECONNECT)
        rcpt_pg_reconnect(app->control, error);
    return true;
}

static bool can_ask(const struct app *app)
{
    return app->control_up && !app->stopping && rcpt_pg_is_ready(app->control);
}

/* ---- roll-up of counter deltas ---- */

static void roll_up(struct app *app);

/* The next pass begins where the one before the last ended: whoever takes longer than an interval
 * to commit is found by the next whole pass. */
static void note_rollup(struct app *app, int64_t last)
{
    int64_t now = app_now(app);
    app->rollup.bound = app->rollup.last;
    if (last > app->rollup.last)
        app->rollup.last = last;
    if (!app->rollup.whole)
        return;
    int64_t wait = (now - app->rollup.started_ms) * PROBE_SHARE;
    app->rollup.whole_at_ms = now + (wait > WHOLE_ROLLUP_MS ? wait : WHOLE_ROLLUP_MS);
}

static void on_rolled_up(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                         const struct rcpt_error *error)
{
    struct app *app = context;
    app->rollup_flying = false;
    if (failed(app, "roll-up of counters", error))
        return;
    RCPT_ASSERT(row_count == 1);
    note_rollup(app, rcpt_pg_rows_int(rows[0], 0, 1));
    int64_t now = app_now(app);
    app->rollup.rest_until_ms = now + (now - app->rollup.started_ms) * ROLLUP_REST;
    if (rcpt_pg_rows_int(rows[0], 0, 0) >= (int64_t)app->config->counters.rollup_rows)
        roll_up(app);
}

static void roll_up(struct app *app)
{
    if (!can_ask(app) || app->rollup_flying)
        return;
    app->rollup_flying = true;
    app->rollup.started_ms = app_now(app);
    app->rollup.whole = app->rollup.started_ms >= app->rollup.whole_at_ms;
    struct rcpt_pg_query query = {.statement = "rollup"};
    rcpt_pg_encoder_reset(app->encoder);
    rcpt_pg_add_int4(app->encoder, (int32_t)app->config->counters.rollup_rows);
    rcpt_pg_add_int8(app->encoder, app->rollup.whole ? 0 : app->rollup.bound);
    rcpt_pg_encoder_params(app->encoder, &query.params);
    rcpt_pg_submit(app->control, &query, 1, on_rolled_up, app);
}

static void on_rollup_timer(uv_timer_t *timer)
{
    struct app *app = timer->data;
    if (app_now(app) >= app->rollup.rest_until_ms)
        roll_up(app);
}

/* ---- parked rows: which lanes have something to wake ---- */

static void set_parked_rows(struct app *app, int64_t rows)
{
    app->parked_rows = rows;
    bool full = rows >= (int64_t)app->config->parked.max_rows;
    if (full != app->parking_full)
        rcpt_log_warn("app",
                      full ? "%lld receipts wait for their message: parked.max_rows is reached, "
                             "nothing more is "
                             "taken in until some are gone"
                           : "%lld receipts wait for their message: taking in again",
                      (long long)rows);
    app->parking_full = full;
    rcpt_engine_set_parking_full(app->engine, full);
}

void janitor_count_parked(struct app *app, uint32_t rows)
{
    if (rows > 0)
        set_parked_rows(app, app->parked_rows + rows);
}

/* A look costs what the backlog costs; the next one waits so long that all looks together stay a
 * small share. One that failed says nothing about the cost: it waited for somebody. */
static void schedule_probe(struct app *app, bool succeeded)
{
    int64_t took = app_now(app) - app->probe_started_ms, wait = succeeded ? took * PROBE_SHARE : 0;
    if (wait < app->config->parked.poll_interval_ms)
        wait = app->config->parked.poll_interval_ms;
    if (!app->closing)
        uv_timer_start(&app->timers.parked, app->timers.parked.timer_cb, (uint64_t)wait, 0);
}

static void on_probed(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct app *app = context;
    schedule_probe(app, error == NULL);
    if (failed(app, "look at parked rows", error))
        return;
    RCPT_ASSERT(row_count == 1);
    int64_t parked = 0, oldest_ms = 0;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows[0]); row++) {
        uint32_t lane = (uint32_t)rcpt_pg_rows_int(rows[0], row, 0);
        parked += rcpt_pg_rows_int(rows[0], row, 3);
        if (rcpt_pg_rows_int(rows[0], row, 4) > oldest_ms)
            oldest_ms = rcpt_pg_rows_int(rows[0], row, 4);
        if (lane < app->config->lanes)
            rcpt_engine_wake(app->engine, lane, rcpt_pg_rows_bool(rows[0], row, 1),
                             rcpt_pg_rows_bool(rows[0], row, 2), app_now(app));
    }
    set_parked_rows(app, parked);
    app->figures.parked_oldest_ms = oldest_ms;
    if (!app->parking_full)
        consume_continue(app);
}

static void on_parked_timer(uv_timer_t *timer)
{
    struct app *app = timer->data;
    app->probe_started_ms = app_now(app);
    if (!can_ask(app)) {
        schedule_probe(app, false);
        return;
    }
    struct rcpt_pg_query query = {.statement = "parked_probe"};
    rcpt_pg_encoder_reset(app->encoder);
    lanes_put_assigned(app, app->encoder);
    rcpt_pg_add_int8(app->encoder, app->config->parked.max_age_ms);
    rcpt_pg_encoder_params(app->encoder, &query.params);
    rcpt_pg_submit(app->control, &query, 1, on_probed, app);
}

/* ---- blockers: a stalled client of our role that holds a row we need ---- */

static void on_evicted(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct app *app = context;
    app->evict_flying = false;
    if (failed(app, "look for blockers", error))
        return;
    RCPT_ASSERT(row_count == 1);
    for (size_t row = 0; row < rcpt_pg_rows_count(rows[0]); row++) {
        app->evictions++;
        rcpt_log_warn(
            "postgres",
            "ended backend %lld (%s): it blocked a lane with a transaction open for %lld ms",
            (long long)rcpt_pg_rows_int(rows[0], row, 0), rcpt_pg_rows_text(rows[0], row, 1),
            (long long)rcpt_pg_rows_int(rows[0], row, 2));
    }
}

/* A blocker is seen only while somebody waits for it, and nobody waits longer than lock_timeout:
 * where that is short there are more looks, and sooner. */
static int64_t evict_ms(const struct app *app, int64_t most)
{
    int64_t part = app->config->postgres.lock_timeout_ms / LOOKS_OF_A_WAIT;
    return part >= most ? most : part < EVICT_MIN_MS ? EVICT_MIN_MS : part;
}

static void on_evict_timer(uv_timer_t *timer)
{
    struct app *app = timer->data;
    rcpt_log_flush();
    endpoints_tick(app);
    int64_t pids[64];
    size_t count = 0;
    int64_t blocked_after = evict_ms(app, BLOCKED_AFTER_MS);
    for (unsigned index = 0; index < app->config->postgres.connections && count < 64; index++) {
        if (app->connections[index].up &&
            rcpt_engine_oldest_in_flight_ms(app->engine, index, app_now(app)) > blocked_after)
            pids[count++] = rcpt_pg_backend_pid(app->connections[index].pg);
    }
    if (count == 0 || app->evict_flying || !can_ask(app))
        return;
    app->evict_flying = true;
    struct rcpt_pg_query query = {.statement = "evict"};
    rcpt_pg_encoder_reset(app->encoder);
    rcpt_pg_begin_int4_array(app->encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int4(app->encoder, (int32_t)pids[index]);
    rcpt_pg_add_int8(app->encoder, app->config->postgres.zombie_timeout_ms);
    rcpt_pg_encoder_params(app->encoder, &query.params);
    rcpt_pg_submit(app->control, &query, 1, on_evicted, app);
}

/* ---- the rest ---- */

static void on_tick(uv_timer_t *timer)
{
    struct app *app = timer->data;
    measure_tick(app);
    rcpt_engine_tick(app->engine, app_now(app));
    positions_step(app);
    consume_tick(app);
    catch_up_tick(app);
    lanes_tick(app);
    control_tick(app);
}

static void on_commit_timer(uv_timer_t *timer)
{
    struct app *app = timer->data;
    if (app->kafka != NULL && !app->stopping)
        consume_commit(app);
}

/* The age is then that of the sessions that can be seen: said once, for no figure would show it. */
static void note_hidden(struct app *app, int64_t hidden)
{
    if (hidden > 0 && app->figures.hidden_backends == 0)
        rcpt_log_warn(
            "postgres",
            "the owner of %s.watch_server() may not look at %lld sessions of other roles: "
            "the age of their snapshots is not known; HINT: run receiptd migrate, it "
            "says what to grant",
            app->config->postgres.schema, (long long)hidden);
    app->figures.hidden_backends = hidden;
}

static void on_snapshot_age(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                            const struct rcpt_error *error)
{
    struct app *app = context;
    if (failed(app, "look for old snapshots", error))
        return;
    RCPT_ASSERT(row_count == 1);
    int64_t age = rcpt_pg_rows_int(rows[0], 0, 0);
    app->figures.snapshot_age_ms = age;
    app->figures.backends = rcpt_pg_rows_int(rows[0], 0, 3);
    app->figures.backends_most = rcpt_pg_rows_int(rows[0], 0, 4);
    note_hidden(app, rcpt_pg_rows_int(rows[0], 0, 5));
    if (age > SNAPSHOT_WARN_MS)
        rcpt_log_warn("postgres",
                      "backend %s (%s) keeps a snapshot open for %lld s: dead rows pile up",
                      rcpt_pg_rows_text(rows[0], 0, 1), rcpt_pg_rows_text(rows[0], 0, 2),
                      (long long)age / 1000);
}

void janitor_log_stats(struct app *app)
{
    const struct rcpt_engine_stats *now = rcpt_engine_get_stats(app->engine);
    struct rcpt_engine_stats *last = &app->last_stats;
    rcpt_log_info(
        "app",
        "events=%llu batches=%llu changed=%llu parked=%llu woken=%llu expired=%llu "
        "dead_letters=%llu "
        "lag_records=%lld waiting=%lld queue_bytes=%llu fenced=%llu retries=%llu lost_answers=%llu "
        "resync_ahead=%llu resync_back=%llu rewinds=%llu gaps=%llu evictions=%llu",
        (unsigned long long)(now->events_committed - last->events_committed),
        (unsigned long long)(now->batches - last->batches),
        (unsigned long long)(now->messages_changed - last->messages_changed),
        (unsigned long long)(now->events_parked - last->events_parked),
        (unsigned long long)(now->events_woken - last->events_woken),
        (unsigned long long)(now->events_expired - last->events_expired),
        (unsigned long long)(now->letters_committed - last->letters_committed),
        app->kafka != NULL ? (long long)consume_lag(app) : 0LL, (long long)app->parked_rows,
        (unsigned long long)now->bytes, (unsigned long long)now->fenced,
        (unsigned long long)now->retries, (unsigned long long)now->unknown,
        (unsigned long long)now->resync_ahead, (unsigned long long)now->resync_back,
        (unsigned long long)now->rewinds, (unsigned long long)now->gaps,
        (unsigned long long)app->evictions);
    *last = *now;
}

static void on_stats_timer(uv_timer_t *timer)
{
    struct app *app = timer->data;
    if (!app->stopping)
        janitor_log_stats(app);
}

/* ---- the timeline ---- */

static void trim_timeline(struct app *app);

static void on_trimmed(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct app *app = context;
    app->trim_flying = false;
    if (failed(app, "trimming of the timeline", error))
        return;
    RCPT_ASSERT(row_count == 1);
    if (rcpt_pg_rows_int(rows[0], 0, 0) >= TRIM_ROWS)
        trim_timeline(app);
}

/* Also after it has been switched off, until it is empty. */
static void trim_timeline(struct app *app)
{
    if (!can_ask(app) || app->trim_flying)
        return;
    app->trim_flying = true;
    struct rcpt_pg_query query = {.statement = "timeline_trim"};
    rcpt_pg_encoder_reset(app->encoder);
    rcpt_pg_add_int8(app->encoder, app->config->timeline.retention_ms);
    rcpt_pg_add_int4(app->encoder, TRIM_ROWS);
    rcpt_pg_encoder_params(app->encoder, &query.params);
    rcpt_pg_submit(app->control, &query, 1, on_trimmed, app);
}

static void on_watch_timer(uv_timer_t *timer)
{
    struct app *app = timer->data;
    if (!can_ask(app))
        return;
    trim_timeline(app);
    struct rcpt_pg_query query = {.statement = "snapshot_age"};
    rcpt_pg_submit(app->control, &query, 1, on_snapshot_age, app);
}

static void start_timer(uv_timer_t *timer, uv_timer_cb on_timer, int64_t interval_ms, bool repeat)
{
    if (interval_ms > 0)
        uv_timer_start(timer, on_timer, (uint64_t)interval_ms, repeat ? (uint64_t)interval_ms : 0);
    else
        uv_timer_stop(timer);
}

/* Those whose intervals are keys of the configuration. */
static void start_configured(struct app *app)
{
    const struct rcpt_config *config = app->config;
    start_timer(&app->timers.rollup, on_rollup_timer, config->counters.rollup_interval_ms, true);
    start_timer(&app->timers.commit, on_commit_timer, config->kafka.commit_interval_ms, true);
    start_timer(&app->timers.stats, on_stats_timer, config->log.stats_interval_ms, true);
}

void janitor_start(struct app *app)
{
    uv_timer_t *timers[] = {&app->timers.tick,  &app->timers.rollup, &app->timers.parked,
                            &app->timers.evict, &app->timers.commit, &app->timers.stats,
                            &app->timers.watch};
    for (size_t index = 0; index < sizeof(timers) / sizeof(timers[0]); index++) {
        uv_timer_init(&app->loop, timers[index]);
        timers[index]->data = app;
    }
    start_timer(&app->timers.tick, on_tick, TICK_MS, true);
    start_timer(&app->timers.parked, on_parked_timer, app->config->parked.poll_interval_ms, false);
    start_timer(&app->timers.evict, on_evict_timer, evict_ms(app, EVICT_MS), true);
    start_timer(&app->timers.watch, on_watch_timer, WATCH_MS, true);
    start_configured(app);
}

void janitor_restart(struct app *app)
{
    if (!app->closing)
        start_configured(app);
}

/* What happens becomes metrics: some of it when it happens, the rest when somebody asks. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "measure_process.h"
#include "measure_receipts.h"
#include "receiptd/version.h"

#define NS_PER_SECOND 1e9
#define TICK_NS       UINT64_C(50000000) /* of the janitor's tick */
#define STALLED_NS                                                                                 \
    UINT64_C(10000000000) /* without a tick of the loop, or with work that nobody does */

int64_t measure_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void set(struct app *app, enum rcpt_metric metric, double value)
{
    rcpt_metrics_set(app->figures.metrics, metric, RCPT_NO_LABELS, value);
}

static void set_of(struct app *app, enum rcpt_metric metric, const char *label, double value)
{
    rcpt_metrics_set(app->figures.metrics, metric, RCPT_LABELS(label), value);
}

void measure_start(struct app *app)
{
    app->figures.metrics = rcpt_metrics_new(rcpt_metrics_table(), RCPT_METRIC__COUNT);
    if (!app->config->intake.enabled)
        rcpt_metrics_hide(app->figures.metrics, RCPT_METRIC_INTAKE_ACCOUNT,
                          RCPT_METRIC_INTAKE_CLOSED + 1);
    app->figures.started_ms = app->figures.loaded_ms = measure_wall_ms();
    rcpt_config_hash(app->config, app->figures.config_hash);
    set_of(app, RCPT_METRIC_RELOADS, "applied", 0);
    set_of(app, RCPT_METRIC_RELOADS, "refused", 0);
    set_of(app, RCPT_METRIC_CONNECTION_FAILURES, "control", 0);
    measure_expect_gateway(app, "none");
}

void measure_fini(struct app *app)
{
    rcpt_metrics_free(app->figures.metrics);
}

/* ---- the loop ---- */

/* Memory is full (nearly: the last part is reserved) and all is up, yet nothing is in flight: our
 * own fault, whatever it is. */
static bool is_stuck(const struct app *app)
{
    const char *reasons[APP_MOST_REASONS];
    return rcpt_engine_bytes(app->engine) >= app->config->memory.budget_bytes / 4 * 3 &&
           rcpt_engine_is_settled(app->engine) && app_reasons(app, reasons) == 0 &&
           !app->parking_full;
}

void measure_tick(struct app *app)
{
    uint64_t now = uv_hrtime(), before = app->figures.tick_ns;
    app->figures.tick_ns = now;
    if (!is_stuck(app))
        app->figures.idle_since_ns = 0;
    else if (app->figures.idle_since_ns == 0)
        app->figures.idle_since_ns = now;
    if (before == 0)
        return;
    uint64_t took = now - before;
    rcpt_metrics_observe(app->figures.metrics, RCPT_METRIC_LOOP_DELAY, RCPT_NO_LABELS,
                         took > TICK_NS ? (double)(took - TICK_NS) / NS_PER_SECOND : 0);
}

bool measure_turns(const struct app *app)
{
    return app->figures.tick_ns == 0 || uv_hrtime() - app->figures.tick_ns < STALLED_NS;
}

bool measure_works(const struct app *app)
{
    return app->figures.idle_since_ns == 0 || uv_hrtime() - app->figures.idle_since_ns < STALLED_NS;
}

/* ---- brought up to date for a page ---- */

static void collect_engine(struct app *app)
{
    const struct rcpt_engine_stats *stats = rcpt_engine_get_stats(app->engine);
    set(app, RCPT_METRIC_RECORDS_RECEIVED, (double)stats->records);
    set_of(app, RCPT_METRIC_RECORDS_DROPPED, "old", (double)stats->dropped_old);
    set_of(app, RCPT_METRIC_RECORDS_DROPPED, "rewinding", (double)stats->dropped_rewinding);
    set(app, RCPT_METRIC_OFFSETS_SKIPPED, (double)stats->gaps);
    set(app, RCPT_METRIC_RETRIES, (double)stats->retries);
    set(app, RCPT_METRIC_FENCE_CONFLICTS, (double)stats->fenced);
    set(app, RCPT_METRIC_EXCLUSIVITY_CONFLICTS, (double)stats->contended);
    set_of(app, RCPT_METRIC_RESYNCS, "same", (double)stats->resync_same);
    set_of(app, RCPT_METRIC_RESYNCS, "ahead", (double)stats->resync_ahead);
    set_of(app, RCPT_METRIC_RESYNCS, "back", (double)stats->resync_back);
    set(app, RCPT_METRIC_RECORDS_REPLAYED, (double)stats->rewound);
    set(app, RCPT_METRIC_REWINDS, (double)stats->rewinds);
    set(app, RCPT_METRIC_QUEUE_BYTES, (double)stats->bytes);
    set(app, RCPT_METRIC_QUEUE_BUDGET, (double)app->config->memory.budget_bytes);
}

static void collect_gateways(struct app *app)
{
    for (uint32_t index = 0; index < RCPT_RECORD_MAX_GATEWAYS; index++) {
        uint64_t events = rcpt_decoder_gateway_events(app->decoder, index);
        if (events == 0)
            continue;
        set_of(app, RCPT_METRIC_EVENTS_RECEIVED, measure_gateway_name(app, index), (double)events);
        measure_expect_gateway(app, measure_gateway_name(app, index));
    }
}

static void collect_lanes(struct app *app)
{
    uint32_t states[8] = {0};
    for (uint32_t lane = 0; lane < app->config->lanes; lane++) {
        struct rcpt_engine_lane_view view = rcpt_engine_view_lane(app->engine, lane);
        char number[12];
        snprintf(number, sizeof(number), "%u", lane);
        set_of(app, RCPT_METRIC_LANE_RECORDS, number, view.records);
        for (unsigned state = 0; rcpt_engine_lane_state_name(state) != NULL; state++)
            states[state] += view.state == rcpt_engine_lane_state_name(state);
    }
    for (unsigned state = 0; rcpt_engine_lane_state_name(state) != NULL; state++)
        set_of(app, RCPT_METRIC_LANES, rcpt_engine_lane_state_name(state), states[state]);
}

/* Kafka's timestamp of the oldest record that is not applied, or what is known to lie before it. */
static int64_t shows_ms(const struct app *app, const struct rcpt_engine_partition_view *view,
                        int64_t lag, int64_t now_ms)
{
    if (view->oldest_ms >= 0)
        return view->oldest_ms;
    if (lag == 0)
        return now_ms;
    return view->newest_ms >= 0 ? view->newest_ms : app->figures.started_ms;
}

static double seconds_between(int64_t shows_ms, int64_t now_ms)
{
    return now_ms > shows_ms ? (double)(now_ms - shows_ms) / 1000 : 0;
}

double measure_lag_seconds(struct app *app)
{
    int64_t now_ms = measure_wall_ms(), high, lag;
    double oldest = 0;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(app->engine); slot++) {
        if (!rcpt_engine_is_assigned(app->engine, slot))
            continue;
        struct rcpt_engine_partition_view view = rcpt_engine_view_partition(app->engine, slot);
        (void)consume_view(app, slot, &high, &lag);
        double seconds = seconds_between(shows_ms(app, &view, lag, now_ms), now_ms);
        oldest = seconds > oldest ? seconds : oldest;
    }
    return oldest;
}

/* Returns the partition's lag in seconds. */
static double collect_partition(struct app *app, uint32_t slot, int64_t now_ms)
{
    struct rcpt_metrics *metrics = app->figures.metrics;
    struct rcpt_engine_partition_view view = rcpt_engine_view_partition(app->engine, slot);
    int64_t high, lag;
    char number[12];
    snprintf(number, sizeof(number), "%d", rcpt_engine_slot_partition(app->engine, slot));
    const char *const *labels = RCPT_LABELS(rcpt_engine_slot_topic(app->engine, slot), number);
    if (consume_view(app, slot, &high, &lag))
        rcpt_metrics_set(metrics, RCPT_METRIC_PARTITION_LAG_RECORDS, labels, (double)lag);
    int64_t shows = shows_ms(app, &view, lag, now_ms);
    double seconds = seconds_between(shows, now_ms);
    rcpt_metrics_set(metrics, RCPT_METRIC_PARTITION_POSITION, labels, (double)view.committed);
    rcpt_metrics_set(metrics, RCPT_METRIC_PARTITION_LAG_SECONDS, labels, seconds);
    rcpt_metrics_set(metrics, RCPT_METRIC_PARTITION_SHOWS, labels, (double)shows / 1000);
    return seconds;
}

static void collect_partitions(struct app *app)
{
    static const enum rcpt_metric each[] = {
        RCPT_METRIC_PARTITION_POSITION, RCPT_METRIC_PARTITION_LAG_RECORDS,
        RCPT_METRIC_PARTITION_LAG_SECONDS, RCPT_METRIC_PARTITION_SHOWS};
    int64_t now_ms = measure_wall_ms();
    double oldest = 0;
    unsigned assigned = 0;
    for (size_t index = 0; index < sizeof(each) / sizeof(each[0]); index++)
        rcpt_metrics_begin(app->figures.metrics, each[index]);
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(app->engine); slot++) {
        if (!rcpt_engine_is_assigned(app->engine, slot))
            continue;
        double seconds = collect_partition(app, slot, now_ms);
        oldest = seconds > oldest ? seconds : oldest;
        assigned++;
    }
    for (size_t index = 0; index < sizeof(each) / sizeof(each[0]); index++)
        rcpt_metrics_end(app->figures.metrics, each[index]);
    set(app, RCPT_METRIC_OLDEST_UNAPPLIED, oldest);
    set(app, RCPT_METRIC_PARTITIONS_ASSIGNED, assigned);
}

static void collect_connections(struct app *app)
{
    rcpt_metrics_begin(app->figures.metrics, RCPT_METRIC_CONNECTION_UP);
    set_of(app, RCPT_METRIC_CONNECTION_UP, "control", app->control_up);
    for (unsigned index = 0; index < app->config->postgres.connections; index++)
        set_of(app, RCPT_METRIC_CONNECTION_UP, app->connections[index].name,
               app->connections[index].up);
    rcpt_metrics_end(app->figures.metrics, RCPT_METRIC_CONNECTION_UP);
    set(app, RCPT_METRIC_KAFKA_UP, app->kafka_healthy);
    set(app, RCPT_METRIC_SNAPSHOT_AGE, (double)app->figures.snapshot_age_ms / 1000);
    set(app, RCPT_METRIC_BACKENDS, (double)app->figures.backends);
    set(app, RCPT_METRIC_BACKENDS_MOST, (double)app->figures.backends_most);
}

static void collect_state(struct app *app)
{
    struct rcpt_metrics *metrics = app->figures.metrics;
    rcpt_metrics_begin(metrics, RCPT_METRIC_BUILD);
    rcpt_metrics_set(metrics, RCPT_METRIC_BUILD,
                     RCPT_LABELS(RCPT_VERSION, rcpt_kafka_version(), app->figures.config_hash), 1);
    rcpt_metrics_end(metrics, RCPT_METRIC_BUILD);
    set(app, RCPT_METRIC_READY, app->ready);
    set(app, RCPT_METRIC_HALTED, app->halted);
    set(app, RCPT_METRIC_PAUSED, app->hold != APP_HOLD_NONE);
    set(app, RCPT_METRIC_EVICTIONS, (double)app->evictions);
    set(app, RCPT_METRIC_LAST_COMMIT, (double)app->figures.last_commit_ms / 1000);
    set(app, RCPT_METRIC_PARKED, (double)app->parked_rows);
    set(app, RCPT_METRIC_PARKED_OLDEST, (double)app->figures.parked_oldest_ms / 1000);
    set(app, RCPT_METRIC_LAST_RELOAD, (double)app->figures.loaded_ms / 1000);
}

char *measure_page(struct app *app, enum rcpt_metrics_format format, size_t *size)
{
    uint64_t began = uv_hrtime();
    collect_state(app);
    collect_engine(app);
    collect_gateways(app);
    collect_lanes(app);
    collect_partitions(app);
    collect_connections(app);
    if (app->intake != NULL)
        measure_intake(app->figures.metrics, app->intake);
    measure_process(app->figures.metrics, app->figures.started_ms);
    if (app->tracer != NULL)
        measure_tracing(app->figures.metrics, rcpt_tracer_get_stats(app->tracer));
    if (app->http != NULL)
        measure_http(app->figures.metrics, rcpt_http_stats(app->http));
    char *page = rcpt_metrics_render(app->figures.metrics, format, size);
    set(app, RCPT_METRIC_SCRAPE, (double)(uv_hrtime() - began) / NS_PER_SECOND);
    return page;
}

/* Metrics of `receiptd run` that are read from the engine and the modules for each page, instead of
 * being counted at each event. Also answers the two questions of /livez. Called by endpoints.c and
 * status.c; its ticker notices a loop that stalls. */
#include <stdio.h>
#include <stdlib.h>

#include "measure_receipts.h"
#include "receiptd/base/error.h"
#include "receiptd/base/version.h"
#include "receiptd/host/places.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/operate/operate.h"

#define NS_PER_SECOND 1e9
/* The delay of the loop is measured against this period. */
#define TICK_NS UINT64_C(50000000) /* HOST_TICK_MS */
/* Without a tick of the loop, or with work that is not done. */
#define STALLED_NS UINT64_C(10000000000)

struct measure {
    struct host_context *context;
    struct receipts *receipts;
    struct measure_source *sources;
    struct lane_observer observer;
    struct host_ticker ticker;
    uint64_t tick_ns;       /* of the last tick; 0: none yet */
    uint64_t idle_since_ns; /* work is there, all is up, and nothing is done; 0: not so */
    struct measure_receipts receipts_done;
};

static void set(struct measure *measure, enum rcpt_metric metric, double value)
{
    rcpt_metrics_set(measure->context->metrics, metric, RCPT_NO_LABELS, value);
}

static void set_of(struct measure *measure, enum rcpt_metric metric, const char *label,
                   double value)
{
    rcpt_metrics_set(measure->context->metrics, metric, RCPT_LABELS(label), value);
}

/* Series that may stay at 0 for long begin there, so that an alert sees their first increase.
 * Metrics of the intake and of the interface for readers are hidden unless they run in this
 * process. */
static void start_series(struct measure *measure)
{
    if (!measure->context->config->intake.enabled)
        rcpt_metrics_hide(measure->context->metrics, RCPT_METRICS_OF_INTAKE);
    if (!measure->context->config->serve.enabled)
        rcpt_metrics_hide(measure->context->metrics, RCPT_METRICS_OF_SERVE);
    set_of(measure, RCPT_METRIC_RELOADS, "applied", 0);
    set_of(measure, RCPT_METRIC_RELOADS, "refused", 0);
    set_of(measure, RCPT_METRIC_CONNECTION_FAILURES, "control", 0);
    measure_expect_gateway(&measure->receipts_done, "none");
}

static void on_tick(void *context);

/* Made before the lanes start, so that no answer is missed. */
struct measure *measure_new(struct host_context *context, struct receipts *receipts)
{
    struct measure *measure = rcpt_calloc(1, sizeof(*measure));
    *measure =
        (struct measure){.context = context,
                         .receipts = receipts,
                         .receipts_done = {.context = context, .receipts = receipts},
                         .observer = {.on_result = measure_result, .on_effects = measure_effects},
                         .ticker = {.tick = on_tick, .context = measure}};
    measure->observer.context = &measure->receipts_done;
    receipts_observe(receipts, &measure->observer);
    host_add_ticker(context, &measure->ticker);
    start_series(measure);
    return measure;
}

void measure_free(struct measure *measure)
{
    free(measure);
}

/* Modules that measure.c does not know add their figures; the source belongs to the module and
 * lives as long. */
void measure_add_source(struct measure *measure, struct measure_source *source)
{
    source->next = measure->sources;
    measure->sources = source;
}

int64_t measure_last_commit_ms(const struct measure *measure)
{
    return measure->receipts_done.last_commit_ms;
}

/* ---- the loop ---- */

/* Memory is full (three quarters: the last part is reserved), Kafka and PostgreSQL are up, yet no
 * transaction is in flight: this can only be a defect of the process. Checked with every tick, but
 * it has to last STALLED_NS to count. */
static bool is_stuck(const struct measure *measure)
{
    const char *reasons[HOST_MOST_REASONS];
    /* Readiness has no reasons: then Kafka and PostgreSQL are up, and no operator has paused it. */
    return rcpt_engine_bytes(receipts_engine(measure->receipts)) >=
               measure->context->config->memory.budget_bytes / 4 * 3 &&
           rcpt_engine_is_settled(receipts_engine(measure->receipts)) &&
           host_reasons(measure->context, reasons) == 0 &&
           !receipts_look(measure->receipts).parking_is_full;
}

/* The delay of the loop is the lateness of the ticker. */
static void on_tick(void *context)
{
    struct measure *measure = context;
    uint64_t now = uv_hrtime(), before = measure->tick_ns;
    measure->tick_ns = now;
    if (!is_stuck(measure))
        measure->idle_since_ns = 0;
    else if (measure->idle_since_ns == 0)
        measure->idle_since_ns = now;
    if (before == 0)
        return;
    uint64_t took = now - before;
    rcpt_metrics_observe(measure->context->metrics, RCPT_METRIC_LOOP_DELAY, RCPT_NO_LABELS,
                         took > TICK_NS ? (double)(took - TICK_NS) / NS_PER_SECOND : 0);
}

/* Asked from the loop itself by /livez, and by the watchdog of the supervisor. */
bool measure_turns(const struct measure *measure)
{
    return measure->tick_ns == 0 || uv_hrtime() - measure->tick_ns < STALLED_NS;
}

/* False restarts the process, so only a defect of its own may make it false. */
bool measure_works(const struct measure *measure)
{
    return measure->idle_since_ns == 0 || uv_hrtime() - measure->idle_since_ns < STALLED_NS;
}

/* ---- figures for a page ---- */

/* Counters that the engine keeps anyway: reading them costs nothing on the way of a receipt. */
static void collect_engine(struct measure *measure)
{
    const struct rcpt_engine_stats *stats =
        rcpt_engine_get_stats(receipts_engine(measure->receipts));
    set(measure, RCPT_METRIC_RECORDS_RECEIVED, (double)stats->records);
    set(measure, RCPT_METRIC_FENCE_CONFLICTS, (double)stats->fenced);
    set(measure, RCPT_METRIC_EXCLUSIVITY_CONFLICTS, (double)stats->contended);
    set_of(measure, RCPT_METRIC_RESYNCS, "same", (double)stats->resync_same);
    set_of(measure, RCPT_METRIC_RESYNCS, "ahead", (double)stats->resync_ahead);
    set_of(measure, RCPT_METRIC_RESYNCS, "back", (double)stats->resync_back);
    set(measure, RCPT_METRIC_RECORDS_REPLAYED, (double)stats->rewound);
    set(measure, RCPT_METRIC_REWINDS, (double)stats->rewinds);
    set(measure, RCPT_METRIC_QUEUE_BYTES, (double)stats->bytes);
    set(measure, RCPT_METRIC_QUEUE_BUDGET, (double)measure->context->config->memory.budget_bytes);
}

/* Series begin with their first receipt: most installations have one policy. */
static void collect_machines(struct measure *measure)
{
    for (unsigned cell = 0; cell < RCPT_MACHINE_KIND__COUNT * RCPT_MACHINE_POLICY__COUNT; cell++) {
        enum rcpt_machine_kind kind = cell / RCPT_MACHINE_POLICY__COUNT;
        enum rcpt_machine_policy policy = cell % RCPT_MACHINE_POLICY__COUNT;
        uint64_t events = receipts_machine_events(measure->receipts, kind, policy);
        if (events > 0)
            rcpt_metrics_set(
                measure->context->metrics, RCPT_METRIC_MACHINES,
                RCPT_LABELS(rcpt_machine_kind_name(kind), rcpt_machine_policy_name(policy)),
                (double)events);
    }
}

/* A gateway is known with its first receipt. */
static void collect_gateways(struct measure *measure)
{
    for (uint32_t index = 0; index < RCPT_RECORD_MAX_GATEWAYS; index++) {
        uint64_t events = receipts_gateway_events(measure->receipts, index);
        if (events == 0)
            continue;
        const char *name = measure_gateway_name(&measure->receipts_done, index);
        const struct rcpt_record_delays *delays = receipts_gateway_delays(measure->receipts, index);
        set_of(measure, RCPT_METRIC_EVENTS_RECEIVED, name, (double)events);
        rcpt_metrics_set_histogram(measure->context->metrics, RCPT_METRIC_EVENTS_DELAY,
                                   RCPT_LABELS(name), delays->buckets, delays->sum);
        measure_expect_gateway(&measure->receipts_done, name);
    }
}

/* How many lanes are in each state. */
static void collect_lanes(struct measure *measure)
{
    uint32_t states[8] = {0};
    for (uint32_t lane = 0; lane < measure->context->config->lanes; lane++) {
        struct rcpt_engine_lane_view view =
            rcpt_engine_view_lane(receipts_engine(measure->receipts), lane);
        for (unsigned state = 0; rcpt_engine_lane_state_name(state) != NULL; state++)
            states[state] += view.state == rcpt_engine_lane_state_name(state);
    }
    for (unsigned state = 0; rcpt_engine_lane_state_name(state) != NULL; state++)
        set_of(measure, RCPT_METRIC_LANES, rcpt_engine_lane_state_name(state), states[state]);
}

/* Kafka's timestamp of the oldest record that is not applied, or a time that is surely not later:
 * every receipt before it is visible. */
static int64_t shows_ms(const struct measure *measure,
                        const struct rcpt_engine_partition_view *view, int64_t lag, int64_t now_ms)
{
    if (view->oldest_ms >= 0)
        return view->oldest_ms;
    if (lag == 0)
        return now_ms;
    return view->newest_ms >= 0 ? view->newest_ms : measure->context->started_ms;
}

/* Clocks of brokers may be ahead: a lag is never negative. */
static double seconds_between(int64_t shows_ms, int64_t now_ms)
{
    return now_ms > shows_ms ? (double)(now_ms - shows_ms) / 1000 : 0;
}

/* For the line of the service manager; the page has it per partition. */
double measure_lag_seconds(const struct measure *measure)
{
    int64_t now_ms = host_wall_ms();
    double oldest = 0;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(receipts_engine(measure->receipts));
         slot++) {
        if (!rcpt_engine_is_assigned(receipts_engine(measure->receipts), slot))
            continue;
        struct rcpt_engine_partition_view view =
            rcpt_engine_view_partition(receipts_engine(measure->receipts), slot);
        int64_t lag = receipts_partition_lag(measure->receipts, slot);
        double seconds = seconds_between(shows_ms(measure, &view, lag, now_ms), now_ms);
        oldest = seconds > oldest ? seconds : oldest;
    }
    return oldest;
}

/* Unknown figures are left out. */
static void collect_partition(struct measure *measure, uint32_t slot, int64_t now_ms)
{
    struct rcpt_metrics *metrics = measure->context->metrics;
    struct rcpt_engine_partition_view view =
        rcpt_engine_view_partition(receipts_engine(measure->receipts), slot);
    int64_t lag = receipts_partition_lag(measure->receipts, slot);
    char number[12];
    snprintf(number, sizeof(number), "%d",
             rcpt_engine_slot_partition(receipts_engine(measure->receipts), slot));
    const char *const *labels =
        RCPT_LABELS(rcpt_engine_slot_topic(receipts_engine(measure->receipts), slot), number);
    if (lag >= 0)
        rcpt_metrics_set(metrics, RCPT_METRIC_PARTITION_LAG_RECORDS, labels, (double)lag);
    rcpt_metrics_set(metrics, RCPT_METRIC_PARTITION_POSITION, labels, (double)view.committed);
    if (lag < 0 && view.oldest_ms < 0)
        return;
    rcpt_metrics_set(metrics, RCPT_METRIC_PARTITION_LAG_SECONDS, labels,
                     seconds_between(shows_ms(measure, &view, lag, now_ms), now_ms));
}

/* Partitions that were revoked since the last page disappear with begin and end. */
static void collect_partitions(struct measure *measure)
{
    static const enum rcpt_metric each[] = {RCPT_METRIC_PARTITION_POSITION,
                                            RCPT_METRIC_PARTITION_LAG_RECORDS,
                                            RCPT_METRIC_PARTITION_LAG_SECONDS};
    int64_t now_ms = host_wall_ms();
    for (size_t index = 0; index < RCPT_COUNT_OF(each); index++)
        rcpt_metrics_begin(measure->context->metrics, each[index]);
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(receipts_engine(measure->receipts));
         slot++) {
        if (rcpt_engine_is_assigned(receipts_engine(measure->receipts), slot))
            collect_partition(measure, slot, now_ms);
    }
    for (size_t index = 0; index < RCPT_COUNT_OF(each); index++)
        rcpt_metrics_end(measure->context->metrics, each[index]);
}

/* Unknown figures are left out. */
static void set_place(struct rcpt_metrics *metrics, const char *reader,
                      const struct host_place *place)
{
    char number[12];
    snprintf(number, sizeof(number), "%d", place->partition);
    const char *const *labels = RCPT_LABELS(reader, place->topic, number);
    if (place->position >= 0)
        rcpt_metrics_set(metrics, RCPT_METRIC_PLACE_POSITION, labels, (double)place->position);
    if (place->lag >= 0)
        rcpt_metrics_set(metrics, RCPT_METRIC_PLACE_LAG, labels, (double)place->lag);
    if (place->owner != RCPT_KAFKA_OWNER_UNKNOWN)
        rcpt_metrics_set(metrics, RCPT_METRIC_PLACE_OWNED, labels,
                         place->owner == RCPT_KAFKA_OWNER_OURS);
}

/* All partitions of the topics, on any instance. */
static void collect_places(struct measure *measure)
{
    struct rcpt_metrics *metrics = measure->context->metrics;
    struct host_place place;
    for (unsigned metric = RCPT_METRIC_PLACE_POSITION; metric <= RCPT_METRIC_PLACE_OWNED; metric++)
        rcpt_metrics_begin(metrics, metric);
    for (const struct host_places *places = measure->context->places; places != NULL;
         places = host_places_next(places))
        for (size_t index = 0; host_places_get(places, index, &place); index++)
            set_place(metrics, host_places_reader(places), &place);
    for (unsigned metric = RCPT_METRIC_PLACE_POSITION; metric <= RCPT_METRIC_PLACE_OWNED; metric++)
        rcpt_metrics_end(metrics, metric);
}

/* Lanes may have fewer connections after a reload: the others disappear. */
static void collect_connections(struct measure *measure)
{
    struct receipts_connection_view connection;
    rcpt_metrics_begin(measure->context->metrics, RCPT_METRIC_CONNECTION_UP);
    for (unsigned index = 0; receipts_view_connection(measure->receipts, index, &connection);
         index++)
        set_of(measure, RCPT_METRIC_CONNECTION_UP, connection.name, connection.up);
    rcpt_metrics_end(measure->context->metrics, RCPT_METRIC_CONNECTION_UP);
}

/* BUILD is one series: a reload replaces its hash. */
static void collect_state(struct measure *measure)
{
    const struct host_context *context = measure->context;
    const struct receipts_view view = receipts_look(measure->receipts);
    char config_hash[17];
    rcpt_config_hash(context->config, config_hash);
    rcpt_metrics_begin(context->metrics, RCPT_METRIC_BUILD);
    rcpt_metrics_set(context->metrics, RCPT_METRIC_BUILD,
                     RCPT_LABELS(RCPT_VERSION, rcpt_kafka_version(), config_hash), 1);
    rcpt_metrics_end(context->metrics, RCPT_METRIC_BUILD);
    set(measure, RCPT_METRIC_READY, context->ready);
    set(measure, RCPT_METRIC_HALTED, context->halted > 0);
    set(measure, RCPT_METRIC_PAUSED, receipts_hold(measure->receipts) != RECEIPTS_HOLD_NONE);
    set(measure, RCPT_METRIC_KAFKA_UP, view.kafka_is_healthy);
    set(measure, RCPT_METRIC_PARKED, (double)view.parked_rows);
    set(measure, RCPT_METRIC_PARKED_FOR_ALIAS, (double)view.parked_for_alias);
    set(measure, RCPT_METRIC_PARKED_OLDEST, (double)view.parked_oldest_ms / 1000);
    set(measure, RCPT_METRIC_SNAPSHOT_AGE, (double)view.snapshot_age_ms / 1000);
    int64_t delta_ms = receipts_oldest_delta_ms(measure->receipts);
    set(measure, RCPT_METRIC_DELTA_AGE, delta_ms < 0 ? 0 : (double)delta_ms / 1000);
    set(measure, RCPT_METRIC_BACKENDS, (double)view.backends);
    set(measure, RCPT_METRIC_BACKENDS_MOST, (double)view.backends_most);
}

/* Each has one series; unknown figures disappear. */
static void collect_maintenance(struct measure *measure)
{
    const struct receipts_maintenance view = receipts_look_at_maintenance(measure->receipts);
    struct rcpt_metrics *metrics = measure->context->metrics;
    for (unsigned metric = RCPT_METRIC_MAINTAINED; metric <= RCPT_METRIC_DRIFTING; metric++)
        rcpt_metrics_begin(metrics, metric);
    if (view.is_known && view.is_wanted)
        set(measure, RCPT_METRIC_MAINTAINED, (double)view.walked_ms / 1000);
    if (view.is_known && view.other >= 0)
        set(measure, RCPT_METRIC_OTHER_MESSAGES, (double)view.other);
    if (view.is_known && view.unbooked >= 0)
        set(measure, RCPT_METRIC_PARTITIONS_UNBOOKED, (double)view.unbooked);
    if (view.is_known && view.has_partitions)
        set(measure, RCPT_METRIC_PARTITIONS_AHEAD, view.spans_ahead);
    if (view.is_known && view.proven_ms >= 0) {
        set(measure, RCPT_METRIC_PROVEN, (double)view.proven_ms / 1000);
        set(measure, RCPT_METRIC_DRIFTING, (double)view.drifting);
    }
    for (unsigned metric = RCPT_METRIC_MAINTAINED; metric <= RCPT_METRIC_DRIFTING; metric++)
        rcpt_metrics_end(metrics, metric);
}

/* SCRAPE is the duration of the page before, because this one is rendered already. */
char *measure_page(struct measure *measure, enum rcpt_metrics_format format, size_t *size)
{
    struct rcpt_metrics *metrics = measure->context->metrics;
    uint64_t began = uv_hrtime();
    collect_state(measure);
    collect_engine(measure);
    collect_gateways(measure);
    collect_machines(measure);
    collect_lanes(measure);
    collect_partitions(measure);
    collect_places(measure);
    collect_connections(measure);
    collect_maintenance(measure);
    measure_process(metrics, measure->context->started_ms);
    if (measure->context->tracer != NULL)
        measure_tracing(metrics, rcpt_tracer_get_stats(measure->context->tracer));
    for (struct measure_source *source = measure->sources; source != NULL; source = source->next)
        source->collect(source->context, metrics);
    char *page = rcpt_metrics_render(metrics, format, size);
    set(measure, RCPT_METRIC_SCRAPE, (double)(uv_hrtime() - began) / NS_PER_SECOND);
    return page;
}

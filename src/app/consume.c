#include <stdlib.h>
#include <string.h>

#include "app.h"

#define LOOK_MS 1000 /* between two looks at a partition whose log does not have what is wanted */

/* A partition's tag is its slot, so that a record needs no look-up by name. */
static void *tag_of(uint32_t slot)
{
    return (void *)(uintptr_t)(slot + 1);
}

static uint32_t slot_of(void *tag)
{
    return (uint32_t)((uintptr_t)tag - 1);
}

static bool wants(void *context, const char *topic, int32_t partition, void *tag)
{
    struct app *app = context;
    (void)topic;
    (void)partition;
    bool wanted = app->hold == APP_HOLD_NONE && rcpt_engine_wants(app->engine, slot_of(tag));
    app->starved |= !wanted;
    return wanted;
}

static void on_message(void *context, void *tag, const struct rcpt_kafka_message *message)
{
    struct app *app = context;
    uint32_t slot = slot_of(tag);
    if (!rcpt_engine_admits(app->engine, slot, message->offset))
        return;
    struct rcpt_record_input input = {
        .topic = message->topic,
        .partition = message->partition,
        .offset = message->offset,
        .timestamp_ms = message->timestamp_ms,
        .key = message->key,
        .key_size = message->key_size,
        .value = message->value,
        .value_size = message->value_size,
        .unreadable = message->unreadable,
        .traceparent = message->traceparent,
        .traceparent_size = message->traceparent_size,
    };
    uint64_t received_ns = trace_now(app);
    if (received_ns != 0) {
        input.tracestate = message->tracestate;
        input.tracestate_size = message->tracestate_size;
    }
    struct rcpt_record *record = rcpt_record_decode(app->decoder, &input);
    record->received_ns = received_ns;
    record->decoded_ns = trace_now(app);
    rcpt_engine_deliver_take(app->engine, slot, record, app_now(app));
}

static void on_round(void *context)
{
    struct app *app = context;
    rcpt_engine_tick(app->engine, app_now(app));
}

void consume_continue(struct app *app)
{
    if (!app->starved || app->stopping)
        return;
    app->starved = false;
    rcpt_kafka_kick(app->kafka);
}

/* ---- assignment ---- */

/* A reading that was asked for because of a log's beginning may end with the assignment it was for.
 */
static void forget_asked(struct app *app)
{
    for (uint32_t slot = 0; slot < app->range_count; slot++)
        app->ranges[slot].asked_low = app->ranges[slot].look_ms = 0;
}

static void on_assigned(void *context, const struct rcpt_kafka_partition *partitions, size_t count)
{
    struct app *app = context;
    rcpt_log_info("kafka", "assigned %zu partitions; reading their positions", count);
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_REBALANCES, RCPT_LABELS("assigned"), 1);
    forget_asked(app);
    positions_start(app, partitions, count);
}

static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct app *app = context;
    rcpt_log_info("kafka", "%s %zu partitions", lost ? "lost" : "revoked", count);
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_REBALANCES,
                     RCPT_LABELS(lost ? "lost" : "revoked"), 1);
    forget_asked(app);
    positions_withdraw(app);
    for (size_t index = 0; index < count; index++) {
        uint32_t slot =
            rcpt_engine_slot(app->engine, partitions[index].topic, partitions[index].partition);
        if (rcpt_engine_is_assigned(app->engine, slot))
            rcpt_engine_revoke(app->engine, slot);
    }
    app_update_readiness(app);
}

/* ---- the log does not have what we want ---- */

static void halt_on_range(struct app *app, const char *topic, int32_t partition, int64_t wanted,
                          int64_t low, int64_t high)
{
    struct rcpt_error error;
    if (wanted < low) {
        rcpt_error_fatal(&error, 65,
                         "topic %s partition %d: retention has deleted records %lld…%lld before "
                         "they were applied",
                         topic, partition, (long long)wanted, (long long)low - 1);
        rcpt_error_hint(
            &error,
            "kafka.on_retention_gap: skip goes on behind the gap and counts it; a longer retention "
            "avoids it");
    } else {
        rcpt_error_fatal(&error, 65,
                         "topic %s partition %d ends at %lld, but %lld was applied already: it was "
                         "truncated, or deleted and created anew",
                         topic, partition, (long long)high, (long long)wanted);
        rcpt_error_hint(
            &error, "compare the topic with consumer_progress; positions must be set on purpose");
    }
    app_halt(app, &error); /* this partition stands still, the others go on */
}

static struct app_range *range_of(struct app *app, uint32_t slot)
{
    if (slot >= app->range_count) {
        uint32_t count = rcpt_engine_slot_count(app->engine);
        app->ranges = rcpt_realloc(app->ranges, count * sizeof(*app->ranges));
        memset(app->ranges + app->range_count, 0,
               (count - app->range_count) * sizeof(*app->ranges));
        app->range_count = count;
    }
    return &app->ranges[slot];
}

/* From here on the partition is read from this offset, whatever was waited for before. */
static void reassign(struct app *app, uint32_t slot, int64_t offset)
{
    range_of(app, slot)->look_ms = 0;
    rcpt_kafka_reassign(app->kafka, rcpt_engine_slot_topic(app->engine, slot),
                        rcpt_engine_slot_partition(app->engine, slot), offset);
}

static void go_on_at(struct app *app, uint32_t slot, int64_t low)
{
    rcpt_engine_skip_to(app->engine, slot, low, app_now(app));
    reassign(app, slot, low);
}

/* A transaction of the owner before may still be on its way to the rows, for as long as a session
 * that blocks others is borne. */
static bool is_patient(const struct app *app, const struct app_range *range)
{
    return app_now(app) - range->since_ms < app->config->postgres.zombie_timeout_ms;
}

/* True: others may have gone on since the rows were read, so they are read again before anything is
 * given up, now and then for a while; as long as they do go on, it is not given up either. */
static bool look_again(struct app *app, uint32_t slot, int64_t wanted, int64_t low)
{
    struct app_range *range = range_of(app, slot);
    if (range->asked_low == 0 || wanted > range->asked_at)
        range->since_ms = app_now(app);
    bool moved = range->asked_low < low || wanted > range->asked_at;
    if (moved && positions_refresh(app)) {
        range->asked_low = low;
        range->asked_at = wanted;
    } else if (app->assignment.state == ASSIGNMENT_NONE) {
        range->look_ms = app_now(app) + LOOK_MS;
        return is_patient(app, range);
    }
    reassign(app, slot, wanted); /* it comes back here, whatever becomes of the reading */
    return true;
}

void consume_tick(struct app *app)
{
    for (uint32_t slot = 0; slot < app->range_count; slot++) {
        struct app_range *range = &app->ranges[slot];
        if (range->look_ms == 0 || app_now(app) < range->look_ms)
            continue;
        if (!range->stands_still && !app->stopping && rcpt_engine_is_assigned(app->engine, slot)) {
            positions_refresh(app);
            reassign(app, slot, range->asked_at);
        }
        range->look_ms = 0;
    }
}

static void on_out_of_range(void *context, void *tag, const char *topic, int32_t partition,
                            int64_t wanted, int64_t low, int64_t high)
{
    struct app *app = context;
    uint32_t slot = slot_of(tag);
    if (low < 0 || (wanted >= low && wanted <= high)) {
        reassign(app, slot, wanted); /* a broker's passing answer */
    } else if (wanted < low && low <= rcpt_engine_committed(app->engine, slot)) {
        /* Only what was applied is gone, and with it the record to compare with: nothing is lost.
         */
        go_on_at(app, slot, low);
    } else if (wanted < low && look_again(app, slot, wanted, low)) {
        return;
    } else if (wanted < low && app->config->kafka.on_retention_gap == RCPT_GAP_SKIP) {
        rcpt_log_error(
            "kafka",
            "topic %s partition %d: retention has deleted records %lld…%lld, going on behind them",
            topic, partition, (long long)wanted, (long long)low - 1);
        go_on_at(app, slot, low);
    } else {
        *range_of(app, slot) = (struct app_range){.stands_still = true};
        halt_on_range(app, topic, partition, wanted, low, high);
    }
}

void consume_port_rewind(void *context, uint32_t slot, int64_t offset)
{
    struct app *app = context;
    const char *topic = rcpt_engine_slot_topic(app->engine, slot);
    int32_t partition = rcpt_engine_slot_partition(app->engine, slot);
    if (range_of(app, slot)->stands_still)
        return; /* nobody has said that the log is the one that was consumed */
    rcpt_log_warn("core", "the database went back: topic %s partition %d is read again from %lld",
                  topic, partition, (long long)offset);
    range_of(app, slot)->look_ms = 0;
    rcpt_kafka_seek(app->kafka, topic, partition, offset);
}

void consume_port_reassign(void *context, uint32_t slot, int64_t offset)
{
    struct app *app = context;
    const char *topic = rcpt_engine_slot_topic(app->engine, slot);
    int32_t partition = rcpt_engine_slot_partition(app->engine, slot);
    if (range_of(app, slot)->stands_still)
        return;
    rcpt_log_warn(
        "core",
        "topic %s partition %d brought nothing after the rewind: assigning it again at %lld", topic,
        partition, (long long)offset);
    reassign(app, slot, offset);
}

/* ---- cluster, health ---- */

static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct app *app = context;
    free(app->cluster_id);
    app->cluster_id = rcpt_strdup(cluster_id != NULL ? cluster_id : "");
    for (size_t index = 0; index < count; index++) {
        for (size_t own = 0; own < app->topic_count; own++) {
            if (strcmp(app->topics[own].name, topics[index].topic) == 0)
                app->topics[own].partition_count = topics[index].partition_count;
        }
    }
    if (!app->subscribed && !app->stopping) {
        app->subscribed = true;
        rcpt_log_info("kafka", "cluster %s; joining group %s", app->cluster_id,
                      app->config->kafka.group);
        rcpt_kafka_subscribe(app->kafka);
    }
}

static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct app *app = context;
    if (!healthy && error->decision == RCPT_DECISION_FATAL) {
        app_fail(app, error);
        return;
    }
    app->kafka_healthy = healthy;
    if (!healthy)
        app_set_reason(app->kafka_reason, error);
    app_update_readiness(app);
}

static void on_closed(void *context)
{
    struct app *app = context;
    app->kafka = NULL;
    app->open--;
    app_check_drain(app);
}

bool consume_start(struct app *app, struct rcpt_error *error)
{
    const struct rcpt_config *config = app->config;
    struct rcpt_kafka_property *properties = app_kafka_properties(config);
    struct rcpt_kafka_settings settings = {
        .loop = &app->loop,
        .brokers = config->kafka.brokers,
        .group = config->kafka.group,
        .instance_id = config->kafka.instance_id,
        .topics = (const char *const *)config->kafka.topics,
        .topic_count = config->kafka.topics_count,
        .properties = properties,
        .property_count = config->kafka.properties_count,
        .fetch_budget_bytes = config->kafka.fetch_budget_bytes,
        .commit_interval_ms = config->kafka.commit_interval_ms,
        .callbacks = {.context = app,
                      .on_cluster = on_cluster,
                      .on_assigned = on_assigned,
                      .on_revoked = on_revoked,
                      .wants = wants,
                      .on_message = on_message,
                      .on_round = on_round,
                      .on_out_of_range = on_out_of_range,
                      .on_health = on_health,
                      .on_closed = on_closed},
    };
    rcpt_kafka_set_batch_limit(config->kafka.batch_limit_bytes);
    app->kafka = rcpt_kafka_new(&settings, error);
    free(properties);
    return app->kafka != NULL;
}

/* The kafka room needs the tags when positions.c answers the assignment. */
void consume_assign(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count)
{
    void **tags = rcpt_calloc(count + 1, sizeof(*tags));
    for (size_t index = 0; index < count; index++) {
        uint32_t slot =
            rcpt_engine_slot(app->engine, partitions[index].topic, partitions[index].partition);
        *range_of(app, slot) = (struct app_range){.asked_low = 0};
        tags[index] = tag_of(slot);
    }
    rcpt_kafka_assign(app->kafka, partitions, tags, count);
    free(tags);
}

void consume_reassign(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        const struct rcpt_kafka_partition *start = &partitions[index];
        uint32_t slot = rcpt_engine_slot(app->engine, start->topic, start->partition);
        range_of(app, slot)->stands_still = false;
        reassign(app, slot, start->offset);
    }
}

/* ---- advisory commit, lag ---- */

void consume_commit(struct app *app)
{
    uint32_t slots = rcpt_engine_slot_count(app->engine);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(slots + 1, sizeof(*partitions));
    size_t count = 0;
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (!rcpt_engine_is_assigned(app->engine, slot))
            continue;
        partitions[count++] = (struct rcpt_kafka_partition){
            .topic = rcpt_engine_slot_topic(app->engine, slot),
            .partition = rcpt_engine_slot_partition(app->engine, slot),
            .offset = rcpt_engine_committed(app->engine, slot),
        };
    }
    if (count > 0)
        rcpt_kafka_commit(app->kafka, partitions, count);
    free(partitions);
}

bool consume_view(struct app *app, uint32_t slot, int64_t *high, int64_t *lag)
{
    *high = app->kafka == NULL
                ? -1
                : rcpt_kafka_high_watermark(app->kafka, rcpt_engine_slot_topic(app->engine, slot),
                                            rcpt_engine_slot_partition(app->engine, slot));
    int64_t committed = rcpt_engine_committed(app->engine, slot);
    *lag = *high > committed ? *high - committed : 0;
    return *high >= 0;
}

int64_t consume_lag(struct app *app)
{
    int64_t sum = 0, high, lag;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(app->engine); slot++) {
        if (rcpt_engine_is_assigned(app->engine, slot) && consume_view(app, slot, &high, &lag))
            sum += lag;
    }
    return sum;
}

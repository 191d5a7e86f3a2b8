/* Kafka's side of the receipts: records to the engine, the group's words to the core's assignment
 * machine (receiptd/core/assignment.h), and what that machine asks of Kafka. Called back by the
 * kafka room, by that machine's ports, by run.c and the timers.
 */
#include <stdlib.h>

#include "app.h"

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

/* ---- the group, as the core's machine hears of it ---- */

/* The caller frees them. */
static uint32_t *slots_of(struct app *app, const struct rcpt_kafka_partition *partitions,
                          size_t count)
{
    uint32_t *slots = rcpt_calloc(count + 1, sizeof(*slots));
    for (size_t index = 0; index < count; index++)
        slots[index] =
            rcpt_engine_slot(app->engine, partitions[index].topic, partitions[index].partition);
    return slots;
}

static void on_assigned(void *context, const struct rcpt_kafka_partition *partitions, size_t count)
{
    struct app *app = context;
    rcpt_log_info("kafka", "assigned %zu partitions; reading their positions", count);
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_REBALANCES, RCPT_LABELS("assigned"), 1);
    uint32_t *slots = slots_of(app, partitions, count);
    rcpt_assignment_start(app->assignment, slots, count, app_now(app));
    free(slots);
}

static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct app *app = context;
    rcpt_log_info("kafka", "%s %zu partitions", lost ? "lost" : "revoked", count);
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_REBALANCES,
                     RCPT_LABELS(lost ? "lost" : "revoked"), 1);
    uint32_t *slots = slots_of(app, partitions, count);
    rcpt_assignment_revoke(app->assignment, slots, count, app_now(app));
    free(slots);
    app_update_readiness(app);
}

static void on_out_of_range(void *context, void *tag, const char *topic, int32_t partition,
                            int64_t wanted, int64_t low, int64_t high)
{
    struct app *app = context;
    (void)topic;
    (void)partition;
    rcpt_assignment_on_out_of_range(app->assignment, slot_of(tag), wanted, low, high, app_now(app));
}

/* ---- what that machine asks of Kafka: its ports ---- */

static struct rcpt_kafka_partition partition_of(const struct app *app, uint32_t slot,
                                                int64_t offset)
{
    return (struct rcpt_kafka_partition){
        .topic = rcpt_engine_slot_topic(app->engine, slot),
        .partition = rcpt_engine_slot_partition(app->engine, slot),
        .offset = offset,
    };
}

void consume_assign(void *context, const struct rcpt_assignment_start *starts, size_t count)
{
    struct app *app = context;
    void **tags = rcpt_calloc(count + 1, sizeof(*tags));
    struct rcpt_kafka_partition *partitions = rcpt_calloc(count + 1, sizeof(*partitions));
    for (size_t index = 0; index < count; index++) {
        partitions[index] = partition_of(app, starts[index].slot, starts[index].offset);
        tags[index] = tag_of(starts[index].slot);
    }
    rcpt_kafka_assign(app->kafka, partitions, tags, count);
    free(partitions);
    free(tags);
}

void consume_seek(void *context, uint32_t slot, int64_t offset)
{
    const struct app *app = context;
    struct rcpt_kafka_partition to = partition_of(app, slot, offset);
    rcpt_kafka_seek(app->kafka, to.topic, to.partition, to.offset);
}

void consume_reassign(void *context, uint32_t slot, int64_t offset)
{
    const struct app *app = context;
    struct rcpt_kafka_partition to = partition_of(app, slot, offset);
    rcpt_kafka_reassign(app->kafka, to.topic, to.partition, to.offset);
}

struct low_query { /* context of one answer: which assignment asked */
    struct app *app;
    uint32_t serial;
};

static void on_lows(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                    const struct rcpt_error *error)
{
    struct low_query query = *(struct low_query *)context;
    free(context);
    if (error != NULL) {
        positions_failed(query.app, query.serial, error);
        return;
    }
    int64_t *lows = rcpt_calloc(count + 1, sizeof(*lows));
    for (size_t index = 0; index < count; index++)
        lows[index] = partitions[index].offset;
    rcpt_assignment_on_lows(query.app->assignment, query.serial, lows, app_now(query.app));
    free(lows);
}

void consume_query_lows(void *context, uint32_t serial, const struct rcpt_assignment_new *wanted)
{
    struct app *app = context;
    size_t count = (size_t)(wanted->to - wanted->from);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(count + 1, sizeof(*partitions));
    struct low_query *query = rcpt_malloc(sizeof(*query));
    *query = (struct low_query){app, serial};
    for (size_t index = 0; index < count; index++)
        partitions[index] = (struct rcpt_kafka_partition){
            .topic = wanted->topic, .partition = wanted->from + (int32_t)index};
    rcpt_kafka_query_low(app->kafka, partitions, count, on_lows, query);
    free(partitions);
}

/* ---- cluster, health ---- */

static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct app *app = context;
    rcpt_assignment_set_cluster(app->assignment, cluster_id != NULL ? cluster_id : "");
    for (size_t index = 0; index < count; index++)
        rcpt_assignment_set_topic(app->assignment, topics[index].topic,
                                  topics[index].partition_count);
    if (!app->subscribed && !app->stopping) {
        app->subscribed = true;
        rcpt_log_info("kafka", "cluster %s; joining group %s",
                      rcpt_assignment_cluster(app->assignment), app->config->kafka.group);
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
    app->kafka = rcpt_kafka_new(&settings, error);
    free(properties);
    return app->kafka != NULL;
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
        partitions[count++] = partition_of(app, slot, rcpt_engine_committed(app->engine, slot));
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

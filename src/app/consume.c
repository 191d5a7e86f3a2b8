/* Kafka → engine: records are decoded and delivered as long as the engine wants more, partitions
 * are assigned once positions.c has their rows, and revoked; where the log does not have what is
 * wanted, rows are read again before anything is given up. Positions are committed to Kafka for
 * those who look at lag only. Called by librdkafka's consumer, by the engine (ports) and by
 * receipts.c. */
#include <stdlib.h>
#include <string.h>

#include "receipts_internal.h"

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
    struct receipts *receipts = context;
    (void)topic;
    (void)partition;
    bool wanted =
        receipts->hold == RECEIPTS_HOLD_NONE && rcpt_engine_wants(receipts->engine, slot_of(tag));
    receipts->starved |= !wanted;
    return wanted;
}

static void on_message(void *context, void *tag, const struct rcpt_kafka_message *message)
{
    struct receipts *receipts = context;
    uint32_t slot = slot_of(tag);
    if (!rcpt_engine_admits(receipts->engine, slot, message->offset))
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
    uint64_t received_ns = trace_now(receipts->context);
    if (received_ns != 0) {
        input.tracestate = message->tracestate;
        input.tracestate_size = message->tracestate_size;
    }
    struct rcpt_record *record = rcpt_record_decode(receipts->decoder, &input);
    record->received_ns = received_ns;
    record->decoded_ns = trace_now(receipts->context);
    rcpt_engine_deliver_take(receipts->engine, slot, record, app_now(receipts->context));
}

static void on_round(void *context)
{
    struct receipts *receipts = context;
    rcpt_engine_tick(receipts->engine, app_now(receipts->context));
}

void consume_continue(struct receipts *receipts)
{
    if (!receipts->starved || app_is_stopping(receipts->context))
        return;
    receipts->starved = false;
    rcpt_kafka_kick(receipts->kafka);
}

/* ---- an operator's word ---- */

void receipts_set_hold(struct receipts *receipts, enum receipts_hold hold)
{
    static const char *const texts[] = {[RECEIPTS_HOLD_NONE] = "taking in again",
                                        [RECEIPTS_HOLD_PAUSED] = "paused: nothing more is taken in",
                                        [RECEIPTS_HOLD_DRAINING] =
                                            "draining: nothing more is taken in",
                                        [RECEIPTS_HOLD_DRAINED] = "drained: nothing is queued"};
    if (receipts->hold == hold)
        return;
    receipts->hold = hold;
    rcpt_log_info("app", "%s", texts[hold]);
    app_update_readiness(receipts->context);
    if (hold == RECEIPTS_HOLD_NONE)
        consume_continue(receipts);
}

enum receipts_hold receipts_hold(const struct receipts *receipts)
{
    return receipts->hold;
}

/* ---- assignment ---- */

/* A reading that was asked for because of a log's beginning may end with the assignment it was for.
 */
static void forget_asked(struct receipts *receipts)
{
    for (uint32_t slot = 0; slot < receipts->range_count; slot++)
        receipts->ranges[slot].asked_low = receipts->ranges[slot].look_ms = 0;
}

static void on_assigned(void *context, const struct rcpt_kafka_partition *partitions, size_t count)
{
    struct receipts *receipts = context;
    rcpt_log_info("kafka", "assigned %zu partitions; reading their positions", count);
    rcpt_metrics_add(receipts->context->metrics, RCPT_METRIC_REBALANCES, RCPT_LABELS("assigned"),
                     1);
    forget_asked(receipts);
    positions_start(receipts, partitions, count);
}

static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct receipts *receipts = context;
    rcpt_log_info("kafka", "%s %zu partitions", lost ? "lost" : "revoked", count);
    rcpt_metrics_add(receipts->context->metrics, RCPT_METRIC_REBALANCES,
                     RCPT_LABELS(lost ? "lost" : "revoked"), 1);
    forget_asked(receipts);
    positions_withdraw(receipts);
    for (size_t index = 0; index < count; index++) {
        uint32_t slot = rcpt_engine_slot(receipts->engine, partitions[index].topic,
                                         partitions[index].partition);
        if (rcpt_engine_is_assigned(receipts->engine, slot))
            rcpt_engine_revoke(receipts->engine, slot);
    }
    app_update_readiness(receipts->context);
}

/* ---- the log does not have what we want ---- */

static void halt_on_range(struct receipts *receipts, const char *topic, int32_t partition,
                          int64_t wanted, int64_t low, int64_t high)
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
    app_halt(receipts->context, &error); /* this partition stands still, the others go on */
}

static struct app_range *range_of(struct receipts *receipts, uint32_t slot)
{
    if (slot >= receipts->range_count) {
        uint32_t count = rcpt_engine_slot_count(receipts->engine);
        receipts->ranges = rcpt_realloc(receipts->ranges, count * sizeof(*receipts->ranges));
        memset(receipts->ranges + receipts->range_count, 0,
               (count - receipts->range_count) * sizeof(*receipts->ranges));
        receipts->range_count = count;
    }
    return &receipts->ranges[slot];
}

/* From here on the partition is read from this offset, whatever was waited for before. */
static void reassign(struct receipts *receipts, uint32_t slot, int64_t offset)
{
    range_of(receipts, slot)->look_ms = 0;
    rcpt_kafka_reassign(receipts->kafka, rcpt_engine_slot_topic(receipts->engine, slot),
                        rcpt_engine_slot_partition(receipts->engine, slot), offset);
}

static void go_on_at(struct receipts *receipts, uint32_t slot, int64_t low)
{
    rcpt_engine_skip_to(receipts->engine, slot, low, app_now(receipts->context));
    reassign(receipts, slot, low);
}

/* A transaction of the owner before may still be on its way to the rows, for as long as a session
 * that blocks others is borne. */
static bool is_patient(const struct receipts *receipts, const struct app_range *range)
{
    return app_now(receipts->context) - range->since_ms <
           receipts->context->config->postgres.zombie_timeout_ms;
}

/* True: others may have gone on since the rows were read, so they are read again before anything is
 * given up, now and then for a while; as long as they do go on, it is not given up either. */
static bool look_again(struct receipts *receipts, uint32_t slot, int64_t wanted, int64_t low)
{
    struct app_range *range = range_of(receipts, slot);
    if (range->asked_low == 0 || wanted > range->asked_at)
        range->since_ms = app_now(receipts->context);
    bool moved = range->asked_low < low || wanted > range->asked_at;
    if (moved && positions_refresh(receipts)) {
        range->asked_low = low;
        range->asked_at = wanted;
    } else if (receipts->assignment.state == ASSIGNMENT_NONE) {
        range->look_ms = app_now(receipts->context) + LOOK_MS;
        return is_patient(receipts, range);
    }
    reassign(receipts, slot, wanted); /* it comes back here, whatever becomes of the reading */
    return true;
}

void consume_tick(struct receipts *receipts)
{
    for (uint32_t slot = 0; slot < receipts->range_count; slot++) {
        struct app_range *range = &receipts->ranges[slot];
        if (range->look_ms == 0 || app_now(receipts->context) < range->look_ms)
            continue;
        if (!range->stands_still && !app_is_stopping(receipts->context) &&
            rcpt_engine_is_assigned(receipts->engine, slot)) {
            positions_refresh(receipts);
            reassign(receipts, slot, range->asked_at);
        }
        range->look_ms = 0;
    }
}

static void on_out_of_range(void *context, void *tag, const char *topic, int32_t partition,
                            int64_t wanted, int64_t low, int64_t high)
{
    struct receipts *receipts = context;
    uint32_t slot = slot_of(tag);
    if (low < 0 || (wanted >= low && wanted <= high)) {
        reassign(receipts, slot, wanted); /* a broker's passing answer */
    } else if (wanted < low && low <= rcpt_engine_committed(receipts->engine, slot)) {
        /* Only what was applied is gone, and with it the record to compare with: nothing is lost.
         */
        go_on_at(receipts, slot, low);
    } else if (wanted < low && look_again(receipts, slot, wanted, low)) {
        return;
    } else if (wanted < low && receipts->context->config->kafka.on_retention_gap == RCPT_GAP_SKIP) {
        rcpt_log_error(
            "kafka",
            "topic %s partition %d: retention has deleted records %lld…%lld, going on behind them",
            topic, partition, (long long)wanted, (long long)low - 1);
        go_on_at(receipts, slot, low);
    } else {
        *range_of(receipts, slot) = (struct app_range){.stands_still = true};
        halt_on_range(receipts, topic, partition, wanted, low, high);
    }
}

void consume_port_rewind(void *context, uint32_t slot, int64_t offset)
{
    struct receipts *receipts = context;
    const char *topic = rcpt_engine_slot_topic(receipts->engine, slot);
    int32_t partition = rcpt_engine_slot_partition(receipts->engine, slot);
    if (range_of(receipts, slot)->stands_still)
        return; /* nobody has said that the log is the one that was consumed */
    rcpt_log_warn("core", "the database went back: topic %s partition %d is read again from %lld",
                  topic, partition, (long long)offset);
    range_of(receipts, slot)->look_ms = 0;
    rcpt_kafka_seek(receipts->kafka, topic, partition, offset);
}

void consume_port_reassign(void *context, uint32_t slot, int64_t offset)
{
    struct receipts *receipts = context;
    const char *topic = rcpt_engine_slot_topic(receipts->engine, slot);
    int32_t partition = rcpt_engine_slot_partition(receipts->engine, slot);
    if (range_of(receipts, slot)->stands_still)
        return;
    rcpt_log_warn(
        "core",
        "topic %s partition %d brought nothing after the rewind: assigning it again at %lld", topic,
        partition, (long long)offset);
    reassign(receipts, slot, offset);
}

/* ---- cluster, health ---- */

static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct receipts *receipts = context;
    free(receipts->cluster_id);
    receipts->cluster_id = rcpt_strdup(cluster_id != NULL ? cluster_id : "");
    for (size_t index = 0; index < count; index++) {
        for (size_t own = 0; own < receipts->topic_count; own++) {
            if (strcmp(receipts->topics[own].name, topics[index].topic) == 0)
                receipts->topics[own].partition_count = topics[index].partition_count;
        }
    }
    if (!receipts->subscribed && !app_is_stopping(receipts->context)) {
        receipts->subscribed = true;
        rcpt_log_info("kafka", "cluster %s; joining group %s", receipts->cluster_id,
                      receipts->context->config->kafka.group);
        rcpt_kafka_subscribe(receipts->kafka);
    }
}

static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct receipts *receipts = context;
    if (!healthy && error->decision == RCPT_DECISION_FATAL) {
        app_fail(receipts->context, error);
        return;
    }
    receipts->kafka_healthy = healthy;
    if (!healthy)
        app_set_reason(receipts->kafka_reason, error);
    app_update_readiness(receipts->context);
}

static void on_closed(void *context)
{
    struct receipts *receipts = context;
    receipts->kafka = NULL;
    app_closed(receipts->context);
    app_check_drain(receipts->context);
}

bool consume_start(struct receipts *receipts, struct rcpt_error *error)
{
    const struct rcpt_config *config = receipts->context->config;
    struct rcpt_kafka_property *properties = app_kafka_properties(config);
    struct rcpt_kafka_settings settings = {
        .loop = receipts->context->loop,
        .brokers = config->kafka.brokers,
        .group = config->kafka.group,
        .instance_id = config->kafka.instance_id,
        .topics = (const char *const *)config->kafka.topics,
        .topic_count = config->kafka.topics_count,
        .properties = properties,
        .property_count = config->kafka.properties_count,
        .fetch_budget_bytes = config->kafka.fetch_budget_bytes,
        .commit_interval_ms = config->kafka.commit_interval_ms,
        .callbacks = {.context = receipts,
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
    receipts->kafka = rcpt_kafka_new(&settings, error);
    free(properties);
    return receipts->kafka != NULL;
}

/* The kafka room needs the tags when positions.c answers the assignment. */
void consume_assign(struct receipts *receipts, const struct rcpt_kafka_partition *partitions,
                    size_t count)
{
    void **tags = rcpt_calloc(count + 1, sizeof(*tags));
    for (size_t index = 0; index < count; index++) {
        uint32_t slot = rcpt_engine_slot(receipts->engine, partitions[index].topic,
                                         partitions[index].partition);
        *range_of(receipts, slot) = (struct app_range){.asked_low = 0};
        tags[index] = tag_of(slot);
    }
    rcpt_kafka_assign(receipts->kafka, partitions, tags, count);
    free(tags);
}

void consume_reassign(struct receipts *receipts, const struct rcpt_kafka_partition *partitions,
                      size_t count)
{
    for (size_t index = 0; index < count; index++) {
        const struct rcpt_kafka_partition *start = &partitions[index];
        uint32_t slot = rcpt_engine_slot(receipts->engine, start->topic, start->partition);
        range_of(receipts, slot)->stands_still = false;
        reassign(receipts, slot, start->offset);
    }
}

/* ---- advisory commit, lag ---- */

static void commit(struct receipts *receipts)
{
    uint32_t slots = rcpt_engine_slot_count(receipts->engine);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(slots + 1, sizeof(*partitions));
    size_t count = 0;
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (!rcpt_engine_is_assigned(receipts->engine, slot))
            continue;
        partitions[count++] = (struct rcpt_kafka_partition){
            .topic = rcpt_engine_slot_topic(receipts->engine, slot),
            .partition = rcpt_engine_slot_partition(receipts->engine, slot),
            .offset = rcpt_engine_committed(receipts->engine, slot),
        };
    }
    if (count > 0)
        rcpt_kafka_commit(receipts->kafka, partitions, count);
    free(partitions);
}

static void on_commit_timer(uv_timer_t *timer)
{
    struct receipts *receipts = timer->data;
    if (receipts->kafka != NULL && !app_is_stopping(receipts->context))
        commit(receipts);
}

void consume_apply_config(struct receipts *receipts)
{
    int64_t interval = receipts->context->config->kafka.commit_interval_ms;
    if (interval > 0)
        uv_timer_start(&receipts->commit_timer, on_commit_timer, (uint64_t)interval,
                       (uint64_t)interval);
    else
        uv_timer_stop(&receipts->commit_timer);
}

bool consume_close(struct receipts *receipts, int64_t patience_ms)
{
    if (receipts->kafka == NULL)
        return false;
    if (receipts->kafka_closing)
        return true;
    receipts->kafka_closing = true;
    app_open(receipts->context);
    commit(receipts);
    rcpt_kafka_close(receipts->kafka, patience_ms);
    return true;
}

bool receipts_view_partition(const struct receipts *receipts, uint32_t slot, int64_t *high,
                             int64_t *lag)
{
    *high = receipts->kafka == NULL
                ? -1
                : rcpt_kafka_high_watermark(receipts->kafka,
                                            rcpt_engine_slot_topic(receipts->engine, slot),
                                            rcpt_engine_slot_partition(receipts->engine, slot));
    int64_t committed = rcpt_engine_committed(receipts->engine, slot);
    *lag = *high > committed ? *high - committed : 0;
    return *high >= 0;
}

int64_t receipts_lag(const struct receipts *receipts)
{
    int64_t sum = 0, high, lag;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(receipts->engine); slot++) {
        if (rcpt_engine_is_assigned(receipts->engine, slot) &&
            receipts_view_partition(receipts, slot, &high, &lag))
            sum += lag;
    }
    return sum;
}

/* Kafka's side of the receipts: passes records to the engine as long as it takes them, and
 * rebalances to the core's assignment machine (core/assignment.h). Also carries out that machine's
 * requests to Kafka. Offsets are committed to Kafka for lag tools only; nothing reads them. Called
 * by src/kafka's consumer, by that machine's ports and by receipts.c.
 */
#include <stdlib.h>

#include "internal.h"

#define MOST_HEADERS 64u /* of a record, that templates of a topic may read */

/* A partition's tag is its slot, so that a record needs no lookup by name. The slot is kept plus 1,
 * since a tag of NULL means none. */
static void *tag_of(uint32_t slot)
{
    return (void *)(uintptr_t)(slot + 1);
}

static uint32_t slot_of(void *tag)
{
    return (uint32_t)((uintptr_t)tag - 1);
}

/* `starved` remembers that a partition was left alone: consume_continue() polls it again. */
static bool wants(void *context, const char *topic, int32_t partition, void *tag)
{
    struct receipts *receipts = context;
    (void)topic;
    (void)partition;
    bool takes = receipts->consuming.hold == RECEIPTS_HOLD_NONE &&
                 rcpt_engine_wants(receipts->engine, slot_of(tag));
    receipts->consuming.starved |= !takes;
    return takes;
}

/* The form of a record that is not in ours; its headers may say more of it. */
static const struct rcpt_record_form *form_of(const struct receipts *receipts,
                                              const struct rcpt_kafka_message *message,
                                              const struct rcpt_record_input *input)
{
    struct rcpt_gateway_header headers[MOST_HEADERS];
    struct rcpt_kafka_header header;
    struct rcpt_gateway_beside beside = {.headers = headers,
                                         .scanners = receipts->context->config->scanners};
    if (!rcpt_gateway_topics_has(receipts->topics, message->topic))
        return NULL;
    while (beside.header_count < MOST_HEADERS &&
           rcpt_kafka_header(message, beside.header_count, &header))
        headers[beside.header_count++] =
            (struct rcpt_gateway_header){rcpt_text_of(header.name), {header.value, header.size}};
    return rcpt_gateway_topics_form(receipts->topics, input, &beside);
}

/* Asked first, since most records after a rewind are known already and need no decoding. */
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
    input.form = form_of(receipts, message, &input);
    struct rcpt_record *record = rcpt_record_decode(receipts->decoder, &input);
    record->received_ns = received_ns;
    record->decoded_ns = trace_now(receipts->context);
    rcpt_engine_deliver_take(receipts->engine, slot, record, host_now(receipts->context));
}

/* Logs each channel once. Its receipts count, because any name may be a channel. */
static void log_odd_channels(struct receipts *receipts)
{
    const char *near, *channel;
    while ((channel = rcpt_decoder_odd_channel(receipts->decoder, receipts->odd_channels_logged,
                                               &near)) != NULL) {
        receipts->odd_channels_logged++;
        rcpt_log_warn("receipts",
                      "receipts name the channel \"%s\", which has no override in the ladder: did "
                      "the sender mean \"%s\"? If not, nothing is to do",
                      channel, near);
    }
}

/* A round may have filled lanes: the engine sends ready batches. */
static void on_round(void *context)
{
    struct receipts *receipts = context;
    log_odd_channels(receipts);
    rcpt_engine_tick(receipts->engine, host_now(receipts->context));
}

/* The consumer does not notice by itself that there is capacity again. */
void consume_continue(struct receipts *receipts)
{
    if (!receipts->consuming.starved || host_is_stopping(receipts->context))
        return;
    receipts->consuming.starved = false;
    rcpt_kafka_kick(receipts->kafka);
}

/* ---- what an operator asks for ---- */

/* Records that are queued already are applied all the same. */
void receipts_set_hold(struct receipts *receipts, enum receipts_hold hold)
{
    static const char *const texts[] = {[RECEIPTS_HOLD_NONE] = "taking in again",
                                        [RECEIPTS_HOLD_PAUSED] = "paused: nothing more is taken in",
                                        [RECEIPTS_HOLD_DRAINING] =
                                            "draining: nothing more is taken in",
                                        [RECEIPTS_HOLD_DRAINED] = "drained: nothing is queued"};
    if (receipts->consuming.hold == hold)
        return;
    receipts->consuming.hold = hold;
    rcpt_log_info("receipts", "%s", texts[hold]);
    host_update_readiness(receipts->context);
    if (hold == RECEIPTS_HOLD_NONE)
        consume_continue(receipts);
}

enum receipts_hold receipts_hold(const struct receipts *receipts)
{
    return receipts->consuming.hold;
}

/* ---- rebalances, for the core's machine ---- */

/* The caller frees them. */
static uint32_t *slots_of(struct receipts *receipts, const struct rcpt_kafka_partition *partitions,
                          size_t count)
{
    uint32_t *slots = rcpt_calloc(count + 1, sizeof(*slots));
    for (size_t index = 0; index < count; index++)
        slots[index] = rcpt_engine_slot(receipts->engine, partitions[index].topic,
                                        partitions[index].partition);
    return slots;
}

/* Fetching begins only when the assignment machine has read the positions. */
static void on_assigned(void *context, const struct rcpt_kafka_partition *partitions, size_t count)
{
    struct receipts *receipts = context;
    rcpt_log_info("receipts", "assigned %zu partitions; reading their positions", count);
    rcpt_metrics_add(receipts->context->metrics, RCPT_METRIC_REBALANCES, RCPT_LABELS("assigned"),
                     1);
    receipts->consuming.joined = true;
    host_places_refresh(receipts->places);
    uint32_t *slots = slots_of(receipts, partitions, count);
    rcpt_assignment_start(receipts->assignment, slots, count, host_now(receipts->context));
    free(slots);
}

/* The instance is ready without a partition, as long as others have them. */
static void on_spare(void *context)
{
    struct receipts *receipts = context;
    receipts->consuming.joined = true;
    host_places_refresh(receipts->places);
    host_update_readiness(receipts->context);
}

/* Batches in flight finish: the fence decides whether they count. No member may have the partitions
 * until the group answers again. */
static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct receipts *receipts = context;
    rcpt_log_info("receipts", "%s %zu partitions", lost ? "lost" : "revoked", count);
    rcpt_metrics_add(receipts->context->metrics, RCPT_METRIC_REBALANCES,
                     RCPT_LABELS(lost ? "lost" : "revoked"), 1);
    receipts->consuming.joined = false;
    uint32_t *slots = slots_of(receipts, partitions, count);
    rcpt_assignment_revoke(receipts->assignment, slots, count, host_now(receipts->context));
    free(slots);
    host_update_readiness(receipts->context);
}

/* The log's present ends decide between skipping and halting (kafka.on_retention_gap). */
static void on_out_of_range(void *context, void *tag, const char *topic, int32_t partition,
                            int64_t requested, int64_t low, int64_t high)
{
    struct receipts *receipts = context;
    (void)topic;
    (void)partition;
    rcpt_assignment_on_out_of_range(receipts->assignment, slot_of(tag), requested, low, high,
                                    host_now(receipts->context));
}

/* ---- requests of that machine to Kafka: its ports ---- */

static struct rcpt_kafka_partition partition_of(const struct receipts *receipts, uint32_t slot,
                                                int64_t offset)
{
    return (struct rcpt_kafka_partition){
        .topic = rcpt_engine_slot_topic(receipts->engine, slot),
        .partition = rcpt_engine_slot_partition(receipts->engine, slot),
        .offset = offset,
    };
}

/* Port of the assignment machine: the answer to the group, with offsets from PostgreSQL. */
void consume_assign(void *context, const struct rcpt_assignment_start *starts, size_t count)
{
    struct receipts *receipts = context;
    void **tags = rcpt_calloc(count + 1, sizeof(*tags));
    struct rcpt_kafka_partition *partitions = rcpt_calloc(count + 1, sizeof(*partitions));
    for (size_t index = 0; index < count; index++) {
        partitions[index] = partition_of(receipts, starts[index].slot, starts[index].offset);
        tags[index] = tag_of(starts[index].slot);
    }
    rcpt_kafka_assign(receipts->kafka, partitions, tags, count);
    free(partitions);
    free(tags);
}

/* Port of the assignment machine: a rewind, while the partition stays assigned. */
void consume_seek(void *context, uint32_t slot, int64_t offset)
{
    const struct receipts *receipts = context;
    struct rcpt_kafka_partition to = partition_of(receipts, slot, offset);
    rcpt_kafka_seek(receipts->kafka, to.topic, to.partition, to.offset);
}

/* Port of the assignment machine: assigns again at an offset, where a seek has shown no effect. */
void consume_reassign(void *context, uint32_t slot, int64_t offset)
{
    const struct receipts *receipts = context;
    struct rcpt_kafka_partition to = partition_of(receipts, slot, offset);
    rcpt_kafka_reassign(receipts->kafka, to.topic, to.partition, to.offset);
}

struct low_query { /* context of one answer: which assignment asked */
    struct receipts *receipts;
    uint32_t serial;
};

/* The machine ignores the answer to an earlier assignment, by its serial. */
static void on_lows(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                    const struct rcpt_error *error)
{
    struct low_query query = *(struct low_query *)context;
    free(context);
    if (error != NULL) {
        positions_failed(query.receipts, query.serial, error);
        return;
    }
    int64_t *lows = rcpt_calloc(count + 1, sizeof(*lows));
    for (size_t index = 0; index < count; index++)
        lows[index] = partitions[index].offset;
    rcpt_assignment_on_lows(query.receipts->assignment, query.serial, lows,
                            host_now(query.receipts->context));
    free(lows);
}

/* Port of the assignment machine: where partitions without rows begin. */
void consume_query_lows(void *context, uint32_t serial, const struct rcpt_assignment_new *rows)
{
    struct receipts *receipts = context;
    size_t count = (size_t)(rows->to - rows->from);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(count + 1, sizeof(*partitions));
    struct low_query *query = rcpt_malloc(sizeof(*query));
    *query = (struct low_query){receipts, serial};
    for (size_t index = 0; index < count; index++)
        partitions[index] = (struct rcpt_kafka_partition){.topic = rows->topic,
                                                          .partition = rows->from + (int32_t)index};
    rcpt_kafka_query_low(receipts->kafka, partitions, count, on_lows, query);
    free(partitions);
}

/* ---- cluster, health ---- */

/* The group is joined only now: the budget for fetching depends on the number of partitions. */
static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct receipts *receipts = context;
    host_places_refresh(receipts->places);
    rcpt_assignment_set_cluster(receipts->assignment, cluster_id != NULL ? cluster_id : "");
    for (size_t index = 0; index < count; index++)
        rcpt_assignment_set_topic(receipts->assignment, topics[index].topic,
                                  topics[index].partition_count);
    if (!receipts->consuming.subscribed && !host_is_stopping(receipts->context)) {
        receipts->consuming.subscribed = true;
        rcpt_log_info("receipts", "cluster %s; joining group %s",
                      rcpt_assignment_cluster(receipts->assignment),
                      receipts->context->config->kafka.group);
        rcpt_kafka_subscribe(receipts->kafka);
    }
}

/* FATAL: the consumer's handle is unusable, and the process ends. */
static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct receipts *receipts = context;
    if (!healthy && error->decision == RCPT_DECISION_FATAL) {
        host_fail(receipts->context, error);
        return;
    }
    receipts->consuming.healthy = healthy;
    if (!healthy)
        host_set_reason(receipts->consuming.reason, "Kafka is in trouble", error);
    host_update_readiness(receipts->context);
}

/* The drain may wait for this only: it is checked again. */
static void on_closed(void *context)
{
    struct receipts *receipts = context;
    receipts->kafka = NULL;
    host_closed(receipts->context);
    host_check_drain(receipts->context);
}

/* Records that are decoded already keep their form. */
bool consume_read_topics(struct receipts *receipts, struct rcpt_error *error)
{
    const struct rcpt_config *config = receipts->context->config;
    struct rcpt_gateway_topics *topics = rcpt_gateway_topics_new(
        config->kafka.accounts, config->kafka.accounts_count, config->ladder, error);
    if (topics == NULL)
        return false;
    rcpt_gateway_topics_free(receipts->topics);
    receipts->topics = topics;
    return true;
}

/* False with the error where librdkafka refuses the configuration. */
bool consume_start(struct receipts *receipts, struct rcpt_error *error)
{
    const struct rcpt_config *config = receipts->context->config;
    if (!consume_read_topics(receipts, error))
        return false;
    struct rcpt_kafka_property *properties = host_kafka_properties(config);
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
                      .on_spare = on_spare,
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

/* ---- advisory commit, lag ---- */

/* Advisory: commits the positions of PostgreSQL for all partitions to Kafka, and notes the server
 * that has them, for the next process. No position is committed that this server does not have. */
void consume_commit(struct receipts *receipts)
{
    char note[RCPT_PG_NOTE_BYTES] = "";
    const struct host_context *context = receipts->context;
    if (receipts->kafka == NULL || !context->recalled)
        return;
    if (context->lineage.current.system_identifier != 0)
        rcpt_pg_server_write(context->lineage.current, note);
    uint32_t slots = rcpt_engine_slot_count(receipts->engine);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(slots + 1, sizeof(*partitions));
    size_t count = 0;
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (!rcpt_engine_is_assigned(receipts->engine, slot))
            continue;
        partitions[count++] = partition_of(receipts, slot, consume_stands_at(receipts, slot));
    }
    if (count > 0)
        rcpt_kafka_commit(receipts->kafka, partitions, count, note);
    receipts->consuming.noted = context->lineage.changes;
    free(partitions);
}

static void on_commit_timer(uv_timer_t *timer)
{
    struct receipts *receipts = timer->data;
    if (!host_is_stopping(receipts->context))
        consume_commit(receipts);
}

/* An interval of 0 switches the advisory commits off. */
void consume_apply_config(struct receipts *receipts)
{
    int64_t interval = receipts->context->config->kafka.commit_interval_ms;
    if (interval > 0)
        uv_timer_start(&receipts->consuming.commit_timer, on_commit_timer, (uint64_t)interval,
                       (uint64_t)interval);
    else
        uv_timer_stop(&receipts->consuming.commit_timer);
}

/* False: there is nothing to wait for. */
bool consume_close(struct receipts *receipts, int64_t patience_ms)
{
    if (receipts->kafka == NULL)
        return false;
    if (receipts->consuming.closing)
        return true;
    receipts->consuming.closing = true;
    host_open(receipts->context);
    consume_commit(receipts);
    rcpt_kafka_close(receipts->kafka, patience_ms);
    return true;
}

/* The high watermark of the last fetch, which may be long ago; -1: nothing was fetched. */
int64_t consume_fetched_high(const struct receipts *receipts, uint32_t slot)
{
    return receipts->kafka == NULL
               ? -1
               : rcpt_kafka_high_watermark(receipts->kafka,
                                           rcpt_engine_slot_topic(receipts->engine, slot),
                                           rcpt_engine_slot_partition(receipts->engine, slot));
}

int64_t consume_stands_at(const struct receipts *receipts, uint32_t slot)
{
    int64_t applied = rcpt_engine_committed(receipts->engine, slot);
    return receipts->kafka == NULL
               ? applied
               : rcpt_kafka_stands_at(receipts->kafka,
                                      rcpt_engine_slot_topic(receipts->engine, slot),
                                      rcpt_engine_slot_partition(receipts->engine, slot), applied);
}

/* The last survey proves that the end of the log is known; a fetch may know a later one. */
int64_t receipts_partition_lag(const struct receipts *receipts, uint32_t slot)
{
    struct host_place place;
    if (!host_places_find(receipts->places, rcpt_engine_slot_topic(receipts->engine, slot),
                          rcpt_engine_slot_partition(receipts->engine, slot), &place) ||
        place.high < 0)
        return -1;
    int64_t fetched = consume_fetched_high(receipts, slot);
    int64_t high = fetched > place.high ? fetched : place.high;
    int64_t stands_at = consume_stands_at(receipts, slot);
    return high > stands_at ? high - stands_at : 0;
}

int64_t receipts_lag(const struct receipts *receipts)
{
    int64_t sum = 0;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(receipts->engine); slot++) {
        if (!rcpt_engine_is_assigned(receipts->engine, slot))
            continue;
        int64_t lag = receipts_partition_lag(receipts, slot);
        if (lag < 0)
            return -1;
        sum += lag;
    }
    return sum;
}

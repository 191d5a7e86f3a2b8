#include "kafka_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

const char *test_brokers(void)
{
    return getenv("RECEIPTD_TEST_BROKERS");
}

void unique_name(char *out, size_t size, const char *stem)
{
    snprintf(out, size, "%s-%d-%llx", stem, (int)getpid(), (unsigned long long)uv_hrtime());
}

/* ---- the owner's callbacks ---- */

static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct owner *owner = context;
    assert_true(count > 0);
    owner->cluster_calls++;
    owner->partition_count = topics[0].partition_count;
    snprintf(owner->cluster_id, sizeof(owner->cluster_id), "%s", cluster_id);
    if (!owner->no_subscribe)
        rcpt_kafka_subscribe(owner->kafka);
}

void owner_answer(struct owner *owner)
{
    void *tags[MAX_PARTITIONS];
    for (size_t i = 0; i < owner->held_count; i++) {
        int32_t partition = owner->held[i].partition;
        owner->held[i].offset = owner->positions->next[partition];
        owner->assigned[partition] = true;
        tags[i] = &owner->last[partition];
    }
    owner->assigned_count += owner->held_count;
    rcpt_kafka_assign(owner->kafka, owner->held, tags, owner->held_count);
    owner->held_count = 0;
}

static void on_hold(uv_timer_t *timer)
{
    struct owner *owner = timer->data;
    if (owner->held_count > 0)
        owner_answer(owner);
}

static void on_assigned(void *context, const struct rcpt_kafka_partition *partitions, size_t count)
{
    struct owner *owner = context;
    assert_true(count > 0 && count <= MAX_PARTITIONS);
    assert_int_equal(owner->held_count, 0);
    for (size_t i = 0; i < count; i++) {
        assert_true(partitions[i].partition < MAX_PARTITIONS);
        assert_false(owner->assigned[partitions[i].partition]);
        snprintf(owner->held_topics[i], sizeof(owner->held_topics[i]), "%s", partitions[i].topic);
        owner->held[i].topic = owner->held_topics[i];
        owner->held[i].partition = partitions[i].partition;
    }
    owner->held_count = count;
    owner->assignments++;
    if (owner->hold_ms == 0)
        owner_answer(owner);
    else if (owner->hold_ms > 0)
        uv_timer_start(&owner->hold, on_hold, (uint64_t)owner->hold_ms, 0);
}

static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct owner *owner = context;
    owner->revocations++;
    owner->lost += lost ? 1 : 0;
    if (owner->held_count > 0) {
        owner->held_count = 0;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(owner->assigned[partitions[i].partition]);
        owner->assigned[partitions[i].partition] = false;
        owner->assigned_count--;
    }
}

static bool wants(void *context, const char *topic, int32_t partition, void *tag)
{
    struct owner *owner = context;
    (void)topic;
    assert_true(owner->assigned[partition]);
    assert_ptr_equal(tag, &owner->last[partition]);
    return !owner->unwanted[partition];
}

static void measure(struct owner *owner, const struct rcpt_kafka_message *message)
{
    int64_t sent;
    if (message->key_size != 4 || memcmp(message->key, "time", 4) != 0 ||
        owner->latency_count == 20000)
        return;
    memcpy(&sent, message->value, sizeof(sent));
    owner->latencies_us[owner->latency_count++] = ((int64_t)uv_hrtime() - sent) / 1000;
}

static void on_message(void *context, void *tag, const struct rcpt_kafka_message *message)
{
    struct owner *owner = context;
    struct positions *positions = owner->positions;
    int32_t partition = message->partition;
    assert_true(owner->assigned[partition]);
    assert_false(owner->unwanted[partition]);
    assert_ptr_equal(tag, &owner->last[partition]);
    owner->received[partition]++;
    owner->last[partition] = message->offset;
    measure(owner, message);
    if (message->traceparent != NULL)
        snprintf(owner->traceparent, sizeof(owner->traceparent), "%.*s",
                 (int)message->traceparent_size, message->traceparent);
    if (message->offset < positions->next[partition]) {
        positions->repeated++;
        return;
    }
    positions->skipped += (uint64_t)(message->offset - positions->next[partition]);
    positions->taken++;
    positions->next[partition] = message->offset + 1;
}

static void on_round(void *context)
{
    ((struct owner *)context)->rounds++;
}

static void on_out_of_range(void *context, void *tag, const char *topic, int32_t partition,
                            int64_t wanted, int64_t low, int64_t high)
{
    struct owner *owner = context;
    assert_ptr_equal(tag, &owner->last[partition]);
    owner->out_of_range++;
    owner->bad_partition = partition;
    owner->bad_wanted = wanted;
    owner->bad_low = low;
    owner->bad_high = high;
    if (owner->reset_to_low) {
        owner->positions->next[partition] = low;
        rcpt_kafka_reassign(owner->kafka, topic, partition, low);
    }
}

static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct owner *owner = context;
    owner->health_calls++;
    owner->healthy = healthy;
    assert_true(healthy == (error == NULL));
    if (error != NULL)
        owner->trouble = *error;
}

static void on_closed(void *context)
{
    ((struct owner *)context)->closed = true;
}

struct rcpt_kafka_settings owner_settings(struct owner *owner, const char *brokers,
                                          const char *const *topics, const char *group)
{
    return (struct rcpt_kafka_settings){
        .brokers = brokers,
        .group = group,
        .topics = topics,
        .topic_count = 1,
        .fetch_budget_bytes = 24u << 20,
        .commit_interval_ms = 100,
        .callbacks =
            {
                .context = owner,
                .on_cluster = on_cluster,
                .on_assigned = on_assigned,
                .on_revoked = on_revoked,
                .wants = wants,
                .on_message = on_message,
                .on_round = on_round,
                .on_out_of_range = on_out_of_range,
                .on_health = on_health,
                .on_closed = on_closed,
            },
    };
}

void owner_start(struct owner *owner, uv_loop_t *loop, const struct rcpt_kafka_settings *settings)
{
    struct rcpt_error error;
    struct rcpt_kafka_settings copy = *settings;
    owner->loop = copy.loop = loop;
    if (owner->positions == NULL)
        owner->positions = &owner->own;
    uv_timer_init(loop, &owner->hold);
    owner->hold.data = owner;
    owner->kafka = rcpt_kafka_new(&copy, &error);
    if (owner->kafka == NULL)
        fail_msg("%s", error.text);
}

int64_t owner_close(struct owner *owner)
{
    uint64_t start = uv_hrtime();
    rcpt_kafka_close(owner->kafka, 8000);
    RUN_UNTIL(owner->loop, 10000, owner->closed);
    int64_t took = (int64_t)(uv_hrtime() - start) / 1000000;
    assert_int_equal(owner->assigned_count, 0);
    uv_close((uv_handle_t *)&owner->hold, NULL);
    run_briefly(owner->loop);
    return took;
}

/* ---- the loop ---- */

static void on_nothing(uv_timer_t *timer)
{
    (void)timer;
}

void run_briefly(uv_loop_t *loop)
{
    uv_timer_t timer;
    uv_timer_init(loop, &timer);
    uv_timer_start(&timer, on_nothing, 10, 0);
    uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
}

void run_for(uv_loop_t *loop, int ms)
{
    uint64_t deadline = uv_hrtime() + (uint64_t)ms * 1000000u;
    while (uv_hrtime() < deadline)
        run_briefly(loop);
}

/* ---- the cluster's admin ---- */

rd_kafka_t *producer_new(const char *brokers)
{
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", brokers, text, sizeof(text));
    rd_kafka_conf_set(conf, "linger.ms", "0", text, sizeof(text));
    rd_kafka_conf_set(conf, "queue.buffering.max.messages", "2000000", text, sizeof(text));
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    assert_non_null(producer);
    return producer;
}

static void wait_for_result(rd_kafka_t *handle, rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 15000);
    assert_non_null(event);
    if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail_msg("%s", rd_kafka_event_error_string(event));
    rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(handle);
}

void topic_create(const char *brokers, const char *topic, int partitions)
{
    char text[256];
    rd_kafka_t *admin = producer_new(brokers);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
    rd_kafka_NewTopic_t *new = rd_kafka_NewTopic_new(topic, partitions, 1, text, sizeof(text));
    assert_non_null(new);
    rd_kafka_CreateTopics(admin, &new, 1, NULL, queue);
    rd_kafka_NewTopic_destroy(new);
    wait_for_result(admin, queue);
}

void topic_grow(const char *brokers, const char *topic, int partitions)
{
    char text[256];
    rd_kafka_t *admin = producer_new(brokers);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
    rd_kafka_NewPartitions_t *new =
        rd_kafka_NewPartitions_new(topic, (size_t)partitions, text, sizeof(text));
    assert_non_null(new);
    rd_kafka_CreatePartitions(admin, &new, 1, NULL, queue);
    rd_kafka_NewPartitions_destroy(new);
    wait_for_result(admin, queue);
}

void records_delete(const char *brokers, const char *topic, int partition, int64_t before)
{
    rd_kafka_t *admin = producer_new(brokers);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = before;
    rd_kafka_DeleteRecords_t *delete = rd_kafka_DeleteRecords_new(list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_DeleteRecords(admin, &delete, 1, NULL, queue);
    rd_kafka_DeleteRecords_destroy(delete);
    wait_for_result(admin, queue);
}

int64_t group_committed(const char *brokers, const char *group, const char *topic, int partition)
{
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", brokers, text, sizeof(text));
    rd_kafka_conf_set(conf, "group.id", group, text, sizeof(text));
    rd_kafka_t *reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    assert_non_null(reader);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition);
    assert_int_equal(rd_kafka_committed(reader, list, 10000), 0);
    int64_t offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(reader);
    return offset;
}

void produce(const char *brokers, const char *topic, int partitions, int count, size_t size)
{
    rd_kafka_t *producer = producer_new(brokers);
    char *value = calloc(1, size + 32);
    int64_t first_ms = (int64_t)time(NULL) * 1000 - count;
    assert_non_null(value);
    for (int i = 0; i < count; i++)
        for (int partition = 0; partition < partitions; partition++) {
            snprintf(value, 32, "%d %d", partition, i);
            rd_kafka_resp_err_t code = rd_kafka_producev(
                producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                RD_KAFKA_V_VALUE(value, size), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                RD_KAFKA_V_TIMESTAMP(first_ms + i), RD_KAFKA_V_END);
            assert_int_equal(code, RD_KAFKA_RESP_ERR_NO_ERROR);
        }
    assert_int_equal(rd_kafka_flush(producer, 60000), 0);
    free(value);
    rd_kafka_destroy(producer);
}

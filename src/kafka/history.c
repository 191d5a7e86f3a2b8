/* Reads a topic to the end that it has at the start, and stops. For commands that try rules on past
 * records (fold_plan.c), or look at single records (positions_proof.c). A client of its own that
 * joins no group and commits nothing; it blocks.
 */
#include "receiptd/kafka/history.h"

#include <stdlib.h>
#include <sysexits.h>

#include "internal.h"

/* One blocking call; the command has no loop that could wait in between. */
#define CALL_MS   10000
#define SILENT_MS 30000 /* without any record, before the reading fails */

struct reading {
    const struct rcpt_kafka_history *history;
    rd_kafka_t *handle;
    rd_kafka_topic_partition_list_t *places;
    int64_t *ends; /* by partition; reached: -1 */
    size_t open;   /* partitions that are not at their end */
    struct rcpt_error *error;
};

struct given { /* first: what the reader gets */
    struct rcpt_kafka_message message;
    const rd_kafka_message_t *raw;
};

/* Always false, for the caller's return. */
static bool fail(struct reading *reading, rd_kafka_resp_err_t code)
{
    rcpt_error_fatal(reading->error, EX_UNAVAILABLE, "topic %s cannot be read: %s",
                     reading->history->topic, rd_kafka_err2str(code));
    return false;
}

/* The user's properties come last: they were checked as those of the consumer. */
static rd_kafka_conf_t *make_conf(const struct rcpt_kafka_history *history,
                                  struct rcpt_error *error)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    bool good = rcpt_kafka_set_property(conf, "bootstrap.servers", history->brokers, error) &&
                rcpt_kafka_set_property(conf, "group.id", "receiptd-history", error) &&
                rcpt_kafka_set_property(conf, "enable.auto.commit", "false", error) &&
                rcpt_kafka_set_property(conf, "enable.partition.eof", "true", error) &&
                rcpt_kafka_set_property(conf, "log_level", "0", error);
    for (size_t index = 0; good && index < history->property_count; index++)
        good = rcpt_kafka_set_property(conf, history->properties[index].name,
                                       history->properties[index].value, error);
    if (good)
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

static int64_t begin_of(const struct rcpt_kafka_history *history, int32_t partition)
{
    if (history->from == NULL)
        return 0;
    return (size_t)partition < history->from_count ? history->from[partition] : -1;
}

/* Empty partitions are left out. `open` counts those that are read. */
static bool find_ends(struct reading *reading, int32_t count)
{
    reading->ends = rcpt_calloc((size_t)count + 1, sizeof(*reading->ends));
    reading->places = rd_kafka_topic_partition_list_new(count);
    for (int32_t partition = 0; partition < count; partition++) {
        int64_t low, high, begin = begin_of(reading->history, partition);
        if (begin < 0)
            continue;
        rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
            reading->handle, reading->history->topic, partition, &low, &high, CALL_MS);
        if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
            return fail(reading, code);
        if (begin > low)
            low = begin;
        reading->ends[partition] = high;
        reading->open += high > low;
        if (high > low)
            rd_kafka_topic_partition_list_add(reading->places, reading->history->topic, partition)
                ->offset = low;
    }
    return true;
}

/* A partition whose records are all older is at its end. */
static bool skip_older(struct reading *reading)
{
    if (reading->history->since_ms == 0 || reading->places->cnt == 0)
        return true;
    rd_kafka_topic_partition_list_t *times = rd_kafka_topic_partition_list_copy(reading->places);
    for (int index = 0; index < times->cnt; index++)
        times->elems[index].offset = reading->history->since_ms;
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(reading->handle, times, CALL_MS);
    for (int index = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && index < times->cnt; index++) {
        rd_kafka_topic_partition_t *place = &reading->places->elems[index];
        if (times->elems[index].offset > place->offset)
            place->offset = times->elems[index].offset;
        else if (times->elems[index].offset < 0) /* none: the end */
            place->offset = reading->ends[place->partition];
    }
    rd_kafka_topic_partition_list_destroy(times);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || fail(reading, code);
}

/* A topic that does not exist is an error here, and not a topic without records. */
static bool find_partitions(struct reading *reading)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(reading->handle, reading->history->topic, NULL);
    rd_kafka_resp_err_t code = rd_kafka_metadata(reading->handle, 0, topic, &metadata, CALL_MS);
    rd_kafka_topic_destroy(topic);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return fail(reading, code);
    code = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR__FAIL;
    int32_t count = code == RD_KAFKA_RESP_ERR_NO_ERROR ? metadata->topics[0].partition_cnt : 0;
    rd_kafka_metadata_destroy(metadata);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ? find_ends(reading, count) : fail(reading, code);
}

/* The last offsets may be marks of transactions. Then only the event of the partition's end shows
 * that it is reached. */
static void note(struct reading *reading, int32_t partition, int64_t next)
{
    if (reading->ends[partition] >= 0 && next >= reading->ends[partition]) {
        reading->ends[partition] = -1;
        reading->open--;
    }
}

/* False: the reader has seen enough. */
static bool give(const struct reading *reading, const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type;
    const struct given given = {
        .message = {.topic = reading->history->topic,
                    .partition = message->partition,
                    .offset = message->offset,
                    .timestamp_ms = rd_kafka_message_timestamp(message, &type),
                    .key = message->key,
                    .key_size = message->key_len,
                    .value = message->payload,
                    .value_size = message->len},
        .raw = message,
    };
    return reading->history->on_message(reading->history->context, &given.message);
}

const char *rcpt_kafka_history_header(const struct rcpt_kafka_message *message, const char *name,
                                      size_t *size)
{
    const struct given *given = (const struct given *)message;
    rd_kafka_headers_t *headers;
    const void *value;
    *size = 0;
    if (rd_kafka_message_headers(given->raw, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        rd_kafka_header_get_last(headers, name, &value, size) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return NULL;
    return value;
}

/* Records of it that were fetched already may still come, and are dropped. */
static void leave(struct reading *reading, int32_t partition)
{
    rd_kafka_topic_partition_list_t *one = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(one, reading->history->topic, partition);
    rd_kafka_pause_partitions(reading->handle, one);
    rd_kafka_topic_partition_list_destroy(one);
    note(reading, partition, INT64_MAX);
}

/* True: the end is reached, or the reader has seen enough. */
static bool read_all(struct reading *reading)
{
    bool go_on = true;
    rd_kafka_resp_err_t code = rd_kafka_assign(reading->handle, reading->places);
    while (code == RD_KAFKA_RESP_ERR_NO_ERROR && go_on && reading->open > 0) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(reading->handle, SILENT_MS);
        if (message == NULL)
            return fail(reading, RD_KAFKA_RESP_ERR__TIMED_OUT);
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            note(reading, message->partition, INT64_MAX);
        } else if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
            code = message->err;
        } else {
            if (reading->ends[message->partition] > message->offset && !give(reading, message)) {
                go_on = reading->history->from != NULL;
                leave(reading, message->partition);
            }
            note(reading, message->partition, message->offset + 1);
        }
        rd_kafka_message_destroy(message);
    }
    return code == RD_KAFKA_RESP_ERR_NO_ERROR || fail(reading, code);
}

/* The handle is closed without leaving a group, since it never joined one. */
bool rcpt_kafka_read_history(const struct rcpt_kafka_history *history, struct rcpt_error *error)
{
    struct reading reading = {.history = history, .error = error};
    rd_kafka_conf_t *conf = make_conf(history, error);
    if (conf == NULL || (reading.handle = rcpt_kafka_open(conf, error)) == NULL)
        return false;
    rd_kafka_poll_set_consumer(reading.handle);
    bool good = find_partitions(&reading) && skip_older(&reading) && read_all(&reading);
    if (reading.places != NULL)
        rd_kafka_topic_partition_list_destroy(reading.places);
    free(reading.ends);
    rd_kafka_destroy_flags(reading.handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return good;
}

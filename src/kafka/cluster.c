/* Lookups in threads of their own: cluster id, partition counts, the ends of a partition's log.
 *
 * Each lookup has a short-lived handle that is no member of the group. So blocking calls never
 * touch the consumer's handle, closing it waits for no lookup, and names of brokers are resolved
 * again each time. Called by consumer.c's tick, messages.c (out of range) and the owner (low
 * watermarks); results arrive on the loop.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* A lookup's calls share its time-out; its thread is given up after the allowance, which also
 * covers the end of the handle. */
#define LOOKUP_TIMEOUT_MS   5000
#define LOOKUP_ALLOWANCE_MS 12000
#define RANGE_TIMEOUT_MS    8000
#define RANGE_ALLOWANCE_MS  12000
#define NAME_LIST_BYTES     240

/* Never 0, which librdkafka would take for no waiting at all. */
static int remaining_ms(uint64_t deadline_ns)
{
    uint64_t now = uv_hrtime();
    return now + 10 * 1000000ull > deadline_ns ? 10 : (int)((deadline_ns - now) / 1000000);
}

/* The more an error says about the cause, the higher. */
static int rank_of(rd_kafka_resp_err_t code)
{
    switch (code) {
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
        return 3;
    case RD_KAFKA_RESP_ERR__RESOLVE:
        return 2;
    case RD_KAFKA_RESP_ERR__TRANSPORT:
        return 1;
    default:
        return 0;
    }
}

/* Why a lookup failed: the events of its handle tell more than the call's result. */
static void explain(rd_kafka_t *handle, rd_kafka_resp_err_t code, const char *subject,
                    struct rcpt_error *error)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(handle);
    rd_kafka_event_t *event;
    rcpt_kafka_describe(error, code, subject, NULL);
    int best = 0;
    while ((event = rd_kafka_queue_poll(queue, 0)) != NULL) {
        int rank = rank_of(rd_kafka_event_error(event));
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR && rank > best) {
            best = rank;
            rcpt_kafka_describe(error, rd_kafka_event_error(event), subject,
                                rd_kafka_event_error_string(event));
        }
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
}

/* librdkafka takes the configuration over only where it succeeds. */
static rd_kafka_t *open_handle(rd_kafka_conf_t *conf_taken, struct rcpt_error *error)
{
    char text[256];
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_CONSUMER, conf_taken, text, sizeof(text));
    if (handle == NULL) {
        rd_kafka_conf_destroy(conf_taken);
        rcpt_error_set(error, RCPT_DECISION_RETRY, "KAFKA_HANDLE", "librdkafka refuses: %s", text);
    }
    return handle;
}

/* ---- cluster id and partition counts ---- */

struct lookup {
    struct rcpt_kafka_job job;
    struct rcpt_kafka *kafka; /* the loop's */
    rd_kafka_t *handle;       /* or: */
    rd_kafka_conf_t *conf;
    char *brokers;
    char **topics;
    size_t topic_count;
    /* results */
    char *cluster_id;
    int32_t *counts;
    struct rcpt_error error; /* decision NONE: all counts are known */
};

/* False: the lookup ends here, with its error. */
static bool lookup_topic(struct lookup *lookup, size_t index, uint64_t deadline)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(lookup->handle, lookup->topics[index], NULL);
    rd_kafka_resp_err_t code =
        rd_kafka_metadata(lookup->handle, 0, topic, &metadata, remaining_ms(deadline));
    rd_kafka_topic_destroy(topic);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        explain(lookup->handle, code, lookup->brokers, &lookup->error);
        return false;
    }
    code = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR__FAIL;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        lookup->counts[index] = metadata->topics[0].partition_cnt;
    else if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        lookup->counts[index] = 0;
    else
        rcpt_kafka_describe(&lookup->error, code, lookup->topics[index], NULL);
    rd_kafka_metadata_destroy(metadata);
    return lookup->error.decision == RCPT_DECISION_NONE;
}

/* In the thread. A time-out holds for all calls together. */
static void lookup_work(struct rcpt_kafka_job *job)
{
    struct lookup *lookup = (struct lookup *)job;
    uint64_t deadline = uv_hrtime() + LOOKUP_TIMEOUT_MS * 1000000ull;
    if (lookup->handle == NULL) {
        lookup->handle = open_handle(lookup->conf, &lookup->error);
        lookup->conf = NULL;
        if (lookup->handle == NULL)
            return;
    }
    for (size_t i = 0; i < lookup->topic_count; i++)
        if (!lookup_topic(lookup, i, deadline))
            break;
    if (lookup->error.decision == RCPT_DECISION_NONE)
        lookup->cluster_id = rd_kafka_clusterid(lookup->handle, remaining_ms(deadline));
    rd_kafka_destroy(lookup->handle);
    lookup->handle = NULL;
}

/* After the loop has answered the job, or by its late thread. */
static void lookup_free(struct rcpt_kafka_job *job)
{
    struct lookup *lookup = (struct lookup *)job;
    for (size_t i = 0; i < lookup->topic_count; i++)
        free(lookup->topics[i]);
    free(lookup->topics);
    free(lookup->brokers);
    free(lookup->counts);
    if (lookup->cluster_id != NULL)
        rd_kafka_mem_free(NULL, lookup->cluster_id);
    if (lookup->conf != NULL)
        rd_kafka_conf_destroy(lookup->conf);
    free(lookup);
}

/* After a failure; a random back-off, at most RCPT_KAFKA_LOOKUP_MAX_MS. */
static void lookup_again(struct rcpt_kafka *kafka)
{
    kafka->lookup_at_ms = rcpt_kafka_now_ms(kafka) + rcpt_backoff_next_ms(&kafka->lookup_backoff);
}

/* A count never goes down here: a topic that is gone for a moment is not a topic with fewer
 * partitions. */
static bool take_counts(struct rcpt_kafka *kafka, const struct lookup *lookup)
{
    bool news = false;
    for (size_t i = 0; i < lookup->topic_count; i++) {
        if (lookup->counts[i] <= kafka->counts[i])
            continue;
        kafka->counts[i] = lookup->counts[i];
        news = true;
        if (lookup->counts[i] > 0)
            rcpt_log_info("kafka", "topic %s has %d partitions", lookup->topics[i],
                          lookup->counts[i]);
    }
    if (lookup->cluster_id != NULL &&
        (kafka->cluster_id == NULL || strcmp(kafka->cluster_id, lookup->cluster_id) != 0)) {
        free(kafka->cluster_id);
        kafka->cluster_id = rcpt_strdup(lookup->cluster_id);
        rcpt_log_info("kafka", "cluster %s answers at %s", kafka->cluster_id, lookup->brokers);
        news = true;
    }
    return news;
}

/* All topics each time, so that the owner need not merge. */
static void report_cluster(struct rcpt_kafka *kafka)
{
    size_t count = kafka->settings.topic_count;
    struct rcpt_kafka_topic_info *infos = rcpt_calloc(count, sizeof(*infos));
    for (size_t i = 0; i < count; i++) {
        infos[i].topic = kafka->settings.topics[i];
        infos[i].partition_count = kafka->counts[i];
    }
    kafka->callbacks.on_cluster(kafka->callbacks.context,
                                kafka->cluster_id != NULL ? kafka->cluster_id : "", infos, count);
    free(infos);
}

/* The names of topics that are not there; false if all are. */
static bool missing_topics(const struct lookup *lookup, char names[NAME_LIST_BYTES])
{
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < lookup->topic_count && used < NAME_LIST_BYTES; i++)
        if (lookup->counts[i] == 0)
            used += (size_t)snprintf(names + used, NAME_LIST_BYTES - used, "%s%s",
                                     used > 0 ? ", " : "", lookup->topics[i]);
    return used > 0;
}

/* A topic that is missing is trouble of the cluster: the lookup is repeated, with back-off. */
static void judge_topics(struct rcpt_kafka *kafka, const struct lookup *lookup)
{
    char names[NAME_LIST_BYTES];
    struct rcpt_error error;
    if (!missing_topics(lookup, names)) {
        rcpt_backoff_reset(&kafka->lookup_backoff);
        rcpt_kafka_cluster_fine(kafka);
        return;
    }
    rcpt_error_set(&error, RCPT_DECISION_RETRY,
                   rd_kafka_err2name(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART),
                   "topic %s does not exist on %s", names, lookup->brokers);
    rcpt_error_hint(&error, "create it, or correct %s",
                    kafka->settings.topics_key != NULL ? kafka->settings.topics_key
                                                       : "kafka.topics");
    rcpt_kafka_cluster_trouble(kafka, &error);
    lookup_again(kafka);
}

/* On the loop. `kafka` may be closing: then the result does not matter. */
static void lookup_done(struct rcpt_kafka_job *job, bool in_time)
{
    struct lookup *lookup = (struct lookup *)job;
    struct rcpt_kafka *kafka = lookup->kafka;
    struct rcpt_error late;
    kafka->lookup_in_flight = false;
    if (kafka->life != LIFE_OPEN)
        return;
    rcpt_kafka_describe(&late, RD_KAFKA_RESP_ERR__TIMED_OUT, lookup->brokers, NULL);
    const struct rcpt_error *error = in_time ? &lookup->error : &late;
    if (error->decision != RCPT_DECISION_NONE) {
        rcpt_kafka_cluster_trouble(kafka, error);
        lookup_again(kafka);
        return;
    }
    bool news = take_counts(kafka, lookup);
    judge_topics(kafka, lookup);
    if (news)
        report_cluster(kafka);
    kafka->on_topics_known(kafka);
}

/* The job copies its input, because it may outlive the consumer if its thread hangs. */
void rcpt_kafka_look_up(struct rcpt_kafka *kafka, rd_kafka_t *handle_taken)
{
    struct rcpt_error ignored; /* the same settings were accepted at the start */
    struct lookup *lookup = rcpt_calloc(1, sizeof(*lookup));
    size_t count = kafka->settings.topic_count;
    lookup->job.work = lookup_work;
    lookup->job.done = lookup_done;
    lookup->job.free = lookup_free;
    lookup->kafka = kafka;
    lookup->handle = handle_taken;
    lookup->conf =
        handle_taken == NULL ? rcpt_kafka_conf_new(&kafka->settings, NULL, &ignored) : NULL;
    lookup->brokers = rcpt_strdup(kafka->settings.brokers);
    lookup->topics = rcpt_calloc(count, sizeof(*lookup->topics));
    lookup->counts = rcpt_calloc(count, sizeof(*lookup->counts));
    lookup->topic_count = count;
    for (size_t i = 0; i < count; i++)
        lookup->topics[i] = rcpt_strdup(kafka->settings.topics[i]);
    kafka->lookup_in_flight = true;
    kafka->lookup_at_ms = INT64_MAX;
    rcpt_kafka_workers_start(kafka->workers, &lookup->job, LOOKUP_ALLOWANCE_MS);
}

/* ---- the ends of partitions ---- */

typedef void on_low_done(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                         const struct rcpt_error *error);

/* Two users: the owner's low watermarks, for all partitions asked, and the ends of one partition
 * that is out of range, which `epoch` ties to its assignment. */
struct range_query {
    struct rcpt_kafka_job job;
    struct rcpt_kafka *kafka; /* the loop's */
    rd_kafka_conf_t *conf;
    size_t count;
    struct range {
        char *topic;
        int32_t partition;
        int64_t low, high;
    } * ranges;
    struct rcpt_error error; /* of the last one that could not be read */
    /* rcpt_kafka_query_low */
    on_low_done *on_done;
    void *context;
    /* a partition out of range */
    uint64_t epoch;
    int64_t requested;
};

/* In the thread. A partition that cannot be read gets -1; the others go on. */
static void range_work(struct rcpt_kafka_job *job)
{
    struct range_query *query = (struct range_query *)job;
    uint64_t deadline = uv_hrtime() + RANGE_TIMEOUT_MS * 1000000ull;
    rd_kafka_t *handle = open_handle(query->conf, &query->error);
    query->conf = NULL;
    if (handle == NULL)
        return;
    for (size_t i = 0; i < query->count; i++) {
        struct range *range = &query->ranges[i];
        rd_kafka_resp_err_t code =
            rd_kafka_query_watermark_offsets(handle, range->topic, range->partition, &range->low,
                                             &range->high, remaining_ms(deadline));
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        range->low = range->high = -1;
        explain(handle, code, range->topic, &query->error);
    }
    rd_kafka_destroy(handle);
}

/* As lookup_free(). */
static void range_free(struct rcpt_kafka_job *job)
{
    struct range_query *query = (struct range_query *)job;
    for (size_t i = 0; i < query->count; i++)
        free(query->ranges[i].topic);
    free(query->ranges);
    if (query->conf != NULL)
        rd_kafka_conf_destroy(query->conf);
    free(query);
}

/* The caller sets the callback for the end. */
static struct range_query *range_query_new(struct rcpt_kafka *kafka, size_t count)
{
    struct rcpt_error ignored;
    struct range_query *query = rcpt_calloc(1, sizeof(*query));
    query->job.work = range_work;
    query->job.free = range_free;
    query->kafka = kafka;
    query->conf = rcpt_kafka_conf_new(&kafka->settings, NULL, &ignored);
    query->count = count;
    query->ranges = rcpt_calloc(count, sizeof(*query->ranges));
    return query;
}

static void range_set(struct range_query *query, size_t index, const char *topic, int32_t partition)
{
    query->ranges[index] = (struct range){rcpt_strdup(topic), partition, -1, -1};
}

/* The owner is answered even when the handle closes: it frees its context then. */
static void low_done(struct rcpt_kafka_job *job, bool in_time)
{
    struct range_query *query = (struct range_query *)job;
    struct rcpt_kafka_partition *partitions = rcpt_calloc(query->count, sizeof(*partitions));
    struct rcpt_error late;
    rcpt_kafka_describe(&late, RD_KAFKA_RESP_ERR__TIMED_OUT, "low watermarks", NULL);
    const struct rcpt_error *error = in_time ? &query->error : &late;
    for (size_t i = 0; i < query->count; i++) {
        partitions[i].topic = query->ranges[i].topic;
        partitions[i].partition = query->ranges[i].partition;
        partitions[i].offset = in_time ? query->ranges[i].low : -1;
    }
    query->on_done(query->context, partitions, query->count,
                   error->decision != RCPT_DECISION_NONE ? error : NULL);
    free(partitions);
}

void rcpt_kafka_query_low(struct rcpt_kafka *kafka, const struct rcpt_kafka_partition *partitions,
                          size_t count, on_low_done *on_done, void *context)
{
    struct range_query *query = range_query_new(kafka, count);
    query->job.done = low_done;
    query->on_done = on_done;
    query->context = context;
    for (size_t i = 0; i < count; i++)
        range_set(query, i, partitions[i].topic, partitions[i].partition);
    rcpt_kafka_workers_start(kafka->workers, &query->job, RANGE_ALLOWANCE_MS);
}

/* The partition may have been moved, or revoked and assigned again, in the meantime. */
static void out_of_range_done(struct rcpt_kafka_job *job, bool in_time)
{
    struct range_query *query = (struct range_query *)job;
    struct rcpt_kafka *kafka = query->kafka;
    const struct range *range = &query->ranges[0];
    struct partition *partition = rcpt_kafka_find(kafka, range->topic, range->partition);
    if (kafka->life != LIFE_OPEN || partition == NULL || partition->epoch != query->epoch ||
        partition->state != PARTITION_OUT_OF_RANGE)
        return;
    int64_t low = in_time ? range->low : -1, high = in_time ? range->high : -1;
    rcpt_log_warn("kafka",
                  "%s [%d]: offset %lld is not in the log, which holds %lld up to %lld (-1: could "
                  "not be read)",
                  partition->topic, partition->partition, (long long)query->requested,
                  (long long)low, (long long)high);
    kafka->callbacks.on_out_of_range(kafka->callbacks.context, partition->tag, partition->topic,
                                     partition->partition, query->requested, low, high);
}

void rcpt_kafka_query_range(struct rcpt_kafka *kafka, const struct partition *partition,
                            int64_t requested)
{
    struct range_query *query = range_query_new(kafka, 1);
    query->job.done = out_of_range_done;
    query->epoch = partition->epoch;
    query->requested = requested;
    range_set(query, 0, partition->topic, partition->partition);
    rcpt_kafka_workers_start(kafka->workers, &query->job, RANGE_ALLOWANCE_MS);
}

/* One topic that does not exist does not hide the others; brokers that do not answer end the count.
 */
void rcpt_kafka_count_partitions(rd_kafka_t *handle, rd_kafka_topic_t *const *topics, size_t count,
                                 const char *brokers, int32_t *counts, struct rcpt_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct rd_kafka_metadata *metadata;
        rd_kafka_resp_err_t code =
            rd_kafka_metadata(handle, 0, topics[i], &metadata, LOOKUP_TIMEOUT_MS);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
            code = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR__FAIL;
            counts[i] = code == RD_KAFKA_RESP_ERR_NO_ERROR ? metadata->topics[0].partition_cnt : 0;
            rd_kafka_metadata_destroy(metadata);
        }
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        bool silent = code == RD_KAFKA_RESP_ERR__TRANSPORT || code == RD_KAFKA_RESP_ERR__TIMED_OUT;
        rcpt_kafka_describe(error, code, silent ? brokers : rd_kafka_topic_name(topics[i]), NULL);
        if (code != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
            break;
    }
}

/* The meaning of librdkafka's errors, and the transitions of health.
 *
 * There are three kinds of trouble. The cluster's is cleared by a lookup that finds it and all
 * topics. The group's is cleared by an assignment. A partition's is cleared by one of its messages
 * or a new position. The owner is called at transitions only; the log is limited by code. Called by
 * all files of the consumer.
 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"

#include "receiptd/base/error.h"

/* Lines about one error code are suppressed for so long; the next line has their number. */
#define LOG_AGAIN_MS 30000

enum meaning {
    MEANS_NOTHING, /* logged; librdkafka goes on by itself */
    MEANS_CLUSTER,
    MEANS_GROUP,
};

struct known_error {
    rd_kafka_resp_err_t code;
    enum meaning meaning;
    const char *hint;
};

static const struct known_error known_errors[] = {
    {RD_KAFKA_RESP_ERR__TRANSPORT, MEANS_NOTHING, "is the broker up and reachable from here?"},
    {RD_KAFKA_RESP_ERR__RESOLVE, MEANS_NOTHING,
     "the host name of a broker cannot be resolved: check kafka.brokers and DNS"},
    {RD_KAFKA_RESP_ERR__TIMED_OUT, MEANS_NOTHING, "the broker did not answer in time"},
    {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, MEANS_CLUSTER,
     "no broker can be reached: check kafka.brokers, the network and the brokers"},
    {RD_KAFKA_RESP_ERR__AUTHENTICATION, MEANS_CLUSTER,
     "check sasl.mechanism, sasl.username and sasl.password in kafka.properties"},
    {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, MEANS_CLUSTER,
     "check sasl.mechanism, sasl.username and sasl.password in kafka.properties"},
    {RD_KAFKA_RESP_ERR__SSL, MEANS_CLUSTER,
     "check security.protocol and ssl.ca.location in kafka.properties"},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, MEANS_CLUSTER,
     "grant DESCRIBE on the cluster to receiptd's user"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, MEANS_CLUSTER,
     "create the topic, or correct kafka.topics"},
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, MEANS_CLUSTER, "create the topic, or correct kafka.topics"},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, MEANS_CLUSTER,
     "the topic's name is not valid: correct kafka.topics"},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, MEANS_CLUSTER,
     "grant READ and DESCRIBE on the topic to receiptd's user"},
    {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, MEANS_GROUP,
     "grant READ on the consumer group to receiptd's user"},
    {RD_KAFKA_RESP_ERR_INVALID_SESSION_TIMEOUT, MEANS_GROUP,
     "session.timeout.ms must lie within the broker's group.min/max.session.timeout.ms"},
    {RD_KAFKA_RESP_ERR_INCONSISTENT_GROUP_PROTOCOL, MEANS_GROUP,
     "other members of kafka.group use another partition.assignment.strategy"},
    {RD_KAFKA_RESP_ERR_GROUP_MAX_SIZE_REACHED, MEANS_GROUP,
     "the broker's group.max.size is reached: run fewer instances or raise it"},
    {RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED, MEANS_GROUP,
     "the process was stopped or starved for longer than max.poll.interval.ms; it joins again by "
     "itself"},
    {RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, MEANS_GROUP,
     "another process runs with the same kafka.instance_id: give each its own. If none does, the "
     "answer to a join was lost on the way, and a restart heals it"},
    {RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET, MEANS_NOTHING, ""},
    {RD_KAFKA_RESP_ERR__BAD_MSG, MEANS_NOTHING,
     "a batch is damaged, in transit or on the broker's disk; it is fetched again, nothing is "
     "skipped"},
    {RD_KAFKA_RESP_ERR__BAD_COMPRESSION, MEANS_NOTHING,
     "a batch cannot be decompressed; it is fetched again, nothing is skipped"},
    {RD_KAFKA_RESP_ERR__NOT_IMPLEMENTED, MEANS_NOTHING,
     "a batch is of a format or codec that this librdkafka lacks; nothing is skipped"},
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, MEANS_NOTHING,
     "raise receive.message.max.bytes in kafka.properties"},
};

/* NULL: librdkafka's own text has to do. */
static const struct known_error *known_error(rd_kafka_resp_err_t code)
{
    for (size_t i = 0; i < RCPT_COUNT_OF(known_errors); i++)
        if (known_errors[i].code == code)
            return &known_errors[i];
    return NULL;
}

/* Decision RETRY: only on_fatal_error() says more. */
void rcpt_kafka_describe(struct rcpt_error *error, rd_kafka_resp_err_t code, const char *subject,
                         const char *text)
{
    const struct known_error *known = known_error(code);
    rcpt_error_set(error, RCPT_DECISION_RETRY, rd_kafka_err2name(code), "%s: %s", subject,
                   text != NULL ? text : rd_kafka_err2str(code));
    if (known != NULL)
        rcpt_error_hint(error, "%s", known->hint);
}

/* The entry of this code, or the oldest one. */
static struct logged_code *logged_slot(struct health *health, const char *code)
{
    struct logged_code *oldest = &health->logged[0];
    for (size_t i = 0; i < LOGGED_CODES; i++) {
        struct logged_code *slot = &health->logged[i];
        if (slot->at_ms != 0 && strcmp(slot->code, code) == 0)
            return slot;
        if (slot->at_ms < oldest->at_ms)
            oldest = slot;
    }
    memset(oldest, 0, sizeof(*oldest));
    return oldest;
}

/* The same trouble is logged again after 30 s, with the count in between. */
static void log_limited(struct rcpt_kafka *kafka, const struct rcpt_error *error)
{
    struct logged_code *slot = logged_slot(&kafka->health, error->code);
    int64_t now = rcpt_kafka_now_ms(kafka);
    if (slot->at_ms != 0 && now - slot->at_ms < LOG_AGAIN_MS) {
        slot->suppressed++;
        return;
    }
    char repeated[48] = "";
    if (slot->suppressed > 0)
        snprintf(repeated, sizeof(repeated), " (%u times more before)", slot->suppressed);
    snprintf(slot->code, sizeof(slot->code), "%s", error->code);
    slot->at_ms = now > 0 ? now : 1;
    slot->suppressed = 0;
    rcpt_log_warn("kafka", "%s [%s]%s%s%s", error->text, error->code, repeated,
                  error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
}

/* None of the three kinds of trouble, and not failed for good. */
static bool is_healthy(const struct health *health)
{
    return !health->cluster_trouble && !health->group_trouble && !health->fatal &&
           health->troubled_partitions == 0;
}

/* The owner shows the error to operators as the reason why the instance is not ready. */
static void report_trouble(struct rcpt_kafka *kafka, const struct rcpt_error *error)
{
    kafka->health.healthy = false;
    kafka->callbacks.on_health(kafka->callbacks.context, false, error);
}

/* Healthy only when all three kinds are clear. */
static void report_if_healthy(struct rcpt_kafka *kafka)
{
    struct health *health = &kafka->health;
    if (health->healthy || !is_healthy(health))
        return;
    health->healthy = true;
    kafka->callbacks.on_health(kafka->callbacks.context, true, NULL);
}

/* The owner is called again where the cause has changed: its reason is shown to operators. */
void rcpt_kafka_cluster_trouble(struct rcpt_kafka *kafka, const struct rcpt_error *error)
{
    struct rcpt_error advised = *error;
    rcpt_kafka_advise(&kafka->settings, &advised);
    log_limited(kafka, &advised);
    bool news =
        !kafka->health.cluster_trouble || strcmp(kafka->health.cluster_code, error->code) != 0;
    kafka->health.cluster_trouble = true;
    snprintf(kafka->health.cluster_code, sizeof(kafka->health.cluster_code), "%.31s", error->code);
    if (news)
        report_trouble(kafka, &advised);
}

/* Only a lookup that found the cluster and all topics clears this trouble. */
void rcpt_kafka_cluster_fine(struct rcpt_kafka *kafka)
{
    if (kafka->health.cluster_trouble)
        rcpt_log_info("kafka", "the cluster answers and has all topics");
    kafka->health.cluster_trouble = false;
    report_if_healthy(kafka);
}

/* Reported once; the owner keeps the first reason. */
static void group_trouble(struct rcpt_kafka *kafka, const struct rcpt_error *error)
{
    log_limited(kafka, error);
    bool news = !kafka->health.group_trouble;
    kafka->health.group_trouble = true;
    if (news)
        report_trouble(kafka, error);
}

/* An assignment shows that the group works. */
void rcpt_kafka_group_fine(struct rcpt_kafka *kafka)
{
    kafka->health.group_trouble = false;
    report_if_healthy(kafka);
}

/* `troubled_partitions` counts each partition once. */
void rcpt_kafka_partition_trouble(struct rcpt_kafka *kafka, struct partition *partition,
                                  const struct rcpt_error *error)
{
    log_limited(kafka, error);
    if (partition->troubled)
        return;
    partition->troubled = true;
    kafka->health.troubled_partitions++;
    report_trouble(kafka, error);
}

/* A record of the partition, or a new position, clears its trouble. */
void rcpt_kafka_partition_fine(struct rcpt_kafka *kafka, struct partition *partition)
{
    if (!partition->troubled)
        return;
    partition->troubled = false;
    kafka->health.troubled_partitions--;
    report_if_healthy(kafka);
}

/* Once. The owner ends the process. */
void rcpt_kafka_fatal(struct rcpt_kafka *kafka, const struct rcpt_error *error)
{
    if (kafka->health.fatal)
        return;
    kafka->health.fatal = true;
    kafka->polling = false;
    rcpt_log_error("kafka", "%s [%s]%s%s", error->text, error->code,
                   error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
    report_trouble(kafka, error);
}

/* The handle is unusable: only a restarted process can go on. */
static void on_fatal_error(struct rcpt_kafka *kafka, rd_kafka_resp_err_t code, const char *text)
{
    struct rcpt_error error;
    rcpt_kafka_describe(&error, code, "the kafka client has failed for good", text);
    error.decision = RCPT_DECISION_FATAL;
    error.exit_code = EX_TEMPFAIL;
    rcpt_kafka_fatal(kafka, &error);
}

/* After an error whose cause the cluster's metadata may show. It never makes a lookup later. */
void rcpt_kafka_look_up_soon(struct rcpt_kafka *kafka)
{
    int64_t soon = rcpt_kafka_now_ms(kafka) + RCPT_KAFKA_LOOKUP_MIN_MS;
    if (soon < kafka->lookup_at_ms)
        kafka->lookup_at_ms = soon;
}

/* librdkafka mends most of these by itself; they are logged with advice and change no health. */
void rcpt_kafka_on_error(struct rcpt_kafka *kafka, rd_kafka_resp_err_t code, const char *text,
                         bool fatal)
{
    if (fatal || code == RD_KAFKA_RESP_ERR__FATAL) {
        on_fatal_error(kafka, code, text);
        return;
    }
    struct rcpt_error error;
    const struct known_error *known = known_error(code);
    rcpt_kafka_describe(&error, code, kafka->settings.brokers, text);
    switch (known != NULL ? known->meaning : MEANS_NOTHING) {
    case MEANS_NOTHING:
        rcpt_kafka_advise(&kafka->settings, &error);
        log_limited(kafka, &error);
        break;
    case MEANS_CLUSTER:
        rcpt_kafka_cluster_trouble(kafka, &error);
        rcpt_kafka_look_up_soon(kafka);
        break;
    case MEANS_GROUP:
        group_trouble(kafka, &error);
        break;
    }
}

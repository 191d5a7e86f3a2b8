/* Properties of the clients that send: the intake's producer and the folds' transactor. Both take
 * the user's kafka.properties, which were written for the consumer, as far as they apply.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/kafka/producer.h"
#include "receiptd/kafka/transactor.h"

/* ---- the producer ---- */

static const struct rcpt_kafka_property fixed[] = {
    {"enable.idempotence", "true"},
    {"acks", "all"},
    {"allow.auto.create.topics", "false"},
    /* Sent at once: batches are made before they come here. */
    {"linger.ms", "0"},
    {"queue.buffering.max.messages", "1000000"},
    {"socket.nagle.disable", "true"},
};

static const struct rcpt_kafka_property defaults[] = {
    {"client.id", "receiptd-intake"}, {"socket.keepalive.enable", "true"},
    {"reconnect.backoff.ms", "50"},   {"reconnect.backoff.max.ms", "2000"},
    {"retry.backoff.ms", "50"},       {"topic.metadata.refresh.interval.ms", "30000"},
};

/* Properties that would break the intake's promise: a record that was acknowledged is in Kafka. */
static bool is_ours(const char *name, struct rcpt_error *error)
{
    static const char *const also[] = {"request.required.acks", "message.timeout.ms",
                                       "delivery.timeout.ms",   "queue.buffering.max.kbytes",
                                       "message.max.bytes",     "compression.codec",
                                       "compression.type",      "transactional.id"};
    bool ours = false;
    for (size_t i = 0; i < RCPT_COUNT_OF(fixed); i++)
        ours = ours || strcasecmp(name, fixed[i].name) == 0;
    for (size_t i = 0; i < RCPT_COUNT_OF(also); i++)
        ours = ours || strcasecmp(name, also[i]) == 0;
    if (ours) {
        rcpt_error_fatal(error, EX_CONFIG, "kafka property %s cannot be set: the intake needs it",
                         name);
        rcpt_error_hint(error, "remove it; see the intake section");
    }
    return ours;
}

/* Checked as those of the consumer, and refused where the producer's promise needs another value.
 */
static bool set_users(rd_kafka_conf_t *conf, const struct rcpt_producer_settings *settings,
                      struct rcpt_error *error)
{
    for (size_t i = 0; i < settings->property_count; i++) {
        const struct rcpt_kafka_property *property = &settings->properties[i];
        if (is_ours(property->name, error) ||
            !rcpt_kafka_check_property(property->name, property->value, error) ||
            !rcpt_kafka_set_property(conf, property->name, property->value, error))
            return false;
    }
    return true;
}

/* Twice the budget for librdkafka's own queue: the producer's bound has to be met first. */
static bool set_sizes(rd_kafka_conf_t *conf, const struct rcpt_producer_settings *settings,
                      struct rcpt_error *error)
{
    char kbytes[32], record[32], timeout[32];
    snprintf(kbytes, sizeof(kbytes), "%zu", settings->budget_bytes / 1024 * 2 + 1024);
    snprintf(record, sizeof(record), "%zu", settings->max_record_bytes + 65536);
    snprintf(timeout, sizeof(timeout), "%lld", (long long)settings->delivery_timeout_ms);
    return rcpt_kafka_set_property(conf, "queue.buffering.max.kbytes", kbytes, error) &&
           rcpt_kafka_set_property(conf, "message.max.bytes", record, error) &&
           rcpt_kafka_set_property(conf, "message.timeout.ms", timeout, error) &&
           rcpt_kafka_set_property(conf, "compression.type", settings->compression, error);
}

/* From librdkafka's own threads. Its warnings about the consumer's properties are expected. */
static void log_line(const char *client, int level, const char *facility, const char *text)
{
    if (strcmp(facility, "CONFWARN") != 0)
        rcpt_log_debug("kafka", "%s: %s (%s, level %d)", client, text, facility, level);
}

/* librdkafka calls this in its own threads; our log takes lines from any thread. */
static void on_producer_log(const rd_kafka_t *handle, int level, const char *facility,
                            const char *text)
{
    (void)handle;
    log_line("producer", level, facility, text);
}

static void on_transactor_log(const rd_kafka_t *handle, int level, const char *facility,
                              const char *text)
{
    (void)handle;
    log_line("folds", level, facility, text);
}

/* Our fixed properties come after the user's, so that they prevail. */
rd_kafka_conf_t *rcpt_producer_conf_new(const struct rcpt_producer_settings *settings,
                                        struct rcpt_error *error)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (!rcpt_kafka_set_properties(conf, defaults, RCPT_COUNT_OF(defaults), error) ||
        !rcpt_kafka_set_property(conf, "bootstrap.servers", settings->brokers, error) ||
        !set_users(conf, settings, error) ||
        !rcpt_kafka_set_properties(conf, fixed, RCPT_COUNT_OF(fixed), error) ||
        !set_sizes(conf, settings, error)) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_DR | RD_KAFKA_EVENT_ERROR);
    rd_kafka_conf_set_log_cb(conf, on_producer_log);
    return conf;
}

/* ---- the transactor ---- */

static const struct rcpt_kafka_property transactional[] = {
    {"client.id", "receiptd-folds"},
    {"compression.type", "lz4"},
    {"linger.ms", "5"},
    {"message.timeout.ms", "15000"},
    {"topic.metadata.propagation.max.ms", "5000"}, /* then a topic does not exist */
    {"enable.idempotence", "true"},
    {"socket.keepalive.enable", "true"},
    {"reconnect.backoff.max.ms", "2000"},
    {"transaction.timeout.ms", "20000"},
};

/* Properties that kafka.properties may hold, but a producer does not use. */
static bool is_of_the_consumer(const char *name)
{
    static const char *const prefixes[] = {"fetch.",  "session.",      "heartbeat.", "max.poll.",
                                           "queued.", "check.",        "isolation.", "partition.",
                                           "group.",  "max.partition."};
    for (size_t index = 0; index < RCPT_COUNT_OF(prefixes); index++)
        if (strncasecmp(name, prefixes[index], strlen(prefixes[index])) == 0)
            return true;
    return false;
}

/* The reader of the mark takes all properties, the producer only those that are not a
 * consumer's. */
static bool set_transactors(rd_kafka_conf_t *conf, const struct rcpt_transactor_settings *settings,
                            bool producer, struct rcpt_error *error)
{
    for (size_t index = 0; index < settings->property_count; index++) {
        const struct rcpt_kafka_property *property = &settings->properties[index];
        if (producer && is_of_the_consumer(property->name))
            continue;
        if (!rcpt_kafka_check_property(property->name, property->value, error) ||
            !rcpt_kafka_set_property(conf, property->name, property->value, error))
            return false;
    }
    return true;
}

/* Two kinds: the transactional producer, and the consumer that reads the mark. */
rd_kafka_conf_t *rcpt_transactor_conf_new(const struct rcpt_transactor_settings *settings,
                                          bool producer, struct rcpt_error *error)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    bool good = rcpt_kafka_set_property(conf, "bootstrap.servers", settings->brokers, error) &&
                set_transactors(conf, settings, producer, error);
    if (good && producer)
        good =
            rcpt_kafka_set_properties(conf, transactional, RCPT_COUNT_OF(transactional), error) &&
            rcpt_kafka_set_property(conf, "transactional.id", settings->id, error);
    else if (good)
        good = rcpt_kafka_set_property(conf, "group.id", settings->id, error) &&
               rcpt_kafka_set_property(conf, "isolation.level", "read_committed", error);
    rd_kafka_conf_set_log_cb(conf, on_transactor_log);
    if (good)
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

/* The Kafka producer on the libuv loop: records in, each one's acknowledgement back.
 *
 * Idempotent, acks=all: a record that is reported as delivered is on all in-sync replicas, once.
 * Bounded by bytes; never blocks. The caller may send a refused or failed record again. A client
 * that failed for good is replaced by a new one. Call from the loop's thread only.
 */
#ifndef RECEIPTD_KAFKA_PRODUCER_H
#define RECEIPTD_KAFKA_PRODUCER_H

#include "receiptd/kafka/consumer.h"

#define RCPT_PRODUCER_MAX_TOPICS 32u

struct rcpt_producer;

struct rcpt_producer_header {
    const char *name;
    const void *value;
    size_t size;
};

struct rcpt_producer_record {
    size_t topic;      /* index in the settings */
    int32_t partition; /* -1: any */
    const void *key;   /* copied; NULL: none */
    size_t key_size;
    void *value; /* from malloc; the producer's once it is taken */
    size_t value_size;
    const struct rcpt_producer_header *headers; /* copied */
    size_t header_count;
    void *tag; /* comes back with the outcome */
};

enum rcpt_producer_sent {
    RCPT_PRODUCER_TAKEN, /* on_delivered will be called, once, never from inside send */
    RCPT_PRODUCER_FULL,  /* the budget is used up: later */
    RCPT_PRODUCER_DOWN,  /* no client at the moment, or it is closing: later */
};

struct rcpt_producer_callbacks {
    void *context;
    /* error NULL: acknowledged by all in-sync replicas. RETRY: it may be there or not;
     * REJECT: the broker does not want this record, however often it comes. */
    void (*on_delivered)(void *context, void *tag, const struct rcpt_error *error);
    void (*on_round)(void *context); /* after some deliveries; NULL: not called */
    /* Partitions of a topic: when first known, and when their number changes. 0: no such topic. */
    void (*on_partitions)(void *context, size_t topic, int32_t count);
    /* Transitions, and each trouble that is logged. */
    void (*on_health)(void *context, bool healthy, const struct rcpt_error *error);
    void (*on_closed)(void *context);
};

struct rcpt_producer_settings {
    uv_loop_t *loop;
    const char *brokers;
    const struct rcpt_kafka_property *properties; /* as for the consumer; its own are passed over */
    size_t property_count;
    const char *const *topics;
    size_t topic_count;
    /* Where the configuration names each topic, for hints; borrowed. NULL: in pipelines. */
    const char *const *topic_keys;
    const char *compression; /* none, gzip, snappy, lz4, zstd */
    size_t budget_bytes;
    size_t max_record_bytes;
    int64_t delivery_timeout_ms; /* after which a record has failed */
    struct rcpt_producer_callbacks callbacks;
};

RCPT_MUST_CHECK struct rcpt_producer *rcpt_producer_new(
    const struct rcpt_producer_settings *settings, struct rcpt_error *error);
enum rcpt_producer_sent rcpt_producer_send(struct rcpt_producer *producer,
                                           const struct rcpt_producer_record *record);
/* As rcpt_kafka_set_credentials. */
void rcpt_producer_set_credentials(struct rcpt_producer *producer,
                                   const struct rcpt_kafka_credentials *credentials);
size_t rcpt_producer_records(const struct rcpt_producer *producer); /* not acknowledged yet */
/* Unacknowledged records are reported as failed; on_closed comes after at most deadline_ms. */
void rcpt_producer_close(struct rcpt_producer *producer, int64_t deadline_ms);

#endif

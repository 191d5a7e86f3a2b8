/* The Kafka consumer on the libuv loop: group membership, one queue per partition, positions given
 * from outside.
 *
 * The only folder that includes rdkafka.h. Knows nothing of lanes or PostgreSQL. Call from the
 * loop's thread only; blocking calls of librdkafka run in threads of their own (worker.h). Written
 * for librdkafka 2.0.2 and later; the traps that shaped it are in docs/architecture.md, "Kafka".
 */
#ifndef RECEIPTD_KAFKA_CONSUMER_H
#define RECEIPTD_KAFKA_CONSUMER_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "receiptd/base/error.h"

struct rcpt_kafka;

struct rcpt_kafka_property {
    const char *name;
    const char *value;
};

struct rcpt_kafka_partition {
    const char *topic; /* borrowed for the call */
    int32_t partition;
    int64_t offset; /* meaning depends on the call */
};

struct rcpt_kafka_message { /* borrowed for the call; copy what is needed */
    const char *topic;
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* -1: none */
    const void *key;
    size_t key_size;
    const void *value; /* NULL: tombstone, or unreadable */
    size_t value_size;
    const char *unreadable;  /* NULL; else why there is no value, of all records up to this one */
    const char *traceparent; /* NULL: no such header */
    size_t traceparent_size;
    const char *tracestate; /* likewise */
    size_t tracestate_size;
    const void *headers; /* rcpt_kafka_header; NULL: none */
};

struct rcpt_kafka_header {
    const char *name;
    const char *value; /* not terminated */
    size_t size;
};
/* A header by its number, from 0; false: there are no more. One without a value is empty. */
bool rcpt_kafka_header(const struct rcpt_kafka_message *message, size_t number,
                       struct rcpt_kafka_header *header);

struct rcpt_kafka_credentials { /* of SASL; NULL: not set */
    const char *username, *password;
};

/* The topics as the cluster knows them, read in a worker thread. */
struct rcpt_kafka_topic_info {
    const char *topic;
    int32_t partition_count; /* 0: the topic does not exist */
};

struct rcpt_kafka_callbacks {
    void *context;
    /* Connected for the first time: cluster id and partition counts (also again when a count
     * grows). Consuming begins after rcpt_kafka_subscribe. */
    void (*on_cluster)(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count);
    /* The group gave these partitions. Held until rcpt_kafka_assign is called with start offsets
     * (may take seconds). */
    void (*on_assigned)(void *context, const struct rcpt_kafka_partition *partitions, size_t count);
    /* The group has answered, and there is no further partition for this member. NULL: no callback.
     */
    void (*on_spare)(void *context);
    /* The group takes these partitions away, and another answer of the group follows. `lost`:
     * others may own them already. After the callback has returned, they are no longer assigned.
     * Also called when an assignment that is still held is withdrawn. */
    void (*on_revoked)(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost);
    /* Whether this partition's queue may be polled now. */
    bool (*wants)(void *context, const char *topic, int32_t partition, void *tag);
    void (*on_message)(void *context, void *tag, const struct rcpt_kafka_message *message);
    /* After a round of messages, before going back to the loop. */
    void (*on_round)(void *context);
    /* The requested offset does not exist: low and high are the log's ends now (-1: could not be
     * read). The partition stands still until rcpt_kafka_seek or rcpt_kafka_reassign. */
    void (*on_out_of_range)(void *context, void *tag, const char *topic, int32_t partition,
                            int64_t requested, int64_t low, int64_t high);
    /* Trouble (already logged, rate-limited): healthy false with a reason, later healthy true.
     * decision FATAL: the handle is unusable, the process must exit with error->exit_code. */
    void (*on_health)(void *context, bool healthy, const struct rcpt_error *error);
    void (*on_closed)(void *context);
};

struct rcpt_kafka_settings {
    uv_loop_t *loop;
    const char *brokers, *group,
        *instance_id; /* instance_id NULL: dynamic member; client.id = receiptd */
    const char *const *topics;
    const char *topics_key; /* where the configuration names them; NULL: kafka.topics */
    size_t topic_count;
    /* passed through; those that would break the protocol are refused */
    const struct rcpt_kafka_property *properties;
    size_t property_count;
    size_t fetch_budget_bytes; /* over all partitions: sets queued.max.messages.kbytes */
    int64_t commit_interval_ms;
    struct rcpt_kafka_callbacks callbacks;
};

/* Checks a property without creating anything: unknown name, bad value, or one that receiptd sets
 * itself (enable.auto.commit, auto.offset.reset, …; the error says why). */
RCPT_MUST_CHECK bool rcpt_kafka_check_property(const char *name, const char *value,
                                               struct rcpt_error *error);

/* Sets the credentials for future connections, also of lookups and surveys. Open connections keep
 * theirs. */
void rcpt_kafka_set_credentials(struct rcpt_kafka *kafka,
                                const struct rcpt_kafka_credentials *credentials);

/* Whether a client with these brokers and properties gets an answer; blocks, for any thread. */
RCPT_MUST_CHECK bool rcpt_kafka_try(const struct rcpt_kafka_settings *settings, int timeout_ms,
                                    struct rcpt_error *error);

/* Version of librdkafka as text, e.g. "2.0.2". */
const char *rcpt_kafka_version(void);
/* Whether threads of librdkafka still run, such as those of a lookup that was given up. If so, the
 * process has to end by _exit(), because exit() would free OpenSSL while they use it. */
bool rcpt_kafka_has_threads(void);

/* Copies the settings. Returns NULL on a configuration that librdkafka refuses. Begins to look up
 * the cluster. */
RCPT_MUST_CHECK struct rcpt_kafka *rcpt_kafka_new(const struct rcpt_kafka_settings *settings,
                                                  struct rcpt_error *error);
/* The largest size to which a compressed batch may inflate, for all consumers of the process. A
 * larger batch is skipped, and delivered as one unreadable message with the offset of its last
 * record. Holds for gzip, lz4 and zstd if librdkafka uses the shared libraries. The default is 32
 * MiB. */
void rcpt_kafka_set_batch_limit(size_t bytes);
/* Joins the group (after on_cluster). */
void rcpt_kafka_subscribe(struct rcpt_kafka *kafka);
/* Answers on_assigned: same partitions, `offset` = where to start, `tags[i]` comes back with its
 * messages. */
void rcpt_kafka_assign(struct rcpt_kafka *kafka, const struct rcpt_kafka_partition *partitions,
                       void *const *tags, size_t count);
/* Low watermarks of partitions → on_done with `offset` filled (-1 and error where it could not be
 * read). In a worker. */
void rcpt_kafka_query_low(struct rcpt_kafka *kafka, const struct rcpt_kafka_partition *partitions,
                          size_t count,
                          void (*on_done)(void *context,
                                          const struct rcpt_kafka_partition *partitions,
                                          size_t count, const struct rcpt_error *error),
                          void *context);
/* Deliver partition `number` from this offset on. Asynchronous, its failure is not reported: the
 * engine checks by position. */
void rcpt_kafka_seek(struct rcpt_kafka *kafka, const char *topic, int32_t number, int64_t offset);
/* Un-assigns and assigns the partition at this offset (eager groups: re-assigns all, the others at
 * `positions`). */
void rcpt_kafka_reassign(struct rcpt_kafka *kafka, const char *topic, int32_t number,
                         int64_t offset);
/* The owner takes records again, or needs a round: polls soon. */
void rcpt_kafka_kick(struct rcpt_kafka *kafka);
/* Advisory commit, asynchronous, errors ignored; at most every commit_interval_ms, or when the
 * note, which stands beside each offset, has changed. `offset` is the next to read. `note` NULL:
 * none. */
void rcpt_kafka_commit(struct rcpt_kafka *kafka, const struct rcpt_kafka_partition *partitions,
                       size_t count, const char *note);
/* High watermark as of the last fetch, -1 if unknown; for lag. */
int64_t rcpt_kafka_high_watermark(struct rcpt_kafka *kafka, const char *topic, int32_t partition);
/* The place of a partition whose records before `applied` are applied. It is `applied`, or the
 * log's end if only control records and records of aborted transactions follow, which no consumer
 * gets. For figures and advisory commits only; never go on from there. */
int64_t rcpt_kafka_stands_at(struct rcpt_kafka *kafka, const char *topic, int32_t number,
                             int64_t applied);
/* Stops polling messages; rebalances go on. */
void rcpt_kafka_stop_polling(struct rcpt_kafka *kafka);
/* Leaves the group. on_closed comes after at most deadline_ms, when the memory has been freed.
 * librdkafka's own handle may stay until the process ends, if destroying it could hang. */
void rcpt_kafka_close(struct rcpt_kafka *kafka, int64_t deadline_ms);

#endif

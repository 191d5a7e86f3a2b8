/* A small owner of a consumer for tests: starts where it is told, checks order, counts; and a
 * cluster's admin. */
#ifndef TESTS_KAFKA_HARNESS_H
#define TESTS_KAFKA_HARNESS_H

#include <librdkafka/rdkafka.h>

#include "receiptd/kafka/consumer.h"

#define MAX_PARTITIONS 32

struct owner;

/* Where everybody has got to: stands for PostgreSQL. Shared by the members of a group. */
struct positions {
    int64_t next[MAX_PARTITIONS];
    uint64_t taken;    /* records accepted, each offset once */
    uint64_t repeated; /* delivered again, dropped by position */
    uint64_t skipped;  /* offsets jumped over: must stay 0 unless a test allows it */
};

struct owner {
    uv_loop_t *loop;
    struct rcpt_kafka *kafka;
    struct positions *positions;
    struct positions own; /* used unless another one is given */
    uv_timer_t hold;
    bool hold_open;
    int hold_ms; /* answer an assignment after this; 0: at once; -1: never */
    struct rcpt_kafka_partition held[MAX_PARTITIONS];
    char held_topics[MAX_PARTITIONS][64];
    size_t held_count;
    bool assigned[MAX_PARTITIONS];
    size_t assigned_count;
    unsigned assignments, revocations, lost;
    bool unwanted[MAX_PARTITIONS];
    uint64_t received[MAX_PARTITIONS]; /* everything delivered */
    int64_t last[MAX_PARTITIONS];      /* offset delivered last */
    unsigned rounds;
    unsigned cluster_calls;
    int32_t partition_count; /* of the first topic, as told last */
    char cluster_id[64];
    unsigned out_of_range;
    int32_t bad_partition;
    int64_t bad_wanted, bad_low, bad_high;
    bool reset_to_low; /* answer out of range by a re-assignment at low */
    bool healthy;
    unsigned health_calls;
    struct rcpt_error trouble;
    bool closed;
    char traceparent[64];
    int64_t latencies_us[20000]; /* of values that begin with a monotonic time in ns */
    size_t latency_count;
    bool no_subscribe;
};

/* brokers of the environment; NULL: the caller skips. */
const char *test_brokers(void);
/* A name that no earlier run has used. */
void unique_name(char *out, size_t size, const char *stem);

struct rcpt_kafka_settings owner_settings(struct owner *owner, const char *brokers,
                                          const char *const *topics, const char *group);
void owner_start(struct owner *owner, uv_loop_t *loop, const struct rcpt_kafka_settings *settings);
/* Answers the assignment that is held, with the positions. */
void owner_answer(struct owner *owner);
/* Closes and frees; returns how long it took in ms. */
int64_t owner_close(struct owner *owner);

/* Limits are those of a quiet machine. */
#define PATIENCE 4u

/* Runs the loop until the condition holds; fails the test after PATIENCE * timeout_ms. */
#define RUN_UNTIL(loop, timeout_ms, condition)                                                     \
    do {                                                                                           \
        uint64_t run_deadline = uv_hrtime() + (uint64_t)(timeout_ms)*PATIENCE * 1000000u;          \
        while (!(condition)) {                                                                     \
            if (uv_hrtime() > run_deadline)                                                        \
                fail_msg("not within %d ms: %s", (int)(timeout_ms), #condition);                   \
            run_briefly(loop);                                                                     \
        }                                                                                          \
    } while (0)
void run_briefly(uv_loop_t *loop);
void run_for(uv_loop_t *loop, int ms);

void topic_create(const char *brokers, const char *topic, int partitions);
void topic_grow(const char *brokers, const char *topic, int partitions);
void records_delete(const char *brokers, const char *topic, int partition, int64_t before);
int64_t group_committed(const char *brokers, const char *group, const char *topic, int partition);
/* `count` records on each partition, a millisecond apart; value: "<partition> <index>" padded to
 * `size`. */
void produce(const char *brokers, const char *topic, int partitions, int count, size_t size);
rd_kafka_t *producer_new(const char *brokers);

#endif

/* Between producer.c and producer_lookup.c. */
#ifndef RECEIPTD_KAFKA_PRODUCER_INTERNAL_H
#define RECEIPTD_KAFKA_PRODUCER_INTERNAL_H

#include "receiptd/kafka/producer.h"

#include "internal.h"

enum producer_life {
    PRODUCER_OPEN,
    PRODUCER_FAILED,  /* what is outstanding fails first, then a new handle comes */
    PRODUCER_CLOSING, /* the same, then the end */
    PRODUCER_ENDING,  /* the handle is destroyed, then the loop's handles close */
    PRODUCER_LIFE__COUNT,
};

struct rcpt_producer {
    struct rcpt_producer_settings settings; /* its texts are those of `common` */
    struct rcpt_kafka_settings common;      /* deep copy */
    struct rcpt_producer_callbacks callbacks;
    uv_loop_t *loop;
    rd_kafka_t *handle;
    rd_kafka_queue_t *queue;
    rd_kafka_topic_t *topics[RCPT_PRODUCER_MAX_TOPICS];
    int32_t counts[RCPT_PRODUCER_MAX_TOPICS]; /* -1: not known yet */
    enum producer_life life;
    struct rcpt_kafka_wake wake;
    uv_timer_t tick;
    unsigned open_handles;
    struct rcpt_kafka_workers *workers;
    bool lookup_in_flight;
    bool stuck; /* a lookup never came back: its thread may still use the handle */
    int64_t lookup_at_ms;
    size_t bytes, records;
    bool healthy;
    int64_t logged_at_ms;
    int64_t close_deadline_ms;
};

static inline int64_t producer_now_ms(const struct rcpt_producer *producer)
{
    return (int64_t)uv_now(producer->loop);
}

/* The log repeats trouble every ten seconds; the owner is called then and at transitions. */
void producer_report_health(struct rcpt_producer *producer, bool healthy,
                            const struct rcpt_error *error);
/* Within a second instead of with the next half minute. */
void producer_look_up_soon(struct rcpt_producer *producer);
void producer_look_up(struct rcpt_producer *producer);

#endif

/* How many partitions the producer's topics have: looked up in a thread, on the producer's handle,
 * since librdkafka's call blocks. Called by producer.c. */
#include <stdlib.h>

#include "producer_internal.h"

#define LOOKUP_ALLOWANCE_MS 12000
/* After a failure once a second; otherwise each half minute, which finds new partitions. */
#define LOOKUP_AGAIN_MS  1000
#define LOOKUP_STEADY_MS 30000

/* The leader may have moved; and an answer shows that the trouble is over. */
void producer_look_up_soon(struct rcpt_producer *producer)
{
    if (producer->lookup_at_ms > producer_now_ms(producer) + LOOKUP_AGAIN_MS)
        producer->lookup_at_ms = producer_now_ms(producer) + LOOKUP_AGAIN_MS;
}

struct lookup {
    struct rcpt_kafka_job job;
    struct rcpt_producer *producer; /* the loop's */
    rd_kafka_t *handle;             /* lives as long as the lookup runs */
    rd_kafka_topic_t *topics[RCPT_PRODUCER_MAX_TOPICS];
    char *brokers;
    size_t topic_count;
    int32_t counts[RCPT_PRODUCER_MAX_TOPICS];
    struct rcpt_error error; /* decision NONE: all counts are known */
};

/* In the thread. */
static void lookup_work(struct rcpt_kafka_job *job)
{
    struct lookup *lookup = (struct lookup *)job;
    rcpt_kafka_count_partitions(lookup->handle, lookup->topics, lookup->topic_count,
                                lookup->brokers, lookup->counts, &lookup->error);
}

/* On the loop. Late: the thread may still use the handle, which therefore is never destroyed. */
static void lookup_done(struct rcpt_kafka_job *job, bool in_time)
{
    struct lookup *lookup = (struct lookup *)job;
    struct rcpt_producer *producer = lookup->producer;
    producer->lookup_in_flight = false;
    if (!in_time) {
        producer->stuck = true;
        producer->lookup_at_ms = producer_now_ms(producer) + LOOKUP_STEADY_MS;
        return;
    }
    bool known = lookup->error.decision == RCPT_DECISION_NONE;
    producer->lookup_at_ms =
        producer_now_ms(producer) + (known ? LOOKUP_STEADY_MS : LOOKUP_AGAIN_MS);
    if (producer->life != PRODUCER_OPEN)
        return;
    for (size_t i = 0; i < lookup->topic_count; i++) {
        if (lookup->counts[i] < 0 || lookup->counts[i] == producer->counts[i])
            continue;
        producer->counts[i] = lookup->counts[i];
        producer->callbacks.on_partitions(producer->callbacks.context, i, lookup->counts[i]);
    }
    if (!known) {
        rcpt_producer_advise(&producer->settings, &lookup->error);
        producer_report_health(producer, false, &lookup->error);
    } else if (producer->records == 0)
        producer_report_health(producer, true, NULL);
}

static void lookup_free(struct rcpt_kafka_job *job)
{
    struct lookup *lookup = (struct lookup *)job;
    free(lookup->brokers);
    free(lookup);
}

/* The thread borrows the handle's topics: retire() waits for it before it frees them. */
void producer_look_up(struct rcpt_producer *producer)
{
    struct lookup *lookup = rcpt_calloc(1, sizeof(*lookup));
    lookup->job.work = lookup_work;
    lookup->job.done = lookup_done;
    lookup->job.free = lookup_free;
    lookup->producer = producer;
    lookup->handle = producer->handle;
    lookup->topic_count = producer->settings.topic_count;
    lookup->brokers = rcpt_strdup(producer->settings.brokers);
    for (size_t i = 0; i < lookup->topic_count; i++) {
        lookup->topics[i] = producer->topics[i];
        lookup->counts[i] = -1;
    }
    producer->lookup_in_flight = true;
    rcpt_kafka_workers_start(producer->workers, &lookup->job, LOOKUP_ALLOWANCE_MS);
}

/* Jobs in threads of their own, each with a deadline, answered on the loop.
 *
 * They do not use libuv's pool: librdkafka 2.0.2 does not keep its time-outs when a broker is mute.
 * A pool thread that hangs would keep the loop from ending and block other work. A late job is
 * answered as late, and its thread left alone; so are open jobs at the end of the loop.
 */
#ifndef RECEIPTD_KAFKA_WORKER_H
#define RECEIPTD_KAFKA_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct rcpt_kafka_workers;

struct rcpt_kafka_job {                       /* embedded as the first member */
    void (*work)(struct rcpt_kafka_job *job); /* in the thread */
    /* On the loop, exactly once. `in_time` false: the thread is still at work, its results must not
     * be touched. */
    void (*done)(struct rcpt_kafka_job *job, bool in_time);
    void (*free)(struct rcpt_kafka_job *job); /* in either thread, after both are through with it */
    /* private */
    struct rcpt_kafka_workers *workers;
    struct rcpt_kafka_job *next_running, *next_finished;
    uint64_t deadline_ms;
    bool answered, threadless;
};

struct rcpt_kafka_workers *rcpt_kafka_workers_new(uv_loop_t *loop);
/* Owns the job from here on; it is answered even if no thread can be started (as late). */
void rcpt_kafka_workers_start(struct rcpt_kafka_workers *workers, struct rcpt_kafka_job *job_taken,
                              int64_t allowance_ms);
/* Answers the jobs that are late. Call now and then. */
void rcpt_kafka_workers_tick(struct rcpt_kafka_workers *workers);
/* Answers open jobs as late. on_closed is the last call, from a close callback. */
void rcpt_kafka_workers_close(struct rcpt_kafka_workers *workers, void (*on_closed)(void *context),
                              void *context);

#endif

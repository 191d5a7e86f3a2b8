/* Jobs in threads of their own (worker.h explains why not libuv's pool). A job is `running` until
 * the loop has answered it. It is in time if its thread has put it on `finished` and woken the
 * loop. It is late if a tick after its deadline answers it, or the end. A late job's thread goes on
 * and frees the job itself. Called by the clients of this folder, on the loop's thread.
 */
#include "worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "receiptd/base/error.h"

/* Shared by the loop and every running thread; the last one frees it. */
struct rcpt_kafka_workers {
    pthread_mutex_t lock;
    unsigned references;             /* under lock: the loop and each thread */
    bool open;                       /* under lock: `wake` may be used */
    struct rcpt_kafka_job *finished; /* under lock */
    struct rcpt_kafka_job *running;  /* the loop's alone: not answered yet */
    uv_loop_t *loop;
    uv_async_t wake;
    void (*on_closed)(void *context);
    void *context;
};

/* The lock cannot be destroyed while a thread holds a reference. */
static void workers_release(struct rcpt_kafka_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    bool last = --workers->references == 0;
    pthread_mutex_unlock(&workers->lock);
    if (!last)
        return;
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

/* After the loop has closed `wake`, the job is only freed: it was answered as late. */
static void *thread_main(void *argument)
{
    struct rcpt_kafka_job *job = argument;
    struct rcpt_kafka_workers *workers = job->workers;
    job->work(job);
    pthread_mutex_lock(&workers->lock);
    bool open = workers->open;
    if (open) {
        job->next_finished = workers->finished;
        workers->finished = job;
        uv_async_send(&workers->wake);
    }
    pthread_mutex_unlock(&workers->lock);
    if (!open)
        job->free(job);
    workers_release(workers);
    return NULL;
}

/* A job without a thread has nothing else that could free it. */
static void answer(struct rcpt_kafka_workers *workers, struct rcpt_kafka_job *job, bool in_time)
{
    struct rcpt_kafka_job **link = &workers->running;
    while (*link != job)
        link = &(*link)->next_running;
    *link = job->next_running;
    job->answered = true;
    bool threadless = job->threadless;
    job->done(job, in_time);
    if (threadless)
        job->free(job);
}

/* Collects jobs whose threads have ended. Jobs that were answered as late are only freed. */
static void collect(struct rcpt_kafka_workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    struct rcpt_kafka_job *job = workers->finished;
    workers->finished = NULL;
    pthread_mutex_unlock(&workers->lock);
    while (job != NULL) {
        struct rcpt_kafka_job *next = job->next_finished;
        if (!job->answered)
            answer(workers, job, true);
        job->free(job);
        job = next;
    }
}

/* libuv may merge several wake-ups into one, so all finished jobs are collected. */
static void on_wake(uv_async_t *wake)
{
    collect(wake->data);
}

struct rcpt_kafka_workers *rcpt_kafka_workers_new(uv_loop_t *loop)
{
    struct rcpt_kafka_workers *workers = rcpt_calloc(1, sizeof(*workers));
    RCPT_ASSERT(pthread_mutex_init(&workers->lock, NULL) == 0);
    workers->references = 1;
    workers->open = true;
    workers->loop = loop;
    RCPT_ASSERT(uv_async_init(loop, &workers->wake, on_wake) == 0);
    workers->wake.data = workers;
    return workers;
}

/* All signals are blocked in the thread, so that the loop's thread gets them. */
static bool thread_start(struct rcpt_kafka_job *job)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&thread, &attributes, thread_main, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return status == 0;
}

/* The thread's reference is counted before it runs, so the workers outlive it. */
void rcpt_kafka_workers_start(struct rcpt_kafka_workers *workers, struct rcpt_kafka_job *job,
                              int64_t allowance_ms)
{
    job->workers = workers;
    job->deadline_ms = uv_now(workers->loop) + (uint64_t)allowance_ms;
    job->next_running = workers->running;
    workers->running = job;
    pthread_mutex_lock(&workers->lock);
    workers->references++;
    pthread_mutex_unlock(&workers->lock);
    if (thread_start(job))
        return;
    workers_release(workers);
    job->threadless = true;
    job->deadline_ms = 0; /* the next tick answers */
}

/* A job that is answered may start others; they are put in front of the list. */
void rcpt_kafka_workers_tick(struct rcpt_kafka_workers *workers)
{
    uint64_t now = uv_now(workers->loop);
    struct rcpt_kafka_job *job = workers->running;
    while (job != NULL) {
        struct rcpt_kafka_job *next = job->next_running;
        if (job->deadline_ms <= now)
            answer(workers, job, false);
        job = next;
    }
}

static void on_wake_closed(uv_handle_t *handle)
{
    struct rcpt_kafka_workers *workers = handle->data;
    void (*on_closed)(void *context) = workers->on_closed;
    void *context = workers->context;
    workers_release(workers);
    on_closed(context);
}

/* From here on no thread wakes the loop. Threads that hang keep the struct alive, not the loop. */
void rcpt_kafka_workers_close(struct rcpt_kafka_workers *workers, void (*on_closed)(void *context),
                              void *context)
{
    collect(workers);
    while (workers->running != NULL)
        answer(workers, workers->running, false);
    workers->on_closed = on_closed;
    workers->context = context;
    pthread_mutex_lock(&workers->lock);
    workers->open = false;
    pthread_mutex_unlock(&workers->lock);
    collect(workers); /* what finished in between: answered already, only freed */
    uv_close((uv_handle_t *)&workers->wake, on_wake_closed);
}

/* Parts that all clients of librdkafka in this folder use: a copy of the settings, the eventfd by
 * which librdkafka wakes the loop, and the end of a handle in a thread. Called by consumer.c,
 * producer.c and transactor.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "internal.h"

/* ---- handles for questions only ---- */

/* librdkafka takes the configuration over only where it succeeds. */
rd_kafka_t *rcpt_kafka_open(rd_kafka_conf_t *conf_taken, struct rcpt_error *error)
{
    char text[256];
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_CONSUMER, conf_taken, text, sizeof(text));
    if (handle == NULL) {
        rd_kafka_conf_destroy(conf_taken);
        rcpt_error_fatal(error, EX_CONFIG, "librdkafka refuses the kafka section: %s", text);
        rcpt_error_hint(error, "check kafka.brokers and kafka.properties");
    }
    return handle;
}

/* ---- settings ---- */

static char *copy_text(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

void rcpt_kafka_copy_settings(struct rcpt_kafka_settings *to,
                              const struct rcpt_kafka_settings *from)
{
    char **topics = rcpt_calloc(from->topic_count + 1, sizeof(*topics));
    struct rcpt_kafka_property *properties =
        rcpt_calloc(from->property_count + 1, sizeof(*properties));
    *to = *from;
    to->brokers = rcpt_strdup(from->brokers);
    to->group = copy_text(from->group);
    to->instance_id = copy_text(from->instance_id);
    for (size_t i = 0; i < from->topic_count; i++)
        topics[i] = rcpt_strdup(from->topics[i]);
    for (size_t i = 0; i < from->property_count; i++) {
        properties[i].name = rcpt_strdup(from->properties[i].name);
        properties[i].value = rcpt_strdup(from->properties[i].value);
    }
    to->topics = (const char *const *)topics;
    to->properties = properties;
}

/* The copies were made here, so the const of the settings does not hold for them. */
static void drop(const void *pointer)
{
    free((void *)(uintptr_t)pointer);
}

void rcpt_kafka_free_settings(struct rcpt_kafka_settings *settings)
{
    for (size_t i = 0; i < settings->topic_count; i++)
        drop(settings->topics[i]);
    for (size_t i = 0; i < settings->property_count; i++) {
        drop(settings->properties[i].name);
        drop(settings->properties[i].value);
    }
    drop(settings->topics);
    drop(settings->properties);
    drop(settings->brokers);
    drop(settings->group);
    drop(settings->instance_id);
}

/* ---- credentials ---- */

static void replace(struct rcpt_kafka_settings *settings, const char *name, const char *value)
{
    /* The array is the copy's own. */
    struct rcpt_kafka_property *properties =
        (struct rcpt_kafka_property *)(uintptr_t)settings->properties;
    for (size_t i = 0; value != NULL && i < settings->property_count; i++) {
        if (strcmp(properties[i].name, name) != 0)
            continue;
        drop(properties[i].value);
        properties[i].value = rcpt_strdup(value);
    }
}

void rcpt_kafka_take_credentials(struct rcpt_kafka_settings *settings,
                                 const struct rcpt_kafka_credentials *credentials)
{
    replace(settings, "sasl.username", credentials->username);
    replace(settings, "sasl.password", credentials->password);
}

/* librdkafka knows them for PLAIN and SCRAM; other mechanisms have no password. */
void rcpt_kafka_use_credentials(rd_kafka_t *handle, const struct rcpt_kafka_settings *settings)
{
    const char *username = rcpt_kafka_property(settings, "sasl.username");
    const char *password = rcpt_kafka_property(settings, "sasl.password");
    if (handle == NULL || username == NULL || password == NULL)
        return;
    rd_kafka_error_t *error = rd_kafka_sasl_set_credentials(handle, username, password);
    if (error == NULL)
        return;
    rcpt_log_error("kafka", "librdkafka does not take the new credentials: %s",
                   rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

/* ---- waking the loop ---- */

void rcpt_kafka_wake_open(struct rcpt_kafka_wake *wake, void (*on_wake)(void *context),
                          void *context)
{
    wake->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    RCPT_ASSERT(wake->fd >= 0);
    wake->on_wake = on_wake;
    wake->context = context;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct rcpt_kafka_wake *wake = (struct rcpt_kafka_wake *)poll;
    uint64_t count;
    (void)status;
    (void)events;
    /* Reads first, so that a write while the queues are polled wakes the loop again. */
    ssize_t got = read(wake->fd, &count, sizeof(count));
    RCPT_ASSERT(got == (ssize_t)sizeof(count) || errno == EAGAIN || errno == EINTR);
    wake->on_wake(wake->context);
}

void rcpt_kafka_wake_start(struct rcpt_kafka_wake *wake, uv_loop_t *loop)
{
    RCPT_ASSERT(uv_poll_init(loop, &wake->poll, wake->fd) == 0);
    wake->poll.data = wake->context;
    uv_poll_start(&wake->poll, UV_READABLE, on_readable);
}

/* librdkafka writes when the queue stops being empty. */
void rcpt_kafka_wake_by(const struct rcpt_kafka_wake *wake, rd_kafka_queue_t *queue)
{
    static const uint64_t one = 1;
    rd_kafka_queue_io_event_enable(queue, wake->fd, &one, sizeof(one));
}

void rcpt_kafka_release_queue(rd_kafka_queue_t *queue)
{
    rd_kafka_queue_io_event_enable(queue, -1, NULL, 0);
    rd_kafka_queue_destroy(queue);
}

/* ---- the end of a handle ---- */

struct destruction {
    struct rcpt_kafka_job job;
    rd_kafka_t *handle;
    void (*on_destroyed)(void *context);
    void *context;
};

/* In the thread. It blocks until librdkafka's own threads have ended. */
static void destroy_work(struct rcpt_kafka_job *job)
{
    rd_kafka_destroy(((struct destruction *)job)->handle);
}

/* On the loop. A late destruction goes on in its thread, and ends with the process at the
 * latest. */
static void destroy_done(struct rcpt_kafka_job *job, bool in_time)
{
    const struct destruction *destruction = (struct destruction *)job;
    if (!in_time)
        rcpt_log_warn("kafka", "librdkafka did not end in time; it is left to the process's end");
    if (destruction->on_destroyed != NULL)
        destruction->on_destroyed(destruction->context);
}

static void destroy_free(struct rcpt_kafka_job *job)
{
    free(job);
}

void rcpt_kafka_destroy_handle(struct rcpt_kafka_workers *workers, rd_kafka_t *handle_taken,
                               int64_t allowance_ms, void (*on_destroyed)(void *context),
                               void *context)
{
    struct destruction *destruction = rcpt_calloc(1, sizeof(*destruction));
    destruction->job =
        (struct rcpt_kafka_job){.work = destroy_work, .done = destroy_done, .free = destroy_free};
    destruction->handle = handle_taken;
    destruction->on_destroyed = on_destroyed;
    destruction->context = context;
    rcpt_kafka_workers_start(workers, &destruction->job, allowance_ms);
}

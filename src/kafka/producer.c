/* The intake's producer: records go out, deliveries come back through one queue that wakes the loop
 * by an eventfd. Used by intake/kafka.c.
 *
 * States: OPEN takes records. FAILED waits until all outstanding records are reported, then opens
 * another handle, since the broker has lost the state that the idempotent protocol counts on.
 * CLOSING waits likewise, then ends. ENDING waits for the handle's thread and the loop's handles.
 */
#include "receiptd/kafka/producer.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "producer_internal.h"

#define TICK_MS      10 /* bounds the delay when librdkafka misses a wake-up */
#define LOG_AGAIN_MS 10000
#define DESTROY_MS   30000 /* of a handle that another has replaced */

/* OPEN to OPEN: the first handle. ENDING to ENDING: a worker has destroyed the handle, so the rest
 * closes. */
static void enter(struct rcpt_producer *producer, enum producer_life life)
{
    static const unsigned successors[PRODUCER_LIFE__COUNT] = {
        [PRODUCER_OPEN] =
            RCPT_TO(PRODUCER_OPEN) | RCPT_TO(PRODUCER_FAILED) | RCPT_TO(PRODUCER_CLOSING),
        [PRODUCER_FAILED] = RCPT_TO(PRODUCER_OPEN) | RCPT_TO(PRODUCER_CLOSING),
        [PRODUCER_CLOSING] = RCPT_TO(PRODUCER_ENDING),
        [PRODUCER_ENDING] = RCPT_TO(PRODUCER_ENDING),
    };
    RCPT_ASSERT_FOLLOWS(successors, producer->life, life);
    producer->life = life;
}

/* False with the error where librdkafka refuses the properties. */
static bool open_handle(struct rcpt_producer *producer, struct rcpt_error *error)
{
    char text[256];
    rd_kafka_conf_t *conf = rcpt_producer_conf_new(&producer->settings, error);
    if (conf == NULL)
        return false;
    producer->handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (producer->handle == NULL) {
        rd_kafka_conf_destroy(conf);
        rcpt_error_fatal(error, EX_CONFIG, "librdkafka refuses the producer: %s", text);
        rcpt_error_hint(error, "check kafka.brokers, kafka.properties and the intake section");
        return false;
    }
    for (size_t i = 0; i < producer->settings.topic_count; i++)
        producer->topics[i] =
            rd_kafka_topic_new(producer->handle, producer->settings.topics[i], NULL);
    producer->queue = rd_kafka_queue_get_main(producer->handle);
    rcpt_kafka_wake_by(&producer->wake, producer->queue);
    enter(producer, PRODUCER_OPEN);
    return true;
}

/* The log repeats trouble every ten seconds; the owner is called then and at transitions. */
void producer_report_health(struct rcpt_producer *producer, bool healthy,
                            const struct rcpt_error *error)
{
    int64_t now = producer_now_ms(producer);
    bool again = !healthy && now - producer->logged_at_ms >= LOG_AGAIN_MS;
    if (again || (!healthy && producer->healthy)) {
        producer->logged_at_ms = now;
        rcpt_log_warn("kafka", "producer: %s [%s]%s%s", error->text, error->code,
                      error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
    } else if (healthy && !producer->healthy) {
        rcpt_log_info("kafka", "producer: records are acknowledged");
    }
    if (producer->healthy == healthy && !again)
        return;
    producer->healthy = healthy;
    producer->callbacks.on_health(producer->callbacks.context, healthy, error);
}

/* Purges the outstanding records, so that they are reported as failed and may be sent again. */
static void on_fatal(struct rcpt_producer *producer)
{
    char text[256];
    struct rcpt_error error;
    if (producer->life != PRODUCER_OPEN)
        return;
    rd_kafka_resp_err_t code = rd_kafka_fatal_error(producer->handle, text, sizeof(text));
    rcpt_kafka_describe(&error, code, "the client has failed for good and is replaced", text);
    enter(producer, PRODUCER_FAILED);
    producer->logged_at_ms = producer_now_ms(producer) - LOG_AGAIN_MS;
    producer_report_health(producer, false, &error);
    rd_kafka_purge(producer->handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                         RD_KAFKA_PURGE_F_NON_BLOCKING);
}

static void on_error(struct rcpt_producer *producer, rd_kafka_event_t *event)
{
    struct rcpt_error error;
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    if (code == RD_KAFKA_RESP_ERR__FATAL || rd_kafka_event_error_is_fatal(event)) {
        on_fatal(producer);
        return;
    }
    rcpt_kafka_describe(&error, code, producer->settings.brokers,
                        rd_kafka_event_error_string(event));
    rcpt_kafka_advise(&producer->common, &error);
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN || code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
        code == RD_KAFKA_RESP_ERR__SSL || code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED)
        producer_report_health(producer, false, &error);
    else
        rcpt_log_debug("kafka", "producer: %s [%s]", error.text, error.code);
    producer_look_up_soon(producer);
}

/* The broker will not take this record, however often it is sent. */
static bool is_refusal(rd_kafka_resp_err_t code)
{
    switch (code) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
        return true;
    default:
        return false;
    }
}

/* Exactly once for each record that was taken. */
static void on_delivery(struct rcpt_producer *producer, const rd_kafka_message_t *message)
{
    struct rcpt_error error;
    producer->bytes -= message->len;
    producer->records--;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        producer_report_health(producer, true, NULL);
        producer->callbacks.on_delivered(producer->callbacks.context, message->_private, NULL);
        return;
    }
    rcpt_kafka_describe(&error, message->err, rd_kafka_topic_name(message->rkt), NULL);
    if (is_refusal(message->err))
        error.decision = RCPT_DECISION_REJECT;
    rcpt_producer_advise(&producer->settings, &error);
    if (error.decision != RCPT_DECISION_REJECT) {
        producer_report_health(producer, false, &error);
        producer_look_up_soon(producer);
    }
    producer->callbacks.on_delivered(producer->callbacks.context, message->_private, &error);
}

static void on_deliveries(struct rcpt_producer *producer, rd_kafka_event_t *event)
{
    const rd_kafka_message_t *message;
    while ((message = rd_kafka_event_message_next(event)) != NULL)
        on_delivery(producer, message);
}

/* The wake-up comes when the queue stops being empty: it has to be emptied. */
static void drain(struct rcpt_producer *producer)
{
    rd_kafka_event_t *event;
    bool any = false;
    while (producer->queue != NULL && (event = rd_kafka_queue_poll(producer->queue, 0)) != NULL) {
        any = true;
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DR)
            on_deliveries(producer, event);
        else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR)
            on_error(producer, event);
        rd_kafka_event_destroy(event);
    }
    if (any && producer->callbacks.on_round != NULL)
        producer->callbacks.on_round(producer->callbacks.context);
}

/* The compression's name is a copy, so the const of the settings does not hold for it. */
static void free_producer(struct rcpt_producer *producer)
{
    close(producer->wake.fd);
    rcpt_kafka_free_settings(&producer->common);
    free((void *)(uintptr_t)producer->settings.compression);
    free(producer);
}

/* After the last of the two handles and the workers. */
static void on_part_closed(void *context)
{
    struct rcpt_producer *producer = context;
    if (--producer->open_handles > 0)
        return;
    void (*on_closed)(void *context) = producer->callbacks.on_closed;
    void *closed_context = producer->callbacks.context;
    free_producer(producer);
    on_closed(closed_context);
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

/* Three parts close; the last one frees. */
static void end(struct rcpt_producer *producer)
{
    enter(producer, PRODUCER_ENDING);
    producer->open_handles = 3;
    uv_close((uv_handle_t *)&producer->wake.poll, on_handle_closed);
    uv_close((uv_handle_t *)&producer->tick, on_handle_closed);
    rcpt_kafka_workers_close(producer->workers, on_part_closed, producer);
}

static void on_destroyed(void *context)
{
    end(context);
}

/* Leaves the handle to the process's end. */
static void abandon_handle(struct rcpt_producer *producer)
{
    rcpt_kafka_release_queue(producer->queue);
    producer->queue = NULL;
    producer->handle = NULL;
    producer->stuck = false;
}

/* Topics belong to the handle and go before it. */
static void destroy_later(struct rcpt_producer *producer)
{
    bool closing = producer->life == PRODUCER_CLOSING;
    rd_kafka_t *handle = producer->handle;
    for (size_t i = 0; i < producer->settings.topic_count; i++)
        rd_kafka_topic_destroy(producer->topics[i]);
    abandon_handle(producer);
    if (closing)
        enter(producer, PRODUCER_ENDING);
    int64_t left = producer->close_deadline_ms - producer_now_ms(producer);
    int64_t allowance = !closing ? DESTROY_MS : left > 1000 ? left : 1000;
    rcpt_kafka_destroy_handle(producer->workers, handle, allowance, closing ? on_destroyed : NULL,
                              producer);
}

/* When everything is reported and no thread uses the handle, it may go. */
static void retire(struct rcpt_producer *producer)
{
    bool late = producer->life == PRODUCER_CLOSING &&
                producer->close_deadline_ms <= producer_now_ms(producer);
    if (late && (producer->lookup_in_flight || producer->records > 0)) {
        rcpt_log_warn("kafka", "the producer did not settle in time: %zu records are unanswered",
                      producer->records);
        abandon_handle(producer);
        end(producer);
        return;
    }
    if (producer->lookup_in_flight || producer->records > 0)
        return;
    if (!producer->stuck) {
        destroy_later(producer);
    } else {
        abandon_handle(producer);
        if (producer->life == PRODUCER_CLOSING)
            end(producer);
    }
    if (producer->life != PRODUCER_FAILED)
        return;
    struct rcpt_error error;
    if (open_handle(producer, &error))
        producer->lookup_at_ms = producer_now_ms(producer);
    else /* what was good at the start */
        rcpt_log_error("kafka", "%s", error.text);
}

/* Bounds the delay of a missed wake-up, and does the work that waits for the handle to settle. */
static void on_tick(uv_timer_t *timer)
{
    struct rcpt_producer *producer = timer->data;
    drain(producer);
    rcpt_kafka_workers_tick(producer->workers);
    if (producer->handle == NULL)
        return;
    if (producer->life == PRODUCER_FAILED || producer->life == PRODUCER_CLOSING)
        retire(producer);
    else if (!producer->lookup_in_flight && producer->lookup_at_ms <= producer_now_ms(producer))
        producer_look_up(producer);
}

static void on_wake(void *context)
{
    drain(context);
}

static rd_kafka_headers_t *make_headers(const struct rcpt_producer_record *record)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(record->header_count);
    for (size_t i = 0; i < record->header_count; i++)
        rd_kafka_header_add(headers, record->headers[i].name, -1, record->headers[i].value,
                            (ssize_t)record->headers[i].size);
    return headers;
}

/* librdkafka owns value and headers once it has taken the record. */
enum rcpt_producer_sent rcpt_producer_send(struct rcpt_producer *producer,
                                           const struct rcpt_producer_record *record)
{
    if (producer->life != PRODUCER_OPEN || producer->handle == NULL)
        return RCPT_PRODUCER_DOWN;
    if (producer->bytes + record->value_size > producer->settings.budget_bytes)
        return RCPT_PRODUCER_FULL;
    rd_kafka_headers_t *headers = make_headers(record);
    void *key = (void *)(uintptr_t)record->key; /* copied: the macro wants it writable */
    rd_kafka_resp_err_t code = rd_kafka_producev(
        producer->handle, RD_KAFKA_V_RKT(producer->topics[record->topic]),
        RD_KAFKA_V_PARTITION(record->partition), RD_KAFKA_V_KEY(key, record->key_size),
        RD_KAFKA_V_VALUE(record->value, record->value_size),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_FREE), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_OPAQUE(record->tag), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        producer->bytes += record->value_size;
        producer->records++;
        return RCPT_PRODUCER_TAKEN;
    }
    rd_kafka_headers_destroy(headers);
    if (code == RD_KAFKA_RESP_ERR__FATAL)
        on_fatal(producer);
    return code == RD_KAFKA_RESP_ERR__QUEUE_FULL ? RCPT_PRODUCER_FULL : RCPT_PRODUCER_DOWN;
}

/* Its settings point into the copy, so a client that replaces this one has them as well. */
void rcpt_producer_set_credentials(struct rcpt_producer *producer,
                                   const struct rcpt_kafka_credentials *credentials)
{
    rcpt_kafka_take_credentials(&producer->common, credentials);
    rcpt_kafka_use_credentials(producer->handle, &producer->common);
}

size_t rcpt_producer_records(const struct rcpt_producer *producer)
{
    return producer->records;
}

/* The shared copy owns the texts; the producer's settings point into it. */
static void copy_settings(struct rcpt_producer *producer,
                          const struct rcpt_producer_settings *settings)
{
    const struct rcpt_kafka_settings common = {
        .loop = settings->loop,
        .brokers = settings->brokers,
        .topics = settings->topics,
        .topic_count = settings->topic_count,
        .properties = settings->properties,
        .property_count = settings->property_count,
    };
    rcpt_kafka_copy_settings(&producer->common, &common);
    producer->settings = *settings;
    producer->settings.brokers = producer->common.brokers;
    producer->settings.topics = producer->common.topics;
    producer->settings.properties = producer->common.properties;
    producer->settings.compression = rcpt_strdup(settings->compression);
}

/* The handle is made at once, so that properties which librdkafka refuses end the start. */
struct rcpt_producer *rcpt_producer_new(const struct rcpt_producer_settings *settings,
                                        struct rcpt_error *error)
{
    RCPT_ASSERT(settings->topic_count <= RCPT_PRODUCER_MAX_TOPICS);
    struct rcpt_producer *producer = rcpt_calloc(1, sizeof(*producer));
    copy_settings(producer, settings);
    producer->callbacks = settings->callbacks;
    producer->loop = settings->loop;
    for (size_t i = 0; i < settings->topic_count; i++)
        producer->counts[i] = -1;
    producer->logged_at_ms = -LOG_AGAIN_MS;
    rcpt_kafka_wake_open(&producer->wake, on_wake, producer);
    if (!open_handle(producer, error)) {
        free_producer(producer);
        return NULL;
    }
    rcpt_kafka_warn_of_library(&producer->common);
    rcpt_kafka_wake_start(&producer->wake, producer->loop);
    RCPT_ASSERT(uv_timer_init(producer->loop, &producer->tick) == 0);
    producer->tick.data = producer;
    uv_timer_start(&producer->tick, on_tick, 0, TICK_MS);
    producer->workers = rcpt_kafka_workers_new(producer->loop);
    return producer;
}

/* The tick does the rest: it retires the handle when everything is reported. */
void rcpt_producer_close(struct rcpt_producer *producer, int64_t deadline_ms)
{
    if (producer->life == PRODUCER_CLOSING || producer->life == PRODUCER_ENDING)
        return;
    enter(producer, PRODUCER_CLOSING);
    producer->close_deadline_ms = producer_now_ms(producer) + deadline_ms;
    if (producer->handle == NULL) {
        end(producer);
        return;
    }
    rd_kafka_purge(producer->handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                         RD_KAFKA_PURGE_F_NON_BLOCKING);
}

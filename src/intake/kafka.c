/* Records to Kafka and back: sends the records that the aggregate has ready, and settles the
 * tickets of requests when Kafka acknowledges. Also dead letters, which are records of their own
 * topic.
 *
 * Every record that the producer takes comes back once through on_delivered, acknowledged or
 * failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/core/timestamp.h"

#define NAMES_BYTES   512u
#define HIDDEN_DIGITS 7u /* from so many on a number may be a telephone's */

struct outgoing {                       /* what a delivery report is about */
    struct rcpt_aggregate_batch *batch; /* of this target, or: */
    struct intake_target *target;
    struct rcpt_ticket *ticket;
};

/* ---- records ---- */

/* Names of accounts for the header `gateway`; what does not fit is left out. */
static size_t join_names(const struct rcpt_aggregate_batch *batch, char text[NAMES_BYTES])
{
    size_t used = 0;
    for (uint32_t i = 0; i < batch->name_count; i++) {
        int size =
            snprintf(text + used, NAMES_BYTES - used, "%s%s", i > 0 ? "," : "", batch->names[i]);
        if ((size_t)size >= NAMES_BYTES - used)
            break;
        used += (size_t)size;
    }
    return used;
}

/* tracestate means nothing without its traceparent. */
static void add_trace(struct rcpt_producer_header *headers, size_t *count, const char *traceparent,
                      const char *tracestate)
{
    if (traceparent[0] == '\0')
        return;
    headers[(*count)++] =
        (struct rcpt_producer_header){"traceparent", traceparent, strlen(traceparent)};
    if (tracestate != NULL)
        headers[(*count)++] =
            (struct rcpt_producer_header){"tracestate", tracestate, strlen(tracestate)};
}

/* The producer copies headers and takes the value: it frees the bytes after delivery. */
static enum rcpt_producer_sent send_record(struct rcpt_intake *intake, struct outgoing *outgoing)
{
    struct rcpt_aggregate_batch *batch = outgoing->batch;
    char names[NAMES_BYTES], received_at[28];
    rcpt_timestamp_format(batch->received_us, received_at);
    struct rcpt_producer_header headers[4] = {
        {"gateway", names, join_names(batch, names)},
        {"received_at", received_at, strlen(received_at)},
    };
    struct rcpt_producer_record record = {
        .topic = (size_t)(outgoing->target - intake->targets) + INTAKE_TOPIC_LETTERS + 1,
        .partition = (int32_t)batch->partition,
        .value = batch->json.bytes,
        .value_size = batch->json.size,
        .headers = headers,
        .header_count = 2,
        .tag = outgoing,
    };
    add_trace(headers, &record.header_count, batch->traceparent, batch->tracestate);
    return rcpt_producer_send(intake->producer, &record);
}

/* A record that the producer refuses fails its requests at once: their gateways send again. */
static void send_batch(struct rcpt_intake *intake, struct intake_target *target,
                       struct rcpt_aggregate_batch *batch)
{
    struct outgoing *outgoing = rcpt_calloc(1, sizeof(*outgoing));
    *outgoing = (struct outgoing){.batch = batch, .target = target};
    if (send_record(intake, outgoing) == RCPT_PRODUCER_TAKEN) {
        /* The producer owns the bytes now; the batch keeps its size for the account of memory. */
        batch->json.bytes = NULL;
        intake->totals.records++;
        return;
    }
    free(outgoing);
    rcpt_aggregate_settle(target->aggregate, batch, false);
}

/* A record waited out its time while no event of the loop came by. */
static void on_linger(uv_timer_t *timer)
{
    intake_flush(timer->data);
}

/* The timer is needed only while a record waits for its linger time. */
void intake_flush(struct rcpt_intake *intake)
{
    struct rcpt_aggregate_batch *batch;
    bool lingers = false;
    for (size_t i = 0; i < intake->target_count; i++) {
        struct intake_target *target = &intake->targets[i];
        while ((batch = rcpt_aggregate_next(target->aggregate, intake_now(intake))) != NULL)
            send_batch(intake, target, batch);
        lingers = lingers || rcpt_aggregate_lingers(target->aggregate);
    }
    if (lingers && !uv_is_active((uv_handle_t *)&intake->linger))
        uv_timer_start(&intake->linger, on_linger, (uint64_t)intake->config->intake.linger_ms + 1,
                       0);
}

/* ---- dead letters ---- */

/* Telephone numbers must not reach the dead letters where the configuration says "masked". */
static void hide_digits(char *text, size_t size)
{
    size_t run = 0;
    for (size_t i = 0; i <= size; i++) {
        if (i < size && text[i] >= '0' && text[i] <= '9') {
            run++;
            continue;
        }
        if (run >= HIDDEN_DIGITS)
            memset(text + i - run, '#', run);
        run = 0;
    }
}

/* As much of the bytes as the configuration lets through, from malloc. */
static char *letter_value(const struct rcpt_intake *intake, struct rcpt_text raw, size_t *size,
                          bool *cut)
{
    enum rcpt_letter_payload kept = intake->config->intake.dead_letters;
    size_t most = intake->config->intake.max_bytes;
    *size = kept == RCPT_LETTER_NONE || raw.at == NULL ? 0 : raw.size;
    *cut = *size > most;
    if (*cut)
        *size = most;
    char *value = rcpt_malloc(*size + 1);
    if (*size > 0)
        memcpy(value, raw.at, *size);
    if (kept == RCPT_LETTER_MASKED)
        hide_digits(value, *size);
    return value;
}

/* The request holds its ticket for the letter too: the gateway gets its answer when the letter is
 * safe. An unmapped status has no reason of its own. */
void intake_send_letter(struct delivery *delivery, const struct rcpt_gateway_drop *drop)
{
    struct rcpt_intake *intake = delivery->intake;
    const char *name = delivery->account->name;
    const char *reason = drop->reason != NULL ? drop->reason : "unknown_status";
    char received_at[28];
    bool cut;
    rcpt_timestamp_format(delivery->received_us, received_at);
    struct outgoing *outgoing = rcpt_calloc(1, sizeof(*outgoing));
    outgoing->ticket = &delivery->ticket;
    struct rcpt_producer_record record = {
        .topic = INTAKE_TOPIC_LETTERS, .partition = -1, .tag = outgoing};
    record.value = letter_value(intake, drop->raw, &record.value_size, &cut);
    struct rcpt_producer_header headers[6] = {
        {"gateway", name, strlen(name)},
        {"reason", reason, strlen(reason)},
        {"received_at", received_at, strlen(received_at)},
    };
    record.headers = headers;
    record.header_count = 3;
    if (cut)
        headers[record.header_count++] = (struct rcpt_producer_header){"cut", "true", 4};
    add_trace(headers, &record.header_count, delivery->traceparent, delivery->tracestate);
    rcpt_ticket_hold(&delivery->ticket);
    if (rcpt_producer_send(intake->producer, &record) == RCPT_PRODUCER_TAKEN)
        return;
    free(record.value);
    free(outgoing);
    rcpt_ticket_release(&delivery->ticket, false);
}

/* ---- what comes back ---- */

/* A refusal (REJECT) repeats with every attempt, so it is logged as an error with its remedy. */
static void on_delivered(void *context, void *tag, const struct rcpt_error *error)
{
    struct outgoing *outgoing = tag;
    (void)context;
    if (error != NULL && error->decision == RCPT_DECISION_REJECT)
        rcpt_log_error("intake",
                       "Kafka refuses a record: %s; HINT: intake.batch.max_bytes must be "
                       "below max.message.bytes of the topic",
                       error->text);
    if (outgoing->batch != NULL)
        rcpt_aggregate_settle(outgoing->target->aggregate, outgoing->batch, error == NULL);
    else
        rcpt_ticket_release(outgoing->ticket, error == NULL);
    free(outgoing);
}

/* The producer has handled a round of acknowledgements: partitions may take the next record. */
static void on_round(void *context)
{
    intake_flush(context);
}

/* Partitions may be added while running: new events use them, open records keep theirs. */
static void on_partitions(void *context, size_t topic, int32_t count)
{
    struct rcpt_intake *intake = context;
    if (topic == INTAKE_TOPIC_LETTERS)
        intake->letters_known = count > 0;
    else
        rcpt_aggregate_set_partitions(intake->targets[topic - INTAKE_TOPIC_LETTERS - 1].aggregate,
                                      (uint32_t)count);
    intake_update_readiness(intake);
}

/* The reason is kept for the readiness text; the producer reconnects by itself. */
static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct rcpt_intake *intake = context;
    intake->kafka_healthy = healthy;
    intake->kafka_reason[0] = '\0';
    if (!healthy)
        host_set_reason(intake->kafka_reason, "Kafka is in trouble", error);
    intake_update_readiness(intake);
}

/* The topic of dead letters, then the targets' (INTAKE_TOPIC_LETTERS). A record may be larger
 * than a batch, since one event or letter may be; twice leaves space for headers and escapes. */
bool intake_start_producer(struct rcpt_intake *intake, struct rcpt_error *error)
{
    const struct rcpt_config *config = intake->config;
    const char *topics[RCPT_PRODUCER_MAX_TOPICS] = {config->intake.dead_letter_topic};
    intake->topic_keys[INTAKE_TOPIC_LETTERS] = "intake.dead_letter_topic";
    for (size_t i = 0; i < intake->target_count; i++) {
        topics[INTAKE_TOPIC_LETTERS + 1 + i] = intake->targets[i].topic;
        intake->topic_keys[INTAKE_TOPIC_LETTERS + 1 + i] = "intake.topic";
    }
    struct rcpt_kafka_property *properties = host_kafka_properties(config);
    struct rcpt_producer_settings settings = {
        .loop = intake->loop,
        .brokers = config->kafka.brokers,
        .properties = properties,
        .property_count = config->kafka.properties_count,
        .topics = topics,
        .topic_count = intake->target_count + 1,
        .topic_keys = intake->topic_keys,
        .compression = config->intake.compression,
        .budget_bytes = config->intake.memory_bytes,
        .max_record_bytes = config->intake.limits.body_bytes > config->intake.max_bytes
                                ? config->intake.limits.body_bytes * 2
                                : config->intake.max_bytes * 2,
        .delivery_timeout_ms = config->intake.ack_timeout_ms,
        .callbacks = {.context = intake,
                      .on_delivered = on_delivered,
                      .on_round = on_round,
                      .on_partitions = on_partitions,
                      .on_health = on_health,
                      .on_closed = intake_on_producer_closed},
    };
    intake->producer = rcpt_producer_new(&settings, error);
    free(properties);
    return intake->producer != NULL;
}

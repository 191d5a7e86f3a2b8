/* Calls of claimed actions: webhooks and records of Kafka, whose answers become results. A breaker
 * per endpoint (breaker.h) stops calls to one that fails. Called by claim.c, whose claims promise
 * no more than there is capacity for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/utf8.h"

/* Bytes of records that the producer may hold until Kafka acknowledges them; further actions are
 * given back. */
#define PRODUCE_BUDGET_BYTES (16u << 20)
#define PRODUCE_MAX_BYTES    (1u << 20)
#define HEADER_BYTES         64

/* ---- results ---- */

/* Decorrelated jitter from the last wait of this action, at least what Retry-After asks for. */
static int64_t next_wait(struct actions_item *item, int64_t retry_after_ms)
{
    const struct rcpt_config *config = item->actions->context->config;
    struct rcpt_backoff backoff;
    rcpt_backoff_init(&backoff, config->actions.retry_min_ms, config->actions.retry_max_ms,
                      item->actions->random);
    backoff.last_ms = item->wait_ms;
    int64_t wait = rcpt_webhook_wait_ms(&backoff, retry_after_ms);
    item->actions->random = backoff.random;
    return wait;
}

/* Due again after a back-off, or dead after max_attempts or max_age. The wait is kept in the row,
 * so that the next attempt, by any instance, goes on from it. */
static void settle_failed(struct actions_item *item, const char *class, int64_t retry_after_ms)
{
    const struct rcpt_config *config = item->actions->context->config;
    item->retry_ms = next_wait(item, retry_after_ms);
    bool again = item->attempt < (int)config->actions.max_attempts &&
                 item->age_ms + item->retry_ms < config->actions.max_age_ms;
    actions_settle(item, again ? ACTIONS_RETRY : ACTIONS_DEAD, class);
}

/* A copy that PostgreSQL takes as text: other encodings lose everything but ASCII. */
static char *text_of(const char *bytes, size_t size)
{
    char *text = rcpt_strndup(bytes, size);
    if (!rcpt_utf8_is_text(bytes, size)) {
        for (size_t index = 0; index < size; index++)
            if ((unsigned char)bytes[index] >= 0x80 || bytes[index] == '\0')
                text[index] = '?';
    }
    return text;
}

/* max_attempts counts calls, so an outage in front of them uses up none. */
void actions_call_put_off(struct actions_item *item, const char *class, const char *why)
{
    item->retry_ms = next_wait(item, 0);
    item->answer = text_of(why, strlen(why));
    bool again = item->age_ms + item->retry_ms < item->actions->context->config->actions.max_age_ms;
    actions_settle(item, again ? ACTIONS_WAIT : ACTIONS_DEAD, class);
}

/* ---- webhooks ---- */

/* Endpoints are few: a linear search is enough. */
static struct actions_endpoint *find_endpoint(struct app_actions *actions, const char *name)
{
    for (size_t index = 0; index < actions->endpoint_count; index++)
        if (strcmp(actions->endpoints[index].name, name) == 0)
            return &actions->endpoints[index];
    return NULL;
}

/* Changes of a breaker are logged, not single failures. */
static void log_state(const struct actions_endpoint *endpoint, const char *why)
{
    static const char *const texts[] = {
        [RCPT_BREAKER_CLOSED] = "answers again",
        [RCPT_BREAKER_OPEN] = "fails and gets no calls for a while",
        [RCPT_BREAKER_PROBING] = "is tried again",
        [RCPT_BREAKER_DISABLED] = "has failed for too long and is disabled until a reload",
    };
    enum rcpt_breaker_state state = endpoint->breaker.state;
    rcpt_log(state == RCPT_BREAKER_CLOSED     ? RCPT_LOG_INFO
             : state == RCPT_BREAKER_DISABLED ? RCPT_LOG_ERROR
                                              : RCPT_LOG_WARN,
             "actions", "endpoint %s %s%s%s", endpoint->name, texts[state],
             why[0] != '\0' ? ": " : "", why);
}

/* Calls that never went out say nothing about the endpoint. */
static void note_answer(struct app_actions *actions, struct actions_endpoint *endpoint,
                        const struct rcpt_webhook_answer *answer)
{
    const struct rcpt_config *config = actions->context->config;
    const struct rcpt_breaker_limits limits = {config->actions.breaker_failures,
                                               config->actions.breaker_open_ms,
                                               config->actions.disable_after_ms};
    bool changed = false;
    if (answer->class == RCPT_WEBHOOK_CANCELLED || answer->class == RCPT_WEBHOOK_BUSY)
        return;
    if (rcpt_webhook_may_retry(answer->class))
        changed = rcpt_breaker_failed(&endpoint->breaker, &limits, host_now(actions->context));
    else
        changed = rcpt_breaker_succeeded(&endpoint->breaker);
    if (changed)
        log_state(endpoint, answer->error[0] != '\0' ? answer->error
                                                     : rcpt_webhook_class_name(answer->class));
}

/* Delivered, retried, or dead by the class of the answer; the endpoint's breaker learns of it
 * first. */
static void on_answer(void *context, const struct rcpt_webhook_answer *answer)
{
    struct actions_item *item = context;
    struct app_actions *actions = item->actions;
    struct actions_endpoint *endpoint = find_endpoint(actions, item->target);
    const char *class = rcpt_webhook_class_name(answer->class);
    RCPT_ASSERT(endpoint != NULL);
    endpoint->in_flight--;
    note_answer(actions, endpoint, answer);
    rcpt_metrics_add(actions->context->metrics, RCPT_METRIC_ACTION_ATTEMPTS,
                     RCPT_LABELS(item->target, class), 1);
    rcpt_metrics_observe(actions->context->metrics, RCPT_METRIC_ACTION_CALL_SECONDS,
                         RCPT_LABELS(item->target), (double)answer->took_ms / 1000);
    item->status = answer->status;
    const char *error = answer->class == RCPT_WEBHOOK_FORBIDDEN
                            ? "its address is not public, and actions.allow_private is not set"
                            : answer->error;
    item->answer =
        answer->size > 0 ? text_of(answer->body, answer->size) : text_of(error, strlen(error));
    if (answer->class == RCPT_WEBHOOK_DELIVERED)
        actions_settle(item, ACTIONS_DONE, class);
    else if (rcpt_webhook_may_retry(answer->class))
        settle_failed(item, class, answer->retry_after_ms);
    else
        actions_settle(item, ACTIONS_DEAD, class);
}

/* The token lets a receiver refuse a worker whose lease ran out. */
static void call_webhook(struct actions_item *item)
{
    struct app_actions *actions = item->actions;
    struct actions_endpoint *endpoint = find_endpoint(actions, item->target);
    char id[HEADER_BYTES], token[HEADER_BYTES], attempt[HEADER_BYTES];
    char traceparent[RCPT_TRACE_TEXT_BYTES + 1];
    const char *const headers[] = {token, attempt};
    if (endpoint == NULL) { /* an older version of the pipeline names this endpoint */
        settle_failed(item, "no_endpoint", 0);
        return;
    }
    snprintf(id, sizeof(id), "act_%" PRId64, item->id);
    snprintf(token, sizeof(token), "receiptd-fencing-token: %" PRId64, item->token);
    snprintf(attempt, sizeof(attempt), "receiptd-attempt: %d", item->attempt);
    actions_trace_begin(item, traceparent);
    const struct rcpt_webhook_call call = {.id = id,
                                           .body = item->body,
                                           .size = strlen(item->body),
                                           .traceparent = traceparent,
                                           .headers = headers,
                                           .header_count = 2};
    if (rcpt_webhook_send(endpoint->endpoint, &call, on_answer, item))
        endpoint->in_flight++;
    else
        actions_settle(item, ACTIONS_BACK, "no_capacity");
}

/* ---- records ---- */

/* Also called for records that were not sent within the delivery time-out. */
static void on_delivered(void *context, void *tag, const struct rcpt_error *error)
{
    struct actions_item *item = tag;
    (void)context;
    const char *class = error == NULL ? "delivered" : "kafka";
    rcpt_metrics_add(item->actions->context->metrics, RCPT_METRIC_ACTION_ATTEMPTS,
                     RCPT_LABELS(item->target, class), 1);
    if (error != NULL)
        item->answer = text_of(error->text, strlen(error->text));
    if (error == NULL)
        actions_settle(item, ACTIONS_DONE, class);
    else /* refused as well: one record that is too large takes its whole batch with it */
        settle_failed(item, class, 0);
}

/* The producer knows topics by their index among those of the pipelines. */
static size_t topic_of(const struct app_actions *actions, const char *name)
{
    size_t index = 0;
    while (index < actions->pipelines->topics.count &&
           strcmp(actions->pipelines->topics.names[index], name) != 0)
        index++;
    return index;
}

/* The producer owns the value once it has taken the record. */
static void call_produce(struct actions_item *item)
{
    struct app_actions *actions = item->actions;
    char id[HEADER_BYTES], token[HEADER_BYTES], traceparent[RCPT_TRACE_TEXT_BYTES + 1];
    snprintf(id, sizeof(id), "act_%" PRId64, item->id);
    snprintf(token, sizeof(token), "%" PRId64, item->token);
    actions_trace_begin(item, traceparent);
    const struct rcpt_producer_header headers[] = {
        /* the last one only if there is a trace */
        {"webhook-id", id, strlen(id)},
        {"receiptd-fencing-token", token, strlen(token)},
        {"traceparent", traceparent, strlen(traceparent)},
    };
    size_t topic = topic_of(actions, item->target);
    if (actions->producer == NULL || topic == actions->pipelines->topics.count) {
        settle_failed(item, "no_topic", 0);
        return;
    }
    struct rcpt_producer_record record = {.topic = topic,
                                          .partition = -1,
                                          .key = item->key,
                                          .key_size = item->key != NULL ? strlen(item->key) : 0,
                                          .value = rcpt_strdup(item->body),
                                          .value_size = strlen(item->body),
                                          .headers = headers,
                                          .header_count = traceparent[0] != '\0' ? 3 : 2,
                                          .tag = item};
    if (rcpt_producer_send(actions->producer, &record) == RCPT_PRODUCER_TAKEN)
        return;
    free(record.value);
    actions_settle(item, ACTIONS_BACK, "no_capacity");
}

/* The clock is read anew: the process may have stood still since the loop read it. */
void actions_call(struct actions_item *item)
{
    if (uv_hrtime() >= item->closes_ns)
        actions_settle(item, ACTIONS_BACK, "closed"); /* the next claim postpones it */
    else if (item->is_webhook)
        call_webhook(item);
    else
        call_produce(item);
}

/* ---- capacity ---- */

void actions_call_promise(const struct actions_item *item, bool is_kept)
{
    struct actions_endpoint *endpoint =
        item->is_webhook ? find_endpoint(item->actions, item->target) : NULL;
    if (endpoint != NULL)
        endpoint->promised = is_kept ? endpoint->promised + 1 : endpoint->promised - 1;
}

/* A probing breaker lets one call through at a time. */
static unsigned capacity_of(struct app_actions *actions, struct actions_endpoint *endpoint)
{
    if (rcpt_breaker_advance(&endpoint->breaker, host_now(actions->context)) ==
        RCPT_BREAKER_PROBING)
        return endpoint->in_flight + endpoint->promised == 0 ? 1 : 0;
    unsigned capacity = rcpt_webhook_capacity(endpoint->endpoint);
    return capacity > endpoint->promised ? capacity - endpoint->promised : 0;
}

/* Claims leave actions of such an endpoint alone. */
static bool is_open(const struct actions_endpoint *endpoint)
{
    return endpoint->breaker.state == RCPT_BREAKER_OPEN ||
           endpoint->breaker.state == RCPT_BREAKER_DISABLED;
}

/* Names and capacities are parallel arrays. */
void actions_call_put_capacity(struct app_actions *actions, struct rcpt_pg_encoder *encoder)
{
    size_t open = 0;
    char target[128];
    for (size_t index = 0; index < actions->endpoint_count; index++) {
        rcpt_breaker_advance(&actions->endpoints[index].breaker, host_now(actions->context));
        open += is_open(&actions->endpoints[index]);
    }
    rcpt_pg_begin_text_array(encoder, open);
    for (size_t index = 0; index < actions->endpoint_count; index++) {
        const char *name = actions->endpoints[index].name;
        if (is_open(&actions->endpoints[index]))
            rcpt_pg_put_bytes(encoder, name, strlen(name));
    }
    rcpt_pg_begin_text_array(encoder, actions->endpoint_count);
    for (size_t index = 0; index < actions->endpoint_count; index++) {
        snprintf(target, sizeof(target), "webhook:%s", actions->endpoints[index].name);
        rcpt_pg_put_bytes(encoder, target, strlen(target));
    }
    rcpt_pg_begin_int4_array(encoder, actions->endpoint_count);
    for (size_t index = 0; index < actions->endpoint_count; index++)
        rcpt_pg_put_int4(encoder, (int32_t)capacity_of(actions, &actions->endpoints[index]));
}

/* For the metric: a disabled endpoint needs an operator. */
unsigned actions_call_disabled(const struct app_actions *actions)
{
    unsigned count = 0;
    for (size_t index = 0; index < actions->endpoint_count; index++)
        count += actions->endpoints[index].breaker.state == RCPT_BREAKER_DISABLED;
    return count;
}

/* A reload gives disabled endpoints another chance. */
void actions_call_enable(struct app_actions *actions)
{
    for (size_t index = 0; index < actions->endpoint_count; index++)
        if (actions->endpoints[index].breaker.state == RCPT_BREAKER_DISABLED)
            actions->endpoints[index].breaker = (struct rcpt_breaker){0};
}

/* ---- start and end ---- */

/* Endpoints are counted before they are checked, so that a failure frees their names. */
static bool start_endpoints(struct app_actions *actions, struct rcpt_error *error)
{
    const struct rcpt_config *config = actions->context->config;
    const struct rcpt_webhooks_settings settings = {.loop = actions->context->loop,
                                                    .allow_private = config->actions.allow_private,
                                                    .ca_file = config->actions.ca_file};
    actions->webhooks = rcpt_webhooks_new(&settings);
    actions->open++;
    actions->endpoints =
        rcpt_calloc(config->actions.endpoints_count + 1, sizeof(*actions->endpoints));
    for (size_t index = 0; index < config->actions.endpoints_count; index++) {
        const struct rcpt_config_endpoint *each = &config->actions.endpoints[index];
        const struct rcpt_webhook_endpoint_settings endpoint = {
            .name = each->name,
            .url = each->url,
            .secrets = (const char *const *)each->secrets,
            .secret_count = each->secrets_count,
            .headers = (const char *const *)each->headers,
            .header_count = each->headers_count,
            .connect_timeout_ms = each->connect_timeout_ms,
            .timeout_ms = each->timeout_ms,
            .max_answer_bytes = each->max_answer_bytes,
            .concurrency = each->concurrency};
        actions->endpoints[index].name = rcpt_strdup(each->name);
        actions->endpoints[index].endpoint =
            rcpt_webhook_endpoint_new(actions->webhooks, &endpoint, error);
        actions->endpoint_count++;
        if (actions->endpoints[index].endpoint == NULL)
            return false;
    }
    return true;
}

/* Records to a missing topic fail and are retried, so the topic may be created later. */
static void on_partitions(void *context, size_t topic, int32_t count)
{
    const struct app_actions *actions = context;
    if (count == 0)
        rcpt_log_warn("actions", "topic %s, which pipelines produce to, does not exist",
                      actions->pipelines->topics.names[topic]);
}

static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    actions->kafka_reason[0] = '\0'; /* the producer logs it; failed records are retried */
    if (!healthy)
        host_set_reason(actions->kafka_reason, "the producer of actions is in trouble", error);
}

static void on_producer_closed(void *context);

/* A delivery that takes longer than a third of the lease fails, before others may claim the action.
 * */
static bool start_producer(struct app_actions *actions, struct rcpt_error *error)
{
    const struct rcpt_config *config = actions->context->config;
    if (actions->pipelines->topics.count == 0)
        return true;
    struct rcpt_kafka_property *properties = host_kafka_properties(config);
    const struct rcpt_producer_settings settings = {
        .loop = actions->context->loop,
        .brokers = config->kafka.brokers,
        .properties = properties,
        .property_count = config->kafka.properties_count,
        .topics = (const char *const *)actions->pipelines->topics.names,
        .topic_count = actions->pipelines->topics.count,
        .compression = "lz4",
        .budget_bytes = PRODUCE_BUDGET_BYTES,
        .max_record_bytes = PRODUCE_MAX_BYTES,
        .delivery_timeout_ms = config->actions.lease_ms / 3,
        .callbacks = {.context = actions,
                      .on_delivered = on_delivered,
                      .on_partitions = on_partitions,
                      .on_health = on_health,
                      .on_closed = on_producer_closed},
    };
    actions->producer = rcpt_producer_new(&settings, error);
    actions->open += actions->producer != NULL;
    free(properties);
    return actions->producer != NULL;
}

/* After a failure the caller stops the set, which closes all opened parts. */
bool actions_call_start(struct app_actions *actions, struct rcpt_error *error)
{
    return start_endpoints(actions, error) && start_producer(actions, error);
}

static void on_producer_closed(void *context)
{
    struct app_actions *actions = context;
    actions->producer = NULL;
    actions->on_part_closed(actions);
}

/* The producer gets at most a second (1000 ms) to deliver its remaining records. */
void actions_call_close(struct app_actions *actions, void (*on_closed)(void *context))
{
    actions->on_part_closed = on_closed;
    if (actions->producer != NULL)
        rcpt_producer_close(actions->producer, 1000);
    if (actions->webhooks != NULL)
        rcpt_webhooks_close(actions->webhooks, on_closed, actions);
}

void actions_call_fini(struct app_actions *actions)
{
    for (size_t index = 0; index < actions->endpoint_count; index++)
        free(actions->endpoints[index].name);
    free(actions->endpoints);
}

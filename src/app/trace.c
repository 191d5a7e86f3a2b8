/* A span per traced batch, with links to the traces of its records, and below it where the time
 * went:
 *
 *   fetch   the oldest record's timestamp in Kafka → the last record is here
 *   decode  the first record is here → the last one is decoded; the sum is an attribute
 *   apply   sent → the statements are answered
 *   commit  … → the transaction's end is answered
 *
 * Between decode and apply lies the wait for the lane. */
#include <string.h>

#include "app.h"

#define NS_PER_MS 1000000

void trace_start(struct app *app)
{
    const struct rcpt_config *config = app->config;
    const struct rcpt_tracer_settings settings = {
        .loop = &app->loop,
        .endpoint = config->tracing.endpoint,
        .token = config->tracing.token,
        .instance = app->instance,
        .queue_bytes = config->tracing.queue_bytes,
        .timeout_ms = config->tracing.timeout_ms,
    };
    if (config->tracing.endpoint != NULL)
        app->tracer = rcpt_tracer_new(&settings);
}

static void on_closed(void *context)
{
    struct app *app = context;
    app->tracer = NULL;
    app->open--;
}

void trace_close(struct app *app)
{
    if (app->tracer == NULL)
        return;
    app->open++;
    rcpt_tracer_close(app->tracer, on_closed, app);
}

uint64_t trace_now(const struct app *app)
{
    return app->tracer != NULL ? uv_hrtime() : 0;
}

/* ---- the beginning ---- */

static bool read_context(const struct rcpt_record *record, struct rcpt_trace_context *context)
{
    return record->traceparent[0] != '\0' &&
           rcpt_trace_parse(record->traceparent, RCPT_TRACE_TEXT_BYTES, context);
}

/* By parent: one record of a sampled trace is enough. Otherwise by ratio. */
static bool is_wanted(struct app *app, const struct rcpt_batch *batch)
{
    struct rcpt_trace_context context;
    for (uint32_t index = 0; index < batch->record_count; index++) {
        if (read_context(batch->records[index], &context) && context.sampled)
            return true;
    }
    return rcpt_tracer_draw(app->tracer, app->config->tracing.sample_millionths);
}

static void add_links(struct rcpt_span *span, const struct rcpt_batch *batch)
{
    struct rcpt_trace_context context;
    for (uint32_t index = 0; index < batch->record_count; index++) {
        if (read_context(batch->records[index], &context) && context.sampled)
            rcpt_span_add_link(span, &context, batch->records[index]->tracestate);
    }
}

struct arrival {                /* of the records of a batch */
    int64_t oldest_ms;          /* Kafka's timestamp; 0: none known */
    uint64_t first_ns, last_ns; /* received; 0: no record */
    uint64_t last_decoded_ns, decoding_ns;
};

static struct arrival sum_arrival(const struct rcpt_batch *batch)
{
    struct arrival sum = {0};
    for (uint32_t index = 0; index < batch->record_count; index++) {
        const struct rcpt_record *record = batch->records[index];
        if (record->received_ns == 0)
            continue;
        if (sum.first_ns == 0 || record->received_ns < sum.first_ns)
            sum.first_ns = record->received_ns;
        if (record->received_ns > sum.last_ns)
            sum.last_ns = record->received_ns;
        if (record->decoded_ns > sum.last_decoded_ns)
            sum.last_decoded_ns = record->decoded_ns;
        if (record->timestamp_ms > 0 &&
            (sum.oldest_ms == 0 || record->timestamp_ms < sum.oldest_ms))
            sum.oldest_ms = record->timestamp_ms;
        sum.decoding_ns += record->decoded_ns - record->received_ns;
    }
    return sum;
}

/* Kafka's timestamp on our monotonic clock. Whose clock is ahead of ours cannot have sent it later
 * than it came. */
static uint64_t fetch_began_ns(const struct arrival *arrival)
{
    int64_t now_ms = measure_wall_ms();
    uint64_t now_ns = uv_hrtime();
    if (arrival->oldest_ms == 0 || arrival->oldest_ms >= now_ms)
        return arrival->first_ns;
    uint64_t age_ns = (uint64_t)(now_ms - arrival->oldest_ms) * NS_PER_MS;
    uint64_t began_ns = age_ns < now_ns ? now_ns - age_ns : 1;
    return began_ns < arrival->first_ns ? began_ns : arrival->first_ns;
}

static void add_child(struct app *app, const struct rcpt_span *parent, const char *name,
                      uint64_t begin_ns, uint64_t end_ns)
{
    struct rcpt_trace_context context = rcpt_span_context(parent);
    struct rcpt_span *span = rcpt_span_begin(app->tracer, RCPT_SPAN_INTERNAL, name, &context);
    rcpt_span_set_begin(span, begin_ns);
    rcpt_span_end_take(app->tracer, span, end_ns);
}

static void add_arrival(struct app *app, struct rcpt_span *span, const struct rcpt_batch *batch)
{
    struct arrival arrival = sum_arrival(batch);
    if (arrival.first_ns == 0)
        return;
    uint64_t began_ns = fetch_began_ns(&arrival);
    rcpt_span_set_begin(span, began_ns);
    rcpt_span_add_number(span, "receiptd.decode.nanoseconds", (int64_t)arrival.decoding_ns);
    add_child(app, span, "fetch", began_ns, arrival.last_ns);
    add_child(app, span, "decode", arrival.first_ns, arrival.last_decoded_ns);
}

struct rcpt_span *trace_begin_batch(struct app *app, const struct rcpt_batch *batch)
{
    static const char *const names[RCPT_BATCH_KIND__COUNT] = {
        [RCPT_BATCH_APPLY] = "batch apply",   [RCPT_BATCH_PROBE] = "batch probe",
        [RCPT_BATCH_WAKE] = "batch wake",     [RCPT_BATCH_DISCARD] = "batch discard",
        [RCPT_BATCH_EXPIRE] = "batch expire",
    };
    if (app->tracer == NULL || !is_wanted(app, batch))
        return NULL;
    struct rcpt_span *span =
        rcpt_span_begin(app->tracer, RCPT_SPAN_CONSUMER, names[batch->kind], NULL);
    rcpt_span_add_text(span, "messaging.system", "kafka");
    rcpt_span_add_text(span, "messaging.consumer.group.name", app->config->kafka.group);
    rcpt_span_add_number(span, "messaging.batch.message_count", batch->record_count);
    rcpt_span_add_number(span, "receiptd.batch", (int64_t)batch->number);
    rcpt_span_add_number(span, "receiptd.lane", batch->lane);
    rcpt_span_add_number(span, "receiptd.receipts", batch->event_count);
    rcpt_span_add_number(span, "receiptd.messages", batch->message_count);
    add_links(span, batch);
    add_arrival(app, span, batch);
    return span;
}

/* ---- the end ---- */

static void add_transaction(struct app *app, const struct rcpt_span *span, uint64_t sent_ns,
                            uint64_t answered_ns, uint64_t now_ns)
{
    struct rcpt_trace_context context = rcpt_span_context(span);
    struct rcpt_span *apply = rcpt_span_begin(app->tracer, RCPT_SPAN_CLIENT, "apply", &context);
    rcpt_span_set_begin(apply, sent_ns);
    rcpt_span_add_text(apply, "db.system", "postgresql");
    rcpt_span_end_take(app->tracer, apply, answered_ns != 0 ? answered_ns : now_ns);
    if (answered_ns != 0)
        add_child(app, span, "commit", answered_ns, now_ns);
}

void trace_end_batch(struct app *app, uint32_t lane, const struct rcpt_engine_result *result,
                     const struct rcpt_error *error)
{
    struct app_lane_flight *flight = &app->lane_flights[lane];
    struct rcpt_span *span = flight->span;
    flight->span = NULL;
    if (span == NULL)
        return;
    bool good = result->outcome == RCPT_OUTCOME_COMMITTED;
    uint64_t now_ns = uv_hrtime();
    add_transaction(app, span, flight->sent_ns, good ? result->answered_ns : 0, now_ns);
    if (good) {
        rcpt_span_add_number(span, "receiptd.messages.changed", result->messages_changed);
        rcpt_span_add_number(span, "receiptd.receipts.parked", result->events_parked);
    } else if (error != NULL && result->outcome != RCPT_OUTCOME_AGAIN) {
        rcpt_span_add_text(span, "error.type", error->code[0] != '\0' ? error->code : "lost");
        rcpt_span_fail(span, "the transaction was not committed");
    }
    rcpt_span_end_take(app->tracer, span, now_ns);
}

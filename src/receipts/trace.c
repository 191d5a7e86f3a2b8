/* A span per traced batch, with links to the traces of its records, and below it where the time
 * went:
 *
 *   fetch   the oldest record's timestamp in Kafka → the last record is here
 *   decode  the first record is here → the last one is decoded; the sum is an attribute
 *   apply   sent → the statements are answered
 *   commit  … → the transaction's end is answered
 *
 * Between decode and apply lies the wait for the lane. Called by consume.c and lanes.c. */
#include <string.h>

#include "internal.h"

#define NS_PER_MS 1000000

uint64_t trace_now(const struct host_context *context)
{
    return context->tracer != NULL ? uv_hrtime() : 0;
}

/* ---- the beginning ---- */

static bool read_parent(const struct rcpt_record *record, struct rcpt_trace_context *parent)
{
    return record->traceparent[0] != '\0' &&
           rcpt_trace_parse(record->traceparent, RCPT_TRACE_TEXT_BYTES, parent);
}

/* By parent: one record of a sampled trace is enough. Otherwise by ratio. */
static bool is_traced(const struct host_context *context, const struct rcpt_batch *batch)
{
    struct rcpt_trace_context parent;
    for (uint32_t index = 0; index < batch->record_count; index++) {
        if (read_parent(batch->records[index], &parent) && parent.sampled)
            return true;
    }
    return rcpt_tracer_draw(context->tracer, context->config->tracing.sample_millionths);
}

static void add_links(struct rcpt_span *span, const struct rcpt_batch *batch)
{
    struct rcpt_trace_context parent;
    for (uint32_t index = 0; index < batch->record_count; index++) {
        if (read_parent(batch->records[index], &parent) && parent.sampled)
            rcpt_span_add_link(span, &parent, batch->records[index]->tracestate);
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

/* Kafka's timestamp on our monotonic clock. A producer whose clock is
 * ahead of ours cannot have sent it later than it came. */
static uint64_t fetch_began_ns(const struct arrival *arrival)
{
    int64_t now_ms = host_wall_ms();
    uint64_t now_ns = uv_hrtime();
    if (arrival->oldest_ms == 0 || arrival->oldest_ms >= now_ms)
        return arrival->first_ns;
    uint64_t age_ns = (uint64_t)(now_ms - arrival->oldest_ms) * NS_PER_MS;
    uint64_t began_ns = age_ns < now_ns ? now_ns - age_ns : 1;
    return began_ns < arrival->first_ns ? began_ns : arrival->first_ns;
}

static void add_child(const struct host_context *context, const struct rcpt_span *parent,
                      const char *name, uint64_t begin_ns, uint64_t end_ns)
{
    struct rcpt_trace_context above = rcpt_span_context(parent);
    struct rcpt_span *span = rcpt_span_begin(context->tracer, RCPT_SPAN_INTERNAL, name, &above);
    rcpt_span_set_begin(span, begin_ns);
    rcpt_span_end_take(context->tracer, span, end_ns);
}

static void add_arrival(const struct host_context *context, struct rcpt_span *span,
                        const struct rcpt_batch *batch)
{
    struct arrival arrival = sum_arrival(batch);
    if (arrival.first_ns == 0)
        return;
    uint64_t began_ns = fetch_began_ns(&arrival);
    rcpt_span_set_begin(span, began_ns);
    rcpt_span_add_number(span, "receiptd.decode.nanoseconds", (int64_t)arrival.decoding_ns);
    add_child(context, span, "fetch", began_ns, arrival.last_ns);
    add_child(context, span, "decode", arrival.first_ns, arrival.last_decoded_ns);
}

struct rcpt_span *trace_begin_batch(const struct host_context *context,
                                    const struct rcpt_batch *batch)
{
    static const char *const names[RCPT_BATCH_KIND__COUNT] = {
        [RCPT_BATCH_APPLY] = "batch apply",   [RCPT_BATCH_PROBE] = "batch probe",
        [RCPT_BATCH_WAKE] = "batch wake",     [RCPT_BATCH_DISCARD] = "batch discard",
        [RCPT_BATCH_EXPIRE] = "batch expire", [RCPT_BATCH_RANGES] = "batch ranges",
    };
    if (context->tracer == NULL || !is_traced(context, batch))
        return NULL;
    struct rcpt_span *span =
        rcpt_span_begin(context->tracer, RCPT_SPAN_CONSUMER, names[batch->kind], NULL);
    rcpt_span_add_text(span, "messaging.system", "kafka");
    rcpt_span_add_text(span, "messaging.consumer.group.name", context->config->kafka.group);
    rcpt_span_add_number(span, "messaging.batch.message_count", batch->record_count);
    rcpt_span_add_number(span, "receiptd.batch", (int64_t)batch->number);
    rcpt_span_add_number(span, "receiptd.lane", batch->lane);
    rcpt_span_add_number(span, "receiptd.receipts", batch->event_count);
    rcpt_span_add_number(span, "receiptd.messages", batch->message_count);
    add_links(span, batch);
    add_arrival(context, span, batch);
    return span;
}

/* ---- the end ---- */

static void add_transaction(const struct host_context *context, const struct rcpt_span *span,
                            uint64_t sent_ns, uint64_t answered_ns, uint64_t now_ns)
{
    struct rcpt_trace_context above = rcpt_span_context(span);
    struct rcpt_span *apply = rcpt_span_begin(context->tracer, RCPT_SPAN_CLIENT, "apply", &above);
    rcpt_span_set_begin(apply, sent_ns);
    rcpt_span_add_text(apply, "db.system", "postgresql");
    rcpt_span_end_take(context->tracer, apply, answered_ns != 0 ? answered_ns : now_ns);
    if (answered_ns != 0)
        add_child(context, span, "commit", answered_ns, now_ns);
}

void trace_end_batch(const struct host_context *context, struct rcpt_span *span_taken,
                     uint64_t sent_ns, const struct rcpt_engine_result *result,
                     const struct rcpt_error *error)
{
    struct rcpt_span *span = span_taken;
    if (span == NULL)
        return;
    bool good = result->outcome == RCPT_ENGINE_COMMITTED;
    uint64_t now_ns = uv_hrtime();
    add_transaction(context, span, sent_ns, good ? result->answered_ns : 0, now_ns);
    if (good) {
        rcpt_span_add_number(span, "receiptd.messages.changed", result->messages_changed);
        rcpt_span_add_number(span, "receiptd.receipts.parked", result->events_parked);
    } else if (error != NULL) {
        rcpt_span_add_text(span, "error.type", error->code[0] != '\0' ? error->code : "lost");
        rcpt_span_fail(span, "the transaction was not committed");
    }
    rcpt_span_end_take(context->tracer, span, now_ns);
}

/* Spans of attempts. A run whose beginning was in a sampled trace (run.trace) goes on with that
 * trace: each attempt is a span below what began the run, and its receiver gets the span as parent.
 * Other attempts are traced by ratio, each by itself. Without a tracer the run's traceparent is
 * passed on as it came. Called by call.c and results.c. */
#include <string.h>

#include "internal.h"

/* NULL: this attempt is not traced. A stored traceparent is sampled. */
static struct rcpt_span *begin_span(const struct actions_item *item)
{
    const struct host_context *context = item->actions->context;
    struct rcpt_trace_context parent;
    bool known = item->trace != NULL && rcpt_trace_parse(item->trace, strlen(item->trace), &parent);
    if (context->tracer == NULL ||
        (!known && !rcpt_tracer_draw(context->tracer, context->config->tracing.sample_millionths)))
        return NULL;
    return rcpt_span_begin(
        context->tracer, item->is_webhook ? RCPT_SPAN_CLIENT : RCPT_SPAN_PRODUCER,
        item->is_webhook ? "action webhook" : "action produce", known ? &parent : NULL);
}

void actions_trace_begin(struct actions_item *item, char text[RCPT_TRACE_TEXT_BYTES + 1])
{
    struct rcpt_span *span = item->span = begin_span(item);
    text[0] = '\0';
    if (span != NULL) {
        struct rcpt_trace_context context = rcpt_span_context(span);
        rcpt_trace_format(&context, text);
        rcpt_span_add_text(span, "receiptd.target", item->target);
        rcpt_span_add_number(span, "receiptd.action", item->id);
        rcpt_span_add_number(span, "receiptd.run", item->run_id);
        rcpt_span_add_number(span, "receiptd.attempt", item->attempt);
    } else if (item->trace != NULL && strlen(item->trace) == RCPT_TRACE_TEXT_BYTES) {
        memcpy(text, item->trace, RCPT_TRACE_TEXT_BYTES + 1);
    }
}

void actions_trace_end(struct actions_item *item)
{
    struct rcpt_tracer *tracer = item->actions->context->tracer;
    struct rcpt_span *span = item->span;
    item->span = NULL;
    if (span == NULL)
        return;
    if (item->status > 0)
        rcpt_span_add_number(span, "http.response.status_code", item->status);
    if (item->result != ACTIONS_DONE) {
        rcpt_span_add_text(span, "error.type", item->class);
        rcpt_span_fail(span, item->class);
    }
    rcpt_span_end_take(tracer, span, 0);
}

/* Spans, and their way to a collector: OTLP over HTTP, as JSON.
 *
 * Ended spans wait in a queue bounded in bytes. Once a second, or sooner when there are many, some
 * of them are encoded by a thread of libuv's pool and sent, one request at a time. A collector that
 * does not answer costs only spans, which are counted. Sampling is by parent, then by ratio. Call
 * from the loop's thread only.
 */
#ifndef RECEIPTD_TRACE_TRACER_H
#define RECEIPTD_TRACE_TRACER_H

#include <uv.h>

#include "receiptd/core/trace_context.h"

struct rcpt_tracer;
struct rcpt_span;

enum rcpt_span_kind { /* numbers of OTLP */
                      RCPT_SPAN_INTERNAL = 1,
                      RCPT_SPAN_SERVER = 2,
                      RCPT_SPAN_CLIENT = 3,
                      RCPT_SPAN_PRODUCER = 4,
                      RCPT_SPAN_CONSUMER = 5,
};

struct rcpt_tracer_settings {
    uv_loop_t *loop;
    const char *endpoint; /* http://… or https://…, with its path; borrowed for life */
    const char *token;    /* bearer token; NULL: none; likewise */
    const char *instance; /* likewise */
    size_t queue_bytes;
    int64_t timeout_ms; /* of one request */
};

struct rcpt_tracer_stats {
    uint64_t exported;
    uint64_t dropped_full;    /* the queue was full */
    uint64_t dropped_refused; /* the collector does not want them */
    uint64_t dropped_lost;    /* it did not answer, several times, or until the end */
    size_t queued_bytes;
};

struct rcpt_tracer *rcpt_tracer_new(const struct rcpt_tracer_settings *settings);
/* Sends the queued spans, once and briefly; then frees the tracer and calls on_closed. */
void rcpt_tracer_close(struct rcpt_tracer *tracer, void (*on_closed)(void *context), void *context);

/* Decides on sampling without a parent: true for this share of calls, in millionths. */
bool rcpt_tracer_draw(struct rcpt_tracer *tracer, uint64_t millionths);

/* Begins now. `parent` NULL: a trace of its own. The names of spans and of attributes are borrowed
 * for life, they are constants. */
struct rcpt_span *rcpt_span_begin(struct rcpt_tracer *tracer, enum rcpt_span_kind kind,
                                  const char *name, const struct rcpt_trace_context *parent);
/* The context of the span, to be passed on to its children. */
struct rcpt_trace_context rcpt_span_context(const struct rcpt_span *span);
/* Monotonic nanoseconds, as of uv_hrtime(), in place of now. */
void rcpt_span_set_begin(struct rcpt_span *span, uint64_t begin_ns);
/* At most 12; the rest is left out. */
void rcpt_span_add_text(struct rcpt_span *span, const char *name, const char *value);
void rcpt_span_add_number(struct rcpt_span *span, const char *name, int64_t value);
/* At most RCPT_SPAN_MOST_LINKS; the rest is counted. `state` may be NULL. */
#define RCPT_SPAN_MOST_LINKS 128u
void rcpt_span_add_link(struct rcpt_span *span, const struct rcpt_trace_context *to,
                        const char *state);
void rcpt_span_fail(struct rcpt_span *span, const char *reason);
/* Ends the span at this moment, monotonic; 0: now. The queue owns it from then on. */
void rcpt_span_end_take(struct rcpt_tracer *tracer, struct rcpt_span *span, uint64_t end_ns);

const struct rcpt_tracer_stats *rcpt_tracer_get_stats(const struct rcpt_tracer *tracer);

#endif

/* Spans and their way to a collector. The owner begins, fills and ends a span; then it waits in the
 * queue, and goes out with up to 511 others in one OTLP request. One request is in flight at a
 * time. If the collector refuses or is gone, the same spans are sent again with back-off. Spans
 * that exceed tracing.queue_bytes meanwhile are dropped and counted. Called by receipts/trace.c,
 * actions and the intake; otlp.c writes the body in a thread.
 */
#include "receiptd/trace/tracer.h"
#include "receiptd/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "receiptd/base/backoff.h"
#include "receiptd/base/error.h"
#include "receiptd/base/log.h"
#include "receiptd/http/client.h"
#include "span.h"

#define EXPORT_MS     1000 /* how often; also the shortest back-off */
#define EXPORT_SPANS  512u /* of one request; as many do not wait for the timer */
#define MOST_ATTEMPTS 5u   /* of one request, with back-off between: about half a minute */
/* A wall clock that was set by less than this is not followed. */
#define CLOCKS_APART_NS   1000000
#define MOST_ANSWER_BYTES 65536u
#define LAST_EXPORT_MS    1500 /* the longest wait for a collector at the end */

struct rcpt_tracer {
    struct rcpt_tracer_settings settings;
    uint64_t random;
    uint64_t wall_ahead_ns;         /* of the monotonic clock */
    struct rcpt_span *first, *last; /* that wait */
    size_t count, bytes;
    struct rcpt_span *in_flight; /* in flight, or to be sent again */
    size_t in_flight_count, in_flight_bytes;
    unsigned attempts;
    int64_t not_before_ms;
    struct rcpt_client *client;
    char *authorization; /* header; NULL: none */
    bool sending;        /* a request is being encoded, or in flight */
    uv_work_t encoding;
    char *body; /* of that request */
    size_t body_size;
    struct rcpt_client_call *call; /* NULL: none is in flight */
    bool complained;
    int64_t closing_until_ms; /* of the last requests */
    struct rcpt_tracer_stats stats;
    uv_timer_t timer;
    void (*on_closed)(void *context); /* NULL: not closing */
    void *closed_context;
};

/* ---- spans ---- */

/* An id of zeros is invalid, by W3C Trace Context. */
static void fill_id(struct rcpt_tracer *tracer, uint8_t *id, size_t size)
{
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t value;
        while ((value = rcpt_random_next(&tracer->random)) == 0)
            continue;
        memcpy(id + at, &value, sizeof(value));
    }
}

/* True for so many of a million calls. */
bool rcpt_tracer_draw(struct rcpt_tracer *tracer, uint64_t millionths)
{
    return rcpt_random_next(&tracer->random) % 1000000 < millionths;
}

/* Only sampled spans are begun, so every context says so. */
struct rcpt_span *rcpt_span_begin(struct rcpt_tracer *tracer, enum rcpt_span_kind kind,
                                  const char *name, const struct rcpt_trace_context *parent)
{
    struct rcpt_span *span = rcpt_calloc(1, sizeof(*span));
    *span = (struct rcpt_span){.kind = kind, .name = name, .bytes = sizeof(*span)};
    span->begin_ns = uv_hrtime();
    span->has_parent = parent != NULL;
    if (parent != NULL) {
        memcpy(span->context.trace, parent->trace, sizeof(parent->trace));
        memcpy(span->parent, parent->span, sizeof(parent->span));
    } else {
        fill_id(tracer, span->context.trace, sizeof(span->context.trace));
    }
    fill_id(tracer, span->context.span, sizeof(span->context.span));
    span->context.sampled = true;
    return span;
}

struct rcpt_trace_context rcpt_span_context(const struct rcpt_span *span)
{
    return span->context;
}

/* The time is that of uv_hrtime(), as begin_ns is: rcpt_span_end_take() moves both to the wall
 * clock. */
void rcpt_span_set_begin(struct rcpt_span *span, uint64_t begin_ns)
{
    span->begin_ns = begin_ns;
}

/* Counted, since the queue is bounded by bytes. */
static char *keep_text(struct rcpt_span *span, const char *text)
{
    span->bytes += strlen(text) + 1;
    return rcpt_strdup(text);
}

/* Texts that do not fit are left out: attributes are fixed by the program, not by input. */
static void add_attribute(struct rcpt_span *span, const char *name, const char *text,
                          int64_t number)
{
    if (span->attribute_count == SPAN_MOST_ATTRIBUTES)
        return;
    span->attributes[span->attribute_count++] =
        (struct span_attribute){name, text != NULL ? keep_text(span, text) : NULL, number};
}

void rcpt_span_add_text(struct rcpt_span *span, const char *name, const char *value)
{
    add_attribute(span, name, value, 0);
}

void rcpt_span_add_number(struct rcpt_span *span, const char *name, int64_t value)
{
    add_attribute(span, name, NULL, value);
}

/* A batch may come from thousands of records: links beyond the most are counted only. */
void rcpt_span_add_link(struct rcpt_span *span, const struct rcpt_trace_context *to,
                        const char *state)
{
    if (span->link_count == RCPT_SPAN_MOST_LINKS) {
        span->links_dropped++;
        return;
    }
    if (span->link_count == span->link_capacity) {
        unsigned capacity = span->link_capacity > 0 ? span->link_capacity * 2 : 8;
        span->bytes += (capacity - span->link_capacity) * sizeof(*span->links);
        span->link_capacity = capacity;
        span->links = rcpt_realloc(span->links, capacity * sizeof(*span->links));
    }
    span->links[span->link_count++] =
        (struct span_link){*to, state != NULL ? keep_text(span, state) : NULL};
}

/* The first reason counts. */
void rcpt_span_fail(struct rcpt_span *span, const char *reason)
{
    if (span->failure == NULL)
        span->failure = keep_text(span, reason);
}

void span_free_all(struct rcpt_span *first)
{
    while (first != NULL) {
        struct rcpt_span *span = first;
        first = span->next;
        for (unsigned index = 0; index < span->attribute_count; index++)
            free(span->attributes[index].text);
        for (unsigned index = 0; index < span->link_count; index++)
            free(span->links[index].state);
        free(span->links);
        free(span->failure);
        free(span);
    }
}

/* ---- sending ---- */

static void send_some(struct rcpt_tracer *tracer);

/* `count` is the counter of their fate. */
static void forget_in_flight(struct rcpt_tracer *tracer, uint64_t *count)
{
    *count += tracer->in_flight_count;
    span_free_all(tracer->in_flight);
    tracer->in_flight = NULL;
    tracer->stats.queued_bytes -= tracer->in_flight_bytes;
    tracer->in_flight_count = tracer->in_flight_bytes = tracer->attempts = 0;
}

/* As the OTLP specification lists them. */
static bool may_try_again(int status)
{
    return status == 0 || status == 429 || (status >= 502 && status <= 504);
}

/* How much of the endpoint is shown: the query of a URL may hold a key. */
static int shown(const struct rcpt_tracer *tracer)
{
    return (int)strcspn(tracer->settings.endpoint, "?#");
}

/* Once per outage: the metrics count the rest. */
static void complain(struct rcpt_tracer *tracer, const struct rcpt_client_answer *answer)
{
    if (tracer->complained)
        return;
    tracer->complained = true;
    const char *kept =
        tracer->on_closed == NULL ? "; they are kept while the queue has capacity" : "";
    if (answer->status == 0)
        rcpt_log_warn("trace", "spans cannot be sent to %.*s: %s%s", shown(tracer),
                      tracer->settings.endpoint, answer->error, kept);
    else if (may_try_again(answer->status))
        rcpt_log_warn("trace", "spans are not taken at %.*s: status %d%s", shown(tracer),
                      tracer->settings.endpoint, answer->status, kept);
    else
        rcpt_log_warn("trace",
                      "spans are not taken at %.*s: status %d; HINT: tracing.endpoint needs "
                      "the whole path, as in http://127.0.0.1:4318/v1/traces",
                      shown(tracer), tracer->settings.endpoint, answer->status);
}

static void on_sent(struct rcpt_tracer *tracer)
{
    if (tracer->complained)
        rcpt_log_info("trace", "spans are taken again at %.*s", shown(tracer),
                      tracer->settings.endpoint);
    tracer->complained = false;
    forget_in_flight(tracer, &tracer->stats.exported);
}

static void close_or_send(struct rcpt_tracer *tracer, bool more);

/* The back-off doubles from EXPORT_MS. A tracer that closes does not wait for it: its spans are
 * lost. */
static void on_answer(void *context, const struct rcpt_client_answer *answer)
{
    struct rcpt_tracer *tracer = context;
    tracer->call = NULL;
    tracer->sending = false;
    tracer->attempts++;
    if (answer->status >= 200 && answer->status < 300) {
        on_sent(tracer);
    } else {
        complain(tracer, answer);
        if (!may_try_again(answer->status))
            forget_in_flight(tracer, &tracer->stats.dropped_refused);
        else if (tracer->attempts == MOST_ATTEMPTS || tracer->on_closed != NULL)
            forget_in_flight(tracer, &tracer->stats.dropped_lost);
        else
            tracer->not_before_ms = (int64_t)uv_now(tracer->settings.loop) +
                                    ((int64_t)EXPORT_MS << (tracer->attempts - 1));
    }
    if (tracer->on_closed != NULL)
        close_or_send(tracer, tracer->stats.queued_bytes > 0 && !tracer->complained);
    else if (tracer->in_flight == NULL && tracer->count >= EXPORT_SPANS)
        send_some(tracer);
}

/* Moves the oldest spans from the queue into the request. */
static void take_some(struct rcpt_tracer *tracer)
{
    struct rcpt_span **end = &tracer->in_flight;
    tracer->in_flight = tracer->first;
    while (*end != NULL && tracer->in_flight_count < EXPORT_SPANS) {
        tracer->in_flight_count++;
        tracer->in_flight_bytes += (*end)->bytes;
        end = &(*end)->next;
    }
    tracer->first = *end;
    *end = NULL;
    if (tracer->first == NULL)
        tracer->last = NULL;
    tracer->count -= tracer->in_flight_count;
}

/* Runs in a thread of the pool, since 512 spans take some 20 ms. The loop does not touch the spans
 * in flight until the answer. */
static void encode(uv_work_t *work)
{
    struct rcpt_tracer *tracer = work->data;
    tracer->body = otlp_encode(tracer->in_flight, tracer->settings.instance, &tracer->body_size);
}

/* On the loop again. rcpt_client_send() copies the body. */
static void on_encoded(uv_work_t *work, int status)
{
    struct rcpt_tracer *tracer = work->data;
    const char *headers[] = {"Content-Type: application/json", tracer->authorization};
    int64_t most = tracer->settings.timeout_ms;
    const struct rcpt_client_request request = {
        .url = tracer->settings.endpoint,
        .schemes = "http,https",
        .headers = headers,
        .header_count = tracer->authorization != NULL ? 2 : 1,
        .body = tracer->body,
        .size = tracer->body_size,
        .timeout_ms = tracer->on_closed != NULL && most > LAST_EXPORT_MS ? LAST_EXPORT_MS : most,
        .max_answer_bytes = MOST_ANSWER_BYTES,
    };
    RCPT_ASSERT(status == 0);
    tracer->call = rcpt_client_send(tracer->client, &request, on_answer, tracer);
    free(tracer->body);
}

/* Does nothing while a request is under way; its answer, or the timer, calls this again. */
static void send_some(struct rcpt_tracer *tracer)
{
    if (tracer->sending || (tracer->in_flight == NULL && tracer->first == NULL))
        return;
    if (tracer->in_flight == NULL)
        take_some(tracer);
    tracer->sending = true;
    tracer->encoding.data = tracer;
    RCPT_ASSERT(uv_queue_work(tracer->settings.loop, &tracer->encoding, encode, on_encoded) == 0);
}

/* Spans that are to be sent again wait for their back-off; the others leave once a second. */
static void on_timer(uv_timer_t *timer)
{
    struct rcpt_tracer *tracer = timer->data;
    if (tracer->in_flight == NULL || (int64_t)uv_now(timer->loop) >= tracer->not_before_ms)
        send_some(tracer);
}

/* ---- the queue ---- */

/* The distance of the two clocks changes only when the wall clock is set. Keeping it leaves the
 * spans of one trace in their order. A comparison that was interrupted is not used. */
static void compare_clocks(struct rcpt_tracer *tracer)
{
    uint64_t before_ns = uv_hrtime(), ahead_ns = (uint64_t)rcpt_wall_ns() - before_ns;
    int64_t moved_ns = (int64_t)(ahead_ns - tracer->wall_ahead_ns);
    bool is_exact = uv_hrtime() - before_ns < CLOCKS_APART_NS / 10;
    if (tracer->wall_ahead_ns == 0 ||
        (is_exact && (moved_ns > CLOCKS_APART_NS || moved_ns < -CLOCKS_APART_NS)))
        tracer->wall_ahead_ns = ahead_ns;
}

/* Begin and end may be noted by different events: a span must not end before it begins. */
static void set_times(struct rcpt_tracer *tracer, struct rcpt_span *span, uint64_t end_ns)
{
    compare_clocks(tracer);
    span->end_ns = end_ns != 0 ? end_ns : uv_hrtime();
    if (span->end_ns < span->begin_ns)
        span->end_ns = span->begin_ns;
    span->begin_ns += tracer->wall_ahead_ns;
    span->end_ns += tracer->wall_ahead_ns;
}

/* A full batch does not wait for the timer. */
void rcpt_span_end_take(struct rcpt_tracer *tracer, struct rcpt_span *span, uint64_t end_ns)
{
    set_times(tracer, span, end_ns);
    if (tracer->on_closed != NULL ||
        tracer->stats.queued_bytes + span->bytes > tracer->settings.queue_bytes) {
        tracer->stats.dropped_full++;
        span_free_all(span);
        return;
    }
    tracer->stats.queued_bytes += span->bytes;
    tracer->count++;
    if (tracer->last != NULL)
        tracer->last->next = span;
    else
        tracer->first = span;
    tracer->last = span;
    if (tracer->count >= EXPORT_SPANS && tracer->in_flight == NULL)
        send_some(tracer);
}

const struct rcpt_tracer_stats *rcpt_tracer_get_stats(const struct rcpt_tracer *tracer)
{
    return &tracer->stats;
}

/* ---- life ---- */

/* Without entropy the clocks have to do: ids must differ, they need not be secret. */
struct rcpt_tracer *rcpt_tracer_new(const struct rcpt_tracer_settings *settings)
{
    struct rcpt_tracer *tracer = rcpt_calloc(1, sizeof(*tracer));
    tracer->settings = *settings;
    if (getrandom(&tracer->random, sizeof(tracer->random), GRND_NONBLOCK) != sizeof(tracer->random))
        tracer->random = uv_hrtime() ^ (uint64_t)rcpt_wall_ns();
    tracer->client = rcpt_client_new(settings->loop, NULL);
    if (settings->token != NULL) {
        static const char name[] = "Authorization: Bearer ";
        size_t size = sizeof(name) + strlen(settings->token);
        tracer->authorization = rcpt_malloc(size);
        snprintf(tracer->authorization, size, "%s%s", name, settings->token);
    }
    uv_timer_init(settings->loop, &tracer->timer);
    tracer->timer.data = tracer;
    uv_timer_start(&tracer->timer, on_timer, EXPORT_MS, EXPORT_MS);
    return tracer;
}

/* The timer is the last to close: the client has closed before. */
static void on_timer_closed(uv_handle_t *handle)
{
    struct rcpt_tracer *tracer = handle->data;
    void (*on_closed)(void *context) = tracer->on_closed;
    void *context = tracer->closed_context;
    free(tracer->authorization);
    free(tracer);
    on_closed(context);
}

static void on_client_closed(void *context)
{
    struct rcpt_tracer *tracer = context;
    uv_close((uv_handle_t *)&tracer->timer, on_timer_closed);
}

/* Spans that the last requests did not send are lost. */
static void close_or_send(struct rcpt_tracer *tracer, bool more)
{
    if (more && (int64_t)uv_now(tracer->settings.loop) < tracer->closing_until_ms) {
        send_some(tracer);
        return;
    }
    span_free_all(tracer->in_flight);
    span_free_all(tracer->first);
    rcpt_client_close(tracer->client, on_client_closed, tracer);
}

/* The request that was in flight when the closing began has had its time. */
static void on_last_timer(uv_timer_t *timer)
{
    struct rcpt_tracer *tracer = timer->data;
    if (tracer->call != NULL)
        rcpt_client_cancel(tracer->call);
}

/* Gives the queued spans LAST_EXPORT_MS to go out. */
void rcpt_tracer_close(struct rcpt_tracer *tracer, void (*on_closed)(void *context), void *context)
{
    tracer->on_closed = on_closed;
    tracer->closed_context = context;
    tracer->closing_until_ms = (int64_t)uv_now(tracer->settings.loop) + LAST_EXPORT_MS;
    if (tracer->sending)
        uv_timer_start(&tracer->timer, on_last_timer, LAST_EXPORT_MS, 0);
    else
        close_or_send(tracer, tracer->stats.queued_bytes > 0);
}

/* A request that is being dealt with: its memory and its span. Deliveries come from one free list,
 * arenas, which are held only while a result is read, from another. A leaf, called by request.c. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#include "receiptd/base/clock.h"

#define ARENA_CHUNK_BYTES 8192u
#define SPARE_ARENAS      64u
#define SPARE_DELIVERIES  1024u
#define TRIM_BYTES        (8u << 20)
#define TRIM_MS           1000

/* ---- memory ---- */

/* Wall clock, in µs: the time of receipt that records and verifiers see. */
static int64_t now_us(void)
{
    return rcpt_wall_ns() / RCPT_NS_PER_US;
}

void delivery_take_arena(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    struct intake_arena *arena = intake->spare_arenas;
    if (arena != NULL) {
        intake->spare_arenas = arena->next;
        intake->spare_arena_count--;
    } else {
        arena = rcpt_calloc(1, sizeof(*arena));
        rcpt_arena_init(&arena->arena, ARENA_CHUNK_BYTES);
    }
    delivery->arena = arena;
}

/* All arenas count in the intake's memory: a small body can become a large result. */
void delivery_count_arena(struct delivery *delivery, size_t bytes)
{
    struct rcpt_intake *intake = delivery->intake;
    intake->arena_bytes += bytes - delivery->arena_bytes;
    delivery->arena_bytes = bytes;
    if (intake->arena_bytes > intake->most_arena_bytes)
        intake->most_arena_bytes = intake->arena_bytes;
}

/* Results point into the arena: nothing of delivery->result is valid afterwards. */
void intake_drop_arena(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    struct intake_arena *arena = delivery->arena;
    if (arena == NULL)
        return;
    delivery->arena = NULL;
    delivery_count_arena(delivery, 0);
    if (intake->spare_arena_count >= SPARE_ARENAS) {
        rcpt_arena_fini(&arena->arena);
        free(arena);
        return;
    }
    rcpt_arena_reset(&arena->arena, INTAKE_ARENA_KEEP_BYTES);
    arena->next = intake->spare_arenas;
    intake->spare_arenas = arena;
    intake->spare_arena_count++;
}

/* glibc keeps freed memory; after a burst of at least 8 MiB that is half over, it goes back to the
 * system, at most once a second. */
void intake_trim(struct rcpt_intake *intake, int64_t now)
{
    if (intake->most_arena_bytes < TRIM_BYTES ||
        intake->arena_bytes > intake->most_arena_bytes / 2 || now < intake->trim_at_ms)
        return;
    intake->trim_at_ms = now + TRIM_MS;
    intake->most_arena_bytes = intake->arena_bytes;
    malloc_trim(0);
}

/* The ticket begins held by the request itself, until intake_emit() has passed on everything. */
struct delivery *delivery_take(struct rcpt_intake *intake, struct intake_account *account,
                               struct rcpt_http_request *request,
                               void (*on_settled)(struct rcpt_ticket *ticket))
{
    struct delivery *delivery = intake->spare_deliveries;
    if (delivery != NULL) {
        intake->spare_deliveries = delivery->next;
        intake->spare_delivery_count--;
    } else {
        delivery = rcpt_malloc(sizeof(*delivery));
    }
    *delivery = (struct delivery){
        .intake = intake, .account = account, .request = request, .received_us = now_us()};
    rcpt_ticket_begin(&delivery->ticket, on_settled);
    return delivery;
}

void delivery_give(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    free(delivery->body);
    if (intake->spare_delivery_count >= SPARE_DELIVERIES) {
        free(delivery);
        return;
    }
    delivery->next = intake->spare_deliveries;
    intake->spare_deliveries = delivery;
    intake->spare_delivery_count++;
}

void intake_free_spares(struct rcpt_intake *intake)
{
    rcpt_arena_fini(&intake->json);
    while (intake->spare_deliveries != NULL) {
        struct delivery *delivery = intake->spare_deliveries;
        intake->spare_deliveries = delivery->next;
        free(delivery);
    }
    while (intake->spare_arenas != NULL) {
        struct intake_arena *arena = intake->spare_arenas;
        intake->spare_arenas = arena->next;
        rcpt_arena_fini(&arena->arena);
        free(arena);
    }
}

/* ---- trace ---- */

/* Begins a span if the caller sampled its trace, or by our own rate where there is no caller.
 * Without one, the caller's headers are passed on unchanged. */
static void begin_span(struct delivery *delivery, const struct rcpt_trace_context *parent)
{
    const struct rcpt_intake *intake = delivery->intake;
    struct rcpt_tracer *tracer = intake->settings.tracer;
    bool sampled = parent != NULL
                       ? parent->sampled
                       : rcpt_tracer_draw(tracer, intake->config->tracing.sample_millionths);
    if (!sampled)
        return;
    struct rcpt_span *span = rcpt_span_begin(tracer, RCPT_SPAN_SERVER, "webhook", parent);
    rcpt_span_set_begin(span, rcpt_http_received_ns(delivery->request));
    rcpt_span_add_text(span, "http.request.method",
                       rcpt_http_method(delivery->request) == RCPT_HTTP_POST ? "POST" : "GET");
    rcpt_span_add_text(span, "http.route", "/dlr/{account}");
    rcpt_span_add_text(span, "receiptd.account", delivery->account->name);
    rcpt_span_add_text(span, "receiptd.gateway", delivery->account->stats.gateway);
    struct rcpt_trace_context context = rcpt_span_context(span);
    rcpt_trace_format(&context, delivery->traceparent);
    delivery->span = span;
}

/* Copied into the arena: the header's memory is the request's. */
static void note_tracestate(struct delivery *delivery)
{
    struct rcpt_http_text state = rcpt_http_header(delivery->request, "tracestate");
    delivery->tracestate = NULL;
    if (state.bytes == NULL || !rcpt_trace_is_state(state.bytes, state.size))
        return;
    char *copy = rcpt_arena_alloc(&delivery->arena->arena, state.size + 1);
    memcpy(copy, state.bytes, state.size);
    copy[state.size] = '\0';
    delivery->tracestate = copy;
}

/* W3C Trace Context, from the caller to the records. A request that is read again, after its
 * certificate came, keeps its span. */
void delivery_note_trace(struct delivery *delivery)
{
    struct rcpt_trace_context parent;
    struct rcpt_http_text given = rcpt_http_header(delivery->request, "traceparent");
    bool known = given.bytes != NULL && rcpt_trace_parse(given.bytes, given.size, &parent);
    if (known)
        note_tracestate(delivery);
    if (delivery->traceparent[0] != '\0')
        return; /* read again: there is a certificate now */
    if (known)
        memcpy(delivery->traceparent, given.bytes, RCPT_TRACE_TEXT_BYTES);
    if (delivery->intake->settings.tracer != NULL)
        begin_span(delivery, known ? &parent : NULL);
}

/* Called with every answer; a delivery without a span ignores it. */
void delivery_end_span(struct delivery *delivery, unsigned code)
{
    struct rcpt_span *span = delivery->span;
    delivery->span = NULL;
    if (span == NULL)
        return;
    rcpt_span_add_number(span, "http.response.status_code", code);
    rcpt_span_add_number(span, "receiptd.receipts", delivery->events);
    if (code >= 500)
        rcpt_span_fail(span, "not acknowledged by Kafka");
    rcpt_span_end_take(delivery->intake->settings.tracer, span, 0);
}

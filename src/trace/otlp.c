/* Writes spans as OTLP/JSON (https://opentelemetry.io/docs/specs/otlp): ids in hexadecimal, 64-bit
 * numbers as text, times in nanoseconds since 1970. Pure; tracer.c calls it in a thread for the
 * spans in flight.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/base/json.h"
#include "receiptd/base/version.h"
#include "span.h"

/* STATUS_CODE_ERROR of OTLP's enumeration. */
#define STATUS_ERROR 2

/* 33 bytes hold the 32 digits of a trace's id. */
static void put_id(struct rcpt_json *json, const char *name, const uint8_t *id, size_t size)
{
    char text[33];
    *rcpt_trace_put_hex(text, id, size) = '\0';
    rcpt_json_put_text(json, name, text);
}

/* 64-bit numbers are texts in OTLP/JSON. */
static void put_instant(struct rcpt_json *json, const char *name, uint64_t ns)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, ns);
    rcpt_json_put_text(json, name, text);
}

/* A text, or a number where there is no text. */
static void put_attribute(struct rcpt_json *json, const char *name, const char *text,
                          int64_t number)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRId64, number);
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "key", name);
    rcpt_json_key(json, "value");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, text != NULL ? "stringValue" : "intValue",
                       text != NULL ? text : digits);
    rcpt_json_end_object(json);
    rcpt_json_end_object(json);
}

/* Attributes keep the order in which their owner added them. */
static void put_attributes(struct rcpt_json *json, const struct rcpt_span *span)
{
    rcpt_json_key(json, "attributes");
    rcpt_json_begin_array(json);
    for (unsigned index = 0; index < span->attribute_count; index++)
        put_attribute(json, span->attributes[index].name, span->attributes[index].text,
                      span->attributes[index].number);
    rcpt_json_end_array(json);
}

/* To the traces of the records that a batch consists of. */
static void put_links(struct rcpt_json *json, const struct rcpt_span *span)
{
    rcpt_json_key(json, "links");
    rcpt_json_begin_array(json);
    for (unsigned index = 0; index < span->link_count; index++) {
        const struct span_link *link = &span->links[index];
        rcpt_json_begin_object(json);
        put_id(json, "traceId", link->to.trace, sizeof(link->to.trace));
        put_id(json, "spanId", link->to.span, sizeof(link->to.span));
        if (link->state != NULL)
            rcpt_json_put_text(json, "traceState", link->state);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
    if (span->links_dropped > 0) {
        rcpt_json_put_int(json, "droppedLinksCount", span->links_dropped);
    }
}

/* A span without failure has no status: UNSET is the default. */
static void put_span(struct rcpt_json *json, const struct rcpt_span *span)
{
    rcpt_json_begin_object(json);
    put_id(json, "traceId", span->context.trace, sizeof(span->context.trace));
    put_id(json, "spanId", span->context.span, sizeof(span->context.span));
    if (span->has_parent)
        put_id(json, "parentSpanId", span->parent, sizeof(span->parent));
    rcpt_json_put_text(json, "name", span->name);
    rcpt_json_put_int(json, "kind", span->kind);
    put_instant(json, "startTimeUnixNano", span->begin_ns);
    put_instant(json, "endTimeUnixNano", span->end_ns);
    put_attributes(json, span);
    if (span->link_count > 0)
        put_links(json, span);
    if (span->failure != NULL) {
        rcpt_json_key(json, "status");
        rcpt_json_begin_object(json);
        rcpt_json_put_int(json, "code", STATUS_ERROR);
        rcpt_json_put_text(json, "message", span->failure);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_object(json);
}

/* Names of OpenTelemetry's semantic conventions. */
static void put_resource(struct rcpt_json *json, const char *instance)
{
    rcpt_json_key(json, "resource");
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "attributes");
    rcpt_json_begin_array(json);
    put_attribute(json, "service.name", "receiptd", 0);
    put_attribute(json, "service.version", RCPT_VERSION, 0);
    put_attribute(json, "service.instance.id", instance, 0);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

/* All spans of the process come from one scope. */
static void put_scope(struct rcpt_json *json, const struct rcpt_span *first)
{
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "scope");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "name", "receiptd");
    rcpt_json_put_text(json, "version", RCPT_VERSION);
    rcpt_json_end_object(json);
    rcpt_json_key(json, "spans");
    rcpt_json_begin_array(json);
    for (const struct rcpt_span *span = first; span != NULL; span = span->next)
        put_span(json, span);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

/* One request has one resource and one scope, and all spans of it. The caller frees the text. */
char *otlp_encode(const struct rcpt_span *first, const char *instance, size_t *size)
{
    struct rcpt_json json;
    char *text = NULL;
    FILE *out = rcpt_open_memory(&text, size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_key(&json, "resourceSpans");
    rcpt_json_begin_array(&json);
    rcpt_json_begin_object(&json);
    put_resource(&json, instance);
    rcpt_json_key(&json, "scopeSpans");
    rcpt_json_begin_array(&json);
    put_scope(&json, first);
    rcpt_json_end_array(&json);
    rcpt_json_end_object(&json);
    rcpt_json_end_array(&json);
    rcpt_json_end_object(&json);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

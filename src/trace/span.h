/* A span while it waits. Private to src/trace. */
#ifndef RECEIPTD_TRACE_SPAN_H
#define RECEIPTD_TRACE_SPAN_H

#include "receiptd/trace/tracer.h"

#define SPAN_MOST_ATTRIBUTES 12u

struct span_attribute {
    const char *name;
    char *text; /* NULL: a number */
    int64_t number;
};

struct span_link {
    struct rcpt_trace_context to;
    char *state; /* NULL: none */
};

struct rcpt_span {
    struct rcpt_span *next;
    struct rcpt_trace_context context;
    uint8_t parent[8];
    bool has_parent;
    enum rcpt_span_kind kind;
    const char *name;
    uint64_t begin_ns, end_ns; /* monotonic; since 1970 once it is queued */
    struct span_attribute attributes[SPAN_MOST_ATTRIBUTES];
    unsigned attribute_count;
    struct span_link *links;
    unsigned link_count, link_capacity, links_dropped;
    char *failure; /* NULL: it went well */
    size_t bytes;  /* all that it holds */
};

void span_free_all(struct rcpt_span *first);

/* ---- otlp.c ---- */
/* An ExportTraceServiceRequest; the caller frees it. May be called from any thread. */
char *otlp_encode(const struct rcpt_span *first, const char *instance, size_t *size);

#endif

/* W3C Trace Context: which trace something belongs to, as headers of HTTP and of Kafka carry it.
 * Pure. https://www.w3.org/TR/trace-context/ */
#ifndef RECEIPTD_CORE_TRACE_CONTEXT_H
#define RECEIPTD_CORE_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RCPT_TRACE_TEXT_BYTES  55u  /* of a traceparent, version 00 */
#define RCPT_TRACE_STATE_BYTES 512u /* of a tracestate that is passed on; longer ones are not */

struct rcpt_trace_context {
    uint8_t trace[16], span[8];
    bool sampled; /* the step before, or the one that began the trace, keeps it */
};

/* False, `context` untouched: not 00-<32 hexadecimal digits>-<16>-<2> in lower case, or an id is
 * all zeros. */
bool rcpt_trace_parse(const char *text, size_t size, struct rcpt_trace_context *context);
/* Whether the text is a traceparent of a sampled trace. `text` may be NULL. */
bool rcpt_trace_is_sampled(const char *text, size_t size);
/* With a NUL at the end. */
void rcpt_trace_format(const struct rcpt_trace_context *context,
                       char text[RCPT_TRACE_TEXT_BYTES + 1]);
/* Lower case, without a NUL at the end; returns the place behind them in `out`. */
char *rcpt_trace_put_hex(char *out, const uint8_t *bytes, size_t size);

/* Whether a tracestate can be passed on as it is: printable ASCII and not too long. */
bool rcpt_trace_is_state(const char *text, size_t size);

#endif

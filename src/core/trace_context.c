/* Reads and writes the W3C headers traceparent and tracestate. Pure. Called by the decoder, by
 * src/receipts/trace.c, by the intake and by actions.
 */
#include "receiptd/core/trace_context.h"

#include <string.h>

/* Lower case only, as the W3C prescribes. */
static int digit_of(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool read_hex(const char *text, uint8_t *bytes, size_t size)
{
    for (size_t index = 0; index < size; index++) {
        int high = digit_of(text[2 * index]), low = digit_of(text[2 * index + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[index] = (uint8_t)(high * 16 + low);
    }
    return true;
}

static bool is_set(const uint8_t *bytes, size_t size)
{
    for (size_t index = 0; index < size; index++) {
        if (bytes[index] != 0)
            return true;
    }
    return false;
}

/* Only version 00. A trace or span of zeros is none (W3C Trace Context, 3.2.2). */
bool rcpt_trace_parse(const char *text, size_t size, struct rcpt_trace_context *context)
{
    struct rcpt_trace_context read;
    uint8_t flags;
    if (size != RCPT_TRACE_TEXT_BYTES || memcmp(text, "00-", 3) != 0 || text[35] != '-' ||
        text[52] != '-' || !read_hex(text + 3, read.trace, sizeof(read.trace)) ||
        !read_hex(text + 36, read.span, sizeof(read.span)) || !read_hex(text + 53, &flags, 1) ||
        !is_set(read.trace, sizeof(read.trace)) || !is_set(read.span, sizeof(read.span)))
        return false;
    read.sampled = (flags & 1u) != 0;
    *context = read;
    return true;
}

bool rcpt_trace_is_sampled(const char *text, size_t size)
{
    struct rcpt_trace_context context;
    return text != NULL && rcpt_trace_parse(text, size, &context) && context.sampled;
}

char *rcpt_trace_put_hex(char *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t index = 0; index < size; index++) {
        *out++ = digits[bytes[index] >> 4];
        *out++ = digits[bytes[index] & 15u];
    }
    return out;
}

/* Version 00; of the flags only `sampled`. */
void rcpt_trace_format(const struct rcpt_trace_context *context,
                       char text[RCPT_TRACE_TEXT_BYTES + 1])
{
    memcpy(text, "00-", 3);
    char *end = rcpt_trace_put_hex(text + 3, context->trace, sizeof(context->trace));
    *end++ = '-';
    end = rcpt_trace_put_hex(end, context->span, sizeof(context->span));
    memcpy(end, context->sampled ? "-01" : "-00", 4);
}

/* Passed on as it came: only its form is checked, not its members. */
bool rcpt_trace_is_state(const char *text, size_t size)
{
    for (size_t index = 0; index < size; index++) {
        if (text[index] < 0x20 || text[index] > 0x7e)
            return false;
    }
    return text != NULL && size > 0 && size <= RCPT_TRACE_STATE_BYTES;
}

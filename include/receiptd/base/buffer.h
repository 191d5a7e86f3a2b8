/* A growing byte buffer. Zeroed is empty; the owner frees it or takes `bytes` out of it.
 *
 * After an append a NUL, which is not counted, stands behind the last byte, so that a text can be
 * handed on as it is. Not for use by two threads.
 */
#ifndef RECEIPTD_BASE_BUFFER_H
#define RECEIPTD_BASE_BUFFER_H

#include <stddef.h>

struct rcpt_buffer {
    char *bytes; /* from malloc; NULL: nothing was written yet */
    size_t size, capacity;
};

/* The capacity after the next call of rcpt_buffer_reserve with `more`: for callers with a budget.
 */
size_t rcpt_buffer_grown(const struct rcpt_buffer *buffer, size_t more);
/* Makes space for `more` bytes and the NUL; returns where they go. The caller adds to `size`. */
char *rcpt_buffer_reserve(struct rcpt_buffer *buffer, size_t more);
void rcpt_buffer_append(struct rcpt_buffer *buffer, const void *bytes, size_t size);
void rcpt_buffer_append_text(struct rcpt_buffer *buffer, const char *text);
/* Frees the bytes; the buffer is empty afterwards. */
void rcpt_buffer_free(struct rcpt_buffer *buffer);

#endif

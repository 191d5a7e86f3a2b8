/* The growing byte buffer for requests, records, answers and pages. Doubling keeps the cost of an
 * append constant. Callers bound the size, since input drives it. */
#include "receiptd/base/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

/* A typical header or record fits without growing. */
#define FIRST_BYTES 1024u

/* One byte more than asked for: an append ends the text with a NUL, which is not part of its
 * size. */
size_t rcpt_buffer_grown(const struct rcpt_buffer *buffer, size_t more)
{
    size_t needed = buffer->size + more + 1;
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : FIRST_BYTES;
    while (capacity < needed)
        capacity *= 2;
    return capacity;
}

/* Growing moves the bytes: pointers into the buffer are valid until the next reserve. */
char *rcpt_buffer_reserve(struct rcpt_buffer *buffer, size_t more)
{
    size_t capacity = rcpt_buffer_grown(buffer, more);
    if (capacity != buffer->capacity) {
        buffer->bytes = rcpt_realloc(buffer->bytes, capacity);
        buffer->capacity = capacity;
    }
    return buffer->bytes + buffer->size;
}

void rcpt_buffer_append(struct rcpt_buffer *buffer, const void *bytes, size_t size)
{
    char *place = rcpt_buffer_reserve(buffer, size);
    if (size > 0)
        memcpy(place, bytes, size);
    place[size] = '\0';
    buffer->size += size;
}

void rcpt_buffer_append_text(struct rcpt_buffer *buffer, const char *text)
{
    rcpt_buffer_append(buffer, text, strlen(text));
}

void rcpt_buffer_free(struct rcpt_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct rcpt_buffer){0};
}

/* Macros by which the files that encode batches write an array parameter. Private to src/postgres.
 */
#ifndef RECEIPTD_POSTGRES_ENCODE_PARAMETERS_H
#define RECEIPTD_POSTGRES_ENCODE_PARAMETERS_H

#include <string.h>

#include "receiptd/base/text.h"
#include "receiptd/core/record.h"
#include "receiptd/postgres/arrays.h"

/* An array parameter of `count` elements, of which PUT puts the one at `index`. */
#define COLUMN(TYPE, PUT)                                                                          \
    do {                                                                                           \
        rcpt_pg_begin_##TYPE##_array(encoder, count);                                              \
        for (uint32_t index = 0; index < count; index++)                                           \
            (PUT);                                                                                 \
    } while (0)

/* The same for numbers, of which there are many. */
#define NUMBERS(TYPE, VALUE)                                                                       \
    do {                                                                                           \
        uint8_t *number = rcpt_pg_add_##TYPE##_array(encoder, count);                              \
        for (uint32_t index = 0; index < count; index++)                                           \
            number = rcpt_pg_write_##TYPE(number, VALUE);                                          \
        rcpt_pg_end_array(encoder, number);                                                        \
    } while (0)

static inline void put_text(struct rcpt_pg_encoder *encoder, const char *text)
{
    rcpt_pg_put_bytes(encoder, text, strlen(text));
}

/* An empty text counts as none. */
static inline void put_text_or_null(struct rcpt_pg_encoder *encoder, struct rcpt_text text)
{
    if (text.at != NULL && text.size > 0)
        rcpt_pg_put_bytes(encoder, text.at, text.size);
    else
        rcpt_pg_put_null(encoder);
}

/* NULL: the record has none, or one that is malformed. */
static inline void put_traceparent(struct rcpt_pg_encoder *encoder,
                                   const struct rcpt_record *record)
{
    put_text_or_null(encoder, rcpt_text_of(record->traceparent));
}

#endif

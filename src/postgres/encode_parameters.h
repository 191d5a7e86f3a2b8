/* How the files that encode batches write a parameter each: for encode_batch.c and
 * encode_letters.c. */
#ifndef RECEIPTD_POSTGRES_ENCODE_PARAMETERS_H
#define RECEIPTD_POSTGRES_ENCODE_PARAMETERS_H

#include <string.h>

#include "core/origin.h"
#include "encode_batch.h"

static inline void put_text(struct rcpt_pg_encoder *encoder, const char *text)
{
    rcpt_pg_put_bytes(encoder, text, strlen(text));
}

/* NULL: the record has none, or one that is malformed. */
static inline void put_traceparent(struct rcpt_pg_encoder *encoder,
                                   const struct rcpt_record *record)
{
    if (record->traceparent[0] == '\0')
        rcpt_pg_put_null(encoder);
    else
        put_text(encoder, record->traceparent);
}

/* What the parameters are written from. */
struct content {
    const struct rcpt_batch *batch;
    struct rcpt_encode_form form;
    const struct rcpt_encode_facets *facets; /* NULL without rules */
    const struct rcpt_encode_groups *groups; /* of apply */
    const struct rcpt_text *kept; /* of the raw events, RCPT_KEPT_TEXTS each; NULL without them */
    const struct rcpt_origin *origins; /* of the raw events, for the timeline */
};

/* An array parameter of COUNT elements, of which VALUE gives the one at `index`. */
#define NUMBERS(NAME, TYPE, COUNT, VALUE)                                                          \
    static void NAME(struct rcpt_pg_encoder *encoder, const struct content *content)               \
    {                                                                                              \
        const struct rcpt_batch *batch = content->batch;                                           \
        size_t count = (COUNT);                                                                    \
        uint8_t *place = rcpt_pg_add_##TYPE##_array(encoder, count);                               \
        for (size_t index = 0; index < count; index++)                                             \
            place = rcpt_pg_write_##TYPE(place, VALUE);                                            \
        rcpt_pg_end_array(encoder, place);                                                         \
    }
/* The same, an element by PUT. Bigger or rarer than numbers per event. */
#define ELEMENTS(NAME, TYPE, COUNT, PUT)                                                           \
    static void NAME(struct rcpt_pg_encoder *encoder, const struct content *content)               \
    {                                                                                              \
        const struct rcpt_batch *batch = content->batch;                                           \
        size_t count = (COUNT);                                                                    \
        rcpt_pg_begin_##TYPE##_array(encoder, count);                                              \
        for (size_t index = 0; index < count; index++)                                             \
            (PUT);                                                                                 \
    }

/* A parameter that ADD adds. */
#define WHOLE(NAME, ADD)                                                                           \
    static void NAME(struct rcpt_pg_encoder *encoder, const struct content *content)               \
    {                                                                                              \
        ADD;                                                                                       \
    }

typedef void (*add_parameter)(struct rcpt_pg_encoder *encoder, const struct content *content);

static inline void add_all(struct rcpt_pg_encoder *encoder, const struct content *content,
                           const add_parameter *parameters, size_t count)
{
    for (size_t index = 0; index < count; index++)
        parameters[index](encoder, content);
}

#define ADD_ALL(ENCODER, CONTENT, PARAMETERS)                                                      \
    add_all(ENCODER, CONTENT, PARAMETERS, sizeof(PARAMETERS) / sizeof((PARAMETERS)[0]))

/* A scalar of most statements. */
WHOLE(add_lane, rcpt_pg_add_int4(encoder, (int32_t)content->batch->lane))

#endif

/* Binary array parameters, built without an allocation per element. Format: PostgreSQL's array_recv
 * (one dimension). */
#ifndef RECEIPTD_POSTGRES_ARRAYS_H
#define RECEIPTD_POSTGRES_ARRAYS_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A growing set of parameters for one statement; memory is kept over resets. */
struct rcpt_pg_encoder;

struct rcpt_pg_encoder *rcpt_pg_encoder_new(void);
void rcpt_pg_encoder_free(struct rcpt_pg_encoder *encoder);
void rcpt_pg_encoder_reset(struct rcpt_pg_encoder *encoder);

/* Each call begins the next parameter ($1, $2, …); elements follow by the put calls; `count`
 * elements exactly. */
void rcpt_pg_begin_text_array(struct rcpt_pg_encoder *encoder, size_t count);
void rcpt_pg_begin_bytea_array(struct rcpt_pg_encoder *encoder, size_t count);
void rcpt_pg_begin_int2_array(struct rcpt_pg_encoder *encoder, size_t count);
void rcpt_pg_begin_int4_array(struct rcpt_pg_encoder *encoder, size_t count);
void rcpt_pg_begin_int8_array(struct rcpt_pg_encoder *encoder, size_t count);
void rcpt_pg_begin_timestamp_array(struct rcpt_pg_encoder *encoder,
                                   size_t count); /* timestamptz[] */
void rcpt_pg_put_bytes(struct rcpt_pg_encoder *encoder, const void *bytes,
                       size_t size);                    /* text or bytea element */
void rcpt_pg_put_null(struct rcpt_pg_encoder *encoder); /* NULL element */
void rcpt_pg_put_int2(struct rcpt_pg_encoder *encoder, int16_t value);
void rcpt_pg_put_int4(struct rcpt_pg_encoder *encoder, int32_t value);
void rcpt_pg_put_int8(struct rcpt_pg_encoder *encoder, int64_t value);
void rcpt_pg_put_timestamp(struct rcpt_pg_encoder *encoder, int64_t us_since_1970);

/* Arrays of `count` numbers at once, for arrays with an element per event. They return the place of
 * the first element. The function of its type writes an element and returns the place of the next.
 * rcpt_pg_end_array asserts that all are written. */
uint8_t *rcpt_pg_add_int2_array(struct rcpt_pg_encoder *encoder, size_t count);
uint8_t *rcpt_pg_add_int4_array(struct rcpt_pg_encoder *encoder, size_t count);
uint8_t *rcpt_pg_add_timestamp_array(struct rcpt_pg_encoder *encoder, size_t count);
/* Whole arrays, without NULLs. */
void rcpt_pg_add_int2s(struct rcpt_pg_encoder *encoder, const int16_t *values, size_t count);
void rcpt_pg_add_int4s(struct rcpt_pg_encoder *encoder, const int32_t *values, size_t count);
void rcpt_pg_add_int8s(struct rcpt_pg_encoder *encoder, const int64_t *values, size_t count);
void rcpt_pg_end_array(const struct rcpt_pg_encoder *encoder, const uint8_t *place);
uint8_t *rcpt_pg_write_timestamp(uint8_t *place, int64_t us_since_1970);
uint8_t *rcpt_pg_write_infinity(uint8_t *place);       /* the time 'infinity' … */
uint8_t *rcpt_pg_write_minus_infinity(uint8_t *place); /* … and '-infinity' */

static inline uint8_t *rcpt_pg_write_int2(uint8_t *place, int16_t value)
{
    uint32_t size = htobe32(sizeof(value));
    uint16_t big = htobe16((uint16_t)value);
    memcpy(place, &size, sizeof(size));
    memcpy(place + sizeof(size), &big, sizeof(big));
    return place + sizeof(size) + sizeof(big);
}

static inline uint8_t *rcpt_pg_write_int4(uint8_t *place, int32_t value)
{
    uint32_t both[] = {htobe32(sizeof(value)), htobe32((uint32_t)value)};
    memcpy(place, both, sizeof(both));
    return place + sizeof(both);
}

/* Scalars: each is one parameter. */
void rcpt_pg_add_int4(struct rcpt_pg_encoder *encoder, int32_t value);
void rcpt_pg_add_int8(struct rcpt_pg_encoder *encoder, int64_t value);
void rcpt_pg_add_text(struct rcpt_pg_encoder *encoder, const char *text); /* NULL: SQL NULL */
/* A bytea parameter of this size; returns where to write it (valid until the next call). */
uint8_t *rcpt_pg_add_bytea(struct rcpt_pg_encoder *encoder, size_t size);

/* The finished parameters; valid until the next reset or begin. */
struct rcpt_pg_params;
void rcpt_pg_encoder_params(struct rcpt_pg_encoder *encoder, struct rcpt_pg_params *params);

#endif

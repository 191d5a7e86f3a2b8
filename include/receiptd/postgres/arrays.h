/* Binary array parameters, built without an allocation per element. Format: PostgreSQL's array_recv
 * (one dimension). */
#ifndef RECEIPTD_POSTGRES_ARRAYS_H
#define RECEIPTD_POSTGRES_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

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

/* Binary array parameters in one growing buffer: a header for each array, then each element behind
 * its length, in network byte order. The buffer stays for the next batch, so that a lane in its
 * steady state allocates nothing. Called by encode_batch.c and by all that send statements.
 */
#include "receiptd/postgres/arrays.h"

#include <endian.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/buffer.h"
#include "receiptd/base/error.h"
#include "receiptd/postgres/connection.h"

/* Object identifiers of the element types: src/include/catalog/pg_type.dat of PostgreSQL. They
 * never change. */
#define OID_BYTEA       17
#define OID_INT8        20
#define OID_INT2        21
#define OID_INT4        23
#define OID_TEXT        25
#define OID_TIMESTAMPTZ 1184

#define POSTGRES_EPOCH_US  INT64_C(946684800000000) /* 2000-01-01 in microseconds since 1970 */
#define ARRAY_HEADER_BYTES 20u /* dimensions, has-null, type, size, lower bound */
#define EMPTY_ARRAY_BYTES  12u /* the same without a dimension */
#define HAS_NULL_OFFSET    4u
#define KEEP_BYTES         ((size_t)8 * 1024 * 1024)

/* A parameter as a place in the buffer, so that growth does not invalidate it. */
struct parameter {
    size_t offset;
    size_t size;
    bool is_null;
};

struct rcpt_pg_encoder {
    struct rcpt_buffer buffer;
    struct parameter *parameters;
    int count, parameter_capacity;
    size_t missing;  /* elements that the array being built still lacks */
    int32_t element; /* its element type */
    const char **values;
    int *lengths, *formats;
};

struct rcpt_pg_encoder *rcpt_pg_encoder_new(void)
{
    return rcpt_calloc(1, sizeof(struct rcpt_pg_encoder));
}

void rcpt_pg_encoder_free(struct rcpt_pg_encoder *encoder)
{
    if (encoder == NULL)
        return;
    rcpt_buffer_free(&encoder->buffer);
    free(encoder->parameters);
    free(encoder->values);
    free(encoder->lengths);
    free(encoder->formats);
    free(encoder);
}

/* A buffer that one large batch has made large goes back to the allocator. */
void rcpt_pg_encoder_reset(struct rcpt_pg_encoder *encoder)
{
    encoder->buffer.size = 0;
    encoder->count = 0;
    encoder->missing = 0;
    if (encoder->buffer.capacity > KEEP_BYTES)
        rcpt_buffer_free(&encoder->buffer);
}

/* PostgreSQL takes at most 1 GiB for a message, so int is wide enough for every size. */
static uint8_t *reserve(struct rcpt_pg_encoder *encoder, size_t size)
{
    RCPT_ASSERT(size <= INT_MAX && encoder->buffer.size <= INT_MAX);
    uint8_t *place = (uint8_t *)rcpt_buffer_reserve(&encoder->buffer, size);
    encoder->buffer.size += size;
    return place;
}

/* Network byte order, at any alignment. */
static void write_int4(uint8_t *place, int32_t value)
{
    uint32_t big = htobe32((uint32_t)value);
    memcpy(place, &big, sizeof(big));
}

static void write_int8(uint8_t *place, int64_t value)
{
    uint64_t big = htobe64((uint64_t)value);
    memcpy(place, &big, sizeof(big));
}

/* The four arrays grow together; the last three are what libpq is given. */
static void grow_parameters(struct rcpt_pg_encoder *encoder)
{
    int capacity = encoder->parameter_capacity > 0 ? encoder->parameter_capacity * 2 : 16;
    size_t entries = (size_t)capacity;
    encoder->parameters = rcpt_realloc(encoder->parameters, entries * sizeof(*encoder->parameters));
    encoder->values = rcpt_realloc(encoder->values, entries * sizeof(*encoder->values));
    encoder->lengths = rcpt_realloc(encoder->lengths, entries * sizeof(*encoder->lengths));
    encoder->formats = rcpt_realloc(encoder->formats, entries * sizeof(*encoder->formats));
    encoder->parameter_capacity = capacity;
}

static struct parameter *current(struct rcpt_pg_encoder *encoder)
{
    RCPT_ASSERT(encoder->count > 0);
    return &encoder->parameters[encoder->count - 1];
}

/* The parameter before must be complete: an array that got fewer elements than announced is a bug.
 */
static struct parameter *begin_parameter(struct rcpt_pg_encoder *encoder)
{
    RCPT_ASSERT(encoder->missing == 0);
    if (encoder->count == encoder->parameter_capacity)
        grow_parameters(encoder);
    encoder->count++;
    *current(encoder) = (struct parameter){.offset = encoder->buffer.size};
    return current(encoder);
}

/* A scalar in binary format is its bytes alone: the message carries its length. */
static uint8_t *add_scalar(struct rcpt_pg_encoder *encoder, size_t size)
{
    begin_parameter(encoder)->size = size;
    return reserve(encoder, size);
}

/* An array of no elements has no dimension at all. */
static void begin_array(struct rcpt_pg_encoder *encoder, int32_t element, size_t count)
{
    RCPT_ASSERT(count <= INT32_MAX);
    uint8_t *header = add_scalar(encoder, count > 0 ? ARRAY_HEADER_BYTES : EMPTY_ARRAY_BYTES);
    write_int4(header, count > 0 ? 1 : 0);
    write_int4(header + HAS_NULL_OFFSET, 0);
    write_int4(header + 8, element);
    if (count > 0) {
        write_int4(header + 12, (int32_t)count);
        write_int4(header + 16, 1);
    }
    encoder->element = element;
    encoder->missing = count;
}

void rcpt_pg_begin_text_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    begin_array(encoder, OID_TEXT, count);
}

void rcpt_pg_begin_bytea_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    begin_array(encoder, OID_BYTEA, count);
}

void rcpt_pg_begin_int2_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    begin_array(encoder, OID_INT2, count);
}

void rcpt_pg_begin_int4_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    begin_array(encoder, OID_INT4, count);
}

void rcpt_pg_begin_int8_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    begin_array(encoder, OID_INT8, count);
}

void rcpt_pg_begin_timestamp_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    begin_array(encoder, OID_TIMESTAMPTZ, count);
}

/* Space for all elements of an array, each of `size` bytes behind its length. */
static uint8_t *add_array(struct rcpt_pg_encoder *encoder, int32_t element, size_t count,
                          size_t size)
{
    begin_array(encoder, element, count);
    encoder->missing = 0;
    uint8_t *place = reserve(encoder, count * (sizeof(int32_t) + size));
    current(encoder)->size += count * (sizeof(int32_t) + size);
    return place;
}

/* The three arrays of fixed width are written by the caller in one loop, element by element behind
 * its length; rcpt_pg_end_array() checks how far it came. */
uint8_t *rcpt_pg_add_int2_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    return add_array(encoder, OID_INT2, count, sizeof(int16_t));
}

uint8_t *rcpt_pg_add_int4_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    return add_array(encoder, OID_INT4, count, sizeof(int32_t));
}

uint8_t *rcpt_pg_add_timestamp_array(struct rcpt_pg_encoder *encoder, size_t count)
{
    return add_array(encoder, OID_TIMESTAMPTZ, count, sizeof(int64_t));
}

/* All announced elements are written, and none more. */
void rcpt_pg_end_array(const struct rcpt_pg_encoder *encoder, const uint8_t *place)
{
    RCPT_ASSERT((const char *)place == encoder->buffer.bytes + encoder->buffer.size);
}

/* Space for one element behind its length. */
void rcpt_pg_add_int2s(struct rcpt_pg_encoder *encoder, const int16_t *values, size_t count)
{
    uint8_t *place = rcpt_pg_add_int2_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        place = rcpt_pg_write_int2(place, values[index]);
    rcpt_pg_end_array(encoder, place);
}

void rcpt_pg_add_int4s(struct rcpt_pg_encoder *encoder, const int32_t *values, size_t count)
{
    uint8_t *place = rcpt_pg_add_int4_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        place = rcpt_pg_write_int4(place, values[index]);
    rcpt_pg_end_array(encoder, place);
}

void rcpt_pg_add_int8s(struct rcpt_pg_encoder *encoder, const int64_t *values, size_t count)
{
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(encoder, values[index]);
}

static uint8_t *put_element(struct rcpt_pg_encoder *encoder, size_t size)
{
    RCPT_ASSERT(encoder->missing > 0);
    RCPT_ASSERT(size <= INT32_MAX - sizeof(int32_t));
    uint8_t *place = reserve(encoder, sizeof(int32_t) + size);
    write_int4(place, (int32_t)size);
    current(encoder)->size += sizeof(int32_t) + size;
    encoder->missing--;
    return place + sizeof(int32_t);
}

/* The element type decides whether the server takes the bytes as text or bytea. */
void rcpt_pg_put_bytes(struct rcpt_pg_encoder *encoder, const void *bytes, size_t size)
{
    RCPT_ASSERT(encoder->element == OID_TEXT || encoder->element == OID_BYTEA);
    uint8_t *place = put_element(encoder, size);
    if (size > 0)
        memcpy(place, bytes, size);
}

/* A length of -1 is NULL; the header has to say that there is one. */
void rcpt_pg_put_null(struct rcpt_pg_encoder *encoder)
{
    write_int4(put_element(encoder, 0) - sizeof(int32_t), -1);
    char *header = encoder->buffer.bytes + current(encoder)->offset;
    write_int4((uint8_t *)header + HAS_NULL_OFFSET, 1);
}

void rcpt_pg_put_int2(struct rcpt_pg_encoder *encoder, int16_t value)
{
    RCPT_ASSERT(encoder->element == OID_INT2);
    uint16_t big = htobe16((uint16_t)value);
    memcpy(put_element(encoder, sizeof(big)), &big, sizeof(big));
}

void rcpt_pg_put_int4(struct rcpt_pg_encoder *encoder, int32_t value)
{
    RCPT_ASSERT(encoder->element == OID_INT4);
    write_int4(put_element(encoder, sizeof(value)), value);
}

void rcpt_pg_put_int8(struct rcpt_pg_encoder *encoder, int64_t value)
{
    RCPT_ASSERT(encoder->element == OID_INT8);
    write_int8(put_element(encoder, sizeof(value)), value);
}

/* A time too early to be shifted becomes one that the server refuses as out of range; INT64_MIN
 * would be -infinity. */
static int64_t since_2000(int64_t us_since_1970)
{
    int64_t earliest = INT64_MIN + 1 + POSTGRES_EPOCH_US;
    return (us_since_1970 < earliest ? earliest : us_since_1970) - POSTGRES_EPOCH_US;
}

void rcpt_pg_put_timestamp(struct rcpt_pg_encoder *encoder, int64_t us_since_1970)
{
    RCPT_ASSERT(encoder->element == OID_TIMESTAMPTZ);
    write_int8(put_element(encoder, sizeof(int64_t)), since_2000(us_since_1970));
}

static uint8_t *write_time(uint8_t *place, int64_t us_since_2000)
{
    write_int4(place, sizeof(int64_t));
    write_int8(place + sizeof(int32_t), us_since_2000);
    return place + sizeof(int32_t) + sizeof(int64_t);
}

uint8_t *rcpt_pg_write_timestamp(uint8_t *place, int64_t us_since_1970)
{
    return write_time(place, since_2000(us_since_1970));
}

uint8_t *rcpt_pg_write_infinity(uint8_t *place)
{
    return write_time(place, INT64_MAX);
}

uint8_t *rcpt_pg_write_minus_infinity(uint8_t *place)
{
    return write_time(place, INT64_MIN);
}

void rcpt_pg_add_int4(struct rcpt_pg_encoder *encoder, int32_t value)
{
    write_int4(add_scalar(encoder, sizeof(value)), value);
}

void rcpt_pg_add_int8(struct rcpt_pg_encoder *encoder, int64_t value)
{
    write_int8(add_scalar(encoder, sizeof(value)), value);
}

/* An empty text takes no bytes, which value_at() tells from NULL. */
void rcpt_pg_add_text(struct rcpt_pg_encoder *encoder, const char *text)
{
    if (text == NULL) {
        begin_parameter(encoder)->is_null = true;
        return;
    }
    size_t size = strlen(text);
    if (size > 0)
        memcpy(add_scalar(encoder, size), text, size);
    else
        begin_parameter(encoder);
}

uint8_t *rcpt_pg_add_bytea(struct rcpt_pg_encoder *encoder, size_t size)
{
    return add_scalar(encoder, size);
}

/* An empty value needs a pointer too, since NULL means SQL NULL. */
static const char *value_at(const struct rcpt_pg_encoder *encoder,
                            const struct parameter *parameter)
{
    if (parameter->is_null)
        return NULL;
    return parameter->size > 0 ? encoder->buffer.bytes + parameter->offset : "";
}

/* Pointers into the buffer, valid until the next call of this encoder. */
void rcpt_pg_encoder_params(struct rcpt_pg_encoder *encoder, struct rcpt_pg_params *params)
{
    RCPT_ASSERT(encoder->missing == 0);
    for (int index = 0; index < encoder->count; index++) {
        const struct parameter *parameter = &encoder->parameters[index];
        RCPT_ASSERT(parameter->size <= INT_MAX);
        encoder->values[index] = value_at(encoder, parameter);
        encoder->lengths[index] = (int)parameter->size;
        encoder->formats[index] = 1;
    }
    *params = (struct rcpt_pg_params){
        .count = encoder->count,
        .values = encoder->values,
        .lengths = encoder->lengths,
        .formats = encoder->formats,
    };
}

/* Records of topics as they came, and their parameters (topics/records.h). Called by the owners of
 * readers. */
#include "receiptd/topics/records.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/base/utf8.h"
#include "receiptd/core/record.h"

/* A batch is sent when the connection is free, with all records that came until then, up to these
 * limits. */
#define BATCH_RECORDS 1000u
#define BATCH_BYTES   (4u * 1024 * 1024)

bool topics_records_has_capacity(const struct topics_records *records)
{
    return records->count < BATCH_RECORDS && records->bytes < BATCH_BYTES;
}

/* NULL: PostgreSQL has no such text. */
static char *text_of(const char *bytes, size_t size)
{
    bool is_text = bytes != NULL && size <= RCPT_RECORD_MAX_BYTES &&
                   rcpt_utf8_is_text(bytes, size) && memchr(bytes, '\0', size) == NULL;
    return is_text ? rcpt_strndup(bytes, size) : NULL;
}

/* A key that is no text names no message. */
static char *key_of(const struct rcpt_kafka_message *message)
{
    char *key = text_of(message->key, message->key_size);
    return key != NULL ? key : rcpt_strdup("");
}

void topics_records_add(struct topics_records *records, const struct rcpt_kafka_message *message)
{
    bool is_tombstone = message->value == NULL && message->unreadable == NULL;
    if (records->count == records->capacity)
        RCPT_GROW(records->at, records->capacity, BATCH_RECORDS);
    struct topics_record *record = &records->at[records->count++];
    *record = (struct topics_record){.topic = rcpt_strdup(message->topic),
                                     .partition = message->partition,
                                     .offset = message->offset,
                                     .key = is_tombstone ? key_of(message) : NULL,
                                     .value = text_of(message->value, message->value_size),
                                     .size = message->value_size};
    if (rcpt_trace_is_sampled(message->traceparent, message->traceparent_size))
        memcpy(record->traceparent, message->traceparent, RCPT_TRACE_TEXT_BYTES);
    records->bytes += record->value != NULL ? record->size : 0;
}

void topics_records_put_places(const struct topics_records *records,
                               struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_text_array(encoder, records->count);
    for (size_t i = 0; i < records->count; i++)
        rcpt_pg_put_bytes(encoder, records->at[i].topic, strlen(records->at[i].topic));
    rcpt_pg_begin_int4_array(encoder, records->count);
    for (size_t i = 0; i < records->count; i++)
        rcpt_pg_put_int4(encoder, records->at[i].partition);
    rcpt_pg_begin_int8_array(encoder, records->count);
    for (size_t i = 0; i < records->count; i++)
        rcpt_pg_put_int8(encoder, records->at[i].offset);
}

static void put_text(struct rcpt_pg_encoder *encoder, const char *text, size_t size)
{
    if (text == NULL)
        rcpt_pg_put_null(encoder);
    else
        rcpt_pg_put_bytes(encoder, text, size);
}

void topics_records_put_keys(const struct topics_records *records, struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_text_array(encoder, records->count);
    for (size_t i = 0; i < records->count; i++) {
        const char *key = records->at[i].key;
        put_text(encoder, key, key != NULL ? strlen(key) : 0);
    }
}

void topics_records_put_values(const struct topics_records *records,
                               struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_text_array(encoder, records->count);
    for (size_t i = 0; i < records->count; i++)
        put_text(encoder, records->at[i].value, records->at[i].size);
}

void topics_records_put_traces(const struct topics_records *records,
                               struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_text_array(encoder, records->count);
    for (size_t i = 0; i < records->count; i++) {
        const char *text = records->at[i].traceparent;
        put_text(encoder, text[0] != '\0' ? text : NULL, strlen(text));
    }
}

void topics_records_forget(struct topics_records *records)
{
    for (size_t index = 0; index < records->count; index++) {
        free(records->at[index].topic);
        free(records->at[index].key);
        free(records->at[index].value);
    }
    records->count = records->bytes = 0;
}

void topics_records_fini(struct topics_records *records)
{
    topics_records_forget(records);
    free(records->at);
}

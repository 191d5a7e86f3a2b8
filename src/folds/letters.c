/* Dead letters of events that cannot be folded. They wait in memory for the transaction that moves
 * the position past them, so each is written once. Called by topic.c. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* A list that has grown beyond this is freed after its transaction. */
#define KEEP_LETTERS 1024
#define MOST_BYTES   RCPT_RECORD_MAX_LETTER_BYTES

struct folds_letter {
    char *topic, *traceparent; /* NULL: none */
    void *payload;
    size_t payload_size;
    int32_t partition;
    int64_t offset;
    struct rcpt_fold_refusal refusal;
};

/* Terminated, as some of the copies are texts. */
static char *copy(const void *bytes, size_t size)
{
    char *text = rcpt_malloc(size + 1);
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

/* The detail says that the payload is not complete. */
static void note_cut(struct rcpt_fold_refusal *refusal, size_t size)
{
    size_t used = strlen(refusal->detail);
    snprintf(refusal->detail + used, sizeof(refusal->detail) - used, "%sthe first of %zu bytes",
             used > 0 ? "; " : "", size);
}

/* Copies the record, up to the size that a dead letter may have. */
void folds_letters_add(struct folds_letters *letters, const struct rcpt_kafka_message *message,
                       const struct rcpt_fold_refusal *refusal)
{
    size_t size = message->value == NULL ? 0 : message->value_size;
    if (letters->count == letters->capacity) {
        RCPT_GROW(letters->list, letters->capacity, 16);
    }
    struct folds_letter *letter = &letters->list[letters->count++];
    *letter = (struct folds_letter){
        .topic = rcpt_strdup(message->topic),
        .partition = message->partition,
        .offset = message->offset,
        .refusal = *refusal,
        .payload_size = size < MOST_BYTES ? size : MOST_BYTES,
    };
    letter->payload = copy(message->value, letter->payload_size);
    if (message->traceparent != NULL)
        letter->traceparent = copy(message->traceparent, message->traceparent_size);
    if (size > MOST_BYTES)
        note_cut(&letter->refusal, size);
    letters->bytes += sizeof(*letter) + letter->payload_size + message->traceparent_size;
}

/* Absent and empty texts are both NULL in the table. */
static void put_text(struct rcpt_pg_encoder *encoder, const char *text)
{
    if (text == NULL || text[0] == '\0')
        rcpt_pg_put_null(encoder);
    else
        rcpt_pg_put_bytes(encoder, text, strlen(text));
}

/* Topic, partition and offset are the key of a dead letter. */
static void put_places(const struct folds_letters *letters, struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_begin_text_array(encoder, letters->count);
    for (size_t index = 0; index < letters->count; index++)
        put_text(encoder, letters->list[index].topic);
    rcpt_pg_begin_int4_array(encoder, letters->count);
    for (size_t index = 0; index < letters->count; index++)
        rcpt_pg_put_int4(encoder, letters->list[index].partition);
    rcpt_pg_begin_int8_array(encoder, letters->count);
    for (size_t index = 0; index < letters->count; index++)
        rcpt_pg_put_int8(encoder, letters->list[index].offset);
}

/* Columns in the order of the parameters of letters.sql. */
void folds_letters_encode(const struct folds_letters *letters, struct rcpt_pg_encoder *encoder)
{
    put_places(letters, encoder);
    rcpt_pg_begin_text_array(encoder, letters->count);
    for (size_t index = 0; index < letters->count; index++)
        put_text(encoder, rcpt_reject_name(letters->list[index].refusal.reason));
    rcpt_pg_begin_text_array(encoder, letters->count);
    for (size_t index = 0; index < letters->count; index++)
        put_text(encoder, letters->list[index].refusal.detail);
    rcpt_pg_begin_bytea_array(encoder, letters->count);
    for (size_t index = 0; index < letters->count; index++)
        rcpt_pg_put_bytes(encoder, letters->list[index].payload, letters->list[index].payload_size);
    rcpt_pg_begin_text_array(encoder, letters->count);
    for (size_t index = 0; index < letters->count; index++)
        put_text(encoder, letters->list[index].traceparent);
}

/* Memory of an unusual number of letters is given back. */
void folds_letters_reset(struct folds_letters *letters)
{
    for (size_t index = 0; index < letters->count; index++) {
        free(letters->list[index].topic);
        free(letters->list[index].traceparent);
        free(letters->list[index].payload);
    }
    letters->count = letters->bytes = 0;
    if (letters->capacity > KEEP_LETTERS)
        folds_letters_fini(letters);
}

void folds_letters_fini(struct folds_letters *letters)
{
    if (letters->count > 0)
        folds_letters_reset(letters);
    free(letters->list);
    *letters = (struct folds_letters){0};
}

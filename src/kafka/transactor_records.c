/* The records of a transaction: copied in one piece for the thread that sends them, and their
 * headers in the form of librdkafka. Called by transactor.c.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/kafka/transactor.h"

static size_t room_of(const struct rcpt_transactor_record *record)
{
    size_t room = strlen(record->topic) + 1 + record->key.size + record->value.size;
    for (size_t index = 0; index < RCPT_TRANSACTOR_HEADERS; index++)
        room += record->headers[index].value.size;
    return room;
}

/* The block has room for all texts, so it does not move. */
static const char *copy(struct rcpt_buffer *block, const char *bytes, size_t size)
{
    const char *place = block->bytes + block->size;
    if (bytes == NULL)
        return NULL;
    rcpt_buffer_append(block, bytes, size);
    return place;
}

static void copy_record(struct rcpt_buffer *block, struct rcpt_transactor_record *record)
{
    record->topic = copy(block, record->topic, strlen(record->topic) + 1);
    record->key.at = copy(block, record->key.at, record->key.size);
    record->value.at = copy(block, record->value.at, record->value.size);
    for (size_t index = 0; index < RCPT_TRANSACTOR_HEADERS; index++) {
        struct rcpt_text *value = &record->headers[index].value;
        value->at = copy(block, value->at, value->size);
    }
}

/* One block holds the texts of all records. Names of headers are constants of the program. */
void rcpt_transactor_records_copy(struct rcpt_transactor_records *copies,
                                  const struct rcpt_transactor_record *records, size_t count)
{
    size_t room = 0;
    for (size_t index = 0; index < count; index++)
        room += room_of(&records[index]);
    (void)rcpt_buffer_reserve(&copies->block, room);
    copies->count = count;
    copies->list = rcpt_calloc(count, sizeof(*records));
    if (count > 0)
        memcpy(copies->list, records, count * sizeof(*records));
    for (size_t index = 0; index < count; index++)
        copy_record(&copies->block, &copies->list[index]);
}

void rcpt_transactor_records_free(struct rcpt_transactor_records *copies)
{
    free(copies->list);
    rcpt_buffer_free(&copies->block);
}

rd_kafka_headers_t *rcpt_transactor_headers(const struct rcpt_transactor_record *record)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(RCPT_TRANSACTOR_HEADERS);
    for (size_t index = 0; index < RCPT_TRANSACTOR_HEADERS; index++) {
        const struct rcpt_transactor_header *header = &record->headers[index];
        if (header->name != NULL && header->value.at != NULL)
            rd_kafka_header_add(headers, header->name, -1, header->value.at,
                                (ssize_t)header->value.size);
    }
    return headers;
}

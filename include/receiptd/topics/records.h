/* Records of topics as they came, until their transaction is sent: for owners of a reader
 * (topics.h) that leave it to SQL to read them. Bounded by their number and their bytes. Values
 * that PostgreSQL cannot hold go as NULL, and become dead letters there.
 */
#ifndef RECEIPTD_TOPICS_RECORDS_H
#define RECEIPTD_TOPICS_RECORDS_H

#include "receiptd/core/trace_context.h"
#include "receiptd/topics/topics.h"

struct topics_record {
    char *topic;
    int32_t partition;
    int64_t offset;
    char *key;   /* of a tombstone, "": it has none; NULL: of no tombstone */
    char *value; /* NULL: a tombstone, no UTF-8, or more than a record may have */
    size_t size;
    char traceparent[RCPT_TRACE_TEXT_BYTES + 1]; /* "": it is in no sampled trace */
};

struct topics_records { /* zeroed at first */
    struct topics_record *at;
    size_t count, capacity, bytes;
};

/* Bytes of what may be fetched ahead of these records. */
#define TOPICS_RECORDS_FETCH_BYTES (8u * 1024 * 1024)

/* False stops polling the topics; the records stay with Kafka. */
bool topics_records_has_capacity(const struct topics_records *records);
/* Copies the record. */
void topics_records_add(struct topics_records *records, const struct rcpt_kafka_message *message);
/* Three parameters: topic, partition and offset of each. */
void topics_records_put_places(const struct topics_records *records,
                               struct rcpt_pg_encoder *encoder);
/* One parameter each: the keys of tombstones; the values; the sampled traceparents. */
void topics_records_put_keys(const struct topics_records *records, struct rcpt_pg_encoder *encoder);
void topics_records_put_values(const struct topics_records *records,
                               struct rcpt_pg_encoder *encoder);
void topics_records_put_traces(const struct topics_records *records,
                               struct rcpt_pg_encoder *encoder);
/* They are encoded, or their partitions were revoked: the positions bring them again. */
void topics_records_forget(struct topics_records *records);
void topics_records_fini(struct topics_records *records);

#endif

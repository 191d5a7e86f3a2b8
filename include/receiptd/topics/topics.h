/* Reads topics whose records go into PostgreSQL together with their positions: a consumer with a
 * group of its own, a connection of its own, one transaction in flight.
 *
 * Folds, actions and messages own a reader each and handle the records in callbacks. The rows in
 * PostgreSQL are the positions that count: after a failure, a new connection or a new assignment
 * everything in memory is dropped and read again from there. Kafka's own offsets are written for
 * lag tools only. The reader does not know what records mean. Call from the loop's thread only.
 */
#ifndef RECEIPTD_TOPICS_TOPICS_H
#define RECEIPTD_TOPICS_TOPICS_H

#include "receiptd/host/context.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/postgres/arrays.h"

#define TOPICS_MOST_STATEMENTS 3u

struct topics_reader;

/* One transaction. The first statement moves the positions; its encoder holds their four arrays
 * (topics, partitions, expected, next), and the owner may add parameters behind them. */
struct topics_batch {
    const char *statements[TOPICS_MOST_STATEMENTS];
    struct rcpt_pg_encoder *encoders[TOPICS_MOST_STATEMENTS];
    size_t count;
};

/* The encoder of another statement of the transaction. */
struct rcpt_pg_encoder *topics_batch_add(struct topics_batch *batch, const char *statement);

struct topics_settings {
    struct host_context *context;
    const char *name;       /* before its lines in the log; the group is GROUP-NAME */
    const char *topics_key; /* under which the configuration names its topics */
    const char *connection; /* name of its connection */
    const char *work;       /* what its transactions do, for the log: "appending events" */
    const struct rcpt_pg_statement *statements;
    size_t statement_count;
    const char *read_positions;   /* statement: topics, partitions → one row each, or NULL */
    const char *insert_positions; /* statement: topics, partitions, offsets */
    const char *move_positions;   /* statement: the first of each transaction */
    size_t fetch_budget_bytes;
    void *owner;
    /* Whether a record may be given to on_message now. */
    bool (*has_capacity)(void *owner);
    /* The next record of its partition; the position behind it is noted by the reader. */
    void (*on_message)(void *owner, const struct rcpt_kafka_message *message);
    /* Whether the records in memory may be sent now; asked again with each tick and round. NULL:
     * always. */
    bool (*may_send)(void *owner);
    /* Encodes the records in memory, which belong to the transaction from then on. */
    void (*add)(void *owner, struct topics_batch *batch);
    /* The transaction is committed; rows of its first statement. */
    void (*on_committed)(void *owner, const struct rcpt_pg_rows *rows);
    /* Drops all records that are in memory: they will be read again. */
    void (*forget)(void *owner);
    /* After topics_leave: the consumer is closed. */
    void (*on_left)(void *owner);
};

/* Copies the settings, borrows their texts, and connects to PostgreSQL. */
struct topics_reader *topics_new(const struct topics_settings *settings);
/* Reads these topics from now on; copies the names. A failure goes to host_fail, and the reader
 * stays closed. */
void topics_open(struct topics_reader *reader, const char *const *topics, size_t count);
bool topics_is_open(const struct topics_reader *reader);
/* Only while open. Takes nothing more in, waits for the transaction in flight, and leaves the
 * group; on_left follows. */
void topics_leave(struct topics_reader *reader);
/* Sends what may be sent; as often as the owner wants transactions. */
void topics_tick(struct topics_reader *reader);
/* Why the reader does not read; NULL: it does, or it has no topics. */
const char *topics_reason(struct topics_reader *reader);
/* Takes over a changed configuration, which may name another server and have other credentials of
 * Kafka. */
void topics_apply_config(struct topics_reader *reader);
/* Only while not open. Disconnects and frees the reader; then on_closed. */
void topics_close(struct topics_reader *reader, void (*on_closed)(void *context), void *context);

#endif

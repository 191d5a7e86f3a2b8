/* Records of topics into transactions, one in flight: the statement that moves the positions comes
 * first, the owner's statements follow. Records that arrive meanwhile form the next transaction.
 * Called by the consumer (consumer.h) and by reader.c. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/log.h"
#include "receiptd/postgres/sqlstate.h"

/* ---- records in ---- */

/* Asked before each record. A partition that was refused is fetched again after a kick. */
bool topics_batch_wants(void *context, const char *topic, int32_t number, void *tag)
{
    struct topics_reader *reader = context;
    (void)topic, (void)number, (void)tag;
    bool takes = reader->state == TOPICS_READY && reader->up &&
                 reader->settings.has_capacity(reader->settings.owner);
    reader->starved |= !takes;
    return takes;
}

/* A fetch that was under way when the partition was rewound may still deliver: nothing counts as
 * read until a record below the old position came. */
static bool is_stale(struct topics_partition *partition, int64_t offset)
{
    if (partition->rewound_from > 0 && offset >= partition->rewound_from)
        return true;
    partition->rewound_from = 0;
    return offset < partition->read;
}

void topics_batch_on_message(void *context, void *tag, const struct rcpt_kafka_message *message)
{
    struct topics_reader *reader = context;
    struct topics_partition *partition = tag;
    partition->delivered = message->offset + 1;
    if (reader->state != TOPICS_READY || is_stale(partition, message->offset))
        return;
    partition->read = message->offset + 1;
    reader->settings.on_message(reader->settings.owner, message);
}

void topics_batch_on_round(void *context)
{
    topics_batch_send(context);
}

/* Capacity is back: after a commit, a resync, or in the owner. */
void topics_batch_continue(struct topics_reader *reader)
{
    if (!reader->starved || reader->state != TOPICS_READY)
        return;
    reader->starved = false;
    rcpt_kafka_kick(reader->kafka);
}

/* ---- the transaction ---- */

struct rcpt_pg_encoder *topics_batch_add(struct topics_batch *batch, const char *statement)
{
    RCPT_ASSERT(batch->count < TOPICS_MOST_STATEMENTS);
    batch->statements[batch->count] = statement;
    batch->encoders[batch->count] = rcpt_pg_encoder_new();
    return batch->encoders[batch->count++];
}

static size_t count_moved(const struct topics_reader *reader)
{
    size_t count = 0;
    for (size_t index = 0; index < reader->partition_count; index++)
        count += reader->partitions[index].read > reader->partitions[index].expected;
    return count;
}

/* The first two parameters of all statements about partitions. */
void topics_batch_put(struct rcpt_pg_encoder *encoder, const struct rcpt_kafka_partition *places,
                      size_t count)
{
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_bytes(encoder, places[index].topic, strlen(places[index].topic));
    rcpt_pg_begin_int4_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int4(encoder, places[index].partition);
}

/* Four arrays, in the order of the partitions: rows are locked in one order everywhere. */
static void put_moves(const struct topics_reader *reader, struct rcpt_pg_encoder *encoder,
                      size_t count)
{
    struct rcpt_kafka_partition *places = rcpt_calloc(count, sizeof(*places));
    const struct topics_partition **moved = rcpt_calloc(count, sizeof(*moved));
    size_t used = 0;
    for (size_t index = 0; index < reader->partition_count; index++) {
        const struct topics_partition *partition = &reader->partitions[index];
        if (partition->read <= partition->expected)
            continue;
        places[used] = (struct rcpt_kafka_partition){partition->topic, partition->number, 0};
        moved[used++] = partition;
    }
    topics_batch_put(encoder, places, count);
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(encoder, moved[index]->expected);
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(encoder, moved[index]->read);
    free(places);
    free(moved);
}

/* The consumer limits how often it really commits. The tick calls this, too, because records that
 * no consumer gets make no batch. */
void topics_batch_commit(const struct topics_reader *reader)
{
    struct rcpt_kafka_partition *places = rcpt_calloc(reader->partition_count + 1, sizeof(*places));
    for (size_t index = 0; index < reader->partition_count; index++) {
        const struct topics_partition *partition = &reader->partitions[index];
        int64_t stands_at = rcpt_kafka_stands_at(reader->kafka, partition->topic, partition->number,
                                                 partition->expected);
        places[index] =
            (struct rcpt_kafka_partition){partition->topic, partition->number, stands_at};
    }
    rcpt_kafka_commit(reader->kafka, places, reader->partition_count, NULL);
    free(places);
}

/* RD001 is another reader that is ahead: no reason for a warning. */
static void on_failed(struct topics_reader *reader, const struct rcpt_error *error)
{
    topics_positions_resync(reader);
    if (strcmp(error->code, RCPT_SQLSTATE_FENCED) != 0)
        rcpt_asker_failed(&reader->asker, &reader->batch_refused, reader->settings.work, error);
}

/* The result may belong to an older assignment, and a failure may have been a commit: the positions
 * in the database tell. */
static void on_sent(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct topics_reader *reader = context;
    reader->in_flight = false;
    if (reader->sent_serial != reader->serial) {
        if (reader->state == TOPICS_READING && reader->read_after_flight)
            topics_positions_read(reader);
    } else if (error != NULL) {
        on_failed(reader, error);
    } else {
        RCPT_ASSERT(row_count >= 1);
        rcpt_outage_end(&reader->asker.outage, &reader->batch_refused,
                        host_now(reader->settings.context), reader->settings.name,
                        "records of topics are applied again");
        for (size_t index = 0; index < reader->partition_count; index++)
            reader->partitions[index].expected = reader->partitions[index].sent;
        topics_batch_commit(reader);
        reader->settings.on_committed(reader->settings.owner, rows[0]);
        topics_batch_send(reader);
        topics_batch_continue(reader);
    }
    topics_leave_if_settled(reader);
}

/* Results carry the serial of now; a resync in between makes them void. */
static void submit(struct topics_reader *reader, struct topics_batch *batch)
{
    struct rcpt_pg_query queries[TOPICS_MOST_STATEMENTS];
    for (size_t index = 0; index < batch->count; index++) {
        queries[index] = (struct rcpt_pg_query){.statement = batch->statements[index]};
        rcpt_pg_encoder_params(batch->encoders[index], &queries[index].params);
    }
    reader->in_flight = true;
    reader->sent_serial = reader->serial;
    rcpt_pg_submit(reader->pg, queries, batch->count, on_sent, reader);
    for (size_t index = 0; index < batch->count; index++)
        rcpt_pg_encoder_free(batch->encoders[index]);
}

static bool owner_may_send(const struct topics_reader *reader)
{
    return reader->settings.may_send == NULL || reader->settings.may_send(reader->settings.owner);
}

/* Sends the positions and the owner's statements in one transaction. */
void topics_batch_send(struct topics_reader *reader)
{
    struct topics_batch batch = {.count = 0};
    size_t moves = count_moved(reader);
    if (moves == 0 || reader->in_flight || reader->state != TOPICS_READY || !reader->up ||
        !rcpt_pg_is_ready(reader->pg) || !owner_may_send(reader))
        return;
    put_moves(reader, topics_batch_add(&batch, reader->settings.move_positions), moves);
    reader->settings.add(reader->settings.owner, &batch);
    for (size_t index = 0; index < reader->partition_count; index++)
        reader->partitions[index].sent = reader->partitions[index].read;
    submit(reader, &batch);
}

/* Where the reader of folded topics stands: the database's positions are the ones that count. After
 * an error, a new connection or a new assignment everything in memory is dropped and read again
 * from there. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define RETRY_MS  1000
#define REWIND_MS 10000

/* ---- partitions ---- */

void folds_positions_forget(struct folds_reader *reader)
{
    for (size_t index = 0; index < reader->partition_count; index++)
        free(reader->partitions[index].topic);
    free(reader->partitions);
    reader->partitions = NULL;
    reader->partition_count = 0;
}

/* Everything in memory goes: it is read again from where the database says. */
void folds_positions_discard(struct folds_reader *reader)
{
    folds_topic_forget(reader);
    for (size_t index = 0; index < reader->partition_count; index++)
        reader->partitions[index].read = reader->partitions[index].expected;
}

void folds_positions_resync(struct folds_reader *reader)
{
    folds_positions_discard(reader);
    reader->serial++;
    if (reader->partition_count > 0)
        folds_positions_read(reader);
}

/* ---- asking for them ---- */

struct request { /* an answer that belongs to an older serial is ignored */
    struct folds_reader *reader;
    uint64_t serial;
};

static struct request *request_new(struct folds_reader *reader)
{
    struct request *request = rcpt_malloc(sizeof(*request));
    *request = (struct request){reader, reader->serial};
    return request;
}

/* Frees the request; true: nothing more to do. */
static bool is_over(struct request *request_taken, const struct rcpt_error *error)
{
    struct folds_reader *reader = request_taken->reader;
    bool old = request_taken->serial != reader->serial;
    free(request_taken);
    if (old)
        return true;
    if (error == NULL)
        return false;
    reader->retry_at_ms = app_now(reader->folds->context) + RETRY_MS;
    reader->state = READER_WAITING;
    if (error->code[0] != '\0')
        rcpt_log_warn("folds", "folds: positions of topics are not to be had yet: %s (%s)",
                      error->text, error->code);
    if (error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0' && reader->up)
        rcpt_pg_reconnect(reader->pg, error);
    return true;
}

static void on_begun(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    (void)rows;
    (void)row_count;
    if (!is_over(context, error))
        folds_positions_read(request.reader);
}

static void on_lows(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                    const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    struct folds_reader *reader = request.reader;
    struct rcpt_error down;
    if (error == NULL && !reader->up) {
        rcpt_error_set(&down, RCPT_DECISION_RETRY, "", "not connected");
        error = &down;
    }
    if (is_over(context, error))
        return;
    struct rcpt_pg_encoder *encoder = reader->encoder;
    struct rcpt_pg_query queries[] = {{.statement = "begin"}};
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_bytes(encoder, partitions[index].topic, strlen(partitions[index].topic));
    rcpt_pg_begin_int4_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int4(encoder, partitions[index].partition);
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(encoder, partitions[index].offset);
    rcpt_pg_encoder_params(encoder, &queries[0].params);
    rcpt_pg_submit(reader->pg, queries, 1, on_begun, request_new(reader));
}

static void query_lows(struct folds_reader *reader, const struct rcpt_pg_rows *rows)
{
    struct rcpt_kafka_partition *places = rcpt_calloc(reader->partition_count, sizeof(*places));
    size_t count = 0;
    for (size_t index = 0; index < reader->partition_count; index++)
        if (rcpt_pg_rows_text(rows, index, 0) == NULL)
            places[count++] =
                (struct rcpt_kafka_partition){.topic = reader->partitions[index].topic,
                                              .partition = reader->partitions[index].number};
    rcpt_kafka_query_low(reader->kafka, places, count, on_lows, request_new(reader));
    free(places);
}

/* What the consumer has delivered beyond the position was dropped, or went back with the database:
 * it has to come again. */
static void start_at(struct folds_reader *reader, struct folds_partition *partition, int64_t offset)
{
    partition->expected = partition->read = partition->sent = offset;
    if (!partition->fetched || offset >= partition->delivered)
        return;
    partition->rewound_from = partition->delivered;
    partition->rewound_at_ms = app_now(reader->folds->context);
    partition->rewinds = 0;
    rcpt_kafka_reassign(reader->kafka, partition->topic, partition->number, offset);
}

void folds_positions_assign(struct folds_reader *reader)
{
    size_t count = reader->partition_count;
    struct rcpt_kafka_partition *places = rcpt_calloc(count + 1, sizeof(*places));
    void **tags = rcpt_calloc(count + 1, sizeof(*tags));
    for (size_t index = 0; index < count; index++) {
        struct folds_partition *partition = &reader->partitions[index];
        places[index] =
            (struct rcpt_kafka_partition){partition->topic, partition->number, partition->expected};
        tags[index] = partition;
        partition->fetched = true;
        partition->delivered = partition->expected;
    }
    rcpt_kafka_assign(reader->kafka, places, tags, count);
    free(places);
    free(tags);
}

static void on_positions(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                         const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    struct folds_reader *reader = request.reader;
    if (is_over(context, error))
        return;
    RCPT_ASSERT(row_count == 1 && rcpt_pg_rows_count(rows[0]) == reader->partition_count);
    for (size_t index = 0; index < reader->partition_count; index++)
        if (rcpt_pg_rows_text(rows[0], index, 0) == NULL) {
            query_lows(reader, rows[0]);
            return;
        }
    for (size_t index = 0; index < reader->partition_count; index++)
        start_at(reader, &reader->partitions[index], rcpt_pg_rows_int(rows[0], index, 0));
    reader->state = READER_READY;
    if (!reader->assigned)
        folds_positions_assign(reader);
    reader->assigned = true;
    folds_topic_continue(reader);
}

void folds_positions_read(struct folds_reader *reader)
{
    struct rcpt_pg_encoder *encoder = reader->encoder;
    struct rcpt_pg_query query = {.statement = "positions"};
    reader->state = READER_READING;
    reader->read_after_flight = reader->flying; /* what it moves has to be seen */
    if (reader->flying)
        return;
    if (!reader->up || !rcpt_pg_is_ready(reader->pg)) {
        reader->state = READER_WAITING;
        reader->retry_at_ms = app_now(reader->folds->context) + RETRY_MS;
        return;
    }
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_begin_text_array(encoder, reader->partition_count);
    for (size_t index = 0; index < reader->partition_count; index++)
        rcpt_pg_put_bytes(encoder, reader->partitions[index].topic,
                          strlen(reader->partitions[index].topic));
    rcpt_pg_begin_int4_array(encoder, reader->partition_count);
    for (size_t index = 0; index < reader->partition_count; index++)
        rcpt_pg_put_int4(encoder, reader->partitions[index].number);
    rcpt_pg_encoder_params(encoder, &query.params);
    rcpt_pg_submit(reader->pg, &query, 1, on_positions, request_new(reader));
}

/* ---- what is no longer there ---- */

void folds_positions_on_out_of_range(void *context, void *tag, const char *topic, int32_t number,
                                     int64_t wanted, int64_t low, int64_t high)
{
    struct folds_reader *reader = context;
    struct folds_partition *partition = tag;
    if (low < 0 || (wanted >= low && wanted <= high)) {
        rcpt_kafka_reassign(reader->kafka, topic, number, wanted);
    } else if (wanted < low) {
        rcpt_log_error("folds",
                       "folds: topic %s partition %d: retention has deleted records %lld…%lld "
                       "before they were folded, going on behind them",
                       topic, number, (long long)wanted, (long long)low - 1);
        partition->read = partition->delivered = low;
        partition->rewound_from = 0;
        rcpt_kafka_reassign(reader->kafka, topic, number, low);
        folds_topic_append(reader);
    } else {
        rcpt_log_error("folds",
                       "folds: topic %s partition %d ends at %lld, but %lld was folded already: it "
                       "was made anew; HINT: delete its rows from fold_progress to begin again",
                       topic, number, (long long)high, (long long)wanted);
    }
}

static void look_at_rewind(struct folds_reader *reader, struct folds_partition *partition)
{
    if (partition->rewound_from == 0 ||
        app_now(reader->folds->context) - partition->rewound_at_ms < REWIND_MS)
        return;
    if (partition->rewinds++ > 0)
        partition->rewound_from = 0; /* a real gap: nothing below is there any more */
    partition->rewound_at_ms = app_now(reader->folds->context);
    rcpt_kafka_reassign(reader->kafka, partition->topic, partition->number, partition->read);
}

void folds_positions_tick(struct folds_reader *reader)
{
    if (reader->state == READER_WAITING && reader->partition_count > 0 &&
        app_now(reader->folds->context) >= reader->retry_at_ms)
        folds_positions_read(reader);
    for (size_t index = 0; index < reader->partition_count; index++)
        look_at_rewind(reader, &reader->partitions[index]);
}

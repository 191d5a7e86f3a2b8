/* Where a reader of topics stands. The positions in PostgreSQL count; partitions that have none yet
 * begin at the low watermark. One question is under way at a time, and its answer carries the
 * serial of the assignment or resync. Called by reader.c and batch.c. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"
#include "receiptd/base/log.h"

#define RETRY_MS  1000
#define REWIND_MS 10000

static int64_t now_of(const struct topics_reader *reader)
{
    return host_now(reader->settings.context);
}

/* ---- partitions ---- */

static int by_place(const void *left, const void *right)
{
    const struct topics_partition *one = left, *other = right;
    int order = strcmp(one->topic, other->topic);
    return order != 0 ? order : (one->number > other->number) - (one->number < other->number);
}

static void end_standstill(const struct topics_reader *reader, struct topics_partition *partition)
{
    if (partition->stands_still)
        host_go_on(reader->settings.context);
    partition->stands_still = false;
}

/* Answers and records for the partitions before are void. */
void topics_positions_forget(struct topics_reader *reader)
{
    reader->settings.forget(reader->settings.owner);
    reader->serial++;
    reader->assigned = false;
    for (size_t index = 0; index < reader->partition_count; index++) {
        end_standstill(reader, &reader->partitions[index]);
        free(reader->partitions[index].topic);
    }
    free(reader->partitions);
    reader->partitions = NULL;
    reader->partition_count = 0;
}

void topics_positions_set(struct topics_reader *reader,
                          const struct rcpt_kafka_partition *partitions, size_t count)
{
    topics_positions_forget(reader);
    reader->partitions = rcpt_calloc(count + 1, sizeof(*reader->partitions));
    for (size_t index = 0; index < count; index++)
        reader->partitions[index] = (struct topics_partition){
            .topic = rcpt_strdup(partitions[index].topic), .number = partitions[index].partition};
    reader->partition_count = count;
    qsort(reader->partitions, count, sizeof(*reader->partitions), by_place);
}

/* A batch in flight may fail after the owner has left: the next one reads the positions then. */
void topics_positions_resync(struct topics_reader *reader)
{
    reader->settings.forget(reader->settings.owner);
    reader->serial++;
    for (size_t index = 0; index < reader->partition_count; index++)
        reader->partitions[index].read = reader->partitions[index].expected;
    if (reader->partition_count > 0 && reader->state != TOPICS_LEAVING &&
        reader->state != TOPICS_CLOSING)
        topics_positions_read(reader);
}

/* ---- questions ---- */

struct request {
    struct topics_reader *reader;
    uint64_t serial;
};

static struct request *request_new(struct topics_reader *reader)
{
    struct request *request = rcpt_malloc(sizeof(*request));
    *request = (struct request){reader, reader->serial};
    return request;
}

/* The tick reads the positions again. */
static void retry_later(struct topics_reader *reader, const char *reason)
{
    reader->retry_at_ms = now_of(reader) + RETRY_MS;
    topics_set_state(reader, TOPICS_WAITING, reason);
}

/* Frees the request. NULL: its answer is void, or a failure that has been dealt with. */
static struct topics_reader *end_request(struct request *request_taken,
                                         const struct rcpt_error *error)
{
    struct topics_reader *reader = request_taken->reader;
    bool is_old = request_taken->serial != reader->serial || reader->state != TOPICS_READING;
    free(request_taken);
    if (is_old)
        return NULL;
    if (error == NULL)
        return reader;
    retry_later(reader, "positions cannot be read");
    rcpt_asker_failed(&reader->asker, &reader->positions_refused, "reading positions of topics",
                      error);
    return NULL;
}

/* The answer comes with a request that knows the serial of the question. */
static void ask(struct topics_reader *reader, const char *statement,
                struct rcpt_pg_encoder *encoder_taken, rcpt_pg_on_result on_result)
{
    struct rcpt_pg_query query = {.statement = statement};
    rcpt_pg_encoder_params(encoder_taken, &query.params);
    rcpt_pg_submit(reader->pg, &query, 1, on_result, request_new(reader));
    rcpt_pg_encoder_free(encoder_taken);
}

/* Another instance may have inserted other offsets first: reads them back. */
static void on_inserted(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct topics_reader *reader = end_request(context, error);
    (void)rows, (void)row_count;
    if (reader != NULL)
        topics_positions_read(reader);
}

/* The consumer answers also while PostgreSQL is away. */
static void on_lows(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                    const struct rcpt_error *error)
{
    struct topics_reader *reader = ((struct request *)context)->reader;
    struct rcpt_error down;
    if (error == NULL && !reader->up) {
        rcpt_error_set(&down, RCPT_DECISION_RETRY, "", "not connected");
        error = &down;
    }
    if (end_request(context, error) == NULL)
        return;
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    topics_batch_put(encoder, partitions, count);
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(encoder, partitions[index].offset);
    ask(reader, reader->settings.insert_positions, encoder, on_inserted);
}

/* The caller frees the array. */
static struct rcpt_kafka_partition *places_of(const struct topics_reader *reader)
{
    struct rcpt_kafka_partition *places = rcpt_calloc(reader->partition_count + 1, sizeof(*places));
    for (size_t index = 0; index < reader->partition_count; index++)
        places[index] = (struct rcpt_kafka_partition){reader->partitions[index].topic,
                                                      reader->partitions[index].number,
                                                      reader->partitions[index].expected};
    return places;
}

/* Asks for the low watermarks of partitions without a row. False: each has one. */
static bool query_lows(struct topics_reader *reader, const struct rcpt_pg_rows *rows)
{
    struct rcpt_kafka_partition *places = places_of(reader);
    size_t count = 0;
    for (size_t index = 0; index < reader->partition_count; index++)
        if (rcpt_pg_rows_text(rows, index, 0) == NULL)
            places[count++] = places[index];
    if (count > 0)
        rcpt_kafka_query_low(reader->kafka, places, count, on_lows, request_new(reader));
    free(places);
    return count > 0;
}

/* The consumer has delivered records above the position that were dropped, or that the database
 * lost when it went back. So it has to deliver them again. `rewound_from` drops records that the
 * earlier fetch still delivers. */
static void start_at(struct topics_reader *reader, struct topics_partition *partition,
                     int64_t offset)
{
    partition->expected = partition->read = partition->sent = offset;
    if (!reader->assigned || offset >= partition->delivered)
        return;
    partition->rewound_from = partition->delivered;
    partition->rewound_at_ms = now_of(reader);
    partition->rewinds = 0;
    rcpt_kafka_reassign(reader->kafka, partition->topic, partition->number, offset);
}

/* Answers on_assigned, once per assignment. */
void topics_positions_assign(struct topics_reader *reader)
{
    struct rcpt_kafka_partition *places = places_of(reader);
    void **tags = rcpt_calloc(reader->partition_count + 1, sizeof(*tags));
    for (size_t index = 0; index < reader->partition_count; index++) {
        tags[index] = &reader->partitions[index];
        reader->partitions[index].delivered = reader->partitions[index].expected;
    }
    reader->assigned = true;
    rcpt_kafka_assign(reader->kafka, places, tags, reader->partition_count);
    free(places);
    free(tags);
}

/* The first answer of an assignment assigns, a later one rewinds the partitions that have to be
 * read again. */
static void on_positions(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                         const struct rcpt_error *error)
{
    struct topics_reader *reader = end_request(context, error);
    if (reader == NULL)
        return;
    RCPT_ASSERT(row_count == 1 && rcpt_pg_rows_count(rows[0]) == reader->partition_count);
    if (query_lows(reader, rows[0]))
        return;
    for (size_t index = 0; index < reader->partition_count; index++)
        start_at(reader, &reader->partitions[index], rcpt_pg_rows_int(rows[0], index, 0));
    topics_set_state(reader, TOPICS_READY, "positions are read");
    rcpt_outage_end(&reader->asker.outage, &reader->positions_refused, now_of(reader),
                    reader->settings.name, "positions of topics are read again");
    if (!reader->assigned)
        topics_positions_assign(reader);
    topics_batch_continue(reader);
}

/* A transaction in flight may move the positions: they are read after it. */
void topics_positions_read(struct topics_reader *reader)
{
    topics_set_state(reader, TOPICS_READING, "positions have to be read");
    reader->read_after_flight = reader->in_flight;
    if (reader->in_flight)
        return;
    if (!reader->up || !rcpt_pg_is_ready(reader->pg) || !reader->settings.context->recalled) {
        retry_later(reader, "not connected, or Kafka has not been asked which server it was");
        return;
    }
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_kafka_partition *places = places_of(reader);
    topics_batch_put(encoder, places, reader->partition_count);
    free(places);
    ask(reader, reader->settings.read_positions, encoder, on_positions);
}

/* ---- records that are gone ---- */

/* Below the log: goes on behind the gap. Above it: stands still until an operator decides. */
void topics_positions_on_out_of_range(void *context, void *tag, const char *topic, int32_t number,
                                      int64_t offset, int64_t low, int64_t high)
{
    struct topics_reader *reader = context;
    struct topics_partition *partition = tag;
    struct rcpt_error error;
    if (low < 0 || (offset >= low && offset <= high)) {
        rcpt_kafka_reassign(reader->kafka, topic, number, offset);
    } else if (offset < low) {
        rcpt_log_error(reader->settings.name,
                       "%s: topic %s partition %d: retention has deleted records %lld…%lld before "
                       "they were read, going on behind them",
                       reader->settings.name, topic, number, (long long)offset, (long long)low - 1);
        partition->read = partition->delivered = low;
        partition->rewound_from = 0;
        rcpt_kafka_reassign(reader->kafka, topic, number, low);
        topics_batch_send(reader);
    } else if (!partition->stands_still) {
        partition->stands_still = true;
        rcpt_error_fatal(
            &error, EX_DATAERR,
            "%s: topic %s partition %d ends at %lld, but %lld was read already: it was "
            "truncated, or deleted and created again",
            reader->settings.name, topic, number, (long long)high, (long long)offset);
        rcpt_error_hint(&error,
                        "receiptd positions set %.100s %d beginning --reader %s, if it was created "
                        "again",
                        topic, number, reader->settings.name);
        host_halt(reader->settings.context, &error);
    }
}

/* A rewind that brought no record is done once more; then nothing below is left in the log. */
static void check_rewind(struct topics_reader *reader, struct topics_partition *partition)
{
    if (partition->rewound_from == 0 || now_of(reader) - partition->rewound_at_ms < REWIND_MS)
        return;
    if (partition->rewinds++ > 0)
        partition->rewound_from = 0;
    partition->rewound_at_ms = now_of(reader);
    rcpt_kafka_reassign(reader->kafka, partition->topic, partition->number, partition->read);
}

/* An operator has set the position of a partition that stands still: all are read again. */
static void go_on_where_set(struct topics_reader *reader)
{
    struct host_place place;
    bool is_set = false;
    for (size_t index = 0; index < reader->partition_count; index++) {
        struct topics_partition *partition = &reader->partitions[index];
        if (!partition->stands_still || reader->state != TOPICS_READY ||
            !host_places_find(reader->places, partition->topic, partition->number, &place) ||
            place.position < 0 || place.position == partition->expected)
            continue;
        is_set = true;
        end_standstill(reader, partition);
    }
    if (is_set)
        topics_positions_resync(reader);
}

void topics_positions_tick(struct topics_reader *reader)
{
    go_on_where_set(reader);
    if (reader->state == TOPICS_WAITING && reader->partition_count > 0 &&
        now_of(reader) >= reader->retry_at_ms)
        topics_positions_read(reader);
    for (size_t index = 0; index < reader->partition_count; index++)
        check_rewind(reader, &reader->partitions[index]);
}

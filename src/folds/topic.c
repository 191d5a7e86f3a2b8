/* Events of topics into fold_event: a consumer with a group of its own, whose positions move in the
 * transaction that appends what was read. One transaction at a time; what arrives meanwhile is
 * folded in memory and is the next one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define BATCH_EVENTS 500000u /* folded in memory before nothing more is taken in */
#define BATCH_BYTES  (8u * 1024 * 1024)
/* From one transaction to the next: what comes often is folded in memory, where it costs least. */
#define LINGER_MS      200
#define COMMIT_MS      5000
#define LOG_LETTERS_MS 10000

/* ---- what comes in ---- */

static bool is_full(const struct folds_reader *reader)
{
    return reader->events >= BATCH_EVENTS ||
           rcpt_fold_collector_bytes(reader->collector) + reader->letters.bytes >= BATCH_BYTES;
}

bool folds_topic_wants(void *context, const char *topic, int32_t number, void *tag)
{
    struct folds_reader *reader = context;
    (void)topic;
    (void)number;
    (void)tag;
    bool wanted = reader->state == READER_READY && !reader->leaving &&
                  reader->folds->rules_stored && reader->up && !is_full(reader);
    reader->starved |= !wanted;
    return wanted;
}

/* No bytes of the event: they may be personal. */
static void refuse(struct folds_reader *reader, const struct rcpt_kafka_message *message,
                   const struct rcpt_fold_refusal *refusal)
{
    int64_t now = app_now(reader->folds->context);
    folds_letters_add(&reader->letters, message, refusal);
    rcpt_metrics_add(reader->folds->context->metrics, RCPT_METRIC_FOLD_SKIPPED,
                     RCPT_LABELS(message->topic), 1);
    if (now < reader->log_at_ms)
        return;
    reader->log_at_ms = now + LOG_LETTERS_MS;
    rcpt_log_warn("folds",
                  "folds: topic %s partition %d offset %lld is a dead letter: %s%s%s; others are "
                  "counted only, HINT: receiptd dead-letters",
                  message->topic, message->partition, (long long)message->offset,
                  rcpt_reject_name(refusal->reason), refusal->detail[0] != '\0' ? ", " : "",
                  refusal->detail);
}

/* After a rewind nothing counts as read until something below the old position came: a fetch that
 * was under way may still deliver. */
static bool is_stale(struct folds_partition *partition, int64_t offset)
{
    if (partition->rewound_from > 0 && offset >= partition->rewound_from)
        return true;
    partition->rewound_from = 0;
    return offset < partition->read;
}

void folds_topic_on_message(void *context, void *tag, const struct rcpt_kafka_message *message)
{
    struct folds_reader *reader = context;
    struct folds_partition *partition = tag;
    struct rcpt_fold_refusal refusal;
    partition->delivered = message->offset + 1;
    if (reader->state != READER_READY || is_stale(partition, message->offset))
        return;
    struct rcpt_fold_event event = {.topic = message->topic,
                                    .value = message->value,
                                    .size = message->value_size,
                                    .traceparent = message->traceparent,
                                    .traceparent_size = message->traceparent_size};
    if (message->unreadable != NULL) {
        refusal.reason = RCPT_REJECT_RECORD_TOO_LARGE;
        snprintf(refusal.detail, sizeof(refusal.detail), "%s", message->unreadable);
        refuse(reader, message, &refusal);
    } else if (!rcpt_fold_collector_add(reader->collector, &event, &refusal))
        refuse(reader, message, &refusal);
    partition->read = message->offset + 1;
    reader->events++;
}

void folds_topic_on_round(void *context)
{
    folds_topic_append(context);
}

/* ---- the transaction ---- */

static void put_group(void *context, const struct rcpt_fold_group *group)
{
    struct folds_reader *reader = context;
    size_t sizes[] = {strlen(group->rule), strlen(group->key), strlen(group->part)};
    const char *texts[] = {group->rule, group->key, group->part};
    for (size_t index = 0; index < 3; index++) {
        fwrite(texts[index], 1, sizes[index], reader->out[index].stream);
        reader->out[index].ends[reader->out_count] =
            sizes[index] +
            (reader->out_count > 0 ? reader->out[index].ends[reader->out_count - 1] : 0);
    }
    reader->counts[reader->out_count++] = (int64_t)group->events;
}

static void put_column(struct rcpt_pg_encoder *encoder, const char *text, const size_t *ends,
                       size_t count)
{
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t index = 0, from = 0; index < count; from = ends[index++])
        rcpt_pg_put_bytes(encoder, text + from, ends[index] - from);
}

/* The columns of all groups come row by row, the arrays want them one after the other. */
static void encode_groups(struct folds_reader *reader, struct rcpt_pg_encoder *encoder)
{
    size_t count = rcpt_fold_collector_groups(reader->collector);
    char *texts[3];
    size_t sizes[3];
    reader->out_count = 0;
    reader->counts = rcpt_calloc(count + 1, sizeof(*reader->counts));
    for (size_t index = 0; index < 3; index++) {
        reader->out[index].stream = open_memstream(&texts[index], &sizes[index]);
        reader->out[index].ends = rcpt_calloc(count + 1, sizeof(size_t));
        RCPT_ASSERT(reader->out[index].stream != NULL);
    }
    rcpt_fold_collector_each(reader->collector, put_group, reader);
    for (size_t index = 0; index < 3; index++) {
        RCPT_ASSERT(fclose(reader->out[index].stream) == 0);
        put_column(encoder, texts[index], reader->out[index].ends, count);
        free(reader->out[index].ends);
        free(texts[index]);
    }
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(encoder, reader->counts[index]);
    free(reader->counts);
}

static size_t moved(const struct folds_reader *reader)
{
    size_t count = 0;
    for (size_t index = 0; index < reader->partition_count; index++)
        count += reader->partitions[index].read > reader->partitions[index].expected;
    return count;
}

static bool is_moved(const struct folds_partition *partition)
{
    return partition->read > partition->expected;
}

/* Partitions are kept sorted, so that rows are locked in one order. */
static void encode_moves(struct folds_reader *reader, struct rcpt_pg_encoder *encoder, size_t count)
{
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t index = 0; index < reader->partition_count; index++)
        if (is_moved(&reader->partitions[index]))
            rcpt_pg_put_bytes(encoder, reader->partitions[index].topic,
                              strlen(reader->partitions[index].topic));
    rcpt_pg_begin_int4_array(encoder, count);
    for (size_t index = 0; index < reader->partition_count; index++)
        if (is_moved(&reader->partitions[index]))
            rcpt_pg_put_int4(encoder, reader->partitions[index].number);
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < reader->partition_count; index++)
        if (is_moved(&reader->partitions[index]))
            rcpt_pg_put_int8(encoder, reader->partitions[index].expected);
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < reader->partition_count; index++)
        if (is_moved(&reader->partitions[index]))
            rcpt_pg_put_int8(encoder, reader->partitions[index].read);
}

static void commit(struct folds_reader *reader)
{
    int64_t now = app_now(reader->folds->context);
    if (now < reader->commit_at_ms || reader->partition_count == 0)
        return;
    reader->commit_at_ms = now + COMMIT_MS;
    struct rcpt_kafka_partition *places = rcpt_calloc(reader->partition_count, sizeof(*places));
    for (size_t index = 0; index < reader->partition_count; index++)
        places[index] = (struct rcpt_kafka_partition){.topic = reader->partitions[index].topic,
                                                      .partition = reader->partitions[index].number,
                                                      .offset = reader->partitions[index].expected};
    rcpt_kafka_commit(reader->kafka, places, reader->partition_count);
    free(places);
}

void folds_topic_continue(struct folds_reader *reader)
{
    if (!reader->starved || reader->kafka == NULL)
        return;
    reader->starved = false;
    rcpt_kafka_kick(reader->kafka);
}

static void on_sent(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct folds_reader *reader = context;
    (void)rows;
    (void)row_count;
    reader->flying = false;
    if (reader->flight_serial != reader->serial) {
        if (reader->state == READER_READING && reader->read_after_flight)
            folds_positions_read(reader);
        return;
    }
    if (error != NULL) { /* whether it was committed or not, the positions say it */
        if (strcmp(error->code, RCPT_SQLSTATE_FENCED) != 0 && error->code[0] != '\0')
            rcpt_log_warn("folds", "folds: appending events failed, reading them again: %s (%s)",
                          error->text, error->code);
        folds_positions_resync(reader);
        if (error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
            rcpt_pg_reconnect(reader->pg, error);
        return;
    }
    for (size_t index = 0; index < reader->partition_count; index++)
        reader->partitions[index].expected = reader->partitions[index].sent;
    commit(reader);
    folds_topic_append(reader);
    folds_topic_continue(reader);
}

void folds_topic_forget(struct folds_reader *reader)
{
    rcpt_fold_collector_reset(reader->collector);
    folds_letters_reset(&reader->letters);
    reader->events = 0;
}

/* What was read becomes the batch in flight; what comes from now on is the next one. */
static void note_sent(struct folds_reader *reader)
{
    for (size_t index = 0; index < reader->partition_count; index++)
        reader->partitions[index].sent = reader->partitions[index].read;
    folds_topic_forget(reader);
    reader->sent_at_ms = app_now(reader->folds->context);
    reader->flying = true;
    reader->flight_serial = reader->serial;
}

static bool can_append(const struct folds_reader *reader)
{
    return !reader->flying && reader->state == READER_READY && reader->up &&
           rcpt_pg_is_ready(reader->pg) && reader->folds->rules_stored &&
           (is_full(reader) || app_now(reader->folds->context) >= reader->sent_at_ms + LINGER_MS);
}

/* Positions, groups, dead letters: all of them or none. */
void folds_topic_append(struct folds_reader *reader)
{
    size_t moves = moved(reader), count = 1;
    if (moves == 0 || !can_append(reader))
        return;
    struct rcpt_pg_encoder *encoders[] = {rcpt_pg_encoder_new(), rcpt_pg_encoder_new(),
                                          rcpt_pg_encoder_new()};
    struct rcpt_pg_query queries[3] = {{.statement = "move"}};
    encode_moves(reader, encoders[0], moves);
    rcpt_pg_encoder_params(encoders[0], &queries[0].params);
    if (rcpt_fold_collector_groups(reader->collector) > 0) {
        encode_groups(reader, encoders[1]);
        queries[count].statement = "append";
        rcpt_pg_encoder_params(encoders[1], &queries[count++].params);
    }
    if (reader->letters.count > 0) {
        folds_letters_encode(&reader->letters, encoders[2]);
        queries[count].statement = "letters";
        rcpt_pg_encoder_params(encoders[2], &queries[count++].params);
    }
    note_sent(reader);
    rcpt_pg_submit(reader->pg, queries, count, on_sent, reader);
    for (size_t index = 0; index < 3; index++)
        rcpt_pg_encoder_free(encoders[index]);
}

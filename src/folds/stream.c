/* The status stream: rows of stream_event as publications of the last shard. One row of the outbox
 * stands for a whole row of transitions, so the mark of Kafka moves behind whole rows. Called by
 * shard.c, which has the states, and by folds.c. docs/stream.md.
 */
#include <stdlib.h>

#include "columns.h"
#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/postgres/sql.h"
#include "stream_records.h"

#define MOST_BYTES    (256 * 1024) /* of ids and columns of one transaction: some 6 000 records */
#define LAG_MS        2000
#define PAUSE_FACTOR  5
#define MOST_PAUSE_MS 2000
#define PAUSE_MS      100 /* until the next transaction, while less than a whole one waits */

/* ---- claiming ---- */

void folds_stream_encode_claim(const struct folds_shard *shard, struct rcpt_pg_encoder *encoder)
{
    rcpt_pg_add_int4(encoder, FOLDS_STREAM_ROWS);
    rcpt_pg_add_int8(encoder, MOST_BYTES);
    rcpt_pg_add_text(encoder, shard->folds->stream.topic);
    shard->folds->stream.begun_ms = host_now(shard->folds->context);
}

/* ---- publishing ---- */

/* Columns of sql/fold/stream_read. */
enum {
    READ_SEQ,
    READ_DESTINATION,
    READ_KIND,
    READ_SIZE,
    READ_IDS,
    READ_ORGS,
    READ_CAMPAIGNS,
    READ_OLD,
    READ_NEW,
    READ_FLAGS,
    READ_GAINED,
    READ_TIMES,
    READ_GATEWAYS,
    READ_REASONS,
    READ_COLUMNS,
    READ_TRACES
};
#define READ_COLUMNS_COUNT (READ_TRACES + 1)

static enum folds_stream_kind kind_of(const struct rcpt_pg_rows *rows, size_t row)
{
    const char *kind = rcpt_pg_rows_text(rows, row, READ_KIND);
    return kind[0] == 'c'   ? FOLDS_STREAM_CHANGE
           : kind[0] == 'r' ? FOLDS_STREAM_ROW
                            : FOLDS_STREAM_GONE;
}

/* Where the records of a transaction are made. */
struct making {
    struct folds_stream_form form;
    struct rcpt_arena arena;
    struct fold_text scratch;
    struct rcpt_transactor_record *records;
    size_t count;
};

/* The columns advance together. */
static void make_of_row(struct making *making, const struct rcpt_pg_rows *rows, size_t row)
{
    struct folds_column columns[READ_COLUMNS_COUNT];
    const char *topic = rcpt_pg_rows_text(rows, row, READ_DESTINATION);
    enum folds_stream_kind kind = kind_of(rows, row);
    for (int index = READ_IDS; index < READ_COLUMNS_COUNT; index++)
        columns[index] = column_of(rows, row, index);
#define TEXT(index) next_text(&columns[index], &making->arena)
    for (int64_t left = rcpt_pg_rows_int(rows, row, READ_SIZE); left > 0; left--) {
        struct folds_stream_entry entry = {.kind = kind,
                                           .id = TEXT(READ_IDS),
                                           .org = TEXT(READ_ORGS),
                                           .campaign = TEXT(READ_CAMPAIGNS),
                                           .old = (int16_t)next_number(&columns[READ_OLD]),
                                           .new = (int16_t)next_number(&columns[READ_NEW]),
                                           .flags = (uint32_t)next_number(&columns[READ_FLAGS]),
                                           .gained = (uint32_t)next_number(&columns[READ_GAINED]),
                                           .time = TEXT(READ_TIMES),
                                           .gateway = TEXT(READ_GATEWAYS),
                                           .reason = TEXT(READ_REASONS),
                                           .columns = TEXT(READ_COLUMNS),
                                           .trace = TEXT(READ_TRACES)};
        struct rcpt_transactor_record *record = &making->records[making->count++];
        record->topic = topic;
        folds_stream_record(&making->form, &entry, &making->arena, &making->scratch, record);
    }
#undef TEXT
}

/* The transactor copies the records. */
void folds_stream_publish(struct folds_shard *shard, const struct rcpt_pg_rows *rows, size_t count)
{
    struct folds_stream *stream = &shard->folds->stream;
    const struct rcpt_config *config = shard->folds->context->config;
    bool is_state = config->stream.mode == RCPT_STREAM_STATE;
    char source[80];
    snprintf(source, sizeof(source), "/receiptd/%s", config->postgres.schema);
    struct making making = {
        .form = {.ladder = config->ladder, .is_state = is_state, .source = source}};
    size_t records = 0;
    for (size_t row = 0; row < count; row++)
        records += (size_t)rcpt_pg_rows_int(rows, row, READ_SIZE);
    rcpt_arena_init(&making.arena, 1024 * 1024);
    making.records = rcpt_calloc(records, sizeof(*making.records));
    for (size_t row = 0; row < count; row++)
        make_of_row(&making, rows, row);
    stream->in_flight = records;
    rcpt_transactor_publish(shard->transactor, making.records, records, shard->next_mark);
    free(making.records);
    fold_text_free(&making.scratch);
    rcpt_arena_fini(&making.arena);
}

void folds_stream_published(struct folds_shard *shard, const struct rcpt_error *error)
{
    struct folds_stream *stream = &shard->folds->stream;
    struct rcpt_metrics *metrics = shard->folds->context->metrics;
    if (error == NULL) {
        stream->published += stream->in_flight;
        rcpt_metrics_add(metrics, RCPT_METRIC_STREAM_PUBLISHED, RCPT_NO_LABELS,
                         (double)stream->in_flight);
    } else {
        stream->refused++;
        rcpt_metrics_add(metrics, RCPT_METRIC_STREAM_REFUSED, RCPT_NO_LABELS, 1);
    }
}

/* Small transactions wait for each other: a transaction costs two commits and Kafka's own. While
 * this instance is behind with receipts, its lanes get five times the time of the last one. */
int64_t folds_stream_pause_ms(const struct folds_shard *shard)
{
    const struct app_folds *folds = shard->folds;
    int64_t pause = PAUSE_FACTOR * (host_now(folds->context) - folds->stream.begun_ms);
    if (!folds->stream.is_full)
        return PAUSE_MS;
    if (receipts_lag(folds->receipts) <= 0)
        return 0;
    return pause < MOST_PAUSE_MS ? pause : MOST_PAUSE_MS;
}

/* ---- figures ---- */

/* Columns of sql/fold/stream_lag. */
enum { LAG_SECONDS, LAG_UNKNOWN };

/* A name that the inbox lacks is logged once: a reload may name others. */
static void on_lag(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_folds *folds = context;
    const char *unknown = rcpt_pg_rows_text(rows, 0, LAG_UNKNOWN);
    folds->stream.lag_seconds = strtod(rcpt_pg_rows_text(rows, 0, LAG_SECONDS), NULL);
    rcpt_metrics_set(folds->context->metrics, RCPT_METRIC_STREAM_LAG, RCPT_NO_LABELS,
                     folds->stream.lag_seconds);
    if (unknown != NULL && !folds->stream.is_told)
        rcpt_log_error("folds",
                       "stream: the inbox has no such column: %s; it is null in every record; "
                       "HINT: add it to the table, or correct stream.columns",
                       unknown);
    folds->stream.is_told = true;
}

/* Every two seconds, on all instances: the table is the same for all. */
void folds_stream_tick(struct app_folds *folds)
{
    const struct rcpt_config *config = folds->context->config;
    if (folds->stream.topic == NULL)
        return;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&folds->stream.lag);
    if (encoder == NULL)
        return;
    rcpt_pg_begin_text_array(encoder, config->stream.columns_count);
    for (size_t index = 0; index < config->stream.columns_count; index++)
        rcpt_pg_put_bytes(encoder, config->stream.columns[index],
                          strlen(config->stream.columns[index]));
    rcpt_ask_send(&folds->stream.lag);
}

/* ---- the configuration ---- */

/* A stream that is switched off keeps its topic in this process: the rows that are there are still
 * published. */
void folds_stream_configure(struct app_folds *folds)
{
    struct folds_stream *stream = &folds->stream;
    const char *topic = folds->context->config->stream.topic;
    stream->is_told = false;
    if (topic == NULL)
        return;
    free(stream->topic);
    stream->topic = rcpt_strdup(topic);
}

void folds_stream_init(struct app_folds *folds)
{
    folds->stream.lag = (struct rcpt_ask){.asker = &folds->asker,
                                          .statement = "stream_lag",
                                          .what = "reading the lag of the stream",
                                          .context = folds,
                                          .on_answer = on_lag,
                                          .every_ms = LAG_MS};
    folds_stream_configure(folds);
}

void folds_stream_fini(struct app_folds *folds)
{
    free(folds->stream.topic);
}

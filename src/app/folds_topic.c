/* Events of topics into fold_event: a consumer with a group of its own, whose positions move in the
 * transaction that appends what was read. One transaction at a time; what arrives meanwhile is
 * folded in memory and is the next one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folds.h"

#define BATCH_EVENTS   500000u /* folded in memory before nothing more is taken in */
#define BATCH_BYTES    (8u * 1024 * 1024)
#define RETRY_MS       1000
#define REWIND_MS      10000
#define COMMIT_MS      5000
#define CLOSE_MS       5000
#define FETCH_BYTES    (16u * 1024 * 1024)
#define LOG_SKIPPED_MS 10000

static void read_positions(struct folds_reader *reader);
static void append(struct folds_reader *reader);

/* ---- partitions ---- */

static struct folds_partition *partition_of(void *tag)
{
    return tag;
}

static void forget_partitions(struct folds_reader *reader)
{
    for (size_t index = 0; index < reader->partition_count; index++)
        free(reader->partitions[index].topic);
    free(reader->partitions);
    reader->partitions = NULL;
    reader->partition_count = 0;
}

/* Everything in memory goes: it is read again from where the database says. */
static void discard(struct folds_reader *reader)
{
    rcpt_fold_collector_reset(reader->collector);
    reader->events = 0;
    for (size_t index = 0; index < reader->partition_count; index++)
        reader->partitions[index].read = reader->partitions[index].expected;
}

static void resync(struct folds_reader *reader)
{
    discard(reader);
    reader->serial++;
    if (reader->partition_count > 0)
        read_positions(reader);
}

/* ---- what comes in ---- */

static bool wants(void *context, const char *topic, int32_t number, void *tag)
{
    struct folds_reader *reader = context;
    (void)topic;
    (void)number;
    (void)tag;
    bool wanted = reader->state == READER_READY && !reader->leaving &&
                  reader->folds->rules_stored && reader->up && reader->events < BATCH_EVENTS &&
                  rcpt_fold_collector_bytes(reader->collector) < BATCH_BYTES;
    reader->starved |= !wanted;
    return wanted;
}

static void say_skipped(struct folds_reader *reader, const struct rcpt_kafka_message *message)
{
    int64_t now = app_now(reader->folds->app);
    rcpt_metrics_add(reader->folds->app->figures.metrics, RCPT_METRIC_FOLD_SKIPPED,
                     RCPT_LABELS(message->topic), 1);
    if (now < reader->log_at_ms)
        return;
    reader->log_at_ms = now + LOG_SKIPPED_MS;
    rcpt_log_warn(
        "app",
        "folds: topic %s partition %d offset %lld is no JSON object with the group key of "
        "every rule that it matches: skipped there, as others are counted only",
        message->topic, message->partition, (long long)message->offset);
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

static void on_message(void *context, void *tag, const struct rcpt_kafka_message *message)
{
    struct folds_reader *reader = context;
    struct folds_partition *partition = partition_of(tag);
    if (reader->state != READER_READY || is_stale(partition, message->offset))
        return;
    struct rcpt_fold_event event = {.topic = message->topic,
                                    .value = message->value,
                                    .size = message->value_size,
                                    .traceparent = message->traceparent,
                                    .traceparent_size = message->traceparent_size};
    if (!rcpt_fold_collector_add(reader->collector, &event))
        say_skipped(reader, message);
    partition->read = message->offset + 1;
    reader->events++;
}

static void on_round(void *context)
{
    append(context);
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
    int64_t now = app_now(reader->folds->app);
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

static void continue_reading(struct folds_reader *reader)
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
            read_positions(reader);
        return;
    }
    if (error != NULL) { /* whether it was committed or not, the positions say it */
        if (strcmp(error->code, "RD001") != 0 && error->code[0] != '\0')
            rcpt_log_warn("app", "folds: appending events failed, reading them again: %s (%s)",
                          error->text, error->code);
        resync(reader);
        if (error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
            rcpt_pg_reconnect(reader->pg, error);
        return;
    }
    for (size_t index = 0; index < reader->partition_count; index++)
        reader->partitions[index].expected = reader->partitions[index].sent;
    commit(reader);
    append(reader);
    continue_reading(reader);
}

/* What was read becomes the batch in flight; what comes from now on is the next one. */
static void note_sent(struct folds_reader *reader)
{
    for (size_t index = 0; index < reader->partition_count; index++)
        reader->partitions[index].sent = reader->partitions[index].read;
    rcpt_fold_collector_reset(reader->collector);
    reader->events = 0;
    reader->flying = true;
    reader->flight_serial = reader->serial;
}

static void append(struct folds_reader *reader)
{
    size_t count = moved(reader);
    if (reader->flying || reader->state != READER_READY || count == 0 || !reader->up ||
        !rcpt_pg_is_ready(reader->pg) || !reader->folds->rules_stored)
        return;
    struct rcpt_pg_encoder *moves = rcpt_pg_encoder_new(), *groups = rcpt_pg_encoder_new();
    struct rcpt_pg_query queries[] = {{.statement = "move"}, {.statement = "append"}};
    encode_moves(reader, moves, count);
    rcpt_pg_encoder_params(moves, &queries[0].params);
    bool any = rcpt_fold_collector_groups(reader->collector) > 0;
    if (any) {
        encode_groups(reader, groups);
        rcpt_pg_encoder_params(groups, &queries[1].params);
    }
    note_sent(reader);
    rcpt_pg_submit(reader->pg, queries, any ? 2 : 1, on_sent, reader);
    rcpt_pg_encoder_free(moves);
    rcpt_pg_encoder_free(groups);
}

/* ---- positions ---- */

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
    reader->retry_at_ms = app_now(reader->folds->app) + RETRY_MS;
    reader->state = READER_WAITING;
    if (error->code[0] != '\0')
        rcpt_log_warn("app", "folds: positions of topics are not to be had yet: %s (%s)",
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
        read_positions(request.reader);
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

static void start_at(struct folds_reader *reader, struct folds_partition *partition, int64_t offset)
{
    int64_t before = partition->fetched ? partition->read : 0;
    partition->expected = partition->read = partition->sent = offset;
    if (partition->fetched && offset < before) {
        partition->rewound_from = before;
        partition->rewound_at_ms = app_now(reader->folds->app);
        partition->rewinds = 0;
        rcpt_kafka_reassign(reader->kafka, partition->topic, partition->number, offset);
    }
}

static void assign(struct folds_reader *reader)
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
        assign(reader);
    reader->assigned = true;
    continue_reading(reader);
}

static void read_positions(struct folds_reader *reader)
{
    struct rcpt_pg_encoder *encoder = reader->encoder;
    struct rcpt_pg_query query = {.statement = "positions"};
    reader->state = READER_READING;
    reader->read_after_flight = reader->flying; /* what it moves has to be seen */
    if (reader->flying)
        return;
    if (!reader->up || !rcpt_pg_is_ready(reader->pg)) {
        reader->state = READER_WAITING;
        reader->retry_at_ms = app_now(reader->folds->app) + RETRY_MS;
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

/* ---- the group ---- */

static int by_place(const void *left, const void *right)
{
    const struct folds_partition *one = left, *other = right;
    int order = strcmp(one->topic, other->topic);
    return order != 0 ? order : (one->number > other->number) - (one->number < other->number);
}

static void on_assigned(void *context, const struct rcpt_kafka_partition *partitions, size_t count)
{
    struct folds_reader *reader = context;
    forget_partitions(reader);
    reader->partitions = rcpt_calloc(count + 1, sizeof(*reader->partitions));
    for (size_t index = 0; index < count; index++)
        reader->partitions[index] = (struct folds_partition){
            .topic = rcpt_strdup(partitions[index].topic), .number = partitions[index].partition};
    reader->partition_count = count;
    qsort(reader->partitions, count, sizeof(*reader->partitions), by_place);
    rcpt_log_info("kafka", "folds: assigned %zu partitions", count);
    reader->assigned = false;
    discard(reader);
    reader->serial++;
    if (count > 0) {
        read_positions(reader);
        return;
    }
    assign(reader);
    reader->assigned = true;
    reader->state = READER_READY;
}

/* Eager groups give up all at once. */
static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct folds_reader *reader = context;
    (void)partitions;
    rcpt_log_info("kafka", "folds: %s %zu partitions", lost ? "lost" : "revoked", count);
    reader->serial++;
    rcpt_fold_collector_reset(reader->collector);
    reader->events = 0;
    forget_partitions(reader);
    reader->state = READER_WAITING;
    reader->retry_at_ms = 0;
}

static void on_out_of_range(void *context, void *tag, const char *topic, int32_t number,
                            int64_t wanted, int64_t low, int64_t high)
{
    struct folds_reader *reader = context;
    struct folds_partition *partition = partition_of(tag);
    if (low < 0 || (wanted >= low && wanted <= high)) {
        rcpt_kafka_reassign(reader->kafka, topic, number, wanted);
    } else if (wanted < low) {
        rcpt_log_error("kafka",
                       "folds: topic %s partition %d: retention has deleted records %lld…%lld "
                       "before they were folded, going on behind them",
                       topic, number, (long long)wanted, (long long)low - 1);
        partition->read = low;
        partition->rewound_from = 0;
        rcpt_kafka_reassign(reader->kafka, topic, number, low);
        append(reader);
    } else {
        rcpt_log_error("kafka",
                       "folds: topic %s partition %d ends at %lld, but %lld was folded already: it "
                       "was made anew; HINT: delete its rows from fold_progress to begin again",
                       topic, number, (long long)high, (long long)wanted);
    }
}

static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct folds_reader *reader = context;
    (void)cluster_id;
    for (size_t index = 0; index < count; index++)
        if (topics[index].partition_count == 0)
            rcpt_log_warn("kafka", "folds: there is no topic %s yet", topics[index].topic);
    if (reader->subscribed || reader->leaving)
        return;
    reader->subscribed = true;
    rcpt_kafka_subscribe(reader->kafka);
}

static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct folds_reader *reader = context;
    if (!healthy && error->decision == RCPT_DECISION_FATAL)
        app_fail(reader->folds->app, error);
}

/* ---- life ---- */

static void on_closed(void *context)
{
    struct folds_reader *reader = context;
    struct app_folds *folds = reader->folds;
    reader->kafka = NULL;
    forget_partitions(reader);
    rcpt_fold_collector_free(reader->collector);
    rcpt_arena_fini(&reader->arena);
    reader->collector = NULL;
    reader->leaving = reader->subscribed = reader->assigned = reader->closing = false;
    reader->serial++;
    if (folds->stopping)
        app_check_drain(folds->app);
    else
        folds_reader_start(reader);
}

static void add_topic(struct folds_reader *reader, const char *topic)
{
    for (size_t index = 0; index < reader->topic_count; index++)
        if (strcmp(reader->topics[index], topic) == 0)
            return;
    reader->topics[reader->topic_count++] = topic;
}

/* Rules and topics of the configuration, copied: a reload exchanges it under us. */
static size_t copy_rules(struct folds_reader *reader)
{
    const struct rcpt_config *config = reader->folds->app->config;
    size_t count = 0;
    rcpt_arena_init(&reader->arena, 4096);
    struct rcpt_fold_spec *specs =
        rcpt_arena_alloc(&reader->arena, (config->folds_count + 1) * sizeof(*specs));
    reader->topics =
        rcpt_arena_alloc(&reader->arena, (config->folds_count + 1) * sizeof(*reader->topics));
    reader->topic_count = 0;
    for (size_t index = 0; index < config->folds_count; index++) {
        if (config->folds[index].source != RCPT_FOLD_TOPIC)
            continue;
        specs[count] = folds_spec(&config->folds[index], &reader->arena);
        add_topic(reader, specs[count++].topic);
    }
    reader->collector = rcpt_fold_collector_new(specs, count);
    return count;
}

static bool open_consumer(struct folds_reader *reader, struct rcpt_error *error)
{
    struct app *app = reader->folds->app;
    const struct rcpt_config *config = app->config;
    struct rcpt_kafka_property *properties =
        rcpt_calloc(config->kafka.properties_count + 1, sizeof(*properties));
    char group[300];
    for (unsigned index = 0; index < config->kafka.properties_count; index++)
        properties[index] = (struct rcpt_kafka_property){config->kafka.properties[index].name,
                                                         config->kafka.properties[index].value};
    snprintf(group, sizeof(group), "%.250s-folds", config->kafka.group);
    struct rcpt_kafka_settings settings = {
        .loop = &app->loop,
        .brokers = config->kafka.brokers,
        .group = group,
        .instance_id = config->kafka.instance_id,
        .topics = reader->topics,
        .topic_count = reader->topic_count,
        .properties = properties,
        .property_count = config->kafka.properties_count,
        .fetch_budget_bytes = FETCH_BYTES,
        .commit_interval_ms = COMMIT_MS,
        .callbacks = {.context = reader,
                      .on_cluster = on_cluster,
                      .on_assigned = on_assigned,
                      .on_revoked = on_revoked,
                      .wants = wants,
                      .on_message = on_message,
                      .on_round = on_round,
                      .on_out_of_range = on_out_of_range,
                      .on_health = on_health,
                      .on_closed = on_closed},
    };
    reader->kafka = rcpt_kafka_new(&settings, error);
    free(properties);
    return reader->kafka != NULL;
}

void folds_reader_start(struct folds_reader *reader)
{
    struct rcpt_error error;
    reader->state = READER_WAITING;
    if (copy_rules(reader) > 0 && open_consumer(reader, &error))
        return;
    bool failed = reader->topic_count > 0;
    rcpt_fold_collector_free(reader->collector);
    reader->collector = NULL;
    rcpt_arena_fini(&reader->arena);
    if (failed)
        app_fail(reader->folds->app, &error);
}

static void leave_if_settled(struct folds_reader *reader)
{
    if (!reader->leaving || reader->flying || reader->kafka == NULL || reader->closing)
        return;
    reader->closing = true;
    rcpt_kafka_close(reader->kafka, CLOSE_MS);
}

void folds_reader_stop(struct folds_reader *reader)
{
    reader->leaving = true;
    if (reader->kafka != NULL)
        rcpt_kafka_stop_polling(reader->kafka);
    leave_if_settled(reader);
}

/* The rules may be others: what is in memory is read again under them. */
void folds_reader_reload(struct folds_reader *reader)
{
    if (reader->kafka != NULL)
        folds_reader_stop(reader);
    else
        folds_reader_start(reader);
}

bool folds_reader_is_settled(const struct folds_reader *reader)
{
    return reader->kafka == NULL;
}

void folds_reader_up(struct folds_reader *reader)
{
    if (reader->kafka != NULL && reader->partition_count > 0)
        resync(reader); /* the database may have gone back */
}

static void look_at_rewind(struct folds_reader *reader, struct folds_partition *partition)
{
    if (partition->rewound_from == 0 ||
        app_now(reader->folds->app) - partition->rewound_at_ms < REWIND_MS)
        return;
    if (partition->rewinds++ > 0)
        partition->rewound_from = 0; /* a real gap: nothing below is there any more */
    partition->rewound_at_ms = app_now(reader->folds->app);
    rcpt_kafka_reassign(reader->kafka, partition->topic, partition->number, partition->read);
}

void folds_reader_tick(struct folds_reader *reader)
{
    if (reader->kafka == NULL)
        return;
    leave_if_settled(reader);
    if (reader->leaving)
        return;
    if (reader->state == READER_WAITING && reader->partition_count > 0 &&
        app_now(reader->folds->app) >= reader->retry_at_ms)
        read_positions(reader);
    for (size_t index = 0; index < reader->partition_count; index++)
        look_at_rewind(reader, &reader->partitions[index]);
    append(reader);
    continue_reading(reader);
}

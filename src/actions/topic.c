/* Topics whose records begin runs: a consumer with a group of its own, whose positions move in the
 * transaction that makes the runs. Whatever goes wrong, the reader begins anew with a new consumer
 * at the positions of the database: so nothing that was fetched before can come late. Called by
 * actions.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "internal.h"

#define BATCH_RECORDS 1000u
#define BATCH_BYTES   (4u * 1024 * 1024)
#define FETCH_BYTES   (8u * 1024 * 1024)
#define ANEW_MS       1000
#define COMMIT_MS     5000
#define CLOSE_MS      5000

struct partition {
    char *topic;
    int32_t number;
    int64_t expected, sent,
        read; /* the database's; behind the batch in flight; behind what is in memory */
};

struct record {
    const struct partition *partition;
    int64_t offset;
    char *value; /* NULL: no UTF-8, or more than a record may have */
    size_t size;
};

struct actions_topic {
    struct app_actions *actions;
    struct rcpt_pg *pg; /* asynchronous commit: positions cover all that it writes */
    struct rcpt_pg_encoder *encoder, *letters;
    struct rcpt_kafka *kafka;
    struct partition *partitions; /* sorted by topic and number */
    size_t partition_count;
    struct record records[BATCH_RECORDS];
    size_t count, bytes;
    uint64_t serial; /* of the assignment: answers of an older one are ignored */
    uint64_t flight_serial, sent_ns;
    int64_t anew_at_ms, next_at_ms;
    bool up, ready, flying, subscribed, starved, kafka_closing, stopping, pg_closing;
    void (*on_stopped)(void *context);
};

struct request {
    struct actions_topic *topic;
    uint64_t serial;
};

static int64_t now_of(const struct actions_topic *topic)
{
    return app_now(topic->actions->context);
}

/* ---- what is in memory ---- */

static void forget_records(struct actions_topic *topic)
{
    for (size_t index = 0; index < topic->count; index++)
        free(topic->records[index].value);
    topic->count = topic->bytes = 0;
}

static void forget_partitions(struct actions_topic *topic)
{
    forget_records(topic);
    topic->serial++;
    topic->ready = false;
    for (size_t index = 0; index < topic->partition_count; index++)
        free(topic->partitions[index].topic);
    free(topic->partitions);
    topic->partitions = NULL;
    topic->partition_count = 0;
}

static void begin_anew(struct actions_topic *topic)
{
    topic->anew_at_ms = now_of(topic) + ANEW_MS;
    forget_records(topic);
    topic->serial++;
    topic->ready = false;
    if (topic->kafka == NULL || topic->kafka_closing)
        return;
    topic->kafka_closing = true;
    rcpt_kafka_close(topic->kafka, CLOSE_MS);
}

/* ---- the transaction ---- */

static bool has_moved(const struct partition *partition)
{
    return partition->read > partition->expected;
}

static size_t put_places(struct actions_topic *topic, struct rcpt_pg_encoder *encoder, bool all)
{
    size_t count = 0;
    for (size_t index = 0; index < topic->partition_count; index++)
        count += all || has_moved(&topic->partitions[index]);
    rcpt_pg_encoder_reset(encoder);
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t index = 0; index < topic->partition_count; index++)
        if (all || has_moved(&topic->partitions[index]))
            rcpt_pg_put_bytes(encoder, topic->partitions[index].topic,
                              strlen(topic->partitions[index].topic));
    rcpt_pg_begin_int4_array(encoder, count);
    for (size_t index = 0; index < topic->partition_count; index++)
        if (all || has_moved(&topic->partitions[index]))
            rcpt_pg_put_int4(encoder, topic->partitions[index].number);
    return count;
}

static void put_moves(struct actions_topic *topic, struct rcpt_pg_encoder *encoder)
{
    size_t count = put_places(topic, encoder, false);
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < topic->partition_count; index++)
        if (has_moved(&topic->partitions[index]))
            rcpt_pg_put_int8(encoder, topic->partitions[index].expected);
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t index = 0; index < topic->partition_count; index++)
        if (has_moved(&topic->partitions[index]))
            rcpt_pg_put_int8(encoder, topic->partitions[index].read);
}

static void put_record_places(const struct actions_topic *topic, struct rcpt_pg_encoder *encoder)
{
    const struct record *end = topic->records + topic->count;
    rcpt_pg_begin_text_array(encoder, topic->count);
    for (const struct record *record = topic->records; record < end; record++)
        rcpt_pg_put_bytes(encoder, record->partition->topic, strlen(record->partition->topic));
    rcpt_pg_begin_int4_array(encoder, topic->count);
    for (const struct record *record = topic->records; record < end; record++)
        rcpt_pg_put_int4(encoder, record->partition->number);
    rcpt_pg_begin_int8_array(encoder, topic->count);
    for (const struct record *record = topic->records; record < end; record++)
        rcpt_pg_put_int8(encoder, record->offset);
}

static void put_records(const struct actions_topic *topic, struct rcpt_pg_encoder *encoder)
{
    const struct record *end = topic->records + topic->count;
    put_record_places(topic, encoder);
    rcpt_pg_begin_text_array(encoder, topic->count);
    for (const struct record *record = topic->records; record < end; record++) {
        if (record->value == NULL)
            rcpt_pg_put_null(encoder);
        else
            rcpt_pg_put_bytes(encoder, record->value, record->size);
    }
}

/* A letter of one of them would be larger than letters are. */
static bool has_large(const struct actions_topic *topic)
{
    bool large = false;
    for (size_t index = 0; index < topic->count; index++)
        large |= topic->records[index].size > RCPT_RECORD_MAX_LETTER_BYTES;
    return large;
}

/* For those who look at lag. */
static void commit(struct actions_topic *topic)
{
    struct rcpt_kafka_partition *places = rcpt_calloc(topic->partition_count + 1, sizeof(*places));
    for (size_t index = 0; index < topic->partition_count; index++)
        places[index] = (struct rcpt_kafka_partition){.topic = topic->partitions[index].topic,
                                                      .partition = topic->partitions[index].number,
                                                      .offset = topic->partitions[index].expected};
    rcpt_kafka_commit(topic->kafka, places, topic->partition_count);
    free(places);
}

static void say_refused(const struct rcpt_pg_rows *rows)
{
    long long refused = (long long)rcpt_pg_rows_int(rows, 0, 1);
    if (refused > 0)
        rcpt_log_warn("actions",
                      "actions: %lld records that should begin runs are dead letters: they are no "
                      "JSON object with a subject",
                      refused);
}

/* Whether it was committed or not, when in doubt the positions say it. */
static void on_sent(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct actions_topic *topic = context;
    topic->flying = false;
    if (topic->flight_serial != topic->serial)
        return;
    if (error != NULL) {
        if (strcmp(error->code, RCPT_SQLSTATE_FENCED) != 0 && error->code[0] != '\0')
            rcpt_log_warn("actions", "actions: runs of topics failed, reading them again: %s (%s)",
                          error->text, error->code);
        begin_anew(topic);
        return;
    }
    RCPT_ASSERT(row_count >= 1 && rcpt_pg_rows_count(rows[0]) == 1);
    say_refused(rows[0]);
    for (size_t index = 0; index < topic->partition_count; index++)
        topic->partitions[index].expected = topic->partitions[index].sent;
    topic->next_at_ms = now_of(topic) + actions_begin_pause_ms(topic->actions, topic->sent_ns);
    commit(topic);
    if (rcpt_pg_rows_int(rows[0], 0, 0) > 0)
        actions_claim_soon(topic->actions);
    actions_topic_tick(topic);
}

static void send_some(struct actions_topic *topic)
{
    if (topic->flying || !topic->ready || !topic->up || !topic->actions->stored ||
        now_of(topic) < topic->next_at_ms || !rcpt_pg_is_ready(topic->pg))
        return;
    bool moved = false;
    for (size_t index = 0; index < topic->partition_count; index++)
        moved |= has_moved(&topic->partitions[index]);
    if (!moved)
        return;
    bool large = has_large(topic);
    put_moves(topic, topic->encoder);
    put_records(topic, topic->encoder);
    rcpt_pg_encoder_reset(topic->letters);
    put_record_places(topic, topic->letters);
    for (size_t index = 0; index < topic->partition_count; index++)
        topic->partitions[index].sent = topic->partitions[index].read;
    forget_records(topic);
    topic->flying = true;
    topic->flight_serial = topic->serial;
    topic->sent_ns = uv_hrtime();
    struct rcpt_pg_query queries[] = {{.statement = "topic"}, {.statement = "topic_letters"}};
    rcpt_pg_encoder_params(topic->encoder, &queries[0].params);
    rcpt_pg_encoder_params(topic->letters, &queries[1].params);
    rcpt_pg_submit(topic->pg, queries, large ? 2 : 1, on_sent, topic);
}

/* ---- what comes in ---- */

static bool wants(void *context, const char *name, int32_t number, void *tag)
{
    struct actions_topic *topic = context;
    (void)name, (void)number, (void)tag;
    bool wanted = topic->ready && topic->up && !topic->stopping && topic->count < BATCH_RECORDS &&
                  topic->bytes < BATCH_BYTES;
    topic->starved |= !wanted;
    return wanted;
}

static void on_message(void *context, void *tag, const struct rcpt_kafka_message *message)
{
    struct actions_topic *topic = context;
    struct partition *partition = tag;
    if (!topic->ready || message->offset < partition->read || topic->count == BATCH_RECORDS)
        return;
    partition->read = message->offset + 1;
    if (message->value == NULL && message->unreadable == NULL)
        return; /* a tombstone says nothing */
    const char *value = message->value;
    bool is_text = value != NULL && message->value_size <= RCPT_RECORD_MAX_BYTES &&
                   rcpt_utf8_is_text(value, message->value_size) &&
                   memchr(value, '\0', message->value_size) == NULL;
    topic->records[topic->count++] =
        (struct record){.partition = partition,
                        .offset = message->offset,
                        .value = is_text ? rcpt_strndup(value, message->value_size) : NULL,
                        .size = message->value_size};
    if (is_text)
        topic->bytes += message->value_size;
}

static void on_round(void *context)
{
    send_some(context);
}

/* ---- positions ---- */

static struct request *request_new(struct actions_topic *topic)
{
    struct request *request = rcpt_malloc(sizeof(*request));
    *request = (struct request){topic, topic->serial};
    return request;
}

/* Frees the request. True: nothing more to do. */
static bool is_over(struct request *request_taken, const struct rcpt_error *error)
{
    struct actions_topic *topic = request_taken->topic;
    bool old = request_taken->serial != topic->serial;
    free(request_taken);
    if (!old && error != NULL) {
        if (error->code[0] != '\0')
            rcpt_log_warn("actions", "actions: positions of topics are not to be had yet: %s (%s)",
                          error->text, error->code);
        begin_anew(topic);
    }
    return old || error != NULL;
}

static void read_positions(struct actions_topic *topic);

static void on_begun(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct actions_topic *topic = ((struct request *)context)->topic;
    (void)rows, (void)row_count;
    if (!is_over(context, error))
        read_positions(topic);
}

static void on_lows(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                    const struct rcpt_error *error)
{
    struct actions_topic *topic = ((struct request *)context)->topic;
    if (is_over(context, error))
        return;
    struct rcpt_pg_encoder *encoder = topic->encoder;
    struct rcpt_pg_query query = {.statement = "topic_begin"};
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
    rcpt_pg_encoder_params(encoder, &query.params);
    rcpt_pg_submit(topic->pg, &query, 1, on_begun, request_new(topic));
}

/* Those that were never read begin at the beginning of the log. */
static bool ask_for_lows(struct actions_topic *topic, const struct rcpt_pg_rows *rows)
{
    struct rcpt_kafka_partition *places = rcpt_calloc(topic->partition_count + 1, sizeof(*places));
    size_t count = 0;
    for (size_t index = 0; index < topic->partition_count; index++)
        if (rcpt_pg_rows_text(rows, index, 0) == NULL)
            places[count++] =
                (struct rcpt_kafka_partition){.topic = topic->partitions[index].topic,
                                              .partition = topic->partitions[index].number};
    if (count > 0)
        rcpt_kafka_query_low(topic->kafka, places, count, on_lows, request_new(topic));
    free(places);
    return count > 0;
}

static void assign(struct actions_topic *topic)
{
    size_t count = topic->partition_count;
    struct rcpt_kafka_partition *places = rcpt_calloc(count + 1, sizeof(*places));
    void **tags = rcpt_calloc(count + 1, sizeof(*tags));
    for (size_t index = 0; index < count; index++) {
        struct partition *partition = &topic->partitions[index];
        places[index] =
            (struct rcpt_kafka_partition){partition->topic, partition->number, partition->expected};
        tags[index] = partition;
    }
    topic->ready = true;
    rcpt_kafka_assign(topic->kafka, places, tags, count);
    free(places);
    free(tags);
}

static void on_positions(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                         const struct rcpt_error *error)
{
    struct actions_topic *topic = ((struct request *)context)->topic;
    if (is_over(context, error))
        return;
    RCPT_ASSERT(row_count == 1 && rcpt_pg_rows_count(rows[0]) == topic->partition_count);
    if (ask_for_lows(topic, rows[0]))
        return;
    for (size_t index = 0; index < topic->partition_count; index++) {
        struct partition *partition = &topic->partitions[index];
        partition->expected = rcpt_pg_rows_int(rows[0], index, 0);
        partition->sent = partition->read = partition->expected;
    }
    assign(topic);
}

static void read_positions(struct actions_topic *topic)
{
    struct rcpt_pg_query query = {.statement = "topic_positions"};
    put_places(topic, topic->encoder, true);
    rcpt_pg_encoder_params(topic->encoder, &query.params);
    rcpt_pg_submit(topic->pg, &query, 1, on_positions, request_new(topic));
}

/* ---- the group ---- */

static int by_place(const void *left, const void *right)
{
    const struct partition *one = left, *other = right;
    int order = strcmp(one->topic, other->topic);
    return order != 0 ? order : (one->number > other->number) - (one->number < other->number);
}

static void on_assigned(void *context, const struct rcpt_kafka_partition *partitions, size_t count)
{
    struct actions_topic *topic = context;
    forget_partitions(topic);
    if (topic->kafka_closing)
        return;
    topic->partitions = rcpt_calloc(count + 1, sizeof(*topic->partitions));
    for (size_t index = 0; index < count; index++)
        topic->partitions[index] = (struct partition){.topic = rcpt_strdup(partitions[index].topic),
                                                      .number = partitions[index].partition};
    topic->partition_count = count;
    qsort(topic->partitions, count, sizeof(*topic->partitions), by_place);
    rcpt_log_info("actions", "actions: assigned %zu partitions", count);
    if (count == 0)
        assign(topic);
    else if (topic->up)
        read_positions(topic);
    else
        begin_anew(topic);
}

static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct actions_topic *topic = context;
    (void)partitions;
    rcpt_log_info("actions", "actions: %s %zu partitions", lost ? "lost" : "revoked", count);
    forget_partitions(topic);
}

static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct actions_topic *topic = context;
    (void)cluster_id;
    for (size_t index = 0; index < count; index++)
        if (topics[index].partition_count == 0)
            rcpt_log_warn("actions", "actions: there is no topic %s yet", topics[index].topic);
    if (topic->subscribed || topic->kafka_closing)
        return;
    topic->subscribed = true;
    rcpt_kafka_subscribe(topic->kafka);
}

static void on_out_of_range(void *context, void *tag, const char *name, int32_t number,
                            int64_t wanted, int64_t low, int64_t high)
{
    const struct actions_topic *topic = context;
    (void)tag;
    if (low >= 0 && wanted < low)
        rcpt_log_error("actions",
                       "actions: topic %s partition %d: retention has deleted records %lld…%lld "
                       "before they began runs, going on behind them",
                       name, number, (long long)wanted, (long long)low - 1);
    else if (low >= 0 && wanted > high)
        rcpt_log_error("actions",
                       "actions: topic %s partition %d ends at %lld, but %lld was read already: it "
                       "was made anew; HINT: delete its rows from action_progress to begin again",
                       name, number, (long long)high, (long long)wanted);
    if (low >= 0 && wanted > high)
        return;
    rcpt_kafka_reassign(topic->kafka, name, number, low >= 0 && wanted < low ? low : wanted);
}

static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    const struct actions_topic *topic = context;
    if (!healthy && error->decision == RCPT_DECISION_FATAL)
        app_fail(topic->actions->context, error);
}

/* ---- life ---- */

static void check_stopped(struct actions_topic *topic);

static void on_kafka_closed(void *context)
{
    struct actions_topic *topic = context;
    topic->kafka = NULL;
    topic->kafka_closing = topic->subscribed = false;
    forget_partitions(topic);
    check_stopped(topic);
}

static void open_consumer(struct actions_topic *topic)
{
    struct app_context *context = topic->actions->context;
    size_t property_count;
    struct rcpt_kafka_property *properties =
        app_kafka_reader_properties(context->config, &property_count);
    struct rcpt_error error;
    char group[300];
    snprintf(group, sizeof(group), "%.250s-actions", context->config->kafka.group);
    const struct rcpt_kafka_settings settings = {
        .loop = context->loop,
        .brokers = context->config->kafka.brokers,
        .group = group,
        .instance_id = context->config->kafka.instance_id,
        .topics = (const char *const *)topic->actions->pipelines->sources.names,
        .topic_count = topic->actions->pipelines->sources.count,
        .properties = properties,
        .property_count = property_count,
        .fetch_budget_bytes = FETCH_BYTES,
        .commit_interval_ms = COMMIT_MS,
        .callbacks = {.context = topic,
                      .on_cluster = on_cluster,
                      .on_assigned = on_assigned,
                      .on_revoked = on_revoked,
                      .wants = wants,
                      .on_message = on_message,
                      .on_round = on_round,
                      .on_out_of_range = on_out_of_range,
                      .on_health = on_health,
                      .on_closed = on_kafka_closed},
    };
    topic->kafka = rcpt_kafka_new(&settings, &error);
    free(properties);
    if (topic->kafka == NULL)
        app_fail(context, &error);
}

static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct actions_topic *topic = context;
    (void)pg;
    topic->up = true;
    topic->anew_at_ms = 0;
}

/* The database may go back to where it was before: so does the reader. */
static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct actions_topic *topic = context;
    (void)pg;
    topic->up = false;
    if (topic->stopping)
        return;
    rcpt_log_warn("actions", "the reader of topics that begin runs is not connected: %s",
                  error->text);
    begin_anew(topic);
}

struct actions_topic *actions_topic_start(struct app_actions *actions)
{
    if (actions->pipelines->sources.count == 0)
        return NULL;
    struct actions_topic *topic = rcpt_calloc(1, sizeof(*topic));
    topic->actions = actions;
    topic->encoder = rcpt_pg_encoder_new();
    topic->letters = rcpt_pg_encoder_new();
    struct rcpt_pg_settings settings = app_pg_settings(actions->context, "actions-topics");
    settings.context = topic;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements = rcpt_action_statements(&settings.statement_count);
    topic->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(topic->pg);
    return topic;
}

void actions_topic_tick(struct actions_topic *topic)
{
    if (topic == NULL || topic->stopping)
        return;
    if (topic->kafka == NULL && topic->up && topic->actions->stored &&
        now_of(topic) >= topic->anew_at_ms)
        open_consumer(topic);
    send_some(topic);
    if (topic->starved && topic->kafka != NULL && !topic->kafka_closing &&
        topic->count < BATCH_RECORDS && topic->ready) {
        topic->starved = false;
        rcpt_kafka_kick(topic->kafka);
    }
}

static void on_pg_closed(void *context)
{
    struct actions_topic *topic = context;
    void (*on_stopped)(void *context) = topic->on_stopped;
    struct app_actions *actions = topic->actions;
    rcpt_pg_encoder_free(topic->encoder);
    rcpt_pg_encoder_free(topic->letters);
    free(topic);
    on_stopped(actions);
}

/* The consumer goes first: it may wait for what the connection answers. */
static void check_stopped(struct actions_topic *topic)
{
    if (!topic->stopping || topic->kafka != NULL || topic->pg_closing)
        return;
    topic->pg_closing = true;
    forget_partitions(topic);
    rcpt_pg_close(topic->pg, on_pg_closed, topic);
}

void actions_topic_stop(struct actions_topic *topic, void (*on_stopped)(void *context))
{
    topic->stopping = true;
    topic->on_stopped = on_stopped;
    if (topic->kafka != NULL && !topic->kafka_closing) {
        topic->kafka_closing = true;
        rcpt_kafka_close(topic->kafka, CLOSE_MS);
    }
    check_stopped(topic);
}

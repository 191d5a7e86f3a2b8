/* The consumer of folded topics: its group and its life. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define COMMIT_MS   5000 /* at most so often to Kafka, for those who look at lag */
#define CLOSE_MS    5000
#define FETCH_BYTES (16u * 1024 * 1024)

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
    folds_positions_forget(reader);
    reader->partitions = rcpt_calloc(count + 1, sizeof(*reader->partitions));
    for (size_t index = 0; index < count; index++)
        reader->partitions[index] = (struct folds_partition){
            .topic = rcpt_strdup(partitions[index].topic), .number = partitions[index].partition};
    reader->partition_count = count;
    qsort(reader->partitions, count, sizeof(*reader->partitions), by_place);
    rcpt_log_info("folds", "folds: assigned %zu partitions", count);
    reader->assigned = false;
    folds_positions_discard(reader);
    reader->serial++;
    if (count > 0) {
        folds_positions_read(reader);
        return;
    }
    folds_positions_assign(reader);
    reader->assigned = true;
    reader->state = READER_READY;
}

/* Eager groups give up all at once. */
static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct folds_reader *reader = context;
    (void)partitions;
    rcpt_log_info("folds", "folds: %s %zu partitions", lost ? "lost" : "revoked", count);
    reader->serial++;
    folds_topic_forget(reader);
    folds_positions_forget(reader);
    reader->state = READER_WAITING;
    reader->retry_at_ms = 0;
}

static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct folds_reader *reader = context;
    (void)cluster_id;
    for (size_t index = 0; index < count; index++)
        if (topics[index].partition_count == 0)
            rcpt_log_warn("folds", "folds: there is no topic %s yet", topics[index].topic);
    if (reader->subscribed || reader->leaving)
        return;
    reader->subscribed = true;
    rcpt_kafka_subscribe(reader->kafka);
}

static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct folds_reader *reader = context;
    if (!healthy && error->decision == RCPT_DECISION_FATAL)
        app_fail(reader->folds->context, error);
}

/* ---- life ---- */

static void on_closed(void *context)
{
    struct folds_reader *reader = context;
    struct app_folds *folds = reader->folds;
    reader->kafka = NULL;
    folds_positions_forget(reader);
    folds_letters_fini(&reader->letters);
    rcpt_fold_collector_free(reader->collector);
    rcpt_arena_fini(&reader->arena);
    reader->collector = NULL;
    reader->leaving = reader->subscribed = reader->assigned = reader->closing = false;
    reader->serial++;
    if (folds->asker.closed)
        app_check_drain(folds->context);
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
    const struct rcpt_config *config = reader->folds->context->config;
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
    struct app_context *context = reader->folds->context;
    const struct rcpt_config *config = context->config;
    size_t property_count;
    struct rcpt_kafka_property *properties = app_kafka_reader_properties(config, &property_count);
    char group[300];
    snprintf(group, sizeof(group), "%.250s-folds", config->kafka.group);
    struct rcpt_kafka_settings settings = {
        .loop = context->loop,
        .brokers = config->kafka.brokers,
        .group = group,
        .instance_id = config->kafka.instance_id,
        .topics = reader->topics,
        .topic_count = reader->topic_count,
        .properties = properties,
        .property_count = property_count,
        .fetch_budget_bytes = FETCH_BYTES,
        .commit_interval_ms = COMMIT_MS,
        .callbacks = {.context = reader,
                      .on_cluster = on_cluster,
                      .on_assigned = on_assigned,
                      .on_revoked = on_revoked,
                      .wants = folds_topic_wants,
                      .on_message = folds_topic_on_message,
                      .on_round = folds_topic_on_round,
                      .on_out_of_range = folds_positions_on_out_of_range,
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
        app_fail(reader->folds->context, &error);
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
        folds_positions_resync(reader); /* the database may have gone back */
}

void folds_reader_tick(struct folds_reader *reader)
{
    if (reader->kafka == NULL)
        return;
    leave_if_settled(reader);
    if (reader->leaving)
        return;
    folds_positions_tick(reader);
    folds_topic_append(reader);
    folds_topic_continue(reader);
}

/* Events of topics, folded in memory, into fold_event: the owner of a reader of topics
 * (topics/topics.h). Its transactions hold the groups of the events, and the dead letters of events
 * that no rule can take. After a change of rules the events in memory are read again, with a new
 * consumer. Called by folds.c. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/log.h"
#include "text.h"

/* An event counts even where it adds nothing to memory: a replay of the transaction is bounded as
 * well. */
#define BATCH_EVENTS 500000u /* that are folded in memory until nothing more is taken in */
#define BATCH_BYTES  (8u * 1024 * 1024)
#define FETCH_BYTES  (16u * 1024 * 1024)
/* The pause between two transactions: events fold in memory meanwhile, where it costs least. */
#define LINGER_MS      200
#define LOG_LETTERS_MS 10000

/* ---- events in ---- */

/* Groups and letters count together: both are memory until the transaction. */
static bool is_full(const struct folds_topics *topics)
{
    return topics->events >= BATCH_EVENTS ||
           rcpt_fold_collector_bytes(topics->collector) + topics->letters.bytes >= BATCH_BYTES;
}

/* Without stored rules nothing may be appended, so nothing is read either. */
static bool has_capacity(void *owner)
{
    const struct folds_topics *topics = owner;
    return topics->folds->rules_stored && !is_full(topics);
}

/* The line holds no bytes of the event: they may be personal. */
static void refuse(struct folds_topics *topics, const struct rcpt_kafka_message *message,
                   const struct rcpt_fold_refusal *refusal)
{
    int64_t now = host_now(topics->folds->context);
    folds_letters_add(&topics->letters, message, refusal);
    rcpt_metrics_add(topics->folds->context->metrics, RCPT_METRIC_FOLD_SKIPPED,
                     RCPT_LABELS(message->topic), 1);
    if (now < topics->log_at_ms)
        return;
    topics->log_at_ms = now + LOG_LETTERS_MS;
    rcpt_log_warn("folds",
                  "folds: topic %s partition %d offset %lld is a dead letter: %s%s%s; others are "
                  "counted only, HINT: receiptd dead-letters",
                  message->topic, message->partition, (long long)message->offset,
                  rcpt_reject_name(refusal->reason), refusal->detail[0] != '\0' ? ", " : "",
                  refusal->detail);
}

/* Every record counts as an event, also one that no rule matches: positions pass it. */
static void on_message(void *owner, const struct rcpt_kafka_message *message)
{
    struct folds_topics *topics = owner;
    struct rcpt_fold_refusal refusal;
    const struct rcpt_fold_event event = {.topic = message->topic,
                                          .value = message->value,
                                          .size = message->value_size,
                                          .traceparent = message->traceparent,
                                          .traceparent_size = message->traceparent_size};
    if (message->unreadable != NULL) {
        refusal.reason = RCPT_REJECT_RECORD_TOO_LARGE;
        snprintf(refusal.detail, sizeof(refusal.detail), "%s", message->unreadable);
        refuse(topics, message, &refusal);
    } else if (!rcpt_fold_collector_add(topics->collector, &event, &refusal)) {
        refuse(topics, message, &refusal);
    }
    topics->events++;
}

/* Also called by the reader when its positions went back: the events come again. */
static void forget(void *owner)
{
    struct folds_topics *topics = owner;
    rcpt_fold_collector_reset(topics->collector);
    folds_letters_reset(&topics->letters);
    topics->events = 0;
}

/* ---- the transaction ---- */

/* Rules come first: PostgreSQL would not know the rule of a group. */
static bool may_send(void *owner)
{
    const struct folds_topics *topics = owner;
    return topics->folds->rules_stored &&
           (is_full(topics) || host_now(topics->folds->context) >= topics->sent_at_ms + LINGER_MS);
}

enum { GROUP_RULE, GROUP_KEY, GROUP_PART, GROUP_TEXTS };

/* The collector gives groups one by one, the statement takes them by column. */
struct columns {
    struct fold_text texts[GROUP_TEXTS];
    size_t *ends[GROUP_TEXTS]; /* of each group's text */
    uint64_t *events;
    size_t count;
};

/* `ends` are offsets, since the texts move while they grow. */
static void put_group(void *context, const struct rcpt_fold_group *group)
{
    struct columns *columns = context;
    const char *const texts[GROUP_TEXTS] = {group->rule, group->key, group->part};
    for (size_t index = 0; index < GROUP_TEXTS; index++) {
        fold_text_put_words(&columns->texts[index], texts[index]);
        columns->ends[index][columns->count] = columns->texts[index].size;
    }
    columns->events[columns->count++] = group->events;
}

static void encode_groups(struct rcpt_fold_collector *collector, struct rcpt_pg_encoder *encoder)
{
    size_t count = rcpt_fold_collector_groups(collector);
    struct columns columns = {.events = rcpt_calloc(count, sizeof(*columns.events))};
    for (size_t index = 0; index < GROUP_TEXTS; index++)
        columns.ends[index] = rcpt_calloc(count, sizeof(*columns.ends[index]));
    rcpt_fold_collector_each(collector, put_group, &columns);
    for (size_t index = 0; index < GROUP_TEXTS; index++) {
        rcpt_pg_begin_text_array(encoder, count);
        for (size_t group = 0, from = 0; group < count; from = columns.ends[index][group++])
            rcpt_pg_put_bytes(encoder, columns.texts[index].at + from,
                              columns.ends[index][group] - from);
        fold_text_free(&columns.texts[index]);
        free(columns.ends[index]);
    }
    rcpt_pg_begin_int8_array(encoder, count);
    for (size_t group = 0; group < count; group++)
        rcpt_pg_put_int8(encoder, (int64_t)columns.events[group]);
    free(columns.events);
}

/* The batch takes positions, groups and letters together, or the fence takes none. */
static void add(void *owner, struct topics_batch *batch)
{
    struct folds_topics *topics = owner;
    if (rcpt_fold_collector_groups(topics->collector) > 0)
        encode_groups(topics->collector, topics_batch_add(batch, "append"));
    if (topics->letters.count > 0)
        folds_letters_encode(&topics->letters, topics_batch_add(batch, "letters"));
    forget(topics);
    topics->sent_at_ms = host_now(topics->folds->context);
}

static void on_committed(void *owner, const struct rcpt_pg_rows *rows)
{
    (void)owner, (void)rows;
}

/* ---- the consumer ---- */

static void free_rules(struct folds_topics *topics)
{
    rcpt_fold_collector_free(topics->collector);
    topics->collector = NULL;
    rcpt_arena_fini(&topics->arena);
}

/* Linear: a configuration has few topics. */
static void add_topic(const char **names, size_t *count, const char *topic)
{
    for (size_t index = 0; index < *count; index++)
        if (strcmp(names[index], topic) == 0)
            return;
    names[(*count)++] = topic;
}

/* Copies the rules: a reload exchanges the configuration under them. Returns how many topics there
 * are. Topics are listed once, in the order of the rules. */
static size_t copy_rules(struct folds_topics *topics, const char ***names)
{
    const struct rcpt_config *config = topics->folds->context->config;
    size_t count = 0, topic_count = 0;
    rcpt_arena_init(&topics->arena, 4096);
    struct rcpt_fold_spec *specs =
        rcpt_arena_alloc(&topics->arena, (config->folds_count + 1) * sizeof(*specs));
    *names = rcpt_arena_alloc(&topics->arena, (config->folds_count + 1) * sizeof(**names));
    for (size_t index = 0; index < config->folds_count; index++) {
        if (config->folds[index].source != RCPT_FOLD_TOPIC)
            continue;
        specs[count] = folds_spec(&config->folds[index], &topics->arena);
        add_topic(*names, &topic_count, specs[count++].topic);
    }
    topics->collector = rcpt_fold_collector_new(specs, count);
    return topic_count;
}

/* Without a rule over a topic there is no consumer. */
static void open_consumer(struct folds_topics *topics)
{
    const char **names;
    size_t count = copy_rules(topics, &names);
    if (count > 0)
        topics_open(topics->reader, names, count);
    if (!topics_is_open(topics->reader))
        free_rules(topics);
}

/* After a reload the next consumer reads under the new rules. */
static void on_left(void *owner)
{
    struct folds_topics *topics = owner;
    folds_letters_fini(&topics->letters);
    free_rules(topics);
    if (topics->folds->asker.closed)
        host_check_drain(topics->folds->context);
    else
        open_consumer(topics);
}

void folds_topics_start(struct folds_topics *topics)
{
    struct topics_settings settings = {
        .context = topics->folds->context,
        .name = "folds",
        .topics_key = "folds",
        .connection = "fold-topics",
        .work = "appending events",
        .read_positions = "positions",
        .insert_positions = "begin",
        .move_positions = "move",
        .fetch_budget_bytes = FETCH_BYTES,
        .owner = topics,
        .has_capacity = has_capacity,
        .on_message = on_message,
        .may_send = may_send,
        .add = add,
        .on_committed = on_committed,
        .forget = forget,
        .on_left = on_left,
    };
    settings.statements = rcpt_fold_topic_statements(&settings.statement_count);
    topics->reader = topics_new(&settings);
    open_consumer(topics);
}

void folds_topics_stop(struct folds_topics *topics)
{
    if (topics_is_open(topics->reader))
        topics_leave(topics->reader);
}

/* Rules may name other topics, so a new consumer is needed; on_left() opens it. */
void folds_topics_reload(struct folds_topics *topics)
{
    if (topics_is_open(topics->reader))
        topics_leave(topics->reader);
    else
        open_consumer(topics);
}

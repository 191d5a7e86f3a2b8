/* Records of topics begin runs, in the transaction that moves the positions: the owner of a reader
 * of topics (topics/topics.h). The consumer opens once the pipelines are stored. Called by
 * actions.c. */
#include <stdlib.h>

#include "internal.h"
#include "receiptd/base/log.h"
#include "receiptd/topics/records.h"

struct actions_topic {
    struct app_actions *actions;
    struct topics_reader *reader;
    struct topics_records records; /* that are not sent yet */
    uint64_t sent_ns;
    int64_t next_at_ms; /* of the next transaction: receipts go first */
    bool opened, stopping;
    void (*on_stopped)(void *context);
};

/* ---- records in ---- */

static bool has_capacity(void *owner)
{
    const struct actions_topic *topic = owner;
    return topics_records_has_capacity(&topic->records);
}

/* A tombstone has no content. */
static void on_message(void *owner, const struct rcpt_kafka_message *message)
{
    struct actions_topic *topic = owner;
    if (message->value != NULL || message->unreadable != NULL)
        topics_records_add(&topic->records, message);
}

static void forget(void *owner)
{
    struct actions_topic *topic = owner;
    topics_records_forget(&topic->records);
}

/* ---- the transaction ---- */

/* Not before the pipelines are stored, and not while receipts have their turn. */
static bool may_send(void *owner)
{
    const struct actions_topic *topic = owner;
    return topic->actions->state == ACTIONS_RUNNING &&
           host_now(topic->actions->context) >= topic->next_at_ms;
}

/* Whether the dead letter of a record, should it become one, has to be cut. */
static bool has_large(const struct actions_topic *topic)
{
    bool large = false;
    for (size_t index = 0; index < topic->records.count; index++)
        large |= topic->records.at[index].size > RCPT_RECORD_MAX_LETTER_BYTES;
    return large;
}

/* One statement moves positions and begins runs. A second one, which cuts large letters, follows
 * only if needed. */
static void add(void *owner, struct topics_batch *batch)
{
    struct actions_topic *topic = owner;
    topics_records_put_places(&topic->records, batch->encoders[0]);
    topics_records_put_values(&topic->records, batch->encoders[0]);
    topics_records_put_traces(&topic->records, batch->encoders[0]);
    if (has_large(topic))
        topics_records_put_places(&topic->records, topics_batch_add(batch, "topic_letters"));
    forget(topic);
    topic->sent_ns = uv_hrtime();
}

/* Columns of sql/actions/topic. */
enum { TOPIC_BEGAN, TOPIC_REFUSED };

/* New runs have due actions: the claim does not wait for its poll. */
static void on_committed(void *owner, const struct rcpt_pg_rows *rows)
{
    struct actions_topic *topic = owner;
    long long refused = (long long)rcpt_pg_rows_int(rows, 0, TOPIC_REFUSED);
    if (refused > 0)
        rcpt_log_warn("actions",
                      "actions: %lld records that should begin runs are dead letters: they are no "
                      "JSON object with a subject, or beyond a cap",
                      refused);
    topic->next_at_ms =
        host_now(topic->actions->context) + actions_begin_pause_ms(topic->actions, topic->sent_ns);
    if (rcpt_pg_rows_int(rows, 0, TOPIC_BEGAN) > 0)
        actions_claim_soon(topic->actions);
}

/* ---- life ---- */

/* The set counts this part in `open`, so it comes last, when nothing refers to this one. */
static void on_closed(void *context)
{
    struct actions_topic *topic = context;
    void (*on_stopped)(void *context) = topic->on_stopped;
    struct app_actions *actions = topic->actions;
    topics_records_fini(&topic->records);
    free(topic);
    on_stopped(actions);
}

/* The consumer has left its group; the reader's connection closes now. */
static void on_left(void *owner)
{
    struct actions_topic *topic = owner;
    topics_close(topic->reader, on_closed, topic);
}

struct actions_topic *actions_topic_start(struct app_actions *actions)
{
    if (actions->pipelines->sources.count == 0)
        return NULL;
    struct actions_topic *topic = rcpt_calloc(1, sizeof(*topic));
    struct topics_settings settings = {
        .context = actions->context,
        .name = "actions",
        .topics_key = "pipelines",
        .connection = "actions-topics",
        .work = "runs of topics",
        .read_positions = "topic_positions",
        .insert_positions = "topic_begin",
        .move_positions = "topic",
        .fetch_budget_bytes = TOPICS_RECORDS_FETCH_BYTES,
        .owner = topic,
        .has_capacity = has_capacity,
        .on_message = on_message,
        .may_send = may_send,
        .add = add,
        .on_committed = on_committed,
        .forget = forget,
        .on_left = on_left,
    };
    settings.statements = rcpt_action_statements(&settings.statement_count);
    topic->actions = actions;
    topic->reader = topics_new(&settings);
    return topic;
}

/* Pipelines are stored first: a record for an unknown pipeline would be lost. */
void actions_topic_tick(struct actions_topic *topic)
{
    if (topic == NULL || topic->stopping)
        return;
    if (!topic->opened && topic->actions->state == ACTIONS_RUNNING) {
        const struct pipelines *pipelines = topic->actions->pipelines;
        topic->opened = true;
        topics_open(topic->reader, (const char *const *)pipelines->sources.names,
                    pipelines->sources.count);
    }
    topics_tick(topic->reader);
}

void actions_topic_apply_config(struct actions_topic *topic)
{
    if (topic != NULL)
        topics_apply_config(topic->reader);
}

const char *actions_topic_reason(const struct actions_topic *topic)
{
    return topic != NULL ? topics_reason(topic->reader) : NULL;
}

/* The consumer leaves before the connection closes: its last transaction needs it. */
void actions_topic_stop(struct actions_topic *topic, void (*on_stopped)(void *context))
{
    topic->stopping = true;
    topic->on_stopped = on_stopped;
    if (topics_is_open(topic->reader))
        topics_leave(topic->reader);
    else
        on_left(topic);
}

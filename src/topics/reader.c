/* The life of a reader of topics: its consumer, its group, its connection. The states are enum
 * topics_state; topics_set_state is their only setter. The connection lives from topics_new to
 * topics_close; consumers come and go in between. Called by their owners. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"
#include "receiptd/base/log.h"
#include "receiptd/base/states.h"

#define COMMIT_MS 5000
#define CLOSE_MS  5000

/* ---- states ---- */

void topics_set_state(struct topics_reader *reader, enum topics_state state, const char *reason)
{
    static const char *const names[TOPICS_STATE__COUNT] = {
        [TOPICS_CLOSED] = "CLOSED", [TOPICS_WAITING] = "WAITING", [TOPICS_READING] = "READING",
        [TOPICS_READY] = "READY",   [TOPICS_LEAVING] = "LEAVING", [TOPICS_CLOSING] = "CLOSING",
    };
    static const unsigned successors[TOPICS_STATE__COUNT] = {
        [TOPICS_CLOSED] = RCPT_TO(TOPICS_WAITING),
        [TOPICS_WAITING] =
            RCPT_TO(TOPICS_READING) | RCPT_TO(TOPICS_READY) | RCPT_TO(TOPICS_LEAVING),
        [TOPICS_READING] =
            RCPT_TO(TOPICS_WAITING) | RCPT_TO(TOPICS_READY) | RCPT_TO(TOPICS_LEAVING),
        [TOPICS_READY] =
            RCPT_TO(TOPICS_WAITING) | RCPT_TO(TOPICS_READING) | RCPT_TO(TOPICS_LEAVING),
        [TOPICS_LEAVING] = RCPT_TO(TOPICS_CLOSING),
        [TOPICS_CLOSING] = RCPT_TO(TOPICS_CLOSED),
    };
    if (state == reader->state)
        return;
    RCPT_ASSERT_FOLLOWS(successors, reader->state, state);
    rcpt_log_debug(reader->settings.name, "%s: reader of topics %s -> %s: %s",
                   reader->settings.name, names[reader->state], names[state], reason);
    reader->state = state;
}

/* The consumer must not be asked anything from here on. */
static bool is_leaving(const struct topics_reader *reader)
{
    return reader->state == TOPICS_LEAVING || reader->state == TOPICS_CLOSING;
}

/* ---- the group ---- */

/* Joins the group once the topics have been seen; a missing topic may still be created. */
static void on_cluster(void *context, const char *cluster_id,
                       const struct rcpt_kafka_topic_info *topics, size_t count)
{
    struct topics_reader *reader = context;
    (void)cluster_id;
    host_places_refresh(reader->places);
    for (size_t index = 0; index < count; index++)
        if (topics[index].partition_count == 0)
            rcpt_log_warn(reader->settings.name, "%s: there is no topic %s yet",
                          reader->settings.name, topics[index].topic);
    if (reader->subscribed || is_leaving(reader))
        return;
    reader->subscribed = true;
    rcpt_kafka_subscribe(reader->kafka);
}

/* An assignment that comes while leaving stays held; closing the consumer withdraws it. */
static void on_assigned(void *context, const struct rcpt_kafka_partition *partitions, size_t count)
{
    struct topics_reader *reader = context;
    if (is_leaving(reader))
        return;
    reader->joined = true;
    topics_positions_set(reader, partitions, count);
    host_places_refresh(reader->places);
    rcpt_log_info(reader->settings.name, "%s: assigned %zu partitions", reader->settings.name,
                  count);
    topics_positions_read(reader);
}

/* Other instances have the partitions. */
static void on_spare(void *context)
{
    struct topics_reader *reader = context;
    reader->joined = true;
}

/* Eager groups give up all partitions at once. */
static void on_revoked(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                       bool lost)
{
    struct topics_reader *reader = context;
    (void)partitions;
    reader->joined = false;
    rcpt_log_info(reader->settings.name, "%s: %s %zu partitions", reader->settings.name,
                  lost ? "lost" : "revoked", count);
    topics_positions_forget(reader);
    if (!is_leaving(reader))
        topics_set_state(reader, TOPICS_WAITING, "partitions are revoked");
}

/* Passing trouble is a reason for not being ready; the consumer logs it. */
static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct topics_reader *reader = context;
    reader->kafka_healthy = healthy;
    if (!healthy)
        host_set_reason(reader->kafka_reason, "Kafka is in trouble", error);
    if (!healthy && error->decision == RCPT_DECISION_FATAL && !is_leaving(reader))
        host_fail(reader->settings.context, error);
}

/* ---- the consumer ---- */

/* The owner may open again from on_left. */
static void on_kafka_closed(void *context)
{
    struct topics_reader *reader = context;
    reader->kafka = NULL;
    reader->subscribed = reader->joined = reader->kafka_healthy = false;
    reader->kafka_reason[0] = '\0';
    host_places_forget(reader->places);
    topics_positions_forget(reader);
    topics_set_state(reader, TOPICS_CLOSED, "the consumer is closed");
    reader->settings.on_left(reader->settings.owner);
}

/* The group is that of the receipts with the name behind it: lag tools show it. */
void topics_open(struct topics_reader *reader, const char *const *topics, size_t count)
{
    struct host_context *context = reader->settings.context;
    const struct rcpt_config *config = context->config;
    struct rcpt_error error;
    size_t property_count;
    struct rcpt_kafka_property *properties = host_kafka_reader_properties(config, &property_count);
    char group[300];
    snprintf(group, sizeof(group), "%.250s-%s", config->kafka.group, reader->settings.name);
    const struct rcpt_kafka_settings settings = {
        .loop = context->loop,
        .brokers = config->kafka.brokers,
        .group = group,
        .instance_id = config->kafka.instance_id,
        .topics = topics,
        .topics_key = reader->settings.topics_key,
        .topic_count = count,
        .properties = properties,
        .property_count = property_count,
        .fetch_budget_bytes = reader->settings.fetch_budget_bytes,
        .commit_interval_ms = COMMIT_MS,
        .callbacks = {.context = reader,
                      .on_cluster = on_cluster,
                      .on_assigned = on_assigned,
                      .on_spare = on_spare,
                      .on_revoked = on_revoked,
                      .wants = topics_batch_wants,
                      .on_message = topics_batch_on_message,
                      .on_round = topics_batch_on_round,
                      .on_out_of_range = topics_positions_on_out_of_range,
                      .on_health = on_health,
                      .on_closed = on_kafka_closed},
    };
    reader->kafka = rcpt_kafka_new(&settings, &error);
    free(properties);
    if (reader->kafka != NULL)
        topics_set_state(reader, TOPICS_WAITING, "a consumer joins the group");
    else
        host_fail(context, &error);
}

bool topics_is_open(const struct topics_reader *reader)
{
    return reader->state != TOPICS_CLOSED;
}

const char *topics_reason(struct topics_reader *reader)
{
    const char *what = NULL;
    if (reader->state == TOPICS_CLOSED)
        return NULL;
    if (!reader->kafka_healthy && reader->kafka_reason[0] != '\0')
        return reader->kafka_reason;
    if (!reader->up)
        what = "is not connected to PostgreSQL";
    else if (!reader->joined)
        what = "is joining its consumer group";
    else if (reader->state != TOPICS_READY && reader->partition_count > 0)
        what = "has not read its positions yet";
    if (what == NULL)
        return NULL;
    snprintf(reader->reason, sizeof(reader->reason), "the reader of topics of %s %s",
             reader->settings.name, what);
    return reader->reason;
}

void topics_leave_if_settled(struct topics_reader *reader)
{
    if (reader->state != TOPICS_LEAVING || reader->in_flight)
        return;
    topics_set_state(reader, TOPICS_CLOSING, "nothing is in flight");
    rcpt_kafka_close(reader->kafka, CLOSE_MS);
}

/* Stops polling first: records in memory are not sent; the next owner reads them again. */
void topics_leave(struct topics_reader *reader)
{
    if (is_leaving(reader))
        return;
    topics_set_state(reader, TOPICS_LEAVING, "the owner leaves");
    rcpt_kafka_stop_polling(reader->kafka);
    topics_leave_if_settled(reader);
}

/* Also retries failed questions, and rewinds that brought no record. */
void topics_tick(struct topics_reader *reader)
{
    if (!topics_is_open(reader) || is_leaving(reader))
        return;
    host_places_tick(reader->places);
    topics_positions_tick(reader);
    topics_batch_send(reader);
    topics_batch_continue(reader);
    topics_batch_commit(reader);
}

/* ---- the connection ---- */

/* The database may have gone back while it was away: records read since are dropped. */
static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct topics_reader *reader = context;
    (void)pg;
    reader->up = reader->asker.up = true;
    if (topics_is_open(reader) && !is_leaving(reader))
        topics_positions_resync(reader);
}

/* A transaction in flight has been answered with its loss before. */
static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct topics_reader *reader = context;
    (void)pg;
    host_count_lost(reader->settings.context, reader->settings.connection, reader->up);
    reader->up = reader->asker.up = false;
    (void)error; /* logged by the connection */
}

/* The connection is made before any consumer, and outlives them. */
struct topics_reader *topics_new(const struct topics_settings *settings)
{
    struct topics_reader *reader = rcpt_calloc(1, sizeof(*reader));
    struct rcpt_pg_settings connection = host_pg_settings(settings->context, settings->connection);
    reader->settings = *settings;
    connection.context = reader;
    connection.on_ready = on_ready;
    connection.on_down = on_down;
    connection.statements = settings->statements;
    connection.statement_count = settings->statement_count;
    reader->pg = rcpt_pg_new(&connection);
    reader->asker = (struct rcpt_asker){.loop = settings->context->loop,
                                        .pg = reader->pg,
                                        .encoder = rcpt_pg_encoder_new(),
                                        .component = settings->name,
                                        .prefix = ""};
    reader->places =
        host_places_new(&(struct host_places_settings){.context = settings->context,
                                                       .reader = settings->name,
                                                       .kafka = &reader->kafka,
                                                       .asker = &reader->asker,
                                                       .statement = settings->read_positions});
    rcpt_pg_start(reader->pg);
    return reader;
}

void topics_apply_config(struct topics_reader *reader)
{
    const struct rcpt_config *config = reader->settings.context->config;
    struct rcpt_kafka_credentials credentials;
    rcpt_pg_set_dsn(reader->pg, config->postgres.dsn);
    host_kafka_credentials(config, &credentials);
    if (reader->kafka != NULL)
        rcpt_kafka_set_credentials(reader->kafka, &credentials);
}

/* No part of the reader is left: the callback may free its owner. */
static void on_pg_closed(void *context)
{
    struct topics_reader *reader = context;
    void (*on_closed)(void *closed_context) = reader->on_closed;
    void *closed_context = reader->closed_context;
    host_places_free(reader->places);
    rcpt_pg_encoder_free(reader->asker.encoder);
    free(reader);
    on_closed(closed_context);
}

void topics_close(struct topics_reader *reader, void (*on_closed)(void *context), void *context)
{
    reader->on_closed = on_closed;
    reader->closed_context = context;
    rcpt_pg_close(reader->pg, on_pg_closed, reader);
}

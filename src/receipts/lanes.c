/* Engine → PostgreSQL: batches are sent over the connections of lanes, positions are read, results
 * go back to the engine. The states of a lane are the engine's; a connection is up or not. All
 * connections close and are made again when their number or the subscribers' files change, once
 * nothing is in flight. Called by the engine (ports) and receipts.c; src/postgres brings results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/postgres/sqlstate.h"
#include "receiptd/receipts/layout.h"

struct connection {
    struct lanes *lanes;
    uint32_t index;
    struct rcpt_pg *pg; /* NULL: it closes, to be made again */
    struct rcpt_lane_sender *sender;
    struct rcpt_pg_encoder *encoder; /* for reading positions */
    bool up;
    char name[24];
};

struct read { /* one read_positions; a lane has at most one */
    struct lanes *lanes;
    uint32_t lane;
    struct rcpt_engine_position *rows; /* slots as they were asked for, filled by the answer */
    uint32_t count;
};

struct lanes {
    struct receipts *receipts;
    struct connection *connections;
    struct rcpt_lane_statements *statements;     /* what they prepare; made again with them */
    struct transition_wants wants;               /* of these statements */
    struct rules *rules;                         /* likewise */
    const char *recent_since, *recent_column;    /* likewise; recent.c owns them */
    struct rcpt_lane_subscription *subscription; /* of the selective one; NULL: not known */
    struct read *reads;                          /* by lane, as are flights */
    struct lane_flight *flights;
    const struct lane_observer *observer; /* NULL: none */
    unsigned target;                      /* connections, while they change; 0: they do not */
    unsigned closing;                     /* connections that are */
};

/* While the number changes it is the old one, until finish_change(). */
static unsigned connection_count(const struct lanes *lanes)
{
    return lanes->receipts->context->config->postgres.connections;
}

static struct connection *connection_of(const struct lanes *lanes, uint32_t lane)
{
    return &lanes->connections[lane % connection_count(lanes)];
}

/* ---- statements by subscribers ---- */

static struct rcpt_lane_statements *new_statements(const struct lanes *lanes)
{
    return rules_statements(lanes->receipts->context->config, lanes->rules, &lanes->wants,
                            lanes->recent_since, lanes->recent_column);
}

/* For connections that are about to be made: the texts must outlive them. */
static void make_statements(struct lanes *lanes)
{
    lanes->wants = subscribers_want(lanes->receipts);
    rules_read(lanes->receipts->context->config, &lanes->wants, lanes->rules);
    rcpt_lane_statements_free(lanes->statements);
    lanes->statements = new_statements(lanes);
}

/* Between batches; connections that are about to be made again begin with it. */
void lanes_set_recent(struct lanes *lanes, const char *since, const char *column)
{
    lanes->recent_since = since;
    lanes->recent_column = column;
    if (lanes->target != 0 || lanes->connections == NULL)
        return;
    struct rcpt_lane_statements *old = lanes->statements;
    size_t count;
    lanes->statements = new_statements(lanes);
    for (unsigned index = 0; index < connection_count(lanes); index++)
        rcpt_pg_set_statements(lanes->connections[index].pg,
                               rcpt_lane_statements_list(lanes->statements, &count));
    rcpt_lane_statements_free(old);
}

/* All senders get it at once; it counts from their next batch on. */
void lanes_set_subscription(struct lanes *lanes, const struct rcpt_lane_subscription *subscription)
{
    free(lanes->subscription);
    lanes->subscription = NULL;
    if (subscription != NULL) {
        lanes->subscription = rcpt_malloc(sizeof(*subscription));
        *lanes->subscription = *subscription;
    }
    for (uint32_t index = 0; index < connection_count(lanes); index++)
        if (lanes->connections != NULL && lanes->connections[index].sender != NULL)
            rcpt_lane_sender_set_subscription(lanes->connections[index].sender,
                                              lanes->subscription);
}

/* The answer of a batch. The order of the steps matters. Step 1: log, while the batch still exists.
 * Step 2: parking and subscribers, whose limits and subscriptions must hold for the next batch.
 * Step 3: the observer, which reads the batch. Step 4: the end of its span. Step 5: the engine,
 * which frees the batch and may send the next one at once, into the same flight. Step 6: a
 * reconnect that the error asks for, after the engine knows the outcome, since the connection then
 * answers everything else as lost. Step 7: polling Kafka, since the engine may have capacity again.
 * Step 8: the end of a drain, last, because it may close all this. */
static void on_sent(void *context, uint32_t lane, const struct rcpt_engine_result *result,
                    const struct rcpt_error *error)
{
    const struct connection *connection = context;
    struct lanes *lanes = connection->lanes;
    struct receipts *receipts = lanes->receipts;
    struct lane_flight *flight = &lanes->flights[lane];
    lane_log_answer(receipts, lane, flight, result, error);
    if (result->outcome == RCPT_ENGINE_COMMITTED) {
        parking_count(receipts->parking, result->events_parked);
        subscribers_on_committed(receipts, rcpt_lane_sender_is_subscribed(connection->sender),
                                 result->messages_changed);
    } else if (error != NULL && strcmp(error->code, RCPT_SQLSTATE_SUBSCRIBED) == 0) {
        lanes_set_subscription(lanes, NULL);
        subscribers_on_outdated(receipts);
    }
    flight->fenced = result->outcome == RCPT_ENGINE_FENCED;
    if (lanes->observer != NULL)
        lanes->observer->on_result(lanes->observer->context, flight, result);
    trace_end_batch(receipts->context, flight->span, flight->sent_ns, result, error);
    flight->span = NULL;
    rcpt_engine_on_result(receipts->engine, lane, result, host_now(receipts->context));
    if (error != NULL && error->decision == RCPT_DECISION_RECONNECT &&
        result->outcome != RCPT_ENGINE_UNKNOWN)
        rcpt_pg_reconnect(connection->pg, error);
    consume_continue(receipts);
    host_check_drain(receipts->context);
}

/* Before on_sent of the same batch. */
static void on_effects(void *context, uint32_t lane, const struct rcpt_lane_effects *effects)
{
    const struct lanes *lanes = ((const struct connection *)context)->lanes;
    if (lanes->observer != NULL)
        lanes->observer->on_effects(lanes->observer->context, lanes->flights[lane].batch, effects);
}

/* The flight is complete before the batch is sent; no answer comes from inside the call. */
void lanes_port_submit(void *context, const struct rcpt_batch *batch)
{
    const struct receipts *receipts = context;
    struct lanes *lanes = receipts->lanes;
    struct connection *connection = connection_of(lanes, batch->lane);
    struct lane_flight *flight = &lanes->flights[batch->lane];
    *flight = (struct lane_flight){.batch = batch,
                                   .number = batch->number,
                                   .sent_ns = uv_hrtime(),
                                   .events = batch->event_count,
                                   .messages = batch->message_count,
                                   .is_refused = flight->is_refused,
                                   .span = trace_begin_batch(receipts->context, batch)};
    rcpt_lane_send(connection->sender, connection->pg, batch, flight->span != NULL, on_sent,
                   connection);
}

/* Columns of sql/lane/positions. */
enum { POSITION_NEXT_OFFSET, POSITION_GENERATION };

/* Rows come in the order of the question. Whether a fence met another owner becomes known only
 * now. */
static void on_positions(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                         const struct rcpt_error *error)
{
    const struct read *read = context;
    const struct receipts *receipts = read->lanes->receipts;
    struct lane_flight *flight = &read->lanes->flights[read->lane];
    struct rcpt_pg *pg = connection_of(read->lanes, read->lane)->pg;
    int64_t now = host_now(receipts->context);
    if (error != NULL) {
        rcpt_engine_on_positions_failed(receipts->engine, read->lane, now);
        if (pg != NULL && error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
            rcpt_pg_reconnect(pg, error);
        return;
    }
    RCPT_ASSERT(row_count == 1 && rcpt_pg_rows_count(rows[0]) == read->count);
    for (uint32_t row = 0; row < read->count; row++) {
        read->rows[row].found = rcpt_pg_rows_text(rows[0], row, POSITION_NEXT_OFFSET) != NULL;
        read->rows[row].next_offset = rcpt_pg_rows_int(rows[0], row, POSITION_NEXT_OFFSET);
        read->rows[row].generation = rcpt_pg_rows_int(rows[0], row, POSITION_GENERATION);
    }
    /* Both are read first: the engine may send the next batch at once, into the same flight. */
    uint64_t contended = rcpt_engine_get_stats(receipts->engine)->contended;
    uint32_t fenced = flight->fenced ? flight->messages : 0;
    flight->fenced = false;
    rcpt_engine_on_positions(receipts->engine, read->lane, read->rows, read->count, now);
    if (rcpt_engine_get_stats(receipts->engine)->contended > contended)
        rcpt_metrics_add(receipts->context->metrics, RCPT_METRIC_EXCLUSIVITY_MESSAGES,
                         RCPT_NO_LABELS, fenced);
    host_update_readiness(receipts->context);
}

/* The rows come back in the order of the question, which is kept here by slot. */
static void remember_slots(const struct rcpt_engine *engine, struct read *read)
{
    uint32_t slots = rcpt_engine_slot_count(engine);
    read->rows = rcpt_realloc(read->rows, (slots + 1) * sizeof(*read->rows));
    read->count = 0;
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (rcpt_engine_is_assigned(engine, slot))
            read->rows[read->count++] = (struct rcpt_engine_position){.slot = slot};
    }
}

/* Port of the engine: on a new connection, after a fence, and now and then while idle. */
void lanes_port_read_positions(void *context, uint32_t lane)
{
    const struct receipts *receipts = context;
    struct read *read = &receipts->lanes->reads[lane];
    struct connection *connection = connection_of(receipts->lanes, lane);
    remember_slots(receipts->engine, read);
    rcpt_pg_encoder_reset(connection->encoder);
    assigned_put(receipts->engine, connection->encoder);
    rcpt_pg_add_int4(connection->encoder, (int32_t)lane);
    struct rcpt_pg_query query = {.statement = "positions"};
    rcpt_pg_encoder_params(connection->encoder, &query.params);
    rcpt_pg_submit(connection->pg, &query, 1, on_positions, read);
}

/* The engine reads positions before it sends anything on the new connection. */
static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct connection *connection = context;
    const struct receipts *receipts = connection->lanes->receipts;
    (void)pg;
    connection->up = true;
    rcpt_engine_connection_up(receipts->engine, connection->index, host_now(receipts->context));
    host_update_readiness(receipts->context);
}

/* Batches in flight have already been answered as lost. */
static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct connection *connection = context;
    struct receipts *receipts = connection->lanes->receipts;
    (void)pg;
    if (connection->up)
        rcpt_engine_connection_down(receipts->engine, connection->index,
                                    host_now(receipts->context));
    host_count_lost(receipts->context, connection->name, connection->up);
    connection->up = false;
    host_set_reason(receipts->database_reason, "PostgreSQL is not connected", error);
    host_update_readiness(receipts->context);
    host_check_drain(receipts->context);
}

static const char *const unknown_policies[] = {[RCPT_UNKNOWN_PARK] = "park",
                                               [RCPT_UNKNOWN_INSERT] = "insert",
                                               [RCPT_UNKNOWN_DEAD_LETTER] = "dead-letter"};

/* The settings that a reload may change. */
static void configure_sender(struct rcpt_lane_sender *sender, const struct rcpt_config *config)
{
    bool aliases = config->intake.alias != RCPT_ALIAS_OFF;
    rcpt_lane_sender_set_max_age(sender, config->parked.max_age_ms);
    rcpt_lane_sender_set_alias_wait(sender, aliases ? config->parked.alias_wait_ms : -1);
    rcpt_lane_sender_set_range_wait(sender, config->parked.alias_wait_ms);
    rcpt_lane_sender_set_timeline(sender, config->timeline.retention_ms > 0);
}

static const char *name_facet(const void *context, enum rcpt_facet facet, uint32_t number)
{
    const struct receipts *receipts = context;
    return rcpt_decoder_facet(receipts->decoder, facet, number);
}

/* The connections of lanes differ only in their number. */
static void start_connection(struct lanes *lanes, uint32_t index)
{
    struct host_context *context = lanes->receipts->context;
    const struct rcpt_config *config = context->config;
    struct connection *connection = &lanes->connections[index];
    *connection = (struct connection){.lanes = lanes, .index = index};
    snprintf(connection->name, sizeof(connection->name), "lanes-%u", index);
    connection->sender = rcpt_lane_sender_new(&(struct rcpt_lane_sender_settings){
        .unknown_policy = unknown_policies[config->unknown],
        .rules = lanes->rules->settings,
        .names = {.name = name_facet, .context = lanes->receipts},
        .window = lanes->rules->window,
        .actions = lanes->wants.actions});
    configure_sender(connection->sender, config);
    rcpt_lane_sender_observe(connection->sender, on_effects, connection);
    rcpt_lane_sender_set_subscription(connection->sender, lanes->subscription);
    connection->encoder = rcpt_pg_encoder_new();
    struct rcpt_pg_settings settings = host_pg_settings(context, connection->name);
    settings.context = connection;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements = rcpt_lane_statements_list(lanes->statements, &settings.statement_count);
    connection->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(connection->pg);
}

/* Statements first: connections prepare them when they come up. */
static void start_connections(struct lanes *lanes)
{
    make_statements(lanes);
    lanes->connections = rcpt_calloc(connection_count(lanes), sizeof(*lanes->connections));
    for (uint32_t index = 0; index < connection_count(lanes); index++)
        start_connection(lanes, index);
}

static void free_connections(struct lanes *lanes)
{
    for (unsigned index = 0; lanes->connections != NULL && index < connection_count(lanes);
         index++) {
        rcpt_lane_sender_free(lanes->connections[index].sender);
        rcpt_pg_encoder_free(lanes->connections[index].encoder);
    }
    free(lanes->connections);
    lanes->connections = NULL;
}

/* The dsn counts from the next connect on, the rest from the next batch. */
void lanes_apply_config(struct lanes *lanes)
{
    const struct rcpt_config *config = lanes->receipts->context->config;
    for (unsigned index = 0; index < connection_count(lanes); index++) {
        struct connection *connection = &lanes->connections[index];
        configure_sender(connection->sender, config);
        if (connection->pg != NULL)
            rcpt_pg_set_dsn(connection->pg, config->postgres.dsn);
    }
}

/* All old connections are gone: the engine learns the new number while it holds every lane. */
static void finish_change(struct lanes *lanes)
{
    const struct receipts *receipts = lanes->receipts;
    struct rcpt_config *config = receipts->context->config;
    free_connections(lanes);
    rcpt_engine_set_connections(receipts->engine, lanes->target);
    config->postgres.connections = lanes->target;
    lanes->target = 0;
    start_connections(lanes);
    rcpt_engine_set_held(receipts->engine, false, host_now(receipts->context));
    rcpt_log_info("receipts", "%u connections for lanes now", config->postgres.connections);
    host_check_drain(receipts->context);
}

static void on_connection_closed(void *context)
{
    struct lanes *lanes = context;
    if (--lanes->closing == 0)
        finish_change(lanes);
}

/* Holds the engine: lanes finish their transactions in flight and begin none. */
static void begin_change(struct lanes *lanes, unsigned connections)
{
    lanes->target = connections;
    rcpt_engine_set_held(lanes->receipts->engine, true, host_now(lanes->receipts->context));
    lanes_tick(lanes);
}

void lanes_resize(struct lanes *lanes, unsigned connections)
{
    if (connections == connection_count(lanes) && lanes->target == 0)
        return;
    if (lanes->closing == 0) /* otherwise the reload that began it has not ended yet */
        begin_change(lanes, connections);
}

/* Other statements are prepared on new connections only. */
void lanes_apply_subscriptions(struct lanes *lanes)
{
    const struct transition_wants wants = subscribers_want(lanes->receipts);
    if (!subscribers_want_same(&wants, &lanes->wants) && lanes->target == 0)
        begin_change(lanes, connection_count(lanes));
}

/* Waits for the moment at which nothing is in flight, then closes all connections. */
void lanes_tick(struct lanes *lanes)
{
    const struct receipts *receipts = lanes->receipts;
    unsigned count = connection_count(lanes);
    if (lanes->target == 0 || lanes->closing > 0 || host_is_stopping(receipts->context) ||
        !rcpt_engine_is_settled(receipts->engine))
        return;
    lanes->closing = count;
    for (unsigned index = 0; index < count; index++) {
        struct connection *connection = &lanes->connections[index];
        struct rcpt_pg *pg = connection->pg;
        if (connection->up)
            rcpt_engine_connection_down(receipts->engine, index, host_now(receipts->context));
        connection->up = false;
        connection->pg = NULL;
        rcpt_pg_close(pg, on_connection_closed, lanes);
    }
    host_update_readiness(receipts->context);
}

bool lanes_are_changing(const struct lanes *lanes)
{
    return lanes->target != 0;
}

bool lanes_are_closing(const struct lanes *lanes)
{
    return lanes->closing > 0;
}

/* Ready means all of them: a lane without its connection applies nothing. */
bool lanes_are_up(const struct lanes *lanes)
{
    for (unsigned index = 0; index < connection_count(lanes); index++) {
        if (!lanes->connections[index].up)
            return false;
    }
    return true;
}

bool lanes_view(const struct lanes *lanes, unsigned index, struct receipts_connection_view *view)
{
    if (index >= connection_count(lanes))
        return false;
    const struct connection *connection = &lanes->connections[index];
    *view = (struct receipts_connection_view){connection->name, connection->up, connection->pg};
    return true;
}

struct lanes *lanes_new(struct receipts *receipts)
{
    struct lanes *lanes = rcpt_calloc(1, sizeof(*lanes));
    unsigned count = receipts->context->config->lanes;
    lanes->receipts = receipts;
    lanes->rules = rcpt_calloc(1, sizeof(*lanes->rules));
    lanes->reads = rcpt_calloc(count, sizeof(*lanes->reads));
    lanes->flights = rcpt_calloc(count, sizeof(*lanes->flights));
    for (uint32_t lane = 0; lane < count; lane++)
        lanes->reads[lane] = (struct read){.lanes = lanes, .lane = lane};
    return lanes;
}

void lanes_observe(struct lanes *lanes, const struct lane_observer *observer)
{
    lanes->observer = observer;
}

void lanes_start(struct lanes *lanes)
{
    start_connections(lanes);
}

static void on_closed(void *context)
{
    host_closed(context);
}

void lanes_close(struct lanes *lanes)
{
    struct host_context *context = lanes->receipts->context;
    for (unsigned index = 0; index < connection_count(lanes); index++) {
        host_open(context);
        rcpt_pg_close(lanes->connections[index].pg, on_closed, context);
    }
}

void lanes_free(struct lanes *lanes)
{
    free_connections(lanes);
    rcpt_lane_statements_free(lanes->statements);
    for (uint32_t lane = 0; lane < lanes->receipts->context->config->lanes; lane++)
        free(lanes->reads[lane].rows);
    free(lanes->reads);
    free(lanes->flights);
    free(lanes->subscription);
    free(lanes->rules);
    free(lanes);
}

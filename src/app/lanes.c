#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "receiptd/postgres/sql.h"

static uint32_t connection_of(const struct app *app, uint32_t lane)
{
    return lane % app->config->postgres.connections;
}

/* A batch's line is found by its number, and by the trace of its first record. */
static void log_outcome(const struct app *app, uint32_t lane,
                        const struct rcpt_engine_result *result, const struct rcpt_error *error)
{
    const struct rcpt_batch *batch = app->lane_flights[lane].batch;
    const struct rcpt_log_fields fields = {
        .batch = batch->number,
        .trace = batch->record_count > 0 ? batch->records[0]->traceparent : NULL,
    };
    switch (result->outcome) {
    case RCPT_OUTCOME_COMMITTED:
    case RCPT_OUTCOME_PROBED:
    case RCPT_OUTCOME_UNKNOWN: /* on_down says it for the whole connection */
        break;
    case RCPT_OUTCOME_FENCED:
        rcpt_log_with(RCPT_LOG_INFO, "core", &fields, "lane %u: %s; reading its positions again",
                      lane, error->text);
        break;
    case RCPT_OUTCOME_DATA:
        rcpt_log_with(RCPT_LOG_WARN, "core", &fields,
                      "lane %u: a row is refused (%s); looking for it", lane, error->code);
        break;
    case RCPT_OUTCOME_AGAIN:
        rcpt_log_with(RCPT_LOG_DEBUG, "core", &fields, "lane %u: rolled back, goes again: %s (%s)",
                      lane, error->text, error->code);
        break;
    default:
        rcpt_log_with(RCPT_LOG_WARN, "postgres", &fields,
                      "lane %u: rolled back, will be tried again: %s (%s)%s%s", lane, error->text,
                      error->code, error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
        break;
    }
}

/* The response time of a batch is from its submission, so the wait behind others on the connection
 * counts. */
static void log_response(const struct app *app, uint32_t lane)
{
    if (!rcpt_log_enabled(RCPT_LOG_DEBUG))
        return;
    const struct app_lane_flight *flight = &app->lane_flights[lane];
    rcpt_log_debug("postgres", "lane %u: batch %llu of %u messages, %u events answered in %llu us",
                   lane, (unsigned long long)flight->number, flight->messages, flight->events,
                   (unsigned long long)(uv_hrtime() - flight->sent_ns) / 1000);
}

static void on_sent(void *context, uint32_t lane, const struct rcpt_engine_result *result,
                    const struct rcpt_error *error)
{
    struct app_lane_connection *connection = context;
    struct app *app = connection->app;
    log_outcome(app, lane, result, error);
    log_response(app, lane);
    if (result->outcome == RCPT_OUTCOME_COMMITTED) {
        janitor_count_parked(app, result->events_parked);
        if (!app->lane_flights[lane].quiet)
            app->changed_loudly += result->messages_changed;
    } else if (error != NULL && strcmp(error->code, "RD003") == 0) {
        lanes_set_wanted(app, NULL);
        actions_ask_wanted(app);
    }
    app->lane_flights[lane].fenced = result->outcome == RCPT_OUTCOME_FENCED;
    measure_result(app, lane, result);
    trace_end_batch(app, lane, result, error);
    rcpt_engine_on_result(app->engine, lane, result, app_now(app));
    if (error != NULL && error->decision == RCPT_DECISION_RECONNECT &&
        result->outcome != RCPT_OUTCOME_UNKNOWN)
        rcpt_pg_reconnect(connection->pg, error);
    consume_continue(app);
    app_check_drain(app);
}

void lanes_port_submit(void *context, const struct rcpt_batch *batch)
{
    struct app *app = context;
    struct app_lane_connection *connection = &app->connections[connection_of(app, batch->lane)];
    app->lane_flights[batch->lane] =
        (struct app_lane_flight){.batch = batch,
                                 .number = batch->number,
                                 .sent_ns = uv_hrtime(),
                                 .events = batch->event_count,
                                 .messages = batch->message_count,
                                 .span = trace_begin_batch(app, batch)};
    app->lane_flights[batch->lane].quiet =
        rcpt_lane_send(connection->sender, connection->pg, batch,
                       app->lane_flights[batch->lane].span != NULL, on_sent, connection);
}

/* ---- positions ---- */

static void on_positions(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                         const struct rcpt_error *error)
{
    struct app_lane_read *read = context;
    struct app *app = read->app;
    struct rcpt_pg *pg = app->connections[connection_of(app, read->lane)].pg;
    if (error != NULL) {
        rcpt_engine_on_positions_failed(app->engine, read->lane, app_now(app));
        if (pg != NULL && error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
            rcpt_pg_reconnect(pg, error);
        return;
    }
    RCPT_ASSERT(row_count == 1 && rcpt_pg_rows_count(rows[0]) == read->count);
    for (uint32_t row = 0; row < read->count; row++) {
        read->rows[row].found = rcpt_pg_rows_text(rows[0], row, 0) != NULL;
        read->rows[row].next_offset = rcpt_pg_rows_int(rows[0], row, 0);
        read->rows[row].generation = rcpt_pg_rows_int(rows[0], row, 1);
    }
    /* The engine may send the next batch at once. */
    uint64_t contended = rcpt_engine_get_stats(app->engine)->contended;
    uint32_t fenced =
        app->lane_flights[read->lane].fenced ? app->lane_flights[read->lane].messages : 0;
    app->lane_flights[read->lane].fenced = false;
    rcpt_engine_on_positions(app->engine, read->lane, read->rows, read->count, app_now(app));
    if (rcpt_engine_get_stats(app->engine)->contended > contended)
        rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_EXCLUSIVITY_MESSAGES, RCPT_NO_LABELS,
                         fenced);
    app_update_readiness(app);
}

void lanes_put_assigned(const struct app *app, struct rcpt_pg_encoder *encoder)
{
    uint32_t slots = rcpt_engine_slot_count(app->engine), assigned = 0;
    for (uint32_t slot = 0; slot < slots; slot++)
        assigned += rcpt_engine_is_assigned(app->engine, slot);
    rcpt_pg_begin_text_array(encoder, assigned);
    for (uint32_t slot = 0; slot < slots; slot++) {
        const char *topic = rcpt_engine_slot_topic(app->engine, slot);
        if (rcpt_engine_is_assigned(app->engine, slot))
            rcpt_pg_put_bytes(encoder, topic, strlen(topic));
    }
    rcpt_pg_begin_int4_array(encoder, assigned);
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (rcpt_engine_is_assigned(app->engine, slot))
            rcpt_pg_put_int4(encoder, rcpt_engine_slot_partition(app->engine, slot));
    }
}

/* The rows come back in the order of the question, which is kept here by slot. */
static void remember_slots(struct app *app, struct app_lane_read *read)
{
    uint32_t slots = rcpt_engine_slot_count(app->engine);
    read->rows = rcpt_realloc(read->rows, (slots + 1) * sizeof(*read->rows));
    read->count = 0;
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (rcpt_engine_is_assigned(app->engine, slot))
            read->rows[read->count++] = (struct rcpt_engine_position){.slot = slot};
    }
}

void lanes_port_read_positions(void *context, uint32_t lane)
{
    struct app *app = context;
    struct app_lane_connection *connection = &app->connections[connection_of(app, lane)];
    remember_slots(app, &app->lane_reads[lane]);
    rcpt_pg_encoder_reset(connection->encoder);
    lanes_put_assigned(app, connection->encoder);
    rcpt_pg_add_int4(connection->encoder, (int32_t)lane);
    struct rcpt_pg_query query = {.statement = "positions"};
    rcpt_pg_encoder_params(connection->encoder, &query.params);
    rcpt_pg_submit(connection->pg, &query, 1, on_positions, &app->lane_reads[lane]);
}

/* ---- connections ---- */

static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct app_lane_connection *connection = context;
    (void)pg;
    connection->up = true;
    rcpt_log_info("postgres", "%s is connected", connection->name);
    rcpt_engine_connection_up(connection->app->engine, connection->index, app_now(connection->app));
    app_update_readiness(connection->app);
}

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct app_lane_connection *connection = context;
    struct app *app = connection->app;
    (void)pg;
    if (connection->up)
        rcpt_engine_connection_down(app->engine, connection->index, app_now(app));
    connection->up = false;
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_CONNECTION_FAILURES,
                     RCPT_LABELS(connection->name), 1);
    app_set_reason(app->database_reason, error);
    rcpt_log_warn("postgres", "%s is not connected: %s", connection->name, app->database_reason);
    app_update_readiness(app);
    app_check_drain(app);
}

static struct rcpt_lane_statements *make_statements(struct app *app)
{
    app->folds_told = folds_want_transitions(app);
    app->actions_told = actions_are_configured(app->config);
    return rcpt_lane_statements_new(
        &(struct rcpt_lane_subscribers){.folds = app->folds_told != FOLDS_NOT_TOLD,
                                        .folds_columns = app->folds_told == FOLDS_TOLD_COLUMNS,
                                        .pipelines = app->actions_told});
}

/* apply_unsubscribed is prepared only where there are pipelines. */
static void tell_wanted(const struct app *app, struct app_lane_connection *connection)
{
    rcpt_lane_sender_set_wanted(connection->sender, app->actions_told ? app->wanted : NULL);
}

void lanes_set_wanted(struct app *app, const struct rcpt_lane_wanted *wanted)
{
    free(app->wanted);
    app->wanted = NULL;
    if (wanted != NULL) {
        app->wanted = rcpt_malloc(sizeof(*wanted));
        *app->wanted = *wanted;
    }
    for (uint32_t index = 0; index < app->config->postgres.connections; index++)
        if (app->connections != NULL && app->connections[index].sender != NULL)
            tell_wanted(app, &app->connections[index]);
}

static const char *unknown_policy(enum rcpt_unknown_policy policy)
{
    switch (policy) {
    case RCPT_UNKNOWN_INSERT:
        return "insert";
    case RCPT_UNKNOWN_DEAD_LETTER:
        return "dead-letter";
    default:
        return "park";
    }
}

static const char *name_gateway(const void *context, uint32_t gateway)
{
    const struct app *app = context;
    return rcpt_decoder_gateway(app->decoder, gateway);
}

static void start_connection(struct app *app, uint32_t index)
{
    const struct rcpt_config *config = app->config;
    struct app_lane_connection *connection = &app->connections[index];
    connection->app = app;
    connection->index = index;
    snprintf(connection->name, sizeof(connection->name), "lanes-%u", index);
    connection->sender =
        rcpt_lane_sender_new(unknown_policy(config->unknown), config->parked.max_age_ms);
    rcpt_lane_sender_set_timeline(connection->sender, config->timeline.retention_ms > 0);
    rcpt_lane_sender_observe(connection->sender, measure_effects, connection);
    rcpt_lane_sender_name_gateways(connection->sender, name_gateway, app);
    tell_wanted(app, connection);
    connection->encoder = rcpt_pg_encoder_new();
    struct rcpt_pg_settings settings = app_pg_settings(app, connection->name);
    settings.context = connection;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements =
        rcpt_lane_statements_list(app->lane_statements, &settings.statement_count);
    connection->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(connection->pg);
}

void lanes_start(struct app *app)
{
    unsigned count = app->config->postgres.connections;
    app->lane_statements = make_statements(app);
    app->connections = rcpt_calloc(count, sizeof(*app->connections));
    app->lane_reads = rcpt_calloc(app->config->lanes, sizeof(*app->lane_reads));
    app->lane_flights = rcpt_calloc(app->config->lanes, sizeof(*app->lane_flights));
    for (uint32_t lane = 0; lane < app->config->lanes; lane++)
        app->lane_reads[lane] = (struct app_lane_read){.app = app, .lane = lane};
    for (uint32_t index = 0; index < count; index++)
        start_connection(app, index);
}

/* ---- a reload ---- */

void lanes_apply_config(struct app *app)
{
    for (unsigned index = 0; index < app->config->postgres.connections; index++) {
        struct app_lane_connection *connection = &app->connections[index];
        rcpt_lane_sender_set_max_age(connection->sender, app->config->parked.max_age_ms);
        rcpt_lane_sender_set_timeline(connection->sender, app->config->timeline.retention_ms > 0);
        if (connection->pg != NULL)
            rcpt_pg_set_dsn(connection->pg, app->config->postgres.dsn);
    }
}

static void free_connections(struct app *app)
{
    for (unsigned index = 0; index < app->config->postgres.connections; index++) {
        rcpt_lane_sender_free(app->connections[index].sender);
        rcpt_pg_encoder_free(app->connections[index].encoder);
    }
    free(app->connections);
    app->connections = NULL;
}

static void finish_resize(struct app *app)
{
    free_connections(app);
    rcpt_engine_set_connections(app->engine, app->wanted_connections);
    app->config->postgres.connections = app->wanted_connections;
    app->wanted_connections = 0;
    app->connections = rcpt_calloc(app->config->postgres.connections, sizeof(*app->connections));
    rcpt_config_hash(app->config, app->figures.config_hash);
    rcpt_lane_statements_free(app->lane_statements);
    app->lane_statements = make_statements(app);
    for (uint32_t index = 0; index < app->config->postgres.connections; index++)
        start_connection(app, index);
    rcpt_engine_set_held(app->engine, false, app_now(app));
    rcpt_log_info("app", "%u connections for lanes now", app->config->postgres.connections);
    app_check_drain(app);
}

static void on_resize_closed(void *context)
{
    struct app *app = context;
    if (--app->closing_connections == 0)
        finish_resize(app);
}

void lanes_resize(struct app *app, unsigned connections)
{
    if (connections == app->config->postgres.connections && app->wanted_connections == 0)
        return;
    if (app->closing_connections > 0)
        return; /* the reload that began it has not ended yet */
    app->wanted_connections = connections;
    rcpt_engine_set_held(app->engine, true, app_now(app));
    lanes_tick(app);
}

void lanes_apply_blocks(struct app *app)
{
    bool same = app->folds_told == folds_want_transitions(app) &&
                app->actions_told == actions_are_configured(app->config);
    if (same || app->wanted_connections != 0)
        return;
    app->wanted_connections = app->config->postgres.connections;
    rcpt_engine_set_held(app->engine, true, app_now(app));
    lanes_tick(app);
}

void lanes_tick(struct app *app)
{
    unsigned count = app->config->postgres.connections;
    if (app->wanted_connections == 0 || app->closing_connections > 0 || app->stopping ||
        !rcpt_engine_is_settled(app->engine))
        return;
    app->closing_connections = count;
    for (unsigned index = 0; index < count; index++) {
        struct app_lane_connection *connection = &app->connections[index];
        struct rcpt_pg *pg = connection->pg;
        if (connection->up)
            rcpt_engine_connection_down(app->engine, index, app_now(app));
        connection->up = false;
        connection->pg = NULL;
        rcpt_pg_close(pg, on_resize_closed, app);
    }
    app_update_readiness(app);
}

void lanes_fini(struct app *app)
{
    free_connections(app);
    rcpt_lane_statements_free(app->lane_statements);
    for (uint32_t lane = 0; lane < app->config->lanes; lane++)
        free(app->lane_reads[lane].rows);
    free(app->lane_reads);
    free(app->lane_flights);
    free(app->wanted);
}

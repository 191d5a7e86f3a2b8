/* The way of receipts as a whole: makes the engine, the control connection and the parts, starts
 * and ends them, and answers for them to run.c and the pages. It has no state machine of its own:
 * run.c has that of the process, the engine that of a batch.
 *
 * Called by run.c (life), reload.c (configuration), control.c, status.c and measure.c (views), and
 * by folds and actions, which subscribe to transitions.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the engine ---- */

/* The seed must not be guessable, because senders of receipts choose their ids. */
static uint64_t draw_seed(void)
{
    uint64_t seed = 0;
    if (uv_random(NULL, NULL, &seed, sizeof(seed), 0, NULL) != 0)
        seed = (uint64_t)getpid() ^ uv_hrtime();
    return seed;
}

/* The only place where the configuration becomes limits of the engine; a reload comes here again.
 */
static void read_limits(const struct receipts *receipts, struct rcpt_engine_settings *settings)
{
    const struct rcpt_config *config = receipts->context->config;
    *settings = (struct rcpt_engine_settings){
        .lanes = config->lanes,
        .connections = config->postgres.connections,
        .depth = 1, /* a transaction has two flights, and nothing may come between them */
        .batch_max_events = (uint32_t)config->batch.max_events *
                            (receipts->catching_up.on ? config->batch.catch_up : 1),
        .batch_max_bytes = (uint32_t)config->batch.max_bytes,
        .budget_bytes = config->memory.budget_bytes,
        .linger_ms = config->batch.linger_ms,
        .idle_advance_ms = config->progress.idle_interval_ms,
        .verify_interval_ms = config->progress.verify_interval_ms,
        .rewind_timeout_ms = config->progress.rewind_timeout_ms,
        .retry_min_ms = config->postgres.retry_min_ms,
        .retry_max_ms = config->postgres.retry_max_ms,
        .wake_limit = (uint32_t)config->parked.wake_limit,
        .seed = draw_seed(),
    };
}

static void set_limits(struct receipts *receipts)
{
    struct rcpt_engine_settings settings;
    read_limits(receipts, &settings);
    rcpt_engine_set_limits(receipts->engine, &settings);
}

/* Every tick; the limits change only where the standing of all partitions has changed. */
static void catch_up(struct receipts *receipts)
{
    const struct rcpt_config *config = receipts->context->config;
    if (!catch_up_tick(receipts))
        return;
    set_limits(receipts);
    rcpt_log_debug("receipts", "%s; up to %u receipts a transaction",
                   receipts->catching_up.on ? "all partitions are behind"
                                            : "not all partitions are behind",
                   (unsigned)config->batch.max_events *
                       (receipts->catching_up.on ? (unsigned)config->batch.catch_up : 1));
}

/* Port of the engine: this instance stops taking in, and stays up for an operator. */
static void port_halt(void *context, const struct rcpt_error *error)
{
    const struct receipts *receipts = context;
    host_halt(receipts->context, error);
}

/* A reload may switch on the stream, which reads reasons. */
static void read_rules(const struct receipts *receipts)
{
    const struct rcpt_config *config = receipts->context->config;
    struct rules rules;
    rules_read(config, &(struct transition_wants){.stream = config->stream.topic != NULL}, &rules);
    if (rules_read_receipts(&rules))
        rcpt_decoder_set_rules(receipts->decoder, rules.settings.dedup);
    if (rules.ranges.on)
        rcpt_decoder_take_ranges(receipts->decoder);
}

/* Ports connect the pure engine to PostgreSQL and Kafka. */
static void make_engine(struct receipts *receipts)
{
    const struct rcpt_config *config = receipts->context->config;
    struct rcpt_engine_settings settings;
    read_limits(receipts, &settings);
    struct rcpt_engine_ports ports = {
        .context = receipts,
        .submit = lanes_port_submit,
        .read_positions = lanes_port_read_positions,
        .rewind = positions_port_rewind,
        .reassign = positions_port_reassign,
        .refresh = positions_port_refresh,
        .halt = port_halt,
    };
    receipts->engine = rcpt_engine_new(&settings, config->ladder, &ports);
    receipts->decoder = rcpt_decoder_new(config->ladder, config->lanes);
    read_rules(receipts);
    rcpt_decoder_set_machines(receipts->decoder, &config->machine);
}

/* ---- the control connection ---- */

/* A new session may be on another server: what the roll-up remembers of the old one is void. */
static void on_control_ready(void *context, struct rcpt_pg *pg)
{
    struct receipts *receipts = context;
    receipts->control.up = true;
    rollup_forget(receipts->rollup);
    positions_tick(receipts);
    if (receipts->control_listener != NULL && !host_is_stopping(receipts->context))
        receipts->control_listener->on_ready(receipts->control_listener->context, pg);
    host_update_readiness(receipts->context);
}

/* Lanes have connections of their own and go on; positions, parking and the roll-up wait. */
static void on_control_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct receipts *receipts = context;
    (void)pg;
    host_count_lost(receipts->context, "control", receipts->control.up);
    receipts->control.up = false;
    host_set_reason(receipts->database_reason, "PostgreSQL is not connected", error);
    host_update_readiness(receipts->context);
}

static void start_control(struct receipts *receipts)
{
    struct rcpt_pg_settings settings = host_pg_settings(receipts->context, "control");
    settings.context = receipts;
    settings.on_ready = on_control_ready;
    settings.on_down = on_control_down;
    settings.statements = rcpt_control_statements(&settings.statement_count);
    receipts->control.pg = rcpt_pg_new(&settings);
    rcpt_pg_start(receipts->control.pg);
}

/* One listener: the folds, which ask whether earlier rules have left work. */
void receipts_listen_control(struct receipts *receipts, const struct control_listener *listener)
{
    receipts->control_listener = listener;
}

/* ---- subscribers ---- */

void receipts_apply_subscriptions(struct receipts *receipts)
{
    lanes_apply_subscriptions(receipts->lanes);
}

void receipts_set_subscription(struct receipts *receipts,
                               const struct rcpt_lane_subscription *subscription)
{
    lanes_set_subscription(receipts->lanes, subscription);
}

/* A subscriber has become ready, so an assignment that waited for it may go on. */
void receipts_on_prepared(struct receipts *receipts)
{
    positions_tick(receipts);
}

void receipts_observe(struct receipts *receipts, const struct lane_observer *observer)
{
    lanes_observe(receipts->lanes, observer);
}

/* ---- life ---- */

/* Every 50 ms: retries, time-outs and lingering batches depend on it. */
static void on_tick(void *context)
{
    struct receipts *receipts = context;
    rcpt_engine_tick(receipts->engine, host_now(receipts->context));
    if (receipts->consuming.noted != receipts->context->lineage.changes)
        consume_commit(receipts); /* a lane may have moved to another server */
    positions_tick(receipts);
    host_places_tick(receipts->places);
    catch_up(receipts);
    lanes_tick(receipts->lanes);
    host_trim_memory(&receipts->catching_up.burst, rcpt_engine_bytes(receipts->engine),
                     host_now(receipts->context));
}

/* Makes everything and connects nothing: subscribers and observers register before the start. */
struct receipts *receipts_new(struct host_context *context)
{
    struct receipts *receipts = rcpt_calloc(1, sizeof(*receipts));
    receipts->context = context;
    receipts->control = (struct rcpt_asker){.loop = context->loop,
                                            .component = "receipts",
                                            .prefix = "",
                                            .encoder = rcpt_pg_encoder_new()};
    receipts->ticker = (struct host_ticker){.tick = on_tick, .context = receipts};
    uv_timer_init(context->loop, &receipts->consuming.commit_timer);
    receipts->consuming.commit_timer.data = receipts;
    make_engine(receipts);
    positions_start(receipts);
    receipts->places = host_places_new(&(struct host_places_settings){.context = context,
                                                                      .reader = "receipts",
                                                                      .kafka = &receipts->kafka,
                                                                      .asker = &receipts->control,
                                                                      .remembers = true,
                                                                      .statement = "places"});
    receipts->lanes = lanes_new(receipts);
    receipts->parking = parking_new(receipts);
    receipts->rollup = rollup_new(receipts);
    receipts->blockers = blockers_new(receipts);
    receipts->recent = recent_new(receipts);
    receipts->maintenance = maintenance_new(receipts);
    receipts->deltas = deltas_new(receipts);
    receipts->layout = layout_watch_new(receipts);
    return receipts;
}

/* Connects; nothing is consumed before receipts_consume(). */
void receipts_start(struct receipts *receipts)
{
    start_control(receipts);
    lanes_start(receipts->lanes);
    host_add_ticker(receipts->context, &receipts->ticker);
    rollup_start(receipts->rollup);
    parking_start(receipts->parking);
    blockers_start(receipts->blockers);
    recent_start(receipts->recent);
    maintenance_start(receipts->maintenance);
    deltas_start(receipts->deltas);
    layout_watch_start(receipts->layout);
    consume_apply_config(receipts);
}

bool receipts_consume(struct receipts *receipts, struct rcpt_error *error)
{
    return consume_start(receipts, error);
}

/* Limits before connections, since a batch that is made now uses them. */
void receipts_apply_config(struct receipts *receipts, unsigned connections)
{
    const struct host_context *context = receipts->context;
    struct rcpt_error error;
    set_limits(receipts);
    rcpt_decoder_set_machines(receipts->decoder, &context->config->machine);
    if (!consume_read_topics(receipts, &error)) /* a zone's file has gone since the check */
        rcpt_log_failure(RCPT_LOG_ERROR, "receipts", &error, "the topics' forms stay as they were");
    read_rules(receipts);
    lanes_apply_config(receipts->lanes);
    rcpt_pg_set_dsn(receipts->control.pg, context->config->postgres.dsn);
    if (receipts->kafka != NULL) {
        struct rcpt_kafka_credentials credentials;
        host_kafka_credentials(context->config, &credentials);
        rcpt_kafka_set_credentials(receipts->kafka, &credentials);
    }
    rollup_apply_config(receipts->rollup);
    consume_apply_config(receipts);
    consume_continue(receipts);
    rcpt_engine_tick(receipts->engine, host_now(context));
    lanes_resize(receipts->lanes, connections);
}

/* No new batch begins, and transactions in flight finish: Kafka has the rest. */
void receipts_stop(struct receipts *receipts)
{
    receipts->control.closed = true;
    if (receipts->kafka != NULL)
        rcpt_kafka_stop_polling(receipts->kafka);
    rcpt_engine_stop(receipts->engine);
}

bool receipts_are_settled(const struct receipts *receipts)
{
    return rcpt_engine_is_settled(receipts->engine) && !lanes_are_closing(receipts->lanes);
}

bool receipts_leave(struct receipts *receipts, int64_t patience_ms)
{
    return consume_close(receipts, patience_ms);
}

static void on_closed(void *context)
{
    host_closed(context);
}

void receipts_close(struct receipts *receipts)
{
    struct host_context *context = receipts->context;
    host_close_handle(context, (uv_handle_t *)&receipts->consuming.commit_timer);
    rollup_close(receipts->rollup);
    parking_close(receipts->parking);
    lanes_close(receipts->lanes);
    host_open(context);
    rcpt_pg_close(receipts->control.pg, on_closed, context);
}

/* After the loop has closed everything. */
void receipts_free(struct receipts *receipts)
{
    rcpt_assignment_free(receipts->assignment);
    rcpt_engine_free(receipts->engine);
    rcpt_decoder_free(receipts->decoder);
    rcpt_gateway_topics_free(receipts->topics);
    host_places_free(receipts->places);
    lanes_free(receipts->lanes);
    parking_free(receipts->parking);
    rollup_free(receipts->rollup);
    blockers_free(receipts->blockers);
    recent_free(receipts->recent);
    maintenance_free(receipts->maintenance);
    deltas_free(receipts->deltas);
    layout_watch_free(receipts->layout);
    rcpt_pg_encoder_free(receipts->control.encoder);
    free(receipts);
}

/* ---- views ---- */

struct rcpt_engine *receipts_engine(const struct receipts *receipts)
{
    return receipts->engine;
}

const char *receipts_gateway(const struct receipts *receipts, uint32_t gateway)
{
    return rcpt_decoder_facet(receipts->decoder, RCPT_FACET_GATEWAY, gateway);
}

uint64_t receipts_gateway_events(const struct receipts *receipts, uint32_t gateway)
{
    return rcpt_decoder_gateway_events(receipts->decoder, gateway);
}

const struct rcpt_record_delays *receipts_gateway_delays(const struct receipts *receipts,
                                                         uint32_t gateway)
{
    return rcpt_decoder_gateway_delays(receipts->decoder, gateway);
}

uint64_t receipts_machine_events(const struct receipts *receipts, enum rcpt_machine_kind kind,
                                 enum rcpt_machine_policy policy)
{
    return rcpt_decoder_machine_events(receipts->decoder, kind, policy);
}

/* A reason is empty until the first failure. */
static const char *text_or(const char *text, const char *fallback)
{
    return text[0] != '\0' ? text : fallback;
}

/* The first one of each kind; readiness shows them all. */
unsigned receipts_reasons(const struct receipts *receipts,
                          const char *reasons[RECEIPTS_MOST_REASONS])
{
    unsigned count = 0;
    if (lanes_are_changing(receipts->lanes))
        reasons[count++] = "changing the number of connections";
    else if (!receipts->control.up || !lanes_are_up(receipts->lanes))
        reasons[count++] = text_or(receipts->database_reason, "connecting to PostgreSQL");
    if (!receipts->consuming.healthy)
        reasons[count++] = text_or(receipts->consuming.reason, "connecting to Kafka");
    else if (!receipts->consuming.joined)
        reasons[count++] = "joining the consumer group";
    if (rcpt_assignment_is_unread(receipts->assignment))
        reasons[count++] = receipts->context->recalled
                               ? "reading positions"
                               : "asking Kafka which PostgreSQL server the group's offsets name";
    else if (rcpt_assignment_waits_for_log(receipts->assignment))
        reasons[count++] = "the log of a partition begins above its position: waiting for "
                           "transactions of the previous owner (postgres.zombie_timeout)";
    if (layout_watch_reason(receipts->layout)[0] != '\0')
        reasons[count++] = layout_watch_reason(receipts->layout);
    return count;
}

/* Work that any instance could do is divided by the partitions of the first topic. */
bool receipts_own_share(const struct receipts *receipts, uint32_t number)
{
    const char *topic = receipts->context->config->kafka.topics[0];
    int32_t partitions = rcpt_assignment_topic_partitions(receipts->assignment, topic);
    return partitions > 0 && assigned_has(receipts->engine, topic, (int32_t)number % partitions);
}

unsigned receipts_assigned(const struct receipts *receipts)
{
    return assigned_count(receipts->engine);
}

bool receipts_view_connection(const struct receipts *receipts, unsigned index,
                              struct receipts_connection_view *view)
{
    if (index > 0)
        return lanes_view(receipts->lanes, index - 1, view);
    *view =
        (struct receipts_connection_view){"control", receipts->control.up, receipts->control.pg};
    return true;
}

struct rcpt_asker *receipts_asker(struct receipts *receipts)
{
    return &receipts->control;
}

struct receipts_view receipts_look(const struct receipts *receipts)
{
    static const char *const states[RCPT_ASSIGNMENT_STATE__COUNT] = {
        [RCPT_ASSIGNMENT_IDLE] = "settled",
        [RCPT_ASSIGNMENT_WAITING] = "waiting for PostgreSQL",
        [RCPT_ASSIGNMENT_READING] = "reading positions",
        [RCPT_ASSIGNMENT_QUERYING] = "asking Kafka for offsets",
        [RCPT_ASSIGNMENT_INSERTING] = "making rows",
        [RCPT_ASSIGNMENT_REFUSED] = "refused"};
    struct receipts_view view = {.cluster_id = rcpt_assignment_cluster(receipts->assignment),
                                 .assignment_state =
                                     receipts->consuming.joined
                                         ? states[rcpt_assignment_state(receipts->assignment)]
                                         : "joining the group",
                                 .kafka_is_healthy = receipts->consuming.healthy};
    parking_view(receipts->parking, &view);
    blockers_view(receipts->blockers, &view);
    return view;
}

/* The instance's end of its connections, as src/receipts/lanes.c and src/postgres behave. */
#include <string.h>

#include "flights.h"
#include "instance.h"
#include "oracle.h"

static void connect_later(struct sim *sim, struct sim_instance *instance, uint32_t connection,
                          int64_t delay_us);

bool sim_connection_is_up(const struct sim_instance *instance, uint32_t connection)
{
    return instance->connections[connection].up;
}

static bool is_control(const struct sim_instance *instance, uint32_t connection)
{
    return connection == instance->control;
}

static bool backend_lives(const struct sim *sim, const struct sim_connection *connection)
{
    const struct sim_backend *backend = &sim->database->backends[connection->backend];
    return backend->used && backend->life == connection->backend_life;
}

static bool is_between_flights(const struct sim *sim, const struct sim_connection *connection)
{
    return connection->up && backend_lives(sim, connection) &&
           sim->database->backends[connection->backend].phase == BACKEND_OPEN;
}

bool sim_connections_between_flights(const struct sim *sim, const struct sim_instance *instance,
                                     uint32_t connection)
{
    bool between = false;
    for (uint32_t at = 0; at < instance->control; at++)
        if (at == connection || connection >= instance->control)
            between |= is_between_flights(sim, &instance->connections[at]);
    return between;
}

/* ---- connecting ---- */

static void on_ready(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_connection *connection = &instance->connections[task->a];
    if (connection->epoch != task->b || connection->up)
        return;
    connection->up = true;
    if (is_control(instance, task->a))
        rcpt_assignment_tick(instance->assignment, sim_now_ms(sim));
    else
        rcpt_engine_connection_up(instance->engine, task->a, sim_now_ms(sim));
}

static void on_connect(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_connection *connection = &instance->connections[task->a];
    uint32_t backend =
        sim_server_connect(sim, instance->number, instance->life, task->a, connection->epoch);
    if (backend == UINT32_MAX) {
        connect_later(sim, instance, task->a, sim_random_delay(&sim->server_random, 400000));
        return;
    }
    connection->backend = backend;
    connection->backend_life = sim->database->backends[backend].life;
    connection->pending = NULL;
    connection->pending_end = &connection->pending;
    connection->last_arrival_us = 0;
    sim_instance_after(sim, instance,
                       sim_random_delay(&sim->server_random, sim->plan.network_us * 4), on_ready,
                       task->a, connection->epoch);
}

static void connect_later(struct sim *sim, struct sim_instance *instance, uint32_t connection,
                          int64_t delay_us)
{
    sim_instance_after(sim, instance, delay_us, on_connect, connection, 0);
}

void sim_connections_start(struct sim *sim, struct sim_instance *instance)
{
    for (uint32_t connection = 0; connection <= instance->control; connection++) {
        instance->connections[connection].pending_end = &instance->connections[connection].pending;
        if (!is_control(instance, connection))
            instance->connections[connection].sender = sim_sender_new(sim);
        connect_later(sim, instance, connection, sim_random_delay(&sim->server_random, 50000));
    }
}

/* ---- sending ---- */

static int64_t arrival_us(struct sim *sim, struct sim_connection *connection)
{
    int64_t at_us = sim->clock.now_us + sim_random_delay(&sim->server_random, sim->plan.network_us);
    if (at_us <= connection->last_arrival_us)
        at_us = connection->last_arrival_us + 1;
    connection->last_arrival_us = at_us;
    return at_us;
}

/* A transaction has several flights, and nothing may come between them. */
static bool has_transaction(const struct sim_connection *connection)
{
    const struct sim_request *request = connection->pending;
    while (request != NULL && request->kind != REQUEST_BATCH)
        request = request->next_of_client;
    return request != NULL;
}

void sim_connection_send(struct sim *sim, struct sim_instance *instance, uint32_t index,
                         struct sim_request *request)
{
    struct sim_connection *connection = &instance->connections[index];
    RCPT_ASSERT(connection->up);
    if (has_transaction(connection))
        sim_anomaly(sim, "interleaved", "instance %u sends on connection %u between two flights",
                    instance->number, index);
    *connection->pending_end = request;
    connection->pending_end = &request->next_of_client;
    int64_t at_us = arrival_us(sim, connection);
    if (backend_lives(sim, connection))
        sim_server_send(sim, connection->backend, request, at_us);
}

static void go_on(struct sim *sim, struct sim_connection *connection, struct sim_request *request)
{
    int64_t at_us = arrival_us(sim, connection);
    if (backend_lives(sim, connection) && !sim->database->backends[connection->backend].client_gone)
        sim_server_go_on(sim, connection->backend, request, at_us);
}

/* Numbers are the decoder's. */
static const char *facet_name(const void *context, enum rcpt_facet facet, uint32_t number)
{
    const struct sim_instance *instance = context;
    return rcpt_decoder_facet(instance->decoder, facet, number);
}

/* As src/postgres/statements.c: what has messages to decide goes in flights. */
static bool goes_in_flights(const struct rcpt_batch *batch)
{
    bool applies = batch->kind == RCPT_BATCH_APPLY || batch->kind == RCPT_BATCH_PROBE;
    return batch->kind == RCPT_BATCH_WAKE || (applies && batch->message_count > 0);
}

void sim_port_submit(void *context, const struct rcpt_batch *batch)
{
    struct sim_instance *instance = context;
    struct sim *sim = instance->sim;
    struct sim_request *request = sim_request_new(REQUEST_BATCH, instance->number);
    if (!sim_oracle_take_batch(sim, batch, request)) {
        sim_request_release(request);
        return; /* the schedule ends here */
    }
    struct sim_connection *connection = &instance->connections[batch->lane % instance->control];
    request->sent = batch;
    request->in_flights = goes_in_flights(batch);
    if (request->in_flights)
        sim_sender_begin(connection->sender, sim, request,
                         (struct rcpt_lane_names){facet_name, instance});
    sim_connection_send(sim, instance, batch->lane % instance->control, request);
}

void sim_port_read_positions(void *context, uint32_t lane)
{
    struct sim_instance *instance = context;
    struct sim_request *request = sim_request_new(REQUEST_POSITIONS, instance->number);
    request->lane = lane;
    request->parts = sim_assigned_parts(instance);
    sim_connection_send(instance->sim, instance, lane % instance->control, request);
}

/* ---- answers ---- */

static void on_positions(struct sim *sim, struct sim_instance *instance,
                         const struct sim_request *request)
{
    struct rcpt_engine_position rows[SIM_PARTS];
    size_t count = 0;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(instance->engine); slot++) {
        uint32_t part = sim_part(instance, slot);
        const struct sim_row *row = &request->rows[part][request->lane];
        if (request->parts >> part & 1)
            rows[count++] = (struct rcpt_engine_position){.slot = slot,
                                                          .next_offset = row->next,
                                                          .generation = row->generation,
                                                          .found = row->exists};
    }
    rcpt_engine_on_positions(instance->engine, request->lane, rows, count, sim_now_ms(sim));
}

static void on_probed(struct sim *sim, struct sim_instance *instance,
                      const struct sim_request *request)
{
    instance->probing = false;
    for (uint32_t lane = 0; lane < sim->plan.engine.lanes; lane++) {
        bool applicable = request->applicable >> lane & 1, expired = request->expired >> lane & 1;
        if (applicable || expired)
            rcpt_engine_wake(instance->engine, lane, applicable, expired, sim_now_ms(sim));
    }
    rcpt_engine_set_parking_full(instance->engine, request->parked >= sim->plan.parked_max_rows);
}

static struct sim_request *pop(struct sim_connection *connection)
{
    struct sim_request *request = connection->pending;
    connection->pending = request->next_of_client;
    if (connection->pending == NULL)
        connection->pending_end = &connection->pending;
    return request;
}

/* A rollback is sent, and the result does not wait for it. */
static void on_flight(struct sim *sim, struct sim_instance *instance,
                      struct sim_connection *connection)
{
    struct sim_request *request = connection->pending;
    if (!sim_sender_go_on(connection->sender, sim, request))
        return; /* the schedule ends here */
    go_on(sim, connection, request);
    if (request->flight != FLIGHT_ROLLBACK)
        return;
    const struct rcpt_engine_result overtaken = {.outcome = RCPT_ENGINE_RETRY};
    uint32_t lane = request->lane;
    sim_request_release(pop(connection));
    rcpt_engine_on_result(instance->engine, lane, &overtaken, sim_now_ms(sim));
    sim_instance_check_drain(sim, instance);
}

void sim_instance_on_answer(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_connection *connection = &instance->connections[task->a];
    if (connection->epoch != task->b)
        return;
    RCPT_ASSERT(connection->pending->answered);
    if (connection->pending->kind == REQUEST_BATCH && !connection->pending->final) {
        on_flight(sim, instance, connection);
        return;
    }
    struct sim_request *request = pop(connection);
    switch (request->kind) {
    case REQUEST_BATCH:
        rcpt_engine_on_result(instance->engine, request->lane, &request->result, sim_now_ms(sim));
        sim_instance_check_drain(sim, instance);
        break;
    case REQUEST_POSITIONS:
        on_positions(sim, instance, request);
        break;
    case REQUEST_PROBE:
        on_probed(sim, instance, request);
        break;
    default:
        sim_positions_on_answer(sim, instance, request, false);
        break;
    }
    sim_request_release(request);
}

/* ---- losing a connection ---- */

static void answer_lost(struct sim *sim, struct sim_instance *instance,
                        const struct sim_request *request)
{
    static const struct rcpt_engine_result unknown = {.outcome = RCPT_ENGINE_UNKNOWN};
    switch (request->kind) {
    case REQUEST_BATCH:
        rcpt_engine_on_result(instance->engine, request->lane, &unknown, sim_now_ms(sim));
        break;
    case REQUEST_POSITIONS:
        rcpt_engine_on_positions_failed(instance->engine, request->lane, sim_now_ms(sim));
        break;
    case REQUEST_PROBE:
        instance->probing = false;
        break;
    default:
        sim_positions_on_answer(sim, instance, request, true);
        break;
    }
}

/* As src/postgres does it: what is pending is answered as lost, then the connection is down.
 */
static void on_lost(struct sim *sim, const struct sim_task *task)
{
    struct sim_instance *instance = sim->instances[task->instance - 1];
    struct sim_connection *connection = &instance->connections[task->a];
    if (connection->epoch != task->b)
        return;
    connection->epoch++;
    bool was_up = connection->up;
    while (connection->pending != NULL) {
        struct sim_request *request = pop(connection);
        answer_lost(sim, instance, request);
        sim_request_release(request);
    }
    connection->up = false;
    if (was_up && !is_control(instance, task->a))
        rcpt_engine_connection_down(instance->engine, task->a, sim_now_ms(sim));
    sim_instance_check_drain(sim, instance);
    if (instance->alive)
        connect_later(sim, instance, task->a, sim_random_delay(&sim->server_random, 400000));
}

void sim_instance_lose_connection(struct sim *sim, uint32_t number, uint32_t life,
                                  uint32_t connection, uint32_t epoch, int64_t notice_us)
{
    sim_clock_add(
        &sim->clock, sim->clock.now_us + notice_us,
        (struct sim_task){
            .run = on_lost, .instance = number + 1, .life = life, .a = connection, .b = epoch});
}

void sim_connection_cut(struct sim *sim, struct sim_instance *instance, uint32_t index,
                        enum sim_fault how)
{
    struct sim_connection *connection = &instance->connections[index];
    if (!connection->up || !backend_lives(sim, connection) ||
        sim->database->backends[connection->backend].client_gone)
        return;
    sim_server_hang_up(sim, connection->backend, how);
    sim_instance_lose_connection(sim, instance->number, instance->life, index, connection->epoch,
                                 sim_random_delay(&sim->server_random, 300000));
}

void sim_connections_fini(struct sim *sim, struct sim_instance *instance, enum sim_fault how)
{
    for (uint32_t index = 0; index <= instance->control; index++) {
        struct sim_connection *connection = &instance->connections[index];
        if (connection->backend_life > 0 && backend_lives(sim, connection) &&
            !sim->database->backends[connection->backend].client_gone)
            sim_server_hang_up(sim, connection->backend, how);
        while (connection->pending != NULL)
            sim_request_release(pop(connection));
        sim_sender_free(connection->sender);
        connection->sender = NULL;
    }
}

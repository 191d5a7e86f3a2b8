/* What clients do to their backends: requests, flights, the end of a connection; and what ends
 * backends: evictions, deadlocks, the end of the server. Called by connections.c and faults.c.
 */
#include <stdlib.h>

#include "database.h"
#include "instance.h"
#include "oracle.h"

/* ---- clients ---- */

void sim_server_send(struct sim *sim, uint32_t number, struct sim_request *request,
                     int64_t arrives_us)
{
    struct sim_backend *backend = &sim->database->backends[number];
    request->refs++;
    request->arrives_us = arrives_us;
    *backend->queue_end = request;
    backend->queue_end = &request->next_of_server;
    if (backend->queue == request)
        sim_backend_step_after(sim, number, arrives_us - sim->clock.now_us);
}

void sim_server_go_on(struct sim *sim, uint32_t number, struct sim_request *request,
                      int64_t arrives_us)
{
    struct sim_backend *backend = &sim->database->backends[number];
    if (backend->queue != request || backend->phase != BACKEND_OPEN) {
        sim_anomaly(sim, "interleaved", "a flight of a transaction that is not open");
        return;
    }
    request->arrives_us = arrives_us;
    request->under_way = true;
    sim_backend_step_after(sim, number, arrives_us - sim->clock.now_us);
}

static bool is_under_way(const struct sim *sim, const struct sim_backend *backend,
                         const struct sim_request *request)
{
    return (request == backend->queue && backend->phase != BACKEND_IDLE &&
            !(backend->phase == BACKEND_OPEN && request->under_way)) ||
           request->arrives_us <= sim->clock.now_us;
}

/* Of the requests that have not arrived, all behind the first `kept` are cut off. */
static void drop_unarrived(struct sim *sim, struct sim_backend *backend, uint32_t kept)
{
    struct sim_request **place = &backend->queue;
    while (*place != NULL) {
        bool is_open = *place == backend->queue && backend->phase == BACKEND_OPEN;
        if (is_open && kept == 0 && !is_under_way(sim, backend, *place))
            (*place)->under_way = false; /* the transaction stays, its next flight is lost */
        if (is_open && kept == 0) {
            place = &(*place)->next_of_server;
            continue;
        }
        if (is_under_way(sim, backend, *place) || kept > 0) {
            if (!is_under_way(sim, backend, *place)) {
                kept--;
                (*place)->half = true;
            }
            place = &(*place)->next_of_server;
            continue;
        }
        struct sim_request *request = *place;
        *place = request->next_of_server;
        sim_request_release(request);
    }
    backend->queue_end = place;
}

void sim_server_hang_up(struct sim *sim, uint32_t number, enum sim_fault how)
{
    struct sim_backend *backend = &sim->database->backends[number];
    backend->client_gone = true;
    if (how == FAULT_CUT_BEFORE)
        drop_unarrived(sim, backend, 0);
    else if (how == FAULT_CUT_HALF)
        drop_unarrived(sim, backend, 1);
    else if (how == FAULT_CUT_LATE && backend->queue != NULL)
        backend->queue->delayed = true;
    if (how == FAULT_CUT_LATE && backend->phase > BACKEND_FENCE && backend->phase != BACKEND_OPEN &&
        !backend->stalled)
        sim_backend_step_after(sim, number, sim_backend_work_us(sim) * 50 + 300000);
    else if (backend->stalled)
        sim_backend_step_after(sim, number, sim_random_delay(&sim->server_random, SIM_NOTICE_US));
    else if (backend->phase == BACKEND_IDLE)
        sim_backend_step_after(sim, number, 1);
    else if (backend->phase == BACKEND_OPEN)
        sim_backend_step_after(sim, number, sim_random_delay(&sim->server_random, 200000));
}

void sim_server_hold_back(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *last = NULL;
    for (struct sim_request *request = backend->queue; request != NULL;
         request = request->next_of_server)
        last = request;
    /* The last request may still be in the socket's buffer. */
    if (last != NULL && last->kind == REQUEST_BATCH && !is_under_way(sim, backend, last))
        last->half = true;
}

void sim_server_rest(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    for (struct sim_request *request = backend->queue; request != NULL;
         request = request->next_of_server)
        request->half = false;
    if (!backend->stalled)
        return;
    backend->stalled = false;
    sim_backend_step_after(sim, number, sim_backend_work_us(sim));
}

void sim_server_evict(struct sim *sim, const uint32_t *own, uint32_t own_count)
{
    struct sim_database *database = sim->database;
    for (uint32_t index = 0; index < own_count; index++) {
        const struct sim_backend *waiting = &database->backends[own[index]];
        if (!waiting->used || waiting->waiting_for == NULL || *waiting->waiting_for == 0 ||
            *waiting->waiting_for == SIM_OTHERS)
            continue;
        uint32_t blocker = *waiting->waiting_for - 1;
        bool is_own = false;
        for (uint32_t other = 0; other < own_count; other++)
            is_own |= own[other] == blocker;
        if (!is_own && sim->clock.now_us - database->backends[blocker].started_us >
                           sim->plan.zombie_timeout_ms * 1000)
            sim_backend_end(sim, blocker, sim_backend_work_us(sim));
    }
}

void sim_server_make_victim(struct sim *sim, uint32_t choice)
{
    uint32_t waiting = 0;
    for (uint32_t number = 0; number < SIM_BACKENDS; number++) {
        struct sim_backend *backend = &sim->database->backends[number];
        if (!backend->used || backend->phase < BACKEND_FENCE || backend->phase == BACKEND_OPEN ||
            backend->stalled)
            continue;
        if (waiting++ % 4 == choice % 4) {
            backend->victim = true;
            sim_backend_step_after(sim, number, 1);
        }
    }
}

/* ---- the end of the server ---- */

bool sim_server_is_down(const struct sim *sim)
{
    return sim->clock.now_us < sim->database->down_until_us;
}

void sim_server_crash(struct sim *sim, bool pooled, uint32_t lost, int64_t down_us)
{
    struct sim_database *database = sim->database;
    database->down_until_us = sim->clock.now_us + down_us;
    for (uint32_t number = 0; number < SIM_BACKENDS; number++) {
        struct sim_backend *backend = &database->backends[number];
        if (backend->used && !(pooled && backend->phase == BACKEND_IDLE && !backend->client_gone))
            sim_backend_end(sim, number, sim_random_delay(&sim->server_random, 500000));
    }
    for (uint32_t message = 0; message < sim->traffic.message_count; message++)
        sim->traffic.messages[message].owner = 0;
    sim_database_go_back(sim, lost);
    sim_oracle_after_going_back(sim);
    sim_say(sim, "database: went back by %u transactions, down for %lld ms", lost,
            (long long)down_us / 1000);
}

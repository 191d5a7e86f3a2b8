/* Backends: transactions that take locks, wait, commit or roll back, whether or not their client is
 * still there. */
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "instance.h"
#include "oracle.h"

#define NOTICE_US 20000000 /* until the server sees that a client is gone, at the most */
#define AGAIN     40       /* one of so many batches lacks something and must be sent again */

static void step(struct sim *sim, uint32_t number);

/* ---- requests ---- */

struct sim_request *sim_request_new(enum sim_request_kind kind, uint32_t instance)
{
    struct sim_request *request = rcpt_calloc(1, sizeof(*request));
    request->refs = 1;
    request->kind = kind;
    request->instance = instance;
    return request;
}

void sim_request_release(struct sim_request *request)
{
    if (--request->refs > 0)
        return;
    free(request->folds);
    free(request->items);
    free(request->letters);
    free(request->letter_reasons);
    free(request->rows);
    free(request);
}

/* ---- scheduling ---- */

static void on_step(struct sim *sim, const struct sim_task *task)
{
    struct sim_backend *backend = &sim->database->backends[task->a];
    if (backend->used && backend->life == task->b && backend->step == task->c)
        step(sim, task->a);
}

static void step_after(struct sim *sim, uint32_t number, int64_t delay_us)
{
    struct sim_backend *backend = &sim->database->backends[number];
    backend->step++;
    sim_after(sim, delay_us, on_step, number, backend->life, backend->step);
}

static int64_t work_us(struct sim *sim)
{
    int64_t bound = sim->plan.hold_us;
    if (sim->clock.now_us < sim->database->slow_until_us)
        bound *= 20;
    return sim_random_delay(&sim->server_random, bound);
}

/* ---- locks ---- */

static bool lock_row(struct sim *sim, uint32_t number, uint32_t *owner)
{
    struct sim_backend *backend = &sim->database->backends[number];
    if (*owner == number + 1)
        return true;
    if (*owner != 0)
        return false;
    *owner = number + 1;
    if (backend->lock_count == backend->lock_capacity) {
        backend->lock_capacity = backend->lock_capacity * 2 + 16;
        backend->locks = rcpt_realloc(backend->locks, backend->lock_capacity * sizeof(uint32_t *));
    }
    backend->locks[backend->lock_count++] = owner;
    return true;
}

void sim_server_free(struct sim *sim, uint32_t *lock)
{
    *lock = 0;
    for (uint32_t number = 0; number < SIM_BACKENDS; number++) {
        struct sim_backend *backend = &sim->database->backends[number];
        if (backend->used && backend->waiting_for == lock)
            step_after(sim, number, 1);
    }
}

static void unlock_all(struct sim *sim, struct sim_backend *backend)
{
    while (backend->lock_count > 0)
        sim_server_free(sim, backend->locks[--backend->lock_count]);
    backend->waiting_for = NULL;
}

bool sim_server_lock_message(struct sim *sim, uint32_t message)
{
    uint32_t *owner = &sim->traffic.messages[message].owner;
    if (*owner != 0 || sim_server_is_down(sim))
        return false;
    *owner = SIM_OTHERS;
    return true;
}

/* ---- the life of a backend ---- */

uint32_t sim_server_connect(struct sim *sim, uint32_t instance, uint32_t life, uint32_t connection,
                            uint32_t epoch)
{
    struct sim_database *database = sim->database;
    if (sim_server_is_down(sim))
        return UINT32_MAX;
    for (uint32_t number = 0; number < SIM_BACKENDS; number++) {
        struct sim_backend *backend = &database->backends[number];
        if (backend->used)
            continue;
        uint32_t **locks = backend->locks, capacity = backend->lock_capacity;
        *backend = (struct sim_backend){.used = true,
                                        .life = backend->life + 1,
                                        .step = backend->step,
                                        .instance = instance,
                                        .instance_life = life,
                                        .connection = connection,
                                        .client_epoch = epoch,
                                        .locks = locks,
                                        .lock_capacity = capacity};
        backend->queue_end = &backend->queue;
        return number;
    }
    return UINT32_MAX; /* max_connections */
}

static struct sim_request *take_head(struct sim_backend *backend)
{
    struct sim_request *request = backend->queue;
    backend->queue = request->next_of_server;
    if (backend->queue == NULL)
        backend->queue_end = &backend->queue;
    return request;
}

/* Rolls back and ends; the client learns of it after a while, if there is one. */
static void end(struct sim *sim, uint32_t number, int64_t notice_us)
{
    struct sim_backend *backend = &sim->database->backends[number];
    unlock_all(sim, backend);
    while (backend->queue != NULL)
        sim_request_release(take_head(backend));
    backend->used = false;
    if (!backend->client_gone)
        sim_instance_lose_connection(sim, backend->instance, backend->instance_life,
                                     backend->connection, backend->client_epoch, notice_us);
}

static void answer(struct sim *sim, uint32_t number, struct sim_request *request)
{
    struct sim_backend *backend = &sim->database->backends[number];
    request->answered = true;
    if (backend->client_gone)
        return;
    int64_t at_us = sim->clock.now_us + sim_random_delay(&sim->server_random, sim->plan.network_us);
    if (at_us <= backend->last_answer_us)
        at_us = backend->last_answer_us + 1;
    backend->last_answer_us = at_us;
    sim_clock_add(&sim->clock, at_us,
                  (struct sim_task){.run = sim_instance_on_answer,
                                    .instance = backend->instance + 1,
                                    .life = backend->instance_life,
                                    .a = backend->connection,
                                    .b = backend->client_epoch});
}

static void say_end(struct sim *sim, const struct sim_backend *backend,
                    const struct sim_request *request)
{
    static const char *const words[RCPT_ENGINE__COUNT] = {
        "committed", "fenced", "rolled back", "sent again", "refused", "probed", "unknown"};
    if (sim->log == NULL || request->kind != REQUEST_BATCH)
        return;
    if (request->move_count == 0)
        sim_say(sim, "  instance %u lane %u probes %u events: %s", request->instance, request->lane,
                request->item_count, words[request->result.outcome]);
    for (uint32_t index = 0; index < request->move_count; index++) {
        const struct sim_move *move = &request->moves[index];
        sim_say(sim, "  instance %u lane %u kind %d %s%s: part %u %lld to %lld, generation %lld",
                request->instance, request->lane, (int)request->batch,
                words[request->result.outcome], backend->client_gone ? " (orphan)" : "", move->part,
                (long long)move->is.expected, (long long)move->is.next,
                (long long)move->is.generation);
    }
}

/* The transaction is over; the next one begins. */
static void finish(struct sim *sim, uint32_t number, enum rcpt_engine_outcome outcome)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = take_head(backend);
    request->result.outcome = outcome;
    request->failed = outcome != RCPT_ENGINE_COMMITTED;
    if (outcome == RCPT_ENGINE_DATA)
        memcpy(request->result.detail, "23514 refused", sizeof("23514 refused"));
    say_end(sim, backend, request);
    sim_trace(sim, (uint64_t)outcome * 31 + request->lane);
    unlock_all(sim, backend);
    backend->phase = BACKEND_IDLE;
    backend->victim = false;
    answer(sim, number, request);
    sim_request_release(request);
    step_after(sim, number, 1);
}

/* ---- one step of a transaction ---- */

static void begin(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    if (request == NULL) {
        if (backend->client_gone)
            end(sim, number, 0);
        return;
    }
    if (request->arrives_us > sim->clock.now_us ||
        sim->database->down_until_us > sim->clock.now_us) {
        int64_t at_us = request->arrives_us > sim->database->down_until_us
                            ? request->arrives_us
                            : sim->database->down_until_us;
        step_after(sim, number, at_us - sim->clock.now_us);
        return;
    }
    backend->started_us = sim->clock.now_us;
    backend->at = 0;
    if (request->kind != REQUEST_BATCH)
        backend->phase = BACKEND_READ;
    else
        backend->phase = request->batch == RCPT_BATCH_PROBE ? BACKEND_WORK : BACKEND_FENCE;
    step_after(sim, number, request->delayed ? work_us(sim) * 50 + 300000 : work_us(sim));
}

/* True: the lock is held. Otherwise the backend waits, or has given up. */
static bool lock_or_wait(struct sim *sim, uint32_t number, uint32_t *owner)
{
    struct sim_backend *backend = &sim->database->backends[number];
    if (lock_row(sim, number, owner)) {
        backend->waiting_for = NULL;
        return true;
    }
    if (backend->waiting_for != owner) {
        backend->waiting_for = owner;
        backend->wait_until_us = sim->clock.now_us + sim->plan.lock_timeout_ms * 1000;
    }
    if (sim->clock.now_us >= backend->wait_until_us)
        finish(sim, number, RCPT_ENGINE_RETRY);
    else
        step_after(sim, number, backend->wait_until_us - sim->clock.now_us);
    return false;
}

static void fence(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    for (; backend->at < request->move_count; backend->at++) {
        const struct sim_move *move = &request->moves[backend->at];
        if (!lock_or_wait(sim, number, &sim->database->row_owner[move->part][request->lane]))
            return;
        if (!sim_fence_holds(sim, request, backend->at)) {
            finish(sim, number, RCPT_ENGINE_FENCED);
            return;
        }
    }
    backend->phase = BACKEND_WORK;
    backend->stalled = request->half;
    if (!backend->stalled)
        step_after(sim, number, work_us(sim));
    else if (backend->client_gone) /* until the server notices; or until it is evicted */
        step_after(sim, number, sim_random_delay(&sim->server_random, NOTICE_US));
}

static void lock_messages(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    for (; backend->at < request->fold_count; backend->at++) {
        const struct sim_fold *fold = &request->folds[backend->at];
        if (!fold->changes)
            continue;
        if (!lock_or_wait(sim, number, &sim->traffic.messages[fold->message].owner))
            return;
        if (sim_statement_refuses(sim, request, backend->at)) {
            finish(sim, number, RCPT_ENGINE_DATA);
            return;
        }
    }
    backend->phase = BACKEND_COMMIT;
    step_after(sim, number, work_us(sim));
}

static void commit(struct sim *sim, uint32_t number)
{
    struct sim_request *request = sim->database->backends[number].queue;
    if (request->batch == RCPT_BATCH_PROBE) {
        finish(sim, number, RCPT_ENGINE_PROBED);
        return;
    }
    if (request->batch == RCPT_BATCH_APPLY && sim_random_below(&sim->server_random, AGAIN) == 0) {
        finish(sim, number, RCPT_ENGINE_AGAIN);
        return;
    }
    sim_oracle_before_commit(sim, request);
    sim_transaction_begin(sim->database);
    sim_statement_commit(sim, request);
    sim_transaction_end(sim, false);
    sim_oracle_after_commit(sim, request);
    finish(sim, number, RCPT_ENGINE_COMMITTED);
}

static void step(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    if (backend->victim && backend->phase >= BACKEND_FENCE) {
        finish(sim, number, RCPT_ENGINE_RETRY);
        return;
    }
    switch (backend->phase) {
    case BACKEND_IDLE:
        begin(sim, number);
        break;
    case BACKEND_READ:
        sim_statement_read(sim, backend->queue);
        finish(sim, number, RCPT_ENGINE_COMMITTED);
        break;
    case BACKEND_FENCE:
        fence(sim, number);
        break;
    case BACKEND_WORK:
        if (backend->stalled) { /* the client is gone for good, and the server knows now */
            end(sim, number, 0);
            break;
        }
        sim_statement_snapshot(sim, backend->queue);
        backend->phase = BACKEND_LOCK;
        backend->at = 0;
        lock_messages(sim, number);
        break;
    case BACKEND_LOCK:
        lock_messages(sim, number);
        break;
    case BACKEND_COMMIT:
        commit(sim, number);
        break;
    }
}

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
        step_after(sim, number, arrives_us - sim->clock.now_us);
}

static bool is_under_way(const struct sim *sim, const struct sim_backend *backend,
                         const struct sim_request *request)
{
    return (request == backend->queue && backend->phase != BACKEND_IDLE) ||
           request->arrives_us <= sim->clock.now_us;
}

/* Of the requests that have not arrived, all behind the first `kept` are cut off. */
static void drop_unarrived(struct sim *sim, struct sim_backend *backend, uint32_t kept)
{
    struct sim_request **place = &backend->queue;
    while (*place != NULL) {
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
    if (how == FAULT_CUT_LATE && backend->phase > BACKEND_FENCE && !backend->stalled)
        step_after(sim, number, work_us(sim) * 50 + 300000);
    else if (backend->stalled)
        step_after(sim, number, sim_random_delay(&sim->server_random, NOTICE_US));
    else if (backend->phase == BACKEND_IDLE)
        step_after(sim, number, 1);
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
    step_after(sim, number, work_us(sim));
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
            end(sim, blocker, work_us(sim));
    }
}

void sim_server_make_victim(struct sim *sim, uint32_t choice)
{
    uint32_t waiting = 0;
    for (uint32_t number = 0; number < SIM_BACKENDS; number++) {
        struct sim_backend *backend = &sim->database->backends[number];
        if (!backend->used || backend->phase < BACKEND_FENCE || backend->stalled)
            continue;
        if (waiting++ % 4 == choice % 4) {
            backend->victim = true;
            step_after(sim, number, 1);
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
            end(sim, number, sim_random_delay(&sim->server_random, 500000));
    }
    for (uint32_t message = 0; message < sim->traffic.message_count; message++)
        sim->traffic.messages[message].owner = 0;
    sim_database_go_back(sim, lost);
    sim_oracle_after_going_back(sim);
    sim_say(sim, "database: went back by %u transactions, down for %lld ms", lost,
            (long long)down_us / 1000);
}

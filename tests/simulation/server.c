/* Backends: transactions that take locks, wait, commit or roll back, whether or not their client is
 * still there. */
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "instance.h"
#include "oracle.h"

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
    free(request->asked);
    free(request->lines);
    free(request->keys);
    free(request->echoes);
    sim_cells_free(&request->cells);
    free(request);
}

/* ---- scheduling ---- */

static void on_step(struct sim *sim, const struct sim_task *task)
{
    struct sim_backend *backend = &sim->database->backends[task->a];
    if (backend->used && backend->life == task->b && backend->step == task->c)
        step(sim, task->a);
}

void sim_backend_step_after(struct sim *sim, uint32_t number, int64_t delay_us)
{
    struct sim_backend *backend = &sim->database->backends[number];
    backend->step++;
    sim_after(sim, delay_us, on_step, number, backend->life, backend->step);
}

int64_t sim_backend_work_us(struct sim *sim)
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
            sim_backend_step_after(sim, number, 1);
    }
}

static void unlock_all(struct sim *sim, struct sim_backend *backend)
{
    while (backend->lock_count > 0)
        sim_server_free(sim, backend->locks[--backend->lock_count]);
    backend->waiting_for = NULL;
}

static void unlock_last(struct sim *sim, struct sim_backend *backend)
{
    sim_server_free(sim, backend->locks[--backend->lock_count]);
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
void sim_backend_end(struct sim *sim, uint32_t number, int64_t notice_us)
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
    static const char *const words[RCPT_ENGINE__COUNT] = {"committed", "fenced", "rolled back",
                                                          "refused",   "probed", "unknown"};
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
    request->final = true;
    request->failed = outcome != RCPT_ENGINE_COMMITTED;
    if (outcome == RCPT_ENGINE_DATA)
        memcpy(request->result.detail, "23514 refused", sizeof("23514 refused"));
    say_end(sim, backend, request);
    sim_trace(sim, (uint64_t)outcome * 31 + request->lane);
    unlock_all(sim, backend);
    backend->phase = BACKEND_IDLE;
    backend->victim = false;
    if (request->flight != FLIGHT_ROLLBACK) /* nobody waits for the answer to that */
        answer(sim, number, request);
    sim_request_release(request);
    sim_backend_step_after(sim, number, 1);
}

/* The flight is answered, and the transaction stays open. */
static void answer_flight(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    backend->phase = BACKEND_OPEN;
    backend->idle_until_us = sim->clock.now_us + sim->plan.idle_timeout_ms * 1000;
    backend->queue->under_way = false;
    answer(sim, number, backend->queue);
    sim_backend_step_after(sim, number,
                           backend->client_gone ? sim_random_delay(&sim->server_random, 50000)
                                                : sim->plan.idle_timeout_ms * 1000);
}

/* ---- one step of a transaction ---- */

static void begin(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    if (request == NULL) {
        if (backend->client_gone)
            sim_backend_end(sim, number, 0);
        return;
    }
    if (request->arrives_us > sim->clock.now_us ||
        sim->database->down_until_us > sim->clock.now_us) {
        int64_t at_us = request->arrives_us > sim->database->down_until_us
                            ? request->arrives_us
                            : sim->database->down_until_us;
        sim_backend_step_after(sim, number, at_us - sim->clock.now_us);
        return;
    }
    backend->started_us = sim->clock.now_us;
    request->now_us = SIM_EPOCH_US + sim->clock.now_us;
    backend->at = 0;
    if (request->kind != REQUEST_BATCH)
        backend->phase = BACKEND_READ;
    else
        backend->phase = request->batch == RCPT_BATCH_PROBE ? BACKEND_WORK : BACKEND_FENCE;
    sim_backend_step_after(sim, number,
                           request->delayed ? sim_backend_work_us(sim) * 50 + 300000
                                            : sim_backend_work_us(sim));
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
        sim_backend_step_after(sim, number, backend->wait_until_us - sim->clock.now_us);
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
        sim_backend_step_after(sim, number, sim_backend_work_us(sim));
    else if (backend->client_gone) /* until the server notices; or until it is evicted */
        sim_backend_step_after(sim, number, sim_random_delay(&sim->server_random, SIM_NOTICE_US));
}

static bool locks_messages(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    for (; backend->at < sim_asked_count(request); backend->at++) {
        struct sim_fold *fold = sim_asked(request, backend->at);
        uint32_t *owner = &sim->traffic.messages[fold->message].owner;
        if (!fold->changes)
            continue;
        bool had_it = *owner == number + 1;
        if (!lock_or_wait(sim, number, owner))
            return false;
        enum sim_change change = sim_decide_change(sim, request, fold);
        if (change == CHANGE_REFUSED) {
            finish(sim, number, RCPT_ENGINE_DATA);
            return false;
        }
        if (change == CHANGE_NONE && !had_it)
            unlock_last(sim, backend);
    }
    return true;
}

/* In the order in which the client gives them, which is that of all transactions. */
static bool stores_keys(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    for (; backend->at < request->key_count; backend->at++) {
        struct sim_key *key = &request->keys[backend->at];
        struct sim_item *twin = &sim->traffic.items[key->twin];
        key->fate = RCPT_KEY_OUTSIDE;
        if (!sim_key_is_inside(request, key->at_us))
            continue;
        if (!twin->key_stored && !lock_or_wait(sim, number, &twin->key_owner))
            return false;
        key->fate = twin->key_stored ? RCPT_KEY_THERE : RCPT_KEY_STORED;
    }
    return true;
}

static void decide(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    if (backend->phase == BACKEND_LOCK) {
        if (!locks_messages(sim, number))
            return;
        sim_decide_answer(sim, request);
        backend->phase = BACKEND_KEYS;
        backend->at = 0;
    }
    if (request->asked == NULL && !stores_keys(sim, number))
        return;
    answer_flight(sim, number);
}

static void commit_soon(struct sim *sim, uint32_t number)
{
    sim->database->backends[number].phase = BACKEND_COMMIT;
    sim_backend_step_after(sim, number, sim_backend_work_us(sim));
}

/* The first statement behind the fence. */
static void work(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    bool parked = request->batch != RCPT_BATCH_APPLY && request->batch != RCPT_BATCH_PROBE;
    if (parked && request->flight == FLIGHT_FIRST)
        sim_statement_pick_parked(sim, request);
    if (!request->in_flights) {
        commit_soon(sim, number);
    } else if (parked && request->flight == FLIGHT_FIRST) {
        answer_flight(sim, number);
    } else {
        sim_decide_snapshot(sim, request);
        backend->phase = BACKEND_LOCK;
        backend->at = 0;
        decide(sim, number);
    }
}

/* The session is idle in its transaction: the next flight comes, or its end. */
static void wait_for_client(struct sim *sim, uint32_t number)
{
    struct sim_backend *backend = &sim->database->backends[number];
    struct sim_request *request = backend->queue;
    bool came = request->under_way && request->arrives_us <= sim->clock.now_us;
    if (!came) {
        int64_t until_us = request->under_way ? request->arrives_us : backend->idle_until_us;
        if (!request->under_way && (backend->client_gone || sim->clock.now_us >= until_us)) {
            sim_say(sim, "  instance %u lane %u: its session ends between the flights",
                    request->instance, request->lane);
            sim_backend_end(sim, number, sim_backend_work_us(sim));
        } else {
            sim_backend_step_after(sim, number, until_us - sim->clock.now_us);
        }
        return;
    }
    if (request->flight == FLIGHT_ROLLBACK) {
        finish(sim, number, RCPT_ENGINE_RETRY);
        return;
    }
    backend->phase = request->flight == FLIGHT_WRITE ? BACKEND_COMMIT : BACKEND_WORK;
    backend->stalled = request->half;
    if (!backend->stalled)
        sim_backend_step_after(sim, number,
                               request->delayed ? sim_backend_work_us(sim) * 50 + 300000
                                                : sim_backend_work_us(sim));
    else if (backend->client_gone)
        sim_backend_step_after(sim, number, sim_random_delay(&sim->server_random, SIM_NOTICE_US));
}

static void commit(struct sim *sim, uint32_t number)
{
    struct sim_request *request = sim->database->backends[number].queue;
    if (request->batch == RCPT_BATCH_PROBE) {
        finish(sim, number, RCPT_ENGINE_PROBED);
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
    if (backend->stalled) { /* the client is gone for good, and the server knows now */
        sim_backend_end(sim, number, 0);
        return;
    }
    if (backend->victim && backend->phase >= BACKEND_FENCE && backend->phase != BACKEND_OPEN) {
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
        work(sim, number);
        break;
    case BACKEND_LOCK:
    case BACKEND_KEYS:
        decide(sim, number);
        break;
    case BACKEND_OPEN:
        wait_for_client(sim, number);
        break;
    case BACKEND_COMMIT:
        commit(sim, number);
        break;
    }
}

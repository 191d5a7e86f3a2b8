/* The tables of the simulated PostgreSQL with an undo log, so that the database can go back by some
 * transactions, as asynchronous commit allows.
 */
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "oracle.h"

#define FLUSH_US 150000 /* the WAL writer comes by this often */

static uint64_t path_of(const struct sim *sim, uint32_t entry)
{
    const struct rcpt_ladder *ladder = sim->traffic.ladder;
    uint64_t path = 0;
    if (rcpt_ladder_entry(ladder, entry)->is_flag)
        return 0;
    for (int code = rcpt_ladder_entry(ladder, entry)->code; code != RCPT_LADDER_NO_STATUS;) {
        uint32_t at = sim->database->entry_of[code];
        path |= UINT64_C(1) << at;
        code = rcpt_ladder_entry(ladder, at)->parent;
    }
    return path;
}

static void on_flush(struct sim *sim, const struct sim_task *task)
{
    (void)task;
    sim->database->durable = sim->database->transaction_count;
    sim_after(sim, FLUSH_US, on_flush, 0, 0, 0);
}

void sim_database_init(struct sim *sim)
{
    struct sim_database *database = rcpt_calloc(1, sizeof(*database));
    sim->database = database;
    for (uint32_t entry = 0; entry < sim->traffic.entry_count; entry++)
        database->entry_of[rcpt_ladder_entry(sim->traffic.ladder, entry)->code] = (uint8_t)entry;
    for (uint32_t entry = 0; entry < sim->traffic.entry_count; entry++)
        database->path[entry] = path_of(sim, entry);
    for (uint32_t message = 0; message < sim->traffic.message_count; message++) {
        if (sim->traffic.messages[message].exists)
            database->counters[sim->traffic.messages[message].campaign][database->entry_of[0]]
                .messages++;
    }
    sim_after(sim, FLUSH_US, on_flush, 0, 0, 0);
}

void sim_database_fini(struct sim *sim)
{
    struct sim_database *database = sim->database;
    for (uint32_t index = 0; index < SIM_BACKENDS; index++) {
        struct sim_backend *backend = &database->backends[index];
        while (backend->queue != NULL) {
            struct sim_request *request = backend->queue;
            backend->queue = request->next_of_server;
            sim_request_release(request);
        }
        free(backend->locks);
    }
    free(database->undo);
    free(database->transactions);
    free(database);
}

/* ---- undo ---- */

void sim_undo_save(struct sim_database *database, void *at, size_t size)
{
    if (database->undo_count == database->undo_capacity) {
        database->undo_capacity = database->undo_capacity * 2 + 1024;
        database->undo =
            rcpt_realloc(database->undo, database->undo_capacity * sizeof(*database->undo));
    }
    struct sim_undo *undo = &database->undo[database->undo_count++];
    RCPT_ASSERT(size <= sizeof(undo->old));
    undo->at = at;
    undo->size = (uint32_t)size;
    memcpy(undo->old, at, size);
}

void sim_transaction_begin(struct sim_database *database)
{
    if (database->transaction_count == database->transaction_capacity) {
        database->transaction_capacity = database->transaction_capacity * 2 + 256;
        database->transactions =
            rcpt_realloc(database->transactions,
                         database->transaction_capacity * sizeof(*database->transactions));
    }
    database->transactions[database->transaction_count++] =
        (struct sim_transaction){.first_undo = database->undo_count};
}

/* A synchronous commit flushes all that was written before it. */
void sim_transaction_end(struct sim *sim, bool synchronous)
{
    struct sim_database *database = sim->database;
    database->commits++;
    if (synchronous)
        database->durable = database->transaction_count;
}

static void platform_again(struct sim *sim);

void sim_database_go_back(struct sim *sim, uint32_t transactions)
{
    struct sim_database *database = sim->database;
    RCPT_ASSERT(transactions <= database->transaction_count);
    for (; transactions > 0; transactions--) {
        uint32_t first = database->transactions[--database->transaction_count].first_undo;
        while (database->undo_count > first) {
            const struct sim_undo *undo = &database->undo[--database->undo_count];
            memcpy(undo->at, undo->old, undo->size);
        }
    }
    if (database->durable > database->transaction_count)
        database->durable = database->transaction_count;
    platform_again(sim);
}

/* ---- rows ---- */

void sim_set_fate(struct sim *sim, uint32_t number, enum sim_fate fate,
                  enum rcpt_reject_reason reason)
{
    struct sim_database *database = sim->database;
    struct sim_item *item = &sim->traffic.items[number];
    const struct sim_record *record = &sim->traffic.records[item->record];
    uint32_t *parked = &database->parked[record->part][item->lane];
    if (item->fate == FATE_PARKED)
        SIM_SET(database, *parked, *parked - 1);
    if (fate == FATE_PARKED) {
        SIM_SET(database, *parked, *parked + 1);
        SIM_SET(database, item->parked_at_us, sim->clock.now_us);
    }
    SIM_SET(database, item->fate, (uint8_t)fate);
    SIM_SET(database, item->letter_reason, (uint8_t)reason);
}

static void count(struct sim *sim, uint32_t campaign, uint64_t entries, int64_t by)
{
    for (; entries != 0; entries &= entries - 1) {
        struct sim_counter *counter = &sim->database->counters[campaign][__builtin_ctzll(entries)];
        SIM_SET(sim->database, counter->messages, counter->messages + by);
    }
}

/* The funnel is what recounts judge; a series is summed up. The ledger has compared all other cells
 * with its own. */
void sim_add_cells(struct sim *sim, const struct sim_cells *cells)
{
    struct sim_database *database = sim->database;
    for (uint32_t at = 0; at < cells->capacity; at++) {
        const struct sim_cell *cell = &cells->list[at];
        if (!sim_cell_is_used(cell) || cell->key.kind != RCPT_COUNT_FUNNEL)
            continue;
        struct sim_counter *counter =
            &database->counters[cell->key.campaign - 1][database->entry_of[cell->key.status]];
        SIM_SET(database, counter->messages, counter->messages + cell->messages);
        SIM_SET(database, counter->events, counter->events + cell->events);
    }
}

void sim_insert_message(struct sim *sim, uint32_t number)
{
    struct sim_message *message = &sim->traffic.messages[number];
    if (message->exists)
        return;
    SIM_SET(sim->database, message->exists, true);
    count(sim, message->campaign, UINT64_C(1) << sim->database->entry_of[0], 1);
}

/* The trigger books what the message has counted: counters stay. */
void sim_delete_message(struct sim *sim, uint32_t number)
{
    struct sim_database *database = sim->database;
    struct sim_message *message = &sim->traffic.messages[number];
    uint64_t entries = database->path[database->entry_of[message->status]];
    for (uint32_t flags = message->flags; flags != 0; flags &= flags - 1)
        entries |=
            UINT64_C(1) << database->entry_of[RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(flags)];
    for (; entries != 0; entries &= entries - 1) {
        int64_t *retired = &database->retired[message->campaign][__builtin_ctzll(entries)];
        SIM_SET(database, *retired, *retired + 1);
    }
    struct sim_times none = {{INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, 0};
    SIM_SET(database, message->exists, false);
    SIM_SET(database, message->retired, true);
    SIM_SET(database, message->status, 0);
    SIM_SET(database, message->flags, 0);
    SIM_SET(database, message->times, none);
    SIM_SET(database, message->life, message->life + 1);
    message->was_deleted = true;
}

/* ---- the platform: makes rows of messages, again where the database has lost them ---- */

static void on_insert(struct sim *sim, const struct sim_task *task)
{
    struct sim_message *message = &sim->traffic.messages[task->a];
    if (message->exists)
        return;
    if (sim_server_is_down(sim)) {
        sim_after(sim, 200000, on_insert, task->a, 0, 0);
        return;
    }
    sim_transaction_begin(sim->database);
    sim_insert_message(sim, task->a);
    sim_transaction_end(sim, sim->plan.platform_synchronous);
}

static void schedule_insert(struct sim *sim, uint32_t number, int64_t at_us)
{
    sim_clock_add(&sim->clock, at_us, (struct sim_task){.run = on_insert, .a = number});
}

void sim_platform_insert_later(struct sim *sim, uint32_t number, int64_t delay_us)
{
    schedule_insert(sim, number, sim->clock.now_us + delay_us);
}

static void platform_again(struct sim *sim)
{
    for (uint32_t number = 0; number < sim->traffic.message_count; number++) {
        const struct sim_message *message = &sim->traffic.messages[number];
        if (!message->exists && message->insert_at_us > 0 &&
            message->insert_at_us <= sim->clock.now_us)
            schedule_insert(sim, number, sim->clock.now_us + 300000);
    }
}

void sim_platform_start(struct sim *sim)
{
    for (uint32_t number = 0; number < sim->traffic.message_count; number++) {
        if (sim->traffic.messages[number].insert_at_us > 0)
            schedule_insert(sim, number, sim->traffic.messages[number].insert_at_us);
    }
}

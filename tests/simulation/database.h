/* The simulated PostgreSQL.
 *
 * Tables hold the committed state; every write goes through an undo log, so that the database can
 * go back by whole transactions (asynchronous commit, failover). Transactions run in backends, one
 * for each connection: they take row locks, wait for each other, and become visible in one instant
 * at their commit. The statements are written from docs/semantics.md and the contracts of the
 * batch, not from the SQL.
 */
#ifndef SIMULATION_DATABASE_H
#define SIMULATION_DATABASE_H

#include "cells.h"
#include "receiptd/core/engine.h"
#include "receiptd/core/keys.h"
#include "world.h"

#define SIM_BACKENDS 96u
#define SIM_CODES    9100
#define SIM_OTHERS   UINT32_MAX /* owner of a lock: a client that is not ours */
/* PostgreSQL's clock at virtual time 0: in the midst of the times that receipts name. */
#define SIM_EPOCH_US INT64_C(1600030000000000)

struct sim_row { /* of consumer_progress */
    bool exists;
    int64_t next, generation, anchor_offset, anchor_timestamp_ms;
    uint32_t anchor_crc;
};

struct sim_pin { /* of consumer_topic */
    bool exists;
    uint32_t partitions;
    int64_t generation;
};

struct sim_counter {
    int64_t messages, events;
};

/* ---- requests of a client, and their answers ---- */

enum sim_request_kind {
    REQUEST_BATCH,
    REQUEST_POSITIONS,
    REQUEST_PINS,      /* pins and rows for an assignment */
    REQUEST_BOOTSTRAP, /* rows for new partitions, synchronously */
    REQUEST_PROBE,     /* are there parked rows to wake? */
};

struct sim_move {
    uint32_t part;
    struct rcpt_batch_move is; /* topic is void */
};

struct sim_fold {                   /* of one message */
    uint32_t message, first, count; /* into items */
    int16_t top;
    uint32_t mask;
    int64_t at_us;          /* the winner's */
    struct sim_times least; /* what its receipts say of first times */
    /* What the last decide has found in its snapshot … */
    bool known, retired, changes;
    int16_t status;
    uint32_t flags, life;
    /* … and what it has changed: the row is locked until the end. */
    bool changed;
    int16_t was;
    uint32_t had;
    struct sim_times times, before; /* after and before the change */
    uint8_t fate;                   /* enum rcpt_fate: what the client makes of it */
};

enum sim_flight { /* what a client wants next of its transaction */
                  FLIGHT_FIRST,
                  FLIGHT_DECIDE, /* of a wake that has its receipts, or what was stale */
                  FLIGHT_WRITE,
                  FLIGHT_ROLLBACK,
};

struct sim_line { /* of the answer of decide */
    uint32_t n;   /* from 1: place among what was asked */
    uint32_t fold, flags;
    int16_t status;
    char fate[2];
    char deliver[8], open[8], gateway[8], before[24];
};

struct sim_key { /* of receipt_counted */
    uint32_t twin;
    int64_t at_us; /* of the receipt */
    enum rcpt_key_fate fate;
    bool undone;
};

struct sim_request {
    uint32_t refs; /* one of the client, one of the server */
    struct sim_request *next_of_client, *next_of_server;
    enum sim_request_kind kind;
    uint32_t instance, lane, parts; /* parts: mask */
    uint32_t serial;                /* of the assignment that asks */
    int64_t arrives_us;
    bool half;    /* the rest has not arrived */
    bool delayed; /* is to be executed late */
    bool answered, failed, final;

    /* A transaction in flights: what the client has last asked, and the answer to it. */
    bool in_flights;
    enum sim_flight flight;
    bool under_way;                /* the client has sent that flight */
    const struct rcpt_batch *sent; /* the client's */
    uint32_t *asked;               /* folds; NULL: all */
    uint32_t asked_count;
    struct sim_line *lines;
    uint32_t line_count;
    struct sim_key *keys; /* as the first decide stores them */
    uint32_t key_count;
    bool keys_told;
    int64_t now_us;         /* begin of the transaction, by PostgreSQL's clock */
    struct sim_cells cells; /* what the second flight writes */
    uint32_t groups;
    uint8_t *echoes; /* by item: the client takes it for a copy */

    /* REQUEST_BATCH */
    enum rcpt_batch_kind batch;
    uint32_t wake_limit;
    struct sim_move moves[SIM_PARTS];
    uint32_t move_count;
    struct sim_fold *folds;
    uint32_t fold_count;
    uint32_t *items;
    uint32_t item_count;
    uint32_t *letters;
    uint8_t *letter_reasons;
    uint32_t letter_count;
    struct rcpt_engine_result result;

    /* REQUEST_POSITIONS, REQUEST_PINS: rows as of the execution */
    struct sim_row (*rows)[SIM_LANES];
    struct sim_pin pins[SIM_TOPICS];

    /* REQUEST_BOOTSTRAP */
    uint32_t topic, from, to;
    int64_t lows[SIM_TOPIC_PARTS];

    /* REQUEST_PROBE: masks of lanes */
    uint32_t applicable, expired, parked;
};

struct sim_request *sim_request_new(enum sim_request_kind kind, uint32_t instance);
void sim_request_release(struct sim_request *request);

/* ---- backends ---- */

enum sim_backend_phase {
    BACKEND_IDLE,
    BACKEND_READ,
    BACKEND_FENCE,
    BACKEND_WORK,
    BACKEND_LOCK,
    BACKEND_KEYS,
    BACKEND_OPEN, /* idle in its transaction: the client counts */
    BACKEND_COMMIT
};

struct sim_backend {
    bool used, client_gone, stalled;
    uint32_t life; /* changes with each use */
    uint32_t step; /* only the step scheduled last counts */
    uint32_t instance, instance_life, connection, client_epoch;
    struct sim_request *queue, **queue_end;
    enum sim_backend_phase phase;
    uint32_t at;      /* move or message that is to be locked next */
    uint32_t **locks; /* held */
    uint32_t lock_count, lock_capacity;
    uint32_t *waiting_for;
    int64_t wait_until_us, started_us, last_answer_us, idle_until_us;
    bool victim;
};

struct sim_undo {
    void *at;
    uint32_t size;
    unsigned char old[56];
};

struct sim_transaction {
    uint32_t first_undo;
    bool durable;
};

struct sim_database {
    struct sim_pin pins[SIM_TOPICS];
    struct sim_row rows[SIM_PARTS][SIM_LANES];
    uint32_t row_owner[SIM_PARTS][SIM_LANES];
    struct sim_counter counters[SIM_CAMPAIGNS][SIM_ENTRIES];
    int64_t retired[SIM_CAMPAIGNS][SIM_ENTRIES]; /* of messages that were deleted */
    uint32_t parked[SIM_PARTS][SIM_LANES];

    struct sim_undo *undo;
    uint32_t undo_count, undo_capacity;
    struct sim_transaction *transactions;
    uint32_t transaction_count, transaction_capacity, durable; /* durable: a prefix */
    uint64_t commits;

    struct sim_backend backends[SIM_BACKENDS];
    int64_t down_until_us, slow_until_us;
    bool row_deleted[SIM_PARTS];  /* by an operator: a legal reason to halt */
    bool records_gone[SIM_PARTS]; /* retention has stopped an instance, rightly */
    uint64_t path[SIM_ENTRIES];   /* bit e: entry e is on the way from the root to this status */
    uint8_t entry_of[SIM_CODES];
};

/* ---- tables.c ---- */
void sim_database_init(struct sim *sim);
void sim_database_fini(struct sim *sim);
void sim_undo_save(struct sim_database *database, void *at, size_t size);
#define SIM_SET(database, place, value)                                                            \
    (sim_undo_save(database, &(place), sizeof(place)), (void)((place) = (value)))
void sim_transaction_begin(struct sim_database *database);
void sim_transaction_end(struct sim *sim, bool synchronous);
/* Takes back the last transactions. */
void sim_database_go_back(struct sim *sim, uint32_t transactions);
void sim_set_fate(struct sim *sim, uint32_t item, enum sim_fate fate,
                  enum rcpt_reject_reason reason);
void sim_insert_message(struct sim *sim, uint32_t message);
void sim_delete_message(struct sim *sim, uint32_t message);
/* Inserts it again after a while. */
void sim_platform_insert_later(struct sim *sim, uint32_t message, int64_t delay_us);
void sim_add_cells(struct sim *sim, const struct sim_cells *cells);
void sim_platform_start(struct sim *sim);

/* ---- server.c ---- */
#define SIM_NOTICE_US 20000000 /* until the server sees that a client is gone, at the most */
void sim_backend_step_after(struct sim *sim, uint32_t backend, int64_t delay_us);
int64_t sim_backend_work_us(struct sim *sim);
/* Rolls back and ends; the client learns of it after a while, if there is one. */
void sim_backend_end(struct sim *sim, uint32_t backend, int64_t notice_us);

/* ---- server.c, clients.c ---- */
/* Backend of a new connection; UINT32_MAX: the server is down. */
uint32_t sim_server_connect(struct sim *sim, uint32_t instance, uint32_t life, uint32_t connection,
                            uint32_t epoch);
void sim_server_send(struct sim *sim, uint32_t backend, struct sim_request *request,
                     int64_t arrives_us);
/* The next flight of the transaction that the backend has open. */
void sim_server_go_on(struct sim *sim, uint32_t backend, struct sim_request *request,
                      int64_t arrives_us);
/* The client's end is gone: the kind of fault says how much of its requests arrives. */
void sim_server_hang_up(struct sim *sim, uint32_t backend, enum sim_fault how);
/* Only a part of the requests has arrived (the client is stopped); and now the rest has. */
void sim_server_hold_back(struct sim *sim, uint32_t backend);
void sim_server_rest(struct sim *sim, uint32_t backend);
/* Ends clients of ours that block these backends for too long. */
void sim_server_evict(struct sim *sim, const uint32_t *own, uint32_t own_count);
void sim_server_crash(struct sim *sim, bool pooled, uint32_t lost, int64_t down_us);
void sim_server_make_victim(struct sim *sim, uint32_t choice);
bool sim_server_is_down(const struct sim *sim);
/* Another client takes and frees the lock of a message's row. */
bool sim_server_lock_message(struct sim *sim, uint32_t message);
void sim_server_free(struct sim *sim, uint32_t *lock);

/* ---- statements.c ---- */
enum sim_statement_end { STATEMENT_DONE, STATEMENT_REFUSED };
bool sim_fence_holds(const struct sim *sim, const struct sim_request *request, uint32_t move);
/* Parked rows that wake, discard or expire takes. */
void sim_statement_pick_parked(struct sim *sim, struct sim_request *request);
void sim_statement_commit(struct sim *sim, struct sim_request *request);
void sim_statement_read(struct sim *sim, struct sim_request *request);

/* ---- decide.c: sql/lane/decide and keys ---- */
uint32_t sim_asked_count(const struct sim_request *request);
struct sim_fold *sim_asked(const struct sim_request *request, uint32_t place);
void sim_decide_snapshot(struct sim *sim, struct sim_request *request);
enum sim_change { CHANGE_NONE, CHANGE_DONE, CHANGE_REFUSED };
/* With the lock of the message's row in hand, as it is now. */
enum sim_change sim_decide_change(struct sim *sim, struct sim_request *request,
                                  struct sim_fold *fold);
void sim_decide_answer(struct sim *sim, struct sim_request *request);
bool sim_key_is_inside(const struct sim_request *request, int64_t at_us);

#endif

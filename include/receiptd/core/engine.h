/* The brain of the consumer: partitions, epochs, lanes, batches, resync, rewinding, back-pressure.
 *
 * Pure: no I/O, no clock, no thread. Time comes in with each call (monotonic milliseconds), effects
 * go out through ports. The daemon (src/receipts) and the simulator (tests/simulation) drive the
 * same code. Ports are called last, from inside the calls below; a port must not call back into the
 * engine before it has returned. The rules and the counterexample behind each:
 * docs/architecture.md, "The protocol".
 */
#ifndef RECEIPTD_CORE_ENGINE_H
#define RECEIPTD_CORE_ENGINE_H

#include "receiptd/core/batch.h"

#define RCPT_ENGINE_MAX_LANES 256

struct rcpt_engine;

struct rcpt_engine_settings {
    uint32_t lanes;             /* power of two, 1…256 */
    uint32_t connections;       /* connection c serves lanes ≡ c mod connections; 1…lanes */
    uint32_t depth;             /* transactions in flight on one connection, at least 1 */
    uint32_t batch_max_events;  /* soft: one record larger than this is sent alone */
    uint32_t batch_max_bytes;   /* likewise, of payload */
    uint64_t budget_bytes;      /* memory of all records held; above it nothing more is taken */
    int64_t linger_ms;          /* hold a small batch this long to fold more; 0: never */
    int64_t idle_advance_ms;    /* a lane without events moves its positions this often */
    int64_t verify_interval_ms; /* a lane without work compares its positions with the database this
                                   often */
    int64_t rewind_timeout_ms;  /* a rewind that has brought no record is done again by assigning */
    int64_t retry_min_ms, retry_max_ms;
    uint32_t wake_limit; /* parked rows of one waking transaction */
    uint64_t seed; /* of jitter, and of the look-up of ids: not to be guessed by who sends them */
};

struct rcpt_engine_position { /* one row of consumer_progress */
    uint32_t slot;
    int64_t next_offset;
    int64_t generation;
    bool found; /* false: there is no row */
};

struct rcpt_engine_anchor { /* identity of the last record below a position; offset -1: none */
    int64_t offset;
    int64_t timestamp_ms;
    uint32_t crc;
};

struct rcpt_engine_ports {
    void *context;
    /* Send the batch on its lane's connection as one transaction. It stays valid and unchanged
     * until the result. */
    void (*submit)(void *context, const struct rcpt_batch *batch);
    /* Read the lane's rows for all assigned slots on the lane's connection →
     * rcpt_engine_on_positions. */
    void (*read_positions)(void *context, uint32_t lane);
    /* Deliver the partition from this offset on (seek). */
    void (*rewind)(void *context, uint32_t slot, int64_t offset);
    /* As rewind, but by un-assigning and assigning: nothing fetched before may be delivered
     * afterwards. */
    void (*reassign)(void *context, uint32_t slot, int64_t offset);
    /* Rows have another generation or are gone: read the pins of the topic again; assign again, or
     * stop. */
    void (*refresh)(void *context, uint32_t slot);
    /* Stop consuming for good: the reason names what an operator has to check. */
    void (*halt)(void *context, const struct rcpt_error *error);
};

enum rcpt_engine_outcome {
    RCPT_ENGINE_COMMITTED, /* the Sync's result arrived without an error before it */
    RCPT_ENGINE_FENCED,    /* the fence raised: some row is not where we thought */
    RCPT_ENGINE_RETRY,     /* deadlock, serialization, lock time-out: rolled back, again later */
    RCPT_ENGINE_DATA,      /* rolled back: a row is refused for its content */
    RCPT_ENGINE_PROBED,    /* a PROBE went through and was rolled back as intended */
    RCPT_ENGINE_UNKNOWN,   /* the connection is gone: committed or not */
    RCPT_ENGINE__COUNT,
};

struct rcpt_engine_result {
    enum rcpt_engine_outcome outcome;
    uint64_t answered_ns; /* when the last statement that succeeded was, for traces; 0: none */
    char detail[120];     /* DATA: SQLSTATE and text for the dead letter */
    /* COMMITTED: what the statement returned */
    uint32_t messages_known, messages_changed, events_parked;
    uint32_t woken; /* WAKE, DISCARD, EXPIRE: rows handled; equal to the limit: there may be more */
    uint32_t moved, made; /* EXPIRE: rows that an alias led elsewhere, bare rows made; likewise */
    uint32_t ranges_idle; /* RANGES: those that raise nothing; `woken`: receipts parked */
    bool more_ranges;     /* RANGES: some are not resolved */
};

struct rcpt_engine_stats {             /* since start; for logs and metrics */
    uint64_t records, events, rejects; /* admitted */
    uint64_t bytes;                    /* of records held now */
    uint64_t dropped_old;              /* records */
    uint64_t gaps;                     /* offsets that the log itself skipped */
    uint64_t batches, events_committed, letters_committed, messages_changed, events_parked,
        events_woken, events_expired, events_moved;
    uint64_t fenced, retries, data_errors, unknown;  /* transactions by outcome */
    uint64_t resync_ahead, resync_same, resync_back; /* rows, by direction */
    uint64_t rewinds, reassigns;
    uint64_t rewound; /* offsets that rewinds have gone back */
    /* rows that a fence conflict found ahead: another instance has moved them */
    uint64_t contended;
};

struct rcpt_engine_partition_view { /* for figures */
    int64_t committed;              /* nothing below is unacknowledged on any lane */
    int64_t delivered;              /* next offset that Kafka is expected to deliver */
    /* `oldest_ms` is Kafka's timestamp of the oldest record held and not acknowledged, or of one
     * shortly before it; -1: none is held. `newest_ms` is that of the newest record delivered in
     * this epoch; -1: none. Records without a timestamp are left out. */
    int64_t oldest_ms, newest_ms;
};

struct rcpt_engine_lane_view { /* for figures */
    const char *state;         /* "down", "unsynced", "reading", "ready", "in_flight", "waiting" */
    uint32_t connection;
    uint32_t records, in_flight; /* held, of these in flight */
    uint32_t fences;             /* conflicts since the last commit */
    uint64_t batch;              /* number of the newest batch */
};

/* `ladder` is borrowed for the engine's life. Returns an engine with all lanes down and nothing
 * assigned. */
struct rcpt_engine *rcpt_engine_new(const struct rcpt_engine_settings *settings,
                                    const struct rcpt_ladder *ladder,
                                    const struct rcpt_engine_ports *ports);
void rcpt_engine_free(struct rcpt_engine *engine);

/* ---- partitions ---- */

/* Returns the partition's slot. The first call makes it, and it keeps its number for the engine's
 * whole life. */
uint32_t rcpt_engine_slot(struct rcpt_engine *engine, const char *topic, int32_t partition);
const char *rcpt_engine_slot_topic(const struct rcpt_engine *engine, uint32_t slot);
int32_t rcpt_engine_slot_partition(const struct rcpt_engine *engine, uint32_t slot);
uint32_t rcpt_engine_slot_count(const struct rcpt_engine *engine);
bool rcpt_engine_is_assigned(const struct rcpt_engine *engine, uint32_t slot);

/* Begins a new epoch of the partition. next_offsets has one entry per lane, as read from
 * consumer_progress. Returns the offset to start at: the smallest of them, or the anchor's where
 * one is given (the anchor's record is compared, dropped, and a mismatch halts). Also for a
 * partition that is assigned already (after refresh). */
int64_t rcpt_engine_assign(struct rcpt_engine *engine, uint32_t slot, int64_t generation,
                           const int64_t *next_offsets, const struct rcpt_engine_anchor *anchor,
                           int64_t now_ms);
/* Ends the epoch: queues are dropped, results of batches in flight no longer change anything. */
void rcpt_engine_revoke(struct rcpt_engine *engine, uint32_t slot);

/* May the partition's queue be polled (memory within budget, not halted)? Asked before each poll.
 */
bool rcpt_engine_wants(const struct rcpt_engine *engine, uint32_t slot);
/* Would a record at this offset be taken? False: counted, drop it undecoded. */
bool rcpt_engine_admits(struct rcpt_engine *engine, uint32_t slot, int64_t offset);
/* Takes the record (owned from here on) for all its lanes or for none. Its slot is set by the
 * engine. */
void rcpt_engine_deliver_take(struct rcpt_engine *engine, uint32_t slot, struct rcpt_record *record,
                              int64_t now_ms);
/* Goes on at `offset`: retention deleted everything below it, and the policy says skip. The gap is
 * counted. */
void rcpt_engine_skip_to(struct rcpt_engine *engine, uint32_t slot, int64_t offset, int64_t now_ms);

/* Returns the offset below which every lane has acknowledged everything of the partition: for the
 * advisory commit. */
int64_t rcpt_engine_committed(const struct rcpt_engine *engine, uint32_t slot);

/* ---- connections and transactions ---- */

void rcpt_engine_connection_up(struct rcpt_engine *engine, uint32_t connection, int64_t now_ms);
void rcpt_engine_connection_down(struct rcpt_engine *engine, uint32_t connection, int64_t now_ms);
/* Answer to read_positions; rows for every slot that was assigned when it was asked. */
void rcpt_engine_on_positions(struct rcpt_engine *engine, uint32_t lane,
                              const struct rcpt_engine_position *rows, size_t row_count,
                              int64_t now_ms);
void rcpt_engine_on_positions_failed(struct rcpt_engine *engine, uint32_t lane, int64_t now_ms);
/* Answer to submit. */
void rcpt_engine_on_result(struct rcpt_engine *engine, uint32_t lane,
                           const struct rcpt_engine_result *result, int64_t now_ms);

/* ---- parking ---- */

/* The probe found parked rows of this lane that can be applied, or that are too old. */
void rcpt_engine_wake(struct rcpt_engine *engine, uint32_t lane, bool applicable, bool expired,
                      int64_t now_ms);
/* Ranges of this lane are due. */
void rcpt_engine_resolve_ranges(struct rcpt_engine *engine, uint32_t lane, int64_t now_ms);
/* True: the backlog of parked rows is full, and the engine takes nothing more until a call with
 * false. */
void rcpt_engine_set_parking_full(struct rcpt_engine *engine, bool full);

/* ---- time, end, inspection ---- */

/* Time-outs, linger, idle advance, verification. Call at least every 100 ms, and after a burst of
 * deliveries. */
void rcpt_engine_tick(struct rcpt_engine *engine, int64_t now_ms);
/* The lane compares its positions with the database at the next opportunity. */
void rcpt_engine_resync(struct rcpt_engine *engine, uint32_t lane, int64_t now_ms);
/* Takes over the limits that may change while running: batch_max_*, budget_bytes, linger_ms,
 * idle_advance_ms, verify_interval_ms, rewind_timeout_ms and wake_limit. The rest stays. */
void rcpt_engine_set_limits(struct rcpt_engine *engine,
                            const struct rcpt_engine_settings *settings);
/* While held, the engine starts no batch and reads no positions; transactions in flight finish. */
void rcpt_engine_set_held(struct rcpt_engine *engine, bool held, int64_t now_ms);
/* Changes the number of connections, 1…lanes. All must be down. */
void rcpt_engine_set_connections(struct rcpt_engine *engine, uint32_t connections);
/* No new batches from now on; those in flight finish. */
void rcpt_engine_stop(struct rcpt_engine *engine);
bool rcpt_engine_is_settled(const struct rcpt_engine *engine); /* nothing in flight */
bool rcpt_engine_is_drained(
    const struct rcpt_engine *engine); /* nothing in flight, nothing queued */
uint64_t rcpt_engine_bytes(const struct rcpt_engine *engine); /* of all records held */
struct rcpt_engine_partition_view rcpt_engine_view_partition(const struct rcpt_engine *engine,
                                                             uint32_t slot);
struct rcpt_engine_lane_view rcpt_engine_view_lane(const struct rcpt_engine *engine, uint32_t lane);
/* Names of all states a lane can be in; NULL above. */
const char *rcpt_engine_lane_state_name(unsigned state);
const struct rcpt_engine_stats *rcpt_engine_get_stats(const struct rcpt_engine *engine);

/* Every invariant that can be stated about one instance, asserted; for tests and the simulator. */
void rcpt_engine_check(const struct rcpt_engine *engine);

#endif

/* Shared by the files of the engine. Private to src/core; assignment*.c read it as well.
 * engine.c has connections and time.
 * partition.c has epochs, delivery and rewinds.
 * lane.c has batches and results.
 * lane_queue.c has the records that wait.
 * lane_search.c has the search for a refused event.
 * engine_view.c has figures. */
#ifndef RECEIPTD_CORE_ENGINE_INTERNAL_H
#define RECEIPTD_CORE_ENGINE_INTERNAL_H

#include "receiptd/base/backoff.h"
#include "receiptd/core/batch_build.h"
#include "receiptd/core/engine.h"

/* What a lane awaits. */
enum lane_state {
    LANE_DOWN,      /* its connection; woken by connection_up */
    LANE_UNSYNCED,  /* its turn to read positions, at retry_at_ms */
    LANE_READING,   /* the answer to read_positions */
    LANE_READY,     /* something to do, and its connection's turn */
    LANE_IN_FLIGHT, /* the result of the batch in flight */
    LANE_WAITING,   /* retry_at_ms, after a transaction that is to be tried again */
    LANE_STATE__COUNT,
};

struct lane_position { /* of one lane in one partition */
    int64_t expected;  /* the next batch starts here: what we believe the row says */
    int64_t accepted;  /* next offset to take in */
    int64_t ours;      /* the furthest that a transaction of ours has moved the row to */
    uint32_t queued;   /* records in the lane's queue, those in flight included */
    int64_t oldest_ms; /* timestamp of the first of them, or of the last one before it */
};

struct refusal { /* an event that PostgreSQL refuses, and what it said */
    const struct rcpt_record *record;
    uint32_t index;
    char detail[120];
};

struct lane_entry {
    struct rcpt_record *record;
    uint32_t slot, events; /* of the record; here, so that counting does not touch it */
};

/* The answer to a probe that the search for a refused event awaits; see lane_search.c. */
enum search_state {
    SEARCH_IDLE,    /* nothing: no batch was refused, or the cause is found */
    SEARCH_CONFIRM, /* are all events together refused once more? */
    SEARCH_BISECT,  /* is the half between `good` and `bad` refused? */
    SEARCH_ALONE,   /* is the one that was found refused by itself? */
    SEARCH_DOUBT,   /* nothing: it was not, the whole batch is tried again */
    SEARCH_STATE__COUNT,
};

struct search {
    enum search_state state;
    const struct rcpt_event *doubted; /* that the search before found, and that passed alone */
    uint32_t records;                 /* at the front of the queue that it is about */
    uint32_t good, bad,
        asked;        /* the first `good` events pass, the first `bad` do not; of the probe */
    char detail[120]; /* what PostgreSQL said last */
    struct refusal *refusals; /* found so far in these records */
    uint32_t refusal_count, refusal_capacity;
};

struct lane {
    uint32_t index, connection;
    enum lane_state state;
    int64_t retry_at_ms;
    struct rcpt_backoff backoff;
    uint32_t fences; /* conflicts since the last commit */

    /* Raw records in order of arrival, a ring; the first `in_flight` of them are in the batch in
     * flight. */
    struct lane_entry *ring;
    uint32_t head, count, capacity, in_flight;
    int64_t oldest_ms; /* when the first record that is not in flight came */

    struct lane_position *positions; /* by slot */
    struct rcpt_batch batch;
    int64_t moved_ms;        /* last commit that moved positions */
    int64_t verified_ms;     /* last commit or comparison with the database */
    uint32_t epochs_at_read; /* engine->epochs when read_positions was asked */

    bool wake_applicable, wake_expired, wake_discard, wake_ranges;
    bool resync_asked;
    uint32_t wake_limit;
    enum rcpt_batch_kind last_kind;

    struct search search;
};

/* The phases of a partition, with what each awaits and what ends the wait:
 *
 *   UNASSIGNED            the group.
 *   CONSUMING             records.
 *   COMPARING             the anchor's record: the last one that was applied, to be compared with
 *                         Kafka's record at its offset. A record above it ends the wait too.
 *   REWINDING             the record at rewind_to; nothing above it is taken. At
 *                         rewind_deadline_ms the partition is assigned again.
 *   REWINDING_UNCOMPARED  both of these.
 *   UNPROVEN              its rows: the database went back below the anchor before its record came.
 *                         No record is taken; the rows are asked for again at ask_ms.
 */
enum partition_phase {
    PARTITION_UNASSIGNED,
    PARTITION_CONSUMING,
    PARTITION_COMPARING,
    PARTITION_REWINDING,
    PARTITION_REWINDING_UNCOMPARED,
    PARTITION_UNPROVEN,
    PARTITION_PHASE__COUNT,
};

struct slot {
    char *topic;
    int32_t partition;
    enum partition_phase phase;
    uint32_t epoch;
    int64_t generation;
    uint64_t bytes;                  /* its records in memory */
    int64_t position;                /* next offset that Kafka is expected to deliver */
    struct rcpt_engine_anchor last;  /* of the last record delivered in this epoch … */
    struct rcpt_record *last_record; /* … while its hash is not known; NULL: it is */

    struct rcpt_engine_anchor anchor; /* COMPARING */
    int64_t ask_ms;                   /* UNPROVEN: when to ask for the rows again */
    /* REWINDING: from where to where, and until when. */
    int64_t rewind_from, rewind_to, rewind_deadline_ms;
    int64_t doubt_below; /* a gap below it is no gap until an assignment says so; 0: none */
};

struct share { /* of a slot in the batch that is being chosen; in events */
    uint64_t queued, quota, taken;
    bool settled, ended;
};

struct taken {                /* of a slot by the batch that is being sealed */
    struct rcpt_record *last; /* NULL: none */
    uint32_t records;
};

struct connection {
    bool up;
    uint32_t in_flight; /* transactions in flight */
    uint32_t turn;      /* lane that is asked first next time */
};

struct rcpt_engine {
    struct rcpt_engine_settings settings;
    struct rcpt_engine_ports ports;
    struct rcpt_engine_stats stats;
    struct rcpt_batch_builder *builder;
    struct slot *slots;
    uint32_t slot_count, slot_capacity;
    uint32_t *order; /* slots by (topic, partition): the order in which rows are locked */
    struct lane *lanes;
    struct connection *connections;
    struct rcpt_batch_source *sources; /* scratch */
    uint32_t source_capacity;
    struct share *shares;    /* scratch, by slot */
    struct taken *taken;     /* likewise */
    struct lane_entry *rest; /* scratch */
    uint32_t rest_capacity;
    uint32_t epochs;
    uint32_t assigned; /* slots */
    uint64_t batch_number;
    bool stopped, halted, held, parking_full;
};

static inline bool slot_is_assigned(const struct slot *part)
{
    return part->phase != PARTITION_UNASSIGNED;
}

static inline bool slot_is_rewinding(const struct slot *part)
{
    return part->phase == PARTITION_REWINDING || part->phase == PARTITION_REWINDING_UNCOMPARED;
}

static inline bool slot_is_comparing(const struct slot *part)
{
    return part->phase == PARTITION_COMPARING || part->phase == PARTITION_REWINDING_UNCOMPARED;
}

/* ---- lane_queue.c ---- */
/* The last record delivered in this epoch; offset -1: none. */
const struct rcpt_engine_anchor *slot_last(struct slot *part);
void engine_release(struct rcpt_engine *engine, struct rcpt_record *record);
void lane_queue_fini(struct rcpt_engine *engine, struct lane *lane);
void lane_push(struct lane *lane, struct rcpt_record *record, int64_t now_ms);
struct rcpt_record *lane_record(const struct lane *lane, uint32_t index);
uint32_t lane_record_slot(const struct lane *lane, uint32_t index);
/* The first records of the queue as a batch is folded from them; valid until the next call. */
const struct rcpt_batch_source *lane_sources(struct rcpt_engine *engine, const struct lane *lane,
                                             uint32_t record_count);
/* Drops the queued records of the slot with offset < below that are not in flight. */
void lane_drop(struct rcpt_engine *engine, struct lane *lane, uint32_t slot, int64_t below);
/* The batch in flight is settled without a commit: queues its records again, except those of ended
 * epochs. */
void lane_requeue(struct rcpt_engine *engine, struct lane *lane);
/* The batch in flight is committed: releases its records. */
void lane_release_batch(struct rcpt_engine *engine, struct lane *lane);
bool lane_fills_batch(const struct rcpt_engine *engine, const struct lane *lane);
/* Brings whole records for the next batch to the front, within the bounds but at least one. Returns
 * how many. */
uint32_t lane_choose(struct rcpt_engine *engine, struct lane *lane);

/* ---- lane.c ---- */
void lane_init(struct rcpt_engine *engine, struct lane *lane, uint32_t index);
void lane_fini(struct rcpt_engine *engine, struct lane *lane);
void lane_set_state(struct lane *lane, enum lane_state state);
/* Makes the lane compare its positions with the database before anything else. */
void lane_resync(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms, int64_t delay_ms);
/* One step if the lane has something to do: reads positions or submits. True if it did. */
bool lane_step(struct rcpt_engine *engine, struct lane *lane, int64_t now_ms);
void lane_on_result(struct rcpt_engine *engine, struct lane *lane,
                    const struct rcpt_engine_result *result, int64_t now_ms);

/* ---- lane_search.c ---- */
void search_fini(struct search *search);
bool search_is_on(const struct search *search); /* the next transaction is to be a probe */
void search_begin(struct search *search, uint32_t records, uint32_t events, const char *detail);
/* The events that the next probe is to hold. */
struct rcpt_batch_range search_ask(struct search *search);
/* The probe was refused; `detail` says why. */
void search_on_refused(struct rcpt_engine *engine, struct lane *lane, const char *detail);
/* The probe went through. True: go on at once; false: the whole batch, after a back-off. */
bool search_on_passed(struct rcpt_engine *engine, struct lane *lane);
/* The batch is committed, or its records are others now. */
void search_forget(struct search *search);
/* The database may have gone back, so its earlier refusals prove nothing: another row may be there,
 * or none. The search starts again if a batch is refused again. */
void search_doubt_database(struct lane *lane);
/* Gives the dead letters of refused events what PostgreSQL said. */
void search_name_refusals(const struct search *search, struct rcpt_batch *batch);

/* ---- partition.c ---- */
/* Asks for the partition's records again, from `offset` on. */
void engine_rewind(struct rcpt_engine *engine, uint32_t slot, int64_t offset, int64_t now_ms);
/* Turns rewinds that have not ended in time into assignments. */
void engine_check_rewinds(struct rcpt_engine *engine, int64_t now_ms);

#endif

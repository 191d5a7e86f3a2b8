/* The way of receipts in the running daemon: Kafka → engine → PostgreSQL, with everything that
 * keeps it going. Modules above use this header only.
 *
 * receipts.c  the whole: engine, control connection, start, reload, stop, readiness
 * consume.c   Kafka → engine: records are decoded and delivered, partitions assigned and revoked
 * lanes.c     engine → PostgreSQL: batches are sent, positions read, results given back
 * positions.c requests of the core's assignment machine: pins, rows of new partitions
 * ladders.c   the ladder of the configuration and that of the database
 * parking.c   receipts that wait for their message: lanes to wake, and the limit
 * rollup.c    counters are summed up, the timeline is trimmed
 * layout.c    whether the partitions of the inbox may be used
 * maintenance.c  progress of `receiptd maintain`, for the metrics
 * deltas.c    how long deltas have waited to be rolled up, for the metrics
 * blockers.c  sessions of others: blockers of lanes, old snapshots
 * catch_up.c  larger batches while everything is behind
 * assigned.c  the partitions that are assigned now
 * subscribers.c  the subscribers to transitions
 * trace.c     spans of batches
 * redrive.c   dead letters are tried again, for a command or a worker of the interface
 * expirer.c   messages whose final receipt has not come, for a command
 *
 * Two kinds of modules register: subscribers to transitions of messages (folds, actions), and the
 * observer of lanes (metrics). Both before receipts_start. Private to the daemon.
 */
#ifndef RECEIPTD_RECEIPTS_RECEIPTS_H
#define RECEIPTD_RECEIPTS_RECEIPTS_H

#include "receiptd/core/engine.h"
#include "receiptd/host/context.h"
#include "receiptd/postgres/arrays.h"
#include "receiptd/postgres/statements.h"

struct receipts;

/* ---- transitions ---- */

/* The effects that are written with the transitions of a batch. */
struct transition_wants {
    bool folds, fold_columns; /* fold_event; with columns of the inbox */
    bool actions;             /* intents of pipelines */
    bool stream;              /* stream_event */
    uint64_t stream_form;     /* a hash of its mode and columns: other ones are another statement */
};

/* A module that takes part in the transactions of lanes. */
struct transition_subscriber {
    void *context;
    /* Adds its wants by the present configuration. Asked at the start and by
     * receipts_apply_subscriptions. */
    void (*want)(const void *context, struct transition_wants *wants);
    /* True: on_committed gets only batches that reach the subscription (receipts_set_subscription).
     */
    bool selective;
    /* Whether the subscriber is ready for transitions: nothing is assigned before. NULL: always. */
    bool (*is_prepared)(const void *context);
    /* A batch is committed. NULL: no callback. */
    void (*on_committed)(void *context, uint32_t messages_changed);
    /* The subscription is out of date: it is dropped until it is set again. NULL if not selective.
     */
    void (*on_outdated)(void *context);
    struct transition_subscriber *next;
};

/* Before receipts_start. Borrowed for good. */
void receipts_subscribe(struct receipts *receipts, struct transition_subscriber *subscriber);
/* The wants may have changed: if so, the connections of lanes are made again. */
void receipts_apply_subscriptions(struct receipts *receipts);
/* Sets the statuses to which the selective subscriber subscribes; NULL: not known, so all. Copied.
 */
void receipts_set_subscription(struct receipts *receipts,
                               const struct rcpt_lane_subscription *subscription);
/* Call when a subscriber is prepared: an assignment that waited for it goes on. */
void receipts_on_prepared(struct receipts *receipts);

/* ---- the observer of lanes ---- */

struct lane_flight {                /* the batch in flight; a lane has at most one */
    const struct rcpt_batch *batch; /* the engine's, unchanged until its result */
    uint64_t number, sent_ns;
    uint32_t events, messages;
    bool is_refused;        /* its last batch was rolled back: its part in the outage */
    bool fenced;            /* rolled back by the fence; why is known with the positions */
    struct rcpt_span *span; /* of the batch; NULL: not traced */
};

struct lane_observer {
    void *context;
    /* The answer of a transaction, while its batch still exists. */
    void (*on_result)(void *context, const struct lane_flight *flight,
                      const struct rcpt_engine_result *result);
    /* The effects of a committed transaction; called before on_result. */
    void (*on_effects)(void *context, const struct rcpt_batch *batch,
                       const struct rcpt_lane_effects *effects);
};

/* Before receipts_start. Borrowed for good. */
void receipts_observe(struct receipts *receipts, const struct lane_observer *observer);

/* ---- life ---- */

struct receipts *receipts_new(struct host_context *context);
/* Connects to PostgreSQL. */
void receipts_start(struct receipts *receipts);
/* Joins the consumer group. */
RCPT_MUST_CHECK bool receipts_consume(struct receipts *receipts, struct rcpt_error *error);
/* Takes over the changes of a reload; `connections` is the number that lanes are to have. */
void receipts_apply_config(struct receipts *receipts, unsigned connections);
/* Messages have been inserted: parked receipts of theirs need not wait for parked.poll_interval. */
void receipts_probe_soon(struct receipts *receipts);
/* Stops taking in records. */
void receipts_stop(struct receipts *receipts);
/* True if no transaction is in flight, and no connection is being exchanged. */
bool receipts_are_settled(const struct receipts *receipts);
/* Leaves the group within this time, then host_check_drain; false: it has been left already. */
bool receipts_leave(struct receipts *receipts, int64_t patience_ms);
/* After all that: closes connections and timers (host_closed says when). */
void receipts_close(struct receipts *receipts);
void receipts_free(struct receipts *receipts);

/* ---- what an operator asks for ---- */

enum receipts_hold { /* why nothing more is taken in */
                     RECEIPTS_HOLD_NONE,
                     RECEIPTS_HOLD_PAUSED,
                     RECEIPTS_HOLD_DRAINING, /* until nothing is queued: then DRAINED */
                     RECEIPTS_HOLD_DRAINED,
};

void receipts_set_hold(struct receipts *receipts, enum receipts_hold hold);
enum receipts_hold receipts_hold(const struct receipts *receipts);

/* Asks whether the ladder of a new configuration can be taken over while running: it must only add
 * to ours, and the database must have it. The callback on_answer comes later, with an error or
 * NULL. False: on_answer does not come, and `error` says why. `fresh` is borrowed until the answer.
 */
typedef void (*ladders_on_answer)(void *context, const struct rcpt_error *error);
RCPT_MUST_CHECK bool ladders_ask(struct receipts *receipts, const struct rcpt_config *fresh,
                                 ladders_on_answer on_answer, void *context,
                                 struct rcpt_error *error);

/* ---- the control connection, for questions before there is a connection of one's own ---- */

/* Called whenever it is connected, with the connection. */
struct control_listener {
    void *context;
    void (*on_ready)(void *context, struct rcpt_pg *pg);
};
/* Before receipts_start; one at most. Borrowed for good. */
void receipts_listen_control(struct receipts *receipts, const struct control_listener *listener);

/* ---- views ---- */

struct rcpt_engine *receipts_engine(const struct receipts *receipts);
/* Name of a gateway of the decoder, NULL or "" if the number names none; its number of events, and
 * their delays. */
const char *receipts_gateway(const struct receipts *receipts, uint32_t gateway);
uint64_t receipts_gateway_events(const struct receipts *receipts, uint32_t gateway);
const struct rcpt_record_delays *receipts_gateway_delays(const struct receipts *receipts,
                                                         uint32_t gateway);
/* Receipts of machines to which the policy was applied. */
uint64_t receipts_machine_events(const struct receipts *receipts, enum rcpt_machine_kind kind,
                                 enum rcpt_machine_policy policy);
/* The reasons for not being ready; returns how many, RECEIPTS_MOST_REASONS at most. */
#define RECEIPTS_MOST_REASONS 4u
unsigned receipts_reasons(const struct receipts *receipts,
                          const char *reasons[RECEIPTS_MOST_REASONS]);
/* Whether this instance has the partition of the first topic of receipts on which this number
 * falls. Work that belongs to no partition is shared out by this. */
bool receipts_own_share(const struct receipts *receipts, uint32_t number);
/* Records above the position, of one partition and over all that are assigned; -1: not known. */
int64_t receipts_partition_lag(const struct receipts *receipts, uint32_t slot);
int64_t receipts_lag(const struct receipts *receipts);
unsigned receipts_assigned(const struct receipts *receipts); /* partitions */

struct receipts_connection_view {
    const char *name;
    bool up;
    struct rcpt_pg *pg;
};
/* The control connection first, then those of lanes; false: there is no connection with this index.
 */
bool receipts_view_connection(const struct receipts *receipts, unsigned index,
                              struct receipts_connection_view *view);

/* The asker of the control connection, for other modules' rare questions. */
struct rcpt_asker *receipts_asker(struct receipts *receipts);

struct receipts_view {
    const char *cluster_id;       /* NULL: not known yet */
    const char *assignment_state; /* in words */
    bool kafka_is_healthy;
    int64_t parked_rows, parked_for_alias, parked_oldest_ms;
    bool parking_is_full;
    uint64_t evictions;
    int64_t snapshot_age_ms, backends, backends_most;
};
struct receipts_view receipts_look(const struct receipts *receipts);

/* Progress and backlog of `receiptd maintain`, by an answer of the database some seconds ago. */
struct receipts_maintenance {
    bool is_known;       /* the database has answered */
    bool is_wanted;      /* the configuration leaves something to it */
    bool has_partitions; /* of our own inbox, by ids with a time: spans_ahead counts */
    int64_t walked_ms;   /* since 1970, when it last ended a walk; 0: never */
    int64_t other;       /* rows of the default partition; -1: none */
    /* partitions that have left and are not booked; -1: partitions are not taken away */
    int64_t unbooked;
    double spans_ahead; /* from now to the end of the last partition */
    int64_t proven_ms;  /* since 1970, the oldest of the campaigns' last recounts; -1: none */
    int64_t drifting;   /* campaigns that were off when they were last recounted */
};
struct receipts_maintenance receipts_look_at_maintenance(const struct receipts *receipts);
/* For how long the oldest delta has waited for its roll-up, at least; -1: not known yet. */
int64_t receipts_oldest_delta_ms(const struct receipts *receipts);

#endif

/* The running daemon: one struct that owns the loop and the modules. Private to src/app.
 *
 * run.c       lifecycle: start, signals, readiness, drain
 * consume.c   Kafka → engine: records are decoded and delivered, partitions assigned and revoked
 * lanes.c     engine → PostgreSQL: batches are sent, positions read, results given back
 * positions.c what an assignment needs from the database: pins, rows, bootstrap of new partitions
 * janitor.c   everything periodic: roll-up, parked rows, blockers, advisory commit, statistics
 */
#ifndef RECEIPTD_SRC_APP_APP_H
#define RECEIPTD_SRC_APP_APP_H

#include <uv.h>

#include "receiptd/app/config.h"
#include "receiptd/app/intake.h"
#include "receiptd/core/engine.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/postgres/arrays.h"
#include "receiptd/postgres/statements.h"

#define APP_HASH_VERSION 1 /* of the lane hash; pinned in consumer_topic */

struct app;

struct app_lane_connection {
    struct app *app;
    uint32_t index;
    struct rcpt_pg *pg;
    struct rcpt_lane_sender *sender;
    struct rcpt_pg_encoder *encoder; /* for reading positions */
    bool up;
    char name[24];
};

struct app_lane_read { /* one read_positions; a lane has at most one */
    struct app *app;
    uint32_t lane;
    struct rcpt_engine_position *rows; /* slots as they were asked for, filled by the answer */
    uint32_t count;
};

struct app_lane_flight { /* the batch in flight, for the log; a lane has at most one */
    uint64_t number, sent_ns;
    uint32_t events, messages;
};

enum app_assignment_state {
    ASSIGNMENT_NONE,      /* nothing asked */
    ASSIGNMENT_WAITING,   /* for the control connection; woken by its on_ready or retry_at_ms */
    ASSIGNMENT_READING,   /* for pins and rows */
    ASSIGNMENT_QUERYING,  /* for low watermarks of new partitions */
    ASSIGNMENT_INSERTING, /* for the rows of new partitions */
};

struct app_partition {
    char *topic;
    int32_t partition;
};

struct app_assignment { /* of the consumer group, from on_assigned to rcpt_kafka_assign; or a
                           refresh */
    enum app_assignment_state state;
    uint32_t serial; /* answers that belong to an older one are ignored */
    bool refresh;    /* the partitions are assigned already; their generation changed */
    struct app_partition *partitions;
    size_t count;
    int64_t retry_at_ms;
    char *new_topic; /* whose partitions are being made */
    int32_t new_from, new_to;
};

struct app_topic {
    char *name;
    int32_t partition_count; /* as the cluster says */
};

struct app_range {     /* a partition whose log does not have what was wanted */
    int64_t asked_low; /* rows have been read again because the log begins here */
    bool stands_still; /* halted until its next assignment */
};

struct app_timers {
    uv_timer_t tick, rollup, parked, evict, commit, stats;
};

struct app {
    const struct rcpt_config *config;
    uv_loop_t loop;
    struct rcpt_engine *engine;
    struct rcpt_decoder *decoder;
    struct rcpt_kafka *kafka;
    struct rcpt_intake *intake; /* NULL: not enabled, or closed */
    bool intake_wanted, intake_ready;
    struct app_lane_connection *connections;
    struct app_lane_read *lane_reads;
    struct app_lane_flight *lane_flights;
    struct rcpt_pg *control;
    struct rcpt_pg_encoder *encoder;
    char instance[80];

    struct app_topic *topics;
    size_t topic_count;
    char *cluster_id;
    struct app_assignment assignment;
    struct app_range *ranges; /* by slot */
    uint32_t range_count;
    bool control_up, kafka_healthy, subscribed, starved;

    struct app_timers timers;
    uv_signal_t signals[3];
    uv_timer_t deadline;
    bool rollup_flying, probe_flying, evict_flying, parking_full;
    int64_t probe_started_ms, parked_rows;
    uint64_t evictions;
    struct rcpt_engine_stats last_stats;

    bool ready, stopping, closing, kafka_closing;
    bool halted; /* some of the work stands still until an operator has looked: halt_reason */
    char halt_reason[512], kafka_reason[512], database_reason[512];
    char said_reason[512]; /* what the last readiness line gave */
    int exit_code;
    unsigned open; /* things that have to say that they are closed */
};

/* ---- run.c ---- */
int64_t app_now(const struct app *app);
/* What all connections have in common; context, callbacks and statements are the caller's. */
struct rcpt_pg_settings app_pg_settings(struct app *app, const char *name);
/* Logs the error and drains; the process ends with error->exit_code. */
void app_fail(struct app *app, const struct rcpt_error *error);
void app_update_readiness(struct app *app);
/* Part of the work stands still: logs it, not ready from now on. */
void app_halt(struct app *app, const struct rcpt_error *error);
/* Something settled: goes on with the drain if one is under way. */
void app_check_drain(struct app *app);

/* ---- consume.c ---- */
RCPT_MUST_CHECK bool consume_start(struct app *app, struct rcpt_error *error);
void consume_port_rewind(void *context, uint32_t slot, int64_t offset);
void consume_port_reassign(void *context, uint32_t slot, int64_t offset);
/* Memory may have become free: polls what was left alone. */
void consume_continue(struct app *app);
void consume_assign(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count);
/* After a refresh: what is assigned goes on at new offsets. */
void consume_reassign(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count);
void consume_commit(struct app *app);
int64_t consume_lag(struct app *app);

/* ---- lanes.c ---- */
void lanes_start(struct app *app);
void lanes_fini(struct app *app);
/* Two parameters: topics and partitions of everything assigned now. */
void lanes_put_assigned(const struct app *app, struct rcpt_pg_encoder *encoder);
void lanes_port_submit(void *context, const struct rcpt_batch *batch);
void lanes_port_read_positions(void *context, uint32_t lane);

/* ---- positions.c ---- */
void positions_start(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count);
void positions_withdraw(struct app *app); /* the assignment is gone before it was answered */
/* Reads the rows of all that is assigned again and assigns anew; false: an assignment is under way
 * already. */
bool positions_refresh(struct app *app);
void positions_port_refresh(void *context, uint32_t slot);
/* Goes on if the assignment waits for the control connection. */
void positions_step(struct app *app);
void positions_fini(struct app *app);

/* ---- janitor.c ---- */
void janitor_start(struct app *app);
/* A batch has just parked so many receipts: the limit holds between two looks as well. */
void janitor_count_parked(struct app *app, uint32_t rows);
void janitor_log_stats(struct app *app);

#endif

/* The running daemon: one struct that owns the loop and the modules. Private to src/app.
 *
 * run.c       lifecycle: start, signals, readiness, drain
 * consume.c   Kafka → engine: records are decoded and delivered, partitions assigned and revoked
 * lanes.c     engine → PostgreSQL: batches are sent, positions read, results given back
 * positions.c what an assignment needs from the database: pins, rows, bootstrap of new partitions
 * ladders.c   the ladder of the configuration and that of the database
 * janitor.c   everything periodic: roll-up, parked rows, blockers, advisory commit, statistics
 * measure.c   what happens becomes metrics
 * measure_receipts.c  what receipts did, by gateway
 * status.c    what the daemon says about itself: readiness with reasons, status, lanes
 * endpoints.c the same over HTTP, with the metrics
 * control.c   what an operator asks for over the socket
 * reload.c    a new configuration while running
 * trace.c     what batches do becomes spans
 * folds.c      bursts of changes become one publication (folds.h)
 * actions.c   what happens after transitions: pipelines
 */
#ifndef RECEIPTD_SRC_APP_APP_H
#define RECEIPTD_SRC_APP_APP_H

#include <uv.h>

#include "pages.h"
#include "receiptd/app/config.h"
#include "receiptd/app/intake.h"
#include "receiptd/base/json.h"
#include "receiptd/base/metrics.h"
#include "receiptd/core/engine.h"
#include "receiptd/http.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/postgres/arrays.h"
#include "receiptd/postgres/statements.h"
#include "receiptd/trace/tracer.h"
#include "supervisor.h"

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

struct app_lane_flight {            /* the batch in flight; a lane has at most one */
    const struct rcpt_batch *batch; /* the engine's, unchanged until its result */
    uint64_t number, sent_ns;
    uint32_t events, messages;
    bool quiet;             /* sent so that no pipeline hears of it */
    bool fenced;            /* rolled back by the fence; why is known with the positions */
    struct rcpt_span *span; /* of the batch; NULL: not traced */
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
    int64_t asked_low; /* rows have been read again because the log begins here … */
    int64_t asked_at;  /* … above this position */
    int64_t since_ms;  /* … which has not changed since */
    int64_t look_ms;   /* when to look again; 0: not waiting for that */
    bool stands_still; /* halted until its next assignment */
};

struct app_timers {
    uv_timer_t tick, rollup, parked, evict, commit, stats, watch;
};

struct app_figures { /* what metrics and status show and nothing else needs */
    struct rcpt_metrics *metrics;
    int64_t started_ms, loaded_ms, last_commit_ms; /* since 1970; 0: never */
    int64_t snapshot_age_ms, backends, backends_most, hidden_backends, parked_oldest_ms;
    uint64_t tick_ns;              /* of the last tick; 0: none yet */
    uint64_t idle_since_ns;        /* work is there, all is up, and nothing is done; 0: not so */
    uint64_t told_events, told_ns; /* committed by the last status line, for its rate */
    char config_hash[17];
};

enum app_hold { /* why nothing more is taken in; an operator's word */
                APP_HOLD_NONE,
                APP_HOLD_PAUSED,
                APP_HOLD_DRAINING, /* until nothing is queued: then DRAINED */
                APP_HOLD_DRAINED,
};

#define APP_MOST_REASONS 8u
#define APP_REASON_BYTES 800u /* an error with its hint */

struct app_control; /* control.c */
struct app_reload;  /* reload.c */
struct app_folds;   /* folds.h */

enum folds_told { /* the lanes, by a block in their statements */
                  FOLDS_NOT_TOLD,
                  FOLDS_TOLD,
                  FOLDS_TOLD_COLUMNS, /* with columns of the inbox */
};
struct app_actions; /* actions.c */

struct app {
    struct rcpt_config *config; /* a reload exchanges single values */
    const char *config_path;
    uv_loop_t loop;
    struct rcpt_engine *engine;
    struct rcpt_decoder *decoder;
    struct rcpt_kafka *kafka;
    struct rcpt_intake *intake; /* NULL: not enabled, or closed */
    bool intake_wanted, intake_ready;
    struct app_lane_connection *connections;
    struct rcpt_lane_statements *lane_statements; /* what they prepare; made anew with them */
    struct app_lane_read *lane_reads;
    struct app_lane_flight *lane_flights;
    struct rcpt_pg *control;
    struct rcpt_pg_encoder *encoder;
    char instance[80];

    struct app_topic *topics;
    size_t topic_count;
    char *cluster_id;
    char stored_ladder[24]; /* hash of what the database has; "": not known yet */
    struct app_assignment assignment;
    struct app_range *ranges; /* by slot */
    uint32_t range_count;
    bool control_up, kafka_healthy, subscribed, starved;
    bool catching_up; /* all partitions are behind: larger batches */

    struct app_timers timers;
    uv_signal_t signals[3];
    uv_timer_t deadline;
    /* Roll-ups look above `bound` only, but for a whole one now and then; see
     * sql/control/rollup.sql. */
    struct {
        int64_t bound, last, started_ms, rest_until_ms, whole_at_ms;
        bool whole;
    } rollup;
    bool rollup_flying, trim_flying, probe_flying, evict_flying, parking_full;
    int64_t probe_started_ms, parked_rows;
    uint64_t evictions;
    struct rcpt_engine_stats last_stats;
    unsigned wanted_connections; /* while their number changes; 0: it does not */
    unsigned closing_connections;
    struct app_figures figures;
    enum app_hold hold;
    struct rcpt_http_server *http;
    struct pages pages;    /* of it */
    int64_t http_retry_ms; /* the address is taken: when to try again; 0: not */
    struct app_control *control_socket;
    struct supervisor supervisor;
    struct rcpt_tracer *tracer; /* NULL: nothing is traced */
    struct app_reload *reload;
    bool reload_again;          /* asked for by a signal while one was under way */
    struct app_folds *folds;    /* NULL: never configured */
    enum folds_told folds_told; /* the lanes' statements have these blocks */
    bool actions_told;
    struct rcpt_lane_wanted *wanted; /* what pipelines want to hear of; NULL: not known */
    uint64_t changed_loudly;         /* messages, by batches of which pipelines heard */
    struct app_actions *actions;     /* NULL: no pipelines, or they have been stopped */
    unsigned actions_open;           /* those that come to their end counted in */

    bool ready, was_ready, stopping, closing, kafka_closing;
    bool halted; /* some of the work stands still until an operator has looked: halt_reason */
    char halt_reason[APP_REASON_BYTES], kafka_reason[APP_REASON_BYTES];
    char database_reason[APP_REASON_BYTES];
    char said_reason[APP_REASON_BYTES]; /* what the last readiness line gave */
    int exit_code;
    unsigned open; /* things that have to say that they are closed */
};

/* ---- run.c ---- */
int64_t app_now(const struct app *app);
/* What all connections have in common; context, callbacks and statements are the caller's. */
struct rcpt_pg_settings app_pg_settings(struct app *app, const char *name);
void app_engine_settings(const struct app *app, struct rcpt_engine_settings *settings);
/* Logs the error and drains; the process ends with error->exit_code. */
void app_fail(struct app *app, const struct rcpt_error *error);
void app_update_readiness(struct app *app);
/* Everything that stands in the way, the most important first; returns how many. */
unsigned app_reasons(const struct app *app, const char *reasons[APP_MOST_REASONS]);
/* The error with its hint, as a reason. */
void app_set_reason(char reason[APP_REASON_BYTES], const struct rcpt_error *error);
/* Nothing more is taken in, or again. */
void app_set_hold(struct app *app, enum app_hold hold);
/* Part of the work stands still: logs it, not ready from now on. */
void app_halt(struct app *app, const struct rcpt_error *error);
/* Something settled: goes on with the drain if one is under way. */
void app_check_drain(struct app *app);

/* ---- kafka_properties.c ---- */
/* kafka.properties as all clients get them. The caller frees the array; its texts belong to the
 * configuration. */
struct rcpt_kafka_property *app_kafka_properties(const struct rcpt_config *config);
/* The same for a reader that begins anew with each assignment: its group is eager, whatever the
 * receipts' own group is. */
struct rcpt_kafka_property *app_kafka_reader_properties(const struct rcpt_config *config,
                                                        size_t *count);

/* ---- consume.c ---- */
RCPT_MUST_CHECK bool consume_start(struct app *app, struct rcpt_error *error);
void consume_port_rewind(void *context, uint32_t slot, int64_t offset);
void consume_port_reassign(void *context, uint32_t slot, int64_t offset);
/* Memory may have become free: polls what was left alone. */
void consume_continue(struct app *app);
void consume_assign(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count);
/* After a refresh: what is assigned goes on at new offsets. */
void consume_reassign(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count);
/* Looks again at the partitions whose time for it has come. */
void consume_tick(struct app *app);
void consume_commit(struct app *app);
int64_t consume_lag(struct app *app);

/* High watermark and what lies above the position; false: not known yet. */
bool consume_view(struct app *app, uint32_t slot, int64_t *high, int64_t *lag);

/* ---- catch_up.c ---- */
/* Looks whether all partitions are behind, and sets the engine's limits by it. */
void catch_up_tick(struct app *app);

/* ---- lanes.c ---- */
void lanes_start(struct app *app);
void lanes_fini(struct app *app);
/* Takes over what a reload has changed. */
void lanes_apply_config(struct app *app);
/* Another number of connections: what is in flight finishes first. */
void lanes_resize(struct app *app, unsigned connections);
void lanes_tick(struct app *app);
/* What wants to hear of transitions has changed: where it did, the connections are made anew. */
void lanes_apply_blocks(struct app *app);
/* What pipelines want to hear of, as the database knows it; NULL: that is not known any more.
 * Copied. */
void lanes_set_wanted(struct app *app, const struct rcpt_lane_wanted *wanted);
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

/* ---- ladders.c ---- */
enum ladders_fit { LADDERS_SAME, LADDERS_STORED_HAS_MORE, LADDERS_DIFFER };
/* The parameters of ladder_read.sql, and what its answer means. */
void ladders_put(struct rcpt_pg_encoder *encoder, const struct rcpt_config *config);
enum ladders_fit ladders_compare(const struct rcpt_pg_rows *rows, const struct rcpt_config *config);
/* False: the process is about to end, for its ladder is another than the database's. Otherwise
 * app->stored_ladder is what the database has. */
bool ladders_check(struct app *app, const struct rcpt_pg_rows *rows);
/* Whether the ladder of a new configuration can be taken over while running: it only adds to ours,
 * and the database has it. on_answer comes later, with what is in the way or NULL; false: it does
 * not come, `error` says why. `fresh` is borrowed until then. */
typedef void (*ladders_on_answer)(void *context, const struct rcpt_error *error);
RCPT_MUST_CHECK bool ladders_ask(struct app *app, const struct rcpt_config *fresh,
                                 ladders_on_answer on_answer, void *context,
                                 struct rcpt_error *error);

/* ---- janitor.c ---- */
void janitor_start(struct app *app);
/* A batch has just parked so many receipts: the limit holds between two looks as well. */
void janitor_count_parked(struct app *app, uint32_t rows);
void janitor_log_stats(struct app *app);
/* Intervals may have changed. */
void janitor_restart(struct app *app);

/* ---- measure.c ---- */
void measure_start(struct app *app);
void measure_fini(struct app *app);
/* The answer of a lane's transaction, while its batch is still there. */
void measure_result(struct app *app, uint32_t lane, const struct rcpt_engine_result *result);
/* As rcpt_lane_on_effects; the context is the connection. */
void measure_effects(void *context, uint32_t lane, const struct rcpt_lane_effects *effects);
void measure_tick(struct app *app);
/* Brings every metric up to date and writes the page; the caller frees it. */
char *measure_page(struct app *app, enum rcpt_metrics_format format, size_t *size);
int64_t measure_wall_ms(void); /* since 1970 */
/* Of this process alone: the loop turns, and what it can do it does. An outage of Kafka or
 * PostgreSQL is no reason to be restarted. */
bool measure_turns(const struct app *app);
bool measure_works(const struct app *app);
/* How old the oldest receipt is that is not applied, over all partitions assigned. */
double measure_lag_seconds(struct app *app);

/* ---- status.c ---- */
/* {"ready":…,"reasons":[…]} */
void status_write_readiness(const struct app *app, struct rcpt_json *json);
/* Everything, for people and their tools; secrets are no part of it. */
void status_write(struct app *app, struct rcpt_json *json);
void status_print(struct app *app, FILE *out);
/* One line with rate and lag, or what stands in the way; the rate is that since the last call. */
void status_describe(void *context, char text[SUPERVISOR_STATUS_BYTES]);
void status_write_lanes(struct app *app, struct rcpt_json *json);
void status_print_lanes(struct app *app, FILE *out);

/* ---- endpoints.c ---- */
void endpoints_start(struct app *app);
void endpoints_tick(struct app *app); /* tries again to get the address */
/* Reads the certificate again; false with the reason. */
RCPT_MUST_CHECK bool endpoints_reload(struct app *app, struct rcpt_error *error);
void endpoints_close(struct app *app);

/* ---- trace.c ---- */
void trace_start(struct app *app);
/* Before a record is decoded, and after: when it came, and how long that took. */
uint64_t trace_now(const struct app *app); /* 0: nothing is traced */
/* The batch is about to be sent; its span, or NULL. */
struct rcpt_span *trace_begin_batch(struct app *app, const struct rcpt_batch *batch);
/* Its answer is here, and the batch still there. */
void trace_end_batch(struct app *app, uint32_t lane, const struct rcpt_engine_result *result,
                     const struct rcpt_error *error);
void trace_close(struct app *app);
/* ---- folds.c ---- */
void folds_start(struct app *app);
/* Without a rule in the configuration: whether an earlier one has left something to be done. */
void folds_look_for_left(struct app *app);
void folds_apply_config(struct app *app, bool rules_changed); /* after a reload */
enum folds_told folds_want_transitions(const struct app *app);
void folds_stop(struct app *app); /* begins nothing more */
bool folds_are_settled(const struct app *app);
void folds_close(struct app *app);

/* ---- control.c ---- */
void control_start(struct app *app);
/* Something may have come to its end that somebody waits for. */
void control_tick(struct app *app);
void control_close(struct app *app);

/* ---- actions.c ---- */
bool actions_are_configured(const struct rcpt_config *config);
/* Whether transitions may happen: the pipelines that they start are in the database. */
bool actions_are_known(const struct app *app);
/* Nothing without pipelines. */
RCPT_MUST_CHECK bool actions_start(struct app *app, struct rcpt_error *error);
/* Claims nothing more; calls under way come to their end, then app_check_drain. */
void actions_stop(struct app *app);
/* Another one takes over, with what the configuration says now. */
RCPT_MUST_CHECK bool actions_reload(struct app *app, struct rcpt_error *error);
/* POST /runs/PIPELINE; the context is the app. */
void actions_on_request(void *context, struct rcpt_http_request *request);
/* What pipelines want to hear of has changed, and nobody has told us. */
void actions_ask_wanted(struct app *app);
/* Endpoints that were disabled are tried again. */
void actions_enable(struct app *app);

/* ---- reload.c ---- */
/* What became of a reload, as text for the log and for who asked. Called once. */
typedef void (*reload_on_done)(void *context, bool good, const char *text);
/* Reads the file in a worker; on_done may be NULL. One at a time: false if one is under way. */
bool reload_begin(struct app *app, reload_on_done on_done, void *context);
/* Once more, when the one under way is over: it may have read the file too early. */
void reload_after_this(struct app *app);

#endif

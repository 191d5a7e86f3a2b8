/* Shared by the files of the receipts' way (receipts.h). */
#ifndef RECEIPTD_RECEIPTS_INTERNAL_H
#define RECEIPTD_RECEIPTS_INTERNAL_H

#include "receiptd/receipts/receipts.h"

#include "receiptd/core/assignment.h"
#include "receiptd/gateways/topics.h"
#include "receiptd/host/places.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/postgres/ask.h"
#include "receiptd/receipts/rules.h"

#define APP_HASH_VERSION 1 /* of the lane hash; pinned in consumer_topic */

struct lanes;        /* lanes.c */
struct parking;      /* parking.c */
struct rollup;       /* rollup.c */
struct blockers;     /* blockers.c */
struct recent;       /* recent.c */
struct maintenance;  /* maintenance.c */
struct deltas;       /* deltas.c */
struct layout_watch; /* layout.c */

struct positions {          /* positions.c, ladders.c */
    bool refused;           /* a member of the control connection's outage */
    char stored_ladder[24]; /* hash of what the database has; "": not known yet */
};

struct consuming { /* consume.c */
    enum receipts_hold hold;
    bool healthy, subscribed, starved, closing;
    bool joined; /* the group has given partitions, or none, and has taken none since */
    char reason[HOST_REASON_BYTES];
    uv_timer_t commit_timer;
    unsigned noted; /* changes of the lineage when offsets were committed last */
};

struct catching_up { /* catch_up.c */
    bool on;         /* all partitions are behind: larger batches */
    struct host_burst burst;
};

struct receipts {
    struct host_context *context;
    struct rcpt_engine *engine;
    struct rcpt_decoder *decoder;
    struct rcpt_gateway_topics *topics; /* whose records are not in our form */
    uint32_t odd_channels_logged;       /* of the decoder's */
    struct rcpt_kafka *kafka;           /* NULL: not started, or closed */
    struct rcpt_asker control;
    struct host_places *places;                      /* of all partitions of its topics */
    const struct control_listener *control_listener; /* NULL: none */
    struct transition_subscriber *subscribers;
    struct lanes *lanes;
    struct parking *parking;
    struct rollup *rollup;
    struct blockers *blockers;
    struct recent *recent;
    struct maintenance *maintenance;
    struct deltas *deltas;
    struct layout_watch *layout;
    struct rcpt_outage refusals; /* of batches; its members are lanes */
    struct host_ticker ticker;
    char database_reason[HOST_REASON_BYTES]; /* of the connection that failed last */

    struct rcpt_assignment *assignment; /* which partitions, and from where */
    struct positions positions;
    struct consuming consuming;
    struct catching_up catching_up;
};

/* ---- consume.c ---- */
RCPT_MUST_CHECK bool consume_start(struct receipts *receipts, struct rcpt_error *error);
/* Makes the accounts of the present configuration. False: those before stay. */
RCPT_MUST_CHECK bool consume_read_topics(struct receipts *receipts, struct rcpt_error *error);
void consume_apply_config(struct receipts *receipts);
/* Ports of the assignment machine. */
void consume_query_lows(void *context, uint32_t serial, const struct rcpt_assignment_new *rows);
void consume_assign(void *context, const struct rcpt_assignment_start *starts, size_t count);
void consume_seek(void *context, uint32_t slot, int64_t offset);
void consume_reassign(void *context, uint32_t slot, int64_t offset);
int64_t consume_fetched_high(const struct receipts *receipts, uint32_t slot);
/* The partition's place in its log: behind applied records, and behind records that no consumer
 * gets. */
int64_t consume_stands_at(const struct receipts *receipts, uint32_t slot);
/* Call when memory may have become free: polls the partitions that were left alone. */
void consume_continue(struct receipts *receipts);
void consume_commit(struct receipts *receipts);
bool consume_close(struct receipts *receipts, int64_t patience_ms);

/* ---- catch_up.c ---- */
/* Sets catching_up: whether all partitions are behind. True: that has changed. */
bool catch_up_tick(struct receipts *receipts);

/* ---- lanes.c ---- */
struct lanes *lanes_new(struct receipts *receipts);
void lanes_start(struct lanes *lanes);
void lanes_close(struct lanes *lanes);
void lanes_free(struct lanes *lanes);
void lanes_observe(struct lanes *lanes, const struct lane_observer *observer);
/* Takes over the changes of a reload. */
void lanes_apply_config(struct lanes *lanes);
/* Changes the number of connections; transactions in flight finish first. */
void lanes_resize(struct lanes *lanes, unsigned connections);
void lanes_tick(struct lanes *lanes);
/* The boundary of the inbox's recent set, and the column that is compared with it; NULL: there is
 * none. Both are borrowed until the next call. by_time: it is the newest partitions of a table in
 * ranges of created_at. Connections that are up prepare their statements again between two batches.
 */
void lanes_set_recent(struct lanes *lanes, const char *since, const char *column);
void lanes_apply_subscriptions(struct lanes *lanes);
void lanes_set_subscription(struct lanes *lanes, const struct rcpt_lane_subscription *subscription);
bool lanes_are_changing(const struct lanes *lanes); /* the number of connections, or what is on
                                                       them */
bool lanes_are_closing(const struct lanes *lanes);  /* connections, for that */
bool lanes_are_up(const struct lanes *lanes);
bool lanes_view(const struct lanes *lanes, unsigned index, struct receipts_connection_view *view);
/* Ports of the engine; their context is that of the receipts. */
void lanes_port_submit(void *context, const struct rcpt_batch *batch);
void lanes_port_read_positions(void *context, uint32_t lane);
/* lanes_log.c: logs the answer of a batch; at level debug also its duration. */
void lane_log_answer(struct receipts *receipts, uint32_t lane, struct lane_flight *flight,
                     const struct rcpt_engine_result *result, const struct rcpt_error *error);

/* ---- subscribers.c ---- */
/* Subscribers must not miss a transition: nothing is assigned before all of them are prepared. */
bool subscribers_are_prepared(const struct receipts *receipts);
struct transition_wants subscribers_want(const struct receipts *receipts);
bool subscribers_want_same(const struct transition_wants *left,
                           const struct transition_wants *right);
void subscribers_on_committed(const struct receipts *receipts, bool subscribed,
                              uint32_t messages_changed);
void subscribers_on_outdated(const struct receipts *receipts);

/* ---- positions.c ---- */
void positions_start(struct receipts *receipts);
/* Time has passed, or the control connection or a subscriber has become ready. */
void positions_tick(struct receipts *receipts);
/* A question of the assignment machine has failed: says so if it still waits for the answer. */
void positions_failed(struct receipts *receipts, uint32_t serial, const struct rcpt_error *error);
void positions_port_rewind(void *context, uint32_t slot, int64_t offset);
void positions_port_reassign(void *context, uint32_t slot, int64_t offset);
void positions_port_refresh(void *context, uint32_t slot);

/* ---- ladders.c ---- */
enum ladders_fit { LADDERS_SAME, LADDERS_STORED_HAS_MORE, LADDERS_DIFFER };
/* ladders_put() writes the parameters of ladder_read.sql; ladders_compare() reads its answer. */
void ladders_put(struct rcpt_pg_encoder *encoder, const struct rcpt_config *config);
enum ladders_fit ladders_compare(const struct rcpt_pg_rows *rows, const struct rcpt_config *config);
/* False: the process is about to end, because its ladder differs from the database's. Otherwise
 * receipts->positions.stored_ladder is the database's. */
bool ladders_check(struct receipts *receipts, const struct rcpt_pg_rows *rows);

/* ---- parking.c ---- */
struct parking *parking_new(struct receipts *receipts);
void parking_start(struct parking *parking);
void parking_close(struct parking *parking);
void parking_free(struct parking *parking);
/* A batch has just parked so many receipts: the limit holds between two probes as well. */
void parking_count(struct parking *parking, uint32_t rows);
void parking_view(const struct parking *parking, struct receipts_view *view);

/* ---- rollup.c ---- */
struct rollup *rollup_new(struct receipts *receipts);
void rollup_start(struct rollup *rollup);
void rollup_apply_config(struct rollup *rollup);
void rollup_forget(struct rollup *rollup); /* another server may count from elsewhere */
void rollup_close(struct rollup *rollup);
void rollup_free(struct rollup *rollup);

/* ---- blockers.c ---- */
struct blockers *blockers_new(struct receipts *receipts);
void blockers_start(struct blockers *blockers);
void blockers_free(struct blockers *blockers);
void blockers_view(const struct blockers *blockers, struct receipts_view *view);

/* ---- recent.c ---- */
struct recent *recent_new(struct receipts *receipts);
void recent_start(struct recent *recent);
void recent_free(struct recent *recent);

/* ---- maintenance.c ---- */
struct maintenance *maintenance_new(struct receipts *receipts);
void maintenance_start(struct maintenance *maintenance);
void maintenance_free(struct maintenance *maintenance);

/* ---- deltas.c ---- */
struct deltas *deltas_new(struct receipts *receipts);
void deltas_start(struct deltas *deltas);
void deltas_free(struct deltas *deltas);

/* ---- layout.c ---- */
struct layout_watch *layout_watch_new(struct receipts *receipts);
void layout_watch_start(struct layout_watch *watch);
void layout_watch_free(struct layout_watch *watch);
const char *layout_watch_reason(const struct layout_watch *watch); /* not to be ready; "": none */

/* ---- assigned.c ---- */
unsigned assigned_count(const struct rcpt_engine *engine);
bool assigned_has(const struct rcpt_engine *engine, const char *topic, int32_t partition);
/* Two parameters: topics and partitions of everything assigned now. */
void assigned_put(const struct rcpt_engine *engine, struct rcpt_pg_encoder *encoder);

/* ---- trace.c ---- */
/* trace_now() is called before and after a record is decoded: it gives the time of arrival, and the
 * duration of decoding. */
uint64_t trace_now(const struct host_context *context); /* 0: nothing is traced */
/* The batch is about to be sent; its span, or NULL. */
struct rcpt_span *trace_begin_batch(const struct host_context *context,
                                    const struct rcpt_batch *batch);
/* Its answer is here; takes the span. */
void trace_end_batch(const struct host_context *context, struct rcpt_span *span_taken,
                     uint64_t sent_ns, const struct rcpt_engine_result *result,
                     const struct rcpt_error *error);

#endif

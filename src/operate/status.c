/* The state of the daemon in four forms: JSON for tools, a page for people, a line for the service
 * manager, a line for the log. It keeps only the last counts, for rates. Called by endpoints.c,
 * control.c, supervisor.c and status_store.c. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "places_view.h"
#include "receiptd/base/version.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/operate/operate.h"
#include "receiptd/postgres/session.h"
#include "status_store.h"

struct status {
    struct host_context *context;
    const struct receipts *receipts;
    const struct measure *measure;
    const struct folds *folds;
    const struct actions *actions;
    uint64_t last_events, last_ns;       /* committed by the last status line, for its rate */
    struct rcpt_engine_stats last_stats; /* of the last line of the log */
    uv_timer_t timer;                    /* of the next one */
    struct status_store *store;
};

/* RFC 3339 in UTC; null for 0. Seconds are enough, and sort as text. */
static void instant(struct rcpt_json *json, const char *name, int64_t ms)
{
    char shown[32];
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(shown, sizeof(shown), "%Y-%m-%dT%H:%M:%SZ", &parts);
    rcpt_json_put_text(json, name, ms > 0 ? shown : NULL);
}

/* Names are part of the JSON. */
static const char *hold_name(enum receipts_hold hold)
{
    static const char *const names[] = {[RECEIPTS_HOLD_NONE] = "none",
                                        [RECEIPTS_HOLD_PAUSED] = "paused",
                                        [RECEIPTS_HOLD_DRAINING] = "draining",
                                        [RECEIPTS_HOLD_DRAINED] = "drained"};
    return names[hold];
}

/* All reasons, in the order of their weight; readiness probes and people read the same object. */
void status_write_readiness(const struct status *status, struct rcpt_json *json)
{
    const char *reasons[HOST_MOST_REASONS];
    unsigned count = host_reasons(status->context, reasons);
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "ready", count == 0);
    rcpt_json_key(json, "reasons");
    rcpt_json_begin_array(json);
    for (unsigned index = 0; index < count; index++)
        rcpt_json_text(json, reasons[index]);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

/* ---- parts ---- */

/* Libraries as they are loaded, not as they were compiled against. */
static void write_versions(struct rcpt_json *json)
{
    char libpq[16];
    rcpt_json_key(json, "versions");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "receiptd", RCPT_VERSION);
    rcpt_json_put_text(json, "librdkafka", rcpt_kafka_version());
    rcpt_json_put_text(json, "libpq", rcpt_session_libpq_version(libpq));
    rcpt_json_put_text(json, "libuv", uv_version_string());
    rcpt_json_end_object(json);
}

/* The hash is that of the normal form, so equal configurations of a fleet can be seen. */
static void write_config(const struct status *status, struct rcpt_json *json)
{
    char hash[17];
    rcpt_config_hash(status->context->config, hash);
    rcpt_json_key(json, "config");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "path", status->context->config_path);
    rcpt_json_put_text(json, "hash", hash);
    instant(json, "loaded_at", status->context->loaded_ms);
    rcpt_json_put_text(json, "ladder", rcpt_ladder_hash(status->context->config->ladder));
    rcpt_json_end_object(json);
}

/* lag_records is null while the end of the log is not known. */
static void write_partition(const struct status *status, struct rcpt_json *json, uint32_t slot)
{
    struct rcpt_engine_partition_view view =
        rcpt_engine_view_partition(receipts_engine(status->receipts), slot);
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "topic",
                       rcpt_engine_slot_topic(receipts_engine(status->receipts), slot));
    rcpt_json_put_int(json, "partition",
                      rcpt_engine_slot_partition(receipts_engine(status->receipts), slot));
    rcpt_json_put_int(json, "position", view.committed);
    rcpt_json_put_known(json, "lag_records", receipts_partition_lag(status->receipts, slot));
    instant(json, "oldest_unapplied_at", view.oldest_ms);
    rcpt_json_end_object(json);
}

/* Where each partition stands, as the engine knows it. */
static void write_assignment(const struct status *status, struct rcpt_json *json)
{
    rcpt_json_key(json, "assignment");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "state", receipts_look(status->receipts).assignment_state);
    rcpt_json_key(json, "partitions");
    rcpt_json_begin_array(json);
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(receipts_engine(status->receipts));
         slot++) {
        if (rcpt_engine_is_assigned(receipts_engine(status->receipts), slot))
            write_partition(status, json, slot);
    }
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

/* The pid leads to the session in pg_stat_activity. */
static void write_connections(const struct status *status, struct rcpt_json *json)
{
    struct receipts_connection_view view;
    rcpt_json_key(json, "connections");
    rcpt_json_begin_array(json);
    for (unsigned index = 0; receipts_view_connection(status->receipts, index, &view); index++) {
        rcpt_json_begin_object(json);
        rcpt_json_put_text(json, "name", view.name);
        rcpt_json_put_bool(json, "up", view.up);
        rcpt_json_put_int(json, "backend_pid", view.up ? rcpt_pg_backend_pid(view.pg) : 0);
        rcpt_json_put_int(json, "server_version",
                          view.up ? rcpt_pg_identity(view.pg).server_version : 0);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
}

/* Installations may share broker names; the cluster id distinguishes them. */
static void write_kafka(const struct status *status, struct rcpt_json *json)
{
    rcpt_json_key(json, "kafka");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "cluster", receipts_look(status->receipts).cluster_id);
    rcpt_json_put_text(json, "group", status->context->config->kafka.group);
    rcpt_json_put_bool(json, "healthy", receipts_look(status->receipts).kafka_is_healthy);
    rcpt_json_end_object(json);
}

/* null: there is no stream. */
static void write_stream(const struct status *status, struct rcpt_json *json)
{
    const struct rcpt_config *config = status->context->config;
    struct folds_stream_view view;
    rcpt_json_key(json, "stream");
    if (!folds_view_stream(status->folds, &view)) {
        rcpt_json_null(json);
        return;
    }
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "topic", config->stream.topic);
    rcpt_json_put_text(json, "mode",
                       config->stream.mode == RCPT_STREAM_STATE ? "state" : "changes");
    rcpt_json_key(json, "lag_seconds");
    rcpt_json_double(json, view.lag_seconds);
    rcpt_json_put_int(json, "published", (int64_t)view.published);
    rcpt_json_put_int(json, "refused", (int64_t)view.refused);
    rcpt_json_end_object(json);
}

/* Counters since the start; rates are made of metrics. */
static void write_counts(const struct status *status, struct rcpt_json *json)
{
    const struct rcpt_engine_stats *stats =
        rcpt_engine_get_stats(receipts_engine(status->receipts));
    rcpt_json_key(json, "since_start");
    rcpt_json_begin_object(json);
    rcpt_json_put_int(json, "records_received", (int64_t)stats->records);
    rcpt_json_put_int(json, "events_committed", (int64_t)stats->events_committed);
    rcpt_json_put_int(json, "batches", (int64_t)stats->batches);
    rcpt_json_put_int(json, "messages_changed", (int64_t)stats->messages_changed);
    rcpt_json_put_int(json, "events_parked", (int64_t)stats->events_parked);
    rcpt_json_put_int(json, "events_woken", (int64_t)stats->events_woken);
    rcpt_json_put_int(json, "dead_letters", (int64_t)stats->letters_committed);
    rcpt_json_put_int(json, "fence_conflicts", (int64_t)stats->fenced);
    rcpt_json_put_int(json, "exclusivity_conflicts", (int64_t)stats->contended);
    rcpt_json_put_int(json, "retries", (int64_t)stats->retries);
    rcpt_json_put_int(json, "answers_lost", (int64_t)stats->unknown);
    rcpt_json_put_int(json, "rewinds", (int64_t)stats->rewinds);
    rcpt_json_put_int(json, "evictions", (int64_t)receipts_look(status->receipts).evictions);
    rcpt_json_end_object(json);
}

/* The last warnings and errors of the log: the first thing to read. */
static void write_errors(struct rcpt_json *json)
{
    struct rcpt_log_entry entries[RCPT_LOG_RECENT];
    size_t count = rcpt_log_recent(entries);
    rcpt_json_key(json, "last_errors");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < count; index++) {
        rcpt_json_begin_object(json);
        instant(json, "at", entries[index].time_ms);
        rcpt_json_put_text(json, "level", rcpt_log_level_name(entries[index].level));
        rcpt_json_put_text(json, "component", entries[index].component);
        rcpt_json_put_text(json, "text", entries[index].text);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
}

/* Names of members are part of the interface: docs/operations.md and tests read them. */
void status_write_lanes(const struct status *status, struct rcpt_json *json)
{
    rcpt_json_begin_array(json);
    for (uint32_t lane = 0; lane < status->context->config->lanes; lane++) {
        struct rcpt_engine_lane_view view =
            rcpt_engine_view_lane(receipts_engine(status->receipts), lane);
        rcpt_json_begin_object(json);
        rcpt_json_put_int(json, "lane", lane);
        rcpt_json_put_int(json, "connection", view.connection);
        rcpt_json_put_text(json, "state", view.state);
        rcpt_json_put_int(json, "records", view.records);
        rcpt_json_put_int(json, "in_flight", view.in_flight);
        rcpt_json_put_int(json, "batch", (int64_t)view.batch);
        rcpt_json_put_int(json, "fence_conflicts", view.fences);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
}

/* One snapshot: nothing can change while it is written. */
void status_write(const struct status *status, struct rcpt_json *json)
{
    rcpt_json_begin_object(json);
    write_versions(json);
    rcpt_json_put_text(json, "instance", status->context->instance);
    rcpt_json_put_int(json, "pid", getpid());
    instant(json, "started_at", status->context->started_ms);
    write_config(status, json);
    rcpt_json_key(json, "readiness");
    status_write_readiness(status, json);
    rcpt_json_put_text(json, "hold", hold_name(receipts_hold(status->receipts)));
    rcpt_json_put_bool(json, "halted", status->context->halted > 0);
    rcpt_json_put_bool(json, "stopping", host_is_stopping(status->context));
    write_kafka(status, json);
    write_assignment(status, json);
    places_write(status->context, json);
    rcpt_json_key(json, "lanes");
    status_write_lanes(status, json);
    write_connections(status, json);
    rcpt_json_put_int(json, "queue_bytes",
                      (int64_t)rcpt_engine_bytes(receipts_engine(status->receipts)));
    rcpt_json_put_int(json, "parked", receipts_look(status->receipts).parked_rows);
    rcpt_json_put_int(json, "parked_for_alias", receipts_look(status->receipts).parked_for_alias);
    instant(json, "last_commit_at", measure_last_commit_ms(status->measure));
    rcpt_json_key(json, "actions");
    actions_write(status->actions, json);
    write_stream(status, json);
    write_counts(status, json);
    write_errors(json);
    rcpt_json_end_object(json);
}

/* ---- for people ---- */

/* Since the last call; 0 at the first. Only the service manager's line calls it, or the periods
 * would mix. */
static double events_per_second(struct status *status)
{
    uint64_t events = rcpt_engine_get_stats(receipts_engine(status->receipts))->events_committed;
    uint64_t now = uv_hrtime();
    double seconds = status->last_ns > 0 ? (double)(now - status->last_ns) / 1e9 : 0;
    double rate = seconds > 0 ? (double)(events - status->last_events) / seconds : 0;
    status->last_events = events;
    status->last_ns = now;
    return rate;
}

/* While not ready, the first reason is all that fits a line. */
void status_describe(void *context, char text[SUPERVISOR_STATUS_BYTES])
{
    struct status *status = context;
    const char *reasons[HOST_MOST_REASONS];
    double rate = events_per_second(status);
    if (host_reasons(status->context, reasons) > 0) {
        snprintf(text, SUPERVISOR_STATUS_BYTES,
                 host_is_stopping(status->context) ? "%.200s" : "not ready: %.200s", reasons[0]);
        return;
    }
    int64_t lag = receipts_lag(status->receipts);
    char shown[64] = "lag not known";
    if (lag >= 0)
        snprintf(shown, sizeof(shown), "%" PRId64 " records, %.1f s behind", lag,
                 measure_lag_seconds(status->measure));
    snprintf(text, SUPERVISOR_STATUS_BYTES, "%.0f receipts/s; %s; %u partitions", rate, shown,
             receipts_assigned(status->receipts));
}

/* This instance's own, then all partitions of all topics. */
static void print_partitions(const struct status *status, FILE *out)
{
    char lag[PLACES_LAG_BYTES];
    fprintf(out, "partitions      %u, %s behind\n", receipts_assigned(status->receipts),
            places_describe_lag(receipts_lag(status->receipts), lag));
    places_print(status->context, out);
}

/* Connection 0 is the control connection, lanes have the others. */
static void print_connections(const struct status *status, FILE *out)
{
    struct receipts_connection_view control, view;
    unsigned up = 0, count = 0;
    (void)receipts_view_connection(status->receipts, 0, &control);
    for (; receipts_view_connection(status->receipts, count + 1, &view); count++)
        up += view.up;
    fprintf(out, "postgres        control %s, %u of %u lane connections up\n",
            control.up ? "up" : "down", up, count);
}

/* One screen; everything else is in the JSON. */
void status_print(const struct status *status, FILE *out)
{
    const char *reasons[HOST_MOST_REASONS];
    unsigned count = host_reasons(status->context, reasons);
    char hash[17];
    rcpt_config_hash(status->context->config, hash);
    int64_t uptime = (host_wall_ms() - status->context->started_ms) / 1000;
    fprintf(out, "receiptd        %s, pid %d, up for %" PRId64 " s\n", RCPT_VERSION, (int)getpid(),
            uptime);
    fprintf(out, "ready           %s\n", count == 0 ? "yes" : "no");
    for (unsigned index = 0; index < count; index++)
        fprintf(out, "                %s\n", reasons[index]);
    fprintf(out, "configuration   %s (%s)\n", status->context->config_path, hash);
    print_partitions(status, out);
    fprintf(out, "kafka           %s, group %s\n",
            receipts_look(status->receipts).kafka_is_healthy ? "up" : "down",
            status->context->config->kafka.group);
    print_connections(status, out);
    fprintf(out, "queued          %" PRIu64 " bytes\n",
            rcpt_engine_bytes(receipts_engine(status->receipts)));
    struct receipts_view view = receipts_look(status->receipts);
    fprintf(out, "parked          %" PRId64 ", %" PRId64 " of them for an alias\n",
            view.parked_rows, view.parked_for_alias);
    actions_print(status->actions, out);
}

/* One row per lane, for `receiptd ctl lanes`. */
void status_print_lanes(const struct status *status, FILE *out)
{
    fprintf(out, "lane  connection  state      records  in flight  batch\n");
    for (uint32_t lane = 0; lane < status->context->config->lanes; lane++) {
        struct rcpt_engine_lane_view view =
            rcpt_engine_view_lane(receipts_engine(status->receipts), lane);
        fprintf(out, "%4u  %10u  %-9s  %7u  %9u  %5" PRIu64 "\n", lane, view.connection, view.state,
                view.records, view.in_flight, view.batch);
    }
}

/* ---- the line of the log ---- */

/* Counts of receipts since the last line; those of rare events since the start. */
void status_log_counts(struct status *status)
{
    const struct receipts_view view = receipts_look(status->receipts);
    const struct rcpt_engine_stats *now = rcpt_engine_get_stats(receipts_engine(status->receipts));
    struct rcpt_engine_stats *last = &status->last_stats;
    /* Key and value without blanks, so that tools can split the line. */
    rcpt_log_info(
        "operate",
        "events=%llu batches=%llu changed=%llu parked=%llu woken=%llu expired=%llu "
        "dead_letters=%llu "
        "lag_records=%lld waiting=%lld queue_bytes=%llu fenced=%llu retries=%llu lost_answers=%llu "
        "resync_ahead=%llu resync_back=%llu rewinds=%llu gaps=%llu evictions=%llu",
        (unsigned long long)(now->events_committed - last->events_committed),
        (unsigned long long)(now->batches - last->batches),
        (unsigned long long)(now->messages_changed - last->messages_changed),
        (unsigned long long)(now->events_parked - last->events_parked),
        (unsigned long long)(now->events_woken - last->events_woken),
        (unsigned long long)(now->events_expired - last->events_expired),
        (unsigned long long)(now->letters_committed - last->letters_committed),
        (long long)receipts_lag(status->receipts), (long long)view.parked_rows,
        (unsigned long long)now->bytes, (unsigned long long)now->fenced,
        (unsigned long long)now->retries, (unsigned long long)now->unknown,
        (unsigned long long)now->resync_ahead, (unsigned long long)now->resync_back,
        (unsigned long long)now->rewinds, (unsigned long long)now->gaps,
        (unsigned long long)view.evictions);
    *last = *now;
}

/* Lanes that find their positions as they left them have done nothing. */
static bool is_idle(const struct status *status)
{
    struct rcpt_engine_stats now = *rcpt_engine_get_stats(receipts_engine(status->receipts));
    now.resync_same = status->last_stats.resync_same;
    return memcmp(&now, &status->last_stats, sizeof(now)) == 0 &&
           receipts_lag(status->receipts) == 0;
}

/* The end logs its own line. An idle daemon has nothing to say. */
static void on_timer(uv_timer_t *timer)
{
    struct status *status = timer->data;
    if (!host_is_stopping(status->context) && !is_idle(status))
        status_log_counts(status);
}

/* An interval of 0 switches the line off. */
void status_apply_config(struct status *status)
{
    int64_t interval = status->context->config->log.stats_interval_ms;
    if (interval > 0)
        uv_timer_start(&status->timer, on_timer, (uint64_t)interval, (uint64_t)interval);
    else
        uv_timer_stop(&status->timer);
}

/* ---- life ---- */

/* The line of the log begins with the process, also while it is not ready. */
struct status *status_new(struct host_context *context, struct receipts *receipts,
                          const struct measure *measure, const struct folds *folds,
                          const struct actions *actions)
{
    struct status *status = rcpt_calloc(1, sizeof(*status));
    status->context = context;
    status->receipts = receipts;
    status->measure = measure;
    status->folds = folds;
    status->actions = actions;
    uv_timer_init(context->loop, &status->timer);
    status->timer.data = status;
    status_apply_config(status);
    status->store = status_store_new(context, receipts, status, measure);
    return status;
}

void status_leave(struct status *status)
{
    status_store_leave(status->store);
}

bool status_is_settled(const struct status *status)
{
    return status_store_is_settled(status->store);
}

/* The timer of the log's line is the only handle here. */
void status_close(struct status *status)
{
    host_close_handle(status->context, (uv_handle_t *)&status->timer);
}

void status_free(struct status *status)
{
    status_store_free(status->store);
    free(status);
}

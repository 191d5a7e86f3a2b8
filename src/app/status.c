/* What the daemon says about itself: one JSON for tools, a page for people. */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app.h"
#include "receiptd/postgres/session.h"
#include "receiptd/version.h"

static void text(struct rcpt_json *json, const char *name, const char *value)
{
    rcpt_json_key(json, name);
    rcpt_json_text(json, value);
}

static void number(struct rcpt_json *json, const char *name, int64_t value)
{
    rcpt_json_key(json, name);
    rcpt_json_int(json, value);
}

static void flag(struct rcpt_json *json, const char *name, bool value)
{
    rcpt_json_key(json, name);
    rcpt_json_bool(json, value);
}

/* RFC 3339 in UTC; null for 0. */
static void instant(struct rcpt_json *json, const char *name, int64_t ms)
{
    char shown[32];
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(shown, sizeof(shown), "%Y-%m-%dT%H:%M:%SZ", &parts);
    text(json, name, ms > 0 ? shown : NULL);
}

static const char *hold_name(enum app_hold hold)
{
    static const char *const names[] = {[APP_HOLD_NONE] = "none",
                                        [APP_HOLD_PAUSED] = "paused",
                                        [APP_HOLD_DRAINING] = "draining",
                                        [APP_HOLD_DRAINED] = "drained"};
    return names[hold];
}

void status_write_readiness(const struct app *app, struct rcpt_json *json)
{
    const char *reasons[APP_MOST_REASONS];
    unsigned count = app_reasons(app, reasons);
    rcpt_json_begin_object(json);
    flag(json, "ready", count == 0);
    rcpt_json_key(json, "reasons");
    rcpt_json_begin_array(json);
    for (unsigned index = 0; index < count; index++)
        rcpt_json_text(json, reasons[index]);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

/* ---- parts ---- */

static void write_versions(struct rcpt_json *json)
{
    char libpq[16];
    rcpt_json_key(json, "versions");
    rcpt_json_begin_object(json);
    text(json, "receiptd", RCPT_VERSION);
    text(json, "librdkafka", rcpt_kafka_version());
    text(json, "libpq", rcpt_session_libpq_version(libpq));
    text(json, "libuv", uv_version_string());
    rcpt_json_end_object(json);
}

static void write_config(const struct app *app, struct rcpt_json *json)
{
    rcpt_json_key(json, "config");
    rcpt_json_begin_object(json);
    text(json, "path", app->config_path);
    text(json, "hash", app->figures.config_hash);
    instant(json, "loaded_at", app->figures.loaded_ms);
    text(json, "ladder", rcpt_ladder_hash(app->config->ladder));
    rcpt_json_end_object(json);
}

static void write_partition(struct app *app, struct rcpt_json *json, uint32_t slot)
{
    struct rcpt_engine_partition_view view = rcpt_engine_view_partition(app->engine, slot);
    int64_t high, lag;
    rcpt_json_begin_object(json);
    text(json, "topic", rcpt_engine_slot_topic(app->engine, slot));
    number(json, "partition", rcpt_engine_slot_partition(app->engine, slot));
    number(json, "position", view.committed);
    bool known = consume_view(app, slot, &high, &lag);
    rcpt_json_key(json, "lag_records");
    if (known)
        rcpt_json_int(json, lag);
    else
        rcpt_json_null(json);
    instant(json, "oldest_unapplied_at", view.oldest_ms);
    rcpt_json_end_object(json);
}

static void write_assignment(struct app *app, struct rcpt_json *json)
{
    static const char *const states[RCPT_ASSIGNMENT_STATE__COUNT] = {
        [RCPT_ASSIGNMENT_IDLE] = "settled",
        [RCPT_ASSIGNMENT_WAITING] = "waiting for PostgreSQL",
        [RCPT_ASSIGNMENT_READING] = "reading positions",
        [RCPT_ASSIGNMENT_QUERYING] = "asking Kafka for offsets",
        [RCPT_ASSIGNMENT_INSERTING] = "making rows",
        [RCPT_ASSIGNMENT_REFUSED] = "refused"};
    rcpt_json_key(json, "assignment");
    rcpt_json_begin_object(json);
    text(json, "state", states[rcpt_assignment_state(app->assignment)]);
    rcpt_json_key(json, "partitions");
    rcpt_json_begin_array(json);
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(app->engine); slot++) {
        if (rcpt_engine_is_assigned(app->engine, slot))
            write_partition(app, json, slot);
    }
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

static void write_connection(struct rcpt_json *json, const char *name, bool up,
                             const struct rcpt_pg *pg)
{
    rcpt_json_begin_object(json);
    text(json, "name", name);
    flag(json, "up", up);
    number(json, "backend_pid", up ? rcpt_pg_backend_pid(pg) : 0);
    number(json, "server_version", up ? rcpt_pg_identity(pg).server_version : 0);
    rcpt_json_end_object(json);
}

static void write_connections(const struct app *app, struct rcpt_json *json)
{
    rcpt_json_key(json, "connections");
    rcpt_json_begin_array(json);
    write_connection(json, "control", app->control_up, app->control);
    for (unsigned index = 0; index < app->config->postgres.connections; index++)
        write_connection(json, app->connections[index].name, app->connections[index].up,
                         app->connections[index].pg);
    rcpt_json_end_array(json);
}

static void write_kafka(const struct app *app, struct rcpt_json *json)
{
    rcpt_json_key(json, "kafka");
    rcpt_json_begin_object(json);
    text(json, "cluster", rcpt_assignment_cluster(app->assignment));
    text(json, "group", app->config->kafka.group);
    flag(json, "healthy", app->kafka_healthy);
    rcpt_json_end_object(json);
}

static void write_counts(const struct app *app, struct rcpt_json *json)
{
    const struct rcpt_engine_stats *stats = rcpt_engine_get_stats(app->engine);
    rcpt_json_key(json, "since_start");
    rcpt_json_begin_object(json);
    number(json, "records_received", (int64_t)stats->records);
    number(json, "events_committed", (int64_t)stats->events_committed);
    number(json, "batches", (int64_t)stats->batches);
    number(json, "messages_changed", (int64_t)stats->messages_changed);
    number(json, "events_parked", (int64_t)stats->events_parked);
    number(json, "events_woken", (int64_t)stats->events_woken);
    number(json, "dead_letters", (int64_t)stats->letters_committed);
    number(json, "fence_conflicts", (int64_t)stats->fenced);
    number(json, "exclusivity_conflicts", (int64_t)stats->contended);
    number(json, "retries", (int64_t)stats->retries);
    number(json, "answers_lost", (int64_t)stats->unknown);
    number(json, "rewinds", (int64_t)stats->rewinds);
    number(json, "evictions", (int64_t)app->evictions);
    rcpt_json_end_object(json);
}

static void write_errors(struct rcpt_json *json)
{
    struct rcpt_log_entry entries[RCPT_LOG_RECENT];
    size_t count = rcpt_log_recent(entries);
    rcpt_json_key(json, "last_errors");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < count; index++) {
        rcpt_json_begin_object(json);
        instant(json, "at", entries[index].time_ms);
        text(json, "level", rcpt_log_level_name(entries[index].level));
        text(json, "room", entries[index].room);
        text(json, "text", entries[index].text);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
}

void status_write_lanes(struct app *app, struct rcpt_json *json)
{
    rcpt_json_begin_array(json);
    for (uint32_t lane = 0; lane < app->config->lanes; lane++) {
        struct rcpt_engine_lane_view view = rcpt_engine_view_lane(app->engine, lane);
        rcpt_json_begin_object(json);
        number(json, "lane", lane);
        number(json, "connection", view.connection);
        text(json, "state", view.state);
        number(json, "records", view.records);
        number(json, "in_flight", view.flying);
        number(json, "batch", (int64_t)view.batch);
        number(json, "fence_conflicts", view.fences);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
}

void status_write(struct app *app, struct rcpt_json *json)
{
    rcpt_json_begin_object(json);
    write_versions(json);
    text(json, "instance", app->instance);
    number(json, "pid", getpid());
    instant(json, "started_at", app->figures.started_ms);
    write_config(app, json);
    rcpt_json_key(json, "readiness");
    status_write_readiness(app, json);
    text(json, "hold", hold_name(app->hold));
    flag(json, "halted", app->halted);
    flag(json, "stopping", app->stopping);
    write_kafka(app, json);
    write_assignment(app, json);
    rcpt_json_key(json, "lanes");
    status_write_lanes(app, json);
    write_connections(app, json);
    number(json, "queue_bytes", (int64_t)rcpt_engine_bytes(app->engine));
    number(json, "parked", app->parked_rows);
    instant(json, "last_commit_at", app->figures.last_commit_ms);
    write_counts(app, json);
    write_errors(json);
    rcpt_json_end_object(json);
}

/* ---- for people ---- */

static double events_per_second(struct app *app)
{
    uint64_t events = rcpt_engine_get_stats(app->engine)->events_committed, now = uv_hrtime();
    struct app_figures *figures = &app->figures;
    double seconds = figures->told_ns > 0 ? (double)(now - figures->told_ns) / 1e9 : 0;
    double rate = seconds > 0 ? (double)(events - figures->told_events) / seconds : 0;
    figures->told_events = events;
    figures->told_ns = now;
    return rate;
}

void status_describe(void *context, char text[SUPERVISOR_STATUS_BYTES])
{
    struct app *app = context;
    const char *reasons[APP_MOST_REASONS];
    double rate = events_per_second(app);
    unsigned assigned = 0;
    if (app_reasons(app, reasons) > 0) {
        snprintf(text, SUPERVISOR_STATUS_BYTES, app->stopping ? "%.200s" : "not ready: %.200s",
                 reasons[0]);
        return;
    }
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(app->engine); slot++)
        assigned += rcpt_engine_is_assigned(app->engine, slot);
    snprintf(text, SUPERVISOR_STATUS_BYTES,
             "%.0f receipts/s; %" PRId64 " records, %.1f s behind; %u partitions", rate,
             consume_lag(app), measure_lag_seconds(app), assigned);
}

static void print_partitions(struct app *app, FILE *out)
{
    unsigned assigned = 0;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(app->engine); slot++)
        assigned += rcpt_engine_is_assigned(app->engine, slot);
    fprintf(out, "partitions      %u, %" PRId64 " records behind\n", assigned, consume_lag(app));
}

static void print_connections(const struct app *app, FILE *out)
{
    unsigned up = 0;
    for (unsigned index = 0; index < app->config->postgres.connections; index++)
        up += app->connections[index].up;
    fprintf(out, "postgres        control %s, %u of %u lane connections up\n",
            app->control_up ? "up" : "down", up, app->config->postgres.connections);
}

void status_print(struct app *app, FILE *out)
{
    const char *reasons[APP_MOST_REASONS];
    unsigned count = app_reasons(app, reasons);
    int64_t uptime = (measure_wall_ms() - app->figures.started_ms) / 1000;
    fprintf(out, "receiptd        %s, pid %d, up for %" PRId64 " s\n", RCPT_VERSION, (int)getpid(),
            uptime);
    fprintf(out, "ready           %s\n", count == 0 ? "yes" : "no");
    for (unsigned index = 0; index < count; index++)
        fprintf(out, "                %s\n", reasons[index]);
    fprintf(out, "configuration   %s (%s)\n", app->config_path, app->figures.config_hash);
    print_partitions(app, out);
    fprintf(out, "kafka           %s, group %s\n", app->kafka_healthy ? "up" : "down",
            app->config->kafka.group);
    print_connections(app, out);
    fprintf(out, "queued          %" PRIu64 " bytes\n", rcpt_engine_bytes(app->engine));
    fprintf(out, "parked          %" PRId64 "\n", app->parked_rows);
}

void status_print_lanes(struct app *app, FILE *out)
{
    fprintf(out, "lane  connection  state      records  in flight  batch\n");
    for (uint32_t lane = 0; lane < app->config->lanes; lane++) {
        struct rcpt_engine_lane_view view = rcpt_engine_view_lane(app->engine, lane);
        fprintf(out, "%4u  %10u  %-9s  %7u  %9u  %5" PRIu64 "\n", lane, view.connection, view.state,
                view.records, view.flying, view.batch);
    }
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "app.h"

#define RETRY_MS 1000

static void read_database(struct app *app);

static void free_partitions(struct app_assignment *assignment)
{
    for (size_t index = 0; index < assignment->count; index++)
        free(assignment->partitions[index].topic);
    free(assignment->partitions);
    free(assignment->new_topic);
    assignment->partitions = NULL;
    assignment->new_topic = NULL;
    assignment->count = 0;
}

static void set_state(struct app *app, enum app_assignment_state state)
{
    app->assignment.state = state;
    app_update_readiness(app);
}

static void retry_later(struct app *app, int64_t delay_ms)
{
    app->assignment.retry_at_ms = app_now(app) + delay_ms;
    set_state(app, ASSIGNMENT_WAITING);
}

void positions_step(struct app *app)
{
    if (app->assignment.state == ASSIGNMENT_WAITING && app->control_up && !app->stopping &&
        actions_are_known(app) && app_now(app) >= app->assignment.retry_at_ms)
        read_database(app);
}

static void begin(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count,
                  bool refresh)
{
    struct app_assignment *assignment = &app->assignment;
    free_partitions(assignment);
    assignment->serial++;
    assignment->refresh = refresh;
    assignment->partitions = rcpt_calloc(count + 1, sizeof(*assignment->partitions));
    assignment->count = count;
    for (size_t index = 0; index < count; index++) {
        assignment->partitions[index].topic = rcpt_strdup(partitions[index].topic);
        assignment->partitions[index].partition = partitions[index].partition;
    }
    retry_later(app, 0);
    positions_step(app);
}

void positions_start(struct app *app, const struct rcpt_kafka_partition *partitions, size_t count)
{
    begin(app, partitions, count, false);
}

void positions_withdraw(struct app *app)
{
    free_partitions(&app->assignment);
    app->assignment.serial++;
    set_state(app, ASSIGNMENT_NONE);
}

bool positions_refresh(struct app *app)
{
    if (app->assignment.state != ASSIGNMENT_NONE)
        return false; /* the pins are being read already */
    uint32_t slots = rcpt_engine_slot_count(app->engine);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(slots, sizeof(*partitions));
    size_t count = 0;
    for (uint32_t index = 0; index < slots; index++) {
        if (rcpt_engine_is_assigned(app->engine, index))
            partitions[count++] = (struct rcpt_kafka_partition){
                .topic = rcpt_engine_slot_topic(app->engine, index),
                .partition = rcpt_engine_slot_partition(app->engine, index)};
    }
    begin(app, partitions, count, true);
    free(partitions);
    return true;
}

void positions_port_refresh(void *context, uint32_t slot)
{
    struct app *app = context;
    if (app->assignment.state == ASSIGNMENT_NONE)
        rcpt_log_warn(
            "core",
            "rows of topic %s partition %d are gone or of another generation: reading the "
            "pins again",
            rcpt_engine_slot_topic(app->engine, slot),
            rcpt_engine_slot_partition(app->engine, slot));
    (void)positions_refresh(app);
}

void positions_fini(struct app *app)
{
    free_partitions(&app->assignment);
}

/* An answer that came for an assignment that has been withdrawn since, or an error: true, nothing
 * more to do. */
static bool is_over(struct app *app, uintptr_t serial, const struct rcpt_error *error)
{
    if (serial != app->assignment.serial || app->stopping)
        return true;
    if (error == NULL)
        return false;
    rcpt_log_warn("postgres", "positions cannot be read yet: %s%s%s", error->text,
                  error->hint[0] != '\0' ? "; HINT: " : "", error->hint);
    retry_later(app, RETRY_MS);
    if (error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
        rcpt_pg_reconnect(app->control, error);
    return true;
}

struct request { /* context of one answer: which assignment asked */
    struct app *app;
    uintptr_t serial;
};

static struct request *request_new(struct app *app)
{
    struct request *request = rcpt_malloc(sizeof(*request));
    request->app = app;
    request->serial = app->assignment.serial;
    return request;
}

/* ---- pins: what must be the same on every instance ---- */

static bool refuse(struct app *app, const char *topic, const char *what, const char *pinned,
                   const char *ours)
{
    struct rcpt_error error;
    rcpt_error_fatal(&error, EX_CONFIG,
                     "topic %s is pinned to %s %s in consumer_topic, the configuration says %s",
                     topic, what, pinned, ours);
    rcpt_error_hint(
        &error,
        "give every instance the same configuration; changing it needs all instances stopped and a "
        "migration");
    app_fail(app, &error);
    return false;
}

static bool check_number(struct app *app, const char *topic, const char *what, int64_t pinned,
                         int64_t ours)
{
    char left[24], right[24];
    snprintf(left, sizeof(left), "%lld", (long long)pinned);
    snprintf(right, sizeof(right), "%lld", (long long)ours);
    return pinned == ours || refuse(app, topic, what, left, right);
}

/* Columns of pins_read: topic, cluster_id, generation, lanes, hash_version, ladder_hash,
 * partitions. */
enum { PIN_TOPIC, PIN_CLUSTER, PIN_GENERATION, PIN_LANES, PIN_HASH, PIN_LADDER, PIN_PARTITIONS };

static bool check_pins(struct app *app, const struct rcpt_pg_rows *pins, size_t row)
{
    const char *topic = rcpt_pg_rows_text(pins, row, PIN_TOPIC);
    const char *cluster = rcpt_pg_rows_text(pins, row, PIN_CLUSTER);
    const char *ladder = rcpt_pg_rows_text(pins, row, PIN_LADDER);
    if (strcmp(cluster, app->cluster_id) != 0)
        return refuse(app, topic, "Kafka cluster", cluster, app->cluster_id);
    if (strcmp(ladder, app->stored_ladder) != 0)
        return refuse(app, topic, "ladder", ladder, app->stored_ladder);
    return check_number(app, topic, "lanes", rcpt_pg_rows_int(pins, row, PIN_LANES),
                        app->config->lanes) &&
           check_number(app, topic, "hash version", rcpt_pg_rows_int(pins, row, PIN_HASH),
                        APP_HASH_VERSION);
}

static int find_pin(const struct rcpt_pg_rows *pins, const char *topic)
{
    for (size_t row = 0; row < rcpt_pg_rows_count(pins); row++) {
        if (strcmp(rcpt_pg_rows_text(pins, row, PIN_TOPIC), topic) == 0)
            return rcpt_pg_rows_text(pins, row, PIN_CLUSTER) != NULL ? (int)row : -1;
    }
    return -1;
}

/* Partitions that the topic must have rows for: all that the cluster knows, all that were assigned.
 */
static int32_t needed_partitions(const struct app *app, const char *topic)
{
    int32_t needed = 0;
    for (size_t index = 0; index < app->topic_count; index++) {
        if (strcmp(app->topics[index].name, topic) == 0)
            needed = app->topics[index].partition_count;
    }
    for (size_t index = 0; index < app->assignment.count; index++) {
        const struct app_partition *assigned = &app->assignment.partitions[index];
        if (strcmp(assigned->topic, topic) == 0 && assigned->partition >= needed)
            needed = assigned->partition + 1;
    }
    return needed;
}

/* ---- bootstrap: rows for partitions that are new ---- */

static void on_inserted(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    struct app *app = request.app;
    (void)rows;
    (void)row_count;
    free(context);
    if (is_over(app, request.serial, error))
        return;
    rcpt_log_info("postgres", "topic %s: rows for partitions %d…%d are there",
                  app->assignment.new_topic, app->assignment.new_from, app->assignment.new_to - 1);
    retry_later(app, 0);
    positions_step(app);
}

static void insert_rows(struct app *app, const struct rcpt_kafka_partition *lows, size_t count)
{
    struct app_assignment *assignment = &app->assignment;
    struct rcpt_pg_encoder *pins = rcpt_pg_encoder_new(), *add = rcpt_pg_encoder_new();
    struct rcpt_pg_query queries[3] = {{.statement = "synchronous"},
                                       {.statement = "pins_insert"},
                                       {.statement = "partitions_add"}};
    rcpt_pg_add_text(pins, assignment->new_topic);
    rcpt_pg_add_text(pins, app->cluster_id);
    rcpt_pg_add_int4(pins, (int32_t)app->config->lanes);
    rcpt_pg_add_int4(pins, APP_HASH_VERSION);
    rcpt_pg_add_text(pins, app->stored_ladder);
    rcpt_pg_encoder_params(pins, &queries[1].params);
    rcpt_pg_add_text(add, assignment->new_topic);
    rcpt_pg_add_int4(add, assignment->new_from);
    rcpt_pg_begin_int8_array(add, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(add, lows[index].offset);
    rcpt_pg_encoder_params(add, &queries[2].params);
    set_state(app, ASSIGNMENT_INSERTING);
    rcpt_pg_submit(app->control, queries, 3, on_inserted, request_new(app));
    rcpt_pg_encoder_free(pins);
    rcpt_pg_encoder_free(add);
}

static void on_lows(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                    const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    struct app *app = request.app;
    free(context);
    if (is_over(app, request.serial, error))
        return;
    for (size_t index = 0; index < count; index++) {
        if (partitions[index].offset < 0) {
            rcpt_log_warn("kafka", "topic %s partition %d: its first offset cannot be read yet",
                          partitions[index].topic, partitions[index].partition);
            retry_later(app, RETRY_MS);
            return;
        }
    }
    if (!app->control_up) {
        retry_later(app, 0);
        return;
    }
    insert_rows(app, partitions, count);
}

static void bootstrap(struct app *app, const char *topic, int32_t from, int32_t to)
{
    struct app_assignment *assignment = &app->assignment;
    free(assignment->new_topic);
    assignment->new_topic = rcpt_strdup(topic);
    assignment->new_from = from;
    assignment->new_to = to;
    size_t count = (size_t)(to - from);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(count + 1, sizeof(*partitions));
    for (size_t index = 0; index < count; index++)
        partitions[index] = (struct rcpt_kafka_partition){.topic = assignment->new_topic,
                                                          .partition = from + (int32_t)index};
    set_state(app, ASSIGNMENT_QUERYING);
    rcpt_kafka_query_low(app->kafka, partitions, count, on_lows, request_new(app));
    free(partitions);
}

/* True if every topic of the assignment is pinned as we are and has rows for all partitions;
 * otherwise the next step to get there is under way, or the process is about to end. */
static bool pins_are_good(struct app *app, const struct rcpt_pg_rows *pins)
{
    for (size_t index = 0; index < app->assignment.count; index++) {
        const char *topic = app->assignment.partitions[index].topic;
        int row = find_pin(pins, topic);
        if (row >= 0 && !check_pins(app, pins, (size_t)row))
            return false;
        int32_t have = row >= 0 ? (int32_t)rcpt_pg_rows_int(pins, (size_t)row, PIN_PARTITIONS) : 0;
        int32_t needed = needed_partitions(app, topic);
        if (have < needed) {
            bootstrap(app, topic, have, needed);
            return false;
        }
    }
    return true;
}

/* ---- rows ---- */

/* Columns of progress_read. */
enum {
    ROW_TOPIC,
    ROW_PARTITION,
    ROW_LANE,
    ROW_NEXT,
    ROW_GENERATION,
    ROW_ANCHOR,
    ROW_ANCHOR_TIME,
    ROW_ANCHOR_CRC
};

struct partition_rows {
    int64_t next[RCPT_ENGINE_MAX_LANES];
    int64_t generation;
    struct rcpt_engine_anchor anchor; /* of the lane that is furthest behind */
    uint32_t found;
};

static void collect_rows(const struct rcpt_pg_rows *rows, const struct app_partition *partition,
                         struct partition_rows *out)
{
    int64_t lowest = INT64_MAX;
    memset(out, 0, sizeof(*out));
    out->anchor.offset = -1;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        if (rcpt_pg_rows_int(rows, row, ROW_PARTITION) != partition->partition ||
            strcmp(rcpt_pg_rows_text(rows, row, ROW_TOPIC), partition->topic) != 0)
            continue;
        uint32_t lane = (uint32_t)rcpt_pg_rows_int(rows, row, ROW_LANE);
        RCPT_ASSERT(lane < RCPT_ENGINE_MAX_LANES);
        out->next[lane] = rcpt_pg_rows_int(rows, row, ROW_NEXT);
        out->generation = rcpt_pg_rows_int(rows, row, ROW_GENERATION);
        out->found++;
        if (out->next[lane] >= lowest)
            continue;
        lowest = out->next[lane];
        bool known = rcpt_pg_rows_text(rows, row, ROW_ANCHOR) != NULL;
        out->anchor.offset = known ? rcpt_pg_rows_int(rows, row, ROW_ANCHOR) : -1;
        out->anchor.timestamp_ms = rcpt_pg_rows_int(rows, row, ROW_ANCHOR_TIME);
        out->anchor.crc = (uint32_t)rcpt_pg_rows_int(rows, row, ROW_ANCHOR_CRC);
    }
}

static void halt_on_missing_rows(struct app *app, const struct app_partition *partition,
                                 uint32_t found)
{
    struct rcpt_error error;
    rcpt_error_fatal(
        &error, EX_DATAERR,
        "consumer_progress has %u of %u rows for topic %s partition %d: somebody deleted them",
        found, app->config->lanes, partition->topic, partition->partition);
    rcpt_error_hint(&error,
                    "restore the rows with the positions that were applied last, then restart");
    app_halt(app, &error);
}

/* Looked at before anything is assigned: an engine that starts anew where Kafka does not would take
 * the difference for a gap of the log. */
static bool rows_are_complete(struct app *app, const struct rcpt_pg_rows *rows,
                              struct partition_rows *found)
{
    for (size_t index = 0; index < app->assignment.count; index++) {
        collect_rows(rows, &app->assignment.partitions[index], found);
        if (found->found != app->config->lanes) {
            halt_on_missing_rows(app, &app->assignment.partitions[index], found->found);
            return false;
        }
    }
    return true;
}

static void assign_engine(struct app *app, const struct rcpt_pg_rows *rows,
                          struct partition_rows *found, struct rcpt_kafka_partition *starts)
{
    for (size_t index = 0; index < app->assignment.count; index++) {
        const struct app_partition *partition = &app->assignment.partitions[index];
        collect_rows(rows, partition, found);
        uint32_t slot = rcpt_engine_slot(app->engine, partition->topic, partition->partition);
        starts[index] = (struct rcpt_kafka_partition){
            .topic = partition->topic,
            .partition = partition->partition,
            .offset = rcpt_engine_assign(app->engine, slot, found->generation, found->next,
                                         &found->anchor, app_now(app))};
    }
}

static void give_positions(struct app *app, const struct rcpt_pg_rows *rows)
{
    struct app_assignment *assignment = &app->assignment;
    struct rcpt_kafka_partition *starts = rcpt_calloc(assignment->count + 1, sizeof(*starts));
    struct partition_rows *found = rcpt_malloc(sizeof(*found));
    bool complete = rows_are_complete(app, rows, found);
    if (complete)
        assign_engine(app, rows, found, starts);
    free(found);
    if (complete && assignment->refresh) {
        consume_reassign(app, starts, assignment->count);
    } else if (complete) {
        consume_assign(app, starts, assignment->count);
        rcpt_log_info("core", "consuming %zu partitions", assignment->count);
    }
    free(starts);
    if (complete) {
        positions_withdraw(app);
        rcpt_engine_tick(app->engine, app_now(app));
    }
}

static void on_read(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    struct app *app = request.app;
    free(context);
    if (is_over(app, request.serial, error))
        return;
    RCPT_ASSERT(row_count == 3);
    if (ladders_check(app, rows[2]) && pins_are_good(app, rows[0]))
        give_positions(app, rows[1]);
}

static void put_topics(struct app *app, struct rcpt_pg_encoder *encoder)
{
    const struct app_assignment *assignment = &app->assignment;
    rcpt_pg_begin_text_array(encoder, assignment->count);
    for (size_t index = 0; index < assignment->count; index++)
        rcpt_pg_put_bytes(encoder, assignment->partitions[index].topic,
                          strlen(assignment->partitions[index].topic));
}

static void read_database(struct app *app)
{
    const struct app_assignment *assignment = &app->assignment;
    struct rcpt_pg_encoder *pins = rcpt_pg_encoder_new(), *progress = rcpt_pg_encoder_new(),
                           *ladder = rcpt_pg_encoder_new();
    struct rcpt_pg_query queries[3] = {
        {.statement = "pins_read"}, {.statement = "progress_read"}, {.statement = "ladder_read"}};
    put_topics(app, pins);
    rcpt_pg_encoder_params(pins, &queries[0].params);
    put_topics(app, progress);
    rcpt_pg_begin_int4_array(progress, assignment->count);
    for (size_t index = 0; index < assignment->count; index++)
        rcpt_pg_put_int4(progress, assignment->partitions[index].partition);
    rcpt_pg_encoder_params(progress, &queries[1].params);
    set_state(app, ASSIGNMENT_READING);
    ladders_put(ladder, app->config);
    rcpt_pg_encoder_params(ladder, &queries[2].params);
    rcpt_pg_submit(app->control, queries, 3, on_read, request_new(app));
    rcpt_pg_encoder_free(ladder);
    rcpt_pg_encoder_free(pins);
    rcpt_pg_encoder_free(progress);
}

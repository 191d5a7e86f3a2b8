/* What an assignment of the consumer group needs from the database before a record is taken in: the
 * pins of its topics, a row per partition and lane, rows for partitions that are new. Its states
 * are enum app_assignment_state. Called by consume.c, by receipts.c on its tick, by the engine
 * (refresh).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "receipts_internal.h"

#define RETRY_MS 1000

static void read_database(struct receipts *receipts);

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

static void set_state(struct receipts *receipts, enum app_assignment_state state)
{
    receipts->assignment.state = state;
    app_update_readiness(receipts->context);
}

static void retry_later(struct receipts *receipts, int64_t delay_ms)
{
    receipts->assignment.retry_at_ms = app_now(receipts->context) + delay_ms;
    set_state(receipts, ASSIGNMENT_WAITING);
}

void positions_step(struct receipts *receipts)
{
    if (receipts->assignment.state == ASSIGNMENT_WAITING && receipts->control.up &&
        !app_is_stopping(receipts->context) && subscribers_are_prepared(receipts) &&
        app_now(receipts->context) >= receipts->assignment.retry_at_ms)
        read_database(receipts);
}

static void begin(struct receipts *receipts, const struct rcpt_kafka_partition *partitions,
                  size_t count, bool refresh)
{
    struct app_assignment *assignment = &receipts->assignment;
    free_partitions(assignment);
    assignment->serial++;
    assignment->refresh = refresh;
    assignment->partitions = rcpt_calloc(count + 1, sizeof(*assignment->partitions));
    assignment->count = count;
    for (size_t index = 0; index < count; index++) {
        assignment->partitions[index].topic = rcpt_strdup(partitions[index].topic);
        assignment->partitions[index].partition = partitions[index].partition;
    }
    retry_later(receipts, 0);
    positions_step(receipts);
}

void positions_start(struct receipts *receipts, const struct rcpt_kafka_partition *partitions,
                     size_t count)
{
    begin(receipts, partitions, count, false);
}

void positions_withdraw(struct receipts *receipts)
{
    free_partitions(&receipts->assignment);
    receipts->assignment.serial++;
    set_state(receipts, ASSIGNMENT_NONE);
}

bool positions_refresh(struct receipts *receipts)
{
    if (receipts->assignment.state != ASSIGNMENT_NONE)
        return false; /* the pins are being read already */
    uint32_t slots = rcpt_engine_slot_count(receipts->engine);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(slots, sizeof(*partitions));
    size_t count = 0;
    for (uint32_t index = 0; index < slots; index++) {
        if (rcpt_engine_is_assigned(receipts->engine, index))
            partitions[count++] = (struct rcpt_kafka_partition){
                .topic = rcpt_engine_slot_topic(receipts->engine, index),
                .partition = rcpt_engine_slot_partition(receipts->engine, index)};
    }
    begin(receipts, partitions, count, true);
    free(partitions);
    return true;
}

void positions_port_refresh(void *context, uint32_t slot)
{
    struct receipts *receipts = context;
    if (receipts->assignment.state == ASSIGNMENT_NONE)
        rcpt_log_warn(
            "core",
            "rows of topic %s partition %d are gone or of another generation: reading the "
            "pins again",
            rcpt_engine_slot_topic(receipts->engine, slot),
            rcpt_engine_slot_partition(receipts->engine, slot));
    (void)positions_refresh(receipts);
}

void positions_fini(struct receipts *receipts)
{
    free_partitions(&receipts->assignment);
}

/* An answer that came for an assignment that has been withdrawn since, or an error: true, nothing
 * more to do. */
static bool is_over(struct receipts *receipts, uintptr_t serial, const struct rcpt_error *error)
{
    if (serial != receipts->assignment.serial || app_is_stopping(receipts->context))
        return true;
    if (error == NULL)
        return false;
    rcpt_log_failure(RCPT_LOG_WARN, "postgres", error, "positions cannot be read yet");
    retry_later(receipts, RETRY_MS);
    if (error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
        rcpt_pg_reconnect(receipts->control.pg, error);
    return true;
}

struct request { /* context of one answer: which assignment asked */
    struct receipts *receipts;
    uintptr_t serial;
};

static struct request *request_new(struct receipts *receipts)
{
    struct request *request = rcpt_malloc(sizeof(*request));
    request->receipts = receipts;
    request->serial = receipts->assignment.serial;
    return request;
}

/* ---- pins: what must be the same on every instance ---- */

static bool refuse(struct receipts *receipts, const char *topic, const char *what,
                   const char *pinned, const char *ours)
{
    struct rcpt_error error;
    rcpt_error_fatal(&error, EX_CONFIG,
                     "topic %s is pinned to %s %s in consumer_topic, the configuration says %s",
                     topic, what, pinned, ours);
    rcpt_error_hint(
        &error,
        "give every instance the same configuration; changing it needs all instances stopped and a "
        "migration");
    app_fail(receipts->context, &error);
    return false;
}

static bool check_number(struct receipts *receipts, const char *topic, const char *what,
                         int64_t pinned, int64_t ours)
{
    char left[24], right[24];
    snprintf(left, sizeof(left), "%lld", (long long)pinned);
    snprintf(right, sizeof(right), "%lld", (long long)ours);
    return pinned == ours || refuse(receipts, topic, what, left, right);
}

/* Columns of pins_read: topic, cluster_id, generation, lanes, hash_version, ladder_hash,
 * partitions. */
enum { PIN_TOPIC, PIN_CLUSTER, PIN_GENERATION, PIN_LANES, PIN_HASH, PIN_LADDER, PIN_PARTITIONS };

static bool check_pins(struct receipts *receipts, const struct rcpt_pg_rows *pins, size_t row)
{
    const char *topic = rcpt_pg_rows_text(pins, row, PIN_TOPIC);
    const char *cluster = rcpt_pg_rows_text(pins, row, PIN_CLUSTER);
    const char *ladder = rcpt_pg_rows_text(pins, row, PIN_LADDER);
    if (strcmp(cluster, receipts->cluster_id) != 0)
        return refuse(receipts, topic, "Kafka cluster", cluster, receipts->cluster_id);
    if (strcmp(ladder, receipts->stored_ladder) != 0)
        return refuse(receipts, topic, "ladder", ladder, receipts->stored_ladder);
    return check_number(receipts, topic, "lanes", rcpt_pg_rows_int(pins, row, PIN_LANES),
                        receipts->context->config->lanes) &&
           check_number(receipts, topic, "hash version", rcpt_pg_rows_int(pins, row, PIN_HASH),
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
static int32_t needed_partitions(const struct receipts *receipts, const char *topic)
{
    int32_t needed = 0;
    for (size_t index = 0; index < receipts->topic_count; index++) {
        if (strcmp(receipts->topics[index].name, topic) == 0)
            needed = receipts->topics[index].partition_count;
    }
    for (size_t index = 0; index < receipts->assignment.count; index++) {
        const struct app_partition *assigned = &receipts->assignment.partitions[index];
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
    struct receipts *receipts = request.receipts;
    (void)rows;
    (void)row_count;
    free(context);
    if (is_over(receipts, request.serial, error))
        return;
    rcpt_log_info("postgres", "topic %s: rows for partitions %d…%d are there",
                  receipts->assignment.new_topic, receipts->assignment.new_from,
                  receipts->assignment.new_to - 1);
    retry_later(receipts, 0);
    positions_step(receipts);
}

static void insert_rows(struct receipts *receipts, const struct rcpt_kafka_partition *lows,
                        size_t count)
{
    struct app_assignment *assignment = &receipts->assignment;
    struct rcpt_pg_encoder *pins = rcpt_pg_encoder_new(), *add = rcpt_pg_encoder_new();
    struct rcpt_pg_query queries[3] = {{.statement = "synchronous"},
                                       {.statement = "pins_insert"},
                                       {.statement = "partitions_add"}};
    rcpt_pg_add_text(pins, assignment->new_topic);
    rcpt_pg_add_text(pins, receipts->cluster_id);
    rcpt_pg_add_int4(pins, (int32_t)receipts->context->config->lanes);
    rcpt_pg_add_int4(pins, APP_HASH_VERSION);
    rcpt_pg_add_text(pins, receipts->stored_ladder);
    rcpt_pg_encoder_params(pins, &queries[1].params);
    rcpt_pg_add_text(add, assignment->new_topic);
    rcpt_pg_add_int4(add, assignment->new_from);
    rcpt_pg_begin_int8_array(add, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(add, lows[index].offset);
    rcpt_pg_encoder_params(add, &queries[2].params);
    set_state(receipts, ASSIGNMENT_INSERTING);
    rcpt_pg_submit(receipts->control.pg, queries, 3, on_inserted, request_new(receipts));
    rcpt_pg_encoder_free(pins);
    rcpt_pg_encoder_free(add);
}

static void on_lows(void *context, const struct rcpt_kafka_partition *partitions, size_t count,
                    const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    struct receipts *receipts = request.receipts;
    free(context);
    if (is_over(receipts, request.serial, error))
        return;
    for (size_t index = 0; index < count; index++) {
        if (partitions[index].offset < 0) {
            rcpt_log_warn("kafka", "topic %s partition %d: its first offset cannot be read yet",
                          partitions[index].topic, partitions[index].partition);
            retry_later(receipts, RETRY_MS);
            return;
        }
    }
    if (!receipts->control.up) {
        retry_later(receipts, 0);
        return;
    }
    insert_rows(receipts, partitions, count);
}

static void bootstrap(struct receipts *receipts, const char *topic, int32_t from, int32_t to)
{
    struct app_assignment *assignment = &receipts->assignment;
    free(assignment->new_topic);
    assignment->new_topic = rcpt_strdup(topic);
    assignment->new_from = from;
    assignment->new_to = to;
    size_t count = (size_t)(to - from);
    struct rcpt_kafka_partition *partitions = rcpt_calloc(count + 1, sizeof(*partitions));
    for (size_t index = 0; index < count; index++)
        partitions[index] = (struct rcpt_kafka_partition){.topic = assignment->new_topic,
                                                          .partition = from + (int32_t)index};
    set_state(receipts, ASSIGNMENT_QUERYING);
    rcpt_kafka_query_low(receipts->kafka, partitions, count, on_lows, request_new(receipts));
    free(partitions);
}

/* True if every topic of the assignment is pinned as we are and has rows for all partitions;
 * otherwise the next step to get there is under way, or the process is about to end. */
static bool pins_are_good(struct receipts *receipts, const struct rcpt_pg_rows *pins)
{
    for (size_t index = 0; index < receipts->assignment.count; index++) {
        const char *topic = receipts->assignment.partitions[index].topic;
        int row = find_pin(pins, topic);
        if (row >= 0 && !check_pins(receipts, pins, (size_t)row))
            return false;
        int32_t have = row >= 0 ? (int32_t)rcpt_pg_rows_int(pins, (size_t)row, PIN_PARTITIONS) : 0;
        int32_t needed = needed_partitions(receipts, topic);
        if (have < needed) {
            bootstrap(receipts, topic, have, needed);
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

static void halt_on_missing_rows(struct receipts *receipts, const struct app_partition *partition,
                                 uint32_t found)
{
    struct rcpt_error error;
    rcpt_error_fatal(
        &error, EX_DATAERR,
        "consumer_progress has %u of %u rows for topic %s partition %d: somebody deleted them",
        found, receipts->context->config->lanes, partition->topic, partition->partition);
    rcpt_error_hint(&error,
                    "restore the rows with the positions that were applied last, then restart");
    app_halt(receipts->context, &error);
}

/* Looked at before anything is assigned: an engine that starts anew where Kafka does not would take
 * the difference for a gap of the log. */
static bool rows_are_complete(struct receipts *receipts, const struct rcpt_pg_rows *rows,
                              struct partition_rows *found)
{
    for (size_t index = 0; index < receipts->assignment.count; index++) {
        collect_rows(rows, &receipts->assignment.partitions[index], found);
        if (found->found != receipts->context->config->lanes) {
            halt_on_missing_rows(receipts, &receipts->assignment.partitions[index], found->found);
            return false;
        }
    }
    return true;
}

static void assign_engine(struct receipts *receipts, const struct rcpt_pg_rows *rows,
                          struct partition_rows *found, struct rcpt_kafka_partition *starts)
{
    for (size_t index = 0; index < receipts->assignment.count; index++) {
        const struct app_partition *partition = &receipts->assignment.partitions[index];
        collect_rows(rows, partition, found);
        uint32_t slot = rcpt_engine_slot(receipts->engine, partition->topic, partition->partition);
        starts[index] = (struct rcpt_kafka_partition){
            .topic = partition->topic,
            .partition = partition->partition,
            .offset = rcpt_engine_assign(receipts->engine, slot, found->generation, found->next,
                                         &found->anchor, app_now(receipts->context))};
    }
}

static void give_positions(struct receipts *receipts, const struct rcpt_pg_rows *rows)
{
    struct app_assignment *assignment = &receipts->assignment;
    struct rcpt_kafka_partition *starts = rcpt_calloc(assignment->count + 1, sizeof(*starts));
    struct partition_rows *found = rcpt_malloc(sizeof(*found));
    bool complete = rows_are_complete(receipts, rows, found);
    if (complete)
        assign_engine(receipts, rows, found, starts);
    free(found);
    if (complete && assignment->refresh) {
        consume_reassign(receipts, starts, assignment->count);
    } else if (complete) {
        consume_assign(receipts, starts, assignment->count);
        rcpt_log_info("core", "consuming %zu partitions", assignment->count);
    }
    free(starts);
    if (complete) {
        positions_withdraw(receipts);
        rcpt_engine_tick(receipts->engine, app_now(receipts->context));
    }
}

static void on_read(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    struct receipts *receipts = request.receipts;
    free(context);
    if (is_over(receipts, request.serial, error))
        return;
    RCPT_ASSERT(row_count == 3);
    if (ladders_check(receipts, rows[2]) && pins_are_good(receipts, rows[0]))
        give_positions(receipts, rows[1]);
}

static void put_topics(struct receipts *receipts, struct rcpt_pg_encoder *encoder)
{
    const struct app_assignment *assignment = &receipts->assignment;
    rcpt_pg_begin_text_array(encoder, assignment->count);
    for (size_t index = 0; index < assignment->count; index++)
        rcpt_pg_put_bytes(encoder, assignment->partitions[index].topic,
                          strlen(assignment->partitions[index].topic));
}

static void read_database(struct receipts *receipts)
{
    const struct app_assignment *assignment = &receipts->assignment;
    struct rcpt_pg_encoder *pins = rcpt_pg_encoder_new(), *progress = rcpt_pg_encoder_new(),
                           *ladder = rcpt_pg_encoder_new();
    struct rcpt_pg_query queries[3] = {
        {.statement = "pins_read"}, {.statement = "progress_read"}, {.statement = "ladder_read"}};
    put_topics(receipts, pins);
    rcpt_pg_encoder_params(pins, &queries[0].params);
    put_topics(receipts, progress);
    rcpt_pg_begin_int4_array(progress, assignment->count);
    for (size_t index = 0; index < assignment->count; index++)
        rcpt_pg_put_int4(progress, assignment->partitions[index].partition);
    rcpt_pg_encoder_params(progress, &queries[1].params);
    set_state(receipts, ASSIGNMENT_READING);
    ladders_put(ladder, receipts->context->config);
    rcpt_pg_encoder_params(ladder, &queries[2].params);
    rcpt_pg_submit(receipts->control.pg, queries, 3, on_read, request_new(receipts));
    rcpt_pg_encoder_free(ladder);
    rcpt_pg_encoder_free(pins);
    rcpt_pg_encoder_free(progress);
}

/* An assignment's requests to PostgreSQL. The core's machine (core/assignment.h) decides; here its
 * requests become statements on the control connection, and its notes become lines of the log. Its
 * requests to Kafka are in consume.c. Called by receipts.c, consume.c and the engine (ports).
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* ---- answers ---- */

struct request { /* context of one answer: which assignment asked */
    struct receipts *receipts;
    uint32_t serial;
};

/* Freed by the answer, which comes exactly once. */
static struct request *request_new(struct receipts *receipts, uint32_t serial)
{
    struct request *request = rcpt_malloc(sizeof(*request));
    *request = (struct request){receipts, serial};
    return request;
}

/* Logged only while the machine still waits for this answer, and once for each cause. */
void positions_failed(struct receipts *receipts, uint32_t serial, const struct rcpt_error *error)
{
    if (rcpt_assignment_on_failed(receipts->assignment, serial, host_now(receipts->context)))
        rcpt_asker_failed(&receipts->control, &receipts->positions.refused, "reading positions",
                          error);
}

/* True: there is no answer. */
static bool has_failed(const struct request *request, const struct rcpt_error *error)
{
    struct receipts *receipts = request->receipts;
    if (error == NULL)
        return false;
    positions_failed(receipts, request->serial, error);
    return true;
}

/* Columns of sql/control/pins_read. */
enum {
    PIN_TOPIC,
    PIN_CLUSTER_ID,
    PIN_GENERATION,
    PIN_LANES,
    PIN_HASH_VERSION,
    PIN_LADDER_HASH,
    PIN_PARTITIONS
};

/* The caller frees the array; texts belong to the rows. Topics without a pin are left out. */
static struct rcpt_assignment_pin *decode_pins(const struct rcpt_pg_rows *rows, size_t *count)
{
    size_t topics = rcpt_pg_rows_count(rows);
    struct rcpt_assignment_pin *pins = rcpt_calloc(topics + 1, sizeof(*pins));
    *count = 0;
    for (size_t row = 0; row < topics; row++) {
        if (rcpt_pg_rows_text(rows, row, PIN_CLUSTER_ID) == NULL)
            continue; /* not pinned yet */
        pins[(*count)++] = (struct rcpt_assignment_pin){
            .topic = rcpt_pg_rows_text(rows, row, PIN_TOPIC),
            .cluster_id = rcpt_pg_rows_text(rows, row, PIN_CLUSTER_ID),
            .ladder = rcpt_pg_rows_text(rows, row, PIN_LADDER_HASH),
            .lanes = rcpt_pg_rows_int(rows, row, PIN_LANES),
            .hash_version = rcpt_pg_rows_int(rows, row, PIN_HASH_VERSION),
            .partitions = (int32_t)rcpt_pg_rows_int(rows, row, PIN_PARTITIONS)};
    }
    return pins;
}

/* Columns of sql/control/progress_read. */
enum {
    ROW_TOPIC,
    ROW_PARTITION,
    ROW_LANE,
    ROW_NEXT_OFFSET,
    ROW_GENERATION,
    ROW_ANCHOR_OFFSET,
    ROW_ANCHOR_TIMESTAMP,
    ROW_ANCHOR_CRC
};

/* The caller frees the array. An anchor may be missing: then nothing was applied yet. */
static struct rcpt_assignment_row *decode_rows(struct receipts *receipts,
                                               const struct rcpt_pg_rows *rows)
{
    size_t count = rcpt_pg_rows_count(rows);
    struct rcpt_assignment_row *out = rcpt_calloc(count + 1, sizeof(*out));
    for (size_t row = 0; row < count; row++) {
        bool anchored = rcpt_pg_rows_text(rows, row, ROW_ANCHOR_OFFSET) != NULL;
        out[row] = (struct rcpt_assignment_row){
            .slot = rcpt_engine_slot(receipts->engine, rcpt_pg_rows_text(rows, row, ROW_TOPIC),
                                     (int32_t)rcpt_pg_rows_int(rows, row, ROW_PARTITION)),
            .lane = (uint32_t)rcpt_pg_rows_int(rows, row, ROW_LANE),
            .next_offset = rcpt_pg_rows_int(rows, row, ROW_NEXT_OFFSET),
            .generation = rcpt_pg_rows_int(rows, row, ROW_GENERATION),
            .anchor = {.offset = anchored ? rcpt_pg_rows_int(rows, row, ROW_ANCHOR_OFFSET) : -1,
                       .timestamp_ms = rcpt_pg_rows_int(rows, row, ROW_ANCHOR_TIMESTAMP),
                       .crc = (uint32_t)rcpt_pg_rows_int(rows, row, ROW_ANCHOR_CRC)}};
    }
    return out;
}

/* Checks the ladder first: with a different one, positions mean nothing. */
static void on_read(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    struct receipts *receipts = request.receipts;
    free(context);
    if (has_failed(&request, error))
        return;
    RCPT_ASSERT(row_count == 3);
    if (!rcpt_assignment_awaits(receipts->assignment, request.serial) ||
        !ladders_check(receipts, rows[2]))
        return;
    struct rcpt_assignment_answer answer = {.ladder = receipts->positions.stored_ladder,
                                            .row_count = rcpt_pg_rows_count(rows[1])};
    struct rcpt_assignment_pin *pins = decode_pins(rows[0], &answer.pin_count);
    struct rcpt_assignment_row *progress = decode_rows(receipts, rows[1]);
    answer.pins = pins;
    answer.rows = progress;
    rcpt_assignment_on_read(receipts->assignment, request.serial, &answer,
                            host_now(receipts->context));
    free(pins);
    free(progress);
}

/* The rows are committed; the assignment goes on with what it has read and inserted. */
static void on_inserted(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct request request = *(struct request *)context;
    (void)rows;
    (void)row_count;
    free(context);
    if (!has_failed(&request, error))
        rcpt_assignment_on_inserted(request.receipts->assignment, request.serial,
                                    host_now(request.receipts->context));
}

/* ---- questions ---- */

/* Subscribers must see every transition, so nothing is assigned before they are prepared. */
static bool may_ask(void *context)
{
    const struct receipts *receipts = context;
    return receipts->control.up && receipts->context->recalled &&
           subscribers_are_prepared(receipts);
}

/* One topic for each slot, as the statements unnest pairs. */
static void put_topics(struct receipts *receipts, struct rcpt_pg_encoder *encoder,
                       const uint32_t *slots, size_t count)
{
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t index = 0; index < count; index++) {
        const char *topic = rcpt_engine_slot_topic(receipts->engine, slots[index]);
        rcpt_pg_put_bytes(encoder, topic, strlen(topic));
    }
}

/* One submission, so that pins, rows and ladder come from one transaction. The ladder's parameters
 * let the database compare the two ladders itself. */
static void read_database(void *context, uint32_t serial, const uint32_t *slots, size_t count)
{
    struct receipts *receipts = context;
    struct rcpt_pg_encoder *pins = rcpt_pg_encoder_new(), *progress = rcpt_pg_encoder_new(),
                           *ladder = rcpt_pg_encoder_new();
    struct rcpt_pg_query queries[3] = {
        {.statement = "pins_read"}, {.statement = "progress_read"}, {.statement = "ladder_read"}};
    put_topics(receipts, pins, slots, count);
    rcpt_pg_encoder_params(pins, &queries[0].params);
    put_topics(receipts, progress, slots, count);
    rcpt_pg_begin_int4_array(progress, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int4(progress, rcpt_engine_slot_partition(receipts->engine, slots[index]));
    rcpt_pg_encoder_params(progress, &queries[1].params);
    ladders_put(ladder, receipts->context->config);
    rcpt_pg_encoder_params(ladder, &queries[2].params);
    rcpt_pg_submit(receipts->control.pg, queries, 3, on_read, request_new(receipts, serial));
    rcpt_pg_encoder_free(ladder);
    rcpt_pg_encoder_free(pins);
    rcpt_pg_encoder_free(progress);
}

/* Committed synchronously: a new position must not be lost when the server restarts. */
static void insert_rows(void *context, uint32_t serial, const struct rcpt_assignment_new *rows)
{
    struct receipts *receipts = context;
    size_t count = (size_t)(rows->to - rows->from);
    struct rcpt_pg_encoder *pins = rcpt_pg_encoder_new(), *add = rcpt_pg_encoder_new();
    struct rcpt_pg_query queries[3] = {{.statement = "synchronous"},
                                       {.statement = "pins_insert"},
                                       {.statement = "partitions_add"}};
    rcpt_pg_add_text(pins, rows->topic);
    rcpt_pg_add_text(pins, rcpt_assignment_cluster(receipts->assignment));
    rcpt_pg_add_int4(pins, (int32_t)receipts->context->config->lanes);
    rcpt_pg_add_int4(pins, APP_HASH_VERSION);
    rcpt_pg_add_text(pins, receipts->positions.stored_ladder);
    rcpt_pg_encoder_params(pins, &queries[1].params);
    rcpt_pg_add_text(add, rows->topic);
    rcpt_pg_add_int4(add, rows->from);
    rcpt_pg_begin_int8_array(add, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int8(add, rows->lows[index]);
    rcpt_pg_encoder_params(add, &queries[2].params);
    rcpt_pg_submit(receipts->control.pg, queries, 3, on_inserted, request_new(receipts, serial));
    rcpt_pg_encoder_free(pins);
    rcpt_pg_encoder_free(add);
}

/* ---- refusals and notes of the machine ---- */

/* Other pins end the process; lost rows only halt it, since an operator can restore them. */
static void refuse(void *context, enum rcpt_assignment_refusal why, uint32_t slot,
                   const struct rcpt_error *error)
{
    struct receipts *receipts = context;
    (void)slot; /* the error names it */
    if (why == RCPT_REFUSED_PINS)
        host_fail(receipts->context, error);
    else
        host_halt(receipts->context, error);
}

/* One member of the control connection's outage: many partitions are one line of the log. */
static void note_low_unknown(struct receipts *receipts, const char *topic, int32_t partition)
{
    struct rcpt_error error;
    rcpt_error_set(&error, RCPT_DECISION_RETRY, NULL,
                   "topic %s partition %d: its first offset cannot be read yet", topic, partition);
    if (rcpt_outage_note(&receipts->control.outage, &receipts->positions.refused,
                         host_now(receipts->context), &error))
        rcpt_log_warn("receipts", "%s", error.text);
}

/* Logs an assignment's notes for operators; the machine itself logs nothing. */
static void note(void *context, const struct rcpt_assignment_note *note)
{
    struct receipts *receipts = context;
    const char *topic = note->topic;
    int32_t partition = note->partition;
    long long first = note->first, last = note->last;
    switch (note->event) {
    case RCPT_NOTE_LOW_UNKNOWN:
        note_low_unknown(receipts, topic, partition);
        break;
    case RCPT_NOTE_ROWS_MADE:
        rcpt_log_info("receipts", "topic %s: rows for partitions %lld…%lld are there", topic, first,
                      last);
        break;
    case RCPT_NOTE_CONSUMING:
        rcpt_log_info("receipts", "consuming %lld partitions", first);
        consume_commit(receipts);
        break;
    case RCPT_NOTE_REFRESH:
        rcpt_log_warn("receipts",
                      "rows of topic %s partition %d are gone or of another generation: reading "
                      "the pins again",
                      topic, partition);
        break;
    case RCPT_NOTE_SKIPPED:
        rcpt_log_error("receipts",
                       "topic %s partition %d: retention has deleted records %lld…%lld, going on "
                       "behind them",
                       topic, partition, first, last);
        break;
    case RCPT_NOTE_REWIND:
        rcpt_log_warn("receipts",
                      "the database went back: topic %s partition %d is read again from %lld",
                      topic, partition, first);
        break;
    case RCPT_NOTE_REASSIGN:
        rcpt_log_warn("receipts",
                      "topic %s partition %d brought nothing after the rewind: assigning it again "
                      "at %lld",
                      topic, partition, first);
        break;
    case RCPT_NOTE_WENT_ON:
        if (topic != NULL)
            rcpt_log_info("receipts", "topic %s partition %d stands still no longer", topic,
                          partition);
        host_go_on(receipts->context);
        break;
    }
}

/* The state of an assignment is one of the reasons for which an instance is not ready. */
static void changed(void *context)
{
    struct receipts *receipts = context;
    if (rcpt_assignment_state(receipts->assignment) == RCPT_ASSIGNMENT_IDLE)
        rcpt_outage_end(&receipts->control.outage, &receipts->positions.refused,
                        host_now(receipts->context), "receipts", "positions are read again");
    host_update_readiness(receipts->context);
}

/* ---- life ---- */

/* The machine lives as long as the receipts; each assignment begins with a serial of its own. */
void positions_start(struct receipts *receipts)
{
    const struct rcpt_assignment_settings settings = {
        .hash_version = APP_HASH_VERSION,
        .skip_gaps = receipts->context->config->kafka.on_retention_gap == RCPT_GAP_SKIP,
        .patience_ms = receipts->context->config->postgres.zombie_timeout_ms,
    };
    const struct rcpt_assignment_ports ports = {
        .context = receipts,
        .may_ask = may_ask,
        .read = read_database,
        .query_lows = consume_query_lows,
        .insert = insert_rows,
        .assign = consume_assign,
        .seek = consume_seek,
        .reassign = consume_reassign,
        .refuse = refuse,
        .note = note,
        .changed = changed,
    };
    receipts->assignment = rcpt_assignment_new(&settings, &ports, receipts->engine);
}

/* An operator has set the position of a partition that stands still. The survey sees it, also while
 * its lanes are busy with other partitions. */
static void go_on_where_set(struct receipts *receipts)
{
    struct host_place place;
    for (uint32_t slot = 0; slot < rcpt_engine_slot_count(receipts->engine); slot++)
        if (rcpt_assignment_stands_still(receipts->assignment, slot) &&
            host_places_find(receipts->places, rcpt_engine_slot_topic(receipts->engine, slot),
                             rcpt_engine_slot_partition(receipts->engine, slot), &place) &&
            place.position >= 0 && place.position != rcpt_engine_committed(receipts->engine, slot))
            rcpt_assignment_refresh(receipts->assignment, slot, host_now(receipts->context));
}

void positions_tick(struct receipts *receipts)
{
    go_on_where_set(receipts);
    rcpt_assignment_tick(receipts->assignment, host_now(receipts->context));
}

/* ---- the engine's ports ---- */

/* The engine decides that a partition has to be read again; the machine decides when. */
void positions_port_rewind(void *context, uint32_t slot, int64_t offset)
{
    const struct receipts *receipts = context;
    rcpt_assignment_rewind(receipts->assignment, slot, offset);
}

void positions_port_reassign(void *context, uint32_t slot, int64_t offset)
{
    const struct receipts *receipts = context;
    rcpt_assignment_reassign(receipts->assignment, slot, offset);
}

void positions_port_refresh(void *context, uint32_t slot)
{
    const struct receipts *receipts = context;
    rcpt_assignment_refresh(receipts->assignment, slot, host_now(receipts->context));
}

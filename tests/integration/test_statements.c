/* The statements of a lane against a real server: what a batch becomes there, and what comes back.
 * RECEIPTD_TEST_DSN names the server; tables go to the schema receiptd_test_statements. */
#include "pg_owner.h"

#include "postgres/bind.h"
#include "postgres/sql.h"
#include "postgres/statements.h"

#define MY_SCHEMA   "receiptd_test_statements"
#define IN_SCHEMA   "SET search_path = " MY_SCHEMA "; "
#define TOPIC       "dlr-events"
#define MAX_EVENTS  16
#define TRACEPARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* ---- a batch, folded by hand from one record whose events are grouped by message, ids ascending
 * ---- */

struct fold {
    struct rcpt_batch batch;
    struct rcpt_record *record;
    const struct rcpt_record *records[1];
    const char *topics[1];
    int32_t partitions[1];
    struct rcpt_batch_message messages[MAX_EVENTS];
    struct rcpt_batch_signature signatures[MAX_EVENTS];
    int16_t codes[MAX_EVENTS];
    int32_t counts[MAX_EVENTS];
    struct rcpt_batch_event events[MAX_EVENTS];
    struct rcpt_batch_move move;
    struct rcpt_batch_letter letters[MAX_EVENTS];
};

static bool is_same_id(const struct rcpt_event *event, const struct rcpt_batch_message *message)
{
    return event->id_size == message->id_size &&
           memcmp(event->id, message->id, event->id_size) == 0;
}

static void add_event(struct fold *fold, const struct rcpt_ladder *ladder,
                      const struct rcpt_event *event)
{
    struct rcpt_batch *batch = &fold->batch;
    const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, event->entry);
    uint32_t number = batch->event_count++;
    fold->events[number] =
        (struct rcpt_batch_event){.record = fold->record, .event = event, .code = entry->code};
    fold->codes[number] = entry->code;
    fold->counts[number] = 1;
    struct rcpt_batch_message *message = &fold->messages[batch->message_count];
    if (batch->message_count == 0 || !is_same_id(event, message - 1)) {
        uint32_t signature = batch->signature_count++;
        batch->message_count++;
        fold->signatures[signature] = (struct rcpt_batch_signature){.first = number};
        *message = (struct rcpt_batch_message){.id = event->id,
                                               .id_size = event->id_size,
                                               .at_us = event->at_us,
                                               .signature = (int32_t)signature,
                                               .first_event = number};
    } else {
        message--;
    }
    fold->signatures[message->signature].size++;
    message->mask |= entry->mask;
    if (entry->top > message->top) {
        message->top = entry->top;
        message->at_us = event->at_us;
    }
}

static void add_letters(struct fold *fold)
{
    for (uint32_t index = 0; index < fold->record->reject_count; index++) {
        const struct rcpt_reject *reject = &fold->record->rejects[index];
        fold->letters[fold->batch.letter_count++] = (struct rcpt_batch_letter){
            .record = fold->record,
            .topic = TOPIC,
            .partition = 3,
            .index = reject->index,
            .reason = reject->reason,
            .detail = reject->detail,
            .payload = fold->record->value + reject->payload,
            .payload_size = reject->payload_size,
        };
    }
}

static struct fold *fold_new(enum rcpt_batch_kind kind, int64_t expected, int64_t next,
                             const char *json)
{
    struct fold *fold = rcpt_calloc(1, sizeof(*fold));
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    struct rcpt_decoder *decoder = rcpt_decoder_new(ladder, 1);
    struct rcpt_record_input input = {.topic = TOPIC,
                                      .partition = 3,
                                      .offset = expected,
                                      .value = json,
                                      .value_size = strlen(json),
                                      .traceparent = TRACEPARENT,
                                      .traceparent_size = strlen(TRACEPARENT)};
    fold->record = rcpt_record_decode(decoder, &input);
    fold->record->offset = expected;
    for (uint32_t index = 0; index < fold->record->event_count; index++)
        add_event(fold, ladder, &fold->record->events[index]);
    if (kind == RCPT_BATCH_APPLY)
        add_letters(fold);
    fold->records[0] = fold->record;
    fold->topics[0] = TOPIC;
    fold->partitions[0] = 3;
    fold->move = (struct rcpt_batch_move){.topic = TOPIC,
                                          .partition = 3,
                                          .generation = 7,
                                          .expected = expected,
                                          .next = next,
                                          .anchor_offset = next - 1,
                                          .anchor_timestamp_ms = 1234,
                                          .anchor_crc = UINT32_MAX};
    struct rcpt_batch *batch = &fold->batch;
    batch->kind = kind;
    batch->wake_limit = 100;
    batch->messages = fold->messages;
    batch->signatures = fold->signatures;
    batch->signature_codes = fold->codes;
    batch->signature_counts = fold->counts;
    batch->signature_code_count = batch->event_count;
    batch->events = fold->events;
    batch->records = fold->records;
    batch->record_topics = fold->topics;
    batch->record_partitions = fold->partitions;
    batch->record_count = 1;
    batch->has_traceparents = true;
    batch->moves = &fold->move;
    batch->move_count = 1;
    batch->letters = fold->letters;
    rcpt_decoder_free(decoder);
    rcpt_ladder_free(ladder);
    return fold;
}

static void fold_free(struct fold *fold)
{
    rcpt_record_free(fold->record);
    free(fold);
}

/* ---- a lane's connection ---- */

struct lane {
    struct owner *owner;
    struct rcpt_lane_sender *sender;
    struct rcpt_engine_result result;
    struct rcpt_error error;
    int answers;
    struct rcpt_lane_statements *statements;
};

static void on_lane_result(void *context, uint32_t number, const struct rcpt_engine_result *result,
                           const struct rcpt_error *error)
{
    struct lane *lane = context;
    assert_int_equal(number, 0);
    lane->answers++;
    lane->result = *result;
    rcpt_error_clear(&lane->error);
    if (error != NULL)
        lane->error = *error;
}

static struct lane *lane_new(const char *policy, int64_t max_age_ms)
{
    struct lane *lane = rcpt_calloc(1, sizeof(*lane));
    lane->owner = owner_new();
    struct rcpt_pg_settings settings = settings_of(lane->owner, dsn);
    settings.schema = MY_SCHEMA;
    settings.lock_timeout_ms = 200;
    lane->statements =
        rcpt_lane_statements_new(&(struct rcpt_lane_variant){.inserts_unknown = true});
    settings.statements = rcpt_lane_statements_list(lane->statements, &settings.statement_count);
    lane->sender = rcpt_lane_sender_new(policy, max_age_ms);
    owner_with(&settings, lane->owner);
    until(lane->owner, lane->owner->ready == 1);
    return lane;
}

static void lane_free(struct lane *lane)
{
    owner_close(lane->owner);
    rcpt_lane_sender_free(lane->sender);
    rcpt_lane_statements_free(lane->statements);
    free(lane);
}

/* The batch may go as soon as it is sent. */
static void lane_submit(struct lane *lane, enum rcpt_batch_kind kind, int64_t expected,
                        int64_t next, const char *json)
{
    struct fold *fold = fold_new(kind, expected, next, json);
    int answers = lane->answers;
    rcpt_lane_send(lane->sender, lane->owner->pg, &fold->batch, false, on_lane_result, lane);
    assert_int_equal(lane->answers, answers);
    fold_free(fold);
}

static enum rcpt_engine_outcome lane_send(struct lane *lane, enum rcpt_batch_kind kind,
                                          int64_t expected, int64_t next, const char *json)
{
    int answers = lane->answers;
    lane_submit(lane, kind, expected, next, json);
    until(lane->owner, lane->answers > answers);
    return lane->result.outcome;
}

/* The first batch that names an unknown message has to be sent again, as the engine does. */
static enum rcpt_engine_outcome lane_send_twice(struct lane *lane, int64_t expected, int64_t next,
                                                const char *json)
{
    assert_int_equal(lane_send(lane, RCPT_BATCH_APPLY, expected, next, json), RCPT_ENGINE_AGAIN);
    assert_string_equal(lane->error.code, "RD004");
    return lane_send(lane, RCPT_BATCH_APPLY, expected, next, json);
}

static void assert_answer(const char *sql, const char *expected)
{
    char whole[512], answer[512];
    snprintf(whole, sizeof(whole), IN_SCHEMA "%s", sql);
    admin_at(dsn, whole, answer, sizeof(answer));
    assert_string_equal(answer, expected);
}

/* ---- the schema ---- */

static void run_file(const char *name, const struct rcpt_pg_binding *bindings, size_t count)
{
    struct rcpt_error error;
    char *bound = rcpt_pg_bind(rcpt_sql(name), bindings, count, &error);
    assert_non_null(bound);
    size_t size = strlen(bound) + sizeof(IN_SCHEMA);
    char *sql = rcpt_malloc(size);
    snprintf(sql, size, IN_SCHEMA "%s", bound);
    admin(sql);
    free(sql);
    free(bound);
}

static int migrate(void **state)
{
    (void)state;
    const struct rcpt_pg_binding bindings[] = {
        {"schema", MY_SCHEMA},        {"fillfactor", "50"},
        {"inbox_schema", MY_SCHEMA},  {"inbox_table", "message_inbox"},
        {"org_id", "org_id"},         {"campaign_id", "campaign_id"},
        {"status", "status"},         {"flags", "flags"},
        {"message_id", "message_id"}, {"dimension_kinds", "{}"},
        {"dimension_columns", "{}"},  {"group_kinds", "{}"},
        {"group_columns", "{}"},
    };
    static const char *const of_lanes[] = {
        "functions/alias_target",       "functions/batch_texts",
        "functions/letter_detail",      "functions/receipt_fate",
        "functions/receipt_codes",      "functions/transition_codes",
        "functions/record_link",        "functions/parked_applicable",
        "functions/fate_detail",        "functions/message_is_erased",
        "functions/message_is_retired", "functions/message_still_there",
        "functions/erased_alias_hash",  "functions/messages_held",
        "functions/bounded_time",       "functions/bounded_minute",
    };
    admin("DROP SCHEMA IF EXISTS " MY_SCHEMA " CASCADE; CREATE SCHEMA " MY_SCHEMA);
    run_file("tables/001_core", NULL, 0);
    run_file("tables/002_origin", NULL, 0);
    run_file("tables/003_retention", NULL, 0);
    run_file("tables/004_partitions", NULL, 0);
    run_file("tables/004_erasure", NULL, 0);
    run_file("tables/005_rules", NULL, 0);
    run_file("tables/005_serve", NULL, 0);
    run_file("tables/006_groups", NULL, 0);
    run_file("tables/006_times", NULL, 0);
    run_file("tables/006_minutes", NULL, 0);
    run_file("tables/006_parts", NULL, 0);
    run_file("tables/006_ranges", NULL, 0);
    run_file("tables/006_status", NULL, 0);
    run_file("tables/006_partitions", NULL, 0);
    run_file("tables/006_histograms", NULL, 0);
    run_file("tables/006_packing", NULL, 0);
    run_file("tables/007_receipts", NULL, 0);
    run_file("tables/007_erasure", NULL, 0);
    run_file("tables/007_turns", NULL, 0);
    run_file("functions/check_counted", NULL, 0);
    run_file("functions/check_inbox_columns", NULL, 0);
    run_file("functions/fence", NULL, 0);
    run_file("functions/partition_is_counted", NULL, 0);
    run_file("functions/inbox_dimensions", NULL, 0);
    run_file("functions/inbox_groups", NULL, 0);
    run_file("functions/inbox_has_times", NULL, 0);
    run_file("functions/inbox_forgotten", NULL, 0);
    run_file("functions/inbox_trigger_targets", NULL, 0);
    run_file("functions/install_inbox_trigger", NULL, 0);
    run_file("functions/install_retired_trigger", NULL, 0);
    run_file("functions/install_change_trigger", NULL, 0);
    run_file("functions/refuse_change", NULL, 0);
    run_file("functions/ladder_fill", NULL, 0);
    run_file("functions/probe_abort", NULL, 0);
    run_file("functions/raw_events_needed", NULL, 0);
    run_file("views/campaign_count", NULL, 0);
    run_file("views/campaign_tally", NULL, 0);
    run_file("views/campaign_funnel", NULL, 0);
    run_file("views/inbox_partition_state", NULL, 0);
    run_file("migrate/inbox_table", bindings, 13);
    run_file("migrate/inbox_trigger", bindings, 13);
    for (size_t index = 0; index < sizeof(of_lanes) / sizeof(of_lanes[0]); index++)
        run_file(of_lanes[index], NULL, 0);
    admin(
        IN_SCHEMA
        "SELECT ladder_fill('{0,200,300,440,600,700,9001}',"
        " '{TARGETED,IN_GTW,SENT,FAILED,DELIVERED,OPENED,COMPLAINED}',"
        " '{NULL,0,200,300,300,600,NULL}', '{f,f,f,t,f,f,f}',"
        " '{NULL,NULL,NULL,NULL,NULL,NULL,0}', '{NULL,NULL,NULL,NULL,NULL,NULL,600}', '{}', '{}', "
        "'{}');"
        "INSERT INTO consumer_progress VALUES ('" TOPIC "', 3, 0, 50, 7);"
        "INSERT INTO message_inbox (message_id, campaign_id) VALUES ('alpha', 'c'), ('beta', 'c')");
    return 0;
}

static int drop(void **state)
{
    (void)state;
    admin("DROP SCHEMA IF EXISTS " MY_SCHEMA " CASCADE");
    return 0;
}

/* ---- the promises ---- */

#define ALPHA "{\"message_id\":\"alpha\",\"status\":\"OPENED\",\"at\":\"2026-01-02T03:04:05Z\"}"
#define BETA  "{\"message_id\":\"beta\",\"status\":\"FAILED\"}"
#define UNKNOWN                                                                                    \
    "{\"message_id\":\"gamma\",\"status\":\"DELIVERED\",\"campaign_id\":\"k\",\"n\":\"\xc3\xbc\"}"
#define POISON "{\"message_id\":\"x\",\"status\":\"NONSENSE\"}"

static void test_a_batch_applies_parks_writes_letters_and_moves_its_position(void **state)
{
    (void)state;
    struct lane *lane = lane_new("park", 1000);
    assert_int_equal(
        lane_send_twice(lane, 50, 52, "[" ALPHA "," ALPHA "," BETA "," UNKNOWN "," POISON "]"),
        RCPT_ENGINE_COMMITTED);
    assert_int_equal(lane->result.messages_known, 2);
    assert_int_equal(lane->result.messages_changed, 2);
    assert_int_equal(lane->result.events_parked, 1);
    assert_answer("SELECT string_agg(concat_ws(' ', message_id, status), ', ' ORDER BY message_id)"
                  " FROM message_inbox",
                  "alpha 700, beta 440");
    assert_answer(
        "SELECT status_at AT TIME ZONE 'UTC' FROM message_inbox WHERE message_id = 'alpha'",
        "2026-01-02 03:04:05");
    assert_answer(
        "SELECT string_agg(concat_ws(' ', status, messages, events), ', ' ORDER BY status)"
        " FROM campaign_funnel",
        "0 2 0, 200 2 0, 300 2 0, 440 1 1, 600 1 0, 700 1 2");
    assert_answer(
        "SELECT concat_ws(' ', topic, partition, \"offset\", index, lane, message_id, status,"
        " convert_from(payload, 'UTF8'), traceparent) FROM parked_event",
        TOPIC " 3 50 3 0 gamma 600 " UNKNOWN " " TRACEPARENT);
    assert_answer(
        "SELECT concat_ws(' ', \"offset\", index, lane, reason, convert_from(payload, 'UTF8'),"
        " traceparent) FROM dead_letter",
        "50 4 0 unknown_status " POISON " " TRACEPARENT);
    assert_answer("SELECT concat_ws(' ', next_offset, anchor_offset, anchor_timestamp, anchor_crc)"
                  " FROM consumer_progress",
                  "52 51 1234 4294967295");
    lane_free(lane);
}

static void test_a_batch_without_messages_only_moves_its_position(void **state)
{
    (void)state;
    struct lane *lane = lane_new("park", 1000);
    assert_int_equal(lane_send(lane, RCPT_BATCH_APPLY, 50, 60, "[]"), RCPT_ENGINE_COMMITTED);
    assert_answer("SELECT next_offset FROM consumer_progress", "60");
    lane_free(lane);
}

static void test_a_batch_for_another_position_is_fenced_and_leaves_nothing(void **state)
{
    (void)state;
    struct lane *lane = lane_new("park", 1000);
    assert_int_equal(lane_send(lane, RCPT_BATCH_APPLY, 49, 52, "[" ALPHA "]"), RCPT_ENGINE_FENCED);
    assert_string_equal(lane->error.code, "RD001");
    assert_non_null(strstr(lane->error.text, "expected 49 of generation 7, found 50"));
    assert_answer("SELECT max(status) FROM message_inbox", "0");
    lane_free(lane);
}

static void test_a_probe_is_rolled_back_and_says_so(void **state)
{
    (void)state;
    struct lane *lane = lane_new("insert", 1000);
    assert_int_equal(lane_send(lane, RCPT_BATCH_PROBE, 0, 0, "[" ALPHA "," UNKNOWN "]"),
                     RCPT_ENGINE_PROBED);
    assert_int_equal(lane->error.decision, RCPT_DECISION_NONE);
    assert_answer("SELECT count(*) || ' ' || max(status) FROM message_inbox", "2 0");
    lane_free(lane);
}

static void test_a_row_that_the_database_refuses_is_described_for_its_letter(void **state)
{
    (void)state;
    admin(IN_SCHEMA "ALTER TABLE message_inbox ADD CONSTRAINT "
                    "\"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\xc3"
                    "\xa4\xc3\xb6\xc3\xbc"
                    "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc\" CHECK (status <> 700)");
    struct lane *lane = lane_new("park", 1000);
    assert_int_equal(lane_send(lane, RCPT_BATCH_PROBE, 0, 0, "[" ALPHA "," BETA "]"),
                     RCPT_ENGINE_DATA);
    assert_int_equal(strncmp(lane->result.detail, "23514 new row for relation", 26), 0);
    char sql[512];
    snprintf(sql, sizeof(sql), "SELECT length($x$%s$x$) > 60", lane->result.detail);
    assert_answer(sql, "t"); /* valid UTF-8, though it was cut */
    lane_free(lane);
}

static void test_parked_receipts_are_woken_expired_or_discarded(void **state)
{
    (void)state;
    struct lane *lane = lane_new("park", 0);
    assert_int_equal(
        lane_send_twice(
            lane, 50, 51,
            "[{\"message_id\":\"m1\",\"status\":300},{\"message_id\":\"m2\",\"status\":300},"
            "{\"message_id\":\"m3\",\"status\":300}]"),
        RCPT_ENGINE_COMMITTED);
    admin(IN_SCHEMA "INSERT INTO message_inbox (message_id, campaign_id) VALUES ('m1', 'w')");
    assert_int_equal(lane_send(lane, RCPT_BATCH_WAKE, 51, 51, "[]"), RCPT_ENGINE_COMMITTED);
    assert_int_equal(lane->result.woken, 1);
    assert_int_equal(lane->result.messages_changed, 1);
    admin(IN_SCHEMA "INSERT INTO message_inbox (message_id, campaign_id) VALUES ('m2', 'w')");
    assert_int_equal(lane_send(lane, RCPT_BATCH_DISCARD, 51, 51, "[]"), RCPT_ENGINE_COMMITTED);
    assert_int_equal(lane->result.woken, 1);
    assert_int_equal(lane_send(lane, RCPT_BATCH_EXPIRE, 51, 51, "[]"), RCPT_ENGINE_COMMITTED);
    assert_int_equal(lane->result.woken, 1);
    assert_answer("SELECT string_agg(reason, ' ' ORDER BY index) FROM dead_letter",
                  "database aged_out");
    assert_int_equal(lane_send(lane, RCPT_BATCH_WAKE, 50, 50, "[]"), RCPT_ENGINE_FENCED);
    lane_free(lane);
}

static void test_unknown_messages_go_where_the_policy_says(void **state)
{
    (void)state;
    struct lane *lane = lane_new("dead-letter", 1000);
    assert_int_equal(lane_send_twice(lane, 50, 51, "[" UNKNOWN "]"), RCPT_ENGINE_COMMITTED);
    assert_int_equal(lane->result.events_parked, 0);
    assert_answer("SELECT reason FROM dead_letter", "unknown_message");
    lane_free(lane);
    lane = lane_new("insert", 1000);
    assert_int_equal(lane_send(lane, RCPT_BATCH_APPLY, 51, 52, "[" UNKNOWN "]"),
                     RCPT_ENGINE_COMMITTED);
    assert_answer("SELECT campaign_id FROM message_inbox WHERE message_id = 'gamma'", "k");
    assert_int_equal(lane_send(lane, RCPT_BATCH_WAKE, 52, 52, "[]"), RCPT_ENGINE_COMMITTED);
    assert_int_equal(lane->result.woken, 1);
    lane_free(lane);
}

static void test_a_blocked_batch_is_tried_again_and_a_lost_one_is_unknown(void **state)
{
    (void)state;
    struct lane *lane = lane_new("park", 1000);
    PGconn *zombie = PQconnectdb(dsn);
    PQclear(PQexec(zombie, IN_SCHEMA "BEGIN; UPDATE consumer_progress SET next_offset = 51"));
    assert_int_equal(lane_send(lane, RCPT_BATCH_APPLY, 50, 51, "[" ALPHA "]"), RCPT_ENGINE_RETRY);
    assert_string_equal(lane->error.code, "55P03");
    lane_submit(lane, RCPT_BATCH_APPLY, 50, 51, "[" ALPHA "]");
    terminate(lane->owner->pg);
    until(lane->owner, lane->answers == 2);
    assert_int_equal(lane->result.outcome, RCPT_ENGINE_UNKNOWN);
    assert_int_equal(lane->error.decision, RCPT_DECISION_RECONNECT);
    PQfinish(zombie);
    lane_free(lane);
}

int main(void)
{
    if (!has_server())
        return 0;
#define PROMISE(test) cmocka_unit_test_setup_teardown(test, migrate, drop)
    const struct CMUnitTest tests[] = {
        PROMISE(test_a_batch_applies_parks_writes_letters_and_moves_its_position),
        PROMISE(test_a_batch_without_messages_only_moves_its_position),
        PROMISE(test_a_batch_for_another_position_is_fenced_and_leaves_nothing),
        PROMISE(test_a_probe_is_rolled_back_and_says_so),
        PROMISE(test_a_row_that_the_database_refuses_is_described_for_its_letter),
        PROMISE(test_parked_receipts_are_woken_expired_or_discarded),
        PROMISE(test_unknown_messages_go_where_the_policy_says),
        PROMISE(test_a_blocked_batch_is_tried_again_and_a_lost_one_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The statements of a lane as a program, for the tests in Python: one request a line on stdin, one
 * answer a line on stdout, both JSON. Arguments: a DSN, and the schema. tests/integration/sql_batch.py
 * speaks with it, and says what requests look like.
 *
 * Records come as bytes and go the daemon's way: decoder, fold, sender, connection. A batch that is
 * held stops before its second flight, while its session is idle in the transaction, as a daemon that
 * is stopped there: the linker leads what the flights submit to this file (Makefile).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/document.h"
#include "receiptd/base/json.h"
#include "receiptd/base/log.h"
#include "receiptd/core/batch_build.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/postgres/statements.h"

#define MOST_RECORDS 4096u
#define MOST_MOVES   64u
#define MOST_NAMES   64u

enum policy { PARK, INSERT, DEAD_LETTER, POLICY__COUNT };
static const char *const policies[] = {"park", "insert", "dead-letter"};
static const char *const kinds[] = {
    [RCPT_BATCH_APPLY] = "apply",   [RCPT_BATCH_PROBE] = "probe",
    [RCPT_BATCH_WAKE] = "wake",     [RCPT_BATCH_DISCARD] = "discard",
    [RCPT_BATCH_EXPIRE] = "expire", [RCPT_BATCH_RANGES] = "ranges"};
static const char *const outcomes[] = {
    [RCPT_ENGINE_COMMITTED] = "committed", [RCPT_ENGINE_FENCED] = "fenced",
    [RCPT_ENGINE_RETRY] = "retry",         [RCPT_ENGINE_DATA] = "data",
    [RCPT_ENGINE_PROBED] = "probed",       [RCPT_ENGINE_UNKNOWN] = "unknown"};

/* The second flight of a batch that is held. What it sends stays in the sender's encoders. */
struct held {
    struct rcpt_pg_query queries[32];
    size_t count;
    rcpt_pg_on_result on_result;
    void *context;
};

struct driver {
    uv_loop_t loop;
    struct rcpt_arena arena;    /* of a request */
    struct rcpt_arena settings; /* texts of `open` */
    const char *dsn, *schema;
    struct rcpt_pg *pg;
    struct rcpt_ladder *ladder;
    struct rcpt_decoder *decoder;
    struct rcpt_batch_builder *builder;
    struct rcpt_lane_statements *statements;
    struct rcpt_lane_sender *senders[POLICY__COUNT];
    struct rcpt_batch batch;
    struct rcpt_batch_source sources[MOST_RECORDS];
    uint32_t source_count;
    struct rcpt_batch_move moves[MOST_MOVES];
    char *effects; /* JSON; NULL: none */
    bool is_ready, holds, is_answered, is_closed;
    struct held held;
};

/* The wrapped function has no other way to know it. */
static struct driver *the_driver;

/* ---- requests ---- */

static const char *text_of(struct driver *driver, const struct rcpt_node *node)
{
    if (node == NULL || node->type == RCPT_NODE_NULL)
        return NULL;
    return rcpt_text_terminated(&driver->arena, node->text);
}

static int64_t int_of(const struct rcpt_node *object, const char *name, int64_t otherwise)
{
    const struct rcpt_node *node = rcpt_node_get(object, name);
    return node != NULL && node->type == RCPT_NODE_NUMBER ? strtoll(node->text.at, NULL, 10)
                                                          : otherwise;
}

static bool bool_of(const struct rcpt_node *object, const char *name)
{
    return rcpt_node_is_true(rcpt_node_get(object, name));
}

static const char *setting_of(struct driver *driver, const struct rcpt_node *object,
                              const char *name)
{
    const struct rcpt_node *node = rcpt_node_get(object, name);
    if (node == NULL || node->type == RCPT_NODE_NULL)
        return NULL;
    return rcpt_text_terminated(&driver->settings, node->text);
}

/* ---- answers ---- */

static void answer_line(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static void put_gateways(struct rcpt_json *json, const char *name,
                         const struct rcpt_lane_gateway *gateways, uint32_t count)
{
    rcpt_json_key(json, name);
    rcpt_json_begin_object(json);
    for (uint32_t index = 0; index < count; index++)
        rcpt_json_put_int(json, gateways[index].name, gateways[index].events);
    rcpt_json_end_object(json);
}

static void put_kinds(struct rcpt_json *json, const struct rcpt_lane_effects *effects)
{
    rcpt_json_key(json, "kinds");
    rcpt_json_begin_array(json);
    for (uint32_t index = 0; index < effects->count; index++) {
        const struct rcpt_lane_effect *row = &effects->rows[index];
        rcpt_json_begin_array(json);
        rcpt_json_int(json, row->old);
        rcpt_json_int(json, row->new);
        rcpt_json_int(json, row->gained);
        rcpt_json_int(json, row->signature);
        rcpt_json_int(json, row->messages);
        rcpt_json_end_array(json);
    }
    rcpt_json_end_array(json);
}

static void on_effects(void *context, uint32_t lane, const struct rcpt_lane_effects *effects)
{
    struct driver *driver = context;
    struct rcpt_json json;
    size_t size;
    (void)lane;
    free(driver->effects);
    FILE *out = rcpt_open_memory(&driver->effects, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    put_kinds(&json, effects);
    rcpt_json_put_int(&json, "counted", effects->events_counted);
    rcpt_json_put_int(&json, "parked", effects->events_parked);
    rcpt_json_put_int(&json, "dead", effects->events_dead);
    rcpt_json_put_int(&json, "refused", effects->events_refused);
    rcpt_json_put_int(&json, "retired", effects->events_retired);
    rcpt_json_put_int(&json, "handled", effects->events_handled);
    put_gateways(&json, "gateways", effects->gateways, effects->gateway_count);
    put_gateways(&json, "refused_gateways", effects->refused_gateways,
                 effects->refused_gateway_count);
    rcpt_json_end_object(&json);
    RCPT_ASSERT(fclose(out) == 0);
}

static void on_result(void *context, uint32_t lane, const struct rcpt_engine_result *result,
                      const struct rcpt_error *error)
{
    struct driver *driver = context;
    struct rcpt_json json;
    char *text = NULL;
    size_t size;
    (void)lane;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "outcome", outcomes[result->outcome]);
    rcpt_json_put_text(&json, "code", error != NULL ? error->code : NULL);
    rcpt_json_put_text(&json, "text", error != NULL ? error->text : NULL);
    rcpt_json_put_text(&json, "detail", result->detail);
    rcpt_json_put_int(&json, "known", result->messages_known);
    rcpt_json_put_int(&json, "changed", result->messages_changed);
    rcpt_json_put_int(&json, "parked", result->events_parked);
    rcpt_json_put_int(&json, "rows", result->woken);
    rcpt_json_put_int(&json, "moved", result->moved);
    rcpt_json_put_int(&json, "made", result->made);
    rcpt_json_put_bool(&json, "more_ranges", result->more_ranges);
    rcpt_json_put_int(&json, "ranges_idle", result->ranges_idle);
    rcpt_json_key(&json, "effects");
    rcpt_json_raw(&json, driver->effects != NULL ? driver->effects : "null");
    rcpt_json_end_object(&json);
    RCPT_ASSERT(fclose(out) == 0);
    answer_line(text);
    free(text);
    driver->is_answered = true;
}

static void refuse(struct driver *driver, const char *code, const char *text)
{
    struct rcpt_error error;
    const struct rcpt_engine_result result = {.outcome = RCPT_ENGINE_UNKNOWN};
    rcpt_error_set(&error, RCPT_DECISION_RECONNECT, code, "%s", text);
    on_result(driver, 0, &result, &error);
}

/* ---- holding ---- */

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker gives these
 * names */
void __real_rcpt_pg_submit(struct rcpt_pg *pg, const struct rcpt_pg_query *queries,
                           size_t query_count, rcpt_pg_on_result on_answer, void *context);
void __wrap_rcpt_pg_submit(struct rcpt_pg *pg, const struct rcpt_pg_query *queries,
                           size_t query_count, rcpt_pg_on_result on_answer, void *context);

void __wrap_rcpt_pg_submit(struct rcpt_pg *pg, const struct rcpt_pg_query *queries,
                           size_t query_count, rcpt_pg_on_result on_answer, void *context)
{
    struct held *held = &the_driver->held;
    if (!the_driver->holds || strcmp(queries[query_count - 1].statement, "commit") != 0) {
        __real_rcpt_pg_submit(pg, queries, query_count, on_answer, context);
        return;
    }
    RCPT_ASSERT(query_count <= sizeof(held->queries) / sizeof(held->queries[0]));
    memcpy(held->queries, queries, query_count * sizeof(*queries));
    held->count = query_count;
    held->on_result = on_answer;
    held->context = context;
    answer_line("{\"outcome\":\"held\"}");
    the_driver->is_answered = true;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

/* Without its rows the transaction is rolled back, though the flights take it for committed. */
static void go(struct driver *driver, bool commit)
{
    const struct rcpt_pg_query rollback = {.statement = "rollback"};
    const struct held held = driver->held;
    driver->held.count = 0;
    RCPT_ASSERT(held.count > 0);
    __real_rcpt_pg_submit(driver->pg, commit ? held.queries : &rollback, commit ? held.count : 1,
                          held.on_result, held.context);
}

/* ---- open ---- */

static void on_ready(void *context, struct rcpt_pg *pg)
{
    (void)pg;
    ((struct driver *)context)->is_ready = true;
}

/* A lane that does not come up would be tried for ever. */
static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct driver *driver = context;
    (void)pg;
    if (driver->is_ready)
        return; /* the batch in flight tells */
    refuse(driver, error->code, error->text);
    exit(1);
}

static void on_closed(void *context)
{
    ((struct driver *)context)->is_closed = true;
}

static const char *name_facet(const void *context, enum rcpt_facet facet, uint32_t number)
{
    const struct driver *driver = context;
    return rcpt_decoder_facet(driver->decoder, facet, number);
}

/* Rows of {"statuses": [[name, code, parent, terminal] …], "flags": [[name, implies] …]}. */
static struct rcpt_ladder *read_ladder(struct driver *driver, const struct rcpt_node *node)
{
    struct rcpt_status_definition statuses[MOST_NAMES];
    struct rcpt_flag_definition flags[MOST_NAMES];
    struct rcpt_ladder_definition definition = {.statuses = statuses, .flags = flags};
    struct rcpt_error error;
    if (node == NULL)
        return rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    const struct rcpt_node *row = rcpt_node_get(node, "statuses")->first;
    for (; row != NULL; row = row->next)
        statuses[definition.status_count++] = (struct rcpt_status_definition){
            .name = text_of(driver, row->first),
            .code = atoi(text_of(driver, row->first->next)),
            .parent = text_of(driver, row->first->next->next),
            .terminal = rcpt_node_is_true(rcpt_node_element(row, 3))};
    for (row = rcpt_node_get(node, "flags")->first; row != NULL; row = row->next)
        flags[definition.flag_count++] = (struct rcpt_flag_definition){
            .name = text_of(driver, row->first), .implies = text_of(driver, row->first->next)};
    struct rcpt_ladder *ladder = rcpt_ladder_new(&definition, &error);
    if (ladder == NULL)
        fprintf(stderr, "heart_driver: %s\n", error.text);
    return ladder;
}

/* Pairs of {"kind": "column"}. */
static size_t read_columns(struct driver *driver, const struct rcpt_node *object,
                           struct rcpt_rules_column_of *columns)
{
    size_t count = 0;
    const struct rcpt_node *member = object != NULL ? object->first : NULL;
    for (; member != NULL; member = member->next)
        columns[count++] = (struct rcpt_rules_column_of){
            .kind = rcpt_text_terminated(&driver->settings, member->key),
            .column = rcpt_text_terminated(&driver->settings, member->text)};
    return count;
}

static struct rcpt_rules_settings read_rules(struct driver *driver, const struct rcpt_node *open)
{
    struct rcpt_rules_settings rules = {.ladder = driver->ladder,
                                        .dedup = bool_of(open, "dedup"),
                                        .series = bool_of(open, "series"),
                                        .reasons = bool_of(open, "reasons"),
                                        .gateways = bool_of(open, "gateways"),
                                        .times = bool_of(open, "times"),
                                        .links = bool_of(open, "links"),
                                        .costs = bool_of(open, "costs"),
                                        .folds = bool_of(open, "folds"),
                                        .fold_columns = bool_of(open, "fold_columns")};
    rules.dimension_count =
        read_columns(driver, rcpt_node_get(open, "dimensions"), rules.dimensions);
    rules.group_count = read_columns(driver, rcpt_node_get(open, "groups"), rules.groups);
    return rules;
}

static void make_statements(struct driver *driver, const struct rcpt_node *open,
                            const struct rcpt_rules_settings *rules)
{
    struct rcpt_rules *made = rcpt_rules_new(rules);
    struct rcpt_lane_variant variant = {.orgs = rules->folds || bool_of(open, "actions"),
                                        .times = rules->times,
                                        .payloads = rcpt_rules_read_payloads(rules),
                                        .inserts_unknown = bool_of(open, "insert"),
                                        .recent_since = setting_of(driver, open, "recent_since"),
                                        .recent_column = setting_of(driver, open, "recent_column")};
    variant.columns = rcpt_rules_columns(made, &variant.column_count);
    driver->statements = rcpt_lane_statements_new(&variant);
    rcpt_rules_free(made);
}

static void make_senders(struct driver *driver, const struct rcpt_node *open,
                         const struct rcpt_rules_settings *rules)
{
    for (size_t policy = 0; policy < POLICY__COUNT; policy++) {
        driver->senders[policy] = rcpt_lane_sender_new(
            &(struct rcpt_lane_sender_settings){.unknown_policy = policies[policy],
                                                .rules = *rules,
                                                .names = {.name = name_facet, .context = driver},
                                                .window = setting_of(driver, open, "window"),
                                                .actions = bool_of(open, "actions")});
        rcpt_lane_sender_observe(driver->senders[policy], on_effects, driver);
        rcpt_lane_sender_set_timeline(driver->senders[policy], bool_of(open, "timeline"));
    }
}

static void connect_to(struct driver *driver, const struct rcpt_node *open)
{
    struct rcpt_pg_settings settings = {.loop = &driver->loop,
                                        .name = "driver",
                                        .instance = "test",
                                        .dsn = driver->dsn,
                                        .schema = driver->schema,
                                        .lock_timeout_ms =
                                            (int)int_of(open, "lock_timeout_ms", 60000),
                                        .statement_timeout_ms = 120000,
                                        .connect_timeout_ms = 10000,
                                        .retry_min_ms = 100,
                                        .retry_max_ms = 1000,
                                        .context = driver,
                                        .on_ready = on_ready,
                                        .on_down = on_down};
    settings.statements = rcpt_lane_statements_list(driver->statements, &settings.statement_count);
    driver->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(driver->pg);
    while (!driver->is_ready)
        uv_run(&driver->loop, UV_RUN_ONCE);
}

static void open_lane(struct driver *driver, const struct rcpt_node *open)
{
    char text[64];
    RCPT_ASSERT(driver->pg == NULL);
    driver->ladder = read_ladder(driver, rcpt_node_get(open, "ladder"));
    RCPT_ASSERT(driver->ladder != NULL);
    driver->decoder = rcpt_decoder_new(driver->ladder, 1);
    driver->builder = rcpt_batch_builder_new(driver->ladder, 1);
    const struct rcpt_rules_settings rules = read_rules(driver, open);
    rcpt_decoder_set_rules(driver->decoder, true); /* the keys are the request's */
    make_statements(driver, open, &rules);
    make_senders(driver, open, &rules);
    connect_to(driver, open);
    snprintf(text, sizeof(text), "{\"outcome\":\"ready\",\"pid\":%d}",
             rcpt_pg_backend_pid(driver->pg));
    answer_line(text);
}

static void close_lane(struct driver *driver)
{
    if (driver->pg != NULL) {
        rcpt_pg_close(driver->pg, on_closed, driver);
        while (!driver->is_closed)
            uv_run(&driver->loop, UV_RUN_ONCE);
    }
    for (size_t policy = 0; policy < POLICY__COUNT; policy++)
        rcpt_lane_sender_free(driver->senders[policy]);
    rcpt_lane_statements_free(driver->statements);
    rcpt_batch_builder_free(driver->builder);
    if (driver->decoder != NULL)
        rcpt_decoder_free(driver->decoder);
    if (driver->ladder != NULL)
        rcpt_ladder_free(driver->ladder);
}

/* ---- batches ---- */

/* Places and keys are those that the request gives, which the decoder would count and compute. */
static bool number_events(struct rcpt_record *record, const struct rcpt_node *request)
{
    const struct rcpt_node *index = rcpt_node_get(request, "indexes")->first;
    const struct rcpt_node *key = rcpt_node_get(request, "keys")->first;
    uint64_t *keys = (uint64_t *)(record->events + record->event_count);
    for (uint32_t at = 0; at < record->event_count; at++) {
        if (index == NULL)
            return false;
        record->events[at].index = (uint32_t)strtoul(index->text.at, NULL, 10);
        keys[at] = (uint64_t)strtoll(key->text.at, NULL, 10);
        index = index->next;
        key = key->next;
    }
    return index == NULL;
}

static bool read_record(struct driver *driver, const struct rcpt_node *request)
{
    RCPT_ASSERT(driver->source_count < MOST_RECORDS);
    struct rcpt_text value = rcpt_node_get(request, "value")->text;
    const char *traceparent = text_of(driver, rcpt_node_get(request, "traceparent"));
    struct rcpt_record_input input = {.topic = text_of(driver, rcpt_node_get(request, "topic")),
                                      .partition = (int32_t)int_of(request, "partition", 0),
                                      .offset = int_of(request, "offset", 0),
                                      .timestamp_ms = 1,
                                      .value = value.at,
                                      .value_size = value.size,
                                      .traceparent = traceparent,
                                      .traceparent_size =
                                          traceparent != NULL ? strlen(traceparent) : 0};
    struct rcpt_record *record = rcpt_record_decode(driver->decoder, &input);
    record->offset = input.offset;
    driver->sources[driver->source_count++] = (struct rcpt_batch_source){
        .record = record, .topic = input.topic, .partition = input.partition};
    return record->reject_count == int_of(request, "rejects", 0) && number_events(record, request);
}

static bool read_records(struct driver *driver, const struct rcpt_node *records)
{
    const struct rcpt_node *record = records != NULL ? records->first : NULL;
    for (; record != NULL; record = record->next)
        if (!read_record(driver, record))
            return false;
    return true;
}

/* [topic, partition, generation, expected, next, anchor], as sorted as they come. The anchor is an
 * offset, -1: none. */
static void read_moves(struct driver *driver, const struct rcpt_node *moves)
{
    uint32_t count = 0;
    const struct rcpt_node *move = moves != NULL ? moves->first : NULL;
    for (; move != NULL; move = move->next) {
        int64_t numbers[5];
        const struct rcpt_node *number = move->first->next;
        for (size_t index = 0; index < 5; index++, number = number->next)
            numbers[index] = strtoll(number->text.at, NULL, 10);
        RCPT_ASSERT(count < MOST_MOVES);
        driver->moves[count++] = (struct rcpt_batch_move){.topic = text_of(driver, move->first),
                                                          .partition = (int32_t)numbers[0],
                                                          .generation = numbers[1],
                                                          .expected = numbers[2],
                                                          .next = numbers[3],
                                                          .anchor_offset = numbers[4],
                                                          .anchor_timestamp_ms = 1234,
                                                          .anchor_crc = UINT32_MAX};
    }
    driver->batch.moves = driver->moves;
    driver->batch.move_count = count;
}

static enum policy policy_of(const struct rcpt_node *request)
{
    enum policy policy = PARK;
    const struct rcpt_node *node = rcpt_node_get(request, "unknown");
    while (node != NULL && policy < POLICY__COUNT && !rcpt_text_is(node->text, policies[policy]))
        policy++;
    return policy;
}

/* The decoder knows one lane, the statements get the request's. */
static void send_batch(struct driver *driver, enum rcpt_batch_kind kind,
                       const struct rcpt_node *request)
{
    struct rcpt_batch *batch = &driver->batch;
    struct rcpt_lane_sender *sender = driver->senders[policy_of(request)];
    batch->lane = 0;
    rcpt_batch_reset(batch, kind);
    if (!read_records(driver, rcpt_node_get(request, "records"))) {
        refuse(driver, "", "a record is not what it was meant to be");
        return;
    }
    rcpt_batch_fold(driver->builder, batch, driver->sources, driver->source_count, RCPT_BATCH_ALL);
    batch->lane = (uint32_t)int_of(request, "lane", 0);
    batch->wake_limit = (uint32_t)int_of(request, "limit", 1000);
    read_moves(driver, rcpt_node_get(request, "moves"));
    driver->holds = bool_of(request, "hold");
    rcpt_lane_sender_set_max_age(sender, int_of(request, "max_age_ms", 1));
    rcpt_lane_sender_set_alias_wait(sender, int_of(request, "alias_wait_ms", -1));
    rcpt_lane_send(sender, driver->pg, batch, false, on_result, driver);
}

static void free_records(struct driver *driver)
{
    while (driver->source_count > 0)
        rcpt_record_free(driver->sources[--driver->source_count].record);
}

/* ---- requests, one by one ---- */

static void await_answer(struct driver *driver)
{
    while (!driver->is_answered)
        uv_run(&driver->loop, UV_RUN_ONCE);
    if (driver->held.count == 0)
        free_records(driver);
}

static void serve(struct driver *driver, const struct rcpt_node *request)
{
    driver->is_answered = false;
    if (rcpt_node_get(request, "open") != NULL) {
        open_lane(driver, rcpt_node_get(request, "open"));
        return;
    }
    if (rcpt_node_get(request, "go") != NULL) {
        go(driver, bool_of(request, "go"));
        await_answer(driver);
        return;
    }
    free(driver->effects);
    driver->effects = NULL;
    for (int kind = 0; kind < RCPT_BATCH_KIND__COUNT; kind++)
        if (rcpt_node_get(request, kinds[kind]) != NULL)
            send_batch(driver, (enum rcpt_batch_kind)kind, rcpt_node_get(request, kinds[kind]));
    await_answer(driver);
}

/* What a held batch was made of stays until it goes on. */
static void serve_lines(struct driver *driver)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    while ((size = getline(&line, &capacity, stdin)) > 0) {
        const char *reason = NULL;
        if (driver->held.count == 0)
            rcpt_arena_reset(&driver->arena, SIZE_MAX);
        struct rcpt_text text = {line, (size_t)size};
        const struct rcpt_node *request =
            rcpt_document_parse(rcpt_text_copy(&driver->arena, text), &driver->arena, &reason);
        if (request == NULL)
            refuse(driver, "", reason);
        else
            serve(driver, request);
    }
    free(line);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: heart_driver DSN SCHEMA\n");
        return 64;
    }
    rcpt_log_configure(getenv("RECEIPTD_TEST_DEBUG") != NULL ? RCPT_LOG_DEBUG : RCPT_LOG_ERROR,
                       RCPT_LOG_LOGFMT);
    struct driver *driver = rcpt_calloc(1, sizeof(*driver));
    the_driver = driver;
    driver->dsn = argv[1];
    driver->schema = argv[2];
    RCPT_ASSERT(uv_loop_init(&driver->loop) == 0);
    rcpt_arena_init(&driver->arena, 256 * 1024);
    rcpt_arena_init(&driver->settings, 4096);
    rcpt_batch_init(&driver->batch, 0);
    serve_lines(driver);
    close_lane(driver);
    free_records(driver);
    rcpt_batch_fini(&driver->batch);
    rcpt_arena_fini(&driver->settings);
    rcpt_arena_fini(&driver->arena);
    RCPT_ASSERT(uv_loop_close(&driver->loop) == 0);
    free(driver->effects);
    free(driver);
    return 0;
}

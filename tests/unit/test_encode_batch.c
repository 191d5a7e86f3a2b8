/* The parameters of statements that are made of a batch: as many as the SQL has, of the types that it
 * casts them to, and for first times what they say. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "postgres/encode_batch.h"
#include "postgres/encode_fates.h"
#include "receiptd/core/batch_build.h"
#include "receiptd/postgres/statements.h"

#define MINUTE INT64_C(60000000)
#define TOPIC  "dlr-events"

/* A batch of the events of one record. */
struct made {
    struct rcpt_ladder *ladder;
    struct rcpt_decoder *decoder;
    struct rcpt_batch_builder *builder;
    struct rcpt_record *record;
    struct rcpt_batch batch;
    struct rcpt_batch_move move;
    struct rcpt_lane_names names;
    struct rcpt_pg_encoder *encoder;
};

static const char *name_facet(const void *context, enum rcpt_facet facet, uint32_t number)
{
    return rcpt_decoder_facet(context, facet, number);
}

static void make(struct made *made, const char *json)
{
    struct rcpt_error error;
    *made = (struct made){.ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error)};
    made->decoder = rcpt_decoder_new(made->ladder, 1);
    rcpt_decoder_set_rules(made->decoder, true);
    made->builder = rcpt_batch_builder_new(made->ladder, 1);
    made->record = rcpt_record_decode(
        made->decoder,
        &(struct rcpt_record_input){.topic = TOPIC, .value = json, .value_size = strlen(json)});
    const struct rcpt_batch_source source = {.record = made->record, .topic = TOPIC};
    rcpt_batch_init(&made->batch, 0);
    rcpt_batch_reset(&made->batch, RCPT_BATCH_APPLY);
    rcpt_batch_fold(made->builder, &made->batch, &source, 1, RCPT_BATCH_ALL);
    made->move = (struct rcpt_batch_move){.topic = TOPIC, .anchor_offset = -1};
    made->batch.moves = &made->move;
    made->batch.move_count = 1;
    made->names = (struct rcpt_lane_names){.name = name_facet, .context = made->decoder};
    made->encoder = rcpt_pg_encoder_new();
}

static void unmake(struct made *made)
{
    rcpt_pg_encoder_free(made->encoder);
    rcpt_batch_fini(&made->batch);
    rcpt_record_free(made->record);
    rcpt_batch_builder_free(made->builder);
    rcpt_decoder_free(made->decoder);
    rcpt_ladder_free(made->ladder);
}

/* ---- types ---- */

static const struct {
    const char *cast;
    uint32_t oid; /* of an array's elements; 0: it is none */
    int size;     /* of a scalar; 0: it is a text */
} types[] = {
    {"text[]", 25, 0},
    {"int2[]", 21, 0},
    {"int4[]", 23, 0},
    {"int8[]", 20, 0},
    {"timestamptz[]", 1184, 0},
    {"bytea[]", 17, 0},
    {"int4", 0, 4},
    {"int8", 0, 8},
    {"text", 0, 0},
};

static size_t type_of(const char *cast)
{
    size_t size = strspn(cast, "abcdefghijklmnopqrstuvwxyz0123456789[]"), type = 0;
    while (strlen(types[type].cast) != size || strncmp(types[type].cast, cast, size) != 0)
        assert_true(++type < sizeof(types) / sizeof(types[0]));
    return type;
}

static void assert_type(const char *name, const struct rcpt_pg_params *params, size_t number,
                        size_t type)
{
    uint32_t oid = 0;
    int length = params->lengths[number - 1];
    if (types[type].oid != 0 && length >= 12)
        memcpy(&oid, params->values[number - 1] + 8, sizeof(oid));
    bool fits =
        types[type].oid == be32toh(oid) && (types[type].size == 0 || types[type].size == length);
    if (!fits)
        fail_msg("$%zu of %s is no %s", number, name, types[type].cast);
}

/* A parameter stands behind "$", and each time with its cast. Comments have none. */
static void assert_casts(const struct rcpt_lane_statements *statements, const char *name,
                         struct rcpt_pg_encoder *encoder)
{
    size_t count, index = 0;
    struct rcpt_pg_params params;
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    while (strcmp(list[index].name, name) != 0)
        assert_true(++index < count);
    unsigned long highest = 0;
    rcpt_pg_encoder_params(encoder, &params);
    for (const char *at = list[index].sql; (at = strchr(at, '$')) != NULL;) {
        char *end;
        unsigned long number = strtoul(at + 1, &end, 10);
        at = end;
        if (strncmp(end, "::", 2) != 0)
            continue;
        if (number > (unsigned long)params.count)
            fail_msg("%s has $%lu, and gets %d parameters", name, number, params.count);
        assert_type(name, &params, number, type_of(end + 2));
        highest = number > highest ? number : highest;
    }
    assert_int_equal(highest, params.count);
}

static const char receipts[] =
    "[{\"message_id\":\"a\",\"status\":\"SENT\",\"gateway\":\"wolf\",\"org_id\":\"o\"},"
    "{\"message_id\":\"b\",\"status\":\"OPENED\",\"part\":1,\"parts\":2},"
    "{\"message_id\":\"c\",\"status\":\"NONSENSE\"}]";

static void every_parameter_is_of_the_type_that_the_sql_casts_it_to(void **state)
{
    struct made made;
    struct rcpt_decided decided;
    struct rcpt_uncounted uncounted;
    struct rcpt_rules *rules = rcpt_rules_new(&(struct rcpt_rules_settings){.ladder = NULL});
    struct rcpt_lane_statements *statements = rcpt_lane_statements_new(
        &(struct rcpt_lane_variant){.times = true, .inserts_unknown = true});
    (void)state;
    make(&made, receipts);
    const struct rcpt_decide_form form = {.ladder = made.ladder, .names = &made.names};
    assert_int_equal(made.batch.message_count, 2);
    assert_int_equal(made.batch.letter_count, 1);
    rcpt_encode_fence(made.encoder, &made.batch);
    assert_casts(statements, "fence", made.encoder);
    rcpt_encode_decide(made.encoder, &made.batch, &form, NULL, 2);
    assert_casts(statements, "decide", made.encoder);
    rcpt_encode_insert(made.encoder, &made.batch, NULL, 2, false);
    assert_casts(statements, "insert", made.encoder);
    rcpt_encode_letters(made.encoder, 0, made.batch.letters, made.batch.letter_count);
    assert_casts(statements, "letters", made.encoder);
    rcpt_decided_begin(&decided, &made.batch, rules); /* nothing is known of them */
    rcpt_uncounted_list(&uncounted, &decided, true);
    assert_int_equal(uncounted.parked_count, 2);
    rcpt_encode_parked_rows(made.encoder, &made.batch, &uncounted, &made.names);
    assert_casts(statements, "parked", made.encoder);
    rcpt_encode_timeline(made.encoder, &decided);
    assert_casts(statements, "timeline", made.encoder);
    rcpt_decided_end(&decided);
    static const struct {
        enum rcpt_batch_kind kind;
        const char *name;
        int64_t age;
    } parked[] = {{RCPT_BATCH_WAKE, "wake", -1},
                  {RCPT_BATCH_DISCARD, "discard", -1},
                  {RCPT_BATCH_EXPIRE, "expire", 5},
                  {RCPT_BATCH_EXPIRE, "address", -1},
                  {RCPT_BATCH_EXPIRE, "insert_parked", 5}};
    for (size_t index = 0; index < sizeof(parked) / sizeof(parked[0]); index++) {
        made.batch.kind = parked[index].kind;
        rcpt_encode_parked(made.encoder, &made.batch, parked[index].age);
        assert_casts(statements, parked[index].name, made.encoder);
    }
    unmake(&made);
    rcpt_lane_statements_free(statements);
    rcpt_rules_free(rules);
}

/* ---- first times ---- */

/* The elements of an array behind its header of 20 bytes, each behind its length. */
static int64_t time_at(const struct rcpt_pg_params *params, size_t parameter, size_t index)
{
    uint64_t big;
    memcpy(&big, params->values[parameter] + 20 + index * 12 + 4, sizeof(big));
    return (int64_t)be64toh(big);
}

static uint32_t number_at(const struct rcpt_pg_params *params, size_t parameter, size_t index)
{
    uint32_t big;
    memcpy(&big, params->values[parameter] + 20 + index * 8 + 4, sizeof(big));
    return be32toh(big);
}

#define SAID(id, status, minute, more)                                                             \
    "{\"message_id\":\"" id "\",\"status\":\"" status "\",\"at\":\"2000-01-01T00:0" minute         \
    ":00Z\"" more "}"

/* Gateways get numbers in order of appearance: wolf 1, ant 2. */
static void first_times_are_the_least_of_each_status_and_the_gateway_is_the_first_by_name(
    void **state)
{
    static const int64_t none = INT64_MAX;
    static const int64_t expected[] = {4 * MINUTE, 9 * MINUTE, none, none, none, none,
                                       none,       none,       none, none, none, 5 * MINUTE};
    struct made made;
    struct rcpt_pg_params params;
    (void)state;
    make(
        &made,
        "[" SAID("1", "SENT", "5", ",\"gateway\":\"wolf\"") "," SAID(
            "1", "DELIVERED", "9",
            "") "," SAID("1", "SENT", "4",
                         ",\"gateway\":\"ant\"") "," SAID("2", "FAILED", "5",
                                                          ",\"gateway\":\"wolf\"") "," SAID("3",
                                                                                            "CLICKE"
                                                                                            "D",
                                                                                            "5",
                                                                                            "") "]");
    const struct rcpt_decide_form form = {.ladder = made.ladder, .names = &made.names};
    rcpt_encode_decide(made.encoder, &made.batch, &form, NULL, 3);
    rcpt_pg_encoder_params(made.encoder, &params);
    for (size_t index = 0; index < sizeof(expected) / sizeof(expected[0]); index++)
        assert_int_equal(time_at(&params, 5, index), expected[index]);
    assert_int_equal(number_at(&params, 6, 0), 2);
    assert_int_equal(number_at(&params, 6, 1), 0);
    assert_int_equal(number_at(&params, 6, 2), 0);
    static const uint32_t last = 2; /* a stale message is asked about alone */
    rcpt_encode_decide(made.encoder, &made.batch, &form, &last, 1);
    rcpt_pg_encoder_params(made.encoder, &params);
    assert_int_equal(time_at(&params, 5, 3), 5 * MINUTE);
    assert_memory_equal(params.values[0] + 24, "3", 1);
    unmake(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_is_of_the_type_that_the_sql_casts_it_to),
        cmocka_unit_test(
            first_times_are_the_least_of_each_status_and_the_gateway_is_the_first_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

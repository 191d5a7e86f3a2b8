/* Counts as parameters of the statements in sql/lane: by a batch in which all rules have something
 * to say, as text, and by the types that the statements' own comments declare. */
#include <endian.h>
#include <inttypes.h>

#include "postgres/encode_counts.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/postgres/sql.h"

#include "rules_fixture.h"

/* ---- parameters as text ---- */

static int32_t read_int4(const char **at)
{
    uint32_t value;
    memcpy(&value, *at, sizeof(value));
    *at += sizeof(value);
    return (int32_t)be32toh(value);
}

static int64_t read_number(const char *at, int32_t size)
{
    uint64_t value = 0;
    for (int32_t byte = 0; byte < size; byte++)
        value = value << 8 | (uint8_t)at[byte];
    return size == 2 ? (int16_t)value : size == 4 ? (int32_t)value : (int64_t)value;
}

/* OIDs of pg_type. Times are in minutes of HOUR. */
static const struct {
    int32_t oid;
    const char *name;
} types[] = {
    {25, "text[]"}, {21, "int2[]"}, {23, "int4[]"}, {20, "int8[]"}, {1184, "timestamptz[]"}};

static void write_element(FILE *out, int32_t oid, const char *at, int32_t size)
{
    int64_t number = oid != 25 ? read_number(at, size) : 0;
    if (oid == 25)
        fwrite(at, 1, (size_t)size, out);
    else if (oid == 1184 && number == INT64_MIN)
        fputs("-infinity", out);
    else if (oid == 1184)
        fprintf(out, "@%" PRId64, (number + INT64_C(946684800000000)) / MINUTE - HOUR);
    else
        fprintf(out, "%" PRId64, number);
}

/* array_recv() reads this form. Returns the type's name. */
static const char *write_array(FILE *out, const char *at)
{
    int32_t dimensions = read_int4(&at);
    (void)read_int4(&at);
    int32_t oid = read_int4(&at), count = 0;
    if (dimensions > 0) {
        count = read_int4(&at);
        (void)read_int4(&at);
    }
    for (int32_t index = 0; index < count; index++) {
        int32_t size = read_int4(&at);
        fputs(index > 0 ? "," : "", out);
        if (size < 0)
            fputs("NULL", out);
        else
            write_element(out, oid, at, size);
        at += size > 0 ? size : 0;
    }
    for (size_t type = 0; type < LENGTH(types); type++)
        if (types[type].oid == oid)
            return types[type].name;
    fail_msg("an array of type %d", oid);
    return NULL;
}

/* At most one dimension; texts of cases begin otherwise. */
static bool is_array(const char *at, int size)
{
    return size >= 12 && (uint32_t)read_int4(&at) <= 1;
}

/* One parameter in braces. Returns its type. */
static const char *write_parameter(FILE *out, const struct rcpt_pg_params *params, int index)
{
    const char *type = "text";
    fputc('{', out);
    if (is_array(params->values[index], params->lengths[index]))
        type = write_array(out, params->values[index]);
    else
        fwrite(params->values[index], 1, (size_t)params->lengths[index], out);
    fputc('}', out);
    return type;
}

static void assert_texts(struct rcpt_pg_encoder *encoder, const char *expected)
{
    char *text = NULL;
    size_t size;
    struct rcpt_pg_params params;
    FILE *out = open_memstream(&text, &size);
    rcpt_pg_encoder_params(encoder, &params);
    for (int index = 0; index < params.count; index++)
        write_parameter(out, &params, index);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

/* The statement casts "$2::int4[]", and has no parameter beyond them. */
static void assert_parameters(struct rcpt_pg_encoder *encoder, const char *statement,
                              const char *expected)
{
    char declared[40];
    struct rcpt_pg_params params;
    const char *sql = rcpt_sql(statement);
    FILE *nowhere = fopen("/dev/null", "w");
    rcpt_pg_encoder_params(encoder, &params);
    for (int index = 0; index < params.count; index++) {
        snprintf(declared, sizeof(declared), "$%d::%s", index + 1,
                 write_parameter(nowhere, &params, index));
        if (strstr(sql, declared) == NULL)
            fail_msg("sql/%s.sql does not say \"%s\"", statement, declared);
    }
    snprintf(declared, sizeof(declared), "$%d", params.count + 1);
    assert_null(strstr(sql, declared));
    fclose(nowhere);
    assert_texts(encoder, expected);
}

/* ---- one batch ---- */

static struct rcpt_rules *rules_of(const struct rules_fixture *fixture, bool series, bool any)
{
    return rcpt_rules_new(&(struct rcpt_rules_settings){
        .ladder = fixture->ladder,
        .dimensions = {{"by_channel", "channel"}},
        .dimension_count = any,
        .groups = {{"customer", "who"}, {"logical", "what"}},
        .group_count = any ? 2 : 0,
        .dedup = true,
        .series = series,
        .gateways = any,
        .times = any,
        .folds = any,
        .fold_columns = any,
        .stream = any,
    });
}

static void play_batch(struct rcpt_rules *rules, struct rcpt_count *count,
                       struct rules_fixture *fixture)
{
    static const struct receipt receipts[] = {{"m", 600, .minute = 30, .gateway = KANNEL},
                                              {"n", 700, .minute = 20},
                                              {"o", 300, .minute = 30}};
    static const struct row rows[] = {
        {"a", 0, 300, 600, .org = "O",
         .columns = {"sms", "4", NULL, "kannel", NULL, "c", "l", "{}"}},
        {"b", 1, 600, 700, .columns = {NULL, "4", "5", NULL, "6//", NULL, NULL, "{}"}},
        {"b", 2, 600, 600, .same = true, .columns = {NULL}},
    };
    static struct rcpt_batch_signature signatures[] = {{0, 1, 0}, {1, 1, 0}, {2, 1, 0}};
    static int16_t codes[] = {600, 700, 300};
    static int32_t counts[] = {1, 1, 1};
    fixture->batch.message_count = fixture->batch.event_count = 0;
    for (size_t index = 0; index < LENGTH(receipts); index++) {
        add_receipt(fixture, &receipts[index]);
        fixture->messages[index].signature = (int32_t)index;
    }
    fixture->batch.signatures = signatures;
    fixture->batch.signature_codes = codes;
    fixture->batch.signature_counts = counts;
    rcpt_rules_begin(rules, &fixture->batch, NOW, &test_names);
    rcpt_rules_echo(rules, 2);
    for (size_t index = 0; index < LENGTH(rows); index++)
        add_row(rules, &rows[index]);
    rcpt_rules_finish(rules);
    rcpt_count_begin(count, &fixture->batch, fixture->ladder, LENGTH(rows));
    for (size_t index = 0; index < LENGTH(rows); index++)
        rcpt_count_add(count,
                       &(struct rcpt_count_row){.message = rows[index].message,
                                                .was = rows[index].was,
                                                .changed = !rows[index].same,
                                                .campaign = rcpt_text_of(rows[index].campaign)});
    rcpt_count_finish(count);
}

static void each_statement_gets_its_parameters(void **state)
{
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_count *count = rcpt_count_new();
    struct rcpt_rules *rules = rules_of(fixture, true, true);
    play_batch(rules, count, fixture);
    assert_true(rcpt_encode_counters(encoder, count, rules));
    assert_parameters(encoder, "lane/counters",
                      "{funnel,by_channel,duplicate,gateway,gateway_delay,gateway_duplicate,"
                      "gateway_final,time_place}{1,3,5,6,8,10,11,12}{2,4,5,7,9,10,11,14}"
                      "{a,b,a,b,b,,,,,,,a,b,b}"
                      "{@30,@20,-infinity,-infinity,-infinity,@0,@0,@0,@0,@0,@0,"
                      "-infinity,-infinity,-infinity}"
                      "{,,sms,,,,kannel,,kannel,,kannel,4//kannel,4/5/,6//}"
                      "{600,700,600,700,300,700,600,39,0,300,0,0,0,0}"
                      "{1,1,1,1,0,0,0,0,0,0,1,1,1,-1}{1,1,1,1,1,1,1,1,1,1,0,0,0,0}");
    assert_true(rcpt_encode_members(encoder, rules));
    assert_parameters(
        encoder, "lane/groups",
        "{customer,logical}{1,2}{1,3}{a,a,b}{c,l,n}{300,300,600}{600,600,700}{0,0,0}");
    assert_true(rcpt_encode_folds(encoder, rules));
    assert_parameters(encoder, "lane/folds", "{,O}{b,a}{600,300}{700,600}{0,0}{1,1}{{},{}}{}");
    assert_true(rcpt_encode_stream(encoder, rules));
    assert_parameters(encoder, "lane/stream",
                      "{m,n}{O,NULL}{a,b}{300,600}{600,700}{0}{0}{@30,@20}{kannel,NULL}{}{}{}");
    rcpt_rules_free(rules);
    rcpt_count_free(count);
    rcpt_pg_encoder_free(encoder);
    rules_fixture_free(fixture);
}

static void suppressions_get_their_parameters(void **state)
{
    static const struct receipt receipts[] = {{"m", 9002, .minute = 30}, {"n", 430, .minute = 20}};
    static const struct row rows[] = {
        {"a", 0, 300, 600, .gained = 2, .org = "O", .columns = {"ann"}},
        {"a", 1, 300, 430, .columns = {"bob"}}};
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_rules *rules =
        rcpt_rules_new(&(struct rcpt_rules_settings){.ladder = fixture->ladder,
                                                     .person = "who",
                                                     .suppressing = {{9002, false}, {430, true}},
                                                     .suppressing_count = 2,
                                                     .soft_count = 3,
                                                     .soft_within_ms = 1000});
    for (size_t index = 0; index < LENGTH(receipts); index++)
        add_receipt(fixture, &receipts[index]);
    rcpt_rules_begin(rules, &fixture->batch, NOW, &test_names);
    for (size_t index = 0; index < LENGTH(rows); index++)
        add_row(rules, &rows[index]);
    rcpt_rules_finish(rules);
    assert_true(rcpt_encode_suppressions(encoder, rules));
    assert_parameters(encoder, "lane/suppression",
                      "{m,n}{O,}{ann,bob}{UNSUBSCRIBED,BOUNCED_SOFT}{@30,@20}{0,3}{1000,1000}");
    rcpt_rules_free(rules);
    rcpt_pg_encoder_free(encoder);
    rules_fixture_free(fixture);
}

/* Without the series the plain funnel comes behind the cells of rules, without times and keys. What
 * copies named is taken off. */
static void what_has_nothing_to_say_is_not_sent(void **state)
{
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_count *count = rcpt_count_new();
    struct rcpt_rules *rules = rules_of(fixture, false, false);
    play_batch(rules, count, fixture);
    assert_true(rcpt_encode_counters(encoder, count, rules));
    assert_parameters(encoder, "lane/counters",
                      "{funnel,duplicate,funnel}{1,2,3}{1,2,5}{b,b,a,b,b}{-infinity,-infinity}{,}"
                      "{300,300,600,300,700}{0,0,1,0,1}{-1,1,1,1,1}");
    assert_false(rcpt_encode_members(encoder, rules));
    assert_false(rcpt_encode_folds(encoder, rules));
    assert_false(rcpt_encode_stream(encoder, rules));
    assert_false(rcpt_encode_suppressions(encoder, rules));
    fixture->batch.message_count = fixture->batch.event_count = 0;
    rcpt_rules_begin(rules, &fixture->batch, NOW, &test_names);
    rcpt_rules_finish(rules);
    rcpt_count_begin(count, &fixture->batch, fixture->ladder, 0);
    rcpt_count_finish(count);
    assert_false(rcpt_encode_counters(encoder, count, rules));
    rcpt_rules_free(rules);
    rcpt_count_free(count);
    rcpt_pg_encoder_free(encoder);
    rules_fixture_free(fixture);
}

static void keys_are_stored_and_taken_back(void **state)
{
    (void)state;
    char expected[200];
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_keys *keys = rcpt_keys_new();
    add_receipt(fixture, &(struct receipt){"m", 600, .minute = 3, .key = 5});
    add_receipt(fixture, &(struct receipt){"m", 600, .minute = 4, .key = UINT64_MAX});
    rcpt_keys_begin(keys, &fixture->batch);
    assert_true(rcpt_encode_new_keys(encoder, keys, "48 hours"));
    int64_t hash = (int64_t)fixture->decoded.events[0].hash;
    snprintf(expected, sizeof(expected), "{%" PRId64 ",%" PRId64 "}{-1,5}{@4,@3}{48 hours}", hash,
             hash);
    assert_parameters(encoder, "lane/keys", expected);
    assert_false(rcpt_encode_undone_keys(encoder, keys));
    rcpt_keys_tell(keys, 0, RCPT_KEY_THERE);
    rcpt_keys_missed(keys, 0);
    assert_true(rcpt_encode_undone_keys(encoder, keys));
    snprintf(expected, sizeof(expected), "{%" PRId64 "}{5}{@3}", hash);
    assert_parameters(encoder, "lane/keys_undo", expected);
    fixture->batch.message_count = fixture->batch.event_count = 0;
    rcpt_keys_begin(keys, &fixture->batch);
    assert_false(rcpt_encode_new_keys(encoder, keys, "48 hours"));
    rcpt_keys_free(keys);
    rcpt_pg_encoder_free(encoder);
    rules_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_statement_gets_its_parameters),
        cmocka_unit_test(suppressions_get_their_parameters),
        cmocka_unit_test(what_has_nothing_to_say_is_not_sent),
        cmocka_unit_test(keys_are_stored_and_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The parameters of apply are known by number: the table in C and the SQL have to agree. And what
 * messages of a batch have in common. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/postgres/encode_batch.h"
#include "postgres/sql.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The text with its comments in one line; the caller frees it. */
static char *unwrap(const char *text)
{
    char *copy = strdup(text), *to = copy;
    for (const char *from = copy; *from != '\0';) {
        bool wraps = strncmp(from, "\n-- ", 4) == 0;
        *to++ = wraps ? ' ' : *from;
        from += wraps ? 4 : 1;
    }
    *to = '\0';
    return copy;
}

/* Comments of 10_update.sql name a parameter first as "$2 int2[] highest status". */
static void the_comment_describes_each_parameter_as_the_table_declares_it(void **state)
{
    char *text = unwrap(rcpt_sql("lane/apply/10_update"));
    (void)state;
    for (size_t number = 1; number <= RCPT_APPLY_PARAMETERS_RULES; number++) {
        const struct rcpt_apply_parameter *parameter = rcpt_apply_parameter(number);
        char wanted[120];
        snprintf(wanted, sizeof(wanted), "$%zu %s %s", number, parameter->type, parameter->name);
        if (strstr(text, wanted) == NULL)
            fail_msg("sql/lane/apply/10_update.sql does not say \"%s\"", wanted);
    }
    free(text);
}

/* Highest $n in the code of a statement; each one with a cast has the declared type. */
static unsigned long check_casts(const struct rcpt_pg_statement *statement)
{
    unsigned long highest = 0;
    char *copy = strdup(statement->sql), *rest;
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *comment = strstr(line, "--");
        if (comment != NULL)
            *comment = '\0';
        for (char *at = line; (at = strchr(at, '$')) != NULL;) {
            unsigned long number = strtoul(at + 1, &at, 10);
            const char *type = rcpt_apply_parameter(number)->type;
            if (strncmp(at, "::", 2) != 0 || strncmp(at + 2, type, strlen(type)) != 0)
                fail_msg("$%lu is %s in C, and in SQL: $%lu%.20s", number, type, number, at);
            highest = number > highest ? number : highest;
        }
    }
    free(copy);
    return highest;
}

static void the_sql_uses_the_types_and_the_number_of_the_table(void **state)
{
    static const char *const subscribers[] = {"lane/subscribers/folds_columns",
                                              "lane/subscribers/actions"};
    const struct rcpt_lane_variant variant = {
        .subscribers = subscribers, .count = 2, .selective = true, .inserts_unknown = true};
    struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&variant);
    unsigned checked = 0;
    size_t count;
    (void)state;
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    for (size_t index = 0; index < count; index++) {
        bool unsubscribed = strcmp(list[index].name, "apply_unsubscribed") == 0;
        if (!unsubscribed && strcmp(list[index].name, "apply") != 0)
            continue;
        assert_int_equal(check_casts(&list[index]),
                         unsubscribed ? RCPT_APPLY_PARAMETERS_UNSUBSCRIBED : RCPT_APPLY_PARAMETERS);
        checked++;
    }
    assert_int_equal(checked, 2);
    rcpt_lane_statements_free(statements);
}

/* ---- what messages have in common ---- */

#define MINUTE INT64_C(60000000)
#define MOST   9u

struct named {
    uint32_t message;
    int16_t code;
    uint32_t flags;
    int64_t at_us;
    uint8_t gateway, reason;
};

struct made {
    struct rcpt_batch batch;
    struct rcpt_batch_message messages[MOST];
    struct rcpt_batch_event events[MOST];
    struct rcpt_event named[MOST];
};

static void make(struct made *made, const struct named *named, uint32_t count)
{
    *made = (struct made){.batch = {.event_count = count}};
    made->batch.messages = made->messages;
    made->batch.events = made->events;
    for (uint32_t at = 0; at < count; at++) {
        made->named[at] = (struct rcpt_event){.flags = named[at].flags,
                                              .at_us = named[at].at_us,
                                              .gateway = named[at].gateway,
                                              .reason = named[at].reason};
        made->events[at] =
            (struct rcpt_batch_event){.event = &made->named[at], .code = named[at].code};
        if (at == 0 || named[at].message != named[at - 1].message)
            made->messages[made->batch.message_count++].first_event = at;
    }
}

/* Messages of one receipt each but for the last two, which have two. */
static const struct named receipts[] = {
    {1, 300, 0, 5 * MINUTE, 1, 0},     {2, 300, 0, 6 * MINUTE - 1, 2, 0},
    {3, 300, 0, 6 * MINUTE, 1, 0},     {4, 300, 4, 5 * MINUTE, 1, 1},
    {5, 600, 0, 5 * MINUTE, 1, 0},     {6, 300, 0, 5 * MINUTE, 1, 0},
    {6, 600, 0, 7 * MINUTE, 1, 2},     {7, 300, 0, 5 * MINUTE + 1, 1, 0},
    {7, 600, 0, 7 * MINUTE + 1, 1, 2},
};

static const struct rcpt_encode_groups *group(struct made *made, struct rcpt_lane_rules rules,
                                              struct rcpt_arena *arena)
{
    return rcpt_encode_groups(&made->batch, &rules, rcpt_encode_facets(&made->batch, arena), arena);
}

static void in_the_same_minutes_the_same_receipts_have_one_signature(void **state)
{
    static const int32_t expected[] = {1, 1, 2, 3, 4, 5, 5};
    static const int32_t entries[] = {1, 2, 3, 5, 6, 8};
    static const int16_t codes[] = {300, 300, 300, 9003, 600, 300, 600};
    static const int64_t minutes[] = {5, 6, 5, 5, 5, 5, 7};
    static const int64_t changes[] = {5, 6, 5, 5, 7};
    struct rcpt_arena arena;
    struct made made;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    make(&made, receipts, MOST);
    for (uint32_t message = 0; message < made.batch.message_count; message++)
        made.messages[message].at_us = receipts[message < 6 ? message : 8].at_us;
    made.messages[5].at_us = receipts[6].at_us;
    const struct rcpt_encode_groups *groups =
        group(&made, (struct rcpt_lane_rules){.minutes = true}, &arena);
    assert_int_equal(groups->count, 5);
    assert_memory_equal(groups->signatures, expected, sizeof(expected));
    assert_memory_equal(groups->entries, entries, sizeof(entries));
    assert_memory_equal(groups->codes, codes, sizeof(codes));
    assert_memory_equal(groups->minutes, minutes, sizeof(minutes));
    assert_memory_equal(groups->changes, changes, sizeof(changes));
    rcpt_arena_fini(&arena);
}

static void around_1970_a_minute_is_no_longer_than_others(void **state)
{
    static const struct named named[] = {{1, 300, 0, -1, 0, 0},
                                         {2, 300, 0, 0, 0, 0},
                                         {3, 300, 0, -MINUTE, 0, 0},
                                         {4, 300, 0, -MINUTE - 1, 0, 0}};
    static const int32_t expected[] = {1, 2, 1, 3};
    static const int64_t minutes[] = {-1, 0, -2};
    struct rcpt_arena arena;
    struct made made;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    make(&made, named, 4);
    const struct rcpt_encode_groups *groups =
        group(&made, (struct rcpt_lane_rules){.minutes = true}, &arena);
    assert_memory_equal(groups->signatures, expected, sizeof(expected));
    assert_memory_equal(groups->minutes, minutes, sizeof(minutes));
    rcpt_arena_fini(&arena);
}

static void with_the_same_gateways_and_reasons_they_are_of_one_kind_and_its_sign_says_which(
    void **state)
{
    static const int32_t expected[] = {1, 2, 1, 3, 4, 5, 5}, examples[] = {1, 2, -4, 5, -6};
    struct rcpt_arena arena;
    struct made made;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    make(&made, receipts, MOST);
    for (uint32_t message = 0; message < made.batch.message_count; message++)
        made.messages[message].signature = (int32_t)message % 3;
    const struct rcpt_encode_groups *groups =
        group(&made, (struct rcpt_lane_rules){.facets = true}, &arena);
    static const int32_t figures[] = {1, 2, 1, 2, 3};
    assert_int_equal(groups->kind_count, 5);
    assert_memory_equal(groups->kinds, expected, sizeof(expected));
    assert_memory_equal(groups->examples, examples, sizeof(examples));
    assert_memory_equal(groups->figures, figures, sizeof(figures));
    rcpt_arena_fini(&arena);
}

/* The signatures of a batch are by gateway, too; without rules those are its kinds. */
static void gateways_alone_make_another_kind_and_no_other_signature(void **state)
{
    static struct rcpt_batch_signature signatures[] = {{0, 1, 1}, {1, 2, 1}, {3, 1, 2}, {4, 1, 1}};
    static int16_t codes[] = {300, 300, 600, 300, 300};
    static int32_t counts[] = {1, 1, 2, 1, 2};
    static const int32_t expected[] = {1, 2, 1, 3, 1, 2, 1}, kinds[] = {1, 2, 3, 4, 1, 2, 3};
    static const int32_t entries[] = {1, 2, 4, 5}, found_counts[] = {1, 1, 2, 2};
    static const int16_t found[] = {300, 300, 600, 300};
    struct rcpt_arena arena;
    struct made made;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    make(&made, receipts, MOST);
    made.batch.signatures = signatures;
    made.batch.signature_count = 4;
    made.batch.signature_codes = codes;
    made.batch.signature_counts = counts;
    made.batch.signature_code_count = 5;
    for (uint32_t message = 0; message < made.batch.message_count; message++)
        made.messages[message].signature = (int32_t)message % 4;
    const struct rcpt_encode_groups *groups = group(&made, (struct rcpt_lane_rules){0}, &arena);
    assert_int_equal(groups->count, 3);
    assert_int_equal(groups->kind_count, 0);
    assert_memory_equal(groups->signatures, expected, sizeof(expected));
    assert_memory_equal(groups->kinds, kinds, sizeof(kinds));
    assert_memory_equal(groups->entries, entries, sizeof(entries));
    assert_memory_equal(groups->codes, found, sizeof(found));
    assert_memory_equal(groups->counts, found_counts, sizeof(found_counts));
    rcpt_arena_fini(&arena);
}

/* Bucket b ends at 2^(b/2) ms. */
static void delays_are_counted_by_facet_and_bucket(void **state)
{
    static const int64_t delays_us[] = {
        -5, 1000, 1001, 1414, 1415, 2000, 2001, 4000, INT64_C(1) << 60};
    static const int16_t expected[] = {0, 0, 1, 1, 2, 2, 3, 4, 79};
    static const int32_t counted[] = {1, 0, 2, 1, 1, 2, 2, 2, 2, 2, 3, 1, 2, 4, 1, 2, 79, 1};
    struct named named[MOST];
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_pg_params params;
    struct rcpt_arena arena;
    struct made made;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    for (uint32_t at = 0; at < MOST; at++)
        named[at] = (struct named){at, 300, 0, MINUTE - delays_us[at], at < 4 ? 1 : 2, 0};
    make(&made, named, MOST);
    struct rcpt_encode_facets *facets = rcpt_encode_facets(&made.batch, &arena);
    rcpt_encode_delays(facets, &made.batch, MINUTE, &arena);
    assert_memory_equal(facets->delays, expected, sizeof(expected));
    rcpt_encode_delayed(encoder, facets);
    rcpt_pg_encoder_params(encoder, &params);
    for (size_t index = 0; index < sizeof(counted) / sizeof(counted[0]); index++) {
        uint32_t big;
        memcpy(&big, params.values[0] + 20 + index * 8 + 4, sizeof(big));
        assert_int_equal(be32toh(big), counted[index]);
    }
    rcpt_pg_encoder_free(encoder);
    rcpt_arena_fini(&arena);
}

static const char *name_gateway(const void *context, enum rcpt_facet facet, uint32_t number)
{
    static const char *const names[] = {NULL, "wolf", "ant", ""};
    (void)context;
    assert_int_equal(facet, RCPT_FACET_GATEWAY);
    return names[number];
}

/* The elements of an array of int8 or of timestamps behind its header of 20 bytes, each behind its length. */
static int64_t time_at(const struct rcpt_pg_params *params, size_t parameter, size_t index)
{
    uint64_t big;
    memcpy(&big, params->values[parameter] + 20 + index * 12 + 4, sizeof(big));
    return (int64_t)be64toh(big);
}

static void first_times_are_the_least_of_each_status_and_the_gateway_is_the_first_by_name(
    void **state)
{
    static const struct named named[] = {{1, 300, 0, 5 * MINUTE, 1, 0},
                                         {1, 600, 0, 9 * MINUTE, 3, 0},
                                         {1, 300, 0, 4 * MINUTE, 2, 0},
                                         {2, 440, 0, 5 * MINUTE, 1, 0},
                                         {3, 800, 0, 5 * MINUTE, 3, 0}};
    static const int64_t none = INT64_MAX, since_2000 = INT64_C(946684800000000);
    const int64_t expected[] = {4 * MINUTE - since_2000,
                                9 * MINUTE - since_2000,
                                none,
                                none,
                                none,
                                none,
                                none,
                                none,
                                none,
                                none,
                                none,
                                5 * MINUTE - since_2000};
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    const struct rcpt_lane_names names = {.name = name_gateway};
    const struct rcpt_encode_form form = {
        .rules = {.receipts = true, .times = true}, .ladder = ladder, .names = &names};
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    struct rcpt_arena arena;
    struct made made;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    make(&made, named, 5);
    const struct rcpt_encode_facets *facets = rcpt_encode_facets(&made.batch, &arena);
    rcpt_encode_first_times(encoder, &made.batch, &form);
    rcpt_encode_first_gateways(encoder, &made.batch, &form, facets);
    struct rcpt_pg_params params;
    rcpt_pg_encoder_params(encoder, &params);
    for (size_t index = 0; index < sizeof(expected) / sizeof(expected[0]); index++)
        assert_int_equal(time_at(&params, 0, index), expected[index]);
    const uint8_t *gateways = (const uint8_t *)params.values[1] + 20;
    assert_int_equal(gateways[7], facets->of_events[2]);
    assert_int_equal(gateways[15], 0);
    assert_int_equal(gateways[23], 0);
    rcpt_pg_encoder_free(encoder);
    rcpt_ladder_free(ladder);
    rcpt_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_same_minutes_the_same_receipts_have_one_signature),
        cmocka_unit_test(around_1970_a_minute_is_no_longer_than_others),
        cmocka_unit_test(
            with_the_same_gateways_and_reasons_they_are_of_one_kind_and_its_sign_says_which),
        cmocka_unit_test(gateways_alone_make_another_kind_and_no_other_signature),
        cmocka_unit_test(delays_are_counted_by_facet_and_bucket),
        cmocka_unit_test(
            first_times_are_the_least_of_each_status_and_the_gateway_is_the_first_by_name),
        cmocka_unit_test(the_comment_describes_each_parameter_as_the_table_declares_it),
        cmocka_unit_test(the_sql_uses_the_types_and_the_number_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

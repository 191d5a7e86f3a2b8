#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "folds/collect.h"
#include "receiptd/base/error.h"

static const char *const keys[] = {"id"};
static const struct rcpt_fold_match matches[] = {{"type", "a|b"}};
static const struct rcpt_fold_collect collects[] = {
    {"set", "v", RCPT_FOLD_SET},   {"sum", "v", RCPT_FOLD_SUM},     {"min", "v", RCPT_FOLD_MIN},
    {"max", "v", RCPT_FOLD_MAX},   {"count", "v", RCPT_FOLD_COUNT}, {"first", "v", RCPT_FOLD_FIRST},
    {"last", "v", RCPT_FOLD_LAST},
};
static const struct rcpt_fold_spec spec = {.rule = "r",
                                           .topic = "t",
                                           .matches = matches,
                                           .match_count = 1,
                                           .keys = keys,
                                           .key_count = 1,
                                           .collects = collects,
                                           .collect_count = 7,
                                           .max_values = 3};

static bool add(struct rcpt_fold_collector *collector, const char *json)
{
    struct rcpt_fold_event event = {.topic = "t", .value = json, .size = strlen(json)};
    struct rcpt_fold_refusal refusal;
    return rcpt_fold_collector_add(collector, &event, &refusal);
}

static void write_group(void *context, const struct rcpt_fold_group *group)
{
    fprintf(context, "%s %s %llu %s\n", group->rule, group->key, (unsigned long long)group->events,
            group->part);
}

/* What the collector has, a line for each group; the caller frees it. */
static char *all_of(struct rcpt_fold_collector *collector)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    rcpt_fold_collector_each(collector, write_group, out);
    fclose(out);
    return text;
}

static void expect(struct rcpt_fold_collector *collector, const char *expected)
{
    char *text = all_of(collector);
    assert_string_equal(text, expected);
    free(text);
    rcpt_fold_collector_reset(collector);
}

static void events_of_a_group_become_one_part(void **state)
{
    (void)state;
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&spec, 1);
    assert_true(add(collector, "{\"id\":\"x\",\"type\":\"a\",\"v\":3}"));
    assert_true(add(collector, "{\"id\":\"y\",\"type\":\"b\",\"v\":\"text\"}"));
    assert_true(add(collector, "{\"id\":\"x\",\"type\":\"a\",\"v\":-1}"));
    assert_true(add(collector, "{\"id\":\"x\",\"type\":\"c\",\"v\":9}"));
    assert_int_equal(rcpt_fold_collector_groups(collector), 2);
    expect(collector, "r {\"id\":\"x\"} 2 {\"v\":{\"set\":[3,-1],\"sum\":2,\"min\":-1,\"max\":3,"
                      "\"count\":2,\"first\":3,\"last\":-1},\"o\":{}}\n"
                      "r {\"id\":\"y\"} 1 {\"v\":{\"set\":[\"text\"],\"count\":1,"
                      "\"first\":\"text\",\"last\":\"text\"},\"o\":{}}\n");
    assert_int_equal(rcpt_fold_collector_groups(collector), 0);
    rcpt_fold_collector_free(collector);
}

static void sets_take_elements_and_names_and_count_what_has_no_room(void **state)
{
    (void)state;
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&spec, 1);
    assert_true(add(collector, "{\"id\":1,\"type\":\"a\",\"v\":{\"likes\":1,\"shares\":{}}}"));
    assert_true(
        add(collector, "{\"id\":1,\"type\":\"a\",\"v\":[\"shares\",true,null,\"more\",\"more\"]}"));
    char *text = all_of(collector);
    assert_non_null(strstr(text, "\"set\":[\"likes\",\"shares\",true]"));
    assert_non_null(strstr(text, "\"o\":{\"set\":2}"));
    free(text);
    rcpt_fold_collector_free(collector);
}

static void what_has_no_usable_key_is_refused(void **state)
{
    (void)state;
    static const char *const events[] = {
        "",
        "[]",
        "{\"type\":\"a\"}",
        "{\"type\":\"a\",\"id\":null}",
        "{\"type\":\"a\",\"id\":{}}",
        "{\"type\":\"a\",\"id\":[1]}",
        "{\"type\":\"a\",\"id\":",
    };
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&spec, 1);
    for (size_t index = 0; index < sizeof(events) / sizeof(events[0]); index++)
        assert_false(add(collector, events[index]));
    char *large = rcpt_malloc(3000);
    memset(large, 'x', 2999);
    memcpy(large, "{\"type\":\"a\",\"id\":\"", 18);
    memcpy(large + 2990, "\"}", 3);
    assert_false(add(collector, large)); /* a key that were cut would be another one's */
    assert_int_equal(rcpt_fold_collector_groups(collector), 0);
    free(large);
    rcpt_fold_collector_free(collector);
}

static void what_the_database_would_refuse_never_gets_there(void **state)
{
    (void)state;
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&spec, 1);
    assert_false(add(collector, "{\"id\":\"a\\u0000b\",\"type\":\"a\"}"));
    assert_true(add(collector, "{\"id\":\"a\",\"type\":\"a\",\"v\":\"\\u0000\"}"));
    assert_true(add(collector, "{\"id\":\"a\",\"type\":\"a\",\"v\":1e-99999}"));
    assert_true(add(collector, "{\"id\":\"a\",\"type\":\"a\",\"v\":1e400}"));
    assert_true(add(collector, "{\"id\":\"a\",\"type\":\"a\",\"v\":[[\"\\u0000\"]]}"));
    char *text = all_of(collector);
    assert_null(strstr(text, "u0000\"]"));
    assert_null(strstr(text, ":1e400"));
    assert_null(strstr(text, "[1e400"));
    assert_null(strstr(text, ",1e-99999"));
    free(text);
    rcpt_fold_collector_free(collector);
}

static void sums_of_decimals_are_exact(void **state)
{
    (void)state;
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&spec, 1);
    assert_true(add(collector, "{\"id\":1,\"type\":\"a\",\"v\":100000000000000001}"));
    assert_true(add(collector, "{\"id\":1,\"type\":\"a\",\"v\":2}"));
    char *text = all_of(collector);
    assert_non_null(strstr(text, "\"sum\":100000000000000003,"));
    free(text);
    assert_true(add(collector, "{\"id\":1,\"type\":\"a\",\"v\":0.5}"));
    text = all_of(collector);
    assert_non_null(strstr(text, "\"sum\":100000000000000003.5,"));
    free(text);
    static const struct {
        const char *a, *b, *sum;
    } examples[] = {
        {"0.1", "0.2", "0.3"},
        {"100000000000000003", "0.5", "100000000000000003.5"},
        {"12.345", "-12.3451", "-0.0001"},
        {"-0.5", "-0.25", "-0.75"},
        {"1.50", "2.50", "4.00"},
        {"1.5e3", "25E-2", "1500.25"},
        {"999999999999999999.999999999999999999", "0.000000000000000001",
         "1000000000000000000.000000000000000000"},
        {"999999999999999999", "0.000000000000000001", "999999999999999999.000000000000000001"},
        {"0", "-0.0", "0.0"},
        {"1e300", "0.1", "1.0000000000000001e+300"},
    };
    for (size_t index = 0; index < sizeof(examples) / sizeof(examples[0]); index++) {
        char event[200], expected[80];
        rcpt_fold_collector_free(collector);
        collector = rcpt_fold_collector_new(&spec, 1);
        for (int half = 0; half < 2; half++) {
            snprintf(event, sizeof(event), "{\"id\":1,\"type\":\"a\",\"v\":%s}",
                     half == 0 ? examples[index].a : examples[index].b);
            assert_true(add(collector, event));
        }
        snprintf(expected, sizeof(expected), "\"sum\":%s,", examples[index].sum);
        text = all_of(collector);
        if (strstr(text, expected) == NULL)
            fail_msg("%s + %s: %s not in %s", examples[index].a, examples[index].b, expected, text);
        free(text);
    }
    rcpt_fold_collector_free(collector);
}

static void the_same_value_is_kept_once_and_a_set_grows(void **state)
{
    (void)state;
    static const struct rcpt_fold_collect own[] = {{"s", "v", RCPT_FOLD_SET},
                                                   {"l", "v", RCPT_FOLD_LAST}};
    struct rcpt_fold_spec roomy = spec;
    roomy.collects = own;
    roomy.collect_count = 2;
    roomy.max_values = 6;
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&roomy, 1);
    for (unsigned round = 0; round < 2; round++)
        assert_true(add(collector, "{\"id\":1,\"type\":\"a\",\"v\":[1,2,3,4,5,6]}"));
    expect(collector, "r {\"id\":1} 2 {\"v\":{\"s\":[1,2,3,4,5,6],"
                      "\"l\":\"[1,2,3,4,5,6]\"},\"o\":{}}\n");
    rcpt_fold_collector_free(collector);
    rcpt_fold_collector_free(NULL);
}

static void fields_inside_objects_are_found_by_their_path(void **state)
{
    (void)state;
    static const char *const inner[] = {"user.id"};
    static const struct rcpt_fold_collect own[] = {{"city", "user.place.city", RCPT_FOLD_FIRST}};
    struct rcpt_fold_spec nested = spec;
    nested.keys = inner;
    nested.collects = own;
    nested.collect_count = 1;
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&nested, 1);
    assert_true(add(collector, "{\"type\":\"a\",\"user\":{\"id\":7}}"));
    assert_true(add(collector, "{\"type\":\"a\",\"user\":{\"id\":7,\"place\":\"Rome\"}}"));
    assert_true(
        add(collector, "{\"type\":\"a\",\"user\":{\"id\":7,\"place\":{\"city\":\"Rome\"}}}"));
    assert_false(add(collector, "{\"type\":\"a\",\"user\":7}"));
    expect(collector, "r {\"user.id\":7} 3 {\"v\":{\"city\":\"Rome\"},\"o\":{}}\n");
    rcpt_fold_collector_free(collector);
}

static void a_group_knows_the_traces_of_its_events(void **state)
{
    (void)state;
    static const char value[] = "{\"id\":1,\"type\":\"a\"}";
    struct rcpt_fold_spec plain = spec;
    plain.collect_count = 0;
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&plain, 1);
    for (unsigned index = 0; index < 20; index++) {
        char trace[16];
        snprintf(trace, sizeof(trace), "00-%02u-1-01", index / 2);
        struct rcpt_fold_refusal refusal;
        const struct rcpt_fold_event event = {.topic = "t",
                                              .value = value,
                                              .size = strlen(value),
                                              .traceparent = trace,
                                              .traceparent_size = strlen(trace)};
        assert_true(rcpt_fold_collector_add(collector, &event, &refusal));
    }
    /* Each once, and eight of them: a publication has no room for thousands. */
    expect(collector, "r {\"id\":1} 20 {\"v\":{\"traces\":[\"00-00-1-01\",\"00-01-1-01\","
                      "\"00-02-1-01\",\"00-03-1-01\",\"00-04-1-01\",\"00-05-1-01\","
                      "\"00-06-1-01\",\"00-07-1-01\"]},\"o\":{}}\n");
    rcpt_fold_collector_free(collector);
}

static void a_dead_letter_says_why(void **state)
{
    (void)state;
    size_t size = 8 * 1024 * 1024 + 1;
    char *large = rcpt_malloc(size);
    memset(large, ' ', size);
    const struct {
        const char *value;
        size_t size;
        enum rcpt_reject_reason reason;
        const char *detail;
    } letters[] = {
        {NULL, 0, RCPT_REJECT_EMPTY_RECORD, ""},
        {large, size, RCPT_REJECT_RECORD_TOO_LARGE, ""},
        {"{\"id\":\"\xff\"}", 10, RCPT_REJECT_INVALID_UTF8, ""},
        {"{\"id\":\"\xe2\x82(\"}", 12, RCPT_REJECT_INVALID_UTF8, ""},
        {"{\"id\"", 5, RCPT_REJECT_INVALID_JSON, "invalid_json"},
        {"7", 1, RCPT_REJECT_NOT_AN_EVENT, "no JSON object"},
        {"{\"type\":\"a\"}", 12, RCPT_REJECT_NO_GROUP_KEY,
         "no usable group_key for rule r, second"},
    };
    struct rcpt_fold_spec two[] = {spec, spec};
    two[1].rule = "second";
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(two, 2);
    for (size_t index = 0; index < sizeof(letters) / sizeof(letters[0]); index++) {
        struct rcpt_fold_refusal refusal;
        const struct rcpt_fold_event event = {
            .topic = "t", .value = letters[index].value, .size = letters[index].size};
        assert_false(rcpt_fold_collector_add(collector, &event, &refusal));
        assert_int_equal(refusal.reason, letters[index].reason);
        assert_string_equal(refusal.detail, letters[index].detail);
        assert_null(rcpt_fold_collector_key(collector, 0, &event));
    }
    free(large);
    rcpt_fold_collector_free(collector);
}

static void the_key_of_one_event_is_that_of_its_group(void **state)
{
    (void)state;
    static const char good[] = "{\"id\":\"x\",\"type\":\"b\"}", other[] = "{\"id\":\"x\"}";
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&spec, 1);
    struct rcpt_fold_event event = {.topic = "t", .value = good, .size = strlen(good)};
    assert_string_equal(rcpt_fold_collector_key(collector, 0, &event), "{\"id\":\"x\"}");
    event.value = other;
    event.size = strlen(other);
    assert_null(rcpt_fold_collector_key(collector, 0, &event)); /* not of the rule */
    assert_int_equal(rcpt_fold_collector_groups(collector), 0);
    rcpt_fold_collector_free(collector);
}

static void many_groups_are_found_again(void **state)
{
    (void)state;
    struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&spec, 1);
    char json[64];
    for (unsigned round = 0; round < 2; round++)
        for (unsigned index = 0; index < 20000; index++) {
            snprintf(json, sizeof(json), "{\"id\":%u,\"type\":\"a\"}", index);
            assert_true(add(collector, json));
        }
    assert_int_equal(rcpt_fold_collector_groups(collector), 20000);
    assert_true(rcpt_fold_collector_bytes(collector) > 0);
    rcpt_fold_collector_reset(collector);
    expect(collector, "");
    rcpt_fold_collector_free(collector);
}

static void min_and_max_are_exact_beyond_doubles(void **state)
{
    static const struct {
        const char *less, *more;
    } examples[] = {
        {"9007199254740992", "9007199254740993"},
        {"-9007199254740993", "-9007199254740992"},
        {"0.1", "0.10000000000000000001"},
        {"0.99999999999999999999", "1"},
        {"-1", "-0.99999999999999999999"},
        {"1.23456789012345678901e5", "123456.789012345678902"},
        {"12345678901234567890123456788", "1.2345678901234567890123456789e28"},
        {"1e-30", "1.00000000000000000000001e-30"},
    };
    (void)state;
    for (size_t index = 0; index < 2 * sizeof(examples) / sizeof(examples[0]); index++) {
        const char *less = examples[index / 2].less, *more = examples[index / 2].more;
        struct rcpt_fold_collector *collector = rcpt_fold_collector_new(&spec, 1);
        char event[200], expected[100];
        for (int turn = 0; turn < 2; turn++) { /* in both orders */
            snprintf(event, sizeof(event), "{\"id\":1,\"type\":\"a\",\"v\":%s}",
                     (index % 2 == 0) == (turn == 0) ? less : more);
            assert_true(add(collector, event));
        }
        char *text = all_of(collector);
        snprintf(expected, sizeof(expected), "\"min\":%s,\"max\":%s,", less, more);
        assert_non_null(strstr(text, expected));
        free(text);
        rcpt_fold_collector_free(collector);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_of_a_group_become_one_part),
        cmocka_unit_test(sets_take_elements_and_names_and_count_what_has_no_room),
        cmocka_unit_test(what_has_no_usable_key_is_refused),
        cmocka_unit_test(what_the_database_would_refuse_never_gets_there),
        cmocka_unit_test(sums_of_decimals_are_exact),
        cmocka_unit_test(min_and_max_are_exact_beyond_doubles),
        cmocka_unit_test(the_same_value_is_kept_once_and_a_set_grows),
        cmocka_unit_test(fields_inside_objects_are_found_by_their_path),
        cmocka_unit_test(a_group_knows_the_traces_of_its_events),
        cmocka_unit_test(a_dead_letter_says_why),
        cmocka_unit_test(the_key_of_one_event_is_that_of_its_group),
        cmocka_unit_test(many_groups_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

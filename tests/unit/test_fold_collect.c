#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/error.h"
#include "receiptd/outbox/fold_collect.h"

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

static void sums_are_exact_while_all_are_integers(void **state)
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
    assert_non_null(strstr(text, "\"sum\":1e+17,"));
    free(text);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_of_a_group_become_one_part),
        cmocka_unit_test(sets_take_elements_and_names_and_count_what_has_no_room),
        cmocka_unit_test(what_has_no_usable_key_is_refused),
        cmocka_unit_test(what_the_database_would_refuse_never_gets_there),
        cmocka_unit_test(sums_are_exact_while_all_are_integers),
        cmocka_unit_test(many_groups_are_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

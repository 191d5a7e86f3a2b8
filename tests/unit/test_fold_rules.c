/* Rules of the configuration as the database and the collector get them. */
#include <stdio.h>

#include "config_helpers.h"

#include "folds/internal.h"

static const char *const both =
    SMALLEST "folds:\n"
             "  - name: opens\n"
             "    match: {status: OPENED|CLICKED, inbox.city: Rome}\n"
             "    group_key: [campaign_id, inbox.country]\n"
             "    collect: {orgs: {field: org_id, kind: set}, n: {kind: count}}\n"
             "    funnel: true\n"
             "    publish: {kafka: {topic: o, key: campaign_id}}\n"
             "  - name: likes\n"
             "    source: topic\n"
             "    topic: social\n"
             "    match: {type: like}\n"
             "    group_key: [user.id]\n"
             "    collect: {likes: {kind: sum}}\n"
             "    publish: {webhook: {url: \"https://example.com/hook?token=hunter2\"}}\n";

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("%s\nhas no %s", text, part);
}

static void the_database_gets_what_a_rule_says_and_no_secret(void **state)
{
    (void)state;
    struct rcpt_config *config = parse_good(both);
    char *text = folds_rules_text(config);
    assert_has(text, "\"rule\":\"opens\",\"source\":\"transitions\",\"topic\":null,\"match\":"
                     "{\"status\":[\"OPENED\",\"CLICKED\"],\"inbox.city\":[\"Rome\"]}");
    assert_has(text, "\"by_campaign\":true,\"by_org\":false,\"by_status\":false");
    assert_has(text, "\"key_columns\":[\"country\"],\"columns\":[\"country\",\"city\"]");
    assert_has(text, "\"kinds\":{\"\":\"tally\",\"traces\":\"links\",\"orgs\":\"set\",\"n\":"
                     "\"count\"},\"fields\":{\"orgs\":\"org_id\",\"n\":\"n\"}");
    assert_has(text, "\"window\":\"5000 ms\",\"max_hold\":\"60000 ms\"");
    assert_has(text, "\"funnel\":true,\"target\":\"kafka\",\"destination\":\"o\",\"message_key\":"
                     "\"campaign_id\"");
    assert_has(text, "\"rule\":\"likes\",\"source\":\"topic\",\"topic\":\"social\"");
    assert_has(text, "\"key_columns\":[],\"columns\":[],\"kinds\":{\"traces\":\"links\","
                     "\"likes\":\"sum\"}");
    assert_has(text, "\"target\":\"webhook\",\"destination\":\"\"");
    assert_null(strstr(text, "hunter2"));
    free(text);
    rcpt_config_free(config);
}

static void the_collector_gets_a_copy_that_outlives_the_configuration(void **state)
{
    struct rcpt_arena arena;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    struct rcpt_config *config = parse_good(both);
    struct rcpt_fold_spec spec = folds_spec(&config->folds[1], &arena),
                          other = folds_spec(&config->folds[0], &arena);
    assert_int_equal(folds_columns(&config->folds[0], NULL, NULL), 2);
    assert_int_equal(folds_columns(&config->folds[1], NULL, NULL), 0);
    rcpt_config_free(config);
    assert_string_equal(spec.rule, "likes");
    assert_string_equal(spec.topic, "social");
    assert_int_equal(spec.match_count, 1);
    assert_string_equal(spec.matches[0].values, "like");
    assert_string_equal(spec.keys[0], "user.id");
    assert_string_equal(spec.collects[0].path, "likes"); /* not set: as the name */
    assert_int_equal(spec.collects[0].kind, RCPT_FOLD_SUM);
    assert_null(other.topic);
    assert_string_equal(other.collects[0].path, "org_id");
    rcpt_arena_fini(&arena);
}

static void readers_have_the_properties_and_their_way_of_assignment(void **state)
{
    (void)state;
    size_t count = 0;
    struct rcpt_config *config =
        parse_good("kafka: {brokers: b, topics: [t], properties: {client.rack: a}}\n"
                   "postgres: {dsn: x}\n");
    struct rcpt_kafka_property *properties = host_kafka_reader_properties(config, &count);
    assert_int_equal(count, 2);
    assert_string_equal(properties[0].name, "client.rack");
    assert_string_equal(properties[0].value, "a");
    assert_string_equal(properties[1].name, "partition.assignment.strategy");
    assert_string_equal(properties[1].value, "range,roundrobin");
    free(properties);
    rcpt_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_database_gets_what_a_rule_says_and_no_secret),
        cmocka_unit_test(the_collector_gets_a_copy_that_outlives_the_configuration),
        cmocka_unit_test(readers_have_the_properties_and_their_way_of_assignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

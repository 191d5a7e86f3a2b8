/* What a reload takes over, and what it leaves. */
#include "config_helpers.h"

static const char *const base = SMALLEST "lanes: 4\nlog: {level: warn, levels: {kafka: debug}}\n";

static bool contains(const char *const *paths, unsigned count, const char *path)
{
    for (unsigned index = 0; index < count; index++) {
        if (strcmp(paths[index], path) == 0)
            return true;
    }
    return false;
}

static void the_same_configuration_changes_nothing(void **state)
{
    (void)state;
    struct rcpt_config *config = parse_good(base), *fresh = parse_good(base);
    struct rcpt_config_changes changes;
    rcpt_config_take_over(config, fresh, &changes);
    assert_int_equal(changes.applied_count, 0);
    assert_int_equal(changes.needs_restart_count, 0);
    rcpt_config_free(config);
    rcpt_config_free(fresh);
}

static void each_kind_of_key_is_compared_and_only_reloadable_ones_are_taken(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path;
        bool applied;
    } cases[] = {
        {SMALLEST "lanes: 4\nlog: {level: info, levels: {kafka: debug}}\n", "log.level", true},
        {SMALLEST "lanes: 4\nlog: {level: warn, levels: {kafka: info}}\n", "log.levels", true},
        {SMALLEST "lanes: 4\nlog: {level: warn}\n", "log.levels", true},
        {SMALLEST "lanes: 8\nlog: {level: warn, levels: {kafka: debug}}\n", "lanes", false},
        {"kafka: {brokers: \"127.0.0.1:9092\", topics: [dlr-events, more]}\n"
         "postgres: {dsn: \"host=/run/postgresql dbname=receiptd\"}\n"
         "lanes: 4\nlog: {level: warn, levels: {kafka: debug}}\n",
         "kafka.topics", false},
        {"kafka: {brokers: \"127.0.0.1:9092\", topics: [dlr-events]}\n"
         "postgres: {dsn: \"host=/run/postgresql dbname=receiptd password=new\"}\n"
         "lanes: 4\nlog: {level: warn, levels: {kafka: debug}}\n",
         "postgres.dsn", true},
        {"kafka: {brokers: \"127.0.0.1:9092\", topics: [dlr-events], instance_id: i}\n"
         "postgres: {dsn: \"host=/run/postgresql dbname=receiptd\"}\n"
         "lanes: 4\nlog: {level: warn, levels: {kafka: debug}}\n",
         "kafka.instance_id", false},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        struct rcpt_config *config = parse_good(base), *fresh = parse_good(cases[index].text);
        struct rcpt_config_changes changes, again;
        rcpt_config_take_over(config, fresh, &changes);
        assert_int_equal(changes.applied_count + changes.needs_restart_count, 1);
        assert_int_equal(contains(changes.applied, changes.applied_count, cases[index].path),
                         cases[index].applied);
        assert_int_equal(
            contains(changes.needs_restart, changes.needs_restart_count, cases[index].path),
            !cases[index].applied);
        struct rcpt_config *same = parse_good(cases[index].text);
        rcpt_config_take_over(config, same, &again); /* taken: not new a second time */
        assert_int_equal(again.applied_count, 0);
        rcpt_config_free(config);
        rcpt_config_free(fresh);
        rcpt_config_free(same);
    }
}

static void the_ladder_is_compared_field_by_field(void **state)
{
    (void)state;
    struct rcpt_config *config = parse_good(SMALL_LADDER), *fresh = parse_good(SMALLEST),
                       *same = parse_good(SMALLEST);
    struct rcpt_config_changes changes;
    rcpt_config_take_over(config, fresh, &changes); /* whether it may: rcpt_ladder_can_grow */
    assert_int_equal(changes.needs_restart_count, 0);
    assert_true(contains(changes.applied, changes.applied_count, "ladder.statuses"));
    rcpt_config_take_over(config, same, &changes);
    assert_int_equal(changes.applied_count, 0);
    rcpt_config_free(config);
    rcpt_config_free(fresh);
    rcpt_config_free(same);
}

static void the_hash_tells_configurations_apart_but_no_secrets(void **state)
{
    (void)state;
    static const char *const texts[] = {
        SMALLEST, SMALLEST "lanes: 4\n",
        "kafka: {brokers: \"127.0.0.1:9092\", topics: [dlr-events]}\n"
        "postgres: {dsn: \"host=/run/postgresql dbname=receiptd password=one\"}\n",
        "kafka: {brokers: \"127.0.0.1:9092\", topics: [dlr-events]}\n"
        "postgres: {dsn: \"host=/run/postgresql dbname=receiptd password=two\"}\n"};
    char hashes[COUNT_OF(texts)][17];
    for (size_t index = 0; index < COUNT_OF(texts); index++) {
        struct rcpt_config *config = parse_good(texts[index]);
        rcpt_config_hash(config, hashes[index]);
        rcpt_config_free(config);
    }
    assert_string_not_equal(hashes[0], hashes[1]);
    assert_string_not_equal(hashes[0], hashes[2]);
    assert_string_equal(hashes[2], hashes[3]);
}

static void wrong_rooms_levels_and_halves_of_tls_are_refused(void **state)
{
    (void)state;
    expect_error(SMALLEST "log: {levels: {attic: info}}\n",
                 "t.yaml:3:23: log.levels: there is no room \"attic\"",
                 "rooms are app, core, http, kafka and postgres");
    expect_error(SMALLEST "log: {levels: {kafka: loud}}\n",
                 "t.yaml:3:23: log.levels.kafka: \"loud\" is not one of error, warn, info, debug",
                 "");
    expect_error(SMALLEST "http: {tls_key: /k}\n",
                 "t.yaml:3:17: http.tls_certificate and http.tls_key go together: one is not set",
                 "");
    expect_error(SMALLEST "http: {token: short}\n",
                 "t.yaml:3:15: http.token: must be 16 to 4096 bytes long, has 5", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_configuration_changes_nothing),
        cmocka_unit_test(each_kind_of_key_is_compared_and_only_reloadable_ones_are_taken),
        cmocka_unit_test(the_ladder_is_compared_field_by_field),
        cmocka_unit_test(the_hash_tells_configurations_apart_but_no_secrets),
        cmocka_unit_test(wrong_rooms_levels_and_halves_of_tls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

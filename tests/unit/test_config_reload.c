/* What a reload takes over, and what it leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
        {SMALLEST "lanes: 4\nlog: {level: warn, levels: {kafka: debug}}\n"
                  "intake: {dsn: \"host=/run/postgresql user=intake\"}\n",
         "intake.dsn", true},
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

/* ---- properties of Kafka ---- */

#define PROPERTIES(text)                                                                           \
    "kafka: {brokers: b, topics: [t], properties: {" text "}}\npostgres: {dsn: x}\n"
#define WAY_IN "security.protocol: SASL_SSL, sasl.mechanism: "

/* The changes as one text: what is applied, a bar, what needs a restart. */
static void join_changes(const struct rcpt_config_changes *changes, char text[512])
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned index = 0; index < changes->applied_count; index++)
        used += (size_t)snprintf(text + used, 512 - used, "%s ", changes->applied[index]);
    used += (size_t)snprintf(text + used, 512 - used, "|");
    for (unsigned index = 0; index < changes->needs_restart_count; index++)
        used += (size_t)snprintf(text + used, 512 - used, " %s", changes->needs_restart[index]);
}

static void of_kafkas_properties_clients_take_user_and_password_alone(void **state)
{
    (void)state;
#define PASSWORD "kafka.properties.sasl.password"
    static const struct {
        const char *before, *after, *changes;
    } cases[] = {
        {PROPERTIES(WAY_IN "PLAIN, sasl.username: u, sasl.password: one"),
         PROPERTIES(WAY_IN "PLAIN, sasl.username: u, sasl.password: two"), PASSWORD " |"},
        {PROPERTIES(WAY_IN "SCRAM-SHA-512, sasl.username: u, sasl.password: one"),
         PROPERTIES(WAY_IN "SCRAM-SHA-512, sasl.username: v, sasl.password: two"),
         "kafka.properties.sasl.username " PASSWORD " |"},
        {PROPERTIES(WAY_IN "PLAIN, sasl.username: u, sasl.password: one, linger.ms: 1"),
         PROPERTIES(WAY_IN "PLAIN, sasl.username: u, sasl.password: two, linger.ms: 2"),
         PASSWORD " | kafka.properties.linger.ms"},
        /* Tried in another way than the running clients come in. */
        {PROPERTIES(WAY_IN "PLAIN, sasl.username: u, sasl.password: one"),
         PROPERTIES(WAY_IN "SCRAM-SHA-512, sasl.username: u, sasl.password: two"),
         "| kafka.properties.sasl.mechanism " PASSWORD},
        {PROPERTIES(WAY_IN "OAUTHBEARER, sasl.username: u, sasl.password: one"),
         PROPERTIES(WAY_IN "OAUTHBEARER, sasl.username: u, sasl.password: two"), "| " PASSWORD},
        {PROPERTIES("ssl.key.location: /a, client.id: c"),
         PROPERTIES("ssl.key.location: /b, linger.ms: 5"),
         "| kafka.properties.ssl.key.location kafka.properties.linger.ms "
         "kafka.properties.client.id"},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        struct rcpt_config *config = parse_good(cases[index].before),
                           *fresh = parse_good(cases[index].after);
        struct rcpt_config_changes changes;
        char text[512];
        rcpt_config_take_over(config, fresh, &changes);
        join_changes(&changes, text);
        assert_string_equal(text, cases[index].changes);
        rcpt_config_free(config);
        rcpt_config_free(fresh);
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void a_file_of_tls_that_has_changed_needs_a_restart_until_there_is_one(void **state)
{
    (void)state;
    char path[] = "/tmp/test_config_reload_XXXXXX", text[256];
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    write_file(path, "one");
    snprintf(text, sizeof(text), PROPERTIES("ssl.ca.location: \"%s\""), path);
    struct rcpt_config *config = parse_good(text);
    write_file(path, "another");
    for (int turn = 0; turn < 2; turn++) {
        struct rcpt_config *fresh = parse_good(text);
        struct rcpt_config_changes changes;
        rcpt_config_take_over(config, fresh, &changes);
        assert_int_equal(changes.needs_restart_count, 1);
        assert_string_equal(changes.needs_restart[0],
                            "kafka.properties.ssl.ca.location (its file has changed)");
        rcpt_config_free(fresh);
    }
    rcpt_config_free(config);
    unlink(path);
}

static void a_list_of_networks_is_read_again_and_one_with_a_fault_is_refused(void **state)
{
    char path[] = "/tmp/receiptd-test-XXXXXX", text[512], message[512];
    (void)state;
    close(mkstemp(path));
    write_file(path, "192.0.2.0/24\n");
    snprintf(text, sizeof(text), SMALLEST "machine: {networks: \"%s\"}\n", path);
    struct rcpt_config *config = parse_good(text), *fresh = parse_good(text);
    struct rcpt_config_changes changes;
    rcpt_config_take_over(config, fresh, &changes);
    assert_int_equal(changes.applied_count + changes.needs_restart_count, 0);
    rcpt_config_free(fresh);
    write_file(path, "192.0.2.0/24\n198.51.100.0/24\n");
    fresh = parse_good(text);
    rcpt_config_take_over(config, fresh, &changes);
    assert_int_equal(changes.applied_count, 1);
    assert_string_equal(changes.applied[0], "machine.networks (its file has changed)");
    assert_int_equal(rcpt_network_set_count(config->scanners), 2);
    rcpt_config_free(fresh);
    rcpt_config_free(config);
    write_file(path, "192.0.2.0/24\n192.0.2.0.24\n");
    snprintf(
        message, sizeof(message),
        "t.yaml:3:21: machine.networks: %s: line 2: \"192.0.2.0.24\" is neither an address nor "
        "a network",
        path);
    expect_error(text, message,
                 "one a line, such as 192.0.2.0/24 or 2001:db8::/32; # begins a comment");
    unlink(path);
    snprintf(message, sizeof(message),
             "t.yaml:3:21: machine.networks: cannot read file %s: No such file or directory", path);
    expect_error(text, message, "");
}

static void lists_in_entries_are_compared_text_by_text(void **state)
{
    (void)state;
#define RULE(key)                                                                                  \
    SMALLEST "folds: [{name: r, publish: {kafka: {topic: o}}, group_key: [" key "]}]\n"
    struct rcpt_config *config = parse_good(RULE("org_id")), *same = parse_good(RULE("org_id")),
                       *fresh = parse_good(RULE("campaign_id"));
    struct rcpt_config_changes changes;
    rcpt_config_take_over(config, same, &changes);
    assert_int_equal(changes.applied_count + changes.needs_restart_count, 0);
    rcpt_config_take_over(config, fresh, &changes);
    assert_int_equal(changes.applied_count + changes.needs_restart_count, 1);
    assert_true(contains(changes.applied, changes.applied_count, "folds") ||
                contains(changes.needs_restart, changes.needs_restart_count, "folds"));
    rcpt_config_free(config);
    rcpt_config_free(same);
    rcpt_config_free(fresh);
}

/* What is written to standard error meanwhile; the caller frees it. */
static char *logged(void (*write)(const struct rcpt_config *config),
                    const struct rcpt_config *config)
{
    int ends[2], saved = dup(STDERR_FILENO);
    char *text = calloc(1, 4096);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    write(config);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_true(read(ends[0], text, 4095) >= 0);
    close(ends[0]);
    return text;
}

static void apply_and_speak(const struct rcpt_config *config)
{
    rcpt_config_apply_log(config);
    rcpt_log_debug("kafka", "of the component with a level of its own");
    rcpt_log_info("trace", "of a component that is to be silent");
    rcpt_log_info("postgres", "of a component with the common level");
    rcpt_log_warn("postgres", "for all");
}

static void the_logs_levels_are_those_of_the_configuration(void **state)
{
    (void)state;
    struct rcpt_config *config =
        parse_good(SMALLEST "log: {level: warn, levels: {kafka: debug, trace: error}}\n");
    char *text = logged(apply_and_speak, config);
    assert_non_null(strstr(text, "of the component with a level of its own"));
    assert_null(strstr(text, "of a component that is to be silent"));
    assert_null(strstr(text, "of a component with the common level"));
    assert_non_null(strstr(text, "for all"));
    rcpt_config_free(config);
    free(text);
    /* A level that is taken out of the file is the common one again. */
    config = parse_good(SMALLEST "log: {level: warn}\n");
    text = logged(apply_and_speak, config);
    assert_null(strstr(text, "of the component with a level of its own"));
    rcpt_config_free(config);
    free(text);
}

static void a_secret_in_the_file_itself_is_warned_of_once(void **state)
{
    (void)state;
    struct rcpt_config *config =
        parse_good("kafka: {brokers: b, topics: [t], properties: {sasl.password: hunter2}}\n"
                   "postgres: {dsn: x}\n");
    char *text = logged(rcpt_config_warn, config);
    assert_non_null(strstr(text, "kafka.properties.sasl.password: the secret stands in the "
                                 "configuration itself; HINT: put it into a file of its own"));
    assert_null(strstr(text, "hunter2"));
    rcpt_config_free(config);
    free(text);
    setenv("TEST_CONFIG_PASSWORD", "hunter2", 1);
    config = parse_good("kafka: {brokers: b, topics: [t], properties: {sasl.password: "
                        "\"${TEST_CONFIG_PASSWORD}\"}}\npostgres: {dsn: \"host=h\"}\n");
    text = logged(rcpt_config_warn, config);
    assert_non_null(
        strstr(text, "kafka.properties.sasl.password: the secret is in the environment"));
    assert_null(strstr(text, "hunter2"));
    assert_null(strstr(text, "stands in the configuration itself"));
    rcpt_config_free(config);
    free(text);
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

static void wrong_components_levels_and_halves_of_tls_are_refused(void **state)
{
    (void)state;
    expect_error(SMALLEST "log: {levels: {attic: info}}\n",
                 "t.yaml:3:23: log.levels: there is no component \"attic\"",
                 "components are actions, app, commands, config, folds, http, intake, kafka, "
                 "messages, operate, postgres, receipts, trace");
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
        cmocka_unit_test(of_kafkas_properties_clients_take_user_and_password_alone),
        cmocka_unit_test(a_file_of_tls_that_has_changed_needs_a_restart_until_there_is_one),
        cmocka_unit_test(a_list_of_networks_is_read_again_and_one_with_a_fault_is_refused),
        cmocka_unit_test(lists_in_entries_are_compared_text_by_text),
        cmocka_unit_test(the_logs_levels_are_those_of_the_configuration),
        cmocka_unit_test(a_secret_in_the_file_itself_is_warned_of_once),
        cmocka_unit_test(the_ladder_is_compared_field_by_field),
        cmocka_unit_test(the_hash_tells_configurations_apart_but_no_secrets),
        cmocka_unit_test(wrong_components_levels_and_halves_of_tls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Values: numbers with units, names that are near, the environment, secrets in files. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config_helpers.h"

#include "receiptd/base/utf8.h"
#include "receiptd/config/value.h"

static void numbers_are_read_and_written_with_units(void **state)
{
    (void)state;
    static const struct {
        enum rcpt_config_type type;
        const char *text;
        int64_t value; /* -1: refused */
        const char *written;
    } cases[] = {
        {RCPT_CONFIG_INTEGER, "0", 0, "0"},
        {RCPT_CONFIG_INTEGER, "010", 10, "10"},
        {RCPT_CONFIG_INTEGER, "1abc", -1, NULL},
        {RCPT_CONFIG_INTEGER, "0x10", -1, NULL},
        {RCPT_CONFIG_INTEGER, "+5", -1, NULL},
        {RCPT_CONFIG_INTEGER, " 5", -1, NULL},
        {RCPT_CONFIG_INTEGER, "5s", -1, NULL},
        {RCPT_CONFIG_INTEGER, "1e3", -1, NULL},
        {RCPT_CONFIG_INTEGER, "", -1, NULL},
        {RCPT_CONFIG_INTEGER, "9223372036854775807", INT64_MAX, "9223372036854775807"},
        {RCPT_CONFIG_INTEGER, "9223372036854775808", -1, NULL},
        {RCPT_CONFIG_SIZE, "0", 0, "0"},
        {RCPT_CONFIG_SIZE, "1000", 1000, "1000"},
        {RCPT_CONFIG_SIZE, "1024", 1024, "1KiB"},
        {RCPT_CONFIG_SIZE, "24MiB", 25165824, "24MiB"},
        {RCPT_CONFIG_SIZE, "24 MiB", 25165824, "24MiB"},
        {RCPT_CONFIG_SIZE, "2GiB", 2147483648, "2GiB"},
        {RCPT_CONFIG_SIZE, "5kB", 5000, "5000"},
        {RCPT_CONFIG_SIZE, "5MB", 5000000, "5000000"},
        {RCPT_CONFIG_SIZE, "1GB", 1000000000, "1000000000"},
        {RCPT_CONFIG_SIZE, "7B", 7, "7"},
        {RCPT_CONFIG_SIZE, "1.5MiB", -1, NULL},
        {RCPT_CONFIG_SIZE, "24mb", -1, NULL},
        {RCPT_CONFIG_SIZE, "9999999999GiB", -1, NULL},
        {RCPT_CONFIG_RATIO, "0", 0, "0"},
        {RCPT_CONFIG_RATIO, "1", 1000000, "1"},
        {RCPT_CONFIG_RATIO, "0.01", 10000, "0.01"},
        {RCPT_CONFIG_RATIO, "0.250000", 250000, "0.25"},
        {RCPT_CONFIG_RATIO, "0.000001", 1, "0.000001"},
        {RCPT_CONFIG_RATIO, "0.0000001", -1, NULL},
        {RCPT_CONFIG_RATIO, ".5", -1, NULL},
        {RCPT_CONFIG_RATIO, "0.", -1, NULL},
        {RCPT_CONFIG_RATIO, "1%", -1, NULL},
        {RCPT_CONFIG_RATIO, "-0.5", -1, NULL},
        {RCPT_CONFIG_RATIO, "1e-2", -1, NULL},
        {RCPT_CONFIG_DURATION, "0", 0, "0s"},
        {RCPT_CONFIG_DURATION, "250ms", 250, "250ms"},
        {RCPT_CONFIG_DURATION, "5000ms", 5000, "5s"},
        {RCPT_CONFIG_DURATION, "90s", 90000, "90s"},
        {RCPT_CONFIG_DURATION, "60s", 60000, "1m"},
        {RCPT_CONFIG_DURATION, "24h", 86400000, "24h"},
        {RCPT_CONFIG_DURATION, "1d", 86400000, "24h"},
        {RCPT_CONFIG_DURATION, "7d", 604800000, "7d"},
        {RCPT_CONFIG_DURATION, "5", -1, NULL},
        {RCPT_CONFIG_DURATION, "5sec", -1, NULL},
        {RCPT_CONFIG_DURATION, "5MiB", -1, NULL},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        int64_t value = -1;
        char written[RCPT_CONFIG_NUMBER_BYTES];
        bool good = rcpt_config_parse_number(cases[index].type, cases[index].text, &value);
        assert_int_equal(good, cases[index].value >= 0);
        if (!good)
            continue;
        assert_int_equal(value, cases[index].value);
        rcpt_config_format_number(cases[index].type, value, written);
        assert_string_equal(written, cases[index].written);
    }
}

static void a_near_name_is_suggested_and_a_far_one_is_not(void **state)
{
    (void)state;
    static const struct {
        const char *text, *candidate;
        bool near;
    } cases[] = {
        {"brokerz", "brokers", true},      {"broker", "brokers", true}, {"prak", "park", true},
        {"max_event", "max_events", true}, {"lane", "lanes", true},     {"x", "log", false},
        {"colour", "group", false},        {"a", "b", false},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        const char *found = rcpt_text_nearer(cases[index].text, NULL, cases[index].candidate);
        assert_int_equal(found != NULL, cases[index].near);
    }
    assert_string_equal(rcpt_text_nearer("retry_mix", "retry_max", "retry_min"), "retry_max");
}

static void text_is_utf8_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        bool good;
    } cases[] = {
        {"", 0, true},
        {"plain", 5, true},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, true},
        {"a\0b", 3, false},
        {"\xff", 1, false},
        {"\xc3", 1, false},
        {"\xc0\xaf", 2, false},
        {"\xed\xa0\x80", 3, false},
        {"\xf4\x90\x80\x80", 4, false},
        {"\xc3(", 2, false},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++)
        assert_int_equal(rcpt_utf8_is_text(cases[index].text, cases[index].size),
                         cases[index].good);
}

static void the_environment_is_put_into_values(void **state)
{
    (void)state;
    static const struct {
        const char *value, *expected; /* expected NULL: an error … */
        const char *problem;          /* … with this text */
    } cases[] = {
        {"${TEST_CONFIG_HOST}:1", "broker:1", NULL},
        {"a${TEST_CONFIG_HOST}b${TEST_CONFIG_HOST}", "abrokerbbroker", NULL},
        {"${TEST_CONFIG_UNSET:-other}", "other", NULL},
        {"${TEST_CONFIG_EMPTY:-other}", "other", NULL},
        {"${TEST_CONFIG_HOST:-other}", "broker", NULL},
        {"a${TEST_CONFIG_EMPTY}", "a", NULL},
        {"a${TEST_CONFIG_UNSET:-}", "a", NULL},
        {"$${TEST_CONFIG_HOST}", "${TEST_CONFIG_HOST}", NULL},
        {"$$${TEST_CONFIG_HOST}", "$${TEST_CONFIG_HOST}", NULL},
        {"$5 and $TEST_CONFIG_HOST $", "$5 and $TEST_CONFIG_HOST $", NULL},
        {"${TEST_CONFIG_NESTED}", "${TEST_CONFIG_HOST}", NULL},
        {"${TEST_CONFIG_UNSET}", NULL, "environment variable TEST_CONFIG_UNSET is not set"},
        {"${", NULL, "has a ${ that does not begin ${NAME} or ${NAME:-default}"},
        {"${}", NULL, "has a ${ that does not begin ${NAME} or ${NAME:-default}"},
        {"${1A}", NULL, "has a ${ that does not begin ${NAME} or ${NAME:-default}"},
        {"${A-B}", NULL, "has a ${ that does not begin ${NAME} or ${NAME:-default}"},
        {"${TEST_CONFIG_HOST", NULL, "has a ${ that does not begin ${NAME} or ${NAME:-default}"},
        {"${TEST_CONFIG_BAD}", NULL, "is not valid UTF-8 once the environment is put in"},
        {"${TEST_CONFIG_LARGE}", NULL, "is longer than 64 KiB with ${TEST_CONFIG_LARGE}"},
    };
    char *large = calloc(1, 70001), text[256], expected[256];
    setenv("TEST_CONFIG_HOST", "broker", 1);
    setenv("TEST_CONFIG_EMPTY", "", 1);
    setenv("TEST_CONFIG_NESTED", "${TEST_CONFIG_HOST}", 1);
    setenv("TEST_CONFIG_BAD", "\xff", 1);
    setenv("TEST_CONFIG_LARGE", memset(large, 'a', 70000), 1);
    unsetenv("TEST_CONFIG_UNSET");
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        snprintf(text, sizeof(text),
                 "kafka:\n  topics: [t]\n  brokers: \"%s\"\npostgres: {dsn: x}\n",
                 cases[index].value);
        snprintf(expected, sizeof(expected), "t.yaml:3:12: kafka.brokers: %s",
                 cases[index].problem);
        if (cases[index].expected == NULL) {
            expect_error(text, expected, NULL);
            continue;
        }
        struct rcpt_config *config = parse_good(text);
        assert_string_equal(config->kafka.brokers, cases[index].expected);
        rcpt_config_free(config);
    }
    free(large);
}

static void a_long_value_is_refused_with_its_limit(void **state)
{
    (void)state;
    char *value = calloc(1, 70001), *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "postgres: {dsn: x}\nkafka: {topics: [t], brokers: %s}\n",
            (char *)memset(value, 'a', 70000));
    fclose(out);
    expect_error(text, "t.yaml:2:31: kafka.brokers: is longer than 64 KiB", NULL);
    free(value);
    free(text);
}

static void the_environment_fills_numbers_and_choices_too(void **state)
{
    (void)state;
    setenv("TEST_CONFIG_LANES", "16", 1);
    setenv("TEST_CONFIG_POLICY", "insert", 1);
    struct rcpt_config *config =
        parse_good(SMALLEST "lanes: ${TEST_CONFIG_LANES}\nunknown: \"${TEST_CONFIG_POLICY}\"\n");
    assert_int_equal(config->lanes, 16);
    assert_int_equal(config->unknown, RCPT_UNKNOWN_INSERT);
    rcpt_config_free(config);
}

static void the_environment_names_the_instance_where_the_file_does_not(void **state)
{
    static const struct {
        const char *environment, *text, *expected;
    } cases[] = {
        {"host-1", "", "host-1"},
        {"host-1", "  instance_id: mine\n", "mine"},
        {"", "", NULL},
        {NULL, "", NULL},
    };
    (void)state;
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        char text[256];
        if (cases[index].environment != NULL)
            setenv("RECEIPTD_INSTANCE_ID", cases[index].environment, 1);
        else
            unsetenv("RECEIPTD_INSTANCE_ID");
        snprintf(text, sizeof(text), "kafka:\n  topics: [t]\n  brokers: b\n%spostgres: {dsn: x}\n",
                 cases[index].text);
        struct rcpt_config *config = parse_good(text);
        if (cases[index].expected != NULL)
            assert_string_equal(config->kafka.instance_id, cases[index].expected);
        else
            assert_null(config->kafka.instance_id);
        rcpt_config_free(config);
    }
}

static void a_file_that_cannot_be_read_is_no_input(void **state)
{
    (void)state;
    struct rcpt_error error;
    assert_null(rcpt_config_load("/nonexistent/receiptd.yaml", &error));
    assert_int_equal(error.exit_code, EX_NOINPUT);
    assert_string_equal(error.text,
                        "/nonexistent/receiptd.yaml: cannot be read: No such file or directory");
    assert_non_null(strstr(error.hint, "--config"));
    assert_null(rcpt_config_load("/", &error));
    assert_int_equal(error.exit_code, EX_NOINPUT);
    assert_string_equal(error.text, "/: cannot be read: Is a directory");
}

/* A folder with one file, gone at the end of the test. */
struct folder {
    char path[64], file[96];
};

static void make_folder(struct folder *folder, const char *name, const char *text, size_t size)
{
    snprintf(folder->path, sizeof(folder->path), "/tmp/test_config.XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof(folder->file), "%s/%s", folder->path, name);
    FILE *out = fopen(folder->file, "w");
    assert_non_null(out);
    fwrite(text, 1, size, out);
    fclose(out);
}

static void remove_folder(const struct folder *folder)
{
    unlink(folder->file);
    rmdir(folder->path);
}

static struct rcpt_config *parse_secret(const char *name, const char *value,
                                        struct rcpt_error *error)
{
    char text[512];
    snprintf(text, sizeof(text),
             "kafka: {brokers: b, topics: [t], properties: {ssl.key.password: \"%s\"}}\n"
             "postgres: {dsn: x}\n",
             value);
    rcpt_error_clear(error);
    return rcpt_config_parse(name, text, strlen(text), error);
}

static void a_secret_is_read_from_its_file_without_one_newline(void **state)
{
    (void)state;
    struct folder folder;
    struct rcpt_error error;
    char value[128], name[96];
    make_folder(&folder, "pw", "pa\"ss: ${x}\n\n", 13);
    snprintf(value, sizeof(value), "file:%s", folder.file);
    snprintf(name, sizeof(name), "%s/receiptd.yaml", folder.path);
    struct rcpt_config *absolute = parse_secret("t.yaml", value, &error);
    struct rcpt_config *relative = parse_secret(name, "file:pw", &error);
    assert_non_null(absolute);
    assert_non_null(relative);
    assert_string_equal(absolute->kafka.properties[0].value, "pa\"ss: ${x}\n");
    assert_string_equal(relative->kafka.properties[0].value, "pa\"ss: ${x}\n");
    rcpt_config_free(absolute);
    rcpt_config_free(relative);
    remove_folder(&folder);
}

static void an_unreadable_secret_names_key_and_path(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        const char *reason;
    } cases[] = {
        {"a\0b", 3, "not UTF-8 text"},
        {"s\xff", 2, "not UTF-8 text"},
        {NULL, 70000, "larger than 64 KiB"},
    };
    struct rcpt_error error;
    assert_null(parse_secret("t.yaml", "file:/nonexistent/pw", &error));
    assert_string_equal(error.text, "t.yaml:1:65: kafka.properties.ssl.key.password: cannot read "
                                    "file /nonexistent/pw: No such file or directory");
    assert_null(parse_secret("t.yaml", "file:/proc/self/mem", &error));
    assert_string_equal(error.text, "t.yaml:1:65: kafka.properties.ssl.key.password: cannot read "
                                    "file /proc/self/mem: Input/output error");
    assert_null(parse_secret("t.yaml", "file:/tmp", &error));
    assert_string_equal(error.text, "t.yaml:1:65: kafka.properties.ssl.key.password: cannot read "
                                    "file /tmp: not a regular file");
    char *large = calloc(1, 70000);
    memset(large, 'a', 70000);
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        struct folder folder;
        char value[128], expected[256];
        make_folder(&folder, "pw", cases[index].text != NULL ? cases[index].text : large,
                    cases[index].size);
        snprintf(value, sizeof(value), "file:%s", folder.file);
        assert_null(parse_secret("t.yaml", value, &error));
        snprintf(expected, sizeof(expected),
                 "t.yaml:1:65: kafka.properties.ssl.key.password: cannot read file %s: %s",
                 folder.file, cases[index].reason);
        assert_string_equal(error.text, expected);
        remove_folder(&folder);
    }
    free(large);
}

static void a_file_of_another_user_says_who_must_read_it(void **state)
{
    struct folder folder;
    struct rcpt_error error;
    char expected[160];
    (void)state;
    if (geteuid() != 0)
        skip(); /* nobody else's rights can be taken */
    make_folder(&folder, "receiptd.yaml", SMALLEST, strlen(SMALLEST));
    assert_int_equal(chmod(folder.file, 0600), 0);
    assert_int_equal(chmod(folder.path, 0755), 0);
    assert_int_equal(seteuid(65534), 0);
    struct rcpt_config *config = rcpt_config_load(folder.file, &error);
    assert_int_equal(seteuid(0), 0);
    snprintf(expected, sizeof(expected), "%s: cannot be read: Permission denied", folder.file);
    assert_null(config);
    assert_int_equal(error.exit_code, EX_NOINPUT);
    assert_string_equal(error.text, expected);
    assert_string_equal(error.hint, "the user that runs receiptd must be allowed to read it");
    remove_folder(&folder);
}

static void a_file_is_loaded_and_for_a_try_of_the_intake_a_part_of_it_is_enough(void **state)
{
    static const char part[] = "intake: {topic: i, dead_letter_topic: d, accounts: [{name: a, "
                               "gateway: kannel, org_id: o, verify: \"off\"}]}\n";
    struct folder folder;
    struct rcpt_error error;
    (void)state;
    rcpt_error_clear(&error);
    make_folder(&folder, "receiptd.yaml", SMALLEST, strlen(SMALLEST));
    struct rcpt_config *config = rcpt_config_load(folder.file, &error);
    assert_non_null(config);
    assert_string_equal(config->kafka.topics[0], "dlr-events");
    rcpt_config_free(config);
    remove_folder(&folder);
    make_folder(&folder, "receiptd.yaml", part, strlen(part));
    assert_null(rcpt_config_load(folder.file, &error));
    assert_non_null(strstr(error.text, "missing required keys kafka.brokers"));
    config = rcpt_config_load_for_try(folder.file, &error);
    assert_non_null(config);
    assert_string_equal(config->intake.accounts[0].name, "a");
    rcpt_config_free(config);
    remove_folder(&folder);
}

static void a_secret_is_not_shown_by_its_errors(void **state)
{
    (void)state;
    setenv("TEST_CONFIG_SECRET", "hunter2", 1);
    expect_error(SMALLEST "lanes: ${TEST_CONFIG_SECRET}\n",
                 "t.yaml:3:8: lanes: \"${TEST_CONFIG_SECRET}\" is not a whole number", NULL);
    expect_error("kafka: {brokers: b, topics: [\"${TEST_CONFIG_SECRET}/\"]}\npostgres: {dsn: x}\n",
                 "t.yaml:1:30: kafka.topics[0].name: \"${TEST_CONFIG_SECRET}/\" is not a topic "
                 "name: 1 to 249 "
                 "letters, digits, dots, dashes and underscores",
                 NULL);
}

static void a_file_value_is_plain_text_where_no_secret_is_meant(void **state)
{
    (void)state;
    struct rcpt_config *config =
        parse_good("kafka: {brokers: \"file:/nonexistent\", topics: [t]}\npostgres: {dsn: x}\n");
    assert_string_equal(config->kafka.brokers, "file:/nonexistent");
    rcpt_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_and_written_with_units),
        cmocka_unit_test(a_near_name_is_suggested_and_a_far_one_is_not),
        cmocka_unit_test(text_is_utf8_or_refused),
        cmocka_unit_test(the_environment_is_put_into_values),
        cmocka_unit_test(a_long_value_is_refused_with_its_limit),
        cmocka_unit_test(the_environment_fills_numbers_and_choices_too),
        cmocka_unit_test(the_environment_names_the_instance_where_the_file_does_not),
        cmocka_unit_test(a_file_that_cannot_be_read_is_no_input),
        cmocka_unit_test(a_secret_is_read_from_its_file_without_one_newline),
        cmocka_unit_test(an_unreadable_secret_names_key_and_path),
        cmocka_unit_test(a_file_of_another_user_says_who_must_read_it),
        cmocka_unit_test(a_file_is_loaded_and_for_a_try_of_the_intake_a_part_of_it_is_enough),
        cmocka_unit_test(a_secret_is_not_shown_by_its_errors),
        cmocka_unit_test(a_file_value_is_plain_text_where_no_secret_is_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Which properties a user may set, and what librdkafka is told to fetch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sysexits.h>

#include <cmocka.h>

#include "kafka/internal.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static void properties_of_the_protocol_are_refused_with_a_reason(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *reason;
    } cases[] = {
        {"enable.auto.commit", "true", "positions live in PostgreSQL"},
        {"enable.auto.commit", "false", "positions live in PostgreSQL"},
        {"auto.commit.enable", "true", "positions live in PostgreSQL"},
        {"enable.auto.offset.store", "true", "positions live in PostgreSQL"},
        {"auto.offset.reset", "latest", "skip or repeat receipts"},
        {"allow.auto.create.topics", "true", "mistyped topic"},
        {"enable.partition.eof", "false", "lags are read from the end"},
        {"group.id", "x", "key of its own"},
        {"group.instance.id", "x", "key of its own"},
        {"bootstrap.servers", "x", "key of its own"},
        {"metadata.broker.list", "x", "key of its own"},
        {"queued.max.messages.kbytes", "1", "byte budget"},
        {"queued.min.messages", "1", "byte budget"},
        {"log.queue", "false", "serves librdkafka's queues"},
        {"enabled_events", "0", "serves librdkafka's queues"},
        {"plugin.library.paths", "x.so", "foreign code"},
        {"ssl.engine.location", "x.so", "foreign code"},
        {"ssl.engine.id", "dynamic", "foreign code"},
        {"ssl.providers", "default,x", "foreign code"},
        {"sasl.kerberos.kinit.cmd", "touch /tmp/x", "command of the shell"},
        {"test.mock.num.brokers", "3", "imaginary"},
        {"ENABLE.AUTO.COMMIT", "true", "positions live in PostgreSQL"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rcpt_error error = {0};
        assert_false(rcpt_kafka_check_property(cases[i].name, cases[i].value, &error));
        assert_int_equal(error.decision, RCPT_DECISION_FATAL);
        assert_int_equal(error.exit_code, EX_CONFIG);
        assert_non_null(strstr(error.text, cases[i].name));
        assert_non_null(strstr(error.text, cases[i].reason));
        assert_true(error.hint[0] != '\0');
    }
}

static void ordinary_properties_are_accepted(void **state)
{
    (void)state;
    static const struct rcpt_kafka_property cases[] = {
        {"security.protocol", "SASL_SSL"},
        {"sasl.mechanisms", "PLAIN"},
        {"sasl.password", "secret"},
        {"session.timeout.ms", "6000"},
        {"isolation.level", "read_uncommitted"},
        {"fetch.wait.max.ms", "10"},
        {"max.partition.fetch.bytes", "2097152"},
        {"statistics.interval.ms", "5000"},
        {"client.id", "receiptd-a"},
        {"partition.assignment.strategy", "roundrobin"},
        {"partition.assignment.strategy", "range,roundrobin"},
        {"partition.assignment.strategy", " roundrobin , range "},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rcpt_error error = {0};
        assert_true(rcpt_kafka_check_property(cases[i].name, cases[i].value, &error));
    }
}

static void unknown_names_and_bad_values_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *text;
    } cases[] = {
        {"no.such.property", "1", "has no property \"no.such.property\""},
        {"session.timeout.ms", "a", "session.timeout.ms is refused"},
        {"session.timeout.ms", "-1", "session.timeout.ms is refused"},
        {"security.protocol", "carrier-pigeon", "security.protocol is refused"},
        {"partition.assignment.strategy", "sticky", "no strategy \"sticky\""},
        {"partition.assignment.strategy", "", "names no strategy"},
        {"partition.assignment.strategy", "range,cooperative-sticky", "does not go together"},
        {"client.id", "0123456789012345678901234567890123456789012345678901234567890123456789",
         "longer than 64"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rcpt_error error = {0};
        assert_false(rcpt_kafka_check_property(cases[i].name, cases[i].value, &error));
        assert_int_equal(error.exit_code, EX_CONFIG);
        assert_non_null(strstr(error.text, cases[i].text));
    }
}

static void what_breaks_old_librdkafka_depends_on_its_version(void **state)
{
    (void)state;
    bool mended = rd_kafka_version() >= 0x020601ff;
    struct rcpt_error error = {0};
    assert_int_equal(
        rcpt_kafka_check_property("partition.assignment.strategy", "cooperative-sticky", &error),
        mended);
    if (!mended)
        assert_non_null(strstr(error.text, "2.6.1"));
    assert_int_equal(rcpt_kafka_check_property("client.rack", "a", &error), mended);
}

static void a_secret_is_not_repeated_in_an_error(void **state)
{
    (void)state;
    struct rcpt_error error = {0};
    if (!rcpt_kafka_check_property("ssl.key.pem", "my-secret-key", &error))
        assert_null(strstr(error.text, "my-secret-key"));
    assert_false(rcpt_kafka_check_property("sasl.password.typo", "hunter2", &error));
    assert_null(strstr(error.text, "hunter2"));
}

static void the_fetch_budget_is_shared_by_the_partitions(void **state)
{
    (void)state;
    static const struct {
        size_t budget, partitions, queued_kbytes, queued_messages, fetch_bytes;
    } cases[] = {
        {24u << 20, 8, 3072, 3072, 98304},    {24u << 20, 1, 24576, 24576, 786432},
        {24u << 20, 1000, 1024, 1024, 65536}, {1u << 30, 2, 65536, 131072, 1048576},
        {24u << 20, 0, 24576, 24576, 786432}, {0, 4, 1024, 1024, 65536},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct fetch_limits limits = rcpt_kafka_fetch_limits(cases[i].budget, cases[i].partitions);
        assert_int_equal(limits.queued_kbytes, cases[i].queued_kbytes);
        assert_int_equal(limits.queued_messages, cases[i].queued_messages);
        assert_int_equal(limits.fetch_bytes, cases[i].fetch_bytes);
    }
}

static void assert_conf(const rd_kafka_conf_t *conf, const char *name, const char *expected)
{
    char value[128] = "";
    size_t size = sizeof(value);
    assert_int_equal(rd_kafka_conf_get(conf, name, value, &size), RD_KAFKA_CONF_OK);
    assert_string_equal(value, expected);
}

static void the_users_properties_replace_defaults_but_not_the_protocols(void **state)
{
    (void)state;
    struct rcpt_kafka_property properties[] = {
        {"fetch.wait.max.ms", "20"},
        {"max.partition.fetch.bytes", "2000000"},
    };
    const char *topics[] = {"t"};
    struct rcpt_kafka_settings settings = {.brokers = "127.0.0.1:1",
                                           .group = "g",
                                           .instance_id = "i",
                                           .topics = topics,
                                           .topic_count = 1,
                                           .properties = properties,
                                           .property_count = LENGTH(properties)};
    struct fetch_limits limits = rcpt_kafka_fetch_limits(24u << 20, 8);
    struct rcpt_error error = {0};
    rd_kafka_conf_t *conf = rcpt_kafka_conf_new(&settings, &limits, &error);
    assert_non_null(conf);
    assert_conf(conf, "group.id", "g");
    assert_conf(conf, "group.instance.id", "i");
    assert_conf(conf, "client.id", "receiptd");
    assert_conf(conf, "enable.auto.commit", "false");
    assert_conf(conf, "auto.offset.reset", "error");
    assert_conf(conf, "isolation.level", "read_committed");
    assert_conf(conf, "check.crcs", "true");
    assert_conf(conf, "queued.max.messages.kbytes", "3072");
    assert_conf(conf, "queued.min.messages", "3072");
    assert_conf(conf, "fetch.wait.max.ms", "20");
    assert_conf(conf, "fetch.message.max.bytes", "2000000");
    rd_kafka_conf_destroy(conf);

    properties[0] = (struct rcpt_kafka_property){"enable.auto.commit", "true"};
    assert_null(rcpt_kafka_conf_new(&settings, &limits, &error));
    assert_int_equal(error.exit_code, EX_CONFIG);
}

/* Where it cannot be told how soon, it is woken instead; whoever minds may say how often. */
static void a_full_queue_is_looked_at_again_soon(void **state)
{
    (void)state;
    const char *topics[] = {"t"};
    struct rcpt_kafka_property rarely = {"topic.metadata.refresh.interval.ms", "60000"};
    struct rcpt_kafka_settings settings = {
        .brokers = "127.0.0.1:9", .group = "g", .topics = topics, .topic_count = 1};
    struct fetch_limits limits = rcpt_kafka_fetch_limits(24u << 20, 8);
    struct rcpt_error error = {0};
    char backoff[32];
    size_t size = sizeof(backoff);
    rd_kafka_conf_t *conf = rcpt_kafka_conf_new(&settings, &limits, &error);
    assert_non_null(conf);
    if (rd_kafka_conf_get(conf, "fetch.queue.backoff.ms", backoff, &size) == RD_KAFKA_CONF_OK)
        assert_string_equal(backoff, "10");
    else
        assert_conf(conf, "topic.metadata.refresh.interval.ms", "100");
    rd_kafka_conf_destroy(conf);

    conf = rcpt_kafka_conf_new(&settings, NULL, &error); /* for a look-up: it fetches nothing */
    assert_non_null(conf);
    assert_conf(conf, "topic.metadata.refresh.interval.ms", "10000");
    rd_kafka_conf_destroy(conf);

    settings.properties = &rarely;
    settings.property_count = 1;
    conf = rcpt_kafka_conf_new(&settings, &limits, &error);
    assert_non_null(conf);
    assert_conf(conf, rarely.name, rarely.value);
    rd_kafka_conf_destroy(conf);
}

/* A session of the user's own, too short for the default, would end at once. */
static void heartbeats_fit_the_session(void **state)
{
    static const struct {
        struct rcpt_kafka_property properties[2];
        size_t count;
        const char *session, *heartbeat;
    } cases[] = {
        {{{NULL, NULL}}, 0, "10000", "1000"},
        {{{"session.timeout.ms", "45000"}}, 1, "45000", "1000"},
        {{{"session.timeout.ms", "1500"}}, 1, "1500", "500"},
        {{{"session.timeout.ms", "6000"}, {"heartbeat.interval.ms", "250"}}, 2, "6000", "250"},
    };
    (void)state;
    const char *topics[] = {"t"};
    struct fetch_limits limits = rcpt_kafka_fetch_limits(24u << 20, 8);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rcpt_error error = {0};
        struct rcpt_kafka_settings settings = {.brokers = "127.0.0.1:9",
                                               .group = "g",
                                               .topics = topics,
                                               .topic_count = 1,
                                               .properties = cases[i].properties,
                                               .property_count = cases[i].count};
        rd_kafka_conf_t *conf = rcpt_kafka_conf_new(&settings, &limits, &error);
        assert_non_null(conf);
        assert_conf(conf, "session.timeout.ms", cases[i].session);
        assert_conf(conf, "heartbeat.interval.ms", cases[i].heartbeat);
        rd_kafka_conf_destroy(conf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(properties_of_the_protocol_are_refused_with_a_reason),
        cmocka_unit_test(ordinary_properties_are_accepted),
        cmocka_unit_test(unknown_names_and_bad_values_are_refused),
        cmocka_unit_test(what_breaks_old_librdkafka_depends_on_its_version),
        cmocka_unit_test(a_secret_is_not_repeated_in_an_error),
        cmocka_unit_test(the_fetch_budget_is_shared_by_the_partitions),
        cmocka_unit_test(the_users_properties_replace_defaults_but_not_the_protocols),
        cmocka_unit_test(a_full_queue_is_looked_at_again_soon),
        cmocka_unit_test(heartbeats_fit_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

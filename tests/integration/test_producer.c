/* The producer of the intake when things break: librdkafka's mock cluster, and a cluster that is
 * not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include <cmocka.h>

#include "kafka_harness.h"
#include "receiptd/kafka/producer.h"

/* wants rdkafka.h before it */
#include <librdkafka/rdkafka_mock.h>

#define PRODUCE 0

struct fixture {
    uv_loop_t loop;
    rd_kafka_t *host; /* of the mock cluster */
    rd_kafka_mock_cluster_t *mock;
    const char *topics[1];
    struct rcpt_producer *producer;
    unsigned delivered, rejected, failed, troubles;
    int32_t partitions;
    bool healthy, closed;
    char code[32];
};

static void on_delivered(void *context, void *tag, const struct rcpt_error *error)
{
    struct fixture *fixture = context;
    assert_ptr_equal(tag, fixture);
    if (error == NULL)
        fixture->delivered++;
    else if (error->decision == RCPT_DECISION_REJECT)
        fixture->rejected++;
    else
        fixture->failed++;
    if (error != NULL)
        snprintf(fixture->code, sizeof(fixture->code), "%s", error->code);
}

static void on_partitions(void *context, size_t topic, int32_t count)
{
    struct fixture *fixture = context;
    assert_int_equal(topic, 0);
    fixture->partitions = count;
}

static void on_health(void *context, bool healthy, const struct rcpt_error *error)
{
    struct fixture *fixture = context;
    fixture->healthy = healthy;
    fixture->troubles += !healthy;
    assert_true(healthy == (error == NULL));
}

static void on_closed(void *context)
{
    struct fixture *fixture = context;
    fixture->closed = true;
}

static int set_up(void **state)
{
    char text[128];
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    uv_loop_init(&fixture->loop);
    fixture->host = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof(text));
    fixture->mock = rd_kafka_mock_cluster_new(fixture->host, 1);
    fixture->topics[0] = "receipts";
    rd_kafka_mock_topic_create(fixture->mock, "receipts", 4, 1);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    rd_kafka_mock_cluster_destroy(fixture->mock);
    rd_kafka_destroy(fixture->host);
    int busy = uv_loop_close(&fixture->loop);
    free(fixture);
    return busy;
}

static struct rcpt_producer_settings settings_of(struct fixture *fixture)
{
    return (struct rcpt_producer_settings){
        .loop = &fixture->loop,
        .brokers = rd_kafka_mock_cluster_bootstraps(fixture->mock),
        .topics = fixture->topics,
        .topic_count = 1,
        .compression = "none",
        .budget_bytes = 10000,
        .max_record_bytes = 1 << 20,
        .delivery_timeout_ms = 10000,
        .callbacks = {.context = fixture,
                      .on_delivered = on_delivered,
                      .on_partitions = on_partitions,
                      .on_health = on_health,
                      .on_closed = on_closed},
    };
}

static void begin(struct fixture *fixture)
{
    struct rcpt_error error;
    struct rcpt_producer_settings settings = settings_of(fixture);
    fixture->producer = rcpt_producer_new(&settings, &error);
    assert_non_null(fixture->producer);
    RUN_UNTIL(&fixture->loop, 10000, fixture->partitions == 4);
}

static enum rcpt_producer_sent send_one(struct fixture *fixture, size_t size)
{
    struct rcpt_producer_record record = {
        .partition = 0, .value = calloc(1, size), .value_size = size, .tag = fixture};
    enum rcpt_producer_sent sent = rcpt_producer_send(fixture->producer, &record);
    if (sent != RCPT_PRODUCER_TAKEN)
        free(record.value);
    return sent;
}

static void end(struct fixture *fixture, int64_t deadline_ms)
{
    rcpt_producer_close(fixture->producer, deadline_ms);
    rcpt_producer_close(fixture->producer, deadline_ms);
    RUN_UNTIL(&fixture->loop, (int)deadline_ms + 3000, fixture->closed);
}

static void refuse(struct fixture *fixture, const char *name, const char *value, const char *said)
{
    struct rcpt_error error;
    struct rcpt_kafka_property property = {name, value};
    struct rcpt_producer_settings settings = settings_of(fixture);
    settings.properties = &property;
    settings.property_count = 1;
    assert_null(rcpt_producer_new(&settings, &error));
    assert_int_equal(error.exit_code, EX_CONFIG);
    assert_non_null(strstr(error.text, said));
}

static void what_would_take_the_promise_away_is_refused(void **state)
{
    refuse(*state, "acks", "1", "kafka property acks cannot be set: the intake needs it");
    refuse(*state, "Message.Timeout.Ms", "1", "Message.Timeout.Ms cannot be set");
    refuse(*state, "max.in.flight", "9", "librdkafka refuses the producer: ");
    refuse(*state, "socket.timeout.ms", "soon", "socket.timeout.ms");
}

static void the_budget_is_kept(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    assert_int_equal(send_one(fixture, 6000), RCPT_PRODUCER_TAKEN);
    assert_int_equal(send_one(fixture, 6000), RCPT_PRODUCER_FULL);
    assert_int_equal(rcpt_producer_records(fixture->producer), 1);
    RUN_UNTIL(&fixture->loop, 10000, fixture->delivered == 1);
    assert_int_equal(send_one(fixture, 6000), RCPT_PRODUCER_TAKEN);
    RUN_UNTIL(&fixture->loop, 10000, fixture->delivered == 2);
    end(fixture, 3000);
    assert_int_equal(fixture->failed, 0);
}

/* It is no fault of the broker's: the next record lands, and nobody is called unhealthy. */
static void a_record_that_the_broker_does_not_take_is_rejected_alone(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    RUN_UNTIL(&fixture->loop, 10000, fixture->healthy);
    rd_kafka_mock_push_request_errors(fixture->mock, PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    assert_int_equal(send_one(fixture, 100), RCPT_PRODUCER_TAKEN);
    RUN_UNTIL(&fixture->loop, 10000, fixture->rejected == 1);
    assert_string_equal(fixture->code, "MSG_SIZE_TOO_LARGE");
    assert_int_equal(fixture->troubles, 0);
    assert_int_equal(send_one(fixture, 100), RCPT_PRODUCER_TAKEN);
    RUN_UNTIL(&fixture->loop, 20000, fixture->delivered == 1);
    end(fixture, 3000);
}

/* The broker has lost what the idempotent protocol counts on: the record is given back, nobody
 * knows whether it is there, and a new client takes the place of the one that can do nothing any
 * more. */
static void a_client_that_has_failed_for_good_is_made_anew(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    assert_int_equal(send_one(fixture, 100), RCPT_PRODUCER_TAKEN);
    RUN_UNTIL(&fixture->loop, 10000, fixture->delivered == 1);
    rd_kafka_mock_push_request_errors(fixture->mock, PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_int_equal(send_one(fixture, 100), RCPT_PRODUCER_TAKEN);
    RUN_UNTIL(&fixture->loop, 10000, fixture->failed == 1);
    assert_int_equal(fixture->troubles, 1);
    RUN_UNTIL(&fixture->loop, 10000, send_one(fixture, 100) == RCPT_PRODUCER_TAKEN);
    RUN_UNTIL(&fixture->loop, 10000, fixture->delivered == 2);
    assert_true(fixture->healthy);
    end(fixture, 3000);
}

static void closing_gives_back_what_is_not_acknowledged(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    rd_kafka_mock_broker_set_down(fixture->mock, 1);
    assert_int_equal(send_one(fixture, 100), RCPT_PRODUCER_TAKEN);
    run_for(&fixture->loop, 100);
    end(fixture, 3000);
    assert_int_equal(fixture->failed, 1);
    assert_int_equal(fixture->delivered, 0);
}

static void brokers_that_never_answer_hold_up_no_end(void **state)
{
    struct fixture *fixture = *state;
    struct rcpt_error error;
    struct rcpt_producer_settings settings = settings_of(fixture);
    rd_kafka_mock_broker_set_rtt(fixture->mock, 1, 60000);
    fixture->producer = rcpt_producer_new(&settings, &error);
    assert_non_null(fixture->producer);
    run_for(&fixture->loop, 300);
    uint64_t begun = uv_hrtime();
    end(fixture, 500);
    assert_true(uv_hrtime() - begun < UINT64_C(10000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_would_take_the_promise_away_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_budget_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_record_that_the_broker_does_not_take_is_rejected_alone,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_has_failed_for_good_is_made_anew, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(closing_gives_back_what_is_not_acknowledged, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(brokers_that_never_answer_hold_up_no_end, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

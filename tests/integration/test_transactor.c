/* The transactions of folds when things break, by librdkafka's mock cluster; and a history that
 * ends in the mark of a transaction, by a real broker (RECEIPTD_TEST_BROKERS). What may be told as
 * RETRY is certain not to be visible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kafka_harness.h"
#include "receiptd/kafka/history.h"
#include "receiptd/kafka/transactor.h"

/* wants rdkafka.h before it */
#include <librdkafka/rdkafka_mock.h>

#define PRODUCE           0
#define OFFSET_FETCH      9
#define INIT_PRODUCER_ID  22
#define TXN_OFFSET_COMMIT 28
#define END_TXN           26
#define MARKS             "receipts"
#define PUBLICATIONS      "publications"

struct fixture {
    uv_loop_t loop;
    rd_kafka_t *host; /* of the mock cluster */
    rd_kafka_mock_cluster_t *mock;
    struct rcpt_transactor *transactor;
    unsigned opened, published, answers; /* answers: with and without error */
    int64_t mark;
    struct rcpt_error error;
    bool closed;
};

static void note(struct fixture *fixture, const struct rcpt_error *error)
{
    fixture->answers++;
    fixture->error = error != NULL ? *error : (struct rcpt_error){0};
}

static void on_opened(void *context, int64_t mark, const struct rcpt_error *error)
{
    struct fixture *fixture = context;
    fixture->opened += error == NULL;
    fixture->mark = mark;
    note(fixture, error);
}

static void on_published(void *context, const struct rcpt_error *error)
{
    struct fixture *fixture = context;
    fixture->published += error == NULL;
    note(fixture, error);
}

static void on_closed(void *context)
{
    ((struct fixture *)context)->closed = true;
}

static int set_up_plain(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    uv_loop_init(&fixture->loop);
    *state = fixture;
    return 0;
}

static int set_up(void **state)
{
    char text[128];
    set_up_plain(state);
    struct fixture *fixture = *state;
    fixture->host = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof(text));
    fixture->mock = rd_kafka_mock_cluster_new(fixture->host, 1);
    rd_kafka_mock_topic_create(fixture->mock, MARKS, 1, 1);
    rd_kafka_mock_topic_create(fixture->mock, PUBLICATIONS, 1, 1);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    if (fixture->mock != NULL) {
        rd_kafka_mock_cluster_destroy(fixture->mock);
        rd_kafka_destroy(fixture->host);
    }
    int busy = uv_loop_close(&fixture->loop);
    free(fixture);
    return busy;
}

static struct rcpt_transactor *make(struct fixture *fixture, const char *brokers,
                                    const char *mark_topic, const char *id)
{
    /* Of a site's file; the last one is for consumers alone. */
    static const struct rcpt_kafka_property properties[] = {{"socket.timeout.ms", "5000"},
                                                            {"fetch.wait.max.ms", "20"}};
    struct rcpt_transactor_settings settings = {
        .loop = &fixture->loop,
        .brokers = brokers,
        .properties = properties,
        .property_count = 2,
        .id = id,
        .mark_topic = mark_topic,
        .context = fixture,
        .on_opened = on_opened,
        .on_published = on_published,
    };
    return rcpt_transactor_new(&settings);
}

static void begin(struct fixture *fixture)
{
    fixture->transactor =
        make(fixture, rd_kafka_mock_cluster_bootstraps(fixture->mock), MARKS, "folds.0");
}

#define AWAIT_ANSWER(fixture, number)                                                              \
    RUN_UNTIL(&(fixture)->loop, 20000,                                                             \
              (rcpt_transactor_tick((fixture)->transactor), (fixture)->answers == (number)))

static void open_it(struct fixture *fixture)
{
    unsigned before = fixture->answers;
    rcpt_transactor_open(fixture->transactor);
    assert_true(rcpt_transactor_is_busy(fixture->transactor));
    AWAIT_ANSWER(fixture, before + 1);
    assert_string_equal(fixture->error.text, "");
    assert_true(rcpt_transactor_is_open(fixture->transactor));
}

static void publish(struct fixture *fixture, const char *topic, int64_t mark)
{
    unsigned before = fixture->answers;
    const struct rcpt_transactor_record records[] = {
        {topic, RCPT_TEXT("k"), RCPT_TEXT("{}"), {{"id", RCPT_TEXT("id-1")}}},
        {topic, {NULL, 0}, RCPT_TEXT("{}"), {{NULL, {NULL, 0}}}},
        {topic, RCPT_TEXT("gone"), {NULL, 0}, {{"a", RCPT_TEXT("1")}, {"b", RCPT_TEXT("")}}}};
    rcpt_transactor_publish(fixture->transactor, records, 3, mark);
    AWAIT_ANSWER(fixture, before + 1);
}

static void end(struct fixture *fixture)
{
    rcpt_transactor_close(fixture->transactor, on_closed, fixture);
    RUN_UNTIL(&fixture->loop, 20000, fixture->closed);
}

static void a_mark_that_was_committed_is_read_at_the_next_opening(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    open_it(fixture);
    assert_int_equal(fixture->mark, -1);
    publish(fixture, PUBLICATIONS, 17);
    assert_int_equal(fixture->published, 1);
    rcpt_transactor_drop(fixture->transactor);
    assert_false(rcpt_transactor_is_open(fixture->transactor));
    open_it(fixture);
    open_it(fixture); /* while it is open: a new client takes the place of the former one */
    end(fixture);
}

/* The broker takes no record: rolled back, and the same client goes on. */
static void what_the_broker_refuses_is_rolled_back(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    open_it(fixture);
    rd_kafka_mock_push_request_errors(fixture->mock, PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    publish(fixture, PUBLICATIONS, 17);
    assert_int_equal(fixture->published, 0);
    assert_int_equal(fixture->error.decision, RCPT_DECISION_RETRY);
    assert_true(rcpt_transactor_is_open(fixture->transactor));
    publish(fixture, PUBLICATIONS, 17); /* librdkafka has to give up the numbers of what was lost */
    if (fixture->published == 0)
        publish(fixture, PUBLICATIONS, 17);
    assert_int_equal(fixture->published, 1);
    end(fixture);
}

static void a_mark_that_is_refused_rolls_everything_back(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    open_it(fixture);
    rd_kafka_mock_push_request_errors(fixture->mock, TXN_OFFSET_COMMIT, 1,
                                      RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED);
    publish(fixture, PUBLICATIONS, 17);
    assert_int_equal(fixture->error.decision, RCPT_DECISION_RETRY);
    assert_non_null(strstr(fixture->error.text, "the mark of folds cannot be sent"));
    publish(fixture, PUBLICATIONS, 17);
    assert_int_equal(fixture->published, 1);
    end(fixture);
}

/* Another instance has the id by now: nothing more by this client. */
static void a_client_that_is_fenced_is_given_up(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    open_it(fixture);
    rd_kafka_mock_push_request_errors(fixture->mock, END_TXN, 1,
                                      RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH);
    publish(fixture, PUBLICATIONS, 17);
    assert_int_equal(fixture->error.decision, RCPT_DECISION_RECONNECT);
    assert_non_null(strstr(fixture->error.text, "was not committed"));
    assert_false(rcpt_transactor_is_open(fixture->transactor));
    open_it(fixture);
    publish(fixture, PUBLICATIONS, 17);
    assert_int_equal(fixture->published, 1);
    end(fixture);
}

static void an_opening_that_is_refused_says_why(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    rd_kafka_mock_push_request_errors(fixture->mock, INIT_PRODUCER_ID, 1,
                                      RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    rcpt_transactor_open(fixture->transactor);
    AWAIT_ANSWER(fixture, 1);
    assert_int_equal(fixture->error.decision, RCPT_DECISION_RETRY);
    assert_non_null(strstr(fixture->error.code, "TRANSACTIONAL_ID_AUTH"));
    assert_non_null(strstr(fixture->error.text, "transactions of folds cannot be initialised"));
    assert_false(rcpt_transactor_is_open(fixture->transactor));
    open_it(fixture);
    end(fixture);
}

/* An answer that nobody waits for any more is still given; the client goes. */
static void what_is_given_up_while_it_is_busy_is_answered_and_goes(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    rcpt_transactor_open(fixture->transactor);
    rcpt_transactor_drop(fixture->transactor);
    AWAIT_ANSWER(fixture, 1);
    assert_false(rcpt_transactor_is_open(fixture->transactor));
    RUN_UNTIL(&fixture->loop, 20000, rcpt_transactor_is_settled(fixture->transactor));
    rcpt_transactor_open(fixture->transactor);
    rcpt_transactor_close(fixture->transactor, on_closed, fixture);
    RUN_UNTIL(&fixture->loop, 20000, fixture->closed);
    assert_int_equal(fixture->answers, 2);
    assert_int_equal(fixture->error.decision, RCPT_DECISION_RECONNECT);
}

static bool count(void *context, const struct rcpt_kafka_message *message)
{
    bool is_gone = message->key_size == 4;
    assert_int_equal(message->value_size, is_gone ? 0 : 2);
    assert_int_equal(message->value == NULL, is_gone);
    ++*(unsigned *)context;
    return true;
}

/* The last offset of the partition is no record: only the end of the partition says that all is
 * read. */
static void a_history_ends_behind_the_mark_of_a_transaction(void **state)
{
    struct fixture *fixture = *state;
    char topic[64], missing[64], id[64];
    unsigned records = 0;
    const char *brokers = test_brokers();
    if (brokers == NULL)
        skip();
    unique_name(topic, sizeof(topic), "t");
    unique_name(missing, sizeof(missing), "none");
    unique_name(id, sizeof(id), "folds");
    topic_create(brokers, topic, 1);
    fixture->transactor = make(fixture, brokers, topic, id);
    open_it(fixture);
    publish(fixture, topic, 17);
    assert_int_equal(fixture->published, 1);
    open_it(fixture);
    assert_int_equal(fixture->mark, 17);
    end(fixture);
    struct rcpt_error error = {0};
    struct rcpt_kafka_history history = {
        .brokers = brokers, .topic = topic, .context = &records, .on_message = count};
    assert_true(rcpt_kafka_read_history(&history, &error));
    assert_int_equal(records, 3);
    history.topic = missing;
    assert_false(rcpt_kafka_read_history(&history, &error));
    assert_non_null(strstr(error.text, missing));
    const struct rcpt_kafka_property bad = {"fetch.min.bytes", "few"};
    history.properties = &bad;
    history.property_count = 1;
    assert_false(rcpt_kafka_read_history(&history, &error));
    assert_non_null(strstr(error.text, "fetch.min.bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_mark_that_was_committed_is_read_at_the_next_opening,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_broker_refuses_is_rolled_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_mark_that_is_refused_rolls_everything_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_client_that_is_fenced_is_given_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_opening_that_is_refused_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_given_up_while_it_is_busy_is_answered_and_goes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_history_ends_behind_the_mark_of_a_transaction,
                                        set_up_plain, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

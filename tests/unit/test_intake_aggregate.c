/* Events of many requests in one record for each partition, and tickets that settle with the last
 * of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/gateways/aggregate.h"

struct request {
    struct rcpt_ticket ticket; /* first */
    unsigned settled;
};

static void on_settled(struct rcpt_ticket *ticket)
{
    ((struct request *)ticket)->settled++;
}

static const struct rcpt_aggregate_origin origin = {"acme", 1000, "", NULL};

static struct rcpt_aggregate *begin(uint32_t max_events, size_t max_bytes, uint32_t partitions)
{
    struct rcpt_aggregate_settings settings = {max_events, max_bytes, 5, 3};
    struct rcpt_aggregate *aggregate = rcpt_aggregate_new(&settings);
    rcpt_aggregate_set_partitions(aggregate, partitions);
    return aggregate;
}

static void add(struct rcpt_aggregate *aggregate, uint64_t hash, const char *json,
                struct request *request, int64_t now_ms)
{
    rcpt_aggregate_add(aggregate, hash, json, strlen(json), &request->ticket, &origin, now_ms);
}

static void assert_value(const struct rcpt_aggregate_batch *batch, const char *value)
{
    assert_int_equal(batch->json.size, strlen(value));
    assert_memory_equal(batch->json.bytes, value, strlen(value));
}

static void test_nothing_waits_while_its_partition_is_idle(void **state)
{
    (void)state;
    struct rcpt_aggregate *aggregate = begin(100, 1000, 4);
    struct request request = {0};
    rcpt_ticket_begin(&request.ticket, on_settled);
    add(aggregate, 5, "{\"a\":1}", &request, 0);
    add(aggregate, 9, "{\"a\":2}", &request, 0);
    add(aggregate, 2, "{\"a\":3}", &request, 0);
    rcpt_ticket_release(&request.ticket, true);
    struct rcpt_aggregate_batch *first = rcpt_aggregate_next(aggregate, 0),
                                *second = rcpt_aggregate_next(aggregate, 0);
    assert_null(rcpt_aggregate_next(aggregate, 0));
    assert_int_equal(first->partition, 1);
    assert_value(first, "[{\"a\":1},{\"a\":2}]");
    assert_int_equal(second->partition, 2);
    assert_value(second, "[{\"a\":3}]");
    assert_int_equal(request.settled, 0);
    rcpt_aggregate_settle(aggregate, second, true);
    assert_int_equal(request.settled, 0);
    rcpt_aggregate_settle(aggregate, first, true);
    assert_int_equal(request.settled, 1);
    assert_false(request.ticket.failed);
    assert_int_equal(rcpt_aggregate_bytes(aggregate), 0);
    rcpt_aggregate_free(aggregate);
}

static void test_what_comes_while_a_record_flies_is_the_next_one(void **state)
{
    (void)state;
    struct rcpt_aggregate *aggregate = begin(100, 1000, 1);
    struct request requests[4] = {0};
    for (int i = 0; i < 4; i++)
        rcpt_ticket_begin(&requests[i].ticket, on_settled);
    add(aggregate, 0, "1", &requests[0], 0);
    struct rcpt_aggregate_batch *first = rcpt_aggregate_next(aggregate, 0);
    for (int i = 1; i < 4; i++)
        add(aggregate, 0, "2", &requests[i], 1);
    assert_null(rcpt_aggregate_next(aggregate, 4));
    assert_true(rcpt_aggregate_lingers(aggregate));
    rcpt_aggregate_settle(aggregate, first, true);
    struct rcpt_aggregate_batch *second = rcpt_aggregate_next(aggregate, 4);
    assert_value(second, "[2,2,2]");
    assert_int_equal(second->events, 3);
    rcpt_aggregate_settle(aggregate, second, false);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(requests[i].settled, 0);
        rcpt_ticket_release(&requests[i].ticket, true);
        assert_int_equal(requests[i].settled, 1);
        assert_int_equal(requests[i].ticket.failed, i > 0);
    }
    rcpt_aggregate_free(aggregate);
}

static void test_a_crowd_waits_for_more_and_a_lone_client_never(void **state)
{
    (void)state;
    struct rcpt_aggregate *aggregate = begin(100, 1000, 1);
    struct request requests[3] = {0};
    for (int i = 0; i < 3; i++)
        rcpt_ticket_begin(&requests[i].ticket, on_settled);
    for (int64_t now = 0; now < 3; now++) { /* one request after the other */
        add(aggregate, 0, "1", &requests[0], now);
        rcpt_aggregate_settle(aggregate, rcpt_aggregate_next(aggregate, now), true);
    }
    add(aggregate, 0, "1", &requests[0], 3);
    add(aggregate, 0, "2", &requests[1], 3);
    rcpt_aggregate_settle(aggregate, rcpt_aggregate_next(aggregate, 3), true);
    add(aggregate, 0, "3", &requests[2], 4);
    assert_null(rcpt_aggregate_next(aggregate, 7));
    struct rcpt_aggregate_batch *batch = rcpt_aggregate_next(aggregate, 8);
    assert_value(batch, "[3]");
    rcpt_aggregate_settle(aggregate, batch, true);
    for (int i = 0; i < 3; i++)
        rcpt_ticket_release(&requests[i].ticket, true);
    rcpt_aggregate_free(aggregate);
}

static void test_time_and_fullness_send_beside_a_record_that_flies(void **state)
{
    (void)state;
    struct rcpt_aggregate *aggregate = begin(2, 1000, 1);
    struct request request = {0};
    struct rcpt_aggregate_batch *in_flight[3];
    rcpt_ticket_begin(&request.ticket, on_settled);
    add(aggregate, 0, "1", &request, 0);
    in_flight[0] = rcpt_aggregate_next(aggregate, 0);
    add(aggregate, 0, "2", &request, 0);
    assert_null(rcpt_aggregate_next(aggregate, 4));
    in_flight[1] = rcpt_aggregate_next(aggregate, 5); /* it has waited long enough */
    assert_value(in_flight[1], "[2]");
    for (int i = 0; i < 5; i++)
        add(aggregate, 0, "3", &request, 6);
    in_flight[2] = rcpt_aggregate_next(aggregate, 6); /* it is full */
    assert_value(in_flight[2], "[3,3]");
    assert_null(rcpt_aggregate_next(aggregate, 100)); /* three are on their way: no more */
    assert_int_equal(rcpt_aggregate_oldest_ms(aggregate, 100), 100);
    rcpt_aggregate_settle(aggregate, in_flight[0], true);
    assert_int_equal(rcpt_aggregate_oldest_ms(aggregate, 100), 95);
    in_flight[0] = rcpt_aggregate_next(aggregate, 100);
    assert_value(in_flight[0], "[3,3]");
    rcpt_aggregate_settle(aggregate, in_flight[1], true);
    in_flight[1] = rcpt_aggregate_next(aggregate, 100);
    assert_value(in_flight[1], "[3]");
    for (int i = 0; i < 3; i++)
        rcpt_aggregate_settle(aggregate, in_flight[i], true);
    assert_true(rcpt_aggregate_is_empty(aggregate));
    rcpt_ticket_release(&request.ticket, true);
    assert_int_equal(request.settled, 1);
    rcpt_aggregate_free(aggregate);
}

static void test_bytes_bound_a_record(void **state)
{
    (void)state;
    struct rcpt_aggregate *aggregate = begin(100, 12, 1);
    struct request request = {0};
    rcpt_ticket_begin(&request.ticket, on_settled);
    add(aggregate, 0, "\"0123\"", &request, 0);
    add(aggregate, 0, "\"4\"", &request, 0);
    add(aggregate, 0, "\"56\"", &request, 0);
    add(aggregate, 0, "\"longer than a record may be\"", &request, 0);
    static const char *const values[] = {"[\"0123\",\"4\"]", "[\"56\"]",
                                         "[\"longer than a record may be\"]"};
    for (int i = 0; i < 3; i++) {
        struct rcpt_aggregate_batch *batch = rcpt_aggregate_next(aggregate, 0);
        assert_value(batch, values[i]);
        rcpt_aggregate_settle(aggregate, batch, true);
    }
    rcpt_ticket_release(&request.ticket, true);
    rcpt_aggregate_free(aggregate);
}

static void test_a_record_names_its_accounts_and_one_trace(void **state)
{
    (void)state;
    static const char passed[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    static const char kept[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    static const char late[] = "00-0af7651916cd43dd8448eb211c80319d-b7ad6b7169203332-01";
    const struct rcpt_aggregate_origin origins[] = {{"acme", 5, "", NULL},
                                                    {"acme", 5, passed, "a=1"},
                                                    {"bird", 6, kept, "b=2"},
                                                    {"acme", 7, late, "c=3"},
                                                    {"acme", 7, passed, NULL}};
    struct rcpt_aggregate *aggregate = begin(100, 1000, 1);
    struct request request = {0};
    rcpt_ticket_begin(&request.ticket, on_settled);
    for (int i = 0; i < 5; i++)
        rcpt_aggregate_add(aggregate, 7, "1", 1, &request.ticket, &origins[i], 0);
    struct rcpt_aggregate_batch *batch = rcpt_aggregate_next(aggregate, 0);
    assert_int_equal(batch->name_count, 2);
    assert_string_equal(batch->names[1], "bird");
    assert_string_equal(batch->traceparent, kept); /* the first that somebody will look at */
    assert_string_equal(batch->tracestate, "b=2");
    assert_int_equal(batch->received_us, 5);
    rcpt_aggregate_settle(aggregate, batch, true);
    rcpt_ticket_release(&request.ticket, true);
    rcpt_aggregate_free(aggregate);
}

static void test_more_partitions_leave_open_records_alone(void **state)
{
    (void)state;
    struct rcpt_aggregate *aggregate = begin(100, 1000, 1);
    struct request request = {0};
    rcpt_ticket_begin(&request.ticket, on_settled);
    add(aggregate, 3, "1", &request, 0);
    rcpt_aggregate_set_partitions(aggregate, 4);
    add(aggregate, 3, "2", &request, 0);
    unsigned seen = 0;
    struct rcpt_aggregate_batch *batch;
    while ((batch = rcpt_aggregate_next(aggregate, 0)) != NULL) {
        seen |= 1u << batch->partition;
        assert_value(batch, batch->partition == 0 ? "[1]" : "[2]");
        rcpt_aggregate_settle(aggregate, batch, true);
    }
    assert_int_equal(seen, 1u | 1u << 3);
    rcpt_ticket_release(&request.ticket, true);
    rcpt_aggregate_free(aggregate);
}

static void test_an_event_may_be_larger_than_a_record_begins_with(void **state)
{
    (void)state;
    struct rcpt_aggregate *aggregate = begin(100, 1 << 20, 1);
    struct request request = {0};
    static char json[200001];
    memset(json, 'x', sizeof(json) - 1);
    json[0] = json[sizeof(json) - 2] = '"';
    rcpt_ticket_begin(&request.ticket, on_settled);
    add(aggregate, 0, json, &request, 0);
    add(aggregate, 0, "2", &request, 0);
    struct rcpt_aggregate_batch *batch = rcpt_aggregate_next(aggregate, 0);
    assert_int_equal(batch->json.size, strlen(json) + 4);
    assert_memory_equal(batch->json.bytes + 1, json, strlen(json));
    assert_memory_equal(batch->json.bytes + 1 + strlen(json), ",2]", 3);
    assert_int_equal(rcpt_aggregate_bytes(aggregate), batch->json.size);
    rcpt_aggregate_settle(aggregate, batch, true);
    rcpt_ticket_release(&request.ticket, true);
    rcpt_aggregate_free(aggregate);
    rcpt_aggregate_free(NULL);
}

/* What was there for more partitions stays and is sent. */
static void test_fewer_partitions_leave_open_records_alone(void **state)
{
    (void)state;
    struct rcpt_aggregate *aggregate = begin(100, 1000, 4);
    struct request request = {0};
    rcpt_ticket_begin(&request.ticket, on_settled);
    add(aggregate, 3, "1", &request, 0);
    rcpt_aggregate_set_partitions(aggregate, 2);
    assert_int_equal(rcpt_aggregate_partitions(aggregate), 2);
    add(aggregate, 3, "2", &request, 0);
    unsigned seen = 0;
    struct rcpt_aggregate_batch *batch;
    while ((batch = rcpt_aggregate_next(aggregate, 0)) != NULL) {
        seen |= 1u << batch->partition;
        assert_value(batch, batch->partition == 3 ? "[1]" : "[2]");
        rcpt_aggregate_settle(aggregate, batch, true);
    }
    assert_int_equal(seen, 1u << 1 | 1u << 3);
    rcpt_ticket_release(&request.ticket, true);
    assert_int_equal(request.settled, 1);
    rcpt_aggregate_free(aggregate);
}

/* Any order of adding, sending, landing and failing: every ticket settles once, with the truth. */
static void test_every_ticket_settles_once_whatever_happens(void **state)
{
    (void)state;
    enum { REQUESTS = 300 };
    for (unsigned seed = 1; seed <= 40; seed++) {
        struct rcpt_aggregate *aggregate = begin(3, 60, 5);
        struct request requests[REQUESTS] = {0};
        struct rcpt_aggregate_batch *in_flight[64];
        unsigned flights = 0, added = 0, landed = 0;
        uint64_t random = seed;
        for (int64_t now = 0; landed < added || now < 400; now++) {
            random = random * 6364136223846793005ull + 1442695040888963407ull;
            uint64_t dice = random >> 33;
            if (now < REQUESTS) {
                struct request *request = &requests[now];
                rcpt_ticket_begin(&request->ticket, on_settled);
                for (uint64_t i = 0; i < dice % 9; i++, added++)
                    add(aggregate, dice * (i + 1), "\"x\"", request, now);
                rcpt_ticket_release(&request->ticket, true);
            }
            struct rcpt_aggregate_batch *batch;
            while (flights < 60 && (batch = rcpt_aggregate_next(aggregate, now)) != NULL)
                in_flight[flights++] = batch;
            if (flights > 0 && dice % 3 != 0) {
                unsigned which = (unsigned)(dice % flights);
                batch = in_flight[which];
                in_flight[which] = in_flight[--flights];
                landed += batch->events;
                rcpt_aggregate_settle(aggregate, batch, dice % 7 != 0);
            }
        }
        for (int i = 0; i < REQUESTS; i++)
            assert_int_equal(requests[i].settled, 1);
        assert_true(rcpt_aggregate_is_empty(aggregate));
        assert_int_equal(rcpt_aggregate_bytes(aggregate), 0);
        rcpt_aggregate_free(aggregate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_waits_while_its_partition_is_idle),
        cmocka_unit_test(test_what_comes_while_a_record_flies_is_the_next_one),
        cmocka_unit_test(test_a_crowd_waits_for_more_and_a_lone_client_never),
        cmocka_unit_test(test_time_and_fullness_send_beside_a_record_that_flies),
        cmocka_unit_test(test_bytes_bound_a_record),
        cmocka_unit_test(test_a_record_names_its_accounts_and_one_trace),
        cmocka_unit_test(test_more_partitions_leave_open_records_alone),
        cmocka_unit_test(test_an_event_may_be_larger_than_a_record_begins_with),
        cmocka_unit_test(test_fewer_partitions_leave_open_records_alone),
        cmocka_unit_test(test_every_ticket_settles_once_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

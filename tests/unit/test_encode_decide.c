/* The parameters of sql/lane/decide: messages, and the first times that their receipts name. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "postgres/encode_batch.h"
#include "receiptd/core/ladder.h"
#include "receiptd/postgres/connection.h"

#define MINUTE INT64_C(60000000)
#define MOST   6u

enum { IDS, TOPS, MASKS, AT, ORGS, TIMES, PLACES, GATEWAYS };

struct named {
    uint32_t message;
    int16_t code;
    int64_t at_us;
    uint8_t gateway;
    bool delivers_part;
};

struct made {
    struct rcpt_batch batch;
    struct rcpt_batch_message messages[MOST];
    struct rcpt_batch_event events[MOST];
    struct rcpt_event named[MOST];
};

static void make(struct made *made, const struct named *named, uint32_t count)
{
    static const char *const ids[MOST] = {"a", "b", "c", "d", "e", "f"};
    *made = (struct made){.batch = {.event_count = count}};
    made->batch.messages = made->messages;
    made->batch.events = made->events;
    for (uint32_t at = 0; at < count; at++) {
        made->named[at] = (struct rcpt_event){.at_us = named[at].at_us,
                                              .gateway = named[at].gateway,
                                              .delivers_part = named[at].delivers_part};
        made->events[at] =
            (struct rcpt_batch_event){.event = &made->named[at], .code = named[at].code};
        if (at > 0 && named[at].message == named[at - 1].message)
            continue;
        made->messages[made->batch.message_count] =
            (struct rcpt_batch_message){.id = ids[made->batch.message_count],
                                        .id_size = 1,
                                        .top = named[at].code,
                                        .first_event = at};
        made->batch.message_count++;
    }
}

static const char *name_gateway(const void *context, enum rcpt_facet facet, uint32_t number)
{
    static const char *const names[] = {NULL, "wolf", "ant", ""};
    (void)context;
    assert_int_equal(facet, RCPT_FACET_GATEWAY);
    return names[number];
}

/* ---- arrays: a header of 20 bytes, then each element behind its length ---- */

static uint32_t size_of(const struct rcpt_pg_params *params, size_t parameter)
{
    uint32_t dimensions, size;
    memcpy(&dimensions, params->values[parameter], sizeof(dimensions));
    memcpy(&size, params->values[parameter] + 12, sizeof(size));
    return dimensions != 0 ? be32toh(size) : 0;
}

/* INT64_MAX: infinity. */
static int64_t time_at(const struct rcpt_pg_params *params, size_t index)
{
    const int64_t since_2000 = INT64_C(946684800000000);
    uint64_t big;
    memcpy(&big, params->values[TIMES] + 20 + index * 12 + 4, sizeof(big));
    int64_t at = (int64_t)be64toh(big);
    return at == INT64_MAX ? at : at + since_2000;
}

static int32_t place_at(const struct rcpt_pg_params *params, size_t index)
{
    uint32_t big;
    memcpy(&big, params->values[PLACES] + 20 + index * 8 + 4, sizeof(big));
    return (int32_t)be32toh(big);
}

static void assert_times(const struct rcpt_pg_params *params, size_t message, int64_t sent,
                         int64_t delivered, int64_t opened, int64_t clicked)
{
    const int64_t expected[] = {sent, delivered, opened, clicked};
    for (size_t index = 0; index < 4; index++)
        assert_int_equal(time_at(params, message * 4 + index), expected[index]);
}

/* ---- tests ---- */

static struct rcpt_ladder *ladder;
static struct rcpt_pg_encoder *encoder;
static const struct rcpt_lane_names names = {.name = name_gateway};

static int begin(void **state)
{
    struct rcpt_error error;
    (void)state;
    ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    encoder = rcpt_pg_encoder_new();
    return ladder == NULL;
}

static int end(void **state)
{
    (void)state;
    rcpt_pg_encoder_free(encoder);
    rcpt_ladder_free(ladder);
    return 0;
}

static void encode(const struct made *made, bool times, const uint32_t *messages, uint32_t count,
                   struct rcpt_pg_params *params)
{
    const struct rcpt_decide_form form = {.ladder = times ? ladder : NULL, .names = &names};
    rcpt_encode_decide(encoder, &made->batch, &form, messages, count);
    rcpt_pg_encoder_params(encoder, params);
}

static const struct named receipts[] = {
    {1, 300, 5 * MINUTE, 1, false}, {1, 600, 9 * MINUTE, 3, false}, {1, 300, 4 * MINUTE, 2, false},
    {2, 440, 5 * MINUTE, 1, false}, {3, 800, 5 * MINUTE, 3, false},
};

static void without_first_times_there_are_five_parameters(void **state)
{
    struct rcpt_pg_params params;
    struct made made;
    (void)state;
    make(&made, receipts, 5);
    encode(&made, false, NULL, 3, &params);
    assert_int_equal(params.count, ORGS + 1);
    assert_int_equal(size_of(&params, IDS), 3);
    assert_int_equal(size_of(&params, ORGS), 0); /* no message has one */
    made.batch.has_orgs = true;
    encode(&made, false, NULL, 3, &params);
    assert_int_equal(size_of(&params, ORGS), 3);
}

static void stale_messages_are_asked_again_alone(void **state)
{
    static const uint32_t stale[] = {2};
    const int64_t none = INT64_MAX;
    struct rcpt_pg_params params;
    struct made made;
    (void)state;
    make(&made, receipts, 5);
    encode(&made, true, stale, 1, &params);
    assert_int_equal(size_of(&params, IDS), 1);
    assert_memory_equal(params.values[IDS] + 24, "c", 1);
    assert_int_equal(size_of(&params, TIMES), 4);
    assert_times(&params, 0, none, none, none, 5 * MINUTE);
}

/* Its last part delivers a message, not the first one. */
static void a_delivered_part_has_no_time_before_all_are_delivered(void **state)
{
    static const struct named parts[] = {{1, 600, 5 * MINUTE, 1, true},
                                         {2, 600, 5 * MINUTE, 1, true}};
    const int64_t none = INT64_MAX;
    struct rcpt_pg_params params;
    struct made made;
    (void)state;
    make(&made, parts, 2);
    made.messages[1].whole_us = 8 * MINUTE;
    encode(&made, true, NULL, 2, &params);
    assert_times(&params, 0, none, none, none, none);
    assert_times(&params, 1, none, 8 * MINUTE, none, none);
    assert_int_equal(place_at(&params, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_first_times_there_are_five_parameters),
        cmocka_unit_test(stale_messages_are_asked_again_alone),
        cmocka_unit_test(a_delivered_part_has_no_time_before_all_are_delivered),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

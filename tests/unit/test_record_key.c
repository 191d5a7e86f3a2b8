/* Which receipts of a message are copies of each other: the keys of events are made of what came. */
#include "record_fixture.h"

#include "receiptd/core/machine.h"

static const struct rcpt_machine_rules *const as_they_come = NULL;

#define RECEIPT(fields) "{\"message_id\":\"m\"," fields "}"
#define AT              ",\"at\":1760789440"
#define ID              ",\"event_id\":\"e\""
#define BY_MACHINE      ",\"flags\":[\"MACHINE_OPEN\"]"
#define BY_SCANNER      ",\"flags\":[\"BOT_CLICK\"]"

/* 0: nothing is left of it. */
static uint64_t key_of(struct bench *bench, const struct rcpt_machine_rules *rules,
                       const char *value)
{
    rcpt_decoder_set_rules(bench->decoder, true);
    rcpt_decoder_set_machines(bench->decoder, rules);
    struct rcpt_record *record = decode(bench, value, strlen(value));
    assert_int_equal(record->event_count + record->ignored_count, 1);
    uint64_t key = record->event_count > 0 ? rcpt_record_event_key(record, record->events) : 0;
    assert_int_equal(key == 0, record->event_count == 0);
    rcpt_record_free(record);
    return key;
}

static void copies_name_the_same_at_one_time_or_by_one_id(void **state)
{
    static const struct {
        const char *one, *other;
        bool are_copies;
    } cases[] = {
        {RECEIPT("\"status\":\"OPENED\"" AT), RECEIPT("\"status\":\"OPENED\"" AT), true},
        {RECEIPT("\"status\":\"OPENED\"" AT), RECEIPT("\"status\":\"OPENED\",\"at\":1760789441"),
         false},
        {RECEIPT("\"status\":\"OPENED\"" AT ID),
         RECEIPT("\"status\":\"OPENED\",\"at\":1760789441" ID), true},
        {RECEIPT("\"status\":\"OPENED\"" AT), RECEIPT("\"status\":\"CLICKED\"" AT), false},
        /* A person opens, and a machine: two events. */
        {RECEIPT("\"status\":\"OPENED\"" AT), RECEIPT("\"status\":\"OPENED\"" AT BY_MACHINE),
         false},
        {RECEIPT("\"status\":\"OPENED\"" ID), RECEIPT("\"status\":\"OPENED\"" ID BY_MACHINE),
         false},
        {RECEIPT("\"status\":\"CLICKED\"" AT), RECEIPT("\"status\":\"CLICKED\"" AT BY_SCANNER),
         false},
        {RECEIPT("\"status\":\"DELIVERED\"" AT), RECEIPT("\"status\":\"DELIVERED\"" AT BY_MACHINE),
         false},
        {RECEIPT("\"status\":\"DELIVERED\"" AT), RECEIPT("\"status\":\"MACHINE_OPEN\"" AT), false},
        /* A flag that the status names as well says nothing more. */
        {RECEIPT("\"status\":\"MACHINE_OPEN\"" AT),
         RECEIPT("\"status\":\"MACHINE_OPEN\"" AT BY_MACHINE), true},
        /* Parts, with a total and without. */
        {RECEIPT("\"status\":\"DELIVERED\",\"part\":1,\"parts\":2" AT),
         RECEIPT("\"status\":\"DELIVERED\",\"part\":2,\"parts\":2" AT), false},
        {RECEIPT("\"status\":\"DELIVERED\",\"part\":1" AT),
         RECEIPT("\"status\":\"DELIVERED\",\"part\":2" AT), false},
        {RECEIPT("\"status\":\"DELIVERED\",\"part\":1" ID),
         RECEIPT("\"status\":\"DELIVERED\",\"part\":2" ID), false},
        {RECEIPT("\"status\":\"DELIVERED\",\"part\":255" AT),
         RECEIPT("\"status\":\"DELIVERED\",\"part\":\"255\"" AT), true},
        {RECEIPT("\"status\":\"DELIVERED\",\"part\":2" AT),
         RECEIPT("\"status\":\"DELIVERED\",\"part\":2,\"parts\":3" AT), true},
        {RECEIPT("\"status\":\"DELIVERED\",\"part\":1,\"parts\":1" AT),
         RECEIPT("\"status\":\"DELIVERED\"" AT), true},
    };
    struct bench bench;
    (void)state;
    set_up(&bench, 1);
    for (size_t index = 0; index < COUNT(cases); index++)
        if ((key_of(&bench, as_they_come, cases[index].one) ==
             key_of(&bench, as_they_come, cases[index].other)) != cases[index].are_copies)
            fail_msg("%s and %s", cases[index].one, cases[index].other);
    tear_down(&bench);
}

/* ---- any receipts, under any policies ---- */

static uint64_t random_state = 88172645463325252ull;

static uint32_t below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

struct drawn {
    const char *status;
    uint32_t flags, part; /* part 0: none */
    bool second;          /* of two times */
    bool has_id;
};

static const char *const statuses[] = {"DELIVERED", "OPENED",       "CLICKED",
                                       "REPLIED",   "MACHINE_OPEN", "BOT_CLICK"};
static const char *const flags[] = {"REPLIED", "MACHINE_OPEN", "BOT_CLICK"};

static struct drawn draw(void)
{
    struct drawn drawn = {.status = statuses[below(COUNT(statuses))],
                          .flags = below(1u << COUNT(flags)),
                          .part = below(3),
                          .second = below(2),
                          .has_id = below(2)};
    for (size_t flag = 0; flag < COUNT(flags); flag++)
        if (strcmp(flags[flag], drawn.status) == 0)
            drawn.flags &= ~(1u << flag); /* it is named */
    return drawn;
}

static void write(const struct drawn *drawn, char text[256])
{
    int size =
        snprintf(text, 256, "{\"message_id\":\"m\",\"status\":\"%s\",\"at\":%d%s,\"flags\":[",
                 drawn->status, 1760789440 + drawn->second, drawn->has_id ? ID : "");
    for (size_t flag = 0, named = 0; flag < COUNT(flags); flag++)
        if ((drawn->flags >> flag & 1) != 0)
            size += snprintf(text + size, 256 - (size_t)size, "%s\"%s\"", named++ > 0 ? "," : "",
                             flags[flag]);
    size += snprintf(text + size, 256 - (size_t)size, "]");
    if (drawn->part > 0)
        size += snprintf(text + size, 256 - (size_t)size, ",\"part\":%u", drawn->part);
    snprintf(text + size, 256 - (size_t)size, "}");
}

static bool are_copies(const struct drawn *one, const struct drawn *other)
{
    return strcmp(one->status, other->status) == 0 && one->flags == other->flags &&
           one->part == other->part && one->has_id == other->has_id &&
           (one->has_id || one->second == other->second);
}

/* Each of the two may come before or after a reload of the policies. */
static void no_policy_makes_copies_or_parts_them(void **state)
{
    struct bench bench;
    uint32_t copies = 0, compared = 0;
    (void)state;
    set_up(&bench, 1);
    for (uint32_t turn = 0; turn < 100000; turn++) {
        char texts[2][256];
        uint64_t keys[2];
        struct drawn drawn[2] = {draw(), draw()};
        if (below(4) == 0)
            drawn[1] = drawn[0];
        for (size_t side = 0; side < 2; side++) {
            struct rcpt_machine_rules rules = {
                .opens = (enum rcpt_machine_policy)below(RCPT_MACHINE_POLICY__COUNT),
                .clicks = (enum rcpt_machine_policy)below(RCPT_MACHINE_POLICY__COUNT)};
            write(&drawn[side], texts[side]);
            keys[side] = key_of(&bench, &rules, texts[side]);
        }
        if (keys[0] == 0 || keys[1] == 0)
            continue;
        bool expected = are_copies(&drawn[0], &drawn[1]);
        compared++;
        copies += expected;
        if ((keys[0] == keys[1]) != expected)
            fail_msg("%s and %s", texts[0], texts[1]);
    }
    assert_true(copies > 15000 && compared - copies > 50000);
    tear_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_name_the_same_at_one_time_or_by_one_id),
        cmocka_unit_test(no_policy_makes_copies_or_parts_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

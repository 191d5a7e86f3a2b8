/* Receipts of machines: what each policy makes of an event, which rule applies, and that neither the order of a message's
 * receipts nor their repetition matters. */
#include "record_fixture.h"

#include "core/machine.h"

#define HISTORIES 1000000u

static const struct rcpt_ladder_entry *entry_of(const struct bench *bench, int entry)
{
    return rcpt_ladder_entry(bench->ladder, (size_t)entry);
}

/* The only event of the text, as "STATUS +FLAG +FLAG". */
static void show_event(struct bench *bench, const char *value, char text[200])
{
    struct rcpt_record *record = decode(bench, value, strlen(value));
    assert_int_equal(record->event_count, 1);
    int length = snprintf(text, 200, "%s", entry_of(bench, record->events[0].entry)->name);
    for (size_t index = 0; index < rcpt_ladder_entry_count(bench->ladder); index++)
        if ((entry_of(bench, (int)index)->mask & record->events[0].flags) != 0)
            length += snprintf(text + length, 200 - (size_t)length, " +%s",
                               entry_of(bench, (int)index)->name);
    rcpt_record_free(record);
}

static void expect(struct bench *bench, const char *value, const char *expected)
{
    char text[200];
    show_event(bench, value, text);
    assert_string_equal(text, expected);
}

#define RECEIPT(status, flags)                                                                     \
    "{\"message_id\":\"m\",\"status\":\"" status "\",\"flags\":[" flags "]}"
#define RECEIPT_OF(account, status, flags)                                                         \
    "{\"message_id\":\"m\",\"gateway\":\"" account "\",\"status\":\"" status                       \
    "\",\"flags\":[" flags "]}"
#define OPENING  "\"MACHINE_OPEN\""
#define CLICKING "\"BOT_CLICK\""

static void each_policy_makes_its_own_of_both_forms(void **state)
{
    static const struct {
        const char *value, *by_flag, *by_count, *by_ignore;
    } cases[] = {
        {RECEIPT("OPENED", OPENING), "MACHINE_OPEN", "OPENED +MACHINE_OPEN", "DELIVERED"},
        {RECEIPT("MACHINE_OPEN", ""), "MACHINE_OPEN", "OPENED +MACHINE_OPEN", "DELIVERED"},
        {RECEIPT("DELIVERED", OPENING), "DELIVERED +MACHINE_OPEN", "OPENED +MACHINE_OPEN",
         "DELIVERED"},
        {RECEIPT("CLICKED", CLICKING), "BOT_CLICK", "CLICKED +BOT_CLICK", "DELIVERED"},
        {RECEIPT("BOT_CLICK", ""), "BOT_CLICK", "CLICKED +BOT_CLICK", "DELIVERED"},
        {RECEIPT("CLICKED", OPENING), "CLICKED +MACHINE_OPEN", "CLICKED +MACHINE_OPEN", "CLICKED"},
        {RECEIPT("CLICKED", CLICKING "," OPENING), "MACHINE_OPEN +BOT_CLICK",
         "CLICKED +MACHINE_OPEN +BOT_CLICK", "DELIVERED"},
        {RECEIPT("COMPLAINED", OPENING), "COMPLAINED +MACHINE_OPEN",
         "OPENED +COMPLAINED +MACHINE_OPEN", "COMPLAINED"},
        {RECEIPT("BOUNCED_HARD", OPENING), "BOUNCED_HARD +MACHINE_OPEN",
         "BOUNCED_HARD +MACHINE_OPEN", "BOUNCED_HARD"},
        {RECEIPT("OPENED", ""), "OPENED", "OPENED", "OPENED"},
        {RECEIPT("CLICKED", "\"REPLIED\""), "CLICKED +REPLIED", "CLICKED +REPLIED",
         "CLICKED +REPLIED"},
    };
    struct bench bench;
    (void)state;
    set_up(&bench, 4);
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct rcpt_machine_rules rules = {.opens = RCPT_MACHINE_FLAG};
        rcpt_decoder_set_machines(bench.decoder, NULL);
        expect(&bench, cases[index].value, cases[index].by_flag);
        rcpt_decoder_set_machines(bench.decoder, &rules);
        expect(&bench, cases[index].value, cases[index].by_flag);
        rules.opens = rules.clicks = RCPT_MACHINE_COUNT;
        expect(&bench, cases[index].value, cases[index].by_count);
        rules.opens = rules.clicks = RCPT_MACHINE_IGNORE;
        expect(&bench, cases[index].value, cases[index].by_ignore);
    }
    tear_down(&bench);
}

static void the_first_rule_that_fits_what_the_receipt_names_counts(void **state)
{
    static char acme[] = "acme", org[] = "o1", spring[] = "spring", number[] = "7";
    struct rcpt_machine_rule list[] = {
        {.kind = RCPT_MACHINE_CLICK, .policy = RCPT_MACHINE_COUNT},
        {.kind = RCPT_MACHINE_OPEN,
         .account = acme,
         .campaign = spring,
         .policy = RCPT_MACHINE_IGNORE},
        {.kind = RCPT_MACHINE_OPEN, .org_id = org, .policy = RCPT_MACHINE_COUNT},
        {.kind = RCPT_MACHINE_OPEN, .org_id = number, .policy = RCPT_MACHINE_COUNT},
    };
    struct rcpt_machine_rules rules = {.rules = list, .rule_count = COUNT(list)};
    struct bench bench;
    (void)state;
#define NAMED(more) "{" more ",\"message_id\":\"m\",\"status\":\"MACHINE_OPEN\"}"
    set_up(&bench, 1);
    rcpt_decoder_set_machines(bench.decoder, &rules);
    expect(&bench, NAMED("\"gateway\":\"acme\",\"org_id\":\"o1\",\"campaign_id\":\"spring\""),
           "DELIVERED");
    expect(&bench, NAMED("\"gateway\":\"acme\",\"org_id\":\"o1\""), "OPENED +MACHINE_OPEN");
    expect(&bench, NAMED("\"gateway\":\"acme\",\"campaign_id\":\"summer\""), "MACHINE_OPEN");
    expect(&bench, NAMED("\"org_id\":\"o\\u0031\""), "OPENED +MACHINE_OPEN");
    expect(&bench, NAMED("\"org_id\":7"), "OPENED +MACHINE_OPEN");
    expect(&bench, NAMED("\"org_id\":null"), "MACHINE_OPEN");
    expect(&bench, "{\"message_id\":\"m\",\"status\":\"BOT_CLICK\"}", "CLICKED +BOT_CLICK");
    assert_int_equal(
        rcpt_decoder_machine_events(bench.decoder, RCPT_MACHINE_OPEN, RCPT_MACHINE_COUNT), 3);
    assert_int_equal(
        rcpt_decoder_machine_events(bench.decoder, RCPT_MACHINE_OPEN, RCPT_MACHINE_IGNORE), 1);
    assert_int_equal(
        rcpt_decoder_machine_events(bench.decoder, RCPT_MACHINE_CLICK, RCPT_MACHINE_COUNT), 1);
    assert_false(rcpt_machine_is_always(&rules, RCPT_MACHINE_CLICK, 1u << RCPT_MACHINE_COUNT));
    rules.clicks = RCPT_MACHINE_COUNT;
    assert_true(rcpt_machine_is_always(&rules, RCPT_MACHINE_CLICK, 1u << RCPT_MACHINE_COUNT));
    tear_down(&bench);
}

static void a_ladder_without_the_flags_knows_no_machines(void **state)
{
    static const struct rcpt_status_definition statuses[] = {
        {"TARGETED", 0, NULL, false},
        {"OPENED", 700, "TARGETED", false},
        {"MACHINE_OPEN", 710, "OPENED", false}};
    const struct rcpt_ladder_definition definition = {.statuses = statuses,
                                                      .status_count = COUNT(statuses)};
    struct rcpt_machine_marks marks;
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(&definition, &error);
    (void)state;
    assert_non_null(ladder);
    rcpt_machine_find_marks(ladder, &marks);
    assert_int_equal(marks.masks[RCPT_MACHINE_OPEN], 0);
    assert_int_equal(marks.masks[RCPT_MACHINE_CLICK], 0);
    rcpt_ladder_free(ladder);
}

/* ---- any order ---- */

static uint64_t random_state = 88172645463325252ull;

static uint32_t below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return limit > 0 ? (uint32_t)(random_state >> 32) % limit : 0;
}

struct receipt {
    int entry;
    uint32_t flags;
};

struct message {
    int16_t status;
    uint32_t flags;
};

static void give(const struct rcpt_ladder *ladder, const struct rcpt_machine_marks *marks,
                 const enum rcpt_machine_policy *policies, struct receipt receipt,
                 struct message *message)
{
    for (int kind = RCPT_MACHINE_KIND__COUNT - 1; kind >= 0; kind--) {
        uint32_t mask = rcpt_ladder_entry(ladder, (size_t)receipt.entry)->mask;
        if (((receipt.flags | mask) & marks->masks[kind]) != 0)
            rcpt_machine_apply(ladder, marks, (enum rcpt_machine_kind)kind, policies[kind],
                               &receipt.entry, &receipt.flags);
    }
    const struct rcpt_ladder_entry *named = rcpt_ladder_entry(ladder, (size_t)receipt.entry);
    receipt.flags |= named->mask;
    message->flags |= receipt.flags;
    message->status = named->top > message->status ? named->top : message->status;
    for (uint32_t bits = receipt.flags; bits != 0; bits &= bits - 1) {
        int flag = rcpt_ladder_find_code(ladder, RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(bits),
                                         NULL, 0);
        int16_t top = rcpt_ladder_entry(ladder, (size_t)flag)->top;
        message->status = top > message->status ? top : message->status;
    }
}

/* Every receipt once and in order, then shuffled and some of them again. */
static void a_million_histories_end_alike_in_any_order_and_repetition(void **state)
{
    struct bench bench;
    struct rcpt_machine_marks marks;
    (void)state;
    set_up(&bench, 1);
    rcpt_machine_find_marks(bench.ladder, &marks);
    uint32_t entries = (uint32_t)rcpt_ladder_entry_count(bench.ladder);
    for (uint32_t history = 0; history < HISTORIES; history++) {
        struct receipt receipts[16];
        struct message once = {0, 0}, again = {0, 0};
        uint32_t count = 1 + below(8), all = count;
        enum rcpt_machine_policy policies[] = {below(3), below(3)};
        for (uint32_t index = 0; index < count; index++) {
            receipts[index] = (struct receipt){(int)below(entries), below(2) ? below(128) : 0};
            give(bench.ladder, &marks, policies, receipts[index], &once);
        }
        for (; all < 16 && below(3) != 0; all++)
            receipts[all] = receipts[below(count)];
        for (uint32_t index = all; index > 0; index--) {
            uint32_t at = below(index);
            give(bench.ladder, &marks, policies, receipts[at], &again);
            receipts[at] = receipts[index - 1];
        }
        assert_int_equal(once.status, again.status);
        assert_int_equal(once.flags, again.flags);
    }
    tear_down(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_policy_makes_its_own_of_both_forms),
        cmocka_unit_test(the_first_rule_that_fits_what_the_receipt_names_counts),
        cmocka_unit_test(a_ladder_without_the_flags_knows_no_machines),
        cmocka_unit_test(a_million_histories_end_alike_in_any_order_and_repetition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Receipts of machines: what each policy makes of an event, which rule applies, and that neither the order of a message's
 * receipts nor their repetition matters. */
#include "record_fixture.h"

#include "receiptd/core/machine.h"

#define HISTORIES 1000000u

static const struct rcpt_ladder_entry *entry_of(const struct bench *bench, int entry)
{
    return rcpt_ladder_entry(bench->ladder, (size_t)entry);
}

/* What the receipt counts as, as "STATUS +STATUS +FLAG"; "" for nothing. */
static void show_event(struct bench *bench, const char *value, char text[200])
{
    struct rcpt_record *record = decode(bench, value, strlen(value));
    int16_t beside[RCPT_RECORD_MOST_BESIDE];
    assert_int_equal(record->event_count + record->ignored_count, 1);
    assert_int_equal(record->reject_count, 0);
    text[0] = '\0';
    if (record->event_count > 0) {
        const struct rcpt_event *event = record->events;
        int length = snprintf(text, 200, "%s", entry_of(bench, event->entry)->name);
        uint32_t count = rcpt_event_beside(event, beside);
        for (uint32_t index = 0; index < count; index++)
            length += snprintf(
                text + length, 200 - (size_t)length, " +%s",
                entry_of(bench, rcpt_ladder_find_code(bench->ladder, beside[index], NULL, 0))
                    ->name);
    }
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
        {RECEIPT("OPENED", OPENING), "MACHINE_OPEN", "OPENED +MACHINE_OPEN", ""},
        {RECEIPT("MACHINE_OPEN", ""), "MACHINE_OPEN", "OPENED +MACHINE_OPEN", ""},
        {RECEIPT("CLICKED", CLICKING), "BOT_CLICK", "CLICKED +BOT_CLICK", ""},
        {RECEIPT("BOT_CLICK", ""), "BOT_CLICK", "CLICKED +BOT_CLICK", ""},
        {RECEIPT("CLICKED", CLICKING "," OPENING), "MACHINE_OPEN +BOT_CLICK",
         "CLICKED +OPENED +MACHINE_OPEN +BOT_CLICK", ""},
        /* What else it names stays, and counts beside the machine's. */
        {RECEIPT("DELIVERED", OPENING), "DELIVERED +MACHINE_OPEN",
         "DELIVERED +OPENED +MACHINE_OPEN", "DELIVERED"},
        {RECEIPT("CLICKED", OPENING), "CLICKED +MACHINE_OPEN", "CLICKED +OPENED +MACHINE_OPEN",
         "CLICKED"},
        {RECEIPT("OPENED", CLICKING), "OPENED +BOT_CLICK", "OPENED +CLICKED +BOT_CLICK", "OPENED"},
        {RECEIPT("SENT", CLICKING "," OPENING), "SENT +MACHINE_OPEN +BOT_CLICK",
         "SENT +OPENED +CLICKED +MACHINE_OPEN +BOT_CLICK", "SENT"},
        {RECEIPT("BOUNCED_HARD", OPENING), "BOUNCED_HARD +MACHINE_OPEN",
         "BOUNCED_HARD +OPENED +MACHINE_OPEN", "BOUNCED_HARD"},
        {RECEIPT("COMPLAINED", OPENING), "COMPLAINED +MACHINE_OPEN",
         "OPENED +COMPLAINED +MACHINE_OPEN", "COMPLAINED"},
        {RECEIPT("OPENED", OPENING ",\"COMPLAINED\""), "COMPLAINED +MACHINE_OPEN",
         "OPENED +COMPLAINED +MACHINE_OPEN", "COMPLAINED"},
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
    expect(&bench, NAMED("\"gateway\":\"acme\",\"org_id\":\"o1\",\"campaign_id\":\"spring\""), "");
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
    uint32_t flags, opens; /* opens: receipts of OPENED */
};

static void take(const struct rcpt_ladder *ladder, int entry, struct message *message)
{
    const struct rcpt_ladder_entry *named = rcpt_ladder_entry(ladder, (size_t)entry);
    message->flags |= named->mask;
    message->status = named->top > message->status ? named->top : message->status;
    message->opens += strcmp(named->name, "OPENED") == 0;
}

static int flag_of(const struct rcpt_ladder *ladder, uint32_t flags)
{
    return rcpt_ladder_find_code(ladder, RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(flags), NULL,
                                 0);
}

static void give(const struct rcpt_ladder *ladder, const struct rcpt_machine_marks *marks,
                 const enum rcpt_machine_policy *policies, struct receipt receipt,
                 struct message *message)
{
    uint32_t own = rcpt_ladder_entry(ladder, (size_t)receipt.entry)->mask;
    struct rcpt_machine_event event = {receipt.entry, 0, receipt.flags | own};
    rcpt_machine_apply(ladder, marks, policies, &event);
    if (event.entry < 0)
        return;
    take(ladder, event.entry, message);
    for (int kind = 0; kind < RCPT_MACHINE_KIND__COUNT; kind++)
        if ((event.kinds >> kind & 1) != 0)
            take(ladder, marks->statuses[kind], message);
    for (uint32_t flags = event.flags; flags != 0; flags &= flags - 1)
        take(ladder, flag_of(ladder, flags), message);
}

/* The same by the words of the docs: a list of names, from which the machine's go, and to which
 * what the policies make of them comes. */
static void give_by_the_docs(const struct rcpt_ladder *ladder,
                             const struct rcpt_machine_marks *marks,
                             const enum rcpt_machine_policy *policies, struct receipt receipt,
                             struct message *message)
{
    bool named[256] = {false};
    named[receipt.entry] = true;
    for (uint32_t flags = receipt.flags; flags != 0; flags &= flags - 1)
        named[flag_of(ladder, flags)] = true;
    for (int kind = 0; kind < RCPT_MACHINE_KIND__COUNT; kind++) {
        if (!named[marks->flags[kind]])
            continue;
        named[marks->statuses[kind]] = policies[kind] == RCPT_MACHINE_COUNT;
        named[marks->flags[kind]] = policies[kind] != RCPT_MACHINE_IGNORE;
    }
    for (int entry = 0; entry < 256; entry++)
        if (named[entry])
            take(ladder, entry, message);
}

static void expect_equal(struct message one, struct message other)
{
    assert_int_equal(one.status, other.status);
    assert_int_equal(one.flags, other.flags);
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
        struct message once = {0}, again = {0}, by_docs = {0};
        uint32_t count = 1 + below(8), all = count;
        enum rcpt_machine_policy policies[] = {below(3), below(3)};
        for (uint32_t index = 0; index < count; index++) {
            receipts[index] = (struct receipt){(int)below(entries), below(2) ? below(128) : 0};
            give(bench.ladder, &marks, policies, receipts[index], &once);
            give_by_the_docs(bench.ladder, &marks, policies, receipts[index], &by_docs);
        }
        for (; all < 16 && below(3) != 0; all++)
            receipts[all] = receipts[below(count)];
        for (uint32_t index = all; index > 0; index--) {
            uint32_t at = below(index);
            give(bench.ladder, &marks, policies, receipts[at], &again);
            receipts[at] = receipts[index - 1];
        }
        expect_equal(once, again);
        expect_equal(once, by_docs);
        assert_int_equal(once.opens, by_docs.opens);
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

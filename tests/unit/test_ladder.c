#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/ladder.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct rcpt_ladder *new_ladder(const struct rcpt_ladder_definition *definition)
{
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(definition, &error);
    assert_non_null(ladder);
    return ladder;
}

static int find(const struct rcpt_ladder *ladder, const char *name, const char *channel)
{
    return rcpt_ladder_find_name(ladder, name, strlen(name), channel, strlen(channel));
}

static const struct rcpt_ladder_entry *named(const struct rcpt_ladder *ladder, const char *name,
                                             const char *channel)
{
    int index = find(ladder, name, channel);
    assert_true(index >= 0);
    return rcpt_ladder_entry(ladder, (size_t)index);
}

/* The contract's ladder, written down once more. */
static const struct {
    const char *name;
    int code, parent;
    bool terminal;
} contract[] = {
    {"TARGETED", 0, RCPT_LADDER_NO_STATUS, false},
    {"SKIPPED", 100, 0, true},
    {"SUBMIT_FAILED", 110, 0, false},
    {"IN_GTW", 200, 0, false},
    {"SENT", 300, 200, false},
    {"DEFERRED", 310, 300, false},
    {"UNKNOWN", 400, 300, true},
    {"EXPIRED", 420, 300, true},
    {"BOUNCED_SOFT", 430, 300, true},
    {"FAILED", 440, 300, true},
    {"BLOCKED", 450, 300, true},
    {"REJECTED", 460, 200, true},
    {"BOUNCED_HARD", 470, 300, true},
    {"DELIVERED", 600, 300, false},
    {"BOUNCED_HARD_EMAIL", 650, 300, true},
    {"OPENED", 700, 600, false},
    {"CLICKED", 800, 700, false},
};

static const char *const contract_flags[] = {
    "COMPLAINED",    "UNSUBSCRIBED", "RESUBSCRIBED", "REPLIED",
    "AUTORESPONDED", "MACHINE_OPEN", "BOT_CLICK",
};

static void default_statuses_are_the_contract(void **state)
{
    (void)state;
    struct rcpt_ladder *ladder = new_ladder(rcpt_ladder_default_definition());
    assert_int_equal(rcpt_ladder_entry_count(ladder), COUNT(contract) + COUNT(contract_flags));
    for (size_t i = 0; i < COUNT(contract); i++) {
        const struct rcpt_ladder_entry *entry = named(ladder, contract[i].name, "");
        assert_string_equal(entry->name, contract[i].name);
        assert_int_equal(entry->code, contract[i].code);
        assert_int_equal(entry->top, contract[i].code);
        assert_int_equal(entry->parent, contract[i].parent);
        assert_int_equal(entry->mask, 0);
        assert_int_equal(entry->terminal, contract[i].terminal);
        assert_false(entry->is_flag);
    }
    rcpt_ladder_free(ladder);
}

static void default_flags_imply_delivered_but_for_resubscribed(void **state)
{
    (void)state;
    struct rcpt_ladder *ladder = new_ladder(rcpt_ladder_default_definition());
    for (size_t i = 0; i < COUNT(contract_flags); i++) {
        const struct rcpt_ladder_entry *entry = named(ladder, contract_flags[i], "");
        assert_true(entry->is_flag);
        assert_int_equal(entry->code, 9001 + (int)i);
        assert_int_equal(entry->mask, 1u << i);
        assert_int_equal(entry->parent, RCPT_LADDER_NO_STATUS);
        assert_int_equal(entry->top, strcmp(entry->name, "RESUBSCRIBED") == 0 ? 0 : 600);
    }
    rcpt_ladder_free(ladder);
}

static void names_and_codes_find_the_same_entries(void **state)
{
    (void)state;
    struct rcpt_ladder *ladder = new_ladder(rcpt_ladder_default_definition());
    for (int64_t code = -10; code < 20000; code++) {
        int index = rcpt_ladder_find_code(ladder, code, NULL, 0);
        if (index < 0)
            continue;
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, (size_t)index);
        assert_int_equal(entry->code, code);
        assert_ptr_equal(entry, named(ladder, entry->name, ""));
    }
    for (size_t i = 0; i < rcpt_ladder_entry_count(ladder); i++) {
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, i);
        assert_int_equal(rcpt_ladder_find_code(ladder, entry->code, NULL, 0), (int)i);
    }
    rcpt_ladder_free(ladder);
}

static void what_is_not_in_the_ladder_is_not_found(void **state)
{
    (void)state;
    struct rcpt_ladder *ladder = new_ladder(rcpt_ladder_default_definition());
    static const char *const names[] = {"", "delivered", "DELIVRD", "SEN", "SENTT", " SENT", "600"};
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(find(ladder, names[i], ""), -1);
    assert_int_equal(rcpt_ladder_find_name(ladder, "SENT\0", 5, NULL, 0), -1);
    static const int64_t codes[] = {-1, 1, 599, 9000, 9008, 9031, 9032, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < COUNT(codes); i++)
        assert_int_equal(rcpt_ladder_find_code(ladder, codes[i], NULL, 0), -1);
    rcpt_ladder_free(ladder);
}

static void a_channel_overrides_names_and_codes(void **state)
{
    (void)state;
    struct rcpt_ladder *ladder = new_ladder(rcpt_ladder_default_definition());
    assert_int_equal(named(ladder, "BOUNCED_HARD", "email")->code, 650);
    assert_int_equal(named(ladder, "BOUNCED_HARD", "sms")->code, 470);
    assert_int_equal(named(ladder, "BOUNCED_HARD", "Email")->code, 650);
    assert_int_equal(named(ladder, "BOUNCED_HARD", "email ")->code, 470);
    assert_int_equal(named(ladder, "BOUNCED_HARD_EMAIL", "email")->code, 650);
    assert_int_equal(named(ladder, "SENT", "email")->code, 300);
    int index = rcpt_ladder_find_code(ladder, 470, "email", 5);
    assert_int_equal(rcpt_ladder_entry(ladder, (size_t)index)->code, 650);
    rcpt_ladder_free(ladder);
}

static void the_root_may_be_implied_and_overridden(void **state)
{
    (void)state;
    static const struct rcpt_status_definition statuses[] = {{"ROOT", 0, NULL, false},
                                                             {"A", 5, "ROOT", false}};
    static const struct rcpt_flag_definition flags[] = {{"F", "ROOT"}};
    static const struct rcpt_override_definition overrides[] = {{"email", "ROOT", "A"}};
    struct rcpt_ladder_definition definition = {statuses, 2, flags, 1, overrides, 1};
    struct rcpt_ladder *ladder = new_ladder(&definition);
    assert_int_equal(named(ladder, "F", "")->top, 0);
    assert_int_equal(named(ladder, "ROOT", "email")->code, 5);
    assert_int_equal(named(ladder, "ROOT", "sms")->code, 0);
    rcpt_ladder_free(ladder);
}

static void the_largest_ladder_fits(void **state)
{
    (void)state;
    static char names[RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS][RCPT_LADDER_MAX_NAME + 1];
    struct rcpt_status_definition statuses[RCPT_LADDER_MAX_STATUSES];
    struct rcpt_flag_definition flags[RCPT_LADDER_MAX_FLAGS];
    for (int i = 0; i < RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS; i++) {
        snprintf(names[i], sizeof(names[i]), "A_NAME_THAT_IS_AS_LONG_AS_IT_CAN_BE__%03u",
                 (unsigned)i % 1000);
        if (i < RCPT_LADDER_MAX_STATUSES)
            statuses[i] = (struct rcpt_status_definition){names[i], i == 99 ? 9000 : i,
                                                          i > 0 ? names[i - 1] : NULL, false};
        else
            flags[i - RCPT_LADDER_MAX_STATUSES] = (struct rcpt_flag_definition){names[i], names[9]};
    }
    struct rcpt_ladder_definition definition = {
        statuses, COUNT(statuses), flags, COUNT(flags), NULL, 0};
    struct rcpt_ladder *ladder = new_ladder(&definition);
    for (size_t i = 0; i < COUNT(names); i++)
        assert_string_equal(named(ladder, names[i], "sms")->name, names[i]);
    assert_int_equal(named(ladder, names[130], "")->mask, 1u << 30);
    assert_int_equal(named(ladder, names[130], "")->code, 9031);
    assert_int_equal(named(ladder, names[130], "")->top, 9);
    rcpt_ladder_free(ladder);
}

struct refusal {
    struct rcpt_status_definition statuses[3];
    struct rcpt_flag_definition flags[2];
    struct rcpt_override_definition overrides[2];
    const char *says;
};

#define ROOT                                                                                       \
    {                                                                                              \
        "ROOT", 0, NULL, false                                                                     \
    }

static const struct refusal refusals[] = {
    {.statuses = {{"ROOT", 5, NULL, false}}, .says = "no status has code 0"},
    {.statuses = {ROOT, {"TWO", 5, NULL, false}}, .says = "status TWO has no parent"},
    {.statuses = {{"ROOT", 0, "TWO", false}, {"TWO", 5, "ROOT", false}},
     .says = "the root ROOT has the parent TWO"},
    {.statuses = {ROOT, {"ROOT", 5, "ROOT", false}}, .says = "ROOT is defined twice"},
    {.statuses = {ROOT, {"A", 5, "ROOT", false}, {"B", 5, "ROOT", false}},
     .says = "have the same code 5"},
    {.statuses = {ROOT, {"A", 5, "NONE", false}}, .says = "parent NONE of status A is not defined"},
    {.statuses = {ROOT, {"A", 5, "B", false}, {"B", 6, "ROOT", false}},
     .says = "parent B (6) of status A (5) has no smaller code"},
    {.statuses = {ROOT, {"A", 5, "A", false}},
     .says = "parent A (5) of status A (5) has no smaller code"},
    {.statuses = {ROOT, {"A", -1, "ROOT", false}}, .says = "status A has code -1"},
    {.statuses = {ROOT, {"A", 9001, "ROOT", false}}, .says = "status A has code 9001"},
    {.statuses = {ROOT, {"a", 5, "ROOT", false}}, .says = "\"a\" is not a name"},
    {.statuses = {ROOT, {"", 5, "ROOT", false}}, .says = "\"\" is not a name"},
    {.statuses = {ROOT, {"A12345678901234567890123456789012345678901", 5, "ROOT", false}},
     .says = "is not a name"},
    {.statuses = {ROOT}, .flags = {{"ROOT", NULL}}, .says = "ROOT is defined twice"},
    {.statuses = {ROOT}, .flags = {{"F", NULL}, {"F", NULL}}, .says = "F is defined twice"},
    {.statuses = {ROOT}, .flags = {{"F", "NONE"}}, .says = "flag F implies NONE"},
    {.statuses = {ROOT}, .flags = {{"F", NULL}, {"G", "F"}}, .says = "flag G implies F"},
    {.statuses = {ROOT, {"A", 5, "ROOT", false}},
     .overrides = {{"email", "A", "NONE"}},
     .says = "override names NONE"},
    {.statuses = {ROOT, {"A", 5, "ROOT", false}},
     .overrides = {{"email", "NONE", "A"}},
     .says = "override names NONE"},
    {.statuses = {ROOT, {"A", 5, "ROOT", false}},
     .overrides = {{"", "A", "ROOT"}},
     .says = "override of A has no channel"},
    {.statuses = {ROOT, {"A", 5, "ROOT", false}},
     .overrides = {{"email", "A", "A"}, {"email", "A", "ROOT"}},
     .says = "A has two overrides for channel email"},
};

static void contradictions_are_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        const struct refusal *refusal = &refusals[i];
        struct rcpt_ladder_definition definition = {refusal->statuses,  0, refusal->flags, 0,
                                                    refusal->overrides, 0};
        while (definition.status_count < 3 && refusal->statuses[definition.status_count].name)
            definition.status_count++;
        while (definition.flag_count < 2 && refusal->flags[definition.flag_count].name)
            definition.flag_count++;
        while (definition.override_count < 2 &&
               refusal->overrides[definition.override_count].status)
            definition.override_count++;
        struct rcpt_error error;
        assert_null(rcpt_ladder_new(&definition, &error));
        if (strstr(error.text, refusal->says) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", error.text, refusal->says);
        assert_int_equal(error.decision, RCPT_DECISION_FATAL);
        assert_true(error.hint[0] != '\0');
    }
}

static void too_many_are_refused(void **state)
{
    (void)state;
    struct rcpt_error error;
    struct rcpt_ladder_definition definition = {.status_count = RCPT_LADDER_MAX_STATUSES + 1};
    assert_null(rcpt_ladder_new(&definition, &error));
    assert_non_null(strstr(error.text, "101 statuses, at most 100"));
    definition = (struct rcpt_ladder_definition){.flag_count = RCPT_LADDER_MAX_FLAGS + 1};
    assert_null(rcpt_ladder_new(&definition, &error));
    definition = (struct rcpt_ladder_definition){.override_count = RCPT_LADDER_MAX_OVERRIDES + 1};
    assert_null(rcpt_ladder_new(&definition, &error));
}

static void assert_same_hash(const struct rcpt_ladder_definition *definition, const char *hash,
                             bool same)
{
    struct rcpt_ladder *ladder = new_ladder(definition);
    assert_int_equal(strlen(rcpt_ladder_hash(ladder)), 16);
    assert_int_equal(strcmp(rcpt_ladder_hash(ladder), hash) == 0, same);
    rcpt_ladder_free(ladder);
}

/* Databases pin the hash: a new version must not give the same ladder another one. */
static void the_default_hash_stays_what_it_was(void **state)
{
    (void)state;
    assert_same_hash(rcpt_ladder_default_definition(), "f3bff1fbe59c7784", true);
}

static void the_hash_changes_with_the_meaning_only(void **state)
{
    (void)state;
    static const struct rcpt_status_definition statuses[] = {
        {"ROOT", 0, NULL, false}, {"A", 5, "ROOT", false}, {"B", 6, "A", false}};
    static const struct rcpt_status_definition shuffled[] = {
        {"B", 6, "A", true}, {"ROOT", 0, NULL, true}, {"A", 5, "ROOT", true}};
    static const struct rcpt_status_definition recoded[] = {
        {"ROOT", 0, NULL, false}, {"A", 5, "ROOT", false}, {"B", 7, "A", false}};
    static const struct rcpt_status_definition moved[] = {
        {"ROOT", 0, NULL, false}, {"A", 5, "ROOT", false}, {"B", 6, "ROOT", false}};
    static const struct rcpt_status_definition renamed[] = {
        {"ROOT", 0, NULL, false}, {"A", 5, "ROOT", false}, {"C", 6, "A", false}};
    static const struct rcpt_flag_definition flags[] = {{"F", "A"}, {"G", NULL}};
    static const struct rcpt_flag_definition swapped[] = {{"G", NULL}, {"F", "A"}};
    static const struct rcpt_flag_definition implying[] = {{"F", "B"}, {"G", NULL}};
    static const struct rcpt_override_definition overrides[] = {{"x", "A", "B"}, {"y", "A", "B"}};
    static const struct rcpt_override_definition turned[] = {{"y", "A", "B"}, {"x", "A", "B"}};
    static const struct rcpt_override_definition others[] = {{"x", "A", "B"}, {"z", "A", "B"}};

    struct rcpt_ladder_definition base = {statuses, 3, flags, 2, overrides, 2};
    struct rcpt_ladder *ladder = new_ladder(&base);
    const char *hash = rcpt_ladder_hash(ladder);
    assert_same_hash(&(struct rcpt_ladder_definition){shuffled, 3, flags, 2, turned, 2}, hash,
                     true);
    assert_same_hash(&(struct rcpt_ladder_definition){recoded, 3, flags, 2, overrides, 2}, hash,
                     false);
    assert_same_hash(&(struct rcpt_ladder_definition){moved, 3, flags, 2, overrides, 2}, hash,
                     false);
    assert_same_hash(&(struct rcpt_ladder_definition){renamed, 3, flags, 2, NULL, 0}, hash, false);
    assert_same_hash(&(struct rcpt_ladder_definition){statuses, 3, swapped, 2, overrides, 2}, hash,
                     false);
    assert_same_hash(&(struct rcpt_ladder_definition){statuses, 3, implying, 2, overrides, 2}, hash,
                     false);
    assert_same_hash(&(struct rcpt_ladder_definition){statuses, 3, flags, 2, overrides, 1}, hash,
                     false);
    assert_same_hash(&(struct rcpt_ladder_definition){statuses, 3, flags, 2, others, 2}, hash,
                     false);
    rcpt_ladder_free(ladder);
}

/* ---- growth ---- */

static const struct rcpt_status_definition small_statuses[] = {
    {"ROOT", 0, NULL, false}, {"A", 5, "ROOT", false}, {"B", 6, "A", false}};
static const struct rcpt_flag_definition small_flags[] = {{"F", "A"}};
static const struct rcpt_override_definition small_overrides[] = {{"x", "A", "B"}};
static const struct rcpt_ladder_definition small = {small_statuses,  3, small_flags, 1,
                                                    small_overrides, 1};
static const struct rcpt_status_definition more_statuses[] = {{"C", 7, "B", false},
                                                              {"ROOT", 0, NULL, false},
                                                              {"EARLY", 2, "ROOT", true},
                                                              {"B", 6, "A", true},
                                                              {"A", 5, "ROOT", false}};
static const struct rcpt_flag_definition more_flags[] = {{"F", "A"}, {"G", "C"}};
static const struct rcpt_override_definition more_overrides[] = {
    {"y", "C", "B"}, {"x", "A", "B"}, {"y", "A", "EARLY"}};
static const struct rcpt_ladder_definition more = {more_statuses,  5, more_flags, 2,
                                                   more_overrides, 3};

static void a_grown_ladder_reads_as_the_new_one_and_keeps_its_entries(void **state)
{
    (void)state;
    struct rcpt_error error;
    struct rcpt_ladder *ladder = new_ladder(&small), *fresh = new_ladder(&more);
    int a = find(ladder, "A", ""), flag = find(ladder, "F", "");
    assert_true(rcpt_ladder_can_grow(ladder, fresh, &error));
    rcpt_ladder_grow(ladder, fresh);
    assert_int_equal(find(ladder, "A", ""), a);
    assert_int_equal(find(ladder, "F", ""), flag);
    assert_int_equal(rcpt_ladder_entry_count(ladder), rcpt_ladder_entry_count(fresh));
    assert_string_equal(rcpt_ladder_hash(ladder), rcpt_ladder_hash(fresh));
    static const char *const names[] = {"ROOT", "EARLY", "A", "B", "C", "F", "G"};
    static const char *const channels[] = {"", "x", "y"};
    for (size_t index = 0; index < COUNT(names) * COUNT(channels); index++) {
        const char *name = names[index % COUNT(names)], *channel = channels[index / COUNT(names)];
        const struct rcpt_ladder_entry *one = named(ladder, name, channel),
                                       *other = named(fresh, name, channel);
        assert_string_equal(one->name, other->name);
        assert_int_equal(one->code, other->code);
        assert_int_equal(one->parent, other->parent);
        assert_int_equal(one->top, other->top);
        assert_int_equal(one->mask, other->mask);
        assert_int_equal(one->terminal, other->terminal);
        assert_int_equal(rcpt_ladder_find_code(ladder, one->code, NULL, 0),
                         find(ladder, one->name, ""));
    }
    assert_true(rcpt_ladder_can_grow(ladder, fresh, &error));
    rcpt_ladder_grow(ladder, fresh);
    assert_int_equal(rcpt_ladder_entry_count(ladder), rcpt_ladder_entry_count(fresh));
    rcpt_ladder_free(ladder);
    rcpt_ladder_free(fresh);
}

static void what_is_no_growth_is_refused_with_what_is_in_the_way(void **state)
{
    (void)state;
    static const struct rcpt_status_definition moved[] = {
        {"ROOT", 0, NULL, false}, {"A", 5, "ROOT", false}, {"B", 6, "ROOT", false}};
    static const struct rcpt_status_definition renamed[] = {
        {"ROOT", 0, NULL, false}, {"A", 5, "ROOT", false}, {"Z", 6, "A", false}};
    static const struct rcpt_flag_definition implying[] = {{"F", "B"}};
    static const struct rcpt_override_definition another[] = {{"x", "A", "ROOT"}};
    static const struct rcpt_override_definition second[] = {{"x", "A", "B"}, {"y", "A", "B"}};
    static const struct rcpt_override_definition of_root[] = {{"x", "A", "B"}, {"y", "ROOT", "A"}};
    static const struct rcpt_override_definition to_root[] = {{"x", "A", "B"}, {"y", "B", "ROOT"}};
    static const struct rcpt_override_definition unused[] = {{"x", "A", "ROOT"}};
    static const struct {
        struct rcpt_ladder_definition definition;
        const char *words;
    } cases[] = {
        {{small_statuses, 2, small_flags, 1, NULL, 0}, "status B (6) is gone"},
        {{small_statuses, 3, NULL, 0, small_overrides, 1}, "flag F (9001) is gone"},
        {{moved, 3, small_flags, 1, small_overrides, 1},
         "status B (6) has the parent 0 instead of 5"},
        {{renamed, 3, small_flags, 1, unused, 1}, "status B (6) is called Z now"},
        {{small_statuses, 3, implying, 1, small_overrides, 1}, "flag F implies 6 instead of 5"},
        {{small_statuses, 3, small_flags, 1, another, 1},
         "override of A on channel x is gone or another"},
        {{small_statuses, 3, small_flags, 1, second, 2}, "A gets another meaning on channel y"},
        {{small_statuses, 3, small_flags, 1, of_root, 2}, "ROOT gets another meaning on channel y"},
        {{small_statuses, 3, small_flags, 1, to_root, 2}, "B gets another meaning on channel y"},
    };
    struct rcpt_ladder *ladder = new_ladder(&small);
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct rcpt_error error;
        struct rcpt_ladder *fresh = new_ladder(&cases[index].definition);
        assert_false(rcpt_ladder_can_grow(ladder, fresh, &error));
        assert_non_null(strstr(error.text, cases[index].words));
        assert_true(error.hint[0] != '\0');
        rcpt_ladder_free(fresh);
    }
    rcpt_ladder_free(ladder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_statuses_are_the_contract),
        cmocka_unit_test(default_flags_imply_delivered_but_for_resubscribed),
        cmocka_unit_test(names_and_codes_find_the_same_entries),
        cmocka_unit_test(what_is_not_in_the_ladder_is_not_found),
        cmocka_unit_test(a_channel_overrides_names_and_codes),
        cmocka_unit_test(the_root_may_be_implied_and_overridden),
        cmocka_unit_test(the_largest_ladder_fits),
        cmocka_unit_test(contradictions_are_refused_by_name),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(the_default_hash_stays_what_it_was),
        cmocka_unit_test(the_hash_changes_with_the_meaning_only),
        cmocka_unit_test(a_grown_ladder_reads_as_the_new_one_and_keeps_its_entries),
        cmocka_unit_test(what_is_no_growth_is_refused_with_what_is_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "folds/pending.h"
#include "receiptd/base/error.h"

#define WINDOW 1000

static size_t count_of(struct rcpt_fold_pending *pending)
{
    return rcpt_fold_pending_list_all(pending).count;
}

static struct rcpt_fold_transition transition(const char *campaign, int16_t new, int64_t count,
                                              int64_t at_us)
{
    return (struct rcpt_fold_transition){.org = RCPT_TEXT("o"),
                                         .campaign = rcpt_text_of(campaign),
                                         .new = new,
                                         .count = count,
                                         .first_us = at_us,
                                         .last_us = at_us};
}

static void add(struct rcpt_fold_pending *pending, const char *campaign, int16_t new, int64_t count,
                int64_t at_us)
{
    struct rcpt_fold_transition given = transition(campaign, new, count, at_us);
    rcpt_fold_pending_add(pending, &given);
}

/* Each campaign is a group of rule "r". */
static void learn(struct rcpt_fold_pending *pending, const struct rcpt_fold_list *list)
{
    for (size_t index = list->known; index < list->count; index++)
        rcpt_fold_pending_learn(pending, index, RCPT_TEXT("r"), list->entries[index]->campaign,
                                WINDOW);
    rcpt_fold_pending_learnt(pending);
}

static void hand_over(struct rcpt_fold_pending *pending, const struct rcpt_fold_list *list)
{
    rcpt_fold_pending_flushed(pending);
    learn(pending, list);
}

static size_t ask(struct rcpt_fold_pending *pending)
{
    struct rcpt_fold_list list = rcpt_fold_pending_list_unknown(pending);
    assert_int_equal(list.known, 0);
    learn(pending, &list);
    return list.count;
}

/* Returns how many entries were known.
 */
static size_t flush(struct rcpt_fold_pending *pending)
{
    struct rcpt_fold_list list = rcpt_fold_pending_list_all(pending);
    hand_over(pending, &list);
    return list.known;
}

static struct rcpt_fold_recency recency(struct rcpt_fold_pending *pending, const char *campaign)
{
    return rcpt_fold_pending_recency(pending, RCPT_TEXT("r"), rcpt_text_of(campaign));
}

static void sums_are_by_kind(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    struct rcpt_fold_list list;
    add(pending, "a", 300, 2, 50);
    add(pending, "a", 300, 5, 40);
    add(pending, "a", 300, 1, 60);
    assert_int_equal(rcpt_fold_pending_since_us(pending), 40);
    list = rcpt_fold_pending_list_all(pending);
    assert_int_equal(list.known, 0);
    assert_int_equal(list.count, 1);
    assert_true(rcpt_text_is(list.entries[0]->campaign, "a") &&
                rcpt_text_is(list.entries[0]->org, "o"));
    assert_int_equal(list.entries[0]->count, 8);
    assert_int_equal(list.entries[0]->first_us, 40);
    assert_int_equal(list.entries[0]->last_us, 60);

    struct rcpt_fold_transition early = transition("a", 300, 1, 50);
    early.first_row = early.last_row = -7; /* a row that another lane committed late */
    rcpt_fold_pending_add(pending, &early);
    early.first_row = early.last_row = 9;
    rcpt_fold_pending_add(pending, &early);
    assert_int_equal(list.entries[0]->first_row, -7);
    assert_int_equal(list.entries[0]->last_row, 9);

    struct rcpt_fold_transition other[6];
    for (size_t index = 0; index < 6; index++)
        other[index] = transition("a", 300, 1, 50);
    other[0].campaign = RCPT_TEXT("b");
    other[1].org = RCPT_TEXT("p");
    other[2].old = 200;
    other[3].gained = 1;
    other[4].columns = RCPT_TEXT("{}");
    other[5].columns = RCPT_TEXT("");
    for (size_t index = 0; index < 6; index++) {
        rcpt_fold_pending_add(pending, &other[index]);
        assert_int_equal(count_of(pending), 2 + index);
        rcpt_fold_pending_add(pending, &other[index]);
        assert_int_equal(count_of(pending), 2 + index);
    }
    rcpt_fold_pending_free(pending);
}

static void a_sum_keeps_the_first_link(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    struct rcpt_fold_list list;
    struct rcpt_fold_transition given = transition("a", 300, 1, 1);
    rcpt_fold_pending_add(pending, &given);
    for (int round = 0; round < 2; round++) {
        char link[] = "first";
        link[4] = (char)('0' + round);
        given.link = rcpt_text_of(link);
        rcpt_fold_pending_add(pending, &given);
        memset(link, 'x', 5); /* it was copied */
        list = rcpt_fold_pending_list_all(pending);
        assert_true(rcpt_text_is(list.entries[0]->link, round == 0 ? "firs0" : "firs1"));
        rcpt_fold_pending_flushed(pending);
        given.link = (struct rcpt_text){NULL, 0};
        rcpt_fold_pending_add(pending, &given);
    }
    list = rcpt_fold_pending_list_all(pending);
    assert_null(list.entries[0]->link.at); /* of the next sum's own */
    rcpt_fold_pending_free(pending);
}

static void what_is_handed_over_is_not_there_any_more(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    struct rcpt_fold_list list;
    add(pending, "a", 300, 2, 50);
    add(pending, "b", 300, 3, 60);
    assert_int_equal(flush(pending), 0);
    assert_int_equal(count_of(pending), 0);
    assert_true(rcpt_fold_pending_since_us(pending) == INT64_MAX);
    assert_int_equal(rcpt_fold_pending_idleness(pending, INT64_MAX / 2, 0), RCPT_FOLD_ALL_BUSY);
    add(pending, "c", 300, 1, 70);
    add(pending, "b", 300, 4, 80);
    list = rcpt_fold_pending_list_all(pending);
    assert_int_equal(list.known, 1); /* b is known, comes first */
    assert_int_equal(list.count, 2);
    assert_true(rcpt_text_is(list.entries[0]->campaign, "b") && list.entries[0]->count == 4);
    assert_int_equal(list.entries[0]->first_us, 80);
    assert_true(rcpt_text_is(list.entries[1]->campaign, "c") && list.entries[1]->count == 1);
    rcpt_fold_pending_free(pending);
}

static void an_entry_whose_groups_are_unknown_is_quiet_after_the_least_window(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    assert_int_equal(RCPT_FOLD_ALL_BUSY, rcpt_fold_pending_idleness(pending, 1000, 10));
    add(pending, "a", 300, 1, 50);
    assert_int_equal(RCPT_FOLD_ALL_BUSY, rcpt_fold_pending_idleness(pending, 59, 10));
    assert_int_equal(RCPT_FOLD_UNKNOWN_IDLE, rcpt_fold_pending_idleness(pending, 60, 10));
    add(pending, "a", 300, 1, 55);
    assert_int_equal(RCPT_FOLD_ALL_BUSY, rcpt_fold_pending_idleness(pending, 60, 10));
    rcpt_fold_pending_free(pending);
}

static void a_known_group_is_quiet_after_its_own_window(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    add(pending, "a", 300, 1, 50);
    add(pending, "a", 440, 1, 50);
    flush(pending);
    assert_int_equal(RCPT_FOLD_ALL_BUSY, rcpt_fold_pending_idleness(pending, 5000, 0)); /* no sum */
    add(pending, "a", 300, 1, 60);
    assert_int_equal(RCPT_FOLD_ALL_BUSY, rcpt_fold_pending_idleness(pending, 60 + WINDOW - 1, 0));
    assert_int_equal(RCPT_FOLD_KNOWN_IDLE, rcpt_fold_pending_idleness(pending, 60 + WINDOW, 0));
    add(pending, "a", 440, 1, 70); /* another kind, the same group */
    assert_int_equal(RCPT_FOLD_ALL_BUSY, rcpt_fold_pending_idleness(pending, 60 + WINDOW, 0));
    rcpt_fold_pending_free(pending);
}

static void heat_is_of_the_last_transition_handed_over_or_not(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    add(pending, "a", 300, 1, 50);
    assert_true(recency(pending, "a").last_us == INT64_MIN); /* unknown */
    flush(pending);
    assert_true(recency(pending, "a").last_us == 50 && !recency(pending, "a").has_sum);
    add(pending, "a", 300, 1, 90);
    add(pending, "a", 300, 1, 80);
    assert_true(recency(pending, "a").last_us == 90 && recency(pending, "a").has_sum);
    assert_true(recency(pending, "b").last_us == INT64_MIN && !recency(pending, "b").has_sum);
    assert_true(rcpt_fold_pending_recency(pending, RCPT_TEXT("s"), RCPT_TEXT("a")).last_us ==
                INT64_MIN);
    rcpt_fold_pending_free(pending);
}

static void an_entry_of_no_group_keeps_nobody_waiting(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    add(pending, "a", 300, 1, 50);
    (void)rcpt_fold_pending_list_all(pending);
    rcpt_fold_pending_flushed(pending);
    rcpt_fold_pending_learnt(pending);
    add(pending, "a", 300, 1, 60);
    assert_int_equal(RCPT_FOLD_ALL_BUSY, rcpt_fold_pending_idleness(pending, 1000000, 0));
    assert_int_equal(count_of(pending), 1); /* its row has to go some time */
    rcpt_fold_pending_free(pending);
}

static void with_other_rules_nothing_is_known_but_the_sums(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    struct rcpt_fold_list list;
    add(pending, "a", 300, 1, 50);
    flush(pending);
    add(pending, "a", 300, 2, 60);
    rcpt_fold_pending_unlearn(pending);
    assert_true(recency(pending, "a").last_us == INT64_MIN);
    assert_int_equal(RCPT_FOLD_UNKNOWN_IDLE, rcpt_fold_pending_idleness(pending, 60, 0));
    list = rcpt_fold_pending_list_all(pending);
    assert_int_equal(list.known, 0);
    assert_true(list.count == 1 && list.entries[0]->count == 2);
    assert_int_equal(flush(pending), 0);
    assert_true(recency(pending, "a").last_us == 60);
    rcpt_fold_pending_free(pending);
}

static void what_is_forgotten_leaves_nothing(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    add(pending, "a", 300, 1, 50);
    flush(pending);
    add(pending, "a", 300, 1, 60);
    assert_true(rcpt_fold_pending_bytes(pending) > 0);
    rcpt_fold_pending_forget(pending);
    assert_int_equal(rcpt_fold_pending_bytes(pending), 0);
    assert_int_equal(count_of(pending), 0);
    assert_true(rcpt_fold_pending_since_us(pending) == INT64_MAX);
    assert_true(recency(pending, "a").last_us == INT64_MIN);
    add(pending, "a", 300, 1, 70);
    assert_int_equal(count_of(pending), 1);
    rcpt_fold_pending_free(pending);
}

static void what_is_quiet_goes_and_the_others_stay(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    static const char *const names[] = {"idle", "wanted", "busy", "cold"};
    for (size_t index = 0; index < 4; index++)
        add(pending, names[index], 300, 1, 10);
    flush(pending);
    add(pending, "idle", 300, 1, 20);
    add(pending, "idle", 440, 2, 20); /* unknown, another kind */
    add(pending, "wanted", 300, 4, 2000);
    add(pending, "busy", 300, 8, 1500);
    add(pending, "busy", 300, 8, 2000);
    rcpt_fold_pending_select(pending, RCPT_TEXT("r"), RCPT_TEXT("wanted"));
    rcpt_fold_pending_select(pending, RCPT_TEXT("r"), RCPT_TEXT("nobody"));
    struct rcpt_fold_list list = rcpt_fold_pending_list_idle(pending, 20 + WINDOW);
    assert_int_equal(list.known, 2);
    assert_int_equal(list.count, 3);
    assert_int_equal(list.other_count, 1);
    assert_int_equal(list.entries[2]->count, 2);
    assert_true(rcpt_text_is(list.others[0]->campaign, "busy") && list.others[0]->count == 16);
    hand_over(pending, &list);
    assert_int_equal(count_of(pending), 1);
    assert_int_equal(rcpt_fold_pending_since_us(pending), 1500);
    assert_true(recency(pending, "busy").has_sum && !recency(pending, "wanted").has_sum);
    list = rcpt_fold_pending_list_idle(pending, 2500); /* no group is selected any more */
    assert_true(list.count == 0 && list.other_count == 1);
    rcpt_fold_pending_free(pending);
}

/* "a" and "b" are groups of their own rule; both belong to the group "both" of another one, "c"
 * does not. */
static void with_an_entry_all_that_its_groups_have_goes(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    static const char *const names[] = {"a", "b", "c"};
    for (size_t index = 0; index < 3; index++)
        add(pending, names[index], 300, 1, 10);
    struct rcpt_fold_list list = rcpt_fold_pending_list_all(pending);
    rcpt_fold_pending_flushed(pending);
    for (size_t index = 0; index < list.count; index++) {
        struct rcpt_text campaign = list.entries[index]->campaign;
        rcpt_fold_pending_learn(pending, index, RCPT_TEXT("r"), campaign, WINDOW);
        if (!rcpt_text_is(campaign, "c"))
            rcpt_fold_pending_learn(pending, index, RCPT_TEXT("s"), RCPT_TEXT("both"), WINDOW);
    }
    rcpt_fold_pending_learnt(pending);
    add(pending, "a", 300, 1, 20);
    add(pending, "b", 300, 1, 900);
    add(pending, "c", 300, 1, 900);
    list = rcpt_fold_pending_list_idle(pending, 20 + WINDOW);
    assert_int_equal(list.count, 2);
    assert_true(list.other_count == 1 && rcpt_text_is(list.others[0]->campaign, "c"));
    rcpt_fold_pending_free(pending);
}

/* Beside a plain list of what was given. */
static void sums_of_many_kinds_are_exact_over_many_rounds(void **state)
{
    enum { KINDS = 3000, ROUNDS = 4 };
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    for (int round = 0; round < ROUNDS; round++) {
        int64_t expected[KINDS] = {0};
        struct rcpt_fold_list list;
        size_t kinds = 0;
        uint32_t chance = 12345u + (uint32_t)round;
        for (int event = 0; event < 5 * KINDS; event++) {
            chance = chance * 1664525u + 1013904223u;
            unsigned kind = (chance >> 8) % KINDS;
            char campaign[16];
            snprintf(campaign, sizeof(campaign), "c%u", kind / 2);
            kinds += expected[kind] == 0;
            expected[kind] += 1 + event % 3;
            add(pending, campaign, kind % 2 == 0 ? 300 : 600, 1 + event % 3, event);
        }
        list = rcpt_fold_pending_list_all(pending);
        assert_int_equal(list.count, kinds);
        assert_true(round == 0 ? list.known == 0 : list.known > 0);
        for (size_t index = 0; index < list.count; index++) {
            unsigned long number = strtoul(list.entries[index]->campaign.at + 1, NULL, 10);
            assert_int_equal(list.entries[index]->count,
                             expected[2 * number + (list.entries[index]->new == 600)]);
        }
        flush(pending);
    }
    rcpt_fold_pending_free(pending);
}

static void what_is_asked_about_keeps_its_sum(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    add(pending, "a", 300, 2, 50);
    add(pending, "b", 300, 1, 60);
    assert_int_equal(ask(pending), 2);
    assert_int_equal(ask(pending), 0);
    assert_int_equal(count_of(pending), 2);
    assert_int_equal(rcpt_fold_pending_since_us(pending), 50);
    assert_true(recency(pending, "a").has_sum && recency(pending, "a").last_us == 50);
    add(pending, "a", 600, 1, 70);
    assert_int_equal(ask(pending), 1);
    assert_int_equal(recency(pending, "a").last_us, 70);
    assert_int_equal(rcpt_fold_pending_idleness(pending, 59 + WINDOW, WINDOW), RCPT_FOLD_ALL_BUSY);
    assert_int_equal(rcpt_fold_pending_idleness(pending, 60 + WINDOW, WINDOW),
                     RCPT_FOLD_KNOWN_IDLE);
    assert_int_equal(flush(pending), 3);
    assert_false(recency(pending, "a").has_sum);
    rcpt_fold_pending_free(pending);
}

static void the_largest_sum_is_that_of_an_entry(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    assert_int_equal(rcpt_fold_pending_largest(pending), 0);
    add(pending, "a", 300, 7, 50);
    add(pending, "b", 300, 5, 5000);
    add(pending, "a", 300, 2, 60);
    assert_int_equal(rcpt_fold_pending_largest(pending), 9);
    ask(pending);
    struct rcpt_fold_list list = rcpt_fold_pending_list_idle(pending, 60 + WINDOW);
    assert_int_equal(list.count, 1);
    hand_over(pending, &list);
    assert_int_equal(rcpt_fold_pending_largest(pending), 5); /* what stays */
    flush(pending);
    assert_int_equal(rcpt_fold_pending_largest(pending), 0);
    rcpt_fold_pending_free(pending);
}

enum { CAMPAIGNS = 12, KINDS_OF_ONE = 2, LEAST = 700 };

struct model { /* of a campaign, which is a group */
    int64_t last[KINDS_OF_ONE], group_last;
    bool has_sum[KINDS_OF_ONE], known[KINDS_OF_ONE];
};

static void take_over(struct model *model, int kind)
{
    if (model->known[kind] && model->has_sum[kind] && model->last[kind] > model->group_last)
        model->group_last = model->last[kind];
}

static enum rcpt_fold_idleness expected_idleness(struct model models[CAMPAIGNS], int64_t now)
{
    enum rcpt_fold_idleness idle = RCPT_FOLD_ALL_BUSY;
    for (struct model *model = models; model < models + CAMPAIGNS; model++) {
        bool has_sum = false;
        for (int kind = 0; kind < KINDS_OF_ONE; kind++) {
            if (model->has_sum[kind] && !model->known[kind] && model->last[kind] + LEAST <= now)
                return RCPT_FOLD_UNKNOWN_IDLE;
            has_sum |= model->has_sum[kind] && model->known[kind];
            take_over(model, kind);
        }
        if (has_sum && model->group_last + WINDOW <= now)
            idle = RCPT_FOLD_KNOWN_IDLE;
    }
    return idle;
}

static void model_flush(struct model models[CAMPAIGNS])
{
    for (struct model *model = models; model < models + CAMPAIGNS; model++)
        for (int kind = 0; kind < KINDS_OF_ONE; kind++) {
            model->known[kind] |= model->has_sum[kind];
            take_over(model, kind);
            model->has_sum[kind] = false;
        }
}

static void model_ask(struct model models[CAMPAIGNS])
{
    for (struct model *model = models; model < models + CAMPAIGNS; model++)
        for (int kind = 0; kind < KINDS_OF_ONE; kind++)
            model->known[kind] |= model->has_sum[kind];
}

static void model_unlearn(struct model models[CAMPAIGNS])
{
    for (struct model *model = models; model < models + CAMPAIGNS; model++) {
        model->group_last = INT64_MIN;
        for (int kind = 0; kind < KINDS_OF_ONE; kind++)
            model->known[kind] = false;
    }
}

/* Quiet is not looked for in all of it each time: here it is. */
static void what_is_quiet_is_found_as_by_looking_at_everything(void **state)
{
    (void)state;
    struct rcpt_fold_pending *pending = rcpt_fold_pending_new();
    struct model models[CAMPAIGNS];
    uint32_t chance = 99;
    int found[RCPT_FOLD_UNKNOWN_IDLE + 1] = {0};
    memset(models, 0, sizeof(models));
    model_unlearn(models);
    for (int64_t now = 0; now < 2000000; now += 1 + (chance >> 8) % 90) {
        char campaign[16];
        chance = chance * 1664525u + 1013904223u;
        unsigned number = (chance >> 8) % CAMPAIGNS, kind = (chance >> 20) % KINDS_OF_ONE;
        snprintf(campaign, sizeof(campaign), "c%u", number);
        int64_t at = now - (int64_t)((chance >> 12) % 50);
        add(pending, campaign, kind == 0 ? 300 : 600, 1, at);
        struct model *model = &models[number];
        if (!model->has_sum[kind] || at > model->last[kind])
            model->last[kind] = at;
        model->has_sum[kind] = true;
        if ((chance >> 10) % 3 == 0) {
            enum rcpt_fold_idleness idle = rcpt_fold_pending_idleness(pending, now, LEAST);
            assert_int_equal(idle, expected_idleness(models, now));
            found[idle]++;
        }
        if ((chance >> 9) % 40 == 0) {
            flush(pending);
            model_flush(models);
        }
        if ((chance >> 9) % 23 == 0) {
            ask(pending);
            model_ask(models);
        }
        if ((chance >> 9) % 997 == 0) {
            rcpt_fold_pending_unlearn(pending);
            model_unlearn(models);
        }
    }
    assert_true(found[RCPT_FOLD_ALL_BUSY] > 100 && found[RCPT_FOLD_KNOWN_IDLE] > 100 &&
                found[RCPT_FOLD_UNKNOWN_IDLE] > 100);
    rcpt_fold_pending_free(pending);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_by_kind),
        cmocka_unit_test(a_sum_keeps_the_first_link),
        cmocka_unit_test(what_is_handed_over_is_not_there_any_more),
        cmocka_unit_test(an_entry_whose_groups_are_unknown_is_quiet_after_the_least_window),
        cmocka_unit_test(a_known_group_is_quiet_after_its_own_window),
        cmocka_unit_test(heat_is_of_the_last_transition_handed_over_or_not),
        cmocka_unit_test(an_entry_of_no_group_keeps_nobody_waiting),
        cmocka_unit_test(with_other_rules_nothing_is_known_but_the_sums),
        cmocka_unit_test(what_is_forgotten_leaves_nothing),
        cmocka_unit_test(what_is_quiet_goes_and_the_others_stay),
        cmocka_unit_test(with_an_entry_all_that_its_groups_have_goes),
        cmocka_unit_test(sums_of_many_kinds_are_exact_over_many_rounds),
        cmocka_unit_test(what_is_asked_about_keeps_its_sum),
        cmocka_unit_test(the_largest_sum_is_that_of_an_entry),
        cmocka_unit_test(what_is_quiet_is_found_as_by_looking_at_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

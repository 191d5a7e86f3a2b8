/* Cells of counts: what is added up, what is dropped, in which order they come; words; paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/paths.h"
#include "receiptd/core/tally.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

struct addition {
    const char *campaign, *key;
    uint32_t minute;
    int16_t status;
    uint8_t kind;
    int64_t messages, events;
};

static void add(struct rcpt_tally *tally, struct rcpt_words *words, const struct addition *addition)
{
    rcpt_tally_add(tally,
                   (struct rcpt_tally_place){
                       .campaign = rcpt_words_find(words, rcpt_text_of(addition->campaign)),
                       .key = rcpt_words_find(words, rcpt_text_of(addition->key)),
                       .minute = addition->minute,
                       .status = addition->status,
                       .kind = addition->kind},
                   addition->messages, addition->events);
}

static void begin(struct rcpt_tally *tally, struct rcpt_words *words)
{
    rcpt_words_begin(words);
    rcpt_tally_begin(tally);
}

static void finish(struct rcpt_tally *tally, struct rcpt_words *words)
{
    rcpt_words_rank(words);
    rcpt_tally_finish(tally);
}

/* KIND CAMPAIGN MINUTE KEY STATUS MESSAGES/EVENTS */
static void assert_cells(const struct rcpt_tally *tally, const char *expected)
{
    char text[1024] = "";
    size_t used = 0;
    uint32_t count;
    const struct rcpt_tally_cell *cells = rcpt_tally_cells(tally, &count);
    for (uint32_t index = 0; index < count; index++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d %s %u %s %d %lld/%lld",
                                 index > 0 ? ", " : "", cells[index].place.kind,
                                 cells[index].place.campaign->text.at, cells[index].place.minute,
                                 cells[index].place.key->text.at, cells[index].place.status,
                                 (long long)cells[index].messages, (long long)cells[index].events);
    assert_string_equal(text, expected);
}

/* Each member decides where those before it are the same. Statuses may be negative. */
static const struct addition sorted[] = {
    {"", "", 0, -5, 0, 1, 0},  {"", "", 0, 3, 0, 1, 0},    {"", "k", 0, 3, 0, 1, 0},
    {"", "", 1, 3, 0, 1, 0},   {"a", "", 0, 3, 0, 1, 0},   {"aa", "", 0, 3, 0, 1, 0},
    {"b", "", 0, 3, 0, 1, 0},  {"ä", "", 0, 3, 0, 1, 0},   {"", "", 0, 300, 2, 1, 0},
    {"", "b", 0, -1, 2, 1, 0}, {"", "ba", 0, -1, 2, 1, 0}, {"c", "", 0, 1, 31, 0, 1},
};

static const char expected[] =
    "0  0  -5 1/0, 0  0  3 1/0, 0  0 k 3 1/0, 0  1  3 1/0, 0 a 0  3 1/0, 0 aa 0  3 1/0, "
    "0 b 0  3 1/0, 0 ä 0  3 1/0, 2  0  300 1/0, 2  0 b -1 1/0, 2  0 ba -1 1/0, 31 c 0  1 0/1";

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

static void cells_come_sorted_whatever_the_order(void **state)
{
    (void)state;
    struct rcpt_tally *tally = rcpt_tally_new();
    struct rcpt_words *words = rcpt_words_new();
    uint64_t seed = 5;
    for (int round = 0; round < 200; round++) {
        struct addition shuffled[LENGTH(sorted)];
        memcpy(shuffled, sorted, sizeof(sorted));
        for (uint32_t index = LENGTH(sorted) - 1; index > 0; index--) {
            uint32_t other = draw(&seed, index + 1);
            struct addition moved = shuffled[index];
            shuffled[index] = shuffled[other];
            shuffled[other] = moved;
        }
        begin(tally, words);
        for (size_t index = 0; index < LENGTH(sorted); index++)
            add(tally, words, &shuffled[index]);
        finish(tally, words);
        assert_cells(tally, expected);
    }
    rcpt_tally_free(tally);
    rcpt_words_free(words);
}

static void additions_are_summed_and_zeros_dropped(void **state)
{
    static const struct addition additions[] = {
        {"a", "", 0, 1, 0, 2, 0},  {"a", "", 0, 1, 0, -2, 0}, /* nothing is left */
        {"a", "", 0, 2, 0, 2, 1},  {"a", "", 0, 2, 0, -2, 0}, /* events are */
        {"a", "", 0, 3, 0, 1, -1}, {"a", "", 0, 3, 0, -2, 1}, {"a", "", 0, 4, 5, 0, 0},
    };
    (void)state;
    struct rcpt_tally *tally = rcpt_tally_new();
    struct rcpt_words *words = rcpt_words_new();
    begin(tally, words);
    for (size_t index = 0; index < LENGTH(additions); index++)
        add(tally, words, &additions[index]);
    finish(tally, words);
    assert_cells(tally, "0 a 0  2 0/1, 0 a 0  3 -1/0");
    assert_int_equal(rcpt_tally_range(tally, 0).end, 2);
    assert_int_equal(rcpt_tally_range(tally, 5).end, 0);
    begin(tally, words);
    finish(tally, words);
    assert_cells(tally, "");
    rcpt_tally_free(tally);
    rcpt_words_free(words);
}

static void ranges_divide_the_cells_by_kind(void **state)
{
    (void)state;
    struct rcpt_tally *tally = rcpt_tally_new();
    struct rcpt_words *words = rcpt_words_new();
    begin(tally, words);
    for (size_t index = 0; index < LENGTH(sorted); index++)
        add(tally, words, &sorted[index]);
    finish(tally, words);
    uint32_t count, seen = 0;
    const struct rcpt_tally_cell *cells = rcpt_tally_cells(tally, &count);
    for (uint8_t kind = 0; kind < RCPT_TALLY_KINDS; kind++) {
        struct rcpt_tally_range range = rcpt_tally_range(tally, kind);
        for (uint32_t index = range.first; index < range.end; index++)
            assert_int_equal(cells[index].place.kind, kind);
        seen += range.end - range.first;
    }
    assert_int_equal(seen, LENGTH(sorted));
    assert_int_equal(count, LENGTH(sorted));
    rcpt_tally_free(tally);
    rcpt_words_free(words);
}

/* More cells and texts than the first tables have room for, summed by hand beside it. */
static void many_cells_are_the_sum_of_their_additions(void **state)
{
    static int64_t sums[300][40];
    (void)state;
    struct rcpt_tally *tally = rcpt_tally_new();
    struct rcpt_words *words = rcpt_words_new();
    uint64_t seed = 11;
    for (int round = 0; round < 3; round++) {
        uint32_t found = 0, count;
        memset(sums, 0, sizeof(sums));
        begin(tally, words);
        for (int time = 0; time < 30000; time++) {
            uint32_t campaign = draw(&seed, 300), status = draw(&seed, 40);
            int64_t events = (int64_t)draw(&seed, 5) - 2;
            char text[16];
            snprintf(text, sizeof(text), "%u", campaign);
            add(tally, words, &(struct addition){text, "key", 7, (int16_t)status, 3, 0, events});
            sums[campaign][status] += events;
        }
        finish(tally, words);
        const struct rcpt_tally_cell *cells = rcpt_tally_cells(tally, &count);
        for (uint32_t index = 0; index < count; index++)
            assert_int_equal(
                cells[index].events,
                sums[atoi(cells[index].place.campaign->text.at)][cells[index].place.status]);
        for (size_t campaign = 0; campaign < 300; campaign++)
            for (size_t status = 0; status < 40; status++)
                found += sums[campaign][status] != 0;
        assert_int_equal(count, found);
    }
    rcpt_tally_free(tally);
    rcpt_words_free(words);
}

static void words_are_copied_and_ranked(void **state)
{
    static const char *const ordered[] = {"",         "a",         "aaaaaaaa",  "aaaaaaaaa",
                                          "aaaaaaab", "campaign1", "campaign2", "é"};
    (void)state;
    struct rcpt_words *words = rcpt_words_new();
    const struct rcpt_word *found[LENGTH(ordered)];
    for (size_t index = LENGTH(ordered); index-- > 0;) {
        char text[16];
        snprintf(text, sizeof(text), "%s", ordered[index]);
        found[index] = rcpt_words_find(words, rcpt_text_of(text));
    }
    rcpt_words_rank(words);
    for (size_t index = 0; index < LENGTH(ordered); index++) {
        assert_string_equal(found[index]->text.at, ordered[index]);
        assert_int_equal(found[index]->rank, index);
        assert_ptr_equal(rcpt_words_find(words, rcpt_text_of(ordered[index])), found[index]);
    }
    assert_ptr_equal(rcpt_words_find(words, (struct rcpt_text){NULL, 0}), found[0]);
    /* A NUL is a character; zeros behind a short text are none of it. */
    assert_ptr_not_equal(rcpt_words_find(words, RCPT_TEXT("a\0")), found[1]);
    rcpt_words_free(words);
}

static void paths_say_what_a_change_does(void **state)
{
    static const struct {
        int16_t old, new;
        uint32_t gained;
        const char *steps;
    } cases[] = {
        {0, 600, 0, " 600+1 300+1 200+1"},
        {600, 600, 0, ""},
        {600, 700, 0, " 700+1"},
        {600, 650, 1, " 650+1 600-1 9001+1"},
        {460, 440, 0, " 460-1 440+1 300+1"},
        {300, 300, 1u << 30 | 2, " 9002+1 9031+1"},
        {5, 600, 0, ""}, /* not of the ladder */
        {600, 5, 4, " 9003+1"},
        {-1, 600, 0, ""},
    };
    (void)state;
    static struct rcpt_paths paths;
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    rcpt_paths_read(&paths, ladder);
    for (size_t index = 0; index < LENGTH(cases); index++) {
        struct rcpt_step steps[RCPT_PATHS_MOST_STEPS];
        char text[200] = "";
        uint32_t count = rcpt_paths_steps(&paths, cases[index].old, cases[index].new,
                                          cases[index].gained, steps);
        for (uint32_t at = 0; at < count; at++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), " %d%+d", steps[at].code,
                     steps[at].delta);
        assert_string_equal(text, cases[index].steps);
    }
    assert_true(rcpt_paths_pass(&paths, 700, 600));
    assert_true(rcpt_paths_pass(&paths, 600, 600));
    assert_false(rcpt_paths_pass(&paths, 650, 600));
    assert_false(rcpt_paths_pass(&paths, 5, 5));
    assert_false(rcpt_paths_pass(&paths, 600, RCPT_LADDER_NO_STATUS));
    assert_true(rcpt_paths_pass_terminal(&paths, 440));
    assert_false(rcpt_paths_pass_terminal(&paths, 700));
    assert_int_equal(rcpt_paths_code(&paths, "DELIVERED"), 600);
    assert_int_equal(rcpt_paths_code(&paths, "NOTHING"), RCPT_LADDER_NO_STATUS);
    rcpt_ladder_free(ladder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_come_sorted_whatever_the_order),
        cmocka_unit_test(additions_are_summed_and_zeros_dropped),
        cmocka_unit_test(ranges_divide_the_cells_by_kind),
        cmocka_unit_test(many_cells_are_the_sum_of_their_additions),
        cmocka_unit_test(words_are_copied_and_ranked),
        cmocka_unit_test(paths_say_what_a_change_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

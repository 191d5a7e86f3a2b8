/* What a batch counts, from what became of its messages: by hand for single transitions, and against
 * sums over single messages for random batches in any order of rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/count.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MESSAGES      400u

static struct rcpt_ladder *default_ladder(void)
{
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    assert_non_null(ladder);
    return ladder;
}

/* A batch of messages with one status each, whose signature is that status. */
struct fixture {
    struct rcpt_batch batch;
    struct rcpt_batch_message messages[MESSAGES];
    struct rcpt_batch_signature signatures[MESSAGES];
    int16_t codes[MESSAGES];
    int32_t counts[MESSAGES];
};

static void add_message(struct fixture *fixture, int16_t top, uint32_t mask, int16_t code,
                        int32_t times)
{
    uint32_t index = fixture->batch.message_count++;
    fixture->messages[index] =
        (struct rcpt_batch_message){.top = top, .mask = mask, .signature = (int32_t)index};
    fixture->signatures[index] = (struct rcpt_batch_signature){.first = index, .size = 1};
    fixture->codes[index] = code;
    fixture->counts[index] = times;
    fixture->batch.messages = fixture->messages;
    fixture->batch.signatures = fixture->signatures;
    fixture->batch.signature_codes = fixture->codes;
    fixture->batch.signature_counts = fixture->counts;
    fixture->batch.signature_count = fixture->batch.message_count;
}

static void assert_cells(const struct rcpt_count *count, const char *expected)
{
    char text[1024] = "";
    size_t used = 0;
    uint32_t size;
    const struct rcpt_cell *cells = rcpt_count_cells(count, &size);
    for (uint32_t index = 0; index < size; index++) {
        struct rcpt_text campaign = rcpt_count_campaign(count, cells[index].campaign);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s %d %lld/%lld",
                                 index > 0 ? ", " : "", (int)campaign.size, campaign.at,
                                 cells[index].code, (long long)cells[index].messages,
                                 (long long)cells[index].events);
    }
    assert_string_equal(text, expected);
}

/* Codes of the default ladder: 300 SENT (below 200), 600 DELIVERED, 700 OPENED. */
static void a_transition_moves_its_path(void **state)
{
    static const struct {
        int16_t was, top, code;
        uint32_t had, mask;
        bool changed;
        const char *cells;
    } cases[] = {
        {0, 300, 300, 0, 0, true, "a 200 1/0, a 300 1/1"},
        {300, 300, 300, 0, 0, false, "a 300 0/1"},
        {0, 600, 600, 0, 0, true, "a 200 1/0, a 300 1/0, a 600 1/1"},
        {600, 700, 700, 0, 0, true, "a 700 1/1"},
        {0, 600, 9001, 0, 1, true, "a 200 1/0, a 300 1/0, a 600 1/0, a 9001 1/1"},
        {700, 600, 9001, 0, 1, true, "a 9001 1/1"},
        {700, 600, 9001, 1, 1, false, "a 9001 0/1"},
        {700, 600, 9002, 1, 3, true, "a 9002 1/1"},
    };
    (void)state;
    struct rcpt_ladder *ladder = default_ladder();
    struct rcpt_count *count = rcpt_count_new();
    for (size_t index = 0; index < LENGTH(cases); index++) {
        struct fixture fixture = {0};
        add_message(&fixture, cases[index].top, cases[index].mask, cases[index].code, 1);
        rcpt_count_begin(count, &fixture.batch, ladder, MESSAGES);
        rcpt_count_add(count, &(struct rcpt_count_row){.was = cases[index].was,
                                                       .had = cases[index].had,
                                                       .changed = cases[index].changed,
                                                       .campaign = RCPT_TEXT("a")});
        rcpt_count_finish(count);
        assert_cells(count, cases[index].cells);
        assert_int_equal(rcpt_count_changed(count), cases[index].changed);
        assert_int_equal(rcpt_count_events(count), 1);
    }
    rcpt_count_free(count);
    rcpt_ladder_free(ladder);
}

static void a_correction_takes_away_what_its_path_leaves(void **state)
{
    (void)state;
    struct rcpt_ladder *ladder = default_ladder();
    struct rcpt_count *count = rcpt_count_new();
    struct fixture fixture = {0};
    int failed = rcpt_ladder_find_name(ladder, "FAILED", 6, NULL, 0);
    int16_t code = rcpt_ladder_entry(ladder, (size_t)failed)->code;
    add_message(&fixture, 600, 0, 600, 2);
    rcpt_count_begin(count, &fixture.batch, ladder, MESSAGES);
    rcpt_count_add(
        count, &(struct rcpt_count_row){.was = code, .changed = true, .campaign = RCPT_TEXT("a")});
    rcpt_count_finish(count);
    uint32_t size;
    (void)rcpt_count_cells(count, &size);
    assert_true(size >= 2);
    int64_t gone = 0, come = 0;
    for (uint32_t index = 0; index < size; index++) {
        const struct rcpt_cell *cell = &rcpt_count_cells(count, &size)[index];
        gone += cell->code == code ? cell->messages : 0;
        come += cell->code == 600 ? cell->messages : 0;
    }
    assert_int_equal(gone, -1);
    assert_int_equal(come, 1);
    rcpt_count_free(count);
    rcpt_ladder_free(ladder);
}

static void campaigns_and_codes_come_sorted(void **state)
{
    (void)state;
    struct rcpt_ladder *ladder = default_ladder();
    struct rcpt_count *count = rcpt_count_new();
    struct fixture fixture = {0};
    static const char *const campaigns[] = {"b", "", "a", "b", "ab"};
    for (size_t index = 0; index < LENGTH(campaigns); index++)
        add_message(&fixture, 600, 0, 600, 1);
    rcpt_count_begin(count, &fixture.batch, ladder, MESSAGES);
    for (uint32_t index = 0; index < LENGTH(campaigns); index++)
        rcpt_count_add(count, &(struct rcpt_count_row){.message = index,
                                                       .was = 300,
                                                       .changed = index != 3,
                                                       .campaign = rcpt_text_of(campaigns[index])});
    rcpt_count_finish(count);
    assert_cells(count, " 600 1/1, a 600 1/1, ab 600 1/1, b 600 1/2");
    assert_int_equal(rcpt_count_known(count), 5);
    rcpt_count_free(count);
    rcpt_ladder_free(ladder);
}

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

/* One message is added to sums[campaign][code] by walking from both ends of its path to the root. */
static void add_by_hand(const struct rcpt_ladder *ladder, const struct fixture *fixture,
                        const struct rcpt_count_row *row, int64_t messages[7][9040],
                        int64_t events[7][9040], uint32_t campaign)
{
    const struct rcpt_batch_message *message = &fixture->messages[row->message];
    int16_t to = row->changed && message->top > row->was ? message->top : row->was;
    for (int pass = 0; pass < 2; pass++)
        for (int code = pass == 0 ? to : row->was; code >= 0;) {
            messages[campaign][code] += pass == 0 ? 1 : -1;
            code = rcpt_ladder_entry(ladder, (size_t)rcpt_ladder_find_code(ladder, code, NULL, 0))
                       ->parent;
        }
    uint32_t gained = row->changed ? message->mask & ~row->had : 0;
    for (int bit = 0; bit < 31; bit++)
        messages[campaign][9001 + bit] += gained >> bit & 1;
    events[campaign][fixture->codes[message->signature]] += fixture->counts[message->signature];
}

static void random_batches_are_the_sum_of_their_messages(void **state)
{
    static int64_t messages[7][9040], events[7][9040];
    static const char *const names[7] = {"", "a", "b", "campaign-1", "campaign-2", "z", "é"};
    static const int16_t codes[] = {0, 300, 460, 600, 700, 800};
    (void)state;
    struct rcpt_ladder *ladder = default_ladder();
    struct rcpt_count *count = rcpt_count_new();
    uint64_t seed = 7;
    for (int round = 0; round < 50; round++) {
        struct fixture fixture = {0};
        struct rcpt_count_row rows[MESSAGES];
        uint32_t campaigns[MESSAGES], size, found = 0, size_again;
        memset(messages, 0, sizeof(messages));
        memset(events, 0, sizeof(events));
        for (uint32_t index = 0; index < MESSAGES; index++) {
            int16_t top = codes[1 + draw(&seed, LENGTH(codes) - 1)];
            uint32_t mask = draw(&seed, 4), had = draw(&seed, 4);
            campaigns[index] = draw(&seed, 7);
            if (rcpt_ladder_find_code(ladder, top, NULL, 0) < 0)
                top = 300;
            add_message(&fixture, top, mask, top, 1 + (int32_t)draw(&seed, 3));
            rows[index] =
                (struct rcpt_count_row){.message = index,
                                        .was = draw(&seed, 2) != 0 ? 300 : 0,
                                        .had = had,
                                        .campaign = rcpt_text_of(names[campaigns[index]])};
            rows[index].changed = top > rows[index].was || (mask & ~had) != 0;
            add_by_hand(ladder, &fixture, &rows[index], messages, events, campaigns[index]);
        }
        for (int order = 0; order < 2; order++) {
            rcpt_count_begin(count, &fixture.batch, ladder, MESSAGES);
            for (uint32_t index = 0; index < MESSAGES; index++)
                rcpt_count_add(count, &rows[order == 0 ? index : MESSAGES - 1 - index]);
            rcpt_count_finish(count);
            const struct rcpt_cell *cells = rcpt_count_cells(count, &size);
            for (uint32_t index = 0; index < size; index++) {
                struct rcpt_text text = rcpt_count_campaign(count, cells[index].campaign);
                uint32_t campaign = 0;
                while (!rcpt_text_is(text, names[campaign]))
                    campaign++;
                assert_int_equal(cells[index].messages, messages[campaign][cells[index].code]);
                assert_int_equal(cells[index].events, events[campaign][cells[index].code]);
            }
        }
        for (size_t campaign = 0; campaign < 7; campaign++)
            for (size_t code = 0; code < 9040; code++)
                found += messages[campaign][code] != 0 || events[campaign][code] != 0;
        assert_int_equal(size, found);
        const struct rcpt_count_kind *kinds = rcpt_count_kinds(count, &size_again);
        uint32_t sum = 0;
        for (uint32_t index = 0; index < size_again; index++)
            sum += kinds[index].messages;
        assert_int_equal(sum, MESSAGES);
    }
    rcpt_count_free(count);
    rcpt_ladder_free(ladder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transition_moves_its_path),
        cmocka_unit_test(a_correction_takes_away_what_its_path_leaves),
        cmocka_unit_test(campaigns_and_codes_come_sorted),
        cmocka_unit_test(random_batches_are_the_sum_of_their_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

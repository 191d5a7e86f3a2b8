/* Laws that hold for random batches with all rules on: the order of rows changes nothing, cells of
 * each kind sum up to the funnel, and that is what the messages say one by one. */
#include "rules_fixture.h"

#define MESSAGES 250u
#define ROWS     (MESSAGES + MESSAGES / 10) /* some ids stand in two */

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*seed >> 33) % below;
}

/* ---- a random batch ---- */

struct drawn {
    struct rules_fixture *fixture;
    char ids[MESSAGES][8];
    bool echoes[RECEIPTS];
    struct row rows[ROWS];
    uint32_t row_count;
};

static void add_receipts(struct drawn *drawn, uint64_t *seed)
{
    static const int16_t codes[] = {200, 300, 310, 440, 600, 650, 700, 800, 9001, 9002, 9007};
    static const char *const said[] = {NULL, "{\"link\":\"x?1\",\"cost\":\"0.30\"}",
                                       "{\"link\":\"y\",\"cost\":0.1,\"currency\":\"EUR\"}",
                                       "{\"link\":\"x#2\",\"cost\":-1.05,\"currency\":\"eur\"}"};
    struct rcpt_batch *batch = &drawn->fixture->batch;
    for (uint32_t message = 0; message < MESSAGES; message++) {
        snprintf(drawn->ids[message], sizeof(drawn->ids[message]), "m%03u", message);
        for (uint32_t more = 1 + draw(seed, 3); more > 0; more--) {
            drawn->echoes[batch->event_count] = draw(seed, 4) == 0;
            add_receipt(
                drawn->fixture,
                &(struct receipt){.id = drawn->ids[message],
                                  .code = codes[draw(seed, LENGTH(codes))],
                                  .flags = draw(seed, 5) == 0 ? 1u << (2 + draw(seed, 3)) : 0,
                                  .minute = (int64_t)draw(seed, 200) - 60,
                                  .gateway = (uint8_t)draw(seed, 3),
                                  .reason = (uint8_t)draw(seed, 3),
                                  .json = said[draw(seed, LENGTH(said))]});
        }
    }
}

/* As the deciding statement would answer. */
static void add_random_row(struct drawn *drawn, uint32_t message, uint64_t *seed)
{
    static const char *const campaigns[] = {"", "a", "b", "campaign-1", "campaign-2"};
    static const char *const values[] = {NULL, "sms", "mail", "other"};
    static const int16_t statuses[] = {0, 200, 300, 440, 600, 700, 800};
    const struct rcpt_batch_message *folded = &drawn->fixture->messages[message];
    struct row *row = &drawn->rows[drawn->row_count];
    drawn->row_count++;
    *row = (struct row){.campaign = campaigns[draw(seed, LENGTH(campaigns))],
                        .message = message,
                        .was = statuses[draw(seed, LENGTH(statuses))],
                        .columns = {values[draw(seed, 4)], values[draw(seed, 4)], "12", "3",
                                    values[draw(seed, 4)], draw(seed, 2) == 0 ? "11//x" : NULL,
                                    values[draw(seed, 4)], values[draw(seed, 4)]}};
    row->gained = folded->mask & draw(seed, 4);
    row->now = folded->top > row->was ? folded->top : row->was;
    row->same = row->gained == 0 && row->now == row->was;
}

static struct drawn *draw_batch(uint64_t *seed)
{
    struct drawn *drawn = calloc(1, sizeof(*drawn));
    drawn->fixture = rules_fixture_new();
    add_receipts(drawn, seed);
    for (uint32_t message = 0; message < MESSAGES; message++) {
        uint32_t rows = draw(seed, 12);
        for (uint32_t row = 0; row < (rows == 0 ? 0 : rows == 1 ? 2 : 1); row++)
            if (drawn->row_count < ROWS)
                add_random_row(drawn, message, seed);
    }
    while (drawn->row_count % 7 == 0) /* so that steps of 7 reach each row */
        drawn->row_count--;
    return drawn;
}

/* ---- the rules ---- */

static void apply(struct rcpt_rules *rules, const struct drawn *drawn, uint32_t first)
{
    rcpt_rules_begin(rules, &drawn->fixture->batch, NOW, &test_names);
    for (uint32_t event = 0; event < drawn->fixture->batch.event_count; event++)
        if (drawn->echoes[event])
            rcpt_rules_echo(rules, event);
    for (uint32_t index = 0; index < drawn->row_count; index++)
        add_row(rules, &drawn->rows[(first + index * 7) % drawn->row_count]);
    rcpt_rules_finish(rules);
}

/* All results as bytes. */
static char *dump(const struct rcpt_rules *rules, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    uint32_t count;
    const struct rcpt_tally_cell *cells = rcpt_rules_cells(rules, &count);
    for (uint32_t index = 0; index < count; index++)
        fprintf(out, "%d %s %s %u %d %lld %lld\n", cells[index].place.kind,
                cells[index].place.campaign->text.at, cells[index].place.key->text.at,
                cells[index].place.minute, cells[index].place.status,
                (long long)cells[index].messages, (long long)cells[index].events);
    for (size_t group = 0; group < RCPT_RULES_GROUPS; group++) {
        const struct rcpt_rules_member *members = rcpt_rules_members(rules, group, &count);
        for (uint32_t index = 0; index < count; index++)
            fprintf(out, "%s %s %d %d %u\n", members[index].campaign.at, members[index].value.at,
                    members[index].old, members[index].new, members[index].gained);
    }
    const struct rcpt_rules_fold *folds = rcpt_rules_folds(rules, &count);
    for (uint32_t index = 0; index < count; index++)
        fprintf(out, "%s %s %s %d %d %u %u\n", folds[index].org.at, folds[index].campaign.at,
                folds[index].columns.at, folds[index].old, folds[index].new, folds[index].gained,
                folds[index].messages);
    fclose(out);
    return text;
}

static struct rcpt_rules *all_rules(const struct rcpt_ladder *ladder, bool series)
{
    return rcpt_rules_new(&(struct rcpt_rules_settings){
        .ladder = ladder,
        .dimensions = {{"by_channel", "channel"}, {"by_variant", "variant"}},
        .dimension_count = 2,
        .groups = {{"customer", "who"}, {"logical", "what"}},
        .group_count = 2,
        .dedup = true,
        .series = series,
        .reasons = true,
        .gateways = true,
        .times = true,
        .links = true,
        .costs = true,
        .folds = true,
    });
}

/* ---- sums ---- */

struct sums { /* by the last letter of the campaign and the code */
    int64_t messages[128][60], events[128][60];
};

static size_t campaign_index(const char *campaign)
{
    size_t size = strlen(campaign);
    return size == 0 ? 0 : (size_t)campaign[size - 1];
}

static bool is_click(int16_t code)
{
    return code == 800 || code == 9007;
}

static size_t code_index(int16_t code)
{
    return code > 9000 ? (size_t)(code - 9000 + 20) : (size_t)code / 50;
}

static void add_kind(struct sums *sums, const struct rcpt_rules *rules, enum rcpt_count_of kind)
{
    uint32_t count;
    const struct rcpt_tally_cell *cells = rcpt_rules_cells(rules, &count);
    struct rcpt_tally_range range = rcpt_rules_range(rules, kind);
    for (uint32_t index = range.first; index < range.end; index++) {
        size_t campaign = campaign_index(cells[index].place.campaign->text.at);
        size_t code = code_index(cells[index].place.status);
        sums->messages[campaign][code] += cells[index].messages;
        sums->events[campaign][code] += cells[index].events;
    }
}

/* Walks from both ends of the path to the root. */
static void add_change(struct sums *sums, const struct drawn *drawn, const struct row *row)
{
    size_t campaign = campaign_index(row->campaign);
    const struct rcpt_ladder *ladder = drawn->fixture->ladder;
    for (int pass = 0; pass < 2; pass++)
        for (int16_t code = pass == 0 ? row->now : row->was; code >= 0;) {
            sums->messages[campaign][code_index(code)] += pass == 0 ? 1 : -1;
            code = rcpt_ladder_entry(ladder, (size_t)rcpt_ladder_find_code(ladder, code, NULL, 0))
                       ->parent;
        }
    for (int16_t bit = 0; bit < RCPT_LADDER_MAX_FLAGS; bit++)
        sums->messages[campaign][code_index((int16_t)(RCPT_LADDER_FIRST_FLAG_CODE + bit))] +=
            row->gained >> bit & 1;
}

/* Of the receipts of a row those that are echoes, or those that are not. */
static void add_events(struct sums *sums, const struct drawn *drawn, const struct row *row,
                       bool echoes, int64_t sign)
{
    size_t campaign = campaign_index(row->campaign);
    const struct rules_fixture *fixture = drawn->fixture;
    for (uint32_t at = fixture->messages[row->message].first_event;
         at < rcpt_batch_end(&fixture->batch, row->message); at++) {
        if (drawn->echoes[at] != echoes)
            continue;
        sums->events[campaign][code_index(fixture->raw[at].code)] += sign;
        for (int16_t bit = 0; bit < RCPT_LADDER_MAX_FLAGS; bit++)
            if ((fixture->decoded.events[at].flags >> bit & 1) != 0)
                sums->events[campaign][code_index((int16_t)(RCPT_LADDER_FIRST_FLAG_CODE + bit))] +=
                    sign;
    }
}

static int64_t events_of(const struct rcpt_rules *rules, enum rcpt_count_of kind)
{
    uint32_t count;
    int64_t sum = 0;
    const struct rcpt_tally_cell *cells = rcpt_rules_cells(rules, &count);
    struct rcpt_tally_range range = rcpt_rules_range(rules, kind);
    for (uint32_t index = range.first; index < range.end; index++)
        sum += cells[index].events;
    return sum;
}

/* ---- laws ---- */

static void the_order_of_rows_changes_nothing(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 20; round++) {
        struct drawn *drawn = draw_batch(&seed);
        struct rcpt_rules *rules = all_rules(drawn->fixture->ladder, round % 2 == 0);
        char *first = NULL;
        size_t first_size, size;
        for (uint32_t order = 0; order < 5; order++) {
            apply(rules, drawn, order * 31);
            char *text = dump(rules, &size);
            if (order == 0) {
                first = text;
                first_size = size;
                continue;
            }
            assert_int_equal(size, first_size);
            assert_memory_equal(text, first, size);
            free(text);
        }
        free(first);
        rcpt_rules_free(rules);
        rules_fixture_free(drawn->fixture);
        free(drawn);
    }
}

/* With the series its cells are the funnel; without it they take off what copies named. */
static void each_dimension_and_the_series_sum_up_to_the_funnel(void **state)
{
    static struct sums funnel, copies, series, corrections, dimensions[2];
    (void)state;
    uint64_t seed = 4;
    for (int round = 0; round < 20; round++) {
        struct drawn *drawn = draw_batch(&seed);
        struct rcpt_rules *with = all_rules(drawn->fixture->ladder, true);
        struct rcpt_rules *without = all_rules(drawn->fixture->ladder, false);
        memset(&funnel, 0, sizeof(funnel));
        memset(&copies, 0, sizeof(copies));
        memset(&series, 0, sizeof(series));
        memset(&corrections, 0, sizeof(corrections));
        memset(dimensions, 0, sizeof(dimensions));
        apply(with, drawn, 0);
        apply(without, drawn, 0);
        for (uint32_t index = 0; index < drawn->row_count; index++) {
            add_change(&funnel, drawn, &drawn->rows[index]);
            add_events(&funnel, drawn, &drawn->rows[index], false, 1);
            add_events(&copies, drawn, &drawn->rows[index], true, -1);
        }
        add_kind(&series, with, RCPT_COUNT_FUNNEL);
        assert_memory_equal(&series, &funnel, sizeof(series));
        add_kind(&corrections, without, RCPT_COUNT_FUNNEL);
        assert_memory_equal(&corrections, &copies, sizeof(copies));
        for (uint8_t index = 0; index < 2; index++) {
            add_kind(&dimensions[index], with, (enum rcpt_count_of)(RCPT_COUNT_BY + index));
            assert_memory_equal(&dimensions[index], &funnel, sizeof(funnel));
        }
        rcpt_rules_free(with);
        rcpt_rules_free(without);
        rules_fixture_free(drawn->fixture);
        free(drawn);
    }
}

/* Each receipt of a row counts for its gateway once, or as a duplicate; each that counts has a
 * delay. */
static void each_receipt_counts_or_is_a_duplicate(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int round = 0; round < 20; round++) {
        struct drawn *drawn = draw_batch(&seed);
        struct rcpt_rules *rules = all_rules(drawn->fixture->ladder, true);
        int64_t receipts = 0, echoes = 0;
        apply(rules, drawn, 0);
        for (uint32_t index = 0; index < drawn->row_count; index++) {
            uint32_t message = drawn->rows[index].message;
            for (uint32_t at = drawn->fixture->messages[message].first_event;
                 at < rcpt_batch_end(&drawn->fixture->batch, message); at++) {
                receipts++;
                echoes += drawn->echoes[at];
            }
        }
        assert_true(echoes > 0);
        assert_int_equal(events_of(rules, RCPT_COUNT_GATEWAY), receipts - echoes);
        assert_int_equal(events_of(rules, RCPT_COUNT_GATEWAY_DELAY), receipts - echoes);
        assert_int_equal(events_of(rules, RCPT_COUNT_GATEWAY_DUPLICATE), echoes);
        assert_int_equal(events_of(rules, RCPT_COUNT_DUPLICATE), echoes);
        assert_int_equal(events_of(rules, RCPT_COUNT_REASON),
                         events_of(rules, RCPT_COUNT_GATEWAY_REASON));
        rcpt_rules_free(rules);
        rules_fixture_free(drawn->fixture);
        free(drawn);
    }
}

/* The clicks of all links are the funnel's, of persons and of machines. */
static void the_clicks_of_all_links_are_those_of_the_funnel(void **state)
{
    static const int16_t codes[] = {200, 300, 440, 600, 650, 700, 800, 9001, 9003, 9007};
    static struct sums funnel, links;
    (void)state;
    uint64_t seed = 6;
    for (int round = 0; round < 20; round++) {
        struct drawn *drawn = draw_batch(&seed);
        struct rcpt_rules *rules = all_rules(drawn->fixture->ladder, true);
        memset(&funnel, 0, sizeof(funnel));
        memset(&links, 0, sizeof(links));
        apply(rules, drawn, 0);
        add_kind(&funnel, rules, RCPT_COUNT_FUNNEL);
        add_kind(&links, rules, RCPT_COUNT_LINK);
        for (size_t index = 0; index < LENGTH(codes); index++)
            for (size_t campaign = 0; campaign < LENGTH(funnel.events); campaign++) {
                size_t at = code_index(codes[index]);
                int64_t sign = is_click(codes[index]) ? 1 : 0;
                assert_int_equal(links.messages[campaign][at],
                                 sign * funnel.messages[campaign][at]);
                assert_int_equal(links.events[campaign][at], sign * funnel.events[campaign][at]);
            }
        assert_true(events_of(rules, RCPT_COUNT_LINK) > 0);
        rcpt_rules_free(rules);
        rules_fixture_free(drawn->fixture);
        free(drawn);
    }
}

/* In 10^-9: what the receipts that count say, summed in another way. */
static void costs_are_those_of_the_receipts_that_count(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int round = 0; round < 20; round++) {
        struct drawn *drawn = draw_batch(&seed);
        struct rcpt_rules *rules = all_rules(drawn->fixture->ladder, true);
        int64_t receipts = 0, cents = 0;
        apply(rules, drawn, 0);
        for (uint32_t index = 0; index < drawn->row_count; index++) {
            uint32_t message = drawn->rows[index].message;
            for (uint32_t at = drawn->fixture->messages[message].first_event;
                 at < rcpt_batch_end(&drawn->fixture->batch, message); at++) {
                const struct rcpt_event *event = &drawn->fixture->decoded.events[at];
                if (drawn->echoes[at] || event->payload_size == 0)
                    continue;
                char last = drawn->fixture->value[event->payload + 10];
                receipts++;
                cents += last == '?' ? 30 : last == '#' ? 105 : 10;
            }
        }
        uint32_t count;
        int64_t sum = 0;
        struct rcpt_tally_range range = rcpt_rules_range(rules, RCPT_COUNT_COST_AMOUNT);
        const struct rcpt_tally_cell *cells = rcpt_rules_cells(rules, &count);
        for (uint32_t index = range.first; index < range.end; index++)
            sum += cells[index].messages * 1000000000 + cells[index].events;
        assert_int_equal(sum, cents * 10000000);
        assert_int_equal(events_of(rules, RCPT_COUNT_COST), receipts);
        rcpt_rules_free(rules);
        rules_fixture_free(drawn->fixture);
        free(drawn);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_rows_changes_nothing),
        cmocka_unit_test(each_dimension_and_the_series_sum_up_to_the_funnel),
        cmocka_unit_test(each_receipt_counts_or_is_a_duplicate),
        cmocka_unit_test(the_clicks_of_all_links_are_those_of_the_funnel),
        cmocka_unit_test(costs_are_those_of_the_receipts_that_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

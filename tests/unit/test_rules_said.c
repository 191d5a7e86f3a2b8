/* Rules that read what receipts say: links and costs, each by a table of small batches. Codes: 300
 * SENT, 600 DELIVERED, 700 OPENED, 800 CLICKED, 9007 BOT_CLICK. */
#include "rules_fixture.h"

#define BOT       (1u << 6)
#define LINK(url) "{\"link\":\"" url "\"}"
#define COST(amount, currency)                                                                     \
    "{\"cost\":" amount ",\"currency\":" currency ",\"message_id\":\"m\"}"
#define X50   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LINKS .settings = {.links = true}
#define COSTS .settings = {.costs = true}

static void play_all(const struct rules_case *cases, size_t count)
{
    for (size_t index = 0; index < count; index++)
        play(&cases[index], say_cells);
}

/* Messages are first clicks, events are receipts. */
static void a_click_counts_by_its_link(void **state)
{
    static const struct rules_case cases[] = {
        {LINKS, .receipts = {{"m", 800, .json = LINK("https://d.example/x")}},
         .rows = {{"a", 0, 300, 800}}, .expected = "by_link a/https://d.example/x 800 1/1"},
        /* The earliest click is the first, whatever came before; of equal times the least link. */
        {LINKS,
         .receipts = {{"m", 800, .minute = 5, .json = LINK("b")},
                      {"m", 800, .minute = 3, .json = LINK("c")},
                      {"n", 800, .json = LINK("e")},
                      {"n", 800, .json = LINK("d")}},
         .rows = {{"a", 0, 600, 800}, {"a", 1, 700, 800}},
         .expected = "by_link a/b 800 0/1, by_link a/c 800 1/1, by_link a/d 800 1/1, "
                     "by_link a/e 800 0/1"},
        /* A message that is CLICKED already has had its first click. */
        {LINKS, .receipts = {{"m", 800, .json = LINK("b")}},
         .rows = {{"a", 0, 800, 800, .same = true}}, .expected = "by_link a/b 800 0/1"},
        /* Only clicks count; one without a link has the link ''. */
        {LINKS, .receipts = {{"m", 700, .json = LINK("b")}, {"n", 800}, {"o", 800, .json = "{}"}},
         .rows = {{"a", 0, 600, 700}, {"a", 1, 600, 800}, {"b", 2, 600, 800}},
         .expected = "by_link a/ 800 1/1, by_link b/ 800 1/1"},
        /* A message that leaves CLICKED is taken off the link '', since no row says which it was. */
        {LINKS, .receipts = {{"m", 650, .json = LINK("b")}}, .rows = {{"a", 0, 800, 650}},
         .expected = "by_link a/ 800 -1/0"},
        /* An id that stands in two rows counts for each; an unknown message counts nowhere. */
        {LINKS, .receipts = {{"m", 800, .json = LINK("b")}},
         .rows = {{"a", 0, 600, 800}, {"c", 0, 800, 800, .same = true}},
         .expected = "by_link a/b 800 1/1, by_link c/b 800 0/1"},
        {LINKS, .receipts = {{"m", 800, .json = LINK("b")}}, .expected = ""},
        /* A copy is no event. */
        {.settings = {.links = true, .dedup = true, .series = true},
         .receipts = {{"m", 800, .json = LINK("b")},
                      {"m", 800, .json = LINK("b"), .is_echo = true}},
         .rows = {{"a", 0, 700, 800}},
         .expected = "a@0 800 1/1, duplicate a/ 800 0/1, by_link a/b 800 1/1"},
    };
    (void)state;
    play_all(cases, LENGTH(cases));
}

static void clicks_of_machines_stand_apart(void **state)
{
    static const struct rules_case cases[] = {
        /* Policy flag: BOT_CLICK alone. */
        {LINKS, .receipts = {{"m", 9007, .json = LINK("b")}}, .rows = {{"a", 0, 300, 600, BOT}},
         .expected = "by_link a/b 9007 1/1"},
        /* A status of its own beside the flag. */
        {LINKS, .receipts = {{"m", 700, .flags = BOT, .json = LINK("b")}},
         .rows = {{"a", 0, 600, 700, BOT}}, .expected = "by_link a/b 9007 1/1"},
        /* Policy count: both, as status and flag, or as a click beside another status. */
        {LINKS,
         .receipts = {{"m", 800, .flags = BOT, .json = LINK("b")},
                      {"n", 300, .flags = BOT, .machines = 2, .json = LINK("b")}},
         .rows = {{"a", 0, 600, 800, BOT}, {"a", 1, 600, 800}},
         .expected = "by_link a/b 800 2/2, by_link a/b 9007 1/2"},
        /* The first of each kind: a scanner's, then the person's. */
        {LINKS,
         .receipts = {{"m", 9007, .minute = 1, .json = LINK("b")},
                      {"m", 800, .minute = 2, .json = LINK("c")}},
         .rows = {{"a", 0, 600, 800, BOT}},
         .expected = "by_link a/b 9007 1/1, by_link a/c 800 1/1"},
    };
    (void)state;
    play_all(cases, LENGTH(cases));
}

static void a_link_is_bounded_and_has_no_query(void **state)
{
    static const struct {
        const char *json, *link;
    } cases[] = {
        {LINK("https://d.example/p?u=1"), "https://d.example/p"},
        {LINK("https://d.example/p#a?b"), "https://d.example/p"},
        {LINK("https://d.example/p?a#b"), "https://d.example/p"},
        {LINK("?u=1"), ""},
        {LINK(""), ""},
        {LINK("HTTPS://D.Example/P/"), "HTTPS://D.Example/P/"},
        {LINK("https:\\/\\/d.example\\/p"), "https://d.example/p"},
        {LINK("a\\u0000b"), ""},  /* no text of PostgreSQL */
        {LINK("a\\ud800b"), "a"}, /* half a pair is read as '?' */
        {"{\"l\\u0069nk\":\"b\"}", "b"},
        {"{\"link\":\"b\",\"link\":\"c\"}", "c"},
        {"{\"link\":5}", "5"},
        {"{\"link\":null}", ""},
        {"{\"link\":[\"b\"]}", ""},
        {"{\"x\":{\"link\":\"b\"}}", ""},
        {"{\"x\":\"\\\"link\\\"\"}", ""},
        {LINK(X50 X50 X50 X50), X50 X50 X50 X50},
        {LINK(X50 X50 X50 X50 "y"), X50 X50 X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"},
        /* Between two characters. */
        {LINK(X50 X50 X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxéy" X50),
         X50 X50 X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++) {
        char expected[300];
        snprintf(expected, sizeof(expected), "by_link a/%s 800 0/1", cases[index].link);
        play(&(struct rules_case){LINKS, .receipts = {{"m", 800, .json = cases[index].json}},
                                  .rows = {{"a", 0, 800, 800, .same = true}}, .expected = expected},
             say_cells);
    }
}

/* Whole units and 10^-9 of them. */
static void a_cost_counts_exactly_or_as_invalid(void **state)
{
    static const struct {
        const char *json, *currency; /* NULL: it names no cost */
        int64_t whole, rest;
    } cases[] = {
        {COST("\"0.0075\"", "\"USD\""), "USD", 0, 7500000},
        {COST("\"-0.00750\"", "\"usd\""), "USD", 0, 7500000},
        {COST("0.0333", "\"Eur\""), "EUR", 0, 33300000},
        {COST("75e-4", "\"USD\""), "USD", 0, 7500000},
        {COST("\"0.0333000000000\"", "\"EUR\""), "EUR", 0, 33300000},
        {COST("12", "\"IDR\""), "IDR", 12, 0},
        {COST("-1.5", "null"), "?", 1, 500000000},
        {COST("1", "\"\""), "?", 1, 0},
        {COST("1", "\"EURO\""), "?", 1, 0},
        {COST("1", "\"EU\""), "?", 1, 0},
        {COST("1", "\"E1R\""), "?", 1, 0},
        {COST("1", "\"\u20ac\""), "?", 1, 0},
        {COST("1", "978"), "?", 1, 0},
        {COST("\"999999999.999999999\"", "\"USD\""), "USD", 999999999, 999999999},
        {COST("\"1000000000\"", "\"USD\""), "invalid", 0, 0},
        {COST("\"0.0000000001\"", "\"USD\""), "invalid", 0, 0},
        {COST("1e30", "\"USD\""), "invalid", 0, 0},
        {COST("\"0,0075\"", "\"USD\""), "invalid", 0, 0},
        {COST("\"$0.01\"", "\"USD\""), "invalid", 0, 0},
        {COST("\"free\"", "null"), "invalid", 0, 0},
        {COST("\"\"", "\"USD\""), NULL, 0, 0},
        {COST("null", "\"USD\""), NULL, 0, 0},
        {COST("{\"amount\":1}", "\"USD\""), NULL, 0, 0},
        {COST("true", "\"USD\""), NULL, 0, 0},
        {"{\"x\":\"cost\",\"currency\":\"USD\"}", NULL, 0, 0},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++) {
        char expected[200] = "";
        int size = 0;
        if (cases[index].currency != NULL)
            size = snprintf(expected, sizeof(expected), "cost a/%s 300 0/1", cases[index].currency);
        if (cases[index].whole != 0 || cases[index].rest != 0)
            snprintf(expected + size, sizeof(expected) - (size_t)size,
                     ", cost_amount a/%s 300 %lld/%lld", cases[index].currency,
                     (long long)cases[index].whole, (long long)cases[index].rest);
        play(&(struct rules_case){COSTS, .receipts = {{"m", 300, .json = cases[index].json}},
                                  .rows = {{"a", 0, 300, 300, .same = true}}, .expected = expected},
             say_cells);
    }
}

static void costs_sum_up_by_campaign_currency_and_status(void **state)
{
    static const struct rules_case cases[] = {
        {COSTS,
         .receipts = {{"m", 300, .json = COST("0.6", "\"EUR\"")},
                      {"n", 300, .json = COST("\"0.60\"", "\"EUR\"")},
                      {"n", 600, .json = COST("1.2", "\"EUR\"")},
                      {"o", 300, .json = COST("2", "\"USD\"")},
                      {"p", 300}},
         .rows = {{"a", 0, 200, 300}, {"a", 1, 200, 600}, {"b", 2, 200, 300}, {"b", 3, 200, 300}},
         .expected = "cost a/EUR 300 0/2, cost a/EUR 600 0/1, cost b/USD 300 0/1, "
                     "cost_amount a/EUR 300 0/1200000000, cost_amount a/EUR 600 1/200000000, "
                     "cost_amount b/USD 300 2/0"},
        /* A receipt without an amount counts; a copy and an unknown message do not. */
        {.settings = {.costs = true, .dedup = true, .series = true},
         .receipts = {{"m", 300, .json = COST("0", "\"EUR\"")},
                      {"m", 300, .json = COST("7", "\"EUR\""), .is_echo = true},
                      {"n", 300, .json = COST("7", "\"EUR\"")}},
         .rows = {{"a", 0, 300, 300, .same = true}},
         .expected = "a@0 300 0/1, duplicate a/ 300 0/1, cost a/EUR 300 0/1"},
        /* A flag has a cost, too. */
        {COSTS, .receipts = {{"m", 9007, .json = COST("7", "\"EUR\"")}},
         .rows = {{"a", 0, 600, 600, BOT}},
         .expected = "cost a/EUR 9007 0/1, cost_amount a/EUR 9007 7/0"},
    };
    (void)state;
    play_all(cases, LENGTH(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_click_counts_by_its_link),
        cmocka_unit_test(clicks_of_machines_stand_apart),
        cmocka_unit_test(a_link_is_bounded_and_has_no_query),
        cmocka_unit_test(a_cost_counts_exactly_or_as_invalid),
        cmocka_unit_test(costs_sum_up_by_campaign_currency_and_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Rules that read columns of a row: places in the histograms of times, members of groups, entries of folds; and
 * which columns rules want of a message's row. Codes: 300 SENT, 600 DELIVERED, 650
 * BOUNCED_HARD_EMAIL, 700 OPENED. */
#include "rules_fixture.h"

/* ---- times ---- */

static void times_count_messages_whose_place_is_new(void **state)
{
    static const struct rules_case cases[] = {
        /* Columns: bucket to deliver, bucket to open, first gateway, place before. */
        {.settings = {.times = true},
         .receipts = {{"m", 600}, {"n", 600}, {"o", 700}},
         .rows = {{"b", 0, 300, 600, .columns = {"12", NULL, "twilio", NULL}},
                  {"a", 1, 300, 600, .columns = {"-1", NULL, NULL, NULL}},
                  {"a", 2, 600, 700, .columns = {"12", "79", "kannel", "12//kannel"}}},
         .expected = "time_place a/-1// 0 1/0, time_place a/12//kannel 0 -1/0, "
                     "time_place a/12/79/kannel 0 1/0, time_place b/12//twilio 0 1/0"},
        /* The same place, and none at all. */
        {.settings = {.times = true},
         .receipts = {{"m", 600}, {"n", 600}, {"o", 300}},
         .rows = {{"a", 0, 600, 600, 1, .columns = {"12", "3", "x", "12/3/x"}},
                  {"a", 1, 300, 600, .columns = {NULL, NULL, "x", NULL}},
                  {"a", 2, 200, 300, .columns = {"5", NULL, "x", NULL}}},
         .expected = ""},
        /* A time alone is earlier, or the gateway's name is another one. */
        {.settings = {.times = true},
         .receipts = {{"m", 600}, {"n", 600}},
         .rows = {{"a", 0, 600, 600, .columns = {"11", NULL, "x", "12//x"}},
                  {"a", 1, 600, 600, .columns = {"12", NULL, "w", "12//x"}}},
         .expected = "time_place a/11//x 0 1/0, time_place a/12//w 0 1/0, "
                     "time_place a/12//x 0 -2/0"},
        /* Only of messages that were delivered: one that is returned leaves its bucket. Its time
         * to open stays. */
        {.settings = {.times = true},
         .receipts = {{"m", 650}, {"n", 650}, {"o", 650}},
         .rows = {{"a", 0, 600, 650, .columns = {"12", NULL, "x", "12//x"}},
                  {"a", 1, 700, 650, .columns = {"12", "3", "x", "12/3/x"}},
                  {"a", 2, 650, 650, 1, .columns = {"12", NULL, "x", "12//x"}}},
         .expected = "time_place a//3/x 0 1/0, time_place a/12//x 0 -1/0, "
                     "time_place a/12/3/x 0 -1/0"},
        /* A message that is returned when it opens after all comes back. */
        {.settings = {.times = true},
         .receipts = {{"m", 700}, {"n", 700}},
         .rows = {{"a", 0, 650, 700, .columns = {"12", NULL, "x", "12//x"}},
                  {"a", 1, 650, 700, .columns = {"12", "3", "x", "12/3/x"}}},
         .expected = "time_place a//3/x 0 -1/0, time_place a/12//x 0 1/0, "
                     "time_place a/12/3/x 0 1/0"},
        /* What did not change, and two rows of one id. */
        {.settings = {.times = true},
         .receipts = {{"m", 600}},
         .rows = {{"a", 0, 600, 600, .same = true, .columns = {"12", NULL, "x", NULL}},
                  {"b", 0, 300, 600, .columns = {"12", NULL, "x", NULL}}},
         .expected = "time_place b/12//x 0 1/0"},
        /* A gateway may have any name. */
        {.settings = {.times = true},
         .receipts = {{"m", 600}},
         .rows = {{"", 0, 600, 600, .columns = {"1", NULL, "x/y", "2//x/y"}}},
         .expected = "time_place /1//x/y 0 1/0, time_place /2//x/y 0 -1/0"},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++)
        play(&cases[index], say_cells);
}

/* ---- groups ---- */

/* GROUP CAMPAIGN/VALUE OLD>NEW+GAINED */
static void say_members(struct line *line, const struct rcpt_rules *rules)
{
    for (size_t group = 0; group < RCPT_RULES_GROUPS; group++) {
        uint32_t count;
        const struct rcpt_rules_member *members = rcpt_rules_members(rules, group, &count);
        for (uint32_t index = 0; index < count; index++)
            say(line, "%zu %s/%s %d>%d+%u", group, members[index].campaign.at,
                members[index].value.at, members[index].old, members[index].new,
                members[index].gained);
    }
}

#define BOTH_GROUPS                                                                                \
    .group_count = 2, .groups = {{"customer", "customer_id"}, {"logical", "logical_id"}}

static void groups_list_members_that_changed(void **state)
{
    static const struct rules_case cases[] = {
        {.settings = {BOTH_GROUPS},
         .receipts = {{"m", 600}, {"n", 9001}, {"o", 600}},
         .rows = {{"a", 0, 300, 600, .columns = {"c1", "l1"}},
                  {"a", 1, 600, 600, 1, .columns = {"c0", "l0"}},
                  {"a", 2, 600, 600, .columns = {"c2", "l2"}}},
         .expected = "0 a/c1 300>600+0, 0 a/c0 600>600+1, 1 a/l1 300>600+0, 1 a/l0 600>600+1"},
        /* Without a customer in no group; without a logical message it is one of its own. */
        {.settings = {BOTH_GROUPS},
         .receipts = {{"m", 600}, {"n", 600}},
         .rows = {{"", 0, 300, 600, .columns = {"", ""}},
                  {"", 1, 300, 600, .columns = {NULL, NULL}}},
         .expected = "1 /m 300>600+0, 1 /n 300>600+0"},
        /* Two rows of one id, and a message that did not change. */
        {.settings = {.group_count = 1, .groups = {{"logical", "logical_id"}}},
         .receipts = {{"m", 600}, {"n", 600}},
         .rows = {{"b", 0, 300, 600, .columns = {"l"}},
                  {"a", 0, 310, 600, .columns = {"l"}},
                  {"a", 1, 600, 600, .same = true, .columns = {NULL}}},
         .expected = "0 a/l 310>600+0, 0 b/l 300>600+0"},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++)
        play(&cases[index], say_members);
}

/* ---- folds ---- */

/* ORG/CAMPAIGN COLUMNS OLD>NEW+GAINED xMESSAGES */
static void say_folds(struct line *line, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_rules_fold *folds = rcpt_rules_folds(rules, &count);
    for (uint32_t index = 0; index < count; index++) {
        assert_null(folds[index].link);
        say(line, "%s/%s %s %d>%d+%u x%u", folds[index].org.at, folds[index].campaign.at,
            folds[index].columns.at, folds[index].old, folds[index].new, folds[index].gained,
            folds[index].messages);
    }
}

static void folds_get_messages_that_changed_alike(void **state)
{
    static const struct rules_case cases[] = {
        {.settings = {.folds = true},
         .receipts = {{"m", 600}, {"n", 600}, {"o", 600}, {"p", 600}, {"q", 600}},
         .rows = {{"b", 0, 300, 600, .org = "o"},
                  {"b", 1, 300, 600, .org = "o"},
                  {"b", 2, 300, 600},
                  {"a", 3, 300, 600, 1, .org = "o"},
                  {"b", 4, 600, 600, .org = "o"}},
         .expected = "/b  300>600+0 x1, o/a  300>600+1 x1, o/b  300>600+0 x2"},
        {.settings = {.folds = true, .fold_columns = true},
         .receipts = {{"m", 600}, {"n", 600}, {"o", 600}, {"p", 600}},
         .rows = {{"a", 0, 300, 600, .columns = {"{\"x\": 2}"}},
                  {"a", 1, 300, 600, .columns = {"{\"x\": 1}"}},
                  {"a", 2, 300, 600, .columns = {"{\"x\": 2}"}},
                  {"a", 3, 600, 600, .same = true, .columns = {NULL}}},
         .expected = "/a {\"x\": 1} 300>600+0 x1, /a {\"x\": 2} 300>600+0 x2"},
        /* Two rows of one id are two messages. */
        {.settings = {.folds = true},
         .receipts = {{"m", 600}},
         .rows = {{"", 0, 300, 600}, {"", 0, 300, 600}},
         .expected = "/  300>600+0 x2"},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++)
        play(&cases[index], say_folds);
}

/* Of the records that brought the messages' first receipts. */
static void a_fold_has_the_least_traceparent(void **state)
{
    static const char *const links[][4] = {
        {"00-b", "00-a", "00-c", "00-a"}, {"", "00-b", "", "00-b"}, {"", "", "", NULL}};
    (void)state;
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_rules *rules =
        rcpt_rules_new(&(struct rcpt_rules_settings){.ladder = fixture->ladder, .folds = true});
    static const char *const ids[] = {"m", "n", "o"};
    for (size_t index = 0; index < LENGTH(ids); index++)
        add_receipt(fixture, &(struct receipt){.id = ids[index], .code = 600});
    for (size_t index = 0; index < LENGTH(links); index++) {
        struct rcpt_record records[LENGTH(ids)];
        uint32_t count;
        rcpt_rules_begin(rules, &fixture->batch, NOW, &test_names);
        for (uint32_t message = 0; message < LENGTH(ids); message++) {
            records[message] = (struct rcpt_record){.traceparent = links[index][message]};
            fixture->raw[message].record = &records[message];
            add_row(rules, &(struct row){"a", message, 300, 600, .gained = 0});
        }
        rcpt_rules_finish(rules);
        const struct rcpt_rules_fold *folds = rcpt_rules_folds(rules, &count);
        assert_int_equal(count, 1);
        assert_int_equal(folds->messages, 3);
        if (links[index][3] == NULL)
            assert_null(folds->link);
        else
            assert_string_equal(folds->link, links[index][3]);
    }
    rcpt_rules_free(rules);
    rules_fixture_free(fixture);
}

/* ---- the stream ---- */

/* ID[O/CAMPAIGN] OLD>NEW+GAINED=FLAGS@MINUTE GATEWAY/REASON COLUMNS */
static void say_changes(struct line *line, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_rules_change *list = rcpt_rules_changes(rules, &count);
    for (uint32_t index = 0; index < count; index++)
        say(line, "%.*s[%s/%s] %d>%d+%d=%d@%lld %.*s/%.*s%s%.*s", (int)list[index].id.size,
            list[index].id.at, list[index].org.at, list[index].campaign.at, list[index].old,
            list[index].new, list[index].gained, list[index].flags,
            (long long)(list[index].at_us / MINUTE - HOUR), (int)list[index].gateway.size,
            list[index].gateway.at, (int)list[index].reason.size, list[index].reason.at,
            list[index].columns.size > 0 ? " " : "", (int)list[index].columns.size,
            list[index].columns.at);
}

#define COMPLAINED   1 /* implies DELIVERED */
#define RESUBSCRIBED 4

static void the_stream_gets_every_transition_with_the_receipt_that_made_it(void **state)
{
    static const struct rules_case cases[] = {
        /* The earliest receipt of the new status counts, whatever else came. */
        {.settings = {.stream = true},
         .receipts = {{"m", 300, .minute = 1, .gateway = KANNEL},
                      {"m", 600, .minute = 9, .gateway = KANNEL},
                      {"m", 600, .minute = 7, .gateway = TWILIO, .reason = BLOCKED},
                      {"n", 600, .minute = 8}},
         .rows = {{"a", 0, 200, 600, .org = "o"}, {"b", 1, 300, 600}},
         .expected = "m[o/a] 200>600+0=0@7 twilio/blocked, n[/b] 300>600+0=0@8 /"},
        /* A status of the same minute does not take the place of the one that was reached. */
        {.settings = {.stream = true},
         .receipts = {{"m", 300, .minute = 7, .gateway = KANNEL},
                      {"m", 600, .minute = 7, .gateway = TWILIO}},
         .rows = {{"a", 0, 200, 600}},
         .expected = "m[/a] 200>600+0=0@7 twilio/"},
        /* A flag that implies the status gives both. */
        {.settings = {.stream = true},
         .receipts = {{"m", 9001, .minute = 3, .gateway = TWILIO}},
         .rows = {{"a", 0, 300, 600, .gained = COMPLAINED}},
         .expected = "m[/a] 300>600+1=1@3 twilio/"},
        /* The status stays: the earliest receipt that brings a new flag, also beside a status. */
        {.settings = {.stream = true},
         .receipts = {{"m", 300, .minute = 1},
                      {"m", 9003, .minute = 6},
                      {"m", 300, RESUBSCRIBED, .minute = 4, .gateway = KANNEL}},
         .rows = {{"a", 0, 700, 700, .gained = RESUBSCRIBED, .had = COMPLAINED}},
         .expected = "m[/a] 700>700+4=5@4 kannel/"},
        /* Nothing changed, or a first time alone. */
        {.settings = {.stream = true},
         .receipts = {{"m", 600}, {"n", 600}},
         .rows = {{"a", 0, 600, 600, .same = true}, {"a", 1, 700, 700}},
         .expected = ""},
        /* As a state the time is that of the status, which the row has. */
        {.settings = {.stream = true,
                      .stream_state = true,
                      .stream_columns = {"x"},
                      .stream_column_count = 1},
         .receipts = {{"m", 9003, .minute = 6}, {"n", 600, .minute = 2}},
         .rows = {{"a", 0, 700, 700, .gained = RESUBSCRIBED, .columns = {"1699999380000000", "{}"}},
                  {"a", 1, 300, 600, .columns = {"1", "{\"x\": 1}"}}},
         .expected = "m[/a] 700>700+4=4@3 / {}, n[/a] 300>600+0=0@2 / {\"x\": 1}"},
        /* Two rows of one id. */
        {.settings = {.stream = true},
         .receipts = {{"m", 600}},
         .rows = {{"b", 0, 300, 600}, {"a", 0, 200, 600}},
         .expected = "m[/a] 200>600+0=0@0 /, m[/b] 300>600+0=0@0 /"},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++)
        play(&cases[index], say_changes);
}

/* ---- suppression ---- */

/* ID[ORG] PERSON CLASS@MINUTE, how many of soft ones */
static void say_suppressions(struct line *line, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_rules_suppression *list = rcpt_rules_suppressions(rules, &count);
    for (uint32_t index = 0; index < count; index++)
        say(line, "%.*s[%s] %.*s %s@%lld%s%.0d", (int)list[index].id.size, list[index].id.at,
            list[index].org.at, (int)list[index].person.size, list[index].person.at,
            list[index].class, (long long)(list[index].at_us / MINUTE - HOUR),
            list[index].soft_count > 0 ? " x" : "", list[index].soft_count);
}

#define PERSONS                                                                                    \
    {                                                                                              \
        .person = "who", .suppressing_count = 4, .soft_count = 3, .suppressing = {                 \
            {9001, false},                                                                         \
            {9002, false},                                                                         \
            {650, false},                                                                          \
            {430, true}                                                                            \
        }                                                                                          \
    }

static void a_transition_suppresses_its_person(void **state)
{
    static const struct rules_case cases[] = {
        /* A status, a flag, a flag beside a status, and a soft one; the earliest receipt counts. */
        {.settings = PERSONS,
         .receipts = {{"m", 650, .minute = 4},
                      {"n", 9002, .minute = 9},
                      {"n", 9002, .minute = 7},
                      {"o", 600, 1, .minute = 3},
                      {"p", 430, .minute = 2},
                      {"q", 700}},
         .rows = {{"a", 0, 300, 650, .org = "o", .columns = {"ann"}},
                  {"a", 1, 300, 600, .gained = 2, .org = "o", .columns = {"bob"}},
                  {"a", 2, 300, 600, .gained = 1, .columns = {"cid"}},
                  {"a", 3, 300, 430, .columns = {"dan"}},
                  {"a", 4, 300, 700, .columns = {"eve"}}},
         .expected = "m[o] ann BOUNCED_HARD_EMAIL@4, n[o] bob UNSUBSCRIBED@7, "
                     "o[] cid COMPLAINED@3, p[] dan BOUNCED_SOFT@2 x3"},
        /* Both at once. */
        {.settings = PERSONS,
         .receipts = {{"m", 9001, .minute = 4}, {"m", 9002, .minute = 5}},
         .rows = {{"a", 0, 300, 600, .gained = 3, .columns = {"ann"}}},
         .expected = "m[] ann COMPLAINED@4, m[] ann UNSUBSCRIBED@5"},
        /* No person, a flag that was there, no change, and a status that is left. */
        {.settings = PERSONS,
         .receipts = {{"m", 650}, {"n", 9001}, {"o", 430}, {"p", 600}},
         .rows = {{"a", 0, 300, 650, .columns = {NULL}},
                  {"a", 1, 300, 600, .had = 1, .columns = {"bob"}},
                  {"a", 2, 600, 600, .same = true, .columns = {NULL}},
                  {"a", 3, 430, 600, .columns = {"dan"}}},
         .expected = ""},
        /* Two rows of one id. */
        {.settings = PERSONS,
         .receipts = {{"m", 650, .minute = 1}},
         .rows = {{"b", 0, 300, 650, .columns = {"bob"}}, {"a", 0, 300, 650, .columns = {"ann"}}},
         .expected = "m[] ann BOUNCED_HARD_EMAIL@1, m[] bob BOUNCED_HARD_EMAIL@1"},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++)
        play(&cases[index], say_suppressions);
}

/* ---- columns ---- */

static void columns_are_listed_as_rows_have_them(void **state)
{
    static const struct {
        struct rcpt_rules_settings settings;
        const char *columns; /* CHANGED | SAME; */
    } cases[] = {
        {{.dedup = true, .series = true, .reasons = true, .gateways = true, .folds = true}, ""},
        {{.dimension_count = 2, .dimensions = {{"by_channel", "channel"}, {"by_variant", "a\"b"}}},
         "dimension_key(m.\"channel\"::text COLLATE \"C\") | "
         "dimension_key(m.\"channel\"::text COLLATE \"C\"); "
         "dimension_key(m.\"a\"\"b\"::text COLLATE \"C\") | "
         "dimension_key(m.\"a\"\"b\"::text COLLATE \"C\"); "},
        {{.times = true,
          .group_count = 1,
          .groups = {{"customer", "who"}},
          .folds = true,
          .fold_columns = true},
         "time_bucket(m.\"first_sent_at\", m.first_delivered_at)::text | NULL; "
         "time_bucket(m.\"first_delivered_at\", m.first_opened_at)::text | NULL; "
         "m.\"first_gateway\" | NULL; m.\"prev_times\" | NULL; "
         "m.\"who\"::text COLLATE \"C\" | NULL; "
         "(SELECT f.columns FROM fold_columns(m.\"message_id\") f) | NULL; "},
        {{.stream = true}, ""},
        {{.person = "who"}, "m.\"who\"::text | NULL; "},
        {{.stream = true,
          .stream_state = true,
          .stream_columns = {"a", "b"},
          .stream_column_count = 2},
         "(extract(epoch FROM m.\"status_at\") * 1000000)::int8::text | NULL; "
         "(SELECT s.columns FROM (SELECT NULL::text AS \"a\", NULL::text AS \"b\") n, "
         "LATERAL (SELECT jsonb_build_object('a', left(to_jsonb(\"a\") #>> '{}', 1000), "
         "'b', left(to_jsonb(\"b\") #>> '{}', 1000))::text AS columns "
         "FROM (SELECT m.*) t) s) | NULL; "},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++) {
        char text[1000] = "";
        size_t count;
        struct rcpt_rules *rules = rcpt_rules_new(&cases[index].settings);
        const struct rcpt_rules_column *columns = rcpt_rules_columns(rules, &count);
        for (size_t column = 0; column < count; column++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s | %s; ",
                     columns[column].changed, columns[column].same);
        assert_string_equal(text, cases[index].columns);
        assert_true(rcpt_rules_are_on(rules));
        assert_int_equal(rcpt_rules_count_funnel(rules), cases[index].settings.series);
        rcpt_rules_free(rules);
    }
    struct rcpt_rules *none = rcpt_rules_new(&(struct rcpt_rules_settings){0});
    assert_false(rcpt_rules_are_on(none));
    rcpt_rules_free(none);
}

/* Each rule gets its own part of a row's columns. */
static void all_rules_at_once_read_their_own_columns(void **state)
{
    const struct rcpt_rules_settings settings = {.dimension_count = 1,
                                                 .dimensions = {{"by_channel", "channel"}},
                                                 .times = true,
                                                 .group_count = 1,
                                                 .groups = {{"customer", "who"}}};
    const struct rules_case cells = {
        .settings = settings,
        .receipts = {{"m", 600}},
        .rows = {{"a", 0, 300, 600, .columns = {"sms", "4", "5", "x", "6//x", "c"}}},
        .expected = "by_channel a/sms 600 1/1, time_place a/4/5/x 0 1/0"};
    struct rules_case members = cells;
    (void)state;
    members.expected = "0 a/c 300>600+0";
    play(&cells, say_cells);
    play(&members, say_members);
}

/* A message that expires. */
static void of_a_message_without_a_receipt_no_receipt_is_counted(void **state)
{
    struct line line = {.used = 0};
    struct rules_fixture *fixture = rules_fixture_new();
    struct rcpt_rules *rules =
        rcpt_rules_new(&(struct rcpt_rules_settings){.ladder = fixture->ladder,
                                                     .dimension_count = 1,
                                                     .dimensions = {{"by_channel", "channel"}},
                                                     .group_count = 1,
                                                     .groups = {{"customer", "who"}},
                                                     .series = true,
                                                     .reasons = true,
                                                     .times = true,
                                                     .folds = true,
                                                     .stream = true});
    const struct row row = {"a", 0,          310,
                            400, .org = "o", .columns = {"sms", NULL, NULL, NULL, NULL, "c"}};
    (void)state;
    fixture->batch.messages[fixture->batch.message_count++] = (struct rcpt_batch_message){
        .id = "m", .id_size = 1, .top = 400, .at_us = (HOUR + 7) * MINUTE};
    fixture->batch.events = NULL;
    rcpt_rules_begin(rules, &fixture->batch, NOW, &test_names);
    add_row(rules, &row);
    rcpt_rules_finish(rules);
    say_cells(&line, rules);
    say_members(&line, rules);
    say_folds(&line, rules);
    say_changes(&line, rules);
    assert_string_equal(line.text, "a@7 310 -1/0, a@7 400 1/0, by_channel a/sms 310 -1/0, "
                                   "by_channel a/sms 400 1/0, 0 a/c 310>400+0, "
                                   "o/a  310>400+0 x1, m[o/a] 310>400+0=0@7 /");
    rcpt_rules_free(rules);
    rules_fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_count_messages_whose_place_is_new),
        cmocka_unit_test(groups_list_members_that_changed),
        cmocka_unit_test(folds_get_messages_that_changed_alike),
        cmocka_unit_test(a_fold_has_the_least_traceparent),
        cmocka_unit_test(the_stream_gets_every_transition_with_the_receipt_that_made_it),
        cmocka_unit_test(a_transition_suppresses_its_person),
        cmocka_unit_test(columns_are_listed_as_rows_have_them),
        cmocka_unit_test(all_rules_at_once_read_their_own_columns),
        cmocka_unit_test(of_a_message_without_a_receipt_no_receipt_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "postgres/sql.h"
#include "postgres/statements.h"

static const char *text_of(const struct rcpt_lane_statements *statements, const char *name)
{
    size_t count;
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    for (size_t index = 0; index < count; index++)
        if (strcmp(list[index].name, name) == 0)
            return list[index].sql;
    return NULL;
}

/* The text consists of these files, to the last byte. */
static void assert_files(const char *text, const char *const *files)
{
    assert_non_null(text);
    for (; *files != NULL; files++) {
        size_t size = strlen(rcpt_sql(*files));
        assert_memory_equal(text, rcpt_sql(*files), size);
        text += size;
    }
    assert_string_equal(text, "");
}
#define assert_made_of(text, ...) assert_files(text, (const char *const[]){__VA_ARGS__, NULL})

#define UNCHANGED          "lane/apply/25_unchanged", "lane/apply/14_end", "lane/apply/26_unchanged"
#define CHANGED            "lane/apply/20_changed", UNCHANGED
#define CHANGED_SUBSCRIBED "lane/apply/20_changed_subscribed", UNCHANGED
#define UPDATE_SET                                                                                 \
    "lane/apply/10_update", "lane/apply/11_set", "lane/apply/13_from", "lane/apply/14_end"
#define RETURNING         "lane/apply/15_returning"
#define RETURNING_RULED   RETURNING, "lane/apply/15_returning_ruled"
#define END               "lane/apply/15_end"
#define UPDATE            UPDATE_SET, RETURNING, END
#define UPDATE_RULED      UPDATE_SET, RETURNING_RULED, END
#define UPDATE_SUBSCRIBED UPDATE_SET, RETURNING_RULED, "lane/apply/15_returning_subscribed", END
#define REST              "lane/apply/30_count", "lane/apply/31_delta", "lane/apply/40_unknown"
#define ANSWER            "lane/apply/85_figures", "lane/apply/90_answer"
#define ANSWER_FACETED    "lane/apply/85_figures_ruled", "lane/apply/90_answer"
#define WAKE                                                                                       \
    "lane/wake/10_apply", "lane/wake/20_update", "lane/wake/21_set", "lane/wake/22_from",          \
        "lane/wake/24_end", "lane/wake/26_returning", "lane/wake/27_end", "lane/wake/30_count"
#define WAKE_ANSWER "lane/wake/90_answer"

#define FOLDS   "lane/subscribers/folds"
#define ACTIONS "lane/subscribers/actions"

static void without_subscribers_statements_have_nothing_of_theirs(void **state)
{
    (void)state;
    struct rcpt_lane_statements *plain = rcpt_lane_statements_new(&(struct rcpt_lane_variant){0});
    assert_made_of(text_of(plain, "apply"), UPDATE, CHANGED, REST, ANSWER);
    assert_made_of(text_of(plain, "wake"), WAKE, WAKE_ANSWER);
    assert_made_of(text_of(plain, "fence"), "lane/fence");
    assert_null(text_of(plain, "apply_unsubscribed"));
    assert_null(text_of(plain, "insert"));
    rcpt_lane_statements_free(plain);
}

static void subscribers_stand_before_the_answer_and_see_more_columns(void **state)
{
    (void)state;
    static const char *const files[] = {FOLDS, ACTIONS};
    const struct rcpt_lane_variant variant = {
        .subscribers = files, .count = 2, .inserts_unknown = true};
    struct rcpt_lane_statements *both = rcpt_lane_statements_new(&variant);
    assert_made_of(text_of(both, "apply"), UPDATE_SUBSCRIBED, CHANGED_SUBSCRIBED, REST, FOLDS,
                   ACTIONS, ANSWER);
    assert_made_of(text_of(both, "wake"), WAKE, FOLDS, ACTIONS, WAKE_ANSWER);
    assert_made_of(text_of(both, "insert"), "lane/insert/10_make", "lane/insert/20_known",
                   "lane/insert/30_answer");
    assert_null(text_of(both, "apply_unsubscribed"));
    rcpt_lane_statements_free(both);
}

static void rules_see_more_columns_and_none_that_subscribers_alone_read(void **state)
{
    (void)state;
    static const char *const files[] = {"lane/rules/no_dedup", "lane/rules/reasons"};
    const struct rcpt_lane_variant variant = {
        .rules = files, .rule_count = 2, .read = {.receipts = true, .facets = true}};
    struct rcpt_lane_statements *ruled = rcpt_lane_statements_new(&variant);
    assert_made_of(text_of(ruled, "apply"), UPDATE_RULED, CHANGED, REST, "lane/apply/45_receipts",
                   "lane/apply/45_alike", files[0], files[1], ANSWER_FACETED);
    assert_made_of(text_of(ruled, "wake"), WAKE, "lane/wake/45_receipts", "lane/wake/45_alike",
                   files[0], files[1], WAKE_ANSWER);
    rcpt_lane_statements_free(ruled);
}

static void where_the_series_is_counted_the_delta_says_in_which_minute(void **state)
{
    (void)state;
    static const char *const files[] = {"lane/rules/no_dedup", "lane/rules/series"};
    struct rcpt_lane_variant variant = {
        .rules = files, .rule_count = 2, .read = {.receipts = true, .minutes = true}};
    struct rcpt_lane_statements *minutes = rcpt_lane_statements_new(&variant);
    assert_made_of(text_of(minutes, "apply"), UPDATE_RULED, CHANGED, "lane/apply/30_count",
                   "lane/apply/31_delta_minutes", "lane/apply/40_unknown", "lane/apply/45_receipts",
                   "lane/apply/45_alike", files[0], files[1], ANSWER);
    rcpt_lane_statements_free(minutes);
    variant.by_dimensions = true;
    struct rcpt_lane_statements *both = rcpt_lane_statements_new(&variant);
    assert_made_of(text_of(both, "apply"), UPDATE_SET, RETURNING_RULED,
                   "lane/apply/15_returning_dimensions", END, CHANGED, "lane/apply/30_count",
                   "lane/apply/31_dimensions", "lane/apply/31_delta_minutes",
                   "lane/apply/40_unknown", "lane/apply/45_receipts", "lane/apply/45_alike",
                   files[0], files[1], ANSWER);
    rcpt_lane_statements_free(both);
}

static void where_the_row_keeps_first_times_they_change_it_too(void **state)
{
    (void)state;
    static const char *const files[] = {"lane/rules/no_dedup", "lane/rules/times"};
    const struct rcpt_lane_variant variant = {
        .rules = files, .rule_count = 2, .read = {.receipts = true, .times = true}};
    struct rcpt_lane_statements *timed = rcpt_lane_statements_new(&variant);
    assert_made_of(text_of(timed, "apply"), "lane/apply/10_update", "lane/apply/11_set_times",
                   "lane/apply/13_from", "lane/apply/14_or_earlier", "lane/apply/14_end",
                   RETURNING_RULED, "lane/apply/15_returning_times", END, "lane/apply/20_changed",
                   "lane/apply/25_unchanged", "lane/apply/14_or_earlier", "lane/apply/14_end",
                   "lane/apply/26_unchanged", REST, "lane/apply/45_receipts", "lane/apply/45_alike",
                   files[0], files[1], ANSWER);
    assert_made_of(text_of(timed, "wake"), "lane/wake/10_apply", "lane/wake/20_update",
                   "lane/wake/21_set_times", "lane/wake/22_from", "lane/wake/23_or_earlier",
                   "lane/wake/24_end", "lane/wake/26_returning", "lane/apply/15_returning_times",
                   "lane/wake/27_end", "lane/wake/30_count", "lane/wake/45_receipts",
                   "lane/wake/45_alike", files[0], files[1], WAKE_ANSWER);
    rcpt_lane_statements_free(timed);
}

static void an_unsubscribed_batch_is_without_one_and_makes_sure_that_it_may(void **state)
{
    (void)state;
    static const char *const files[] = {FOLDS, ACTIONS};
    const struct rcpt_lane_variant of_both = {.subscribers = files, .count = 2, .selective = true};
    struct rcpt_lane_statements *both = rcpt_lane_statements_new(&of_both);
    assert_made_of(text_of(both, "apply_unsubscribed"), UPDATE_SUBSCRIBED, CHANGED_SUBSCRIBED, REST,
                   FOLDS, ANSWER, "lane/apply/91_unsubscribed");
    rcpt_lane_statements_free(both);

    const struct rcpt_lane_variant of_one = {
        .subscribers = files + 1, .count = 1, .selective = true};
    struct rcpt_lane_statements *alone = rcpt_lane_statements_new(&of_one);
    assert_made_of(text_of(alone, "apply_unsubscribed"), UPDATE, CHANGED, REST, ANSWER,
                   "lane/apply/91_unsubscribed");
    rcpt_lane_statements_free(alone);
}

/* How often a part stands in a text. */
static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

static void with_a_recent_set_statements_that_find_messages_have_two_stages_with_the_boundary(
    void **state)
{
    (void)state;
    static const char boundary[] = ".\"created_at\" >= ALL ('{\"2026-01-02 03:04:05+00\"}')";
    static const char before[] = "< ALL ('{\"2026-01-02 03:04:05+00\"}')";
    static const char *const files[] = {FOLDS, ACTIONS};
    const struct rcpt_lane_variant variant = {.subscribers = files,
                                              .count = 2,
                                              .selective = true,
                                              .inserts_unknown = true,
                                              .recent_since = "2026-01-02 03:04:05+00"};
    struct rcpt_lane_statements *recent = rcpt_lane_statements_new(&variant);
    size_t count;
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(recent, &count);
    for (size_t index = 0; index < count; index++) {
        const char *name = list[index].name, *sql = list[index].sql;
        bool has_stages = strncmp(name, "apply", 5) == 0 || strcmp(name, "wake") == 0;
        bool inserts = strncmp(name, "insert", 6) == 0, notes = strcmp(name, "timeline") == 0;
        assert_int_equal(count_of(sql, "UPDATE message_inbox"), has_stages ? 2 : 0);
        int readings = strncmp(name, "apply", 5) == 0 ? 2 : has_stages || notes || inserts ? 1 : 0;
        assert_int_equal(count_of(sql, boundary), readings);
        assert_int_equal(count_of(sql, before), readings);
        assert_null(strstr(sql, ":'recent_since'"));
        assert_null(strstr(sql, ":\"recent_column\""));
    }
    assert_int_equal(
        count_of(text_of(recent, "apply"), rcpt_sql("lane/apply/15_returning_subscribed")), 2);
    assert_non_null(strstr(text_of(recent, "apply"), "FROM seen s WHERE s.known"));
    assert_null(strstr(text_of(recent, "apply"), rcpt_sql("lane/apply/25_unchanged")));
    rcpt_lane_statements_free(recent);
    recent = rcpt_lane_statements_new(
        &(struct rcpt_lane_variant){.recent_since = "a\"b", .recent_column = "message_key"});
    assert_int_equal(
        count_of(text_of(recent, "apply"), "m.\"message_key\" >= ALL ( E'{\"a\\\\\"b\"}')"), 2);
    rcpt_lane_statements_free(recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_subscribers_statements_have_nothing_of_theirs),
        cmocka_unit_test(subscribers_stand_before_the_answer_and_see_more_columns),
        cmocka_unit_test(rules_see_more_columns_and_none_that_subscribers_alone_read),
        cmocka_unit_test(where_the_series_is_counted_the_delta_says_in_which_minute),
        cmocka_unit_test(where_the_row_keeps_first_times_they_change_it_too),
        cmocka_unit_test(an_unsubscribed_batch_is_without_one_and_makes_sure_that_it_may),
        cmocka_unit_test(
            with_a_recent_set_statements_that_find_messages_have_two_stages_with_the_boundary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a lane prepares: files of sql/lane, and in decide what the configuration wants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/postgres/sql.h"
#include "receiptd/postgres/statements.h"

static const char *text_of(const struct rcpt_lane_statements *statements, const char *name)
{
    size_t count;
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    for (size_t index = 0; index < count; index++)
        if (strcmp(list[index].name, name) == 0)
            return list[index].sql;
    return NULL;
}

/* How often a part stands in a text. */
static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part))
        count++;
    return count;
}

static void statements_are_files_as_they_stand(void **state)
{
    static const char *const names[] = {"fence", "keys",    "counters", "groups",
                                        "folds", "intents", "parked",   "timeline"};
    struct rcpt_lane_statements *plain = rcpt_lane_statements_new(&(struct rcpt_lane_variant){0});
    (void)state;
    for (size_t index = 0; index < sizeof(names) / sizeof(names[0]); index++) {
        char file[32] = "lane/";
        strcat(file, names[index]);
        assert_string_equal(text_of(plain, names[index]), rcpt_sql(file));
    }
    assert_string_equal(text_of(plain, "begin"), "BEGIN");
    assert_string_equal(text_of(plain, "commit"), "COMMIT");
    assert_string_equal(text_of(plain, "rollback"), "ROLLBACK");
    assert_null(text_of(plain, "insert"));
    assert_null(text_of(plain, "candidates"));
    assert_null(text_of(plain, "range_store"));
    rcpt_lane_statements_free(plain);
}

static void what_the_configuration_does_not_want_is_not_prepared(void **state)
{
    static const struct rcpt_pg_binding ranges[] = {
        {"range_account", "gateway"}, {"range_recipient", "recipient"}, {"range_sent", "sent_at"}};
    struct rcpt_lane_statements *all = rcpt_lane_statements_new(&(struct rcpt_lane_variant){
        .inserts_unknown = true, .resolves_ranges = true, .bindings = ranges, .binding_count = 3});
    (void)state;
    assert_string_equal(text_of(all, "insert"), rcpt_sql("lane/insert"));
    assert_non_null(text_of(all, "insert_parked"));
    assert_non_null(strstr(text_of(all, "range_resolve"), "m.\"recipient\" = d.recipient"));
    assert_null(strstr(text_of(all, "range_resolve"), ":\"range_recipient\""));
    rcpt_lane_statements_free(all);
}

static void a_wake_returns_payloads_where_rules_read_them(void **state)
{
    struct rcpt_lane_variant variant = {.payloads = false};
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        variant.payloads = reads != 0;
        struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&variant);
        const char *wake = text_of(statements, "wake");
        assert_int_equal(count_of(wake, "CASE WHEN octet_length(g.payload) <= 16384 THEN "
                                        "convert_from(g.payload, 'UTF8') END AS payload"),
                         reads);
        assert_int_equal(count_of(wake, "NULL AS payload"), 1 - reads);
        rcpt_lane_statements_free(statements);
    }
}

/* The text that finds its messages is bound already: what looks like a variable is a name. */
static void an_expiry_prepares_what_finds_its_messages_and_no_fence(void **state)
{
    struct rcpt_lane_statements *expiry = rcpt_lane_statements_new(
        &(struct rcpt_lane_variant){.candidates = "SELECT FROM \"a:changed\""});
    (void)state;
    assert_string_equal(text_of(expiry, "candidates"), "SELECT FROM \"a:changed\"");
    assert_non_null(text_of(expiry, "decide"));
    assert_null(text_of(expiry, "fence"));
    assert_null(text_of(expiry, "wake"));
    rcpt_lane_statements_free(expiry);
}

/* Of a changed row and of one that is the same, in both texts of decide. */
static void decide_returns_what_rules_want_of_a_row(void **state)
{
    static char changed[] = "m.customer_id";
    const struct rcpt_rules_column column = {.changed = changed, .same = "NULL::text"};
    struct rcpt_lane_variant variant = {.columns = &column, .column_count = 1};
    (void)state;
    for (int recent = 0; recent < 2; recent++) {
        variant.recent_since = recent ? "2026-01-02 03:04:05+00" : NULL;
        struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&variant);
        const char *decide = text_of(statements, "decide");
        assert_int_equal(count_of(decide, "m.customer_id AS x1"), recent ? 2 : 1);
        assert_int_equal(count_of(decide, "NULL::text AS x1"), recent ? 2 : 1);
        assert_int_equal(count_of(decide, "s.x1"), recent);
        assert_int_equal(count_of(decide, "org_id, '') AS organisation"), 0);
        rcpt_lane_statements_free(statements);
    }
    variant.orgs = true;
    struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&variant);
    assert_int_equal(
        count_of(text_of(statements, "decide"), "COALESCE(m.org_id, '') AS organisation"), 2);
    rcpt_lane_statements_free(statements);
}

static void where_the_row_keeps_first_times_decide_changes_it_for_them_too(void **state)
{
    struct rcpt_lane_variant variant = {.times = false};
    (void)state;
    for (int timed = 0; timed < 2; timed++) {
        variant.times = timed;
        struct rcpt_lane_statements *statements = rcpt_lane_statements_new(&variant);
        const char *decide = text_of(statements, "decide");
        assert_int_equal(count_of(decide, "prev_times = time_place("), timed);
        assert_int_equal(count_of(decide, "OR ($6::timestamptz[])[e.n * 4 - 3] <"), timed * 2);
        rcpt_lane_statements_free(statements);
    }
}

/* The boundary stands as an array's literal wherever decide compares, and no variable is left. */
static void with_a_recent_set_decide_has_two_stages_with_the_boundary(void **state)
{
    static const char boundary[] = ".\"created_at\" >= ALL ('{\"2026-01-02 03:04:05+00\"}')";
    static const char before[] = ".\"created_at\" < ALL ('{\"2026-01-02 03:04:05+00\"}')";
    struct rcpt_lane_statements *recent = rcpt_lane_statements_new(
        &(struct rcpt_lane_variant){.recent_since = "2026-01-02 03:04:05+00"});
    const char *decide = text_of(recent, "decide");
    (void)state;
    assert_int_equal(count_of(decide, "UPDATE message_inbox"), 2);
    assert_int_equal(count_of(decide, boundary), 2);
    assert_int_equal(count_of(decide, before), 2);
    assert_null(strstr(decide, ":'since'"));
    assert_null(strstr(decide, ":\"column\""));
    rcpt_lane_statements_free(recent);
    recent = rcpt_lane_statements_new(
        &(struct rcpt_lane_variant){.recent_since = "a\"b", .recent_column = "message_key"});
    assert_int_equal(
        count_of(text_of(recent, "decide"), "m.\"message_key\" >= ALL ( E'{\"a\\\\\"b\"}')"), 2);
    rcpt_lane_statements_free(recent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_files_as_they_stand),
        cmocka_unit_test(what_the_configuration_does_not_want_is_not_prepared),
        cmocka_unit_test(a_wake_returns_payloads_where_rules_read_them),
        cmocka_unit_test(an_expiry_prepares_what_finds_its_messages_and_no_fence),
        cmocka_unit_test(decide_returns_what_rules_want_of_a_row),
        cmocka_unit_test(where_the_row_keeps_first_times_decide_changes_it_for_them_too),
        cmocka_unit_test(with_a_recent_set_decide_has_two_stages_with_the_boundary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

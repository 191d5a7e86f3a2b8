/* Records of the status stream: bodies and headers of transitions, as docs/stream.md has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "folds/stream_records.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT(literal) RCPT_TEXT(literal)
#define TIME          TEXT("2026-11-28 10:00:02.5+00")

/* KEY VALUE | NAME=VALUE of each header that is there */
static void assert_record(bool is_state, const struct folds_stream_entry *entry,
                          const char *expected)
{
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    const struct folds_stream_form form = {ladder, is_state, "/receiptd/s"};
    struct rcpt_arena arena;
    struct fold_text scratch = {NULL, 0, 0};
    struct rcpt_transactor_record record = {.topic = "t"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    rcpt_arena_init(&arena, 1024);
    for (int again = 0; again < 2; again++) /* the scratch is used again */
        folds_stream_record(&form, entry, &arena, &scratch, &record);
    assert_string_equal(record.topic, "t");
    fprintf(out, "%.*s %.*s |", (int)record.key.size, record.key.at, (int)record.value.size,
            record.value.at != NULL ? record.value.at : "");
    for (size_t index = 0; index < LENGTH(record.headers); index++)
        if (record.headers[index].value.at != NULL)
            fprintf(out, " %s=%.*s", record.headers[index].name,
                    (int)record.headers[index].value.size, record.headers[index].value.at);
    fclose(out);
    assert_string_equal(text, expected);
    assert_int_equal(record.value.at == NULL, entry->kind == FOLDS_STREAM_GONE);
    free(text);
    fold_text_free(&scratch);
    rcpt_arena_fini(&arena);
    rcpt_ladder_free(ladder);
}

static void a_change_says_what_moved_and_leaves_out_what_is_not_there(void **state)
{
    (void)state;
    assert_record(
        false, &(struct folds_stream_entry){.id = TEXT("m1"), .time = TIME, .old = 300, .new = 600},
        "m1 {\"message_id\":\"m1\",\"old\":\"SENT\",\"new\":\"DELIVERED\",\"gained\":[],"
        "\"flags\":[],\"at\":\"2026-11-28T10:00:02.5Z\"} | ce_specversion=1.0 "
        "ce_id=m1/DELIVERED ce_source=/receiptd/s ce_type=receiptd.message.changed ce_subject=m1 "
        "ce_time=2026-11-28T10:00:02.5Z content-type=application/json");
    assert_record(false,
                  &(struct folds_stream_entry){.id = TEXT("m\"2"),
                                               .org = TEXT("o"),
                                               .campaign = TEXT("c\u00e9"),
                                               .gateway = TEXT("g\\"),
                                               .reason = TEXT("blocked"),
                                               .columns = TEXT("{\"x\": null}"),
                                               .trace = TEXT("00-a"),
                                               .old = 600,
                                               .new = 600,
                                               .flags = 7,
                                               .gained = 5},
                  "m\"2 {\"message_id\":\"m\\\"2\",\"old\":\"DELIVERED\",\"new\":\"DELIVERED\","
                  "\"gained\":[\"COMPLAINED\",\"RESUBSCRIBED\"],"
                  "\"flags\":[\"COMPLAINED\",\"UNSUBSCRIBED\",\"RESUBSCRIBED\"],"
                  "\"gateway\":\"g\\\\\",\"reason\":\"blocked\",\"campaign_id\":\"c\u00e9\","
                  "\"org_id\":\"o\",\"columns\":{\"x\": null}} | ce_specversion=1.0 "
                  "ce_id=m\"2/DELIVERED+COMPLAINED+UNSUBSCRIBED+RESUBSCRIBED ce_source=/receiptd/s "
                  "ce_type=receiptd.message.changed ce_subject=m\"2 content-type=application/json "
                  "traceparent=00-a");
}

/* A row of a backfill is a state in both modes, under the id of the change that led to it. */
static void a_state_is_the_message_as_it_is(void **state)
{
    static const char expected[] =
        "m {\"message_id\":\"m\",\"status\":\"SENT\",\"flags\":[\"COMPLAINED\"],"
        "\"status_at\":\"2026-11-28T10:00:02.5Z\",\"campaign_id\":\"c\"} | ce_specversion=1.0 "
        "ce_id=m/SENT+COMPLAINED ce_source=/receiptd/s ce_type=receiptd.message.state ce_subject=m "
        "ce_time=2026-11-28T10:00:02.5Z content-type=application/json";
    struct folds_stream_entry entry = {
        .id = TEXT("m"), .campaign = TEXT("c"), .time = TIME, .old = 0, .new = 300, .flags = 1};
    (void)state;
    assert_record(true, &entry, expected);
    entry.kind = FOLDS_STREAM_ROW;
    assert_record(true, &entry, expected);
    assert_record(false, &entry, expected);
}

static void a_message_that_is_gone_has_no_value(void **state)
{
    const struct folds_stream_entry entry = {.kind = FOLDS_STREAM_GONE, .id = TEXT("m")};
    static const char expected[] = "m  | ce_specversion=1.0 ce_id=m/gone ce_source=/receiptd/s "
                                   "ce_type=receiptd.message.gone ce_subject=m";
    (void)state;
    assert_record(true, &entry, expected);
    assert_record(false, &entry, expected);
}

/* A text that is no time of PostgreSQL's is left out. */
static void odd_values_do_no_harm(void **state)
{
    (void)state;
    assert_record(false,
                  &(struct folds_stream_entry){
                      .id = TEXT("m"), .time = TEXT("infinity"), .old = 301, .new = 302},
                  "m {\"message_id\":\"m\",\"old\":\"301\",\"new\":\"302\",\"gained\":[],"
                  "\"flags\":[]} | ce_specversion=1.0 ce_id=m/302 ce_source=/receiptd/s "
                  "ce_type=receiptd.message.changed ce_subject=m content-type=application/json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_says_what_moved_and_leaves_out_what_is_not_there),
        cmocka_unit_test(a_state_is_the_message_as_it_is),
        cmocka_unit_test(a_message_that_is_gone_has_no_value),
        cmocka_unit_test(odd_values_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

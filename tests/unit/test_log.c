#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "receiptd/base/log.h"

/* Standard error is a pipe while the tests run: the log opens it once in a process. */
struct piped {
    int reader, saved;
};

static int begin(void **state)
{
    static struct piped piped;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    piped = (struct piped){.reader = ends[0], .saved = dup(STDERR_FILENO)};
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    rcpt_log_open();
    *state = &piped;
    return 0;
}

static int end(void **state)
{
    struct piped *piped = *state;
    dup2(piped->saved, STDERR_FILENO);
    close(piped->saved);
    close(piped->reader);
    return 0;
}

/* All that is in the pipe; returns its last piece. */
static void drain(const struct piped *piped, char *last, size_t capacity)
{
    ssize_t size;
    last[0] = '\0';
    while ((size = read(piped->reader, last, capacity - 1)) > 0)
        last[size] = '\0';
}

static void a_line_is_written_whole(void **state)
{
    const struct piped *piped = *state;
    char text[4096];
    rcpt_log_warn("unit", "a \"quoted\" %s", "word");
    drain(piped, text, sizeof(text));
    assert_non_null(strstr(text, " level=warn component=unit msg=\"a \\\"quoted\\\" word\"\n"));
}

static void json_is_one_object_a_line_with_what_it_is_about(void **state)
{
    const struct piped *piped = *state;
    char text[4096];
    const struct rcpt_log_fields fields = {
        .batch = 7,
        .trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        .message_id = "m\"1",
        .message_id_size = 3};
    rcpt_log_configure(RCPT_LOG_INFO, RCPT_LOG_JSON);
    rcpt_log_set_limits(0, true);
    rcpt_log_with(RCPT_LOG_WARN, "unit", &fields, "a tab\tand a \\");
    rcpt_log_with(RCPT_LOG_DEBUG, "unit", &fields, "not at this level");
    drain(piped, text, sizeof(text));
    assert_non_null(
        strstr(text, "\"level\":\"warn\",\"component\":\"unit\",\"msg\":\"a tab\\u0009and a \\\\\","
                     "\"batch\":7,\"trace\":\"0af7651916cd43dd8448eb211c80319c\","
                     "\"message\":\"m\\\"1\"}\n"));
    assert_null(strstr(text, "not at this level"));
    rcpt_log_configure(RCPT_LOG_INFO, RCPT_LOG_LOGFMT);
    rcpt_log_set_limits(0, false);
    rcpt_log_with(RCPT_LOG_WARN, "unit", &fields, "hashed");
    drain(piped, text, sizeof(text));
    char id[RCPT_LOG_ID_BYTES], expected[64];
    snprintf(expected, sizeof(expected), " message=\"%s\"\n", rcpt_log_message_id("m\"1", 3, id));
    assert_int_equal(strlen(id), 17);
    assert_non_null(strstr(text, expected));
    assert_null(strstr(text, "m\\\"1"));
}

static void a_failure_is_said_with_its_code_and_its_hint(void **state)
{
    const struct piped *piped = *state;
    char text[4096];
    struct rcpt_error error;
    rcpt_error_set(&error, RCPT_DECISION_RETRY, "57014", "canceled after %d ms", 5);
    rcpt_error_hint(&error, "look at statement_timeout");
    rcpt_log_failure(RCPT_LOG_WARN, "unit", &error, "%s failed", "roll-up");
    drain(piped, text, sizeof(text));
    assert_non_null(strstr(text,
                           " level=warn component=unit msg=\"roll-up failed: canceled after 5 ms "
                           "(57014); HINT: look at statement_timeout\"\n"));
    rcpt_error_set(&error, RCPT_DECISION_RETRY, NULL, "gone");
    rcpt_log_failure(RCPT_LOG_WARN, "unit", &error, "it failed");
    drain(piped, text, sizeof(text));
    assert_non_null(strstr(text, " msg=\"it failed: gone\"\n"));
}

static void a_room_may_say_more_or_less_than_the_others(void **state)
{
    const struct piped *piped = *state;
    char text[4096];
    assert_true(rcpt_log_set_component("loud", RCPT_LOG_DEBUG));
    assert_true(rcpt_log_set_component("quiet", RCPT_LOG_ERROR));
    assert_true(rcpt_log_enabled(RCPT_LOG_DEBUG));
    rcpt_log_debug("loud", "first");
    rcpt_log_debug("unit", "second");
    rcpt_log_warn("quiet", "third");
    rcpt_log_error("quiet", "fourth");
    drain(piped, text, sizeof(text));
    assert_non_null(strstr(text, "first"));
    assert_null(strstr(text, "second"));
    assert_null(strstr(text, "third"));
    assert_non_null(strstr(text, "fourth"));
    assert_true(rcpt_log_set_component("loud", RCPT_LOG_LEVEL__COUNT));
    assert_true(rcpt_log_set_component("quiet", RCPT_LOG_LEVEL__COUNT));
    assert_false(rcpt_log_enabled(RCPT_LOG_DEBUG));
    assert_false(
        rcpt_log_set_component("a name that is longer than any component has", RCPT_LOG_INFO));
    assert_string_equal(rcpt_log_level_name(RCPT_LOG_ERROR), "error");
    assert_int_equal(rcpt_log_find_level("debug"), RCPT_LOG_DEBUG);
    assert_int_equal(rcpt_log_find_level("loud"), RCPT_LOG_LEVEL__COUNT);
}

static void many_lines_of_one_kind_are_counted_and_others_are_written(void **state)
{
    const struct piped *piped = *state;
    char text[4096];
    uint64_t before = rcpt_log_get_counts().suppressed;
    rcpt_log_set_limits(2, false);
    for (int line = 0; line < 5; line++)
        rcpt_log_warn("unit", "broker %d is away", line);
    rcpt_log_warn("unit", "another kind");
    rcpt_log_flush(); /* the window is not over */
    rcpt_log_set_limits(0, false);
    drain(piped, text, sizeof(text));
    assert_non_null(strstr(text, "broker 1 is away"));
    assert_null(strstr(text, "broker 2 is away"));
    assert_non_null(strstr(text, "another kind"));
    assert_int_equal(rcpt_log_get_counts().suppressed - before, 3);
}

static void the_newest_warnings_are_remembered_newest_first(void **state)
{
    const struct piped *piped = *state;
    struct rcpt_log_entry entries[RCPT_LOG_RECENT];
    char text[4096];
    for (int line = 0; line < 20; line++)
        rcpt_log_warn("unit", "warning %d", line);
    rcpt_log_info("unit", "no warning");
    drain(piped, text, sizeof(text));
    assert_int_equal(rcpt_log_recent(entries), RCPT_LOG_RECENT);
    assert_string_equal(entries[0].text, "warning 19");
    assert_string_equal(entries[0].component, "unit");
    assert_int_equal(entries[0].level, RCPT_LOG_WARN);
    assert_string_equal(entries[RCPT_LOG_RECENT - 1].text, "warning 12");
}

/* The loop would stand still for as long as whoever collects the log does: alarm() ends the test.
 */
static void a_full_pipe_costs_lines_and_no_time(void **state)
{
    const struct piped *piped = *state;
    char text[4096];
    alarm(10);
    for (int line = 0; line < 2000; line++)
        rcpt_log_info("unit", "line %d of more than the pipe takes: %01000d", line, 0);
    drain(piped, text, sizeof(text));
    rcpt_log_info("unit", "there is room again");
    drain(piped, text, sizeof(text));
    alarm(0);
    int lost = 0;
    char *found = strstr(text, "level=warn component=base msg=\"");
    assert_non_null(found);
    assert_int_equal(sscanf(found, "level=warn component=base msg=\"%d lines were lost", &lost), 1);
    assert_in_range(lost, 1900, 1999);
    assert_non_null(strstr(found, "there is room again"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_written_whole),
        cmocka_unit_test(json_is_one_object_a_line_with_what_it_is_about),
        cmocka_unit_test(a_failure_is_said_with_its_code_and_its_hint),
        cmocka_unit_test(a_room_may_say_more_or_less_than_the_others),
        cmocka_unit_test(many_lines_of_one_kind_are_counted_and_others_are_written),
        cmocka_unit_test(the_newest_warnings_are_remembered_newest_first),
        cmocka_unit_test(a_full_pipe_costs_lines_and_no_time),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

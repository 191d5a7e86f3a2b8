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
    assert_non_null(strstr(text, " level=warn room=unit msg=\"a \\\"quoted\\\" word\"\n"));
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
    char *found = strstr(text, "level=warn room=app msg=\"");
    assert_non_null(found);
    assert_int_equal(sscanf(found, "level=warn room=app msg=\"%d lines were lost", &lost), 1);
    assert_in_range(lost, 1900, 1999);
    assert_non_null(strstr(found, "there is room again"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_written_whole),
        cmocka_unit_test(a_full_pipe_costs_lines_and_no_time),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

/* Standard error as it may be when the process begins: the journal's socket, a pipe that cannot be
 * opened again, nothing at all. The log opens it once in a process, so each has a child. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "receiptd/base/log.h"

#define TEXT_BYTES ((size_t)4 << 20)

/* What the child leaves behind. */
static struct found {
    char text[TEXT_BYTES];
    size_t size;
    struct rcpt_log_counts counts;
} * found;

static int begin(void **state)
{
    (void)state;
    found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return found == MAP_FAILED;
}

static int end(void **state)
{
    (void)state;
    return munmap(found, sizeof(*found));
}

/* `reader` is the other end of the child's standard error; a log that waits for it ends by the
 * alarm. */
static void in_child(int reader, int writer, void (*act)(int reader))
{
    int status = -1;
    memset(found, 0, sizeof(*found));
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        if (writer >= 0)
            dup2(writer, STDERR_FILENO);
        else
            close(STDERR_FILENO);
        fcntl(reader, F_SETFL, O_NONBLOCK);
        act(reader);
        found->counts = rcpt_log_get_counts();
        exit(0);
    }
    close(reader);
    if (writer >= 0)
        close(writer);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void drain(int reader)
{
    ssize_t got;
    while (found->size < TEXT_BYTES - 1 &&
           (got = read(reader, found->text + found->size, TEXT_BYTES - 1 - found->size)) > 0)
        found->size += (size_t)got;
}

/* Each line stands alone and in order; how many of them. */
static unsigned count_whole_lines(const char *line_begin)
{
    unsigned lines = 0;
    int last = -1;
    for (const char *line = found->text; *line != '\0'; line = strchr(line, '\n') + 1) {
        assert_non_null(strchr(line, '\n'));
        assert_memory_equal(line, line_begin, strlen(line_begin));
        const char *number = strstr(line, "msg=\"line ");
        if (number == NULL || number > strchr(line, '\n'))
            continue;
        int value = (int)strtol(number + strlen("msg=\"line "), NULL, 10);
        assert_true(value > last);
        last = value;
        lines++;
    }
    return lines;
}

static void expect_nothing_lost_without_a_word(unsigned lines, unsigned written)
{
    char said[64];
    assert_in_range(lines, 1, written - 1);
    snprintf(said, sizeof(said), "\"%u lines were lost: the error output was not read\"",
             written - lines);
    assert_non_null(strstr(found->text, said));
    assert_int_equal(found->counts.dropped, written - lines);
}

/* A short line and a long one by turns: a small socket has room for the first and for a part of the
 * second. Each quote becomes two bytes. */
static void write_more_than_it_takes(int reader)
{
    char quotes[1300];
    memset(quotes, '"', sizeof(quotes));
    for (int line = 0; line < 2000; line++)
        rcpt_log_info("unit", "line %d of more than it takes: %.*s", line,
                      line % 2 * (int)sizeof(quotes), quotes);
    drain(reader);
    rcpt_log_info("unit", "line %d", 2000);
    rcpt_log_info("unit", "line %d", 2001);
    drain(reader);
}

/* ---- the journal ---- */

static void write_to_journal(int reader)
{
    struct stat status;
    char stream[64];
    if (fstat(STDERR_FILENO, &status) != 0)
        exit(1);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)status.st_dev,
             (unsigned long long)status.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    rcpt_log_open();
    rcpt_log_error("unit", "bad");
    rcpt_log_warn("unit", "odd");
    rcpt_log_info("unit", "good");
    drain(reader);
}

static void the_journal_is_told_the_priority_of_a_line(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    in_child(ends[0], ends[1], write_to_journal);
    assert_memory_equal(found->text, "<3>time=", 8);
    assert_non_null(strstr(found->text, "\n<4>time="));
    assert_non_null(strstr(found->text, "\n<6>time="));
}

static void write_to_another_socket(int reader)
{
    setenv("JOURNAL_STREAM", "1:2", 1);
    rcpt_log_open();
    write_more_than_it_takes(reader);
}

/* A socket takes a part of a line: its rest comes before the next one. */
static void a_full_socket_costs_lines_and_no_halves(void **state)
{
    int ends[2], bytes = 1; /* as few as there may be */
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
    in_child(ends[0], ends[1], write_to_another_socket);
    expect_nothing_lost_without_a_word(count_whole_lines("time="), 2002);
}

/* ---- a pipe ---- */

static void write_without_descriptors(int reader)
{
    struct rlimit before, limit;
    if (getrlimit(RLIMIT_NOFILE, &before) != 0)
        exit(1);
    limit = before;
    limit.rlim_cur = 3;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        exit(1);
    rcpt_log_open();
    if (setrlimit(RLIMIT_NOFILE, &before) != 0)
        exit(1);
    write_more_than_it_takes(reader);
}

static void a_full_pipe_that_could_not_be_opened_again_does_not_hold_up_the_process(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    in_child(ends[0], ends[1], write_without_descriptors);
    expect_nothing_lost_without_a_word(count_whole_lines("time="), 2002);
}

/* ---- nothing ---- */

static void write_to_nobody(int reader)
{
    (void)reader;
    rcpt_log_open();
    rcpt_log_warn("unit", "nobody reads this");
}

static void without_standard_error_lines_are_counted_and_remembered(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    close(ends[1]);
    in_child(ends[0], -1, write_to_nobody);
    assert_int_equal(found->counts.dropped, 1);
    assert_int_equal(found->counts.lines[RCPT_LOG_WARN], 0);
}

/* ---- many kinds ---- */

#define ONE(number) rcpt_log_warn("unit", "kind " number);
#define TEN(number)                                                                                \
    ONE(number "0")                                                                                \
    ONE(number "1")                                                                                \
    ONE(number "2")                                                                                \
    ONE(number "3")                                                                                \
    ONE(number "4")                                                                                \
    ONE(number "5")                                                                                \
    ONE(number "6")                                                                                \
    ONE(number "7")                                                                                \
    ONE(number "8")                                                                                \
    ONE(number "9")
#define HUNDRED(number)                                                                            \
    TEN(number "0")                                                                                \
    TEN(number "1")                                                                                \
    TEN(number "2")                                                                                \
    TEN(number "3")                                                                                \
    TEN(number "4")                                                                                \
    TEN(number "5")                                                                                \
    TEN(number "6")                                                                                \
    TEN(number "7")                                                                                \
    TEN(number "8")                                                                                \
    TEN(number "9")

/* NOLINTNEXTLINE(readability-function-size): a kind is a place in the code */
static void write_many_kinds(int reader)
{
    rcpt_log_open();
    rcpt_log_set_limits(1, false);
    HUNDRED("0")
    HUNDRED("1")
    HUNDRED("2")
    drain(reader);
}

/* Kinds that there is no place for share the limit of others: every line is written or counted. */
static void more_kinds_than_places_are_limited_all_the_same(void **state)
{
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    in_child(ends[0], ends[1], write_many_kinds);
    assert_non_null(strstr(found->text, "kind 255"));
    assert_int_equal(found->counts.lines[RCPT_LOG_WARN] + found->counts.suppressed, 300);
    assert_int_equal(found->counts.dropped, 0);
    assert_in_range(found->counts.lines[RCPT_LOG_WARN], 256, 299);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_journal_is_told_the_priority_of_a_line),
        cmocka_unit_test(a_full_socket_costs_lines_and_no_halves),
        cmocka_unit_test(a_full_pipe_that_could_not_be_opened_again_does_not_hold_up_the_process),
        cmocka_unit_test(without_standard_error_lines_are_counted_and_remembered),
        cmocka_unit_test(more_kinds_than_places_are_limited_all_the_same),
    };
    return cmocka_run_group_tests(tests, begin, end);
}

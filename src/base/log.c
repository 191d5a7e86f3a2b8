#include "receiptd/base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 2560u
#define TEXT_BYTES 2048u

static atomic_int configured_level = RCPT_LOG_INFO;
static atomic_int configured_format = RCPT_LOG_LOGFMT;
static atomic_uint missing; /* lines that found no room since the last one that did */

static const char *const level_names[RCPT_LOG_LEVEL__COUNT] = {
    [RCPT_LOG_ERROR] = "error",
    [RCPT_LOG_WARN] = "warn",
    [RCPT_LOG_INFO] = "info",
    [RCPT_LOG_DEBUG] = "debug",
};

void rcpt_log_configure(enum rcpt_log_level level, enum rcpt_log_format format)
{
    atomic_store(&configured_level, (int)level);
    atomic_store(&configured_format, (int)format);
}

bool rcpt_log_enabled(enum rcpt_log_level level)
{
    return (int)level <= atomic_load(&configured_level);
}

static void format_time(char text[64])
{
    struct timespec now;
    struct tm parts;
    char seconds[24];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, 64, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
}

/* Both formats quote alike: a backslash before quotes and backslashes, control bytes as \u00XX. */
static void quote(char *out, size_t capacity, const char *text)
{
    size_t used = 0;
    for (const unsigned char *byte = (const unsigned char *)text; *byte != 0 && used + 8 < capacity;
         byte++) {
        if (*byte == '"' || *byte == '\\') {
            out[used++] = '\\';
            out[used++] = (char)*byte;
        } else if (*byte < 0x20) {
            used += (size_t)snprintf(out + used, capacity - used, "\\u%04x", *byte);
        } else {
            out[used++] = (char)*byte;
        }
    }
    out[used] = '\0';
}

/* Room for a whole line: a pipe says so while a page of it is free. Otherwise the loop would stand
 * still until somebody reads. */
static bool has_room(void)
{
    struct pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&output, 1, 0) == 1;
}

static bool write_line(enum rcpt_log_level level, const char *room, const char *text)
{
    char quoted[TEXT_BYTES + 256], stamp[64], line[LINE_BYTES];
    if (!has_room())
        return false;
    quote(quoted, sizeof(quoted), text);
    format_time(stamp);
    int size = snprintf(line, sizeof(line),
                        atomic_load(&configured_format) == RCPT_LOG_JSON
                            ? "{\"time\":\"%s\",\"level\":\"%s\",\"room\":\"%s\",\"msg\":\"%s\"}\n"
                            : "time=%s level=%s room=%s msg=\"%s\"\n",
                        stamp, level_names[level], room, quoted);
    size_t bytes = size < (int)sizeof(line) ? (size_t)size : sizeof(line) - 1;
    /* What cannot be written for another reason has nowhere to be reported. */
    ssize_t written = write(STDERR_FILENO, line, bytes);
    return written != -1 || errno != EAGAIN;
}

static void report_missing(void)
{
    unsigned count = atomic_exchange(&missing, 0);
    char text[128];
    if (count == 0)
        return;
    snprintf(text, sizeof(text), "%u lines are missing here: nobody read the log in time", count);
    if (!write_line(RCPT_LOG_WARN, "log", text))
        atomic_fetch_add(&missing, count);
}

void rcpt_log(enum rcpt_log_level level, const char *room, const char *format, ...)
{
    if (!rcpt_log_enabled(level))
        return;
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    report_missing();
    if (!write_line(level, room, text))
        atomic_fetch_add(&missing, 1);
}

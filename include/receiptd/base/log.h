/* Log lines to stderr: logfmt or JSON, one line each, never more than one write(2).
 *
 * Never waits for the reader of stderr: a line that does not fit is dropped and counted. Lines of
 * one kind (one format text) above a limit are counted and summed up in one line. Under systemd
 * each line begins with its priority. It decides only by level and limits. May be called from any
 * thread. Never logs a secret or a phone number: that is the duty of the callers; message ids go
 * through rcpt_log_message_id.
 */
#ifndef RECEIPTD_BASE_LOG_H
#define RECEIPTD_BASE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "receiptd/base/error.h"

enum rcpt_log_level {
    RCPT_LOG_ERROR,
    RCPT_LOG_WARN,
    RCPT_LOG_INFO,
    RCPT_LOG_DEBUG,
    RCPT_LOG_LEVEL__COUNT,
};

enum rcpt_log_format {
    RCPT_LOG_LOGFMT,
    RCPT_LOG_JSON,
    RCPT_LOG_FORMAT__COUNT,
};

#define RCPT_LOG_MAX_COMPONENTS 16u
#define RCPT_LOG_WINDOW_MS      10000 /* in which `burst` lines of one kind are let through */
#define RCPT_LOG_RECENT         8u    /* warnings and errors that are remembered */
#define RCPT_LOG_ID_BYTES       256u
#define RCPT_LOG_TEXT_BYTES     2048u

/* Process-wide level and format. Call before threads start, or at a reload. */
void rcpt_log_configure(enum rcpt_log_level level, enum rcpt_log_format format);
/* Gives one component a level of its own; RCPT_LOG_LEVEL__COUNT: takes it back. False: too many
 * components. */
RCPT_MUST_CHECK bool rcpt_log_set_component(const char *component, enum rcpt_log_level level);
/* `burst` limits the lines of one kind within the window, debug lines not counted; 0: no limit.
 * `plain_message_ids`: message ids are written as they are. */
void rcpt_log_set_limits(unsigned burst, bool plain_message_ids);
/* Finds out what stderr is and makes writing to it immediate. Once, at the start of a daemon;
 * without it (in commands) lines are written as everywhere else. */
void rcpt_log_open(void);

const char *rcpt_log_level_name(enum rcpt_log_level level);
/* RCPT_LOG_LEVEL__COUNT: no such name. */
enum rcpt_log_level rcpt_log_find_level(const char *name);

/* Whether any component writes lines of this level. */
bool rcpt_log_enabled(enum rcpt_log_level level);

/* `component` is the folder that speaks ("kafka", "postgres", "core", "app" …). The text is one
 * lower-case sentence that names object and value. Longer texts than 2 KiB are cut. */
void rcpt_log(enum rcpt_log_level level, const char *component, const char *format, ...)
    RCPT_PRINTF(3, 4);

struct rcpt_log_fields {    /* what a line can be found by */
    uint64_t batch;         /* number of the batch; 0: none */
    const char *trace;      /* W3C traceparent, of which the trace id is shown; NULL or "": none */
    const char *message_id; /* hashed unless the configuration says otherwise; NULL: none */
    size_t message_id_size;
};
void rcpt_log_with(enum rcpt_log_level level, const char *component,
                   const struct rcpt_log_fields *fields, const char *format, ...) RCPT_PRINTF(4, 5);

/* A line about a failure: the text, then the error's text, its code and its hint if it has any:
 * "roll-up failed: canceling statement (57014); HINT: …". */
void rcpt_log_failure(enum rcpt_log_level level, const char *component,
                      const struct rcpt_error *error, const char *format, ...) RCPT_PRINTF(4, 5);

/* How a message id is shown: "#" and 16 hexadecimal digits, or the id itself. */
const char *rcpt_log_message_id(const char *id, size_t size, char out[RCPT_LOG_ID_BYTES]);

/* Reports the lines that were suppressed in windows that are over. Call every second or so, from
 * one thread. */
void rcpt_log_flush(void);

struct rcpt_log_counts {
    uint64_t lines[RCPT_LOG_LEVEL__COUNT]; /* written */
    uint64_t suppressed, dropped;
};
struct rcpt_log_counts rcpt_log_get_counts(void);

struct rcpt_log_entry { /* a remembered warning or error */
    int64_t time_ms;    /* since 1970 */
    enum rcpt_log_level level;
    char component[16];
    char text[512];
};
/* Copies the remembered entries, the newest first; returns how many. */
size_t rcpt_log_recent(struct rcpt_log_entry entries[RCPT_LOG_RECENT]);

#define rcpt_log_error(component, ...) rcpt_log(RCPT_LOG_ERROR, component, __VA_ARGS__)
#define rcpt_log_warn(component, ...)  rcpt_log(RCPT_LOG_WARN, component, __VA_ARGS__)
#define rcpt_log_info(component, ...)  rcpt_log(RCPT_LOG_INFO, component, __VA_ARGS__)
#define rcpt_log_debug(component, ...)                                                             \
    (rcpt_log_enabled(RCPT_LOG_DEBUG) ? rcpt_log(RCPT_LOG_DEBUG, component, __VA_ARGS__) : (void)0)

#endif

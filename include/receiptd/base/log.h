/* Log lines to stderr: logfmt or JSON, one line each, never more than one write(2).
 *
 * Never waits: where nobody reads stderr, lines are left out and their number is written once there
 * is room again. Does not know what is worth logging. May be called from any thread. Never logs a
 * secret, a phone number or a message id: that is the duty of the callers.
 */
#ifndef RECEIPTD_BASE_LOG_H
#define RECEIPTD_BASE_LOG_H

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

/* Process-wide level and format; with the number of missing lines the only mutable state of this
 * module. Call before threads start,
 * or at a reload. */
void rcpt_log_configure(enum rcpt_log_level level, enum rcpt_log_format format);

bool rcpt_log_enabled(enum rcpt_log_level level);

/* `room` is the folder that speaks ("kafka", "postgres", "core", "app" …). The text is one
 * lower-case sentence that names object and value. Longer texts than 2 KiB are cut. */
void rcpt_log(enum rcpt_log_level level, const char *room, const char *format, ...)
    RCPT_PRINTF(3, 4);

#define rcpt_log_error(room, ...) rcpt_log(RCPT_LOG_ERROR, room, __VA_ARGS__)
#define rcpt_log_warn(room, ...)  rcpt_log(RCPT_LOG_WARN, room, __VA_ARGS__)
#define rcpt_log_info(room, ...)  rcpt_log(RCPT_LOG_INFO, room, __VA_ARGS__)
#define rcpt_log_debug(room, ...)                                                                  \
    (rcpt_log_enabled(RCPT_LOG_DEBUG) ? rcpt_log(RCPT_LOG_DEBUG, room, __VA_ARGS__) : (void)0)

#endif

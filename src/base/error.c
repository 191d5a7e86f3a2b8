/* Errors as values that carry the decision (error.h), assertions that are always compiled in, and
 * allocation that aborts. A process without memory cannot drain; Kafka delivers uncommitted records
 * again. */
#include "receiptd/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rcpt_error_clear(struct rcpt_error *error)
{
    memset(error, 0, sizeof(*error));
}

/* Replaces everything that the error held before, its hint too. */
RCPT_PRINTF(4, 0)
static void set_text(struct rcpt_error *error, enum rcpt_decision decision, const char *code,
                     const char *format, va_list arguments)
{
    rcpt_error_clear(error);
    error->decision = decision;
    snprintf(error->code, sizeof(error->code), "%s", code != NULL ? code : "");
    vsnprintf(error->text, sizeof(error->text), format, arguments);
}

/* Returns false, so that a failing function ends with `return rcpt_error_set(…)`. */
bool rcpt_error_set(struct rcpt_error *error, enum rcpt_decision decision, const char *code,
                    const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(error, decision, code, format, arguments);
    va_end(arguments);
    return false;
}

/* For start-up only: main() prints text and hint, and ends with exit_code (sysexits). */
bool rcpt_error_fatal(struct rcpt_error *error, int exit_code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(error, RCPT_DECISION_FATAL, NULL, format, arguments);
    va_end(arguments);
    error->exit_code = exit_code;
    return false;
}

void rcpt_error_hint(struct rcpt_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->hint, sizeof(error->hint), format, arguments);
    va_end(arguments);
}

/* Writes to stderr directly, because the log itself may be broken. */
void rcpt_assert_failed(const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr,
            "level=error component=base msg=\"assertion failed\" condition=\"%s\" at=%s:%d "
            "function=%s\n",
            condition, file, line, function);
    abort();
}

/* A size of 0 may give NULL. */
static void *checked(void *pointer, unsigned long size)
{
    if (pointer == NULL && size > 0) {
        fprintf(stderr, "level=error component=base msg=\"out of memory\" bytes=%lu\n", size);
        abort();
    }
    return pointer;
}

void *rcpt_malloc(unsigned long size)
{
    return checked(malloc(size), size);
}

void *rcpt_calloc(unsigned long count, unsigned long size)
{
    return checked(calloc(count, size), count * size);
}

void *rcpt_realloc(void *pointer, unsigned long size)
{
    return checked(realloc(pointer, size), size);
}

char *rcpt_strdup(const char *text)
{
    return rcpt_strndup(text, strlen(text));
}

FILE *rcpt_open_memory(char **text, size_t *size)
{
    FILE *out = open_memstream(text, size);
    RCPT_ASSERT(out != NULL);
    return out;
}

char *rcpt_strndup(const char *text, unsigned long size)
{
    char *copy = rcpt_malloc(size + 1);
    memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

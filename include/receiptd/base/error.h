/* Errors that carry the decision.
 *
 * A runtime failure is a must-check return plus an error object that says what the caller is to do
 * about it. The object is filled once, by the function that failed, and logged once, by the one
 * that decides. It holds no pointer: copy it freely.
 */
#ifndef RECEIPTD_BASE_ERROR_H
#define RECEIPTD_BASE_ERROR_H

#include <stdbool.h>
#include <stdio.h>

#define RCPT_MUST_CHECK                __attribute__((warn_unused_result))
#define RCPT_PRINTF(text_index, first) __attribute__((format(printf, text_index, first)))

enum rcpt_decision {
    RCPT_DECISION_NONE,      /* no error */
    RCPT_DECISION_RETRY,     /* the same work again, after a back-off */
    RCPT_DECISION_REJECT,    /* the input is at fault: a dead letter, on with its neighbours */
    RCPT_DECISION_RECONNECT, /* the connection or schema is at fault: not ready, connect again */
    RCPT_DECISION_FATAL,     /* the process cannot go on: say why, exit */
    RCPT_DECISION__COUNT,
};

struct rcpt_error {
    enum rcpt_decision decision;
    int exit_code;  /* sysexits code, for RCPT_DECISION_FATAL; 0 otherwise */
    char code[32];  /* SQLSTATE, Kafka error name or our own short word; "" if none */
    char text[512]; /* lower case, names object and value, no trailing period */
    char hint[256]; /* what to check or to do; "" if none */
};

void rcpt_error_clear(struct rcpt_error *error);

/* Fills the error. `code` may be NULL. Always returns false, so that `return rcpt_error_set(...)`
 * reads well. */
bool rcpt_error_set(struct rcpt_error *error, enum rcpt_decision decision, const char *code,
                    const char *format, ...) RCPT_PRINTF(4, 5);

/* A start-up failure with a sysexits code; decision = FATAL. Returns false. */
bool rcpt_error_fatal(struct rcpt_error *error, int exit_code, const char *format, ...)
    RCPT_PRINTF(3, 4);

/* Adds the hint to an error that is already set. */
void rcpt_error_hint(struct rcpt_error *error, const char *format, ...) RCPT_PRINTF(2, 3);

/* An assertion that is always compiled in: states the condition and the place, aborts. */
#define RCPT_ASSERT(condition)                                                                     \
    ((condition) ? (void)0 : rcpt_assert_failed(#condition, __FILE__, __LINE__, __func__))
_Noreturn void rcpt_assert_failed(const char *condition, const char *file, int line,
                                  const char *function);

#define RCPT_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Allocation that aborts on failure (Kafka redelivers). Sizes driven by input are capped by the
 * callers. */
void *rcpt_malloc(unsigned long size);
void *rcpt_calloc(unsigned long count, unsigned long size);
void *rcpt_realloc(void *pointer, unsigned long size);
/* Doubles an array of the heap, so that copies stay few; an empty one gets `least` items. */
#define RCPT_GROW(array, capacity, least)                                                          \
    ((capacity) = (capacity) > 0 ? 2 * (capacity) : (least),                                       \
     (array) = rcpt_realloc((array), (capacity) * sizeof(*(array))))
char *rcpt_strdup(const char *text);
char *rcpt_strndup(const char *text, unsigned long size);
FILE *rcpt_open_memory(char **text, size_t *size); /* open_memstream(); fclose() makes the text */

#endif

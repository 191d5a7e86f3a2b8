/* A circuit breaker: stops calls to a receiver that fails, and tries it again with one call.
 *
 * Pure: time comes in, in milliseconds of any monotonic clock. It is closed until so many calls in
 * a row have failed. Then it is open for a while, which doubles with each failed probe, up to
 * sixteen times. Then one call decides. A receiver that has failed for very long is disabled until
 * its breaker is zeroed.
 */
#ifndef RECEIPTD_ACTIONS_BREAKER_H
#define RECEIPTD_ACTIONS_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

enum rcpt_breaker_state {
    RCPT_BREAKER_CLOSED,
    RCPT_BREAKER_OPEN,
    RCPT_BREAKER_PROBING, /* one call may go, or is in flight */
    RCPT_BREAKER_DISABLED,
};

struct rcpt_breaker_limits {
    unsigned failures;        /* in a row, that open it */
    int64_t open_ms;          /* the first time */
    int64_t disable_after_ms; /* 0: never */
};

struct rcpt_breaker { /* zero is a closed one */
    enum rcpt_breaker_state state;
    unsigned failures, opened; /* in a row */
    int64_t failing_since_ms, open_until_ms;
};

/* Lets time pass: an open breaker may become probing. Returns the state. */
enum rcpt_breaker_state rcpt_breaker_advance(struct rcpt_breaker *breaker, int64_t now_ms);
/* After an answer, or a call without one. True if the state has changed. */
bool rcpt_breaker_succeeded(struct rcpt_breaker *breaker);
bool rcpt_breaker_failed(struct rcpt_breaker *breaker, const struct rcpt_breaker_limits *limits,
                         int64_t now_ms);

#endif

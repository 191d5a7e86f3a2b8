/* A circuit breaker of one endpoint: closed, open, probing, disabled (enum rcpt_breaker_state).
 * Pure. Called by call.c before a claim and after each answer. */
#include "breaker.h"

/* The longest pause is 16 times actions.breaker_open. */
#define MOST_DOUBLINGS 4u

enum rcpt_breaker_state rcpt_breaker_advance(struct rcpt_breaker *breaker, int64_t now_ms)
{
    if (breaker->state == RCPT_BREAKER_OPEN && now_ms >= breaker->open_until_ms)
        breaker->state = RCPT_BREAKER_PROBING;
    return breaker->state;
}

/* One success closes the breaker and forgets all failures. */
bool rcpt_breaker_succeeded(struct rcpt_breaker *breaker)
{
    bool changed = breaker->state != RCPT_BREAKER_CLOSED;
    *breaker = (struct rcpt_breaker){.state = RCPT_BREAKER_CLOSED};
    return changed;
}

/* Each probe that fails doubles the pause; a success begins again with the shortest. */
bool rcpt_breaker_failed(struct rcpt_breaker *breaker, const struct rcpt_breaker_limits *limits,
                         int64_t now_ms)
{
    enum rcpt_breaker_state before = breaker->state;
    if (breaker->failures++ == 0)
        breaker->failing_since_ms = now_ms;
    if (before == RCPT_BREAKER_DISABLED)
        return false;
    if (before == RCPT_BREAKER_OPEN) /* a call that was in flight when it opened */
        return false;
    if (before == RCPT_BREAKER_CLOSED && breaker->failures < limits->failures)
        return false;
    unsigned doublings = breaker->opened < MOST_DOUBLINGS ? breaker->opened : MOST_DOUBLINGS;
    breaker->opened++;
    breaker->open_until_ms = now_ms + (limits->open_ms << doublings);
    breaker->state = RCPT_BREAKER_OPEN;
    if (limits->disable_after_ms > 0 &&
        now_ms - breaker->failing_since_ms >= limits->disable_after_ms)
        breaker->state = RCPT_BREAKER_DISABLED;
    return breaker->state != before;
}

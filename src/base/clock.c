/* Reads the system's clocks, which cannot fail on Linux. */
#include "receiptd/base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * (int64_t)RCPT_NS_PER_S + now.tv_nsec;
}

int64_t rcpt_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t rcpt_monotonic_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* The two clocks of the system, for those who have no loop's time. */
#ifndef RECEIPTD_BASE_CLOCK_H
#define RECEIPTD_BASE_CLOCK_H

#include <stdint.h>

#define RCPT_NS_PER_US 1000
#define RCPT_NS_PER_MS 1000000
#define RCPT_NS_PER_S  1000000000

/* Nanoseconds since 1970. An operator or NTP may set this clock back. */
int64_t rcpt_wall_ns(void);
/* Nanoseconds since an unknown moment; never goes back. */
int64_t rcpt_monotonic_ns(void);

#endif

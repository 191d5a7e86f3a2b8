/* An outage of one system, which several members (connections, lanes) notice and retry for as long
 * as it lasts. Each cause is one line of the log. One line at the end gives the duration, and how
 * often each cause came. Keeps the last causes only, in a fixed size. Not thread-safe.
 */
#ifndef RECEIPTD_BASE_OUTAGE_H
#define RECEIPTD_BASE_OUTAGE_H

#include <stdint.h>

#include "receiptd/base/error.h"

#define RCPT_OUTAGE_CAUSES   6u     /* that are kept; further ones replace the rarest */
#define RCPT_OUTAGE_AGAIN_MS 300000 /* a cause that has not come for so long is logged again */

struct rcpt_outage { /* all zero: none */
    unsigned down;   /* members */
    int64_t begun_ms;
    uint64_t failures;
    struct rcpt_outage_cause {
        uint64_t hash, count; /* 0: free */
        int64_t last_ms;
        char text[160];
    } causes[RCPT_OUTAGE_CAUSES];
};

/* A member has failed, or has failed again; `is_down` is the member's own mark. True: the cause is
 * new, or has not come for long; the caller logs it. */
RCPT_MUST_CHECK bool rcpt_outage_note(struct rcpt_outage *outage, bool *is_down, int64_t now_ms,
                                      const struct rcpt_error *error);
/* The member works again. With the last one the outage is over: `what` begins the line, "PostgreSQL
 * is connected again". */
void rcpt_outage_end(struct rcpt_outage *outage, bool *is_down, int64_t now_ms,
                     const char *component, const char *what);
/* The member is gone for good; the outage may end without a line. */
void rcpt_outage_leave(struct rcpt_outage *outage, bool *is_down);

#endif

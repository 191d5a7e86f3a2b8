/* Waits in proportion to what runs cost. The probe of parked receipts and the stream of
 * `receiptd serve` wait by it. */
#include "receiptd/base/pace.h"

int64_t rcpt_pace_wait_ms(struct rcpt_pace *pace, int64_t took_ms, int64_t share)
{
    int64_t cost_ms = took_ms < pace->last_ms ? took_ms : pace->last_ms;
    pace->last_ms = took_ms;
    return cost_ms * share;
}

/* Effects of receipts by gateway, counted when the answer of their transaction comes. Private to
 * measure.c. */
#ifndef RECEIPTD_OPERATE_MEASURE_RECEIPTS_H
#define RECEIPTD_OPERATE_MEASURE_RECEIPTS_H

#include "receiptd/receipts/receipts.h"

struct measure_receipts {
    struct host_context *context;
    const struct receipts *receipts;
    int64_t last_commit_ms; /* since 1970; 0: never */
};

/* The value of the label; "none" for receipts that name no gateway. */
const char *measure_gateway_name(const struct measure_receipts *measured, uint32_t gateway);
/* Series of rare events of this gateway begin, at 0. */
void measure_expect_gateway(struct measure_receipts *measured, const char *gateway);
/* As struct lane_observer has them; the context is a struct measure_receipts. */
void measure_result(void *context, const struct lane_flight *flight,
                    const struct rcpt_engine_result *result);
void measure_effects(void *context, const struct rcpt_batch *batch,
                     const struct rcpt_lane_effects *effects);

#endif

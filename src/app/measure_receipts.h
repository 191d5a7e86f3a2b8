/* What receipts did, by gateway. measure_result and measure_effects are in app.h. */
#ifndef RECEIPTD_APP_MEASURE_RECEIPTS_H
#define RECEIPTD_APP_MEASURE_RECEIPTS_H

#include "app.h"

/* As labels name it; "none" where none is named. */
const char *measure_gateway_name(const struct app *app, uint32_t gateway);
/* Its series of what seldom happens begin, at zero. */
void measure_expect_gateway(struct app *app, const char *gateway);

#endif

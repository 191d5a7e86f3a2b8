/* Metrics of the interface for readers, for `receiptd serve` and for `receiptd run` beside it. */
#ifndef RECEIPTD_OPERATE_MEASURE_SERVE_H
#define RECEIPTD_OPERATE_MEASURE_SERVE_H

#include "host/metrics.h"
#include "serve/serve.h"

void measure_serve(struct rcpt_metrics *metrics, const struct rcpt_serve *serve);

#endif

/* Metrics that `receiptd run` and `receiptd intake` have in common: the process, its log, its HTTP
 * server, the intake. */
#ifndef RECEIPTD_OPERATE_MEASURE_PROCESS_H
#define RECEIPTD_OPERATE_MEASURE_PROCESS_H

#include "host/metrics.h"
#include "intake/intake.h"
#include "trace/tracer.h"

/* The process and its log; started_ms: since 1970. */
void measure_process(struct rcpt_metrics *metrics, int64_t started_ms);
void measure_http(struct rcpt_metrics *metrics, const struct rcpt_http_stats *stats);
void measure_tracing(struct rcpt_metrics *metrics, const struct rcpt_tracer_stats *stats);
void measure_intake(struct rcpt_metrics *metrics, const struct rcpt_intake *intake);

#endif

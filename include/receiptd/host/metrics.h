/* The names of receiptd's metrics, RCPT_METRIC_NAME for each row of metrics_rows.h. */
#ifndef RECEIPTD_HOST_METRICS_H
#define RECEIPTD_HOST_METRICS_H

#include "receiptd/base/metrics.h"

enum rcpt_metric {
#define METRIC(name, ...) RCPT_METRIC_##name,
#include "receiptd/host/metrics_rows.h"
#undef METRIC
    RCPT_METRIC__COUNT,
};

enum rcpt_metrics_part {                         /* of a process, for rcpt_metrics_hide */
                         RCPT_METRICS_OF_WORKER, /* rows that say nothing else */
                         RCPT_METRICS_OF_INTAKE,
                         RCPT_METRICS_OF_SERVE,
                         RCPT_METRICS_OF_ALL, /* every process has these */
};

const struct rcpt_metric_row *rcpt_metrics_table(void); /* RCPT_METRIC__COUNT rows */

#endif

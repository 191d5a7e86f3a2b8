/* The table of receiptd's metrics: limits and buckets here, the rows in metrics_rows.h. */
#include "receiptd/host/metrics.h"
#include "receiptd/base/error.h"

#define COUNTER     .type = RCPT_METRIC_COUNTER
#define GAUGE       .type = RCPT_METRIC_GAUGE
#define HISTOGRAM   .type = RCPT_METRIC_HISTOGRAM
#define LABELS(...) .labels = {__VA_ARGS__}
#define SECONDS     .unit = "seconds"
#define BYTES       .unit = "bytes"
#define OF_INTAKE   .part = RCPT_METRICS_OF_INTAKE
#define OF_SERVE    .part = RCPT_METRICS_OF_SERVE
#define OF_ALL      .part = RCPT_METRICS_OF_ALL

/* Limits of series per metric: a label's values come from outside, and each series costs memory. */
#define MOST_GATEWAYS    16
#define MOST_PARTITIONS  10000
#define MOST_CONNECTIONS 65
#define MOST_ACCOUNTS    200
#define MOST_TARGETS     1008

/* Upper bounds of buckets; a 0 ends the list. The bounds of seconds are also in src/serve/stats.c.
 */
static const double second_bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                       0.5,   1,      2.5,   5,    10,    30,   0};
/* With the two minutes of the alert ReceiptdActionsLate. */
static const double late_bounds[] = {0.01, 0.05, 0.1, 0.25, 0.5, 1,   2.5, 5,
                                     10,   30,   60,  120,  300, 900, 0};
static const double delay_bounds[] = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 0};
/* As in src/core/record_gateway.c, which keeps them. */
static const double age_bounds[] = {1,    2,     5,     10,    30,     60,     300, 900,
                                    3600, 14400, 43200, 86400, 259200, 604800, 0};
/* As in src/gateways/stats.c, which keeps them. */
static const double ack_bounds[] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                    0.2,    0.5,   1,     2,     5,    10,   0};
static const double event_bounds[] = {1, 10, 50, 100, 250, 500, 1000, 2000, 4000, 8000, 0};

static const struct rcpt_metric_row rows[] = {
#define METRIC(name, ...) [RCPT_METRIC_##name] = {__VA_ARGS__},
#include "receiptd/host/metrics_rows.h"
#undef METRIC
};

_Static_assert(RCPT_COUNT_OF(rows) == RCPT_METRIC__COUNT, "one row per metric");

const struct rcpt_metric_row *rcpt_metrics_table(void)
{
    return rows;
}

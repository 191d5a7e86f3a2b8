/* Shared by the files of the metrics: metrics.c keeps the values, metrics_text.c writes them. */
#ifndef RECEIPTD_BASE_METRICS_INTERNAL_H
#define RECEIPTD_BASE_METRICS_INTERNAL_H

#include "receiptd/base/metrics.h"
#include "receiptd/base/table.h"

struct metrics_series {
    char *labels; /* as they are scraped, without the braces */
    size_t labels_size;
    uint32_t hash;
    bool seen;             /* set since begin */
    double value;          /* of a histogram: the sum */
    uint64_t observations; /* of a histogram */
    uint64_t *buckets;     /* of a histogram, not cumulated; the last is +Inf; else NULL */
};

struct metrics_family {
    struct metrics_series **series; /* in order of appearance */
    uint32_t count, capacity;
    struct rcpt_table by_labels;
    bool hidden;
};

struct rcpt_metrics {
    const struct rcpt_metric_row *rows;
    size_t count;
    struct metrics_family *families; /* by row */
};

size_t metrics_bound_count(const struct rcpt_metric_row *row);

#endif

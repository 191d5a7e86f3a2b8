/* Counters, gauges and histograms: declared once in a table, kept without locks, rendered as text.
 *
 * A registry is made from rows; those of receiptd are in host/metrics_rows.h. Series appear with
 * their first value. Each row bounds the number of its series; further ones are counted in one
 * series whose labels all say "other". It defines no metric itself. One thread (the loop's).
 */
#ifndef RECEIPTD_BASE_METRICS_H
#define RECEIPTD_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "receiptd/base/error.h"

#define RCPT_METRIC_MAX_LABELS 3u

enum rcpt_metric_type {
    RCPT_METRIC_COUNTER,
    RCPT_METRIC_GAUGE,
    RCPT_METRIC_HISTOGRAM,
    RCPT_METRIC_INFO, /* a gauge that is always 1: what it says is in its labels */
    RCPT_METRIC_TYPE__COUNT,
};

struct rcpt_metric_row {
    const char *name; /* as it is scraped: counters end in _total, infos in _info */
    enum rcpt_metric_type type;
    /* "seconds", "bytes", …; NULL: a number. The name ends in it (before _total) */
    const char *unit;
    const char *labels[RCPT_METRIC_MAX_LABELS]; /* names; NULL: no more */
    unsigned most;        /* series; 0: as many as one thing of the kind can have, one */
    const double *bounds; /* of a histogram's buckets, ascending, the last is 0 */
    unsigned part;        /* of the process that has it, for rcpt_metrics_hide */
    const char *who;      /* looks at it: "alert NAME", "panel TITLE" or "PAGE.md, SECTION" */
    const char *help;     /* one sentence without its period */
};

enum rcpt_metrics_format {
    RCPT_METRICS_TEXT,        /* Prometheus text format 0.0.4 */
    RCPT_METRICS_OPENMETRICS, /* OpenMetrics 1.0.0 */
};

struct rcpt_metrics;

/* The rows are borrowed for life; `metric` below is an index into them. */
struct rcpt_metrics *rcpt_metrics_new(const struct rcpt_metric_row *rows, size_t count);
void rcpt_metrics_free(struct rcpt_metrics *metrics);

/* Values of the labels, one for each that the row names: RCPT_LABELS("a", "b"). */
#define RCPT_LABELS(...) ((const char *const[]){__VA_ARGS__})
#define RCPT_NO_LABELS   NULL

/* A counter or gauge goes up; a counter never down. */
void rcpt_metrics_add(struct rcpt_metrics *metrics, unsigned metric, const char *const *labels,
                      double value);
/* A gauge's value, or that of a counter which is kept elsewhere. */
void rcpt_metrics_set(struct rcpt_metrics *metrics, unsigned metric, const char *const *labels,
                      double value);
/* One observation of a histogram. */
void rcpt_metrics_observe(struct rcpt_metrics *metrics, unsigned metric, const char *const *labels,
                          double value);
/* A histogram that is kept elsewhere: observations in each of the row's buckets and above them, not
 * cumulated. */
void rcpt_metrics_set_histogram(struct rcpt_metrics *metrics, unsigned metric,
                                const char *const *labels, const uint64_t *buckets, double sum);
/* Hides the rows of this part, which the process does not have. */
void rcpt_metrics_hide(struct rcpt_metrics *metrics, unsigned part);

/* Between begin and end, set every series of the row that is to stay: the others disappear. */
void rcpt_metrics_begin(struct rcpt_metrics *metrics, unsigned metric);
void rcpt_metrics_end(struct rcpt_metrics *metrics, unsigned metric);

/* The format that the client prefers by its Accept header (NULL: none); the first format unless it
 * prefers the other. */
enum rcpt_metrics_format rcpt_metrics_negotiate(const char *accept);
const char *rcpt_metrics_content_type(enum rcpt_metrics_format format);
/* All series as text; the caller frees it. */
char *rcpt_metrics_render(const struct rcpt_metrics *metrics, enum rcpt_metrics_format format,
                          size_t *size);

/* Writes docs/metrics.md. */
void rcpt_metrics_write_reference(const struct rcpt_metric_row *rows, size_t count, FILE *out);

#endif

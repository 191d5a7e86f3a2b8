/* Counters, gauges and histograms: declared once in a table, kept without locks, rendered as text.
 *
 * A registry is made from rows; the rows of receiptd are in src/base/metrics_table.c, from which
 * docs/metrics.md comes as well. Series appear with their first value, and their number per row is
 * bounded: what comes above it is counted in one series whose labels all say "other". Does not know
 * what is worth measuring. One thread (the loop's).
 */
#ifndef RECEIPTD_BASE_METRICS_H
#define RECEIPTD_BASE_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "error.h"

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
    const char
        *unit; /* "seconds", "bytes", …; NULL: a number. The name ends in it (before _total) */
    const char *labels[RCPT_METRIC_MAX_LABELS]; /* names; NULL: no more */
    unsigned most;        /* series; 0: as many as one thing of the kind can have, one */
    const double *bounds; /* of a histogram's buckets, ascending, the last is 0 */
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
/* Rows from `first` to the one before `end` are not shown: this process has nothing of the kind. */
void rcpt_metrics_hide(struct rcpt_metrics *metrics, unsigned first, unsigned end);
/* Value of a series, 0 if there is none; of a histogram: the number of observations. */
double rcpt_metrics_value(const struct rcpt_metrics *metrics, unsigned metric,
                          const char *const *labels);
size_t rcpt_metrics_series_count(const struct rcpt_metrics *metrics, unsigned metric);

/* Between the two every series of the row that is to stay must be set: the others disappear. */
void rcpt_metrics_begin(struct rcpt_metrics *metrics, unsigned metric);
void rcpt_metrics_end(struct rcpt_metrics *metrics, unsigned metric);

/* What the client wants (its Accept header, NULL: none); the first format unless it prefers the
 * other. */
enum rcpt_metrics_format rcpt_metrics_negotiate(const char *accept);
const char *rcpt_metrics_content_type(enum rcpt_metrics_format format);
/* All series as text; the caller frees it. */
char *rcpt_metrics_render(const struct rcpt_metrics *metrics, enum rcpt_metrics_format format,
                          size_t *size);

/* docs/metrics.md. */
void rcpt_metrics_write_reference(const struct rcpt_metric_row *rows, size_t count, FILE *out);

/* ---- the table of receiptd ---- */

enum rcpt_metric {
    RCPT_METRIC_BUILD,
    RCPT_METRIC_READY,
    RCPT_METRIC_HALTED,
    RCPT_METRIC_PAUSED,
    /* what came in */
    RCPT_METRIC_RECORDS_RECEIVED,
    RCPT_METRIC_RECORDS_DROPPED,
    RCPT_METRIC_OFFSETS_SKIPPED,
    RCPT_METRIC_EVENTS_RECEIVED,
    /* what became of it */
    RCPT_METRIC_EVENTS_APPLIED,
    RCPT_METRIC_EVENTS_STALE,
    RCPT_METRIC_EVENTS_DUPLICATE,
    RCPT_METRIC_EVENTS_CONTRADICTION,
    RCPT_METRIC_EVENTS_UNCLASSIFIED,
    RCPT_METRIC_EVENTS_PARKED,
    RCPT_METRIC_EVENTS_WOKEN,
    RCPT_METRIC_EVENTS_AGED_OUT,
    RCPT_METRIC_EVENTS_DEAD,
    RCPT_METRIC_STATUSES_IMPLIED,
    RCPT_METRIC_MESSAGES_CHANGED,
    RCPT_METRIC_TRANSITIONS,
    /* transactions */
    RCPT_METRIC_TRANSACTIONS,
    RCPT_METRIC_BATCH_EVENTS,
    RCPT_METRIC_BATCH_BYTES,
    RCPT_METRIC_TRANSACTION_SECONDS,
    RCPT_METRIC_RETRIES,
    RCPT_METRIC_FENCE_CONFLICTS,
    RCPT_METRIC_EXCLUSIVITY_CONFLICTS,
    RCPT_METRIC_EXCLUSIVITY_MESSAGES,
    RCPT_METRIC_RESYNCS,
    RCPT_METRIC_EVENTS_ROLLED_BACK,
    RCPT_METRIC_RECORDS_REPLAYED,
    RCPT_METRIC_REWINDS,
    RCPT_METRIC_EVICTIONS,
    RCPT_METRIC_LAST_COMMIT,
    /* how far it is */
    RCPT_METRIC_PARTITION_POSITION,
    RCPT_METRIC_PARTITION_LAG_RECORDS,
    RCPT_METRIC_PARTITION_LAG_SECONDS,
    RCPT_METRIC_PARTITION_SHOWS,
    RCPT_METRIC_OLDEST_UNAPPLIED,
    RCPT_METRIC_PARKED,
    RCPT_METRIC_PARKED_OLDEST,
    RCPT_METRIC_QUEUE_BYTES,
    RCPT_METRIC_QUEUE_BUDGET,
    RCPT_METRIC_LANES,
    RCPT_METRIC_LANE_RECORDS,
    /* Kafka and PostgreSQL */
    RCPT_METRIC_PARTITIONS_ASSIGNED,
    RCPT_METRIC_REBALANCES,
    RCPT_METRIC_KAFKA_UP,
    RCPT_METRIC_CONNECTION_UP,
    RCPT_METRIC_CONNECTION_FAILURES,
    RCPT_METRIC_SNAPSHOT_AGE,
    RCPT_METRIC_BACKENDS,
    RCPT_METRIC_BACKENDS_MOST,
    /* the intake */
    RCPT_METRIC_INTAKE_ACCOUNT,
    RCPT_METRIC_INTAKE_REQUESTS,
    RCPT_METRIC_INTAKE_ANSWERS,
    RCPT_METRIC_INTAKE_VERIFICATIONS,
    RCPT_METRIC_INTAKE_REFUSED,
    RCPT_METRIC_INTAKE_COPIES,
    RCPT_METRIC_INTAKE_EVENTS,
    RCPT_METRIC_INTAKE_DROPS,
    RCPT_METRIC_INTAKE_UNMAPPED_STATUS,
    RCPT_METRIC_INTAKE_DEAD_LETTERS,
    RCPT_METRIC_INTAKE_ACK_SECONDS,
    RCPT_METRIC_INTAKE_REQUEST_EVENTS,
    RCPT_METRIC_INTAKE_RECORDS,
    RCPT_METRIC_INTAKE_RECORD_BYTES,
    RCPT_METRIC_INTAKE_RECORD_EVENTS,
    RCPT_METRIC_INTAKE_ALIASES,
    RCPT_METRIC_INTAKE_WAITING_REQUESTS,
    RCPT_METRIC_INTAKE_WAITING_BYTES,
    RCPT_METRIC_INTAKE_CONNECTIONS,
    RCPT_METRIC_INTAKE_CLOSED,
    /* folds */
    RCPT_METRIC_FOLD_EVENTS,
    RCPT_METRIC_FOLD_GROUPS,
    RCPT_METRIC_FOLD_FOLDED,
    RCPT_METRIC_FOLD_PUBLISHED,
    RCPT_METRIC_FOLD_AVOIDABLE,
    RCPT_METRIC_FOLD_OPEN,
    RCPT_METRIC_FOLD_RATIO,
    RCPT_METRIC_FOLD_SKIPPED,
    RCPT_METRIC_FOLD_CALLS,
    /* actions */
    RCPT_METRIC_PIPELINE_RUNS,
    RCPT_METRIC_PIPELINE_REPEATED,
    RCPT_METRIC_PIPELINE_BEGIN_LAG,
    RCPT_METRIC_ACTIONS,
    RCPT_METRIC_ACTIONS_IN_FLIGHT,
    RCPT_METRIC_ACTION_LANES,
    RCPT_METRIC_ACTION_LATE_SECONDS,
    RCPT_METRIC_ACTION_ATTEMPTS,
    RCPT_METRIC_ACTION_CALL_SECONDS,
    RCPT_METRIC_ACTIONS_DECIDED,
    RCPT_METRIC_ACTIONS_DEFERRED,
    RCPT_METRIC_ACTIONS_DEAD_TOTAL,
    RCPT_METRIC_ACTION_OVERLAPS,
    RCPT_METRIC_ENDPOINTS_DISABLED,
    /* the process */
    RCPT_METRIC_LOOP_DELAY,
    RCPT_METRIC_SCRAPE,
    RCPT_METRIC_RELOADS,
    RCPT_METRIC_LAST_RELOAD,
    RCPT_METRIC_LOG_LINES,
    RCPT_METRIC_LOG_SUPPRESSED,
    RCPT_METRIC_LOG_DROPPED,
    RCPT_METRIC_HTTP_REQUESTS,
    RCPT_METRIC_SPANS_EXPORTED,
    RCPT_METRIC_SPANS_DROPPED,
    RCPT_METRIC_SPANS_QUEUE_BYTES,
    RCPT_METRIC_PROCESS_CPU,
    RCPT_METRIC_PROCESS_RSS,
    RCPT_METRIC_PROCESS_START,
    RCPT_METRIC_PROCESS_FDS,
    RCPT_METRIC__COUNT,
};

const struct rcpt_metric_row *rcpt_metrics_table(void); /* RCPT_METRIC__COUNT rows */

#endif

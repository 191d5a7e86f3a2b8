/* The registry of metrics: for each row of the table its series, found by the text of their labels
 * in a hash table. Each row bounds its number of series: values beyond the bound
 * are counted in one series named `other`. Used by one thread, the loop's. */
#include "metrics_internal.h"

#include <stdlib.h>
#include <string.h>

#define LABELS_BYTES 2048u
#define VALUE_BYTES  250u /* of one label's value; the rest is cut */
#define OTHER        "other"

static void free_series(struct metrics_series *series)
{
    free(series->labels);
    free(series->buckets);
    free(series);
}

void rcpt_metrics_free(struct rcpt_metrics *metrics)
{
    if (metrics == NULL)
        return;
    for (size_t index = 0; index < metrics->count; index++) {
        struct metrics_family *family = &metrics->families[index];
        for (size_t at = 0; at < family->count; at++)
            free_series(family->series[at]);
        free(family->series);
        rcpt_table_free(&family->by_labels);
    }
    free(metrics->families);
    free(metrics);
}

/* A bound of 0 ends the list. The bucket above the last bound is +Inf. */
size_t metrics_bound_count(const struct rcpt_metric_row *row)
{
    size_t count = 0;
    while (row->bounds[count] > 0)
        count++;
    return count;
}

/* ---- labels: the text between the braces is the key ---- */

/* One byte that is not printable ASCII becomes `?`: Prometheus refuses a whole page for one byte
 * that is not UTF-8. */
static size_t put_value(char *out, const char *value)
{
    size_t used = 0;
    size_t size = strnlen(value, VALUE_BYTES);
    for (size_t index = 0; index < size; index++) {
        char byte = value[index];
        if (byte == '"' || byte == '\\')
            out[used++] = '\\';
        out[used++] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
    return used;
}

/* The text between the braces of a page is the key of the series. `values` NULL with labels in the
 * row: all of them are "other". */
static size_t write_labels(const struct rcpt_metric_row *row, const char *const *values,
                           char text[LABELS_BYTES])
{
    size_t used = 0;
    for (size_t index = 0; index < RCPT_METRIC_MAX_LABELS && row->labels[index] != NULL; index++) {
        size_t name = strlen(row->labels[index]);
        const char *value = values != NULL ? values[index] : OTHER;
        char escaped[2 * VALUE_BYTES];
        size_t size = put_value(escaped, value);
        RCPT_ASSERT(used + name + size + 5 < LABELS_BYTES);
        if (index > 0)
            text[used++] = ',';
        memcpy(text + used, row->labels[index], name);
        used += name;
        text[used++] = '=';
        text[used++] = '"';
        memcpy(text + used, escaped, size);
        used += size;
        text[used++] = '"';
    }
    text[used] = '\0';
    return used;
}

/* FNV-1a, 32 bits. */
static uint32_t hash_of(const char *text, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t index = 0; index < size; index++)
        hash = (hash ^ (unsigned char)text[index]) * 16777619u;
    return hash;
}

/* ---- finding ---- */

static struct metrics_series *find(const struct metrics_family *family, const char *labels,
                                   size_t size, uint32_t hash)
{
    struct metrics_series *series;
    for (size_t probes = 0; (series = rcpt_table_next(&family->by_labels, hash, &probes)) != NULL;)
        if (series->labels_size == size && memcmp(series->labels, labels, size) == 0)
            return series;
    return NULL;
}

static struct metrics_series *add_series(struct metrics_family *family,
                                         const struct rcpt_metric_row *row, const char *labels,
                                         size_t size, uint32_t hash)
{
    struct metrics_series *series = rcpt_calloc(1, sizeof(*series));
    series->labels = rcpt_strndup(labels, size);
    series->labels_size = size;
    series->hash = hash;
    if (row->type == RCPT_METRIC_HISTOGRAM)
        series->buckets = rcpt_calloc(metrics_bound_count(row) + 1, sizeof(*series->buckets));
    if (family->count == family->capacity) {
        family->capacity = family->capacity > 0 ? family->capacity * 2 : 4;
        family->series =
            rcpt_realloc(family->series, family->capacity * sizeof(struct metrics_series *));
    }
    family->series[family->count++] = series;
    rcpt_table_add(&family->by_labels, hash, series);
    return series;
}

/* Finds the series or makes it; above the row's limit it is the one named `other`. */
static struct metrics_series *series_of(struct rcpt_metrics *metrics, unsigned metric,
                                        const char *const *values)
{
    RCPT_ASSERT(metric < metrics->count);
    const struct rcpt_metric_row *row = &metrics->rows[metric];
    struct metrics_family *family = &metrics->families[metric];
    RCPT_ASSERT((row->labels[0] == NULL) == (values == NULL));
    char labels[LABELS_BYTES];
    size_t size = write_labels(row, values, labels);
    uint32_t hash = hash_of(labels, size);
    struct metrics_series *series = find(family, labels, size, hash);
    uint32_t most = row->most > 0 ? row->most : 1;
    if (series == NULL && family->count >= most && values != NULL) {
        size = write_labels(row, NULL, labels);
        hash = hash_of(labels, size);
        series = find(family, labels, size, hash);
    }
    if (series == NULL)
        series = add_series(family, row, labels, size, hash);
    series->seen = true;
    return series;
}

/* Series without labels exist from the beginning, so that a rate sees the step from 0 to 1. */
struct rcpt_metrics *rcpt_metrics_new(const struct rcpt_metric_row *rows, size_t count)
{
    struct rcpt_metrics *metrics = rcpt_calloc(1, sizeof(*metrics));
    metrics->rows = rows;
    metrics->count = count;
    metrics->families = rcpt_calloc(count, sizeof(*metrics->families));
    for (unsigned metric = 0; metric < count; metric++) {
        if (rows[metric].labels[0] == NULL)
            (void)series_of(metrics, metric, RCPT_NO_LABELS);
    }
    return metrics;
}

/* ---- values ---- */

/* A counter never falls: Prometheus would take that for a restart. */
void rcpt_metrics_add(struct rcpt_metrics *metrics, unsigned metric, const char *const *labels,
                      double value)
{
    RCPT_ASSERT(value >= 0 || metrics->rows[metric].type == RCPT_METRIC_GAUGE);
    series_of(metrics, metric, labels)->value += value;
}

void rcpt_metrics_set(struct rcpt_metrics *metrics, unsigned metric, const char *const *labels,
                      double value)
{
    series_of(metrics, metric, labels)->value = value;
}

/* A value that equals a bound belongs to its bucket (le: less or equal). */
void rcpt_metrics_observe(struct rcpt_metrics *metrics, unsigned metric, const char *const *labels,
                          double value)
{
    const double *bounds = metrics->rows[metric].bounds;
    struct metrics_series *series = series_of(metrics, metric, labels);
    size_t bucket = 0;
    while (bounds[bucket] > 0 && value > bounds[bucket])
        bucket++;
    series->buckets[bucket]++;
    series->observations++;
    series->value += value;
}

/* For histograms that are counted elsewhere, in another thread. */
void rcpt_metrics_set_histogram(struct rcpt_metrics *metrics, unsigned metric,
                                const char *const *labels, const uint64_t *buckets, double sum)
{
    struct metrics_series *series = series_of(metrics, metric, labels);
    size_t count = metrics_bound_count(&metrics->rows[metric]);
    series->observations = 0;
    for (size_t bucket = 0; bucket <= count; bucket++) {
        series->buckets[bucket] = buckets[bucket];
        series->observations += buckets[bucket];
    }
    series->value = sum;
}

/* Rows of a part that does not run (the intake, say) stay off the page. */
void rcpt_metrics_hide(struct rcpt_metrics *metrics, unsigned part)
{
    for (size_t metric = 0; metric < metrics->count; metric++)
        metrics->families[metric].hidden |= metrics->rows[metric].part == part;
}

/* Between begin and end, each series that exists now has to be set once more; the others are
 * freed. */
void rcpt_metrics_begin(struct rcpt_metrics *metrics, unsigned metric)
{
    struct metrics_family *family = &metrics->families[metric];
    for (uint32_t index = 0; index < family->count; index++)
        family->series[index]->seen = false;
}

/* Series that were not set since rcpt_metrics_begin() go: partitions that were revoked. */
void rcpt_metrics_end(struct rcpt_metrics *metrics, unsigned metric)
{
    struct metrics_family *family = &metrics->families[metric];
    uint32_t kept = 0;
    for (uint32_t index = 0; index < family->count; index++) {
        if (family->series[index]->seen)
            family->series[kept++] = family->series[index];
        else
            free_series(family->series[index]);
    }
    if (kept == family->count)
        return;
    family->count = kept;
    rcpt_table_clear(&family->by_labels);
    for (uint32_t index = 0; index < kept; index++)
        rcpt_table_add(&family->by_labels, family->series[index]->hash, family->series[index]);
}

/* Pages of metrics: Prometheus text format 0.0.4, OpenMetrics 1.0.0 (the caller negotiates), and
 * docs/metrics.md. Called by operate and by tests. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "metrics_internal.h"
#include "receiptd/base/buffer.h"

#define TYPE_TEXT        "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define NUMBER_BYTES     32u
/* Below it a double holds every integer. */
#define EXACT_INTEGERS 9007199254740992.0 /* 2^53 */

struct page {
    struct rcpt_buffer text;
    enum rcpt_metrics_format format;
};

/* ---- writing ---- */

static void put(struct page *page, const char *bytes, size_t size)
{
    rcpt_buffer_append(&page->text, bytes, size);
}

static void put_text(struct page *page, const char *text)
{
    put(page, text, strlen(text));
}

/* The shortest text that reads back the same; integers without a fraction. */
static void put_number(struct page *page, double value)
{
    char text[NUMBER_BYTES];
    if (value == floor(value) && fabs(value) < EXACT_INTEGERS) {
        snprintf(text, sizeof(text), "%" PRId64, (int64_t)value);
    } else {
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, sizeof(text), "%.*g", digits, value);
            if (strtod(text, NULL) == value)
                break;
        }
    }
    put_text(page, text);
}

/* Both formats write bounds alike ("1.0", "0.005"), so that a change of format does not make other
 * series. */
static void format_bound(char text[NUMBER_BYTES], double bound)
{
    snprintf(text, NUMBER_BYTES, bound == floor(bound) ? "%.1f" : "%.10g", bound);
}

/* ---- families ---- */

/* OpenMetrics names a family without the suffix of its samples. */
static size_t family_size(const struct rcpt_metric_row *row, enum rcpt_metrics_format format)
{
    size_t size = strlen(row->name);
    if (format == RCPT_METRICS_TEXT)
        return size;
    if (row->type == RCPT_METRIC_COUNTER)
        return size - strlen("_total");
    if (row->type == RCPT_METRIC_INFO)
        return size - strlen("_info");
    return size;
}

/* Prometheus' text format has no `info`. */
static const char *type_name(enum rcpt_metric_type type, enum rcpt_metrics_format format)
{
    switch (type) {
    case RCPT_METRIC_COUNTER:
        return "counter";
    case RCPT_METRIC_HISTOGRAM:
        return "histogram";
    case RCPT_METRIC_INFO:
        return format == RCPT_METRICS_OPENMETRICS ? "info" : "gauge";
    default:
        return "gauge";
    }
}

/* `what` is "# HELP ", "# TYPE " or "# UNIT ". */
static void put_comment(struct page *page, const struct rcpt_metric_row *row, const char *what,
                        const char *text)
{
    put_text(page, what);
    put(page, row->name, family_size(row, page->format));
    put(page, " ", 1);
    put_text(page, text);
    put(page, "\n", 1);
}

/* OpenMetrics alone has a line for the unit. */
static void put_head(struct page *page, const struct rcpt_metric_row *row)
{
    put_comment(page, row, "# HELP ", row->help);
    put_comment(page, row, "# TYPE ", type_name(row->type, page->format));
    if (row->unit != NULL && page->format == RCPT_METRICS_OPENMETRICS)
        put_comment(page, row, "# UNIT ", row->unit);
}

/* ---- samples ---- */

/* One line: name, suffix, labels with the bound of a bucket, value. */
static void put_sample(struct page *page, const struct rcpt_metric_row *row, const char *suffix,
                       const struct metrics_series *series, const char *bound, double value)
{
    put_text(page, row->name);
    put_text(page, suffix);
    if (series->labels_size > 0 || bound != NULL) {
        put(page, "{", 1);
        put(page, series->labels, series->labels_size);
        if (bound != NULL) {
            put_text(page, series->labels_size > 0 ? ",le=\"" : "le=\"");
            put_text(page, bound);
            put(page, "\"", 1);
        }
        put(page, "}", 1);
    }
    put(page, " ", 1);
    put_number(page, value);
    put(page, "\n", 1);
}

/* Buckets count everything below their bound. */
static void put_histogram(struct page *page, const struct rcpt_metric_row *row,
                          const struct metrics_series *series)
{
    uint64_t below = 0;
    size_t count = metrics_bound_count(row);
    for (size_t index = 0; index <= count; index++) {
        char bound[NUMBER_BYTES] = "+Inf";
        if (index < count)
            format_bound(bound, row->bounds[index]);
        below += series->buckets[index];
        put_sample(page, row, "_bucket", series, bound, (double)below);
    }
    put_sample(page, row, "_sum", series, NULL, series->value);
    put_sample(page, row, "_count", series, NULL, (double)series->observations);
}

/* A family without series has no head either: OpenMetrics forbids empty families of some types. The
 * caller frees the page. */
char *rcpt_metrics_render(const struct rcpt_metrics *metrics, enum rcpt_metrics_format format,
                          size_t *size)
{
    struct page page = {.format = format};
    for (size_t index = 0; index < metrics->count; index++) {
        const struct rcpt_metric_row *row = &metrics->rows[index];
        const struct metrics_family *family = &metrics->families[index];
        if (family->hidden)
            continue;
        if (family->count > 0)
            put_head(&page, row);
        for (uint32_t at = 0; at < family->count; at++) {
            if (row->type == RCPT_METRIC_HISTOGRAM)
                put_histogram(&page, row, family->series[at]);
            else
                put_sample(&page, row, "", family->series[at], NULL, family->series[at]->value);
        }
    }
    put_text(&page, format == RCPT_METRICS_OPENMETRICS ? "# EOF\n" : "");
    *size = page.text.size;
    return page.text.bytes;
}

/* ---- which format ---- */

const char *rcpt_metrics_content_type(enum rcpt_metrics_format format)
{
    return format == RCPT_METRICS_OPENMETRICS ? TYPE_OPENMETRICS : TYPE_TEXT;
}

/* Value of a parameter in "type/subtype; name=value; …", with its size; NULL: not there. */
static const char *parameter(const char *part, size_t part_size, const char *name, size_t *size)
{
    size_t name_size = strlen(name);
    for (const char *at = memchr(part, ';', part_size); at != NULL;
         at = memchr(at, ';', part_size - (size_t)(at - part))) {
        at++;
        while (at < part + part_size && (*at == ' ' || *at == '\t'))
            at++;
        size_t left = part_size - (size_t)(at - part);
        if (left > name_size && strncasecmp(at, name, name_size) == 0 && at[name_size] == '=') {
            const char *value = at + name_size + 1, *end = value;
            while (end < part + part_size && *end != ';' && *end != ' ')
                end++;
            *size = (size_t)(end - value);
            return value;
        }
    }
    return NULL;
}

/* A malformed quality counts as 0: not accepted. */
static double quality(const char *part, size_t part_size)
{
    size_t size;
    const char *value = parameter(part, part_size, "q", &size);
    char text[16];
    if (value == NULL)
        return 1;
    snprintf(text, sizeof(text), "%.*s", (int)size, value);
    double q = strtod(text, NULL);
    return q >= 0 && q <= 1 ? q : 0;
}

/* Media types are compared without regard to case (RFC 9110); `type` may have parameters. */
static bool is_type(const char *part, size_t part_size, const char *type)
{
    size_t size = strlen(type);
    return part_size >= size && strncasecmp(part, type, size) == 0 &&
           (part_size == size || part[size] == ';' || part[size] == ' ');
}

/* A version of OpenMetrics that is not ours is not accepted. */
static bool is_openmetrics(const char *part, size_t part_size)
{
    size_t size;
    const char *version;
    if (!is_type(part, part_size, "application/openmetrics-text"))
        return false;
    version = parameter(part, part_size, "version", &size);
    return version == NULL || (size == 5 && memcmp(version, "1.0.0", 5) == 0);
}

/* OpenMetrics wins where it is accepted as gladly as text. */
enum rcpt_metrics_format rcpt_metrics_negotiate(const char *accept)
{
    double text = 0, open = 0;
    while (accept != NULL && *accept != '\0') {
        accept += strspn(accept, " \t,");
        size_t size = strcspn(accept, ",");
        double q = quality(accept, size);
        if (is_openmetrics(accept, size))
            open = fmax(open, q);
        else if (is_type(accept, size, "text/plain") || is_type(accept, size, "text/*") ||
                 is_type(accept, size, "*/*"))
            text = fmax(text, q);
        accept += size;
    }
    return open > 0 && open >= text ? RCPT_METRICS_OPENMETRICS : RCPT_METRICS_TEXT;
}

/* ---- docs/metrics.md ---- */

static void write_row(const struct rcpt_metric_row *row, FILE *out)
{
    fprintf(out, "| `%s` | %s | %s |", row->name, type_name(row->type, RCPT_METRICS_OPENMETRICS),
            row->unit != NULL ? row->unit : "");
    for (size_t index = 0; index < RCPT_METRIC_MAX_LABELS && row->labels[index] != NULL; index++)
        fprintf(out, "%s`%s`", index > 0 ? ", " : " ", row->labels[index]);
    if (row->most > 0)
        fprintf(out, " (≤ %u)", row->most);
    fprintf(out, " | %s | %s |\n", row->help, row->who);
}

/* scripts/update-docs writes the page from here, and a test compares the two. */
void rcpt_metrics_write_reference(const struct rcpt_metric_row *rows, size_t count, FILE *out)
{
    fputs("# Metrics\n"
          "\n"
          "<!-- Made by scripts/update-docs from include/receiptd/host/metrics_rows.h. Change it "
          "there. -->\n"
          "\n"
          "`GET /metrics` on `http.listen` gives OpenMetrics 1.0.0 to clients that accept it, and "
          "Prometheus text 0.0.4 otherwise.\n"
          "A series appears with its first value, and series of a partition disappear when it is "
          "revoked.\n"
          "The number in brackets is the most series of a name; further ones count in one series "
          "whose labels say `other`.\n"
          "\n"
          "The last column names an alert, a panel of the dashboard or a section that looks at the "
          "metric.\n"
          "\n"
          "| name | type | unit | labels | meaning | looked at by |\n"
          "|---|---|---|---|---|---|\n",
          out);
    for (size_t index = 0; index < count; index++)
        write_row(&rows[index], out);
}

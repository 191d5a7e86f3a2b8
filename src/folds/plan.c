/* The publications of a rule with other windows, from a history of events: publications, delays,
 * peaks; as a table and as SVG. Pure. Called by the command fold-plan. */
#include "receiptd/folds/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/config/value.h"
#include "receiptd/core/hash.h"

/* Pixels: the size of the picture, and the edges of the area between its axes. */
#define WIDTH  720
#define HEIGHT 320
#define LEFT   60
#define RIGHT  660
#define TOP    50
#define BOTTOM 260

/* ---- the rule's events ---- */

struct fold_finder {
    struct rcpt_arena arena;
    struct rcpt_fold_spec spec;
    struct rcpt_fold_collector *collector;
};

struct fold_finder *fold_finder_new(const struct rcpt_fold_config *fold, const char *topic)
{
    struct fold_finder *finder = rcpt_calloc(1, sizeof(*finder));
    rcpt_arena_init(&finder->arena, 4096);
    finder->spec = folds_spec(fold, &finder->arena);
    if (topic != NULL)
        finder->spec.topic = topic;
    finder->collector = rcpt_fold_collector_new(&finder->spec, 1);
    return finder;
}

void fold_finder_free(struct fold_finder *finder)
{
    if (finder == NULL)
        return;
    rcpt_fold_collector_free(finder->collector);
    rcpt_arena_fini(&finder->arena);
    free(finder);
}

const char *fold_finder_topic(const struct fold_finder *finder)
{
    return finder->spec.topic;
}

bool fold_finder_group(struct fold_finder *finder, const char *topic, const void *value,
                       size_t size, uint64_t *group)
{
    const struct rcpt_fold_event event = {.topic = topic, .value = value, .size = size};
    const char *key = rcpt_fold_collector_key(finder->collector, 0, &event);
    if (key != NULL)
        *group = rcpt_hash_text_extended(key, strlen(key), 0);
    return key != NULL;
}

/* ---- the plan ---- */

/* Events of a group come together, in the order of time. */
static int by_group(const void *left, const void *right)
{
    const struct fold_plan_event *one = left, *other = right;
    if (one->group != other->group)
        return one->group < other->group ? -1 : 1;
    return (one->at_ms > other->at_ms) - (one->at_ms < other->at_ms);
}

/* Subtraction could overflow, comparisons cannot. */
static int by_time(const void *left, const void *right)
{
    const int64_t *one = left, *other = right;
    return (*one > *other) - (*one < *other);
}

/* The most publications within one second, by a sliding window over their times. */
static uint64_t peak_of(int64_t *times, size_t count)
{
    uint64_t peak = 0;
    qsort(times, count, sizeof(*times), by_time);
    for (size_t first = 0, last = 0; last < count; last++) {
        while (times[last] - times[first] >= 1000)
            first++;
        if (last - first + 1 > peak)
            peak = last - first + 1;
    }
    return peak;
}

/* Events [first, last) are one publication at `at_ms`. Delays are summed here and divided in
 * plan_row. */
static void publish(struct fold_plan_row *row, const struct fold_plan_event *events, size_t first,
                    size_t last, int64_t at_ms)
{
    row->publications++;
    for (size_t index = first; index < last; index++) {
        int64_t delay = at_ms - events[index].at_ms;
        row->delay_ms += (double)delay;
        if (delay > row->delay_max_ms)
            row->delay_max_ms = delay;
    }
}

/* A group is due one window after its last event, at the latest `hold` after its first. */
static int64_t due(const struct fold_plan_row *row, const struct fold_plan_event *events,
                   size_t first, size_t last, int64_t hold_ms)
{
    int64_t idle = events[last - 1].at_ms + row->window_ms, held = events[first].at_ms + hold_ms;
    return idle < held ? idle : held;
}

/* Events are sorted by group and time; [first, next) is the open publication. */
static void plan_row(struct fold_plan_row *row, const struct fold_plan_event *events, size_t count,
                     int64_t hold_ms, int64_t *times)
{
    int64_t hold = hold_ms > row->window_ms ? hold_ms : row->window_ms;
    size_t first = 0;
    row->events = count;
    for (size_t next = 1; next <= count; next++) {
        int64_t at = due(row, events, first, next, hold);
        bool same = next < count && events[next].group == events[first].group;
        if (same && events[next].at_ms < at)
            continue;
        times[row->publications] = at;
        row->avoidable += same && events[next].at_ms - at < row->window_ms;
        publish(row, events, first, next, at);
        first = next;
    }
    row->delay_ms = count > 0 ? row->delay_ms / (double)count : 0;
    row->peak = peak_of(times, row->publications);
}

/* One pass over the sorted events per window. */
void fold_plan(struct fold_plan_event *events, size_t count, int64_t hold_ms,
               struct fold_plan_row *rows, size_t row_count)
{
    int64_t *times = rcpt_calloc(count + 1, sizeof(*times));
    if (count > 0)
        qsort(events, count, sizeof(*events), by_group);
    for (size_t index = 0; index < row_count; index++) {
        rows[index] = (struct fold_plan_row){.window_ms = rows[index].window_ms};
        if (count > 0)
            plan_row(&rows[index], events, count, hold_ms, times);
    }
    free(times);
}

/* 0: each event is a publication of its own. */
double fold_plan_ratio(const struct fold_plan_row *row)
{
    return row->events > 0 ? 1 - (double)row->publications / (double)row->events : 0;
}

/* ---- the table ---- */

/* Columns have fixed widths, so that plans can be compared line by line. */
void fold_plan_write_table(const struct fold_plan_row *rows, size_t count, FILE *out)
{
    fprintf(out, "%-10s %12s %14s %8s %12s %12s %10s %12s\n", "window", "events", "publications",
            "ratio", "delay, mean", "delay, max", "peak/s", "avoidable");
    for (size_t index = 0; index < count; index++) {
        const struct fold_plan_row *row = &rows[index];
        char window[RCPT_CONFIG_NUMBER_BYTES];
        rcpt_config_format_number(RCPT_CONFIG_DURATION, row->window_ms, window);
        fprintf(out, "%-10s %12llu %14llu %7.2f%% %10.1f s %10.1f s %10llu %12llu\n", window,
                (unsigned long long)row->events, (unsigned long long)row->publications,
                100 * fold_plan_ratio(row), row->delay_ms / 1000, (double)row->delay_max_ms / 1000,
                (unsigned long long)row->peak, (unsigned long long)row->avoidable);
    }
}

/* ---- the picture: ratio on the left axis, mean delay on the right one ---- */

/* Windows stand at equal distances, in the middle of their columns. */
static double x_of(size_t index, size_t count)
{
    return LEFT + (RIGHT - LEFT) * ((double)index + 0.5) / (double)count;
}

static double y_of(double share)
{
    return BOTTOM - (BOTTOM - TOP) * share;
}

/* `most_delay` 0 draws the ratio, otherwise the delay as a share of it. */
static void write_line(const struct fold_plan_row *rows, size_t count, const char *colour,
                       double most_delay, FILE *out)
{
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", colour);
    for (size_t index = 0; index < count; index++)
        fprintf(out, "%.1f,%.1f ", x_of(index, count),
                y_of(most_delay > 0 ? rows[index].delay_ms / most_delay
                                    : fold_plan_ratio(&rows[index])));
    fputs("\"/>\n", out);
}

/* Characters with a meaning in XML are left out. */
static void write_title(const char *title, FILE *out)
{
    fprintf(out, "<text x=\"%d\" y=\"20\" font-size=\"14\">", LEFT);
    for (; *title != '\0'; title++)
        if (strchr("<>&", *title) == NULL)
            fputc(*title, out);
    fputs("</text>\n", out);
}

/* Five grid lines: percent on the left, seconds on the right. */
static void write_axis(double most_delay, FILE *out)
{
    for (int step = 0; step <= 4; step++) {
        double y = y_of(step / 4.0);
        fprintf(out,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#1f77b4\">%d%%</text>"
                "<text x=\"%d\" y=\"%.1f\" fill=\"#d62728\">%.1f s</text>\n",
                LEFT, RIGHT, y, y, LEFT - 6, y + 4, 25 * step, RIGHT + 6, y + 4,
                most_delay * step / 4000);
    }
}

void fold_plan_write_svg(const char *title, const struct fold_plan_row *rows, size_t count,
                         FILE *out)
{
    double most_delay = 1;
    for (size_t index = 0; index < count; index++)
        most_delay = fmax(most_delay, rows[index].delay_ms);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, HEIGHT);
    write_title(title, out);
    fprintf(out,
            "<text x=\"%d\" y=\"38\" fill=\"#1f77b4\">folding ratio</text>"
            "<text x=\"%d\" y=\"38\" text-anchor=\"end\" fill=\"#d62728\">mean delay</text>\n",
            LEFT, RIGHT);
    write_axis(most_delay, out);
    write_line(rows, count, "#1f77b4", 0, out);
    write_line(rows, count, "#d62728", most_delay, out);
    for (size_t index = 0; index < count; index++) {
        char window[RCPT_CONFIG_NUMBER_BYTES];
        rcpt_config_format_number(RCPT_CONFIG_DURATION, rows[index].window_ms, window);
        fprintf(out,
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%llu</text>\n",
                x_of(index, count), BOTTOM + 18, window, x_of(index, count), BOTTOM + 34,
                (unsigned long long)rows[index].publications);
    }
    fprintf(out,
            "<text x=\"%d\" y=\"%d\" fill=\"#555\">window, and publications with it</text>\n"
            "</svg>\n",
            LEFT, BOTTOM + 52);
}

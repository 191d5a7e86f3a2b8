/* The registry of metrics, both formats, the table and its page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/host/metrics.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { RUNS, HEAT, TIMES, PLACES, BUILD, ROWS };

static const double bounds[] = {0.005, 1, 2.5, 0};
static const struct rcpt_metric_row rows[ROWS] = {
    [RUNS] = {"runs_total", RCPT_METRIC_COUNTER, .labels = {"who", "how"}, .most = 3,
              .help = "Runs"},
    [HEAT] = {"heat_celsius", RCPT_METRIC_GAUGE, .unit = "celsius", .part = 1, .help = "Heat"},
    [TIMES] = {"took_seconds", RCPT_METRIC_HISTOGRAM, .unit = "seconds", .bounds = bounds,
               .part = 1, .help = "Times"},
    [PLACES] = {"place", RCPT_METRIC_GAUGE, .labels = {"name"}, .most = 100, .help = "Places"},
    [BUILD] = {"build_info", RCPT_METRIC_INFO, .labels = {"version"}, .help = "Build"},
};

static char *page_of(const struct rcpt_metrics *metrics, enum rcpt_metrics_format format)
{
    size_t size;
    char *page = rcpt_metrics_render(metrics, format, &size);
    assert_int_equal(size, strlen(page));
    return page;
}

static struct rcpt_metrics *filled(void)
{
    struct rcpt_metrics *metrics = rcpt_metrics_new(rows, ROWS);
    rcpt_metrics_add(metrics, RUNS, RCPT_LABELS("a", "b\\\"\n\xc3\xa9"), 2);
    rcpt_metrics_add(metrics, RUNS, RCPT_LABELS("a", "b\\\"\n\xc3\xa9"), 1);
    rcpt_metrics_set(metrics, HEAT, RCPT_NO_LABELS, 36.6);
    rcpt_metrics_observe(metrics, TIMES, RCPT_NO_LABELS, 0.005);
    rcpt_metrics_observe(metrics, TIMES, RCPT_NO_LABELS, 2);
    rcpt_metrics_observe(metrics, TIMES, RCPT_NO_LABELS, 99);
    rcpt_metrics_set(metrics, BUILD, RCPT_LABELS("1.2"), 1);
    return metrics;
}

#define SAMPLES_OF_RUNS "runs_total{who=\"a\",how=\"b\\\\\\\"???\"} 3\n"
#define SAMPLES_OF_TIMES                                                                           \
    "took_seconds_bucket{le=\"0.005\"} 1\ntook_seconds_bucket{le=\"1.0\"} 1\n"                     \
    "took_seconds_bucket{le=\"2.5\"} 2\ntook_seconds_bucket{le=\"+Inf\"} 3\n"                      \
    "took_seconds_sum 101.005\ntook_seconds_count 3\n"

static void the_text_format_is_as_prometheus_reads_it(void **state)
{
    (void)state;
    struct rcpt_metrics *metrics = filled();
    char *page = page_of(metrics, RCPT_METRICS_TEXT);
    assert_string_equal(
        page, "# HELP runs_total Runs\n# TYPE runs_total counter\n" SAMPLES_OF_RUNS
              "# HELP heat_celsius Heat\n# TYPE heat_celsius gauge\n"
              "heat_celsius 36.6\n"
              "# HELP took_seconds Times\n# TYPE took_seconds histogram\n" SAMPLES_OF_TIMES
              "# HELP build_info Build\n# TYPE build_info gauge\n"
              "build_info{version=\"1.2\"} 1\n");
    free(page);
    rcpt_metrics_free(metrics);
}

static void openmetrics_has_family_names_units_and_an_end(void **state)
{
    (void)state;
    struct rcpt_metrics *metrics = filled();
    char *page = page_of(metrics, RCPT_METRICS_OPENMETRICS);
    assert_string_equal(page, "# HELP runs Runs\n# TYPE runs counter\n" SAMPLES_OF_RUNS
                              "# HELP heat_celsius Heat\n# TYPE heat_celsius gauge\n"
                              "# UNIT heat_celsius celsius\nheat_celsius 36.6\n"
                              "# HELP took_seconds Times\n# TYPE took_seconds histogram\n"
                              "# UNIT took_seconds seconds\n" SAMPLES_OF_TIMES
                              "# HELP build Build\n# TYPE build info\n"
                              "build_info{version=\"1.2\"} 1\n# EOF\n");
    free(page);
    rcpt_metrics_free(metrics);
}

static void what_has_no_labels_is_there_from_the_beginning(void **state)
{
    (void)state;
    struct rcpt_metrics *metrics = rcpt_metrics_new(rows, ROWS);
    char *page = page_of(metrics, RCPT_METRICS_TEXT);
    assert_non_null(strstr(page, "\nheat_celsius 0\n"));
    assert_non_null(strstr(page, "\ntook_seconds_count 0\n"));
    assert_null(strstr(page, "runs_total"));
    free(page);
    rcpt_metrics_free(metrics);
}

/* How many lines of the page begin so: a metric's name and a brace, or a whole sample. */
static size_t samples(const struct rcpt_metrics *metrics, const char *start)
{
    char *page = page_of(metrics, RCPT_METRICS_TEXT);
    size_t count = 0;
    for (const char *line = page; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += strncmp(line, start, strlen(start)) == 0;
    }
    free(page);
    return count;
}

static size_t places(const struct rcpt_metrics *metrics, int name, int value)
{
    char sample[64];
    snprintf(sample, sizeof(sample), "place{name=\"%d\"} %d\n", name, value);
    return samples(metrics, sample);
}

static void series_above_the_bound_are_counted_together(void **state)
{
    (void)state;
    struct rcpt_metrics *metrics = rcpt_metrics_new(rows, ROWS);
    for (int index = 0; index < 1000; index++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", index);
        rcpt_metrics_add(metrics, RUNS, RCPT_LABELS(name, "x"), 1);
    }
    assert_int_equal(samples(metrics, "runs_total{"), 4);
    assert_int_equal(samples(metrics, "runs_total{who=\"2\",how=\"x\"} 1\n"), 1);
    assert_int_equal(samples(metrics, "runs_total{who=\"other\",how=\"other\"} 997\n"), 1);
    rcpt_metrics_free(metrics);
}

static void series_that_are_not_set_again_disappear(void **state)
{
    (void)state;
    struct rcpt_metrics *metrics = rcpt_metrics_new(rows, ROWS);
    char name[16];
    for (int turn = 0; turn < 20; turn++) {
        rcpt_metrics_begin(metrics, PLACES);
        for (int index = turn; index < turn + 50; index++) {
            snprintf(name, sizeof(name), "%d", index);
            rcpt_metrics_set(metrics, PLACES, RCPT_LABELS(name), index);
        }
        rcpt_metrics_end(metrics, PLACES);
        assert_int_equal(samples(metrics, "place{"), 50);
        assert_int_equal(places(metrics, turn + 49, turn + 49), 1);
        assert_int_equal(places(metrics, turn - 1, turn - 1), 0);
    }
    rcpt_metrics_free(metrics);
}

static void long_labels_are_cut_and_still_told_apart_from_others(void **state)
{
    (void)state;
    char one[600], other[600];
    memset(one, '"', sizeof(one) - 1);
    memset(other, 'x', sizeof(other) - 1);
    one[sizeof(one) - 1] = other[sizeof(other) - 1] = '\0';
    struct rcpt_metrics *metrics = rcpt_metrics_new(rows, ROWS);
    rcpt_metrics_add(metrics, RUNS, RCPT_LABELS(one, one), 1);
    rcpt_metrics_add(metrics, RUNS, RCPT_LABELS(one, other), 1);
    assert_int_equal(samples(metrics, "runs_total{"), 2);
    rcpt_metrics_free(metrics);
}

static void large_numbers_stay_exact(void **state)
{
    (void)state;
    struct rcpt_metrics *metrics = rcpt_metrics_new(rows, ROWS);
    static const struct {
        double value;
        const char *line;
    } cases[] = {{9007199254740991.0, "\nheat_celsius 9007199254740991\n"},
                 {1e18, "\nheat_celsius 1e+18\n"},
                 {0.1, "\nheat_celsius 0.1\n"},
                 {1.0 / 3, "\nheat_celsius 0.333333333333333"},
                 {-2, "\nheat_celsius -2\n"}};
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        rcpt_metrics_set(metrics, HEAT, RCPT_NO_LABELS, cases[index].value);
        char *page = page_of(metrics, RCPT_METRICS_TEXT);
        assert_non_null(strstr(page, cases[index].line));
        free(page);
    }
    rcpt_metrics_free(metrics);
}

static void a_histogram_that_is_kept_elsewhere_is_taken_as_it_is(void **state)
{
    (void)state;
    static const uint64_t buckets[] = {1, 0, 1, 1};
    struct rcpt_metrics *metrics = rcpt_metrics_new(rows, ROWS);
    for (unsigned round = 0; round < 2; round++) /* set, not added */
        rcpt_metrics_set_histogram(metrics, TIMES, RCPT_NO_LABELS, buckets, 101.005);
    char *page = page_of(metrics, RCPT_METRICS_TEXT);
    assert_non_null(strstr(page, SAMPLES_OF_TIMES));
    free(page);
    rcpt_metrics_free(metrics);
    rcpt_metrics_free(NULL);
}

static void what_a_process_does_not_have_is_not_shown(void **state)
{
    (void)state;
    struct rcpt_metrics *metrics = filled();
    rcpt_metrics_hide(metrics, 1);
    char *page = page_of(metrics, RCPT_METRICS_TEXT);
    assert_null(strstr(page, "heat_celsius"));
    assert_null(strstr(page, "took_seconds"));
    assert_non_null(strstr(page, SAMPLES_OF_RUNS));
    free(page);
    rcpt_metrics_hide(metrics, 0);
    page = page_of(metrics, RCPT_METRICS_TEXT);
    assert_string_equal(page, "");
    free(page);
    rcpt_metrics_free(metrics);
}

static void the_client_gets_the_format_that_it_prefers(void **state)
{
    (void)state;
    assert_string_equal(rcpt_metrics_content_type(RCPT_METRICS_TEXT),
                        "text/plain; version=0.0.4; charset=utf-8");
    assert_memory_equal(rcpt_metrics_content_type(RCPT_METRICS_OPENMETRICS),
                        "application/openmetrics-text", 28);
    static const struct {
        const char *accept;
        bool open;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"*/*", false},
        {"text/plain", false},
        {"application/openmetrics-text", true},
        {"application/openmetrics-text; version=1.0.0; charset=utf-8", true},
        {"application/openmetrics-text;version=2.0.0", false},
        {"application/openmetrics-text;version=1.0.0;q=0", false},
        /* Prometheus 2.42 */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true},
        {"text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.3", false},
        {"APPLICATION/OPENMETRICS-TEXT;Q=0.9, text/plain;q=0.8", true},
        {"text/html, application/json", false},
        {";;;,,,q=;=", false},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++)
        assert_int_equal(rcpt_metrics_negotiate(cases[index].accept) == RCPT_METRICS_OPENMETRICS,
                         cases[index].open);
}

/* ---- receiptd's own table ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static void check_name(const struct rcpt_metric_row *row)
{
    char unit[32];
    bool counter = row->type == RCPT_METRIC_COUNTER;
    assert_int_equal(strspn(row->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(row->name));
    assert_true(strncmp(row->name, "receiptd_", 9) == 0 || strncmp(row->name, "process_", 8) == 0);
    assert_int_equal(ends_with(row->name, "_total"), counter);
    assert_int_equal(ends_with(row->name, "_info"), row->type == RCPT_METRIC_INFO);
    snprintf(unit, sizeof(unit), "_%s%s", row->unit != NULL ? row->unit : "",
             counter ? "_total" : "");
    if (row->unit != NULL)
        assert_true(ends_with(row->name, unit));
}

static void every_row_is_complete_and_well_named(void **state)
{
    (void)state;
    const struct rcpt_metric_row *table = rcpt_metrics_table();
    for (unsigned index = 0; index < RCPT_METRIC__COUNT; index++) {
        const struct rcpt_metric_row *row = &table[index];
        check_name(row);
        assert_true(strlen(row->help) > 5 && !ends_with(row->help, "."));
        assert_non_null(row->who);
        assert_int_equal(row->bounds != NULL, row->type == RCPT_METRIC_HISTOGRAM);
        assert_int_equal(row->labels[0] != NULL, row->most > 0);
        for (unsigned other = 0; other < index; other++)
            assert_string_not_equal(row->name, table[other].name);
        assert_null(strpbrk(row->help, "\\\"\n|"));
    }
}

/* Compares the file with what the table gives, or writes it for scripts/update-docs. */
static void the_page_is_what_the_table_gives(void **state)
{
    (void)state;
    static const char path[] = "docs/metrics.md";
    char *wanted = NULL, *found;
    size_t size = 0;
    FILE *out = open_memstream(&wanted, &size);
    rcpt_metrics_write_reference(rcpt_metrics_table(), RCPT_METRIC__COUNT, out);
    fclose(out);
    bool update = getenv("RECEIPTD_UPDATE_DOCS") != NULL;
    FILE *file = fopen(path, update ? "w+" : "r");
    if (file == NULL)
        fail_msg("%s cannot be opened (tests run in the root of the repository)", path);
    if (update)
        assert_int_equal(fwrite(wanted, 1, size, file), size);
    rewind(file);
    found = calloc(1, size + 2);
    size_t read = fread(found, 1, size + 1, file);
    fclose(file);
    if (read != size || memcmp(found, wanted, size) != 0)
        fail_msg("%s is not what the table gives: scripts/update-docs", path);
    free(found);
    free(wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_format_is_as_prometheus_reads_it),
        cmocka_unit_test(openmetrics_has_family_names_units_and_an_end),
        cmocka_unit_test(what_has_no_labels_is_there_from_the_beginning),
        cmocka_unit_test(series_above_the_bound_are_counted_together),
        cmocka_unit_test(series_that_are_not_set_again_disappear),
        cmocka_unit_test(long_labels_are_cut_and_still_told_apart_from_others),
        cmocka_unit_test(large_numbers_stay_exact),
        cmocka_unit_test(a_histogram_that_is_kept_elsewhere_is_taken_as_it_is),
        cmocka_unit_test(what_a_process_does_not_have_is_not_shown),
        cmocka_unit_test(the_client_gets_the_format_that_it_prefers),
        cmocka_unit_test(every_row_is_complete_and_well_named),
        cmocka_unit_test(the_page_is_what_the_table_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

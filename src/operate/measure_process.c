/* Metrics of the process, its log, its tracer and its intake, which `receiptd run` and `receiptd
 * intake` share. Everything is read when a page is asked for. Called by measure.c, pages_server.c,
 * intake_endpoints.c and run.c. */
#include "receiptd/operate/operate.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "receiptd/base/log.h"

static void set(struct rcpt_metrics *metrics, enum rcpt_metric metric, double value)
{
    rcpt_metrics_set(metrics, metric, RCPT_NO_LABELS, value);
}

static void set_of(struct rcpt_metrics *metrics, enum rcpt_metric metric, const char *label,
                   double value)
{
    rcpt_metrics_set(metrics, metric, RCPT_LABELS(label), value);
}

/* ---- the process ---- */

/* The second number of statm is the resident set in pages. */
static double resident_bytes(void)
{
    char text[128] = "";
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    const char *pages = fgets(text, sizeof(text), file) != NULL ? strchr(text, ' ') : NULL;
    fclose(file);
    return pages != NULL ? (double)strtoul(pages, NULL, 10) * (double)sysconf(_SC_PAGESIZE) : 0;
}

/* Close to the limit the daemon can neither connect nor accept. */
static unsigned open_descriptors(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL)
        return 0;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count > 3 ? count - 3 : 0; /* itself, and the two dots */
}

/* Dropped lines met a full pipe. */
static void measure_log(struct rcpt_metrics *metrics)
{
    struct rcpt_log_counts counts = rcpt_log_get_counts();
    for (int level = 0; level < RCPT_LOG_LEVEL__COUNT; level++)
        set_of(metrics, RCPT_METRIC_LOG_LINES, rcpt_log_level_name((enum rcpt_log_level)level),
               (double)counts.lines[level]);
    set(metrics, RCPT_METRIC_LOG_DROPPED, (double)counts.dropped);
}

/* CPU and memory of all threads, librdkafka's included. */
void measure_process(struct rcpt_metrics *metrics, int64_t started_ms)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    set(metrics, RCPT_METRIC_PROCESS_CPU,
        (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
            (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    set(metrics, RCPT_METRIC_PROCESS_RSS, resident_bytes());
    set(metrics, RCPT_METRIC_PROCESS_START, (double)started_ms / 1000);
    set(metrics, RCPT_METRIC_PROCESS_FDS, open_descriptors());
    measure_log(metrics);
}

/* Dropped spans by cause: queue full, refused by the collector, lost with a connection. */
void measure_tracing(struct rcpt_metrics *metrics, const struct rcpt_tracer_stats *stats)
{
    set(metrics, RCPT_METRIC_SPANS_EXPORTED, (double)stats->exported);
    set_of(metrics, RCPT_METRIC_SPANS_DROPPED, "full", (double)stats->dropped_full);
    set_of(metrics, RCPT_METRIC_SPANS_DROPPED, "refused", (double)stats->dropped_refused);
    set_of(metrics, RCPT_METRIC_SPANS_DROPPED, "lost", (double)stats->dropped_lost);
}

/* ---- the intake ---- */

/* One value of the second label. */
struct part {
    const char *name;
    uint64_t value;
};

/* One metric of an account with several values of a second label. */
static void set_parts(struct rcpt_metrics *metrics, enum rcpt_metric metric, const char *account,
                      const struct part *parts, size_t count)
{
    for (size_t index = 0; index < count; index++)
        rcpt_metrics_set(metrics, metric, RCPT_LABELS(account, parts[index].name),
                         (double)parts[index].value);
}

/* HTTP statuses, verdicts of verification, and refusals of one account. */
static void measure_answers(struct rcpt_metrics *metrics, const struct rcpt_gateway_stats *stats)
{
    const char *account = stats->account;
    for (size_t index = 0; index < RCPT_GATEWAY_CODES && stats->codes[index].code != 0; index++) {
        char code[12];
        snprintf(code, sizeof(code), "%u", stats->codes[index].code);
        rcpt_metrics_set(metrics, RCPT_METRIC_INTAKE_ANSWERS, RCPT_LABELS(account, code),
                         (double)stats->codes[index].count);
    }
    for (int verdict = 0; verdict < RCPT_GATEWAY_VERDICT__COUNT; verdict++)
        rcpt_metrics_set(
            metrics, RCPT_METRIC_INTAKE_VERIFICATIONS,
            RCPT_LABELS(account, rcpt_gateway_verdict_name((enum rcpt_gateway_verdict)verdict)),
            (double)stats->verdicts[verdict]);
    const struct part refused[] = {{"rate", stats->throttled},
                                   {"unavailable", stats->turned_away},
                                   {"unacknowledged", stats->failed}};
    set_parts(metrics, RCPT_METRIC_INTAKE_REFUSED, account, refused, 3);
}

/* Events by where their message id came from: the request, an alias, the gateway. */
static void measure_events(struct rcpt_metrics *metrics, const struct rcpt_gateway_stats *stats)
{
    const char *account = stats->account;
    const struct part events[] = {{"request", stats->events - stats->aliased - stats->unrouted},
                                  {"alias", stats->aliased},
                                  {"gateway", stats->unrouted}};
    const struct part drops[] = {{"ignored", stats->drops[RCPT_GATEWAY_IGNORED]},
                                 {"unmapped", stats->drops[RCPT_GATEWAY_UNMAPPED]},
                                 {"rejected", stats->drops[RCPT_GATEWAY_REJECTED]},
                                 {"unknown_form", stats->drops[RCPT_GATEWAY_UNKNOWN_FORM]}};
    set_parts(metrics, RCPT_METRIC_INTAKE_EVENTS, account, events, 3);
    set_parts(metrics, RCPT_METRIC_INTAKE_DROPS, account, drops, 4);
    if (stats->unmapped_sample[0] != '\0')
        rcpt_metrics_set(metrics, RCPT_METRIC_INTAKE_UNMAPPED_STATUS,
                         RCPT_LABELS(account, stats->unmapped_sample), 1);
}

/* The histogram is kept by src/gateways/stats.c in the buckets of the table. */
static void measure_account(struct rcpt_metrics *metrics, const struct rcpt_gateway_stats *stats)
{
    const char *account = stats->account;
    rcpt_metrics_set_histogram(metrics, RCPT_METRIC_INTAKE_ACK_SECONDS, RCPT_LABELS(account),
                               stats->ack_seconds.buckets, stats->ack_seconds.sum);
    measure_answers(metrics, stats);
    measure_events(metrics, stats);
}

/* Evicted, refused and late clients are signs of an attack or of too small limits. */
static void measure_connections(struct rcpt_metrics *metrics, const struct rcpt_http_stats *stats)
{
    set_of(metrics, RCPT_METRIC_INTAKE_CLOSED, "evicted", (double)stats->evicted_connections);
    set_of(metrics, RCPT_METRIC_INTAKE_CLOSED, "refused", (double)stats->refused_connections);
    set_of(metrics, RCPT_METRIC_INTAKE_CLOSED, "timeout", (double)stats->timeouts);
    set_of(metrics, RCPT_METRIC_INTAKE_CLOSED, "tls", (double)stats->tls_failures);
}

/* Figures of the intake as a whole: aliases, waiting requests. */
static void measure_totals(struct rcpt_metrics *metrics, const struct rcpt_intake_totals *totals)
{
    set_of(metrics, RCPT_METRIC_INTAKE_ALIASES, "found", (double)totals->alias_found);
    set_of(metrics, RCPT_METRIC_INTAKE_ALIASES, "missing",
           (double)(totals->alias_asked - totals->alias_found));
    set_of(metrics, RCPT_METRIC_INTAKE_ALIASES, "failed", (double)totals->alias_failed);
    set(metrics, RCPT_METRIC_INTAKE_WAITING_REQUESTS, (double)totals->waiting_requests);
    set(metrics, RCPT_METRIC_INTAKE_WAITING_BYTES, (double)totals->waiting_bytes);
}

/* Unmapped statuses that have not come since the last page disappear. */
void measure_intake(struct rcpt_metrics *metrics, const struct rcpt_intake *intake)
{
    struct rcpt_intake_totals totals;
    rcpt_metrics_begin(metrics, RCPT_METRIC_INTAKE_UNMAPPED_STATUS);
    for (size_t index = 0; index < rcpt_intake_account_count(intake); index++)
        measure_account(metrics, rcpt_intake_account_stats(intake, index));
    rcpt_metrics_end(metrics, RCPT_METRIC_INTAKE_UNMAPPED_STATUS);
    measure_connections(metrics, rcpt_intake_http_stats(intake));
    rcpt_intake_totals(intake, &totals);
    measure_totals(metrics, &totals);
}

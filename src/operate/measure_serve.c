/* Figures of the interface for readers become series. Everything is read when a page is asked for.
 * Called by serve_endpoints.c and src/app/readers.c. */
#include "receiptd/base/error.h"
#include "receiptd/operate/operate.h"

static void set(struct rcpt_metrics *metrics, enum rcpt_metric metric, double value)
{
    rcpt_metrics_set(metrics, metric, RCPT_NO_LABELS, value);
}

/* A route gets its series with its first request. */
static void measure_route(struct rcpt_metrics *metrics, const struct rcpt_serve_requests *requests)
{
    if (requests->codes[0].status == 0)
        return;
    for (size_t index = 0; index < RCPT_SERVE_CODES && requests->codes[index].status != 0;
         index++) {
        char code[12];
        snprintf(code, sizeof(code), "%d", requests->codes[index].status);
        rcpt_metrics_set(metrics, RCPT_METRIC_SERVE_REQUESTS, RCPT_LABELS(requests->route, code),
                         (double)requests->codes[index].count);
    }
    rcpt_metrics_set_histogram(metrics, RCPT_METRIC_SERVE_SECONDS, RCPT_LABELS(requests->route),
                               requests->seconds.buckets, requests->seconds.sum);
}

/* A connection that is up and is asked nothing is idle. */
static void measure_connections(struct rcpt_metrics *metrics, const struct rcpt_serve_stats *stats)
{
    const struct {
        const char *state;
        size_t count;
    } states[] = {{"busy", stats->lines_busy},
                  {"idle", stats->lines_up - stats->lines_busy},
                  {"down", stats->lines - stats->lines_up}};
    for (size_t index = 0; index < RCPT_COUNT_OF(states); index++)
        rcpt_metrics_set(metrics, RCPT_METRIC_SERVE_CONNECTIONS, RCPT_LABELS(states[index].state),
                         (double)states[index].count);
}

void measure_serve(struct rcpt_metrics *metrics, const struct rcpt_serve *serve)
{
    struct rcpt_serve_stats stats = rcpt_serve_stats(serve);
    const struct rcpt_serve_requests *requests;
    for (size_t index = 0; (requests = rcpt_serve_requests(serve, index)) != NULL; index++)
        measure_route(metrics, requests);
    set(metrics, RCPT_METRIC_SERVE_VIEWERS, (double)stats.viewers);
    set(metrics, RCPT_METRIC_SERVE_VIEWERS_CUT, (double)stats.viewers_cut);
    set(metrics, RCPT_METRIC_SERVE_WAITING, (double)stats.questions_waiting);
    rcpt_metrics_set_histogram(metrics, RCPT_METRIC_SERVE_WAIT_SECONDS, RCPT_NO_LABELS,
                               stats.wait_seconds.buckets, stats.wait_seconds.sum);
    rcpt_metrics_set_histogram(metrics, RCPT_METRIC_SERVE_QUESTION_SECONDS, RCPT_NO_LABELS,
                               stats.question_seconds.buckets, stats.question_seconds.sum);
    measure_connections(metrics, &stats);
}

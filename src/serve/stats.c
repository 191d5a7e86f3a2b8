/* Counts requests by route and status, for the metrics. Figures are collected only when a page of
 * metrics is asked for. Called by routes.c (a request is over), pool.c and operate. */
#include <stdlib.h>

#include "internal.h"

/* As in src/host/metrics.c, which names them for the page. */
const double rcpt_serve_second_bounds[RCPT_SERVE_BUCKETS] = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

struct serve_counts {
    size_t count;                          /* of routes */
    struct rcpt_serve_requests requests[]; /* by route, then the page, then no route */
};

/* A place for each row of the table, and two more. */
struct serve_counts *serve_counts_new(void)
{
    size_t count;
    const struct serve_route *routes = serve_routes(&count);
    struct serve_counts *counts =
        rcpt_calloc(1, sizeof(*counts) + (count + 2) * sizeof(counts->requests[0]));
    counts->count = count;
    for (size_t index = 0; index < count; index++)
        counts->requests[index].route = routes[index].path;
    counts->requests[count].route = "page";
    counts->requests[count + 1].route = "none";
    return counts;
}

void serve_observe(struct rcpt_serve_histogram *histogram, uint64_t since_ns)
{
    double seconds = (double)(uv_hrtime() - since_ns) / 1e9;
    size_t bucket = 0;
    while (bucket < RCPT_SERVE_BUCKETS && seconds > rcpt_serve_second_bounds[bucket])
        bucket++;
    histogram->buckets[bucket]++;
    histogram->sum += seconds;
}

/* The statuses that an interface answers with are few; what comes above them counts as the last. */
static void count_status(struct rcpt_serve_requests *requests, int status)
{
    size_t place = 0;
    while (place < RCPT_SERVE_CODES - 1 && requests->codes[place].status != status &&
           requests->codes[place].status != 0)
        place++;
    requests->codes[place].status = status;
    requests->codes[place].count++;
}

/* A path that no route has, and a name that is not ours, have no route. */
void serve_counts_add(const struct serve_request *request)
{
    struct serve_counts *counts = request->serve->counts;
    size_t count, index = counts->count + !request->is_page;
    if (request->route != NULL)
        index = (size_t)(request->route - serve_routes(&count));
    count_status(&counts->requests[index], request->status);
    serve_observe(&counts->requests[index].seconds, request->began_ns);
}

const struct rcpt_serve_requests *rcpt_serve_requests(const struct rcpt_serve *serve, size_t index)
{
    return index < serve->counts->count + 2 ? &serve->counts->requests[index] : NULL;
}

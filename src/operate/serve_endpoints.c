/* The pages of `receiptd serve` beside those of pages_server.c. Called by the command serve. */
#include "receiptd/operate/endpoints.h"

#include "receiptd/operate/operate.h"

static void collect(void *context, struct rcpt_metrics *metrics)
{
    const struct serve_endpoints *endpoints = context;
    if (endpoints->serve != NULL)
        measure_serve(metrics, endpoints->serve);
}

/* The main figures of the interface, as JSON; the metrics have them, too. */
static void put_status(void *context, struct rcpt_json *json)
{
    const struct serve_endpoints *endpoints = context;
    if (endpoints->serve == NULL)
        return;
    struct rcpt_serve_stats stats = rcpt_serve_stats(endpoints->serve);
    rcpt_json_put_int(json, "viewers", (int64_t)stats.viewers);
    rcpt_json_put_int(json, "connections", (int64_t)stats.lines_up);
    rcpt_json_put_int(json, "questions_waiting", (int64_t)stats.questions_waiting);
    rcpt_json_put_int(json, "redrives", (int64_t)stats.redrives);
}

/* The interface itself is started afterwards. */
void serve_endpoints_start(struct serve_endpoints *endpoints, uv_loop_t *loop,
                           const struct rcpt_config *config)
{
    const struct pages_server_settings settings = {
        .loop = loop,
        .config = config,
        .listen = config->serve.metrics_listen,
        .hide = {RCPT_METRICS_OF_WORKER, RCPT_METRICS_OF_INTAKE},
        .context = endpoints,
        .collect = collect,
        .put_status = put_status};
    endpoints->serve = NULL;
    pages_server_start(&endpoints->server, &settings);
}

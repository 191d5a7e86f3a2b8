/* Metrics, health and status of `receiptd serve` over HTTP, in the form of intake_endpoints.c. Called
 * by the command serve. */
#include "serve_endpoints.h"

#include <time.h>

#include "base/version.h"
#include "kafka/consumer.h"
#include "measure_process.h"
#include "measure_serve.h"

/* Everything is read when the page is asked for. */
static char *write_metrics(void *context, enum rcpt_metrics_format format, size_t *size)
{
    struct serve_endpoints *endpoints = context;
    struct rcpt_metrics *metrics = endpoints->metrics;
    uint64_t began = uv_hrtime();
    rcpt_metrics_set(metrics, RCPT_METRIC_BUILD,
                     RCPT_LABELS(RCPT_VERSION, rcpt_kafka_version(), endpoints->config_hash), 1);
    rcpt_metrics_set(metrics, RCPT_METRIC_READY, RCPT_NO_LABELS, endpoints->ready);
    measure_process(metrics, endpoints->started_ms);
    measure_http(metrics, rcpt_http_stats(endpoints->server.http));
    if (endpoints->serve != NULL)
        measure_serve(metrics, endpoints->serve);
    char *page = rcpt_metrics_render(metrics, format, size);
    rcpt_metrics_set(metrics, RCPT_METRIC_SCRAPE, RCPT_NO_LABELS,
                     (double)(uv_hrtime() - began) / 1e9);
    return page;
}

/* There is one reason at most. */
static void put_reasons(struct rcpt_json *json, const struct serve_endpoints *endpoints)
{
    rcpt_json_key(json, "reasons");
    rcpt_json_begin_array(json);
    if (!endpoints->ready)
        rcpt_json_text(json, "the database does not answer");
    rcpt_json_end_array(json);
}

static bool write_live(void *context, struct rcpt_json *json)
{
    (void)context; /* an answer shows that the loop turns */
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "loop", true);
    rcpt_json_end_object(json);
    return true;
}

/* Ready: the database answers. Without it readers get problems, and keep what they have. */
static bool write_ready(void *context, struct rcpt_json *json)
{
    const struct serve_endpoints *endpoints = context;
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "ready", endpoints->ready);
    put_reasons(json, endpoints);
    rcpt_json_end_object(json);
    return endpoints->ready;
}

/* Stays true once readers were answered. */
static bool write_started(void *context, struct rcpt_json *json)
{
    const struct serve_endpoints *endpoints = context;
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "started", endpoints->was_ready);
    put_reasons(json, endpoints);
    rcpt_json_end_object(json);
    return endpoints->was_ready;
}

/* What the metrics have, too, for a reader in a hurry. */
static bool write_status(void *context, struct rcpt_json *json)
{
    const struct serve_endpoints *endpoints = context;
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "version", RCPT_VERSION);
    rcpt_json_put_text(json, "config_hash", endpoints->config_hash);
    rcpt_json_put_bool(json, "ready", endpoints->ready);
    put_reasons(json, endpoints);
    if (endpoints->serve != NULL) {
        struct rcpt_serve_stats stats = rcpt_serve_stats(endpoints->serve);
        rcpt_json_put_int(json, "viewers", (int64_t)stats.viewers);
        rcpt_json_put_int(json, "connections", (int64_t)stats.lines_up);
        rcpt_json_put_int(json, "questions_waiting", (int64_t)stats.questions_waiting);
        rcpt_json_put_int(json, "redrives", (int64_t)stats.redrives);
    }
    rcpt_json_end_object(json);
    return true;
}

/* The interface itself is started afterwards. */
void serve_endpoints_start(struct serve_endpoints *endpoints, uv_loop_t *loop,
                           const struct rcpt_config *config)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *endpoints = (struct serve_endpoints){
        .server = {.loop = loop, .config = config, .listen = config->serve.metrics_listen}};
    endpoints->server.pages = (struct pages){.context = endpoints,
                                             .metrics = write_metrics,
                                             .status = write_status,
                                             .live = write_live,
                                             .ready = write_ready,
                                             .started = write_started};
    endpoints->started_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    rcpt_config_hash(config, endpoints->config_hash);
    endpoints->metrics = rcpt_metrics_new(rcpt_metrics_table(), RCPT_METRIC__COUNT);
    /* Series of other processes would stay at 0 in this one. */
    rcpt_metrics_hide(endpoints->metrics, RCPT_METRICS_OF_WORKER);
    rcpt_metrics_hide(endpoints->metrics, RCPT_METRICS_OF_INTAKE);
    pages_server_start(&endpoints->server);
}

void serve_endpoints_set_ready(struct serve_endpoints *endpoints, bool ready)
{
    endpoints->ready = ready;
    endpoints->was_ready |= ready;
}

void serve_endpoints_fini(struct serve_endpoints *endpoints)
{
    rcpt_metrics_free(endpoints->metrics);
}

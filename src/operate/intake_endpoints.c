/* Metrics, health and status of `receiptd intake` over HTTP; those of `receiptd run` are in
 * endpoints.c. Called by the command intake. */
#include "intake_endpoints.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/version.h"
#include "kafka/consumer.h"
#include "measure_process.h"

/* ---- metrics ---- */

/* Everything is read when the page is asked for; nothing is counted here. */
static char *write_metrics(void *context, enum rcpt_metrics_format format, size_t *size)
{
    struct intake_endpoints *endpoints = context;
    struct rcpt_metrics *metrics = endpoints->metrics;
    uint64_t began = uv_hrtime();
    rcpt_metrics_set(metrics, RCPT_METRIC_BUILD,
                     RCPT_LABELS(RCPT_VERSION, rcpt_kafka_version(), endpoints->config_hash), 1);
    rcpt_metrics_set(metrics, RCPT_METRIC_READY, RCPT_NO_LABELS, endpoints->ready);
    measure_process(metrics, endpoints->started_ms);
    measure_http(metrics, rcpt_http_stats(endpoints->server.http));
    if (endpoints->tracer != NULL)
        measure_tracing(metrics, rcpt_tracer_get_stats(endpoints->tracer));
    if (endpoints->intake != NULL)
        measure_intake(metrics, endpoints->intake);
    char *page = rcpt_metrics_render(metrics, format, size);
    rcpt_metrics_set(metrics, RCPT_METRIC_SCRAPE, RCPT_NO_LABELS,
                     (double)(uv_hrtime() - began) / 1e9);
    return page;
}

/* ---- health and status ---- */

/* At most one reason, that of the intake. */
static void put_reasons(struct rcpt_json *json, const struct intake_endpoints *endpoints)
{
    rcpt_json_key(json, "reasons");
    rcpt_json_begin_array(json);
    if (!endpoints->ready)
        rcpt_json_text(json, endpoints->reason);
    rcpt_json_end_array(json);
}

/* The counters an operator needs to see that a gateway sends what its adapter understands. */
static void put_account(struct rcpt_json *json, const struct rcpt_intake_stats *stats)
{
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "account", stats->account);
    rcpt_json_put_text(json, "gateway", stats->gateway);
    rcpt_json_put_int(json, "requests", (int64_t)stats->requests);
    rcpt_json_put_int(json, "events", (int64_t)stats->events);
    rcpt_json_put_int(json, "unmapped", (int64_t)stats->drops[RCPT_INTAKE_UNMAPPED]);
    rcpt_json_put_text(json, "last_unmapped_status", stats->unmapped_sample);
    rcpt_json_put_int(json, "refused_signatures",
                      (int64_t)(stats->verdicts[RCPT_INTAKE_MISSING] +
                                stats->verdicts[RCPT_INTAKE_BAD] +
                                stats->verdicts[RCPT_INTAKE_STALE]));
    rcpt_json_end_object(json);
}

static bool write_live(void *context, struct rcpt_json *json)
{
    (void)context; /* an answer shows that the loop turns */
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "loop", true);
    rcpt_json_end_object(json);
    return true;
}

/* Ready: webhooks are taken. The reason is the one that the intake gave. */
static bool write_ready(void *context, struct rcpt_json *json)
{
    const struct intake_endpoints *endpoints = context;
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "ready", endpoints->ready);
    put_reasons(json, endpoints);
    rcpt_json_end_object(json);
    return endpoints->ready;
}

/* Stays true once webhooks were taken. */
static bool write_started(void *context, struct rcpt_json *json)
{
    const struct intake_endpoints *endpoints = context;
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "started", endpoints->was_ready);
    put_reasons(json, endpoints);
    rcpt_json_end_object(json);
    return endpoints->was_ready;
}

/* Accounts in the order of the configuration. */
static bool write_status(void *context, struct rcpt_json *json)
{
    const struct intake_endpoints *endpoints = context;
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "version", RCPT_VERSION);
    rcpt_json_put_text(json, "librdkafka", rcpt_kafka_version());
    rcpt_json_put_text(json, "config_hash", endpoints->config_hash);
    rcpt_json_put_bool(json, "ready", endpoints->ready);
    put_reasons(json, endpoints);
    rcpt_json_key(json, "accounts");
    rcpt_json_begin_array(json);
    for (size_t index = 0;
         endpoints->intake != NULL && index < rcpt_intake_account_count(endpoints->intake); index++)
        put_account(json, rcpt_intake_account_stats(endpoints->intake, index));
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
    return true;
}

/* ---- life ---- */

void intake_endpoints_start(struct intake_endpoints *endpoints, uv_loop_t *loop,
                            const struct rcpt_config *config)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *endpoints = (struct intake_endpoints){
        .server = {.loop = loop, .config = config, .listen = config->intake.metrics_listen},
        .reason = "starting"};
    /* No begin_runs: the intake has no pipelines, so /runs does not exist here. */
    endpoints->server.pages = (struct pages){.context = endpoints,
                                             .metrics = write_metrics,
                                             .status = write_status,
                                             .live = write_live,
                                             .ready = write_ready,
                                             .started = write_started};
    endpoints->started_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    rcpt_config_hash(config, endpoints->config_hash);
    endpoints->metrics = rcpt_metrics_new(rcpt_metrics_table(), RCPT_METRIC__COUNT);
    /* Series of `receiptd run` would stay at 0 in this process. */
    rcpt_metrics_hide(endpoints->metrics, RCPT_METRICS_OF_WORKER);
    rcpt_metrics_hide(endpoints->metrics, RCPT_METRICS_OF_SERVE);
    pages_server_start(&endpoints->server);
}

/* The reason is kept for the pages, and is empty while ready. */
void intake_endpoints_set_ready(struct intake_endpoints *endpoints, bool ready, const char *reason)
{
    endpoints->ready = ready;
    endpoints->was_ready |= ready;
    snprintf(endpoints->reason, sizeof(endpoints->reason), "%s", ready ? "" : reason);
}

void intake_endpoints_fini(struct intake_endpoints *endpoints)
{
    rcpt_metrics_free(endpoints->metrics);
}

/* The server of the pages: metrics and health as for all processes, and the timer that tries again
 * while its address is taken. Called by intake_endpoints.c, serve_endpoints.c and their commands.
 */
#include "receiptd/base/clock.h"
#include "receiptd/base/error.h"
#include "receiptd/operate/endpoints.h"

#include <time.h>

#include "receiptd/base/log.h"
#include "receiptd/base/version.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/operate/operate.h"

#define RETRY_MS 5000

/* ---- pages ---- */

/* Everything is read when the page is asked for; nothing is counted here. */
static char *write_metrics(void *context, enum rcpt_metrics_format format, size_t *size)
{
    struct pages_server *server = context;
    struct rcpt_metrics *metrics = server->metrics;
    uint64_t began = uv_hrtime();
    rcpt_metrics_set(metrics, RCPT_METRIC_BUILD,
                     RCPT_LABELS(RCPT_VERSION, rcpt_kafka_version(), server->config_hash), 1);
    rcpt_metrics_set(metrics, RCPT_METRIC_READY, RCPT_NO_LABELS, server->ready);
    measure_process(metrics, server->started_ms);
    server->settings.collect(server->settings.context, metrics);
    char *page = rcpt_metrics_render(metrics, format, size);
    rcpt_metrics_set(metrics, RCPT_METRIC_SCRAPE, RCPT_NO_LABELS,
                     (double)(uv_hrtime() - began) / 1e9);
    return page;
}

/* Writes the reason, of which there is at most one. */
static void put_health(struct rcpt_json *json, const struct pages_server *server, const char *name,
                       bool value)
{
    rcpt_json_put_bool(json, name, value);
    rcpt_json_key(json, "reasons");
    rcpt_json_begin_array(json);
    if (!server->ready)
        rcpt_json_text(json, server->reason);
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

static bool write_ready(void *context, struct rcpt_json *json)
{
    const struct pages_server *server = context;
    rcpt_json_begin_object(json);
    put_health(json, server, "ready", server->ready);
    rcpt_json_end_object(json);
    return server->ready;
}

/* Stays true, whatever happens later. */
static bool write_started(void *context, struct rcpt_json *json)
{
    const struct pages_server *server = context;
    rcpt_json_begin_object(json);
    put_health(json, server, "started", server->was_ready);
    rcpt_json_end_object(json);
    return server->was_ready;
}

static bool write_status(void *context, struct rcpt_json *json)
{
    const struct pages_server *server = context;
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "version", RCPT_VERSION);
    rcpt_json_put_text(json, "librdkafka", rcpt_kafka_version());
    rcpt_json_put_text(json, "config_hash", server->config_hash);
    put_health(json, server, "ready", server->ready);
    server->settings.put_status(server->settings.context, json);
    rcpt_json_end_object(json);
    return true;
}

/* ---- the server ---- */

/* The process does not wait for this: it ends when the loop has no handles. */
static void on_closed(void *context)
{
    (void)context;
}

/* The loop frees the server when its connections have ended. */
static void close_http(struct pages_server *server)
{
    if (server->http != NULL)
        rcpt_http_close(server->http, on_closed, server);
    server->http = NULL;
}

static void try_to_open(struct pages_server *server, bool again);

/* A one-shot timer: each failure starts it again. */
static void on_retry(uv_timer_t *timer)
{
    try_to_open(timer->data, true);
}

/* An address that is taken must not stop the process. */
static void try_to_open(struct pages_server *server, bool again)
{
    struct rcpt_error error;
    server->http = pages_open(&server->pages, server->settings.loop, server->settings.listen,
                              server->settings.config, &error);
    if (server->http != NULL)
        return;
    uv_timer_start(&server->retry, on_retry, RETRY_MS, 0);
    if (!again)
        rcpt_log_failure(RCPT_LOG_WARN, "operate", &error,
                         "no metrics and status yet, will be tried again");
}

/* Pages may be asked for as soon as it listens, so everything that they show is set before. */
void pages_server_start(struct pages_server *server, const struct pages_server_settings *settings)
{
    *server = (struct pages_server){.settings = *settings, .reason = "starting"};
    /* No begin_runs: these processes have no pipelines, so /runs does not exist here. */
    server->pages = (struct pages){.context = server,
                                   .metrics = write_metrics,
                                   .status = write_status,
                                   .live = write_live,
                                   .ready = write_ready,
                                   .started = write_started};
    server->started_ms = rcpt_wall_ns() / RCPT_NS_PER_MS;
    rcpt_config_hash(settings->config, server->config_hash);
    server->metrics = rcpt_metrics_new(rcpt_metrics_table(), RCPT_METRIC__COUNT);
    for (size_t index = 0; index < RCPT_COUNT_OF(settings->hide); index++)
        rcpt_metrics_hide(server->metrics, settings->hide[index]);
    uv_timer_init(settings->loop, &server->retry);
    server->retry.data = server;
    if (settings->listen[0] != '\0')
        try_to_open(server, false);
}

/* Kept for the pages. */
void pages_server_set_ready(struct pages_server *server, bool ready, const char *reason)
{
    server->ready = ready;
    server->was_ready |= ready;
    snprintf(server->reason, sizeof(server->reason), "%s", ready ? "" : reason);
}

/* A faulty certificate does not end a running server. */
void pages_server_reload(struct pages_server *server)
{
    struct rcpt_error error;
    if (server->http != NULL && server->settings.config->http.tls_certificate != NULL &&
        !rcpt_http_reload_tls(server->http, &error))
        rcpt_log_error("operate", "the certificate of before stays: %s", error.text);
}

/* The retry timer closes in any case: it was initialised with the pages. */
void pages_server_close(struct pages_server *server)
{
    close_http(server);
    uv_close((uv_handle_t *)&server->retry, NULL);
}

void pages_server_fini(struct pages_server *server)
{
    rcpt_metrics_free(server->metrics);
}

/* Metrics, health and status of `receiptd run` over HTTP. An address that is taken must not stop
 * the receipts: the tick tries it again. Made by run.c; reload.c has the certificate read again. */
#include "receiptd/operate/endpoints.h"

#include <stdlib.h>

#include "receiptd/operate/operate.h"

#define RETRY_MS 5000

struct endpoints {
    struct endpoints_settings settings;
    struct rcpt_http_server *http; /* NULL: not listening */
    struct pages pages;            /* of it */
    struct host_ticker ticker;
    int64_t retry_at_ms; /* 0: listening, or not configured */
};

/* ---- pages ---- */

/* Everything is brought up to date for each scrape. */
static char *write_metrics(void *context, enum rcpt_metrics_format format, size_t *size)
{
    const struct endpoints *endpoints = context;
    return measure_page(endpoints->settings.measure, format, size);
}

/* 503 takes the instance out of readiness checks; receipts are not affected. */
static bool write_ready(void *context, struct rcpt_json *json)
{
    const struct endpoints *endpoints = context;
    status_write_readiness(endpoints->settings.status, json);
    return endpoints->settings.context->ready;
}

/* Stays true once the instance was ready, whatever happens later. */
static bool write_started(void *context, struct rcpt_json *json)
{
    const struct host_context *app = ((const struct endpoints *)context)->settings.context;
    const char *reasons[HOST_MOST_REASONS];
    unsigned count = app->was_ready ? 0 : host_reasons(app, reasons);
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "started", app->was_ready);
    rcpt_json_key(json, "reasons");
    rcpt_json_begin_array(json);
    for (unsigned index = 0; index < count; index++)
        rcpt_json_text(json, reasons[index]);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
    return app->was_ready;
}

/* 503 makes the orchestrator restart the process: only for its own faults. */
static bool write_live(void *context, struct rcpt_json *json)
{
    const struct measure *measure = ((const struct endpoints *)context)->settings.measure;
    bool turns = measure_turns(measure), works = measure_works(measure);
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "loop", turns);
    rcpt_json_put_bool(json, "progress", works);
    rcpt_json_end_object(json);
    return turns && works;
}

static bool write_status(void *context, struct rcpt_json *json)
{
    const struct endpoints *endpoints = context;
    status_write(endpoints->settings.status, json);
    return true;
}

/* POST /runs belongs to the actions; the server is shared. */
static void begin_runs(void *context, struct rcpt_http_request *request)
{
    const struct endpoints *endpoints = context;
    endpoints->settings.begin_runs(endpoints->settings.runs, request);
}

/* ---- the server ---- */

/* The first failure is logged, the following ones are not. */
static void listen_again(struct endpoints *endpoints)
{
    const struct host_context *context = endpoints->settings.context;
    const struct rcpt_config *config = context->config;
    struct rcpt_error error;
    bool again = endpoints->retry_at_ms != 0;
    endpoints->retry_at_ms = 0;
    if (config->http.listen[0] == '\0')
        return;
    endpoints->http =
        pages_open(&endpoints->pages, context->loop, config->http.listen, config, &error);
    if (endpoints->http != NULL)
        return;
    endpoints->retry_at_ms = host_now(context) + RETRY_MS;
    if (!again)
        rcpt_log_failure(RCPT_LOG_WARN, "operate", &error,
                         "no metrics and status yet, will be tried again");
}

/* Retries while the address is taken. */
static void on_tick(void *context)
{
    struct endpoints *endpoints = context;
    const struct host_context *app = endpoints->settings.context;
    if (endpoints->retry_at_ms != 0 && host_now(app) >= endpoints->retry_at_ms &&
        !host_is_stopping(app))
        listen_again(endpoints);
}

/* Reads the certificate before anything else of a reload is taken over. */
bool endpoints_reload(struct endpoints *endpoints, struct rcpt_error *error)
{
    const struct rcpt_config *config = endpoints->settings.context->config;
    return endpoints->http == NULL || config->http.tls_certificate == NULL ||
           rcpt_http_reload_tls(endpoints->http, error);
}

/* ---- life ---- */

/* Listens at once; the other modules exist by now, since pages read all of them. */
struct endpoints *endpoints_new(const struct endpoints_settings *settings)
{
    struct endpoints *endpoints = rcpt_calloc(1, sizeof(*endpoints));
    endpoints->settings = *settings;
    endpoints->ticker = (struct host_ticker){.tick = on_tick, .context = endpoints};
    endpoints->pages = (struct pages){.context = endpoints,
                                      .metrics = write_metrics,
                                      .status = write_status,
                                      .live = write_live,
                                      .ready = write_ready,
                                      .started = write_started,
                                      .begin_runs = begin_runs};
    host_add_ticker(settings->context, &endpoints->ticker);
    listen_again(endpoints);
    return endpoints;
}

static void on_closed(void *context)
{
    host_closed(context);
}

/* No retry after this. */
void endpoints_close(struct endpoints *endpoints)
{
    struct host_context *context = endpoints->settings.context;
    endpoints->retry_at_ms = 0;
    if (endpoints->http == NULL)
        return;
    host_open(context);
    rcpt_http_close(endpoints->http, on_closed, context);
    endpoints->http = NULL;
}

void endpoints_free(struct endpoints *endpoints)
{
    free(endpoints);
}

/* Metrics, health and status over HTTP. That nobody can ask must not stop the stream: an address
 * that is taken is tried again. */
#include <stdlib.h>
#include <string.h>

#include "app.h"

#define RETRY_MS 5000

#define TYPE_JSON "application/json"

/* ---- answers ---- */

static void answer_json(struct app *app, struct rcpt_http_request *request,
                        bool (*write)(struct app *app, struct rcpt_json *json))
{
    struct rcpt_json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    RCPT_ASSERT(out != NULL);
    rcpt_json_init(&json, out);
    bool good = write(app, &json);
    fputc('\n', out);
    RCPT_ASSERT(fclose(out) == 0);
    const struct rcpt_http_answer answer = {.status = good ? 200 : 503,
                                            .content_type = TYPE_JSON,
                                            .headers = "Cache-Control: no-store\r\n",
                                            .body = text,
                                            .body_size = size};
    rcpt_http_answer(request, &answer);
    free(text);
}

static void on_metrics(void *context, struct rcpt_http_request *request)
{
    struct app *app = context;
    struct rcpt_http_text accept = rcpt_http_header(request, "Accept");
    enum rcpt_metrics_format format = rcpt_metrics_negotiate(accept.bytes);
    size_t size;
    char *page = measure_page(app, format, &size);
    const struct rcpt_http_answer answer = {.status = 200,
                                            .content_type = rcpt_metrics_content_type(format),
                                            .body = page,
                                            .body_size = size};
    rcpt_http_answer(request, &answer);
    free(page);
}

static bool write_ready(struct app *app, struct rcpt_json *json)
{
    status_write_readiness(app, json);
    return app->ready;
}

static bool write_started(struct app *app, struct rcpt_json *json)
{
    const char *reasons[APP_MOST_REASONS];
    unsigned count = app->was_ready ? 0 : app_reasons(app, reasons);
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "started");
    rcpt_json_bool(json, app->was_ready);
    rcpt_json_key(json, "reasons");
    rcpt_json_begin_array(json);
    for (unsigned index = 0; index < count; index++)
        rcpt_json_text(json, reasons[index]);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
    return app->was_ready;
}

static bool write_live(struct app *app, struct rcpt_json *json)
{
    bool turns = measure_turns(app), works = measure_works(app);
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "loop");
    rcpt_json_bool(json, turns);
    rcpt_json_key(json, "progress");
    rcpt_json_bool(json, works);
    rcpt_json_end_object(json);
    return turns && works;
}

static bool write_status(struct app *app, struct rcpt_json *json)
{
    status_write(app, json);
    return true;
}

static void on_ready(void *context, struct rcpt_http_request *request)
{
    answer_json(context, request, write_ready);
}

static void on_startup(void *context, struct rcpt_http_request *request)
{
    answer_json(context, request, write_started);
}

static void on_live(void *context, struct rcpt_http_request *request)
{
    answer_json(context, request, write_live);
}

static void on_status(void *context, struct rcpt_http_request *request)
{
    answer_json(context, request, write_status);
}

/* ---- the server ---- */

static void add_routes(struct app *app)
{
    const char *token = app->config->http.token;
    const struct rcpt_http_route routes[] = {
        {.prefix = "/metrics", .bearer_token = token, .handler = on_metrics},
        {.prefix = "/statusz", .bearer_token = token, .handler = on_status},
        {.prefix = "/livez", .unlimited_rate = true, .handler = on_live},
        {.prefix = "/readyz", .unlimited_rate = true, .handler = on_ready},
        {.prefix = "/startupz", .unlimited_rate = true, .handler = on_startup},
    };
    for (size_t index = 0; index < sizeof(routes) / sizeof(routes[0]); index++) {
        struct rcpt_http_route route = routes[index];
        route.methods = RCPT_HTTP_GET;
        route.context = app;
        rcpt_http_route(app->http, &route);
    }
}

static void on_closed(void *context)
{
    struct app *app = context;
    app->open--;
}

void endpoints_close(struct app *app)
{
    app->http_retry_ms = 0;
    if (app->http == NULL)
        return;
    app->open++;
    rcpt_http_close(app->http, on_closed, app);
    app->http = NULL;
}

static bool open_server(struct app *app, struct rcpt_error *error)
{
    const struct rcpt_config *config = app->config;
    const struct rcpt_http_settings settings = {
        .loop = &app->loop,
        .name = "status",
        .listen = config->http.listen,
        .tls_certificate = config->http.tls_certificate,
        .tls_key = config->http.tls_key,
        .max_connections = 64,
        .max_body_bytes = 1024,
        .max_memory_bytes = 1024 * 1024,
        .header_timeout_ms = 5000,
    };
    app->http = rcpt_http_new(&settings, error);
    if (app->http == NULL)
        return false;
    add_routes(app);
    if (rcpt_http_start(app->http, error))
        return true;
    endpoints_close(app);
    return false;
}

void endpoints_start(struct app *app)
{
    struct rcpt_error error;
    bool again = app->http_retry_ms != 0;
    app->http_retry_ms = 0;
    if (app->config->http.listen[0] == '\0')
        return;
    if (open_server(app, &error)) {
        rcpt_log_info("http", "metrics and status at %s, port %d", app->config->http.listen,
                      rcpt_http_port(app->http));
        return;
    }
    app->http_retry_ms = app_now(app) + RETRY_MS;
    if (!again)
        rcpt_log_warn("http", "no metrics and status yet, will be tried again: %s%s%s", error.text,
                      error.hint[0] != '\0' ? "; HINT: " : "", error.hint);
}

void endpoints_tick(struct app *app)
{
    if (app->http_retry_ms != 0 && app_now(app) >= app->http_retry_ms && !app->stopping)
        endpoints_start(app);
}

bool endpoints_reload(struct app *app, struct rcpt_error *error)
{
    return app->http == NULL || app->config->http.tls_certificate == NULL ||
           rcpt_http_reload_tls(app->http, error);
}

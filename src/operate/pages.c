/* The HTTP server of /metrics, /statusz, /livez, /readyz, /startupz and /runs: routes, tokens and
 * the form of the answers. The owner writes the content. Called by endpoints.c and
 * intake_endpoints.c. */
#include "receiptd/base/error.h"
#include "receiptd/operate/endpoints.h"

#include <stdlib.h>

#include "receiptd/base/log.h"

/* Largest body of POST /runs. */
#define RUNS_BYTES (1024u * 1024)

/* 503 with the object that says why, so that a probe and a person read the same. */
static void answer_json(const struct pages *pages, struct rcpt_http_request *request,
                        pages_write write)
{
    struct rcpt_json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    bool good = write(pages->context, &json);
    fputc('\n', out);
    RCPT_ASSERT(fclose(out) == 0);
    const struct rcpt_http_answer answer = {.status = good ? 200 : 503,
                                            .content_type = "application/json",
                                            .headers = "Cache-Control: no-store\r\n",
                                            .body = text,
                                            .body_size = size};
    rcpt_http_answer(request, &answer);
    free(text);
}

/* The Accept header chooses between the two text formats. */
static void on_metrics(void *context, struct rcpt_http_request *request)
{
    const struct pages *pages = context;
    enum rcpt_metrics_format format =
        rcpt_metrics_negotiate(rcpt_http_header(request, "Accept").bytes);
    size_t size;
    char *page = pages->metrics(pages->context, format, &size);
    const struct rcpt_http_answer answer = {.status = 200,
                                            .content_type = rcpt_metrics_content_type(format),
                                            .body = page,
                                            .body_size = size};
    rcpt_http_answer(request, &answer);
    free(page);
}

/* The five pages of JSON differ in their writer only. */
static void on_status(void *context, struct rcpt_http_request *request)
{
    const struct pages *pages = context;
    answer_json(pages, request, pages->status);
}

static void on_live(void *context, struct rcpt_http_request *request)
{
    const struct pages *pages = context;
    answer_json(pages, request, pages->live);
}

static void on_ready(void *context, struct rcpt_http_request *request)
{
    const struct pages *pages = context;
    answer_json(pages, request, pages->ready);
}

static void on_startup(void *context, struct rcpt_http_request *request)
{
    const struct pages *pages = context;
    answer_json(pages, request, pages->started);
}

/* Without http.runs_token no runs begin, not even with the other token. */
static void on_runs_refused(void *context, struct rcpt_http_request *request)
{
    static const char text[] = "POST /runs needs a token of its own: set http.runs_token\n";
    const struct rcpt_http_answer answer = {.status = 403,
                                            .content_type = "text/plain; charset=utf-8",
                                            .body = text,
                                            .body_size = sizeof(text) - 1};
    (void)context;
    rcpt_http_answer(request, &answer);
}

/* Probes of an orchestrator need no token and are not limited in rate. */
static void add_routes(struct pages *pages, struct rcpt_http_server *http,
                       const struct rcpt_config *config)
{
    const char *token = config->http.token, *runs_token = config->http.runs_token;
    const struct rcpt_http_route routes[] = {
        {.prefix = "/metrics", .bearer_token = token, .handler = on_metrics},
        {.prefix = "/statusz", .bearer_token = token, .handler = on_status},
        {.prefix = "/livez", .unlimited_rate = true, .handler = on_live},
        {.prefix = "/readyz", .unlimited_rate = true, .handler = on_ready},
        {.prefix = "/startupz", .unlimited_rate = true, .handler = on_startup},
    };
    for (size_t index = 0; index < RCPT_COUNT_OF(routes); index++) {
        struct rcpt_http_route route = routes[index];
        route.methods = RCPT_HTTP_GET;
        route.context = pages;
        rcpt_http_route(http, &route);
    }
    /* The intake alone has no pipelines, so no /runs. */
    if (pages->begin_runs == NULL)
        return;
    /* Runs call customers' webhooks: the token for figures does not begin any. */
    const struct rcpt_http_route runs = {.prefix = "/runs",
                                         .methods = RCPT_HTTP_POST,
                                         .bearer_token = runs_token != NULL ? runs_token : token,
                                         .max_body_bytes = RUNS_BYTES,
                                         .handler = runs_token != NULL ? pages->begin_runs
                                                                       : on_runs_refused,
                                         .context = pages->context};
    rcpt_http_route(http, &runs);
}

/* A server that never listened is closed without the owner. */
static void on_closed(void *context)
{
    (void)context;
}

/* Few connections and small bodies: the pages must not take memory from receipts. */
struct rcpt_http_server *pages_open(struct pages *pages, uv_loop_t *loop, const char *listen,
                                    const struct rcpt_config *config, struct rcpt_error *error)
{
    const struct rcpt_http_settings settings = {
        .loop = loop,
        .name = "status",
        .listen = listen,
        .tls_certificate = config->http.tls_certificate,
        .tls_key = config->http.tls_key,
        .max_connections = 64,
        .max_body_bytes = 1024,
        .max_memory_bytes = 4 * RUNS_BYTES,
        .header_timeout_ms = 5000,
        .own_names_only = config->http.token == NULL && rcpt_http_is_loopback(listen),
    };
    struct rcpt_http_server *http = rcpt_http_new(&settings, error);
    if (http == NULL)
        return NULL;
    add_routes(pages, http, config);
    if (rcpt_http_start(http, error)) {
        rcpt_log_info("operate", "metrics and status at %s, port %d", listen, rcpt_http_port(http));
        return http;
    }
    rcpt_http_close(http, on_closed, NULL);
    return NULL;
}

/* The interface as a whole: settings, life, and the way of a request. The steps are the host that
 * it names, its route, its caller (access.c), its parameters, and the answer of the route's kind.
 *
 * Its life: started; stopping (streams and lists end, open requests are answered); closing. When it
 * closes, each part reports its end to on_part_closed(), and the last one frees the module. */
#include <stdlib.h>
#include <sysexits.h>

#include "internal.h"
#include "receiptd/base/json.h"
#include "receiptd/base/version.h"

#define MOST_CONNECTIONS 2048u
#define MOST_PROXIES     32u
#define UNKNOWN_A_SECOND 50u /* unknown tokens from one address: tokens.c */
#define JSON             "application/json"
#define NO_STORE         "no-store"
#define CHECK_AGAIN      "no-cache" /* a client may keep it, and asks whether it still holds */

/* ---- a request ---- */

/* Ends the request with a problem. */
static void refuse(struct serve_request *request, int status, const char *code, const char *why)
{
    serve_answer_problem(request, status, code, "%s", why);
    serve_request_free(request);
}

/* The client's rights, for a page that shows no more than that. */
static void answer_me(struct serve_request *request)
{
    static const char *const names[] = {"read", "support", "operate", "suppressions"};
    struct rcpt_json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "organisation", request->organisation);
    rcpt_json_key(&json, "scopes");
    rcpt_json_begin_array(&json);
    for (unsigned index = 0; index < RCPT_COUNT_OF(names); index++)
        if (request->scopes & 1u << index)
            rcpt_json_text(&json, names[index]);
    rcpt_json_end_array(&json);
    rcpt_json_key(&json, "link");
    if (request->campaign != NULL) {
        char time[32];
        time_t ends = (time_t)request->link_ends_s;
        struct tm parts;
        gmtime_r(&ends, &parts);
        strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S.000Z", &parts);
        rcpt_json_begin_object(&json);
        rcpt_json_put_text(&json, "campaign", request->campaign);
        rcpt_json_put_text(&json, "expires", time);
        rcpt_json_end_object(&json);
    } else {
        rcpt_json_null(&json);
    }
    rcpt_json_put_bool(&json, "redrive", serve_redrive_admits(request));
    rcpt_json_put_text(&json, "version", RCPT_VERSION);
    rcpt_json_end_object(&json);
    RCPT_ASSERT(fclose(out) == 0);
    serve_answer_body(request, JSON, NO_STORE, text, size);
    free(text);
    serve_request_free(request);
}

/* The content type of answers that HEAD does not begin. */
static const char *type_of(const struct serve_request *request)
{
    const char *format = serve_value(request, "format");
    if (request->route->kind == SERVE_STREAM)
        return "text/event-stream";
    return format != NULL && strcmp(format, "json") == 0 ? JSON : "text/csv; charset=utf-8";
}

/* Each kind takes the request over. */
static void dispatch(struct serve_request *request)
{
    struct rcpt_serve *serve = request->serve;
    bool goes_on = request->route->kind == SERVE_EXPORT || request->route->kind == SERVE_STREAM;
    if (goes_on && rcpt_http_method(request->http) == RCPT_HTTP_HEAD) {
        serve_answer_body(request, type_of(request), NO_STORE, "", 0);
        serve_request_free(request);
        return;
    }
    if (request->route->is_on != NULL && !request->route->is_on(serve->settings.config)) {
        refuse(request, 501, "off", request->route->off);
        return;
    }
    switch (request->route->kind) {
    case SERVE_ROW:
        serve_row_begin(request);
        return;
    case SERVE_EXPORT:
        serve_export_begin(request);
        return;
    case SERVE_STREAM:
        serve_stream_add(request);
        return;
    case SERVE_ME:
        answer_me(request);
        return;
    case SERVE_OPENAPI:
        serve_answer_body(request, JSON, CHECK_AGAIN, serve->openapi, serve->openapi_size);
        serve_request_free(request);
        return;
    case SERVE_REDRIVE:
        serve_redrive_begin(request);
        return;
    }
}

/* The campaign of a link is the only one that it opens; a stream without one gets it. */
static bool fits_link(struct serve_request *request)
{
    if (request->campaign == NULL)
        return true;
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++) {
        const char *name = request->route->parameters[index].name;
        if (name == NULL || strcmp(name, "campaign") != 0)
            continue;
        if (request->values[index] == NULL)
            request->values[index] = request->campaign;
        return strcmp(request->values[index], request->campaign) == 0;
    }
    return true;
}

/* From the outside in: may it ask at all, is it well-formed, is it the link's campaign? */
static void on_admitted(struct serve_request *request)
{
    const struct serve_route *route = request->route;
    char problem[256];
    if (route->scope != SERVE_ANY && !(request->scopes & (unsigned)route->scope))
        refuse(request, 403, "scope_missing", "the token has another scope");
    else if (request->campaign != NULL && !route->by_link)
        refuse(request, 403, "link_too_narrow",
               "the link shows one campaign's funnel and nothing else");
    else if (!serve_routes_read(request, problem))
        refuse(request, 400, "invalid_parameter", problem);
    else if (!fits_link(request))
        refuse(request, 403, "link_too_narrow", "the link is for another campaign");
    else
        dispatch(request);
}

static bool host_is_ours(const struct rcpt_serve *serve, const struct rcpt_http_request *http)
{
    return rcpt_http_asks_for(http, serve->is_local, serve->settings.config->serve.hosts);
}

/* The caller and the route are found out later. */
static struct serve_request *new_request(struct rcpt_serve *serve, struct rcpt_http_request *http)
{
    struct serve_request *request = rcpt_calloc(1, sizeof(*request));
    request->serve = serve;
    request->http = http;
    request->began_ns = rcpt_http_received_ns(http);
    rcpt_arena_init(&request->arena, 1024);
    return request;
}

/* The methods are no secret: the description has them. */
static void answer_options(struct serve_request *request)
{
    char headers[1024], allow[96];
    rcpt_http_allow(request->methods, allow);
    snprintf(headers, sizeof(headers), "%s%s", serve_headers, allow);
    const struct rcpt_http_answer answer = {.status = 204, .headers = headers};
    request->status = answer.status;
    rcpt_http_answer(request->http, &answer);
    serve_request_free(request);
}

/* Checks that cost nothing come before the database is asked for a token. */
static void on_request(void *context, struct rcpt_http_request *http)
{
    struct rcpt_serve *serve = context;
    struct serve_request *request = new_request(serve, http);
    int status = serve_routes_find(request, rcpt_http_method(http), rcpt_http_rest(http));
    if (!host_is_ours(serve, http))
        refuse(request, 421, "foreign_host", "the Host header names none of serve.hosts");
    else if (status == 404)
        refuse(request, 404, "no_route", "no route has this path: see " SERVE_BASE "/openapi.json");
    else if (rcpt_http_method(http) == RCPT_HTTP_OPTIONS)
        answer_options(request);
    else if (status == 405)
        refuse(request, 405, "method_not_allowed",
               "the header Allow names the methods of this path");
    else if (serve->stopping)
        refuse(request, 503, "stopping", "the process is stopping");
    else
        serve_access(request);
}

/* The page holds no data, so it needs no access right. */
static void on_page(void *context, struct rcpt_http_request *http)
{
    struct rcpt_serve *serve = context;
    struct serve_request *request = new_request(serve, http);
    request->is_page = true;
    if (!host_is_ours(serve, http))
        serve_answer_problem(request, 421, "foreign_host",
                             "the Host header names none of serve.hosts");
    else if (!serve->settings.config->serve.page ||
             !serve_page_answer(request, rcpt_http_rest(http)))
        serve_answer_problem(request, 404, "no_route", "there is no such page");
    serve_request_free(request);
}

/* ---- life ---- */

static void free_serve(struct rcpt_serve *serve)
{
    serve_stream_free(serve->stream);
    serve_tokens_free(serve->tokens);
    serve_kept_free(serve->kept);
    free(serve->openapi);
    free(serve->counts);
    free(serve);
}

/* After a failed start on_closed is not called: the caller got NULL. */
static void on_part_closed(struct rcpt_serve *serve)
{
    if (--serve->open > 0)
        return;
    void (*on_closed)(void *context) = serve->settings.on_closed;
    void *context = serve->settings.context;
    bool reports = serve->stopping;
    free_serve(serve);
    if (reports)
        on_closed(context);
}

static void on_http_closed(void *context)
{
    on_part_closed(context);
}

static void on_tick_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

/* Asynchronous, all at once. */
static void close_all(struct rcpt_serve *serve)
{
    serve->closing = true;
    serve->open = serve->names != NULL ? 4 : 3;
    uv_close((uv_handle_t *)&serve->tick, on_tick_closed);
    rcpt_http_close(serve->http, on_http_closed, serve);
    serve_pool_close(serve->pool);
    if (serve->names != NULL)
        serve_names_close(serve->names, on_part_closed);
}

/* Runs the time-outs of all parts; the last tick closes. */
static void on_tick(uv_timer_t *timer)
{
    struct rcpt_serve *serve = timer->data;
    serve_pool_tick(serve->pool);
    serve_tokens_tick(serve->tokens);
    serve_names_tick(serve->names);
    serve_exports_tick(serve);
    serve_stream_tick(serve->stream);
    if (serve->stopping && !serve->closing && serve->exports == NULL && serve->redrives == 0 &&
        serve_tokens_are_idle(serve->tokens) && serve_pool_is_idle(serve->pool) &&
        rcpt_http_is_idle(serve->http))
        close_all(serve);
}

/* Reports the change to viewers and to the process. */
static void on_pool_changed(struct rcpt_serve *serve)
{
    bool up = serve_pool_is_up(serve->pool);
    if (serve->closing)
        return;
    serve_stream_health(serve->stream);
    if (serve->settings.on_ready != NULL)
        serve->settings.on_ready(serve->settings.context, up);
}

/* Checks that concern several keys of the configuration. */
static bool check(const struct rcpt_serve *serve, struct rcpt_error *error)
{
    const struct rcpt_config *config = serve->settings.config;
    if (config->serve.open && !serve->is_local) {
        rcpt_error_fatal(error, EX_CONFIG,
                         "serve.open would show everything to everybody who reaches %s",
                         config->serve.listen);
        rcpt_error_hint(error, "listen on 127.0.0.1, or make tokens: receiptd serve token add");
        return false;
    }
    if (config->serve.proxy_header != NULL && config->serve.trusted_proxies == NULL) {
        rcpt_error_fatal(error, EX_CONFIG, "serve.proxy_header is %s, but no proxy is trusted",
                         config->serve.proxy_header);
        rcpt_error_hint(error, "name the proxy's address in serve.trusted_proxies");
        return false;
    }
    return true;
}

/* Networks of trusted proxies; the server copies them. */
static size_t split_proxies(char *list, const char *proxies[MOST_PROXIES])
{
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(list, ", \t", &rest); word != NULL && count < MOST_PROXIES;
         word = strtok_r(NULL, ", \t", &rest))
        proxies[count++] = word;
    return count;
}

static bool listen_now(struct rcpt_serve *serve, struct rcpt_error *error)
{
    const struct rcpt_config *config = serve->settings.config;
    const char *trusted = config->serve.trusted_proxies, *proxies[MOST_PROXIES];
    char *list = rcpt_strdup(trusted != NULL ? trusted : "");
    const struct rcpt_http_settings settings = {
        .loop = serve->settings.loop,
        .name = "serve",
        .listen = config->serve.listen,
        .tls_certificate = config->http.tls_certificate,
        .tls_key = config->http.tls_key,
        .trusted_proxy_count = split_proxies(list, proxies),
        .trusted_proxies = proxies,
        .max_connections = MOST_CONNECTIONS,
        .share_connections = true,
        .max_header_bytes = 16384,
        .max_body_bytes = 65536,
        .max_memory_bytes = 4 * 1024 * 1024,
        .rate_per_source = UNKNOWN_A_SECOND,
        .problem_headers = serve_headers,
    };
    /* All of them: what a path takes is known here, not by its prefix. */
    const unsigned methods = RCPT_HTTP_GET | RCPT_HTTP_POST | RCPT_HTTP_PUT | RCPT_HTTP_PATCH |
                             RCPT_HTTP_DELETE | RCPT_HTTP_OPTIONS | RCPT_HTTP_OTHER;
    const struct rcpt_http_route api = {.prefix = SERVE_BASE,
                                        .methods = methods,
                                        .unlimited_rate = true,
                                        .handler = on_request,
                                        .context = serve};
    const struct rcpt_http_route page = {.prefix = "/",
                                         .methods = RCPT_HTTP_GET,
                                         .unlimited_rate = true,
                                         .handler = on_page,
                                         .context = serve};
    serve->http = rcpt_http_new(&settings, error);
    free(list);
    if (serve->http == NULL)
        return false;
    rcpt_http_route(serve->http, &api);
    rcpt_http_route(serve->http, &page);
    return rcpt_http_start(serve->http, error);
}

/* The address comes first: without it nothing else is opened. */
struct rcpt_serve *rcpt_serve_start(const struct rcpt_serve_settings *settings,
                                    struct rcpt_error *error)
{
    struct rcpt_serve *serve = rcpt_calloc(1, sizeof(*serve));
    serve->settings = *settings;
    serve->when_admitted = on_admitted;
    serve->when_pool_changed = on_pool_changed;
    serve->when_part_closed = on_part_closed;
    serve->is_local = rcpt_http_is_loopback(settings->config->serve.listen);
    serve->stream = serve_stream_new(serve);
    serve->tokens = serve_tokens_new(serve);
    serve->kept = serve_kept_new();
    serve->counts = serve_counts_new();
    if (!check(serve, error) || !listen_now(serve, error)) {
        serve->open = 1;
        if (serve->http != NULL)
            rcpt_http_close(serve->http, on_http_closed, serve);
        else
            on_part_closed(serve);
        return NULL;
    }
    serve->openapi = serve_openapi(settings->config, &serve->openapi_size);
    uv_timer_init(settings->loop, &serve->tick);
    serve->tick.data = serve;
    uv_timer_start(&serve->tick, on_tick, SERVE_TICK_MS, SERVE_TICK_MS);
    serve->pool = serve_pool_new(serve);
    serve->names = serve_names_new(serve);
    return serve;
}

struct rcpt_serve_stats rcpt_serve_stats(const struct rcpt_serve *serve)
{
    struct rcpt_serve_stats stats = serve->stats;
    stats.viewers = serve_stream_count(serve->stream);
    stats.redrives = serve->redrives;
    struct serve_pool_figures pool = serve_pool_figures(serve->pool);
    stats.questions_waiting = pool.waiting + serve_tokens_waiting(serve->tokens);
    stats.lines = pool.lines;
    stats.lines_up = pool.up;
    stats.lines_busy = pool.busy;
    return stats;
}

int rcpt_serve_port(const struct rcpt_serve *serve)
{
    return rcpt_http_port(serve->http);
}

void rcpt_serve_drain(struct rcpt_serve *serve)
{
    if (serve->stopping)
        return;
    serve->stopping = true;
    atomic_store(&serve->ending, true);
    serve_stream_end(serve->stream);
    rcpt_http_drain(serve->http);
}

void rcpt_serve_apply_config(struct rcpt_serve *serve)
{
    if (serve->closing)
        return;
    serve_pool_apply_config(serve->pool);
    serve_names_apply_config(serve->names);
}

void rcpt_serve_reload_tls(struct rcpt_serve *serve)
{
    struct rcpt_error error;
    if (!serve->closing && !rcpt_http_reload_tls(serve->http, &error))
        rcpt_log_error("serve", "the certificate of before stays: %s", error.text);
}

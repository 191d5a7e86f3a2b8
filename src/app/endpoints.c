/* Metrics, health and status over HTTP. That nobody can ask must not stop the stream: an address
 * that is taken is tried again. */
#include "app.h"

#define RETRY_MS 5000

/* ---- what the pages say ---- */

static char *write_metrics(void *context, enum rcpt_metrics_format format, size_t *size)
{
    return measure_page(context, format, size);
}

static bool write_ready(void *context, struct rcpt_json *json)
{
    struct app *app = context;
    status_write_readiness(app, json);
    return app->ready;
}

static bool write_started(void *context, struct rcpt_json *json)
{
    struct app *app = context;
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

static bool write_live(void *context, struct rcpt_json *json)
{
    struct app *app = context;
    bool turns = measure_turns(app), works = measure_works(app);
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "loop");
    rcpt_json_bool(json, turns);
    rcpt_json_key(json, "progress");
    rcpt_json_bool(json, works);
    rcpt_json_end_object(json);
    return turns && works;
}

static bool write_status(void *context, struct rcpt_json *json)
{
    struct app *app = context;
    status_write(app, json);
    return true;
}

/* ---- the server ---- */

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

void endpoints_start(struct app *app)
{
    struct rcpt_error error;
    bool again = app->http_retry_ms != 0;
    app->http_retry_ms = 0;
    if (app->config->http.listen[0] == '\0')
        return;
    app->pages = (struct pages){.context = app,
                                .metrics = write_metrics,
                                .status = write_status,
                                .live = write_live,
                                .ready = write_ready,
                                .started = write_started,
                                .begin_runs = actions_on_request};
    app->http = pages_open(&app->pages, &app->loop, app->config->http.listen, app->config, &error);
    if (app->http != NULL)
        return;
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

/* The server of the pages, and the timer that tries again where its address is taken. Called by
 * intake_endpoints.c, serve_endpoints.c and their commands. */
#include "pages_server.h"

#include "base/log.h"

#define RETRY_MS 5000

/* Nothing waits for the server: the process ends when the loop has no handles. */
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
    server->http = pages_open(&server->pages, server->loop, server->listen, server->config, &error);
    if (server->http != NULL)
        return;
    uv_timer_start(&server->retry, on_retry, RETRY_MS, 0);
    if (!again)
        rcpt_log_failure(RCPT_LOG_WARN, "operate", &error,
                         "no metrics and status yet, will be tried again");
}

void pages_server_start(struct pages_server *server)
{
    uv_timer_init(server->loop, &server->retry);
    server->retry.data = server;
    if (server->listen[0] != '\0')
        try_to_open(server, false);
}

/* A certificate with a fault does not end a running server. */
void pages_server_reload(struct pages_server *server)
{
    struct rcpt_error error;
    if (server->http != NULL && server->config->http.tls_certificate != NULL &&
        !rcpt_http_reload_tls(server->http, &error))
        rcpt_log_error("operate", "the certificate of before stays: %s", error.text);
}

/* The retry timer closes in any case: it was initialised with the pages. */
void pages_server_close(struct pages_server *server)
{
    close_http(server);
    uv_close((uv_handle_t *)&server->retry, NULL);
}

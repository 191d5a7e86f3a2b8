/* The pages for operators over HTTP: /metrics, /statusz, /livez, /readyz, /startupz, POST /runs.
 *
 * `receiptd run` has endpoints.c. `receiptd intake` and `receiptd serve` are processes of their own
 * and have a pages_server.
 */
#ifndef RECEIPTD_OPERATE_ENDPOINTS_H
#define RECEIPTD_OPERATE_ENDPOINTS_H

#include <uv.h>

#include "receiptd/base/json.h"
#include "receiptd/config/config.h"
#include "receiptd/host/metrics.h"
#include "receiptd/http/http.h"
#include "receiptd/intake/intake.h"
#include "receiptd/serve/serve.h"
#include "receiptd/trace/tracer.h"

struct measure;
struct status;

/* ---- pages.c: routes, tokens and certificate ---- */

/* Writes one object. False: the answer is 503. */
typedef bool (*pages_write)(void *context, struct rcpt_json *json);

struct pages {
    void *context;
    /* Returns the page of metrics; pages.c frees it. */
    char *(*metrics)(void *context, enum rcpt_metrics_format format, size_t *size);
    pages_write status, live, ready, started;
    rcpt_http_handler begin_runs; /* POST /runs, for http.runs_token; NULL: no such page */
};

/* Listens. NULL: the error says why, and the loop closes all open handles. `pages` is borrowed for
 * the server's life. */
RCPT_MUST_CHECK struct rcpt_http_server *pages_open(struct pages *pages, uv_loop_t *loop,
                                                    const char *listen,
                                                    const struct rcpt_config *config,
                                                    struct rcpt_error *error);

/* ---- pages_server.c: pages on an address of their own ---- */

struct pages_server_settings {
    uv_loop_t *loop;
    const struct rcpt_config *config; /* borrowed for life */
    const char *listen;               /* "": none; borrowed for life */
    unsigned hide[2];                 /* parts of the metrics that stay at 0 in this process */
    void *context;
    /* Adds the owner's own series when a page is asked for. */
    void (*collect)(void *context, struct rcpt_metrics *metrics);
    /* Members of /statusz beside version, configuration and readiness. */
    void (*put_status)(void *context, struct rcpt_json *json);
};

struct pages_server { /* embedded */
    struct pages_server_settings settings;
    struct pages pages;
    struct rcpt_http_server *http; /* NULL: does not listen */
    uv_timer_t retry;
    struct rcpt_metrics *metrics;
    int64_t started_ms;
    char config_hash[20];
    char reason[160]; /* why it is not ready; "": it is */
    bool ready, was_ready;
};

/* Listens; a failure is logged. Not ready: "starting". */
void pages_server_start(struct pages_server *server, const struct pages_server_settings *settings);
/* The reason is copied, and counts only while not ready. */
void pages_server_set_ready(struct pages_server *server, bool ready, const char *reason);
/* Reads the certificate again. */
void pages_server_reload(struct pages_server *server);
/* The memory is free once the loop has run; only pages_server_fini() is left to call. */
void pages_server_close(struct pages_server *server);
/* Call once the loop has run. */
void pages_server_fini(struct pages_server *server);

/* ---- endpoints.c: the pages of `receiptd run` ---- */

struct endpoints;

struct endpoints_settings {
    struct host_context *context;
    struct measure *measure;
    const struct status *status;
    rcpt_http_handler begin_runs; /* POST /runs */
    void *runs;                   /* its context */
};

/* Listens at http.listen; an address that is taken is tried again. */
struct endpoints *endpoints_new(const struct endpoints_settings *settings);
/* Reads the certificate again; false with the reason. */
RCPT_MUST_CHECK bool endpoints_reload(struct endpoints *endpoints, struct rcpt_error *error);
void endpoints_close(struct endpoints *endpoints); /* host_closed says when */
void endpoints_free(struct endpoints *endpoints);

/* ---- intake_endpoints.c: the pages of `receiptd intake` ---- */

struct intake_endpoints {
    struct pages_server server;
    struct rcpt_intake *intake;       /* NULL: not started, or closed */
    const struct rcpt_tracer *tracer; /* NULL: nothing is traced */
};

/* Listens; a failure is logged, and tried again. */
void intake_endpoints_start(struct intake_endpoints *endpoints, uv_loop_t *loop,
                            const struct rcpt_config *config);

/* ---- serve_endpoints.c: the pages of `receiptd serve` ---- */

struct serve_endpoints {
    struct pages_server server;
    const struct rcpt_serve *serve; /* NULL: not started, or closed */
};

void serve_endpoints_start(struct serve_endpoints *endpoints, uv_loop_t *loop,
                           const struct rcpt_config *config);

#endif

/* The pages for operators over HTTP: /metrics, /statusz, /livez, /readyz, /startupz, and POST
 * /runs. The owner writes the content; routes, tokens and certificate are the same for `receiptd
 * run` and `receiptd intake`. */
#ifndef RECEIPTD_OPERATE_PAGES_H
#define RECEIPTD_OPERATE_PAGES_H

#include "base/json.h"
#include "config/config.h"
#include "host/metrics.h"
#include "http/http.h"

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

#endif

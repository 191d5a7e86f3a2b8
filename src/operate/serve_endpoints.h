/* Metrics, health and status of `receiptd serve`, a process of its own. In one process with
 * `receiptd run` the metrics are part of that one's. */
#ifndef RECEIPTD_OPERATE_SERVE_ENDPOINTS_H
#define RECEIPTD_OPERATE_SERVE_ENDPOINTS_H

#include "pages_server.h"
#include "serve/serve.h"

struct serve_endpoints {
    struct pages_server server;
    const struct rcpt_serve *serve; /* NULL: not started, or closed */
};

void serve_endpoints_start(struct serve_endpoints *endpoints, uv_loop_t *loop,
                           const struct rcpt_config *config);

#endif

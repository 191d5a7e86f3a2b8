/* Metrics, health and status of `receiptd serve`, a process of its own. In one process with `receiptd
 * run` the metrics are part of that one's. */
#ifndef RECEIPTD_OPERATE_SERVE_ENDPOINTS_H
#define RECEIPTD_OPERATE_SERVE_ENDPOINTS_H

#include "pages_server.h"
#include "serve/serve.h"

struct serve_endpoints {
    struct pages_server server;
    const struct rcpt_serve *serve; /* NULL: not started, or closed */
    struct rcpt_metrics *metrics;
    int64_t started_ms;
    char config_hash[20];
    bool ready, was_ready; /* readers are answered */
};

void serve_endpoints_start(struct serve_endpoints *endpoints, uv_loop_t *loop,
                           const struct rcpt_config *config);
void serve_endpoints_set_ready(struct serve_endpoints *endpoints, bool ready);
/* Once the loop has run. */
void serve_endpoints_fini(struct serve_endpoints *endpoints);

#endif

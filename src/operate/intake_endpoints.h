/* Metrics, health and status of `receiptd intake`, a process of its own. In one process with
 * `receiptd run` they are part of that one's (endpoints.c). */
#ifndef RECEIPTD_OPERATE_INTAKE_ENDPOINTS_H
#define RECEIPTD_OPERATE_INTAKE_ENDPOINTS_H

#include <uv.h>

#include "host/metrics.h"
#include "intake/intake.h"
#include "pages.h"
#include "trace/tracer.h"

struct intake_endpoints {
    uv_loop_t *loop;
    const struct rcpt_config *config;
    struct rcpt_intake *intake;       /* NULL: not started, or closed */
    const struct rcpt_tracer *tracer; /* NULL: nothing is traced */
    struct rcpt_http_server *http;
    struct pages pages; /* of it */
    struct rcpt_metrics *metrics;
    uv_timer_t retry;
    int64_t started_ms;
    char config_hash[20];
    char reason[160]; /* why webhooks are answered with 503; "": they are taken */
    bool ready, was_ready;
};

/* Listens; where that fails it is said, and tried again. */
void intake_endpoints_start(struct intake_endpoints *endpoints, uv_loop_t *loop,
                            const struct rcpt_config *config);
/* From on_ready of the intake. */
void intake_endpoints_set_ready(struct intake_endpoints *endpoints, bool ready, const char *reason);
/* Reads the certificate again. */
void intake_endpoints_reload(struct intake_endpoints *endpoints);
/* The memory is free once the loop has run; fini afterwards. */
void intake_endpoints_close(struct intake_endpoints *endpoints);
void intake_endpoints_fini(struct intake_endpoints *endpoints);

#endif

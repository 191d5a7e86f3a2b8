/* Metrics, health and status of `receiptd intake`, a process of its own. In one process with
 * `receiptd run` they are part of that one's (endpoints.c). */
#ifndef RECEIPTD_OPERATE_INTAKE_ENDPOINTS_H
#define RECEIPTD_OPERATE_INTAKE_ENDPOINTS_H

#include <uv.h>

#include "host/metrics.h"
#include "intake/intake.h"
#include "pages_server.h"
#include "trace/tracer.h"

struct intake_endpoints {
    struct pages_server server;
    struct rcpt_intake *intake;       /* NULL: not started, or closed */
    const struct rcpt_tracer *tracer; /* NULL: nothing is traced */
};

/* Listens; a failure is logged, and tried again. */
void intake_endpoints_start(struct intake_endpoints *endpoints, uv_loop_t *loop,
                            const struct rcpt_config *config);

#endif

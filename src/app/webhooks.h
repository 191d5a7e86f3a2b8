/* The intake beside the daemon's other modules: started where intake.enabled says so. */
#ifndef RECEIPTD_APP_WEBHOOKS_H
#define RECEIPTD_APP_WEBHOOKS_H

#include "receiptd/host/context.h"
#include "receiptd/intake/intake.h"
#include "receiptd/operate/operate.h"

struct webhooks {
    struct host_context *context;
    struct rcpt_intake *intake; /* NULL: not enabled, or closed */
    struct measure_source source;
    bool enabled, ready;
};

RCPT_MUST_CHECK bool webhooks_start(struct webhooks *webhooks, struct host_context *context,
                                    struct measure *measure, struct rcpt_error *error);
/* Why the instance is not ready because of it; NULL: it is. */
const char *webhooks_reason(const struct webhooks *webhooks);
/* Begins the drain; host_check_drain() tells its end. */
void webhooks_drain(struct webhooks *webhooks);
void webhooks_apply_config(struct webhooks *webhooks);
/* Reads the certificates again, also where a reload is refused. */
void webhooks_reload(struct webhooks *webhooks);

#endif

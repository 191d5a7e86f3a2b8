/* Metrics, health and status over HTTP. Private to the daemon. */
#ifndef RECEIPTD_OPERATE_ENDPOINTS_H
#define RECEIPTD_OPERATE_ENDPOINTS_H

#include "http/http.h"
#include "status.h"

struct endpoints;

struct endpoints_settings {
    struct app_context *context;
    struct measure *measure;
    const struct status *status;
    rcpt_http_handler begin_runs; /* POST /runs */
    void *runs;                   /* its context */
};

/* Listens at http.listen; an address that is taken is tried again. */
struct endpoints *endpoints_new(const struct endpoints_settings *settings);
/* Reads the certificate again; false with the reason. */
RCPT_MUST_CHECK bool endpoints_reload(struct endpoints *endpoints, struct rcpt_error *error);
void endpoints_close(struct endpoints *endpoints); /* app_closed says when */
void endpoints_free(struct endpoints *endpoints);

#endif

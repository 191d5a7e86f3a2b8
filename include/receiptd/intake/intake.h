/* The intake: webhooks of gateways in, records in Kafka out, the answer after the acknowledgement.
 *
 * A module on its caller's loop: `receiptd intake` gives it one of its own, `receiptd run` shares
 * its. Call from the loop's thread only.
 */
#ifndef RECEIPTD_INTAKE_INTAKE_H
#define RECEIPTD_INTAKE_INTAKE_H

#include <uv.h>

#include "receiptd/config/config.h"
#include "receiptd/gateways/stats.h"
#include "receiptd/http/http.h"
#include "receiptd/trace/tracer.h"

struct rcpt_intake;

struct rcpt_intake_settings {
    uv_loop_t *loop;
    const struct rcpt_config *config; /* borrowed for life */
    const char *instance;             /* for application_name; borrowed for life */
    struct rcpt_tracer *tracer;       /* borrowed for life; NULL: nothing is traced */
    void *context;
    /* Requests are taken (reason NULL), or why they are answered with 503. Transitions. */
    void (*on_ready)(void *context, bool ready, const char *reason);
    void (*on_closed)(void *context); /* after a drain, or a close; the memory is freed */
};

/* Starts listening. NULL: an account, a file or the address is unusable (FATAL); nothing is left on
 * the loop once it has run. */
RCPT_MUST_CHECK struct rcpt_intake *rcpt_intake_start(const struct rcpt_intake_settings *settings,
                                                      struct rcpt_error *error);
/* Takes no new connections, answers open requests, then closes everything: on_closed. */
void rcpt_intake_drain(struct rcpt_intake *intake);
/* Reads the certificate again. */
void rcpt_intake_reload(struct rcpt_intake *intake);
/* After a reload has changed the configuration: new connections take the new dsn, the next requests
 * the new accounts; requests that have arrived go on. */
void rcpt_intake_apply_config(struct rcpt_intake *intake);

/* ---- figures ---- */
size_t rcpt_intake_account_count(const struct rcpt_intake *intake);
const struct rcpt_gateway_stats *rcpt_intake_account_stats(const struct rcpt_intake *intake,
                                                           size_t index);
void rcpt_intake_totals(const struct rcpt_intake *intake, struct rcpt_intake_totals *totals);
const struct rcpt_http_stats *rcpt_intake_http_stats(const struct rcpt_intake *intake);

#endif

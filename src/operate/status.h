/* The state of the daemon for its operators: readiness with reasons, the whole, lanes, one line for
 * the service manager, and the periodic line of the log. */
#ifndef RECEIPTD_OPERATE_STATUS_H
#define RECEIPTD_OPERATE_STATUS_H

#include <stdio.h>

#include "actions/actions.h"
#include "base/json.h"
#include "measure.h"
#include "supervisor.h"

struct status;

struct status *status_new(struct app_context *context, struct receipts *receipts,
                          const struct measure *measure, const struct actions *actions);
void status_free(struct status *status);

/* {"ready":…,"reasons":[…]} */
void status_write_readiness(const struct status *status, struct rcpt_json *json);
/* Everything, for people and their tools; secrets are no part of it. */
void status_write(const struct status *status, struct rcpt_json *json);
void status_print(const struct status *status, FILE *out);
void status_write_lanes(const struct status *status, struct rcpt_json *json);
void status_print_lanes(const struct status *status, FILE *out);
/* One line with rate and lag, or the first reason why it is not ready; the rate is that since the
 * last call. The context is a struct status. */
void status_describe(void *context, char text[SUPERVISOR_STATUS_BYTES]);

/* A line of the log with what happened since the last one: now, and every log.stats_interval until
 * the end; apply_config takes over another interval. */
void status_log_counts(struct status *status);
void status_apply_config(struct status *status);
/* Readers see this instance no more: when it begins to stop, before the receipts do. Settled, when
 * that is done. */
void status_leave(struct status *status);
bool status_is_settled(const struct status *status);
void status_close(struct status *status); /* its timer; app_closed says when */

#endif

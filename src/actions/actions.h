/* Actions in the running daemon: what happens after transitions, by pipelines. What they do is
 * private to actions_internal.h; this is what the rest of the daemon sees. */
#ifndef RECEIPTD_ACTIONS_ACTIONS_H
#define RECEIPTD_ACTIONS_ACTIONS_H

#include "http/http.h"
#include "receipts/receipts.h"

struct actions;

/* Subscribes to transitions. Before receipts_start. */
struct actions *actions_new(struct app_context *context, struct receipts *receipts);
/* Nothing without pipelines. */
RCPT_MUST_CHECK bool actions_start(struct actions *module, struct rcpt_error *error);
/* Claims nothing more; calls under way come to their end, then app_check_drain. */
void actions_stop(struct actions *module);
/* Another set of them takes over, with what the configuration says now. */
RCPT_MUST_CHECK bool actions_reload(struct actions *module, struct rcpt_error *error);
/* Endpoints that were disabled are tried again. */
void actions_enable(struct actions *module);
bool actions_are_settled(const struct actions *module);
void actions_free(struct actions *module);
/* POST /runs/PIPELINE; the context is a struct actions. */
void actions_on_request(void *context, struct rcpt_http_request *request);

#endif

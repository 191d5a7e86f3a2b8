/* Actions of the running daemon: pipelines start them after transitions. This header is for the
 * rest of the daemon; internal.h is private to the folder. */
#ifndef RECEIPTD_ACTIONS_ACTIONS_H
#define RECEIPTD_ACTIONS_ACTIONS_H

#include <stdio.h>

#include "receiptd/base/json.h"
#include "receiptd/http/http.h"
#include "receiptd/receipts/receipts.h"

struct actions;

/* Whether pipelines subscribe to transitions with this configuration. */
bool actions_want(const struct rcpt_config *config);
/* Subscribes to transitions. Before receipts_start. */
struct actions *actions_new(struct host_context *context, struct receipts *receipts);
/* Does nothing without pipelines. */
RCPT_MUST_CHECK bool actions_start(struct actions *module, struct rcpt_error *error);
/* Stops claiming; calls in flight end, then it calls host_check_drain. */
void actions_stop(struct actions *module);
/* A new set of actions takes over, made from the present configuration. */
RCPT_MUST_CHECK bool actions_reload(struct actions *module, struct rcpt_error *error);
/* After a reload that changes no key of actions: new connections use the new postgres.dsn and
 * the new credentials of Kafka, and endpoints that were disabled are tried again. */
void actions_apply_config(struct actions *module);
/* Why actions do not work; NULL: they do, or there are none. */
const char *actions_reason(const struct actions *module);
bool actions_are_settled(const struct actions *module);
void actions_free(struct actions *module);
/* Writes the state of actions, with the breakers of endpoints; null, or nothing, without pipelines.
 */
void actions_write(const struct actions *module, struct rcpt_json *json);
void actions_print(const struct actions *module, FILE *out);
/* POST /runs/PIPELINE; the context is a struct actions. */
void actions_on_request(void *context, struct rcpt_http_request *request);

#endif

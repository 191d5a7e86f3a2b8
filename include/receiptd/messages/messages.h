/* Messages that the platform announces on topics (kafka.message_topics): they go into the inbox in
 * the transaction that moves the positions, and a tombstone deletes them. All functions take NULL,
 * which stands for no such topics. Called by run.c and reload.c, from the loop's thread.
 */
#ifndef RECEIPTD_MESSAGES_MESSAGES_H
#define RECEIPTD_MESSAGES_MESSAGES_H

#include "receiptd/receipts/receipts.h"

struct messages;

/* NULL: the configuration names no topic of messages. Parked receipts of `receipts` are looked at
 * soon after their message was announced. */
struct messages *messages_new(struct host_context *context, struct receipts *receipts);
/* Connects to PostgreSQL and joins the group. */
void messages_start(struct messages *messages);
/* Takes nothing more in and leaves the group; host_check_drain() when that is done. */
void messages_stop(struct messages *messages);
bool messages_are_settled(const struct messages *messages);
/* After that: closes the connection; host_closed() when that is done. */
void messages_close(struct messages *messages);
void messages_free(struct messages *messages);
void messages_apply_config(struct messages *messages);
/* Why nothing is read; NULL: it is. */
const char *messages_reason(const struct messages *messages);

#endif

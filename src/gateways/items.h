/* From a document to its items: the paths of an adapter, followed in the JSON of a request. */
#ifndef RECEIPTD_GATEWAYS_ITEMS_H
#define RECEIPTD_GATEWAYS_ITEMS_H

#include "gateway.h"

typedef void rcpt_items_visitor(struct rcpt_reading *reading, const struct rcpt_node *node);

/* Calls `take` for each item that the gateway's paths lead to, and `miss` for each element of a
 * list, or for the whole document, from which they lead to none. The source's level is that of the
 * node during the call. One of the two calls covers every element of every list on the way; none is
 * skipped. */
void rcpt_items_read(struct rcpt_reading *reading, rcpt_items_visitor *take,
                     rcpt_items_visitor *miss);

#endif

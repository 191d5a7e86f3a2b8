/* All partitions of all topics, on any instance, for status.c: as JSON and as lines for people. */
#ifndef RECEIPTD_OPERATE_PLACES_VIEW_H
#define RECEIPTD_OPERATE_PLACES_VIEW_H

#include <stdio.h>

#include "receiptd/base/json.h"
#include "receiptd/host/context.h"

#define PLACES_LAG_BYTES 40u

/* The member "topics" of /statusz. */
void places_write(const struct host_context *context, struct rcpt_json *json);
/* One line for each reader. */
void places_print(const struct host_context *context, FILE *out);
/* "12 records"; an unknown lag is never shown as 0. */
const char *places_describe_lag(int64_t lag, char out[PLACES_LAG_BYTES]);

#endif

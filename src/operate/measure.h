/* What happens becomes metrics: some of it when it happens, the rest when somebody asks for the
 * page. Private to the daemon. */
#ifndef RECEIPTD_OPERATE_MEASURE_H
#define RECEIPTD_OPERATE_MEASURE_H

#include "receipts/receipts.h"

struct measure;

/* Somebody who brings metrics of its own up to date before a page is written. */
struct measure_source {
    void (*collect)(void *context, struct rcpt_metrics *metrics);
    void *context;
    struct measure_source *next;
};

/* Observes the lanes from now on, and registers a ticker: it comes first. */
struct measure *measure_new(struct app_context *context, struct receipts *receipts);
void measure_free(struct measure *measure);
/* Borrowed for good. */
void measure_add_source(struct measure *measure, struct measure_source *source);
/* Brings every metric up to date and writes the page; the caller frees it. */
char *measure_page(struct measure *measure, enum rcpt_metrics_format format, size_t *size);
/* Of this process alone: the loop turns, and what it can do it does. An outage of Kafka or
 * PostgreSQL is no reason to be restarted. */
bool measure_turns(const struct measure *measure);
bool measure_works(const struct measure *measure);
/* How old the oldest receipt is that is not applied, over all partitions assigned. */
double measure_lag_seconds(const struct measure *measure);
int64_t measure_last_commit_ms(const struct measure *measure); /* since 1970; 0: never */

#endif

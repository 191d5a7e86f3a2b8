/* Metrics of the daemon: some are counted when something happens, the rest are read when the page
 * is asked for. */
#ifndef RECEIPTD_OPERATE_MEASURE_H
#define RECEIPTD_OPERATE_MEASURE_H

#include "receipts/receipts.h"

struct measure;

/* A module that brings its metrics up to date before a page is written. */
struct measure_source {
    void (*collect)(void *context, struct rcpt_metrics *metrics);
    void *context;
    struct measure_source *next;
};

/* Observes the lanes and registers a ticker. Call before other modules register theirs. */
struct measure *measure_new(struct app_context *context, struct receipts *receipts);
void measure_free(struct measure *measure);
/* Borrowed for good. */
void measure_add_source(struct measure *measure, struct measure_source *source);
/* Brings every metric up to date and writes the page; the caller frees it. */
char *measure_page(struct measure *measure, enum rcpt_metrics_format format, size_t *size);
/* Whether the loop turns, and whether work is done that can be done. An outage of Kafka or
 * PostgreSQL is no fault of the process. */
bool measure_turns(const struct measure *measure);
bool measure_works(const struct measure *measure);
/* Age of the oldest receipt that is not applied, over all assigned partitions. */
double measure_lag_seconds(const struct measure *measure);
int64_t measure_last_commit_ms(const struct measure *measure); /* since 1970; 0: never */

#endif

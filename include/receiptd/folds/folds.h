/* Folds of the running daemon: bursts of changes become one publication. This header is for the
 * rest of the daemon; internal.h is private to the folder. */
#ifndef RECEIPTD_FOLDS_FOLDS_H
#define RECEIPTD_FOLDS_FOLDS_H

#include "receiptd/receipts/receipts.h"

struct folds;

/* Adds the folds' wants of transitions by this configuration (transition_subscriber.want). */
void folds_want(const struct rcpt_config *config, struct transition_wants *wants);
/* The rules for sql/fold/rules.sql: JSON; the caller frees it. */
char *folds_rules_text(const struct rcpt_config *config);
/* Subscribes to transitions, and asks over the control connection whether earlier rules have left
 * work. Call before receipts_start. */
struct folds *folds_new(struct host_context *context, struct receipts *receipts);
void folds_start(struct folds *folds); /* nothing without a rule in the configuration */
/* After a reload. */
void folds_apply_config(struct folds *folds, bool rules_changed, bool stream_changed);
struct folds_stream_view {
    double lag_seconds;          /* of the oldest row that waits; 0: none does */
    uint64_t published, refused; /* by this instance: records; transactions of Kafka */
};
/* False: there is no stream. */
bool folds_view_stream(const struct folds *folds, struct folds_stream_view *view);
/* Why folds do not work; NULL: they do, or there are none. */
const char *folds_reason(const struct folds *folds);
void folds_stop(struct folds *folds); /* what is in flight ends, then host_check_drain */
bool folds_are_settled(const struct folds *folds);
void folds_close(struct folds *folds); /* host_closed says when */
void folds_free(struct folds *folds);

#endif

/* The transactions of `receiptd expire`, which are those of lanes without a fence. A step finds
 * overdue messages, which go through decide, the counting in C and flight 2. It has a connection of
 * its own, and waits for it. For commands, one thread. */
#ifndef RECEIPTD_RECEIPTS_EXPIRER_H
#define RECEIPTD_RECEIPTS_EXPIRER_H

#include "receiptd/config/config.h"
#include "receiptd/receipts/receipts.h"

struct expirer;

struct expirer_settings { /* all of it is borrowed for life */
    const struct rcpt_config *config;
    const struct transition_wants *wants; /* of the subscribers, as lanes have them */
    const char *dsn, *command;            /* as of struct rcpt_session_settings */
    const char *rules;                    /* rcpt_config_expiry_rules() */
};

/* Connects with the first step. */
struct expirer *expirer_new(const struct expirer_settings *settings);
void expirer_free(struct expirer *expirer);
/* One transaction. candidates: sql/expiry/candidates, bound to a part of the inbox; first and end:
 * a range of its pages, as tid. Returns the messages that expired; -1: nothing was kept, and
 * `error` is set for a command. */
RCPT_MUST_CHECK int64_t expirer_step(struct expirer *expirer, const char *candidates,
                                     const char *first, const char *end, struct rcpt_error *error);

#endif

/* Why a message failed, in a few words that hold for all gateways. The list is part of the
 * interface: `reason_class` of the record, and the counts by class. A class is added at the end,
 * and none changes its meaning. */
#ifndef RECEIPTD_GATEWAYS_REASON_H
#define RECEIPTD_GATEWAYS_REASON_H

#include <stddef.h>

#include "receiptd/base/text.h"

/* Name, and what it says for docs/gateways.md. */
#define RCPT_REASON_CLASSES(X)                                                                     \
    X(UNKNOWN, "unknown")     /* no code, or one that no table knows */                            \
    X(ABSENT, "absent")       /* the recipient cannot be reached now: off, busy, mailbox full */   \
    X(INVALID, "invalid")     /* there is no such recipient */                                     \
    X(BLOCKED, "blocked")     /* the operator, the mailbox or the gateway refuses it */            \
    X(OPTED_OUT, "opted_out") /* the recipient does not want it */                                 \
    X(SENDER, "sender")       /* the sender is not registered, or was suspended */                 \
    X(CONTENT, "content")     /* the message itself is not acceptable */                           \
    X(SPAM, "spam")           /* taken for spam */                                                 \
    X(CREDIT, "credit")       /* not paid for */                                                   \
    X(NETWORK, "network")     /* no route, or a fault on the way */                                \
    X(EXPIRED, "expired")     /* its time was over */

enum rcpt_reason_class {
#define RCPT_REASON_DECLARE(name, text) RCPT_REASON_##name,
    RCPT_REASON_CLASSES(RCPT_REASON_DECLARE)
#undef RCPT_REASON_DECLARE
        RCPT_REASON_CLASS__COUNT
};

/* A row of an adapter's table. */
struct rcpt_reason {
    /* a code or word of the error, or the gateway's word for the status; * at the end: any */
    const char *code;
    enum rcpt_reason_class class;
};

/* The class of a failure with the codes and words `said`: by the adapter's table, by the enhanced
 * status code of an e-mail (RFC 3463), or by the ladder's status. NULL: the status is no failure.
 */
const char *rcpt_reason_class_of(const struct rcpt_reason *reasons, size_t count,
                                 const struct rcpt_text *said, size_t said_count,
                                 struct rcpt_text word, const char *status);

/* The first enhanced status code of a failure in a text: "5.7.1"; size 0: there is none. */
struct rcpt_text rcpt_reason_enhanced(struct rcpt_text text);

#endif

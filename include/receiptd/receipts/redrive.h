/* Dead letters that are valid by now become parked receipts. Blocking: for a command, or for a
 * worker thread with a session of its own. It does not touch the daemon's state. */
#ifndef RECEIPTD_RECEIPTS_REDRIVE_H
#define RECEIPTD_RECEIPTS_REDRIVE_H

#include "receiptd/core/ladder.h"
#include "receiptd/core/machine.h"
#include "receiptd/gateways/topics.h"
#include "receiptd/postgres/session.h"

#define REDRIVE_MOST_TOPIC 249u /* Kafka's limit */

struct redrive_key { /* of a letter, as parameters of statements */
    char topic[REDRIVE_MOST_TOPIC + 1];
    char partition[12], offset[24], index[12];
};

/* "topic/partition/offset/index", as sql/serve/dead_letters lists them. False: it is none. */
RCPT_MUST_CHECK bool redrive_key_read(const char *text, struct redrive_key *key);
#define REDRIVE_KEY_TEXT (REDRIVE_MOST_TOPIC + 56)
void redrive_key_write(const struct redrive_key *key, char text[REDRIVE_KEY_TEXT]);

struct redrive_settings {
    struct rcpt_session *session;
    const struct rcpt_ladder *ladder;
    const struct rcpt_machine_rules *machines;
    struct rcpt_gateway_topics *topics; /* whose letters are not in our form; NULL: none */
    unsigned lanes;
    const char *reason;               /* letters with this reason; NULL: with any */
    const struct redrive_key *chosen; /* these letters, whatever their reason; NULL: all */
    size_t chosen_count;
    const struct redrive_key *after; /* letters behind this one; NULL: from the first */
    int64_t limit;                   /* ends when so many were moved */
    void *context;
    /* Called before each page: false ends the redrive. NULL: always goes on. */
    bool (*goes_on)(void *context);
    /* Called for a letter that stays, or does not exist. `why` is the name of a reason, "cut",
     * "gone" or "no_receipt". NULL: not called. */
    void (*on_left)(void *context, const struct redrive_key *key, const char *why,
                    const char *detail);
};

struct redrive_counts {
    int64_t moved;    /* letters */
    int64_t receipts; /* of them, parked */
    int64_t left;     /* letters that are not valid today either */
    int64_t cut;      /* of these, letters that hold only the first bytes of the refused payload */
    bool whole;       /* no letter is behind `last` */
    struct redrive_key last;
};

/* Goes through the letters once, in the order of their positions. One synchronous transaction per
 * page: the letters in `counts` are moved durably, also when it returns false with the error. If
 * two redrives run at the same time, each letter is moved by one of the two. */
RCPT_MUST_CHECK bool redrive_letters(const struct redrive_settings *settings,
                                     struct redrive_counts *counts, struct rcpt_error *error);

#endif

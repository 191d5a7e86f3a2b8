/* The fates of a batch's messages: the answers of sql/lane/decide, until all of them are final.
 *
 * A message that another transaction has changed meanwhile is stale: it is decided again, in the
 * same transaction. Private to src/postgres.
 */
#ifndef RECEIPTD_POSTGRES_DECIDED_H
#define RECEIPTD_POSTGRES_DECIDED_H

#include "receiptd/core/count.h"
#include "receiptd/core/keys.h"
#include "receiptd/core/rules/rules.h"
#include "receiptd/postgres/connection.h"

enum rcpt_fate { /* of a message; the larger one counts where its rows differ */
                 RCPT_FATE_NONE,
                 RCPT_FATE_ABSENT,
                 RCPT_FATE_DELETED,
                 RCPT_FATE_ERASED,
                 RCPT_FATE_HELD,    /* it is there, and the wake decides */
                 RCPT_FATE_REFUSED, /* it is of another organisation than the receipts name */
                 RCPT_FATE_KNOWN,
                 RCPT_FATE_STALE,
};

struct rcpt_decided_message {
    enum rcpt_fate fate;
    struct rcpt_text owner; /* REFUSED: the message's organisation; at NULL: none */
    int16_t was, is;        /* KNOWN: status before and after … */
    uint32_t gained;        /* … and flags that are new */
};

struct rcpt_decided {
    const struct rcpt_batch *batch;
    struct rcpt_arena arena;
    struct rcpt_decided_message *messages; /* of the batch */
    struct rcpt_count_row *rows;           /* of known messages */
    uint32_t row_count, row_capacity;
    size_t column_count; /* that rules want of a row */
    uint32_t *stale;     /* messages to be decided again */
    uint32_t stale_count;
};

void rcpt_decided_begin(struct rcpt_decided *decided, const struct rcpt_batch *batch,
                        const struct rcpt_rules *rules);
void rcpt_decided_end(struct rcpt_decided *decided);
/* Takes an answer to a question about the stale messages, or at first about all. Afterwards `stale`
 * lists the messages to ask for next. Texts are borrowed from the answer unless a message is stale.
 */
void rcpt_decided_take(struct rcpt_decided *decided, const struct rcpt_pg_rows *answer);

struct rcpt_decided_counters { /* of a connection */
    struct rcpt_count *count;
    struct rcpt_rules *rules;
    struct rcpt_keys *keys; /* NULL: copies are not looked for. Else PostgreSQL's word of each key
                               has been told */
};

/* Counts once no message is stale. Afterwards the results of the counters hold, and `keys` knows
 * which keys have to be removed again. now_us, names: as rcpt_rules_begin(). */
void rcpt_decided_count(const struct rcpt_decided *decided,
                        const struct rcpt_decided_counters *counters,
                        const struct rcpt_ladder *ladder, int64_t now_us,
                        const struct rcpt_lane_names *names);

#endif

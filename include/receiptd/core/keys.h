/* The keys of a batch's receipts: they recognise copies of receipts that came before.
 *
 * Pure. PostgreSQL stores keys and says which were there. Copies inside of the batch are found
 * here: the earliest one counts, the others are echoes. Used between the flights of a lane's
 * transaction.
 */
#ifndef RECEIPTD_CORE_KEYS_H
#define RECEIPTD_CORE_KEYS_H

#include "receiptd/core/batch.h"

struct rcpt_keys;

/* Sorted by day, message and event, which is the order in which all transactions insert them;
 * each is there once. */
struct rcpt_key {
    int32_t day; /* of the receipt's time, since 1970 */
    int64_t message, event;
    int64_t at_us;  /* of the earliest of its receipts, by whose time the window is measured … */
    uint32_t first; /* … which is this one of the batch */
};

struct rcpt_keys *rcpt_keys_new(void);
void rcpt_keys_free(struct rcpt_keys *keys);

/* Reads the batch, which is borrowed until the next begin. Receipts without a key are none. */
void rcpt_keys_begin(struct rcpt_keys *keys, const struct rcpt_batch *batch);
const struct rcpt_key *rcpt_keys_list(const struct rcpt_keys *keys, uint32_t *count);

/* PostgreSQL's answer for the key at this place (from 0) of the list. A key without an answer was
 * stored: its first receipt counts, further ones are echoes. */
enum rcpt_key_fate {
    RCPT_KEY_STORED,
    RCPT_KEY_THERE,   /* the key was stored before: all of its receipts are echoes */
    RCPT_KEY_OUTSIDE, /* the key lies outside the window: all of its receipts count */
};
void rcpt_keys_tell(struct rcpt_keys *keys, uint32_t place, enum rcpt_key_fate fate);

/* Whether this receipt of the batch came before. */
bool rcpt_keys_is_echo(const struct rcpt_keys *keys, uint32_t event);

/* A message of the batch is unknown: its receipts have not been counted, so the keys that were
 * stored for them are removed again. Call in any order. */
void rcpt_keys_missed(struct rcpt_keys *keys, uint32_t message);
/* The keys to remove, in the order of the list. */
const struct rcpt_key *rcpt_keys_undone(struct rcpt_keys *keys, uint32_t *count);

#endif

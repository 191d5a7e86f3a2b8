/* Transitions that the publisher of folds has read and not yet written to groups of the database:
 * their sums, and when each group was last touched. Pure; times in microseconds since 1970 by the
 * database's clock.
 *
 * The database applies the rules to transitions (sql/fold/gather.sql). Here they are summed by
 * *entry*: organisation, campaign, status before and after, new flags, columns of the inbox. The
 * database answers the first flush of an entry with its groups; until then the entry counts as idle
 * as soon as the shortest window allows.
 */
#ifndef RECEIPTD_FOLDS_PENDING_H
#define RECEIPTD_FOLDS_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "receiptd/base/text.h"

struct rcpt_fold_pending;

struct rcpt_fold_transition {
    struct rcpt_text org, campaign;
    struct rcpt_text columns, link; /* at NULL: none */
    int16_t old, new;
    int32_t gained;
    int64_t count;
    int64_t first_us, last_us;
    int64_t first_row, last_row; /* ids in fold_event: the order of a message's transitions */
};

struct rcpt_fold_pending *rcpt_fold_pending_new(void);
void rcpt_fold_pending_free(struct rcpt_fold_pending *pending); /* NULL is fine */

/* Adds the transition to the sum of its kind; copies it. */
void rcpt_fold_pending_add(struct rcpt_fold_pending *pending,
                           const struct rcpt_fold_transition *transition);

int64_t rcpt_fold_pending_largest(const struct rcpt_fold_pending *pending); /* sum of an entry */
size_t rcpt_fold_pending_bytes(const struct rcpt_fold_pending *pending);
int64_t rcpt_fold_pending_since_us(const struct rcpt_fold_pending *pending); /* INT64_MAX: no sum */

enum rcpt_fold_idleness {
    RCPT_FOLD_ALL_BUSY,
    RCPT_FOLD_KNOWN_IDLE,   /* a group with a sum has had no transition for its window */
    RCPT_FOLD_UNKNOWN_IDLE, /* an entry whose groups are unknown, for the least window */
};

enum rcpt_fold_idleness rcpt_fold_pending_idleness(struct rcpt_fold_pending *pending,
                                                   int64_t now_us, int64_t least_window_us);

/* Entries to be flushed, those whose groups are known first, and the others, which stay. Borrowed
 * until the next call that is not const. */
struct rcpt_fold_list {
    const struct rcpt_fold_transition *const *entries, *const *others;
    size_t count, known, other_count;
};

/* Lists all entries with a sum. */
struct rcpt_fold_list rcpt_fold_pending_list_all(struct rcpt_fold_pending *pending);
/* Lists all entries of the groups that are idle or selected, all entries of the other groups of
 * these, and so on. So the database knows everything of a group, or nothing new. Also lists entries
 * whose groups are unknown, which may belong to a selected one; none of them may be idle. */
struct rcpt_fold_list rcpt_fold_pending_list_idle(struct rcpt_fold_pending *pending,
                                                  int64_t now_us);
void rcpt_fold_pending_select(struct rcpt_fold_pending *pending, struct rcpt_text rule,
                              struct rcpt_text key); /* in the next list */

/* Entries whose groups are unknown, to ask for these: nothing is flushed. */
struct rcpt_fold_list rcpt_fold_pending_list_unknown(struct rcpt_fold_pending *pending);

/* The sums of the last list are in groups now; nothing may have been added since. Entries stay, as
 * their groups are known. */
void rcpt_fold_pending_flushed(struct rcpt_fold_pending *pending);
/* After _flushed(), or for a list that is only asked about: entry `index` belongs to this group,
 * which has this window. */
void rcpt_fold_pending_learn(struct rcpt_fold_pending *pending, size_t index, struct rcpt_text rule,
                             struct rcpt_text key, int64_t window_us);
/* Call after the last _learn() of a list: entries without a group are now known to belong to
 * none. */
void rcpt_fold_pending_learnt(struct rcpt_fold_pending *pending);

struct rcpt_fold_recency {
    int64_t last_us; /* of its last transition; INT64_MIN: nothing is known of it */
    bool has_sum;    /* that is not in the database yet */
};

struct rcpt_fold_recency rcpt_fold_pending_recency(struct rcpt_fold_pending *pending,
                                                   struct rcpt_text rule, struct rcpt_text key);

/* Rules have changed: no entry's groups are known. Sums stay. */
void rcpt_fold_pending_unlearn(struct rcpt_fold_pending *pending);
void rcpt_fold_pending_forget(struct rcpt_fold_pending *pending); /* everything */

#endif

/* Transitions that the publisher of folds has read and that are in no group of the database yet:
 * their sums, and how lately each group was touched. Pure; times in microseconds since 1970 by the
 * database's clock.
 *
 * What a transition means to the rules is the database's business (sql/fold/gather.sql). What is
 * told apart here is an *entry*: organisation, campaign, status before and after, new flags,
 * columns of the inbox. Which groups an entry belongs to is learnt from the answer when its first
 * sum was handed over; until then it is taken for one that nobody may be waiting for: as quiet as
 * the shortest window allows.
 */
#ifndef RECEIPTD_FOLDS_PENDING_H
#define RECEIPTD_FOLDS_PENDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

struct rcpt_fold_pending;

struct rcpt_fold_transition {
    struct rcpt_text org, campaign;
    struct rcpt_text columns, link; /* at NULL: none */
    int16_t old, new;
    int32_t gained;
    int64_t count;
    int64_t first_us, last_us;
};

struct rcpt_fold_pending *rcpt_fold_pending_new(void);
void rcpt_fold_pending_free(struct rcpt_fold_pending *pending); /* NULL is fine */

/* One that is added to those of its kind; copied. */
void rcpt_fold_pending_add(struct rcpt_fold_pending *pending,
                           const struct rcpt_fold_transition *transition);

size_t rcpt_fold_pending_count(const struct rcpt_fold_pending *pending);    /* entries with a sum */
int64_t rcpt_fold_pending_largest(const struct rcpt_fold_pending *pending); /* sum of an entry */
size_t rcpt_fold_pending_bytes(const struct rcpt_fold_pending *pending);
int64_t rcpt_fold_pending_since_us(const struct rcpt_fold_pending *pending); /* INT64_MAX: no sum */

enum rcpt_fold_quiet {
    RCPT_FOLD_ALL_BUSY,
    RCPT_FOLD_QUIET,         /* a group with a sum has had no transition for its window */
    RCPT_FOLD_UNKNOWN_QUIET, /* an entry whose groups are unknown, for the least window */
};

enum rcpt_fold_quiet rcpt_fold_pending_quiet(struct rcpt_fold_pending *pending, int64_t now_us,
                                             int64_t least_window_us);

/* What is to be handed over, those entries first whose groups are known, and what stays. Borrowed
 * until the next call that is not const. */
struct rcpt_fold_list {
    const struct rcpt_fold_transition *const *entries, *const *others;
    size_t count, known, other_count;
};

/* Everything. */
struct rcpt_fold_list rcpt_fold_pending_list_all(struct rcpt_fold_pending *pending);
/* Of the groups that are quiet or wanted all entries, of these all groups, and so on: the database
 * knows everything of a group then, or nothing new. And the entries whose groups are unknown, for
 * they may belong to a wanted one; none of them must be quiet. */
struct rcpt_fold_list rcpt_fold_pending_list_quiet(struct rcpt_fold_pending *pending,
                                                   int64_t now_us);
void rcpt_fold_pending_want(struct rcpt_fold_pending *pending, struct rcpt_text rule,
                            struct rcpt_text key); /* in the next list */

/* Entries whose groups are unknown, to ask which these are: nothing is handed over. */
struct rcpt_fold_list rcpt_fold_pending_list_unknown(struct rcpt_fold_pending *pending);

/* The sums of the last list are in groups now; nothing may have been added since. Entries stay, for
 * what is known of them. */
void rcpt_fold_pending_flushed(struct rcpt_fold_pending *pending);
/* Behind it, or of a list that is only asked about: entry `index` belongs to this group, whose
 * window it is. */
void rcpt_fold_pending_learn(struct rcpt_fold_pending *pending, size_t index, struct rcpt_text rule,
                             struct rcpt_text key, int64_t window_us);
/* Behind all of these: the groups of all entries of the list are known, be it none. */
void rcpt_fold_pending_learnt(struct rcpt_fold_pending *pending);

struct rcpt_fold_heat {
    int64_t last_us; /* of its last transition; INT64_MIN: nothing is known of it */
    bool has_sum;    /* which is not in the database yet */
};

struct rcpt_fold_heat rcpt_fold_pending_heat(struct rcpt_fold_pending *pending,
                                             struct rcpt_text rule, struct rcpt_text key);

/* Rules have changed: no entry's groups are known. Sums stay. */
void rcpt_fold_pending_unlearn(struct rcpt_fold_pending *pending);
void rcpt_fold_pending_forget(struct rcpt_fold_pending *pending); /* everything */

#endif

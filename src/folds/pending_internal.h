/* Shared by pending.c (entries, sums, idleness) and pending_groups.c (lists to be flushed, groups
 * of entries). */
#ifndef RECEIPTD_FOLDS_PENDING_INTERNAL_H
#define RECEIPTD_FOLDS_PENDING_INTERNAL_H

#include "pending.h"
#include "receiptd/base/arena.h"
#include "receiptd/base/error.h"
#include "receiptd/base/table.h"

struct pending_group {
    struct pending_group *next;
    struct rcpt_text rule, key;
    int64_t window_us, last_us;
    bool has_sum, selected;
};

struct pending_membership {
    struct pending_membership *next;
    struct pending_group *group;
};

struct pending_entry {
    struct rcpt_fold_transition sum; /* count 0: none */
    struct pending_entry *next;
    struct pending_membership *groups; /* as far as they are known */
    int64_t window_us;                 /* the shortest of theirs */
    uint64_t learnt;                   /* the generation of rules that they are of */
    bool listed;
};

struct rcpt_fold_pending {
    struct rcpt_arena arena;
    struct rcpt_table entries, groups;
    struct pending_entry *first_entry;
    struct pending_group *first_group;
    const struct rcpt_fold_transition **list; /* what goes from the front, what stays behind it */
    size_t list_count, list_capacity;
    size_t count, bytes;
    int64_t largest; /* at least as large as any sum */
    int64_t since_us;
    int64_t busy_until_us; /* nothing is idle before; INT64_MIN: not known */
    int64_t least_window_us;
    uint64_t generation;
    bool swept; /* groups know what their entries know */
};

/* Memory of the arena; counts its bytes. */
void *folds_pending_take(struct rcpt_fold_pending *pending, size_t bytes);
struct rcpt_text folds_pending_keep(struct rcpt_fold_pending *pending, struct rcpt_text text);
bool folds_pending_is_known(const struct rcpt_fold_pending *pending,
                            const struct pending_entry *entry);
/* Groups take over the last transitions of their entries, and whether one has a sum. */
void folds_pending_sweep(struct rcpt_fold_pending *pending);

static inline int64_t folds_pending_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif

/* The groups of the entries, as the database has answered, and the lists of entries to be flushed.
 * The sums of a group are flushed together or not at all, so that the database knows everything of
 * it or nothing new. Called by gather.c and flush.c. */
#include "pending_internal.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/core/hash.h"

#define NEVER_US (INT64_MAX / 2) /* the window of an entry that belongs to no group */

/* ---- lists ---- */

static bool is_idle(const struct pending_group *group, int64_t now_us)
{
    return group->has_sum && group->last_us + group->window_us <= now_us;
}

/* The order within a list: entries to be flushed, known groups first, then those that stay. */
enum part { KNOWN, UNKNOWN, STAYS };

static enum part part_of(const struct rcpt_fold_pending *pending, const struct pending_entry *entry)
{
    if (!entry->listed)
        return STAYS;
    return folds_pending_is_known(pending, entry) ? KNOWN : UNKNOWN;
}

/* Entries without a sum are in no list. */
static size_t put_part(struct rcpt_fold_pending *pending, size_t at, enum part part)
{
    for (struct pending_entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        if (entry->sum.count > 0 && part_of(pending, entry) == part)
            pending->list[at++] = &entry->sum;
    return at;
}

/* The list holds every entry with a sum, in three parts. */
static struct rcpt_fold_list make_list(struct rcpt_fold_pending *pending)
{
    if (pending->list_capacity < pending->count || pending->list == NULL) {
        pending->list_capacity = 2 * pending->count + 1;
        free(pending->list);
        pending->list = rcpt_calloc(pending->list_capacity, sizeof(*pending->list));
    }
    size_t known = put_part(pending, 0, KNOWN);
    pending->list_count = put_part(pending, known, UNKNOWN);
    size_t all = put_part(pending, pending->list_count, STAYS);
    RCPT_ASSERT(all == pending->count);
    return (struct rcpt_fold_list){.entries = pending->list,
                                   .others = pending->list + pending->list_count,
                                   .count = pending->list_count,
                                   .known = known,
                                   .other_count = all - pending->list_count};
}

struct rcpt_fold_list rcpt_fold_pending_list_all(struct rcpt_fold_pending *pending)
{
    for (struct pending_entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        entry->listed = true;
    return make_list(pending);
}

struct rcpt_fold_list rcpt_fold_pending_list_unknown(struct rcpt_fold_pending *pending)
{
    for (struct pending_entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        entry->listed = !folds_pending_is_known(pending, entry);
    return make_list(pending);
}

/* One selected group is enough: an entry is flushed as a whole. */
static bool is_selected(const struct pending_entry *entry)
{
    for (const struct pending_membership *of = entry->groups; of != NULL; of = of->next)
        if (of->group->selected)
            return true;
    return false;
}

/* A fixed point: groups that are idle or selected take all of their entries, whose other groups
 * are selected in turn, until nothing is added. */
struct rcpt_fold_list rcpt_fold_pending_list_idle(struct rcpt_fold_pending *pending, int64_t now_us)
{
    bool more = true;
    folds_pending_sweep(pending);
    for (struct pending_group *group = pending->first_group; group != NULL; group = group->next)
        group->selected |= is_idle(group, now_us);
    for (struct pending_entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        entry->listed = !folds_pending_is_known(pending, entry);
    while (more) {
        more = false;
        for (struct pending_entry *entry = pending->first_entry; entry != NULL;
             entry = entry->next) {
            if (entry->listed || entry->sum.count == 0 || !is_selected(entry))
                continue;
            entry->listed = true;
            for (struct pending_membership *of = entry->groups; of != NULL; of = of->next) {
                more |= !of->group->selected;
                of->group->selected = true;
            }
        }
    }
    return make_list(pending);
}

/* Entries keep their groups; sums that stayed in memory are counted again. */
void rcpt_fold_pending_flushed(struct rcpt_fold_pending *pending)
{
    folds_pending_sweep(pending);
    pending->since_us = INT64_MAX;
    pending->busy_until_us = INT64_MIN;
    pending->largest = 0;
    for (struct pending_group *group = pending->first_group; group != NULL; group = group->next)
        group->has_sum = group->selected = false;
    for (struct pending_entry *entry = pending->first_entry; entry != NULL; entry = entry->next) {
        if (entry->listed)
            entry->sum.count = 0;
        if (entry->sum.count == 0)
            continue;
        if (entry->sum.first_us < pending->since_us)
            pending->since_us = entry->sum.first_us;
        if (entry->sum.count > pending->largest)
            pending->largest = entry->sum.count;
        for (struct pending_membership *of = entry->groups; of != NULL; of = of->next)
            of->group->has_sum = true;
    }
    pending->count -= pending->list_count;
}

static struct pending_group *find_group(const struct rcpt_fold_pending *pending, uint64_t hash,
                                        struct rcpt_text rule, struct rcpt_text key)
{
    struct pending_group *found;
    for (size_t probes = 0; (found = rcpt_table_next(&pending->groups, hash, &probes)) != NULL;)
        if (rcpt_text_equal(found->key, key) && rcpt_text_equal(found->rule, rule))
            return found;
    return NULL;
}

/* Two rules may have groups with the same key, so the rule is the seed. */
static uint64_t hash_of_group(struct rcpt_text rule, struct rcpt_text key)
{
    return rcpt_hash_text_extended(key.at, key.size,
                                   rcpt_hash_text_extended(rule.at, rule.size, 0));
}

/* Finds the group, or makes it. */
static struct pending_group *group_of(struct rcpt_fold_pending *pending, struct rcpt_text rule,
                                      struct rcpt_text key)
{
    uint64_t hash = hash_of_group(rule, key);
    struct pending_group *group = find_group(pending, hash, rule, key);
    if (group != NULL)
        return group;
    group = folds_pending_take(pending, sizeof(*group));
    *group = (struct pending_group){.next = pending->first_group,
                                    .rule = folds_pending_keep(pending, rule),
                                    .key = folds_pending_keep(pending, key),
                                    .last_us = INT64_MIN};
    pending->first_group = group;
    rcpt_table_add(&pending->groups, hash, group);
    return group;
}

/* The list points to the sums, which are the first members of their entries. */
static struct pending_entry *listed(const struct rcpt_fold_pending *pending, size_t index)
{
    RCPT_ASSERT(index < pending->list_count);
    return (struct pending_entry *)(uintptr_t)pending->list[index];
}

/* The shortest window of its groups is the entry's. */
void rcpt_fold_pending_learn(struct rcpt_fold_pending *pending, size_t index, struct rcpt_text rule,
                             struct rcpt_text key, int64_t window_us)
{
    struct pending_entry *entry = listed(pending, index);
    struct pending_group *group = group_of(pending, rule, key);
    struct pending_membership *of = folds_pending_take(pending, sizeof(*of));
    group->window_us = window_us;
    if (entry->sum.last_us > group->last_us)
        group->last_us = entry->sum.last_us;
    *of = (struct pending_membership){entry->groups, group};
    entry->window_us =
        entry->groups == NULL ? window_us : folds_pending_smaller(entry->window_us, window_us);
    entry->groups = of;
}

/* An entry that belongs to no group is never idle. */
void rcpt_fold_pending_learnt(struct rcpt_fold_pending *pending)
{
    pending->busy_until_us = INT64_MIN;
    pending->swept = false; /* an entry that was only asked about still has its sum */
    for (size_t index = 0; index < pending->list_count; index++) {
        struct pending_entry *entry = listed(pending, index);
        entry->learnt = pending->generation;
        if (entry->groups == NULL)
            entry->window_us = NEVER_US;
    }
}

/* A sweep first: entries may have newer transitions than their groups know. */
struct rcpt_fold_recency rcpt_fold_pending_recency(struct rcpt_fold_pending *pending,
                                                   struct rcpt_text rule, struct rcpt_text key)
{
    folds_pending_sweep(pending);
    const struct pending_group *group = find_group(pending, hash_of_group(rule, key), rule, key);
    return group == NULL ? (struct rcpt_fold_recency){INT64_MIN, false}
                         : (struct rcpt_fold_recency){group->last_us, group->has_sum};
}

/* A group that is not known here has no sum in memory. */
void rcpt_fold_pending_select(struct rcpt_fold_pending *pending, struct rcpt_text rule,
                              struct rcpt_text key)
{
    struct pending_group *group = find_group(pending, hash_of_group(rule, key), rule, key);
    if (group != NULL)
        group->selected = true;
}

/* Another generation makes all entries unknown; the old groups stay in the arena until it is
 * reset. */
void rcpt_fold_pending_unlearn(struct rcpt_fold_pending *pending)
{
    pending->generation++;
    pending->busy_until_us = INT64_MIN;
    for (struct pending_entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        entry->groups = NULL;
    rcpt_table_clear(&pending->groups);
    pending->first_group = NULL;
}

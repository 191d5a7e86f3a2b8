/* Sums of transitions in memory: one entry for each kind of transition, found by its hash. Adding
 * touches the entry only; groups learn of it in a sweep, before anything is asked about them.
 * Called by gather.c and sums.c. */
#include "pending_internal.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/core/hash.h"

#define CHUNK_BYTES 65536u
#define KEEP_BYTES  (1024u * 1024)

/* ---- life ---- */

/* Generation 0 is that of entries whose groups were never learnt. */
struct rcpt_fold_pending *rcpt_fold_pending_new(void)
{
    struct rcpt_fold_pending *pending = rcpt_calloc(1, sizeof(*pending));
    rcpt_arena_init(&pending->arena, CHUNK_BYTES);
    pending->since_us = INT64_MAX;
    pending->busy_until_us = INT64_MIN;
    pending->generation = 1;
    return pending;
}

void rcpt_fold_pending_free(struct rcpt_fold_pending *pending)
{
    if (pending == NULL)
        return;
    rcpt_arena_fini(&pending->arena);
    rcpt_table_free(&pending->entries);
    rcpt_table_free(&pending->groups);
    free(pending->list);
    free(pending);
}

/* Chunks of the arena up to KEEP_BYTES are kept for the next sums. */
void rcpt_fold_pending_forget(struct rcpt_fold_pending *pending)
{
    rcpt_table_free(&pending->entries);
    rcpt_table_free(&pending->groups);
    rcpt_arena_reset(&pending->arena, KEEP_BYTES);
    pending->first_entry = NULL;
    pending->first_group = NULL;
    pending->list_count = pending->count = pending->bytes = 0;
    pending->largest = 0;
    pending->since_us = INT64_MAX;
    pending->busy_until_us = INT64_MIN;
}

/* The arena is dropped as a whole by _forget(); gather.c calls that when the bytes pass its
 * limit. */
void *folds_pending_take(struct rcpt_fold_pending *pending, size_t bytes)
{
    pending->bytes += bytes;
    return rcpt_arena_alloc(&pending->arena, bytes);
}

struct rcpt_text folds_pending_keep(struct rcpt_fold_pending *pending, struct rcpt_text text)
{
    if (text.at == NULL)
        return text;
    pending->bytes += text.size;
    return rcpt_text_copy(&pending->arena, text);
}

/* ---- entries ---- */

static bool are_equal_or_none(struct rcpt_text a, struct rcpt_text b)
{
    if (a.at == NULL || b.at == NULL)
        return a.at == b.at;
    return rcpt_text_equal(a, b);
}

/* Kinds differ in everything that a rule can tell apart. */
static bool is_kind(const struct rcpt_fold_transition *a, const struct rcpt_fold_transition *b)
{
    return a->old == b->old && a->new == b->new &&
           a->gained == b->gained &&rcpt_text_equal(a->campaign, b->campaign) &&
           rcpt_text_equal(a->org, b->org) && are_equal_or_none(a->columns, b->columns);
}

/* The link is not part of the kind: one of them stands for all. */
static uint64_t hash_of(const struct rcpt_fold_transition *transition)
{
    uint64_t seed = (uint64_t)(uint16_t)transition->old << 48 |
                    (uint64_t)(uint16_t)transition->new << 32 | (uint32_t)transition->gained;
    uint64_t hash =
        rcpt_hash_text_extended(transition->campaign.at, transition->campaign.size, seed);
    hash = rcpt_hash_text_extended(transition->org.at, transition->org.size, hash);
    return transition->columns.at == NULL
               ? hash
               : rcpt_hash_text_extended(transition->columns.at, transition->columns.size, hash);
}

/* Finds the entry of the transition's kind, or makes it with a sum of 0. */
static struct pending_entry *entry_of(struct rcpt_fold_pending *pending,
                                      const struct rcpt_fold_transition *transition)
{
    uint64_t hash = hash_of(transition);
    struct pending_entry *found;
    for (size_t probes = 0; (found = rcpt_table_next(&pending->entries, hash, &probes)) != NULL;)
        if (is_kind(&found->sum, transition))
            return found;
    struct pending_entry *entry = folds_pending_take(pending, sizeof(*entry));
    *entry = (struct pending_entry){.sum = *transition, .next = pending->first_entry};
    entry->sum.org = folds_pending_keep(pending, transition->org);
    entry->sum.campaign = folds_pending_keep(pending, transition->campaign);
    entry->sum.columns = folds_pending_keep(pending, transition->columns);
    entry->sum.link = (struct rcpt_text){NULL, 0};
    entry->sum.count = 0;
    pending->first_entry = entry;
    rcpt_table_add(&pending->entries, hash, entry);
    return entry;
}

/* Known: the groups were learnt under the rules that are in effect. */
bool folds_pending_is_known(const struct rcpt_fold_pending *pending,
                            const struct pending_entry *entry)
{
    return entry->learnt == pending->generation;
}

/* Touches the entry only, which keeps the cost of a transition small; a sweep updates its groups
 * before they are asked for. */
void rcpt_fold_pending_add(struct rcpt_fold_pending *pending,
                           const struct rcpt_fold_transition *transition)
{
    struct pending_entry *entry = entry_of(pending, transition);
    struct rcpt_fold_transition *sum = &entry->sum;
    bool fresh = sum->count == 0;
    if (fresh) {
        pending->count++;
        sum->first_us = transition->first_us;
        sum->last_us = transition->last_us;
        sum->first_row = transition->first_row;
        sum->last_row = transition->last_row;
        sum->link = (struct rcpt_text){NULL, 0};
    }
    sum->count += transition->count;
    if (sum->count > pending->largest)
        pending->largest = sum->count;
    if (transition->first_us < sum->first_us)
        sum->first_us = transition->first_us;
    if (transition->last_us > sum->last_us)
        sum->last_us = transition->last_us;
    if (transition->first_row < sum->first_row)
        sum->first_row = transition->first_row;
    if (transition->last_row > sum->last_row)
        sum->last_row = transition->last_row;
    if (sum->link.at == NULL && transition->link.at != NULL)
        sum->link = folds_pending_keep(pending, transition->link);
    if (transition->first_us < pending->since_us)
        pending->since_us = transition->first_us;
    pending->swept = false;
    if (!fresh)
        return;
    int64_t window_us =
        folds_pending_is_known(pending, entry) ? entry->window_us : pending->least_window_us;
    pending->busy_until_us =
        folds_pending_smaller(pending->busy_until_us, sum->last_us + window_us);
}

/* Groups take the last transition of their entries, and whether one has a sum. */
void folds_pending_sweep(struct rcpt_fold_pending *pending)
{
    if (pending->swept)
        return;
    for (const struct pending_entry *entry = pending->first_entry; entry != NULL;
         entry = entry->next) {
        if (entry->sum.count == 0 || !folds_pending_is_known(pending, entry))
            continue;
        for (const struct pending_membership *of = entry->groups; of != NULL; of = of->next) {
            of->group->has_sum = true;
            if (entry->sum.last_us > of->group->last_us)
                of->group->last_us = entry->sum.last_us;
        }
    }
    pending->swept = true;
}

int64_t rcpt_fold_pending_largest(const struct rcpt_fold_pending *pending)
{
    return pending->largest;
}

size_t rcpt_fold_pending_bytes(const struct rcpt_fold_pending *pending)
{
    return pending->bytes;
}

/* Bounds how long sums stay in memory: a group has to be published within max_hold. */
int64_t rcpt_fold_pending_since_us(const struct rcpt_fold_pending *pending)
{
    return pending->since_us;
}

/* When the first sum could become idle if nothing more came: of entries whose groups are unknown,
 * and of groups. INT64_MAX: there is none. */
static int64_t first_unknown(const struct rcpt_fold_pending *pending)
{
    int64_t first = INT64_MAX;
    for (const struct pending_entry *entry = pending->first_entry; entry != NULL;
         entry = entry->next)
        if (entry->sum.count > 0 && !folds_pending_is_known(pending, entry))
            first = folds_pending_smaller(first, entry->sum.last_us + pending->least_window_us);
    return first;
}

/* A group's window counts from the last transition of any of its entries. */
static int64_t first_group(const struct rcpt_fold_pending *pending)
{
    int64_t first = INT64_MAX;
    for (const struct pending_group *group = pending->first_group; group != NULL;
         group = group->next)
        if (group->has_sum)
            first = folds_pending_smaller(first, group->last_us + group->window_us);
    return first;
}

/* `busy_until_us` spares the scan: until then nothing can be idle. */
enum rcpt_fold_idleness rcpt_fold_pending_idleness(struct rcpt_fold_pending *pending,
                                                   int64_t now_us, int64_t least_window_us)
{
    bool same = pending->least_window_us == least_window_us;
    if (pending->count == 0 || (same && now_us < pending->busy_until_us))
        return RCPT_FOLD_ALL_BUSY;
    pending->least_window_us = least_window_us;
    folds_pending_sweep(pending);
    int64_t unknown_us = first_unknown(pending), group_us = first_group(pending);
    pending->busy_until_us = folds_pending_smaller(unknown_us, group_us);
    return unknown_us <= now_us ? RCPT_FOLD_UNKNOWN_IDLE
           : group_us <= now_us ? RCPT_FOLD_KNOWN_IDLE
                                : RCPT_FOLD_ALL_BUSY;
}

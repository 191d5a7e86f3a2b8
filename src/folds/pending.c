#include "pending.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/hash.h"

#define CHUNK_BYTES 65536u
#define KEEP_BYTES  (1024u * 1024)
#define FIRST_SLOTS 256u
#define NEVER_US    (INT64_MAX / 2) /* of no group */

struct group {
    struct group *next;
    uint64_t hash;
    struct rcpt_text rule, key;
    int64_t window_us, last_us;
    bool has_sum, wanted;
};

struct membership {
    struct membership *next;
    struct group *group;
};

struct entry {
    struct rcpt_fold_transition sum; /* count 0: none */
    struct entry *next;
    uint64_t hash;
    struct membership *groups; /* as far as they are known */
    int64_t window_us;         /* the shortest of theirs */
    uint64_t learnt;           /* the generation of rules that they are of */
    bool listed;
};

struct slot {
    uint64_t hash;
    void *item; /* NULL: free */
};

struct table {
    struct slot *slots;
    size_t size, count;
};

struct rcpt_fold_pending {
    struct rcpt_arena arena;
    struct table entries, groups;
    struct entry *first_entry;
    struct group *first_group;
    const struct rcpt_fold_transition **list; /* what goes from the front, what stays behind it */
    size_t list_count, list_capacity;
    size_t count, bytes;
    int64_t largest; /* at least as large as any sum */
    int64_t since_us;
    int64_t busy_until_us; /* nothing goes quiet before; INT64_MIN: not known */
    int64_t least_window_us;
    uint64_t generation;
    bool swept; /* groups know what their entries know */
};

/* ---- life ---- */

static void table_init(struct table *table)
{
    *table = (struct table){rcpt_calloc(FIRST_SLOTS, sizeof(struct slot)), FIRST_SLOTS, 0};
}

struct rcpt_fold_pending *rcpt_fold_pending_new(void)
{
    struct rcpt_fold_pending *pending = rcpt_calloc(1, sizeof(*pending));
    rcpt_arena_init(&pending->arena, CHUNK_BYTES);
    table_init(&pending->entries);
    table_init(&pending->groups);
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
    free(pending->entries.slots);
    free(pending->groups.slots);
    free(pending->list);
    free(pending);
}

void rcpt_fold_pending_forget(struct rcpt_fold_pending *pending)
{
    free(pending->entries.slots);
    free(pending->groups.slots);
    table_init(&pending->entries);
    table_init(&pending->groups);
    rcpt_arena_reset(&pending->arena, KEEP_BYTES);
    pending->first_entry = NULL;
    pending->first_group = NULL;
    pending->list_count = pending->count = pending->bytes = 0;
    pending->largest = 0;
    pending->since_us = INT64_MAX;
    pending->busy_until_us = INT64_MIN;
}

static void *take(struct rcpt_fold_pending *pending, size_t bytes)
{
    pending->bytes += bytes;
    return rcpt_arena_alloc(&pending->arena, bytes);
}

static struct rcpt_text keep(struct rcpt_fold_pending *pending, struct rcpt_text text)
{
    if (text.at == NULL)
        return text;
    pending->bytes += text.size;
    return rcpt_text_copy(&pending->arena, text);
}

/* ---- tables by hash, with linear probing ---- */

static void table_put(struct table *table, uint64_t hash, void *item)
{
    size_t slot = hash & (table->size - 1);
    while (table->slots[slot].item != NULL)
        slot = (slot + 1) & (table->size - 1);
    table->slots[slot] = (struct slot){hash, item};
}

/* True: it has grown, and everything has to be put again. */
static bool table_grow(struct table *table)
{
    if (++table->count * 2 < table->size)
        return false;
    free(table->slots);
    table->size *= 2;
    table->slots = rcpt_calloc(table->size, sizeof(struct slot));
    return true;
}

/* ---- entries ---- */

static bool are_equal_or_none(struct rcpt_text a, struct rcpt_text b)
{
    if (a.at == NULL || b.at == NULL)
        return a.at == b.at;
    return rcpt_text_equal(a, b);
}

static bool is_kind(const struct rcpt_fold_transition *a, const struct rcpt_fold_transition *b)
{
    return a->old == b->old && a->new == b->new &&
           a->gained == b->gained &&rcpt_text_equal(a->campaign, b->campaign) &&
           rcpt_text_equal(a->org, b->org) && are_equal_or_none(a->columns, b->columns);
}

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

static struct entry *entry_of(struct rcpt_fold_pending *pending,
                              const struct rcpt_fold_transition *transition)
{
    uint64_t hash = hash_of(transition);
    struct table *table = &pending->entries;
    size_t slot = hash & (table->size - 1);
    for (; table->slots[slot].item != NULL; slot = (slot + 1) & (table->size - 1)) {
        struct entry *found = table->slots[slot].item;
        if (table->slots[slot].hash == hash && is_kind(&found->sum, transition))
            return found;
    }
    struct entry *entry = take(pending, sizeof(*entry));
    *entry = (struct entry){.sum = *transition, .next = pending->first_entry, .hash = hash};
    entry->sum.org = keep(pending, transition->org);
    entry->sum.campaign = keep(pending, transition->campaign);
    entry->sum.columns = keep(pending, transition->columns);
    entry->sum.link = (struct rcpt_text){NULL, 0};
    entry->sum.count = 0;
    pending->first_entry = entry;
    table->slots[slot] = (struct slot){hash, entry};
    if (table_grow(table))
        for (struct entry *each = entry; each != NULL; each = each->next)
            table_put(table, each->hash, each);
    return entry;
}

static bool is_known(const struct rcpt_fold_pending *pending, const struct entry *entry)
{
    return entry->learnt == pending->generation;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Nothing in memory is touched but the entry: groups are told when they are asked for (sweep). */
void rcpt_fold_pending_add(struct rcpt_fold_pending *pending,
                           const struct rcpt_fold_transition *transition)
{
    struct entry *entry = entry_of(pending, transition);
    struct rcpt_fold_transition *sum = &entry->sum;
    bool fresh = sum->count == 0;
    if (fresh) {
        pending->count++;
        sum->first_us = transition->first_us;
        sum->last_us = transition->last_us;
        sum->link = (struct rcpt_text){NULL, 0};
    }
    sum->count += transition->count;
    if (sum->count > pending->largest)
        pending->largest = sum->count;
    if (transition->first_us < sum->first_us)
        sum->first_us = transition->first_us;
    if (transition->last_us > sum->last_us)
        sum->last_us = transition->last_us;
    if (sum->link.at == NULL && transition->link.at != NULL)
        sum->link = keep(pending, transition->link);
    if (transition->first_us < pending->since_us)
        pending->since_us = transition->first_us;
    pending->swept = false;
    if (!fresh)
        return;
    int64_t window_us = is_known(pending, entry) ? entry->window_us : pending->least_window_us;
    pending->busy_until_us = smaller(pending->busy_until_us, sum->last_us + window_us);
}

static void sweep(struct rcpt_fold_pending *pending)
{
    if (pending->swept)
        return;
    for (const struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next) {
        if (entry->sum.count == 0 || !is_known(pending, entry))
            continue;
        for (const struct membership *of = entry->groups; of != NULL; of = of->next) {
            of->group->has_sum = true;
            if (entry->sum.last_us > of->group->last_us)
                of->group->last_us = entry->sum.last_us;
        }
    }
    pending->swept = true;
}

size_t rcpt_fold_pending_count(const struct rcpt_fold_pending *pending)
{
    return pending->count;
}

int64_t rcpt_fold_pending_largest(const struct rcpt_fold_pending *pending)
{
    return pending->largest;
}

size_t rcpt_fold_pending_bytes(const struct rcpt_fold_pending *pending)
{
    return pending->bytes;
}

int64_t rcpt_fold_pending_since_us(const struct rcpt_fold_pending *pending)
{
    return pending->since_us;
}

static bool is_quiet(const struct group *group, int64_t now_us)
{
    return group->has_sum && group->last_us + group->window_us <= now_us;
}

/* When the first sum could go quiet if nothing more came: of those whose groups are not known, and
 * of groups. */
static int64_t first_unknown(const struct rcpt_fold_pending *pending)
{
    int64_t first = INT64_MAX;
    for (const struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        if (entry->sum.count > 0 && !is_known(pending, entry))
            first = smaller(first, entry->sum.last_us + pending->least_window_us);
    return first;
}

static int64_t first_group(const struct rcpt_fold_pending *pending)
{
    int64_t first = INT64_MAX;
    for (const struct group *group = pending->first_group; group != NULL; group = group->next)
        if (group->has_sum)
            first = smaller(first, group->last_us + group->window_us);
    return first;
}

enum rcpt_fold_quiet rcpt_fold_pending_quiet(struct rcpt_fold_pending *pending, int64_t now_us,
                                             int64_t least_window_us)
{
    bool same = pending->least_window_us == least_window_us;
    if (pending->count == 0 || (same && now_us < pending->busy_until_us))
        return RCPT_FOLD_ALL_BUSY;
    pending->least_window_us = least_window_us;
    sweep(pending);
    int64_t unknown_us = first_unknown(pending), group_us = first_group(pending);
    pending->busy_until_us = smaller(unknown_us, group_us);
    return unknown_us <= now_us ? RCPT_FOLD_UNKNOWN_QUIET
           : group_us <= now_us ? RCPT_FOLD_QUIET
                                : RCPT_FOLD_ALL_BUSY;
}

/* ---- handing over ---- */

enum part { KNOWN, UNKNOWN, STAYS };

static enum part part_of(const struct rcpt_fold_pending *pending, const struct entry *entry)
{
    if (!entry->listed)
        return STAYS;
    return is_known(pending, entry) ? KNOWN : UNKNOWN;
}

static size_t put_part(struct rcpt_fold_pending *pending, size_t at, enum part part)
{
    for (struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        if (entry->sum.count > 0 && part_of(pending, entry) == part)
            pending->list[at++] = &entry->sum;
    return at;
}

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
    for (struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        entry->listed = true;
    return make_list(pending);
}

struct rcpt_fold_list rcpt_fold_pending_list_unknown(struct rcpt_fold_pending *pending)
{
    for (struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        entry->listed = !is_known(pending, entry);
    return make_list(pending);
}

static bool is_wanted(const struct entry *entry)
{
    for (const struct membership *of = entry->groups; of != NULL; of = of->next)
        if (of->group->wanted)
            return true;
    return false;
}

struct rcpt_fold_list rcpt_fold_pending_list_quiet(struct rcpt_fold_pending *pending,
                                                   int64_t now_us)
{
    bool more = true;
    sweep(pending);
    for (struct group *group = pending->first_group; group != NULL; group = group->next)
        group->wanted |= is_quiet(group, now_us);
    for (struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        entry->listed = !is_known(pending, entry);
    while (more) {
        more = false;
        for (struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next) {
            if (entry->listed || entry->sum.count == 0 || !is_wanted(entry))
                continue;
            entry->listed = true;
            for (struct membership *of = entry->groups; of != NULL; of = of->next) {
                more |= !of->group->wanted;
                of->group->wanted = true;
            }
        }
    }
    return make_list(pending);
}

void rcpt_fold_pending_flushed(struct rcpt_fold_pending *pending)
{
    sweep(pending);
    pending->since_us = INT64_MAX;
    pending->busy_until_us = INT64_MIN;
    pending->largest = 0;
    for (struct group *group = pending->first_group; group != NULL; group = group->next)
        group->has_sum = group->wanted = false;
    for (struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next) {
        if (entry->listed)
            entry->sum.count = 0;
        if (entry->sum.count == 0)
            continue;
        if (entry->sum.first_us < pending->since_us)
            pending->since_us = entry->sum.first_us;
        if (entry->sum.count > pending->largest)
            pending->largest = entry->sum.count;
        for (struct membership *of = entry->groups; of != NULL; of = of->next)
            of->group->has_sum = true;
    }
    pending->count -= pending->list_count;
}

static struct group *find_group(const struct rcpt_fold_pending *pending, uint64_t hash,
                                struct rcpt_text rule, struct rcpt_text key)
{
    const struct table *table = &pending->groups;
    size_t slot = hash & (table->size - 1);
    for (; table->slots[slot].item != NULL; slot = (slot + 1) & (table->size - 1)) {
        struct group *found = table->slots[slot].item;
        if (table->slots[slot].hash == hash && rcpt_text_equal(found->key, key) &&
            rcpt_text_equal(found->rule, rule))
            return found;
    }
    return NULL;
}

static uint64_t hash_of_group(struct rcpt_text rule, struct rcpt_text key)
{
    return rcpt_hash_text_extended(key.at, key.size,
                                   rcpt_hash_text_extended(rule.at, rule.size, 0));
}

static struct group *group_of(struct rcpt_fold_pending *pending, struct rcpt_text rule,
                              struct rcpt_text key)
{
    uint64_t hash = hash_of_group(rule, key);
    struct group *group = find_group(pending, hash, rule, key);
    if (group != NULL)
        return group;
    group = take(pending, sizeof(*group));
    *group = (struct group){.next = pending->first_group,
                            .hash = hash,
                            .rule = keep(pending, rule),
                            .key = keep(pending, key),
                            .last_us = INT64_MIN};
    pending->first_group = group;
    if (!table_grow(&pending->groups)) {
        table_put(&pending->groups, hash, group);
        return group;
    }
    for (struct group *each = group; each != NULL; each = each->next)
        table_put(&pending->groups, each->hash, each);
    return group;
}

/* Its transition is the first member. */
static struct entry *listed(const struct rcpt_fold_pending *pending, size_t index)
{
    RCPT_ASSERT(index < pending->list_count);
    return (struct entry *)(uintptr_t)pending->list[index];
}

void rcpt_fold_pending_learn(struct rcpt_fold_pending *pending, size_t index, struct rcpt_text rule,
                             struct rcpt_text key, int64_t window_us)
{
    struct entry *entry = listed(pending, index);
    struct group *group = group_of(pending, rule, key);
    struct membership *of = take(pending, sizeof(*of));
    group->window_us = window_us;
    if (entry->sum.last_us > group->last_us)
        group->last_us = entry->sum.last_us;
    *of = (struct membership){entry->groups, group};
    entry->window_us = entry->groups == NULL ? window_us : smaller(entry->window_us, window_us);
    entry->groups = of;
}

void rcpt_fold_pending_learnt(struct rcpt_fold_pending *pending)
{
    pending->busy_until_us = INT64_MIN;
    pending->swept = false; /* what was only asked about still has its sum */
    for (size_t index = 0; index < pending->list_count; index++) {
        struct entry *entry = listed(pending, index);
        entry->learnt = pending->generation;
        if (entry->groups == NULL)
            entry->window_us = NEVER_US;
    }
}

struct rcpt_fold_heat rcpt_fold_pending_heat(struct rcpt_fold_pending *pending,
                                             struct rcpt_text rule, struct rcpt_text key)
{
    sweep(pending);
    const struct group *group = find_group(pending, hash_of_group(rule, key), rule, key);
    return group == NULL ? (struct rcpt_fold_heat){INT64_MIN, false}
                         : (struct rcpt_fold_heat){group->last_us, group->has_sum};
}

void rcpt_fold_pending_want(struct rcpt_fold_pending *pending, struct rcpt_text rule,
                            struct rcpt_text key)
{
    struct group *group = find_group(pending, hash_of_group(rule, key), rule, key);
    if (group != NULL)
        group->wanted = true;
}

void rcpt_fold_pending_unlearn(struct rcpt_fold_pending *pending)
{
    pending->generation++;
    pending->busy_until_us = INT64_MIN;
    for (struct entry *entry = pending->first_entry; entry != NULL; entry = entry->next)
        entry->groups = NULL;
    memset(pending->groups.slots, 0, pending->groups.size * sizeof(struct slot));
    pending->groups.count = 0;
    pending->first_group = NULL;
}

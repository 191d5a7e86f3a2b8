/* Counting between the flights of a transaction (count.h). Messages go into groups, since those of
 * a batch share campaigns, transitions and signatures; a group becomes cells. Called by
 * postgres/flights.c.
 */
#include "receiptd/core/count.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/core/hash.h"

#define CODES   (RCPT_LADDER_FIRST_FLAG_CODE + RCPT_LADDER_MAX_FLAGS)
#define ENTRIES (RCPT_LADDER_MAX_STATUSES + RCPT_LADDER_MAX_FLAGS)
#define NONE    UINT32_MAX
#define SEED    0 /* campaigns are the platform's own */

struct group { /* messages of a campaign with one fate, whose receipts name the same */
    struct rcpt_count_kind kind;
    uint32_t campaign, next; /* next: of the same campaign; NONE: the last */
};

struct campaign {
    struct rcpt_text text;
    uint64_t hash;
    uint32_t first; /* group */
};

struct rcpt_count {
    const struct rcpt_batch *batch;
    const struct rcpt_ladder *ladder;
    size_t ladder_size;                       /* entries that `index_of` knows */
    int16_t codes[ENTRIES], parents[ENTRIES]; /* ascending codes; parents as indexes, −1: none */
    int16_t index_of[CODES];                  /* −1: no such code */
    int16_t entry_count;

    struct rcpt_arena arena; /* of one batch: all that follows */
    uint32_t mask;           /* of both tables */
    uint32_t *group_table, *campaign_table;
    struct group *groups;
    struct campaign *campaigns;
    struct rcpt_cell *cells;
    struct rcpt_count_kind *kinds;
    uint32_t group_count, campaign_count, cell_count, cell_room, kind_count;
    uint32_t changed, known, events;
};

struct rcpt_count *rcpt_count_new(void)
{
    struct rcpt_count *count = rcpt_calloc(1, sizeof(*count));
    rcpt_arena_init(&count->arena, 256 * 1024);
    return count;
}

void rcpt_count_free(struct rcpt_count *count)
{
    if (count == NULL)
        return;
    rcpt_arena_fini(&count->arena);
    free(count);
}

/* ---- the ladder ---- */

static int by_code(const void *left, const void *right)
{
    return *(const int16_t *)left - *(const int16_t *)right;
}

/* A ladder only grows, so its size tells whether it is the one that was read. */
static void read_ladder(struct rcpt_count *count, const struct rcpt_ladder *ladder)
{
    size_t size = rcpt_ladder_entry_count(ladder);
    if (count->ladder == ladder && count->ladder_size == size)
        return;
    RCPT_ASSERT(size <= ENTRIES);
    count->ladder = ladder;
    count->ladder_size = size;
    count->entry_count = (int16_t)size;
    memset(count->index_of, 0xff, sizeof(count->index_of));
    for (size_t index = 0; index < size; index++)
        count->codes[index] = rcpt_ladder_entry(ladder, index)->code;
    qsort(count->codes, size, sizeof(count->codes[0]), by_code);
    for (int16_t index = 0; index < count->entry_count; index++)
        count->index_of[count->codes[index]] = index;
    for (size_t index = 0; index < size; index++) {
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, index);
        count->parents[count->index_of[entry->code]] =
            entry->parent >= 0 ? count->index_of[entry->parent] : -1;
    }
}

/* ---- groups ---- */

/* Frees the batch before at once. Its chunks are kept, so a steady load allocates nothing. Tables
 * hold indexes, and 0xff in every byte is NONE. At most half of a table is ever used: a search ends
 * at a free slot. */
void rcpt_count_begin(struct rcpt_count *count, const struct rcpt_batch *batch,
                      const struct rcpt_ladder *ladder, uint32_t most_rows)
{
    uint32_t size = 64;
    read_ladder(count, ladder);
    rcpt_arena_reset(&count->arena, SIZE_MAX);
    while (size < 2 * most_rows)
        size *= 2;
    count->batch = batch;
    count->mask = size - 1;
    count->group_table = rcpt_arena_alloc(&count->arena, size * sizeof(uint32_t));
    count->campaign_table = rcpt_arena_alloc(&count->arena, size * sizeof(uint32_t));
    memset(count->group_table, 0xff, size * sizeof(uint32_t));
    memset(count->campaign_table, 0xff, size * sizeof(uint32_t));
    count->groups = rcpt_arena_alloc(&count->arena, most_rows * sizeof(*count->groups));
    count->campaigns = rcpt_arena_alloc(&count->arena, most_rows * sizeof(*count->campaigns));
    count->cells = NULL;
    count->group_count = count->campaign_count = count->kind_count = 0;
    count->cell_count = count->cell_room = 0;
    count->changed = count->known = count->events = 0;
}

/* Linear probing. The whole hash is compared before the text: two campaigns that meet in a slot
 * rarely share it. */
static uint32_t campaign_of(struct rcpt_count *count, struct rcpt_text text)
{
    uint64_t hash = rcpt_hash_text_extended(text.at, text.size, SEED);
    for (uint32_t slot = (uint32_t)hash & count->mask;; slot = (slot + 1) & count->mask) {
        uint32_t found = count->campaign_table[slot];
        if (found == NONE) {
            found = count->campaign_table[slot] = count->campaign_count++;
            count->campaigns[found] =
                (struct campaign){rcpt_text_copy(&count->arena, text), hash, NONE};
            return found;
        }
        if (count->campaigns[found].hash == hash &&
            rcpt_text_equal(count->campaigns[found].text, text))
            return found;
    }
}

static bool is_alike(const struct rcpt_count_kind *left, const struct rcpt_count_kind *right)
{
    return left->old == right->old && left->new == right->new && left->gained == right->gained &&
           left->signature == right->signature;
}

/* An odd constant near 2^64 divided by the golden ratio carries low bits up; hash_of() folds the
 * high ones down again. */
static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t hash_of(const struct rcpt_count_kind *kind, uint32_t campaign)
{
    uint64_t sum = mix(campaign, (uint16_t)kind->old);
    sum = mix(sum, (uint16_t)kind->new);
    sum = mix(sum, kind->gained);
    sum = mix(sum, (uint32_t)kind->signature);
    return sum ^ sum >> 32;
}

/* Groups of a campaign form a list, the newest first. make_cells() walks it once. */
static void add_to_group(struct rcpt_count *count, const struct rcpt_count_kind *kind,
                         uint32_t campaign)
{
    uint64_t hash = hash_of(kind, campaign);
    for (uint32_t slot = (uint32_t)hash & count->mask;; slot = (slot + 1) & count->mask) {
        uint32_t found = count->group_table[slot];
        if (found == NONE) {
            count->group_table[slot] = count->group_count;
            count->groups[count->group_count] =
                (struct group){*kind, campaign, count->campaigns[campaign].first};
            count->campaigns[campaign].first = count->group_count++;
            return;
        }
        if (count->groups[found].campaign == campaign &&
            is_alike(&count->groups[found].kind, kind)) {
            count->groups[found].kind.messages++;
            return;
        }
    }
}

/* A message that did not change still counts its receipts. One that changed may have gained flags
 * alone: its status stays then. */
void rcpt_count_add(struct rcpt_count *count, const struct rcpt_count_row *row)
{
    RCPT_ASSERT(row->message < count->batch->message_count);
    const struct rcpt_batch_message *message = &count->batch->messages[row->message];
    struct rcpt_count_kind kind = {row->was, row->was, 0, message->signature, 1};
    if (row->changed) {
        kind.new = message->top > row->was ? message->top : row->was;
        kind.gained = message->mask & ~row->had;
        count->changed += kind.new != row->was || kind.gained != 0;
    }
    count->known++;
    add_to_group(count, &kind, campaign_of(count, row->campaign));
}

/* ---- cells ---- */

struct sums { /* of one campaign, by index of the code */
    int64_t messages[ENTRIES], events[ENTRIES];
};

/* Statuses that the path enters gain the message, and statuses that it leaves lose it: parents have
 * smaller codes, so the two paths meet where both are the same. A status that the ladder does not
 * have has no path. */
static void add_path(const struct rcpt_count *count, struct sums *sums,
                     const struct rcpt_count_kind *kind)
{
    int16_t from = count->index_of[kind->old], to = count->index_of[kind->new];
    if (from < 0 || to < 0)
        return;
    while (from != to) {
        if (to > from) {
            sums->messages[to] += kind->messages;
            to = count->parents[to];
        } else {
            sums->messages[from] -= kind->messages;
            from = count->parents[from];
        }
    }
}

/* A flag counts a message when it is gained, and a receipt whenever it is named. */
static void add_group(struct rcpt_count *count, struct sums *sums,
                      const struct rcpt_count_kind *kind)
{
    const struct rcpt_batch *batch = count->batch;
    const struct rcpt_batch_signature *signature = &batch->signatures[kind->signature];
    add_path(count, sums, kind);
    for (uint32_t bit = 0; kind->gained >> bit != 0; bit++)
        if ((kind->gained >> bit & 1) != 0)
            sums->messages[count->index_of[RCPT_LADDER_FIRST_FLAG_CODE + bit]] += kind->messages;
    for (uint32_t entry = signature->first; entry < signature->first + signature->size; entry++) {
        int64_t events = (int64_t)kind->messages * batch->signature_counts[entry];
        sums->events[count->index_of[batch->signature_codes[entry]]] += events;
        count->events += (uint32_t)events;
    }
}

/* A campaign may have a cell for every code. Most have up to four. */
static void make_room(struct rcpt_count *count)
{
    const struct rcpt_cell *old = count->cells;
    const uint32_t most = (uint32_t)count->entry_count;
    if (count->cell_count + most <= count->cell_room)
        return;
    count->cell_room = 2 * count->cell_room + 4 * count->campaign_count + most;
    count->cells = rcpt_arena_alloc(&count->arena, count->cell_room * sizeof(*count->cells));
    if (old != NULL)
        memcpy(count->cells, old, count->cell_count * sizeof(*old));
}

/* Writes cells in the order of codes, and none where the changes of a campaign cancel each other
 * out. */
static void write_cells(struct rcpt_count *count, const struct sums *sums, uint32_t campaign)
{
    make_room(count);
    for (int16_t index = 0; index < count->entry_count; index++)
        if (sums->messages[index] != 0 || sums->events[index] != 0)
            count->cells[count->cell_count++] = (struct rcpt_cell){
                campaign, count->codes[index], sums->messages[index], sums->events[index]};
}

/* memcmp, as COLLATE "C" orders: the roll-up upserts in the same order. */
static int by_text(const void *left, const void *right)
{
    return rcpt_text_compare(((const struct campaign *)left)->text,
                             ((const struct campaign *)right)->text);
}

static void make_cells(struct rcpt_count *count)
{
    struct sums sums;
    qsort(count->campaigns, count->campaign_count, sizeof(*count->campaigns), by_text);
    for (uint32_t index = 0; index < count->campaign_count; index++) {
        memset(sums.messages, 0, (size_t)count->entry_count * sizeof(sums.messages[0]));
        memset(sums.events, 0, (size_t)count->entry_count * sizeof(sums.events[0]));
        for (uint32_t group = count->campaigns[index].first; group != NONE;
             group = count->groups[group].next)
            add_group(count, &sums, &count->groups[group].kind);
        write_cells(count, &sums, index);
    }
}

/* ---- kinds ---- */

/* Any order would do, as long as it is the same for the same rows. */
static int by_kind(const void *left, const void *right)
{
    const struct rcpt_count_kind *a = left, *b = right;
    if (a->old != b->old)
        return a->old < b->old ? -1 : 1;
    if (a->new != b->new)
        return a->new < b->new ? -1 : 1;
    if (a->gained != b->gained)
        return a->gained < b->gained ? -1 : 1;
    return a->signature < b->signature ? -1 : a->signature > b->signature;
}

/* The groups of all campaigns together; the table of groups is free by now. */
static void make_kinds(struct rcpt_count *count)
{
    count->kinds =
        rcpt_arena_alloc(&count->arena, (count->group_count + 1) * sizeof(*count->kinds));
    memset(count->group_table, 0xff, ((size_t)count->mask + 1) * sizeof(uint32_t));
    for (uint32_t index = 0; index < count->group_count; index++) {
        const struct rcpt_count_kind *kind = &count->groups[index].kind;
        uint32_t slot = (uint32_t)hash_of(kind, 0) & count->mask;
        while (count->group_table[slot] != NONE &&
               !is_alike(&count->kinds[count->group_table[slot]], kind))
            slot = (slot + 1) & count->mask;
        if (count->group_table[slot] == NONE) {
            count->group_table[slot] = count->kind_count;
            count->kinds[count->kind_count++] = *kind;
        } else {
            count->kinds[count->group_table[slot]].messages += kind->messages;
        }
    }
    qsort(count->kinds, count->kind_count, sizeof(*count->kinds), by_kind);
}

void rcpt_count_finish(struct rcpt_count *count)
{
    make_cells(count);
    make_kinds(count);
}

/* ---- results ---- */

const struct rcpt_cell *rcpt_count_cells(const struct rcpt_count *count, uint32_t *size)
{
    *size = count->cell_count;
    return count->cells;
}

struct rcpt_text rcpt_count_campaign(const struct rcpt_count *count, uint32_t campaign)
{
    RCPT_ASSERT(campaign < count->campaign_count);
    return count->campaigns[campaign].text;
}

const struct rcpt_count_kind *rcpt_count_kinds(const struct rcpt_count *count, uint32_t *size)
{
    *size = count->kind_count;
    return count->kinds;
}

uint32_t rcpt_count_changed(const struct rcpt_count *count)
{
    return count->changed;
}

uint32_t rcpt_count_known(const struct rcpt_count *count)
{
    return count->known;
}

uint32_t rcpt_count_events(const struct rcpt_count *count)
{
    return count->events;
}

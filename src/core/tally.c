/* Counting in cells (tally.h): a hash table, then a radix sort. Called by the rules. */
#include "receiptd/core/tally.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/base/table.h"

#define BYTES 16u /* of what cells are ordered by */

struct item {
    struct rcpt_tally_cell cell;
    struct item *next; /* of the list of all */
};

/* The values by which cells are ordered, as one number of 128 bits. */
struct ordered {
    uint64_t high, low;
    const struct rcpt_tally_cell *cell;
};

struct rcpt_tally {
    struct rcpt_table table;
    struct rcpt_arena arena; /* of one batch: what follows */
    struct item *newest;
    struct rcpt_tally_cell *cells;
    uint32_t count;
    struct rcpt_tally_range ranges[RCPT_TALLY_KINDS];
};

struct rcpt_tally *rcpt_tally_new(void)
{
    struct rcpt_tally *tally = rcpt_calloc(1, sizeof(*tally));
    rcpt_arena_init(&tally->arena, 256 * 1024);
    return tally;
}

void rcpt_tally_free(struct rcpt_tally *tally)
{
    if (tally == NULL)
        return;
    rcpt_table_free(&tally->table);
    rcpt_arena_fini(&tally->arena);
    free(tally);
}

void rcpt_tally_begin(struct rcpt_tally *tally)
{
    rcpt_table_clear(&tally->table);
    rcpt_arena_reset(&tally->arena, SIZE_MAX);
    tally->newest = NULL;
    tally->count = 0;
    memset(tally->ranges, 0, sizeof(tally->ranges));
}

/* ---- adding ---- */

/* Two odd constants carry low bits up, and the shifts carry high ones down. */
static uint64_t hash_of(const struct rcpt_tally_place *place)
{
    uint64_t hash = (uint64_t)place->campaign->number << 32 | place->key->number;
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    hash ^= (uint64_t)place->minute << 24 | (uint64_t)place->kind << 16 | (uint16_t)place->status;
    hash = (hash ^ hash >> 32) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

static bool is_same(const struct rcpt_tally_place *left, const struct rcpt_tally_place *right)
{
    return left->campaign == right->campaign && left->key == right->key &&
           left->minute == right->minute && left->status == right->status &&
           left->kind == right->kind;
}

static struct rcpt_tally_cell *new_cell(struct rcpt_tally *tally,
                                        const struct rcpt_tally_place *place, uint64_t hash)
{
    struct item *item = rcpt_arena_alloc(&tally->arena, sizeof(*item));
    RCPT_ASSERT(place->kind < RCPT_TALLY_KINDS);
    *item = (struct item){.cell.place = *place, .next = tally->newest};
    tally->newest = item;
    rcpt_table_add(&tally->table, hash, item);
    return &item->cell;
}

void rcpt_tally_add(struct rcpt_tally *tally, struct rcpt_tally_place place, int64_t messages,
                    int64_t events)
{
    uint64_t hash = hash_of(&place);
    size_t probes = 0;
    struct item *item = rcpt_table_next(&tally->table, hash, &probes);
    while (item != NULL && !is_same(&item->cell.place, &place))
        item = rcpt_table_next(&tally->table, hash, &probes);
    struct rcpt_tally_cell *cell = item != NULL ? &item->cell : new_cell(tally, &place, hash);
    cell->messages += messages;
    cell->events += events;
}

/* ---- sorting ---- */

/* A rank of a campaign has 24 bits: a batch has fewer texts. */
static struct ordered order_of(const struct rcpt_tally_cell *cell)
{
    const struct rcpt_tally_place *place = &cell->place;
    RCPT_ASSERT(place->campaign->rank < 1u << 24);
    return (struct ordered){
        .high = (uint64_t)place->kind << 56 | (uint64_t)place->campaign->rank << 32 | place->minute,
        .low = (uint64_t)place->key->rank << 16 | (uint16_t)(place->status ^ INT16_MIN),
        .cell = cell};
}

/* From 0, the least significant one. */
static uint8_t byte_of(const struct ordered *ordered, unsigned byte)
{
    return (uint8_t)((byte < 8 ? ordered->low : ordered->high) >> byte % 8 * 8);
}

/* How many have each value of the byte becomes where the first of them goes. */
static void sort_by(const struct ordered *from, struct ordered *to, uint32_t count, unsigned byte,
                    uint32_t places[static 256])
{
    uint32_t sum = 0;
    for (size_t value = 0; value < 256; value++) {
        uint32_t size = places[value];
        places[value] = sum;
        sum += size;
    }
    for (uint32_t index = 0; index < count; index++)
        to[places[byte_of(&from[index], byte)]++] = from[index];
}

/* Least significant byte first. A byte in which all agree needs no pass. Returns which of the two
 * has the result. */
static const struct ordered *sort(struct ordered *from, struct ordered *to, uint32_t count)
{
    uint32_t sizes[BYTES][256];
    memset(sizes, 0, sizeof(sizes));
    for (uint32_t index = 0; index < count; index++)
        for (unsigned byte = 0; byte < BYTES; byte++)
            sizes[byte][byte_of(&from[index], byte)]++;
    for (unsigned byte = 0; byte < BYTES && count > 0; byte++) {
        if (sizes[byte][byte_of(&from[0], byte)] == count)
            continue;
        sort_by(from, to, count, byte, sizes[byte]);
        struct ordered *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* ---- results ---- */

static void take(struct rcpt_tally *tally, const struct ordered *ordered, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++) {
        tally->cells[index] = *ordered[index].cell;
        struct rcpt_tally_range *range = &tally->ranges[tally->cells[index].place.kind];
        if (range->end == 0)
            range->first = index;
        range->end = index + 1;
    }
    tally->count = count;
}

/* Writes no cell whose additions cancel each other out. Allocates as much room as the table has, so
 * that sizes stay the same from batch to batch. */
void rcpt_tally_finish(struct rcpt_tally *tally)
{
    size_t most = tally->table.size;
    struct ordered *ordered = rcpt_arena_alloc(&tally->arena, most * sizeof(*ordered));
    struct ordered *other = rcpt_arena_alloc(&tally->arena, most * sizeof(*other));
    uint32_t count = 0;
    tally->cells = rcpt_arena_alloc(&tally->arena, most * sizeof(*tally->cells));
    for (const struct item *item = tally->newest; item != NULL; item = item->next)
        if (item->cell.messages != 0 || item->cell.events != 0)
            ordered[count++] = order_of(&item->cell);
    take(tally, sort(ordered, other, count), count);
}

const struct rcpt_tally_cell *rcpt_tally_cells(const struct rcpt_tally *tally, uint32_t *count)
{
    *count = tally->count;
    return tally->cells;
}

struct rcpt_tally_range rcpt_tally_range(const struct rcpt_tally *tally, uint8_t kind)
{
    RCPT_ASSERT(kind < RCPT_TALLY_KINDS);
    return tally->ranges[kind];
}

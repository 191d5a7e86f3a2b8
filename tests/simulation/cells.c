/* A small hash table of cells (cells.h). Called by flights.c, ledger.c and the simulated database. */
#include "cells.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

/* A place is free while nothing was ever added to it. */
static bool is_free(const struct sim_cell *cell)
{
    static const struct sim_cell free_cell;
    return memcmp(cell, &free_cell, sizeof(*cell)) == 0;
}

static uint64_t hash_of(const struct sim_cell_key *key)
{
    uint64_t words[2];
    _Static_assert(sizeof(*key) == sizeof(words), "a key has no padding");
    memcpy(words, key, sizeof(words));
    uint64_t hash = words[0] * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ words[1]) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

static struct sim_cell *find(const struct sim_cells *cells, const struct sim_cell_key *key)
{
    uint32_t at = (uint32_t)hash_of(key) & (cells->capacity - 1);
    while (!is_free(&cells->list[at]) && memcmp(&cells->list[at].key, key, sizeof(*key)) != 0)
        at = (at + 1) & (cells->capacity - 1);
    return &cells->list[at];
}

static void grow(struct sim_cells *cells)
{
    struct sim_cells larger = {.capacity = cells->capacity > 0 ? cells->capacity * 2 : 64};
    larger.list = rcpt_calloc(larger.capacity, sizeof(*larger.list));
    for (uint32_t at = 0; at < cells->capacity; at++)
        if (!is_free(&cells->list[at]))
            *find(&larger, &cells->list[at].key) = cells->list[at];
    larger.count = cells->count;
    free(cells->list);
    *cells = larger;
}

void sim_cells_add(struct sim_cells *cells, struct sim_cell_key key, int64_t messages,
                   int64_t events)
{
    if (messages == 0 && events == 0)
        return;
    if (cells->count * 2 >= cells->capacity)
        grow(cells);
    struct sim_cell *cell = find(cells, &key);
    cells->count += is_free(cell);
    cell->key = key;
    cell->messages += messages;
    cell->events += events;
}

void sim_cells_free(struct sim_cells *cells)
{
    free(cells->list);
    memset(cells, 0, sizeof(*cells));
}

static const struct sim_cell *missing(const struct sim_cells *cells, const struct sim_cells *others,
                                      int64_t *messages, int64_t *events)
{
    static const struct sim_cell none;
    for (uint32_t at = 0; at < cells->capacity; at++) {
        const struct sim_cell *cell = &cells->list[at];
        if (!sim_cell_is_used(cell))
            continue;
        const struct sim_cell *other = others->capacity > 0 ? find(others, &cell->key) : &none;
        *messages = cell->messages - other->messages;
        *events = cell->events - other->events;
        if (*messages != 0 || *events != 0)
            return cell;
    }
    return NULL;
}

const struct sim_cell *sim_cells_difference(const struct sim_cells *left,
                                            const struct sim_cells *right, int64_t *messages,
                                            int64_t *events)
{
    const struct sim_cell *found = missing(left, right, messages, events);
    if (found != NULL)
        return found;
    found = missing(right, left, messages, events);
    *messages = -*messages;
    *events = -*events;
    return found;
}

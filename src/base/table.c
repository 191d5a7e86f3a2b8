/* The hash table of metrics and folds. It keeps the hashes, so that it grows without its owner. */
#include "receiptd/base/table.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

#define FIRST_SLOTS 16u

static void put(struct rcpt_table *table, struct rcpt_table_slot slot)
{
    size_t at = slot.hash & (table->size - 1);
    while (table->slots[at].item != NULL)
        at = (at + 1) & (table->size - 1);
    table->slots[at] = slot;
}

/* At most half of the slots are used, so that probing stays short. */
static void grow(struct rcpt_table *table)
{
    struct rcpt_table old = *table;
    table->size = old.size > 0 ? old.size * 2 : FIRST_SLOTS;
    table->slots = rcpt_calloc(table->size, sizeof(*table->slots));
    for (size_t at = 0; at < old.size; at++)
        if (old.slots[at].item != NULL)
            put(table, old.slots[at]);
    free(old.slots);
}

void rcpt_table_add(struct rcpt_table *table, uint64_t hash, void *item)
{
    if (++table->count * 2 > table->size)
        grow(table);
    put(table, (struct rcpt_table_slot){hash, item});
}

void rcpt_table_clear(struct rcpt_table *table)
{
    if (table->count > 0)
        memset(table->slots, 0, table->size * sizeof(*table->slots));
    table->count = 0;
}

void rcpt_table_free(struct rcpt_table *table)
{
    free(table->slots);
    *table = (struct rcpt_table){0};
}

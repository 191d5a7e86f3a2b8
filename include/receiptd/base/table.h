/* Items by their hash: open addressing with linear probing. Zeroed is empty. The owner of the items
 * makes the hash and compares; items cannot be taken out one by one. Not for use by two threads.
 *
 * Other tables stay separate. The tables of messages and of signatures (core/batch_build.c) and of
 * names (core/ladder.c) lie on the hot path, have a bound and hold small indexes. Aliases and keys
 * (gateways/memory.c) leave one by one, the oldest first.
 */
#ifndef RECEIPTD_BASE_TABLE_H
#define RECEIPTD_BASE_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct rcpt_table_slot {
    uint64_t hash;
    void *item; /* NULL: free */
};

struct rcpt_table {
    struct rcpt_table_slot *slots;
    size_t size, count; /* size: a power of two, twice the count at least */
};

/* The next item with this hash, NULL behind the last. `probes` is 0 at first. */
static inline void *rcpt_table_next(const struct rcpt_table *table, uint64_t hash, size_t *probes)
{
    while (table->count > 0) {
        const struct rcpt_table_slot *slot =
            &table->slots[(hash + (*probes)++) & (table->size - 1)];
        if (slot->item == NULL || slot->hash == hash)
            return slot->item;
    }
    return NULL;
}

void rcpt_table_add(struct rcpt_table *table, uint64_t hash, void *item);
/* Empties it; the slots stay for the next items. */
void rcpt_table_clear(struct rcpt_table *table);
void rcpt_table_free(struct rcpt_table *table);

#endif

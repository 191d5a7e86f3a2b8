/* A bump allocator for everything whose life ends together (a batch, a decoded record).
 *
 * Memory comes from chunks that are kept at reset, so a steady state allocates nothing. Not for use
 * by two threads.
 */
#ifndef RECEIPTD_BASE_ARENA_H
#define RECEIPTD_BASE_ARENA_H

#include <stddef.h>

struct rcpt_arena_chunk;

struct rcpt_arena {
    struct rcpt_arena_chunk *first;   /* chain of chunks, in order of use */
    struct rcpt_arena_chunk *current; /* the one that is being filled */
    size_t chunk_bytes;               /* size of a new chunk */
    size_t held_bytes;                /* on the heap, by all chunks of the chain */
};

void rcpt_arena_init(struct rcpt_arena *arena, size_t chunk_bytes);

/* Uninitialised memory, aligned to 16 bytes, valid until reset or fini. Never NULL. */
void *rcpt_arena_alloc(struct rcpt_arena *arena, size_t bytes);

/* Forgets everything that was allocated. Keeps chunks up to `keep_bytes` in total, frees the rest.
 */
void rcpt_arena_reset(struct rcpt_arena *arena, size_t keep_bytes);

void rcpt_arena_fini(struct rcpt_arena *arena);

size_t rcpt_arena_bytes(const struct rcpt_arena *arena); /* what its chunks hold on the heap */

#endif

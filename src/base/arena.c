/* Memory that is dropped as a whole: a chain of chunks, filled one after the other, reset and used
 * again. For a batch, a request or a record. Not for use by two threads. */
#include "receiptd/base/arena.h"

#include <stdint.h>
#include <stdlib.h>

#include "receiptd/base/error.h"

/* As malloc aligns: any type may stand at an address that the arena gives. */
#define ALIGNMENT 16u

/* A chunk has the arena's size, or for one allocation which is larger a multiple of it. */
struct rcpt_arena_chunk {
    struct rcpt_arena_chunk *next;
    size_t capacity;
    size_t used;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

void rcpt_arena_init(struct rcpt_arena *arena, size_t chunk_bytes)
{
    arena->first = NULL;
    arena->current = NULL;
    arena->chunk_bytes = chunk_bytes;
    arena->held_bytes = 0;
}

/* The chunk is not zeroed: callers fill their memory. */
static struct rcpt_arena_chunk *chunk_new(size_t capacity)
{
    struct rcpt_arena_chunk *chunk = rcpt_malloc(sizeof(*chunk) + capacity);
    chunk->next = NULL;
    chunk->capacity = capacity;
    chunk->used = 0;
    return chunk;
}

/* Takes a chunk out of the chain. */
static void drop(struct rcpt_arena *arena, struct rcpt_arena_chunk **link)
{
    struct rcpt_arena_chunk *chunk = *link;
    *link = chunk->next;
    arena->held_bytes -= sizeof(*chunk) + chunk->capacity;
    free(chunk);
}

/* Moves on to the next chunk in the chain. One that is too small gives way to a larger one: were it
 * kept, each batch that is a little larger than all before would add chunks. */
static struct rcpt_arena_chunk *advance(struct rcpt_arena *arena, size_t bytes)
{
    struct rcpt_arena_chunk **link = arena->current != NULL ? &arena->current->next : &arena->first;
    if (*link != NULL && (*link)->capacity < bytes)
        drop(arena, link);
    if (*link == NULL || (*link)->capacity < bytes) {
        size_t size = arena->chunk_bytes;
        struct rcpt_arena_chunk *fresh =
            chunk_new(bytes > size ? (bytes + size - 1) / size * size : size);
        arena->held_bytes += sizeof(*fresh) + fresh->capacity;
        fresh->next = *link;
        *link = fresh;
    }
    arena->current = *link;
    arena->current->used = 0;
    return arena->current;
}

void *rcpt_arena_alloc(struct rcpt_arena *arena, size_t bytes)
{
    RCPT_ASSERT(bytes <= SIZE_MAX / 2);
    size_t rounded = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct rcpt_arena_chunk *chunk = arena->current;
    if (chunk == NULL || chunk->capacity - chunk->used < rounded)
        chunk = advance(arena, rounded);
    void *pointer = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return pointer;
}

/* Chunks above `keep_bytes` are freed, so that one large batch does not stay resident. */
void rcpt_arena_reset(struct rcpt_arena *arena, size_t keep_bytes)
{
    struct rcpt_arena_chunk **link = &arena->first;
    size_t kept = 0;
    while (*link != NULL) {
        struct rcpt_arena_chunk *chunk = *link;
        if (kept + chunk->capacity > keep_bytes) {
            drop(arena, link);
        } else {
            kept += chunk->capacity;
            link = &chunk->next;
        }
    }
    /* The next allocation starts with the first chunk that is left. */
    arena->current = NULL;
}

void rcpt_arena_fini(struct rcpt_arena *arena)
{
    rcpt_arena_reset(arena, 0);
}

size_t rcpt_arena_bytes(const struct rcpt_arena *arena)
{
    return arena->held_bytes;
}

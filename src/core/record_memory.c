/* Memory of small records. Where each event is a record of its own, a malloc() for each would cost
 * as much as decoding it. So small records of one lane lie one behind the other in a chunk, in the
 * order in which the lane takes and frees them. Called by record.c.
 */
#include <stdlib.h>

#include "record_internal.h"

#define CHUNK_BYTES (16u * 1024 - sizeof(struct rcpt_record_chunk) - 16) /* less what malloc adds */
#define SMALL_BYTES 1024u

/* Marks a freed record as out of bounds for the sanitizer, as if it had memory of its own. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)   (void)(address), (void)(bytes)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) (void)(address), (void)(bytes)
#endif

static void leave(struct rcpt_record_chunk *chunk)
{
    if (--chunk->users == 0)
        free(chunk);
}

void rcpt_record_free_chunk(struct rcpt_record_chunk *filling)
{
    if (filling != NULL)
        leave(filling);
}

/* A chunk that has become empty is used again. */
static struct rcpt_record_chunk *chunk_with(struct rcpt_record_chunk **filling, size_t bytes)
{
    struct rcpt_record_chunk *chunk = *filling;
    if (chunk != NULL && chunk->users == 1)
        chunk->used = 0;
    if (chunk != NULL && chunk->used + bytes <= CHUNK_BYTES)
        return chunk;
    rcpt_record_free_chunk(chunk);
    *filling = chunk = rcpt_malloc(sizeof(*chunk) + CHUNK_BYTES);
    chunk->users = 1;
    chunk->used = 0;
    return chunk;
}

void *rcpt_record_allocate(struct rcpt_decoder *decoder, uint32_t lane, size_t bytes,
                           struct rcpt_record_chunk **chunk)
{
    *chunk = NULL;
    if (bytes > SMALL_BYTES)
        return rcpt_malloc(bytes);
    *chunk = chunk_with(&decoder->chunks[lane], bytes);
    void *memory = (*chunk)->bytes + (*chunk)->used;
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
    (*chunk)->used += (uint32_t)((bytes + 15) & ~(size_t)15);
    (*chunk)->users++;
    /* The next record of the lane will be written here, likely of the same size. */
    for (size_t at = 0; at < bytes; at += 64)
        __builtin_prefetch((*chunk)->bytes + (*chunk)->used + at, 1);
    return memory;
}

void rcpt_record_free(struct rcpt_record *record)
{
    if (record == NULL || record->chunk == NULL) {
        free(record);
        return;
    }
    struct rcpt_record_chunk *chunk = record->chunk;
    ASAN_POISON_MEMORY_REGION(record, record->memory_bytes);
    leave(chunk);
}

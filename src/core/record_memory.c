/* Memory of small records. Where each event is a record of its own, a malloc() for each would cost as
 * much as decoding it. So small records of one lane lie one behind the other in a chunk, in the
 * order in which the lane takes and frees them. Called by record.c.
 */
#include <stdlib.h>

#include "record_internal.h"

#define CHUNK_BYTES (16u * 1024 - sizeof(struct rcpt_record_chunk) - 16) /* less what malloc adds */
#define SMALL_BYTES 1024u

void rcpt_record_leave_chunk(struct rcpt_record_chunk *chunk)
{
    if (chunk != NULL && --chunk->users == 0)
        free(chunk);
}

/* One that has been emptied meanwhile is used again. */
static struct rcpt_record_chunk *chunk_with(struct rcpt_record_chunk **filling, size_t bytes)
{
    struct rcpt_record_chunk *chunk = *filling;
    if (chunk != NULL && chunk->users == 1)
        chunk->used = 0;
    if (chunk != NULL && chunk->used + bytes <= CHUNK_BYTES)
        return chunk;
    rcpt_record_leave_chunk(chunk);
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
    (*chunk)->used += (uint32_t)((bytes + 15) & ~(size_t)15);
    (*chunk)->users++;
    return memory;
}

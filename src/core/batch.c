/* The memory of a batch, which is kept from one content to the next. Called by the lanes of an
 * engine. */
#include "receiptd/core/batch.h"

#include <string.h>

#include "receiptd/core/batch_build.h"

/* A batch is embedded in its lane, which lives longer than any of its contents. */
void rcpt_batch_init(struct rcpt_batch *batch, uint32_t lane)
{
    memset(batch, 0, sizeof(*batch));
    batch->lane = lane;
    rcpt_arena_init(&batch->arena, RCPT_BATCH_CHUNK_BYTES);
}

void rcpt_batch_fini(struct rcpt_batch *batch)
{
    rcpt_arena_fini(&batch->arena);
}

/* The arena survives with up to RCPT_BATCH_KEEP_BYTES, so that a steady load allocates nothing. */
void rcpt_batch_reset(struct rcpt_batch *batch, enum rcpt_batch_kind kind)
{
    struct rcpt_arena arena = batch->arena;
    uint32_t lane = batch->lane;
    memset(batch, 0, sizeof(*batch));
    batch->arena = arena;
    batch->lane = lane;
    batch->kind = kind;
    rcpt_arena_reset(&batch->arena, RCPT_BATCH_KEEP_BYTES);
}

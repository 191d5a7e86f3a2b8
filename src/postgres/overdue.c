/* Reads the answer of sql/expiry/candidates (overdue.h). Called by flights.c. */
#include "overdue.h"

#include <stdlib.h>

#include "receiptd/core/batch_build.h"

/* Columns of sql/expiry/candidates. */
enum { CANDIDATE_MESSAGE_ID, CANDIDATE_STATUS, CANDIDATE_AT };

/* The signature that all messages share names nothing. */
struct rcpt_batch *rcpt_overdue_batch_new(const struct rcpt_pg_rows *answer)
{
    struct rcpt_batch *batch = rcpt_calloc(1, sizeof(*batch));
    size_t count = rcpt_pg_rows_count(answer);
    rcpt_batch_init(batch, 0);
    rcpt_batch_reset(batch, RCPT_BATCH_APPLY);
    batch->messages = rcpt_arena_alloc(&batch->arena, count * sizeof(*batch->messages));
    batch->signatures = rcpt_arena_alloc(&batch->arena, sizeof(*batch->signatures));
    batch->signatures[batch->signature_count++] = (struct rcpt_batch_signature){.size = 0};
    for (size_t row = 0; row < count; row++) {
        struct rcpt_text id = rcpt_text_copy(
            &batch->arena, rcpt_text_of(rcpt_pg_rows_text(answer, row, CANDIDATE_MESSAGE_ID)));
        batch->messages[batch->message_count++] = (struct rcpt_batch_message){
            .id = id.at,
            .id_size = (uint32_t)id.size,
            .top = (int16_t)rcpt_pg_rows_int(answer, row, CANDIDATE_STATUS),
            .at_us = rcpt_pg_rows_int(answer, row, CANDIDATE_AT)};
    }
    return batch;
}

void rcpt_overdue_batch_free(struct rcpt_batch *batch)
{
    if (batch == NULL)
        return;
    rcpt_batch_fini(batch);
    free(batch);
}

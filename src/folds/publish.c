/* Publications of groups as records. Called by shard.c. */
#include <stdlib.h>

#include "internal.h"
#include "receiptd/base/error.h"

/* Columns of sql/fold/read. */
enum { OUT_SEQ, OUT_ID, OUT_DESTINATION, OUT_MESSAGE_KEY, OUT_PAYLOAD };

void folds_publish_groups(struct folds_shard *shard, const struct rcpt_pg_rows *rows, size_t count)
{
    struct rcpt_transactor_record *records = rcpt_calloc(count, sizeof(*records));
    for (size_t row = 0; row < count; row++)
        records[row] = (struct rcpt_transactor_record){
            .topic = rcpt_pg_rows_text(rows, row, OUT_DESTINATION),
            .key = rcpt_text_of(rcpt_pg_rows_text(rows, row, OUT_MESSAGE_KEY)),
            .value = rcpt_text_of(rcpt_pg_rows_text(rows, row, OUT_PAYLOAD)),
            .headers = {{"id", rcpt_text_of(rcpt_pg_rows_text(rows, row, OUT_ID))}},
        };
    rcpt_transactor_publish(shard->transactor, records, count, shard->next_mark);
    free(records);
}

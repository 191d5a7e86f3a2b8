/* The list of inbox_columns.h as a table. */
#include "receiptd/config/inbox_columns.h"
#include "receiptd/base/error.h"

const struct rcpt_inbox_column *rcpt_inbox_columns(size_t *count)
{
    static const struct rcpt_inbox_column columns[] = {
#define COLUMN(column, type, constraint, filler, feature, doc)                                     \
    {#column, type, constraint, RCPT_INBOX_##filler, feature, doc},
        RCPT_INBOX_COLUMNS(COLUMN) RCPT_INBOX_MORE_COLUMNS(COLUMN)
#undef COLUMN
    };
    *count = RCPT_COUNT_OF(columns);
    return columns;
}

const char *rcpt_inbox_filler_name(enum rcpt_inbox_filler filler)
{
    static const char *const names[] = {
        [RCPT_INBOX_PLATFORM] = "platform",
        [RCPT_INBOX_RECEIPTD] = "receiptd",
        [RCPT_INBOX_POSTGRES] = "postgres",
    };
    return names[filler];
}

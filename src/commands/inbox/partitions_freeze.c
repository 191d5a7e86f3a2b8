/* A partition whose messages no longer change is frozen once (partitions.h). Otherwise PostgreSQL
 * would freeze months of partitions at once, when their transactions become too old. A comment on
 * the table notes it. Called by maintain.c. */
#include <stdlib.h>
#include <string.h>

#include "partitions.h"
#include "partitions_internal.h"
#include "receiptd/postgres/sql.h"

/* Receipts of a message come within hours, and few after this. */
#define QUIET_MS (2 * INT64_C(86400000))

static bool is_due(const struct layout *layout, size_t row)
{
    int64_t to_ms;
    const char *upper = rcpt_session_rows_text(layout->parts, row, "upper");
    return upper != NULL && rcpt_id_time(layout->ids, upper, &to_ms) &&
           to_ms + QUIET_MS < layout->now_ms &&
           !rcpt_session_rows_bool(layout->parts, row, "frozen");
}

static bool run(const struct layout *layout, const char *file, size_t row)
{
    struct command_context *context = layout->context;
    const struct rcpt_pg_binding bindings[] = {
        {"part_schema", rcpt_session_rows_text(layout->parts, row, "schema")},
        {"part", rcpt_session_rows_text(layout->parts, row, "name")}};
    char *sql = rcpt_pg_bind(rcpt_sql(file), bindings, 2, &context->error);
    bool good = sql != NULL && rcpt_session_execute(context->session, sql, &context->error);
    free(sql);
    return good;
}

/* Batches go on beside it: the delay leaves them the disk. */
static bool freeze(const struct layout *layout, size_t row)
{
    struct command_context *context = layout->context;
    if (!rcpt_session_execute(context->session,
                              "SET vacuum_cost_delay = 2; SET lock_timeout = '10s'",
                              &context->error))
        return false;
    bool good = run(layout, "partitions/freeze", row) && run(layout, "partitions/frozen", row);
    bool locked = !good && strcmp(context->error.code, "55P03") == 0;
    const char *name = rcpt_session_rows_text(layout->parts, row, "name");
    if (good)
        printf("partitions: froze %s\n", name);
    else if (locked)
        printf("partitions: %s is in use, so the next run freezes it\n", name);
    struct rcpt_error reset;
    if (!rcpt_session_execute(context->session, "RESET vacuum_cost_delay; RESET lock_timeout",
                              &reset) &&
        good) {
        context->error = reset;
        return false;
    }
    return good || locked;
}

bool partitions_freeze(struct command_context *context)
{
    struct layout layout;
    if (context->config->inbox.partitions != RCPT_PARTITIONS_OWN)
        return true;
    bool found = layout_read(&layout, context);
    bool good = found || context->error.text[0] == '\0';
    size_t row = 0, count = found ? rcpt_session_rows_count(layout.parts) : 0;
    while (row < count && !is_due(&layout, row))
        row++;
    if (row < count)
        good = freeze(&layout, row);
    layout_forget(&layout);
    return good;
}

/* Turns of commands (turns.h). A turn is a lock on a table, so it needs a right on that table.
 * Every role that may connect could take an advisory lock. A table lock ends with its transaction,
 * and the command's session has many transactions. A second session holds the lock, in a
 * transaction without a snapshot and an id, which keeps no dead rows alive. Called by
 * partitions_sql.c, recent.c, erase.c, audit*.c. */
#include "turns.h"

#include <stdio.h>
#include <string.h>

#include "receiptd/postgres/sql.h"
#include "waits.h"

#define WAIT "SET LOCAL lock_timeout = '30s'"

/* The mode conflicts with itself and with vacuum, but not with reads and writes of rows. */
#define TAKE                                                                                       \
    "SAVEPOINT turn; SET LOCAL lock_timeout = 0; LOCK TABLE %s IN SHARE UPDATE EXCLUSIVE MODE "    \
    "NOWAIT"

static bool is_busy(const struct rcpt_error *error)
{
    return strcmp(error->code, "55P03") == 0; /* lock_not_available */
}

static bool open_holder(struct command_context *context)
{
    if (context->holder != NULL)
        return true;
    context->holder = command_open_beside(context, &context->error);
    return context->holder != NULL &&
           rcpt_session_begin(context->holder, "READ WRITE", &context->error) &&
           rcpt_session_execute(context->holder,
                                "SET LOCAL idle_in_transaction_session_timeout = 0",
                                &context->error);
}

bool turns_take(struct command_context *context, const char *table, bool *taken)
{
    char sql[160];
    struct rcpt_error *error = &context->error;
    *error = (struct rcpt_error){0};
    if (!open_holder(context))
        return false;
    snprintf(sql, sizeof(sql), TAKE, table);
    *taken = rcpt_session_execute(context->holder, sql, error);
    if (*taken || !is_busy(error))
        return *taken;
    *error = (struct rcpt_error){0};
    return rcpt_session_execute(context->holder, "ROLLBACK TO turn", error);
}

bool turns_wait(struct command_context *context, const char *file)
{
    if (!rcpt_session_execute(context->session, WAIT, &context->error))
        return false;
    bool good = waits_execute(context, rcpt_sql(file));
    if (!good && is_busy(&context->error))
        rcpt_error_hint(&context->error, "the session above has held the lock for half a minute; "
                                         "end it, then repeat the command");
    return good;
}

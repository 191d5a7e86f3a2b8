/* audit, partitions that have left the inbox. Detached ones are counted and named. Messages that
 * were dropped or truncated without the trigger are missing, and only an operator can decide to
 * book them. Called by audit.c. */
#include "audit_partitions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"

static const char *name_of(const struct audit_partitions *partitions, size_t row)
{
    return rcpt_session_rows_text(partitions->rows, row, "name");
}

static bool is(const struct audit_partitions *partitions, size_t row, const char *state)
{
    return strcmp(rcpt_session_rows_text(partitions->rows, row, "state"), state) == 0;
}

/* A repair would add messages to the counters again that are both live and booked. */
static bool refuse_returned(const struct audit_partitions *partitions)
{
    struct rcpt_error *error = &partitions->context->error;
    for (size_t row = 0; row < rcpt_session_rows_count(partitions->rows); row++) {
        if (!is(partitions, row, "returned"))
            continue;
        rcpt_error_fatal(error, EX_DATAERR,
                         "partition %s was booked after it had left the inbox, and is in it again: "
                         "a repair would count its messages twice",
                         name_of(partitions, row));
        rcpt_error_hint(error, "detach it again, then repair");
        return false;
    }
    return true;
}

/* Runs before the first recount. A partition that is dropped later is left to the next audit. */
bool audit_partitions_read(struct audit_partitions *partitions, struct command_context *context,
                           bool repair)
{
    partitions->context = context;
    partitions->rows = rcpt_session_query(context->session, rcpt_sql("command/audit_partitions"), 0,
                                          NULL, &context->error);
    return partitions->rows != NULL && (!repair || refuse_returned(partitions));
}

void audit_partitions_free(struct audit_partitions *partitions)
{
    rcpt_session_rows_free(partitions->rows);
}

/* A dropped partition may have been empty, so it is named only if there is drift. */
static void print_one(const struct audit_partitions *partitions, size_t row, bool drifted)
{
    const char *name = name_of(partitions, row);
    if (is(partitions, row, "detached"))
        fprintf(stderr,
                "receiptd: partition %s has left the inbox and is not booked yet: its messages are "
                "counted here\nHINT: receiptd maintain books it\n",
                name);
    else if (is(partitions, row, "returned"))
        fprintf(
            stderr,
            "receiptd: partition %s was booked after it had left the inbox, and is in it again: "
            "its messages count twice\nHINT: detach it again\n",
            name);
    else if (drifted)
        fprintf(stderr, "receiptd: partition %s was dropped before its messages were booked\n",
                name);
}

/* A repair has already printed how many messages it has booked. */
void audit_partitions_print(const struct audit_partitions *partitions, int64_t missing,
                            bool drifted, bool repaired)
{
    for (size_t row = 0; row < rcpt_session_rows_count(partitions->rows); row++)
        print_one(partitions, row, drifted);
    if (missing > 0 && !repaired)
        fprintf(stderr,
                "receiptd: the counters have %" PRId64
                " messages that were deleted and not booked: by DROP or TRUNCATE of a partition, "
                "or while a trigger was off\n"
                "HINT: if the deletion was intended, run receiptd audit --repair: it books them as "
                "retired and leaves the funnel as it is\n",
                missing);
}

/* Settles the partitions that were read at the start, so partitions that the audit did not see stay
 * noted. */
bool audit_partitions_settle(const struct audit_partitions *partitions)
{
    struct command_context *context = partitions->context;
    struct rcpt_array_text names;
    size_t dropped = 0;
    rcpt_array_text_init(&names);
    for (size_t row = 0; row < rcpt_session_rows_count(partitions->rows); row++) {
        if (!is(partitions, row, "dropped"))
            continue;
        rcpt_array_text_add(&names, name_of(partitions, row), strlen(name_of(partitions, row)));
        dropped++;
    }
    const char *const values[] = {rcpt_array_text_finish(&names)};
    struct rcpt_session_rows *rows =
        dropped > 0 ? rcpt_session_query(context->session, rcpt_sql("command/audit_dropped"), 1,
                                         values, &context->error)
                    : NULL;
    rcpt_array_text_fini(&names);
    rcpt_session_rows_free(rows);
    return dropped == 0 || rows != NULL;
}

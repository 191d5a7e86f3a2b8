/* `receiptd maintain`, which a timer calls: partitions of the inbox and of remembered receipts,
 * expiry and retention once a day, the recent set, and recounts of campaigns. Each task runs even
 * if one before it failed. */
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "../command.h"
#include "../inbox/expire.h"
#include "../inbox/partitions.h"
#include "../inbox/recent.h"
#include "../inbox/retire.h"
#include "audit.h"
#include "receiptd/postgres/sql.h"

#define DEDUP_DAYS_AHEAD                                                                           \
    "8" /* today's and a week: a timer that stands for some days does no harm */

/* The next tasks run even if one fails; the first error is reported. */
static bool note(struct command_context *context, bool done, struct rcpt_error *first)
{
    if (!done && first->text[0] == '\0')
        *first = context->error;
    context->error = (struct rcpt_error){0};
    return done;
}

static bool note_end(struct command_context *context)
{
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, rcpt_sql("retire/ended"), 0, NULL, &context->error);
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* A walk reads the whole inbox, so it runs once a day, however often the timer calls. */
static void walk_if_due(struct command_context *context, struct rcpt_error *first)
{
    struct rcpt_session_rows *last =
        rcpt_session_query(context->session, rcpt_sql("retire/last"), 0, NULL, &context->error);
    if (!note(context, last != NULL, first))
        return;
    if (rcpt_session_rows_count(last) > 0) {
        printf("messages and aliases: the tables were last walked at %s, and are walked again a "
               "day later; receiptd expire and receiptd retire walk them at once\n",
               rcpt_session_rows_text(last, 0, "ended"));
    } else {
        bool expired = note(context, expire_messages(context, false), first);
        bool retired = note(context, retire_all(context, false), first);
        if (expired && retired)
            note(context, note_end(context), first);
    }
    rcpt_session_rows_free(last);
}

/* Maintains partitions of remembered receipts. If the rule is off, none is made, and existing ones
 * go after the longest window. */
static bool maintain_dedup(struct command_context *context)
{
    char window[24];
    int64_t window_ms = context->config->dedup.window_ms;
    snprintf(window, sizeof(window), "%" PRId64,
             window_ms > 0 ? window_ms : RCPT_CONFIG_LONGEST_WINDOW_MS);
    const char *const values[] = {window, window_ms > 0 ? DEDUP_DAYS_AHEAD : "0"};
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, rcpt_sql("retire/dedup"), 2, values, &context->error);
    if (rows == NULL)
        return false;
    int64_t made = rcpt_session_rows_int(rows, 0, "made");
    int64_t dropped = rcpt_session_rows_int(rows, 0, "dropped");
    if (made > 0 || dropped > 0)
        printf("remembered receipts: %" PRId64 " partitions made, %" PRId64 " dropped\n", made,
               dropped);
    rcpt_session_rows_free(rows);
    return true;
}

int command_maintain(const struct command_call *call)
{
    struct command_context context;
    struct rcpt_error first = {0};
    int exit_code = EX_USAGE;
    if (!command_open_as(&context, call, command_option(call, "dsn"), false, &exit_code))
        return exit_code;
    note(&context, partitions_maintain(&context), &first);
    note(&context, retire_partitions(&context, false), &first);
    note(&context, maintain_dedup(&context), &first);
    walk_if_due(&context, &first);
    note(&context, partitions_freeze(&context), &first);
    note(&context, recent_maintain(&context), &first);
    note(&context, audit_maintain(&context), &first);
    context.error = first;
    return command_end_as_owner(call, &context, first.text[0] == '\0', "SELECT, UPDATE and DELETE");
}

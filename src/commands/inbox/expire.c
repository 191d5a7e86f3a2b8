/* `receiptd expire`: messages whose final receipt has not come in time get another status, such as
 * UNKNOWN (inbox.expiry). The messages of a step take the way of receipts (receipts/expirer.h). No
 * lane has to own the message: the larger code wins in either order, and the row's lock orders the
 * two. So steps may be killed, run again, or run twice at once. Called by `receiptd maintain`, too,
 * and by funnel.c. */
#include "expire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "place.h"
#include "receiptd/actions/actions.h"
#include "receiptd/folds/folds.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/receipts/expirer.h"
#include "walk.h"

/* ---- rules as a parameter ---- */

/* A misspelt column would match no message, and another rule would apply. */
static bool check_columns(struct command_context *context, const char *rules)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("expiry/missing"), 1, &rules, &context->error);
    const char *names = rows != NULL ? rcpt_session_rows_text(rows, 0, "names") : NULL;
    if (names != NULL) {
        rcpt_error_fatal(&context->error, EX_CONFIG,
                         "inbox.expiry: the inbox has no such column: %s", names);
        rcpt_error_hint(&context->error, "entries name columns of message_inbox; if its table has "
                                         "just got the column, run receiptd migrate");
    }
    bool good = rows != NULL && names == NULL;
    rcpt_session_rows_free(rows);
    return good;
}

/* ---- the walk ---- */

static int64_t expire_pages(struct command_walk *walk, const char *sql, const char *first,
                            const char *end)
{
    return expirer_step(walk->actor, sql, first, end, &walk->context->error);
}

/* The subscribers are those of the lanes. */
static bool walk_inbox(struct command_context *context, const char *rules)
{
    struct inbox_place place;
    struct transition_wants wants = {.actions = actions_want(context->config)};
    folds_want(context->config, &wants);
    inbox_place_of(context->config, &place);
    struct expirer *expirer = expirer_new(&(struct expirer_settings){.config = context->config,
                                                                     .wants = &wants,
                                                                     .dsn = context->dsn,
                                                                     .command = context->command,
                                                                     .rules = rules});
    struct command_walk walk = {.context = context,
                                .name = "messages",
                                .done = "expired",
                                .step = rcpt_sql("expiry/candidates"),
                                .act = expire_pages,
                                .actor = expirer,
                                .schema = place.schema,
                                .table = place.table,
                                .bindings = {{NULL, NULL},
                                             {NULL, NULL},
                                             {"message_id", place.columns[INBOX_message_id]},
                                             {"status", place.columns[INBOX_status]},
                                             {"updated_at", place.columns[INBOX_updated_at]}},
                                .binding_count = 5};
    bool good = command_walk(&walk, false);
    expirer_free(expirer);
    return good;
}

static bool print_due(struct command_context *context)
{
    struct rcpt_session_rows *rows = expire_pending(context, NULL);
    if (rows != NULL)
        printf("messages: %s would expire; nothing was changed\n",
               rcpt_session_rows_text(rows, 0, "due"));
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* ---- what is offered ---- */

struct rcpt_session_rows *expire_pending(struct command_context *context, const char *campaign)
{
    char *rules = rcpt_config_expiry_rules(context->config);
    const char *const values[] = {rules, campaign};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("expiry/pending"), 2, values, &context->error);
    free(rules);
    return rows;
}

void expire_write_pending(struct rcpt_json *json, const struct rcpt_session_rows *pending)
{
    if (pending == NULL)
        return;
    rcpt_json_key(json, "pending");
    rcpt_json_begin_object(json);
    rcpt_json_put_int(json, "messages", rcpt_session_rows_int(pending, 0, "messages"));
    rcpt_json_put_text(json, "until", rcpt_session_rows_text(pending, 0, "until"));
    rcpt_json_end_object(json);
}

void expire_print_pending(const struct rcpt_session_rows *pending)
{
    if (pending != NULL && rcpt_session_rows_int(pending, 0, "messages") > 0)
        printf("\nprovisional until %s: messages that wait for a final receipt: %s\n",
               rcpt_session_rows_text(pending, 0, "until"),
               rcpt_session_rows_text(pending, 0, "messages"));
}

bool expire_messages(struct command_context *context, bool dry_run)
{
    if (context->config->inbox.expiry_count == 0)
        return puts("messages: inbox.expiry is not set, so none expires") >= 0;
    char *rules = rcpt_config_expiry_rules(context->config);
    bool good = check_columns(context, rules) &&
                (dry_run ? print_due(context) : walk_inbox(context, rules));
    free(rules);
    return good;
}

int command_expire(const struct command_call *call)
{
    struct command_context context;
    bool dry_run = command_option(call, "dry-run") != NULL;
    int exit_code = EX_USAGE;
    if (!command_open_as(&context, call, command_option(call, "dsn"), dry_run, &exit_code))
        return exit_code;
    return command_end_as_owner(call, &context, expire_messages(&context, dry_run),
                                "SELECT and UPDATE");
}

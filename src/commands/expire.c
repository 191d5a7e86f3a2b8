/* `receiptd expire`: messages whose final receipt has not come in time get another status, such as
 * UNKNOWN (inbox.expiry). Counters and subscribers see an expiry as they see a receipt. No lane has
 * to own the message: the larger code wins, whoever comes first, and the row's lock orders the two.
 * So steps may be killed, run again, or run twice at once. Called by `receiptd maintain`, too, and
 * by funnel.c. */
#include "expire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "actions/actions.h"
#include "config/dimensions.h"
#include "config/groups.h"
#include "folds/folds.h"
#include "inbox_check.h"
#include "postgres/sql.h"
#include "walk.h"

/* ---- rules as a parameter ---- */

/* A misspelt column would fit no message, and another rule would be used. */
static bool check_columns(struct command_context *context, const char *rules)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("expiry/missing"), 1, &rules, &context->error);
    const char *names = rows != NULL ? rcpt_session_rows_text(rows, 0, "names") : NULL;
    if (names != NULL) {
        rcpt_error_fatal(&context->error, EX_CONFIG,
                         "inbox.expiry: the inbox has no such column: %s", names);
        rcpt_error_hint(&context->error,
                        "entries name columns of message_inbox; where its table has just got the "
                        "column, run receiptd migrate");
    }
    bool good = rows != NULL && names == NULL;
    rcpt_session_rows_free(rows);
    return good;
}

/* ---- the statement ---- */

/* The subscribers are those of the lanes, in the same order; the caller frees the text. */
static char *step_of(const struct rcpt_config *config, bool by_dimensions, bool by_groups)
{
    bool has_series = config->counters.series_ms > 0;
    struct transition_wants wants = {.actions = actions_want(config)};
    folds_want(config, &wants);
    const char *folds = wants.fold_columns ? "expiry/60_folds_columns" : "expiry/60_folds";
    const char *const files[] = {"expiry/10_update",
                                 "expiry/30_count",
                                 by_dimensions ? "expiry/45_dimensions" : NULL,
                                 by_dimensions ? "expiry/50_no_echoes" : NULL,
                                 by_dimensions ? "expiry/51_dimensions" : NULL,
                                 by_groups ? "expiry/52_groups" : NULL,
                                 has_series ? "expiry/45_changes" : NULL,
                                 has_series ? "expiry/53_series" : NULL,
                                 wants.folds ? folds : NULL,
                                 wants.actions ? "expiry/61_actions" : NULL,
                                 "expiry/90_answer"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    for (size_t index = 0; index < sizeof(files) / sizeof(files[0]); index++)
        if (files[index] != NULL)
            fputs(rcpt_sql(files[index]), out);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

static bool walk_inbox(struct command_context *context, const char *rules)
{
    struct inbox_place place;
    struct rcpt_dimensions dimensions;
    struct rcpt_groups groups;
    rcpt_dimensions_read(context->config, &dimensions);
    rcpt_groups_read(context->config, &groups);
    char *step = step_of(context->config, dimensions.count > 0, groups.count > 0);
    inbox_place_of(context->config, &place);
    /* In the order of config/inbox_columns.h. */
    struct command_walk walk = {
        .context = context,
        .name = "messages",
        .done = "expired",
        .step = step,
        .schema = place.schema,
        .table = place.table,
        .bindings = {{NULL, NULL},
                     {NULL, NULL},
                     {"message_id", place.columns[0]},
                     {"status", place.columns[3]},
                     {"updated_at", place.columns[8]}},
        .binding_count = 5,
        .values = {rules, context->config->timeline.retention_ms > 0 ? "t" : "f"},
        .value_count = 2};
    for (size_t index = 0; index < dimensions.binding_count; index++)
        walk.bindings[walk.binding_count++] = dimensions.bindings[index];
    for (size_t index = 0; index < groups.binding_count; index++)
        walk.bindings[walk.binding_count++] = groups.bindings[index];
    bool good = command_walk(&walk, false);
    free(step);
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

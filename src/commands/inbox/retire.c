/* `receiptd retire`: deletes messages that are older than inbox.retention, and aliases that lead to
 * none of them any longer. Whole partitions go first (partitions_drop.c). The tables are walked
 * page by page (walk.c): each step is one statement and one transaction, and the trigger books in
 * it what goes. So it may be ended at any time, run again, or run twice at once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "../command.h"
#include "expire.h"
#include "keeps.h"
#include "partitions.h"
#include "place.h"
#include "receiptd/postgres/sql.h"
#include "retire.h"
#include "walk.h"

static bool walk_messages(struct command_context *context, const struct keeps *keeps, bool dry_run)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    struct command_walk walk = {.context = context,
                                .name = "messages",
                                .done = "deleted",
                                .step = rcpt_sql("retire/messages"),
                                .due = rcpt_sql("retire/messages_due"),
                                .schema = place.schema,
                                .table = place.table,
                                .bindings = {{NULL, NULL},
                                             {NULL, NULL},
                                             {"message_id", place.columns[INBOX_message_id]},
                                             {"org_id", place.columns[INBOX_org_id]},
                                             {"campaign_id", place.columns[INBOX_campaign_id]},
                                             {"created_at", place.created_at}},
                                .binding_count = 6,
                                .value_count = KEEPS_VALUES,
                                .retires = true};
    memcpy(walk.values, keeps->values, sizeof(keeps->values));
    return command_walk(&walk, dry_run);
}

bool retire_partitions(struct command_context *context, bool dry_run)
{
    struct keeps keeps;
    keeps_init(&keeps, context->config);
    bool good = partitions_retire(context, &keeps, dry_run);
    keeps_fini(&keeps);
    return good;
}

static bool retire_messages(struct command_context *context, bool dry_run)
{
    struct keeps keeps;
    if (keeps_shortest(context->config) == 0)
        return puts("messages: inbox.retention is not set, so none is deleted") >= 0;
    keeps_init(&keeps, context->config);
    bool good = walk_messages(context, &keeps, dry_run);
    keeps_fini(&keeps);
    return good;
}

static bool retire_aliases(struct command_context *context, bool dry_run)
{
    char keep[24];
    snprintf(keep, sizeof(keep), "%" PRId64, context->config->inbox.alias_retention_ms);
    struct command_walk walk = {.context = context,
                                .name = "aliases",
                                .done = "deleted",
                                .step = rcpt_sql("retire/aliases"),
                                .due = rcpt_sql("retire/aliases_due"),
                                .schema = context->config->postgres.schema,
                                .table = "message_alias",
                                .binding_count = 2,
                                .values = {keep},
                                .value_count = 1};
    return context->config->inbox.alias_retention_ms == 0 || command_walk(&walk, dry_run);
}

/* The trigger has forgotten the parts of messages that were booked. Others left without a trace,
 * such as by TRUNCATE of a partition: a walk finds theirs. */
static bool retire_parts(struct command_context *context, bool dry_run)
{
    struct command_walk walk = {.context = context,
                                .name = "parts of messages that are gone",
                                .done = "deleted",
                                .step = rcpt_sql("retire/message_parts"),
                                .due = rcpt_sql("retire/message_parts_due"),
                                .schema = context->config->postgres.schema,
                                .table = "message_part",
                                .binding_count = 2};
    return command_walk(&walk, dry_run);
}

/* Repeats the step until it finds nothing. */
static bool repeat(struct command_context *context, const char *file)
{
    const char *const values[] = {"1000"};
    int64_t left = 1;
    while (left > 0) {
        struct rcpt_session_rows *rows =
            rcpt_session_query(context->session, rcpt_sql(file), 1, values, &context->error);
        left = rows != NULL ? rcpt_session_rows_int(rows, 0, "rows") : -1;
        rcpt_session_rows_free(rows);
    }
    return left == 0;
}

/* Each deletion appends what it booked. Groups go when the last message of their campaign has
 * gone. */
static bool compact(struct command_context *context)
{
    return repeat(context, "retire/compact") && repeat(context, "retire/groups");
}

/* Whole partitions go first, so their messages need not be deleted row by row. */
bool retire_all(struct command_context *context, bool dry_run)
{
    return retire_partitions(context, dry_run) && retire_messages(context, dry_run) &&
           retire_aliases(context, dry_run) && retire_parts(context, dry_run) &&
           (dry_run || compact(context));
}

int command_retire(const struct command_call *call)
{
    struct command_context context;
    bool dry_run = command_option(call, "dry-run") != NULL;
    int exit_code = EX_USAGE;
    if (!command_open_as(&context, call, command_option(call, "dsn"), dry_run, &exit_code))
        return exit_code;
    return command_end_as_owner(call, &context, retire_all(&context, dry_run), "DELETE");
}

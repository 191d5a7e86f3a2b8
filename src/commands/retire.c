/* `receiptd retire`: deletes messages that are older than inbox.retention, and aliases that lead to
 * none of them any longer. It walks the tables page by page (walk.c): each step is one statement and
 * one transaction, and the trigger books in it what goes. So it may be ended at any time, run again,
 * or run twice at once. `receiptd maintain` is what a timer calls: expire.c, this, then recent.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "expire.h"
#include "inbox_check.h"
#include "postgres/array_text.h"
#include "postgres/sql.h"
#include "recent.h"
#include "walk.h"

/* ---- retentions as parameters ---- */

struct overrides {
    struct rcpt_array_text campaigns, orgs;
    char *campaign_keeps, *org_keeps; /* array literals */
};

static char *keeps_of(const struct rcpt_config *config, bool of_campaigns,
                      struct rcpt_array_text *names)
{
    size_t used = 1, size = 3 + config->inbox.overrides_count * 24;
    char *keeps = rcpt_malloc(size);
    keeps[0] = '{';
    for (size_t index = 0; index < config->inbox.overrides_count; index++) {
        const struct rcpt_config_retention *given = &config->inbox.overrides[index];
        const char *name = of_campaigns ? given->campaign : given->org_id;
        if (name == NULL)
            continue;
        rcpt_array_text_add(names, name, strlen(name));
        used += (size_t)snprintf(keeps + used, size - used, "%s%" PRId64, used > 1 ? "," : "",
                                 given->keep_ms);
    }
    keeps[used] = '}';
    keeps[used + 1] = '\0';
    return keeps;
}

static void overrides_init(struct overrides *overrides, const struct rcpt_config *config)
{
    rcpt_array_text_init(&overrides->campaigns);
    rcpt_array_text_init(&overrides->orgs);
    overrides->campaign_keeps = keeps_of(config, true, &overrides->campaigns);
    overrides->org_keeps = keeps_of(config, false, &overrides->orgs);
}

static void overrides_fini(struct overrides *overrides)
{
    rcpt_array_text_fini(&overrides->campaigns);
    rcpt_array_text_fini(&overrides->orgs);
    free(overrides->campaign_keeps);
    free(overrides->org_keeps);
}

/* ---- what is retired ---- */

static bool retire_messages(struct command_context *context, bool dry_run)
{
    const struct rcpt_config *config = context->config;
    struct inbox_place place;
    struct overrides overrides;
    char keep[24];
    if (config->inbox.retention_ms == 0 && config->inbox.overrides_count == 0)
        return puts("messages: inbox.retention is not set, so none is deleted") >= 0;
    inbox_place_of(config, &place);
    overrides_init(&overrides, config);
    snprintf(keep, sizeof(keep), "%" PRId64, config->inbox.retention_ms);
    struct command_walk walk = {
        .context = context,
        .name = "messages",
        .done = "deleted",
        .step = rcpt_sql("retire/messages"),
        .due = rcpt_sql("retire/messages_due"),
        .schema = place.schema,
        .table = place.table,
        .bindings = {{NULL, NULL},
                     {NULL, NULL},
                     {"message_id", place.columns[0]},
                     {"org_id", place.columns[1]},
                     {"campaign_id", place.columns[2]},
                     {"created_at", place.created_at}},
        .binding_count = 6,
        .values = {rcpt_array_text_finish(&overrides.campaigns), overrides.campaign_keeps,
                   rcpt_array_text_finish(&overrides.orgs), overrides.org_keeps, keep},
        .value_count = 5,
        .needs_trigger = true};
    bool good = command_walk(&walk, dry_run);
    overrides_fini(&overrides);
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

/* Each deletion appends what it booked. */
static bool compact(struct command_context *context)
{
    const char *const values[] = {"1000"};
    int64_t left = 1;
    while (left > 0) {
        struct rcpt_session_rows *rows = rcpt_session_query(
            context->session, rcpt_sql("retire/compact"), 1, values, &context->error);
        left = rows != NULL ? rcpt_session_rows_int(rows, 0, "rows") : -1;
        rcpt_session_rows_free(rows);
    }
    return left == 0;
}

static bool retire(struct command_context *context, bool dry_run)
{
    return retire_messages(context, dry_run) && retire_aliases(context, dry_run) &&
           (dry_run || compact(context));
}

/* The daemon's role may not delete messages. */
static int finish(const struct command_call *call, struct command_context *context, bool good)
{
    struct rcpt_error *error = &context->error;
    if (!good && error->exit_code == EX_NOPERM)
        rcpt_error_hint(error,
                        "run it with --dsn, as the owner of the schema; where inbox.table is "
                        "another role's, that role has to GRANT him DELETE on it");
    int exit_code = good ? command_printed(EX_OK) : command_fail_in(call, error);
    command_close(context);
    return exit_code;
}

int command_retire(const struct command_call *call)
{
    struct command_context context;
    bool dry_run = command_option(call, "dry-run") != NULL;
    int exit_code = EX_USAGE;
    if (!command_open_as(&context, call, command_option(call, "dsn"), dry_run, &exit_code))
        return exit_code;
    return finish(call, &context, retire(&context, dry_run));
}

int command_maintain(const struct command_call *call)
{
    struct command_context context;
    int exit_code = EX_USAGE;
    if (!command_open_as(&context, call, command_option(call, "dsn"), false, &exit_code))
        return exit_code;
    return finish(call, &context,
                  expire_messages(&context, false) && retire(&context, false) &&
                      recent_maintain(&context));
}

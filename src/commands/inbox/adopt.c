/* `receiptd adopt`: the own inbox, a flat table with messages, becomes partitioned beside a running
 * daemon. No row is copied: the table becomes the partition of all ids below a bound some spans
 * ahead. A check of its ids is added and validated first; then one short transaction puts the
 * parent in its place. A killed run leaves at most the check, which the next run or `receiptd
 * maintain` removes. */
#include <inttypes.h>
#include <stdlib.h>
#include <sysexits.h>

#include "partitions.h"
#include "partitions_internal.h"
#include "receiptd/postgres/sql.h"

static bool refuse_ids(const struct layout *layout, const struct rcpt_session_rows *found,
                       const char *upper)
{
    struct rcpt_error *error = &layout->context->error;
    const char *name = rcpt_id_name(layout->ids),
               *users = rcpt_session_rows_text(found, 0, "users");
    if (rcpt_session_rows_int(found, 0, "strange") > 0) {
        rcpt_error_fatal(
            error, EX_DATAERR,
            "%s of %s messages have ids that are no %s, for example %.64s: they have no "
            "place in the order of time",
            rcpt_session_rows_text(found, 0, "strange"), rcpt_session_rows_text(found, 0, "rows"),
            name, rcpt_session_rows_text(found, 0, "strange_id"));
        rcpt_error_hint(error, "leave inbox.partitions out: receiptd maintain makes a recent set, "
                               "which needs no order");
        return false;
    }
    if (rcpt_session_rows_int(found, 0, "beyond") > 0) {
        rcpt_error_fatal(
            error, EX_DATAERR,
            "%s messages have ids of a time in the future, at or above %s, for example "
            "%.64s: the partition of what is there now would not end before them",
            rcpt_session_rows_text(found, 0, "beyond"), upper,
            rcpt_session_rows_text(found, 0, "beyond_id"));
        rcpt_error_hint(error, "delete them, or set a longer inbox.partition_span");
        return false;
    }
    if (users == NULL)
        return true;
    rcpt_error_fatal(error, EX_CONFIG,
                     "message_inbox is named by others, who would go on with the messages of now "
                     "alone: %.300s",
                     users);
    rcpt_error_hint(error, "drop them, run receiptd adopt, make them again");
    return false;
}

static bool check(const struct layout *layout, const char *upper)
{
    struct command_context *context = layout->context;
    const char *const values[] = {rcpt_id_pattern(layout->ids), upper};
    struct rcpt_session_rows *found = rcpt_session_query(
        context->session, rcpt_sql("partitions/adopt_check"), 2, values, &context->error);
    bool good = found != NULL && refuse_ids(layout, found, upper);
    if (good)
        printf("%s messages, all with ids that are %ss below %s: their table becomes the partition "
               "message_inbox_before\n",
               rcpt_session_rows_text(found, 0, "rows"), rcpt_id_name(layout->ids), upper);
    fflush(stdout);
    rcpt_session_rows_free(found);
    return good;
}

/* The bound is days ahead, so no new message reaches it before the change. */
static bool prove(const struct layout *layout, const char *upper)
{
    const struct rcpt_pg_binding bindings[] = {
        {"other", "message_inbox"}, {"lower", ""}, {"upper", upper}};
    struct script script;
    script_begin(&script, layout->context);
    script_add(&script, "partitions/bounds_drop", bindings, 3);
    script_add(&script, "partitions/bounds", bindings, 3);
    if (!script_run(&script, "add a check to message_inbox"))
        return false;
    script_begin(&script, layout->context);
    script_add(&script, "partitions/bounds_validate", bindings, 3);
    return script_run_at_length(&script);
}

static bool swap(const struct layout *layout, const char *upper)
{
    const struct rcpt_config *config = layout->context->config;
    char fillfactor[16];
    snprintf(fillfactor, sizeof(fillfactor), "%u", config->inbox.fillfactor);
    const struct rcpt_pg_binding bindings[] = {{"upper", upper}, {"fillfactor", fillfactor}};
    const char *schema = config->postgres.schema;
    const struct rcpt_pg_binding before[] = {{"part_schema", schema},
                                             {"part", "message_inbox_before"}};
    const struct rcpt_pg_binding other[] = {{"part_schema", schema},
                                            {"part", "message_inbox_other"}};
    struct script script;
    script_begin(&script, layout->context);
    script_add(&script, "partitions/close", NULL, 0);
    script_add(&script, "partitions/parent", NULL, 0);
    script_add(&script, "partitions/adopt", bindings, 2);
    script_add(&script, "partitions/first_other", bindings, 2);
    if (config->inbox.count_targeted) {
        script_add(&script, "partitions/adopt_triggers", NULL, 0);
        script_add(&script, "partitions/triggers", before, 2);
        script_add(&script, "partitions/triggers", other, 2);
    }
    return script_run(&script, "put a partitioned table in the place of message_inbox");
}

static bool adopt_flat(const struct layout *layout, bool dry_run)
{
    char upper[RCPT_ID_BOUND_SIZE];
    rcpt_id_bound(layout->ids, layout_adopted_end(layout), upper);
    if (!check(layout, upper))
        return false;
    if (dry_run)
        return puts("nothing was changed") >= 0;
    if (!prove(layout, upper) || !swap(layout, upper))
        return false;
    puts("message_inbox is partitioned");
    return true;
}

static bool adopt(struct command_context *context, bool dry_run)
{
    struct layout layout;
    if (context->config->inbox.partitions != RCPT_PARTITIONS_OWN) {
        rcpt_error_fatal(&context->error, EX_CONFIG, "inbox.partitions is not own");
        rcpt_error_hint(&context->error, "set inbox.partitions to own, and inbox.ids");
        return false;
    }
    if (!partitions_lock(context))
        return context->error.text[0] == '\0';
    bool good = layout_read(&layout, context);
    if (!good && context->error.text[0] == '\0')
        rcpt_error_fatal(&context->error, EX_CONFIG, "there is no inbox yet: run receiptd migrate");
    if (good && layout_is(&layout, "partitioned"))
        puts("message_inbox is partitioned already");
    else if (good)
        good = adopt_flat(&layout, dry_run);
    layout_forget(&layout);
    return good && (dry_run || partitions_make(context));
}

int command_adopt(const struct command_call *call)
{
    struct command_context context;
    bool dry_run = command_option(call, "dry-run") != NULL;
    int exit_code = EX_USAGE;
    if (!command_open_as(&context, call, command_option(call, "dsn"), dry_run, &exit_code))
        return exit_code;
    return command_end_as_owner(call, &context, adopt(&context, dry_run), NULL);
}

/* `receiptd retire`: deletes messages that are older than inbox.retention, and aliases that lead to
 * none of them any longer. Whole partitions go first (partitions_drop.c). The tables are walked page by
 * page: each step is one statement and one transaction, and the trigger books in it what goes. So it
 * may be ended at any time, run again, or run twice at once. `receiptd maintain` is what a timer calls:
 * partitions.c, this, then recent.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "command.h"
#include "inbox_check.h"
#include "keeps.h"
#include "partitions.h"
#include "postgres/bind.h"
#include "postgres/sql.h"
#include "recent.h"

/* A step grows where it finds little and shrinks where it finds much. */
#define PAGES_MIN      16
#define PAGES_MAX      512
#define ROWS_FEW       1000
#define ROWS_MANY      10000
#define PROGRESS_EVERY 10 /* seconds */
#define MOST_PARAMS    7

/* A table that is walked: its statements, and their parameters behind the range of pages. */
struct walk {
    struct command_context *context;
    const char *name, *step, *due; /* what it is called; files of sql/ */
    const char *schema, *table;
    struct rcpt_pg_binding bindings[6]; /* of both files; the part's come first */
    size_t binding_count;
    const char *values[MOST_PARAMS]; /* from the third on */
    size_t value_count;
    bool is_inbox; /* needs the trigger; partitions that are young as a whole are left out */
    int64_t rows;
};

/* ---- walking a table ---- */

static char *bind_part(struct walk *walk, const char *file, const struct rcpt_session_rows *parts,
                       size_t part)
{
    walk->bindings[0] =
        (struct rcpt_pg_binding){"part_schema", rcpt_session_rows_text(parts, part, "schema")};
    walk->bindings[1] =
        (struct rcpt_pg_binding){"part_table", rcpt_session_rows_text(parts, part, "name")};
    return rcpt_pg_bind(rcpt_sql(file), walk->bindings, walk->binding_count, &walk->context->error);
}

/* Returns the rows that went, -1 on error. */
static int64_t step(struct walk *walk, const char *sql, int64_t first, int64_t end)
{
    char from[32], to[32];
    const char *values[MOST_PARAMS + 2] = {from, to};
    snprintf(from, sizeof(from), "(%" PRId64 ",0)", first);
    snprintf(to, sizeof(to), "(%" PRId64 ",0)", end);
    memcpy(values + 2, walk->values, walk->value_count * sizeof(values[0]));
    struct rcpt_session_rows *rows = rcpt_session_query(
        walk->context->session, sql, walk->value_count + 2, values, &walk->context->error);
    int64_t gone = rows != NULL ? rcpt_session_rows_int(rows, 0, "rows") : -1;
    rcpt_session_rows_free(rows);
    return gone;
}

static void print_progress(const struct walk *walk, const char *part, int64_t page, int64_t pages,
                           time_t *next)
{
    if (time(NULL) < *next)
        return;
    printf("%s: %" PRId64 " deleted, page %" PRId64 " of %" PRId64 " of %s\n", walk->name,
           walk->rows, page, pages, part);
    fflush(stdout);
    *next = time(NULL) + PROGRESS_EVERY;
}

/* Rows that come meanwhile are young: the pages are those that there are at the start. */
static bool walk_part(struct walk *walk, const struct rcpt_session_rows *parts, size_t part)
{
    char *sql = bind_part(walk, walk->step, parts, part);
    int64_t pages = rcpt_session_rows_int(parts, part, "pages"), size = PAGES_MIN, gone = 0;
    time_t next = time(NULL) + PROGRESS_EVERY;
    for (int64_t page = 0; sql != NULL && gone >= 0 && page < pages; page += size) {
        if (gone > ROWS_MANY && size > PAGES_MIN)
            size /= 2;
        else if (gone < ROWS_FEW && size < PAGES_MAX)
            size *= 2;
        gone = step(walk, sql, page, page + size);
        walk->rows += gone > 0 ? gone : 0;
        print_progress(walk, rcpt_session_rows_text(parts, part, "name"), page, pages, &next);
    }
    free(sql);
    return sql != NULL && gone >= 0;
}

/* What would go: one read of the part. */
static bool print_due(struct walk *walk, const struct rcpt_session_rows *parts, size_t part)
{
    char *sql = bind_part(walk, walk->due, parts, part);
    struct rcpt_session_rows *rows =
        sql != NULL ? rcpt_session_query(walk->context->session, sql, walk->value_count,
                                         walk->values, &walk->context->error)
                    : NULL;
    if (rows != NULL && rcpt_session_rows_int(rows, 0, "rows") > 0) {
        printf("%s: %s rows of %s would go, the oldest of %s", walk->name,
               rcpt_session_rows_text(rows, 0, "rows"), rcpt_session_rows_text(parts, part, "name"),
               rcpt_session_rows_text(rows, 0, "oldest"));
        if (walk->is_inbox)
            printf(", of %s campaigns", rcpt_session_rows_text(rows, 0, "campaigns"));
        putchar('\n');
        walk->rows += rcpt_session_rows_int(rows, 0, "rows");
    }
    rcpt_session_rows_free(rows);
    free(sql);
    return rows != NULL;
}

/* Without the trigger the counters would be ahead of the messages. */
static bool check_trigger(const struct walk *walk, const struct rcpt_session_rows *parts)
{
    if (!walk->is_inbox || rcpt_session_rows_count(parts) == 0 ||
        rcpt_session_rows_bool(parts, 0, "booked"))
        return true;
    rcpt_error_fatal(&walk->context->error, EX_CONFIG,
                     "table %s.%s has no trigger receiptd_count_deleted that is enabled: what is "
                     "deleted would not be booked",
                     walk->schema, walk->table);
    rcpt_error_hint(&walk->context->error, "run receiptd migrate, or ALTER TABLE … ENABLE TRIGGER");
    return false;
}

static bool is_young(const struct walk *walk, const struct rcpt_session_rows *parts, size_t part)
{
    return partitions_is_young(walk->context->config, rcpt_session_rows_int(parts, part, "now_ms"),
                               rcpt_session_rows_text(parts, part, "lower"),
                               rcpt_session_rows_text(parts, part, "upper"));
}

static bool walk_table(struct walk *walk, bool dry_run)
{
    const char *const values[] = {walk->schema, walk->table};
    struct rcpt_session_rows *parts = rcpt_session_query(
        walk->context->session, rcpt_sql("retire/parts"), 2, values, &walk->context->error);
    bool good = parts != NULL && check_trigger(walk, parts);
    for (size_t part = 0; good && part < rcpt_session_rows_count(parts); part++)
        if (!walk->is_inbox || !is_young(walk, parts, part))
            good = dry_run ? print_due(walk, parts, part) : walk_part(walk, parts, part);
    if (good)
        printf("%s: %" PRId64 " %s\n", walk->name, walk->rows,
               dry_run ? "would go; nothing was deleted" : "deleted");
    rcpt_session_rows_free(parts);
    return good;
}

/* ---- what is retired ---- */

static bool walk_messages(struct command_context *context, const struct keeps *keeps, bool dry_run)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    struct walk walk = {.context = context,
                        .name = "messages",
                        .step = "retire/messages",
                        .due = "retire/messages_due",
                        .schema = place.schema,
                        .table = place.table,
                        .bindings = {{NULL, NULL},
                                     {NULL, NULL},
                                     {"message_id", place.columns[0]},
                                     {"org_id", place.columns[1]},
                                     {"campaign_id", place.columns[2]},
                                     {"created_at", place.created_at}},
                        .binding_count = 6,
                        .value_count = KEEPS_VALUES,
                        .is_inbox = true};
    memcpy(walk.values, keeps->values, sizeof(keeps->values));
    return walk_table(&walk, dry_run);
}

/* Whole partitions first: what they held need not be deleted row by row. */
static bool retire_messages(struct command_context *context, bool dry_run)
{
    struct keeps keeps;
    keeps_init(&keeps, context->config);
    bool good = partitions_retire(context, &keeps, dry_run);
    if (keeps_shortest(context->config) == 0)
        puts("messages: inbox.retention is not set, so none is deleted");
    else
        good = good && walk_messages(context, &keeps, dry_run);
    keeps_fini(&keeps);
    return good;
}

static bool retire_aliases(struct command_context *context, bool dry_run)
{
    char keep[24];
    snprintf(keep, sizeof(keep), "%" PRId64, context->config->inbox.alias_retention_ms);
    struct walk walk = {.context = context,
                        .name = "aliases",
                        .step = "retire/aliases",
                        .due = "retire/aliases_due",
                        .schema = context->config->postgres.schema,
                        .table = "message_alias",
                        .binding_count = 2,
                        .values = {keep},
                        .value_count = 1};
    return context->config->inbox.alias_retention_ms == 0 || walk_table(&walk, dry_run);
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
    /* Partitions that could not be made are an error in the end; the rest is done in any case. */
    bool made = partitions_maintain(&context);
    struct rcpt_error missed = context.error;
    bool good = retire(&context, false) && recent_maintain(&context);
    if (good && !made)
        context.error = missed;
    return finish(call, &context, good && made);
}

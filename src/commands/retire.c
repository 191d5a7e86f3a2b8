/* `receiptd retire`: deletes messages that are older than inbox.retention, and aliases that lead to
 * none of them any longer. It walks the tables page by page: each step is one statement and one
 * transaction, and the trigger books in it what goes. So it may be ended at any time, run again, or
 * run twice at once. `receiptd maintain` is what a timer calls: this once a day, then recent.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "command.h"
#include "inbox_check.h"
#include "postgres/array_text.h"
#include "postgres/bind.h"
#include "postgres/sql.h"
#include "recent.h"

/* A batch may wait for a step, so a step is short: it takes twice as many pages where it took less
 * than STEP_SHORT, and half as many where it took longer than STEP_LONG. */
#define PAGES_MIN      1
#define PAGES_START    16
#define PAGES_MAX      512
#define STEP_SHORT     (20 * NS_PER_MS)
#define STEP_LONG      (50 * NS_PER_MS)
#define NS_PER_MS      INT64_C(1000000)
#define NS_PER_S       (1000 * NS_PER_MS)
#define PAUSE_MOST     (250 * NS_PER_MS)
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
    bool needs_trigger;
    int64_t rows;
};

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

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* As long as the step took: receipts have the server at least half of the time. */
static void pause_after(int64_t took_ns)
{
    int64_t pause = took_ns < PAUSE_MOST ? took_ns : PAUSE_MOST;
    const struct timespec wait = {.tv_sec = pause / NS_PER_S, .tv_nsec = pause % NS_PER_S};
    nanosleep(&wait, NULL);
}

static int64_t next_size(int64_t size, int64_t took_ns)
{
    if (took_ns > STEP_LONG && size > PAGES_MIN)
        return size / 2;
    return took_ns < STEP_SHORT && size < PAGES_MAX ? size * 2 : size;
}

/* Rows that come meanwhile are young: the pages are those that there are at the start. A step that
 * deletes nothing holds nothing that a batch waits for, so no pause follows. */
static bool walk_part(struct walk *walk, const struct rcpt_session_rows *parts, size_t part)
{
    char *sql = bind_part(walk, walk->step, parts, part);
    int64_t pages = rcpt_session_rows_int(parts, part, "pages"), size = PAGES_START, gone = 0;
    time_t next = time(NULL) + PROGRESS_EVERY;
    for (int64_t page = 0; sql != NULL && gone >= 0 && page < pages;) {
        int64_t begun_ns = now_ns();
        gone = step(walk, sql, page, page + size);
        int64_t took_ns = now_ns() - begun_ns;
        walk->rows += gone > 0 ? gone : 0;
        page += size;
        size = next_size(size, took_ns);
        print_progress(walk, rcpt_session_rows_text(parts, part, "name"), page, pages, &next);
        if (gone > 0)
            pause_after(took_ns);
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
        if (walk->needs_trigger)
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
    if (!walk->needs_trigger || rcpt_session_rows_count(parts) == 0 ||
        rcpt_session_rows_bool(parts, 0, "booked"))
        return true;
    rcpt_error_fatal(&walk->context->error, EX_CONFIG,
                     "table %s.%s has no trigger receiptd_count_deleted that is enabled: what is "
                     "deleted would not be booked",
                     walk->schema, walk->table);
    rcpt_error_hint(&walk->context->error, "run receiptd migrate, or ALTER TABLE … ENABLE TRIGGER");
    return false;
}

static bool walk_table(struct walk *walk, bool dry_run)
{
    const char *const values[] = {walk->schema, walk->table};
    struct rcpt_session_rows *parts = rcpt_session_query(
        walk->context->session, rcpt_sql("retire/parts"), 2, values, &walk->context->error);
    bool good = parts != NULL && check_trigger(walk, parts);
    for (size_t part = 0; good && part < rcpt_session_rows_count(parts); part++)
        good = dry_run ? print_due(walk, parts, part) : walk_part(walk, parts, part);
    if (good)
        printf("%s: %" PRId64 " %s\n", walk->name, walk->rows,
               dry_run ? "would go; nothing was deleted" : "deleted");
    rcpt_session_rows_free(parts);
    return good;
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
    struct walk walk = {
        .context = context,
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
        .values = {rcpt_array_text_finish(&overrides.campaigns), overrides.campaign_keeps,
                   rcpt_array_text_finish(&overrides.orgs), overrides.org_keeps, keep},
        .value_count = 5,
        .needs_trigger = true};
    bool good = walk_table(&walk, dry_run);
    overrides_fini(&overrides);
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

static bool note_end(struct command_context *context)
{
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, rcpt_sql("retire/ended"), 0, NULL, &context->error);
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

static bool retire(struct command_context *context, bool dry_run)
{
    return retire_messages(context, dry_run) && retire_aliases(context, dry_run) &&
           (dry_run || (compact(context) && note_end(context)));
}

/* A walk reads the whole inbox, so `maintain` walks once a day, however often a timer calls it. */
static bool retire_if_due(struct command_context *context)
{
    struct rcpt_session_rows *last =
        rcpt_session_query(context->session, rcpt_sql("retire/last"), 0, NULL, &context->error);
    bool good = last != NULL;
    if (good && rcpt_session_rows_count(last) > 0)
        printf("messages and aliases: the tables were walked until %s, and are again a day later; "
               "receiptd retire walks them at once\n",
               rcpt_session_rows_text(last, 0, "ended"));
    else
        good = good && retire(context, false);
    rcpt_session_rows_free(last);
    return good;
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
    return finish(call, &context, retire_if_due(&context) && recent_maintain(&context));
}

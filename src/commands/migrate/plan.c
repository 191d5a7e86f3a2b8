/* migrate, the plan: compares the database with what this version needs, and collects steps. A step
 * is a sentence and its SQL, a file of sql/ with its variables bound. Order: schema, tables,
 * functions and views, ladder, inbox, trigger, owners of functions, roles. Nothing is changed here.
 * Called by migrate.c and check_config.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../inbox/check.h"
#include "../inbox/partitions.h"
#include "migrate.h"
#include "receiptd/postgres/sql.h"

/* In order; a database that knows fewer gets the rest. The tables of the baseline are the oldest
 * that a migration brings forward. The files of a later version write its row into
 * schema_version. */
#define BASELINE 8
static const struct {
    int version;
    const char *file;
} migrations[] = {
    {BASELINE, "tables/version"},   {BASELINE, "tables/ladder"},     {BASELINE, "tables/counters"},
    {BASELINE, "tables/dedup"},     {BASELINE, "tables/positions"},  {BASELINE, "tables/parked"},
    {BASELINE, "tables/letters"},   {BASELINE, "tables/timeline"},   {BASELINE, "tables/alias"},
    {BASELINE, "tables/retention"}, {BASELINE, "tables/partitions"}, {BASELINE, "tables/recent"},
    {BASELINE, "tables/ranges"},    {BASELINE, "tables/groups"},     {BASELINE, "tables/folds"},
    {BASELINE, "tables/pipelines"}, {BASELINE, "tables/actions"},    {BASELINE, "tables/serve"},
    {BASELINE, "tables/erasure"},   {BASELINE, "tables/turns"},      {BASELINE, "tables/status"},
    {BASELINE, "tables/packing"},   {BASELINE, "tables/stream"},     {BASELINE, "tables/messages"},
    {BASELINE, "tables/pushes"},    {BASELINE, "tables/persons"},
};
#define NEWEST (migrations[RCPT_COUNT_OF(migrations) - 1].version)

/* ---- the inbox ---- */

static const struct rcpt_config *config_of(const struct migrate_plan *plan)
{
    return plan->context->config;
}

/* Whether the platform's own table is the inbox. */
static bool is_mapped(const struct migrate_plan *plan)
{
    return config_of(plan)->inbox.table != NULL;
}

/* NULL: the view or trigger has no comment, so receiptd did not make it. */
static bool is_mapping(const struct migrate_plan *plan, const char *stored)
{
    return stored != NULL && strcmp(stored, migrate_binding(plan, "mapping")) == 0;
}

/* A table and a view of one name exclude each other; which one goes is for an operator to
 * decide. */
static bool refuse_kind(struct migrate_plan *plan, bool is_view)
{
    struct rcpt_error *error = &plan->context->error;
    if (is_view) {
        rcpt_error_fatal(
            error, EX_CONFIG,
            "message_inbox is a view over an existing table, but inbox.table is not set");
        rcpt_error_hint(
            error,
            "set inbox.table as it was, or drop the view if our own table is to take its place");
    } else {
        rcpt_error_fatal(
            error, EX_CONFIG, "message_inbox is a table of its own, but inbox.table says %s.%s",
            migrate_binding(plan, "inbox_schema"), migrate_binding(plan, "inbox_table"));
        rcpt_error_hint(
            error, "leave inbox.table out, or drop the table message_inbox if it is not in use");
    }
    return false;
}

/* A migration does not partition a table with messages: batches would wait. */
static bool refuse_filled(struct migrate_plan *plan)
{
    struct rcpt_error *error = &plan->context->error;
    struct rcpt_session_rows *rows =
        rcpt_session_query(plan->context->session,
                           "SELECT EXISTS (SELECT FROM message_inbox) AS filled", 0, NULL, error);
    bool filled = rows != NULL && rcpt_session_rows_bool(rows, 0, "filled");
    rcpt_session_rows_free(rows);
    if (!filled)
        return rows != NULL;
    rcpt_error_fatal(
        error, EX_CONFIG,
        "inbox.partitions is %s, but message_inbox has messages and is not partitioned",
        config_of(plan)->inbox.partitions == RCPT_PARTITIONS_OWN ? "own" : "external");
    rcpt_error_hint(error, "run receiptd adopt, which partitions it beside the daemon");
    return false;
}

/* The flat table is made first, so that one file has its columns, and is dropped with its triggers.
 */
static bool plan_partitioned_inbox(struct migrate_plan *plan, bool exists)
{
    if (!rcpt_id_has_bounds(config_of(plan)->inbox.ids)) {
        rcpt_error_fatal(&plan->context->error, EX_CONFIG,
                         "inbox.partitions is external, and message_inbox is not partitioned yet: "
                         "set inbox.ids to uuidv7, ulid or ksuid");
        return false;
    }
    if (exists && !refuse_filled(plan))
        return false;
    bool good =
        exists ? migrate_add(plan, "partitions/lock_all",
                             "partition message_inbox, which has no message yet, by ranges of ids")
               : migrate_add(plan, "migrate/inbox_table",
                             "create table message_inbox, partitioned by ranges of ids");
    return good && migrate_append(plan, "partitions/parent") &&
           migrate_append(plan, "partitions/drop_empty") &&
           migrate_append(plan, "partitions/first_other") &&
           (!exists || !config_of(plan)->inbox.count_targeted ||
            (migrate_append(plan, "migrate/inbox_trigger") &&
             migrate_append(plan, "migrate/inbox_trigger_comment")));
}

/* `kind` is PostgreSQL's relkind: r a table, p a partitioned one, v a view; NULL: there is nothing
 * yet. */
static bool plan_own_inbox(struct migrate_plan *plan, const char *kind, int64_t fillfactor)
{
    if (kind != NULL && strcmp(kind, "v") == 0)
        return refuse_kind(plan, true);
    bool partitions = config_of(plan)->inbox.partitions != RCPT_PARTITIONS_NONE;
    if (partitions && (kind == NULL || strcmp(kind, "r") == 0))
        return plan_partitioned_inbox(plan, kind != NULL);
    if (kind != NULL && strcmp(kind, "p") == 0 && !partitions_check(plan->context))
        return false;
    if (kind == NULL)
        return migrate_add(plan, "migrate/inbox_table", "create table message_inbox, fillfactor %s",
                           migrate_binding(plan, "fillfactor"));
    /* A partitioned table has no pages of its own to fill. */
    if (strcmp(kind, "r") == 0 && fillfactor != (int64_t)config_of(plan)->inbox.fillfactor)
        return migrate_add(plan, "migrate/inbox_fillfactor",
                           "set fillfactor of message_inbox to %s",
                           migrate_binding(plan, "fillfactor"));
    return true;
}

/* The view is replaced when the mapping or map_inbox() has changed, or when the table has gained
 * columns. */
static bool plan_mapped_inbox(struct migrate_plan *plan, const struct rcpt_session_rows *state)
{
    const char *kind = rcpt_session_rows_text(state, 0, "inbox_kind");
    if (kind != NULL && strcmp(kind, "v") != 0)
        return refuse_kind(plan, false);
    if (!inbox_check_table(plan->context))
        return false;
    const char *unseen = rcpt_session_rows_text(state, 0, "unseen");
    bool is_same =
        kind != NULL && is_mapping(plan, rcpt_session_rows_text(state, 0, "inbox_mapping"));
    if (is_same && unseen == NULL && !migrate_part_changes(plan, "functions/map_inbox"))
        return true;
    plan->maps_inbox = !is_same;
    return migrate_add(plan, "migrate/inbox_view",
                       "%s view message_inbox over %s.%s, with its missing columns added",
                       kind != NULL ? "replace" : "create", migrate_binding(plan, "inbox_schema"),
                       migrate_binding(plan, "inbox_table")) &&
           migrate_append(plan, "migrate/inbox_view_comment");
}

/* ---- the trigger ---- */

/* A trigger on a table that is no longer the inbox would go on counting. */
static bool plan_trigger_drop(struct migrate_plan *plan, const char *schema, const char *table)
{
    const struct rcpt_pg_binding bindings[] = {{"inbox_schema", schema}, {"inbox_table", table}};
    return migrate_add_bound(plan, "migrate/inbox_trigger_drop", bindings, 2,
                             "drop the trigger that counts TARGETED on %s.%s, and those that book "
                             "what is deleted",
                             schema, table);
}

/* Triggers stay on the table of today and its partitions, if new rows are to be counted. A
 * partition that came since the last migration still needs one; a table that got the columns of
 * first times needs another function. */
static bool plan_triggers(struct migrate_plan *plan, const struct rcpt_session_rows *state)
{
    bool counts = config_of(plan)->inbox.count_targeted, found = false, good = true;
    bool whole = rcpt_session_rows_text(state, 0, "uncounted") == NULL;
    const char *const values[] = {config_of(plan)->postgres.schema,
                                  migrate_binding(plan, "inbox_schema"),
                                  migrate_binding(plan, "inbox_table")};
    struct rcpt_session_rows *rows = rcpt_session_query(
        plan->context->session, rcpt_sql("migrate/triggers"), 3, values, &plan->context->error);
    if (rows == NULL)
        return false;
    for (size_t row = 0; good && row < rcpt_session_rows_count(rows); row++) {
        if (counts && rcpt_session_rows_bool(rows, row, "is_inbox"))
            found = whole && is_mapping(plan, rcpt_session_rows_text(rows, row, "mapping")) &&
                    !migrate_part_changes(plan, "functions/install_inbox_trigger") &&
                    !migrate_part_changes(plan, "functions/install_retired_trigger") &&
                    !migrate_part_changes(plan, "functions/install_change_trigger") &&
                    !migrate_part_changes(plan, "functions/inbox_forgotten") &&
                    plan->has_times == rcpt_session_rows_bool(state, 0, "books_times");
        else if (!counts || !rcpt_session_rows_bool(rows, row, "in_inbox"))
            good = plan_trigger_drop(plan, rcpt_session_rows_text(rows, row, "inbox_schema"),
                                     rcpt_session_rows_text(rows, row, "inbox_table"));
    }
    plan->installs_triggers = counts && !found;
    if (good && plan->installs_triggers)
        good = migrate_add(plan, "migrate/inbox_trigger",
                           "create the trigger that counts TARGETED on %s.%s, and those that book "
                           "what is deleted",
                           migrate_binding(plan, "inbox_schema"),
                           migrate_binding(plan, "inbox_table")) &&
               migrate_append(plan, "migrate/inbox_trigger_comment");
    rcpt_session_rows_free(rows);
    return good;
}

/* ---- the whole ---- */

void migrate_plan_init(struct migrate_plan *plan, struct command_context *context,
                       const struct command_call *call, bool dry_run)
{
    memset(plan, 0, sizeof(*plan));
    plan->context = context;
    plan->call = call;
    plan->dry_run = dry_run;
    migrate_bind(plan, "schema", context->config->postgres.schema);
    migrate_inbox_bind(plan);
    migrate_ladder_bind(plan);
}

void migrate_plan_fini(struct migrate_plan *plan)
{
    for (size_t index = 0; index < plan->step_count; index++) {
        free(plan->steps[index].what);
        free(plan->steps[index].sql);
    }
    for (size_t index = 0; index < plan->owned_count; index++)
        free(plan->owned[index]);
}

void migrate_plan_again(struct migrate_plan *plan)
{
    struct command_context *context = plan->context;
    const struct command_call *call = plan->call;
    bool dry_run = plan->dry_run;
    migrate_plan_fini(plan);
    migrate_plan_init(plan, context, call, dry_run);
}

/* A newer schema is refused, since this version does not know it. A schema from before the baseline
 * is refused as well. */
static bool read_version(struct migrate_plan *plan, int64_t *version)
{
    struct rcpt_error *error = &plan->context->error;
    struct rcpt_session_rows *rows = rcpt_session_query(
        plan->context->session, rcpt_sql("control/schema_check"), 0, NULL, error);
    if (rows == NULL)
        return false;
    *version = rcpt_session_rows_int(rows, 0, "version");
    rcpt_session_rows_free(rows);
    if (*version > NEWEST) {
        rcpt_error_fatal(error, EX_CONFIG,
                         "schema %s has version %" PRId64 ", this receiptd knows %d",
                         config_of(plan)->postgres.schema, *version, NEWEST);
        rcpt_error_hint(error, "a newer or unreleased receiptd has migrated it: install that one");
        return false;
    }
    if (*version < BASELINE) {
        rcpt_error_fatal(error, EX_CONFIG,
                         "schema %s has version %" PRId64 ", from before the first release: this "
                         "receiptd brings forward version %d and later ones",
                         config_of(plan)->postgres.schema, *version, BASELINE);
        rcpt_error_hint(error,
                        "copy what you want to keep, then DROP SCHEMA \"%s\" CASCADE, which also "
                        "drops an inbox of receiptd's own, and migrate again",
                        config_of(plan)->postgres.schema);
        return false;
    }
    return true;
}

/* Versions count up, and their files never change after a release. Functions and views have hashes
 * (parts.c). */
static bool plan_versions(struct migrate_plan *plan, int64_t version)
{
    bool good = true;
    for (size_t index = 0; good && index < RCPT_COUNT_OF(migrations); index++) {
        if (migrations[index].version > version)
            good = migrate_add(plan, migrations[index].file, "create %s, version %d",
                               migrations[index].file, migrations[index].version);
    }
    return good;
}

/* Functions come before the ladder, which calls some; roles come last, since they get rights on
 * everything before. */
static bool plan_from(struct migrate_plan *plan, const struct rcpt_session_rows *state)
{
    int64_t version = 0;
    if (!rcpt_session_rows_bool(state, 0, "schema_exists") &&
        !migrate_add(plan, "migrate/schema", "create schema %s", config_of(plan)->postgres.schema))
        return false;
    if (rcpt_session_rows_bool(state, 0, "versions_exist") && !read_version(plan, &version))
        return false;
    plan->has_times = rcpt_session_rows_bool(state, 0, "has_times") ||
                      (!is_mapped(plan) && rcpt_session_rows_text(state, 0, "inbox_kind") == NULL);
    bool good = plan_versions(plan, version) && migrate_parts_plan(plan, version == 0);
    /* The ladder's check reads the inbox as it is; a database of ours always has one. */
    good = good && migrate_ladder_plan(plan, version == 0);
    if (is_mapped(plan))
        good = good && plan_mapped_inbox(plan, state);
    else
        good = good &&
               plan_own_inbox(plan, rcpt_session_rows_text(state, 0, "inbox_kind"),
                              rcpt_session_rows_int(state, 0, "fillfactor")) &&
               migrate_dimensions_plan(plan);
    return good && migrate_definers_prepare(plan) && plan_triggers(plan, state) &&
           migrate_parts_plan_private(plan, state) && migrate_definers_plan(plan) &&
           migrate_roles_plan(plan);
}

/* Tables of other roles may run code (triggers, policies), which a superuser would run with all
 * rights. */
static bool check_session(struct migrate_plan *plan, const struct rcpt_session_rows *state)
{
    struct rcpt_error *error = &plan->context->error;
    if (plan->dry_run || !rcpt_session_rows_bool(state, 0, "superuser") ||
        migrate_option(plan, "as-superuser") != NULL)
        return true;
    rcpt_error_fatal(
        error, EX_NOPERM,
        "role \"%s\" is a superuser: what a migration makes, or runs in another role's "
        "table, would work with all rights",
        rcpt_session_rows_text(state, 0, "session"));
    rcpt_error_hint(
        error,
        "make an owner and run it as that role: CREATE ROLE receiptd_owner LOGIN CREATEROLE; "
        "GRANT CREATE ON DATABASE \"%s\" TO receiptd_owner; afterwards ALTER ROLE "
        "receiptd_owner NOCREATEROLE; or accept that with --as-superuser",
        rcpt_session_rows_text(state, 0, "database"));
    return false;
}

/* A policy is code of the table's owner: with row_security off a query fails instead of running it.
 * Checks of partitions are not evaluated either. */
bool migrate_plan_make(struct migrate_plan *plan)
{
    if (!rcpt_session_execute(plan->context->session,
                              "SET LOCAL row_security = off; SET LOCAL constraint_exclusion = off",
                              &plan->context->error))
        return false;
    struct rcpt_session_rows *state = inbox_read_state(plan->context);
    bool good = state != NULL && check_session(plan, state) && plan_from(plan, state);
    rcpt_session_rows_free(state);
    return good;
}

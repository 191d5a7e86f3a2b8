/* `receiptd migrate`: one transaction under a lock makes a plan from the state of the database
 * (plan.c) and runs its steps. With --dry-run it lists the steps. With --sql it prints a script for
 * psql before them. A second run has nothing to do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../command.h"
#include "../inbox/check.h"
#include "../inbox/partitions.h"
#include "../inbox/recent.h"
#include "../waits.h"
#include "migrate.h"
#include "powers.h"
#include "receiptd/postgres/sql.h"
#include "settings.h"

/* ---- dry run ---- */

/* --sql prints a script of thousands of lines. The summary follows as comments at its end, where it
 * is read. */
static void print_summary(const struct migrate_plan *plan, const char *before)
{
    if (plan->step_count == 0)
        printf("%snothing to do\n", before);
    else
        printf("%s%zu steps, in one transaction; nothing was written:\n", before, plan->step_count);
    for (size_t index = 0; index < plan->step_count; index++)
        printf("%s  %zu. %s\n", before, index + 1, plan->steps[index].what);
    if (plan->note[0] != '\0')
        printf("%s%s\n", before, plan->note);
}

/* psql can run the script. */
static bool print_script(struct migrate_plan *plan)
{
    static const char prologue[] =
        "BEGIN;\nSET LOCAL synchronous_commit = on;\nSET LOCAL search_path = :\"schema\";\n";
    char *text = rcpt_pg_bind(prologue, plan->bindings, plan->binding_count, &plan->context->error);
    if (text == NULL)
        return false;
    if (plan->step_count > 0)
        fputs(text, stdout);
    for (size_t index = 0; index < plan->step_count; index++)
        printf("\n-- %s\n\n%s", plan->steps[index].what, plan->steps[index].sql);
    if (plan->step_count > 0)
        puts("\nCOMMIT;");
    free(text);
    return settings_apply(plan->context, true, plan->step_count > 0);
}

/* A read-only transaction makes the plan without locks and is rolled back. */
static bool dry_run(struct migrate_plan *plan)
{
    struct rcpt_session *session = plan->context->session;
    struct rcpt_error *error = &plan->context->error;
    bool sql = migrate_option(plan, "sql") != NULL;
    if (!rcpt_session_begin(session, "READ ONLY", error))
        return false;
    bool good = migrate_plan_make(plan) && (!sql || print_script(plan));
    if (good)
        print_summary(plan, sql ? "-- " : "");
    rcpt_session_rollback(session);
    return good;
}

/* ---- the migration ---- */

#define LOCK                                                                                       \
    "LOCK TABLE schema_version IN SHARE ROW EXCLUSIVE MODE" /* excludes itself, reads go on */

/* `there`: an earlier migration has made the table that is locked. */
static bool look_for_versions(struct migrate_plan *plan, bool *there)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        plan->context->session, "SELECT to_regclass('schema_version') IS NOT NULL AS there", 0,
        NULL, &plan->context->error);
    if (rows != NULL)
        *there = rcpt_session_rows_bool(rows, 0, "there");
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* A second migration waits and says so. If two first migrations run at once, the second fails when
 * it makes the schema: see migrate(). */
static bool lock(struct migrate_plan *plan)
{
    struct rcpt_session *session = plan->context->session;
    struct rcpt_error *error = &plan->context->error;
    if (!look_for_versions(plan, &plan->was_there))
        return false;
    if (!plan->was_there)
        return true;
    if (rcpt_session_execute(session, "SAVEPOINT free; " LOCK " NOWAIT", error))
        return true;
    if (strcmp(error->code, "55P03") != 0)
        return false;
    *error = (struct rcpt_error){0};
    puts("waiting for another migration to end");
    fflush(stdout);
    return rcpt_session_execute(session, "ROLLBACK TO free", error) &&
           waits_execute(plan->context, LOCK);
}

/* An existing table may hold statuses that the ladder does not have, and rows that no trigger has
 * counted. */
static bool check_mapped_rows(struct migrate_plan *plan, bool *has_rows)
{
    if (!plan->maps_inbox)
        return true;
    if (!migrate_check_callers(plan))
        return false;
    struct rcpt_session_rows *rows = rcpt_session_query(
        plan->context->session, "SELECT EXISTS (SELECT FROM message_inbox) AS has_rows", 0, NULL,
        &plan->context->error);
    if (rows == NULL)
        return false;
    *has_rows = rcpt_session_rows_bool(rows, 0, "has_rows");
    rcpt_session_rows_free(rows);
    return !*has_rows ||
           (migrate_ladder_check(plan) &&
            rcpt_session_execute(plan->context->session, rcpt_sql("migrate/organisations"),
                                 &plan->context->error));
}

/* Steps are printed before they run: one that hangs shows its name. */
static bool apply(struct migrate_plan *plan, bool *has_rows)
{
    struct rcpt_session *session = plan->context->session;
    struct rcpt_error *error = &plan->context->error;
    if (!rcpt_session_execute(session, rcpt_sql("control/synchronous"), error) || !lock(plan) ||
        !migrate_plan_make(plan))
        return false;
    for (size_t index = 0; index < plan->step_count; index++) {
        puts(plan->steps[index].what);
        fflush(stdout);
        if (!rcpt_session_execute(session, plan->steps[index].sql, error))
            return false;
    }
    return check_mapped_rows(plan, has_rows) && migrate_check_callers(plan) &&
           inbox_check_statements(plan->context, migrate_option(plan, "role")) &&
           rcpt_session_commit(session, error);
}

/* Comes last, so that it is read: the roles exist now, and the right to make roles is not needed
 * any longer. */
static bool describe_powers(struct migrate_plan *plan)
{
    const char *const roles[] = {migrate_option(plan, "role"), migrate_option(plan, "intake-role"),
                                 migrate_option(plan, "serve-role")};
    return powers_describe(plan->context, roles, RCPT_COUNT_OF(roles));
}

/* Another first migration may have made the same schema at the same time. Then this one begins
 * again. */
static bool was_overtaken(struct migrate_plan *plan)
{
    const char *code = plan->context->error.code;
    struct rcpt_error kept = plan->context->error;
    bool there = false;
    if (plan->was_there ||
        (strcmp(code, "23505") != 0 && strcmp(code, "42P06") != 0 && strcmp(code, "42P07") != 0))
        return false;
    plan->context->error = (struct rcpt_error){0};
    if (look_for_versions(plan, &there) && there)
        return true;
    plan->context->error = kept;
    return false;
}

/* All or nothing: DDL of PostgreSQL is transactional, so a failure leaves the schema as it was. */
static bool migrate(struct migrate_plan *plan)
{
    bool has_rows = false;
    if (!rcpt_session_begin(plan->context->session, "", &plan->context->error))
        return false;
    if (!apply(plan, &has_rows)) {
        rcpt_session_rollback(plan->context->session);
        if (was_overtaken(plan)) {
            puts("another migration has just ended, so this one begins again");
            migrate_plan_again(plan);
            return migrate(plan);
        }
        fputs("nothing was changed\n", stderr);
        return false;
    }
    if (plan->step_count == 0)
        puts("nothing to do");
    else
        printf("done: %zu steps, committed\n", plan->step_count);
    if (plan->note[0] != '\0')
        puts(plan->note);
    if (has_rows)
        puts("the inbox has rows that are not counted yet: receiptd audit --repair counts them");
    return settings_apply(plan->context, false, plan->step_count > 0) &&
           partitions_make(plan->context) &&
           recent_describe(plan->context, plan->step_count == 0) &&
           partitions_note(plan->context) && describe_powers(plan);
}

/* A dry run has a read-only session, so it needs fewer rights. */
int command_migrate(const struct command_call *call)
{
    struct command_context context;
    struct migrate_plan plan;
    int exit_code;
    bool is_dry = command_option(call, "dry-run") != NULL;
    if (command_option(call, "sql") != NULL && !is_dry)
        return command_usage(call, "--sql goes with --dry-run");
    if (!command_open_as(&context, call, command_option(call, "dsn"), is_dry, &exit_code))
        return exit_code;
    migrate_plan_init(&plan, &context, call, is_dry);
    bool good = is_dry ? dry_run(&plan) : migrate(&plan);
    exit_code = good ? command_printed(EX_OK) : command_fail_in(call, &context.error);
    migrate_plan_fini(&plan);
    command_close(&context);
    return exit_code;
}

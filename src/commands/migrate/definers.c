/* migrate, functions with rights of their own (SECURITY DEFINER): they belong to roles that cannot
 * log in and have only the rights of sql/migrate/definer_*.sql. They never belong to the owner of
 * the schema: a fault in one of them would give all of the owner's rights. Called by plan.c. */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "migrate.h"
#include "receiptd/postgres/sql.h"

static const struct {
    const char *variable, *file, *does;
} definers[MIGRATE_DEFINERS] = {
    /* rows of definer_state.sql, in its order */
    [MIGRATE_COUNTER] = {"counter_role", "migrate/definer_counter", "counts inserted messages"},
    [MIGRATE_WATCHER] = {"watcher_role", "migrate/definer_watcher",
                         "watches the server's sessions"},
};

/* ---- what only an administrator can do ---- */

/* A role with members or rights would lend them to the function. */
static bool refuse_problem(struct migrate_plan *plan, const struct rcpt_session_rows *state,
                           size_t row)
{
    struct rcpt_error *error = &plan->context->error;
    rcpt_error_fatal(error, EX_NOPERM, "role \"%s\", which %s, %s: others would have its rights",
                     rcpt_session_rows_text(state, row, "role"), definers[row].does,
                     rcpt_session_rows_text(state, row, "problem"));
    rcpt_error_hint(error, "have an administrator run: %s",
                    rcpt_session_rows_text(state, row, "undo"));
    return false;
}

/* Prints each statement on its own line, to be copied. */
static bool refuse_creation(struct migrate_plan *plan, const struct rcpt_session_rows *state)
{
    struct rcpt_error *error = &plan->context->error;
    const char *session = rcpt_session_rows_text(state, 0, "session");
    for (size_t row = 0; row < MIGRATE_DEFINERS; row++) {
        const char *role = rcpt_session_rows_text(state, row, "role");
        if (!rcpt_session_rows_bool(state, row, "role_exists"))
            fprintf(stderr, "CREATE ROLE \"%s\" NOLOGIN;\n", role);
        if (!rcpt_session_rows_bool(state, row, "usable"))
            fprintf(stderr, "GRANT \"%s\" TO \"%s\";\n", role, session);
        if (row == MIGRATE_WATCHER && !rcpt_session_rows_bool(state, row, "sees"))
            fprintf(stderr, "GRANT pg_read_all_stats TO \"%s\";\n", role);
    }
    rcpt_error_fatal(error, EX_NOPERM,
                     "role \"%s\" may not make the roles that the functions with rights of their "
                     "own belong to",
                     session);
    rcpt_error_hint(error,
                    "have an administrator run the statements above, then repeat this; or "
                    "give \"%s\" CREATEROLE until it is done",
                    session);
    return false;
}

/* ---- steps ---- */

/* Creates the role, or joins it: only a member may give a function to a role. */
static bool plan_role(struct migrate_plan *plan, const struct rcpt_session_rows *state, size_t row)
{
    const char *role = rcpt_session_rows_text(state, row, "role");
    bool exists = rcpt_session_rows_bool(state, row, "role_exists");
    bool usable = rcpt_session_rows_bool(state, row, "usable");
    char purpose[256];
    snprintf(purpose, sizeof(purpose), "receiptd: %s, schema %s of database %s", definers[row].does,
             plan->context->config->postgres.schema,
             rcpt_session_rows_text(state, row, "database"));
    const struct rcpt_pg_binding bindings[] = {{"role", role}, {"purpose", purpose}};
    if (!plan->dry_run && (exists ? !usable && !rcpt_session_rows_bool(state, row, "may_join")
                                  : !rcpt_session_rows_bool(state, row, "may_create")))
        return refuse_creation(plan, state);
    if (!exists &&
        !migrate_add_bound(plan, "migrate/definer_create", bindings, 2,
                           "create role %s, which %s and cannot log in", role, definers[row].does))
        return false;
    return usable || migrate_add_bound(plan, "migrate/definer_member", bindings, 1,
                                       "become a member of role %s", role);
}

/* Seeing other roles' sessions is a right that only an administrator can give; without it the
 * watcher still works for our own. */
static bool plan_sight(struct migrate_plan *plan, const struct rcpt_session_rows *state)
{
    const char *role = rcpt_session_rows_text(state, MIGRATE_WATCHER, "role");
    if (rcpt_session_rows_bool(state, MIGRATE_WATCHER, "sees"))
        return true;
    if (rcpt_session_rows_bool(state, MIGRATE_WATCHER, "may_show"))
        return migrate_add(plan, "migrate/definer_stats", "let role %s see the sessions of all",
                           role);
    snprintf(plan->note, sizeof(plan->note),
             "the age of other roles' snapshots is not seen until an administrator runs: GRANT "
             "pg_read_all_stats TO \"%s\"",
             role);
    return true;
}

/* The trigger's function is not needed where nothing is counted. */
static bool plan_definer(struct migrate_plan *plan, const struct rcpt_session_rows *state,
                         size_t row)
{
    /* The trigger's function may be missing where nothing is counted. */
    bool needed = row == MIGRATE_WATCHER || plan->context->config->inbox.count_targeted ||
                  rcpt_session_rows_bool(state, row, "function_exists");
    migrate_bind(plan, definers[row].variable, rcpt_session_rows_text(state, row, "role"));
    if (rcpt_session_rows_text(state, row, "problem") != NULL)
        return refuse_problem(plan, state, row);
    plan->hands_over[row] = needed && !rcpt_session_rows_bool(state, row, "settled");
    return !plan->hands_over[row] || plan_role(plan, state, row);
}

/* The roles are made before the functions. migrate_definers_plan() hands the functions over
 * afterwards. */
bool migrate_definers_prepare(struct migrate_plan *plan)
{
    const char *const values[] = {plan->context->config->postgres.schema};
    struct rcpt_session_rows *state =
        rcpt_session_query(plan->context->session, rcpt_sql("migrate/definer_state"), 1, values,
                           &plan->context->error);
    if (state == NULL)
        return false;
    RCPT_ASSERT(rcpt_session_rows_count(state) == MIGRATE_DEFINERS);
    bool good = true;
    for (size_t row = 0; good && row < MIGRATE_DEFINERS; row++)
        good = plan_definer(plan, state, row);
    good = good && plan_sight(plan, state);
    rcpt_session_rows_free(state);
    return good;
}

/* The counter's role may read first times if its trigger books them, even if it owns the function
 * already. */
static bool plan_times(struct migrate_plan *plan)
{
    return !plan->has_times || !(plan->hands_over[MIGRATE_COUNTER] || plan->installs_triggers) ||
           migrate_append(plan, "migrate/definer_times");
}

bool migrate_definers_plan(struct migrate_plan *plan)
{
    bool good = true;
    for (size_t row = 0; good && row < MIGRATE_DEFINERS; row++)
        good = !plan->hands_over[row] ||
               migrate_add(plan, definers[row].file, "give the function that %s to role %s",
                           definers[row].does, migrate_binding(plan, definers[row].variable));
    return good && plan_times(plan);
}

/* migrate --role, --platform-role, --intake-role and --serve-role. Makes the role if it is missing.
 * Gives it exactly the rights of its file: sql/migrate/role.sql, platform_role.sql, intake_role.sql
 * or serve_role.sql. */
#include <string.h>
#include <sysexits.h>

#include "migrate.h"
#include "receiptd/base/error.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/serve/serve.h"

#define ROLE_NAME_MAX 63u /* PostgreSQL cuts longer ones off */

/* The option, the variable of the SQL files that holds its value, and the file that gives the
 * rights. */
static const struct {
    const char *name, *variable, *file;
} options[] = {
    {"role", "receiptd_role", "migrate/role"},
    {"platform-role", "platform_role", "migrate/platform_role"},
    {"intake-role", "intake_role", "migrate/intake_role"},
    {"serve-role", "serve_role", "migrate/serve_role"},
};

/* A role with another purpose is refused: its members would get the rights, or it would lose rights
 * that it needs. */
static bool check_name(struct migrate_plan *plan, const char *option, const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > ROLE_NAME_MAX)
        return rcpt_error_fatal(&plan->context->error, EX_USAGE,
                                "--%s: a name has 1 to %u bytes, this has %zu", option,
                                ROLE_NAME_MAX, size);
    const char *whose = strncmp(name, "pg_", 3) == 0 ? "of PostgreSQL's own"
                        : strcmp(name, migrate_binding(plan, "counter_role")) == 0 ||
                                strcmp(name, migrate_binding(plan, "watcher_role")) == 0
                            ? "that of a function of ours"
                            : NULL;
    for (size_t index = 0; whose == NULL && options[index].name != option; index++) {
        const char *other = migrate_option(plan, options[index].name);
        whose = other != NULL && strcmp(name, other) == 0 ? "named twice" : NULL;
    }
    if (whose == NULL)
        return true;
    rcpt_error_fatal(&plan->context->error, EX_USAGE, "--%s: role \"%s\" is %s", option, name,
                     whose);
    rcpt_error_hint(&plan->context->error, "name a role that has no other purpose");
    return false;
}

/* An owner has all rights on what he owns, whatever is granted. */
static bool refuse_owner(struct migrate_plan *plan, const char *name, const char *owner)
{
    struct rcpt_error *error = &plan->context->error;
    rcpt_error_fatal(error, EX_CONFIG,
                     "role \"%s\" can act as \"%s\", which owns schema %s: no grant limits it",
                     name, owner, plan->context->config->postgres.schema);
    rcpt_error_hint(error, "name another role, one that is no superuser and no member of \"%s\"",
                    owner);
    return false;
}

/* A role is made without a password: how it logs in is for the administrator. */
static bool plan_creation(struct migrate_plan *plan, const char *name,
                          const struct rcpt_session_rows *state)
{
    struct rcpt_error *error = &plan->context->error;
    if (rcpt_session_rows_bool(state, 0, "role_exists"))
        return true;
    if (!rcpt_session_rows_bool(state, 0, "may_create")) {
        rcpt_error_fatal(error, EX_NOPERM,
                         "role \"%s\" does not exist, and role \"%s\" may not create it", name,
                         rcpt_session_rows_text(state, 0, "session"));
        rcpt_error_hint(error, "have an administrator do it: CREATE ROLE \"%s\" LOGIN", name);
        return false;
    }
    const struct rcpt_pg_binding binding = {"role", name};
    return migrate_add_bound(plan, "migrate/role_create", &binding, 1,
                             "create role %s, without a password", name);
}

/* The state is read before the plan runs: a role that this plan creates is not there yet. */
static bool plan_role(struct migrate_plan *plan, const char *option, const char *variable,
                      const char *file)
{
    const char *role = migrate_option(plan, option);
    if (role == NULL)
        return true;
    if (!check_name(plan, option, role))
        return false;
    const char *const values[] = {role, plan->context->config->postgres.schema};
    struct rcpt_session_rows *state = rcpt_session_query(
        plan->context->session, rcpt_sql("migrate/role_state"), 2, values, &plan->context->error);
    if (state == NULL)
        return false;
    bool good = rcpt_session_rows_bool(state, 0, "owns")
                    ? refuse_owner(plan, role, rcpt_session_rows_text(state, 0, "owner"))
                    : plan_creation(plan, role, state);
    rcpt_session_rows_free(state);
    migrate_bind(plan, variable, role);
    return good && migrate_add(plan, file, "give role %s its rights, and no others, in schema %s",
                               role, plan->context->config->postgres.schema);
}

/* The readers' role may read the columns that each inbox has, and those that the configuration
 * names. */
static bool grant_read(struct migrate_plan *plan)
{
    if (migrate_option(plan, "serve-role") == NULL)
        return true;
    const struct rcpt_serve_columns columns = rcpt_serve_columns_of(plan->context->config);
    const char *const shown[] = {columns.customer, columns.logical, columns.channel,
                                 columns.customer != NULL ? columns.newest : NULL};
    struct rcpt_array_text names;
    rcpt_array_text_init(&names);
    for (size_t index = 0; index < RCPT_COUNT_OF(shown); index++)
        if (shown[index] != NULL)
            rcpt_array_text_add(&names, shown[index], strlen(shown[index]));
    for (size_t index = 0; index < columns.expiry_count; index++)
        rcpt_array_text_add(&names, columns.expiry[index], strlen(columns.expiry[index]));
    migrate_bind(plan, "serve_columns", rcpt_array_text_finish(&names));
    rcpt_array_text_fini(&names);
    return migrate_append(plan, "migrate/serve_role_columns");
}

/* The daemon's role may insert and delete messages only where topics announce them. */
static bool grant_messages(struct migrate_plan *plan)
{
    return migrate_option(plan, "role") == NULL ||
           plan->context->config->kafka.message_topics_count == 0 ||
           migrate_append(plan, "migrate/role_messages");
}

/* Roles without an option keep their rights. */
bool migrate_roles_plan(struct migrate_plan *plan)
{
    bool good = true;
    for (size_t index = 0; good && index < RCPT_COUNT_OF(options); index++)
        good = plan_role(plan, options[index].name, options[index].variable, options[index].file);
    const char *platform_role = migrate_option(plan, "platform-role");
    return good && grant_messages(plan) && grant_read(plan) &&
           (platform_role == NULL || migrate_dimensions_grant(plan, platform_role));
}

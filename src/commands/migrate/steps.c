/* migrate, the steps of the plan and the variables of their SQL files. A step is a sentence and its
 * SQL. Called by all other files of this folder. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migrate.h"
#include "receiptd/postgres/sql.h"

/* ---- variables ---- */

/* The plan owns copies: values come from the configuration, from arrays and from the stack. */
void migrate_bind(struct migrate_plan *plan, const char *name, const char *value)
{
    RCPT_ASSERT(plan->binding_count < MIGRATE_MAX_BINDINGS);
    char *copy = rcpt_strdup(value);
    plan->owned[plan->owned_count++] = copy;
    plan->bindings[plan->binding_count++] = (struct rcpt_pg_binding){.name = name, .value = copy};
}

/* A missing name is a bug, so it is asserted. */
const char *migrate_binding(const struct migrate_plan *plan, const char *name)
{
    size_t index = 0;
    while (index < plan->binding_count && strcmp(plan->bindings[index].name, name) != 0)
        index++;
    RCPT_ASSERT(index < plan->binding_count);
    return plan->bindings[index].value;
}

/* ---- steps ---- */

/* The text joins the last step, so both succeed or fail together. */
bool migrate_append(struct migrate_plan *plan, const char *file)
{
    struct migrate_step *step = &plan->steps[plan->step_count - 1];
    char *more =
        rcpt_pg_bind(rcpt_sql(file), plan->bindings, plan->binding_count, &plan->context->error);
    if (more == NULL)
        return false;
    size_t used = strlen(step->sql), added = strlen(more) + 1;
    step->sql = rcpt_realloc(step->sql, used + added);
    memcpy(step->sql + used, more, added);
    free(more);
    return true;
}

/* A step's SQL is one file with its variables bound; rcpt_pg_bind() quotes the values. */
static bool add_bound(struct migrate_plan *plan, const char *file,
                      const struct rcpt_pg_binding *bindings, size_t count, const char *what)
{
    RCPT_ASSERT(plan->step_count < MIGRATE_MAX_STEPS);
    char *sql = rcpt_pg_bind(rcpt_sql(file), bindings, count, &plan->context->error);
    if (sql == NULL)
        return false;
    plan->steps[plan->step_count++] = (struct migrate_step){.what = rcpt_strdup(what), .sql = sql};
    return true;
}

bool migrate_add_bound(struct migrate_plan *plan, const char *file,
                       const struct rcpt_pg_binding *bindings, size_t count, const char *format,
                       ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return add_bound(plan, file, bindings, count, what);
}

const char *migrate_option(const struct migrate_plan *plan, const char *name)
{
    return plan->call != NULL ? command_option(plan->call, name) : NULL;
}

bool migrate_add(struct migrate_plan *plan, const char *file, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    return add_bound(plan, file, plan->bindings, plan->binding_count, what);
}

/* migrate, functions and views: each is one file of sql/functions or sql/views. A file is run if
 * its hash differs from the one that the schema has noted. plan.c calls this after the tables,
 * since functions and views name them.
 *
 * A file replaces the function while instances of the previous release still call it. It keeps
 * parameters and result: a function with another signature gets another name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "migrate.h"
#include "receiptd/core/hash.h"
#include "receiptd/postgres/sql.h"

/* A file that the schema has not noted has no hash. */
static const char *stored_hash(const struct rcpt_session_rows *stored, const char *name)
{
    for (size_t row = 0; stored != NULL && row < rcpt_session_rows_count(stored); row++)
        if (strcmp(rcpt_session_rows_text(stored, row, "name"), name) == 0)
            return rcpt_session_rows_text(stored, row, "hash");
    return "";
}

/* The new hash is stored in the same step as the function. */
static bool plan_part(struct migrate_plan *plan, const struct rcpt_session_rows *stored,
                      const char *name)
{
    char hash[24];
    const char *text = rcpt_sql(name);
    snprintf(hash, sizeof(hash), "%016" PRIx64, rcpt_hash_text_extended(text, strlen(text), 0));
    if (strcmp(stored_hash(stored, name), hash) == 0)
        return true;
    const struct rcpt_pg_binding bindings[] = {{"part", name}, {"hash", hash}};
    if (!migrate_add_bound(plan, "migrate/part_store", bindings, 2, "create or replace %s", name))
        return false;
    plan->steps[plan->step_count - 1].part = name;
    return migrate_append(plan, name);
}

/* Steps that depend on a function ask whether it is being replaced. */
bool migrate_part_changes(const struct migrate_plan *plan, const char *name)
{
    for (size_t index = 0; index < plan->step_count; index++)
        if (plan->steps[index].part != NULL && strcmp(plan->steps[index].part, name) == 0)
            return true;
    return false;
}

/* All files of a folder, in alphabetical order: none of them needs another one at creation. */
static bool plan_folder(struct migrate_plan *plan, const struct rcpt_session_rows *stored,
                        const char *folder)
{
    bool good = true;
    for (size_t index = 0; good && rcpt_sql_name(index) != NULL; index++)
        if (strncmp(rcpt_sql_name(index), folder, strlen(folder)) == 0)
            good = plan_part(plan, stored, rcpt_sql_name(index));
    return good;
}

bool migrate_parts_plan(struct migrate_plan *plan, bool fresh)
{
    struct rcpt_session_rows *stored = NULL;
    if (!fresh) {
        stored = rcpt_session_query(plan->context->session, rcpt_sql("migrate/parts_read"), 0, NULL,
                                    &plan->context->error);
        if (stored == NULL)
            return false;
    }
    bool good = plan_folder(plan, stored, "functions/") && plan_folder(plan, stored, "views/");
    rcpt_session_rows_free(stored);
    return good;
}

bool migrate_parts_plan_private(struct migrate_plan *plan, const struct rcpt_session_rows *state)
{
    bool is_open = rcpt_session_rows_bool(state, 0, "functions_open");
    for (size_t index = 0; index < plan->step_count; index++)
        is_open = is_open || plan->steps[index].part != NULL;
    return !is_open ||
           migrate_add(
               plan, "migrate/functions_private",
               "take functions from PUBLIC: only roles that were given one by name may call it");
}

/* migrate, the ladder: fills, extends or replaces its tables. Daemons go on while a ladder grows.
 * Any other change is checked against the rows in use, and raises generations, so that daemons with
 * the old ladder stop. Called by plan.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "migrate.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/bind.h"
#include "receiptd/postgres/sql.h"

/* The parameters of ladder_fill.sql, $1 … $9. */
enum {
    CODES,
    NAMES,
    PARENTS,
    TERMINALS,
    FLAG_BITS,
    IMPLIED,
    CHANNELS,
    OVERRIDDEN,
    BECOMING,
    ARRAYS
};
static const char *const array_names[ARRAYS] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};

/* Arrays are texts in PostgreSQL's own form, since a dry run prints them into a script. */
static void add_text(struct rcpt_array_text *array, const char *text)
{
    rcpt_array_text_add(array, text, strlen(text));
}

/* Roots have no parent, statuses have no bit, and most flags imply no status: these are null. */
static void add_int_or_null(struct rcpt_array_text *array, bool is_null, int64_t value)
{
    if (is_null)
        rcpt_array_text_add_null(array);
    else
        rcpt_array_text_add_int(array, value);
}

/* One element in each of the six arrays of statuses and flags, in the ladder's order. */
static void add_entry(struct rcpt_array_text arrays[ARRAYS], const struct rcpt_ladder_entry *entry)
{
    rcpt_array_text_add_int(&arrays[CODES], entry->code);
    add_text(&arrays[NAMES], entry->name);
    add_int_or_null(&arrays[PARENTS], entry->is_flag || entry->parent == RCPT_LADDER_NO_STATUS,
                    entry->parent);
    add_text(&arrays[TERMINALS], entry->terminal ? "t" : "f");
    add_int_or_null(&arrays[FLAG_BITS], !entry->is_flag, entry->code - RCPT_LADDER_FIRST_FLAG_CODE);
    add_int_or_null(&arrays[IMPLIED], !entry->is_flag || entry->top == 0, entry->top);
}

/* The ladder as arrays, the parameters of ladder_fill.sql. */
void migrate_ladder_bind(struct migrate_plan *plan)
{
    const struct rcpt_config *config = plan->context->config;
    struct rcpt_array_text arrays[ARRAYS];
    for (size_t index = 0; index < ARRAYS; index++)
        rcpt_array_text_init(&arrays[index]);
    for (size_t index = 0; index < rcpt_ladder_entry_count(config->ladder); index++)
        add_entry(arrays, rcpt_ladder_entry(config->ladder, index));
    for (size_t index = 0; index < config->ladder_definition.override_count; index++) {
        const struct rcpt_override_definition *override =
            &config->ladder_definition.overrides[index];
        add_text(&arrays[CHANNELS], override->channel);
        add_text(&arrays[OVERRIDDEN], override->status);
        add_text(&arrays[BECOMING], override->becomes);
    }
    for (size_t index = 0; index < ARRAYS; index++) {
        migrate_bind(plan, array_names[index], rcpt_array_text_finish(&arrays[index]));
        rcpt_array_text_fini(&arrays[index]);
    }
    migrate_bind(plan, "ladder_hash", rcpt_ladder_hash(config->ladder));
}

/* ---- contradictions ---- */

/* A long list is cut; the hint has the count. */
static void refuse(struct migrate_plan *plan, const struct rcpt_session_rows *rows)
{
    char list[400] = "";
    size_t used = 0, count = rcpt_session_rows_count(rows);
    for (size_t row = 0; row < count && used < 300; row++) {
        int size = snprintf(list + used, sizeof(list) - used, "%s%s (%s, %s rows) %s",
                            row > 0 ? "; " : "", rcpt_session_rows_text(rows, row, "name"),
                            rcpt_session_rows_text(rows, row, "code"),
                            rcpt_session_rows_text(rows, row, "rows"),
                            rcpt_session_rows_text(rows, row, "problem"));
        used += (size_t)size;
    }
    rcpt_error_fatal(&plan->context->error, EX_CONFIG, "the ladder contradicts rows in use: %s",
                     list);
    rcpt_error_hint(
        &plan->context->error,
        "%zu in all; keep code and parent of statuses in use, and add new ones beside them", count);
}

/* Our own table belongs to the owner of the schema, so no foreign code runs when it is read. */
static bool inbox_is_own(struct migrate_plan *plan, bool *own)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        plan->context->session,
        "SELECT relkind <> 'v' AS own FROM pg_class WHERE oid = 'message_inbox'::regclass", 0, NULL,
        &plan->context->error);
    if (rows != NULL)
        *own = rcpt_session_rows_bool(rows, 0, "own");
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* Takes a lock on the inbox. A dry run takes none. */
static bool lock_inbox(struct migrate_plan *plan, const char *statement)
{
    struct rcpt_error *error = &plan->context->error;
    char *sql = rcpt_pg_bind(statement, plan->bindings, plan->binding_count, error);
    bool good = sql != NULL && rcpt_session_execute(plan->context->session, sql, error);
    free(sql);
    return good;
}

/* Reading a foreign table may call functions of its owner (policies, indexes, rules): they would
 * run with the rights of this session. */
static bool check_callers(struct migrate_plan *plan)
{
    struct rcpt_error *error = &plan->context->error;
    const char *const values[] = {migrate_binding(plan, "inbox_schema"),
                                  migrate_binding(plan, "inbox_table")};
    struct rcpt_session_rows *rows = rcpt_session_query(
        plan->context->session, rcpt_sql("migrate/inbox_callers"), 2, values, error);
    bool good = rows != NULL && rcpt_session_rows_count(rows) == 0;
    if (rows != NULL && !good) {
        const char *object = rcpt_session_rows_text(rows, 0, "object");
        rcpt_error_fatal(error, EX_NOPERM,
                         "%s calls %s of role \"%s\": a session that reads the inbox table runs it "
                         "with the session's rights",
                         object, rcpt_session_rows_text(rows, 0, "function"),
                         rcpt_session_rows_text(rows, 0, "owner"));
        rcpt_error_hint(error, "drop the %s, or check the function and give it to a superuser",
                        object);
    }
    rcpt_session_rows_free(rows);
    return good;
}

bool migrate_check_callers(struct migrate_plan *plan)
{
    bool own = false;
    if (!inbox_is_own(plan, &own))
        return false;
    return own || ((plan->dry_run ||
                    lock_inbox(plan, "LOCK TABLE message_inbox IN SHARE UPDATE EXCLUSIVE MODE")) &&
                   check_callers(plan));
}

/* If the table does not exist yet, nothing was retired. */
static struct rcpt_session_rows *read_retired(struct migrate_plan *plan)
{
    struct rcpt_session *session = plan->context->session;
    struct rcpt_error *error = &plan->context->error;
    struct rcpt_session_rows *rows = rcpt_session_query(
        session,
        "SELECT to_regclass('campaign_retired') IS NOT NULL AS there, NULL AS status, NULL AS "
        "flags, NULL AS messages",
        0, NULL, error);
    if (rows == NULL || !rcpt_session_rows_bool(rows, 0, "there"))
        return rows;
    rcpt_session_rows_free(rows);
    return rcpt_session_query(session, rcpt_sql("migrate/ladder_retired"), 0, NULL, error);
}

/* Every status that a message has, live or retired, must be in the new ladder, with the same code
 * and parent. */
bool migrate_ladder_check(struct migrate_plan *plan)
{
    struct rcpt_session_rows *retired = NULL, *rows = NULL;
    if (!migrate_check_callers(plan) || (retired = read_retired(plan)) == NULL)
        return false;
    const char *const values[] = {migrate_binding(plan, array_names[CODES]),
                                  migrate_binding(plan, array_names[NAMES]),
                                  migrate_binding(plan, array_names[PARENTS]),
                                  migrate_binding(plan, array_names[FLAG_BITS]),
                                  rcpt_session_rows_text(retired, 0, "status"),
                                  rcpt_session_rows_text(retired, 0, "flags"),
                                  rcpt_session_rows_text(retired, 0, "messages")};
    rows = rcpt_session_query(plan->context->session, rcpt_sql("migrate/ladder_check"), 7, values,
                              &plan->context->error);
    bool good = rows != NULL && rcpt_session_rows_count(rows) == 0;
    if (rows != NULL && !good)
        refuse(plan, rows);
    rcpt_session_rows_free(retired);
    rcpt_session_rows_free(rows);
    return good;
}

bool migrate_ladder_try(struct migrate_plan *plan)
{
    struct rcpt_error *error = &plan->context->error;
    if (!lock_inbox(plan, "LOCK TABLE :\"inbox_schema\".:\"inbox_table\" IN SHARE UPDATE EXCLUSIVE "
                          "MODE") ||
        !check_callers(plan))
        return false;
    char *sql =
        rcpt_pg_bind(rcpt_sql("migrate/trial_rows"), plan->bindings, plan->binding_count, error);
    struct rcpt_session_rows *rows =
        sql != NULL ? rcpt_session_query(plan->context->session, sql, 0, NULL, error) : NULL;
    free(sql);
    bool good = rows != NULL && rcpt_session_rows_count(rows) == 0;
    if (rows != NULL && !good)
        refuse(plan, rows);
    rcpt_session_rows_free(rows);
    return good;
}

/* ---- steps ---- */

/* The migration first waits for batches of running daemons: one of them could write a status that
 * is about to go. */
static bool check_in_use(struct migrate_plan *plan)
{
    if (!plan->dry_run &&
        !rcpt_session_execute(plan->context->session, rcpt_sql("migrate/progress_lock"),
                              &plan->context->error))
        return false;
    return migrate_ladder_check(plan);
}

/* Running daemons would end with exit code 78 when they next read the pins, and again at each
 * restart. A dry run only notes it. */
static bool spare_daemons(struct migrate_plan *plan)
{
    struct rcpt_error *error = &plan->context->error;
    if (migrate_option(plan, "force") != NULL)
        return true;
    struct rcpt_session_rows *rows = rcpt_session_query(
        plan->context->session, rcpt_sql("migrate/live_daemons"), 0, NULL, error);
    if (rows == NULL)
        return false;
    const char *instances = rcpt_session_rows_text(rows, 0, "instances");
    bool good = instances == NULL || plan->dry_run;
    if (instances != NULL && plan->dry_run)
        snprintf(plan->note, sizeof(plan->note),
                 "refused unless --force: this ladder stops running daemons: %.160s", instances);
    if (!good) {
        rcpt_error_fatal(error, EX_CONFIG,
                         "this ladder changes the previous one instead of adding to it, and would "
                         "stop running daemons: %.300s",
                         instances);
        rcpt_error_hint(error, "only add statuses, which needs just a reload; or stop these "
                               "daemons, migrate, and start them with this configuration; or add "
                               "--force: these daemons end with exit code 78");
    }
    rcpt_session_rows_free(rows);
    return good;
}

struct ladder_state { /* columns of ladder_state.sql */
    bool filled, same, extends;
    int64_t pins;
};

/* A ladder that only grows keeps running daemons correct: the migration waits for no batch and
 * stops no daemon. */
static bool plan_change(struct migrate_plan *plan, const struct ladder_state *state)
{
    size_t entries = rcpt_ladder_entry_count(plan->context->config->ladder);
    const char *hash = migrate_binding(plan, "ladder_hash");
    bool replaced = !state->same && !state->extends;
    if (state->pins > 0 && !spare_daemons(plan))
        return false;
    if (state->filled && (replaced || state->pins > 0) && !check_in_use(plan))
        return false;
    if (!state->same &&
        !migrate_add(plan, "migrate/ladder_fill", "%s the ladder: %zu statuses and flags, hash %s",
                     state->extends  ? "extend"
                     : state->filled ? "replace"
                                     : "fill",
                     entries, hash))
        return false;
    if (state->extends && !migrate_add(plan, "migrate/ladder_extend",
                                       "pin ladder %s for the topics of the previous one; daemons "
                                       "with that one go on until a reload",
                                       hash))
        return false;
    if (!state->same &&
        !migrate_add(plan, "migrate/ladder_store", "note that ladder %s is in the tables", hash))
        return false;
    return state->pins == 0 || migrate_add(plan, "migrate/ladder_pin",
                                           "pin ladder %s for %" PRId64
                                           " topics and raise their generation; daemons with "
                                           "the old ladder stop",
                                           hash, state->pins);
}

/* `fresh`: the tables do not exist yet, so there is nothing to compare with. */
bool migrate_ladder_plan(struct migrate_plan *plan, bool fresh)
{
    const char *values[ARRAYS + 1];
    if (fresh)
        return plan_change(plan, &(struct ladder_state){.filled = false});
    for (size_t index = 0; index < ARRAYS; index++)
        values[index] = migrate_binding(plan, array_names[index]);
    values[ARRAYS] = migrate_binding(plan, "ladder_hash");
    struct rcpt_session_rows *rows =
        rcpt_session_query(plan->context->session, rcpt_sql("migrate/ladder_state"), ARRAYS + 1,
                           values, &plan->context->error);
    if (rows == NULL)
        return false;
    const struct ladder_state state = {.filled = rcpt_session_rows_bool(rows, 0, "filled"),
                                       .same = rcpt_session_rows_bool(rows, 0, "same"),
                                       .extends = rcpt_session_rows_bool(rows, 0, "extends"),
                                       .pins = rcpt_session_rows_int(rows, 0, "pins")};
    rcpt_session_rows_free(rows);
    return plan_change(plan, &state);
}

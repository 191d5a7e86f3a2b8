/* Checks whether receipts would be exact in an existing table. It looks in the catalogs for shapes
 * that are known to fail (sql/migrate/inbox_problems.sql, inbox_additions.sql, inbox_hazards.sql).
 * Then it prepares the daemon's statements, which finds all other faults. Called by migrate.c,
 * migrate/plan.c and check_config.c. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "partitions.h"
#include "receiptd/actions/actions.h"
#include "receiptd/config/pipelines.h"
#include "receiptd/folds/folds.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/bind.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/postgres/statements.h"
#include "receiptd/receipts/layout.h"
#include "receiptd/receipts/rules.h"

/* ---- the table ---- */

/* Runs a statement that lists problems, and prints them; false: the query failed. */
static bool list_problems(struct command_context *context, const char *sql, size_t count,
                          const char *const *values, size_t *found)
{
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, sql, count, values, &context->error);
    if (rows == NULL)
        return false;
    fflush(stdout);
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++) {
        const char *cure = rcpt_session_rows_text(rows, row, "sql");
        fprintf(stderr, "receiptd: %s\nHINT: %s%s%s\n",
                rcpt_session_rows_text(rows, row, "problem"),
                rcpt_session_rows_text(rows, row, "advice"), cure != NULL ? ": " : "",
                cure != NULL ? cure : "");
    }
    *found += rcpt_session_rows_count(rows);
    rcpt_session_rows_free(rows);
    return true;
}

/* The columns of the inbox, and its index on the id. The statement stands in three files. */
static bool list_column_problems(struct command_context *context, const char *const *values,
                                 size_t *found)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&sql, &size);
    fputs(rcpt_sql("migrate/inbox_problems/10_columns"), out);
    fputs(rcpt_sql("migrate/inbox_problems/20_keys"), out);
    fputs(rcpt_sql("migrate/inbox_problems/90_list"), out);
    RCPT_ASSERT(fclose(out) == 0);
    bool good = list_problems(context, sql, 3, values, found);
    free(sql);
    return good;
}

/* The columns of counters.by and counters.groups. */
static bool list_dimension_problems(struct command_context *context,
                                    const struct inbox_place *place, size_t *found)
{
    struct rcpt_array_text columns;
    struct rcpt_kinds dimensions;
    struct rcpt_kinds groups;
    rcpt_array_text_init(&columns);
    rcpt_dimensions_read(context->config, &dimensions);
    for (size_t index = 0; index < dimensions.count; index++)
        rcpt_array_text_add(&columns, dimensions.columns[index], strlen(dimensions.columns[index]));
    rcpt_groups_read(context->config, &groups);
    for (size_t index = 0; index < groups.count; index++)
        rcpt_array_text_add(&columns, groups.columns[index], strlen(groups.columns[index]));
    const char *const values[] = {place->schema, place->table, rcpt_array_text_finish(&columns)};
    bool good = list_problems(context, rcpt_sql("migrate/dimension_problems"), 3, values, found);
    rcpt_array_text_fini(&columns);
    return good;
}

/* Preparing the statements finds out whether their index is there. */
static bool list_range_problems(struct command_context *context, const struct inbox_place *place,
                                size_t *found)
{
    struct rcpt_array_text columns;
    struct rcpt_ranges ranges;
    rcpt_ranges_read(context->config, &ranges);
    if (!ranges.on)
        return true;
    const char *sent = context->config->inbox.sent_at != NULL ? ranges.sent : place->created_at;
    rcpt_array_text_init(&columns);
    rcpt_array_text_add(&columns, ranges.recipient, strlen(ranges.recipient));
    rcpt_array_text_add(&columns, ranges.account, strlen(ranges.account));
    const char *const values[] = {place->schema, place->table, rcpt_array_text_finish(&columns),
                                  sent};
    bool good = list_problems(context, rcpt_sql("migrate/range_problems"), 4, values, found);
    rcpt_array_text_fini(&columns);
    return good;
}

bool inbox_check_table(struct command_context *context)
{
    const struct rcpt_config *config = context->config;
    struct inbox_place place;
    size_t found = 0;
    inbox_place_of(config, &place);
    if (!place.mapped)
        return partitions_check(context);
    char *columns = inbox_columns_json(config);
    const char *const values[] = {place.schema,
                                  place.table,
                                  columns,
                                  config->postgres.schema,
                                  config->unknown == RCPT_UNKNOWN_INSERT ? "t" : "f",
                                  config->inbox.count_targeted ? "t" : "f",
                                  config->kafka.message_topics_count > 0 ? "t" : "f"};
    bool good = list_column_problems(context, values, &found) &&
                list_problems(context, rcpt_sql("migrate/inbox_additions"), 4, values, &found) &&
                list_problems(context, rcpt_sql("migrate/inbox_hazards"), 7, values, &found) &&
                list_dimension_problems(context, &place, &found) &&
                list_range_problems(context, &place, &found);
    free(columns);
    good = good && (found > 0 || partitions_check(context));
    return good && (found == 0 ||
                    rcpt_error_fatal(&context->error, EX_CONFIG,
                                     "inbox table %s.%s cannot be the inbox as it is: %zu problems "
                                     "are named above",
                                     place.schema, place.table, found));
}

struct rcpt_session_rows *inbox_read_state(struct command_context *context)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    char *columns = inbox_columns_json(context->config);
    const char *const values[] = {context->config->postgres.schema, place.schema, place.table,
                                  columns};
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, rcpt_sql("migrate/state"), 4, values, &context->error);
    free(columns);
    return rows;
}

/* ---- the statements ---- */

static bool check_list(struct command_context *context, bool used,
                       const struct rcpt_pg_statement *(*list_of)(size_t *count))
{
    size_t count;
    const struct rcpt_pg_statement *list = list_of(&count);
    return !used || rcpt_session_check_statements(context->session, list, count, &context->error);
}

/* The statements are those of receipts/lanes.c: the same subscribers in the same order, and the
 * same rules. */
static bool check_lanes(struct command_context *context)
{
    const struct rcpt_config *config = context->config;
    struct transition_wants wants = {.actions = actions_want(config)};
    struct rules rules;
    size_t count;
    folds_want(config, &wants);
    rules_read(config, &wants, &rules);
    struct rcpt_session_rows *recent = rcpt_session_query(
        context->session, rcpt_sql("control/recent_read"), 0, NULL, &context->error);
    if (recent == NULL)
        return false;
    const bool there = rcpt_session_rows_count(recent) > 0;
    struct rcpt_lane_statements *statements = rules_statements(
        config, &rules, &wants, there ? rcpt_session_rows_text(recent, 0, "since") : NULL,
        there ? rcpt_session_rows_text(recent, 0, "column") : NULL);
    const struct rcpt_pg_statement *list = rcpt_lane_statements_list(statements, &count);
    bool good = rcpt_session_check_statements(context->session, list, count, &context->error);
    rcpt_lane_statements_free(statements);
    rcpt_session_rows_free(recent);
    return good;
}

/* The first check that fails ends them all. */
static bool check_all(struct command_context *context)
{
    const struct rcpt_config *config = context->config;
    bool topics = false;
    for (size_t index = 0; index < config->folds_count; index++)
        topics = topics || config->folds[index].source == RCPT_FOLD_TOPIC;
    return check_lanes(context) && check_list(context, true, rcpt_control_statements) &&
           check_list(context, actions_want(config), rcpt_action_statements) &&
           check_list(context, config->folds_count > 0 || config->stream.topic != NULL,
                      rcpt_fold_statements) &&
           check_list(context, topics, rcpt_fold_topic_statements) &&
           check_list(context, config->intake.accounts_count > 0, rcpt_intake_statements) &&
           check_list(context, config->kafka.message_topics_count > 0, rcpt_message_statements);
}

/* If the session cannot take the role, it checks with its own rights. */
static bool take_role(struct command_context *context, const char *role)
{
    const struct rcpt_pg_binding binding = {"role", role};
    struct rcpt_error ignored;
    char *sql = rcpt_pg_bind("SET LOCAL ROLE :\"role\"", &binding, 1, &ignored);
    bool good = sql != NULL &&
                rcpt_session_execute(context->session, "SAVEPOINT role", &context->error) &&
                (rcpt_session_execute(context->session, sql, &ignored) ||
                 rcpt_session_execute(context->session, "ROLLBACK TO role", &context->error));
    free(sql);
    return good;
}

/* A missing column of a pipeline ends the daemon. A missing column of a fold's rule is only noted.
 */
bool inbox_check_fields(struct command_context *context)
{
    const struct rcpt_config *config = context->config;
    char *rules = folds_rules_text(config);
    const char *const values[] = {config->compiled != NULL ? config->compiled->definitions : "[]",
                                  rules, config->actions.zone};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("command/inbox_fields"), 3, values, &context->error);
    free(rules);
    if (rows == NULL)
        return false;
    const char *pipelines = rcpt_session_rows_text(rows, 0, "pipelines");
    const char *columns = rcpt_session_rows_text(rows, 0, "rules");
    if (columns != NULL)
        fprintf(stderr,
                "note: folds: the inbox has no such column: %s; it is null in every event and "
                "matches nothing\n",
                columns);
    if (pipelines != NULL) {
        rcpt_error_fatal(&context->error, EX_CONFIG, "pipelines: the inbox has no such column: %s",
                         pipelines);
        rcpt_error_hint(&context->error,
                        "org, subject and once_per name columns of message_inbox; if its table has "
                        "just got the column, run receiptd migrate");
    }
    const char *zone = rcpt_session_rows_text(rows, 0, "zone");
    if (zone != NULL)
        rcpt_error_fatal(&context->error, EX_CONFIG, "actions.zone: PostgreSQL knows no zone %s",
                         zone);
    bool good = pipelines == NULL && zone == NULL;
    rcpt_session_rows_free(rows);
    return good;
}

bool inbox_check_statements(struct command_context *context, const char *role)
{
    return (role == NULL || take_role(context, role)) && check_all(context) &&
           rcpt_session_execute(context->session, "SET LOCAL ROLE NONE", &context->error);
}

/* Checks in a command what `receiptd run` checks when its connections come up: each statement is
 * prepared and planned, none is run. Called by commands/inbox_check.c in a transaction that is
 * rolled back, or of a migration.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "receiptd/postgres/session.h"
#include "receiptd/postgres/statements.h"

/* PREPARE as a text: libpq would prepare the same, and waits in a way that no signal ends. */
static bool prepare(struct rcpt_session *session, const struct rcpt_pg_statement *statement,
                    struct rcpt_error *error)
{
    size_t size = strlen(statement->sql), bytes = size + strlen(statement->name) + 16;
    while (size > 0 && strchr(";\n", statement->sql[size - 1]) != NULL)
        size--;
    char *sql = rcpt_malloc(bytes);
    snprintf(sql, bytes, "PREPARE \"%s\" AS %.*s", statement->name, (int)size, statement->sql);
    bool good = rcpt_session_execute(session, sql, error);
    free(sql);
    if (!good)
        rcpt_plan_unprepared(error, statement->name);
    return good;
}

/* The first column as texts, which belong to the rows; the caller frees the array. */
static const char **texts_of(const struct rcpt_session_rows *rows, const char *column)
{
    size_t count = rcpt_session_rows_count(rows);
    const char **texts = rcpt_calloc(count + 1, sizeof(*texts));
    for (size_t row = 0; row < count; row++)
        texts[row] = rcpt_session_rows_text(rows, row, column);
    return texts;
}

/* The answers to two questions: which tables stand behind the name, and what the plan is. */
static bool check_plan(const struct rcpt_pg_statement *statement,
                       const struct rcpt_session_rows *relations,
                       const struct rcpt_session_rows *lines, struct rcpt_error *error)
{
    const char **names = texts_of(relations, "quote_ident"),
               **texts = texts_of(lines, "QUERY PLAN");
    enum rcpt_plan plan = rcpt_plan_check(texts, rcpt_session_rows_count(lines), names,
                                          rcpt_session_rows_count(relations));
    free(names);
    free(texts);
    if (plan != RCPT_PLAN_SCAN && plan != RCPT_PLAN_ABSENT)
        return true;
    rcpt_plan_refuse(error, statement, plan);
    return false;
}

/* Planning checks the rights, too. */
static bool explain(struct rcpt_session *session, const struct rcpt_pg_statement *statement,
                    struct rcpt_error *error)
{
    struct rcpt_session_rows *count = rcpt_session_query(
        session,
        "SELECT cardinality(parameter_types) AS n FROM pg_prepared_statements WHERE name = $1", 1,
        &statement->name, error);
    if (count == NULL)
        return false;
    char *sql = rcpt_plan_explain(statement->name, (int)rcpt_session_rows_int(count, 0, "n"));
    rcpt_session_rows_free(count);
    struct rcpt_session_rows *lines = rcpt_session_query(session, sql, 0, NULL, error);
    free(sql);
    if (lines == NULL) {
        rcpt_plan_unprepared(error, statement->name);
        return false;
    }
    bool good = true;
    if (statement->must_use_index_on != NULL) {
        struct rcpt_session_rows *relations = rcpt_session_query(
            session, rcpt_plan_relations_sql, 1, &statement->must_use_index_on, error);
        good = relations != NULL && check_plan(statement, relations, lines, error);
        rcpt_session_rows_free(relations);
    }
    rcpt_session_rows_free(lines);
    return good;
}

/* Names of different lists may be the same, so each is dropped again. */
bool rcpt_session_check_statements(struct rcpt_session *session,
                                   const struct rcpt_pg_statement *statements, size_t count,
                                   struct rcpt_error *error)
{
    bool good = rcpt_session_execute(session,
                                     "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL "
                                     "jit = off; SET LOCAL enable_seqscan = off",
                                     error);
    for (size_t index = 0; good && index < count; index++)
        good = rcpt_lane_statement_is_utility(&statements[index]) ||
               (prepare(session, &statements[index], error) &&
                explain(session, &statements[index], error) &&
                rcpt_session_execute(session, "DEALLOCATE ALL", error));
    return good;
}

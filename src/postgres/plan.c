/* Reads EXPLAIN's text about a prepared statement: whether it reaches its table by an index. Pure;
 * setup.c and session_check.c call it for the statements that must not scan the inbox.
 */
#include "plan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

/* Sequential scans are switched off for these sessions. So the planner reads a whole index only if
 * the table is a page or two. More rows than this mean that the key's index cannot be used. */
#define SMALL_ROWS 1000.0

/* The node's text behind the arrow and the indentation. */
static const char *node_text(const char *line)
{
    const char *arrow = strstr(line, "->  ");
    return arrow != NULL ? arrow + 4 : line + strspn(line, " ");
}

static bool names_relation(const char *after_on, const char *relation)
{
    size_t length = strlen(relation);
    return strncmp(after_on, relation, length) == 0 &&
           (after_on[length] == ' ' || after_on[length] == '\0');
}

/* Parts of the statement itself, whose names may be those of a table. */
static bool is_part(const char *node)
{
    static const char *const parts[] = {"CTE ", "Subquery ", "Function ", "Values "};
    for (size_t index = 0; index < RCPT_COUNT_OF(parts); index++)
        if (strncmp(node, parts[index], strlen(parts[index])) == 0)
            return true;
    return false;
}

/* `Index Scan using i on message_inbox m  (cost=…)`: a scan of one of the relations? */
static bool scans(const char *node, const char *const *relations, size_t relation_count)
{
    const char *scan = strstr(node, "Scan");
    const char *after = scan != NULL ? strstr(scan, " on ") : NULL;
    const char *cost = strstr(node, "  (cost=");
    if (after == NULL || (cost != NULL && after > cost) || is_part(node))
        return false;
    for (size_t index = 0; index < relation_count; index++)
        if (names_relation(after + 4, relations[index]))
            return true;
    return false;
}

/* The planner's estimate, from the end of the node's line. */
static double estimated_rows(const char *node)
{
    const char *rows = strstr(node, " rows=");
    return rows != NULL ? strtod(rows + 6, NULL) : 0.0;
}

/* A node's conditions stand on the lines below it, up to the next node. */
static bool has_condition(const char *const *lines, size_t line_count, size_t node)
{
    for (size_t line = node + 1; line < line_count; line++) {
        if (strstr(lines[line], "->  ") != NULL)
            return false;
        const char *text = lines[line] + strspn(lines[line], " ");
        if (strncmp(text, "Index Cond:", 11) == 0 || strncmp(text, "Recheck Cond:", 13) == 0 ||
            strncmp(text, "TID Cond:", 9) == 0)
            return true;
    }
    return false;
}

static enum rcpt_plan check_node(const char *const *lines, size_t line_count, size_t node)
{
    const char *text = node_text(lines[node]);
    if (has_condition(lines, line_count, node))
        return RCPT_PLAN_INDEXED;
    bool by_index = strncmp(text, "Index ", 6) == 0 || strncmp(text, "Parallel Index ", 15) == 0;
    return by_index && estimated_rows(text) <= SMALL_ROWS ? RCPT_PLAN_SMALL : RCPT_PLAN_SCAN;
}

enum rcpt_plan rcpt_plan_check(const char *const *lines, size_t line_count,
                               const char *const *relations, size_t relation_count)
{
    enum rcpt_plan worst = RCPT_PLAN_ABSENT;
    for (size_t line = 0; line < line_count; line++) {
        if (!scans(node_text(lines[line]), relations, relation_count))
            continue;
        enum rcpt_plan found = check_node(lines, line_count, line);
        if (worst == RCPT_PLAN_ABSENT || found > worst)
            worst = found;
    }
    return worst;
}

/* ---- questions and errors ---- */

/* Finds the table itself, the tables that a view reads, and partitions. */
const char rcpt_plan_relations_sql[] =
    "WITH RECURSIVE behind(oid) AS ("
    " SELECT coalesce(to_regclass(quote_ident($1)), to_regclass($1))::oid"
    " UNION SELECT next.oid FROM behind, LATERAL ("
    "  SELECT d.refobjid FROM pg_rewrite w JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass"
    "   AND d.objid = w.oid AND d.refclassid = 'pg_class'::regclass WHERE w.ev_class = behind.oid"
    "  UNION ALL SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = behind.oid) next(oid)"
    ") SELECT quote_ident(c.relname) FROM behind JOIN pg_class c USING (oid)"
    " WHERE c.relkind IN ('r', 'p', 'f', 'm')";

char *rcpt_plan_explain(const char *name, int parameter_count)
{
    size_t bytes = strlen(name) + (size_t)parameter_count * 6 + 64;
    char *sql = rcpt_malloc(bytes);
    RCPT_ASSERT(strchr(name, '"') == NULL);
    int used = snprintf(sql, bytes, "EXPLAIN EXECUTE \"%s\"", name);
    for (int index = 0; index < parameter_count; index++)
        used += snprintf(sql + used, bytes - (size_t)used, index == 0 ? "(NULL" : ", NULL");
    snprintf(sql + used, bytes - (size_t)used, parameter_count > 0 ? ")" : "");
    return sql;
}

/* A plan without the index would scan the inbox for each batch. */
void rcpt_plan_refuse(struct rcpt_error *error, const struct rcpt_pg_statement *statement,
                      enum rcpt_plan plan)
{
    if (plan == RCPT_PLAN_ABSENT)
        rcpt_error_set(error, RCPT_DECISION_RECONNECT, "RDPLAN",
                       "plan of statement \"%s\" does not reach %s", statement->name,
                       statement->must_use_index_on);
    else
        rcpt_error_set(error, RCPT_DECISION_RECONNECT, "RDPLAN",
                       "statement \"%s\" would scan %s sequentially", statement->name,
                       statement->must_use_index_on);
    rcpt_error_hint(error, "%s needs an index on %s; run analyze", statement->must_use_index_on,
                    statement->index_over != NULL ? statement->index_over : "the message id");
}

/* Code, decision and hint stay those of the cause, except that nothing was altered meanwhile. */
void rcpt_plan_unprepared(struct rcpt_error *error, const char *name)
{
    if (strcmp(error->code, "0A000") == 0)
        rcpt_error_hint(error,
                        "run receiptd check-config --connect: it names what the inbox lacks");
    char cause[sizeof(error->text)];
    memcpy(cause, error->text, sizeof(cause));
    snprintf(error->text, sizeof(error->text), "statement \"%s\" cannot be prepared: %.400s", name,
             cause);
}

/* Reads what EXPLAIN prints about a prepared statement: whether it reaches its table by an index.
 * Pure; setup.c calls it for the statements that must not scan the inbox.
 */
#include "plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Sequential scans are switched off for these sessions, so the planner reads a whole index only
 * where the table is a page or two; more rows than this mean that the key's index cannot be used.
 */
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

/* `Index Scan using i on message_inbox m  (cost=…)`: a scan of one of the relations? */
static bool scans(const char *node, const char *const *relations, size_t relation_count)
{
    const char *scan = strstr(node, "Scan");
    const char *after = scan != NULL ? strstr(scan, " on ") : NULL;
    const char *cost = strstr(node, "  (cost=");
    if (after == NULL || (cost != NULL && after > cost))
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

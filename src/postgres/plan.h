/* Reads EXPLAIN's text: does a statement reach a relation by index conditions only? Also has the
 * questions and errors about plans for both kinds of sessions, the daemon's and those of commands.
 * Pure. Private to src/postgres. */
#ifndef SRC_POSTGRES_PLAN_H
#define SRC_POSTGRES_PLAN_H

#include <stddef.h>

#include "receiptd/postgres/connection.h"

enum rcpt_plan {
    RCPT_PLAN_INDEXED, /* every scan of the relation has an index condition */
    RCPT_PLAN_SMALL,  /* the whole index is read, because the table has next to no rows; check again
                          when it has grown */
    RCPT_PLAN_SCAN,   /* reads the table sequentially, or the whole index of a table with rows */
    RCPT_PLAN_ABSENT, /* the plan does not touch the relation */
    RCPT_PLAN__COUNT,
};

/* `lines`: the plan. `relations`: names as EXPLAIN prints them (a table, or a table and its
 * partitions). */
enum rcpt_plan rcpt_plan_check(const char *const *lines, size_t line_count,
                               const char *const *relations, size_t relation_count);

/* $1 text, a table or view: names of the tables behind it, as EXPLAIN prints them. */
extern const char rcpt_plan_relations_sql[];

/* EXPLAIN EXECUTE with NULL for each parameter: plans are generic, so values do not matter. The
 * caller frees it. */
char *rcpt_plan_explain(const char *name, int parameter_count);

/* The errors for a plan that scans or does not reach the table, and for a statement that cannot be
 * prepared: `error` has the cause. */
void rcpt_plan_refuse(struct rcpt_error *error, const struct rcpt_pg_statement *statement,
                      enum rcpt_plan plan);
void rcpt_plan_unprepared(struct rcpt_error *error, const char *name);

#endif

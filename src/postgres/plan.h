/* Reads EXPLAIN's text: does a statement reach a relation by index conditions only? Pure. Private
 * to src/postgres. */
#ifndef SRC_POSTGRES_PLAN_H
#define SRC_POSTGRES_PLAN_H

#include <stddef.h>

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

#endif

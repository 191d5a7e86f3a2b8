/* A walk over a table, page by page, in steps: a statement, or a function with one. Each step is a
 * transaction, so a walk may be interrupted, repeated, or run twice at once. Private to this
 * folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_WALK_H
#define RECEIPTD_COMMANDS_INBOX_WALK_H

#include "../command.h"
#include "receiptd/postgres/bind.h"

#define COMMAND_WALK_PARAMS   5
#define COMMAND_WALK_BINDINGS 6u

/* A table that is walked. All texts are borrowed. */
struct command_walk {
    struct command_context *context;
    const char *name, *done; /* what its rows are called, and what has become of them: "deleted" */
    const char *step;        /* SQL; $1 and $2 are the range of pages; returns `rows` */
    /* NULL: the statement is the step. Otherwise this function runs it, bound to the part. Returns
     * the rows that went; -1: the error is in the context. */
    int64_t (*act)(struct command_walk *walk, const char *sql, const char *first, const char *end);
    void *actor;     /* of act */
    const char *due; /* SQL for a dry run, without the range; NULL: there is no dry run */
    const char *schema, *table;
    struct rcpt_pg_binding bindings[COMMAND_WALK_BINDINGS]; /* of both; the part's come first */
    size_t binding_count;
    const char *values[COMMAND_WALK_PARAMS]; /* from the third parameter on */
    size_t value_count;
    /* The walk deletes messages: it checks the trigger that books them, and leaves out partitions
     * that are young as a whole. */
    bool retires;
    int64_t rows; /* that the walk has found so far */
};

/* Walks all parts of the table and prints what was done, or, in a dry run, what would be. False:
 * the error is in the context. */
RCPT_MUST_CHECK bool command_walk(struct command_walk *walk, bool dry_run);

/* Refuses (EX_CONFIG) a table whose deletions are not booked: without the trigger the counters
 * would be ahead of the messages. `parts`: the rows of sql/retire/parts of it. False: the error is
 * in the context. */
RCPT_MUST_CHECK bool command_check_booked(struct command_context *context, const char *schema,
                                          const char *table, const struct rcpt_session_rows *parts);

#endif

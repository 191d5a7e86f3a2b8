/* Commands that list: they run one statement and print its rows as a table, CSV or JSON. Private to
 * this folder and those below it. */
#ifndef RECEIPTD_COMMANDS_LIST_H
#define RECEIPTD_COMMANDS_LIST_H

#include "report.h"

#define LIST_COLUMNS(at) .columns = (at), .column_count = RCPT_COUNT_OF(at)

/* One list. Texts and columns are borrowed. */
struct list {
    const char *file;  /* of sql/; its result has the columns */
    const char *empty; /* printed in place of an empty table; NULL: nothing is */
    const struct report_column *columns;
    size_t column_count;
    /* The line "N done" follows, on stderr where programs read stdout; NULL: no such line. */
    const char *done;
    const char *held; /* after a full table, as of command_print_held(); NULL: not counted */
    int64_t limit;    /* of the statement; for `held` */
    bool writes;      /* the session is not read-only */
    bool is_named;    /* the user named one row: exit code 66 without it */
};

/* Runs the statement and prints its rows. `count` has the number of rows. False: the error is in
 * the context. */
RCPT_MUST_CHECK bool list_print(const struct list *list, struct command_context *context,
                                enum command_format format, size_t value_count,
                                const char *const *values, size_t *count);

/* The same in a session of its own. Returns the exit code of the command. */
int list_run(const struct list *list, const struct command_call *call, enum command_format format,
             size_t value_count, const char *const *values);

#endif

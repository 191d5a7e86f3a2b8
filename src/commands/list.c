/* Lists of rows (list.h). Called by actions.c, limits.c, and files of figures/ and inbox/. */
#include "list.h"

#include <sysexits.h>

#include "receiptd/postgres/sql.h"

static void print_rows(const struct list *list, const struct rcpt_session_rows *rows,
                       enum command_format format)
{
    struct report report;
    report_init(&report, list->columns, list->column_count);
    report_add_rows(&report, rows);
    report_print(&report, format, list->empty);
    report_fini(&report);
    if (list->done != NULL)
        fprintf(format == COMMAND_FORMAT_TABLE ? stdout : stderr, "%zu %s\n",
                rcpt_session_rows_count(rows), list->done);
}

bool list_print(const struct list *list, struct command_context *context,
                enum command_format format, size_t value_count, const char *const *values,
                size_t *count)
{
    struct rcpt_session_rows *rows = rcpt_session_query(context->session, rcpt_sql(list->file),
                                                        value_count, values, &context->error);
    if (rows == NULL)
        return false;
    print_rows(list, rows, format);
    *count = rcpt_session_rows_count(rows);
    rcpt_session_rows_free(rows);
    bool is_full = list->held != NULL && (int64_t)*count == list->limit;
    return !is_full || format != COMMAND_FORMAT_TABLE ||
           command_print_held(context, list->held, *count);
}

int list_run(const struct list *list, const struct command_call *call, enum command_format format,
             size_t value_count, const char *const *values)
{
    struct command_context context;
    size_t count = 0;
    int exit_code;
    if (!command_open(&context, call, !list->writes, &exit_code))
        return exit_code;
    if (list_print(list, &context, format, value_count, values, &count))
        exit_code = command_printed(list->is_named && count == 0 ? EX_NOINPUT : EX_OK);
    else
        exit_code = command_fail(&context.error);
    command_close(&context);
    return exit_code;
}

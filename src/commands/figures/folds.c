/* `receiptd folds`: lists the publications by webhook that were given up, with the reason, and has
 * the daemon call their webhooks again. Works on the database, where the publisher claims what is
 * due. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "../command.h"
#include "../report.h"
#include "receiptd/postgres/sql.h"

#define LIST_DEFAULT 100
#define LIST_MOST    1000000 /* bounds the memory of one answer */

static const struct report_column list_columns[] = {
    {"id", REPORT_TEXT},  {"rule", REPORT_TEXT},      {"attempts", REPORT_NUMBER},
    {"age", REPORT_TEXT}, {"failed_at", REPORT_TEXT}, {"error", REPORT_TEXT}};
static const struct report_column retry_columns[] = {
    {"id", REPORT_TEXT}, {"rule", REPORT_TEXT}, {"error", REPORT_TEXT}};

/* One verb: the statement, the columns that it prints, and the line below them. */
struct verb {
    const char *file, *none;
    const struct report_column *columns;
    size_t column_count;
    const char *done; /* behind the number of rows; NULL: no such line */
};

static const struct verb list = {"command/folds_list", "nothing was given up", list_columns, 6,
                                 NULL};
static const struct verb retry = {"command/folds_retry", NULL, retry_columns, 3,
                                  "publications will be called again"};
static const struct verb retry_dry = {"command/folds_list", NULL, list_columns, 6,
                                      "publications would be called again; nothing was changed"};

/* The summary goes to stderr where stdout is read by programs. */
static void print(const struct verb *verb, const struct rcpt_session_rows *rows,
                  enum command_format format)
{
    struct report report;
    report_init(&report, verb->columns, verb->column_count);
    report_add_rows(&report, rows);
    report_print(&report, format, verb->none);
    if (verb->done != NULL)
        fprintf(format == COMMAND_FORMAT_TABLE ? stdout : stderr, "%zu %s\n",
                rcpt_session_rows_count(rows), verb->done);
    report_fini(&report);
}

/* A publication that is named and was not given up: exit code 66. */
static int execute(const struct command_call *call, const struct verb *verb, const char *id,
                   int64_t limit, enum command_format format)
{
    struct command_context context;
    char most[24];
    int exit_code;
    if (!command_open(&context, call, verb != &retry, &exit_code))
        return exit_code;
    snprintf(most, sizeof(most), "%" PRId64, limit);
    const char *const values[] = {id, command_option(call, "rule"), most};
    struct rcpt_session_rows *rows =
        rcpt_session_query(context.session, rcpt_sql(verb->file), 3, values, &context.error);
    if (rows == NULL) {
        exit_code = command_fail(&context.error);
    } else {
        print(verb, rows, format);
        bool missing = id != NULL && rcpt_session_rows_count(rows) == 0;
        exit_code = command_printed(missing ? EX_NOINPUT : EX_OK);
    }
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

/* Without a verb: list. Arguments are checked before the database is opened. */
int command_folds(const struct command_call *call)
{
    enum command_format format;
    int64_t limit;
    const char *name = call->argument != NULL ? call->argument : "list";
    const char *argument = call->more[0];
    bool lists = strcmp(name, "list") == 0;
    if (!command_format(call, &format) ||
        !command_number(call, "limit", 1, LIST_MOST, lists ? LIST_DEFAULT : LIST_MOST, &limit))
        return EX_USAGE;
    if (lists)
        return argument == NULL ? execute(call, &list, NULL, limit, format)
                                : command_usage(call, "list takes no argument");
    if (strcmp(name, "retry") != 0)
        return command_usage(call, "unknown verb \"%.40s\": list or retry", name);
    if (argument == NULL)
        return command_usage(call, "which publication? its id, or all");
    return execute(call, command_option(call, "dry-run") != NULL ? &retry_dry : &retry,
                   strcmp(argument, "all") != 0 ? argument : NULL, limit, format);
}

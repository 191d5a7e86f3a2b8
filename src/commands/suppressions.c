/* `receiptd suppressions`: lists, exports, imports, adds and removes suppressed persons. All verbs
 * work on the database, where the next claim of an action sees the change. Verbs and options are
 * rows of the table in command.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "csv.h"
#include "list.h"
#include "receiptd/base/json.h"
#include "receiptd/base/text.h"
#include "receiptd/postgres/sql.h"

#define LIST_DEFAULT 100
/* Lines of one transaction. */
#define IMPORT_ROWS 1000

/* ---- list, export ---- */

static const struct report_column list_columns[] = {
    {"org_id", REPORT_TEXT},         {"person", REPORT_TEXT},     {"class", REPORT_TEXT},
    {"since", REPORT_TEXT},          {"suppressed", REPORT_TEXT}, {"made_by", REPORT_TEXT},
    {"message_id", REPORT_TEXT},     {"removed_at", REPORT_TEXT}, {"removed_by", REPORT_TEXT},
    {"removed_because", REPORT_TEXT}};
/* The titles that an import takes. An erased person has the key alone. */
static const struct report_column titles[] = {
    {"org_id", REPORT_TEXT},      {"person", REPORT_TEXT},     {"key", REPORT_TEXT},
    {"class", REPORT_TEXT},       {"since", REPORT_TEXT},      {"soft_count", REPORT_NUMBER},
    {"soft_within", REPORT_TEXT}, {"message_id", REPORT_TEXT}, {"made_by", REPORT_TEXT}};
#define TITLES RCPT_COUNT_OF(titles)

/* An export has all rows that are not removed, whatever their number. */
static int query(const struct command_call *call, bool exports)
{
    static const struct list list = {.file = "command/suppressions_list",
                                     .empty = "nobody is suppressed",
                                     LIST_COLUMNS(list_columns)};
    static const struct list all = {.file = "command/suppressions_list", LIST_COLUMNS(titles)};
    enum command_format format;
    int64_t limit;
    char most[24];
    if (!command_format(call, &format) ||
        !command_number(call, "limit", 1, INT32_MAX, LIST_DEFAULT, &limit))
        return EX_USAGE;
    snprintf(most, sizeof(most), "%" PRId64, limit);
    const char *const values[] = {command_option(call, "org"), command_option(call, "person"),
                                  exports ? "true" : "false", exports ? NULL : most};
    return list_run(exports ? &all : &list, call, exports ? COMMAND_FORMAT_CSV : format, 4, values);
}

/* ---- import, add ---- */

/* An import under way. The titles are indexes into `titles`, by the file's columns. */
struct import {
    const struct command_call *call;
    struct command_context context;
    struct csv csv;
    size_t columns[CSV_MAX_FIELDS], column_count;
    int64_t read, added;
};

/* The line's number lets the rest be imported after it is mended. */
static bool refuse(struct import *import, const char *what, const char *text)
{
    return rcpt_error_fatal(&import->context.error, EX_DATAERR, "line %u: %s%.60s",
                            import->csv.line, what, text);
}

/* csv_next() ends with REJECT where the file is not CSV. */
static bool next(struct import *import, bool *good)
{
    struct rcpt_error *error = &import->context.error;
    rcpt_error_clear(error);
    bool found = csv_next(&import->csv, error);
    *good = found || error->decision != RCPT_DECISION_REJECT;
    if (!*good) {
        error->decision = RCPT_DECISION_FATAL;
        error->exit_code = EX_DATAERR;
    }
    return found;
}

/* A misspelt title would lose a column, so it is refused. */
static bool read_titles(struct import *import)
{
    bool good;
    if (!next(import, &good))
        return good ? refuse(import, "the file has no line of titles", "") : false;
    import->column_count = import->csv.count;
    for (size_t index = 0; index < import->column_count; index++) {
        size_t at = 0;
        while (at < TITLES && strcmp(titles[at].name, import->csv.fields[index]) != 0)
            at++;
        if (at == TITLES) {
            refuse(import, "there is no column ", import->csv.fields[index]);
            rcpt_error_hint(&import->context.error,
                            "columns are org_id, person, class, since, and those of an export");
            return false;
        }
        import->columns[index] = at;
    }
    return true;
}

/* An empty field is a missing one. --class and --org stand for missing ones. */
static bool write_line(struct import *import, struct rcpt_json *json)
{
    const char *values[TITLES] = {
        [0] = command_option(import->call, "org"), [3] = command_option(import->call, "class")};
    if (import->csv.count != import->column_count)
        return refuse(import, "has not as many fields as the line of titles", "");
    for (size_t index = 0; index < import->csv.count; index++) {
        const char *field = import->csv.fields[index];
        if (!rcpt_utf8_is_text(field, strlen(field)))
            return refuse(import, "is not UTF-8", "");
        if (field[0] != '\0')
            values[import->columns[index]] = field;
    }
    rcpt_json_begin_object(json);
    rcpt_json_put_int(json, "line", import->csv.line);
    for (size_t index = 0; index < TITLES; index++)
        rcpt_json_put_text(json, titles[index].name, values[index]);
    rcpt_json_end_object(json);
    return true;
}

/* Adds the rows of a JSON array in one transaction. */
static bool add_rows(struct import *import, const char *rows_text)
{
    const char *const values[] = {rows_text, command_option(import->call, "by")};
    struct rcpt_session_rows *rows =
        rcpt_session_query(import->context.session, rcpt_sql("command/suppressions_import"), 2,
                           values, &import->context.error);
    if (rows != NULL)
        import->added += rcpt_session_rows_int(rows, 0, "rows");
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* Up to a thousand lines; *more is false behind the last one. */
static bool add_some(struct import *import, bool *more)
{
    char *text = NULL;
    size_t size = 0, count = 0;
    struct rcpt_json json;
    bool good = true;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_array(&json);
    while (good && count < IMPORT_ROWS && next(import, &good)) {
        good = write_line(import, &json);
        count++;
    }
    rcpt_json_end_array(&json);
    RCPT_ASSERT(fclose(out) == 0);
    *more = count == IMPORT_ROWS;
    good = good && add_rows(import, text);
    import->read += good ? (int64_t)count : 0;
    free(text);
    return good;
}

/* Lines of earlier transactions stay. A person whom they added is passed over the next time. */
static bool run_import(struct import *import)
{
    bool more = true, good = read_titles(import);
    while (good && more)
        good = add_some(import, &more);
    printf("%" PRId64 " lines read, %" PRId64 " added\n", import->read, import->added);
    return good;
}

/* `-` is the standard input. */
static int import_file(const struct command_call *call, const char *path)
{
    struct import *import = rcpt_calloc(1, sizeof(*import));
    int exit_code = EX_NOINPUT;
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    import->call = call;
    if (in == NULL)
        fprintf(stderr, "receiptd: %.300s: cannot be read: %s\n", path, strerror(errno));
    else if (command_open(&import->context, call, false, &exit_code)) {
        csv_init(&import->csv, in);
        exit_code =
            run_import(import) ? command_printed(EX_OK) : command_fail(&import->context.error);
        command_close(&import->context);
    }
    if (in != NULL && in != stdin)
        fclose(in);
    free(import);
    return exit_code;
}

/* ---- add, remove ---- */

static int change(const struct command_call *call, const char *file, const char *why,
                  const char *done)
{
    struct command_context context;
    int exit_code;
    const char *const values[] = {call->more[0], call->more[1], why, command_option(call, "by")};
    if (!command_open(&context, call, false, &exit_code))
        return exit_code;
    struct rcpt_session_rows *rows =
        rcpt_session_query(context.session, rcpt_sql(file), 4, values, &context.error);
    int64_t count = rows != NULL ? rcpt_session_rows_int(rows, 0, "rows") : 0;
    if (rows != NULL)
        printf("%" PRId64 " %s\n", count, done);
    exit_code = rows == NULL ? command_fail(&context.error)
                             : command_printed(count > 0 ? EX_OK : COMMAND_EXIT_NO);
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

/* ---- the command ---- */

/* Changes need --by, so that the history says who made them. */
int command_suppressions(const struct command_call *call)
{
    const char *verb = call->argument != NULL ? call->argument : "list";
    const char *class = command_option(call, "class"), *reason = command_option(call, "reason");
    if (strcmp(verb, "list") == 0 || strcmp(verb, "export") == 0)
        return call->more[0] == NULL ? query(call, verb[0] == 'e')
                                     : command_usage(call, "%s takes no argument", verb);
    if (command_option(call, "by") == NULL)
        return command_usage(call, "who changes it? --by");
    if (strcmp(verb, "import") == 0)
        return call->more[0] != NULL ? import_file(call, call->more[0])
                                     : command_usage(call, "which file?");
    if (call->more[0] == NULL || call->more[1] == NULL)
        return command_usage(call, "which organisation, and which person?");
    if (strcmp(verb, "add") == 0 && class != NULL)
        return change(call, "command/suppressions_add", class, "added");
    if (strcmp(verb, "remove") == 0 && reason != NULL)
        return change(call, "command/suppressions_remove", reason, "removed");
    return command_usage(call, "add needs --class, and remove --reason");
}

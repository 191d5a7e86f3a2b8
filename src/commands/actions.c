/* `receiptd actions`: lists, shows, retries and cancels actions, and imports runs. All verbs work
 * on the database, where the daemon's schedulers see the change; the daemon itself is not asked.
 * Verbs and options are rows of the table in command.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "csv.h"
#include "list.h"
#include "receiptd/base/json.h"
#include "receiptd/base/text.h"
#include "receiptd/config/pipelines.h"
#include "receiptd/postgres/sql.h"

#define LIST_DEFAULT 100
/* Bounds the memory of one answer. */
#define LIST_MOST 1000000
/* Lines of one transaction, as the limit of POST /runs. */
#define IMPORT_ROWS 1000
/* How long an import waits for its pipeline, and how often it asks in a second. */
#define STORED_WAIT_S 30u
#define STORED_ASKS   5
/* Receivers see act_109 for the action 109. */
#define RECEIVERS_PREFIX "act_"

/* ---- list, show ---- */

static const struct report_column columns[] = {{"id", REPORT_NUMBER},
                                               {"run_id", REPORT_NUMBER},
                                               {"pipeline", REPORT_TEXT},
                                               {"stage", REPORT_TEXT},
                                               {"op", REPORT_TEXT},
                                               {"target", REPORT_TEXT},
                                               {"org_id", REPORT_TEXT},
                                               {"status", REPORT_TEXT},
                                               {"attempt", REPORT_NUMBER},
                                               {"perform_at", REPORT_TEXT},
                                               {"because", REPORT_TEXT},
                                               {"subject", REPORT_TEXT},
                                               {"answer_status", REPORT_NUMBER},
                                               {"answer", REPORT_TEXT}};
#define SHOWN_ALONE 3 /* the last columns are long: only `show` has them */

/* `action` NULL: list. */
static int query_actions(const struct command_call *call, const char *action, int64_t limit,
                         enum command_format format)
{
    char most[24];
    snprintf(most, sizeof(most), "%" PRId64, limit);
    const char *const values[] = {command_option(call, "status"),
                                  command_option(call, "org"),
                                  command_option(call, "pipeline"),
                                  action,
                                  NULL,
                                  most};
    struct list list = {.file = "command/actions_list",
                        .empty = "no actions",
                        LIST_COLUMNS(columns),
                        .is_named = action != NULL};
    list.column_count -= action != NULL ? 0 : SHOWN_ALONE;
    return list_run(&list, call, format, 6, values);
}

/* ---- retry, cancel ---- */

/* One statement changes all of them; `limit` bounds how many. */
static int change(const struct command_call *call, const char *file, const char *done,
                  const char *action, int64_t limit)
{
    struct command_context context;
    char most[24];
    int exit_code;
    if (!command_open(&context, call, false, &exit_code))
        return exit_code;
    snprintf(most, sizeof(most), "%" PRId64, limit);
    const char *const values[] = {strcmp(action, "all") != 0 ? action : NULL,
                                  command_option(call, "org"), command_option(call, "pipeline"),
                                  most};
    struct rcpt_session_rows *rows =
        rcpt_session_query(context.session, rcpt_sql(file), 4, values, &context.error);
    if (rows == NULL) {
        exit_code = command_fail(&context.error);
    } else {
        int64_t count = rcpt_session_rows_int(rows, 0, "rows");
        printf("%" PRId64 " %s\n", count, done);
        exit_code = command_printed(count == 0 && values[0] != NULL ? EX_NOINPUT : EX_OK);
    }
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

/* ---- import ---- */

/* An import under way: the file, its titles, and the session. The pipeline and --org are borrowed
 * from the call. */
struct import {
    const struct command_call *call;
    struct command_context context;
    const char *pipeline, *org;
    struct csv csv;
    char *titles[CSV_MAX_FIELDS];
    size_t title_count;
    int64_t rows, began, waiting, dropped;
};

/* Columns with a meaning of their own; all others go along as data. */
static const char *const known[] = {"org_id", "subject", "campaign_id", "message_id", "stage"};
#define KNOWN RCPT_COUNT_OF(known)

static bool is_known(const char *title)
{
    for (size_t index = 0; index < KNOWN; index++)
        if (strcmp(title, known[index]) == 0)
            return true;
    return false;
}

/* A misspelt title is a column of data, so it is noted and not refused. */
static void note_title(const char *title)
{
    const char *meant = NULL;
    for (size_t index = 0; index < KNOWN; index++)
        meant = rcpt_text_nearer(title, meant, known[index]);
    if (meant != NULL && !is_known(title))
        fprintf(stderr, "receiptd: column \"%.60s\" goes into data: did you mean \"%s\"?\n", title,
                meant);
}

/* An empty field is the same as a missing one: CSV does not distinguish them. */
static const char *value_of(const struct import *import, const char *title)
{
    for (size_t index = 0; index < import->title_count && index < import->csv.count; index++)
        if (strcmp(import->titles[index], title) == 0 && import->csv.fields[index][0] != '\0')
            return import->csv.fields[index];
    return NULL;
}

/* 65 with the number of the line, so that the rest can be imported after it is mended. */
static bool refuse_line(struct import *import, const char *text)
{
    return rcpt_error_fatal(&import->context.error, EX_DATAERR, "line %u: %s", import->csv.line,
                            text);
}

/* csv_next() ends with REJECT where the file is not CSV. The import ends then: behind a missing
 * quote the lines cannot be told apart. */
static bool is_damaged(struct import *import)
{
    struct rcpt_error *error = &import->context.error;
    if (error->decision != RCPT_DECISION_REJECT)
        return false;
    error->decision = RCPT_DECISION_FATAL;
    error->exit_code = EX_DATAERR;
    return true;
}

/* A run needs a subject. */
static bool read_titles(struct import *import)
{
    struct rcpt_error *error = &import->context.error;
    if (!csv_next(&import->csv, error))
        return !is_damaged(import) &&
               rcpt_error_fatal(error, EX_DATAERR, "the file has no line of titles");
    import->title_count = import->csv.count;
    bool has_subject = false;
    for (size_t index = 0; index < import->title_count; index++) {
        import->titles[index] = rcpt_strdup(import->csv.fields[index]);
        has_subject |= strcmp(import->titles[index], "subject") == 0;
        note_title(import->titles[index]);
    }
    if (has_subject)
        return true;
    refuse_line(import, "there is no column subject");
    rcpt_error_hint(error,
                    "the first line names the columns: org_id,subject,…; it begins with \"%.60s\"",
                    import->titles[0]);
    return false;
}

/* Members without a value are left out of the object. */
static void write_text(struct rcpt_json *json, const char *name, const char *value)
{
    if (value == NULL)
        return;
    rcpt_json_put_text(json, name, value);
}

/* A line becomes an object; its own organisation comes before that of --org. */
static bool write_record(struct import *import, struct rcpt_json *json)
{
    const struct csv *csv = &import->csv;
    const char *org = value_of(import, "org_id");
    if (csv->count != import->title_count)
        return refuse_line(import, "has not as many fields as the line of titles");
    for (size_t index = 0; index < csv->count; index++)
        if (!rcpt_utf8_is_text(csv->fields[index], strlen(csv->fields[index])))
            return refuse_line(import, "is not UTF-8");
    if (value_of(import, "subject") == NULL)
        return refuse_line(import, "has no subject");
    rcpt_json_begin_object(json);
    write_text(json, "org_id", org != NULL ? org : import->org != NULL ? import->org : "");
    write_text(json, "subject", value_of(import, "subject"));
    write_text(json, "campaign_id", value_of(import, "campaign_id"));
    write_text(json, "message_id", value_of(import, "message_id"));
    write_text(json, "stage", value_of(import, "stage"));
    rcpt_json_key(json, "data");
    rcpt_json_begin_object(json);
    for (size_t index = 0; index < csv->count; index++)
        if (!is_known(import->titles[index]))
            write_text(json, import->titles[index], csv->fields[index]);
    rcpt_json_end_object(json);
    rcpt_json_end_object(json);
    return true;
}

/* One call of actions_import() gets at most IMPORT_ROWS lines. */
static char *read_some(struct import *import, size_t *count)
{
    char *text = NULL;
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_array(&json);
    bool good = true;
    for (*count = 0; good && *count < IMPORT_ROWS && csv_next(&import->csv, &import->context.error);
         ++*count)
        good = write_record(import, &json);
    rcpt_json_end_array(&json);
    RCPT_ASSERT(fclose(out) == 0);
    if (!is_damaged(import) && good)
        return text;
    free(text);
    return NULL;
}

/* A cap refuses a transaction as a whole. 75: the rest may be imported when runs have ended. */
static void refuse_lines(struct import *import, size_t count, const char *over)
{
    rcpt_error_fatal(&import->context.error, EX_TEMPFAIL,
                     "lines up to %u: the last %zu are beyond the cap of open runs: %s",
                     import->csv.line, count, over);
}

/* Every transaction is small, so that no batch waits long for an import. */
static bool import_some(struct import *import, bool *at_end)
{
    size_t count = 0;
    char *text = read_some(import, &count);
    *at_end = count == 0;
    if (text == NULL || count == 0) {
        free(text);
        return text != NULL;
    }
    const char *const values[] = {import->pipeline, text, command_option(import->call, "stage"),
                                  NULL};
    struct rcpt_session_rows *rows = rcpt_session_query(
        import->context.session, rcpt_sql("actions/import"), 4, values, &import->context.error);
    free(text);
    if (rows == NULL)
        return false;
    bool refused = rcpt_session_rows_text(rows, 0, "over") != NULL;
    if (refused)
        refuse_lines(import, count, rcpt_session_rows_text(rows, 0, "over"));
    import->rows += refused ? 0 : (int64_t)count;
    import->began += rcpt_session_rows_int(rows, 0, "rows");
    import->waiting += rcpt_session_rows_int(rows, 0, "waiting");
    import->dropped += rcpt_session_rows_int(rows, 0, "dropped");
    rcpt_session_rows_free(rows);
    return !refused;
}

/* Lines before an error stay imported; the hint says so. */
static int import_open(struct import *import)
{
    bool at_end = false, good = read_titles(import);
    while (good && !at_end)
        good = import_some(import, &at_end);
    printf("%" PRId64 " lines read, %" PRId64 " runs began", import->rows, import->began);
    if (import->waiting > 0)
        printf(", %" PRId64 " wait for room", import->waiting);
    if (import->dropped > 0)
        printf(", %" PRId64 " were dropped", import->dropped);
    putchar('\n');
    if (!good && import->rows > 0)
        rcpt_error_hint(&import->context.error,
                        "lines up to there are in; with once_per they may be imported again");
    return good ? command_printed(EX_OK) : command_fail(&import->context.error);
}

/* receiptd run stores its pipelines a moment after it has started or was reloaded. The import waits
 * up to STORED_WAIT_S for a pipeline that the configuration names, before it reads the file. It
 * does not wait for another name. If the pipeline is still missing, the first transaction says
 * which ones there are. */
static bool await_pipeline(struct import *import)
{
    struct command_context *context = &import->context;
    bool configured = pipelines_have(context->config, import->pipeline);
    for (unsigned asked = 0; configured && asked < STORED_WAIT_S * STORED_ASKS; asked++) {
        const struct timespec pause = {.tv_nsec = 1000000000L / STORED_ASKS};
        struct rcpt_session_rows *rows =
            rcpt_session_query(context->session, rcpt_sql("command/pipeline_stored"), 1,
                               &import->pipeline, &context->error);
        if (rows == NULL)
            return false;
        bool stored = strcmp(rcpt_session_rows_text(rows, 0, "stored"), "t") == 0;
        rcpt_session_rows_free(rows);
        if (stored)
            break;
        if (asked == 0)
            fprintf(stderr,
                    "receiptd: no instance of receiptd run has stored pipeline %s yet: waiting "
                    "for it, %u s at most\n",
                    import->pipeline, STORED_WAIT_S);
        nanosleep(&pause, NULL);
    }
    return true;
}

/* `-` is the standard input. */
static int import_file(const struct command_call *call, const char *path)
{
    struct import *import = rcpt_calloc(1, sizeof(*import));
    int exit_code;
    import->call = call;
    import->pipeline = command_option(call, "pipeline");
    import->org = command_option(call, "org");
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (in == NULL) {
        rcpt_error_fatal(&import->context.error, EX_NOINPUT, "%.300s: cannot be read: %s", path,
                         strerror(errno));
        exit_code = command_fail(&import->context.error);
        free(import);
        return exit_code;
    }
    csv_init(&import->csv, in);
    if (command_open(&import->context, call, false, &exit_code)) {
        rcpt_error_clear(&import->context.error);
        exit_code =
            await_pipeline(import) ? import_open(import) : command_fail(&import->context.error);
        command_close(&import->context);
    }
    for (size_t index = 0; index < import->title_count; index++)
        free(import->titles[index]);
    if (in != stdin)
        fclose(in);
    free(import);
    return exit_code;
}

/* ---- the command ---- */

/* 18 digits fit into an int64. */
static bool is_number(const char *text)
{
    size_t size = strlen(text);
    return size > 0 && size < 19 && strspn(text, "0123456789") == size;
}

/* show needs one number; retry and cancel also take `all`, bounded by --org, --pipeline and
 * --limit. */
static int with_action(const struct command_call *call, const char *verb, const char *argument,
                       int64_t limit, enum command_format format)
{
    bool all = strcmp(argument, "all") == 0 && strcmp(verb, "show") != 0;
    if (strncmp(argument, RECEIVERS_PREFIX, strlen(RECEIVERS_PREFIX)) == 0)
        argument += strlen(RECEIVERS_PREFIX);
    if (!all && !is_number(argument))
        return command_usage(call, "\"%.40s\" is not the number of an action", argument);
    if (strcmp(verb, "show") == 0)
        return query_actions(call, argument, 1, format);
    if (strcmp(verb, "retry") == 0)
        return change(call, "command/actions_retry", "actions will be tried again", argument,
                      limit);
    return change(call, "command/actions_cancel", "runs cancelled", argument, limit);
}

/* The verb is list unless one is given. Arguments are checked before the database is opened. */
int command_actions(const struct command_call *call)
{
    enum command_format format;
    int64_t limit;
    const char *verb = call->argument != NULL ? call->argument : "list";
    const char *argument = call->more[0];
    bool lists = strcmp(verb, "list") == 0;
    if (!command_format(call, &format) ||
        !command_number(call, "limit", 1, lists ? LIST_MOST : INT64_MAX,
                        lists ? LIST_DEFAULT : INT64_MAX, &limit))
        return EX_USAGE;
    if (lists)
        return argument == NULL ? query_actions(call, NULL, limit, format)
                                : command_usage(call, "list takes no argument");
    if (strcmp(verb, "import") == 0) {
        if (argument == NULL || command_option(call, "pipeline") == NULL)
            return command_usage(call, "which file, and which --pipeline?");
        return import_file(call, argument);
    }
    if (strcmp(verb, "show") != 0 && strcmp(verb, "retry") != 0 && strcmp(verb, "cancel") != 0)
        return command_usage(call, "unknown verb \"%.40s\": list, show, retry, cancel or import",
                             verb);
    if (argument == NULL)
        return command_usage(call, "which action?");
    return with_action(call, verb, argument, limit, format);
}

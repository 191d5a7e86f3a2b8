/* `receiptd folds`: lists the publications by webhook that were given up, with the reason, and has
 * the daemon call their webhooks again. Works on the database, where the publisher claims what is
 * due. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "../list.h"

#define LIST_DEFAULT 100
#define LIST_MOST    1000000 /* bounds the memory of one answer */

static const struct report_column list_columns[] = {
    {"id", REPORT_TEXT},  {"rule", REPORT_TEXT},      {"attempts", REPORT_NUMBER},
    {"age", REPORT_TEXT}, {"failed_at", REPORT_TEXT}, {"error", REPORT_TEXT}};
static const struct report_column retry_columns[] = {
    {"id", REPORT_TEXT}, {"rule", REPORT_TEXT}, {"error", REPORT_TEXT}};

static const struct list list = {
    .file = "command/folds_list", .empty = "nothing was given up", LIST_COLUMNS(list_columns)};
static const struct list retry = {.file = "command/folds_retry",
                                  LIST_COLUMNS(retry_columns),
                                  .done = "publications will be called again",
                                  .writes = true};
static const struct list retry_dry = {
    .file = "command/folds_list",
    LIST_COLUMNS(list_columns),
    .done = "publications would be called again; nothing was changed"};

/* `id` NULL: all. */
static int execute(const struct command_call *call, struct list verb, const char *id, int64_t limit,
                   enum command_format format)
{
    char most[24];
    snprintf(most, sizeof(most), "%" PRId64, limit);
    const char *const values[] = {id, command_option(call, "rule"), most};
    verb.is_named = id != NULL;
    return list_run(&verb, call, format, 3, values);
}

/* The verb is list unless one is given. Arguments are checked before the database is opened. */
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
        return argument == NULL ? execute(call, list, NULL, limit, format)
                                : command_usage(call, "list takes no argument");
    if (strcmp(name, "retry") != 0)
        return command_usage(call, "unknown verb \"%.40s\": list or retry", name);
    if (argument == NULL)
        return command_usage(call, "which publication? its id, or all");
    return execute(call, command_option(call, "dry-run") != NULL ? retry_dry : retry,
                   strcmp(argument, "all") != 0 ? argument : NULL, limit, format);
}

/* `receiptd ctl org` and `receiptd ctl pipeline`: limits and pauses that all instances keep to.
 * They are rows in the database, which every scheduler reads; no daemon is asked. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "list.h"
#include "receiptd/config/pipelines.h"
#include "receiptd/postgres/sql.h"

#define MINUTE_US 60000000
/* Bytes of a number's text. */
#define NUMBER 24

/* Runs one statement. */
static int run(const struct command_call *call, const char *file, size_t count,
               const char *const *values)
{
    struct command_context context;
    int exit_code;
    if (!command_open(&context, call, false, &exit_code))
        return exit_code;
    struct rcpt_session_rows *rows =
        rcpt_session_query(context.session, rcpt_sql(file), count, values, &context.error);
    exit_code = rows != NULL ? EX_OK : command_fail(&context.error);
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

/* A pipeline that the configuration names may be paused before receiptd run has stored it. */
static int run_for_pipeline(const struct command_call *call, const char *file, const char *pipeline)
{
    struct command_context context;
    int exit_code;
    if (!command_open(&context, call, false, &exit_code))
        return exit_code;
    const char *const values[] = {pipeline,
                                  pipelines_have(context.config, pipeline) ? "true" : "false"};
    struct rcpt_session_rows *rows =
        rcpt_session_query(context.session, rcpt_sql(file), 2, values, &context.error);
    bool done = rows != NULL;
    if (done && rcpt_session_rows_int(rows, 0, "known") == 0) {
        done = rcpt_error_fatal(&context.error, EX_USAGE, "there is no pipeline %.100s", pipeline);
        rcpt_error_hint(&context.error, "receiptd ctl pipeline list shows all pipelines");
    }
    exit_code = done ? EX_OK : command_fail(&context.error);
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

/* A rate per minute becomes the interval between two attempts, in microseconds; 0 is no limit. */
static bool read_number(const struct command_call *call, const char *name, int64_t low,
                        int64_t high, char text[NUMBER], const char **value)
{
    int64_t number;
    *value = NULL;
    if (command_option(call, name) == NULL)
        return true;
    if (!command_number(call, name, low, high, low, &number))
        return false;
    if (strcmp(name, "rate") == 0)
        number = number > 0 ? (MINUTE_US + number - 1) / number : 0;
    snprintf(text, NUMBER, "%" PRId64, number);
    *value = text;
    return true;
}

/* A limit without an option keeps its value: its parameter is NULL. */
static int set(const struct command_call *call, const char *org)
{
    char rate[NUMBER], burst[NUMBER], concurrency[NUMBER], weight[NUMBER], open_runs[NUMBER];
    const char *values[7] = {org};
    if (!read_number(call, "rate", 0, MINUTE_US, rate, &values[1]) ||
        !read_number(call, "burst", 1, 1000000, burst, &values[2]) ||
        !read_number(call, "concurrency", 0, 1000000, concurrency, &values[3]) ||
        !read_number(call, "weight", 1, 1000, weight, &values[4]) ||
        !read_number(call, "open-runs", 0, 10000000, open_runs, &values[6]))
        return EX_USAGE;
    if (values[6] != NULL && strcmp(org, "*") == 0)
        return command_usage(call, "--open-runs is the cap of one organisation");
    if (values[1] == NULL && values[2] == NULL && values[3] == NULL && values[4] == NULL &&
        values[6] == NULL)
        return command_usage(call, "set what? --rate, --burst, --concurrency, --weight, "
                                   "--open-runs");
    return run(call, "command/org_set", 7, values);
}

/* The columns show limits, then how far they are used; `*` is the row of all organisations
 * together. */
int command_org(const struct command_call *call, enum command_format format)
{
    static const struct report_column columns[] = {
        {"org_id", REPORT_TEXT},     {"rate_per_minute", REPORT_NUMBER},
        {"burst", REPORT_NUMBER},    {"concurrency", REPORT_NUMBER},
        {"weight", REPORT_NUMBER},   {"paused", REPORT_TEXT},
        {"running", REPORT_NUMBER},  {"granted", REPORT_NUMBER},
        {"deferred", REPORT_NUMBER}, {"open_runs", REPORT_NUMBER},
        {"open", REPORT_NUMBER},     {"waiting", REPORT_NUMBER}};
    static const struct list list = {.file = "command/org_list", LIST_COLUMNS(columns)};
    const char *verb = call->more[0], *org = call->more[1];
    if (verb == NULL || strcmp(verb, "list") == 0)
        return list_run(&list, call, format, 0, NULL);
    if (org == NULL)
        return command_usage(call, "which organisation? * stands for all together");
    if (strcmp(verb, "set") == 0)
        return set(call, org);
    /* The organisation falls back to the configuration's limits. */
    if (strcmp(verb, "clear") == 0)
        return run(call, "command/org_clear", 1, &org);
    /* A pause is one more value of the organisation's row; the limits stay. */
    bool pause = strcmp(verb, "pause") == 0;
    if (!pause && strcmp(verb, "resume") != 0)
        return command_usage(call, "unknown verb \"%.40s\": list, set, clear, pause or resume",
                             verb);
    const char *const values[] = {org, NULL, NULL, NULL, NULL, pause ? "true" : "false", NULL};
    return run(call, "command/org_set", 7, values);
}

/* A pause stops claims of all instances with their next round; calls in flight end as usual. */
int command_pipeline(const struct command_call *call, enum command_format format)
{
    static const struct report_column columns[] = {
        {"name", REPORT_TEXT},       {"active", REPORT_TEXT},    {"paused", REPORT_TEXT},
        {"wordings", REPORT_NUMBER}, {"started", REPORT_NUMBER}, {"repeated", REPORT_NUMBER}};
    static const struct list list = {.file = "command/pipeline_list", LIST_COLUMNS(columns)};
    const char *verb = call->more[0], *name = call->more[1];
    if (verb == NULL || strcmp(verb, "list") == 0)
        return list_run(&list, call, format, 0, NULL);
    if (name == NULL)
        return command_usage(call, "which pipeline?");
    if (strcmp(verb, "pause") == 0)
        return run_for_pipeline(call, "command/pipeline_pause", name);
    if (strcmp(verb, "resume") == 0)
        return run_for_pipeline(call, "command/pipeline_resume", name);
    return command_usage(call, "unknown verb \"%.40s\": list, pause or resume", verb);
}

/* `receiptd push`: lists and shows pushes, and writes down a person's decision. All verbs work on
 * the database, where every instance sees the decision; no daemon is asked. */
#include <string.h>
#include <sysexits.h>

#include "list.h"
#include "receiptd/postgres/sql.h"

static const struct report_column list_columns[] = {
    {"push", REPORT_TEXT},       {"state", REPORT_TEXT},     {"started_at", REPORT_TEXT},
    {"dealt_at", REPORT_TEXT},   {"decide_at", REPORT_TEXT}, {"decided_at", REPORT_TEXT},
    {"decided_by", REPORT_TEXT}, {"winner", REPORT_TEXT}};
static const struct report_column show_columns[] = {{"stage", REPORT_TEXT},
                                                    {"part", REPORT_TEXT},
                                                    {"dealt", REPORT_NUMBER},
                                                    {"waiting", REPORT_NUMBER},
                                                    {"numerator", REPORT_NUMBER},
                                                    {"denominator", REPORT_NUMBER},
                                                    {"rate", REPORT_NUMBER},
                                                    {"then_numerator", REPORT_NUMBER},
                                                    {"then_denominator", REPORT_NUMBER},
                                                    {"wins", REPORT_TEXT}};
static const struct list list = {
    .file = "command/push_list", .empty = "no pushes", LIST_COLUMNS(list_columns)};
static const struct list show = {.file = "command/push_show",
                                 .empty = "no such push",
                                 LIST_COLUMNS(show_columns),
                                 .is_named = true};

/* Says why nothing was decided. */
static bool check_decision(const struct rcpt_session_rows *rows, const char *push,
                           const char *stage, struct rcpt_error *error)
{
    const char *stages = rcpt_session_rows_text(rows, 0, "stages");
    const char *decided = rcpt_session_rows_text(rows, 0, "decided");
    if (rcpt_session_rows_bool(rows, 0, "done"))
        return true;
    if (stages == NULL) {
        rcpt_error_fatal(error, EX_NOINPUT, "there is no push \"%.100s\"", push);
        rcpt_error_hint(error, "receiptd push list shows all pushes");
    } else if (decided != NULL) {
        rcpt_error_fatal(error, COMMAND_EXIT_NO, "push %.100s is decided: %.300s", push, decided);
        rcpt_error_hint(error, "a decision stands: its mails are on their way");
    } else {
        rcpt_error_fatal(error, EX_USAGE, "push %.100s has no stage \"%.100s\"", push, stage);
        rcpt_error_hint(error, "one of %.300s, or nobody", stages);
    }
    return false;
}

/* Exit code 1: somebody was first. */
static int decide(const struct command_call *call, const char *push, const char *stage)
{
    struct command_context context;
    int exit_code;
    if (!command_open(&context, call, false, &exit_code))
        return exit_code;
    const char *const values[] = {push, stage, command_option(call, "by")};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context.session, rcpt_sql("command/push_decide"), 3, values, &context.error);
    if (rows != NULL && check_decision(rows, push, stage, &context.error)) {
        printf("push %s: the remainder gets %s\n", push,
               strcmp(stage, "nobody") == 0 ? "nothing" : stage);
        exit_code = command_printed(EX_OK);
    } else {
        exit_code = command_fail(&context.error);
    }
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

/* The verb is list unless one is given. */
int command_push(const struct command_call *call)
{
    enum command_format format;
    const char *verb = call->argument != NULL ? call->argument : "list";
    const char *push = call->more[0], *stage = call->more[1];
    if (!command_format(call, &format))
        return EX_USAGE;
    if (strcmp(verb, "list") == 0)
        return push == NULL ? list_run(&list, call, format, 0, NULL)
                            : command_usage(call, "list takes no argument");
    if (strcmp(verb, "show") != 0 && strcmp(verb, "decide") != 0)
        return command_usage(call, "unknown verb \"%.40s\": list, show or decide", verb);
    if (push == NULL)
        return command_usage(call, "which push?");
    if (strcmp(verb, "show") == 0)
        return list_run(&show, call, format, 1, &push);
    if (stage == NULL)
        return command_usage(call, "which stage? nobody ends the remainder's runs");
    return decide(call, push, stage);
}

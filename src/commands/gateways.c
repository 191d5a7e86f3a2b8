/* `receiptd gateways`: how clean the receipts of each gateway are, from what the rule of
 * counters.gateways has counted, and how long it took to deliver (counters.times). Reads counters
 * only. */
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "receiptd/base/error.h"
#include "receiptd/commands/command.h"
#include "receiptd/postgres/sql.h"
#include "report.h"

#define HOURS_DEFAULT 24
#define HOURS_MOST    87600

static const struct report_column columns[] = {
    {"gateway", REPORT_TEXT},
    {"hour", REPORT_TEXT},
    {"receipts", REPORT_NUMBER},
    {"duplicates", REPORT_NUMBER},
    {"disorder", REPORT_NUMBER},
    {"contradictions_won", REPORT_NUMBER},
    {"contradictions_lost", REPORT_NUMBER},
    {"unknown", REPORT_NUMBER},
    {"coverage", REPORT_NUMBER},
    {"delay_p50_ms", REPORT_NUMBER},
    {"delay_p99_ms", REPORT_NUMBER},
    {"deliver_p50_ms", REPORT_NUMBER},
    {"deliver_p99_ms", REPORT_NUMBER},
};

static void print(const struct command_context *context, const struct rcpt_session_rows *rows,
                  enum command_format format)
{
    struct report report;
    report_init(&report, columns, RCPT_COUNT_OF(columns));
    report_add_rows(&report, rows);
    report_print(&report, format,
                 context->config->counters.gateways_ms > 0
                     ? "no gateway has sent a receipt in this time"
                     : "nothing is counted by gateway: set counters.gateways, such as to 90d");
    report_fini(&report);
}

int command_gateways(const struct command_call *call)
{
    enum command_format format;
    struct command_context context;
    int64_t hours;
    char limit[24];
    int exit_code;
    if (!command_format(call, &format) ||
        !command_number(call, "hours", 1, HOURS_MOST, HOURS_DEFAULT, &hours))
        return EX_USAGE;
    if (!command_open(&context, call, true, &exit_code))
        return exit_code;
    snprintf(limit, sizeof(limit), "%" PRId64, hours);
    const char *const values[] = {limit, command_option(call, "hourly") != NULL ? "t" : "f"};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context.session, rcpt_sql("command/gateways"), 2, values, &context.error);
    if (rows != NULL)
        print(&context, rows, format);
    exit_code = rows != NULL ? command_printed(EX_OK) : command_fail(&context.error);
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

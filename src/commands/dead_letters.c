/* `receiptd dead-letters`: lists what could not be applied, or parks it again
 * (src/receipts/redrive.c) where the ladder of today takes it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "receiptd/base/error.h"
#include "receiptd/commands/command.h"
#include "receiptd/core/record.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/receipts/redrive.h"
#include "report.h"

/* Letters may have 64 KiB of payload each, so a list is bounded by default. */
#define LIST_DEFAULT 100
#define LIST_MOST    100000

/* The names are those of the metric and of the column. They are few, so the error lists them. */
static int refuse_reason(const struct command_call *call, const char *name)
{
    char known[512] = "";
    size_t used = 0;
    for (int reason = 0; reason < RCPT_REJECT_REASON__COUNT; reason++)
        used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", reason > 0 ? ", " : "",
                                 rcpt_reject_name((enum rcpt_reject_reason)reason));
    return command_usage(call, "unknown reason \"%s\": %s", name, known);
}

/* ---- list ---- */

/* Payloads hold personal data; they come only with --payload. */
static void print_letters(const struct rcpt_session_rows *rows, bool payload,
                          enum command_format format)
{
    static const struct report_column columns[] = {
        {"topic", REPORT_TEXT},   {"partition", REPORT_NUMBER}, {"offset", REPORT_NUMBER},
        {"index", REPORT_NUMBER}, {"receipts", REPORT_NUMBER},  {"reason", REPORT_TEXT},
        {"detail", REPORT_TEXT},  {"dead_at", REPORT_TEXT},     {"size", REPORT_NUMBER},
        {"payload", REPORT_TEXT}};
    size_t count = RCPT_COUNT_OF(columns) - !payload;
    struct report report;
    report_init(&report, columns, count);
    report_add_rows(&report, rows);
    report_print(&report, format, "no dead letters");
    report_fini(&report);
}

/* Newest first, as the statement orders them. */
static int list(const struct command_call *call, enum command_format format, int64_t limit)
{
    struct command_context context;
    char most[24];
    int exit_code;
    bool payload = command_option(call, "payload") != NULL;
    if (!command_open(&context, call, true, &exit_code))
        return exit_code;
    snprintf(most, sizeof(most), "%" PRId64, limit);
    const char *const values[] = {command_option(call, "reason"), most, payload ? "true" : "false"};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context.session, rcpt_sql("command/dead_letters_list"), 3, values, &context.error);
    if (rows != NULL) {
        print_letters(rows, payload, format);
        /* With one reason alone it is not known how many there are. */
        size_t shown = rcpt_session_rows_count(rows);
        bool counts =
            format == COMMAND_FORMAT_TABLE && values[0] == NULL && (int64_t)shown == limit;
        exit_code = counts && !command_print_held(&context, "letters", shown)
                        ? command_fail(&context.error)
                        : command_printed(EX_OK);
    } else {
        exit_code = command_fail(&context.error);
    }
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

/* ---- redrive ---- */

/* Letters that were cut when they were stored can never be redriven; the reader has to know. */
static void print_counts(const struct redrive_counts *counts, enum command_format format)
{
    static const struct report_column columns[] = {{"letters_moved", REPORT_NUMBER},
                                                   {"receipts_parked", REPORT_NUMBER},
                                                   {"letters_left", REPORT_NUMBER}};
    if (format == COMMAND_FORMAT_TABLE) {
        printf("%" PRId64 " letters moved (%" PRId64 " receipts parked for the daemon), %" PRId64
               " left\n",
               counts->moved, counts->receipts, counts->left);
        if (counts->cut > 0)
            printf("%" PRId64
                   " of those left are cut: they hold the first 64 KiB only; produce the "
                   "receipts again from their source\n",
                   counts->cut);
    } else {
        struct report report;
        report_init(&report, columns, 3);
        report_add_int(&report, counts->moved);
        report_add_int(&report, counts->receipts);
        report_add_int(&report, counts->left);
        report_print(&report, format, NULL);
        report_fini(&report);
    }
}

/* The counts are printed even after an error: pages before it are committed. */
static int move(const struct command_call *call, enum command_format format, int64_t limit)
{
    struct command_context context;
    struct redrive_counts counts = {0};
    int exit_code;
    if (!command_open(&context, call, false, &exit_code))
        return exit_code;
    const struct redrive_settings settings = {.session = context.session,
                                              .ladder = context.config->ladder,
                                              .machines = &context.config->machine,
                                              .lanes = context.config->lanes,
                                              .reason = command_option(call, "reason"),
                                              .limit = limit};
    bool good = redrive_letters(&settings, &counts, &context.error);
    print_counts(&counts, format);
    exit_code = good ? command_printed(EX_OK) : command_fail(&context.error);
    command_close(&context);
    return exit_code;
}

/* A list has a default limit, since a table of millions helps no reader; a redrive has none. */
int command_dead_letters(const struct command_call *call)
{
    enum command_format format;
    int64_t limit;
    const char *reason = command_option(call, "reason");
    bool is_redrive = command_option(call, "redrive") != NULL;
    if (!command_format(call, &format) ||
        !command_number(call, "limit", 1, is_redrive ? INT64_MAX : LIST_MOST,
                        is_redrive ? INT64_MAX : LIST_DEFAULT, &limit))
        return EX_USAGE;
    if (reason != NULL && !rcpt_reject_is_name(reason))
        return refuse_reason(call, reason);
    if (is_redrive && command_option(call, "payload") != NULL)
        return command_usage(call, "--payload is for the list, not for --redrive");
    return is_redrive ? move(call, format, limit) : list(call, format, limit);
}

/* `receiptd dead-letters`: lists receipts that could not be applied, or parks those again that the
 * present ladder takes (src/receipts/redrive.c). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../list.h"
#include "receiptd/core/record.h"
#include "receiptd/receipts/redrive.h"

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

static const struct report_column columns[] = {
    {"topic", REPORT_TEXT},   {"partition", REPORT_NUMBER}, {"offset", REPORT_NUMBER},
    {"index", REPORT_NUMBER}, {"receipts", REPORT_NUMBER},  {"reason", REPORT_TEXT},
    {"detail", REPORT_TEXT},  {"dead_at", REPORT_TEXT},     {"size", REPORT_NUMBER},
    {"payload", REPORT_TEXT}};

/* The newest come first, as the statement orders them. Payloads hold personal data; they come only
 * with --payload. How many letters have one reason is not known. */
static int list_letters(const struct command_call *call, enum command_format format, int64_t limit)
{
    char most[24];
    bool payload = command_option(call, "payload") != NULL;
    snprintf(most, sizeof(most), "%" PRId64, limit);
    const char *const values[] = {command_option(call, "reason"), most, payload ? "true" : "false"};
    struct list list = {.file = "command/dead_letters_list",
                        .empty = "no dead letters",
                        LIST_COLUMNS(columns),
                        .held = values[0] == NULL ? "letters" : NULL,
                        .limit = limit};
    list.column_count -= payload ? 0 : 1;
    return list_run(&list, call, format, 3, values);
}

/* ---- redrive ---- */

/* Letters that were cut when they were stored can never be redriven, so they are counted apart. */
static void print_counts(const struct redrive_counts *counts, enum command_format format)
{
    static const struct report_column sums[] = {{"letters_moved", REPORT_NUMBER},
                                                {"receipts_parked", REPORT_NUMBER},
                                                {"letters_left", REPORT_NUMBER}};
    if (format == COMMAND_FORMAT_TABLE) {
        printf("%" PRId64 " letters moved (%" PRId64 " receipts parked for the daemon), %" PRId64
               " left\n",
               counts->moved, counts->receipts, counts->left);
        if (counts->cut > 0)
            printf("%" PRId64 " of those left hold only the first 64 KiB; produce the receipts "
                   "again from their source\n",
                   counts->cut);
    } else {
        struct report report;
        report_init(&report, sums, 3);
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
    const struct rcpt_config *config = context.config;
    struct rcpt_gateway_topics *topics = rcpt_gateway_topics_new(
        config->kafka.accounts, config->kafka.accounts_count, config->ladder, &context.error);
    const struct redrive_settings settings = {.session = context.session,
                                              .ladder = config->ladder,
                                              .machines = &config->machine,
                                              .topics = topics,
                                              .lanes = config->lanes,
                                              .reason = command_option(call, "reason"),
                                              .limit = limit};
    bool good = topics != NULL && redrive_letters(&settings, &counts, &context.error);
    rcpt_gateway_topics_free(topics);
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
    return is_redrive ? move(call, format, limit) : list_letters(call, format, limit);
}

/* `receiptd funnel CAMPAIGN --by DIMENSION`: the funnel of each value of a column (counters.by), of
 * each hour or minute, receipts by reason, duplicates by gateway. The table has a line for each;
 * CSV and JSON have every count. Called by funnel.c. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../command.h"
#include "../report.h"
#include "receiptd/base/json.h"
#include "receiptd/postgres/sql.h"

struct by {
    struct command_context *context;
    const char *campaign, *dimension;
    struct rcpt_session_rows *rows; /* sql/command/funnel_by: those of a key stand together */
};

/* A column of the answer, by its name. */
static const char *cell(const struct by *by, size_t row, const char *column)
{
    return rcpt_session_rows_text(by->rows, row, column);
}

/* The first row behind those of this row's key. */
static size_t end_of_key(const struct by *by, size_t row)
{
    size_t count = rcpt_session_rows_count(by->rows), end = row + 1;
    while (end < count && strcmp(cell(by, end, "key"), cell(by, row, "key")) == 0)
        end++;
    return end;
}

/* ---- percentiles of times ---- */

static bool has_percentiles(const struct by *by)
{
    return strncmp(by->dimension, "time_to_", strlen("time_to_")) == 0;
}

/* The upper end of the bucket that holds this percentile of the messages. Rows come in the order of
 * the buckets. */
static const char *percentile(const struct by *by, int64_t share)
{
    size_t count = rcpt_session_rows_count(by->rows);
    int64_t total = 0, below = 0;
    for (size_t row = 0; row < count; row++)
        total += rcpt_session_rows_int(by->rows, row, "messages");
    for (size_t row = 0; row < count; row++) {
        below += rcpt_session_rows_int(by->rows, row, "messages");
        if (below * 100 >= total * share)
            return cell(by, row, "key");
    }
    return cell(by, count - 1, "key");
}

static const struct {
    int64_t share;
    const char *name, *key;
} percentiles[] = {{50, "p50", "p50_ms"}, {90, "p90", "p90_ms"}, {99, "p99", "p99_ms"}};
#define PERCENTILES RCPT_COUNT_OF(percentiles)

static void print_percentiles(const struct by *by)
{
    for (size_t index = 0; index < PERCENTILES; index++)
        printf("%s%s: %s ms", index > 0 ? ", " : "\n", percentiles[index].name,
               percentile(by, percentiles[index].share));
    putchar('\n');
}

/* A percentile is null if its bucket is that of negative times. */
static void write_percentiles(const struct by *by, struct rcpt_json *json)
{
    for (size_t index = 0; index < PERCENTILES; index++) {
        const char *end = percentile(by, percentiles[index].share);
        rcpt_json_key(json, percentiles[index].key);
        if (strcmp(end, "negative") == 0)
            rcpt_json_null(json);
        else
            rcpt_json_int(json, strtoll(end, NULL, 10));
    }
}

/* ---- table ---- */

/* The statuses that any key has, by their codes: the columns of the table behind the key. */
struct statuses {
    struct report_column *columns;
    int64_t *codes;
    size_t count;
};

/* Where a code stands, or would stand, among those that were found before. */
static size_t place_of(const struct statuses *statuses, int64_t code)
{
    size_t index = 0;
    while (index < statuses->count && statuses->codes[index] < code)
        index++;
    return index;
}

/* Each code once, in the order of the ladder. */
static void take_statuses(const struct by *by, struct statuses *statuses)
{
    size_t rows = rcpt_session_rows_count(by->rows);
    statuses->columns = rcpt_calloc(rows + 1, sizeof(*statuses->columns));
    statuses->codes = rcpt_calloc(rows, sizeof(*statuses->codes));
    statuses->columns[0] = (struct report_column){by->dimension, REPORT_TEXT};
    for (size_t row = 0; row < rows; row++) {
        int64_t code = rcpt_session_rows_int(by->rows, row, "status");
        size_t place = place_of(statuses, code), after = statuses->count - place;
        if (after > 0 && statuses->codes[place] == code)
            continue;
        memmove(statuses->codes + place + 1, statuses->codes + place, after * sizeof(int64_t));
        memmove(statuses->columns + place + 2, statuses->columns + place + 1,
                after * sizeof(struct report_column));
        statuses->codes[place] = code;
        statuses->columns[place + 1] = (struct report_column){cell(by, row, "name"), REPORT_NUMBER};
        statuses->count++;
    }
}

/* Reasons, duplicates and links count receipts, not messages. */
static const char *measure_of(const struct by *by)
{
    bool receipts = strcmp(by->dimension, "reason") == 0 ||
                    strcmp(by->dimension, "duplicate") == 0 || strcmp(by->dimension, "link") == 0;
    return receipts ? "events" : "messages";
}

/* Rows of a key are ordered by status, as the columns are. */
static void add_key(const struct by *by, const struct statuses *statuses, size_t row, size_t end,
                    struct report *report)
{
    const char *key = cell(by, row, "key");
    report_add(report, key[0] != '\0' ? key : "(none)");
    for (size_t index = 0; index < statuses->count; index++) {
        bool is_there =
            row < end && rcpt_session_rows_int(by->rows, row, "status") == statuses->codes[index];
        report_add_int(report, is_there ? rcpt_session_rows_int(by->rows, row, measure_of(by)) : 0);
        row += is_there;
    }
}

/* A line for each key, a column for each status. */
static void print_table(const struct by *by)
{
    struct statuses statuses = {.count = 0};
    struct report report;
    take_statuses(by, &statuses);
    report_init(&report, statuses.columns, statuses.count + 1);
    for (size_t row = 0, end; row < rcpt_session_rows_count(by->rows); row = end) {
        end = end_of_key(by, row);
        add_key(by, &statuses, row, end, &report);
    }
    printf("campaign ");
    report_print_padded(stdout, by->campaign, 0, false);
    printf(", %s by %s\n\n", measure_of(by), by->dimension);
    report_print_table(&report, stdout);
    if (has_percentiles(by))
        print_percentiles(by);
    report_fini(&report);
    free(statuses.columns);
    free(statuses.codes);
}

/* ---- CSV and JSON ---- */

/* A line for each key and status, as the view has them. */
static void print_csv(const struct by *by)
{
    static const struct report_column columns[] = {{"key", REPORT_TEXT},
                                                   {"status", REPORT_NUMBER},
                                                   {"name", REPORT_TEXT},
                                                   {"messages", REPORT_NUMBER},
                                                   {"events", REPORT_NUMBER}};
    struct report report;
    report_init(&report, columns, RCPT_COUNT_OF(columns));
    report_add_rows(&report, by->rows);
    report_print_csv(&report, stdout);
    report_fini(&report);
}

/* One key with its counts. */
static void write_key(const struct by *by, size_t row, size_t end, struct rcpt_json *json)
{
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "key", cell(by, row, "key"));
    rcpt_json_key(json, "statuses");
    rcpt_json_begin_array(json);
    for (; row < end; row++) {
        rcpt_json_begin_object(json);
        rcpt_json_put_int(json, "status", rcpt_session_rows_int(by->rows, row, "status"));
        rcpt_json_put_text(json, "name", cell(by, row, "name"));
        rcpt_json_put_int(json, "messages", rcpt_session_rows_int(by->rows, row, "messages"));
        rcpt_json_put_int(json, "events", rcpt_session_rows_int(by->rows, row, "events"));
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

/* Names are part of the interface. */
static void print_json(const struct by *by)
{
    struct rcpt_json json;
    rcpt_json_init(&json, stdout);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "campaign_id", by->campaign);
    rcpt_json_put_text(&json, "by", by->dimension);
    if (has_percentiles(by))
        write_percentiles(by, &json);
    rcpt_json_key(&json, "keys");
    rcpt_json_begin_array(&json);
    for (size_t row = 0, end; row < rcpt_session_rows_count(by->rows); row = end) {
        end = end_of_key(by, row);
        write_key(by, row, end, &json);
    }
    rcpt_json_end_array(&json);
    rcpt_json_end_object(&json);
    putchar('\n');
}

/* ---- the option ---- */

/* A dimension that was switched off still has its counts. */
static bool fail_empty(struct by *by)
{
    rcpt_error_fatal(&by->context->error, EX_NOINPUT, "campaign \"%s\" has no counts by \"%s\"",
                     by->campaign, by->dimension);
    rcpt_error_hint(&by->context->error,
                    "receiptd counts by the columns that counters.by names (variant, channel, "
                    "gateway), in campaigns whose messages are inserted from then on; by hour and "
                    "minute with counters.series, reason with counters.reasons, link with "
                    "counters.links, duplicate with dedup.window, time_to_deliver and time_to_open "
                    "with counters.times");
    return false;
}

static bool show(struct by *by, enum command_format format)
{
    const char *const values[] = {by->campaign, by->dimension};
    by->rows = rcpt_session_query(by->context->session, rcpt_sql("command/funnel_by"), 2, values,
                                  &by->context->error);
    if (by->rows == NULL)
        return false;
    bool good = rcpt_session_rows_count(by->rows) > 0 || fail_empty(by);
    if (good && format == COMMAND_FORMAT_JSON)
        print_json(by);
    else if (good && format == COMMAND_FORMAT_CSV)
        print_csv(by);
    else if (good)
        print_table(by);
    rcpt_session_rows_free(by->rows);
    return good;
}

int command_funnel_by(const struct command_call *call)
{
    enum command_format format;
    struct command_context context;
    struct by by = {&context, call->argument, command_option(call, "by"), NULL};
    int exit_code = EX_USAGE;
    if (by.campaign == NULL || command_option(call, "org") != NULL ||
        command_option(call, "kpis") != NULL)
        return command_usage(call, "--by is for one campaign: it needs CAMPAIGN, "
                                   "and does not go with --org or --kpis");
    if (!command_format(call, &format) || !command_open(&context, call, true, &exit_code))
        return exit_code;
    exit_code = show(&by, format) ? command_printed(EX_OK) : command_fail(&context.error);
    command_close(&context);
    return exit_code;
}

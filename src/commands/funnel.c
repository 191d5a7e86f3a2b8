/* `receiptd funnel`: counts and rates of one campaign or of all, as a tree for people, as CSV or
 * JSON. Counts come ordered by campaign; rates are made of them here, by the parts that the ladder gives. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "command.h"
#include "postgres/sql.h"
#include "report.h"

#define NUMBER_WIDTH 13u
#define NAME_WIDTH   30u

/* The result is ordered by campaign; a campaign's rows are [begin, end). */
struct section {
    const struct rcpt_session_rows *rows;
    size_t begin, end;
};

/* One campaign at a time, moved on by next_funnel(). */
struct funnel {
    const char *campaign, *org; /* org NULL: of several organisations, or of none */
    struct section counts;
    const struct rcpt_session_rows *parts; /* of rates, the same for all campaigns */
};

/* Columns are read by name; NULL is SQL's null. */
static const char *text(const struct section *section, size_t row, const char *column)
{
    return rcpt_session_rows_text(section->rows, row, column);
}

static int64_t number(const struct section *section, size_t row, const char *column)
{
    return rcpt_session_rows_int(section->rows, row, column);
}

static bool is_flag(const struct section *section, size_t row)
{
    return rcpt_session_rows_bool(section->rows, row, "is_flag");
}

/* Moves the section to the rows of the campaign, which begin where it ended. */
static void advance(struct section *section, const char *campaign)
{
    section->begin = section->end;
    while (section->end < rcpt_session_rows_count(section->rows) &&
           strcmp(text(section, section->end, "campaign_id"), campaign) == 0)
        section->end++;
}

/* ---- JSON ---- */

/* Statuses and flags come in one result; flags have no `current`. */
static void write_counts(const struct section *section, bool flags, struct rcpt_json *json)
{
    rcpt_json_begin_array(json);
    for (size_t row = section->begin; row < section->end; row++) {
        if (is_flag(section, row) != flags)
            continue;
        rcpt_json_begin_object(json);
        rcpt_json_put_int(json, "status", number(section, row, "status"));
        rcpt_json_put_text(json, "name", text(section, row, "name"));
        rcpt_json_put_int(json, "messages", number(section, row, "messages"));
        rcpt_json_put_int(json, "events", number(section, row, "events"));
        if (!flags) {
            rcpt_json_put_int(json, "current", number(section, row, "current"));
        }
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
}

/* ---- rates ---- */

/* Linear: a funnel has some twenty rows. */
static bool find_status(const struct section *section, const char *status, size_t *found)
{
    for (size_t row = section->begin; row < section->end && status != NULL; row++) {
        if (strcmp(text(section, row, "status"), status) == 0) {
            *found = row;
            return true;
        }
    }
    return false;
}

struct rate {
    const char *kpi;
    int64_t numerator, denominator;
};

/* What a part of a rate adds: a measure of the campaign's row of its status. */
static int64_t count_of_part(const struct funnel *funnel, size_t part)
{
    const char *status = rcpt_session_rows_text(funnel->parts, part, "status");
    size_t row;
    if (!find_status(&funnel->counts, status, &row))
        return 0;
    return number(&funnel->counts, row, rcpt_session_rows_text(funnel->parts, part, "measure"));
}

/* The parts are the same for all campaigns, so the database need not multiply them by campaigns. False:
 * no rate is left. `part` begins with 0. */
static bool next_rate(const struct funnel *funnel, size_t *part, struct rate *rate)
{
    size_t count = rcpt_session_rows_count(funnel->parts);
    if (*part >= count)
        return false;
    *rate = (struct rate){.kpi = rcpt_session_rows_text(funnel->parts, *part, "kpi")};
    while (*part < count &&
           strcmp(rcpt_session_rows_text(funnel->parts, *part, "kpi"), rate->kpi) == 0) {
        bool above = rcpt_session_rows_bool(funnel->parts, *part, "is_numerator");
        *(above ? &rate->numerator : &rate->denominator) += count_of_part(funnel, *part);
        (*part)++;
    }
    return true;
}

/* A rate without a denominator has no value: null, not 0. */
static void write_kpis(const struct funnel *funnel, struct rcpt_json *json)
{
    struct rate rate;
    rcpt_json_begin_object(json);
    for (size_t part = 0; next_rate(funnel, &part, &rate);) {
        rcpt_json_key(json, rate.kpi);
        rcpt_json_begin_object(json);
        rcpt_json_key(json, "value");
        if (rate.denominator != 0)
            rcpt_json_double(json, (double)rate.numerator / (double)rate.denominator);
        else
            rcpt_json_null(json);
        rcpt_json_put_int(json, "numerator", rate.numerator);
        rcpt_json_put_int(json, "denominator", rate.denominator);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_object(json);
}

/* Keys are part of the interface, as are those of the CSV. */
static void write_funnel(const struct funnel *funnel, struct rcpt_json *json)
{
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "campaign_id", funnel->campaign);
    rcpt_json_key(json, "org_id");
    if (funnel->org != NULL)
        rcpt_json_text(json, funnel->org);
    else
        rcpt_json_null(json);
    rcpt_json_key(json, "statuses");
    write_counts(&funnel->counts, false, json);
    rcpt_json_key(json, "flags");
    write_counts(&funnel->counts, true, json);
    rcpt_json_key(json, "kpis");
    write_kpis(funnel, json);
    rcpt_json_end_object(json);
}

/* ---- table ---- */

/* Groups of three digits, as 1 234 567. */
static void print_number(int64_t value)
{
    char digits[24], grouped[32];
    size_t used = 0;
    int size = snprintf(digits, sizeof(digits), "%" PRId64, value);
    for (int index = 0; index < size; index++) {
        bool first = index == 0 || digits[index - 1] == '-';
        if (!first && (size - index) % 3 == 0)
            grouped[used++] = ' ';
        grouped[used++] = digits[index];
    }
    grouped[used] = '\0';
    report_print_padded(stdout, grouped, NUMBER_WIDTH, true);
}

/* Nothing is printed where the whole is 0. */
static void print_share(int64_t part, int64_t whole)
{
    char share[32] = "";
    if (whole > 0)
        snprintf(share, sizeof(share), "%.1f %%", 100.0 * (double)part / (double)whole);
    report_print_padded(stdout, share, 11, true);
}

/* Indentation shows the tree; shares are of the root and of the parent. */
static void print_count(const struct section *section, size_t row, unsigned depth)
{
    size_t parent;
    char name[128];
    int64_t messages = number(section, row, "messages");
    snprintf(name, sizeof(name), "%*s%s", (int)(2 * depth), "", text(section, row, "name"));
    report_print_padded(stdout, name, NAME_WIDTH, false);
    print_number(messages);
    if (find_status(section, text(section, row, "parent"), &parent)) {
        print_share(messages, number(section, section->begin, "messages"));
        print_share(messages, number(section, parent, "messages"));
    } else {
        printf("%22s", "");
    }
    print_number(number(section, row, "events"));
    if (!is_flag(section, row))
        print_number(number(section, row, "current"));
    putchar('\n');
}

/* A status and below it its children, by code. A parent's code is smaller, so the depth is bounded.
 */
static void print_subtree(const struct section *section, size_t row, unsigned depth)
{
    if (number(section, row, "messages") != 0 || number(section, row, "events") != 0 || depth == 0)
        print_count(section, row, depth);
    const char *status = text(section, row, "status");
    for (size_t child = section->begin; child < section->end; child++) {
        const char *parent = text(section, child, "parent");
        if (parent != NULL && strcmp(parent, status) == 0)
            print_subtree(section, child, depth + 1);
    }
}

/* Trees first, from their roots; flags below, where they have any count. */
static void print_counts(const struct section *section)
{
    report_print_padded(stdout, "status", NAME_WIDTH, false);
    printf("%13s%11s%11s%13s%13s\n", "messages", "of all", "of parent", "events", "current");
    for (size_t row = section->begin; row < section->end; row++) {
        if (!is_flag(section, row) && text(section, row, "parent") == NULL)
            print_subtree(section, row, 0);
    }
    for (size_t row = section->begin; row < section->end; row++) {
        if (is_flag(section, row) &&
            (number(section, row, "messages") != 0 || number(section, row, "events") != 0))
            print_count(section, row, 0);
    }
}

/* A rate without a denominator is not printed at all: a dash would look like a fault. */
static void print_kpis(const struct funnel *funnel)
{
    struct rate rate;
    for (size_t part = 0; next_rate(funnel, &part, &rate);) {
        if (rate.denominator == 0)
            continue;
        report_print_padded(stdout, rate.kpi, NAME_WIDTH, false);
        print_number(rate.numerator);
        printf(" / ");
        print_number(rate.denominator);
        print_share(rate.numerator, rate.denominator);
        putchar('\n');
    }
}

/* Messages without a campaign form a funnel with an empty name. */
static void print_funnel(const struct funnel *funnel)
{
    printf("campaign ");
    report_print_padded(stdout, funnel->campaign[0] != '\0' ? funnel->campaign : "(none)", 0,
                        false);
    if (funnel->org != NULL) {
        printf(", organisation ");
        report_print_padded(stdout, funnel->org, 0, false);
    }
    printf("\n\n");
    print_counts(&funnel->counts);
    putchar('\n');
    print_kpis(funnel);
}

/* ---- CSV ---- */

/* Rates are left out: they follow from the counts. */
static void add_csv_rows(const struct section *section, struct report *report)
{
    static const char *const columns[] = {"campaign_id", "status", "name",    "parent",
                                          "messages",    "events", "current", "org_id"};
    for (size_t row = section->begin; row < section->end; row++) {
        for (size_t column = 0; column < sizeof(columns) / sizeof(columns[0]); column++)
            report_add(report, text(section, row, columns[column]));
    }
}

/* ---- the command ---- */

/* The counts say which campaign comes next; the rates follow. */
static bool next_funnel(struct funnel *funnel)
{
    if (funnel->counts.end >= rcpt_session_rows_count(funnel->counts.rows))
        return false;
    funnel->campaign = text(&funnel->counts, funnel->counts.end, "campaign_id");
    funnel->org = text(&funnel->counts, funnel->counts.end, "org_id");
    advance(&funnel->counts, funnel->campaign);
    return true;
}

/* One table over all campaigns, for a spreadsheet. */
static void print_csv(struct funnel *funnel)
{
    static const struct report_column columns[] = {
        {"campaign_id", REPORT_TEXT}, {"status", REPORT_NUMBER},   {"name", REPORT_TEXT},
        {"parent", REPORT_NUMBER},    {"messages", REPORT_NUMBER}, {"events", REPORT_NUMBER},
        {"current", REPORT_NUMBER},   {"org_id", REPORT_TEXT}};
    struct report report;
    report_init(&report, columns, sizeof(columns) / sizeof(columns[0]));
    while (next_funnel(funnel))
        add_csv_rows(&funnel->counts, &report);
    report_print_csv(&report, stdout);
    report_fini(&report);
}

/* One campaign is an object, all of them an array. */
static void print_json(struct funnel *funnel, bool one)
{
    struct rcpt_json json;
    rcpt_json_init(&json, stdout);
    if (!one)
        rcpt_json_begin_array(&json);
    while (next_funnel(funnel))
        write_funnel(funnel, &json);
    if (!one)
        rcpt_json_end_array(&json);
    putchar('\n');
}

static void print_tables(struct funnel *funnel)
{
    for (size_t printed = 0; next_funnel(funnel); printed++) {
        fputs(printed > 0 ? "\n\n" : "", stdout);
        print_funnel(funnel);
    }
}

static void print_all(struct funnel *funnel, enum command_format format, bool one)
{
    if (format == COMMAND_FORMAT_JSON)
        print_json(funnel, one);
    else if (format == COMMAND_FORMAT_CSV)
        print_csv(funnel);
    else
        print_tables(funnel);
}

/* In one snapshot, so that they agree. `sparse`: without rows in which nothing was counted. */
static bool read_funnels(struct command_context *context, const char *campaign, const char *org,
                         bool sparse, struct rcpt_session_rows **counts,
                         struct rcpt_session_rows **parts, struct rcpt_session_rows **undefined)
{
    const char *const values[] = {campaign, org, sparse ? "true" : "false"};
    struct rcpt_session *session = context->session;
    struct rcpt_error *error = &context->error;
    if (!rcpt_session_begin(session, "ISOLATION LEVEL REPEATABLE READ, READ ONLY", error) ||
        !rcpt_session_execute(session, rcpt_sql("command/funnel_memory"), error))
        return false;
    *counts = rcpt_session_query(session, rcpt_sql("command/funnel"), 3, values, error);
    if (*counts != NULL)
        *parts = rcpt_session_query(session, rcpt_sql("command/kpi_parts"), 0, NULL, error);
    if (*parts != NULL)
        *undefined =
            rcpt_session_query(session, rcpt_sql("command/kpis_undefined"), 0, NULL, error);
    return *undefined != NULL && rcpt_session_commit(session, error);
}

/* Why a rate is missing; to stderr, since it is about the ladder and no campaign's. */
static void note_undefined(const struct rcpt_session_rows *rows)
{
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++)
        fprintf(stderr, "receiptd: no rate %s: in this ladder %s\n",
                rcpt_session_rows_text(rows, row, "kpi"),
                rcpt_session_rows_text(rows, row, "because"));
}

/* Nothing to show: exit code 66. A campaign of several organisations is none of theirs: its counts
 * are of all of them. */
static int fail_empty(struct rcpt_error *error, const char *campaign, const char *org)
{
    if (org == NULL) {
        rcpt_error_fatal(error, EX_NOINPUT, "no campaign \"%s\"", campaign);
        rcpt_error_hint(error,
                        "receiptd funnel shows all; one begins with its first message or receipt");
        return command_fail(error);
    }
    if (campaign != NULL)
        rcpt_error_fatal(error, EX_NOINPUT, "organisation \"%s\" has no campaign \"%s\" of its own",
                         org, campaign);
    else
        rcpt_error_fatal(error, EX_NOINPUT, "organisation \"%s\" has no campaign of its own", org);
    rcpt_error_hint(error, "a campaign with messages of several organisations is shown without "
                           "--org only; `inbox.targeted: none` does not note organisations");
    return command_fail(error);
}

int command_funnel(const struct command_call *call)
{
    enum command_format format;
    struct command_context context;
    struct rcpt_session_rows *counts = NULL, *parts = NULL, *undefined = NULL;
    int exit_code = EX_USAGE;
    const char *org = command_option(call, "org");
    if (!command_format(call, &format) || !command_open(&context, call, true, &exit_code))
        return exit_code;
    if (!read_funnels(&context, call->argument, org, format == COMMAND_FORMAT_TABLE, &counts,
                      &parts, &undefined)) {
        exit_code = command_fail(&context.error);
    } else if ((call->argument != NULL || org != NULL) && rcpt_session_rows_count(counts) == 0) {
        exit_code = fail_empty(&context.error, call->argument, org);
    } else {
        struct funnel funnel = {.counts = {.rows = counts}, .parts = parts};
        print_all(&funnel, format, call->argument != NULL);
        exit_code = command_printed(EX_OK);
        note_undefined(undefined);
    }
    rcpt_session_rows_free(undefined);
    rcpt_session_rows_free(counts);
    rcpt_session_rows_free(parts);
    command_close(&context);
    return exit_code;
}

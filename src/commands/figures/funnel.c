/* `receiptd funnel`: counts and rates of one campaign or of all, as a tree for people, as CSV or
 * JSON. Counts come ordered by campaign. Names and `current` follow from the ladder and are added
 * here. funnel_rates.c adds the rates. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../inbox/expire.h"
#include "../report.h"
#include "funnel.h"
#include "receiptd/config/rule_columns.h"
#include "receiptd/postgres/sql.h"

const char *const funnel_measure_names[FUNNEL_MEASURE__COUNT] = {
    "messages", "events", "current", "duplicates", "customers", "logical"};

/* ---- what is read ---- */

/* Linear: a ladder has some twenty statuses. */
size_t funnel_find_status(const struct funnel *funnel, const char *code)
{
    for (size_t index = 0; index < funnel->status_count && code != NULL; index++) {
        if (strcmp(funnel->statuses[index].code, code) == 0)
            return index;
    }
    return FUNNEL_NO_STATUS;
}

/* A parent's code is smaller, so the parent has been read before. */
static void take_ladder(struct funnel *funnel)
{
    size_t count = rcpt_session_rows_count(funnel->ladder);
    funnel->statuses = rcpt_calloc(count + 1, sizeof(*funnel->statuses));
    for (size_t row = 0; row < count; row++) {
        const char *parent = rcpt_session_rows_text(funnel->ladder, row, "parent");
        funnel->statuses[row] = (struct funnel_status){
            .code = rcpt_session_rows_text(funnel->ladder, row, "code"),
            .name = rcpt_session_rows_text(funnel->ladder, row, "name"),
            .parent_code = parent,
            .parent = funnel_find_status(funnel, parent),
            .is_flag = rcpt_session_rows_bool(funnel->ladder, row, "is_flag"),
        };
        funnel->status_count++;
    }
}

/* Each message has one status, so messages of a status are not those of its parent. A status that
 * is no longer in the ladder has no place. */
static void take_counts(struct funnel *funnel, size_t row)
{
    size_t index =
        funnel_find_status(funnel, rcpt_session_rows_text(funnel->counts, row, "status"));
    if (index == FUNNEL_NO_STATUS)
        return;
    struct funnel_status *status = &funnel->statuses[index];
    int64_t messages = rcpt_session_rows_int(funnel->counts, row, "messages");
    status->counts[FUNNEL_MESSAGES] = messages;
    status->counts[FUNNEL_EVENTS] = rcpt_session_rows_int(funnel->counts, row, "events");
    status->counts[FUNNEL_DUPLICATES] = rcpt_session_rows_int(funnel->counts, row, "duplicates");
    status->counts[FUNNEL_CUSTOMERS] = rcpt_session_rows_int(funnel->counts, row, "customers");
    status->counts[FUNNEL_LOGICAL] = rcpt_session_rows_int(funnel->counts, row, "logical");
    status->counts[FUNNEL_CURRENT] += messages;
    if (status->parent != FUNNEL_NO_STATUS)
        funnel->statuses[status->parent].counts[FUNNEL_CURRENT] -= messages;
}

/* Rows come ordered by campaign. */
static bool next_funnel(struct funnel *funnel)
{
    size_t row = funnel->next_row, count = rcpt_session_rows_count(funnel->counts);
    if (row >= count)
        return false;
    funnel->campaign = rcpt_session_rows_text(funnel->counts, row, "campaign_id");
    funnel->org = rcpt_session_rows_text(funnel->counts, row, "org_id");
    for (size_t index = 0; index < funnel->status_count; index++)
        memset(funnel->statuses[index].counts, 0, sizeof(funnel->statuses[index].counts));
    for (; row < count; row++) {
        if (strcmp(rcpt_session_rows_text(funnel->counts, row, "campaign_id"), funnel->campaign) !=
            0)
            break;
        take_counts(funnel, row);
    }
    funnel->next_row = row;
    return true;
}

/* ---- JSON ---- */

/* Flags have no `current`. */
static void write_counts(const struct funnel *funnel, bool flags, struct rcpt_json *json)
{
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < funnel->status_count; index++) {
        const struct funnel_status *status = &funnel->statuses[index];
        if (status->is_flag != flags)
            continue;
        rcpt_json_begin_object(json);
        rcpt_json_put_int(json, "status", strtoll(status->code, NULL, 10));
        rcpt_json_put_text(json, "name", status->name);
        for (size_t measure = 0; measure < FUNNEL_MEASURE__COUNT; measure++)
            if (funnel->shows[measure] && !(flags && measure == FUNNEL_CURRENT))
                rcpt_json_put_int(json, funnel_measure_names[measure], status->counts[measure]);
        rcpt_json_end_object(json);
    }
    rcpt_json_end_array(json);
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
    write_counts(funnel, false, json);
    rcpt_json_key(json, "flags");
    write_counts(funnel, true, json);
    funnel_write_rates(funnel, json);
    expire_write_pending(json, funnel->pending);
    rcpt_json_end_object(json);
}

/* ---- table ---- */

/* Writes the digits before `at`, in groups of three, as 1 234 567: printf() would take half of the
 * command's time. Returns where they begin. */
static char *put_digits(char *at, uint64_t value)
{
    for (unsigned digits = 0; digits == 0 || value > 0; digits++, value /= 10) {
        if (digits > 0 && digits % 3 == 0)
            *--at = ' ';
        *--at = (char)('0' + value % 10);
    }
    return at;
}

void funnel_print_number(int64_t value)
{
    char text[32] = "", *at = text + sizeof(text) - 1;
    at = put_digits(at, value < 0 ? -(uint64_t)value : (uint64_t)value);
    if (value < 0)
        *--at = '-';
    report_print_padded(stdout, at, FUNNEL_NUMBER_WIDTH, true);
}

/* In tenths of a per cent, a half rounded up. The cell is empty if the whole is 0 or a counter is
 * negative. */
void funnel_print_share(int64_t part, int64_t whole)
{
    char text[48] = "", *at = text + sizeof(text) - sizeof(" %");
    if (whole > 0 && part >= 0) {
        uint64_t tenths = (uint64_t)((double)part * 1000 / (double)whole + 0.5);
        memcpy(at, " %", sizeof(" %"));
        *--at = (char)('0' + tenths % 10);
        *--at = '.';
        at = put_digits(at, tenths / 10);
    }
    report_print_padded(stdout, at, FUNNEL_SHARE_WIDTH, true);
}

/* Whether a column stands behind that of `current`. */
static bool shows_more(const struct funnel *funnel)
{
    return funnel->shows[FUNNEL_DUPLICATES] || funnel->shows[FUNNEL_CUSTOMERS] ||
           funnel->shows[FUNNEL_LOGICAL];
}

/* Indentation shows the tree; shares are of the root and of the parent. */
static void print_count(const struct funnel *funnel, const struct funnel_status *status,
                        unsigned depth)
{
    int64_t messages = status->counts[FUNNEL_MESSAGES];
    unsigned indent = 2 * depth < FUNNEL_NAME_WIDTH ? 2 * depth : FUNNEL_NAME_WIDTH;
    report_print_padded(stdout, "", indent, false);
    report_print_padded(stdout, status->name, FUNNEL_NAME_WIDTH - indent, false);
    funnel_print_number(messages);
    if (status->parent != FUNNEL_NO_STATUS) {
        funnel_print_share(messages, funnel->statuses[0].counts[FUNNEL_MESSAGES]);
        funnel_print_share(messages, funnel->statuses[status->parent].counts[FUNNEL_MESSAGES]);
    } else {
        report_print_padded(stdout, "", 2 * FUNNEL_SHARE_WIDTH, false);
    }
    funnel_print_number(status->counts[FUNNEL_EVENTS]);
    if (!status->is_flag)
        funnel_print_number(status->counts[FUNNEL_CURRENT]);
    else if (shows_more(funnel))
        report_print_padded(stdout, "", FUNNEL_NUMBER_WIDTH, false);
    for (size_t measure = FUNNEL_CURRENT + 1; measure < FUNNEL_MEASURE__COUNT; measure++)
        if (funnel->shows[measure])
            funnel_print_number(status->counts[measure]);
    putchar('\n');
}

static bool is_counted(const struct funnel_status *status)
{
    return status->counts[FUNNEL_MESSAGES] != 0 || status->counts[FUNNEL_EVENTS] != 0;
}

/* A status and below it its children, by code. A parent's code is smaller, so the depth is bounded.
 */
static void print_subtree(const struct funnel *funnel, size_t index, unsigned depth)
{
    if (is_counted(&funnel->statuses[index]) || depth == 0)
        print_count(funnel, &funnel->statuses[index], depth);
    for (size_t child = index + 1; child < funnel->status_count; child++) {
        if (funnel->statuses[child].parent == index)
            print_subtree(funnel, child, depth + 1);
    }
}

/* Trees first, from their roots; flags below, where they have any count. */
static void print_counts(const struct funnel *funnel)
{
    report_print_padded(stdout, "status", FUNNEL_NAME_WIDTH, false);
    printf("%13s%11s%11s%13s%13s", "messages", "of all", "of parent", "events", "current");
    for (size_t measure = FUNNEL_CURRENT + 1; measure < FUNNEL_MEASURE__COUNT; measure++)
        if (funnel->shows[measure])
            printf("%13s", funnel_measure_names[measure]);
    putchar('\n');
    for (size_t index = 0; index < funnel->status_count; index++) {
        const struct funnel_status *status = &funnel->statuses[index];
        if (status->is_flag ? is_counted(status) : status->parent == FUNNEL_NO_STATUS)
            print_subtree(funnel, index, 0);
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
    print_counts(funnel);
    putchar('\n');
    funnel_print_rates(funnel);
    expire_print_pending(funnel->pending);
}

/* ---- CSV ---- */

/* Rates are left out: they follow from the counts. */
static void add_csv_rows(const struct funnel *funnel, struct report *report)
{
    for (size_t index = 0; index < funnel->status_count; index++) {
        const struct funnel_status *status = &funnel->statuses[index];
        report_add(report, funnel->campaign);
        report_add(report, status->code);
        report_add(report, status->name);
        report_add(report, status->parent_code);
        report_add_int(report, status->counts[FUNNEL_MESSAGES]);
        report_add_int(report, status->counts[FUNNEL_EVENTS]);
        if (status->is_flag)
            report_add(report, NULL);
        else
            report_add_int(report, status->counts[FUNNEL_CURRENT]);
        report_add(report, funnel->org);
        for (size_t measure = FUNNEL_CURRENT + 1; measure < FUNNEL_MEASURE__COUNT; measure++)
            if (funnel->shows[measure])
                report_add_int(report, status->counts[measure]);
    }
}

/* ---- the command ---- */

/* One table over all campaigns, for a spreadsheet. */
static void print_csv(struct funnel *funnel)
{
    struct report_column columns[8 + FUNNEL_MEASURE__COUNT] = {
        {"campaign_id", REPORT_TEXT}, {"status", REPORT_NUMBER},   {"name", REPORT_TEXT},
        {"parent", REPORT_NUMBER},    {"messages", REPORT_NUMBER}, {"events", REPORT_NUMBER},
        {"current", REPORT_NUMBER},   {"org_id", REPORT_TEXT}};
    struct report report;
    size_t count = 8;
    for (size_t measure = FUNNEL_CURRENT + 1; measure < FUNNEL_MEASURE__COUNT; measure++)
        if (funnel->shows[measure])
            columns[count++] = (struct report_column){funnel_measure_names[measure], REPORT_NUMBER};
    report_init(&report, columns, count);
    while (next_funnel(funnel))
        add_csv_rows(funnel, &report);
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

/* All are read in one snapshot, so that they agree. */
static bool read_funnels(struct command_context *context, const char *campaign, const char *org,
                         struct funnel *funnel)
{
    const char *const values[] = {campaign, org};
    struct rcpt_session *session = context->session;
    struct rcpt_error *error = &context->error;
    if (!rcpt_session_begin(session, "ISOLATION LEVEL REPEATABLE READ, READ ONLY", error) ||
        !rcpt_session_execute(session, rcpt_sql("command/all_campaigns"), error))
        return false;
    funnel->counts = rcpt_session_query(session, rcpt_sql("command/funnel"), 2, values, error);
    if (funnel->counts != NULL)
        funnel->ladder =
            rcpt_session_query(session, rcpt_sql("command/funnel_ladder"), 0, NULL, error);
    if (funnel->ladder != NULL)
        funnel->kpis = funnel_query_rates(context, funnel->vendor);
    if (funnel->kpis != NULL)
        funnel->undefined =
            rcpt_session_query(session, rcpt_sql("command/kpis_undefined"), 0, NULL, error);
    bool asks =
        funnel->undefined != NULL && campaign != NULL && context->config->inbox.expiry_count > 0;
    if (asks)
        funnel->pending = expire_pending(context, campaign);
    if (funnel->undefined == NULL || (asks && funnel->pending == NULL) ||
        !rcpt_session_commit(session, error))
        return false;
    take_ladder(funnel);
    funnel_take_rates(funnel);
    return true;
}

static void free_funnels(struct funnel *funnel)
{
    rcpt_session_rows_free(funnel->pending);
    rcpt_session_rows_free(funnel->undefined);
    rcpt_session_rows_free(funnel->kpis);
    rcpt_session_rows_free(funnel->ladder);
    rcpt_session_rows_free(funnel->counts);
    free(funnel->statuses);
    free(funnel->parts);
}

/* Says on stderr why a rate is missing: the reason is the ladder, not a campaign. */
static void note_undefined(const struct rcpt_session_rows *rows)
{
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++)
        fprintf(stderr, "receiptd: no rate %s: in this ladder %s\n",
                rcpt_session_rows_text(rows, row, "kpi"),
                rcpt_session_rows_text(rows, row, "because"));
}

/* Returns exit code 66: there is nothing to show. A campaign of several organisations belongs to
 * none of them: its counts cover all of them. */
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

/* Messages are always shown, duplicates with dedup.window, groups with counters.groups. */
static void choose_measures(const struct rcpt_config *config, struct funnel *funnel)
{
    struct rcpt_kinds groups;
    rcpt_groups_read(config, &groups);
    for (size_t measure = 0; measure <= FUNNEL_CURRENT; measure++)
        funnel->shows[measure] = true;
    funnel->shows[FUNNEL_DUPLICATES] = config->dedup.window_ms > 0;
    for (size_t index = 0; index < groups.count; index++)
        funnel->shows[strcmp(groups.names[index], "logical") == 0 ? FUNNEL_LOGICAL
                                                                  : FUNNEL_CUSTOMERS] = true;
}

/* One campaign, those of one organisation, or all. */
static int show(const struct command_call *call, struct command_context *context,
                enum command_format format, struct funnel *funnel)
{
    const char *org = command_option(call, "org");
    funnel->machines = &context->config->machine;
    choose_measures(context->config, funnel);
    if (!read_funnels(context, call->argument, org, funnel))
        return command_fail(&context->error);
    if ((call->argument != NULL || org != NULL) && rcpt_session_rows_count(funnel->counts) == 0)
        return fail_empty(&context->error, call->argument, org);
    print_all(funnel, format, call->argument != NULL);
    int exit_code = command_printed(EX_OK);
    if (funnel->vendor == NULL)
        note_undefined(funnel->undefined);
    return exit_code;
}

int command_funnel(const struct command_call *call)
{
    enum command_format format;
    struct command_context context;
    struct funnel funnel = {.vendor = command_option(call, "kpis")};
    int exit_code = EX_USAGE;
    bool lists = funnel.vendor != NULL && strcmp(funnel.vendor, "list") == 0;
    if (command_option(call, "by") != NULL)
        return command_funnel_by(call);
    if (!command_format(call, &format))
        return exit_code;
    if (funnel.vendor != NULL && !lists && format == COMMAND_FORMAT_CSV)
        return command_usage(call,
                             "--format=csv has counts and no rates: it does not go with --kpis");
    if (!command_open(&context, call, true, &exit_code))
        return exit_code;
    exit_code =
        lists ? funnel_list_vendors(&context, format) : show(call, &context, format, &funnel);
    free_funnels(&funnel);
    command_close(&context);
    return exit_code;
}

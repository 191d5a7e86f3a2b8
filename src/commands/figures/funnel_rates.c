/* The rates of `receiptd funnel`: receiptd's own, or a vendor's KPIs (--kpis). Their parts are in
 * the database (sql/views/campaign_defined_kpi.sql) and are added up here for one campaign. A KPI
 * has no figure if receiptd's would differ from the vendor's; the reason takes its place. Called by
 * funnel.c. */
#include "funnel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../report.h"
#include "receiptd/postgres/sql.h"

struct funnel_part {
    const char *kpi;
    size_t status;
    enum funnel_measure measure;
    bool is_numerator, is_subtracted;
    const char *machines, *missing, *source; /* of a vendor's KPI; NULL: nothing to say */
};

/* One rate of one campaign. */
struct rate {
    const struct funnel_part *first; /* of its parts */
    int64_t numerator, denominator;
    const char *missing; /* why it has no figure; NULL: it has one */
    char doubt[160];     /* `missing` may point here */
};

struct rcpt_session_rows *funnel_query_rates(struct command_context *context, const char *vendor)
{
    const char *const values[] = {vendor};
    if (vendor == NULL)
        return rcpt_session_query(context->session, rcpt_sql("command/kpi_parts"), 0, NULL,
                                  &context->error);
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("command/kpi_vendor"), 1, values, &context->error);
    if (rows == NULL || rcpt_session_rows_count(rows) > 0)
        return rows;
    rcpt_error_fatal(&context->error, EX_USAGE, "no KPIs of \"%s\" are known", vendor);
    rcpt_error_hint(&context->error, "receiptd funnel --kpis list shows the vendors");
    rcpt_session_rows_free(rows);
    return NULL;
}

static void take_part(const struct funnel *funnel, size_t row, struct funnel_part *part)
{
    const struct rcpt_session_rows *rows = funnel->kpis;
    const char *measure = rcpt_session_rows_text(rows, row, "measure");
    part->kpi = rcpt_session_rows_text(rows, row, "kpi");
    part->status = funnel_find_status(funnel, rcpt_session_rows_text(rows, row, "status"));
    part->is_numerator = rcpt_session_rows_bool(rows, row, "is_numerator");
    while (strcmp(funnel_measure_names[part->measure], measure) != 0)
        part->measure++;
    if (funnel->vendor == NULL)
        return;
    part->is_subtracted = rcpt_session_rows_bool(rows, row, "subtracted");
    part->machines = rcpt_session_rows_text(rows, row, "machines");
    part->missing = rcpt_session_rows_text(rows, row, "missing");
    part->source = rcpt_session_rows_text(rows, row, "source");
}

void funnel_take_rates(struct funnel *funnel)
{
    funnel->part_count = rcpt_session_rows_count(funnel->kpis);
    funnel->parts = rcpt_calloc(funnel->part_count + 1, sizeof(*funnel->parts));
    for (size_t row = 0; row < funnel->part_count; row++)
        take_part(funnel, row, &funnel->parts[row]);
}

/* ---- machines ---- */

static const struct funnel_status *named(const struct funnel *funnel, const char *name)
{
    for (size_t index = 0; index < funnel->status_count; index++)
        if (strcmp(funnel->statuses[index].name, name) == 0)
            return &funnel->statuses[index];
    return NULL;
}

/* Whether OPENED or CLICKED has what this kind of machines did, as the KPI wants it. It compares
 * the present policies: counts under earlier ones cannot be told apart. */
static void doubt_kind(const struct funnel *funnel, enum rcpt_machine_kind kind, const char *flag,
                       struct rate *rate)
{
    const struct funnel_status *status = named(funnel, flag);
    const unsigned count = 1u << RCPT_MACHINE_COUNT, ignore = 1u << RCPT_MACHINE_IGNORE;
    bool with = strcmp(rate->first->machines, "with") == 0;
    int64_t messages = status != NULL ? status->counts[FUNNEL_MESSAGES] : 0;
    unsigned good = with ? count : ~count;
    if (messages == 0) /* nothing was flagged, but something may have been ignored */
        good = with ? ~ignore : ~0u;
    if (rate->missing != NULL || rcpt_machine_is_always(funnel->machines, kind, good))
        return;
    if (messages > 0)
        snprintf(rate->doubt, sizeof(rate->doubt),
                 "is %s machines: the policy for them is another one, and %" PRId64
                 " messages have %s",
                 rate->first->machines, messages, flag);
    else
        snprintf(rate->doubt, sizeof(rate->doubt), "is with machines, which a policy ignores");
    rate->missing = rate->doubt;
}

/* A bot's click implies an open, too. */
static void doubt(const struct funnel *funnel, bool has_opens, struct rate *rate)
{
    if (rate->first->machines == NULL)
        return;
    if (has_opens)
        doubt_kind(funnel, RCPT_MACHINE_OPEN, "MACHINE_OPEN", rate);
    doubt_kind(funnel, RCPT_MACHINE_CLICK, "BOT_CLICK", rate);
}

/* ---- one rate after the other ---- */

static void add(const struct funnel *funnel, const struct funnel_part *part, struct rate *rate)
{
    if (part->status == FUNNEL_NO_STATUS)
        return;
    const int64_t *counts = funnel->statuses[part->status].counts;
    int64_t count = counts[part->measure];
    /* An open that is known from its click has no receipt of its own. */
    if (part->measure == FUNNEL_EVENTS && count < counts[FUNNEL_MESSAGES])
        count = counts[FUNNEL_MESSAGES];
    *(part->is_numerator ? &rate->numerator : &rate->denominator) +=
        part->is_subtracted ? -count : count;
}

/* Adds up the parts from `part` on that belong to one rate. False: no rate is left. `part` begins
 * with 0. */
static bool next_rate(const struct funnel *funnel, size_t *part, struct rate *rate)
{
    bool has_opens = false;
    if (*part >= funnel->part_count)
        return false;
    *rate = (struct rate){.first = &funnel->parts[*part]};
    rate->missing = rate->first->missing;
    if (rate->missing == NULL && !funnel->shows[rate->first->measure])
        rate->missing = "needs distinct customers: counters.groups does not name customer";
    for (; *part < funnel->part_count; (*part)++) {
        const struct funnel_part *here = &funnel->parts[*part];
        if (strcmp(here->kpi, rate->first->kpi) != 0)
            break;
        add(funnel, here, rate);
        has_opens = has_opens || (here->status != FUNNEL_NO_STATUS &&
                                  strcmp(funnel->statuses[here->status].name, "OPENED") == 0);
    }
    doubt(funnel, has_opens, rate);
    return true;
}

/* receiptd's own rates of groups are left out unless the groups are counted. */
static bool is_shown(const struct funnel *funnel, const struct rate *rate)
{
    return funnel->vendor != NULL || funnel->shows[rate->first->measure];
}

static void put_text_or_null(struct rcpt_json *json, const char *key, const char *text)
{
    rcpt_json_key(json, key);
    if (text != NULL)
        rcpt_json_text(json, text);
    else
        rcpt_json_null(json);
}

/* A rate without a denominator has no value: null, not 0. */
static void write_fraction(const struct rate *rate, struct rcpt_json *json)
{
    rcpt_json_key(json, "value");
    if (rate->missing == NULL && rate->denominator != 0)
        rcpt_json_double(json, (double)rate->numerator / (double)rate->denominator);
    else
        rcpt_json_null(json);
    if (rate->missing != NULL)
        return;
    rcpt_json_put_int(json, "numerator", rate->numerator);
    rcpt_json_put_int(json, "denominator", rate->denominator);
}

static void write_rate(const struct funnel *funnel, const struct rate *rate, struct rcpt_json *json)
{
    rcpt_json_key(json, rate->first->kpi);
    rcpt_json_begin_object(json);
    write_fraction(rate, json);
    if (funnel->vendor != NULL) {
        put_text_or_null(json, "missing", rate->missing);
        rcpt_json_put_text(json, "source", rate->first->source);
    }
    rcpt_json_end_object(json);
}

void funnel_write_rates(const struct funnel *funnel, struct rcpt_json *json)
{
    struct rate rate;
    if (funnel->vendor != NULL)
        rcpt_json_put_text(json, "vendor", funnel->vendor);
    rcpt_json_key(json, funnel->vendor != NULL ? "vendor_kpis" : "kpis");
    rcpt_json_begin_object(json);
    for (size_t part = 0; next_rate(funnel, &part, &rate);)
        if (is_shown(funnel, &rate))
            write_rate(funnel, &rate, json);
    rcpt_json_end_object(json);
}

/* Our own rates without a denominator are left out: a dash would look like a fault. A vendor's
 * prints a dash and the reason. */
static void print_rate(const struct funnel *funnel, const struct rate *rate)
{
    if (funnel->vendor == NULL && rate->denominator == 0)
        return;
    report_print_padded(stdout, rate->first->kpi, FUNNEL_NAME_WIDTH, false);
    if (rate->missing != NULL || rate->denominator == 0) {
        report_print_padded(stdout, "-", FUNNEL_NUMBER_WIDTH, true);
        printf("   %s\n", rate->missing != NULL ? rate->missing : "nothing to divide by yet");
        return;
    }
    funnel_print_number(rate->numerator);
    printf(" / ");
    funnel_print_number(rate->denominator);
    funnel_print_share(rate->numerator, rate->denominator);
    putchar('\n');
}

void funnel_print_rates(const struct funnel *funnel)
{
    struct rate rate;
    if (funnel->vendor != NULL && funnel->part_count > 0)
        printf("KPIs of %s (%s)\n", funnel->vendor, funnel->parts[0].source);
    for (size_t part = 0; next_rate(funnel, &part, &rate);)
        if (is_shown(funnel, &rate))
            print_rate(funnel, &rate);
}

int funnel_list_vendors(struct command_context *context, enum command_format format)
{
    static const struct report_column columns[] = {
        {"vendor", REPORT_TEXT},      {"kpi", REPORT_TEXT},      {"numerator", REPORT_TEXT},
        {"denominator", REPORT_TEXT}, {"machines", REPORT_TEXT}, {"missing", REPORT_TEXT},
        {"source", REPORT_TEXT}};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("command/kpi_vendors"), 0, NULL, &context->error);
    if (rows == NULL)
        return command_fail(&context->error);
    struct report report;
    report_init(&report, columns, RCPT_COUNT_OF(columns));
    report_add_rows(&report, rows);
    report_print(&report, format, NULL);
    report_fini(&report);
    rcpt_session_rows_free(rows);
    return command_printed(EX_OK);
}

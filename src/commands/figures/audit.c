/* `receiptd audit`: recounts funnels from live and retired messages and compares them with the
 * counters. It takes some campaigns at a time, in short snapshots. --repair adds the differences,
 * and books messages that were deleted without the trigger. It works beside a running daemon: one
 * statement reads a recount and its counters. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "../command.h"
#include "../report.h"
#include "../turns.h"
#include "audit.h"
#include "audit_dimensions.h"
#include "audit_ids.h"
#include "audit_partitions.h"
#include "receiptd/base/clock.h"
#include "receiptd/base/error.h"
#include "receiptd/base/json.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"

/* One snapshot reads this many, or a single campaign with more: each pass over the messages costs,
 * but a long snapshot keeps dead rows from being removed. */
#define MOST_MESSAGES  1000000
#define MOST_CAMPAIGNS 10000

/* `receiptd maintain` recounts a campaign again after so long: within a day, also with a timer that
 * comes once an hour. */
#define PROVEN_HOURS "22"

#define DETACHING "55006" /* sql/functions/detached_messages.sql raises it */

struct audit {
    struct command_context *context;
    bool repair;
    struct report drift;      /* a row per cell that was off at the first recount */
    int64_t campaigns, cells; /* checked, compared */
    int64_t repaired;         /* cells */
    int64_t booked;           /* messages */
    int64_t remaining;        /* cells off at the end */
    int64_t older;            /* campaigns that are older than a dimension, once for each */
    int64_t missing;          /* messages that the root's counters have and the inbox has not */
    struct audit_partitions partitions;
};

static const struct report_column drift_columns[] = {
    {"campaign_id", REPORT_TEXT}, {"status", REPORT_NUMBER},  {"name", REPORT_TEXT},
    {"rows", REPORT_NUMBER},      {"counter", REPORT_NUMBER}, {"drift", REPORT_NUMBER},
};

/* Recounts one campaign. NULL on error. */
static struct rcpt_session_rows *recount(const struct audit *audit, const char *campaign)
{
    const char *const values[] = {campaign,
                                  audit->context->config->inbox.count_targeted ? "true" : "false"};
    return rcpt_session_query(audit->context->session, rcpt_sql("command/audit_campaign"), 2,
                              values, &audit->context->error);
}

/* Each row is one cell: a status or flag of the campaign's funnel. */
static int64_t count_drift(const struct rcpt_session_rows *rows)
{
    int64_t drift = 0;
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++)
        drift += rcpt_session_rows_int(rows, row, "drift") != 0;
    return drift;
}

/* Only cells that differ are reported. */
static void note_drift(struct audit *audit, const char *campaign,
                       const struct rcpt_session_rows *rows)
{
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++) {
        int64_t drift = rcpt_session_rows_int(rows, row, "drift");
        if (drift == 0)
            continue;
        if (drift > 0 && rcpt_session_rows_int(rows, row, "status") == 0)
            audit->missing += drift;
        report_add(&audit->drift, campaign);
        report_add(&audit->drift, rcpt_session_rows_text(rows, row, "status"));
        report_add(&audit->drift, rcpt_session_rows_text(rows, row, "status_name"));
        report_add(&audit->drift, rcpt_session_rows_text(rows, row, "rows"));
        report_add(&audit->drift, rcpt_session_rows_text(rows, row, "counter"));
        report_add(&audit->drift, rcpt_session_rows_text(rows, row, "drift"));
    }
}

/* Adds the difference instead of overwriting, since batches go on counting. The lock is taken in an
 * earlier statement than the recount, so a second repair sees what the first has added. */
static bool add_difference(struct audit *audit, const char *campaign)
{
    struct rcpt_session *session = audit->context->session;
    struct rcpt_error *error = &audit->context->error;
    const char *const values[] = {campaign,
                                  audit->context->config->inbox.count_targeted ? "true" : "false"};
    struct rcpt_session_rows *rows = NULL;
    if (!rcpt_session_begin(session, "", error))
        return false;
    bool good = rcpt_session_execute(session, rcpt_sql("control/synchronous"), error) &&
                turns_wait(audit->context, "command/audit_lock");
    if (good)
        rows = rcpt_session_query(session, rcpt_sql("command/audit_repair"), 2, values, error);
    good = rows != NULL && rcpt_session_commit(session, error);
    if (good) {
        audit->repaired += rcpt_session_rows_int(rows, 0, "repaired");
        audit->booked += rcpt_session_rows_int(rows, 0, "booked");
    } else {
        rcpt_session_rollback(session);
    }
    rcpt_session_rows_free(rows);
    return good;
}

/* The second recount shows whether the repair has succeeded. */
static bool repair_campaign(struct audit *audit, const char *campaign, int64_t *drift)
{
    if (!add_difference(audit, campaign))
        return false;
    struct rcpt_session_rows *rows = recount(audit, campaign);
    if (rows == NULL)
        return false;
    *drift = count_drift(rows);
    rcpt_session_rows_free(rows);
    return true;
}

/* Three steps: recount, repair if asked, recount. Drift that is left at the end decides the exit
 * code. */
static bool audit_campaign(struct audit *audit, const char *campaign)
{
    struct rcpt_session_rows *rows = recount(audit, campaign);
    if (rows == NULL)
        return false;
    int64_t drift = count_drift(rows);
    audit->campaigns += rcpt_session_rows_count(rows) > 0;
    audit->cells += (int64_t)rcpt_session_rows_count(rows);
    note_drift(audit, campaign, rows);
    rcpt_session_rows_free(rows);
    bool good = drift == 0 || !audit->repair || repair_campaign(audit, campaign, &drift);
    audit->remaining += drift;
    return good;
}

/* Most campaigns have no drift: their sums are enough. The others are recounted one by one. */
static bool take_sums(struct audit *audit, const struct rcpt_session_rows *sums)
{
    bool good = true;
    for (size_t row = 0; good && row < rcpt_session_rows_count(sums); row++) {
        if (rcpt_session_rows_int(sums, row, "drift") > 0) {
            good = audit_campaign(audit, rcpt_session_rows_text(sums, row, "campaign_id"));
            continue;
        }
        audit->campaigns++;
        audit->cells += rcpt_session_rows_int(sums, row, "cells");
    }
    return good;
}

/* The settings hold for one transaction, so it begins here. */
static struct rcpt_session_rows *read_all(struct audit *audit, const char *file, size_t count,
                                          const char *const *values)
{
    struct rcpt_session *session = audit->context->session;
    struct rcpt_error *error = &audit->context->error;
    struct rcpt_session_rows *rows = NULL;
    if (!rcpt_session_begin(session, "", error))
        return NULL;
    if (rcpt_session_execute(session, rcpt_sql("command/all_campaigns"), error))
        rows = rcpt_session_query(session, rcpt_sql(file), count, values, error);
    if (rows != NULL && rcpt_session_commit(session, error))
        return rows;
    rcpt_session_rollback(session);
    rcpt_session_rows_free(rows);
    return NULL;
}

/* Adds the findings of the audit of dimensions, groups and times. */
static void take_found(struct audit *audit, const struct audit_dimensions *found)
{
    audit->repaired += found->repaired;
    audit->remaining += found->remaining;
    audit->older += found->older;
}

/* Audits counters by dimension after the funnels of the same campaigns: where messages were
 * deleted, dimensions are compared with the funnel. */
static bool audit_by(struct audit *audit, const char *campaigns)
{
    struct audit_dimensions by = {.context = audit->context,
                                  .repair = audit->repair,
                                  .booked = audit->booked > 0,
                                  .drift = &audit->drift};
    bool good = audit_dimensions(&by, campaigns);
    take_found(audit, &by);
    return good;
}

/* Times by gateway cover all campaigns, so an audit of one campaign leaves them out. */
static bool audit_gateways(struct audit *audit)
{
    struct audit_dimensions by = {.context = audit->context,
                                  .repair = audit->repair,
                                  .booked = audit->booked > 0,
                                  .drift = &audit->drift};
    bool good = audit_gateway_times(&by);
    take_found(audit, &by);
    return good;
}

/* One statement audits many campaigns: a statement for each would take longer than the recount.
 * Moves `row` to the first campaign that is left. */
static bool audit_some(struct audit *audit, const struct rcpt_session_rows *campaigns, size_t *row)
{
    struct rcpt_array_text names;
    size_t end = *row + MOST_CAMPAIGNS;
    rcpt_array_text_init(&names);
    for (int64_t messages = 0;
         *row < end && *row < rcpt_session_rows_count(campaigns) && messages < MOST_MESSAGES;
         (*row)++) {
        const char *name = rcpt_session_rows_text(campaigns, *row, "campaign_id");
        messages += rcpt_session_rows_int(campaigns, *row, "messages");
        rcpt_array_text_add(&names, name, strlen(name));
    }
    const char *const values[] = {rcpt_array_text_finish(&names),
                                  audit->context->config->inbox.count_targeted ? "true" : "false"};
    struct rcpt_session_rows *sums = read_all(audit, "command/audit_sums", 2, values);
    bool good = sums != NULL && take_sums(audit, sums) && audit_by(audit, values[0]);
    rcpt_array_text_fini(&names);
    rcpt_session_rows_free(sums);
    return good;
}

/* Campaigns come from the messages and from the counters: either may be missing. */
static bool audit_all(struct audit *audit)
{
    const char *const all = "0";
    struct rcpt_session_rows *rows = read_all(audit, "command/audit_campaigns", 1, &all);
    bool good = rows != NULL;
    for (size_t row = 0; good && row < rcpt_session_rows_count(rows);)
        good = audit_some(audit, rows, &row);
    rcpt_session_rows_free(rows);
    return good && audit_gateways(audit);
}

/* A campaign without rows and without counters does not exist: exit code 66. */
static bool audit_one(struct audit *audit, const char *campaign)
{
    if (!audit_campaign(audit, campaign))
        return false;
    if (audit->campaigns > 0) {
        struct rcpt_array_text names;
        rcpt_array_text_init(&names);
        rcpt_array_text_add(&names, campaign, strlen(campaign));
        bool good = audit_by(audit, rcpt_array_text_finish(&names));
        rcpt_array_text_fini(&names);
        return good;
    }
    rcpt_error_fatal(&audit->context->error, EX_NOINPUT, "no campaign \"%s\"", campaign);
    rcpt_error_hint(&audit->context->error, "receiptd audit without --campaign checks all");
    return false;
}

/* ---- maintain ---- */

/* Campaigns first and up to last of `campaigns` were recounted, in so many milliseconds. */
static bool note_proof(struct audit *audit, const struct rcpt_session_rows *campaigns, size_t first,
                       size_t last, int64_t took_ms)
{
    struct rcpt_array_text names, off;
    char took[24];
    rcpt_array_text_init(&names);
    rcpt_array_text_init(&off);
    for (size_t row = first; row < last; row++) {
        const char *name = rcpt_session_rows_text(campaigns, row, "campaign_id");
        rcpt_array_text_add(&names, name, strlen(name));
    }
    for (size_t row = 0; row < report_row_count(&audit->drift); row++) {
        const char *name = report_cell(&audit->drift, row, 0);
        rcpt_array_text_add(&off, name, strlen(name));
    }
    snprintf(took, sizeof(took), "%" PRId64, took_ms);
    const char *const values[] = {rcpt_array_text_finish(&names), rcpt_array_text_finish(&off),
                                  took};
    struct rcpt_session_rows *rows = rcpt_session_query(
        audit->context->session, rcpt_sql("retire/prove"), 3, values, &audit->context->error);
    rcpt_array_text_fini(&names);
    rcpt_array_text_fini(&off);
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* Recounts some of the campaigns, from *row on. */
static bool prove_some(struct audit *audit, const struct rcpt_session_rows *campaigns, size_t *row,
                       int64_t *left_ms)
{
    size_t first = *row;
    int64_t begun_ns = rcpt_monotonic_ns();
    report_init(&audit->drift, drift_columns, RCPT_COUNT_OF(drift_columns));
    bool good = audit_some(audit, campaigns, row);
    int64_t took_ms = (rcpt_monotonic_ns() - begun_ns) / 1000000 + 1;
    good = good && note_proof(audit, campaigns, first, *row, took_ms);
    if (good && report_row_count(&audit->drift) > 0) {
        printf("counters: cells that differ from their messages; receiptd audit --repair mends "
               "them\n");
        report_print_table(&audit->drift, stdout);
    }
    report_fini(&audit->drift);
    *left_ms -= took_ms;
    return good;
}

/* Messages of a partition that is just leaving cannot be counted; partitions_maintain() has warned
 * of it. The next run recounts them. */
static bool is_leaving(struct command_context *context)
{
    if (strcmp(context->error.code, DETACHING) != 0)
        return false;
    context->error = (struct rcpt_error){0};
    puts("counters: not recounted while a partition is being detached");
    return true;
}

/* A day is long enough for a hundredth of the clock to recount 200 million messages. */
bool audit_maintain(struct command_context *context)
{
    struct audit audit = {.context = context};
    const char *const hours = PROVEN_HOURS;
    size_t row = 0;
    struct rcpt_session_rows *budget = rcpt_session_query(
        context->session, rcpt_sql("retire/proof_budget"), 0, NULL, &context->error);
    if (budget == NULL)
        return false;
    int64_t left_ms = rcpt_session_rows_int(budget, 0, "budget_ms");
    rcpt_session_rows_free(budget);
    if (left_ms <= 0)
        return true;
    struct rcpt_session_rows *due = read_all(&audit, "command/audit_campaigns", 1, &hours);
    bool good = due != NULL;
    while (good && left_ms > 0 && row < rcpt_session_rows_count(due))
        good = prove_some(&audit, due, &row, &left_ms);
    if (good && row < rcpt_session_rows_count(due))
        printf("counters: %zu of %zu campaigns recounted, the others wait for their part of the "
               "clock\n",
               row, rcpt_session_rows_count(due));
    rcpt_session_rows_free(due);
    return good || is_leaving(context);
}

/* ---- printing ---- */

/* CSV has its summary on stderr, so that stdout is only a table. */
static void print_summary(const struct audit *audit, FILE *out)
{
    fprintf(out, "%" PRId64 " campaigns checked, %" PRId64 " cells compared, %zu cells drift",
            audit->campaigns, audit->cells, report_row_count(&audit->drift));
    if (audit->repair)
        fprintf(out, ", %" PRId64 " repaired, %" PRId64 " remain", audit->repaired,
                audit->remaining);
    fputc('\n', out);
    if (audit->booked > 0)
        fprintf(out,
                "%" PRId64 " messages were deleted without the trigger that books them: they are "
                "booked as retired now, and the counters stay\n",
                audit->booked);
}

/* The note goes to stderr, since it is no drift and no row of the table. */
static void note_older(const struct audit *audit)
{
    if (audit->older > 0)
        fprintf(stderr,
                "receiptd: %" PRId64 " campaigns have messages from before a column of counters.by "
                "was counted\nHINT: receiptd audit --repair counts "
                "them\n",
                audit->older);
}

/* Clicks by link and costs come from receipts alone. */
static void note_uncompared(const struct audit *audit)
{
    const struct rcpt_config *config = audit->context->config;
    if (config->counters.links || config->counters.cost)
        fprintf(stderr, "receiptd: not compared: %s%s%s: no row of the inbox says them\n",
                config->counters.links ? "counters.links" : "",
                config->counters.links && config->counters.cost ? ", " : "",
                config->counters.cost ? "counters.cost" : "");
}

/* Keys are part of the interface: tools and tests read them. */
static void print_json(const struct audit *audit)
{
    struct rcpt_json json;
    rcpt_json_init(&json, stdout);
    rcpt_json_begin_object(&json);
    rcpt_json_put_int(&json, "campaigns", audit->campaigns);
    rcpt_json_put_int(&json, "cells", audit->cells);
    rcpt_json_put_int(&json, "drift_cells", (int64_t)report_row_count(&audit->drift));
    rcpt_json_put_int(&json, "repaired_cells", audit->repaired);
    rcpt_json_put_int(&json, "booked_messages", audit->booked);
    rcpt_json_put_int(&json, "remaining_cells", audit->remaining);
    rcpt_json_key(&json, "drift");
    report_write_json(&audit->drift, &json);
    rcpt_json_end_object(&json);
    putchar('\n');
}

/* A person reads both table and summary, so they go to one stream. */
static void print(const struct audit *audit, enum command_format format)
{
    if (format == COMMAND_FORMAT_JSON) {
        print_json(audit);
    } else if (format == COMMAND_FORMAT_CSV) {
        report_print_csv(&audit->drift, stdout);
        print_summary(audit, stderr);
    } else {
        report_print_table(&audit->drift, stdout);
        print_summary(audit, stdout);
    }
}

/* Exit code 1 is an answer, as it is for drift. */
static int search_ids(const struct command_call *call)
{
    enum command_format format;
    struct command_context context;
    int64_t twins = 0;
    int exit_code = EX_USAGE;
    if (command_option(call, "repair") != NULL || command_option(call, "campaign") != NULL)
        return command_usage(call, "--ids goes without --repair and --campaign");
    if (!command_format(call, &format) || !command_open(&context, call, true, &exit_code))
        return exit_code;
    if (audit_ids(&context, format, &twins))
        exit_code = command_printed(twins > 0 ? COMMAND_EXIT_NO : EX_OK);
    else
        exit_code = command_fail(&context.error);
    command_close(&context);
    return exit_code;
}

/* Partitions come first: the audit counts their messages where they are, or says why it cannot. */
static bool audit_it(struct audit *audit, const char *campaign)
{
    if (!audit_partitions_read(&audit->partitions, audit->context, audit->repair) ||
        !(campaign != NULL ? audit_one(audit, campaign) : audit_all(audit)))
        return false;
    return !audit->repair || campaign != NULL || audit->remaining > 0 ||
           audit_partitions_settle(&audit->partitions);
}

/* The session is read-only unless --repair is given, so an audit changes nothing by mistake. */
int command_audit(const struct command_call *call)
{
    enum command_format format;
    struct command_context context;
    struct audit audit = {.context = &context, .repair = command_option(call, "repair") != NULL};
    const char *campaign = command_option(call, "campaign");
    int exit_code = EX_USAGE;
    if (command_option(call, "ids") != NULL)
        return search_ids(call);
    if (!command_format(call, &format) || !command_open(&context, call, !audit.repair, &exit_code))
        return exit_code;
    report_init(&audit.drift, drift_columns, RCPT_COUNT_OF(drift_columns));
    if (audit_it(&audit, campaign)) {
        print(&audit, format);
        fflush(stdout);
        audit_partitions_print(&audit.partitions, audit.missing, report_row_count(&audit.drift) > 0,
                               audit.repair);
        note_older(&audit);
        note_uncompared(&audit);
        exit_code = command_printed(audit.remaining > 0 ? COMMAND_EXIT_NO : EX_OK);
    } else {
        exit_code = command_fail(&context.error);
    }
    report_fini(&audit.drift);
    audit_partitions_free(&audit.partitions);
    command_close(&context);
    return exit_code;
}

/* `receiptd audit`, dimensions (counters.by), groups (counters.groups) and histograms of times
 * (counters.times): recounts them from the messages and compares. Called by audit.c for each set of
 * campaigns, after their funnels. */
#include "audit_dimensions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../turns.h"
#include "receiptd/config/rule_columns.h"
#include "receiptd/postgres/sql.h"

/* The statements of a recount. */
struct recount_files {
    const char *cells, *list, *repair, *lock;
};
static const struct recount_files of_dimensions = {
    "command/audit_dimension/10_cells", "command/audit_dimension/90_list",
    "command/audit_dimension/90_repair", "command/audit_dimension_lock"};
static const struct recount_files of_groups = {
    "command/audit_group/10_cells", "command/audit_group/90_list", "command/audit_group/90_repair",
    "command/groups_lock"};
static const struct recount_files of_times = {
    "command/audit_times", "command/audit_dimension/90_list", "command/audit_times_repair",
    "command/audit_dimension_lock"};

/* One dimension, kind of groups or histogram of times, of some campaigns. */
struct recount {
    struct audit_dimensions *audit;
    const struct recount_files *files;
    const char *dimension;
    struct rcpt_pg_binding bindings[2]; /* the column, and the kind of its counts */
    const char *values[2];              /* the campaigns, and whether TARGETED is counted; of times
                                           whether messages were booked */
};

/* The caller frees the text; NULL: the error is in the context. */
static char *compose(const struct recount *recount, const char *end)
{
    char *text = NULL, *bound;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    fputs(rcpt_sql(recount->files->cells), out);
    fputs(rcpt_sql(end), out);
    RCPT_ASSERT(fclose(out) == 0);
    bound = rcpt_pg_bind(text, recount->bindings, 2, &recount->audit->context->error);
    free(text);
    return bound;
}

static struct rcpt_session_rows *ask(const struct recount *recount, const char *end)
{
    struct command_context *context = recount->audit->context;
    struct rcpt_session_rows *rows = NULL;
    char *sql = compose(recount, end);
    if (sql != NULL)
        rows = rcpt_session_query(context->session, sql, 2, recount->values, &context->error);
    free(sql);
    return rows;
}

/* The settings need a transaction. A repair takes its lock in an earlier statement than its
 * snapshot. NULL on error. */
static struct rcpt_session_rows *run(const struct recount *recount, const char *end,
                                     const char *before)
{
    struct rcpt_session *session = recount->audit->context->session;
    struct rcpt_error *error = &recount->audit->context->error;
    struct rcpt_session_rows *rows = NULL;
    if (!rcpt_session_begin(session, "", error))
        return NULL;
    if (rcpt_session_execute(session, rcpt_sql("command/all_campaigns"), error) &&
        (before == NULL || (rcpt_session_execute(session, rcpt_sql("control/synchronous"), error) &&
                            turns_wait(recount->audit->context, before))))
        rows = ask(recount, end);
    if (rows != NULL && rcpt_session_commit(session, error))
        return rows;
    rcpt_session_rollback(session);
    rcpt_session_rows_free(rows);
    return NULL;
}

/* A campaign that is older than its dimension has not drifted: its first messages were never
 * counted by it. */
static int64_t count_drift(const struct rcpt_session_rows *rows, int64_t *older)
{
    int64_t drift = 0;
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++)
        *(rcpt_session_rows_bool(rows, row, "older") ? older : &drift) += 1;
    return drift;
}

/* "SENT, variant a"; of a campaign with deleted messages, and of groups, "SENT, all by variant". */
static void note_drift(const struct recount *recount, const struct rcpt_session_rows *rows)
{
    struct report *report = recount->audit->drift;
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++) {
        const char *key = rcpt_session_rows_text(rows, row, "key");
        char name[256];
        if (rcpt_session_rows_bool(rows, row, "older"))
            continue;
        snprintf(name, sizeof(name), key != NULL ? "%s, %s %s" : "%s, all by %s",
                 rcpt_session_rows_text(rows, row, "status_name"), recount->dimension,
                 key != NULL && key[0] == '\0' ? "(none)" : key);
        report_add(report, rcpt_session_rows_text(rows, row, "campaign_id"));
        report_add(report, rcpt_session_rows_text(rows, row, "status"));
        report_add(report, name);
        report_add(report, rcpt_session_rows_text(rows, row, "rows"));
        report_add(report, rcpt_session_rows_text(rows, row, "counter"));
        report_add(report, rcpt_session_rows_text(rows, row, "drift"));
    }
}

/* The second recount shows whether the repair has succeeded. */
static bool repair(const struct recount *recount, int64_t *drift, int64_t *older)
{
    struct rcpt_session_rows *rows = run(recount, recount->files->repair, recount->files->lock);
    if (rows == NULL)
        return false;
    recount->audit->repaired += rcpt_session_rows_int(rows, 0, "repaired");
    rcpt_session_rows_free(rows);
    rows = run(recount, recount->files->list, NULL);
    if (rows == NULL)
        return false;
    *older = 0;
    *drift = count_drift(rows, older);
    rcpt_session_rows_free(rows);
    return true;
}

static bool audit_dimension(const struct recount *recount)
{
    struct audit_dimensions *audit = recount->audit;
    int64_t older = 0, drift;
    struct rcpt_session_rows *rows = run(recount, recount->files->list, NULL);
    if (rows == NULL)
        return false;
    drift = count_drift(rows, &older);
    note_drift(recount, rows);
    rcpt_session_rows_free(rows);
    bool good = drift + older == 0 || !audit->repair || repair(recount, &drift, &older);
    audit->remaining += drift;
    audit->older += older;
    return good;
}

static bool audit_groups(struct audit_dimensions *audit, const char *campaigns)
{
    struct rcpt_kinds groups;
    const struct rcpt_config *config = audit->context->config;
    bool good = true;
    rcpt_groups_read(config, &groups);
    for (size_t index = 0; good && index < groups.count; index++) {
        const struct recount recount = {
            .audit = audit,
            .files = &of_groups,
            .dimension = groups.names[index],
            .bindings = {{"column", groups.columns[index]}, {"kind", groups.names[index]}},
            .values = {campaigns, config->inbox.count_targeted ? "true" : "false"}};
        good = audit_dimension(&recount);
    }
    return good;
}

static bool audit_times(struct audit_dimensions *audit, const char *const kinds[2],
                        const char *campaigns)
{
    bool good = true;
    for (size_t index = 0; index < 2 && good && audit->context->config->counters.times; index++) {
        const struct recount recount = {.audit = audit,
                                        .files = &of_times,
                                        .dimension = kinds[index],
                                        .bindings = {{"kind", kinds[index]}, {"kind", NULL}},
                                        .values = {campaigns, audit->booked ? "true" : "false"}};
        good = audit_dimension(&recount);
    }
    return good;
}

bool audit_gateway_times(struct audit_dimensions *audit)
{
    static const char *const kinds[] = {"gateway_time_to_deliver", "gateway_time_to_open"};
    return audit_times(audit, kinds, "{}");
}

bool audit_dimensions(struct audit_dimensions *audit, const char *campaigns)
{
    struct rcpt_kinds dimensions;
    const struct rcpt_config *config = audit->context->config;
    bool good = true;
    rcpt_dimensions_read(config, &dimensions);
    for (size_t index = 0; good && index < dimensions.count; index++) {
        char kind[32];
        snprintf(kind, sizeof(kind), "by_%s", dimensions.names[index]);
        const struct recount recount = {
            .audit = audit,
            .files = &of_dimensions,
            .dimension = dimensions.names[index],
            .bindings = {{"column", dimensions.columns[index]}, {"kind", kind}},
            .values = {campaigns, config->inbox.count_targeted ? "true" : "false"}};
        good = audit_dimension(&recount);
    }
    static const char *const kinds[] = {"time_to_deliver", "time_to_open"};
    return good && audit_groups(audit, campaigns) && audit_times(audit, kinds, campaigns);
}

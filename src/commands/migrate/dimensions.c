/* migrate, dimensions (counters.by), groups (counters.groups), suppression and ranges: our own
 * inbox gets the columns by which messages are counted or found, and the platform's role the right
 * to write them. A mapped inbox has them already. Called by plan.c and roles.c. */
#include <string.h>

#include "migrate.h"
#include "receiptd/base/error.h"
#include "receiptd/config/rule_columns.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"

/* The columns that the platform gives beside those of the inbox. */
struct counted {
    const char *columns[RCPT_DIMENSIONS + RCPT_GROUPS + 1 + RCPT_RANGE_BINDINGS];
    size_t count;
};

static struct counted counted_columns(const struct rcpt_config *config)
{
    struct counted counted = {.count = 0};
    struct rcpt_kinds dimensions;
    struct rcpt_kinds groups;
    rcpt_dimensions_read(config, &dimensions);
    rcpt_groups_read(config, &groups);
    for (size_t index = 0; index < dimensions.count; index++)
        counted.columns[counted.count++] = dimensions.columns[index];
    for (size_t index = 0; index < groups.count; index++)
        counted.columns[counted.count++] = groups.columns[index];
    if (config->suppression.subject != NULL)
        counted.columns[counted.count++] = config->suppression.subject;
    return counted;
}

/* NULL: the query failed. */
static struct rcpt_session_rows *read_missing(struct migrate_plan *plan,
                                              const struct counted *counted)
{
    struct rcpt_array_text columns;
    rcpt_array_text_init(&columns);
    for (size_t index = 0; index < counted->count; index++)
        rcpt_array_text_add(&columns, counted->columns[index], strlen(counted->columns[index]));
    const char *const values[] = {plan->context->config->postgres.schema,
                                  rcpt_array_text_finish(&columns)};
    struct rcpt_session_rows *rows =
        rcpt_session_query(plan->context->session, rcpt_sql("migrate/inbox_dimensions"), 2, values,
                           &plan->context->error);
    rcpt_array_text_fini(&columns);
    return rows;
}

/* NULL: the query failed. Columns in the order of the index. */
static struct rcpt_session_rows *read_ranges(struct migrate_plan *plan,
                                             const struct rcpt_ranges *ranges)
{
    const char *const names[] = {ranges->recipient, ranges->account, ranges->sent, "message_id"};
    struct rcpt_array_text columns;
    rcpt_array_text_init(&columns);
    for (size_t index = 0; index < RCPT_COUNT_OF(names); index++)
        rcpt_array_text_add(&columns, names[index], strlen(names[index]));
    const char *const values[] = {plan->context->config->postgres.schema,
                                  rcpt_array_text_finish(&columns)};
    struct rcpt_session_rows *rows =
        rcpt_session_query(plan->context->session, rcpt_sql("migrate/ranges_missing"), 2, values,
                           &plan->context->error);
    rcpt_array_text_fini(&columns);
    return rows;
}

/* One step adds columns and index: without the index, no connection of a lane is set up. */
static bool plan_ranges(struct migrate_plan *plan)
{
    struct rcpt_ranges ranges;
    rcpt_ranges_read(plan->context->config, &ranges);
    if (!ranges.on)
        return true;
    struct rcpt_session_rows *rows = read_ranges(plan, &ranges);
    bool good = rows != NULL;
    if (good && rcpt_session_rows_bool(rows, 0, "missing"))
        good = migrate_add_bound(
            plan, "migrate/ranges", ranges.bindings, ranges.binding_count,
            "add what ranges need to message_inbox: columns %s, %s and %s, and an index",
            ranges.recipient, ranges.account, ranges.sent);
    rcpt_session_rows_free(rows);
    return good;
}

bool migrate_dimensions_plan(struct migrate_plan *plan)
{
    const struct counted counted = counted_columns(plan->context->config);
    if (counted.count == 0)
        return plan_ranges(plan);
    struct rcpt_session_rows *rows = read_missing(plan, &counted);
    bool good = rows != NULL;
    for (size_t row = 0; good && row < rcpt_session_rows_count(rows); row++) {
        const char *column = rcpt_session_rows_text(rows, row, "name");
        const struct rcpt_pg_binding binding = {"column", column};
        good = migrate_add_bound(plan, "migrate/inbox_dimension", &binding, 1,
                                 "add column %s to message_inbox, by which messages are counted",
                                 column);
    }
    rcpt_session_rows_free(rows);
    return good && plan_ranges(plan);
}

/* created_at is left out: PostgreSQL fills it. */
static void add_ranges(const struct rcpt_config *config, struct counted *counted)
{
    struct rcpt_ranges ranges;
    rcpt_ranges_read(config, &ranges);
    if (!ranges.on)
        return;
    counted->columns[counted->count++] = ranges.recipient;
    counted->columns[counted->count++] = ranges.account;
    if (strcmp(ranges.sent, "created_at") != 0)
        counted->columns[counted->count++] = ranges.sent;
}

bool migrate_dimensions_grant(struct migrate_plan *plan, const char *platform_role)
{
    struct counted counted = counted_columns(plan->context->config);
    add_ranges(plan->context->config, &counted);
    bool good = true, own = plan->context->config->inbox.table == NULL;
    for (size_t index = 0; good && own && index < counted.count; index++) {
        const struct rcpt_pg_binding bindings[] = {{"column", counted.columns[index]},
                                                   {"platform_role", platform_role}};
        good = migrate_add_bound(plan, "migrate/platform_role_dimension", bindings, 2,
                                 "let role %s write column %s of message_inbox", platform_role,
                                 counted.columns[index]);
    }
    return good;
}

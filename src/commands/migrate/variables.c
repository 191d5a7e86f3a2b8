/* migrate, variables of the SQL files for the inbox: its place, its columns and what is counted by
 * them. Called by the parts of the plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../inbox/place.h"
#include "migrate.h"
#include "receiptd/base/error.h"
#include "receiptd/config/rule_columns.h"
#include "receiptd/postgres/array_text.h"

/* counters.by as variables; with other dimensions the trigger counts otherwise, so they belong to
 * the mapping. */
static void bind_dimensions(struct migrate_plan *plan, char *mapping, size_t size)
{
    struct rcpt_kinds dimensions;
    struct rcpt_array_text columns;
    rcpt_array_text_init(&columns);
    rcpt_dimensions_read(plan->context->config, &dimensions);
    for (size_t index = 0; index < dimensions.count; index++) {
        const char *column = dimensions.columns[index];
        size_t used = strlen(mapping);
        rcpt_array_text_add(&columns, column, strlen(column));
        snprintf(mapping + used, size - used, ", by %s=%s", dimensions.names[index], column);
    }
    migrate_bind(plan, "dimension_kinds", dimensions.sql);
    migrate_bind(plan, "dimension_columns", rcpt_array_text_finish(&columns));
    rcpt_array_text_fini(&columns);
}

/* Binds counters.groups in the same way. */
static void bind_groups(struct migrate_plan *plan, char *mapping, size_t size)
{
    struct rcpt_kinds groups;
    struct rcpt_array_text columns;
    rcpt_array_text_init(&columns);
    rcpt_groups_read(plan->context->config, &groups);
    for (size_t index = 0; index < groups.count; index++) {
        const char *column = groups.columns[index];
        size_t used = strlen(mapping);
        rcpt_array_text_add(&columns, column, strlen(column));
        snprintf(mapping + used, size - used, ", group %s=%s", groups.names[index], column);
    }
    migrate_bind(plan, "group_kinds", groups.sql);
    migrate_bind(plan, "group_columns", rcpt_array_text_finish(&columns));
    rcpt_array_text_fini(&columns);
}

/* Lists of columns are pieces of SQL. */
static void bind_columns(struct migrate_plan *plan)
{
    const struct rcpt_config *config = plan->context->config;
    char *const values[] = {inbox_columns_json(config), inbox_columns_definitions(),
                            inbox_columns_filled_by(config, RCPT_INBOX_PLATFORM),
                            inbox_columns_filled_by(config, RCPT_INBOX_RECEIPTD)};
    static const char *const names[] = {"inbox_columns", "=inbox_definitions", "=platform_columns",
                                        "=receiptd_columns"};
    for (size_t index = 0; index < RCPT_COUNT_OF(names); index++) {
        migrate_bind(plan, names[index], values[index]);
        free(values[index]);
    }
}

/* Binds the inbox, and the whole mapping as one text. The text is stored as a comment: if it
 * differs later, the mapping has changed. */
void migrate_inbox_bind(struct migrate_plan *plan)
{
    static const char *const ours[] = {
#define COLUMN(column, ...) #column,
        RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
    };
    struct inbox_place place;
    char mapping[2048], fillfactor[16];
    inbox_place_of(plan->context->config, &place);
    snprintf(fillfactor, sizeof(fillfactor), "%u", plan->context->config->inbox.fillfactor);
    migrate_bind(plan, "inbox_schema", place.schema);
    migrate_bind(plan, "inbox_table", place.table);
    migrate_bind(plan, "fillfactor", fillfactor);
    size_t used = (size_t)snprintf(mapping, sizeof(mapping), "receiptd inbox: %s.%s", place.schema,
                                   place.table);
    for (size_t index = 0; index < INBOX_COLUMNS; index++) {
        migrate_bind(plan, ours[index], place.columns[index]);
        used += (size_t)snprintf(mapping + used, sizeof(mapping) - used, ", %s=%s", ours[index],
                                 place.columns[index]);
        RCPT_ASSERT(used < sizeof(mapping));
    }
    migrate_bind(plan, "created_at", place.created_at);
    if (place.mapped && *place.created_at != '\0')
        snprintf(mapping + used, sizeof(mapping) - used, ", created_at=%s", place.created_at);
    bind_columns(plan);
    bind_dimensions(plan, mapping, sizeof(mapping));
    bind_groups(plan, mapping, sizeof(mapping));
    migrate_bind(plan, "mapping", mapping);
}

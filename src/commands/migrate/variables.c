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

/* Binds the kinds of counters.by or counters.groups, and their columns. The trigger counts by them,
 * so they belong to the mapping. */
static void bind_kinds(struct migrate_plan *plan, const struct rcpt_kinds *kinds,
                       const char *const names[2], const char *word, char *mapping, size_t size)
{
    struct rcpt_array_text columns;
    rcpt_array_text_init(&columns);
    for (size_t index = 0; index < kinds->count; index++) {
        const char *column = kinds->columns[index];
        size_t used = strlen(mapping);
        rcpt_array_text_add(&columns, column, strlen(column));
        snprintf(mapping + used, size - used, ", %s %s=%s", word, kinds->names[index], column);
    }
    migrate_bind(plan, names[0], kinds->sql);
    migrate_bind(plan, names[1], rcpt_array_text_finish(&columns));
    rcpt_array_text_fini(&columns);
}

static void bind_rules(struct migrate_plan *plan, char *mapping, size_t size)
{
    static const char *const by[] = {"dimension_kinds", "dimension_columns"};
    static const char *const of[] = {"group_kinds", "group_columns"};
    struct rcpt_kinds dimensions, groups;
    rcpt_dimensions_read(plan->context->config, &dimensions);
    bind_kinds(plan, &dimensions, by, "by", mapping, size);
    rcpt_groups_read(plan->context->config, &groups);
    bind_kinds(plan, &groups, of, "group", mapping, size);
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
    bind_rules(plan, mapping, sizeof(mapping));
    migrate_bind(plan, "mapping", mapping);
}

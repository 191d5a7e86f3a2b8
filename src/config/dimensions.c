/* counters.by: which columns of the inbox are dimensions, and the variables by which statements
 * name them. Called by receipts/rules.c and by commands. */
#include "receiptd/base/error.h"
#include "receiptd/config/rule_columns.h"

#include <stdio.h>
#include <string.h>

static const char *const names[RCPT_DIMENSIONS] = {"variant", "channel", "gateway"};

/* NULL: not set. Own: the name is ours. */
static const char *column_of(const struct rcpt_config *config, size_t dimension)
{
    const char *const theirs[RCPT_DIMENSIONS] = {config->inbox.variant, config->inbox.channel,
                                                 config->inbox.gateway};
    return config->inbox.table != NULL ? theirs[dimension] : names[dimension];
}

/* RCPT_DIMENSIONS: there is none of that name. */
static size_t find(const char *name)
{
    size_t index = 0;
    while (index < RCPT_DIMENSIONS && strcmp(names[index], name) != 0)
        index++;
    return index;
}

/* Where there are fewer dimensions than variables, the last column stands in the others, too. */
static void bind_columns(struct rcpt_dimensions *dimensions)
{
    static const char *const variables[RCPT_DIMENSIONS] = {"dimension_1", "dimension_2",
                                                           "dimension_3"};
    size_t last = dimensions->count - 1;
    for (size_t index = 0; index < RCPT_DIMENSIONS; index++)
        dimensions->bindings[index] = (struct rcpt_pg_binding){
            variables[index], dimensions->columns[index < last ? index : last]};
    dimensions->bindings[RCPT_DIMENSIONS] =
        (struct rcpt_pg_binding){"dimension_kinds", dimensions->kinds};
    dimensions->binding_count = RCPT_DIMENSION_BINDINGS;
}

void rcpt_dimensions_read(const struct rcpt_config *config, struct rcpt_dimensions *dimensions)
{
    size_t used = 0;
    *dimensions = (struct rcpt_dimensions){.kinds = "{}"};
    for (size_t index = 0; index < config->counters.by_count; index++) {
        size_t found = find(config->counters.by[index]);
        RCPT_ASSERT(found < RCPT_DIMENSIONS && dimensions->count < RCPT_DIMENSIONS);
        dimensions->names[dimensions->count] = names[found];
        dimensions->columns[dimensions->count++] = column_of(config, found);
        /* The next one takes the place of the bracket. */
        used += (size_t)snprintf(dimensions->kinds + used, sizeof(dimensions->kinds) - used,
                                 "%cby_%s}", index > 0 ? ',' : '{', names[found]) -
                1;
    }
    if (dimensions->count > 0)
        bind_columns(dimensions);
}

/* ---- what may be wrong ---- */

bool rcpt_config_is_inbox_column(const char *column)
{
    static const char *const ours[] = {
#define COLUMN(column, ...) #column,
        RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
            "created_at"};
    for (size_t index = 0; index < RCPT_COUNT_OF(ours); index++)
        if (strcmp(ours[index], column) == 0)
            return true;
    return false;
}

const char *rcpt_config_dimensions_problem(const struct rcpt_config *config)
{
    bool seen[RCPT_DIMENSIONS] = {false};
    for (size_t index = 0; index < config->counters.by_count; index++) {
        size_t found = find(config->counters.by[index]);
        if (found == RCPT_DIMENSIONS)
            return "counters.by: each entry is one of variant, channel, gateway";
        if (seen[found])
            return "counters.by names a column twice";
        seen[found] = true;
        const char *column = column_of(config, found);
        if (column == NULL)
            return "counters.by needs to know the column of inbox.table: set "
                   "inbox.columns.variant, inbox.columns.channel or inbox.columns.gateway";
        if (config->inbox.table != NULL && rcpt_config_is_inbox_column(column))
            return "counters.by: inbox.columns names a column that is called like one of "
                   "receiptd's, which message_inbox shows in its place: choose another column";
    }
    return NULL;
}

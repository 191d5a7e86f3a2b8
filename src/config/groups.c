/* counters.groups: which columns of the inbox say what messages belong together, and the variables
 * by which statements name them. Called by receipts/rules.c and by commands. */
#include "receiptd/config/rule_columns.h"

#include <stdio.h>
#include <string.h>

static const char *const names[RCPT_GROUPS] = {"customer", "logical"};
static const char *const own_columns[RCPT_GROUPS] = {"customer_id", "logical_id"};

/* NULL: not set. Own: the name is ours, unless erasures know the customer by another. */
static const char *column_of(const struct rcpt_config *config, size_t group)
{
    const char *const theirs[RCPT_GROUPS] = {config->inbox.customer_id, config->inbox.logical_id};
    bool ours = config->inbox.table == NULL && theirs[group] == NULL;
    return ours ? own_columns[group] : theirs[group];
}

/* RCPT_GROUPS: there is none of that name. */
static size_t find(const char *name)
{
    size_t index = 0;
    while (index < RCPT_GROUPS && strcmp(names[index], name) != 0)
        index++;
    return index;
}

/* Where there is one group, its column stands in both variables. */
static void bind_columns(struct rcpt_groups *groups)
{
    size_t last = groups->count - 1;
    groups->bindings[0] = (struct rcpt_pg_binding){"group_1", groups->columns[0]};
    groups->bindings[1] = (struct rcpt_pg_binding){"group_2", groups->columns[last]};
    groups->bindings[2] = (struct rcpt_pg_binding){"group_kinds", groups->kinds};
    groups->binding_count = RCPT_GROUP_BINDINGS;
}

void rcpt_groups_read(const struct rcpt_config *config, struct rcpt_groups *groups)
{
    size_t used = 0;
    *groups = (struct rcpt_groups){.kinds = "{}"};
    for (size_t index = 0; index < config->counters.groups_count; index++) {
        size_t found = find(config->counters.groups[index]);
        RCPT_ASSERT(found < RCPT_GROUPS && groups->count < RCPT_GROUPS);
        groups->names[groups->count] = names[found];
        groups->columns[groups->count++] = column_of(config, found);
        /* The next one takes the place of the bracket. */
        used += (size_t)snprintf(groups->kinds + used, sizeof(groups->kinds) - used, "%c%s}",
                                 index > 0 ? ',' : '{', names[found]) -
                1;
    }
    if (groups->count > 0)
        bind_columns(groups);
}

/* A key alone does not make the column: `receiptd migrate` makes it with counters.groups. */
const char *rcpt_groups_column(const struct rcpt_config *config, const char *kind)
{
    struct rcpt_groups groups;
    rcpt_groups_read(config, &groups);
    for (size_t index = 0; index < groups.count; index++)
        if (strcmp(groups.names[index], kind) == 0)
            return groups.columns[index];
    return NULL;
}

const char *rcpt_config_groups_problem(const struct rcpt_config *config)
{
    bool seen[RCPT_GROUPS] = {false};
    if (config->counters.groups_count > 0 && !config->inbox.count_targeted)
        return "counters.groups needs inbox.targeted: trigger, which says what is in a group";
    for (size_t index = 0; index < config->counters.groups_count; index++) {
        size_t found = find(config->counters.groups[index]);
        if (found == RCPT_GROUPS)
            return "counters.groups: each entry is one of customer, logical";
        if (seen[found])
            return "counters.groups names a kind twice";
        seen[found] = true;
        const char *column = column_of(config, found);
        if (column == NULL)
            return "counters.groups needs to know the column of inbox.table: set "
                   "inbox.columns.customer_id or inbox.columns.logical_id";
        if (config->inbox.table != NULL && rcpt_config_is_inbox_column(column))
            return "counters.groups: inbox.columns names a column that is called like one of "
                   "receiptd's, which message_inbox shows in its place: choose another column";
    }
    return NULL;
}

/* The columns of the inbox that rules read: counters.by and counters.groups name kinds of columns,
 * inbox.columns.recipient switches ranges on. Statements name the columns by variables. Called by
 * receipts/rules.c, by serve and by commands; config.c checks. */
#include "receiptd/config/rule_columns.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

/* A key that lists kinds of columns. */
struct family {
    const char *key;
    const char *prefix; /* of a kind in SQL: by_variant */
    bool may_rename;    /* inbox.columns counts for receiptd's own inbox, too */
    size_t count;
    struct {
        const char *name, *column; /* "customer", its column in the own inbox */
        size_t mapped;             /* of the member with the column of inbox.table */
    } kinds[RCPT_KINDS];
    const char *variables[RCPT_KINDS + 1]; /* of statements: the columns, then their kinds */
};

#define MAPPED(member) offsetof(struct rcpt_config, inbox.member)

static const struct family by = {
    .key = "counters.by",
    .prefix = "by_",
    .count = RCPT_DIMENSIONS,
    .kinds = {{"variant", "variant", MAPPED(variant)},
              {"channel", "channel", MAPPED(channel)},
              {"gateway", "gateway", MAPPED(gateway)}},
    .variables = {"dimension_1", "dimension_2", "dimension_3", "dimension_kinds"},
};
/* `receiptd erase` may know the customer by another column of the own inbox. */
static const struct family groups = {
    .key = "counters.groups",
    .prefix = "",
    .may_rename = true,
    .count = RCPT_GROUPS,
    .kinds = {{"customer", "customer_id", MAPPED(customer_id)},
              {"logical", "logical_id", MAPPED(logical_id)}},
    .variables = {"group_1", "group_2", "group_kinds"},
};

/* NULL: not set. */
static const char *column_of(const struct rcpt_config *config, const struct family *family,
                             size_t kind)
{
    const char *mapped;
    memcpy(&mapped, (const char *)config + family->kinds[kind].mapped, sizeof(mapped));
    bool own = config->inbox.table == NULL && (mapped == NULL || !family->may_rename);
    return own ? family->kinds[kind].column : mapped;
}

/* The family's count: no kind has this name. */
static size_t find(const struct family *family, const char *name)
{
    size_t index = 0;
    while (index < family->count && strcmp(family->kinds[index].name, name) != 0)
        index++;
    return index;
}

/* Statements have a variable for each kind. Where fewer are configured, the last column stands in
 * the other variables, too. */
static void bind_columns(const struct family *family, struct rcpt_kinds *kinds)
{
    size_t last = kinds->count - 1;
    for (size_t index = 0; index < family->count; index++)
        kinds->bindings[index] = (struct rcpt_pg_binding){
            family->variables[index], kinds->columns[index < last ? index : last]};
    kinds->bindings[family->count] =
        (struct rcpt_pg_binding){family->variables[family->count], kinds->sql};
    kinds->binding_count = family->count + 1;
}

static void read_kinds(const struct rcpt_config *config, const struct family *family,
                       char *const *names, size_t count, struct rcpt_kinds *kinds)
{
    size_t used = 0;
    *kinds = (struct rcpt_kinds){.sql = "{}"};
    for (size_t index = 0; index < count; index++) {
        size_t found = find(family, names[index]);
        RCPT_ASSERT(found < family->count && kinds->count < family->count);
        kinds->names[kinds->count] = family->kinds[found].name;
        kinds->columns[kinds->count++] = column_of(config, family, found);
        /* The next one takes the place of the bracket. */
        used += (size_t)snprintf(kinds->sql + used, sizeof(kinds->sql) - used, "%c%s%s}",
                                 index > 0 ? ',' : '{', family->prefix, family->kinds[found].name) -
                1;
    }
    if (kinds->count > 0)
        bind_columns(family, kinds);
}

void rcpt_dimensions_read(const struct rcpt_config *config, struct rcpt_kinds *dimensions)
{
    read_kinds(config, &by, config->counters.by, config->counters.by_count, dimensions);
}

void rcpt_groups_read(const struct rcpt_config *config, struct rcpt_kinds *kinds)
{
    read_kinds(config, &groups, config->counters.groups, config->counters.groups_count, kinds);
}

/* A key alone does not make the column: `receiptd migrate` makes it with counters.groups. */
const char *rcpt_groups_column(const struct rcpt_config *config, const char *kind)
{
    struct rcpt_kinds read;
    rcpt_groups_read(config, &read);
    for (size_t index = 0; index < read.count; index++)
        if (strcmp(read.names[index], kind) == 0)
            return read.columns[index];
    return NULL;
}

/* NULL: not set. */
static const char *account_of(const struct rcpt_config *config)
{
    return column_of(config, &by, find(&by, "gateway"));
}

/* The view of a mapped inbox shows the time of insertion under our name. */
static const char *sent_of(const struct rcpt_config *config)
{
    if (config->inbox.sent_at != NULL)
        return config->inbox.sent_at;
    bool dated = config->inbox.table == NULL || config->inbox.created_at != NULL;
    return dated ? "created_at" : NULL;
}

void rcpt_ranges_read(const struct rcpt_config *config, struct rcpt_ranges *ranges)
{
    *ranges = (struct rcpt_ranges){.on = config->inbox.recipient != NULL};
    if (!ranges->on)
        return;
    ranges->recipient = config->inbox.recipient;
    ranges->account = account_of(config);
    ranges->sent = sent_of(config);
    ranges->bindings[0] = (struct rcpt_pg_binding){"range_recipient", ranges->recipient};
    ranges->bindings[1] = (struct rcpt_pg_binding){"range_account", ranges->account};
    ranges->bindings[2] = (struct rcpt_pg_binding){"range_sent", ranges->sent};
    ranges->binding_count = RCPT_RANGE_BINDINGS;
}

/* ---- checks ---- */

/* The view of a mapped inbox shows a column of ours under this name, and none of the table. */
static bool is_ours(const char *column)
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

static bool fail_taken(struct rcpt_error *error, const char *key, const char *column)
{
    return rcpt_error_fatal(error, EX_CONFIG,
                            "%s: the column \"%s\" is called like one of receiptd's, which "
                            "message_inbox shows in its place: choose another column",
                            key, column);
}

static bool check_kind(const struct rcpt_config *config, const struct family *family,
                       const char *name, bool seen[RCPT_KINDS], struct rcpt_error *error)
{
    size_t found = find(family, name);
    if (found == family->count)
        return rcpt_error_fatal(error, EX_CONFIG, "%s: each entry is one of %s, %s%s%s",
                                family->key, family->kinds[0].name, family->kinds[1].name,
                                family->count > 2 ? ", " : "",
                                family->count > 2 ? family->kinds[2].name : "");
    if (seen[found])
        return rcpt_error_fatal(error, EX_CONFIG, "%s names %s twice", family->key, name);
    seen[found] = true;
    const char *column = column_of(config, family, found);
    if (column == NULL)
        return rcpt_error_fatal(error, EX_CONFIG,
                                "%s needs to know the column of inbox.table: set inbox.columns.%s",
                                family->key, family->kinds[found].column);
    if (config->inbox.table != NULL && is_ours(column))
        return fail_taken(error, family->key, column);
    return true;
}

static bool check_kinds(const struct rcpt_config *config, const struct family *family,
                        char *const *names, size_t count, struct rcpt_error *error)
{
    bool seen[RCPT_KINDS] = {false};
    for (size_t index = 0; index < count; index++)
        if (!check_kind(config, family, names[index], seen, error))
            return false;
    return true;
}

static bool check_ranges(const struct rcpt_config *config, struct rcpt_error *error)
{
    const char *account = account_of(config), *sent = sent_of(config);
    const char *recipient = config->inbox.recipient;
    if (recipient == NULL)
        return config->inbox.sent_at == NULL ||
               rcpt_error_fatal(error, EX_CONFIG,
                                "inbox.columns.sent_at has no use without inbox.columns.recipient");
    if (account == NULL)
        return rcpt_error_fatal(error, EX_CONFIG,
                                "inbox.columns.recipient needs inbox.columns.gateway: one person "
                                "may have messages of several accounts");
    if (sent == NULL)
        return rcpt_error_fatal(error, EX_CONFIG,
                                "inbox.columns.recipient needs to know when a message was sent: "
                                "set inbox.columns.sent_at or inbox.columns.created_at");
    if (is_ours(recipient))
        return fail_taken(error, "inbox.columns.recipient", recipient);
    if (config->inbox.table != NULL && is_ours(account))
        return fail_taken(error, "inbox.columns.gateway", account);
    if (strcmp(sent, "created_at") != 0 && is_ours(sent))
        return fail_taken(error, "inbox.columns.sent_at", sent);
    return true;
}

bool rcpt_config_check_rule_columns(const struct rcpt_config *config, const char **key,
                                    struct rcpt_error *error)
{
    *key = by.key;
    if (!check_kinds(config, &by, config->counters.by, config->counters.by_count, error))
        return false;
    *key = groups.key;
    if (config->counters.groups_count > 0 && !config->inbox.count_targeted)
        return rcpt_error_fatal(error, EX_CONFIG,
                                "counters.groups needs inbox.targeted: trigger, which says what is "
                                "in a group");
    if (!check_kinds(config, &groups, config->counters.groups, config->counters.groups_count,
                     error))
        return false;
    *key = "inbox.columns";
    return check_ranges(config, error);
}

/* Sessions of the interface: their role, and their limits. Called by pool.c and names.c. */
#include "internal.h"
#include "receiptd/config/rule_columns.h"

/* Without a connection string of its own it reads as the daemon does. */
const char *serve_dsn(const struct rcpt_config *config)
{
    return config->serve.dsn != NULL ? config->serve.dsn : config->postgres.dsn;
}

/* Sessions are read-only, and a statement is cancelled at its timeout: a reader cannot block other
 * work for long. */
struct rcpt_pg_settings serve_pg_settings(struct rcpt_serve *serve, const char *name)
{
    const struct rcpt_config *config = serve->settings.config;
    return (struct rcpt_pg_settings){
        .loop = serve->settings.loop,
        .name = name,
        .instance = serve->settings.instance,
        .dsn = serve_dsn(config),
        .schema = config->postgres.schema,
        .read_only = true,
        .lock_timeout_ms = (int)config->serve.statement_timeout_ms,
        .statement_timeout_ms = (int)config->serve.statement_timeout_ms,
        .connect_timeout_ms = (int)config->postgres.connect_timeout_ms,
        .retry_min_ms = (int)config->postgres.retry_min_ms,
        .retry_max_ms = (int)config->postgres.retry_max_ms,
    };
}

/* NULL: nothing is counted by the channel, and no key names it. */
static const char *channel_of(const struct rcpt_config *config)
{
    struct rcpt_kinds dimensions;
    rcpt_dimensions_read(config, &dimensions);
    for (size_t index = 0; index < dimensions.count; index++)
        if (strcmp(dimensions.names[index], "channel") == 0)
            return dimensions.columns[index];
    return config->inbox.channel;
}

/* Each column once, whatever the number of rules that name it. */
static void add_expiry(const struct rcpt_config *config, struct rcpt_serve_columns *columns)
{
    for (size_t index = 0; index < config->inbox.expiry_count; index++) {
        const char *column = config->inbox.expiry[index].column;
        bool known = column == NULL;
        for (size_t other = 0; !known && other < columns->expiry_count; other++)
            known = strcmp(columns->expiry[other], column) == 0;
        if (known)
            continue;
        RCPT_ASSERT(columns->expiry_count < RCPT_SERVE_EXPIRY_COLUMNS);
        columns->expiry[columns->expiry_count++] = column;
    }
}

/* If a dimension counts by a column, that column is used; otherwise the key names it. Our own inbox
 * has created_at; a table of the platform has it only if a key names it. */
struct rcpt_serve_columns rcpt_serve_columns_of(const struct rcpt_config *config)
{
    const char *customer = rcpt_groups_column(config, "customer");
    bool dated = config->inbox.table == NULL || config->inbox.created_at != NULL;
    struct rcpt_serve_columns columns = {.customer = customer != NULL ? customer
                                                                      : config->inbox.customer_id,
                                         .logical = rcpt_groups_column(config, "logical"),
                                         .channel = channel_of(config),
                                         .newest = dated ? "created_at" : "message_id"};
    add_expiry(config, &columns);
    return columns;
}

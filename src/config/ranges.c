/* inbox.columns.recipient: which columns of the inbox say whose a message is and when it was sent,
 * and the variables by which statements name them. Called by src/receipts and by commands. */
#include "receiptd/config/rule_columns.h"

#include <string.h>

/* Own: the name is ours, as for counters.by. NULL: not set. */
static const char *account_of(const struct rcpt_config *config)
{
    return config->inbox.table != NULL ? config->inbox.gateway : "gateway";
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

const char *rcpt_config_ranges_problem(const struct rcpt_config *config)
{
    const char *account = account_of(config), *sent = sent_of(config);
    if (config->inbox.recipient == NULL)
        return config->inbox.sent_at != NULL
                   ? "inbox.columns.sent_at is of no use without inbox.columns.recipient"
                   : NULL;
    if (account == NULL)
        return "inbox.columns.recipient needs inbox.columns.gateway: one person may have messages "
               "of several accounts";
    if (sent == NULL)
        return "inbox.columns.recipient needs to know when a message was sent: set "
               "inbox.columns.sent_at or inbox.columns.created_at";
    if (rcpt_config_is_inbox_column(config->inbox.recipient) ||
        (config->inbox.table != NULL && rcpt_config_is_inbox_column(account)) ||
        (config->inbox.sent_at != NULL && strcmp(sent, "created_at") != 0 &&
         rcpt_config_is_inbox_column(sent)))
        return "inbox.columns names a column for ranges that is called like one of receiptd's: "
               "choose another column";
    return NULL;
}

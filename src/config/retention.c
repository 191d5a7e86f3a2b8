/* The fields of an entry of inbox.retention_overrides, and what retention and partitions need of
 * the inbox. The commands retire and maintain use them. */
#include "rows.h"

#define RECORD struct rcpt_config_retention
static const struct rcpt_config_row rows[] = {
    TEXT("campaign", campaign, NULLABLE, NULL, 1, 255,
         "messages of this campaign; comes before an organisation"),
    TEXT("org_id", org_id, NULLABLE, NULL, 1, 255,
         "messages of this organisation; an entry has one of both"),
    DURATION("keep", keep_ms, REQUIRED, NULL, 0, 3650 * DAY,
             "how long they are kept; 0s: without limit"),
};

const struct rcpt_config_table rcpt_config_retention_record = RECORD_OF(rows);

/* NULL: all is well. */
const char *rcpt_config_retention_problem(const struct rcpt_config *config)
{
    for (size_t index = 0; index < config->inbox.overrides_count; index++) {
        const struct rcpt_config_retention *given = &config->inbox.overrides[index];
        if ((given->campaign == NULL) == (given->org_id == NULL))
            return "inbox.retention_overrides: each entry names either a campaign or an org_id";
    }
    if (config->inbox.retention_ms == 0 && config->inbox.overrides_count == 0)
        return NULL;
    if (config->inbox.table != NULL && config->inbox.created_at == NULL)
        return "inbox.retention needs the time of insertion of each message in inbox.table: "
               "inbox.columns.created_at is not set";
    if (!config->inbox.count_targeted)
        return "inbox.retention needs the trigger that books deleted messages: inbox.targeted is "
               "none";
    return NULL;
}

/* The number of partitions costs batches, their size does not (docs/retention.md). Partitions made
 * by another tool do not follow from the retention. */
static int64_t default_span(const struct rcpt_config *config)
{
    int64_t whole = 30 * DAY, retention_ms = config->inbox.retention_ms;
    bool follows = config->inbox.partitions == RCPT_PARTITIONS_OWN && retention_ms > 0;
    return follows ? (retention_ms + whole - 1) / whole * DAY : DAY;
}

/* First times make a row longer after it was inserted. */
void rcpt_config_follow(struct rcpt_config *config)
{
    if (config->inbox.partition_span_ms == 0)
        config->inbox.partition_span_ms = default_span(config);
    if (config->inbox.fillfactor == 0)
        config->inbox.fillfactor = config->counters.times ? 40 : 50;
}

const char *rcpt_config_partitions_problem(const struct rcpt_config *config)
{
    if (config->inbox.partitions != RCPT_PARTITIONS_OWN)
        return NULL;
    if (config->inbox.table != NULL)
        return "inbox.partitions: own is for receiptd's own inbox, but inbox.table is set; set "
               "external where another tool makes the partitions of that table";
    if (config->inbox.ids == RCPT_ID_ANY)
        return "inbox.partitions: own needs message ids that begin with the time, and inbox.ids is "
               "any: set uuidv7, ulid or ksuid. Other ids need no inbox.partitions: receiptd "
               "maintain makes a recent set for them";
    if (!rcpt_id_has_bounds(config->inbox.ids))
        return "inbox.partitions: own needs message ids whose texts are in the order of time. "
               "Snowflakes are in this order only while they have the same number of digits: "
               "leave inbox.partitions out; such ids need no recent set";
    return NULL;
}

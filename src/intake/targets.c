/* The topics of receipts: an account may have one of its own, so that a burst of another account's
 * does not stand before its receipts. Each has an aggregate. A leaf, called by the other files of
 * the intake. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"

struct intake_target *intake_find_target(struct rcpt_intake *intake, const char *topic)
{
    for (size_t i = 0; i < intake->target_count; i++)
        if (strcmp(intake->targets[i].topic, topic) == 0)
            return &intake->targets[i];
    return NULL;
}

/* Several records of a partition may be in flight, but few: meanwhile the next record fills. */
static bool add_target(struct rcpt_intake *intake,
                       const struct rcpt_gateway_account_config *account, struct rcpt_error *error)
{
    const struct rcpt_config *config = intake->config;
    const struct rcpt_aggregate_settings settings = {
        .max_events = (uint32_t)config->intake.max_events,
        .max_bytes = config->intake.max_bytes,
        .linger_ms = config->intake.linger_ms,
        .max_in_flight = 4,
    };
    const char *topic = rcpt_config_intake_topic(config, account);
    if (intake_find_target(intake, topic) != NULL)
        return true;
    if (intake->target_count == INTAKE_MOST_TARGETS)
        return rcpt_error_fatal(error, EX_CONFIG, "intake.accounts names more than %u topics",
                                INTAKE_MOST_TARGETS);
    struct intake_target *target = &intake->targets[intake->target_count++];
    *target = (struct intake_target){rcpt_strdup(topic), rcpt_aggregate_new(&settings)};
    return true;
}

bool intake_make_targets(struct rcpt_intake *intake, struct rcpt_error *error)
{
    const struct rcpt_config *config = intake->config;
    for (size_t i = 0; i < config->intake.accounts_count; i++)
        if (!add_target(intake, &config->intake.accounts[i], error))
            return false;
    return true;
}

void intake_free_targets(struct rcpt_intake *intake)
{
    for (size_t i = 0; i < intake->target_count; i++) {
        rcpt_aggregate_free(intake->targets[i].aggregate);
        free(intake->targets[i].topic);
    }
}

size_t intake_record_bytes(const struct rcpt_intake *intake)
{
    size_t bytes = 0;
    for (size_t i = 0; i < intake->target_count; i++)
        bytes += rcpt_aggregate_bytes(intake->targets[i].aggregate);
    return bytes;
}

bool intake_has_records(const struct rcpt_intake *intake)
{
    for (size_t i = 0; i < intake->target_count; i++)
        if (!rcpt_aggregate_is_empty(intake->targets[i].aggregate))
            return true;
    return false;
}

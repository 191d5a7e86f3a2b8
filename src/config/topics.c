/* The topics of receipts: their names beside their accounts, and what must hold for both together.
 * Each account checks itself (gateways/account.c). Then the topics of messages.
 * Called by config.c and the intake. */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "receiptd/gateways/topics.h"
#include "table.h"

static bool is_native(const struct rcpt_gateway_account_config *topic)
{
    return strcmp(topic->gateway, RCPT_GATEWAY_NATIVE) == 0;
}

/* The names are a list of their own: most readers of the configuration want no more. A reload
 * exchanges accounts, and never names. */
void rcpt_config_name_topics(struct rcpt_config *config)
{
    config->kafka.topics = rcpt_calloc(config->kafka.accounts_count + 1, sizeof(char *));
    for (size_t index = 0; index < config->kafka.accounts_count; index++) {
        struct rcpt_gateway_account_config *topic = &config->kafka.accounts[index];
        topic->ranges = config->inbox.recipient != NULL;
        topic->is_topic = true;
        config->kafka.topics[config->kafka.topics_count++] = rcpt_strdup(topic->name);
    }
}

void rcpt_config_free_topics(struct rcpt_config *config)
{
    for (unsigned index = 0; index < config->kafka.topics_count; index++)
        free(config->kafka.topics[index]);
    free(config->kafka.topics);
}

const char *rcpt_config_intake_topic(const struct rcpt_config *config,
                                     const struct rcpt_gateway_account_config *account)
{
    if (account != NULL && account->topic != NULL)
        return account->topic;
    for (size_t index = 0; config->intake.topic == NULL && index < config->kafka.topics_count;
         index++)
        if (is_native(&config->kafka.accounts[index]))
            return config->kafka.topics[index];
    return config->intake.topic;
}

/* ---- checks ---- */

static bool fail(struct rcpt_error *error, const char *name, const char *problem, const char *hint)
{
    rcpt_error_fatal(error, EX_CONFIG, "kafka.topics: \"%.63s\" %s", name, problem);
    rcpt_error_hint(error, "%s", hint);
    return false;
}

/* Whether a key is given that only another form reads; those without a default tell. */
static bool has_form(const struct rcpt_gateway_account_config *topic)
{
    const struct rcpt_config_table *table = &rcpt_config_topic_record;
    bool has = topic->id_forms_count > 0 || topic->custom.statuses_count > 0;
    for (size_t index = 2; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        const char *text = NULL;
        if (row->flags & RCPT_CONFIG_NULLABLE)
            memcpy(&text, (const char *)topic + row->offset, sizeof(text));
        has = has || text != NULL;
    }
    return has;
}

static bool check_topic(const struct rcpt_config *config, size_t index, struct rcpt_error *error)
{
    const struct rcpt_gateway_account_config *topic = &config->kafka.accounts[index];
    for (size_t other = 0; other < index; other++)
        if (strcmp(topic->name, config->kafka.topics[other]) == 0)
            return fail(error, topic->name, "is named twice", "a topic has one form");
    return !is_native(topic) || !has_form(topic) ||
           fail(error, topic->name, "has keys that a native topic does not read",
                "name the form of its records: gateway: custom, or an adapter of docs/gateways.md");
}

/* The intake writes our form, so a topic that we read must be native. NULL account: the topic of
 * accounts that name none. */
static bool check_intake(const struct rcpt_config *config,
                         const struct rcpt_gateway_account_config *account,
                         struct rcpt_error *error)
{
    const char *name = rcpt_config_intake_topic(config, account);
    if (account != NULL && name == NULL && config->kafka.accounts_count > 0)
        return fail(error, config->kafka.topics[0], "and the other topics are not native",
                    "the intake needs a topic for its receipts: set intake.topic");
    for (size_t index = 0; name != NULL && index < config->kafka.accounts_count; index++)
        if (strcmp(config->kafka.topics[index], name) == 0 &&
            !is_native(&config->kafka.accounts[index]))
            return fail(error, name,
                        "has another form, and the intake writes native receipts to it",
                        "give the intake a native topic: intake.topic, or topic of its account");
    return true;
}

bool rcpt_config_check_topics(const struct rcpt_config *config, struct rcpt_error *error)
{
    for (size_t index = 0; index < config->kafka.accounts_count; index++)
        if (!check_topic(config, index, error))
            return false;
    for (size_t index = 0; index < config->intake.accounts_count; index++)
        if (!check_intake(config, &config->intake.accounts[index], error))
            return false;
    if (!check_intake(config, NULL, error))
        return false;
    struct rcpt_gateway_topics *topics = rcpt_gateway_topics_new(
        config->kafka.accounts, config->kafka.accounts_count, config->ladder, error);
    rcpt_gateway_topics_free(topics);
    return topics != NULL;
}

/* ---- topics of messages ---- */

/* The fault of an entry, in words; NULL: it has none. */
static const char *problem_of(const struct rcpt_config *config, size_t index)
{
    const char *topic = config->kafka.message_topics[index];
    if (!rcpt_config_is_topic(topic))
        return "is not a topic name: 1 to 249 letters, digits, dots, dashes and underscores";
    for (size_t other = 0; other < index; other++)
        if (strcmp(config->kafka.message_topics[other], topic) == 0)
            return "is named twice";
    for (unsigned other = 0; other < config->kafka.topics_count; other++)
        if (strcmp(config->kafka.topics[other], topic) == 0)
            return "carries receipts: announce messages on a topic of their own";
    return NULL;
}

/* Announcements are no receipts, and a tombstone deletes like a retention. */
bool rcpt_config_check_message_topics(const struct rcpt_config *config, struct rcpt_error *error)
{
    for (size_t index = 0; index < config->kafka.message_topics_count; index++) {
        const char *problem = problem_of(config, index);
        if (problem != NULL)
            return rcpt_error_fatal(error, EX_CONFIG, "kafka.message_topics: \"%.255s\" %s",
                                    config->kafka.message_topics[index], problem);
    }
    return config->kafka.message_topics_count == 0 || config->inbox.count_targeted ||
           rcpt_error_fatal(error, EX_CONFIG,
                            "kafka.message_topics needs the triggers that count new messages and "
                            "book deleted ones: inbox.targeted is none");
}

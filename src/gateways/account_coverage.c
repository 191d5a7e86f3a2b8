/* Whether an account reads only the parts that its signature covers. A third party that has one
 * signed request could change the other parts, and so name a message of its choice; such a
 * configuration is refused at the start. Called by account.c. */
#include "account.h"

#include <sysexits.h>

const char *rcpt_account_kind(const struct rcpt_gateway_account_config *config)
{
    return config->is_topic ? "topic" : "intake account";
}

/* The form that all messages about accounts have. */
bool rcpt_account_fail(struct rcpt_error *error, const struct rcpt_gateway_account_config *config,
                       const char *key, const char *problem)
{
    return rcpt_error_fatal(error, EX_CONFIG, "%s %.249s: %s: %s", rcpt_account_kind(config),
                            config->name, key, problem);
}

/* Where the URL signs the message's id, no other place may name one. */
static bool check_url_ids(const struct rcpt_gateway_account_config *config,
                          struct rcpt_error *error)
{
    const char *name = config->message_id;
    if (name != NULL && strcmp(name + (name[0] == '?'), config->auth_name) != 0)
        return rcpt_account_fail(
            error, config, "message_id",
            "auth: url-hmac takes the parameter auth_name, which the URL signs");
    name = config->campaign_id;
    if (name != NULL && strcmp(name + (name[0] == '?'), "campaign_id") != 0)
        return rcpt_account_fail(
            error, config, "campaign_id",
            "auth: url-hmac takes the parameter campaign_id, which the URL signs");
    return !config->unsigned_ids || rcpt_account_fail(error, config, "unsigned_ids",
                                                      "auth: url-hmac has nothing but signed ids");
}

/* Whether the account's scheme covers what the template of this key reads. */
static bool covers(const struct rcpt_gateway_account *account, const char *name, const char *key,
                   const struct rcpt_template *template, struct rcpt_error *error)
{
    static const struct {
        unsigned part;
        const char *name;
    } names[] = {{RCPT_COVERS_QUERY, "the query"},
                 {RCPT_COVERS_PATH, "the path"},
                 {RCPT_COVERS_HEADERS, "a header"},
                 {RCPT_COVERS_BODY, "JSON"}};
    unsigned parts = rcpt_template_parts(template, account->scheme->headers);
    for (size_t part = 0; part < RCPT_COUNT_OF(names); part++) {
        if ((parts & names[part].part & ~account->scheme->covers) == 0)
            continue;
        rcpt_error_fatal(error, EX_CONFIG,
                         "intake account %s: %s: reads %s, which the signature (%s) does not cover",
                         name, key, names[part].name, account->scheme->name);
        rcpt_error_hint(error,
                        "take it from what is signed: %s; or unsigned_ids: true, and whoever has "
                        "one signed request can name any message",
                        account->scheme->covered);
        return false;
    }
    return true;
}

/* Compares the parts that each template reads with those that the scheme covers, and names the
 * first template that reads more. */
static bool check_covered(const struct rcpt_gateway_account *account,
                          const struct rcpt_gateway_account_config *config,
                          struct rcpt_error *error)
{
    bool custom = account->gateway == &account->own;
    const struct {
        const char *key;
        const struct rcpt_template *template;
    } given[] = {
        {"message_id", config->message_id != NULL ? account->fields.message_id : NULL},
        {"campaign_id", config->campaign_id != NULL ? account->fields.campaign_id : NULL},
        {"custom.id", custom ? account->fields.id : NULL},
        {"custom.message_id", custom ? account->fields.message_id : NULL},
        {"custom.status", custom ? account->fields.status : NULL},
        {"custom.org_id", custom ? account->fields.org_id : NULL},
        {"custom.campaign_id", custom ? account->fields.campaign_id : NULL},
        {"custom.event_id", custom ? account->fields.event_id : NULL},
        {"custom.at", custom ? account->fields.at : NULL},
        {"custom.reason", custom ? account->fields.reason : NULL},
        {"custom.channel", custom ? account->fields.channel : NULL},
        {"custom.client_ref", custom ? account->fields.client_ref : NULL},
        {"custom.part", custom ? account->fields.part : NULL},
        {"custom.parts", custom ? account->fields.parts : NULL},
        {"custom.ip", custom ? account->fields.ip : NULL},
        {"custom.recipient", custom ? account->fields.recipient : NULL},
        {"custom.until", custom ? account->fields.until : NULL},
        {"custom.link", custom ? account->fields.link : NULL},
        {"custom.cost", custom ? account->fields.cost : NULL},
        {"custom.currency", custom ? account->fields.currency : NULL},
    };
    for (size_t index = 0; index < RCPT_COUNT_OF(given); index++)
        if (given[index].template != NULL &&
            !covers(account, config->name, given[index].key, given[index].template, error))
            return false;
    return true;
}

/* SNS with a secret takes raw requests too, which are covered as a whole. */
bool rcpt_account_check_coverage(const struct rcpt_gateway_account *account,
                                 const struct rcpt_gateway_account_config *config,
                                 struct rcpt_error *error)
{
    bool raw = account->scheme->verify == rcpt_verify_sns && account->secret_count > 0;
    if (account->verify == RCPT_GATEWAY_VERIFY_OFF)
        return true;
    if (account->auth == RCPT_GATEWAY_AUTH_URL_HMAC)
        return check_url_ids(config, error);
    if (account->unsigned_ids || raw) /* SNS with a secret: raw requests are covered as a whole */
        return true;
    return check_covered(account, config, error);
}

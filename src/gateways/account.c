/* An account of the intake from its configuration: gateway or custom description, templates,
 * secrets, networks. All faults are found here, at the start and by `receiptd check-config`, with
 * the key in the message; afterwards adapters only read the account. */
#include "account.h"
#include "crypto.h"
#include "sns.h"

#include <stdlib.h>
#include <sysexits.h>

#define CUSTOM "custom"

/* NULL stays NULL. */
static char *copy_of(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

/* ---- the gateway ---- */

/* For the hint of a misspelt name; NULL: none is near. */
static const char *nearest_gateway(const char *name)
{
    size_t count;
    const char *nearest = NULL;
    const char *const *names = rcpt_gateway_list(&count);
    for (size_t index = 0; index < count; index++)
        nearest = rcpt_text_nearer(name, nearest, names[index]);
    return nearest;
}

/* A misspelt name gets the nearest one as a hint. */
static bool find_gateway(struct rcpt_gateway_account *account,
                         const struct rcpt_gateway_account_config *config, struct rcpt_error *error)
{
    if (strcmp(config->gateway, CUSTOM) == 0)
        return rcpt_account_make_custom(account, config, error);
    account->gateway = rcpt_gateway_find(config->gateway);
    if (account->gateway != NULL)
        return true;
    rcpt_error_fatal(error, EX_CONFIG, "%s %.249s: gateway: there is no adapter \"%.64s\"",
                     rcpt_account_kind(config), config->name, config->gateway);
    const char *near = nearest_gateway(config->gateway);
    if (near != NULL)
        rcpt_error_hint(error, "did you mean \"%s\"? docs/gateways.md lists them; others: custom",
                        near);
    else
        rcpt_error_hint(error, "docs/gateways.md lists them; others: custom");
    return false;
}

/* ---- templates ---- */

/* NULL stays NULL: the value is absent. */
static bool compile(const struct rcpt_gateway_account_config *config, const char *key,
                    const char *text, struct rcpt_template **template, struct rcpt_error *error)
{
    const char *reason = "";
    if (text == NULL)
        return true;
    *template = rcpt_template_new(text, &reason);
    return *template != NULL || rcpt_account_fail(error, config, key, reason);
}

/* Names of ARF's Feedback-Type (RFC 5965) as gateways pass it on. */
#define FEEDBACK                                                                                   \
    "feedback_type,feedback-type,Feedback-Type,FeedbackType,feedbackType,fbtype,"                  \
    "complaintFeedbackType,complaint_feedback_type"

/* An account's own templates go before those of its gateway. */
static bool compile_fields(struct rcpt_gateway_account *account,
                           const struct rcpt_gateway_account_config *config,
                           struct rcpt_error *error)
{
    const struct rcpt_fields *fields = &account->gateway->fields;
    bool custom = account->gateway == &account->own;
    const char *message_id = config->message_id != NULL ? config->message_id : fields->message_id;
    const char *campaign_id =
        config->campaign_id != NULL ? config->campaign_id : fields->campaign_id;
    return compile(config, "custom.id", fields->id, &account->fields.id, error) &&
           compile(config, "custom.status", fields->status, &account->fields.status, error) &&
           compile(config, "custom.reason", fields->reason, &account->fields.reason, error) &&
           compile(config, "words", fields->words, &account->fields.words, error) &&
           compile(config, "feedback", fields->feedback != NULL ? fields->feedback : FEEDBACK,
                   &account->fields.feedback, error) &&
           compile(config, "custom.at", fields->at, &account->fields.at, error) &&
           compile(config, "custom.event_id", fields->event_id, &account->fields.event_id, error) &&
           compile(config, "message_id", message_id, &account->fields.message_id, error) &&
           compile(config, "custom.org_id", fields->org_id, &account->fields.org_id, error) &&
           compile(config, "campaign_id", campaign_id, &account->fields.campaign_id, error) &&
           compile(config, "custom.channel", fields->channel, &account->fields.channel, error) &&
           compile(config, "custom.client_ref", fields->client_ref, &account->fields.client_ref,
                   error) &&
           compile(config, "custom.part", fields->part, &account->fields.part, error) &&
           compile(config, "custom.parts", fields->parts, &account->fields.parts, error) &&
           compile(config, "custom.recipient", fields->recipient, &account->fields.recipient,
                   error) &&
           compile(config, "custom.until", fields->until, &account->fields.until, error) &&
           compile(config, "link", fields->link, &account->fields.link, error) &&
           compile(config, "cost", fields->cost, &account->fields.cost, error) &&
           compile(config, "currency", fields->currency, &account->fields.currency, error) &&
           compile(config, "custom.ip", fields->ip, &account->fields.ip, error) &&
           /* Ids that our own platform has put into the callback's URL. */
           compile(config, "message_id", custom ? NULL : "?message_id", &account->url_message_id,
                   error) &&
           compile(config, "campaign_id", custom ? NULL : "?campaign_id", &account->url_campaign_id,
                   error) &&
           compile(config, "inbound", account->gateway->inbound, &account->inbound, error);
}

/* ---- who may send ---- */

/* These schemes look into a header or parameter that the account names. */
static bool needs_auth_name(enum rcpt_gateway_auth auth)
{
    return auth == RCPT_GATEWAY_AUTH_HEADER || auth == RCPT_GATEWAY_AUTH_QUERY ||
           auth == RCPT_GATEWAY_AUTH_HMAC_HEX || auth == RCPT_GATEWAY_AUTH_HMAC_BASE64 ||
           auth == RCPT_GATEWAY_AUTH_URL_HMAC;
}

/* `auth: gateway` is the gateway's own scheme, or a shared secret where it has none. */
static const struct rcpt_scheme *scheme_of(const struct rcpt_gateway_account *account)
{
    static rcpt_verifier *const verifiers[] = {
        [RCPT_GATEWAY_AUTH_SHARED] = rcpt_verify_shared,
        [RCPT_GATEWAY_AUTH_BASIC] = rcpt_verify_basic,
        [RCPT_GATEWAY_AUTH_BEARER] = rcpt_verify_bearer,
        [RCPT_GATEWAY_AUTH_HEADER] = rcpt_verify_header,
        [RCPT_GATEWAY_AUTH_QUERY] = rcpt_verify_query,
        [RCPT_GATEWAY_AUTH_HMAC_HEX] = rcpt_verify_hmac_hex,
        [RCPT_GATEWAY_AUTH_HMAC_BASE64] = rcpt_verify_hmac_base64,
        [RCPT_GATEWAY_AUTH_STANDARD] = rcpt_verify_standard,
        [RCPT_GATEWAY_AUTH_TELNYX] = rcpt_verify_telnyx,
        [RCPT_GATEWAY_AUTH_URL_HMAC] = rcpt_verify_url_hmac,
        [RCPT_GATEWAY_AUTH_ADDRESS] = rcpt_verify_address,
    };
    if (account->auth != RCPT_GATEWAY_AUTH_GATEWAY)
        return rcpt_scheme_of(verifiers[account->auth]);
    bool signs = account->gateway->verify != NULL;
    return rcpt_scheme_of(signs ? account->gateway->verify : rcpt_verify_shared);
}

/* Secrets are taken as they are written; PEM is a common mistake, so it has a message of its
 * own. */
static bool copy_secrets(struct rcpt_gateway_account *account,
                         const struct rcpt_gateway_account_config *config, struct rcpt_error *error)
{
    account->secrets = rcpt_calloc(config->secrets_count + 1, sizeof(*account->secrets));
    for (unsigned index = 0; index < config->secrets_count; index++) {
        struct rcpt_text secret = rcpt_text_trim(rcpt_text_of(config->secrets[index]));
        if (config->secrets[index][0] == '\0')
            return rcpt_account_fail(error, config, "secrets", "one of them is empty");
        if (rcpt_text_begins(secret, "-----BEGIN")) {
            rcpt_account_fail(error, config, "secrets", "one of them is PEM, which is no secret");
            rcpt_error_hint(error, "a certificate of SNS goes into certificates; a public key is "
                                   "given as base64 without the lines around it");
            return false;
        }
        account->secrets[account->secret_count++] =
            rcpt_text_of(rcpt_strdup(config->secrets[index]));
    }
    account->certificates =
        rcpt_calloc(config->certificates_count + 1, sizeof(*account->certificates));
    for (unsigned index = 0; index < config->certificates_count; index++) {
        if (!rcpt_is_certificate(rcpt_text_of(config->certificates[index])))
            return rcpt_account_fail(error, config, "certificates",
                                     "one of them is no certificate in PEM");
        account->certificates[account->certificate_count++] =
            rcpt_strdup(config->certificates[index]);
    }
    return true;
}

/* An entry that cannot be read is fatal: skipping it would lock a gateway out, or let others in. */
static bool copy_networks(struct rcpt_gateway_account *account,
                          const struct rcpt_gateway_account_config *config,
                          struct rcpt_error *error)
{
    account->allow = rcpt_calloc(config->allow_count + 1, sizeof(*account->allow));
    for (unsigned index = 0; index < config->allow_count; index++)
        if (!rcpt_network_parse(config->allow[index], &account->allow[account->allow_count++]))
            return rcpt_error_fatal(error, EX_CONFIG,
                                    "intake account %s: allow: every entry must be an address or "
                                    "network such as 192.0.2.0/24, not \"%.63s\"",
                                    config->name, config->allow[index]);
    return true;
}

/* Amazon signs for all its customers: only the topic tells whose message it is. */
static bool check_sns(const struct rcpt_gateway_account *account,
                      const struct rcpt_gateway_account_config *config, struct rcpt_error *error)
{
    if (account->topic_arn == NULL) {
        rcpt_account_fail(error, config, "topic_arn",
                          "is needed: without it any customer of Amazon may send");
        rcpt_error_hint(error, "the topic's ARN, arn:aws:sns:REGION:ACCOUNT:TOPIC; or verify: off");
        return false;
    }
    if (rcpt_sns_region(account->topic_arn).at == NULL) {
        rcpt_account_fail(error, config, "topic_arn", "is no ARN of a topic");
        rcpt_error_hint(error, "arn:aws:sns:REGION:ACCOUNT:TOPIC, as Amazon's console shows it");
        return false;
    }
    return true;
}

/* A gateway that signs nothing may be known by its addresses alone. */
static bool check_secrets(struct rcpt_gateway_account *account,
                          const struct rcpt_gateway_account_config *config,
                          struct rcpt_error *error)
{
    if (account->scheme->verify == rcpt_verify_address && account->allow_count == 0)
        return rcpt_account_fail(error, config, "allow", "is needed for auth: address");
    if (account->scheme->verify == rcpt_verify_sns)
        return check_sns(account, config, error);
    if (account->secret_count > 0 || account->scheme->verify == rcpt_verify_address)
        return true;
    if (account->scheme->verify == rcpt_verify_shared && account->allow_count > 0) {
        account->scheme = rcpt_scheme_of(rcpt_verify_address);
        return true;
    }
    if (account->verify == RCPT_GATEWAY_VERIFY_OPTIONAL)
        return true;
    rcpt_account_fail(error, config, "secrets", "verify: required needs at least one");
    rcpt_error_hint(error, "give the gateway's key, or set verify: off");
    return false;
}

/* `verify: off` needs no credentials; other values must be able to verify. */
static bool check_credentials(struct rcpt_gateway_account *account,
                              const struct rcpt_gateway_account_config *config,
                              struct rcpt_error *error)
{
    account->scheme = scheme_of(account);
    if (needs_auth_name(account->auth) && account->auth_name == NULL)
        return rcpt_account_fail(error, config, "auth_name", "is needed for this kind of auth");
    if (account->verify == RCPT_GATEWAY_VERIFY_OFF)
        return true;
    if (account->public_url == NULL && account->scheme->signs_url) {
        rcpt_account_fail(error, config, "public_url",
                          "is needed, because this gateway signs the URL");
        rcpt_error_hint(error, "the URL that is entered at the gateway, up to and with /dlr/%s",
                        config->name);
        return false;
    }
    return check_secrets(account, config, error);
}

/* ---- forms of ids ---- */

/* If two forms undo each other, only the last would count. */
static bool check_form(const struct rcpt_gateway_account *account, enum rcpt_id_form form,
                       const struct rcpt_gateway_account_config *config, struct rcpt_error *error)
{
    static const enum rcpt_id_form opposite[RCPT_ID_FORM__COUNT] = {
        [RCPT_ID_FORM_LOWER] = RCPT_ID_FORM_UPPER,
        [RCPT_ID_FORM_UPPER] = RCPT_ID_FORM_LOWER,
        [RCPT_ID_FORM_HEX_TO_DECIMAL] = RCPT_ID_FORM_DECIMAL_TO_HEX,
        [RCPT_ID_FORM_DECIMAL_TO_HEX] = RCPT_ID_FORM_HEX_TO_DECIMAL,
    };
    for (size_t index = 0; index < account->id_form_count; index++) {
        if (account->id_forms[index] == form)
            return rcpt_account_fail(error, config, "message_id_form", "names a form twice");
        if (opposite[form] != RCPT_ID_FORM_TRIM && account->id_forms[index] == opposite[form])
            return rcpt_account_fail(error, config, "message_id_form",
                                     "names two forms that undo each other");
    }
    return true;
}

static bool copy_forms(struct rcpt_gateway_account *account,
                       const struct rcpt_gateway_account_config *config, struct rcpt_error *error)
{
    for (unsigned index = 0; index < config->id_forms_count; index++) {
        enum rcpt_id_form form = rcpt_id_form_find(config->id_forms[index]);
        if (form == RCPT_ID_FORM__COUNT) {
            rcpt_error_fatal(error, EX_CONFIG,
                             "%s %.249s: message_id_form: there is no form \"%.40s\"",
                             rcpt_account_kind(config), config->name, config->id_forms[index]);
            rcpt_error_hint(error, "trim, lower, upper, strip_hyphens, strip_zeros, strip_suffix, "
                                   "hex_to_decimal or decimal_to_hex");
            return false;
        }
        if (!check_form(account, form, config, error))
            return false;
        account->id_forms[account->id_form_count++] = form;
    }
    return true;
}

/* ---- the whole ---- */

/* The name stands in URLs and metrics. */
static bool is_name(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return name[0] != '\0' && strspn(name, letters) == strlen(name);
}

static bool read_zone(struct rcpt_gateway_account *account,
                      const struct rcpt_gateway_account_config *config, struct rcpt_error *error)
{
    const char *problem = "", *name = config->time_zone;
    if (name == NULL)
        name = account->gateway->time_zone;
    if (name == NULL && config->is_topic && account->gateway == &account->own)
        name = "Z"; /* a platform's own times */
    if (name == NULL)
        return true;
    account->time_zone = rcpt_zone_new(name, &problem);
    if (account->time_zone != NULL)
        return true;
    rcpt_account_fail(error, config, "time_zone",
                      "must be an offset such as +05:30 or Z, or a zone such as Europe/Berlin");
    rcpt_error_hint(error, "\"%.63s\" %s", name, problem);
    return false;
}

/* False: the error names the key. The caller frees the partly filled account. */
static bool fill(struct rcpt_gateway_account *account,
                 const struct rcpt_gateway_account_config *config, struct rcpt_error *error)
{
    if (!config->is_topic && !is_name(config->name)) /* Kafka has rules for names of topics */
        return rcpt_account_fail(error, config, "name",
                                 "must be letters, digits, dashes and underscores");
    if (config->org_id != NULL && config->org_id[0] == '/')
        return rcpt_account_fail(error, config, "org_id",
                                 "is a fixed text, not a template: custom.org_id is one");
    if (!find_gateway(account, config, error))
        return false;
    return read_zone(account, config, error) && copy_forms(account, config, error) &&
           compile_fields(account, config, error) && copy_secrets(account, config, error) &&
           copy_networks(account, config, error) && check_credentials(account, config, error) &&
           rcpt_account_check_coverage(account, config, error);
}

/* The configuration may go afterwards; the ladder must stay. */
struct rcpt_gateway_account *rcpt_gateway_account_new(
    const struct rcpt_gateway_account_config *config, const struct rcpt_ladder *ladder,
    struct rcpt_error *error)
{
    struct rcpt_gateway_account *account = rcpt_calloc(1, sizeof(*account));
    account->name = rcpt_strdup(config->account != NULL ? config->account : config->name);
    account->org_id = copy_of(config->org_id);
    account->public_url = copy_of(config->public_url);
    account->verify_token = copy_of(config->verify_token);
    account->topic_arn = copy_of(config->topic_arn);
    account->channel = copy_of(config->channel);
    account->auth_name = copy_of(config->auth_name);
    /* Kafka has let the producer in. */
    account->verify = config->is_topic ? RCPT_GATEWAY_VERIFY_OFF : config->verify;
    account->auth = config->auth;
    account->max_age_us = config->max_age_ms * 1000;
    account->digest = config->digest;
    account->plivo_v2 = config->plivo_v2;
    account->unsigned_ids = config->unsigned_ids;
    account->ranges = config->ranges;
    account->ladder = ladder;
    if (fill(account, config, error))
        return account;
    rcpt_gateway_account_free(account);
    return NULL;
}

/* Secrets are wiped before their memory goes. */
static void free_secrets(struct rcpt_gateway_account *account)
{
    for (size_t index = 0; index < account->secret_count; index++) {
        char *secret;
        memcpy(&secret, &account->secrets[index].at, sizeof(secret));
        explicit_bzero(secret, account->secrets[index].size);
        free(secret);
    }
    free(account->secrets);
}

void rcpt_gateway_account_free(struct rcpt_gateway_account *account)
{
    if (account == NULL)
        return;
    struct rcpt_template *const templates[] = {
        account->fields.id,        account->fields.status,     account->fields.reason,
        account->fields.at,        account->fields.event_id,   account->fields.message_id,
        account->fields.channel,   account->fields.client_ref, account->fields.campaign_id,
        account->fields.part,      account->fields.parts,      account->fields.link,
        account->fields.recipient, account->fields.until,      account->fields.cost,
        account->fields.ip,        account->url_message_id,    account->url_campaign_id,
        account->inbound,          account->fields.words,      account->fields.feedback,
        account->fields.currency,  account->fields.org_id,
    };
    char *const texts[] = {account->name,      account->org_id,  account->public_url,
                           account->topic_arn, account->channel, account->verify_token,
                           account->auth_name};
    for (size_t index = 0; index < RCPT_COUNT_OF(templates); index++)
        rcpt_template_free(templates[index]);
    for (size_t index = 0; index < RCPT_COUNT_OF(texts); index++)
        free(texts[index]);
    for (size_t index = 0; index < account->own_text_count; index++)
        free(account->own_texts[index]);
    for (size_t index = 0; index < account->certificate_count; index++)
        free(account->certificates[index]);
    rcpt_zone_free(account->time_zone);
    free(account->certificates);
    free(account->own_texts);
    free(account->own_statuses);
    free(account->allow);
    free_secrets(account);
    free(account);
}

const char *rcpt_gateway_account_name(const struct rcpt_gateway_account *account)
{
    return account->name;
}

const char *rcpt_gateway_account_gateway(const struct rcpt_gateway_account *account)
{
    return account->gateway->name;
}

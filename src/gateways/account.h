/* An account as the adapters see it: its configuration checked, copied and compiled. */
#ifndef RECEIPTD_GATEWAYS_ACCOUNT_H
#define RECEIPTD_GATEWAYS_ACCOUNT_H

#include "gateway.h"
#include "receiptd/base/id_form.h"
#include "receiptd/base/network.h"

struct rcpt_gateway_account {
    char *name, *org_id, *public_url, *verify_token, *topic_arn, *channel, *auth_name;
    struct rcpt_zone *time_zone; /* NULL: unknown */
    enum rcpt_gateway_verify verify;
    enum rcpt_gateway_auth auth;
    const struct rcpt_scheme *scheme; /* what `auth` comes to */
    char **certificates;
    size_t certificate_count;
    enum rcpt_gateway_digest digest;
    bool plivo_v2, unsigned_ids;
    bool ranges; /* are of use */
    struct rcpt_text *secrets;
    size_t secret_count;
    struct rcpt_network *allow;
    size_t allow_count;
    int64_t max_age_us;
    enum rcpt_id_form id_forms[RCPT_ID_FORM__COUNT];
    size_t id_form_count;
    const struct rcpt_ladder *ladder;
    const struct rcpt_gateway *gateway;
    struct rcpt_gateway own; /* `gateway: custom` */
    char **own_texts;        /* what `own` points to */
    size_t own_text_count;
    struct rcpt_mapping *own_statuses;
    unsigned own_answer_code;
    struct {
        struct rcpt_template *id, *status, *reason, *words, *feedback, *at, *event_id, *message_id,
            *org_id, *campaign_id, *channel, *client_ref, *part, *parts, *link, *cost, *currency,
            *ip, *recipient, *until;
    } fields;
    struct rcpt_template *url_message_id, *url_campaign_id;
    struct rcpt_template *inbound; /* the gateway's */
};

/* "topic" or "intake account", for messages. */
const char *rcpt_account_kind(const struct rcpt_gateway_account_config *config);
/* False: the error says which key of the account is wrong, and why. */
bool rcpt_account_fail(struct rcpt_error *error, const struct rcpt_gateway_account_config *config,
                       const char *key, const char *problem);
/* Makes account->own of the configuration, for `gateway: custom`. False: the error names the
 * key. */
RCPT_MUST_CHECK bool rcpt_account_make_custom(struct rcpt_gateway_account *account,
                                              const struct rcpt_gateway_account_config *config,
                                              struct rcpt_error *error);
/* False: a template reads a part that the account's signature does not cover. */
RCPT_MUST_CHECK bool rcpt_account_check_coverage(const struct rcpt_gateway_account *account,
                                                 const struct rcpt_gateway_account_config *config,
                                                 struct rcpt_error *error);

#endif

/* `gateway: custom`: the account's description of its gateway takes the form of the adapters' ones.
 * Called by account.c. */
#include <stdlib.h>
#include <sysexits.h>

#include "account.h"

/* The account keeps the text until its end; descriptions point to it. */
static char *own_text(struct rcpt_gateway_account *account, const char *text)
{
    if (text == NULL)
        return NULL;
    size_t bytes = (account->own_text_count + 1) * sizeof(*account->own_texts);
    account->own_texts = rcpt_realloc(account->own_texts, bytes);
    account->own_texts[account->own_text_count] = rcpt_strdup(text);
    return account->own_texts[account->own_text_count++];
}

/* Statuses and flags must be in the ladder. */
static bool is_known(const struct rcpt_gateway_account *account, const char *name, bool flag)
{
    int index = rcpt_ladder_find_name(account->ladder, name, strlen(name), NULL, 0);
    return index >= 0 && rcpt_ladder_entry(account->ladder, (size_t)index)->is_flag == flag;
}

/* One row of `custom.statuses`. */
static bool make_mapping(struct rcpt_gateway_account *account, const struct rcpt_gateway_pair *pair,
                         struct rcpt_mapping *mapping)
{
    *mapping = (struct rcpt_mapping){.raw = own_text(account, pair->name)};
    if (strcmp(pair->value, "ignore") == 0)
        return true;
    char *status = own_text(account, pair->value);
    char *plus = strchr(status, '+');
    if (plus != NULL) {
        *plus = '\0';
        mapping->flag = plus + 1;
    }
    mapping->status = status;
    if (mapping->flag != NULL && !is_known(account, mapping->flag, true))
        return false;
    return is_known(account, status, false) || (plus == NULL && is_known(account, status, true));
}

/* Rows keep the order of the configuration: the first that fits is taken. */
static bool make_statuses(struct rcpt_gateway_account *account,
                          const struct rcpt_gateway_account_config *config,
                          struct rcpt_error *error)
{
    const struct rcpt_gateway_custom *custom = &config->custom;
    account->own_statuses = rcpt_calloc(custom->statuses_count + 1, sizeof(struct rcpt_mapping));
    for (unsigned index = 0; index < custom->statuses_count; index++) {
        const struct rcpt_gateway_pair *pair = &custom->statuses[index];
        if (make_mapping(account, pair, &account->own_statuses[index]))
            continue;
        rcpt_error_fatal(error, EX_CONFIG,
                         "%s %.249s: custom.statuses.%.100s: \"%.100s\" is not in the ladder",
                         rcpt_account_kind(config), config->name, pair->name, pair->value);
        rcpt_error_hint(error, "a status such as DELIVERED, a status and a flag such as "
                               "DELIVERED+COMPLAINED, or ignore");
        return false;
    }
    account->own.statuses = account->own_statuses;
    account->own.status_count = custom->statuses_count;
    return true;
}

/* `gateway: custom` becomes a description like those of the adapters, so the same code reads it. */
bool rcpt_account_make_custom(struct rcpt_gateway_account *account,
                              const struct rcpt_gateway_account_config *config,
                              struct rcpt_error *error)
{
    const struct rcpt_gateway_custom *custom = &config->custom;
    bool has_id = custom->id != NULL || custom->message_id != NULL ||
                  config->auth == RCPT_GATEWAY_AUTH_URL_HMAC;
    if (!has_id || custom->status == NULL)
        return rcpt_account_fail(error, config, "custom", "needs id (or message_id) and status");
    if (custom->org_id != NULL && config->org_id != NULL)
        return rcpt_account_fail(error, config, "custom.org_id",
                                 "stands beside org_id, the same for all receipts: leave one out");
    account->own = (struct rcpt_gateway){
        .name = "custom",
        .json_in = own_text(account, custom->json_in),
        .items = own_text(account, custom->items),
        .fields = {.id = own_text(account, custom->id),
                   .status = own_text(account, custom->status),
                   .reason = own_text(account, custom->reason),
                   .at = own_text(account, custom->at),
                   .event_id = own_text(account, custom->event_id),
                   .message_id = own_text(account, custom->message_id),
                   .org_id = own_text(account, custom->org_id),
                   .campaign_id = own_text(account, custom->campaign_id),
                   .channel = own_text(account, custom->channel),
                   .client_ref = own_text(account, custom->client_ref),
                   .part = own_text(account, custom->part),
                   .parts = own_text(account, custom->parts),
                   .ip = own_text(account, custom->ip),
                   .recipient = own_text(account, custom->recipient),
                   .until = own_text(account, custom->until),
                   .link = own_text(account, custom->link),
                   .cost = own_text(account, custom->cost),
                   .currency = own_text(account, custom->currency)},
        .time_format = custom->time_format,
        .answer_type = custom->answer != NULL && custom->answer_type == NULL
                           ? "text/plain"
                           : own_text(account, custom->answer_type),
        .answer = own_text(account, custom->answer),
    };
    account->own_answer_code = custom->answer_code;
    account->gateway = &account->own;
    return make_statuses(account, config, error);
}

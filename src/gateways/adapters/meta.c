/* WhatsApp's Cloud API, Messenger and Instagram (Meta): one app may give all of its products one
 * URL, so both adapters read the receipts of all. Receipts of WhatsApp lie in nested arrays, each
 * of which may hold several. `delivered` may never come when `read` does, and
 * biz_opaque_callback_data returns the sender's own data. Receipts of Messenger are read by
 * fb_messenger.c. Documentation:
 * developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/
 * messages/status developers.facebook.com/docs/graph-api/webhooks/reference */
#include "meta.h"

#include "../account.h"
#include "../crypto.h"
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"sent", NULL, "SENT", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},
    {"played", NULL, "OPENED", NULL},
    {"failed*", "131026", "BOUNCED_HARD", NULL},      /* not on WhatsApp */
    {"failed*", "131049", "BLOCKED", NULL},           /* cap of marketing messages per user */
    {"failed*", "130472", "BLOCKED", NULL},           /* the user is in an experiment */
    {"failed*", "131050", "BLOCKED", "UNSUBSCRIBED"}, /* the user wants no marketing messages */
    {"failed*", NULL, "FAILED", NULL},
    {"deleted", NULL, NULL, NULL},
    {"warning", NULL, NULL, NULL},
};

static const struct rcpt_reason reasons[] = {RCPT_WHATSAPP_REASONS};

/* The token is in a URL, so that no secret may take its place. */
static bool is_token(const struct rcpt_reading *reading, struct rcpt_text given)
{
    const char *token = reading->account->verify_token;
    return token != NULL && rcpt_same(rcpt_text_of(token), given);
}

/* Meta checks a URL before it uses it: the answer repeats its challenge. True: the request is
 * answered. */
static bool answer_challenge(struct rcpt_reading *reading)
{
    const struct rcpt_form *query = &reading->source.query;
    struct rcpt_text challenge = rcpt_form_get(query, RCPT_TEXT("hub.challenge"));
    if (!rcpt_text_is(reading->source.request->method, "GET") || challenge.at == NULL)
        return false;
    bool good = is_token(reading, rcpt_form_get(query, RCPT_TEXT("hub.verify_token"))) &&
                rcpt_text_is(rcpt_form_get(query, RCPT_TEXT("hub.mode")), "subscribe");
    reading->result->verdict = good ? RCPT_GATEWAY_VERIFIED : RCPT_GATEWAY_BAD;
    reading->result->verdict_reason = good ? "hub.verify_token"
                                      : reading->account->verify_token == NULL
                                          ? "verify_token is not configured"
                                          : "hub.verify_token is another";
    reading->result->answer = (struct rcpt_gateway_answer){.code = good ? 200 : 403};
    if (good) {
        reading->result->answer.content_type = "text/plain";
        reading->result->answer.body = challenge;
    }
    return true;
}

/* The code tells a missing account from a blocked message. */
static void add_code(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    if (rcpt_text_is(draft->status, "failed") && draft->reason.size > 0)
        draft->status =
            RCPT_TEXT_JOIN(reading->arena, draft->status, RCPT_TEXT("/"), draft->reason);
}

/* The channel is that of the receipt, unless the account names one. */
static void take_item(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    bool is_whatsapp = draft->status.size > 0;
    if (reading->account->channel == NULL)
        draft->channel = is_whatsapp ? RCPT_TEXT("whatsapp") : RCPT_TEXT("messenger");
    if (is_whatsapp)
        add_code(reading, draft);
    else
        rcpt_messenger_item(reading, draft);
}

/* Whether the `field` belongs to a change about the account, not about a message. */
static bool is_notice(struct rcpt_text field)
{
    static const char *const fields[] = {"account_*",
                                         "automatic_events",
                                         "business_*",
                                         "calls",
                                         "comments",
                                         "flows",
                                         "feed",
                                         "group_*",
                                         "history",
                                         "leadgen",
                                         "live_*",
                                         "mention*",
                                         "message_echoes",
                                         "partner_*",
                                         "payment_*",
                                         "phone_*",
                                         "ratings",
                                         "security",
                                         "smb_*",
                                         "story_insights",
                                         "template_*",
                                         "message_template*",
                                         "tracking_events",
                                         "user_preferences"};
    for (size_t index = 0; index < RCPT_COUNT_OF(fields); index++)
        if (rcpt_pattern_fits(field, fields[index]))
            return true;
    return false;
}

/* An element of `changes`: messages of persons, and errors of the account, stand where the
 * receipts do. */
const char *rcpt_meta_other(const struct rcpt_node *node)
{
    const struct rcpt_node *value = rcpt_node_get(node, "value");
    if (is_notice(rcpt_node_text_of(node, "field")))
        return "notice";
    if (rcpt_node_get(value, "messages") != NULL)
        return "inbound";
    return rcpt_node_get(value, "errors") != NULL ? "notice" : NULL;
}

#define ADAPTER(of_name, of_channel)                                                               \
    {                                                                                              \
        .name = (of_name), .channel = (of_channel),                                                \
        .items =                                                                                   \
            RCPT_META_STATUSES " /entry/*/messaging|standby/*", /* standby: another app answers */ \
            .fields = {.id = "/id",                                                                \
                       .status = "/status",                                                        \
                       .reason = "/errors/0/code,/errors/1/code",                                  \
                       .at = "/timestamp",                                                         \
                       .event_id = "{/id}:{/status}",                                              \
                       .client_ref = "/biz_opaque_callback_data"},                                 \
        .statuses = statuses, .status_count = RCPT_COUNT_OF(statuses), .reasons = reasons,         \
        .reason_count = RCPT_COUNT_OF(reasons), .verify = rcpt_verify_meta,                        \
        .challenge = answer_challenge, .other = rcpt_meta_other, .item = take_item,                \
    }

const struct rcpt_gateway rcpt_gateway_whatsapp_cloud = ADAPTER("whatsapp_cloud", "whatsapp");
const struct rcpt_gateway rcpt_gateway_fb_messenger = ADAPTER("fb_messenger", "messenger");

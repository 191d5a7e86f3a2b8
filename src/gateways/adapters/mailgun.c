/* Mailgun: one event as JSON, by some accounts without its wrapper; formerly a form with the user's
 * variables among the fields. `delivered` is never sent twice. The signature covers a timestamp and
 * a token, not the event. documentation.mailgun.com/docs/mailgun/user-manual/events/webhooks */
#include "../gateways.h"
#include "../mail.h"

/* Mailgun's word comes first, then its own codes (602 to 607), then the server's answer. "old"
 * means that Mailgun gave up after eight hours, "espblock" that the provider blocks the sender. */
#define FAILURE(word)                                                                              \
    {word, "suppress-*", "REJECTED", NULL}, {word, "605", "REJECTED", NULL},                       \
        {word, "606", "REJECTED", NULL}, {word, "607", "REJECTED", NULL},                          \
        {word, "old", "EXPIRED", NULL}, {word, "602", "EXPIRED", NULL},                            \
        {word, "espblock", "BLOCKED", NULL}, {word, "552", "BOUNCED_SOFT", NULL}, /* full */       \
        RCPT_MAIL_ROWS(word)

static const struct rcpt_mapping statuses[] = {
    {"accepted", NULL, "IN_GTW", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"opened", NULL, "OPENED", NULL},
    {"clicked", NULL, "CLICKED", NULL},
    {"rejected", NULL, "REJECTED", NULL},
    {"failed/temporary*", NULL, "DEFERRED", NULL},
    FAILURE("failed*"),
    {"failed/permanent*", NULL, "BOUNCED_HARD", NULL},
    {"failed", NULL, "FAILED", NULL},
    FAILURE("bounced"), /* of the old form, as is the next */
    {"bounced", NULL, "BOUNCED_HARD", NULL},
    FAILURE("dropped"),
    {"dropped", NULL, "REJECTED", NULL},
    {"complained", NULL, "DELIVERED", "COMPLAINED"},
    {"unsubscribed", NULL, "DELIVERED", "UNSUBSCRIBED"},
    {"stored", NULL, NULL, NULL},
};

static const struct rcpt_reason reasons[] = {
    {"suppress-bounce", RCPT_REASON_INVALID},
    {"suppress-*", RCPT_REASON_OPTED_OUT},
    {"espblock", RCPT_REASON_BLOCKED},
    {"old", RCPT_REASON_EXPIRED},
    {"602", RCPT_REASON_EXPIRED},
    {"605", RCPT_REASON_INVALID},
    {"606", RCPT_REASON_OPTED_OUT},
    {"607", RCPT_REASON_OPTED_OUT},
    {"552", RCPT_REASON_ABSENT},
    {"failed/permanent/suppress-bounce", RCPT_REASON_INVALID},
    {"failed/permanent/suppress-*", RCPT_REASON_OPTED_OUT},
};

/* The event, with or without its wrapper. */
static const struct rcpt_node *event_of(const struct rcpt_draft *draft)
{
    const struct rcpt_node *event = rcpt_node_get(draft->item, "event-data");
    return event != NULL ? event : draft->item;
}

/* "failed" alone does not tell a bounce from a delay: severity and reason join the status, for the
 * table above. */
static void compose_status(struct rcpt_reading *reading, struct rcpt_draft *draft,
                           const struct rcpt_node *event)
{
    struct rcpt_text severity = rcpt_node_text_of(event, "severity");
    struct rcpt_text reason = rcpt_node_text_of(event, "reason");
    if (!rcpt_text_is(draft->status, "failed") || severity.size == 0)
        return;
    draft->status = RCPT_TEXT_JOIN(reading->arena, draft->status, RCPT_TEXT("/"), severity);
    if (rcpt_text_begins(reason, "suppress-"))
        draft->status = RCPT_TEXT_JOIN(reading->arena, draft->status, RCPT_TEXT("/"), reason);
}

/* Message-Id comes in angle brackets at some events and without them at others. */
static void take_event(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_node *event = event_of(draft);
    if (draft->id.size > 1 && draft->id.at[0] == '<' && draft->id.at[draft->id.size - 1] == '>')
        draft->id = rcpt_text_part(draft->id, 1, draft->id.size - 2);
    compose_status(reading, draft, event);
    if (rcpt_node_text_of(rcpt_node_get(event, "client-info"), "bot").size == 0)
        return;
    draft->machine = rcpt_text_is(draft->status, "clicked") ? "BOT_CLICK" : "MACHINE_OPEN";
}

const struct rcpt_gateway rcpt_gateway_mailgun = {
    .name = "mailgun",
    .channel = "email",
    .inbound = "{sender,from}{body-plain,body-html,body-mime,stripped-text}",
    .fields = {.feedback = "/event-data/feedback-type,/event-data/feedback_type,feedback-type,"
                           "feedback_type",
               .link = "/event-data/url,url",
               .ip = "/event-data/ip,ip",
               .id = "/event-data/message/headers/message-id,/message/headers/message-id,"
                     "Message-Id,message-id",
               .status = "/event-data/event,event",
               .reason = "/event-data/delivery-status/code,/event-data/reason,"
                         "/delivery-status/code,/reason,code,error,reason",
               .words = "/event-data/delivery-status/enhanced-code,"
                        "/event-data/delivery-status/message,"
                        "/event-data/delivery-status/description,"
                        "/delivery-status/enhanced-code,/delivery-status/message,"
                        "/delivery-status/description,description,notification",
               .at = "/event-data/timestamp,timestamp",
               .event_id = "/signature/token,token,/event-data/id,/id",
               .message_id = "/event-data/user-variables/message_id,/user-variables/message_id,"
                             "message_id",
               .campaign_id = "/event-data/user-variables/campaign_id,"
                              "/user-variables/campaign_id,campaign_id"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_mailgun,
    .item = take_event,
};

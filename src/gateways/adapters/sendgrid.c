/* SendGrid Event Webhook: a JSON array, up to 768 KB. Events come more than once and in any order;
 * sg_event_id tells them apart. A bounce after delivery has no sg_message_id, so that only a custom
 * argument of our own (message_id) finds the message. docs.sendgrid.com, "Event Webhook Reference"
 */
#include "../gateways.h"
#include "../mail.h"

static const struct rcpt_mapping statuses[] = {
    {"processed", NULL, "IN_GTW", NULL},
    {"dropped", NULL, "REJECTED", NULL},
    {"deferred", NULL, "DEFERRED", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"bounce/expired", NULL, "EXPIRED",
     NULL}, /* the type, then the classification, then the code */
    {"bounce/blocked", NULL, "BLOCKED", NULL},
    {"bounce*", "Invalid*", "BOUNCED_HARD", NULL},
    {"bounce*", "Reputation", "BLOCKED", NULL},
    {"bounce*", "Content", "BLOCKED", NULL},
    {"bounce*", "Frequency*", "BLOCKED", NULL},
    {"bounce*", "Mailbox Unavailable", "BOUNCED_SOFT", NULL},
    {"bounce*", "Technical", "BOUNCED_SOFT", NULL},
    RCPT_MAIL_ROWS("bounce*"),
    {"bounce*", NULL, "BOUNCED_HARD", NULL},
    {"blocked", NULL, "BLOCKED", NULL},
    {"expired", NULL, "EXPIRED", NULL},
    {"open", NULL, "OPENED", NULL},
    {"click", NULL, "CLICKED", NULL},
    {"spamreport", NULL, "DELIVERED", "COMPLAINED"},
    {"unsubscribe", NULL, "DELIVERED", "UNSUBSCRIBED"},
    {"group_unsubscribe", NULL, "DELIVERED", "UNSUBSCRIBED"},
    {"group_resubscribe", NULL, "DELIVERED", "RESUBSCRIBED"},
    {"account_status_change", NULL, NULL, NULL},
};

static const struct rcpt_reason reasons[] = {
    {"expired", RCPT_REASON_EXPIRED}, /* the type of a bounce */
    {"Bounced*", RCPT_REASON_INVALID},
    {"Invalid Address", RCPT_REASON_INVALID},
    {"Invalid", RCPT_REASON_INVALID},
    {"Unsubscribed*", RCPT_REASON_OPTED_OUT},
    {"Spam Reporting*", RCPT_REASON_OPTED_OUT},
    {"Spam Content", RCPT_REASON_SPAM},
    {"Recipient List over Package Quota", RCPT_REASON_CREDIT},
    {"Mailbox Unavailable", RCPT_REASON_ABSENT},
    {"Technical", RCPT_REASON_NETWORK},
    {"Content", RCPT_REASON_CONTENT},
    {"Reputation", RCPT_REASON_SPAM},
    {"Frequency*", RCPT_REASON_BLOCKED},
};

/* X-Message-Id of the send, behind which SendGrid puts where the message went through. */
static struct rcpt_text message_part(struct rcpt_text id)
{
    for (size_t at = 0; at < id.size; at++) {
        struct rcpt_text rest = rcpt_text_part(id, at, id.size);
        if (id.at[at] == '.' &&
            (rcpt_text_begins(rest, ".filter") || rcpt_text_begins(rest, ".recvd")))
            return rcpt_text_part(id, 0, at);
    }
    return id;
}

/* Prefetching mail programs open everything: SendGrid marks their opens. */
static void take_event(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_text type = rcpt_node_text_of(draft->item, "type");
    draft->id = message_part(draft->id);
    if (rcpt_text_is(draft->status, "bounce") && type.size > 0)
        draft->status = RCPT_TEXT_JOIN(reading->arena, draft->status, RCPT_TEXT("/"), type);
    if (rcpt_text_is(draft->status, "open") &&
        rcpt_node_is_true(rcpt_node_get(draft->item, "sg_machine_open")))
        draft->machine = "MACHINE_OPEN";
}

const struct rcpt_gateway rcpt_gateway_sendgrid = {
    .name = "sendgrid",
    .channel = "email",
    .items = "/*",
    .inbound = "{from}{to}{headers,text,html,email}",
    .fields = {.link = "/url",
               .ip = "/ip",
               .id = "/sg_message_id",
               .status = "/event",
               .reason = "/status,/bounce_classification,/reason",
               .words = "/type",
               .at = "/timestamp",
               .event_id = "/sg_event_id",
               .message_id = "/message_id",
               .campaign_id = "/campaign_id,/marketing_campaign_id"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_sendgrid,
    .item = take_event,
};

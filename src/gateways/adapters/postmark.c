/* Postmark: one event as JSON; times with seven digits. Signs nothing: basic auth in the URL, a
 * header, or its addresses. At 403 it stops forever, so wrong credentials get 401.
 * postmarkapp.com/developer/webhooks/webhooks-overview */
#include "../gateways.h"
#include "../mail.h"

static const struct rcpt_mapping statuses[] = {
    {"Delivery", NULL, "DELIVERED", NULL},
    {"Open", NULL, "OPENED", NULL},
    {"Click", NULL, "CLICKED", NULL},
    {"SpamComplaint", NULL, "DELIVERED", "COMPLAINED"},
    {"SMTPApiError", NULL, "REJECTED", NULL},
    {"Bounce/HardBounce", NULL, "BOUNCED_HARD", NULL},
    {"Bounce/SoftBounce", NULL, "BOUNCED_SOFT", NULL},
    {"Bounce/Unsubscribe", NULL, "DELIVERED", "UNSUBSCRIBED"},
    RCPT_MAIL_ROWS("Bounce/Un*"), /* Postmark could not tell: the server's answer may */
    {"Bounce/UndeterminedBounce", NULL, "BOUNCED_SOFT", NULL},
    {"Bounce/Unknown", NULL, "BOUNCED_SOFT", NULL},
    {"Bounce/OpenRelayTest", NULL, NULL, NULL}, /* about no message of ours, as is the next */
    {"Bounce/InboundError", NULL, NULL, NULL},
    {"Bounce/Transient", NULL, "DEFERRED", NULL},
    {"Bounce/DnsError", NULL, "DEFERRED", NULL},
    {"Bounce/BadEmailAddress", NULL, "REJECTED", NULL},
    {"Bounce/ManuallyDeactivated", NULL, "REJECTED", NULL},
    {"Bounce/Blocked", NULL, "BLOCKED", NULL},
    {"Bounce/DMARCPolicy", NULL, "BLOCKED", NULL},
    {"Bounce/SpamNotification", NULL, "BLOCKED", NULL},
    {"Bounce/VirusNotification", NULL, "BLOCKED", NULL},
    {"Bounce/AutoResponder", NULL, "DELIVERED", "AUTORESPONDED"},
    {"Bounce/AddressChange", NULL, "DELIVERED", "AUTORESPONDED"},
    {"Bounce/ChallengeVerification", NULL, "DELIVERED", "AUTORESPONDED"},
    {"Bounce/SMTPApiError", NULL, "REJECTED", NULL},
    {"Bounce/TemplateRenderingFailed", NULL, "REJECTED", NULL},
    {"Bounce/SpamComplaint", NULL, "DELIVERED", "COMPLAINED"},
    {"Bounce/Subscribe", NULL, "DELIVERED", "RESUBSCRIBED"},
    {"Inbound", NULL, NULL, NULL},
};

/* Says why sending to the address was stopped, or that it is allowed again. */
static void take_change(struct rcpt_draft *draft)
{
    struct rcpt_text why = rcpt_node_text_of(draft->item, "SuppressionReason");
    bool stopped = rcpt_node_is_true(rcpt_node_get(draft->item, "SuppressSending"));
    draft->mapped = (struct rcpt_mapping){.raw = "*", .status = "DELIVERED"};
    if (!stopped)
        draft->mapped.flag = "RESUBSCRIBED";
    else if (rcpt_text_is(why, "HardBounce"))
        draft->mapped.status = "BOUNCED_HARD";
    else
        draft->mapped.flag = rcpt_text_is(why, "SpamComplaint") ? "COMPLAINED" : "UNSUBSCRIBED";
}

static void take_record(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_text type = rcpt_node_text_of(draft->item, "Type");
    if (rcpt_text_is(draft->status, "SubscriptionChange"))
        take_change(draft);
    else if (rcpt_text_is(draft->status, "Bounce") && type.size > 0)
        draft->status = RCPT_TEXT_JOIN(reading->arena, draft->status, RCPT_TEXT("/"), type);
}

const struct rcpt_gateway rcpt_gateway_postmark = {
    .name = "postmark",
    .channel = "email",
    .inbound = "/FromFull/Email",
    .fields = {.feedback = "/FeedbackType,/Feedback-Type,/Content",
               .link = "/OriginalLink",
               .ip = "/Geo/IP",
               .id = "/MessageID",
               .status = "/RecordType",
               .reason = "/TypeCode,/SuppressionReason",
               .words = "/Details,/Description",
               .at = "/DeliveredAt,/BouncedAt,/ReceivedAt,/ChangedAt",
               .event_id = "/ID",
               .message_id = "/Metadata/message_id",
               .campaign_id = "/Metadata/campaign_id"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .refused_code = 401,
    .item = take_record,
};

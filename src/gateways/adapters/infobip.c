/* Infobip, all channels: up to 100 reports as JSON. The status's name counts, not its group:
 * DELIVERED_TO_OPERATOR is in the group DELIVERED, but a report of the handset follows. Seen
 * reports are webhooks of their own. So are reports of opens and clicks in e-mails, each of which
 * comes alone. The time of the status is doneAt; a report on its way has only sentAt.
 * Documentation: infobip.com/docs/api, …/docs/email/email-over-api/tracking-notifications */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"PENDING_ENROUTE", NULL, "SENT", NULL},
    {"PENDING_WAITING_DELIVERY", NULL, "SENT", NULL},
    {"PENDING*", NULL, "IN_GTW", NULL},
    {"DELIVERED_TO_OPERATOR", NULL, "SENT", NULL},
    {"DELIVERED*", NULL, "DELIVERED", NULL},
    {"UNDELIVERABLE*", NULL, "FAILED", NULL},
    {"EXPIRED_DLR_UNKNOWN", NULL, "UNKNOWN", NULL}, /* the operator's receipt never came */
    {"EXPIRED*", NULL, "EXPIRED", NULL},
    {"REJECTED*", NULL, "REJECTED", NULL},
    {"CANCELED*", NULL, "SKIPPED", NULL}, /* by the sender */
    {"CANCELLED*", NULL, "SKIPPED", NULL},
    {"SEEN", NULL, "OPENED", NULL},
    {"OPENED", NULL, "OPENED", NULL}, /* from here on: of e-mails */
    {"CLICKED", NULL, "CLICKED", NULL},
    {"COMPLAINED", NULL, "DELIVERED", "COMPLAINED"},
    {"UNSUBSCRIBED", NULL, "DELIVERED", "UNSUBSCRIBED"},
};

static const struct rcpt_reason reasons[] = {
    {"EC_ABSENT_SUBSCRIBER*", RCPT_REASON_ABSENT},
    {"EC_UNKNOWN_SUBSCRIBER", RCPT_REASON_INVALID},
    {"EC_UNIDENTIFIED_SUBSCRIBER", RCPT_REASON_INVALID},
    {"EC_ILLEGAL_SUBSCRIBER", RCPT_REASON_BLOCKED},
    {"EC_CALL_BARRED", RCPT_REASON_BLOCKED},
    {"EC_SUBSCRIBER_BUSY*", RCPT_REASON_ABSENT},
    {"EC_MESSAGE_WAITING_LIST_FULL", RCPT_REASON_ABSENT},
    {"EC_SYSTEM_FAILURE", RCPT_REASON_NETWORK},
    {"UNDELIVERABLE_REJECTED_OPERATOR", RCPT_REASON_BLOCKED},
    {"UNDELIVERABLE_DND", RCPT_REASON_OPTED_OUT},
    {"REJECTED_NOT_ENOUGH_CREDITS", RCPT_REASON_CREDIT},
    {"REJECTED_PREPAID_*", RCPT_REASON_CREDIT},
    {"REJECTED_SOURCE", RCPT_REASON_SENDER},
    {"REJECTED_DND", RCPT_REASON_OPTED_OUT},
    {"REJECTED_FLOODING_FILTER", RCPT_REASON_SPAM},
    {"REJECTED_NETWORK", RCPT_REASON_NETWORK},
    {"REJECTED_SYSTEM_ERROR", RCPT_REASON_NETWORK},
    {"REJECTED_PREFIX_MISSING", RCPT_REASON_INVALID},
    {"REJECTED_INVALID_DESTINATION", RCPT_REASON_INVALID},
    {"REJECTED_MESSAGE_TOO_LONG", RCPT_REASON_CONTENT},
    {"REJECTED_INVALID_UDH", RCPT_REASON_CONTENT},
    {"REJECTED_DESTINATION", RCPT_REASON_BLOCKED},
};

static bool ends_in(struct rcpt_text text, const char *end)
{
    size_t size = strlen(end);
    return text.size >= size && rcpt_text_is(rcpt_text_part(text, text.size - size, size), end);
}

/* UNDELIVERABLE covers a missing number as well as a refusal by the operator. */
static void refine_undeliverable(struct rcpt_draft *draft)
{
    const struct rcpt_node *error = rcpt_node_get(draft->item, "error");
    bool permanent = rcpt_node_is_true(rcpt_node_get(error, "permanent"));
    if (!rcpt_text_begins(draft->status, "UNDELIVERABLE"))
        return;
    if (ends_in(draft->status, "_DND") || ends_in(draft->status, "_REJECTED_OPERATOR"))
        draft->mapped = (struct rcpt_mapping){.raw = "*", .status = "BLOCKED"};
    else if (permanent && (ends_in(draft->reason, "UNKNOWN_SUBSCRIBER") ||
                           ends_in(draft->reason, "UNIDENTIFIED_SUBSCRIBER")))
        draft->mapped = (struct rcpt_mapping){.raw = "*", .status = "BOUNCED_HARD"};
}

/* An open or click of a recipient. The report has the time at which the e-mail was sent, but not
 * the time of the click. */
static void take_tracking(struct rcpt_draft *draft)
{
    struct rcpt_text type = rcpt_node_text_of(draft->item, "notificationType");
    if (type.size == 0)
        return;
    draft->status = type;
    if (draft->channel.size == 0)
        draft->channel = RCPT_TEXT("email");
}

/* A seen report has no status, only a time. */
static void take_report(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_text seen = rcpt_node_text_of(draft->item, "seenAt");
    if (draft->status.size == 0 && seen.size > 0) {
        draft->status = RCPT_TEXT("SEEN");
        draft->at = seen;
    }
    if (draft->item == reading->source.root) /* not in `results` */
        take_tracking(draft);
    if (rcpt_text_is(draft->reason, "NO_ERROR"))
        draft->reason.size = 0;
    /* "WHATSAPP": the ladder's channels are written small. */
    char *channel = rcpt_text_terminated(reading->arena, draft->channel);
    for (size_t index = 0; index < draft->channel.size; index++)
        if (channel[index] >= 'A' && channel[index] <= 'Z')
            channel[index] = (char)(channel[index] | 0x20);
    draft->channel.at = channel;
    refine_undeliverable(draft);
}

const struct rcpt_gateway rcpt_gateway_infobip = {
    .name = "infobip",
    .items = "/results/* /",
    .inbound = "/receivedAt",
    .fields = {.cost = "/price/pricePerMessage",
               .currency = "/price/currency",
               .link = "/url",
               .id = "/messageId",
               .status = "/status/name,/status/groupName",
               .reason = "/error/name,/error/id",
               .at = "/doneAt,/sentAt",
               .event_id = "{/messageId}:{/status/id}",
               .channel = "/channel",
               .client_ref = "/callbackData"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .item = take_report,
};

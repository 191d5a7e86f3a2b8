/* Amazon SES: events as JSON through SNS, EventBridge, Lambda or Firehose (aws.c). One messageId
 * stands for all recipients, so the address is part of our id. Opens and clicks name no recipient,
 * and can be attributed only if there is one. Documentation:
 * docs.aws.amazon.com/ses/latest/dg/event-publishing-retrieving-sns-contents.html */
#include "../gateways.h"
#include "../mail.h"
#include "aws.h"
#include "receiptd/core/record.h"

static const struct rcpt_mapping statuses[] = {
    {"Send", NULL, "IN_GTW", NULL},
    {"Reject", NULL, "REJECTED", NULL},
    {"Rendering Failure", NULL, "REJECTED", NULL},
    {"DeliveryDelay", NULL, "DEFERRED", NULL},
    {"Delivery", NULL, "DELIVERED", NULL},
    {"Bounce/Permanent", "Suppressed", "REJECTED", NULL}, /* never sent: a list forbids it */
    {"Bounce/Permanent", "OnAccountSuppressionList", "REJECTED", NULL},
    {"Bounce/Permanent", "UnsubscribedRecipient", "REJECTED", NULL},
    {"Bounce/Permanent", "NoEmail", "BOUNCED_HARD", NULL},
    {"Bounce*", "CustomTimeoutExceeded", "EXPIRED", NULL},
    {"Bounce*", "MailboxFull", "BOUNCED_SOFT", NULL},
    {"Bounce*", "MessageTooLarge", "BOUNCED_SOFT", NULL},
    RCPT_MAIL_ROWS("Bounce*"), /* of the diagnostic code */
    {"Bounce/Permanent", NULL, "BOUNCED_HARD", NULL},
    {"Bounce/Undetermined", "5.1.*", "BOUNCED_HARD", NULL},
    {"Bounce/Undetermined", "5.2.1", "BOUNCED_HARD", NULL},
    {"Bounce*", NULL, "BOUNCED_SOFT", NULL},
    {"Open", NULL, "OPENED", NULL},
    {"Click", NULL, "CLICKED", NULL},
    {"Complaint", "OnAccountSuppressionList", "REJECTED", NULL},
    {"Complaint", NULL, "DELIVERED", "COMPLAINED"},
    {"Subscription", "unsubscribed", "DELIVERED", "UNSUBSCRIBED"},
    {"Subscription", NULL, NULL, NULL},
    {"Received", NULL, NULL, NULL},                       /* a mail that came in */
    {"AmazonSnsSubscriptionSucceeded", NULL, NULL, NULL}, /* a notice after set-up */
};

static const struct rcpt_reason reasons[] = {
    {"NoEmail", RCPT_REASON_INVALID},
    {"Suppressed", RCPT_REASON_INVALID},
    {"OnAccountSuppressionList", RCPT_REASON_INVALID},
    {"UnsubscribedRecipient", RCPT_REASON_OPTED_OUT},
    {"MailboxFull", RCPT_REASON_ABSENT},
    {"MessageTooLarge", RCPT_REASON_CONTENT},
    {"ContentRejected", RCPT_REASON_CONTENT},
    {"AttachmentRejected", RCPT_REASON_CONTENT},
    {"Bad content", RCPT_REASON_CONTENT},
    {"Rendering Failure", RCPT_REASON_CONTENT},
    {"CustomTimeoutExceeded", RCPT_REASON_EXPIRED},
};

/* Where the recipients of each type stand. */
static const struct {
    const char *type, *object, *recipients; /* NULL: all of the mail's */
    bool whole;                             /* holds for all of them */
} types[] = {
    {"Send", "send", NULL, true},
    {"Reject", "reject", NULL, true},
    {"Rendering Failure", "failure", NULL, true},
    {"DeliveryDelay", "deliveryDelay", "delayedRecipients", false},
    {"Delivery", "delivery", "recipients", false},
    {"Bounce", "bounce", "bouncedRecipients", false},
    {"Complaint", "complaint", "complainedRecipients", false},
    {"Open", "open", NULL, false},
    {"Click", "click", NULL, false},
    {"Subscription", "subscription", NULL, false},
};

/* One event per recipient; the drafts differ in the id, and in what the recipient's server said. */
static void add_recipients(struct rcpt_reading *reading, const struct rcpt_draft *draft,
                           const struct rcpt_node *recipients)
{
    for (const struct rcpt_node *node = recipients->first; node != NULL; node = node->next) {
        struct rcpt_draft one = *draft;
        struct rcpt_text address = node->type == RCPT_NODE_OBJECT
                                       ? rcpt_node_text_of(node, "emailAddress")
                                       : rcpt_node_text(node);
        if (draft->id.size > 0 && draft->id.size <= RCPT_RECORD_MAX_ID_BYTES && address.size > 0)
            one.id = RCPT_TEXT_JOIN(reading->arena, draft->id, RCPT_TEXT("|"), address);
        else if (address.size == 0)
            one.id.size = 0;
        rcpt_draft_say(&one, rcpt_node_text_of(node, "diagnosticCode"));
        rcpt_draft_say(&one, rcpt_node_text_of(node, "status"));
        rcpt_reading_add(reading, &one);
    }
}

/* The type's own object has time and reason, under names that differ. */
static void take_details(struct rcpt_reading *reading, struct rcpt_draft *draft,
                         const struct rcpt_node *object)
{
    static const char *const fields[] = {"bounceSubType", "complaintSubType", "delayType",
                                         "reason"};
    struct rcpt_text bounce = rcpt_node_text_of(object, "bounceType");
    for (size_t index = 0; index < RCPT_COUNT_OF(fields) && draft->reason.size == 0; index++)
        draft->reason = rcpt_node_text_of(object, fields[index]);
    draft->at = rcpt_node_text_of(object, "timestamp");
    if (rcpt_text_is(draft->status, "Send") || rcpt_text_is(draft->status, "Reject"))
        draft->at = rcpt_node_text_of(rcpt_node_get(draft->item, "mail"), "timestamp");
    if (bounce.size > 0)
        draft->status = RCPT_TEXT_JOIN(reading->arena, draft->status, RCPT_TEXT("/"), bounce);
    if (rcpt_node_is_true(
            rcpt_node_get(rcpt_node_get(object, "newTopicPreferences"), "unsubscribeAll")))
        draft->reason = RCPT_TEXT("unsubscribed");
}

/* An event of several recipients that does not say whose it is belongs to no message. */
static void take_event(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_node *mail = rcpt_node_get(draft->item, "mail");
    const struct rcpt_node *all = rcpt_node_get(mail, "destination"), *recipients = NULL;
    size_t index = 0;
    while (index < RCPT_COUNT_OF(types) && !rcpt_text_is(draft->status, types[index].type))
        index++;
    if (index == RCPT_COUNT_OF(types))
        return; /* unmapped, or no event of SES */
    const struct rcpt_node *object = rcpt_node_get(draft->item, types[index].object);
    take_details(reading, draft, object);
    if (types[index].recipients != NULL)
        recipients = rcpt_node_get(object, types[index].recipients);
    bool one = all != NULL && all->first != NULL && all->first->next == NULL;
    if (recipients == NULL && (types[index].whole || one))
        recipients = all;
    if (recipients == NULL || recipients->type != RCPT_NODE_ARRAY || recipients->first == NULL) {
        rcpt_draft_reject(reading, draft, "recipient_unknown");
        return;
    }
    add_recipients(reading, draft, recipients);
    draft->done = true;
}

const struct rcpt_gateway rcpt_gateway_ses_sns = {
    .name = "ses_sns",
    .channel = "email",
    .inbound = "/receipt/timestamp",
    .fields = {.feedback = "/complaint/complaintFeedbackType",
               .link = "/click/link",
               .ip = "/open/ipAddress,/click/ipAddress",
               .id = "/mail/messageId",
               .status = "/eventType,/notificationType",
               .event_id = "/bounce/feedbackId,/complaint/feedbackId,@x-amz-sns-message-id",
               .message_id = "/mail/tags/message_id/0",
               .campaign_id = "/mail/tags/campaign_id/0"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_sns,
    .open = rcpt_aws_open,
    .item = take_event,
};

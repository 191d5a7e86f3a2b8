/* AWS End User Messaging SMS (Pinpoint SMS v2): one event as JSON through SNS or EventBridge, bare,
 * or several in the records of Firehose (aws.c). `context` carries what the sender put in.
 * docs.aws.amazon.com/sms-voice/latest/userguide/configuration-sets-event-types.html
 */
#include "../gateways.h"
#include "aws.h"

/* TEXT_ and MEDIA_ (MMS) have the same words, which stand here without the prefix. */
static const struct rcpt_mapping statuses[] = {
    {"QUEUED", NULL, "IN_GTW", NULL},
    {"PENDING", NULL, "SENT", NULL},
    {"SENT", NULL, "SENT", NULL},
    {"SUCCESSFUL", NULL, "DELIVERED", NULL}, /* interchangeable with DELIVERED, by country */
    {"DELIVERED", NULL, "DELIVERED", NULL},
    {"READ", NULL, "OPENED", NULL},
    {"BLOCKED", NULL, "BLOCKED", NULL},
    {"CARRIER_BLOCKED", NULL, "BLOCKED", NULL},
    {"SPAM", NULL, "BLOCKED", NULL},
    {"CARRIER_UNREACHABLE", "final", "FAILED", NULL},
    {"CARRIER_UNREACHABLE", NULL, "DEFERRED", NULL},
    {"UNREACHABLE", "final", "FAILED", NULL},
    {"UNREACHABLE", NULL, "DEFERRED", NULL},
    {"INVALID", NULL, "BOUNCED_HARD", NULL},
    {"INVALID_MESSAGE", NULL, "REJECTED", NULL},
    {"PROTECT_BLOCKED", NULL, "REJECTED", NULL},
    {"FILE_INACCESSIBLE", NULL, "REJECTED", NULL}, /* these three of MMS alone */
    {"FILE_TYPE_UNSUPPORTED", NULL, "REJECTED", NULL},
    {"FILE_SIZE_EXCEEDED", NULL, "REJECTED", NULL},
    {"TTL_EXPIRED", NULL, "EXPIRED", NULL},
    {"UNKNOWN", NULL, "UNKNOWN", NULL}, /* AWS gave up after 72 h */
};

static const struct rcpt_reason reasons[] = {
    {"TEXT_SPAM", RCPT_REASON_SPAM},
    {"TEXT_UNREACHABLE", RCPT_REASON_ABSENT},
    {"TEXT_CARRIER_UNREACHABLE", RCPT_REASON_NETWORK},
    {"TEXT_INVALID_MESSAGE", RCPT_REASON_CONTENT},
    {"TEXT_PROTECT_BLOCKED", RCPT_REASON_BLOCKED},
    {"MEDIA_SPAM", RCPT_REASON_SPAM},
    {"MEDIA_UNREACHABLE", RCPT_REASON_ABSENT},
    {"MEDIA_CARRIER_UNREACHABLE", RCPT_REASON_NETWORK},
    {"MEDIA_INVALID_MESSAGE", RCPT_REASON_CONTENT},
    {"MEDIA_PROTECT_BLOCKED", RCPT_REASON_BLOCKED},
    {"MEDIA_FILE_*", RCPT_REASON_CONTENT},
};

/* Rows with a code count for final events only. */
static const struct rcpt_mapping *find(struct rcpt_text word, bool final)
{
    for (size_t index = 0; index < RCPT_COUNT_OF(statuses); index++)
        if (rcpt_text_is(word, statuses[index].raw) && (statuses[index].code == NULL || final))
            return &statuses[index];
    return NULL;
}

static void take_event(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    static const char *const prefixes[] = {"TEXT_", "MEDIA_", "RCS_"};
    bool final = rcpt_node_is_true(rcpt_node_get(draft->item, "isFinal"));
    for (size_t index = 0; index < RCPT_COUNT_OF(prefixes); index++) {
        size_t size = strlen(prefixes[index]);
        if (!rcpt_text_begins(draft->status, prefixes[index]))
            continue;
        const struct rcpt_mapping *found =
            find(rcpt_text_part(draft->status, size, draft->status.size), final);
        if (found != NULL)
            draft->mapped = *found;
    }
    (void)reading;
}

const struct rcpt_gateway rcpt_gateway_aws_eum_sms = {
    .name = "aws_eum_sms",
    .channel = "sms",
    .inbound = "{originationNumber}{messageBody}",
    .fields = {.id = "/messageId",
               .status = "/eventType",
               .at = "/eventTimestamp",
               .reason = "/messageStatus",
               .message_id = "/context/message_id",
               .campaign_id = "/context/campaign_id"},
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_sns,
    .open = rcpt_aws_open,
    .item = take_event,
};

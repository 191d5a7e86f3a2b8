/* MessageBird, Bird SMS: GET with one receipt; only for messages that were given a reference.
 * docs.bird.com/connectivity-platform, "Receiving delivery reports" */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"scheduled", NULL, "IN_GTW", NULL},
    {"sent", NULL, "SENT", NULL},
    {"buffered", NULL, "DEFERRED", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"expired", NULL, "EXPIRED", NULL},
    {"delivery_failed", "103", "BLOCKED", "UNSUBSCRIBED"},       /* the recipient has sent STOP */
    {"delivery_failed", "1", "BOUNCED_HARD", NULL},              /* unknown subscriber */
    {"delivery_failed", "5", "BOUNCED_HARD", NULL},              /* unidentified subscriber */
    {"delivery_failed", "opted out", "BLOCKED", "UNSUBSCRIBED"}, /* statusReason, from here on */
    {"delivery_failed", "unknown subscriber", "BOUNCED_HARD", NULL},
    {"delivery_failed", "incorrect number", "BOUNCED_HARD", NULL},
    {"delivery_failed", "carrier rejected", "BLOCKED", NULL},
    {"delivery_failed", "expired", "EXPIRED", NULL},
    {"delivery_failed", "insufficient balance", "REJECTED", NULL},
    {"delivery_failed", "DLR not received", "UNKNOWN", NULL},
    {"delivery_failed", NULL, "FAILED", NULL},
};

static const struct rcpt_reason reasons[] = {
    {"1", RCPT_REASON_INVALID},
    {"5", RCPT_REASON_INVALID},
    {"6", RCPT_REASON_ABSENT},
    {"9", RCPT_REASON_BLOCKED},
    {"11", RCPT_REASON_BLOCKED},
    {"12", RCPT_REASON_BLOCKED},
    {"13", RCPT_REASON_BLOCKED},
    {"27", RCPT_REASON_ABSENT},
    {"31", RCPT_REASON_ABSENT},
    {"33", RCPT_REASON_ABSENT},
    {"34", RCPT_REASON_NETWORK},
    {"103", RCPT_REASON_OPTED_OUT},
    {"opted out", RCPT_REASON_OPTED_OUT},
    {"unknown subscriber", RCPT_REASON_INVALID},
    {"incorrect number", RCPT_REASON_INVALID},
    {"unavailable subscriber", RCPT_REASON_ABSENT},
    {"carrier rejected", RCPT_REASON_BLOCKED},
    {"expired", RCPT_REASON_EXPIRED},
    {"insufficient balance", RCPT_REASON_CREDIT},
    {"received network error", RCPT_REASON_NETWORK},
    {"capacity limit reached", RCPT_REASON_NETWORK},
};

const struct rcpt_gateway rcpt_gateway_messagebird = {
    .name = "messagebird",
    .channel = "sms",
    .inbound = "{originator}{body,payload}",
    .fields = {.cost = "price[amount]",
               .currency = "price[currency]",
               .id = "id",
               .status = "status",
               .reason = "statusErrorCode",
               .words = "statusReason",
               .at = "statusDatetime",
               .client_ref = "reference"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_messagebird,
};

/* MessageBird, Bird SMS: GET with one receipt; only for messages that were given a reference.
 * docs.bird.com/connectivity-platform, "Receiving delivery reports" */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"scheduled", NULL, "IN_GTW", NULL},
    {"sent", NULL, "SENT", NULL},
    {"buffered", NULL, "DEFERRED", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"expired", NULL, "EXPIRED", NULL},
    {"delivery_failed", "103", "BLOCKED", "UNSUBSCRIBED"}, /* the recipient has sent STOP */
    {"delivery_failed", "1", "BOUNCED_HARD", NULL},        /* unknown subscriber */
    {"delivery_failed", "5", "BOUNCED_HARD", NULL},        /* unidentified subscriber */
    {"delivery_failed", NULL, "FAILED", NULL},
};

static const struct rcpt_reason reasons[] = {
    {"1", RCPT_REASON_INVALID},  {"5", RCPT_REASON_INVALID},  {"6", RCPT_REASON_ABSENT},
    {"9", RCPT_REASON_BLOCKED},  {"11", RCPT_REASON_BLOCKED}, {"12", RCPT_REASON_BLOCKED},
    {"13", RCPT_REASON_BLOCKED}, {"27", RCPT_REASON_ABSENT},  {"31", RCPT_REASON_ABSENT},
    {"33", RCPT_REASON_ABSENT},  {"34", RCPT_REASON_NETWORK}, {"103", RCPT_REASON_OPTED_OUT},
};

const struct rcpt_gateway rcpt_gateway_messagebird = {
    .name = "messagebird",
    .channel = "sms",
    .inbound = "{originator}{body,payload}",
    .fields = {.cost = "price[amount]",
               .id = "id",
               .status = "status",
               .reason = "statusErrorCode",
               .at = "statusDatetime",
               .client_ref = "reference"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_messagebird,
};

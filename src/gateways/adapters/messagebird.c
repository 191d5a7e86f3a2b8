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

const struct rcpt_gateway rcpt_gateway_messagebird = {
    .name = "messagebird",
    .channel = "sms",
    .fields = {.cost = "price[amount]",
               .id = "id",
               .status = "status",
               .reason = "statusErrorCode",
               .at = "statusDatetime",
               .client_ref = "reference"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .verify = rcpt_verify_messagebird,
};

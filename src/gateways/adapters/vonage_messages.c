/* Vonage Messages API, all channels: one receipt as JSON. `rejected` covers several outcomes,
 * which its code tells apart.
 * developer.vonage.com/en/messages/concepts/sms-status-callbacks */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"submitted", NULL, "SENT", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},
    {"rejected", "1360", "EXPIRED", NULL}, /* these two of SMS: expired, and unknown */
    {"rejected", "1330", "UNKNOWN", NULL},
    {"rejected", NULL, "REJECTED", NULL},
    {"undeliverable", NULL, "FAILED", NULL},
};

const struct rcpt_gateway rcpt_gateway_vonage_messages = {
    .name = "vonage_messages",
    .inbound = "/message_type",
    .fields = {.cost = "/usage/price",
               .id = "/message_uuid",
               .status = "/status",
               .reason = "/error/title,/error/code,/error/type",
               .at = "/timestamp",
               .event_id = "{/message_uuid}:{/status}",
               .channel = "/channel,/to/type",
               .client_ref = "/client_ref"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .verify = rcpt_verify_vonage_messages,
};

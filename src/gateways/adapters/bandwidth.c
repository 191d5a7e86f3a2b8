/* Bandwidth, messaging: a JSON array that may hold several receipts. Basic auth.
 * dev.bandwidth.com/docs/messaging/webhooks */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"message-sending", NULL, "SENT", NULL},  {"message-delivered", NULL, "DELIVERED", NULL},
    {"message-failed", NULL, "FAILED", NULL}, {"message-read", NULL, "OPENED", NULL},
    {"message-received", NULL, NULL, NULL},
};

const struct rcpt_gateway rcpt_gateway_bandwidth = {
    .name = "bandwidth",
    .channel = "sms",
    .items = "/*",
    .fields = {.id = "/message/id",
               .status = "/type",
               .at = "/time",
               .reason = "/errorCode",
               .client_ref = "/message/tag"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
};

/* MSG91: v2 is a form whose parameter `data` holds requests with reports, v3 one flat JSON, and a
 * template of the customer's with other names came later. A request goes to many numbers, so the
 * number is part of the id. Times are Indian ones.
 * msg91.com/help/webhooks, msg91.com/help/webhook-new */
#include "../gateways.h"

/* "Failed" stands for all of them where the reason has a word of its own. */
#define FAILURE(word)                                                                              \
    {word, "NDNC*", "BLOCKED", NULL}, {word, "DND*", "BLOCKED", NULL},                             \
        {word, "Blocked*", "BLOCKED", NULL}, {word, "REJECTED*", "REJECTED", NULL},                \
        {word, "EXPIRED*", "EXPIRED", NULL},                                                       \
    {                                                                                              \
        word, "Invalid*", "BOUNCED_HARD", NULL                                                     \
    }

static const struct rcpt_mapping statuses[] = {
    {"1", NULL, "DELIVERED", NULL},
    FAILURE("2"),
    {"2", NULL, "FAILED", NULL},
    {"9", NULL, "BLOCKED", NULL}, /* NDNC: the number wants no promotion */
    {"16", NULL, "REJECTED", NULL},
    {"25", NULL, "REJECTED", NULL},
    {"17", NULL, "BLOCKED", NULL},
    {"DELIVERED", NULL, "DELIVERED", NULL},
    FAILURE("FAILED"),
    {"FAILED", NULL, "FAILED", NULL},
    {"REJECTED*", NULL, "REJECTED", NULL},
    {"Submitted", NULL, "SENT", NULL},
    {"Sent*", NULL, "SENT", NULL},
    {"Pending", NULL, "SENT", NULL},
    {"NDNC", NULL, "BLOCKED", NULL},
    {"Blocked*", NULL, "BLOCKED", NULL},
    {"Auto*", NULL, "REJECTED", NULL}, /* "Auto failed": failed too often to be sent */
};

const struct rcpt_gateway rcpt_gateway_msg91 = {
    .name = "msg91",
    .channel = "sms",
    .json_in = "data",
    .items = "/*/report/* /",
    .inbound = "{mobile,sender}{message,content}",
    .fields = {.id = "{../requestId,requestId}|{number,telNum}",
               .status = "status,desc",
               .reason = "failedReason,failureReason,desc",
               .at = "date,deliveryTime",
               .client_ref = "../campaignName,campaignName"},
    .time_zone = "+05:30",
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
};

/* Bandwidth, messaging: a JSON array that may hold several receipts. Basic auth. The code's first
 * two digits say who refused: 40 to 44 Bandwidth itself, 47 the carrier; 5… is a failure of
 * service. dev.bandwidth.com/docs/messaging/webhooks, …/errors */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"message-sending", NULL, "SENT", NULL},
    {"message-delivered", NULL, "DELIVERED", NULL},
    {"message-read", NULL, "OPENED", NULL},
    {"message-received", NULL, NULL, NULL},
    {"message-failed", "4360", "EXPIRED", NULL}, /* before it was sent */
    {"message-failed", "40*", "REJECTED", NULL},
    {"message-failed", "41*", "REJECTED", NULL},
    {"message-failed", "43*", "REJECTED", NULL},
    {"message-failed", "44*", "REJECTED", NULL},
    {"message-failed", "472*", "BOUNCED_HARD", NULL}, /* no such number, or deactivated */
    {"message-failed", "4750", "BLOCKED", NULL},      /* the carrier's, without a reason */
    {"message-failed", "4775", "BLOCKED", "UNSUBSCRIBED"},
    {"message-failed", "477*", "BLOCKED", NULL}, /* spam, campaign, blocked sender */
    {"message-failed", "478*", "BLOCKED", NULL}, /* volume */
    {"message-failed", "479*", "BLOCKED", NULL}, /* short code, unverified number */
    {"message-failed", "9902", "UNKNOWN", NULL}, /* no receipt of the carrier's came */
    {"message-failed", NULL, "FAILED", NULL},
};

static const struct rcpt_reason reasons[] = {
    {"4360", RCPT_REASON_EXPIRED}, {"472*", RCPT_REASON_INVALID}, {"4775", RCPT_REASON_OPTED_OUT},
    {"4770", RCPT_REASON_SPAM},    {"477*", RCPT_REASON_SPAM},    {"4795", RCPT_REASON_SENDER},
    {"479*", RCPT_REASON_SENDER},  {"478*", RCPT_REASON_BLOCKED}, {"4750", RCPT_REASON_BLOCKED},
    {"5*", RCPT_REASON_NETWORK},
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
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
};

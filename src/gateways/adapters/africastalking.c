/* Africa's Talking, SMS: a form with one receipt. Signs nothing, sends no time.
 * developers.africastalking.com/docs/sms/notifications */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"Success", NULL, "DELIVERED", NULL},
    {"Sent", NULL, "SENT", NULL},
    {"Submitted", NULL, "SENT", NULL},
    {"Buffered", NULL, "DEFERRED", NULL},
    {"*", "UserDoesNotExist", "BOUNCED_HARD", NULL},
    {"*", "UserInBlackList", "BLOCKED", NULL},
    {"*", "DoNotDisturb*", "BLOCKED", NULL},
    {"Rejected", NULL, "REJECTED", NULL},
    {"Failed", NULL, "FAILED", NULL},
    {"Expired", NULL, "EXPIRED", NULL},
    {"AbsentSubscriber", NULL, "FAILED", NULL},
};

static const struct rcpt_reason reasons[] = {
    {"InsufficientCredit", RCPT_REASON_CREDIT},  {"UserDoesNotExist", RCPT_REASON_INVALID},
    {"NotNetworkSub*", RCPT_REASON_INVALID},     {"UserInBlackList", RCPT_REASON_OPTED_OUT},
    {"DoNotDisturb*", RCPT_REASON_OPTED_OUT},    {"UserIsInactive", RCPT_REASON_ABSENT},
    {"AbsentSubscriber", RCPT_REASON_ABSENT},    {"UserAccountSuspended", RCPT_REASON_BLOCKED},
    {"UserNotSubscribed*", RCPT_REASON_BLOCKED}, {"InvalidLinkId", RCPT_REASON_CONTENT},
};

const struct rcpt_gateway rcpt_gateway_africastalking = {
    .name = "africastalking",
    .channel = "sms",
    .inbound = "{from}{text}",
    .fields = {.id = "id", .status = "status", .reason = "failureReason"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
};

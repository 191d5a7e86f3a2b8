/* Vonage (Nexmo) SMS API: GET, form or JSON with one receipt; each part of a long message has an id
 * of its own. `scts` has no zone, `message-timestamp` is UTC.
 * Nexmo/nexmo-developer, "Delivery receipts" */
#include "../gateways.h"

/* 50 to 54: Indian DLT. */
#define FAILURE(word)                                                                              \
    {word, "3", "BOUNCED_HARD", NULL},     /* absent for good */                                   \
        {word, "9", "BOUNCED_HARD", NULL}, /* no such number */                                    \
        {word, "6", "BLOCKED", NULL},      /* anti-spam */                                         \
        {word, "14", "BLOCKED", NULL},     /* the carrier's */                                     \
        {word, "50", "BLOCKED", NULL}, {word, "51", "BLOCKED", NULL},                              \
        {word, "52", "BLOCKED", NULL}, {word, "53", "BLOCKED", NULL},                              \
    {                                                                                              \
        word, "54", "BLOCKED", NULL                                                                \
    }

static const struct rcpt_mapping statuses[] = {
    {"accepted", NULL, "SENT", NULL},
    {"buffered", NULL, "DEFERRED", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"expired", NULL, "EXPIRED", NULL},
    FAILURE("failed"),
    {"failed", NULL, "FAILED", NULL},
    FAILURE("rejected"),
    {"rejected", NULL, "REJECTED", NULL},
    FAILURE("unknown"),
    {"unknown", NULL, "UNKNOWN", NULL},
};

static const struct rcpt_reason reasons[] = {
    {"2", RCPT_REASON_ABSENT},   {"3", RCPT_REASON_ABSENT},   {"4", RCPT_REASON_BLOCKED},
    {"5", RCPT_REASON_NETWORK},  {"6", RCPT_REASON_SPAM},     {"7", RCPT_REASON_ABSENT},
    {"8", RCPT_REASON_NETWORK},  {"9", RCPT_REASON_INVALID},  {"10", RCPT_REASON_CONTENT},
    {"11", RCPT_REASON_NETWORK}, {"12", RCPT_REASON_ABSENT},  {"13", RCPT_REASON_BLOCKED},
    {"14", RCPT_REASON_BLOCKED}, {"15", RCPT_REASON_CREDIT},  {"50", RCPT_REASON_SENDER},
    {"51", RCPT_REASON_SENDER},  {"52", RCPT_REASON_CONTENT}, {"53", RCPT_REASON_OPTED_OUT},
    {"54", RCPT_REASON_BLOCKED},
};

const struct rcpt_gateway rcpt_gateway_vonage_sms = {
    .name = "vonage_sms",
    .channel = "sms",
    .inbound = "{msisdn}{text,data,type}",
    .fields = {.cost = "price",
               .id = "messageId,message-id",
               .status = "status",
               .reason = "err-code",
               .at = "message-timestamp",
               .event_id = "{messageId,message-id}:{status}",
               .client_ref = "client-ref"},
    .time_zone = "Z",
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_vonage_sms,
};

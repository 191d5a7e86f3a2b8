/* Vonage (Nexmo) SMS API: GET, form or JSON with one receipt; each part of a long message has an id
 * of its own. `scts` has no zone, `message-timestamp` is UTC.
 * Nexmo/nexmo-developer, "Delivery receipts" */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"accepted", NULL, "SENT", NULL},
    {"buffered", NULL, "DEFERRED", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"expired", NULL, "EXPIRED", NULL},
    {"failed", "3", "BOUNCED_HARD", NULL}, /* absent for good */
    {"failed", "9", "BOUNCED_HARD", NULL}, /* no such number */
    {"failed", "6", "BLOCKED", NULL},      /* anti-spam */
    {"failed", "14", "BLOCKED", NULL},     /* the carrier's */
    {"failed", NULL, "FAILED", NULL},
    {"rejected", "50", "BLOCKED", NULL}, /* 50 to 54: Indian DLT */
    {"rejected", "51", "BLOCKED", NULL},
    {"rejected", "52", "BLOCKED", NULL},
    {"rejected", "53", "BLOCKED", NULL},
    {"rejected", "54", "BLOCKED", NULL},
    {"rejected", "6", "BLOCKED", NULL}, /* as with failed */
    {"rejected", "14", "BLOCKED", NULL},
    {"rejected", NULL, "REJECTED", NULL},
    {"unknown", NULL, "UNKNOWN", NULL},
};

/* Inbound messages come to the same URL; they have no status. */
static void skip_inbound(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    if (draft->status.size == 0 && rcpt_reading_value(reading, "type").size > 0)
        rcpt_draft_ignore(reading, draft, "inbound");
}

const struct rcpt_gateway rcpt_gateway_vonage_sms = {
    .name = "vonage_sms",
    .channel = "sms",
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
    .verify = rcpt_verify_vonage_sms,
    .item = skip_inbound,
};

/* Vonage Messages API, all channels: one receipt as JSON. `rejected` covers several outcomes,
 * which its code tells apart.
 * developer.vonage.com/en/messages/concepts/sms-status-callbacks */
#include "../gateways.h"

#define FAILURE(word)                                                                              \
    {word, "1360", "EXPIRED", NULL},                                                               \
        {word, "1330", "UNKNOWN", NULL},      /* the operator's receipt never came */              \
        {word, "1190", "BOUNCED_HARD", NULL}, /* absent for good */                                \
        {word, "1240", "BOUNCED_HARD", NULL}, /* no such number */                                 \
        {word, "1370", "BOUNCED_HARD", NULL}, /* deregistered */                                   \
        {word, "1050", "BLOCKED", NULL},      /* barred */                                         \
        {word, "1210", "BLOCKED", NULL},      /* anti-spam */                                      \
    {                                                                                              \
        word, "1280", "BLOCKED", NULL                                                              \
    } /* by the carrier */

static const struct rcpt_mapping statuses[] = {
    {"submitted", NULL, "SENT", NULL},       {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},          FAILURE("rejected"),
    {"rejected", NULL, "REJECTED", NULL},    FAILURE("undeliverable"),
    {"undeliverable", NULL, "FAILED", NULL},
};

static const struct rcpt_reason reasons[] = {
    {"1050", RCPT_REASON_BLOCKED}, {"1060", RCPT_REASON_SENDER},  {"1070", RCPT_REASON_CREDIT},
    {"1120", RCPT_REASON_SENDER},  {"1180", RCPT_REASON_ABSENT},  {"1190", RCPT_REASON_ABSENT},
    {"1200", RCPT_REASON_NETWORK}, {"1210", RCPT_REASON_SPAM},    {"1220", RCPT_REASON_ABSENT},
    {"1230", RCPT_REASON_NETWORK}, {"1240", RCPT_REASON_INVALID}, {"1250", RCPT_REASON_NETWORK},
    {"1260", RCPT_REASON_ABSENT},  {"1270", RCPT_REASON_BLOCKED}, {"1280", RCPT_REASON_BLOCKED},
    {"1290", RCPT_REASON_CREDIT},  {"1360", RCPT_REASON_EXPIRED}, {"1370", RCPT_REASON_INVALID},
};

/* `title` is the code, or a text whose code stands at the end of `type`:
 * ".../api-errors/messages#1260" */
static void find_code(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_text type = rcpt_node_text_of(rcpt_node_get(draft->item, "error"), "type");
    size_t mark = rcpt_text_find(type, "#");
    struct rcpt_text code = rcpt_text_part(type, mark + 1, type.size);
    (void)reading;
    if (mark >= type.size || !rcpt_text_is_digits(code))
        return;
    rcpt_draft_say(draft, code);
    if (!rcpt_text_is_digits(draft->reason))
        draft->reason = code;
}

const struct rcpt_gateway rcpt_gateway_vonage_messages = {
    .name = "vonage_messages",
    .inbound = "/message_type",
    .fields = {.cost = "/usage/price",
               .currency = "/usage/currency",
               .id = "/message_uuid",
               .status = "/status",
               .reason = "/error/title,/error/code,/error/type",
               .at = "/timestamp",
               .event_id = "{/message_uuid}:{/status}",
               .channel = "/channel,/to/type",
               .client_ref = "/client_ref"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_vonage_messages,
    .item = find_code,
};

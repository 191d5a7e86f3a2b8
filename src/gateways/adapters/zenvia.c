/* Zenvia: one event as JSON, with an id of its own.
 * zenvia/zenvia-openapi-spec, "Webhooks" */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"SENT", NULL, "SENT", NULL},          {"DELIVERED", NULL, "DELIVERED", NULL},
    {"READ", NULL, "OPENED", NULL},        {"CLICKED", NULL, "CLICKED", NULL},
    {"REJECTED", NULL, "REJECTED", NULL},  {"NOT_DELIVERED", NULL, "FAILED", NULL},
    {"VERIFIED", NULL, "DELIVERED", NULL}, /* the device also knows the sender */
    {"DELETED", NULL, NULL, NULL},
};

/* Inbound messages come to the same URL; they are not receipts. */
static void skip_inbound(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_text type = rcpt_node_text_of(draft->item, "type");
    if (rcpt_text_is(type, "MESSAGE"))
        rcpt_draft_ignore(reading, draft, "inbound");
}

const struct rcpt_gateway rcpt_gateway_zenvia = {
    .name = "zenvia",
    .fields = {.id = "/messageId",
               .status = "/messageStatus/code",
               .reason = "/messageStatus/causes/0/channelErrorCode,"
                         "/messageStatus/causes/0/reason",
               .at = "/messageStatus/timestamp,/timestamp",
               .event_id = "/id",
               .channel = "/channel"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .item = skip_inbound,
};

/* Gupshup WhatsApp, message-event v2: one receipt as JSON. `id` changes its meaning on the way,
 * `gsId` does not. Wants an empty 2xx. docs.gupshup.io */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"enqueued", NULL, "IN_GTW", NULL},
    {"sent", NULL, "SENT", NULL},
    {"failed", "1002", "FAILED", NULL}, /* not on WhatsApp; below 2000: Gupshup's codes */
    {"failed", "1012", "REJECTED", "UNSUBSCRIBED"},
    {"failed", "100*", "REJECTED", NULL},       /* balance, template, no opt-in: never sent */
    {"failed", "101*", "REJECTED", NULL},       /* media */
    {"failed", "131026", "BOUNCED_HARD", NULL}, /* WhatsApp's, as in whatsapp_cloud.c */
    {"failed", "131049", "BLOCKED", NULL},
    {"failed", "130472", "BLOCKED", NULL},
    {"failed", "131050", "BLOCKED", "UNSUBSCRIBED"},
    {"failed", NULL, "FAILED", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},
    {"deleted", NULL, NULL, NULL},
};

/* Other types of event come to the same URL. */
static void take_event(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    if (!rcpt_text_is(rcpt_node_text_of(draft->item, "type"), "message-event")) {
        rcpt_draft_ignore(reading, draft, "no_receipt");
        return;
    }
    if (draft->at.size > 0)
        return;
    /* The envelope says when it was pushed: good for the second, as `ts` is. */
    draft->at = rcpt_node_text_of(draft->item, "timestamp");
    draft->whole_seconds = true;
}

const struct rcpt_gateway rcpt_gateway_gupshup_whatsapp = {
    .name = "gupshup_whatsapp",
    .channel = "whatsapp",
    .fields = {.id = "/payload/gsId,/payload/id",
               .status = "/payload/type",
               .reason = "/payload/payload/code",
               .at = "/payload/payload/ts"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .item = take_event,
};

/* Gupshup WhatsApp. Version 2: one message-event as JSON; `id` changes its meaning on the way,
 * `gsId` does not. Version 3 is Meta's form with `gs_id`. Wants an empty 2xx. docs.gupshup.io */
#include "../gateways.h"
#include "meta.h"

static const struct rcpt_mapping statuses[] = {
    {"enqueued", NULL, "IN_GTW", NULL},
    {"sent", NULL, "SENT", NULL},
    {"failed", "1002", "FAILED", NULL}, /* not on WhatsApp; below 2000: Gupshup's codes */
    {"failed", "1012", "REJECTED", "UNSUBSCRIBED"},
    {"failed", "100*", "REJECTED", NULL},       /* balance, template, no opt-in: never sent */
    {"failed", "101*", "REJECTED", NULL},       /* media */
    {"failed", "131026", "BOUNCED_HARD", NULL}, /* WhatsApp's, as in meta.c */
    {"failed", "131049", "BLOCKED", NULL},
    {"failed", "130472", "BLOCKED", NULL},
    {"failed", "131050", "BLOCKED", "UNSUBSCRIBED"},
    {"failed", NULL, "FAILED", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},
    {"deleted", NULL, NULL, NULL},
};

/* Those below 2000 are Gupshup's. */
static const struct rcpt_reason reasons[] = {RCPT_WHATSAPP_REASONS,
                                             {"1002", RCPT_REASON_INVALID},
                                             {"1003", RCPT_REASON_CREDIT},
                                             {"1012", RCPT_REASON_OPTED_OUT},
                                             {"101*", RCPT_REASON_CONTENT}};

/* Other types of event come to the same URL: `message` is a person's. */
static void take_event(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    static const char *const others[] = {"user-event", "system-event", "billing-event",
                                         "template-event", "account-event"};
    struct rcpt_text type = rcpt_node_text_of(draft->item, "type");
    bool is_v3 = rcpt_node_get(draft->item, "payload") == NULL;
    if (rcpt_text_is(type, "message"))
        rcpt_draft_ignore(reading, draft, "inbound");
    for (size_t index = 0; index < RCPT_COUNT_OF(others); index++)
        if (rcpt_text_is(type, others[index]))
            rcpt_draft_ignore(reading, draft, "notice");
    if (draft->at.size > 0 || draft->done)
        return;
    /* The envelope says when it was pushed: good for the second, as `ts` is. */
    draft->at = rcpt_node_text_of(draft->item, "timestamp");
    draft->whole_seconds = !is_v3;
}

const struct rcpt_gateway rcpt_gateway_gupshup_whatsapp = {
    .name = "gupshup_whatsapp",
    .channel = "whatsapp",
    .items = RCPT_META_STATUSES " /",
    .fields = {.id = "/payload/gsId,/payload/id,/gs_id,/id",
               .status = "/payload/type,/status",
               .reason = "/payload/payload/code,/errors/0/code",
               .at = "/payload/payload/ts"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .other = rcpt_meta_other,
    .item = take_event,
};

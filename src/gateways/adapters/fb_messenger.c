/* Facebook Messenger and Instagram (Meta). A receipt may name messages (`mids`), or only a
 * watermark: everything that was sent to the sender of the receipt up to it. The core resolves such
 * a range. Instagram's `read` names its message.
 * developers.facebook.com/docs/messenger-platform/reference/webhook-events/message-deliveries */
#include "gateways/gateways.h"
#include "meta.h"

/* One event per message that the receipt names. */
static void take_mids(struct rcpt_reading *reading, struct rcpt_draft *draft,
                      const struct rcpt_node *mids)
{
    for (const struct rcpt_node *mid = mids->first; mid != NULL; mid = mid->next) {
        struct rcpt_draft one = *draft;
        one.id = rcpt_node_text(mid);
        rcpt_reading_add(reading, &one);
    }
    draft->done = true;
}

/* Everything up to the watermark; the person read it, or got it, when the receipt was made. */
static void take_range(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    draft->recipient = rcpt_node_text_of(rcpt_node_get(draft->item, "sender"), "id");
    draft->until = draft->at;
    if (draft->recipient.size == 0 || draft->until.size == 0)
        rcpt_draft_ignore(reading, draft, "range_receipt");
    struct rcpt_text made = rcpt_node_text_of(draft->item, "timestamp");
    draft->at = made.size > 0 ? made : draft->until;
}

/* Messages that are named count alone, also where there is a watermark beside them. */
static void take_messaging(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_node *delivery = rcpt_node_get(draft->item, "delivery");
    const struct rcpt_node *read = rcpt_node_get(draft->item, "read");
    const struct rcpt_node *receipt = delivery != NULL ? delivery : read;
    const struct rcpt_node *mids = rcpt_node_get(delivery, "mids");
    if (receipt == NULL) {
        rcpt_draft_ignore(reading, draft, "inbound");
        return;
    }
    draft->status = delivery != NULL ? RCPT_TEXT("delivery") : RCPT_TEXT("read");
    draft->mapped = (struct rcpt_mapping){.raw = draft->status.at,
                                          .status = delivery != NULL ? "DELIVERED" : "OPENED"};
    draft->at = rcpt_node_text_of(receipt, "watermark");
    if (draft->at.size == 0)
        draft->at = rcpt_node_text_of(draft->item, "timestamp");
    draft->id = rcpt_node_text_of(read, "mid");
    if (mids != NULL && mids->type == RCPT_NODE_ARRAY && mids->first != NULL)
        take_mids(reading, draft, mids);
    else if (draft->id.size == 0)
        take_range(reading, draft);
}

const struct rcpt_gateway rcpt_gateway_fb_messenger = {
    .name = "fb_messenger",
    .channel = "messenger",
    .items = "/entry/*/messaging/* /entry/*/standby/*", /* standby: another app answers */
    .verify = rcpt_verify_meta,
    .challenge = rcpt_meta_challenge,
    .item = take_messaging,
};

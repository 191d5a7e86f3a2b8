/* Facebook Messenger and Instagram (Meta). A receipt may name messages (`mids`), or only a
 * watermark: then it means all messages to its sender up to that time. The core resolves such a
 * range. Instagram's `read` names its message. meta.c has the adapter's description.
 * developers.facebook.com/docs/messenger-platform/reference/webhook-events/message-deliveries */
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

/* Whether only the watermark tells which messages are meant. */
static bool is_watermark(const struct rcpt_node *receipt)
{
    for (const struct rcpt_node *member = receipt->first; member != NULL; member = member->next)
        if (!rcpt_text_is(member->key, "watermark") && !rcpt_text_is(member->key, "seq") &&
            !rcpt_node_is_bare(member))
            return false;
    return true;
}

/* Everything up to the watermark; the person read it, or got it, when the receipt was made. */
static void take_range(struct rcpt_reading *reading, struct rcpt_draft *draft,
                       const struct rcpt_node *receipt)
{
    draft->recipient = rcpt_node_text_of(rcpt_node_get(draft->item, "sender"), "id");
    draft->until = rcpt_node_text_of(receipt, "watermark");
    if (draft->recipient.size == 0 || draft->until.size == 0 || !is_watermark(receipt)) {
        rcpt_draft_set_aside(reading, draft);
        return;
    }
    struct rcpt_text made = rcpt_node_text_of(draft->item, "timestamp");
    draft->at = made.size > 0 ? made : draft->until;
}

/* A message of a person's, or one of the events around it. */
static bool is_inbound(const struct rcpt_node *item)
{
    static const char *const names[] = {"message",
                                        "postback",
                                        "reaction",
                                        "referral",
                                        "optin",
                                        "account_linking",
                                        "message_edit",
                                        "policy_enforcement",
                                        "app_roles",
                                        "game_play",
                                        "pass_thread_control",
                                        "take_thread_control",
                                        "request_thread_control",
                                        "response_feedback",
                                        "messaging_feedback"};
    for (size_t index = 0; index < RCPT_COUNT_OF(names); index++)
        if (rcpt_node_get(item, names[index]) != NULL)
            return true;
    return false;
}

/* If messages are named, only they count, even beside a watermark. An item that is neither a
 * receipt nor a message has no status. */
void rcpt_messenger_item(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_node *delivery = rcpt_node_get(draft->item, "delivery");
    const struct rcpt_node *read = rcpt_node_get(draft->item, "read");
    const struct rcpt_node *receipt = delivery != NULL ? delivery : read;
    const struct rcpt_node *mids = rcpt_node_get(delivery, "mids");
    if (receipt == NULL) {
        draft->id.size = 0;
        if (is_inbound(draft->item))
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
        take_range(reading, draft, receipt);
}

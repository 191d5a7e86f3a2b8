/* SparkPost (Bird email): a JSON array of events, each wrapped in msys.KIND. `[{"msys":{}}]` is a
 * try of the URL. What a bounce means is in its class. out_of_band is a bounce after delivery.
 * docs.bird.com/api/email-api/webhooks; SparkPost/support-docs, bounce classes */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"injection", NULL, "IN_GTW", NULL},
    {"delay", NULL, "DEFERRED", NULL},
    {"delivery", NULL, "DELIVERED", NULL},
    {"bounce/10", NULL, "BOUNCED_HARD", NULL}, /* invalid recipient */
    {"bounce/30", NULL, "BOUNCED_HARD", NULL},
    {"bounce/90", NULL, "BOUNCED_HARD", NULL},
    {"bounce/25", NULL, "BLOCKED", NULL},
    {"bounce/5*", NULL, "BLOCKED", NULL}, /* 50 to 54: spam, mail block */
    {"bounce/80", NULL, "DELIVERED", "UNSUBSCRIBED"},
    {"bounce*", NULL, "BOUNCED_SOFT", NULL}, /* 1, 20 to 24, 40, 60, 70, 100 */
    {"out_of_band", NULL, "BOUNCED_HARD", NULL},
    {"policy_rejection", NULL, "REJECTED", NULL},
    {"generation_failure", NULL, "REJECTED", NULL},
    {"generation_rejection", NULL, "REJECTED", NULL},
    {"open", NULL, "OPENED", NULL},
    {"initial_open", NULL, "OPENED", NULL},
    {"amp_open", NULL, "OPENED", NULL},
    {"amp_initial_open", NULL, "OPENED", NULL},
    {"click", NULL, "CLICKED", NULL},
    {"amp_click", NULL, "CLICKED", NULL},
    {"spam_complaint", NULL, "DELIVERED", "COMPLAINED"},
    {"list_unsubscribe", NULL, "DELIVERED", "UNSUBSCRIBED"},
    {"link_unsubscribe", NULL, "DELIVERED", "UNSUBSCRIBED"},
    {"relay_*", NULL, NULL, NULL},
    {"ab_test_*", NULL, NULL, NULL},
};

static const struct rcpt_reason reasons[] = {
    {"bounce/10", RCPT_REASON_INVALID},
    {"bounce/21", RCPT_REASON_NETWORK},
    {"bounce/22", RCPT_REASON_ABSENT},
    {"bounce/23", RCPT_REASON_CONTENT},
    {"bounce/24", RCPT_REASON_NETWORK},
    {"bounce/25", RCPT_REASON_BLOCKED},
    {"bounce/30", RCPT_REASON_INVALID},
    {"bounce/50", RCPT_REASON_BLOCKED},
    {"bounce/51", RCPT_REASON_SPAM},
    {"bounce/52", RCPT_REASON_SPAM},
    {"bounce/53", RCPT_REASON_CONTENT},
    {"bounce/54", RCPT_REASON_BLOCKED},
    {"bounce/70", RCPT_REASON_NETWORK},
    {"bounce/90", RCPT_REASON_OPTED_OUT},
    {"policy_rejection", RCPT_REASON_BLOCKED},
    {"generation_failure", RCPT_REASON_CONTENT},
    {"generation_rejection", RCPT_REASON_BLOCKED},
};

/* The class joins the status of a bounce. Prefetched opens are marked, whatever their type. */
static void take_event(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_text class = rcpt_node_text_of(draft->item, "bounce_class");
    const struct rcpt_node *agent = rcpt_node_get(draft->item, "user_agent_parsed");
    if (rcpt_text_is(draft->item->key, "relay_message")) {
        rcpt_draft_ignore(reading, draft, "inbound");
        return;
    }
    if (rcpt_node_is_true(rcpt_node_get(agent, "is_prefetched")))
        draft->machine = rcpt_text_find(draft->status, "click") < draft->status.size
                             ? "BOT_CLICK"
                             : "MACHINE_OPEN";
    if (rcpt_text_is(draft->status, "bounce") && class.size > 0)
        draft->status = RCPT_TEXT_JOIN(reading->arena, draft->status, RCPT_TEXT("/"), class);
}

const struct rcpt_gateway rcpt_gateway_sparkpost = {
    .name = "sparkpost",
    .channel = "email",
    .items = "/*/msys/@",
    .fields = {.link = "/target_link_url",
               .ip = "/ip_address",
               .id = "{/transmission_id}|{/rcpt_to}",
               .status = "/type",
               .reason = "/error_code,/bounce_class",
               .at = "/timestamp",
               .event_id = "/event_id",
               .message_id = "/rcpt_meta/message_id",
               .campaign_id = "/rcpt_meta/campaign_id,/campaign_id"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .item = take_event,
};

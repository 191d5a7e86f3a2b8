/* SparkPost (Bird email): a JSON array of events, each wrapped in msys.KIND. `[{"msys":{}}]` is a
 * try of the URL. The class of a bounce has its meaning. The event out_of_band is a bounce after
 * delivery. docs.bird.com/api/email-api/webhooks
 * support.sparkpost.com/docs/deliverability/bounce-classification-codes */
#include "../gateways.h"

/* By the published table: its category, and what the name says where the category is Admin. */
#define CLASS(word, class, status)                                                                 \
    {                                                                                              \
        word, class, status, NULL                                                                  \
    }
#define BOUNCE(word)                                                                               \
    CLASS(word, "10", "BOUNCED_HARD"), CLASS(word, "30", "BOUNCED_HARD"),                          \
        CLASS(word, "90", "BOUNCED_HARD"), CLASS(word, "25", "BLOCKED"),                           \
        CLASS(word, "26", "REJECTED"), CLASS(word, "50", "BLOCKED"), CLASS(word, "51", "BLOCKED"), \
        CLASS(word, "52", "BLOCKED"), CLASS(word, "53", "BLOCKED"), CLASS(word, "54", "BLOCKED"),  \
        CLASS(word, "1", "BOUNCED_SOFT"), CLASS(word, "20", "BOUNCED_SOFT"),                       \
        CLASS(word, "21", "BOUNCED_SOFT"), CLASS(word, "22", "BOUNCED_SOFT"),                      \
        CLASS(word, "23", "BOUNCED_SOFT"), CLASS(word, "24", "BOUNCED_SOFT"),                      \
        CLASS(word, "40", "BOUNCED_SOFT"), CLASS(word, "60", "BOUNCED_SOFT"),                      \
        CLASS(word, "70", "BOUNCED_SOFT"), CLASS(word, "100", "BOUNCED_SOFT"),                     \
    {                                                                                              \
        word, "80", "DELIVERED", "RESUBSCRIBED"                                                    \
    } /* an answer that asks to subscribe */

static const struct rcpt_mapping statuses[] = {
    {"injection", NULL, "IN_GTW", NULL},
    {"delay", NULL, "DEFERRED", NULL},
    {"delivery", NULL, "DELIVERED", NULL},
    BOUNCE("bounce*"),
    {"bounce*", NULL, "BOUNCED_SOFT", NULL},
    BOUNCE("out_of_band"),
    {"out_of_band", NULL, "BOUNCED_HARD",
     NULL}, /* no class: the server took it, and sent it back */
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
    {"10", RCPT_REASON_INVALID},
    {"21", RCPT_REASON_NETWORK},
    {"22", RCPT_REASON_ABSENT},
    {"23", RCPT_REASON_CONTENT},
    {"24", RCPT_REASON_NETWORK},
    {"25", RCPT_REASON_BLOCKED},
    {"26", RCPT_REASON_BLOCKED},
    {"30", RCPT_REASON_INVALID},
    {"50", RCPT_REASON_BLOCKED},
    {"51", RCPT_REASON_SPAM},
    {"52", RCPT_REASON_SPAM},
    {"53", RCPT_REASON_CONTENT},
    {"54", RCPT_REASON_BLOCKED},
    {"70", RCPT_REASON_NETWORK},
    {"90", RCPT_REASON_OPTED_OUT},
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

/* Sinch SMS (formerly mblox, CLX): one recipient as JSON, or a summary of a batch. The key is
 * (batch_id, recipient); a summary without recipients belongs to no message.
 * developers.sinch.com/docs/sms/api-reference/sms/tag/Webhooks */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"Queued", NULL, "IN_GTW", NULL},       {"Dispatched", NULL, "SENT", NULL},
    {"Delivered", NULL, "DELIVERED", NULL}, {"Failed", "406", "EXPIRED", NULL},
    {"Failed", "407", "SKIPPED", NULL},     {"Rejected", "406", "EXPIRED", NULL},
    {"Rejected", "407", "SKIPPED", NULL},   {"Failed", NULL, "FAILED", NULL},
    {"Expired", NULL, "EXPIRED", NULL},     {"Rejected", NULL, "REJECTED", NULL},
    {"Aborted", "406", "EXPIRED", NULL}, /* before it reached the SMSC */
    {"Aborted", "407", "SKIPPED", NULL}, /* the sender has cancelled it */
    {"Aborted", NULL, "REJECTED", NULL},    {"Cancelled", NULL, "SKIPPED", NULL},
    {"Deleted", NULL, "SKIPPED", NULL},     {"Unknown", NULL, "UNKNOWN", NULL},
};

static const struct rcpt_reason reasons[] = {
    {"402", RCPT_REASON_NETWORK}, {"403", RCPT_REASON_NETWORK}, {"404", RCPT_REASON_NETWORK},
    {"405", RCPT_REASON_CONTENT}, {"406", RCPT_REASON_EXPIRED}, {"408", RCPT_REASON_BLOCKED},
    {"410", RCPT_REASON_SENDER},  {"411", RCPT_REASON_CONTENT}, {"412", RCPT_REASON_BLOCKED},
    {"413", RCPT_REASON_CREDIT},  {"414", RCPT_REASON_CONTENT},
};

/* A summary without recipients cannot be attributed: it becomes a dead letter. */
static void check_report(struct rcpt_reading *reading)
{
    const struct rcpt_node *root = reading->source.root;
    const struct rcpt_node *groups = rcpt_node_get(root, "statuses");
    struct rcpt_text body = reading->source.request->body;
    if (rcpt_text_begins(rcpt_node_text_of(root, "type"), "mo_")) {
        rcpt_reading_ignore(reading, "inbound");
        return;
    }
    for (const struct rcpt_node *group = groups != NULL ? groups->first : NULL;
         group != NULL && !reading->answered; group = group->next)
        if (rcpt_node_get(group, "recipients") == NULL)
            rcpt_reading_reject(reading, "summary_without_recipients", body);
}

const struct rcpt_gateway rcpt_gateway_sinch = {
    .name = "sinch",
    .channel = "sms",
    .items = "/statuses/*/recipients/* /",
    .inbound = "{from}{body}",
    .fields = {.id = "{^/batch_id}|{/recipient,.}",
               .status = "/status,../status",
               .reason = "/code,../code",
               .at = "/at",
               .client_ref = "^/client_reference"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .open = check_report,
};

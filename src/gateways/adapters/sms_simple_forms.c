/* Ten SMS gateways that send one flat receipt each and differ in names and numbers only. Which one
 * it is shows in the names of its fields. */
#include "gateways/gateways.h"

static const struct rcpt_mapping thinq[] = {
    {"DELETED", NULL, "FAILED", NULL},
    {"UNKNOWN", NULL, "UNKNOWN", NULL},
};
static const struct rcpt_mapping mtarget[] = {
    {"0", NULL, "IN_GTW", NULL},    {"1", NULL, "IN_GTW", NULL}, {"2", NULL, "SENT", NULL},
    {"3", NULL, "DELIVERED", NULL}, {"4", NULL, "FAILED", NULL}, {"6", NULL, "FAILED", NULL},
};
static const struct rcpt_mapping highconnection[] = {
    {"4", NULL, "SENT", NULL},    {"6", NULL, "DELIVERED", NULL}, {"2", NULL, "FAILED", NULL},
    {"11", NULL, "FAILED", NULL}, {"12", NULL, "FAILED", NULL},   {"13", NULL, "FAILED", NULL},
    {"14", NULL, "FAILED", NULL}, {"15", NULL, "FAILED", NULL},   {"16", NULL, "FAILED", NULL},
};
static const struct rcpt_mapping wavy[] = {
    {"2", NULL, "SENT", NULL},     {"4", NULL, "DELIVERED", NULL}, {"104", NULL, "SENT", NULL},
    {"101", NULL, "FAILED", NULL}, {"102", NULL, "FAILED", NULL},  {"103", NULL, "FAILED", NULL},
    {"20*", NULL, "FAILED", NULL}, {"301", NULL, "FAILED", NULL},
};
static const struct rcpt_mapping macrokiosk[] = {
    {"PROCESSING", NULL, "IN_GTW", NULL},
    {"ACCEPTED", NULL, "SENT", NULL},
    {"DELIVERED", NULL, "DELIVERED", NULL},
    {"UNDELIVERED", NULL, "FAILED", NULL},
};
static const struct rcpt_mapping burstsms[] = {
    {"pending", NULL, "SENT", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"soft-bounce", NULL, "FAILED", NULL},
    {"hard-bounce", NULL, "BOUNCED_HARD", NULL},
};
static const struct rcpt_mapping clickatell[] = {
    {"2", NULL, "IN_GTW", NULL},  {"8", NULL, "IN_GTW", NULL},    {"11", NULL, "IN_GTW", NULL},
    {"3", NULL, "SENT", NULL},    {"4", NULL, "DELIVERED", NULL}, {"10", NULL, "EXPIRED", NULL},
    {"1", NULL, "FAILED", NULL},  {"5", NULL, "FAILED", NULL},    {"6", NULL, "FAILED", NULL},
    {"7", NULL, "FAILED", NULL},  {"9", NULL, "FAILED", NULL},    {"12", NULL, "FAILED", NULL},
    {"14", NULL, "FAILED", NULL},
};
static const struct rcpt_mapping elks[] = {
    {"sent", NULL, "SENT", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"failed", NULL, "FAILED", NULL},
};
static const struct rcpt_mapping eight_by_eight[] = {
    {"queued", NULL, "IN_GTW", NULL},
    {"sent", NULL, "SENT", NULL},
    {"delivered", "delivered_to_operator", "SENT", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"undelivered", "rejected_by_operator", "BLOCKED", NULL},
    {"undelivered", NULL, "FAILED", NULL},
    {"rejected", NULL, "REJECTED", NULL},
    {"read", NULL, "OPENED", NULL},
};

/* The first row whose id and status are both there counts. */
static const struct form {
    const char *id, *status, *reason, *at;
    const struct rcpt_mapping *statuses;
    size_t status_count;
    const char *answer;
} forms[] = {
    {"guid", "send_status", "error", NULL, thinq, RCPT_COUNT_OF(thinq), NULL},
    {"guid", "status", "error", NULL, thinq, RCPT_COUNT_OF(thinq), NULL},
    {"MsgId", "Status", NULL, NULL, mtarget, RCPT_COUNT_OF(mtarget), NULL},
    {"ret_id", "status", NULL, NULL, highconnection, RCPT_COUNT_OF(highconnection), NULL},
    {"correlationId", "deliveredStatusCode", NULL, "deliveredAt", wavy, RCPT_COUNT_OF(wavy), NULL},
    {"correlationId", "sentStatusCode", NULL, "sentAt", wavy, RCPT_COUNT_OF(wavy), NULL},
    {"msgid", "status", NULL, NULL, macrokiosk, RCPT_COUNT_OF(macrokiosk), "-1"},
    {"message_id", "status", NULL, "datetime", burstsms, RCPT_COUNT_OF(burstsms), NULL},
    {"messageId", "statusCode", NULL, "timestamp", clickatell, RCPT_COUNT_OF(clickatell), NULL},
    {"messageid", "status", NULL, NULL, NULL, 0, "000"}, /* DartMedia */
    {"id", "status", NULL, "delivered", elks, RCPT_COUNT_OF(elks), NULL},
};

/* 10 to 12 delivered, above 20 failed, else on its way; the id ends in the part: 12345.2 */
static void take_dart(struct rcpt_draft *draft)
{
    unsigned code = 0, part = 0;
    const char *dot = memrchr(draft->id.at, '.', draft->id.size);
    if (!rcpt_text_number(draft->status, &code))
        return;
    draft->mapped = (struct rcpt_mapping){.raw = "*",
                                          .status = code >= 10 && code <= 12 ? "DELIVERED"
                                                    : code > 20              ? "FAILED"
                                                                             : "SENT"};
    if (dot == NULL)
        return;
    struct rcpt_text tail = {dot + 1, draft->id.size - (size_t)(dot + 1 - draft->id.at)};
    if (rcpt_text_number(tail, &part))
        draft->part = tail;
}

/* The first row that fits; a row that an earlier step chose stays. */
static void map(const struct rcpt_mapping *mappings, size_t count, struct rcpt_draft *draft)
{
    for (size_t index = 0; index < count && draft->mapped.raw == NULL; index++)
        if (rcpt_mapping_fits(&mappings[index], draft))
            draft->mapped = mappings[index];
}

/* The only one of them with nested JSON. `detail` chooses the row, `errorCode` is the reason. */
static bool take_8x8(struct rcpt_draft *draft)
{
    const struct rcpt_node *payload = rcpt_node_get(draft->item, "payload");
    const struct rcpt_node *status = rcpt_node_get(payload, "status");
    draft->id = rcpt_node_text_of(payload, "umid");
    if (draft->id.size == 0)
        return false;
    draft->status = rcpt_node_text_of(status, "state");
    draft->reason = rcpt_node_text_of(status, "detail");
    map(eight_by_eight, RCPT_COUNT_OF(eight_by_eight), draft);
    draft->reason = rcpt_node_text_of(status, "errorCode");
    draft->at = rcpt_node_text_of(status, "timestamp");
    draft->client_ref = rcpt_node_text_of(payload, "clientMessageId");
    return true;
}

/* Nothing fits: the draft has no status, and becomes a dead letter for that. */
static void take_form(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    if (draft->item != NULL && take_8x8(draft))
        return;
    for (size_t index = 0; index < RCPT_COUNT_OF(forms); index++) {
        const struct form *form = &forms[index];
        struct rcpt_text id = rcpt_reading_value(reading, form->id);
        struct rcpt_text status = rcpt_reading_value(reading, form->status);
        if (id.size == 0 || status.size == 0)
            continue;
        draft->id = id;
        draft->status = status;
        draft->reason = form->reason != NULL ? rcpt_reading_value(reading, form->reason)
                                             : (struct rcpt_text){NULL, 0};
        if (form->at != NULL)
            draft->at = rcpt_reading_value(reading, form->at);
        if (form->statuses == NULL)
            take_dart(draft);
        map(form->statuses, form->status_count, draft);
        if (form->answer != NULL)
            reading->result->answer = (struct rcpt_intake_answer){
                .code = 200, .content_type = "text/plain", .body = rcpt_text_of(form->answer)};
        return;
    }
}

const struct rcpt_gateway rcpt_gateway_sms_simple_forms = {
    .name = "sms_simple_forms",
    .channel = "sms",
    .smpp_words = true, /* thinQ's */
    .item = take_form,
};

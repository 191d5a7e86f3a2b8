/* Ten SMS gateways that send one flat receipt each and differ in names and numbers only. The names
 * of a receipt's fields identify its gateway. */
#include "../gateways.h"

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
    {"failed", NULL, "FAILED", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"soft-bounce", NULL, "FAILED", NULL},
    {"hard-bounce", NULL, "BOUNCED_HARD", NULL},
};
static const struct rcpt_mapping clickatell[] = {
    {"1", NULL, "UNKNOWN", NULL},   {"2", NULL, "IN_GTW", NULL},    {"8", NULL, "IN_GTW", NULL},
    {"11", NULL, "IN_GTW", NULL},   {"3", NULL, "SENT", NULL},      {"4", NULL, "DELIVERED", NULL},
    {"5", NULL, "FAILED", NULL},    {"7", NULL, "FAILED", NULL},    {"9", NULL, "FAILED", NULL},
    {"10", NULL, "EXPIRED", NULL},  {"6", NULL, "SKIPPED", NULL}, /* the sender has cancelled it */
    {"12", NULL, "REJECTED", NULL},                               /* no credit */
    {"13", NULL, "REJECTED", NULL}, {"14", NULL, "REJECTED", NULL}, /* a limit */
};
/* Clickatell's One API, for all channels: other numbers than above, so that the words count. */
static const struct rcpt_mapping clickatell_one[] = {
    {"UNKNOWN", NULL, "UNKNOWN", NULL},
    {"QUEUED", NULL, "IN_GTW", NULL},
    {"SCHEDULED", NULL, "IN_GTW", NULL},
    {"SENT_TO_SUPPLIER", NULL, "SENT", NULL},
    {"DEVICE_ACK", NULL, "DELIVERED", NULL},
    {"READ", NULL, "OPENED", NULL},
    {"EXPIRED", NULL, "EXPIRED", NULL},
    {"STOPPED_BY_*", NULL, "SKIPPED", NULL},
    {"RECIPIENT_DOES_NOT_EXIST", NULL, "BOUNCED_HARD", NULL},
    {"INSUFFICIENT_ACCOUNT_BALANCE", NULL, "REJECTED", NULL},
    {"VOLUME_LIMIT*", NULL, "REJECTED", NULL},
    {"ENCRYPTION_*", NULL, "REJECTED", NULL},
    {"MEDIA_*", NULL, "REJECTED", NULL},
    {"DELIVERY_FAILURE", NULL, "FAILED", NULL},
    {"ROUTING_ERROR", NULL, "FAILED", NULL},
    {"WHATSAPP_*", NULL, "FAILED", NULL},
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
    {"failed", NULL, "REJECTED", NULL}, /* by the API */
    {"read", NULL, "OPENED", NULL},
    {"unknown", NULL, "UNKNOWN", NULL},
};
/* By `errorCode`, which is more precise than `detail`. */
static const struct rcpt_mapping eight_by_eight_errors[] = {
    {"undelivered", "15", "BOUNCED_HARD", NULL}, /* no such number */
    {"undelivered", "36", "EXPIRED", NULL},
    {"undelivered", "43", "BLOCKED", NULL}, /* spam */
};

/* A row counts if its id and status are both there. One whose table does not know the status gives
 * way to the next. */
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
    {"message_id", "status", "error_code", "datetime", burstsms, RCPT_COUNT_OF(burstsms), NULL},
    {"messageId", "status", NULL, "timestamp", clickatell_one, RCPT_COUNT_OF(clickatell_one), NULL},
    {"messageId", "statusCode", NULL, "timestamp", clickatell, RCPT_COUNT_OF(clickatell), NULL},
    {"apiMsgId", "status", NULL, "timestamp", clickatell, RCPT_COUNT_OF(clickatell), NULL},
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

/* The first row that fits; a row that an earlier step chose stays. Some write "004" for 4. */
static void map(const struct rcpt_mapping *mappings, size_t count, struct rcpt_draft *draft)
{
    struct rcpt_draft plain = *draft;
    while (plain.status.size > 1 && plain.status.at[0] == '0')
        plain.status = rcpt_text_part(plain.status, 1, plain.status.size);
    for (size_t index = 0; index < count && draft->mapped.raw == NULL; index++)
        if (rcpt_mapping_fits(&mappings[index], &plain))
            draft->mapped = mappings[index];
}

/* `detail` chooses the row, unless `errorCode` does. */
static bool take_8x8(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_node *payload = rcpt_node_get(draft->item, "payload");
    const struct rcpt_node *status = rcpt_node_get(payload, "status");
    struct rcpt_text code = rcpt_node_text_of(status, "errorCode");
    if (rcpt_text_begins(rcpt_node_text_of(draft->item, "eventType"), "inbound_"))
        rcpt_draft_ignore(reading, draft, "inbound");
    draft->id = rcpt_node_text_of(payload, "umid");
    if (draft->id.size == 0)
        return draft->done;
    draft->status = rcpt_node_text_of(status, "state");
    draft->reason = code;
    draft->cost = rcpt_node_text_of(rcpt_node_get(payload, "price"), "total");
    draft->currency = rcpt_node_text_of(rcpt_node_get(payload, "price"), "currency");
    map(eight_by_eight_errors, RCPT_COUNT_OF(eight_by_eight_errors), draft);
    draft->reason = rcpt_node_text_of(status, "detail");
    map(eight_by_eight, RCPT_COUNT_OF(eight_by_eight), draft);
    draft->reason = code;
    draft->at = rcpt_node_text_of(status, "timestamp");
    draft->client_ref = rcpt_node_text_of(payload, "clientMessageId");
    return true;
}

/* Clickatell's One API: {"event": {"messageStatusUpdate": [{…}, …]}} */
static bool take_one_api(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    const struct rcpt_node *event = rcpt_node_get(draft->item, "event");
    const struct rcpt_node *updates = rcpt_node_get(event, "messageStatusUpdate");
    if (rcpt_node_get(event, "moText") != NULL)
        rcpt_draft_ignore(reading, draft, "inbound");
    if (updates == NULL || updates->type != RCPT_NODE_ARRAY)
        return draft->done;
    for (const struct rcpt_node *node = updates->first; node != NULL; node = node->next) {
        struct rcpt_draft one = *draft;
        one.id = rcpt_node_text_of(node, "messageId");
        one.status = rcpt_node_text_of(node, "status");
        one.reason = rcpt_node_text_of(node, "statusCode");
        one.at = rcpt_node_text_of(node, "timestamp");
        one.client_ref = rcpt_node_text_of(node, "clientMessageId");
        one.raw = node->raw;
        map(clickatell_one, RCPT_COUNT_OF(clickatell_one), &one);
        rcpt_reading_add(reading, &one);
    }
    draft->done = true;
    return true;
}

/* False: the row is not this gateway's, or its table does not know the status. */
static bool take_row(struct rcpt_reading *reading, struct rcpt_draft *draft,
                     const struct form *form)
{
    struct rcpt_text id = rcpt_reading_value(reading, form->id);
    struct rcpt_text status = rcpt_reading_value(reading, form->status);
    if (id.size == 0 || status.size == 0)
        return false;
    draft->id = id;
    draft->status = status;
    draft->reason = form->reason != NULL ? rcpt_reading_value(reading, form->reason)
                                         : (struct rcpt_text){NULL, 0};
    if (form->at != NULL)
        draft->at = rcpt_reading_value(reading, form->at);
    if (form->statuses == elks && draft->at.size > 0) /* "in UTC", and written without a zone */
        draft->at = RCPT_TEXT_JOIN(reading->arena, draft->at, RCPT_TEXT("Z"));
    if (form->statuses == NULL)
        take_dart(draft);
    map(form->statuses, form->status_count, draft);
    if (form->answer != NULL)
        reading->result->answer = (struct rcpt_gateway_answer){
            .code = 200, .content_type = "text/plain", .body = rcpt_text_of(form->answer)};
    return draft->mapped.raw != NULL;
}

/* If no row fits, the draft has no status, and becomes a dead letter. */
static void take_form(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    if (draft->item != NULL && (take_8x8(reading, draft) || take_one_api(reading, draft)))
        return;
    for (size_t index = 0; index < RCPT_COUNT_OF(forms); index++)
        if (take_row(reading, draft, &forms[index]))
            return;
}

const struct rcpt_gateway rcpt_gateway_sms_simple_forms = {
    .name = "sms_simple_forms",
    .channel = "sms",
    .inbound = "{from,FROM,Msisdn,msisdn,mobile,originator,source,fromNumber}"
               "{text,message,MESSAGE,Content,content,messageText,response,body}",
    .smpp_words = true, /* thinQ's */
    .item = take_form,
};

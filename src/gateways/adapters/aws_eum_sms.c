/* AWS End User Messaging SMS (Pinpoint SMS v2): one event as JSON through SNS or EventBridge, bare,
 * or several in the records of Firehose, which wants its request's number in the answer. `context`
 * carries what the sender put in.
 * docs.aws.amazon.com/sms-voice/latest/userguide/configuration-sets-event-types.html
 * docs.aws.amazon.com/firehose/latest/dev/httpdeliveryrequestresponse.html */
#include <stdio.h>

#include "gateways/crypto.h"
#include "gateways/gateways.h"
#include "gateways/sns.h"

/* TEXT_ and MEDIA_ (MMS) have the same words, which stand here without the prefix. */
static const struct rcpt_mapping statuses[] = {
    {"QUEUED", NULL, "IN_GTW", NULL},
    {"PENDING", NULL, "SENT", NULL},
    {"SENT", NULL, "SENT", NULL},
    {"SUCCESSFUL", NULL, "DELIVERED", NULL}, /* interchangeable with DELIVERED, by country */
    {"DELIVERED", NULL, "DELIVERED", NULL},
    {"READ", NULL, "OPENED", NULL},
    {"BLOCKED", NULL, "BLOCKED", NULL},
    {"CARRIER_BLOCKED", NULL, "BLOCKED", NULL},
    {"SPAM", NULL, "BLOCKED", NULL},
    {"CARRIER_UNREACHABLE", "final", "FAILED", NULL},
    {"CARRIER_UNREACHABLE", NULL, "DEFERRED", NULL},
    {"UNREACHABLE", "final", "FAILED", NULL},
    {"UNREACHABLE", NULL, "DEFERRED", NULL},
    {"INVALID", NULL, "BOUNCED_HARD", NULL},
    {"INVALID_MESSAGE", NULL, "REJECTED", NULL},
    {"PROTECT_BLOCKED", NULL, "REJECTED", NULL},
    {"FILE_INACCESSIBLE", NULL, "REJECTED", NULL}, /* these three of MMS alone */
    {"FILE_TYPE_UNSUPPORTED", NULL, "REJECTED", NULL},
    {"FILE_SIZE_EXCEEDED", NULL, "REJECTED", NULL},
    {"TTL_EXPIRED", NULL, "EXPIRED", NULL},
    {"UNKNOWN", NULL, "UNKNOWN", NULL}, /* AWS gave up after 72 h */
};

static const struct rcpt_reason reasons[] = {
    {"TEXT_SPAM", RCPT_REASON_SPAM},
    {"TEXT_UNREACHABLE", RCPT_REASON_ABSENT},
    {"TEXT_CARRIER_UNREACHABLE", RCPT_REASON_NETWORK},
    {"TEXT_INVALID_MESSAGE", RCPT_REASON_CONTENT},
    {"TEXT_PROTECT_BLOCKED", RCPT_REASON_BLOCKED},
    {"MEDIA_SPAM", RCPT_REASON_SPAM},
    {"MEDIA_UNREACHABLE", RCPT_REASON_ABSENT},
    {"MEDIA_CARRIER_UNREACHABLE", RCPT_REASON_NETWORK},
    {"MEDIA_INVALID_MESSAGE", RCPT_REASON_CONTENT},
    {"MEDIA_PROTECT_BLOCKED", RCPT_REASON_BLOCKED},
    {"MEDIA_FILE_*", RCPT_REASON_CONTENT},
};

/* The id goes into the answer as it is, so it may hold nothing that ends a JSON string. */
static bool is_request_id(struct rcpt_text id)
{
    for (size_t index = 0; index < id.size; index++)
        if (id.at[index] < '-' || id.at[index] > 'z' || id.at[index] == '\\')
            return false;
    return id.size <= 128;
}

/* Firehose repeats the whole request unless the answer has its id and a time. */
static void answer_firehose(struct rcpt_reading *reading)
{
    char time[48];
    struct rcpt_text id = rcpt_node_text_of(reading->source.root, "requestId");
    if (id.size == 0 || !is_request_id(id))
        id = RCPT_TEXT("");
    int size = snprintf(time, sizeof(time), "\",\"timestamp\":%lld}",
                        (long long)(reading->source.request->received_us / 1000));
    reading->result->answer.content_type = "application/json";
    reading->result->answer.body = RCPT_TEXT_JOIN(reading->arena, RCPT_TEXT("{\"requestId\":\""),
                                                  id, (struct rcpt_text){time, (size_t)size});
}

/* A record that is no JSON becomes a dead letter as it is; the others become elements of one
 * array. */
static void take_records(struct rcpt_reading *reading, const struct rcpt_node *records)
{
    struct rcpt_node *all = rcpt_arena_alloc(reading->arena, sizeof(*all));
    const struct rcpt_node **link = &all->first;
    *all = (struct rcpt_node){.type = RCPT_NODE_ARRAY};
    for (const struct rcpt_node *node = records->first; node != NULL; node = node->next) {
        const char *reason;
        struct rcpt_text data = rcpt_base64_decode(rcpt_node_text_of(node, "data"), reading->arena);
        const struct rcpt_node *event =
            data.at != NULL ? rcpt_document_parse(data, reading->arena, &reason) : NULL;
        if (event == NULL) {
            struct rcpt_draft draft = {.raw = node->raw};
            rcpt_draft_reject(reading, &draft, "invalid_json");
            continue;
        }
        struct rcpt_node *element = rcpt_arena_alloc(reading->arena, sizeof(*element));
        *element = *event;
        *link = element;
        link = &element->next;
    }
    reading->source.root = all;
}

/* `records` make a request of Firehose. Beside an envelope's signature they are not Amazon's, and
 * are not read. */
static void take_detail(struct rcpt_reading *reading)
{
    const struct rcpt_node *records = NULL;
    if (rcpt_sns_envelope(reading) == NULL)
        records = rcpt_node_get(reading->source.root, "records");
    if (records != NULL && records->type == RCPT_NODE_ARRAY) {
        answer_firehose(reading);
        take_records(reading, records);
        return;
    }
    rcpt_sns_open(reading);
    const struct rcpt_node *detail = rcpt_node_get(reading->source.root, "detail");
    if (detail != NULL) /* EventBridge */
        reading->source.root = detail;
}

/* Rows with a code count for final events only. */
static const struct rcpt_mapping *find(struct rcpt_text word, bool final)
{
    for (size_t index = 0; index < RCPT_COUNT_OF(statuses); index++)
        if (rcpt_text_is(word, statuses[index].raw) && (statuses[index].code == NULL || final))
            return &statuses[index];
    return NULL;
}

static void take_event(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    static const char *const prefixes[] = {"TEXT_", "MEDIA_", "RCS_"};
    bool final = rcpt_node_is_true(rcpt_node_get(draft->item, "isFinal"));
    for (size_t index = 0; index < RCPT_COUNT_OF(prefixes); index++) {
        size_t size = strlen(prefixes[index]);
        if (!rcpt_text_begins(draft->status, prefixes[index]))
            continue;
        const struct rcpt_mapping *found =
            find(rcpt_text_part(draft->status, size, draft->status.size), final);
        if (found != NULL)
            draft->mapped = *found;
    }
    (void)reading;
}

const struct rcpt_gateway rcpt_gateway_aws_eum_sms = {
    .name = "aws_eum_sms",
    .channel = "sms",
    .inbound = "{originationNumber}{messageBody}",
    .fields = {.id = "/messageId",
               .status = "/eventType",
               .at = "/eventTimestamp",
               .reason = "/messageStatus",
               .message_id = "/context/message_id",
               .campaign_id = "/context/campaign_id"},
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_sns,
    .open = take_detail,
    .item = take_event,
};

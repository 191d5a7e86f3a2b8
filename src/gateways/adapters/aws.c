/* Amazon's envelopes. An event comes bare, in an SNS message, or in the `detail` of EventBridge.
 * Lambda is called with records of SNS, or of SQS, whose `body` is a text. Firehose's records are
 * base64, and its answer needs the request's number. One envelope may lie in another. No adapter by
 * itself; called by ses_sns.c and aws_eum_sms.c. Documentation:
 * docs.aws.amazon.com/lambda/latest/dg/with-sns.html, …/with-sqs.html
 * docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html
 * docs.aws.amazon.com/firehose/latest/dev/httpdeliveryrequestresponse.html */
#include "aws.h"

#include <stdio.h>

#include "../crypto.h"

#define MOST_ENVELOPES 6u /* around one event */

/* ---- Firehose's answer ---- */

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

/* ---- one element ---- */

/* The envelope's content around the event; NULL: there is no envelope, and this is the event. A
 * text that is no JSON is no envelope either. */
static const struct rcpt_node *inside(struct rcpt_reading *reading, const struct rcpt_node *node)
{
    static const char *const names[] = {"detail", "Sns", "Message", "body"};
    const char *reason;
    for (size_t index = 0; index < RCPT_COUNT_OF(names); index++) {
        const struct rcpt_node *member = rcpt_node_get(node, names[index]);
        if (member != NULL && member->type == RCPT_NODE_OBJECT)
            return member;
        if (member != NULL && member->type == RCPT_NODE_STRING &&
            rcpt_document_looks_like(member->text))
            return rcpt_document_parse(member->text, reading->arena, &reason);
    }
    return NULL;
}

/* Events have none of these members: those of SES have `mail`, those of SMS `messageId`. */
static const struct rcpt_node *unwrap(struct rcpt_reading *reading, const struct rcpt_node *node)
{
    for (unsigned depth = 0; depth < MOST_ENVELOPES; depth++) {
        const struct rcpt_node *next = inside(reading, node);
        if (next == NULL)
            return node;
        node = next;
    }
    return node;
}

/* The JSON of a record of Firehose; NULL: it has none. */
static const struct rcpt_node *data_of(struct rcpt_reading *reading, const struct rcpt_node *record)
{
    const char *reason;
    struct rcpt_text data = rcpt_base64_decode(rcpt_node_text_of(record, "data"), reading->arena);
    return data.at != NULL ? rcpt_document_parse(data, reading->arena, &reason) : NULL;
}

/* ---- all of them ---- */

/* A record that is no JSON becomes a dead letter as it is; the others become elements of one
 * array. */
static void take_records(struct rcpt_reading *reading, const struct rcpt_node *records,
                         bool encoded)
{
    struct rcpt_node *all = rcpt_arena_alloc(reading->arena, sizeof(*all));
    const struct rcpt_node **link = &all->first;
    *all = (struct rcpt_node){.type = RCPT_NODE_ARRAY};
    for (const struct rcpt_node *node = records->first; node != NULL; node = node->next) {
        const struct rcpt_node *event = encoded ? data_of(reading, node) : node;
        if (event == NULL) {
            struct rcpt_draft draft = {.raw = node->raw};
            rcpt_draft_reject(reading, &draft, "invalid_json");
            continue;
        }
        struct rcpt_node *element = rcpt_arena_alloc(reading->arena, sizeof(*element));
        *element = *unwrap(reading, event);
        element->next = NULL;
        *link = element;
        link = &element->next;
    }
    reading->source.root = all;
}

/* Records beside an envelope's signature are not Amazon's, and are not read. */
void rcpt_aws_open(struct rcpt_reading *reading)
{
    const struct rcpt_node *root = reading->source.root;
    if (rcpt_sns_envelope(reading) != NULL) {
        rcpt_sns_open(reading);
        if (!reading->answered)
            reading->source.root = unwrap(reading, reading->source.root);
        return;
    }
    const struct rcpt_node *records = rcpt_node_get(root, "records");
    bool is_firehose = records != NULL && records->type == RCPT_NODE_ARRAY;
    if (is_firehose)
        answer_firehose(reading);
    else
        records = rcpt_node_get(root, "Records");
    if (records != NULL && records->type == RCPT_NODE_ARRAY)
        take_records(reading, records, is_firehose);
    else if (root != NULL && root->type == RCPT_NODE_ARRAY)
        take_records(reading, root, false);
    else if (root != NULL)
        reading->source.root = unwrap(reading, root);
}

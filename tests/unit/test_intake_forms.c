/* No receipt vanishes: each sample of tests/payloads is changed as gateways and proxies change forms (an
 * envelope is gone, has another name, or is one more; a list is an object or the other way round), and what
 * comes out is an event or a letter. Only what is known to be no receipt is ignored. */
#include <glob.h>

#include "intake_fixture.h"

#define FORM "application/x-www-form-urlencoded"
#define JSON "application/json"

#define DELIVERY                                                                                   \
    "{\"eventType\":\"Delivery\",\"mail\":{\"messageId\":\"s\"},\"delivery\":{\"recipients\":["    \
    "\"x@e\"]}}"
#define QUOTED                                                                                     \
    "{\\\"eventType\\\":\\\"Delivery\\\",\\\"mail\\\":{\\\"messageId\\\":\\\"s\\\"},"              \
    "\\\"delivery\\\":{"                                                                           \
    "\\\"recipients\\\":[\\\"x@e\\\"]}}"

enum { MOST_DEPTH = 6 };

struct tried {
    struct fixture fixture;
    const char *file;
    const struct rcpt_node *request;
    struct rcpt_text name, body; /* of the sample */
    const char *change;
    size_t count;
};

/* The sample with another body, or with another query where the body is empty. */
static void adapt_with(struct tried *tried, struct rcpt_text changed, bool in_query)
{
    struct fixture *fixture = &tried->fixture;
    fixture_sample(fixture, tried->request);
    if (in_query)
        fixture->request.query = changed;
    else
        fixture->request.body = changed;
    fixture_adapt(fixture);
    tried->count++;
}

static size_t letters_of(const struct fixture *fixture)
{
    size_t count = 0;
    for (size_t index = 0; index < fixture->result.drop_count; index++)
        count += fixture->result.drops[index].kind != RCPT_GATEWAY_IGNORED;
    return count;
}

static void expect_seen(struct tried *tried, struct rcpt_text changed, bool in_query)
{
    const struct fixture *fixture = &tried->fixture;
    adapt_with(tried, changed, in_query);
    if (fixture->result.event_count + letters_of(fixture) == 0)
        fail_msg("%s: %.*s: %s: vanished (%s): %.*s", tried->file, (int)tried->name.size,
                 tried->name.at, tried->change,
                 fixture->result.drop_count > 0 ? fixture->result.drops[0].reason : "no drop",
                 (int)changed.size, changed.at);
    if (fixture->result.answer.code != 200)
        fail_msg("%s: %.*s: %s: answer %u: %.*s", tried->file, (int)tried->name.size,
                 tried->name.at, tried->change, fixture->result.answer.code, (int)changed.size,
                 changed.at);
}

/* The document with `instead` in the place of some bytes of it. */
static struct rcpt_text replaced(struct tried *tried, struct rcpt_text document,
                                 struct rcpt_text part, struct rcpt_text instead)
{
    size_t before = (size_t)(part.at - document.at);
    struct rcpt_text after =
        rcpt_text_part(document, before + part.size, document.size - before - part.size);
    return RCPT_TEXT_JOIN(&tried->fixture.arena, rcpt_text_part(document, 0, before), instead,
                          after);
}

static bool is_container(const struct rcpt_node *node)
{
    return node->type == RCPT_NODE_OBJECT || node->type == RCPT_NODE_ARRAY;
}

/* Empty places hold no receipt: whatever comes of it is answered with 200, and nothing fails. */
static void try_empty(struct tried *tried, struct rcpt_text document, struct rcpt_text part)
{
    static const char *const values[] = {"null", "[]", "{}", "[null]", "[[]]", "[{}]"};
    for (size_t index = 0; index < COUNT(values); index++) {
        adapt_with(tried, replaced(tried, document, part, rcpt_text_of(values[index])), false);
        assert_int_equal(tried->fixture.result.answer.code, 200);
    }
}

/* One container of the document, at some depth. */
static void try_container(struct tried *tried, struct rcpt_text document,
                          const struct rcpt_node *node)
{
    struct rcpt_arena *arena = &tried->fixture.arena;
    const struct rcpt_text raw = node->raw;
    try_empty(tried, document, raw);
    if (rcpt_node_is_bare(node))
        return;
    tried->change = "the envelope is gone";
    expect_seen(tried, raw, false);
    tried->change = "a list in its place";
    expect_seen(
        tried,
        replaced(tried, document, raw, RCPT_TEXT_JOIN(arena, RCPT_TEXT("["), raw, RCPT_TEXT("]"))),
        false);
    tried->change = "an envelope around it";
    expect_seen(tried,
                replaced(tried, document, raw,
                         RCPT_TEXT_JOIN(arena, RCPT_TEXT("{\"more\":"), raw, RCPT_TEXT("}"))),
                false);
    tried->change = "a text in its place";
    expect_seen(tried, replaced(tried, document, raw, RCPT_TEXT("\"some text\"")), false);
    if (node->type == RCPT_NODE_ARRAY && node->first->next == NULL && is_container(node->first)) {
        tried->change = "an object in the place of its list";
        expect_seen(tried, replaced(tried, document, raw, node->first->raw), false);
    }
    if (node->key.size > 0) {
        tried->change = "another name";
        expect_seen(tried, replaced(tried, document, node->key, RCPT_TEXT("another")), false);
    }
}

static void try_tree(struct tried *tried, struct rcpt_text document, const struct rcpt_node *node,
                     unsigned depth)
{
    if (!is_container(node) || depth > MOST_DEPTH)
        return;
    try_container(tried, document, node);
    for (const struct rcpt_node *child = node->first; child != NULL; child = child->next)
        try_tree(tried, document, child, depth + 1);
}

/* Each field under another name, and each left out. */
static void try_form(struct tried *tried, struct rcpt_text form, bool in_query)
{
    struct rcpt_arena *arena = &tried->fixture.arena;
    for (size_t at = 0; at < form.size;) {
        struct rcpt_text rest = rcpt_text_part(form, at, form.size);
        struct rcpt_text field = rcpt_text_part(rest, 0, rcpt_text_find(rest, "&"));
        size_t equals = rcpt_text_find(field, "=");
        struct rcpt_text other =
            RCPT_TEXT_JOIN(arena, RCPT_TEXT("another"), rcpt_text_part(field, equals, field.size));
        tried->change = "a field with another name";
        expect_seen(tried, replaced(tried, form, field, other), in_query);
        at += field.size + 1;
    }
}

/* Only samples that are receipts: those that are none may be ignored whatever becomes of them. */
static void try_sample(struct tried *tried, const struct rcpt_node *sample)
{
    struct fixture *fixture = &tried->fixture;
    const char *reason = NULL;
    tried->name = rcpt_node_text_of(sample, "name");
    tried->request = rcpt_node_get(sample, "request");
    fixture_sample(fixture, tried->request);
    const struct rcpt_text body = fixture->request.body, query = fixture->request.query;
    fixture_adapt(fixture);
    if (fixture->result.event_count == 0 || fixture->result.drop_count > 0)
        return;
    if (rcpt_document_looks_like(body)) {
        const struct rcpt_node *root = rcpt_document_parse(body, &fixture->arena, &reason);
        assert_non_null(root);
        try_tree(tried, body, root, 0);
    } else if (body.size > 0 && !rcpt_text_begins(body, "--")) {
        try_form(tried, body, false);
    } else if (body.size == 0) {
        try_form(tried, query, true);
    }
}

static size_t try_file(const char *path, void (*try)(struct tried *, const struct rcpt_node *))
{
    struct tried tried = {.file = path};
    struct rcpt_arena arena;
    const char *reason = NULL;
    char *text = file_text(path);
    assert_non_null(text);
    fixture_init(&tried.fixture);
    rcpt_arena_init(&arena, 65536);
    const struct rcpt_node *root = rcpt_document_parse(rcpt_text_of(text), &arena, &reason);
    fixture_gateway(&tried.fixture,
                    rcpt_text_terminated(&arena, rcpt_node_text_of(root, "gateway")));
    for (const struct rcpt_node *node = rcpt_node_get(root, "cases")->first; node != NULL;
         node = node->next) {
        try(&tried, node);
        rcpt_arena_reset(&tried.fixture.arena, 65536);
    }
    rcpt_arena_fini(&arena);
    fixture_fini(&tried.fixture);
    free(text);
    return tried.count;
}

static void a_receipt_in_another_form_never_vanishes(void **state)
{
    size_t count = 0;
    glob_t found;
    (void)state;
    assert_int_equal(glob("tests/payloads/*.json", 0, NULL, &found), 0);
    for (size_t index = 0; index < found.gl_pathc; index++)
        count += try_file(found.gl_pathv[index], try_sample);
    globfree(&found);
    assert_true(count > 5000);
}

/* Gateways try a URL in these ways: none is a letter, whatever the adapter expects. */
static void what_holds_nothing_is_no_letter(void **state)
{
    static const char *const bodies[] = {
        "", " \r\n", "{}", "[]", "[{}]", "{\"results\":null}", "{\"entry\":[]}", "[{\"msys\":{}}]"};
    size_t count;
    const char *const *names = rcpt_gateway_list(&count);
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    for (size_t gateway = 0; gateway < count; gateway++) {
        fixture_gateway(&fixture, names[gateway]);
        for (size_t index = 0; index < COUNT(bodies); index++) {
            fixture_post(&fixture, "application/json", bodies[index]);
            if (fixture.result.event_count + letters_of(&fixture) > 0)
                fail_msg("%s: %s: %s", names[gateway], bodies[index],
                         fixture.result.drops[0].reason);
            assert_int_equal(fixture.result.answer.code, 200);
        }
        fixture_get(&fixture, "?message_id=m-1&campaign_id=c-1");
        assert_int_equal(letters_of(&fixture), 0);
        fixture_get(&fixture, "?message_id=m-1&what=ever");
        assert_int_equal(letters_of(&fixture), 1);
    }
    fixture_fini(&fixture);
}

static const struct {
    const char *gateway, *body;
    size_t events, letters;
} requests[] = {
    {"whatsapp_cloud",
     "{\"entry\":[{\"changes\":[{\"field\":\"messages\",\"value\":{\"statuses\":[{\"id\":\"w\","
     "\"status\":\"read\"}]}},{\"field\":\"messages\",\"value\":{\"receipts\":[{\"id\":\"x\"}]}"
     "},"
     "{\"field\":\"messages\",\"value\":{\"messages\":[{\"id\":\"y\",\"text\":{\"body\":\"hi\"}"
     "}]}}]},"
     "{\"changed\":[{\"id\":\"z\"}]}]}",
     1, 2},
    {"whatsapp_cloud",
     "{\"object\":\"page\",\"entry\":[{\"messaging\":[{\"sender\":{\"id\":\"U\"},\"timestamp\":"
     "1458668856463,\"delivery\":{\"mids\":[\"mid.1\",\"mid.2\"]}}]}]}",
     2, 0},
    {"fb_messenger",
     "{\"object\":\"whatsapp_business_account\",\"entry\":[{\"changes\":[{\"field\":"
     "\"messages\","
     "\"value\":{\"statuses\":[{\"id\":\"wamid.Q\",\"status\":\"failed\",\"errors\":[{\"code\":"
     "131026}]}]}}]}]}",
     1, 0},
    {"fb_messenger",
     "{\"entry\":[{\"messaging\":[{\"delivery\":{\"mids\":[\"m\"]}},{\"something\":{\"mid\":"
     "\"n\"}}],"
     "\"standby\":[{\"read\":{\"mid\":\"o\"}}]}]}",
     2, 1},
    {"gupshup_whatsapp",
     "{\"object\":\"whatsapp_business_account\",\"entry\":[{\"changes\":[{\"field\":"
     "\"messages\","
     "\"value\":{\"statuses\":[{\"gs_id\":\"g\",\"id\":\"wamid.X\",\"status\":\"sent\","
     "\"timestamp\":"
     "\"1710941397\"}]}}]}],\"gs_app_id\":\"app\"}",
     1, 0},
    {"sparkpost",
     "[{\"msys\":{\"message_event\":{\"type\":\"delivery\",\"transmission_id\":\"1\",\"rcpt_"
     "to\":"
     "\"a@b\"}}},{\"message_event\":{\"type\":\"delivery\"}}]",
     1, 1},
    {"infobip", "{\"messageId\":\"i\",\"status\":{\"name\":\"DELIVERED_TO_HANDSET\",\"id\":5}}", 1,
     0},
    {"infobip", "{\"reports\":[{\"messageId\":\"i\",\"status\":{\"name\":\"DELIVERED\"}}]}", 0, 1},
    {"ses_sns",
     "{\"Type\":\"Notification\",\"MessageId\":\"u\",\"TopicArn\":\"t\",\"Message\":{"
     "\"notificationType\":\"Bounce\",\"bounce\":{\"bounceType\":\"Permanent\","
     "\"bouncedRecipients\":[{\"emailAddress\":\"x@e\"}]},\"mail\":{\"messageId\":\"s\"}}}",
     1, 0},
    {"ses_sns", "{\"version\":\"0\",\"detail-type\":\"Email Delivered\",\"detail\":" DELIVERY "}",
     1, 0},
    {"ses_sns", "[{\"detail\":" DELIVERY "},{\"detail\":" DELIVERY "}]", 2, 0},
    {"ses_sns",
     "{\"Records\":[{\"EventSource\":\"aws:sns\",\"Sns\":{\"Type\":\"Notification\","
     "\"Message\":\"" QUOTED "\"}}]}",
     1, 0},
    {"ses_sns",
     "{\"Records\":[{\"eventSource\":\"aws:sqs\",\"body\":\"" QUOTED "\"},{\"eventSource\":"
     "\"aws:sqs\",\"body\":\"hello\"}]}",
     1, 1},
    {"ses_sns", "{\"requestId\":\"r\",\"records\":[{\"data\":\"e30=\"},{\"data\":\"bm8=\"}]}", 0,
     1},
    {"ses_sns", "{\"Sns\":{\"Message\":" DELIVERY "}}", 1, 0},
    {"aws_eum_sms",
     "{\"Records\":[{\"Sns\":{\"Message\":\"{\\\"eventType\\\":\\\"TEXT_DELIVERED\\\","
     "\\\"messageId\\\":\\\"m\\\"}\"}}]}",
     1, 0},
    {"ses_sns",
     "{\"Type\":\"Notification\",\"MessageId\":\"u\",\"TopicArn\":\"t\",\"Message\":\"Your "
     "topic "
     "has a new look\"}",
     0, 1},
};

/* One of several elements is no reason to pass over another, nor the other way round. */
static void what_is_not_understood_stands_beside_what_is(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(requests); index++) {
        fixture_gateway(&fixture, requests[index].gateway);
        fixture_post(&fixture, "application/json", requests[index].body);
        if (fixture.result.event_count != requests[index].events ||
            letters_of(&fixture) != requests[index].letters)
            fail_msg("%s: %zu events, %zu letters: %s", requests[index].gateway,
                     fixture.result.event_count, letters_of(&fixture), requests[index].body);
        assert_int_equal(fixture.result.answer.code, 200);
    }
    fixture_fini(&fixture);
}

static const struct {
    const char *gateway, *type, *body;
} messages[] = {
    {"africastalking", FORM,
     "date=2026-01-01&from=%2B254&id=in1&linkId=&text=STOP&to=1234&networkCode=1"},
    {"aws_eum_sms", JSON,
     "{\"Type\":\"Notification\",\"TopicArn\":\"t\",\"MessageId\":\"u\",\"Message\":"
     "\"{\\\"originationNumber\\\":\\\"+1\\\",\\\"destinationNumber\\\":\\\"+2\\\","
     "\\\"messageKeyword\\\":\\\"K\\\",\\\"messageBody\\\":\\\"STOP\\\","
     "\\\"inboundMessageId\\\":\\\"i\\\"}\"}"},
    {"bandwidth", JSON,
     "[{\"type\":\"message-received\",\"message\":{\"id\":\"i\",\"text\":\"STOP\"}}]"},
    {"fb_messenger", JSON,
     "{\"object\":\"page\",\"entry\":[{\"messaging\":[{\"sender\":{\"id\":\"1\"},\"message\":{"
     "\"mid\":\"m\",\"text\":\"STOP\"}}]}]}"},
    {"fb_messenger", JSON,
     "{\"object\":\"page\",\"entry\":[{\"id\":\"1\",\"changes\":[{\"field\":\"feed\",\"value\":"
     "{"
     "\"item\":\"comment\",\"message\":\"STOP\"}}]}]}"},
    {"gupshup_sms", FORM, "phonecode=9220&keyword=K&phoneno=9199&content=STOP&timestamp=1"},
    {"gupshup_whatsapp", JSON,
     "{\"app\":\"a\",\"timestamp\":1,\"version\":2,\"type\":\"message\",\"payload\":{\"id\":"
     "\"i\","
     "\"type\":\"text\",\"payload\":{\"text\":\"STOP\"}}}"},
    {"gupshup_whatsapp", JSON,
     "{\"object\":\"whatsapp_business_account\",\"entry\":[{\"changes\":[{\"field\":"
     "\"messages\","
     "\"value\":{\"messages\":[{\"id\":\"w\",\"text\":{\"body\":\"STOP\"}}]}}]}]}"},
    {"infobip", JSON,
     "{\"results\":[{\"from\":\"917\",\"to\":\"D\",\"text\":\"STOP\",\"cleanText\":\"\","
     "\"receivedAt\":\"2021-10-08T10:02:43.645+0000\",\"messageId\":\"5\"}],\"messageCount\":"
     "1}"},
    {"infobip", JSON,
     "{\"results\":[{\"from\":\"1\",\"to\":\"2\",\"receivedAt\":\"2021-10-08T10:02:43Z\","
     "\"messageId\":\"5\",\"message\":{\"type\":\"TEXT\",\"text\":\"STOP\"}}]}"},
    {"jasmin", FORM,
     "id=i&from=1&to=2&origin-connector=c&priority=1&coding=0&content=STOP&binary=53"},
    {"kaleyra", FORM, "id=i&from=1&to=2&message=STOP&timestamp=1"},
    {"kannel", FORM, "from=1&to=2&text=STOP&id=i"},
    {"line", JSON,
     "{\"events\":[{\"type\":\"message\",\"message\":{\"id\":\"1\",\"text\":\"STOP\"}}]}"},
    {"mailgun", FORM,
     "recipient=a%40b&sender=c%40d&from=c&subject=S&body-plain=STOP&stripped-text=STOP"},
    {"messagebird", FORM, "id=i&recipient=1&originator=2&body=STOP&createdDatetime=x"},
    {"msg91", JSON, "{\"mobile\":\"91\",\"keyword\":\"K\",\"message\":\"STOP\"}"},
    {"mtn", JSON,
     "{\"senderAddress\":\"1\",\"receiverAddress\":\"2\",\"message\":\"STOP\",\"id\":\"i\"}"},
    {"plivo", FORM, "From=1&To=2&Type=sms&Text=STOP&MessageUUID=u"},
    {"postmark", JSON,
     "{\"FromName\":\"N\",\"FromFull\":{\"Email\":\"a@b\"},\"Subject\":\"S\",\"MessageID\":"
     "\"i\","
     "\"TextBody\":\"STOP\"}"},
    {"sendgrid", FORM, "headers=h&from=a%40b&to=c%40d&subject=S&text=STOP&envelope=e"},
    {"sendgrid", "multipart/form-data; boundary=b",
     "--b\r\nContent-Disposition: form-data; name=\"from\"\r\n\r\na@b\r\n--b\r\n"
     "Content-Disposition: form-data; name=\"to\"\r\n\r\nc@d\r\n--b\r\n"
     "Content-Disposition: form-data; name=\"text\"\r\n\r\nSTOP\r\n--b--\r\n"},
    {"ses_sns", JSON,
     "{\"notificationType\":\"Received\",\"mail\":{\"messageId\":\"s\"},\"receipt\":{"
     "\"timestamp\":\"x\"},\"content\":\"STOP\"}"},
    {"sinch", JSON, "{\"type\":\"mo_text\",\"id\":\"i\",\"from\":\"1\",\"body\":\"STOP\"}"},
    {"sms_simple_forms", FORM, "direction=incoming&id=i&from=1&to=2&message=STOP"},
    {"sms_simple_forms", FORM, "user_id=1&mobile=2&response=STOP&message_id=7"},
    {"sms_simple_forms", JSON,
     "{\"namespace\":\"SMS\",\"eventType\":\"inbound_message_received\",\"payload\":{\"umid\":"
     "\"u\",\"body\":\"STOP\"}}"},
    {"sms_simple_forms", JSON,
     "{\"event\":{\"moText\":[{\"channel\":\"sms\",\"content\":\"STOP\"}]}}"},
    {"sparkpost", JSON,
     "[{\"msys\":{\"relay_message\":{\"content\":{\"text\":\"STOP\"},\"rcpt_to\":\"a@b\"}}}]"},
    {"twilio", FORM,
     "SmsMessageSid=SMin&SmsSid=SMin&SmsStatus=received&Body=STOP&To=1&From=2&MessageSid=SMin"},
    {"viber", JSON,
     "{\"event\":\"message\",\"message_token\":1,\"message\":{\"type\":\"text\",\"text\":"
     "\"STOP\"}}"},
    {"vonage_messages", JSON,
     "{\"message_uuid\":\"u\",\"from\":\"1\",\"message_type\":\"text\",\"text\":\"STOP\"}"},
    {"vonage_sms", FORM, "msisdn=1&to=2&messageId=i&text=STOP&type=text&keyword=STOP"},
    {"whatsapp_cloud", JSON,
     "{\"entry\":[{\"changes\":[{\"field\":\"messages\",\"value\":{\"contacts\":[],"
     "\"messages\":["
     "{\"id\":\"w\",\"text\":{\"body\":\"STOP\"}}]}}]}]}"},
    {"zenvia", JSON,
     "{\"type\":\"MESSAGE\",\"id\":\"i\",\"message\":{\"contents\":[{\"text\":\"STOP\"}]}}"},
};

/* As the gateways document them. What a person wrote goes into no letter. */
static void what_persons_send_is_ignored_by_every_adapter(void **state)
{
    struct fixture fixture;
    size_t count, seen = 0;
    const char *before = "";
    (void)state;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(messages); index++) {
        fixture_gateway(&fixture, messages[index].gateway);
        fixture_post(&fixture, messages[index].type, messages[index].body);
        if (fixture.result.event_count + letters_of(&fixture) > 0 ||
            fixture.result.drop_count == 0 || fixture.result.answer.code != 200)
            fail_msg("%s: %s: %s", messages[index].gateway, messages[index].body,
                     fixture.result.drop_count > 0 ? fixture.result.drops[0].reason : "an event");
        seen += strcmp(before, messages[index].gateway) != 0;
        before = messages[index].gateway;
    }
    (void)rcpt_gateway_list(&count);
    assert_int_equal(seen, count);
    fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receipt_in_another_form_never_vanishes),
        cmocka_unit_test(what_holds_nothing_is_no_letter),
        cmocka_unit_test(what_is_not_understood_stands_beside_what_is),
        cmocka_unit_test(what_persons_send_is_ignored_by_every_adapter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

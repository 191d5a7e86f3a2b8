/* Forgeries that were possible once: requests of somebody who has captured a signed one, or who
 * knows what everybody may know. None of them names VICTIM. What is left of the class is tried in
 * test_intake_coverage.c. */
#include "intake_signer.h"

#define VICTIM "VICTIM"

struct forger {
    struct fixture fixture;
    struct signer signer;
};

static void begin(struct forger *forger)
{
    fixture_init(&forger->fixture);
    signer_init(&forger->signer);
}

static void end(struct forger *forger)
{
    signer_fini(&forger->signer);
    fixture_fini(&forger->fixture);
}

static void expect_in(struct forger *forger, const struct parts *parts, const char *id)
{
    assert_true(send_parts(&forger->fixture, &forger->signer, parts));
    if (!names(&forger->fixture, id))
        fail_msg("no event of %s: %s", id, forger->fixture.result.verdict_reason);
}

static void expect_no_victim(struct forger *forger, const struct parts *parts)
{
    if (send_parts(&forger->fixture, &forger->signer, parts) && names(&forger->fixture, VICTIM))
        fail_msg("forged: %s?%s %s", parts->tail, parts->query, parts->body);
}

static void expect_refused(struct forger *forger, const struct parts *parts)
{
    expect_no_victim(forger, parts);
    if (forger->fixture.account != NULL)
        assert_true(forger->fixture.result.answer.code >= 400);
}

/* ---- url-hmac ---- */

static void a_signed_url_names_the_message_that_it_signs(void **state)
{
    static const struct {
        const char *auth_name, *query, *body;
    } tries[] = {
        {"uuid", "uuid=A&sig=%s&status=1&message_id=VICTIM", ""},
        {"uuid", "uuid=A&sig=%s&status=1&campaign_id=VICTIM", ""},
        {"uuid", "uuid=A&sig=%s&status=1&mid=VICTIM&id=VICTIM", ""},
        {"id", "id=A&sig=%s&uuid=VICTIM&status=1", ""},
        {"uuid", "uuid=A&uuid=VICTIM&sig=%s&status=1", ""},
        {"uuid", "uuid=A&sig=%s", "uuid=VICTIM&status=1"},
        {"uuid", "uuid=A&sig=%s", "{\"uuid\":\"VICTIM\",\"status\":\"1\"}"},
        {"uuid", "uuid=A&sig=%s",
         "[{\"uuid\":\"VICTIM\",\"status\":1},{\"uuid\":\"VICTIM2\",\"status\":1}]"},
        {"uuid", "uuid=A&sig=%s&exp=1&status=1&message_id=VICTIM", ""},
    };
    struct forger forger;
    char gateway[] = "kannel";
    (void)state;
    begin(&forger);
    const char *sig = hmac_hex(&forger.signer, "A");
    for (size_t index = 0; index < COUNT(tries); index++) {
        struct parts parts = parts_of(gateway, tries[index].body[0] != '\0' ? "POST" : "GET");
        char *name = rcpt_strdup(tries[index].auth_name), query[256];
        const char *mark = strstr(tries[index].query, "%s");
        snprintf(query, sizeof(query), "%.*s%s%s", (int)(mark - tries[index].query),
                 tries[index].query, sig, mark + 2);
        parts.config.auth = RCPT_GATEWAY_AUTH_URL_HMAC;
        parts.config.auth_name = name;
        parts.query = query;
        parts.body = tries[index].body;
        expect_no_victim(&forger, &parts);
        assert_true(forger.fixture.result.event_count <= 1);
        if (forger.fixture.result.event_count == 1)
            assert_true(rcpt_text_is(forger.fixture.result.events[0].gateway_message_id.size > 0
                                         ? forger.fixture.result.events[0].gateway_message_id
                                         : forger.fixture.result.events[0].message_id,
                                     "A"));
        free(name);
    }
    end(&forger);
}

/* ---- signatures of the body ---- */

static void the_url_beside_a_signed_body_names_nothing(void **state)
{
    static const char body[] = "{\"entry\":[{\"changes\":[{\"value\":{\"statuses\":[{\"id\":\"A\","
                               "\"status\":\"read\",\"timestamp\":\"1760789441\"}]}}]}]}";
    struct forger forger;
    char gateway[] = "whatsapp_cloud";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    parts.body = body;
    add_header(&parts, "X-Hub-Signature-256",
               print(&forger.signer, "sha256=%s", hmac_hex(&forger.signer, body)));
    expect_in(&forger, &parts, "A");
    parts.query = "message_id=VICTIM&campaign_id=VICTIM";
    expect_no_victim(&forger, &parts);
    assert_int_equal(forger.fixture.result.event_count, 1);
    end(&forger);
}

static void the_query_beside_a_signed_form_of_vonage_names_nothing(void **state)
{
    struct forger forger;
    char gateway[] = "vonage_sms";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    parts.body = print(&forger.signer, "messageId=A&status=delivered&sig=%s",
                       hmac_hex(&forger.signer, "&messageId=A&status=delivered"));
    expect_in(&forger, &parts, "A");
    parts.query = "message_id=VICTIM&campaign_id=VICTIM&client-ref=VICTIM";
    expect_no_victim(&forger, &parts);
    end(&forger);
}

/* Vonage signs _ for & and =, so that what is read must not be told from it either; nor may a name
 * be made of a value, or a tree of a text. */
static void what_vonage_signs_is_what_is_read(void **state)
{
    struct forger forger;
    char gateway[] = "vonage_sms";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "GET");
    const char *sig = hmac_hex(&forger.signer, "&client-ref=VIC_TIM&messageId=A&status=delivered");
    parts.query =
        print(&forger.signer, "client-ref=VIC_TIM&messageId=A&status=delivered&sig=%s", sig);
    expect_in(&forger, &parts, "VIC_TIM");
    parts.query =
        print(&forger.signer, "client-ref=VIC%%3DTIM&messageId=A&status=delivered&sig=%s", sig);
    assert_true(send_parts(&forger.fixture, &forger.signer, &parts));
    assert_false(names(&forger.fixture, "VIC=TIM"));
    sig = hmac_hex(&forger.signer, "&a=1&messageId=VICTIM&status=delivered&x=");
    parts.query =
        print(&forger.signer, "a%%3D1%%26messageId=VICTIM&status=delivered&x=&sig=%s", sig);
    expect_refused(&forger, &parts);
    sig = hmac_hex(&forger.signer, "&messageId=A&status=delivered&x=");
    parts.query = NULL;
    parts.body = print(&forger.signer,
                       "{\"messageId\":\"A\",\"status\":\"delivered\",\"sig\":\"%s\",\"x\":"
                       "{\"messageId\":\"VICTIM\",\"client-ref\":\"VICTIM\"}}",
                       sig);
    expect_no_victim(&forger, &parts);
    parts.body = print(&forger.signer,
                       "{\"messageId\":\"VICTIM\",\"messageId\":\"A\",\"status\":\"delivered\","
                       "\"x\":\"\",\"sig\":\"%s\"}",
                       sig);
    expect_refused(&forger, &parts);
    end(&forger);
}

/* The type is a header that nobody signs: it must not make another form of the same bytes. */
static void a_content_type_makes_no_form_of_a_signed_body(void **state)
{
    static const char field[] = "Content-Disposition: form-data; name=";
    static const char *const types[] = {"multipart/form-data; boundary=b", "text/plain",
                                        "multipart/form-data; boundary=real"};
    char gateway[] = "custom", id[] = "id", status[] = "s", name[] = "X-Signature", word[] = "ok",
         value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {word, value, 1, 1};
    struct forger forger;
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    parts.config.auth = RCPT_GATEWAY_AUTH_HMAC_HEX;
    parts.config.auth_name = name;
    parts.config.custom = (struct rcpt_gateway_custom){
        .id = id, .status = status, .statuses = &pair, .statuses_count = 1, .answer_code = 200};
    parts.body = print(&forger.signer,
                       "--real\r\n%s\"id\"\r\n\r\nA\r\n--real\r\n%s\"s\"\r\n\r\nok\r\n--real\r\n"
                       "%s\"text\"\r\n\r\n&id=VICTIM&s=ok&\r\n--b\r\n%s\"id\"\r\n\r\nVICTIM\r\n"
                       "--b\r\n%s\"s\"\r\n\r\nok\r\n--b--\r\n--real--\r\n",
                       field, field, field, field, field);
    add_header(&parts, "X-Signature", hmac_hex(&forger.signer, parts.body));
    add_header(&parts, "Content-Type", "");
    for (size_t index = 0; index < COUNT(types); index++) {
        parts.values[1] = types[index];
        expect_no_victim(&forger, &parts);
    }
    expect_in(&forger, &parts, "A"); /* with the type that was meant */
    end(&forger);
}

static void the_borders_of_a_signed_text_cannot_be_moved(void **state)
{
    char gateway[] = "custom", id[] = "id", status[] = "s", word[] = "ok", value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {word, value, 1, 1};
    static char secret[] = "whsec_czNjcmV0LW9mLXRoZS1hY2NvdW50"; /* SECRET */
    struct forger forger;
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    parts.secret = secret;
    parts.config.auth = RCPT_GATEWAY_AUTH_STANDARD;
    parts.config.custom = (struct rcpt_gateway_custom){
        .id = id, .status = status, .statuses = &pair, .statuses_count = 1, .answer_code = 200};
    char *mac = hmac_base64(&forger.signer, RCPT_SHA256,
                            "msg_1." SIGNED_AT ".id=A&s=ok&text=5.id=VICTIM&s=ok");
    add_header(&parts, "webhook-signature", print(&forger.signer, "v1,%s", mac));
    add_header(&parts, "webhook-id", "msg_1");
    add_header(&parts, "webhook-timestamp", SIGNED_AT);
    parts.body = "id=A&s=ok&text=5.id=VICTIM&s=ok";
    expect_in(&forger, &parts, "A");
    parts.values[2] = SIGNED_AT ".id=A&s=ok&text=5";
    parts.body = "id=VICTIM&s=ok";
    expect_refused(&forger, &parts);
    parts.values[1] = "msg_1." SIGNED_AT;
    parts.values[2] = "id=A&s=ok&text=5";
    expect_refused(&forger, &parts);
    end(&forger);
}

/* Twilio and Plivo sign an id at the URL's end and the form behind it without a border that holds.
 */
static void the_end_of_a_signed_url_cannot_be_moved(void **state)
{
    char twilio[] = "twilio", plivo[] = "plivo";
    struct forger forger;
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(twilio, "POST");
    add_header(&parts, "X-Twilio-Signature",
               hmac_base64(&forger.signer, RCPT_SHA1,
                           BASE_URL
                           "?message_id=VICTIM5AccountSidAC1MessageSidSM1MessageStatussent"));
    parts.query = "message_id=VICTIM5";
    parts.body = "AccountSid=AC1&MessageSid=SM1&MessageStatus=sent";
    expect_in(&forger, &parts, "VICTIM5");
    parts.query = "message_id=VICTIM";
    parts.body = "5AccountSid=AC1&MessageSid=SM1&MessageStatus=sent";
    expect_refused(&forger, &parts);
    parts.query = "message_id=";
    parts.body = "VICTIM5Account=SidAC1&MessageSid=SM1&MessageStatus=sent&=";
    expect_refused(&forger, &parts); /* a field without a name comes first */
    parts = parts_of(plivo, "POST");
    add_header(&parts, "X-Plivo-Signature-V3",
               hmac_base64(&forger.signer, RCPT_SHA256,
                           BASE_URL "?message_id=VICTIM.5.MessageUUIDPStatussent.77"));
    add_header(&parts, "X-Plivo-Signature-V3-Nonce", "77");
    parts.query = "message_id=VICTIM.5";
    parts.body = "MessageUUID=P&Status=sent";
    expect_in(&forger, &parts, "VICTIM.5");
    parts.query = "message_id=VICTIM";
    parts.body = "5.MessageUUID=P&Status=sent";
    expect_refused(&forger, &parts);
    end(&forger);
}

/* Another token would be a request that nobody remembers. */
static void a_signature_of_mailgun_has_one_token(void **state)
{
    struct forger forger;
    char gateway[] = "mailgun";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    const char *sig = hmac_hex(&forger.signer, SIGNED_AT "99token");
    parts.body = print(&forger.signer,
                       "event=delivered&Message-Id=A&timestamp=%s&token=99token&signature=%s",
                       SIGNED_AT, sig);
    expect_in(&forger, &parts, "A");
    parts.body = print(&forger.signer,
                       "event=delivered&Message-Id=VICTIM&timestamp=%s9&token=9token&signature=%s",
                       SIGNED_AT, sig);
    expect_refused(&forger, &parts);
    end(&forger);
}

/* ---- Amazon SNS ---- */

#define EVENT(id)                                                                                  \
    "{\"eventType\":\"TEXT_DELIVERED\",\"messageId\":\"" id "\",\"eventTimestamp\":1760789441000," \
    "\"isFinal\":true}"

static void records_beside_the_signature_of_sns_are_not_read(void **state)
{
    struct forger forger;
    char gateway[] = "aws_eum_sms";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    parts.secret = NULL;
    parts.body = envelope_of(&forger.signer, EVENT("A"), "");
    expect_in(&forger, &parts, "A");
    struct rcpt_text data = rcpt_base64(RCPT_TEXT(EVENT(VICTIM)), &forger.signer.arena);
    parts.body =
        envelope_of(&forger.signer, EVENT("A"),
                    print(&forger.signer, "\"requestId\":\"r\",\"records\":[{\"data\":\"%.*s\"}],",
                          (int)data.size, data.at));
    expect_no_victim(&forger, &parts);
    parts.body = envelope_of(&forger.signer, EVENT("A"), "\"detail\":" EVENT(VICTIM) ",");
    expect_no_victim(&forger, &parts);
    parts.body = envelope_of(&forger.signer, EVENT("A"), "\"messageId\":\"VICTIM\",");
    expect_no_victim(&forger, &parts);
    end(&forger);
}

static void a_certificate_is_no_shared_secret(void **state)
{
    static const char body[] =
        "{\"eventType\":\"Delivery\",\"mail\":{\"messageId\":\"VICTIM\"},\"delivery\":"
        "{\"timestamp\":\"2025-10-18T12:10:35.000Z\",\"recipients\":[\"x@example.com\"]}}";
    struct forger forger;
    char gateway[] = "ses_sns";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    parts.secret = forger.signer.certificate;
    parts.body = body;
    struct rcpt_text basic = RCPT_TEXT_JOIN(&forger.signer.arena, RCPT_TEXT("x:"),
                                            rcpt_text_of(forger.signer.certificate));
    basic = rcpt_base64(basic, &forger.signer.arena);
    add_header(&parts, "Authorization",
               print(&forger.signer, "Basic %.*s", (int)basic.size, basic.at));
    expect_refused(&forger, &parts);
    end(&forger);
}

static void an_account_of_sns_has_a_topic(void **state)
{
    struct forger forger;
    char gateway[] = "aws_eum_sms", others[] = "arn:aws:sns:eu-west-1:999:t";
    static char secret[] = SECRET;
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    parts.secret = NULL;
    parts.config.topic_arn = NULL;
    parts.body = envelope_of(&forger.signer, EVENT(VICTIM), "");
    expect_refused(&forger, &parts);
    /* Nor another one with the secret of raw delivery. */
    parts.config.topic_arn = others;
    parts.secret = secret;
    parts.query = "token=" SECRET;
    parts.body = "{\"Type\":\"Notification\",\"TopicArn\":\"" TOPIC "\",\"Message\":\"{}\"}";
    expect_refused(&forger, &parts);
    assert_int_equal(forger.fixture.result.verdict, RCPT_GATEWAY_BAD);
    end(&forger);
}

static void a_certificate_is_of_the_topics_region_and_of_amazons_name(void **state)
{
    static const char *const urls[] = {
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-"
        "0123456789abcdef0123456789abcdef.pem",
        "https://sns.eu-west-1.amazonaws.com/x.pem",
        "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123.pem",
        "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-"
        "0123456789ABCDEF0123456789abcdef.pem",
        "https://sns.eu-west-1.amazonaws.com/x/SimpleNotificationService-"
        "0123456789abcdef0123456789abcdef.pem",
        "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-"
        "0123456789abcdef0123456789abcdef.pem?x=.pem",
    };
    struct forger forger;
    char gateway[] = "aws_eum_sms";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    parts.secret = NULL;
    const char *body = envelope_of(&forger.signer, EVENT("A"), "");
    const char *at = strstr(body, CERTIFICATE_URL);
    for (size_t index = 0; index < COUNT(urls); index++) {
        parts.body = print(&forger.signer, "%.*s%s%s", (int)(at - body), body, urls[index],
                           at + strlen(CERTIFICATE_URL));
        assert_true(send_parts(&forger.fixture, &forger.signer, &parts));
        assert_int_equal(forger.fixture.result.verdict, RCPT_GATEWAY_BAD); /* and is not fetched */
    }
    end(&forger);
}

/* ---- Plivo ---- */

static void plivos_older_signature_counts_only_when_asked_for(void **state)
{
    struct forger forger;
    char gateway[] = "plivo";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    add_header(&parts, "X-Plivo-Signature-V2",
               hmac_base64(&forger.signer, RCPT_SHA256, BASE_URL "12345"));
    add_header(&parts, "X-Plivo-Signature-V2-Nonce", "12345");
    parts.body = "MessageUUID=VICTIM&Status=delivered";
    expect_refused(&forger, &parts);
    add_header(&parts, "X-Plivo-Signature-V3",
               hmac_base64(&forger.signer, RCPT_SHA256, "something else"));
    add_header(&parts, "X-Plivo-Signature-V3-Nonce", "12345");
    expect_refused(&forger, &parts);
    end(&forger);
}

static void a_get_of_plivo_does_not_sign_a_body(void **state)
{
    struct forger forger;
    char gateway[] = "plivo";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "GET");
    add_header(
        &parts, "X-Plivo-Signature-V3",
        hmac_base64(&forger.signer, RCPT_SHA256, BASE_URL "?MessageUUID=A&Status=delivered.12345"));
    add_header(&parts, "X-Plivo-Signature-V3-Nonce", "12345");
    parts.query = "MessageUUID=A&Status=delivered";
    expect_in(&forger, &parts, "A");
    parts.method = "POST";
    parts.body = "{\"MessageUUID\":\"VICTIM\",\"Status\":\"delivered\"}";
    expect_refused(&forger, &parts);
    parts.body = "MessageUUID=VICTIM&Status=delivered";
    expect_refused(&forger, &parts);
    /* The number's border: what it takes from the fields is missing there. */
    parts.body = "";
    parts.query = "MessageUUID=A&Status=delivered.x";
    expect_refused(&forger, &parts);
    end(&forger);
}

/* Its fields may be sent in any order and its number used again; it stays the same receipt. */
static void a_copy_of_plivos_is_the_same_receipt(void **state)
{
    struct forger forger;
    char gateway[] = "plivo";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "POST");
    add_header(&parts, "X-Plivo-Signature-V3",
               hmac_base64(&forger.signer, RCPT_SHA256,
                           BASE_URL "?MessageUUIDASequence2Statusdelivered.12345"));
    add_header(&parts, "X-Plivo-Signature-V3-Nonce", "12345");
    static const char *const bodies[] = {"MessageUUID=A&Sequence=2&Status=delivered",
                                         "Status=delivered&Sequence=2&MessageUUID=A"};
    for (size_t index = 0; index < COUNT(bodies); index++) {
        parts.body = bodies[index];
        expect_in(&forger, &parts, "A");
        const struct rcpt_gateway_event *event = &forger.fixture.result.events[0];
        assert_true(rcpt_text_is(event->event_id, "A:2"));
        assert_true(rcpt_text_is(event->status, "DELIVERED"));
        assert_true(rcpt_text_is(forger.fixture.result.replay_key, "12345"));
    }
    parts.query = "message_id=VICTIM";
    expect_refused(&forger, &parts);
    end(&forger);
}

/* ---- before any credentials ---- */

static void a_secret_is_no_verify_token(void **state)
{
    struct forger forger;
    char gateway[] = "whatsapp_cloud";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "GET");
    parts.query = "hub.mode=subscribe&hub.challenge=1&hub.verify_token=" SECRET;
    expect_refused(&forger, &parts);
    parts.config.verify = RCPT_GATEWAY_VERIFY_OFF;
    expect_refused(&forger, &parts);
    end(&forger);
}

static void an_address_that_is_not_allowed_gets_nothing(void **state)
{
    struct forger forger;
    char gateway[] = "whatsapp_cloud", network[] = "198.51.100.0/24", *allow[] = {network},
         token[] = "tok";
    (void)state;
    begin(&forger);
    struct parts parts = parts_of(gateway, "GET");
    parts.config.allow = allow;
    parts.config.allow_count = 1;
    parts.config.verify_token = token;
    expect_refused(&forger, &parts); /* an empty request */
    assert_int_equal(forger.fixture.result.answer.code, 403);
    parts.query = "hub.mode=subscribe&hub.challenge=1&hub.verify_token=tok";
    expect_refused(&forger, &parts);
    end(&forger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signed_url_names_the_message_that_it_signs),
        cmocka_unit_test(the_url_beside_a_signed_body_names_nothing),
        cmocka_unit_test(the_query_beside_a_signed_form_of_vonage_names_nothing),
        cmocka_unit_test(what_vonage_signs_is_what_is_read),
        cmocka_unit_test(a_content_type_makes_no_form_of_a_signed_body),
        cmocka_unit_test(the_borders_of_a_signed_text_cannot_be_moved),
        cmocka_unit_test(the_end_of_a_signed_url_cannot_be_moved),
        cmocka_unit_test(a_signature_of_mailgun_has_one_token),
        cmocka_unit_test(records_beside_the_signature_of_sns_are_not_read),
        cmocka_unit_test(a_certificate_is_no_shared_secret),
        cmocka_unit_test(an_account_of_sns_has_a_topic),
        cmocka_unit_test(a_certificate_is_of_the_topics_region_and_of_amazons_name),
        cmocka_unit_test(plivos_older_signature_counts_only_when_asked_for),
        cmocka_unit_test(a_get_of_plivo_does_not_sign_a_body),
        cmocka_unit_test(a_copy_of_plivos_is_the_same_receipt),
        cmocka_unit_test(a_secret_is_no_verify_token),
        cmocka_unit_test(an_address_that_is_not_allowed_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

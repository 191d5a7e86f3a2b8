/* What a scheme does not cover names no message. For each row of the table of schemes a request is
 * signed that names GOOD; then VICTIM is put, under every name that an id has anywhere, into every
 * place of the request: query, form, JSON, envelope, path and headers. No event may name it. A
 * scheme or a signing gateway without a request of its own fails the test, as does a row that
 * docs/gateways.md does not have. */
#include "gateways/gateway.h"
#include "intake_signer.h"

#define VICTIM "VICTIM"

struct judge {
    struct fixture fixture;
    struct signer signer;
    size_t tries;
};

typedef void make_request(struct judge *judge, struct parts *parts);

/* ---- a signed request of each scheme ---- */

static void use_custom(struct parts *parts, enum rcpt_gateway_auth auth)
{
    static char id[] = "id", status[] = "status", event[] = "event", campaign[] = "campaign",
                ref[] = "ref", word[] = "delivered", value[] = "DELIVERED", name[] = "X-Signature";
    static struct rcpt_gateway_pair pair = {word, value, 1, 1};
    parts->config.auth = auth;
    parts->config.auth_name = name;
    parts->config.custom = (struct rcpt_gateway_custom){.id = id,
                                                        .status = status,
                                                        .event_id = event,
                                                        .campaign_id = campaign,
                                                        .client_ref = ref,
                                                        .statuses = &pair,
                                                        .statuses_count = 1,
                                                        .answer_code = 200};
}

static void make_hmac_hex(struct judge *judge, struct parts *parts)
{
    use_custom(parts, RCPT_GATEWAY_AUTH_HMAC_HEX);
    parts->body = "{\"id\":\"GOOD\",\"status\":\"delivered\"}";
    add_header(parts, "X-Signature", hmac_hex(&judge->signer, parts->body));
}

static void make_hmac_base64(struct judge *judge, struct parts *parts)
{
    use_custom(parts, RCPT_GATEWAY_AUTH_HMAC_BASE64);
    parts->body = "id=GOOD&status=delivered";
    add_header(parts, "X-Signature", hmac_base64(&judge->signer, RCPT_SHA256, parts->body));
}

static void make_standard(struct judge *judge, struct parts *parts)
{
    static char secret[] = "whsec_czNjcmV0LW9mLXRoZS1hY2NvdW50"; /* SECRET */
    use_custom(parts, RCPT_GATEWAY_AUTH_STANDARD);
    parts->secret = secret;
    parts->body = "{\"id\":\"GOOD\",\"status\":\"delivered\"}";
    const char *text = print(&judge->signer, "msg_1." SIGNED_AT ".%s", parts->body);
    add_header(parts, "webhook-id", "msg_1");
    add_header(parts, "webhook-timestamp", SIGNED_AT);
    add_header(parts, "webhook-signature",
               print(&judge->signer, "v1,%s", hmac_base64(&judge->signer, RCPT_SHA256, text)));
}

static char *signature_of(struct judge *judge, EVP_PKEY *key, const char *text)
{
    return rcpt_text_terminated(&judge->signer.arena,
                                sign_with(&judge->signer, key, rcpt_text_of(text)));
}

static void make_telnyx(struct judge *judge, struct parts *parts)
{
    use_custom(parts, RCPT_GATEWAY_AUTH_TELNYX);
    parts->secret = public_key_of(&judge->signer, judge->signer.ed25519);
    parts->body = "{\"id\":\"GOOD\",\"status\":\"delivered\"}";
    add_header(parts, "telnyx-timestamp", SIGNED_AT);
    add_header(parts, "telnyx-signature-ed25519",
               signature_of(judge, judge->signer.ed25519,
                            print(&judge->signer, SIGNED_AT "|%s", parts->body)));
}

static void make_url_hmac(struct judge *judge, struct parts *parts)
{
    static char name[] = "mid";
    parts->config.auth = RCPT_GATEWAY_AUTH_URL_HMAC;
    parts->config.auth_name = name;
    parts->method = "GET";
    parts->query = print(&judge->signer, "mid=GOOD&campaign_id=c&exp=1760799999&sig=%s&status=1",
                         hmac_hex(&judge->signer, "GOOD\nc\n1760799999"));
}

static void make_former_url(struct judge *judge, struct parts *parts)
{
    make_url_hmac(judge, parts);
    parts->query =
        print(&judge->signer, "mid=GOOD&sig=%s&status=1", hmac_hex(&judge->signer, "GOOD"));
}

static void make_twilio(struct judge *judge, struct parts *parts)
{
    parts->query = "a=1";
    parts->body = "MessageSid=GOOD&MessageStatus=delivered&To=%2B1555";
    add_header(parts, "X-Twilio-Signature",
               hmac_base64(&judge->signer, RCPT_SHA1,
                           BASE_URL "?a=1MessageSidGOODMessageStatusdeliveredTo+1555"));
}

static void make_twilio_json(struct judge *judge, struct parts *parts)
{
    struct rcpt_arena *arena = &judge->signer.arena;
    parts->body = "{\"MessageSid\":\"GOOD\",\"MessageStatus\":\"delivered\"}";
    struct rcpt_text hash =
        rcpt_hex(RCPT_HASH(RCPT_SHA256, arena, rcpt_text_of(parts->body)), arena);
    parts->query = print(&judge->signer, "bodySHA256=%.*s", (int)hash.size, hash.at);
    add_header(parts, "X-Twilio-Signature",
               hmac_base64(&judge->signer, RCPT_SHA1,
                           print(&judge->signer, BASE_URL "?%s", parts->query)));
}

#define VONAGE "&messageId=GOOD&nonce=n&status=delivered&timestamp=" SIGNED_AT

static void make_vonage_query(struct judge *judge, struct parts *parts)
{
    parts->method = "GET";
    parts->query = print(&judge->signer, "%s&sig=%s", VONAGE, hmac_hex(&judge->signer, VONAGE));
}

static void make_vonage_form(struct judge *judge, struct parts *parts)
{
    parts->body = print(&judge->signer, "%s&sig=%s", VONAGE, hmac_hex(&judge->signer, VONAGE));
}

static void make_vonage_json(struct judge *judge, struct parts *parts)
{
    parts->body = print(&judge->signer,
                        "{\"messageId\":\"GOOD\",\"nonce\":\"n\",\"status\":\"delivered\","
                        "\"timestamp\":" SIGNED_AT ",\"sig\":\"%s\"}",
                        hmac_hex(&judge->signer, VONAGE));
}

static void make_vonage_messages(struct judge *judge, struct parts *parts)
{
    parts->body = "{\"message_uuid\":\"GOOD\",\"status\":\"delivered\"}";
    add_header(parts, "Authorization",
               print(&judge->signer, "Bearer %s", token_of(&judge->signer, "", parts->body)));
}

static void make_messagebird(struct judge *judge, struct parts *parts)
{
    parts->method = "GET";
    parts->query = "id=GOOD&status=delivered";
    add_header(parts, "MessageBird-Signature-JWT",
               token_of(&judge->signer, BASE_URL "?id=GOOD&status=delivered", ""));
}

static void make_plivo(struct judge *judge, struct parts *parts)
{
    parts->query = "b=1";
    parts->body = "MessageUUID=GOOD&Status=delivered";
    add_header(parts, "X-Plivo-Signature-V3",
               hmac_base64(&judge->signer, RCPT_SHA256,
                           BASE_URL "?b=1.MessageUUIDGOODStatusdelivered.12345"));
    add_header(parts, "X-Plivo-Signature-V3-Nonce", "12345");
}

static void make_eum(struct judge *judge, struct parts *parts)
{
    parts->secret = NULL;
    parts->body = envelope_of(&judge->signer,
                              "{\"eventType\":\"TEXT_DELIVERED\",\"messageId\":\"GOOD\"}", "");
}

static void make_ses(struct judge *judge, struct parts *parts)
{
    parts->secret = NULL;
    parts->body =
        envelope_of(&judge->signer,
                    "{\"eventType\":\"Delivery\",\"mail\":{\"messageId\":\"GOOD\"},\"delivery\":"
                    "{\"recipients\":[\"x@example.com\"]}}",
                    "");
}

static void make_sendgrid(struct judge *judge, struct parts *parts)
{
    parts->secret = public_key_of(&judge->signer, judge->signer.p256);
    parts->body = "[{\"event\":\"delivered\",\"sg_message_id\":\"GOOD\"}]";
    add_header(parts, "X-Twilio-Email-Event-Webhook-Timestamp", SIGNED_AT);
    add_header(parts, "X-Twilio-Email-Event-Webhook-Signature",
               signature_of(judge, judge->signer.p256,
                            print(&judge->signer, SIGNED_AT "%s", parts->body)));
}

static void make_mailgun(struct judge *judge, struct parts *parts)
{
    parts->body =
        print(&judge->signer,
              "event=delivered&Message-Id=GOOD&timestamp=" SIGNED_AT "&token=tok&signature=%s",
              hmac_hex(&judge->signer, SIGNED_AT "tok"));
}

static void sign_meta(struct judge *judge, struct parts *parts)
{
    add_header(parts, "X-Hub-Signature-256",
               print(&judge->signer, "sha256=%s", hmac_hex(&judge->signer, parts->body)));
}

static void make_whatsapp(struct judge *judge, struct parts *parts)
{
    parts->body = "{\"entry\":[{\"changes\":[{\"value\":{\"statuses\":[{\"id\":\"GOOD\","
                  "\"status\":\"read\"}]}}]}]}";
    sign_meta(judge, parts);
}

static void make_messenger(struct judge *judge, struct parts *parts)
{
    parts->body = "{\"entry\":[{\"messaging\":[{\"delivery\":{\"mids\":[\"GOOD\"]}}]}]}";
    sign_meta(judge, parts);
}

static void make_viber(struct judge *judge, struct parts *parts)
{
    parts->body = "{\"event\":\"delivered\",\"message_token\":\"GOOD\"}";
    add_header(parts, "X-Viber-Content-Signature", hmac_hex(&judge->signer, parts->body));
}

static void make_line(struct judge *judge, struct parts *parts)
{
    parts->body = "{\"events\":[{\"type\":\"delivery\",\"delivery\":{\"data\":\"GOOD\"}}]}";
    add_header(parts, "x-line-signature", hmac_base64(&judge->signer, RCPT_SHA256, parts->body));
}

static const struct {
    const char *gateway;
    rcpt_verifier *verify;
    make_request *make;
} requests[] = {
    {"custom", rcpt_verify_hmac_hex, make_hmac_hex},
    {"custom", rcpt_verify_hmac_base64, make_hmac_base64},
    {"custom", rcpt_verify_standard, make_standard},
    {"custom", rcpt_verify_telnyx, make_telnyx},
    {"kannel", rcpt_verify_url_hmac, make_url_hmac},
    {"kannel", rcpt_verify_url_hmac, make_former_url},
    {"twilio", rcpt_verify_twilio, make_twilio},
    {"twilio", rcpt_verify_twilio, make_twilio_json},
    {"vonage_sms", rcpt_verify_vonage_sms, make_vonage_query},
    {"vonage_sms", rcpt_verify_vonage_sms, make_vonage_form},
    {"vonage_sms", rcpt_verify_vonage_sms, make_vonage_json},
    {"vonage_messages", rcpt_verify_vonage_messages, make_vonage_messages},
    {"messagebird", rcpt_verify_messagebird, make_messagebird},
    {"plivo", rcpt_verify_plivo, make_plivo},
    {"aws_eum_sms", rcpt_verify_sns, make_eum},
    {"ses_sns", rcpt_verify_sns, make_ses},
    {"sendgrid", rcpt_verify_sendgrid, make_sendgrid},
    {"mailgun", rcpt_verify_mailgun, make_mailgun},
    {"whatsapp_cloud", rcpt_verify_meta, make_whatsapp},
    {"fb_messenger", rcpt_verify_meta, make_messenger},
    {"viber", rcpt_verify_viber, make_viber},
    {"line", rcpt_verify_line, make_line},
};

/* ---- places for another id ---- */

/* The names of ids in all adapters, and of what holds them. */
static const char *const id_names[] = {
    "message_id",  "campaign_id",   "id",           "uuid",
    "mid",         "messageId",     "message-id",   "MessageSid",
    "SmsSid",      "MessageUUID",   "Message-Id",   "client-ref",
    "client_ref",  "event",         "event_id",     "campaign",
    "ref",         "token",         "message_uuid", "sg_message_id",
    "sg_event_id", "message_token", "MessageId",    "msgid",
    "guid",        "ret_id",        "Sequence",     "data",
    "channel",     "ChannelPrefix", "Type",         "To",
    "link",        "TotalAmount",   "price",        "campaignName"};

static void try_it(struct judge *judge, const struct parts *parts, const char *place,
                   const char *name)
{
    judge->tries++;
    assert_true(send_parts(&judge->fixture, &judge->signer, parts));
    if (names(&judge->fixture, VICTIM))
        fail_msg("%s: %s in the %s names the message (%s)", parts->config.gateway, name, place,
                 judge->fixture.result.verdict_reason);
}

static void try_parameters(struct judge *judge, const struct parts *signed_parts, const char *name)
{
    static const char *const more[] = {"", "&status=1&status=delivered", "&Status=delivered"};
    struct signer *signer = &judge->signer;
    const char *query = signed_parts->query != NULL ? signed_parts->query : "";
    for (size_t index = 0; index < COUNT(more); index++) {
        struct parts parts = *signed_parts;
        parts.query = print(signer, "%s=VICTIM%s&%s", name, more[index], query);
        try_it(judge, &parts, "query's begin", name);
        parts.query = print(signer, "%s%s&%s=VICTIM", query, more[index], name);
        try_it(judge, &parts, "query's end", name);
        parts = *signed_parts;
        parts.method = "POST";
        parts.body = print(signer, "%s=VICTIM%s&%s", name, more[index], parts.body);
        try_it(judge, &parts, "form's begin", name);
        parts.body = print(signer, "%s%s&%s=VICTIM", signed_parts->body, more[index], name);
        try_it(judge, &parts, "form's end", name);
        parts.body = print(signer, "%s=VICTIM%s", name, more[index]);
        try_it(judge, &parts, "form", name);
    }
}

static void try_json(struct judge *judge, const struct parts *signed_parts, const char *name)
{
    static const char *const values[] = {
        "\"VICTIM\"", "{\"id\":\"VICTIM\",\"messageId\":\"VICTIM\",\"eventType\":\"TEXT_SENT\"}",
        "[{\"id\":\"VICTIM\",\"status\":\"delivered\",\"eventType\":\"TEXT_SENT\"}]"};
    struct signer *signer = &judge->signer;
    for (size_t index = 0; index < COUNT(values); index++) {
        struct parts parts = *signed_parts;
        parts.method = "POST";
        size_t size = strlen(parts.body);
        if (size > 0 && parts.body[0] == '{') {
            parts.body =
                print(signer, "{\"%s\":%s,%s", name, values[index], signed_parts->body + 1);
            try_it(judge, &parts, "JSON's begin", name);
            parts.body = print(signer, "%.*s,\"%s\":%s}", (int)size - 1, signed_parts->body, name,
                               values[index]);
            try_it(judge, &parts, "JSON's end", name);
        }
        parts.body = print(signer,
                           "{\"%s\":%s,\"status\":\"delivered\",\"Status\":\"delivered\","
                           "\"MessageStatus\":\"delivered\"}",
                           name, values[index]);
        try_it(judge, &parts, "JSON", name);
        parts.body = print(signer, "[{\"%s\":%s,\"status\":\"delivered\"}]", name, values[index]);
        try_it(judge, &parts, "JSON's array", name);
    }
}

static void try_around(struct judge *judge, const struct parts *signed_parts, const char *name)
{
    static const char *const headers[] = {"x-amz-sns-message-id", "i-twilio-idempotency-token",
                                          "svix-id", "X-Message-Id"};
    struct parts parts = *signed_parts;
    parts.tail = "/VICTIM";
    try_it(judge, &parts, "path", name);
    parts = *signed_parts;
    add_header(&parts, name, VICTIM);
    for (size_t index = 0; index < COUNT(headers); index++)
        add_header(&parts, headers[index], VICTIM);
    try_it(judge, &parts, "headers", name);
    parts = *signed_parts;
    parts.method = "POST";
    parts.body =
        print(&judge->signer,
              "--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\nVICTIM\r\n--b--", name);
    add_header(&parts, "Content-Type", "multipart/form-data; boundary=b");
    try_it(judge, &parts, "multipart", name);
}

/* ---- the tests ---- */

static void begin(struct judge *judge)
{
    judge->tries = 0;
    fixture_init(&judge->fixture);
    signer_init(&judge->signer);
}

static void end(struct judge *judge)
{
    signer_fini(&judge->signer);
    fixture_fini(&judge->fixture);
}

static void what_is_not_covered_names_no_message(void **state)
{
    struct judge judge;
    (void)state;
    begin(&judge);
    for (size_t index = 0; index < COUNT(requests); index++) {
        char *gateway = rcpt_strdup(requests[index].gateway);
        struct parts parts = parts_of(gateway, "POST");
        requests[index].make(&judge, &parts);
        assert_true(send_parts(&judge.fixture, &judge.signer, &parts));
        if (judge.fixture.result.verdict != RCPT_GATEWAY_VERIFIED || !names(&judge.fixture, "GOOD"))
            fail_msg("%s, request %zu: %s", gateway, index, judge.fixture.result.verdict_reason);
        bool sender_only = rcpt_scheme_of(requests[index].verify)->covers == RCPT_COVERS_REQUEST;
        for (size_t name = 0; name < COUNT(id_names) && !sender_only; name++) {
            try_parameters(&judge, &parts, id_names[name]);
            try_json(&judge, &parts, id_names[name]);
            try_around(&judge, &parts, id_names[name]);
            rcpt_arena_reset(&judge.signer.arena, 1u << 16);
            parts = parts_of(gateway, "POST");
            requests[index].make(&judge, &parts);
        }
        free(gateway);
    }
    print_message("%zu forgeries\n", judge.tries);
    end(&judge);
}

static bool has_request(const char *gateway, rcpt_verifier *verify)
{
    for (size_t index = 0; index < COUNT(requests); index++)
        if (requests[index].verify == verify &&
            (gateway == NULL || strcmp(requests[index].gateway, gateway) == 0))
            return true;
    return false;
}

static void each_scheme_and_each_gateway_that_signs_is_tried(void **state)
{
    size_t count;
    const char *const *gateways = rcpt_gateway_list(&count);
    (void)state;
    for (size_t index = 0; index < rcpt_scheme_count; index++)
        if (rcpt_schemes[index].covers != RCPT_COVERS_REQUEST &&
            !has_request(NULL, rcpt_schemes[index].verify))
            fail_msg("no request for %s", rcpt_schemes[index].name);
    for (size_t index = 0; index < count; index++) {
        const struct rcpt_gateway *gateway = rcpt_gateway_find(gateways[index]);
        if (gateway->verify != NULL && !has_request(gateway->name, gateway->verify))
            fail_msg("no request of %s", gateway->name);
    }
}

/* Schemes of which the same holds share a row: "| basic, bearer | … | … |". */
static bool names_scheme(const char *page, const char *end, const char *name)
{
    size_t size = strlen(name);
    while (end > page && end[-1] != '\n')
        end--;
    for (const char *at = end + 2; *at != '|'; at++)
        if (strncmp(at, name, size) == 0 && at[-1] == ' ' && strchr(", ", at[size]) != NULL)
            return true;
    return false;
}

static void the_page_of_gateways_has_the_same_table(void **state)
{
    char rest[512], *page = file_text("docs/gateways.md");
    (void)state;
    assert_non_null(page);
    for (size_t index = 0; index < rcpt_scheme_count; index++) {
        const struct rcpt_scheme *scheme = &rcpt_schemes[index];
        snprintf(rest, sizeof(rest), " | %s | %s |\n", scheme->covered, scheme->copy);
        const char *found = strstr(page, rest);
        if (found == NULL || !names_scheme(page, found, scheme->name))
            fail_msg("docs/gateways.md has not: | %s%s", scheme->name, rest);
    }
    free(page);
}

/* A template that could never see what it reads is a mistake, and one that could be forged is a
 * decision: unsigned_ids. */
static void a_template_of_what_is_not_covered_is_refused(void **state)
{
    static const struct {
        unsigned part;
        char text[16];
    } templates[] = {
        {RCPT_COVERS_QUERY, "?mid"}, {RCPT_COVERS_PATH, "x,$1"}, {RCPT_COVERS_HEADERS, "{@x-mid}"}};
    struct judge judge;
    (void)state;
    begin(&judge);
    for (size_t index = 0; index < COUNT(requests); index++) {
        const struct rcpt_scheme *scheme = rcpt_scheme_of(requests[index].verify);
        char *gateway = rcpt_strdup(requests[index].gateway);
        for (size_t template = 0; template <COUNT(templates); template ++) {
            char text[16];
            struct parts parts = parts_of(gateway, "POST");
            requests[index].make(&judge, &parts);
            memcpy(text, templates[template].text, sizeof(text));
            parts.config.message_id = text;
            bool covered = (scheme->covers & templates[template].part) != 0 &&
                           (scheme->covers & RCPT_COVERS_ID) == 0;
            bool made = send_parts(&judge.fixture, &judge.signer, &parts);
            if (text[1] != 'm' ||
                (scheme->covers & RCPT_COVERS_ID) == 0) /* ?mid is what it signs */
                assert_int_equal(made, covered);
            parts.config.unsigned_ids = true;
            made = send_parts(&judge.fixture, &judge.signer, &parts);
            assert_int_equal(made, (scheme->covers & RCPT_COVERS_ID) == 0);
        }
        free(gateway);
    }
    end(&judge);
}

static void unsigned_ids_are_believed_where_the_account_says_so(void **state)
{
    struct judge judge;
    char gateway[] = "whatsapp_cloud";
    (void)state;
    begin(&judge);
    struct parts parts = parts_of(gateway, "POST");
    make_whatsapp(&judge, &parts);
    parts.query = "message_id=our-1";
    parts.config.unsigned_ids = true;
    assert_true(send_parts(&judge.fixture, &judge.signer, &parts));
    assert_true(names(&judge.fixture, "our-1"));
    end(&judge);
}

/* id, campaign and expiry are signed together; a URL of the former recipe signs its id. */
static void a_url_signs_its_campaign_and_its_expiry(void **state)
{
    static const struct {
        const char *signed_text, *query;
        enum rcpt_gateway_verdict verdict;
        const char *campaign;
    } tries[] = {
        {"m1\nc1\n1760799999", "mid=m1&campaign_id=c1&exp=1760799999", RCPT_GATEWAY_VERIFIED, "c1"},
        {"m1\nc1\n", "mid=m1&campaign_id=c1", RCPT_GATEWAY_VERIFIED, "c1"},
        {"m1\n\n", "mid=m1", RCPT_GATEWAY_BAD, ""},
        {"m1", "mid=m1", RCPT_GATEWAY_VERIFIED, ""},
        {"m1", "mid=m1&campaign_id=c1", RCPT_GATEWAY_VERIFIED, ""},
        {"m1\n\n1760789444", "mid=m1&exp=1760789444", RCPT_GATEWAY_STALE, ""},
        {"m1\n\nsoon", "mid=m1&exp=soon", RCPT_GATEWAY_BAD, ""},
        {"m1\n\n1760789444", "mid=m1", RCPT_GATEWAY_BAD, ""},
        {"m1\n\n1760789444", "mid=m1&exp=1760799999", RCPT_GATEWAY_BAD, ""},
        {"m1\nc1\n", "mid=m1&campaign_id=c2", RCPT_GATEWAY_BAD, ""},
        {"m1\nc1\n", "mid=m1%0Ac1%0A", RCPT_GATEWAY_BAD, ""},
        {" ", "mid=%20&uuid=VICTIM", RCPT_GATEWAY_MISSING, ""},
    };
    struct judge judge;
    char gateway[] = "kannel", name[] = "mid";
    (void)state;
    begin(&judge);
    for (size_t index = 0; index < COUNT(tries); index++) {
        struct parts parts = parts_of(gateway, "GET");
        parts.config.auth = RCPT_GATEWAY_AUTH_URL_HMAC;
        parts.config.auth_name = name;
        parts.query = print(&judge.signer, "%s&status=1&sig=%s", tries[index].query,
                            hmac_hex(&judge.signer, tries[index].signed_text));
        assert_true(send_parts(&judge.fixture, &judge.signer, &parts));
        if (judge.fixture.result.verdict != tries[index].verdict)
            fail_msg("try %zu: %s", index, judge.fixture.result.verdict_reason);
        if (tries[index].verdict != RCPT_GATEWAY_VERIFIED)
            continue;
        assert_true(rcpt_text_is(judge.fixture.result.events[0].message_id, "m1"));
        assert_true(
            rcpt_text_is(judge.fixture.result.events[0].campaign_id, tries[index].campaign));
    }
    end(&judge);
}

static void one_digest_of_vonage_may_be_pinned(void **state)
{
    struct judge judge;
    char gateway[] = "vonage_sms";
    (void)state;
    begin(&judge);
    for (int digest = RCPT_GATEWAY_DIGEST_ANY; digest <= RCPT_GATEWAY_DIGEST_SHA512; digest++) {
        struct parts parts = parts_of(gateway, "GET");
        make_vonage_query(&judge, &parts); /* HMAC-SHA256 */
        parts.config.digest = (enum rcpt_gateway_digest)digest;
        assert_true(send_parts(&judge.fixture, &judge.signer, &parts));
        bool good = digest == RCPT_GATEWAY_DIGEST_ANY || digest == RCPT_GATEWAY_DIGEST_SHA256;
        assert_int_equal(judge.fixture.result.verdict == RCPT_GATEWAY_VERIFIED, good);
    }
    end(&judge);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_covered_names_no_message),
        cmocka_unit_test(each_scheme_and_each_gateway_that_signs_is_tried),
        cmocka_unit_test(the_page_of_gateways_has_the_same_table),
        cmocka_unit_test(a_template_of_what_is_not_covered_is_refused),
        cmocka_unit_test(unsigned_ids_are_believed_where_the_account_says_so),
        cmocka_unit_test(a_url_signs_its_campaign_and_its_expiry),
        cmocka_unit_test(one_digest_of_vonage_may_be_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

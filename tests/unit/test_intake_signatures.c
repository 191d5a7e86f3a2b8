/* Every signature vector is accepted, and no request that differs from it by one bit in body,
 * header, URL or secret. The vectors: tests/signatures/vectors.json, and those in ../shared where
 * that folder is there. */
#include "intake_fixture.h"

static const char *const files[] = {"tests/signatures/vectors.json",
                                    "../shared/payloads/signatures.json"};

#define MAX_SECRETS 2u
#define TOPIC       "arn:aws:sns:eu-west-1:210987654321:t" /* of the vectors */
#define CERTIFICATE                                                                                \
    "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-"                               \
    "0123456789abcdef0123456789abcdef.pem"

/* A request that can be written to, so that bits can be turned over. */
struct signed_request {
    const char *scheme, *gateway;
    enum rcpt_gateway_auth auth;
    char *secrets[MAX_SECRETS];
    char *public_url;
    char *target; /* what follows public_url: "?a=b" */
    char *topic;  /* SNS */
    char *method, *body;
    size_t body_size;
    char *header_names[4], *header_values[4];
    size_t header_count;
    bool hex_digits; /* of escapes in the body: their case says nothing */
};

struct judge {
    struct fixture fixture;
    struct rcpt_arena arena;
    char made_of[16384]; /* the account in the fixture */
    size_t vectors, changes;
};

/* ---- judging ---- */

static void make_account(struct judge *judge, const struct signed_request *request)
{
    struct fixture *fixture = &judge->fixture;
    char *gateway = rcpt_strdup(request->gateway), header[] = "x-signature";
    struct rcpt_gateway_account_config config = account_config(gateway);
    char id[] = "id", status[] = "status";
    struct rcpt_error error;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.auth = request->auth;
    config.auth_name = header;
    config.custom.id = id;
    config.custom.status = status;
    config.public_url = request->public_url;
    config.plivo_v2 = strcmp(request->scheme, "plivo-v2") == 0;
    config.secrets = (char **)(uintptr_t)request->secrets;
    config.secrets_count = request->secrets[1] != NULL ? 2 : 1;
    if (strncmp(request->scheme, "sns", 3) == 0) {
        config.certificates = config.secrets;
        config.certificates_count = config.secrets_count;
        config.secrets_count = 0;
        config.topic_arn = request->topic;
    }
    rcpt_gateway_account_free(fixture->account);
    fixture->account = rcpt_gateway_account_new(&config, fixture->ladder, &error);
    free(gateway);
}

/* Most bits are none of the account's: it is made again when something has changed that it is made
 * of. To make it takes longer than to judge. */
static void renew_account(struct judge *judge, const struct signed_request *request)
{
    const char *const texts[] = {request->scheme,     request->gateway,    request->secrets[0],
                                 request->secrets[1], request->public_url, request->topic};
    char made_of[sizeof(judge->made_of)];
    size_t size = (size_t)snprintf(made_of, sizeof(made_of), "%d", (int)request->auth);
    for (size_t index = 0; index < COUNT(texts); index++) {
        size += (size_t)snprintf(made_of + size, sizeof(made_of) - size, " %zu %s",
                                 texts[index] != NULL ? strlen(texts[index]) : SIZE_MAX,
                                 texts[index] != NULL ? texts[index] : "");
        assert_true(size < sizeof(made_of));
    }
    if (strcmp(made_of, judge->made_of) == 0)
        return;
    memcpy(judge->made_of, made_of, size + 1);
    make_account(judge, request);
}

static enum rcpt_gateway_verdict verdict_of(struct judge *judge,
                                            const struct signed_request *request)
{
    struct fixture *fixture = &judge->fixture;
    renew_account(judge, request);
    if (fixture->account == NULL) /* a secret that is empty now */
        return RCPT_GATEWAY_BAD;
    rcpt_arena_reset(&fixture->arena, 1u << 20);
    fixture_request(fixture, request->method, rcpt_text_of(request->target),
                    (struct rcpt_text){request->body, request->body_size});
    for (size_t index = 0; index < request->header_count; index++)
        fixture_header(fixture, rcpt_text_of(request->header_names[index]),
                       rcpt_text_of(request->header_values[index]));
    fixture_adapt(fixture);
    return fixture->result.verdict;
}

static void expect_accepted(struct judge *judge, const struct signed_request *request)
{
    enum rcpt_gateway_verdict verdict = verdict_of(judge, request);
    if (verdict != RCPT_GATEWAY_VERIFIED)
        fail_msg("%s is %s: %s", request->scheme, rcpt_gateway_verdict_name(verdict),
                 judge->fixture.result.verdict_reason);
    judge->vectors++;
}

static bool is_accepted(struct judge *judge, const struct signed_request *request)
{
    judge->changes++;
    return verdict_of(judge, request) == RCPT_GATEWAY_VERIFIED;
}

/* %2B and %2b are one and the same. */
static bool is_case_of_escape(const char *bytes, size_t at, int bit)
{
    return bit == 5 && ((at >= 1 && bytes[at - 1] == '%') || (at >= 2 && bytes[at - 2] == '%'));
}

static void expect_each_bit_counts(struct judge *judge, struct signed_request *request,
                                   const char *what, char *bytes, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            if (request->hex_digits && is_case_of_escape(bytes, at, bit))
                continue;
            bytes[at] = (char)(bytes[at] ^ 1 << bit);
            if (bytes[at] != '\0' && is_accepted(judge, request))
                fail_msg("%s: accepted with bit %d of byte %zu of the %s turned over",
                         request->scheme, bit, at, what);
            bytes[at] = (char)(bytes[at] ^ 1 << bit);
        }
    }
}

/* `covers_body`: the scheme signs it. */
static void judge_request(struct judge *judge, struct signed_request *request, bool covers_body)
{
    expect_accepted(judge, request);
    if (covers_body)
        expect_each_bit_counts(judge, request, "body", request->body, request->body_size);
    for (size_t index = 0; index < request->header_count; index++)
        if (strcasecmp(request->header_names[index], "content-type") != 0)
            expect_each_bit_counts(judge, request, "header", request->header_values[index],
                                   strlen(request->header_values[index]));
    if (request->public_url != NULL) {
        expect_each_bit_counts(judge, request, "URL", request->public_url,
                               strlen(request->public_url));
        expect_each_bit_counts(judge, request, "query", request->target, strlen(request->target));
    }
    /* A certificate is no secret: it pins a key, and only a bit of that would matter. */
    if (strncmp(request->scheme, "sns", 3) != 0)
        expect_each_bit_counts(judge, request, "secret", request->secrets[0],
                               strlen(request->secrets[0]));
    /* Rotation: the right one may stand behind another. */
    char other[] = "another secret";
    request->secrets[1] = request->secrets[0];
    if (strncmp(request->scheme, "sns", 3) != 0) /* what is no certificate is no account's */
        request->secrets[0] = other;
    expect_accepted(judge, request);
    request->secrets[0] = request->secrets[1];
    request->secrets[1] = NULL;
    if (request->header_count > 0 && strcmp(request->header_names[0], "Content-Type") != 0) {
        request->header_names[0][0] = '!';
        assert_int_equal(verdict_of(judge, request), RCPT_GATEWAY_MISSING);
    }
}

/* ---- from vector to request ---- */

static char *text_of(struct judge *judge, const struct rcpt_node *vector, const char *name)
{
    const struct rcpt_node *node = rcpt_node_get(vector, name);
    return rcpt_text_terminated(&judge->arena, node != NULL ? node->text : RCPT_TEXT(""));
}

static void add_header(struct judge *judge, struct signed_request *request, const char *name,
                       char *value)
{
    request->header_names[request->header_count] =
        rcpt_text_terminated(&judge->arena, rcpt_text_of(name));
    request->header_values[request->header_count++] = value;
}

static void set_body(struct judge *judge, struct signed_request *request, struct rcpt_text body)
{
    request->body = rcpt_text_terminated(&judge->arena, body);
    request->body_size = body.size;
}

static void set_url(struct judge *judge, struct signed_request *request, const char *url)
{
    struct rcpt_text whole = rcpt_text_of(url);
    size_t mark = rcpt_text_find(whole, "?");
    request->public_url = rcpt_text_terminated(&judge->arena, rcpt_text_part(whole, 0, mark));
    request->target = rcpt_text_terminated(&judge->arena, rcpt_text_part(whole, mark, whole.size));
}

static struct rcpt_text escaped(struct judge *judge, struct rcpt_text text)
{
    char *out = rcpt_arena_alloc(&judge->arena, text.size * 3 + 1);
    size_t used = 0;
    for (size_t index = 0; index < text.size; index++)
        used += (size_t)sprintf(out + used, strchr("+&=% ", text.at[index]) ? "%%%02X" : "%c",
                                (unsigned char)text.at[index]);
    return (struct rcpt_text){out, used};
}

/* `params` is an object, `params_list` an array of pairs. */
static struct rcpt_text form_of(struct judge *judge, const struct rcpt_node *vector)
{
    const struct rcpt_node *params = rcpt_node_get(vector, "params");
    const struct rcpt_node *list = rcpt_node_get(vector, "params_list");
    struct rcpt_text form = RCPT_TEXT("");
    for (const struct rcpt_node *node = (params != NULL ? params : list)->first; node != NULL;
         node = node->next) {
        struct rcpt_text name = list != NULL ? node->first->text : node->key;
        struct rcpt_text value = list != NULL ? node->first->next->text : node->text;
        form = RCPT_TEXT_JOIN(&judge->arena, form, form.size > 0 ? RCPT_TEXT("&") : RCPT_TEXT(""),
                              escaped(judge, name), RCPT_TEXT("="), escaped(judge, value));
    }
    return form;
}

static void use_form(struct judge *judge, struct signed_request *request,
                     const struct rcpt_node *vector, const char *extra)
{
    struct rcpt_text form = form_of(judge, vector);
    set_body(judge, request, RCPT_TEXT_JOIN(&judge->arena, form, rcpt_text_of(extra)));
    add_header(judge, request, "Content-Type",
               rcpt_text_terminated(&judge->arena, RCPT_TEXT("application/x-www-form-urlencoded")));
    request->hex_digits = true;
}

static void judge_twilio(struct judge *judge, struct signed_request *request,
                         const struct rcpt_node *vector)
{
    request->gateway = "twilio";
    set_url(judge, request, text_of(judge, vector, "url"));
    add_header(judge, request, "X-Twilio-Signature", text_of(judge, vector, "value"));
    if (rcpt_node_get(vector, "body") != NULL)
        set_body(judge, request, rcpt_node_get(vector, "body")->text);
    else
        use_form(judge, request, vector, "");
    judge_request(judge, request, true);
}

static void judge_vonage_sms(struct judge *judge, struct signed_request *request,
                             const struct rcpt_node *vector)
{
    char *sig =
        rcpt_text_terminated(&judge->arena, RCPT_TEXT_JOIN(&judge->arena, RCPT_TEXT("&sig="),
                                                           rcpt_node_text_of(vector, "value")));
    request->gateway = "vonage_sms";
    use_form(judge, request, vector, sig);
    judge_request(judge, request, true);
}

static void judge_body_header(struct judge *judge, struct signed_request *request,
                              const struct rcpt_node *vector, const char *gateway)
{
    request->gateway = gateway;
    set_body(judge, request, rcpt_node_get(vector, "body")->text);
    add_header(judge, request, text_of(judge, vector, "header"), text_of(judge, vector, "value"));
    if (rcpt_node_get(vector, "url") != NULL)
        set_url(judge, request, text_of(judge, vector, "url"));
    if (rcpt_node_get(vector, "timestamp") != NULL)
        add_header(judge, request,
                   strcmp(gateway, "sendgrid") == 0 ? "X-Twilio-Email-Event-Webhook-Timestamp"
                   : request->auth == RCPT_GATEWAY_AUTH_TELNYX ? "telnyx-timestamp"
                                                               : "svix-timestamp",
                   text_of(judge, vector, "timestamp"));
    if (rcpt_node_get(vector, "id") != NULL)
        add_header(judge, request, "svix-id", text_of(judge, vector, "id"));
    judge_request(judge, request, true);
}

static void judge_plivo(struct judge *judge, struct signed_request *request,
                        const struct rcpt_node *vector, bool v3)
{
    request->gateway = "plivo";
    set_url(judge, request, text_of(judge, vector, "url"));
    add_header(judge, request, v3 ? "X-Plivo-Signature-V3" : "X-Plivo-Signature-V2",
               text_of(judge, vector, "value"));
    add_header(judge, request, v3 ? "X-Plivo-Signature-V3-Nonce" : "X-Plivo-Signature-V2-Nonce",
               text_of(judge, vector, "nonce"));
    if (rcpt_node_get(vector, "params") != NULL)
        use_form(judge, request, vector, "");
    judge_request(judge, request, v3);
}

static void judge_mailgun(struct judge *judge, struct signed_request *request,
                          const struct rcpt_node *vector)
{
    static const char *const names[] = {"timestamp", "token", "value"};
    char body[512];
    request->gateway = "mailgun";
    for (size_t index = 0; index < COUNT(names); index++) {
        int size = snprintf(body, sizeof(body),
                            "{\"signature\":{\"timestamp\":\"%s\",\"token\":\"%s\","
                            "\"signature\":\"%s\"},\"event-data\":{}}",
                            text_of(judge, vector, "timestamp"), text_of(judge, vector, "token"),
                            text_of(judge, vector, "value"));
        set_body(judge, request, (struct rcpt_text){body, (size_t)size});
        char *part = strstr(request->body, text_of(judge, vector, names[index]));
        expect_accepted(judge, request);
        expect_each_bit_counts(judge, request, names[index], part,
                               strlen(text_of(judge, vector, names[index])));
    }
    judge_request(judge, request, false);
}

/* The members of the envelope in the order of the vector, `more` and the signature. */
static struct rcpt_text envelope_of(struct judge *judge, const struct rcpt_node *vector,
                                    struct rcpt_text more)
{
    struct rcpt_text body = RCPT_TEXT("{");
    const struct rcpt_node *fields = rcpt_node_get(vector, "fields");
    bool second = rcpt_text_is(rcpt_node_text_of(vector, "scheme"), "sns-v2");
    for (const struct rcpt_node *field = fields->first; field != NULL; field = field->next) {
        char *value = rcpt_arena_alloc(&judge->arena, field->text.size * 2 + 1), *out = value;
        for (size_t index = 0; index < field->text.size; index++) {
            if (field->text.at[index] == '"')
                *out++ = '\\';
            *out++ = field->text.at[index];
        }
        body = RCPT_TEXT_JOIN(&judge->arena, body, RCPT_TEXT("\""), field->key, RCPT_TEXT("\":\""),
                              (struct rcpt_text){value, (size_t)(out - value)}, RCPT_TEXT("\","));
    }
    return RCPT_TEXT_JOIN(&judge->arena, body, more,
                          second ? RCPT_TEXT("\"SignatureVersion\":\"2\",\"Signature\":\"")
                                 : RCPT_TEXT("\"SignatureVersion\":\"1\",\"Signature\":\""),
                          rcpt_node_text_of(vector, "value"), RCPT_TEXT("\"}"));
}

static void judge_sns(struct judge *judge, struct signed_request *request,
                      const struct rcpt_node *vector)
{
    request->gateway = "ses_sns";
    request->topic = text_of(judge, rcpt_node_get(vector, "fields"), "TopicArn");
    request->secrets[0] = text_of(judge, vector, "certificate");
    request->secrets[0][strlen(request->secrets[0]) - 1] = '\0'; /* as a file: gives it */
    set_body(judge, request, envelope_of(judge, vector, RCPT_TEXT("")));
    judge_request(judge, request, true);
}

static void judge_vector(struct judge *judge, const struct rcpt_node *vector)
{
    static const struct {
        const char *scheme, *gateway;
        enum rcpt_gateway_auth auth;
    } bodies[] = {{"vonage-messages-jwt", "vonage_messages", RCPT_GATEWAY_AUTH_GATEWAY},
                  {"messagebird-jwt", "messagebird", RCPT_GATEWAY_AUTH_GATEWAY},
                  {"sendgrid-ecdsa", "sendgrid", RCPT_GATEWAY_AUTH_GATEWAY},
                  {"meta", "whatsapp_cloud", RCPT_GATEWAY_AUTH_GATEWAY},
                  {"viber", "viber", RCPT_GATEWAY_AUTH_GATEWAY},
                  {"line", "line", RCPT_GATEWAY_AUTH_GATEWAY},
                  {"svix", "custom", RCPT_GATEWAY_AUTH_STANDARD},
                  {"telnyx", "custom", RCPT_GATEWAY_AUTH_TELNYX},
                  {"hmac-hex", "custom", RCPT_GATEWAY_AUTH_HMAC_HEX},
                  {"hmac-base64", "custom", RCPT_GATEWAY_AUTH_HMAC_BASE64}};
    char *scheme = text_of(judge, vector, "scheme"), empty[] = "", post[] = "POST";
    struct signed_request request = {
        .scheme = scheme, .target = empty, .method = post, .body = empty};
    request.secrets[0] = text_of(
        judge, vector, rcpt_node_get(vector, "public_key") != NULL ? "public_key" : "secret");
    if (rcpt_node_get(vector, "method") != NULL)
        request.method = text_of(judge, vector, "method");
    if (strncmp(scheme, "twilio", 6) == 0)
        judge_twilio(judge, &request, vector);
    else if (strncmp(scheme, "vonage-sms", 10) == 0)
        judge_vonage_sms(judge, &request, vector);
    else if (strncmp(scheme, "plivo", 5) == 0)
        judge_plivo(judge, &request, vector, strcmp(scheme, "plivo-v3") == 0);
    else if (strcmp(scheme, "mailgun") == 0)
        judge_mailgun(judge, &request, vector);
    else if (strncmp(scheme, "sns", 3) == 0)
        judge_sns(judge, &request, vector);
    size_t before = judge->vectors;
    for (size_t index = 0; index < COUNT(bodies); index++) {
        if (strcmp(scheme, bodies[index].scheme) != 0)
            continue;
        request.auth = bodies[index].auth;
        judge_body_header(judge, &request, vector, bodies[index].gateway);
    }
    if (judge->vectors == before && request.header_count == 0 && request.gateway == NULL)
        fail_msg("no verifier for scheme %s", scheme);
}

static void no_bit_can_be_turned_over(void **state)
{
    struct judge judge = {.vectors = 0};
    (void)state;
    fixture_init(&judge.fixture);
    rcpt_arena_init(&judge.arena, 1u << 20);
    for (size_t file = 0; file < COUNT(files); file++) {
        const char *reason = NULL;
        char *text = file_text(files[file]);
        if (text == NULL)
            continue;
        const struct rcpt_node *root =
            rcpt_document_parse(rcpt_text_of(text), &judge.arena, &reason);
        assert_non_null(root);
        for (const struct rcpt_node *vector = rcpt_node_get(root, "vectors")->first; vector != NULL;
             vector = vector->next)
            judge_vector(&judge, vector);
        free(text);
    }
    print_message("%zu vectors accepted, %zu changes refused\n", judge.vectors, judge.changes);
    assert_true(judge.vectors >= 20);
    rcpt_arena_fini(&judge.arena);
    fixture_fini(&judge.fixture);
}

/* ---- a certificate that the message names ---- */

static const char *find_certificate(void *context, const char *url)
{
    assert_string_equal(url, CERTIFICATE);
    return context;
}

static const struct rcpt_node *first_of_sns(struct judge *judge)
{
    const char *reason = NULL;
    char *text = file_text(files[0]);
    assert_non_null(text);
    const struct rcpt_node *root = rcpt_document_parse(
        rcpt_text_copy(&judge->arena, rcpt_text_of(text)), &judge->arena, &reason);
    free(text);
    assert_non_null(root);
    const struct rcpt_node *vector = rcpt_node_get(root, "vectors")->first;
    while (vector != NULL && !rcpt_text_begins(rcpt_node_text_of(vector, "scheme"), "sns"))
        vector = vector->next;
    assert_non_null(vector);
    return vector;
}

static enum rcpt_gateway_verdict verdict_of_named(struct judge *judge, struct rcpt_text body,
                                                  char *certificate, int64_t received_us)
{
    struct fixture *fixture = &judge->fixture;
    rcpt_arena_reset(&fixture->arena, 65536);
    fixture_request(fixture, "POST", RCPT_TEXT(""), body);
    fixture->request.find_certificate = find_certificate;
    fixture->request.context = certificate;
    fixture->request.received_us = received_us;
    fixture_adapt(fixture);
    return fixture->result.verdict;
}

static void a_certificate_that_is_named_counts_while_it_is_valid(void **state)
{
    struct judge judge = {.vectors = 0};
    char topic[] = TOPIC;
    char gateway[] = "ses_sns", garbage[] = "-----BEGIN CERTIFICATE-----\n";
    struct rcpt_gateway_account_config config = account_config(gateway);
    const int64_t century_us = INT64_C(3155760000) * 1000000;
    (void)state;
    fixture_init(&judge.fixture);
    rcpt_arena_init(&judge.arena, 1u << 20);
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.topic_arn = topic;
    fixture_account(&judge.fixture, &config);
    const struct rcpt_node *vector = first_of_sns(&judge);
    char *certificate = text_of(&judge, vector, "certificate");
    struct rcpt_text body =
        envelope_of(&judge, vector, RCPT_TEXT("\"SigningCertURL\":\"" CERTIFICATE "\","));
    struct rcpt_text evil = envelope_of(
        &judge, vector, RCPT_TEXT("\"SigningCertURL\":\"https://sns.evil.example/c.pem\","));
    struct rcpt_text unnamed = envelope_of(&judge, vector, RCPT_TEXT(""));
    assert_int_equal(verdict_of_named(&judge, body, certificate, NOW_US), RCPT_GATEWAY_VERIFIED);
    assert_int_equal(verdict_of_named(&judge, body, garbage, NOW_US), RCPT_GATEWAY_BAD);
    assert_int_equal(verdict_of_named(&judge, body, certificate, NOW_US + century_us),
                     RCPT_GATEWAY_BAD);
    assert_int_equal(verdict_of_named(&judge, body, certificate, 0), RCPT_GATEWAY_BAD);
    assert_int_equal(verdict_of_named(&judge, evil, certificate, NOW_US), RCPT_GATEWAY_BAD);
    assert_string_equal(judge.fixture.result.verdict_reason, "SigningCertURL is not Amazon's");
    assert_int_equal(verdict_of_named(&judge, unnamed, certificate, NOW_US), RCPT_GATEWAY_BAD);
    assert_int_equal(verdict_of_named(&judge, RCPT_TEXT("{\"a\":1}"), certificate, NOW_US),
                     RCPT_GATEWAY_MISSING);
    assert_int_equal(judge.fixture.result.answer.code, 401);
    rcpt_arena_fini(&judge.arena);
    fixture_fini(&judge.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bit_can_be_turned_over),
        cmocka_unit_test(a_certificate_that_is_named_counts_while_it_is_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* JSON web tokens: what a gateway says about when they hold, and algorithms that are none; secrets
 * and signatures inside of bodies. */
#include "gateways/crypto.h"
#include "intake_fixture.h"

/* Made with Python's hmac; times beside the clock's of the fixture. */
static void tokens_hold_as_long_as_they_say(void **state)
{
    static const struct {
        const char *token;
        enum rcpt_gateway_verdict verdict;
    } tokens[] = {
        /* iat +0 s, exp +10 s */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3NjA3ODk0NDUsImV4cCI6MTc2MDc4OTQ1NSwic"
         "GF5bG9hZF9oYXNoIjoiZTA4MGRhNWYxMDJiYTYyNTRlYWE4MTcxODllMWVjNzc3ZDljMDg"
         "yZmI2ODU2Yjc0MGFjNzNkYmQ5YzVlYTZkOCJ9.VRvkzTvoc17cn4-SKdLWkQ4qaLFrR_d-"
         "2AB4V1dSTB0",
         RCPT_GATEWAY_VERIFIED},
        /* iat +0 s, exp -200 s */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3NjA3ODk0NDUsImV4cCI6MTc2MDc4OTI0NSwic"
         "GF5bG9hZF9oYXNoIjoiZTA4MGRhNWYxMDJiYTYyNTRlYWE4MTcxODllMWVjNzc3ZDljMDg"
         "yZmI2ODU2Yjc0MGFjNzNkYmQ5YzVlYTZkOCJ9.yshNJppe3AgWclXM45Y0VYJqG8ALsw3a"
         "tBhFPIWUkyA",
         RCPT_GATEWAY_VERIFIED},
        /* iat -1000 s, exp -400 s */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3NjA3ODg0NDUsImV4cCI6MTc2MDc4OTA0NSwic"
         "GF5bG9hZF9oYXNoIjoiZTA4MGRhNWYxMDJiYTYyNTRlYWE4MTcxODllMWVjNzc3ZDljMDg"
         "yZmI2ODU2Yjc0MGFjNzNkYmQ5YzVlYTZkOCJ9.FQUdvj9kKxNC9xGbz-cUj-TuncJnVhLv"
         "v4LDGq8VKv0",
         RCPT_GATEWAY_STALE},
        /* iat +0 s, exp "x" */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3NjA3ODk0NDUsImV4cCI6IngiLCJwYXlsb2FkX"
         "2hhc2giOiJlMDgwZGE1ZjEwMmJhNjI1NGVhYTgxNzE4OWUxZWM3NzdkOWMwODJmYjY4NTZ"
         "iNzQwYWM3M2RiZDljNWVhNmQ4In0.1ZpJSeqwqcIbYsltEbkhTkRm5QOkoM0xMHw9bq5hR"
         "aA",
         RCPT_GATEWAY_STALE},
        /* iat +0 s, nbf +400 s */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3NjA3ODk0NDUsIm5iZiI6MTc2MDc4OTg0NSwic"
         "GF5bG9hZF9oYXNoIjoiZTA4MGRhNWYxMDJiYTYyNTRlYWE4MTcxODllMWVjNzc3ZDljMDg"
         "yZmI2ODU2Yjc0MGFjNzNkYmQ5YzVlYTZkOCJ9.l0MZarfKXwE7Ln2oqKLsmeuIFDS1s_jM"
         "tnbsbVv1fdU",
         RCPT_GATEWAY_STALE},
        /* nbf +200 s */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJuYmYiOjE3NjA3ODk2NDUsInBheWxvYWRfaGFzaCI6ImUwO"
         "DBkYTVmMTAyYmE2MjU0ZWFhODE3MTg5ZTFlYzc3N2Q5YzA4MmZiNjg1NmI3NDBhYzczZGJ"
         "kOWM1ZWE2ZDgifQ.ANkkadGzwjnGfKTRAIIr8e7OacNwQ6bzsGwnvmB4V3k",
         RCPT_GATEWAY_VERIFIED},
        /* iat +0.25 s */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJpYXQiOjE3NjA3ODk0NDUuMjUsInBheWxvYWRfaGFzaCI6I"
         "mUwODBkYTVmMTAyYmE2MjU0ZWFhODE3MTg5ZTFlYzc3N2Q5YzA4MmZiNjg1NmI3NDBhYzc"
         "zZGJkOWM1ZWE2ZDgifQ.oNW6AtI07bVBeGpkun2HuCC1l8edUcp5bSU4q_Kq57I",
         RCPT_GATEWAY_VERIFIED},
        /* no times */
        {"Bearer eyJhbGciOiJIUzI1NiJ9.eyJwYXlsb2FkX2hhc2giOiJlMDgwZGE1ZjEwMmJhNjI1NGVhY"
         "TgxNzE4OWUxZWM3NzdkOWMwODJmYjY4NTZiNzQwYWM3M2RiZDljNWVhNmQ4In0.0hADZPA"
         "QlkHXoqdzoPkiZkJ3OxvOXxpnRi5rw0nGyyU",
         RCPT_GATEWAY_VERIFIED},
    };
    struct fixture fixture;
    char gateway[] = "vonage_messages", secret[] = "s", *secrets[] = {secret};
    struct rcpt_gateway_account_config config = account_config(gateway);
    (void)state;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.secrets = secrets;
    config.secrets_count = 1;
    config.max_age_ms = 3600 * 1000;
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    for (size_t index = 0; index < COUNT(tokens); index++) {
        fixture_request(&fixture, "POST", RCPT_TEXT(""),
                        RCPT_TEXT("{\"message_uuid\":\"u\",\"status\":\"read\"}"));
        fixture_header(&fixture, RCPT_TEXT("Authorization"), rcpt_text_of(tokens[index].token));
        fixture_adapt(&fixture);
        assert_int_equal(fixture.result.verdict, tokens[index].verdict);
    }
    fixture_fini(&fixture);
}

static void a_token_without_algorithm_is_refused(void **state)
{
    struct fixture fixture;
    char gateway[] = "vonage_messages", secret[] = "s", *secrets[] = {secret};
    struct rcpt_gateway_account_config config = account_config(gateway);
    (void)state;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.secrets = secrets;
    config.secrets_count = 1;
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    fixture_request(&fixture, "POST", RCPT_TEXT(""), RCPT_TEXT("{}"));
    /* {"alg":"none"}.{"payload_hash":…}. */
    fixture_header(&fixture, RCPT_TEXT("Authorization"),
                   RCPT_TEXT("Bearer eyJhbGciOiJub25lIn0.eyJpYXQiOjE3NjA3ODk0NDF9."));
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_BAD);
    fixture_fini(&fixture);
}

/* A secret in a header or parameter of the account's choice; several at once while one is replaced.
 */
static void a_secret_may_stand_in_any_header_or_parameter(void **state)
{
    static const struct {
        enum rcpt_gateway_auth auth;
        const char *target, *header; /* NULL: no header */
        enum rcpt_gateway_verdict verdict;
    } cases[] = {
        {RCPT_GATEWAY_AUTH_HEADER, "?a=b", "new secret", RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_HEADER, "?a=b", "old secret", RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_HEADER, "?a=b", "new secreT", RCPT_GATEWAY_BAD},
        {RCPT_GATEWAY_AUTH_HEADER, "?a=b", "new secret2", RCPT_GATEWAY_BAD},
        {RCPT_GATEWAY_AUTH_HEADER, "?a=b", "", RCPT_GATEWAY_MISSING},
        {RCPT_GATEWAY_AUTH_HEADER, "?X-Key=new%20secret", NULL, RCPT_GATEWAY_MISSING},
        {RCPT_GATEWAY_AUTH_QUERY, "?a=b&X-Key=new%20secret", NULL, RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_QUERY, "?X-Key=old+secret", NULL, RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_QUERY, "?X-Key=new%20secre", NULL, RCPT_GATEWAY_BAD},
        {RCPT_GATEWAY_AUTH_QUERY, "?Other=new%20secret", NULL, RCPT_GATEWAY_MISSING},
        {RCPT_GATEWAY_AUTH_QUERY, "?a=b", "new secret", RCPT_GATEWAY_MISSING},
    };
    struct fixture fixture;
    char gateway[] = "kannel", name[] = "X-Key", old[] = "old secret", new[] = "new secret";
    char *secrets[] = {new, old};
    struct rcpt_gateway_account_config config = account_config(gateway);
    (void)state;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.auth_name = name;
    config.secrets = secrets;
    config.secrets_count = 2;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(cases); index++) {
        config.auth = cases[index].auth;
        fixture_account(&fixture, &config);
        fixture_request(&fixture, "GET", rcpt_text_of(cases[index].target), RCPT_TEXT(""));
        if (cases[index].header != NULL)
            fixture_header(&fixture, RCPT_TEXT("x-key"), rcpt_text_of(cases[index].header));
        fixture_adapt(&fixture);
        if (fixture.result.verdict != cases[index].verdict)
            fail_msg("case %zu: %d", index, (int)fixture.result.verdict);
    }
    fixture_fini(&fixture);
}

/* ---- signed here, with the account's secret ---- */

static struct fixture *begin_signed(struct fixture *fixture, char *gateway)
{
    static char secret[] = "s3cret", *secrets[] = {secret};
    struct rcpt_gateway_account_config config = account_config(gateway);
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.secrets = secrets;
    config.secrets_count = 1;
    fixture_init(fixture);
    fixture_account(fixture, &config);
    return fixture;
}

static void expect_refusal(const struct fixture *fixture, enum rcpt_gateway_verdict verdict,
                           unsigned code)
{
    assert_int_equal(fixture->result.verdict, verdict);
    assert_int_equal(fixture->result.answer.code, code);
    assert_int_equal(fixture->result.event_count + fixture->result.drop_count, 0);
}

/* A part that is longer than any gateway's is not decoded, signed or not. */
static void a_token_that_is_none_is_refused(void **state)
{
    static const size_t fillings[] = {8, 70000};
    struct fixture fixture;
    char gateway[] = "vonage_messages";
    (void)state;
    begin_signed(&fixture, gateway);
    fixture_request(&fixture, "POST", RCPT_TEXT(""), RCPT_TEXT("{}"));
    fixture_header(&fixture, RCPT_TEXT("Authorization"), RCPT_TEXT("Bearer nodots"));
    fixture_adapt(&fixture);
    expect_refusal(&fixture, RCPT_GATEWAY_BAD, 403);
    for (size_t index = 0; index < COUNT(fillings); index++) {
        char *filling = rcpt_malloc(fillings[index]);
        memset(filling, ' ', fillings[index]);
        struct rcpt_arena *arena = &fixture.arena;
        struct rcpt_text hash = rcpt_hex(RCPT_HASH(RCPT_SHA256, arena, RCPT_TEXT("{}")), arena);
        struct rcpt_text claims =
            RCPT_TEXT_JOIN(arena, RCPT_TEXT("{\"payload_hash\":\""), hash, RCPT_TEXT("\""),
                           (struct rcpt_text){filling, fillings[index]}, RCPT_TEXT("}"));
        struct rcpt_text text =
            RCPT_TEXT_JOIN(arena, rcpt_base64url(RCPT_TEXT("{\"alg\":\"HS256\"}"), arena),
                           RCPT_TEXT("."), rcpt_base64url(claims, arena));
        struct rcpt_text mac = RCPT_HMAC(RCPT_SHA256, RCPT_TEXT("s3cret"), arena, text);
        fixture_request(&fixture, "POST", RCPT_TEXT(""), RCPT_TEXT("{}"));
        fixture_header(&fixture, RCPT_TEXT("Authorization"),
                       RCPT_TEXT_JOIN(arena, RCPT_TEXT("Bearer "), text, RCPT_TEXT("."),
                                      rcpt_base64url(mac, arena)));
        fixture_adapt(&fixture);
        assert_int_equal(fixture.result.verdict,
                         index == 0 ? RCPT_GATEWAY_VERIFIED : RCPT_GATEWAY_BAD);
        free(filling);
    }
    fixture_fini(&fixture);
}

/* Vonage's receipts come as a query, a form or JSON: what is signed is the same. */
static void members_of_json_are_signed_like_parameters(void **state)
{
    struct fixture fixture;
    char gateway[] = "vonage_sms", body[512];
    (void)state;
    begin_signed(&fixture, gateway);
    struct rcpt_text mac =
        RCPT_HMAC(RCPT_SHA256, RCPT_TEXT("s3cret"), &fixture.arena,
                  RCPT_TEXT("&messageId=m1&price=0.05&status=delivered&text=a_b_c"));
    struct rcpt_text hex = rcpt_hex(mac, &fixture.arena);
    char sig[80];
    snprintf(sig, sizeof(sig), "%.*s", (int)hex.size, hex.at);
    snprintf(body, sizeof(body),
             "{\"status\":\"delivered\",\"sig\":\"%s\",\"text\":\"a&b=c\",\"messageId\":\"m1\","
             "\"price\":0.05}",
             sig);
    fixture_post(&fixture, "application/json", body);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_VERIFIED);
    assert_int_equal(fixture.result.event_count, 1);
    assert_true(rcpt_text_is(fixture.result.events[0].gateway_message_id, "m1"));
    body[strlen(body) - 2] = '6';
    fixture_post(&fixture, "application/json", body);
    expect_refusal(&fixture, RCPT_GATEWAY_BAD, 403);
    fixture_post(&fixture, "application/json", "[{\"messageId\":\"m1\"}]");
    expect_refusal(&fixture, RCPT_GATEWAY_MISSING, 401);
    fixture_post(&fixture, "application/json", "{\"messageId\":");
    expect_refusal(&fixture, RCPT_GATEWAY_MISSING, 401);
    fixture_fini(&fixture);
}

/* Mailgun's older webhooks are forms. */
static void a_form_of_mailgun_carries_its_signature(void **state)
{
    struct fixture fixture;
    char gateway[] = "mailgun", body[512];
    (void)state;
    begin_signed(&fixture, gateway);
    struct rcpt_text hex = rcpt_hex(
        RCPT_HMAC(RCPT_SHA256, RCPT_TEXT("s3cret"), &fixture.arena, RCPT_TEXT("1760789441tok")),
        &fixture.arena);
    char sig[80];
    snprintf(sig, sizeof(sig), "%.*s", (int)hex.size, hex.at);
    snprintf(body, sizeof(body), "event=delivered&timestamp=1760789441&token=tok&signature=%s",
             sig);
    fixture_post(&fixture, "application/x-www-form-urlencoded", body);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_VERIFIED);
    assert_true(rcpt_text_is(fixture.result.replay_key, "tok"));
    body[strlen("event=delivered&timestamp=")] = '2';
    fixture_post(&fixture, "application/x-www-form-urlencoded", body);
    expect_refusal(&fixture, RCPT_GATEWAY_BAD, 403);
    fixture_post(&fixture, "application/x-www-form-urlencoded", "event=delivered");
    expect_refusal(&fixture, RCPT_GATEWAY_MISSING, 401);
    fixture_fini(&fixture);
}

/* At 403 it would stop for ever. */
static void wrong_credentials_of_postmark_get_401(void **state)
{
    struct fixture fixture;
    char gateway[] = "postmark";
    (void)state;
    begin_signed(&fixture, gateway);
    fixture_request(&fixture, "POST", RCPT_TEXT(""), RCPT_TEXT("{\"RecordType\":\"Open\"}"));
    fixture_header(&fixture, RCPT_TEXT("Authorization"), RCPT_TEXT("Bearer other"));
    fixture_adapt(&fixture);
    expect_refusal(&fixture, RCPT_GATEWAY_BAD, 401);
    fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_hold_as_long_as_they_say),
        cmocka_unit_test(a_token_without_algorithm_is_refused),
        cmocka_unit_test(a_secret_may_stand_in_any_header_or_parameter),
        cmocka_unit_test(a_token_that_is_none_is_refused),
        cmocka_unit_test(members_of_json_are_signed_like_parameters),
        cmocka_unit_test(a_form_of_mailgun_carries_its_signature),
        cmocka_unit_test(wrong_credentials_of_postmark_get_401),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

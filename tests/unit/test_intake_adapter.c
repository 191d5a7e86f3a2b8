/* What holds for all adapters alike: who is let in, what is answered, what is set aside. */
#include <time.h>

#include "intake_fixture.h"

#include "gateways/gateway.h"
#include "gateways/sns.h"

#define JSON "application/json"
#define FORM "application/x-www-form-urlencoded"

static struct fixture *setup(struct fixture *fixture, const char *gateway)
{
    fixture_init(fixture);
    fixture_gateway(fixture, gateway);
    return fixture;
}

static void expect_drop(const struct fixture *fixture, enum rcpt_gateway_drop_kind kind,
                        const char *reason)
{
    assert_int_equal(fixture->result.drop_count, 1);
    assert_int_equal(fixture->result.drops[0].kind, kind);
    assert_string_equal(fixture->result.drops[0].reason, reason);
}

static void expect_member(struct fixture *fixture, size_t index, const char *name,
                          const char *value)
{
    struct rcpt_text got = rcpt_node_text_of(fixture_event(fixture, index), name);
    if (!rcpt_text_is(got, value))
        fail_msg("%s is \"%.*s\", not \"%s\"", name, (int)got.size, got.at, value);
}

/* ---- what comes out ---- */

static void a_probe_is_answered_before_it_is_verified(void **state)
{
    struct fixture fixture;
    char gateway[] = "vonage_sms", secret[] = "s", *secrets[] = {secret};
    struct rcpt_gateway_account_config config = account_config(gateway);
    (void)state;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.secrets = secrets;
    config.secrets_count = 1;
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?");
    assert_int_equal(fixture.result.answer.code, 200);
    expect_drop(&fixture, RCPT_GATEWAY_IGNORED, "probe");
    fixture_get(&fixture, "?messageId=1&status=delivered");
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_MISSING);
    assert_int_equal(fixture.result.answer.code, 401);
    assert_int_equal(fixture.result.event_count + fixture.result.drop_count, 0);
    fixture_fini(&fixture);
}

static void what_is_no_json_is_a_dead_letter_and_400(void **state)
{
    struct fixture fixture;
    (void)state;
    setup(&fixture, "sendgrid");
    fixture_post(&fixture, JSON, "[{\"event\":");
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "invalid_json");
    assert_int_equal(fixture.result.answer.code, 400);
    fixture_post(&fixture, JSON, "hello");
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "invalid_json");
    char deep[201];
    memset(deep, '[', 200);
    deep[200] = '\0';
    fixture_post(&fixture, JSON, deep);
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "too_deep");
    assert_int_equal(fixture.result.answer.code, 413);
    fixture_fini(&fixture);
}

static void one_bad_element_does_not_hold_up_its_neighbours(void **state)
{
    struct fixture fixture;
    (void)state;
    setup(&fixture, "sendgrid");
    fixture_post(&fixture, JSON,
                 "[{\"event\":\"open\",\"sg_message_id\":\"a\"},"
                 "{\"event\":\"open\",\"sg_message_id\":\"\xff\"},"
                 "{\"event\":\"zap\",\"sg_message_id\":\"b\"},{\"event\":\"open\"},"
                 "{\"event\":\"click\",\"sg_message_id\":\"c\"}]");
    assert_int_equal(fixture.result.answer.code, 200);
    assert_int_equal(fixture.result.event_count, 2);
    assert_int_equal(fixture.result.drop_count, 3);
    assert_string_equal(fixture.result.drops[0].reason, "invalid_utf8");
    assert_string_equal(fixture.result.drops[1].reason, "unknown_status");
    assert_int_equal(fixture.result.drops[1].kind, RCPT_GATEWAY_UNMAPPED);
    assert_true(
        rcpt_text_is(fixture.result.drops[1].raw, "{\"event\":\"zap\",\"sg_message_id\":\"b\"}"));
    assert_string_equal(fixture.result.drops[2].reason, "missing_id");
    fixture_fini(&fixture);
}

static void an_id_that_the_core_refuses_is_refused_here(void **state)
{
    struct fixture fixture;
    char body[400] = "[{\"type\":\"message-sending\",\"message\":{\"id\":\"";
    (void)state;
    setup(&fixture, "bandwidth");
    memset(body + strlen(body), 'x', 256);
    strcat(body, "\"}}]");
    fixture_post(&fixture, JSON, body);
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "id_too_long");
    fixture_post(&fixture, JSON,
                 "[{\"type\":\"message-sending\",\"message\":{\"id\":\"a\\u0000b\"}}]");
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "invalid_id");
    fixture_post(&fixture, JSON,
                 "[{\"type\":\"message-sending\",\"message\":{\"id\":\"\\\"\\n\"}}]");
    expect_member(&fixture, 0, "message_id", "\"");
    fixture_fini(&fixture);
}

static void a_machine_s_open_is_told_and_needs_a_flag_in_the_ladder(void **state)
{
    static const struct rcpt_status_definition statuses[] = {{"TARGETED", 0, NULL, false},
                                                             {"DELIVERED", 1, "TARGETED", false},
                                                             {"OPENED", 2, "DELIVERED", false}};
    const struct rcpt_ladder_definition definition = {.statuses = statuses, .status_count = 3};
    struct fixture fixture;
    struct rcpt_error error;
    char gateway[] = "sendgrid";
    struct rcpt_gateway_account_config config = account_config(gateway);
    const char *open = "[{\"event\":\"open\",\"sg_message_id\":\"a\",\"sg_machine_open\":true}]";
    (void)state;
    setup(&fixture, "sendgrid");
    fixture_post(&fixture, JSON, open);
    expect_member(&fixture, 0, "status", "OPENED");
    assert_true(rcpt_text_is(fixture.result.events[0].flags[0], "MACHINE_OPEN"));
    rcpt_ladder_free(fixture.ladder);
    fixture.ladder = rcpt_ladder_new(&definition, &error);
    fixture_account(&fixture, &config);
    fixture_post(&fixture, JSON, open);
    expect_member(&fixture, 0, "status", "DELIVERED");
    assert_int_equal(fixture.result.events[0].flag_count, 0);
    fixture_fini(&fixture);
}

static void ids_take_the_forms_of_the_account(void **state)
{
    struct fixture fixture;
    char gateway[] = "jasmin", hex[] = "hex_to_decimal", cut[] = "strip_suffix", odd[] = "tirm",
         lower[] = "lower", upper[] = "upper";
    char *forms[] = {cut, hex}, *unknown[] = {odd}, *both[] = {lower, upper};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct rcpt_error error;
    (void)state;
    setup(&fixture, "jasmin");
    config.id_forms = forms;
    config.id_forms_count = 2;
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?id=00fF-1&message_status=DELIVRD&level=2");
    assert_true(rcpt_text_is(fixture.result.events[0].gateway_message_id, "255"));
    fixture_get(&fixture, "?id=x-1&message_status=DELIVRD&level=2&message_id=7B");
    assert_true(rcpt_text_is(fixture.result.events[0].gateway_message_id, "x"));
    assert_true(rcpt_text_is(fixture.result.events[0].message_id, "123"));
    config.id_forms = unknown;
    config.id_forms_count = 1;
    assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
    assert_non_null(strstr(error.text, "no form \"tirm\""));
    config.id_forms = both;
    config.id_forms_count = 2;
    assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
    assert_non_null(strstr(error.text, "undo each other"));
    fixture_fini(&fixture);
}

static void a_zone_makes_a_hint_exact(void **state)
{
    struct fixture fixture;
    char gateway[] = "jasmin", zone[] = "-03:00", channel[] = "rcs", id[] = "?m";
    struct rcpt_gateway_account_config config = account_config(gateway);
    const char *target = "?id=j&message_status=DELIVRD&level=2&donedate=2510181210&m=our";
    (void)state;
    setup(&fixture, "jasmin");
    fixture_get(&fixture, target);
    expect_member(&fixture, 0, "gateway_at", "2025-10-18T12:10:00");
    expect_member(&fixture, 0, "message_id", "j");
    config.time_zone = zone;
    config.channel = channel;
    config.message_id = id;
    fixture_account(&fixture, &config);
    fixture_get(&fixture, target);
    expect_member(&fixture, 0, "at", "2025-10-18T15:10:00Z");
    expect_member(&fixture, 0, "channel", "rcs");
    expect_member(&fixture, 0, "message_id", "our");
    expect_member(&fixture, 0, "gateway_message_id", "j");
    fixture_fini(&fixture);
}

/* ---- the configurable adapter ---- */

static void a_custom_gateway_is_described_by_its_account(void **state)
{
    struct fixture fixture;
    char gateway[] = "custom", items[] = "/batch/*/reports/*", id[] = "{../id}|{/to,/msisdn}";
    char status[] = "/state", at[] = "/when", reason[] = "/code", ref[] = "^/ref";
    char event_id[] = "@x-event", part[] = "/part", type[] = "application/json", ok[] = "{}";
    char names[][8] = {"OK", "ERR-*", "NOTE", "SPAM"};
    char values[][24] = {"DELIVERED", "FAILED", "ignore", "DELIVERED+COMPLAINED"};
    struct rcpt_gateway_pair pairs[4];
    struct rcpt_gateway_account_config config = account_config(gateway);
    (void)state;
    for (size_t index = 0; index < COUNT(pairs); index++)
        pairs[index] = (struct rcpt_gateway_pair){names[index], values[index], 1, 1};
    config.custom = (struct rcpt_gateway_custom){.items = items,
                                                 .id = id,
                                                 .status = status,
                                                 .at = at,
                                                 .reason = reason,
                                                 .client_ref = ref,
                                                 .event_id = event_id,
                                                 .part = part,
                                                 .statuses = pairs,
                                                 .statuses_count = COUNT(pairs),
                                                 .answer_code = 202,
                                                 .answer_type = type,
                                                 .answer = ok};
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    fixture_request(&fixture, "POST", RCPT_TEXT(""),
                    RCPT_TEXT("{\"ref\":\"r\",\"batch\":[{\"id\":7,\"reports\":["
                              "{\"to\":\"1\",\"state\":\"ok\",\"when\":1760789441,\"part\":2},"
                              "{\"msisdn\":\"2\",\"state\":\"ERR-12\",\"code\":12},"
                              "{\"to\":\"3\",\"state\":\"NOTE\"},{\"to\":\"4\",\"state\":\"SPAM\"},"
                              "{\"state\":\"OK\"}]}]}"));
    fixture_header(&fixture, RCPT_TEXT("X-Event"), RCPT_TEXT("e-1"));
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.event_count, 3);
    expect_member(&fixture, 0, "gateway_message_id", "7|1");
    expect_member(&fixture, 0, "at", "2025-10-18T12:10:41Z");
    expect_member(&fixture, 0, "part", "2");
    expect_member(&fixture, 0, "client_ref", "r");
    expect_member(&fixture, 0, "event_id", "e-1");
    expect_member(&fixture, 1, "gateway_message_id", "7|2");
    expect_member(&fixture, 1, "status", "FAILED");
    expect_member(&fixture, 1, "reason", "12");
    assert_true(rcpt_text_is(fixture.result.events[2].flags[0], "COMPLAINED"));
    assert_int_equal(fixture.result.drop_count, 2);
    assert_string_equal(fixture.result.drops[1].reason, "missing_id");
    assert_int_equal(fixture.result.answer.code, 202);
    assert_string_equal(fixture.result.answer.content_type, "application/json");
    fixture_request(&fixture, "POST", RCPT_TEXT(""),
                    RCPT_TEXT("{\"batch\":[{\"id\":7,\"reports\":["
                              "{\"to\":\"1\",\"state\":\"OK\",\"part\":-1},"
                              "{\"to\":\"2\",\"state\":\"OK\",\"part\":1.5},"
                              "{\"to\":\"3\",\"state\":\"OK\",\"part\":0},"
                              "{\"to\":\"4\",\"state\":\"OK\",\"part\":\"last\"}]}]}"));
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.event_count, 0);
    assert_int_equal(fixture.result.drop_count, 4);
    for (size_t index = 0; index < 4; index++)
        assert_string_equal(fixture.result.drops[index].reason, "invalid_part");
    fixture_fini(&fixture);
}

static void mistakes_in_an_account_are_named(void **state)
{
    static const struct {
        const char *gateway, *id, *status, *value, *public_url, *zone, *message;
        bool verified;
    } mistakes[] = {
        {"twillio", NULL, NULL, NULL, NULL, NULL, "there is no adapter \"twillio\"", false},
        {"custom", NULL, "s", NULL, NULL, NULL, "custom: needs id", false},
        {"custom", "{a", "s", NULL, NULL, NULL, "custom.id: a brace is not closed", false},
        {"custom", "$x", "s", NULL, NULL, NULL, "behind $ stands the number", false},
        {"custom", "id", "s", "DELIVERT", NULL, NULL, "\"DELIVERT\" is not in the ladder", false},
        {"twilio", NULL, NULL, NULL, NULL, NULL, "public_url: is needed", true},
        {"kannel", NULL, NULL, NULL, NULL, NULL, "secrets: verify: required needs", true},
        {"kannel", NULL, NULL, NULL, NULL, "Nowhere/CET", "time_zone: must be an offset", false},
    };
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(mistakes); index++) {
        char *texts[6] = {NULL}, word[] = "w";
        const char *const given[] = {mistakes[index].gateway,    mistakes[index].id,
                                     mistakes[index].status,     mistakes[index].value,
                                     mistakes[index].public_url, mistakes[index].zone};
        struct rcpt_error error;
        for (size_t text = 0; text < COUNT(given); text++)
            texts[text] = given[text] != NULL ? rcpt_strdup(given[text]) : NULL;
        struct rcpt_gateway_pair pair = {word, texts[3], 1, 1};
        struct rcpt_gateway_account_config config = account_config(texts[0]);
        config.custom = (struct rcpt_gateway_custom){.id = texts[1],
                                                     .status = texts[2],
                                                     .statuses = &pair,
                                                     .statuses_count = texts[3] != NULL};
        config.time_zone = texts[5];
        if (mistakes[index].verified)
            config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
        assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
        if (strstr(error.text, mistakes[index].message) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", error.text, mistakes[index].message);
        for (size_t text = 0; text < COUNT(texts); text++)
            free(texts[text]);
    }
    fixture_fini(&fixture);
}

static void mistakes_in_credentials_are_named(void **state)
{
    static char first[] = "s3cret", empty[] = "", network[] = "192.0.2.0/33", word[] = "office",
                longer[] = "2001:0db8:0000:0000:0000:0000:0000:0001:0000:0000:0000:0000:0000:0001",
                bits[] = "2001:db8::/129", none[] = "192.0.2.0/", blank[] = "acme twilio";
    char *secret[] = {first}, *no_secret[] = {first, empty}, *networks[] = {network},
         *words[] = {word}, *longers[] = {longer}, *many_bits[] = {bits}, *no_bits[] = {none};
    const struct {
        enum rcpt_gateway_auth auth;
        char **secrets, **allow, *name;
        unsigned secrets_count;
        const char *message;
    } mistakes[] = {
        {RCPT_GATEWAY_AUTH_HEADER, secret, NULL, NULL, 1,
         "intake account acme: auth_name: is needed for this kind of auth"},
        {RCPT_GATEWAY_AUTH_URL_HMAC, secret, NULL, NULL, 1,
         "intake account acme: auth_name: is needed for this kind of auth"},
        {RCPT_GATEWAY_AUTH_ADDRESS, secret, NULL, NULL, 1,
         "intake account acme: allow: is needed for auth: address"},
        {RCPT_GATEWAY_AUTH_SHARED, no_secret, NULL, NULL, 2,
         "intake account acme: secrets: one of them is empty"},
        {RCPT_GATEWAY_AUTH_SHARED, secret, networks, NULL, 1,
         "intake account acme: allow: every entry must be an address or network such as "
         "192.0.2.0/24, not \"192.0.2.0/33\""},
        {RCPT_GATEWAY_AUTH_SHARED, secret, words, NULL, 1, "192.0.2.0/24, not \"office\""},
        {RCPT_GATEWAY_AUTH_SHARED, secret, longers, NULL, 1, "192.0.2.0/24, not \"2001:0db8:"},
        {RCPT_GATEWAY_AUTH_SHARED, secret, many_bits, NULL, 1,
         "192.0.2.0/24, not \"2001:db8::/129\""},
        {RCPT_GATEWAY_AUTH_SHARED, secret, no_bits, NULL, 1, "192.0.2.0/24, not \"192.0.2.0/\""},
        {RCPT_GATEWAY_AUTH_SHARED, secret, NULL, blank, 1,
         "intake account acme twilio: name: must be letters, digits, dashes and underscores"},
    };
    struct fixture fixture;
    char gateway[] = "kannel";
    (void)state;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(mistakes); index++) {
        struct rcpt_error error;
        struct rcpt_gateway_account_config config = account_config(gateway);
        config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
        config.auth = mistakes[index].auth;
        config.secrets = mistakes[index].secrets;
        config.secrets_count = mistakes[index].secrets_count;
        config.allow = mistakes[index].allow;
        config.allow_count = mistakes[index].allow != NULL;
        if (mistakes[index].name != NULL)
            config.name = mistakes[index].name;
        assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
        if (strstr(error.text, mistakes[index].message) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", error.text, mistakes[index].message);
    }
    fixture_fini(&fixture);
}

static void mistakes_in_a_template_are_named(void **state)
{
    static const struct {
        const char *id, *message;
    } mistakes[] = {
        {"{ }", "custom.id: a field has no name"},
        {"", "custom.id: a field has no name"},
        {"a,,b", "custom.id: a field has no name"},
        {"^id", "custom.id: a path into JSON must begin with a slash"},
        {"/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q", "custom.id: a path has too many steps"},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y", "custom.id: has too many fields"},
        {"{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}-{i}-{j}", "custom.id: has too many parts"},
        {"x{/a}{$0}", "custom.id: behind $ stands the number of a segment, from 1"},
    };
    struct fixture fixture;
    char gateway[] = "custom", status[] = "s";
    (void)state;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(mistakes); index++) {
        struct rcpt_error error;
        struct rcpt_gateway_account_config config = account_config(gateway);
        char *id = rcpt_strdup(mistakes[index].id);
        config.custom = (struct rcpt_gateway_custom){.id = id, .status = status};
        assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
        if (strstr(error.text, mistakes[index].message) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", id, error.text, mistakes[index].message);
        free(id);
    }
    fixture_fini(&fixture);
}

static void an_unknown_gateway_or_flag_is_answered_with_what_there_is(void **state)
{
    struct fixture fixture;
    struct rcpt_error error;
    char unknown[] = "zzz", near[] = "twillio", custom[] = "custom", id[] = "id", status[] = "s",
         word[] = "w", flag[] = "DELIVERED+NOPE";
    struct rcpt_gateway_pair pair = {word, flag, 1, 1};
    struct rcpt_gateway_account_config config = account_config(unknown);
    (void)state;
    fixture_init(&fixture);
    assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
    assert_string_equal(error.text, "intake account acme: gateway: there is no adapter \"zzz\"");
    assert_string_equal(error.hint, "docs/gateways.md lists them; others: custom");
    config = account_config(near);
    assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
    assert_string_equal(error.hint,
                        "did you mean \"twilio\"? docs/gateways.md lists them; others: custom");
    config = account_config(custom);
    config.custom = (struct rcpt_gateway_custom){
        .id = id, .status = status, .statuses = &pair, .statuses_count = 1};
    assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
    assert_string_equal(error.text, "intake account acme: custom.statuses.w: \"DELIVERED+NOPE\" is "
                                    "not in the ladder");
    assert_non_null(strstr(error.hint, "DELIVERED+COMPLAINED, or ignore"));
    char plain[] = "kannel";
    config = account_config(plain);
    config.verify = RCPT_GATEWAY_VERIFY_OPTIONAL; /* nothing to verify with: all are let in */
    fixture_account(&fixture, &config);
    assert_string_equal(rcpt_gateway_account_name(fixture.account), "acme");
    assert_string_equal(rcpt_gateway_account_gateway(fixture.account), "kannel");
    fixture_get(&fixture, "?uuid=1&status=1");
    assert_string_equal(rcpt_gateway_verdict_name(fixture.result.verdict), "unverified");
    fixture_fini(&fixture);
}

static void a_template_takes_segments_elements_and_what_is_around_it(void **state)
{
    char gateway[] = "custom", id[] = "{$2}-{/ids/1}!", status[] = "^/state", items[] = "/events/*",
         word[] = "ok", value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {word, value, 1, 1};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    config.custom = (struct rcpt_gateway_custom){.id = id,
                                                 .status = status,
                                                 .items = items,
                                                 .statuses = &pair,
                                                 .statuses_count = 1,
                                                 .answer_code = 200};
    fixture_account(&fixture, &config);
    fixture_request(&fixture, "POST", RCPT_TEXT("/a/b%20c"),
                    RCPT_TEXT("{\"state\":\"ok\",\"events\":[{\"ids\":[1,2]},{\"ids\":[3]}]}"));
    fixture_header(&fixture, RCPT_TEXT("Content-Type"), RCPT_TEXT("application/json"));
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.event_count, 1);
    assert_true(rcpt_text_is(fixture.result.events[0].gateway_message_id, "b c-2!"));
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "missing_id"); /* it has no second id */
    rcpt_arena_reset(&fixture.arena, 65536);
    fixture_request(&fixture, "POST", RCPT_TEXT("/a"),
                    RCPT_TEXT("{\"state\":\"ok\",\"events\":[{\"ids\":[1,2]}]}"));
    fixture_header(&fixture, RCPT_TEXT("Content-Type"), RCPT_TEXT("application/json"));
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.event_count, 0); /* nor this one a second segment */
    fixture_fini(&fixture);
}

static void text_that_is_no_utf8_is_refused(void **state)
{
    char gateway[] = "custom", id[] = "?id", status[] = "?s", any[] = "*", value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {any, value, 1, 1};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    config.custom = (struct rcpt_gateway_custom){
        .id = id, .status = status, .statuses = &pair, .statuses_count = 1, .answer_code = 200};
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?id=m1&s=%ff");
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "invalid_utf8");
    fixture_get(&fixture, "?id=m1&s=%c3%a9");
    assert_int_equal(fixture.result.event_count, 1);
    fixture_fini(&fixture);
}

static void a_zone_is_an_offset_and_an_address_is_a_network_of_one(void **state)
{
    char gateway[] = "kannel", zone[] = "+05:30:00", address[] = "192.0.2.1", other[] = "192.0.2.2",
         *allowed[] = {address}, *others[] = {other};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    struct rcpt_error error;
    (void)state;
    fixture_init(&fixture);
    config.time_zone = zone;
    assert_null(rcpt_gateway_account_new(&config, fixture.ladder, &error));
    assert_string_equal(error.text,
                        "intake account acme: time_zone: must be an offset such as +05:30 or Z, or "
                        "a zone such as Europe/Berlin");
    config.time_zone = NULL;
    config.allow = allowed;
    config.allow_count = 1;
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?uuid=1&status=1"); /* from 192.0.2.1 */
    assert_int_equal(fixture.result.event_count, 1);
    config.allow = others;
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?uuid=1&status=1");
    assert_int_equal(fixture.result.event_count, 0);
    assert_int_equal(fixture.result.answer.code, 403);
    fixture_fini(&fixture);
}

/* ---- who is let in ---- */

static void one_kind_of_credentials_may_be_asked_for(void **state)
{
    /* HMAC-SHA256 of "{}" and of "m1" with the key "s3cret". */
    struct fixture fixture;
    char gateway[] = "custom", secret[] = "s3cret", *secrets[] = {secret}, id[] = "?id",
         status[] = "?s", signature[] = "X-Signature", signed_name[] = "id", word[] = "ok",
         value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {word, value, 1, 1};
    static const struct {
        enum rcpt_gateway_auth auth;
        const char *target, *name, *value;
        enum rcpt_gateway_verdict verdict;
    } tries[] = {
        {RCPT_GATEWAY_AUTH_BASIC, "?id=m1&s=ok", "Authorization",
         "Basic dTpzM2NyZXQ=", RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_BASIC, "?id=m1&s=ok", "Authorization",
         "Basic dTpzM2NyZXU=", RCPT_GATEWAY_BAD},
        {RCPT_GATEWAY_AUTH_BASIC, "?id=m1&s=ok", "Authorization", "Bearer s3cret",
         RCPT_GATEWAY_MISSING},
        {RCPT_GATEWAY_AUTH_BEARER, "?id=m1&s=ok", "Authorization", "Bearer s3cret",
         RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_BEARER, "?id=m1&s=ok", "Authorization", "Bearer s3cre",
         RCPT_GATEWAY_BAD},
        {RCPT_GATEWAY_AUTH_BEARER, "?id=m1&s=ok", "X-Other", "s3cret", RCPT_GATEWAY_MISSING},
        {RCPT_GATEWAY_AUTH_HMAC_HEX, "?id=m1&s=ok", "X-Signature",
         "sha256=adbde1ce40c89c14215687d5d762a47df6dfaefcfad61e2e86718ffc8498571b",
         RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_HMAC_HEX, "?id=m1&s=ok", "X-Signature",
         "adbde1ce40c89c14215687d5d762a47df6dfaefcfad61e2e86718ffc8498571b", RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_HMAC_HEX, "?id=m1&s=ok", "X-Signature", "sha256=00", RCPT_GATEWAY_BAD},
        {RCPT_GATEWAY_AUTH_URL_HMAC,
         "?id=m1&s=ok&sig=de41ef255d85239ed60d4c189e4ebdb818482d197932b684185912026e2efca2",
         "X-Other", "", RCPT_GATEWAY_VERIFIED},
        {RCPT_GATEWAY_AUTH_URL_HMAC,
         "?id=m2&s=ok&sig=de41ef255d85239ed60d4c189e4ebdb818482d197932b684185912026e2efca2",
         "X-Other", "", RCPT_GATEWAY_BAD},
        {RCPT_GATEWAY_AUTH_URL_HMAC, "?id=m1&s=ok", "X-Other", "", RCPT_GATEWAY_MISSING},
    };
    (void)state;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(tries); index++) {
        struct rcpt_gateway_account_config config = account_config(gateway);
        config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
        config.auth = tries[index].auth;
        config.auth_name =
            tries[index].auth == RCPT_GATEWAY_AUTH_URL_HMAC ? signed_name : signature;
        config.secrets = secrets;
        config.secrets_count = 1;
        config.unsigned_ids = tries[index].auth == RCPT_GATEWAY_AUTH_HMAC_HEX; /* reads the query */
        config.custom = (struct rcpt_gateway_custom){
            .id = id, .status = status, .statuses = &pair, .statuses_count = 1, .answer_code = 200};
        fixture_account(&fixture, &config);
        rcpt_arena_reset(&fixture.arena, 65536);
        fixture_request(&fixture, "POST", rcpt_text_of(tries[index].target), RCPT_TEXT("{}"));
        fixture_header(&fixture, rcpt_text_of(tries[index].name), rcpt_text_of(tries[index].value));
        fixture_adapt(&fixture);
        if (fixture.result.verdict != tries[index].verdict)
            fail_msg("try %zu: %s", index, rcpt_gateway_verdict_name(fixture.result.verdict));
        bool in = tries[index].verdict == RCPT_GATEWAY_VERIFIED;
        assert_int_equal(fixture.result.event_count, in);
        assert_int_equal(fixture.result.answer.code, in ? 200
                                                     : tries[index].verdict == RCPT_GATEWAY_MISSING
                                                         ? 401
                                                         : 403);
    }
    fixture_fini(&fixture);
}

static void a_gateway_that_signs_nothing_may_bring_a_secret_in_four_ways(void **state)
{
    struct fixture fixture;
    char gateway[] = "kannel", secret[] = "u:p w", *secrets[] = {secret};
    struct rcpt_gateway_account_config config = account_config(gateway);
    static const struct {
        const char *target, *authorization;
        enum rcpt_gateway_verdict verdict;
    } tries[] = {
        {"?uuid=1&status=1", NULL, RCPT_GATEWAY_MISSING},
        {"?uuid=1&status=1", "Basic dTpwIHc=", RCPT_GATEWAY_VERIFIED},
        {"?uuid=1&status=1", "Basic dTpwIHd=", RCPT_GATEWAY_BAD}, /* not canonical */
        {"?uuid=1&status=1", "Bearer u:p w", RCPT_GATEWAY_VERIFIED},
        {"?uuid=1&status=1", "Bearer u:p", RCPT_GATEWAY_BAD},
        {"?uuid=1&status=1&token=u%3Ap+w", NULL, RCPT_GATEWAY_VERIFIED},
        {"/u%3Ap%20w?uuid=1&status=1", NULL, RCPT_GATEWAY_VERIFIED},
        {"/u:p?uuid=1&status=1", NULL, RCPT_GATEWAY_BAD},
    };
    (void)state;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.secrets = secrets;
    config.secrets_count = 1;
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    for (size_t index = 0; index < COUNT(tries); index++) {
        fixture_request(&fixture, "GET", rcpt_text_of(tries[index].target), RCPT_TEXT(""));
        if (tries[index].authorization != NULL)
            fixture_header(&fixture, RCPT_TEXT("AUTHORIZATION"),
                           rcpt_text_of(tries[index].authorization));
        fixture_adapt(&fixture);
        assert_int_equal(fixture.result.verdict, tries[index].verdict);
        assert_int_equal(fixture.result.event_count, tries[index].verdict == RCPT_GATEWAY_VERIFIED);
    }
    config.verify = RCPT_GATEWAY_VERIFY_OPTIONAL;
    fixture_account(&fixture, &config);
    fixture_get(&fixture, tries[0].target);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_UNVERIFIED);
    assert_int_equal(fixture.result.event_count, 1);
    fixture_fini(&fixture);
}

static void addresses_are_looked_at_first(void **state)
{
    struct fixture fixture;
    char gateway[] = "kannel", v4[] = "192.0.2.0/25", v6[] = "2001:db8::/33", *allow[] = {v4, v6};
    struct rcpt_gateway_account_config config = account_config(gateway);
    static const struct {
        const char *source;
        bool good;
    } tries[] = {{"192.0.2.1", true},
                 {"192.0.2.127", true},
                 {"192.0.2.128", false},
                 {"::ffff:192.0.2.1", true},
                 {"2001:db8:7fff::1", true},
                 {"2001:db8:8000::1", false},
                 {"", false},
                 {"192.0.2.1.evil.x", false}};
    (void)state;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.allow = allow;
    config.allow_count = COUNT(allow);
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    for (size_t index = 0; index < COUNT(tries); index++) {
        fixture_request(&fixture, "GET", RCPT_TEXT("?uuid=1&status=1"), RCPT_TEXT(""));
        fixture.request.source = rcpt_text_of(tries[index].source);
        fixture_adapt(&fixture);
        assert_int_equal(fixture.result.verdict,
                         tries[index].good ? RCPT_GATEWAY_VERIFIED : RCPT_GATEWAY_BAD);
    }
    fixture_fini(&fixture);
}

static void old_signatures_are_stale_and_carry_a_replay_key(void **state)
{
    struct fixture fixture;
    char gateway[] = "mailgun", secret[] = "my-signing-key", *secrets[] = {secret};
    struct rcpt_gateway_account_config config = account_config(gateway);
    const char *body =
        "{\"signature\":{\"timestamp\":\"1760789441\",\"token\":"
        "\"00000000000000000000000000000000000000000000000001\",\"signature\":"
        "\"75421eaf4f6937b850c9c90bb2e4dbc1ab7c89f2f333fe5cacc973ea197155ab\"},"
        "\"event-data\":{\"event\":\"opened\",\"message\":{\"headers\":{\"message-id\":\"m\"}}}}";
    (void)state;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.secrets = secrets;
    config.secrets_count = 1;
    config.max_age_ms = 3600 * 1000;
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    fixture_post(&fixture, JSON, body);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_VERIFIED);
    assert_int_equal(fixture.result.replay_key.size, 50);
    fixture.request.received_us += INT64_C(3600) * 1000000;
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_STALE);
    assert_int_equal(fixture.result.answer.code, 403);
    assert_int_equal(fixture.result.replay_key.size, 0);
    fixture.request.received_us = NOW_US - INT64_C(3600) * 1000000;
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_STALE); /* from the future */
    fixture_fini(&fixture);
}

/* ---- challenges and subscriptions ---- */

static void meta_gets_its_challenge_back(void **state)
{
    struct fixture fixture;
    char gateway[] = "whatsapp_cloud", secret[] = "app", token[] = "tok", *secrets[] = {secret};
    struct rcpt_gateway_account_config config = account_config(gateway);
    (void)state;
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.secrets = secrets;
    config.secrets_count = 1;
    config.verify_token = token;
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?hub.mode=subscribe&hub.verify_token=tok&hub.challenge=11%2022");
    assert_int_equal(fixture.result.answer.code, 200);
    assert_true(rcpt_text_is(fixture.result.answer.body, "11 22"));
    fixture_get(&fixture, "?hub.mode=subscribe&hub.verify_token=tok2&hub.challenge=11");
    assert_int_equal(fixture.result.answer.code, 403);
    assert_int_equal(fixture.result.answer.body.size, 0);
    fixture_get(&fixture, "?hub.mode=unsubscribe&hub.verify_token=tok&hub.challenge=11");
    assert_int_equal(fixture.result.answer.code, 403);
    fixture_fini(&fixture);
}

static void only_amazons_urls_are_handed_out(void **state)
{
    static const struct {
        const char *url;
        bool good;
    } urls[] = {
        {"https://sns.eu-west-1.amazonaws.com/x.pem", true},
        {"https://sns.cn-north-1.amazonaws.com.cn/x.pem", true},
        {"http://sns.eu-west-1.amazonaws.com/x.pem", false},
        {"https://sns.eu-west-1.amazonaws.com.evil.example/x.pem", false},
        {"https://sns.evil.example/.amazonaws.com/x.pem", false},
        {"https://sns.eu-west-1.amazonaws.com:444/x.pem", false},
        {"https://sns.a@evil.amazonaws.com/x.pem", false},
        {"https://sns.a.b.amazonaws.com/x.pem", false},
        {"https://sns..amazonaws.com/x.pem", false},
        {"https://sns.eu-west-1.amazonaws.com", false},
        {"https://evil.example/?https://sns.eu-west-1.amazonaws.com/x.pem", false},
        {"https://SNS.eu-west-1.amazonaws.com/x.pem", false},
    };
    (void)state;
    for (size_t index = 0; index < COUNT(urls); index++) {
        struct rcpt_text path, region = rcpt_sns_url_region(rcpt_text_of(urls[index].url), &path);
        if ((region.at != NULL) != urls[index].good)
            fail_msg("%s", urls[index].url);
    }
}

static const char *find_nothing(void *context, const char *url)
{
    (void)context;
    assert_non_null(url);
    return NULL;
}

static void sns_asks_for_its_certificate_and_confirms_its_topic_only(void **state)
{
    struct fixture fixture;
    char gateway[] = "ses_sns", arn[] = "arn:aws:sns:eu-west-1:1:t";
    struct rcpt_gateway_account_config config = account_config(gateway);
    const char *body =
        "{\"Type\":\"SubscriptionConfirmation\",\"MessageId\":\"1\",\"TopicArn\":"
        "\"arn:aws:sns:eu-west-1:1:t\",\"Token\":\"t\",\"Message\":\"m\",\"Timestamp\":"
        "\"2025-10-18T12:10:35.000Z\",\"SubscribeURL\":"
        "\"https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription\",\"Signature\":"
        "\"AAAA\",\"SignatureVersion\":\"2\",\"SigningCertURL\":"
        "\"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-"
        "0123456789abcdef0123456789abcdef.pem\"}";
    char *last = &arn[sizeof(arn) - 2];
    (void)state;
    config.topic_arn = arn;
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    fixture_post(&fixture, "text/plain", body);
    assert_string_equal(fixture.result.confirm_url,
                        "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription");
    *last = 'x';
    fixture_account(&fixture, &config);
    fixture_post(&fixture, "text/plain", body);
    assert_null(fixture.result.confirm_url);
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    fixture_account(&fixture, &config);
    fixture_post(&fixture, "text/plain", body);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_BAD);
    *last = 't';
    fixture_account(&fixture, &config);
    fixture_post(&fixture, "text/plain", body);
    fixture.request.find_certificate = find_nothing;
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.verdict, RCPT_GATEWAY_NEEDS_CERTIFICATE);
    assert_string_equal(fixture.result.certificate_url,
                        "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-"
                        "0123456789abcdef0123456789abcdef.pem");
    assert_int_equal(fixture.result.answer.code, 503);
    assert_null(fixture.result.confirm_url);
    fixture_fini(&fixture);
}

/* ---- what has no place ---- */

static void a_status_that_the_ladder_does_not_have_is_refused(void **state)
{
    static const struct rcpt_status_definition statuses[] = {
        {"UNKNOWN", 0, NULL, false}, {"SENT", 10, "UNKNOWN", false}, {"DONE", 20, "SENT", true}};
    const struct rcpt_ladder_definition definition = {.statuses = statuses,
                                                      .status_count = COUNT(statuses)};
    struct fixture fixture;
    struct rcpt_error error;
    (void)state;
    fixture_init(&fixture);
    rcpt_ladder_free(fixture.ladder);
    fixture.ladder = rcpt_ladder_new(&definition, &error);
    assert_non_null(fixture.ladder);
    fixture_gateway(&fixture, "sendgrid");
    fixture_post(&fixture, JSON,
                 "[{\"event\":\"processed\",\"sg_message_id\":\"a\"},"
                 "{\"event\":\"delivered\",\"sg_message_id\":\"b\"}]");
    assert_int_equal(fixture.result.drop_count, 2);
    for (size_t index = 0; index < 2; index++) {
        assert_int_equal(fixture.result.drops[index].kind, RCPT_GATEWAY_REJECTED);
        assert_string_equal(fixture.result.drops[index].reason, "status_not_in_ladder");
    }
    assert_true(rcpt_text_is(fixture.result.drops[1].raw,
                             "{\"event\":\"delivered\",\"sg_message_id\":\"b\"}"));
    fixture_fini(&fixture);
}

static void what_is_beyond_the_most_events_of_a_request_is_set_aside(void **state)
{
    enum { MOST = 100000, BEYOND = 3 };
    char gateway[] = "custom", items[] = "/*", id[] = ".", status[] = "?s", any[] = "*",
         value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {any, value, 1, 1};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    char *body = rcpt_malloc(2 * (MOST + BEYOND) + 2);
    (void)state;
    for (size_t index = 0; index < MOST + BEYOND; index++)
        memcpy(body + 1 + 2 * index, "7,", 2);
    body[0] = '[';
    body[2 * (MOST + BEYOND)] = ']';
    fixture_init(&fixture);
    config.custom = (struct rcpt_gateway_custom){.items = items,
                                                 .id = id,
                                                 .status = status,
                                                 .statuses = &pair,
                                                 .statuses_count = 1,
                                                 .answer_code = 200};
    fixture_account(&fixture, &config);
    fixture_request(&fixture, "POST", RCPT_TEXT("?s=ok"),
                    (struct rcpt_text){body, 2 * (MOST + BEYOND) + 1});
    fixture_adapt(&fixture);
    assert_int_equal(fixture.result.event_count, MOST);
    assert_int_equal(fixture.result.drop_count, BEYOND);
    for (size_t index = 0; index < BEYOND; index++) {
        assert_string_equal(fixture.result.drops[index].reason, "too_many_events");
        assert_true(rcpt_text_is(fixture.result.drops[index].raw, "7"));
    }
    free(body);
    fixture_fini(&fixture);
}

static void a_dead_letter_holds_no_credential(void **state)
{
    char kannel[] = "kannel", secret[] = "s3cret", *secrets[] = {secret}, name[] = "key";
    struct rcpt_gateway_account_config config = account_config(kannel);
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    config.secrets = secrets;
    config.secrets_count = 1;
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?uuid=1&token=s3cret&status=abc");
    expect_drop(&fixture, RCPT_GATEWAY_UNMAPPED, "unknown_status");
    assert_true(rcpt_text_is(fixture.result.drops[0].raw, "uuid=1&status=abc"));
    fixture_get(&fixture, "?t%6fken=s3%63ret&status=1&&token=s3cret");
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "missing_id");
    assert_true(rcpt_text_is(fixture.result.drops[0].raw, "status=1"));
    config.auth = RCPT_GATEWAY_AUTH_QUERY;
    config.auth_name = name;
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?key=s3cret&uuid=1&status=%41+b");
    assert_true(rcpt_text_is(fixture.result.drops[0].raw, "uuid=1&status=%41+b"));
    fixture_fini(&fixture);
}

/* What stands around many items is neither written nor gone through once more for each of them: a
 * megabyte would be gigabytes, and minutes. */
static void what_stands_around_items_costs_once(void **state)
{
    static const struct {
        const char *gateway, *before, *after, *end, *reason; /* NULL: events */
    } tries[] = {
        {"sinch", "{\"statuses\":[{\"status\":\"Delivered\",\"recipients\":[",
         "]}],\"batch_id\":\"", "}", "id_too_long"},
        {"sinch", "{\"batch_id\":\"b\",\"statuses\":[{\"status\":\"Delivered\",\"recipients\":[",
         "]}],\"client_reference\":\"", "}", NULL},
        {"sinch", "{\"batch_id\":\"b\",\"statuses\":[{\"status\":\"Failed\",\"recipients\":[",
         "],\"code\":\"", "}]}", NULL},
        {"sinch", "{\"batch_id\":\"b\",\"statuses\":[{\"recipients\":[", "],\"status\":\"Failed",
         "}]}", "unknown_status"},
        {"ses_sns", "{\"eventType\":\"Delivery\",\"delivery\":{\"recipients\":[",
         "]},\"mail\":{\"messageId\":\"", "}}", "id_too_long"},
        {"ses_sns",
         "{\"eventType\":\"Bounce\",\"mail\":{\"messageId\":\"m\"},\"bounce\":{"
         "\"bouncedRecipients\":[",
         "],\"bounceType\":\"", "}}", "status_too_long"},
    };
    enum { ITEMS = 60000, LONG = 400000 };
    char *body = rcpt_calloc(1, 1u << 20);
    struct fixture fixture;
    (void)state;
    for (size_t index = 0; index < COUNT(tries); index++) {
        char *end = stpcpy(body, tries[index].before);
        for (size_t item = 0; item < ITEMS; item++)
            end = stpcpy(end, item == 0 ? "\"1\"" : ",\"1\"");
        end = stpcpy(end, tries[index].after);
        for (size_t byte = 0; byte < LONG / 2; byte++)
            end = stpcpy(end, "\xc3\xa9");
        end = stpcpy(end, "\"");
        strcpy(end, tries[index].end);
        setup(&fixture, tries[index].gateway);
        clock_t begin = clock();
        fixture_post(&fixture, JSON, body);
        if ((double)(clock() - begin) / CLOCKS_PER_SEC > 2)
            fail_msg("try %zu takes %.1f s", index, (double)(clock() - begin) / CLOCKS_PER_SEC);
        assert_in_range(rcpt_arena_bytes(&fixture.arena), 0, 96u << 20);
        size_t count =
            tries[index].reason == NULL ? fixture.result.event_count : fixture.result.drop_count;
        assert_int_equal(count, ITEMS);
        if (tries[index].reason != NULL)
            assert_string_equal(fixture.result.drops[0].reason, tries[index].reason);
        fixture_fini(&fixture);
    }
    free(body);
}

/* One object in the place of an array of one is taken; a text is not. */
static void a_lone_object_stands_for_an_array_of_one(void **state)
{
    char gateway[] = "custom", items[] = "/events/*", id[] = "/id", status[] = "/s", word[] = "ok",
         value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {word, value, 1, 1};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    config.custom = (struct rcpt_gateway_custom){.items = items,
                                                 .id = id,
                                                 .status = status,
                                                 .statuses = &pair,
                                                 .statuses_count = 1,
                                                 .answer_code = 200};
    fixture_account(&fixture, &config);
    fixture_post(&fixture, JSON, "{\"events\":{\"id\":\"m1\",\"s\":\"ok\"}}");
    expect_member(&fixture, 0, "message_id", "m1");
    fixture_post(&fixture, JSON, "{\"events\":\"none\"}");
    expect_drop(&fixture, RCPT_GATEWAY_UNKNOWN_FORM, "unknown_form");
    fixture_fini(&fixture);
}

static void bytes_that_json_escapes_are_kept(void **state)
{
    char gateway[] = "custom", id[] = "?id", status[] = "?s", ref[] = "?ref", word[] = "ok",
         value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {word, value, 1, 1};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    config.custom = (struct rcpt_gateway_custom){.id = id,
                                                 .status = status,
                                                 .client_ref = ref,
                                                 .statuses = &pair,
                                                 .statuses_count = 1,
                                                 .answer_code = 200};
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?id=m1&s=ok&ref=a%01%1f%22%5c%09z");
    const struct rcpt_gateway_event *event = &fixture.result.events[0];
    struct rcpt_text json =
        rcpt_gateway_event_json(fixture.account, event, RCPT_TEXT("m1"), &fixture.arena);
    assert_true(rcpt_text_find(json, "a\\u0001\\u001f\\\"\\\\\\u0009z\"") < json.size);
    expect_member(&fixture, 0, "client_ref", "a\x01\x1f\"\\\tz");
    fixture_fini(&fixture);
}

/* Levels around an element, one after the other and the outermost. */
static void a_template_looks_further_and_further_out(void **state)
{
    char gateway[] = "custom", items[] = "/a/*/b/*", id[] = "{../../id}-{../id}-{/id}-{^/id}",
         status[] = "/s", word[] = "ok", value[] = "DELIVERED";
    struct rcpt_gateway_pair pair = {word, value, 1, 1};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    config.custom = (struct rcpt_gateway_custom){.items = items,
                                                 .id = id,
                                                 .status = status,
                                                 .statuses = &pair,
                                                 .statuses_count = 1,
                                                 .answer_code = 200};
    fixture_account(&fixture, &config);
    fixture_post(&fixture, JSON, "{\"id\":1,\"a\":[{\"id\":2,\"b\":[{\"id\":3,\"s\":\"ok\"}]}]}");
    expect_member(&fixture, 0, "gateway_message_id", "1-2-3-1");
    fixture_fini(&fixture);
}

static void a_multipart_body_without_a_boundary_has_no_fields(void **state)
{
    struct fixture fixture;
    (void)state;
    setup(&fixture, "kannel");
    fixture_post(&fixture, "multipart/form-data; boundary=b",
                 "--b\r\nContent-Disposition: form-data; name=\"uuid\"\r\n\r\nu1\r\n"
                 "--b\r\nContent-Disposition: form-data; name=\"status\"\r\n\r\n1\r\n--b--\r\n");
    assert_int_equal(fixture.result.event_count, 1);
    fixture_post(&fixture, "multipart/form-data",
                 "--b\r\nContent-Disposition: form-data; name=\"uuid\"\r\n\r\nu1\r\n"
                 "--b\r\nContent-Disposition: form-data; name=\"status\"\r\n\r\n1\r\n--b--\r\n");
    expect_drop(&fixture, RCPT_GATEWAY_UNKNOWN_FORM, "unknown_form");
    fixture_fini(&fixture);
}

/* ---- parts ---- */

static void receipts_of_smpp_are_read_as_vendors_write_them(void **state)
{
    static const struct {
        const char *text, *id, *stat, *err, *done;
        unsigned sub, dlvrd;
    } receipts[] = {
        {"id:123 sub:001 dlvrd:002 submit date:2510181210 done date:2510181211 stat:DELIVRD "
         "err:000 "
         "text:hi",
         "123", "DELIVRD", "000", "2510181211", 1, 2},
        {"id:0af3-11e1 submit date:251018121041 done date:251018121042 stat:UNDELIV err:0x0b Text:",
         "0af3-11e1", "UNDELIV", "0x0b", "251018121042", 0, 0},
        {"stat:EXPIRED text:id:9 stat:DELIVRD err:1", "", "EXPIRED", "", "", 0, 0},
        {"id: sub: dlvrd: stat:REJECTD err: text:x", "", "REJECTD", "", "", 0, 0},
        {"ID:7 STAT:ACCEPTD", "7", "ACCEPTD", "", "", 0, 0},
    };
    struct rcpt_smpp_receipt receipt;
    (void)state;
    for (size_t index = 0; index < COUNT(receipts); index++) {
        assert_true(rcpt_smpp_parse(rcpt_text_of(receipts[index].text), &receipt));
        assert_true(rcpt_text_is(receipt.stat, receipts[index].stat));
        assert_true(rcpt_text_is(receipt.id, receipts[index].id));
        assert_true(rcpt_text_is(receipt.err, receipts[index].err));
        assert_true(rcpt_text_is(receipt.done_date, receipts[index].done));
        assert_int_equal(receipt.sub, receipts[index].sub);
        assert_int_equal(receipt.dlvrd, receipts[index].dlvrd);
    }
    assert_false(rcpt_smpp_parse(RCPT_TEXT("text:stat:DELIVRD"), &receipt));
    assert_false(rcpt_smpp_parse(RCPT_TEXT("NACK/11/Invalid destination address"), &receipt));
}

static void times_are_read_in_every_form(void **state)
{
    static const struct {
        const char *text, *zone, *local;
        enum rcpt_gateway_time format;
        int64_t at_us;
    } times[] = {
        {"2025-10-18T12:10:29.1234567Z", NULL, NULL, RCPT_GATEWAY_TIME_AUTO, 1760789429123456},
        {"2025-10-18T09:10:29.000-0300", NULL, NULL, RCPT_GATEWAY_TIME_AUTO, 1760789429000000},
        {"1760789429", NULL, NULL, RCPT_GATEWAY_TIME_AUTO, 1760789429000000},
        {"1760789429001", NULL, NULL, RCPT_GATEWAY_TIME_AUTO, 1760789429001000},
        {"1760789429.25", NULL, NULL, RCPT_GATEWAY_TIME_AUTO, 1760789429250000},
        {"2025-10-18 12:10:29", NULL, "2025-10-18T12:10:29", RCPT_GATEWAY_TIME_AUTO, 0},
        {"2025-10-18 12:10:29.5", NULL, "2025-10-18T12:10:29.500000", RCPT_GATEWAY_TIME_AUTO, 0},
        {"2025-10-18 17:40:29", "+05:30", NULL, RCPT_GATEWAY_TIME_AUTO, 1760789429000000},
        {"2025-10-18 12:10:29.50000000000000000000000000", NULL, "2025-10-18T12:10:29.500000",
         RCPT_GATEWAY_TIME_AUTO, 0},
        {"2510181210", NULL, "2025-10-18T12:10:00", RCPT_GATEWAY_TIME_SHORT, 0},
        {"251018121029", "Z", NULL, RCPT_GATEWAY_TIME_SHORT, 1760789429000000},
        {"202510181210", NULL, "2025-10-18T12:10:00", RCPT_GATEWAY_TIME_SHORT, 0},
        {"20251018121029", "Z", NULL, RCPT_GATEWAY_TIME_SHORT, 1760789429000000},
        {"201506201641", NULL, "2015-06-20T16:41:00", RCPT_GATEWAY_TIME_SHORT, 0},
        {"2402291200", NULL, "2024-02-29T12:00:00", RCPT_GATEWAY_TIME_SHORT, 0},
    };
    struct rcpt_arena arena;
    (void)state;
    rcpt_arena_init(&arena, 4096);
    for (size_t index = 0; index < COUNT(times); index++) {
        struct rcpt_moment moment = {.exact = false};
        const char *problem;
        struct rcpt_zone *zone =
            times[index].zone != NULL ? rcpt_zone_new(times[index].zone, &problem) : NULL;
        const struct rcpt_clock clock = {zone, NOW_US};
        assert_true(rcpt_moment_read(rcpt_text_of(times[index].text), times[index].format, &clock,
                                     &arena, &moment));
        rcpt_zone_free(zone);
        assert_int_equal(moment.exact, times[index].local == NULL);
        if (moment.exact)
            assert_int_equal(moment.at_us, times[index].at_us);
        else
            assert_true(rcpt_text_is(moment.local, times[index].local));
    }
    static const struct {
        const char *text;
        enum rcpt_gateway_time format;
    } others[] = {{"yesterday", RCPT_GATEWAY_TIME_AUTO},
                  {"2513181210x", RCPT_GATEWAY_TIME_SHORT},
                  {"0", RCPT_GATEWAY_TIME_AUTO},
                  {"0.000", RCPT_GATEWAY_TIME_AUTO},
                  {"000", RCPT_GATEWAY_TIME_SHORT},
                  {"1970-01-01 00:00:00", RCPT_GATEWAY_TIME_AUTO},
                  {"1970-01-01 05:30:00", RCPT_GATEWAY_TIME_AUTO},
                  {"1970-01-01T00:00:00Z", RCPT_GATEWAY_TIME_AUTO},
                  {"1970-01-01T01:00:00+01:00", RCPT_GATEWAY_TIME_AUTO},
                  {"19700101000000", RCPT_GATEWAY_TIME_SHORT}};
    const struct rcpt_clock clock = {NULL, NOW_US};
    struct rcpt_moment moment;
    for (size_t index = 0; index < COUNT(others); index++)
        if (rcpt_moment_read(rcpt_text_of(others[index].text), others[index].format, &clock, &arena,
                             &moment))
            fail_msg("%s", others[index].text);
    rcpt_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_probe_is_answered_before_it_is_verified),
        cmocka_unit_test(what_is_no_json_is_a_dead_letter_and_400),
        cmocka_unit_test(one_bad_element_does_not_hold_up_its_neighbours),
        cmocka_unit_test(an_id_that_the_core_refuses_is_refused_here),
        cmocka_unit_test(a_machine_s_open_is_told_and_needs_a_flag_in_the_ladder),
        cmocka_unit_test(ids_take_the_forms_of_the_account),
        cmocka_unit_test(a_zone_makes_a_hint_exact),
        cmocka_unit_test(a_custom_gateway_is_described_by_its_account),
        cmocka_unit_test(mistakes_in_an_account_are_named),
        cmocka_unit_test(mistakes_in_credentials_are_named),
        cmocka_unit_test(mistakes_in_a_template_are_named),
        cmocka_unit_test(text_that_is_no_utf8_is_refused),
        cmocka_unit_test(a_zone_is_an_offset_and_an_address_is_a_network_of_one),
        cmocka_unit_test(a_template_takes_segments_elements_and_what_is_around_it),
        cmocka_unit_test(an_unknown_gateway_or_flag_is_answered_with_what_there_is),
        cmocka_unit_test(one_kind_of_credentials_may_be_asked_for),
        cmocka_unit_test(a_gateway_that_signs_nothing_may_bring_a_secret_in_four_ways),
        cmocka_unit_test(addresses_are_looked_at_first),
        cmocka_unit_test(old_signatures_are_stale_and_carry_a_replay_key),
        cmocka_unit_test(meta_gets_its_challenge_back),
        cmocka_unit_test(only_amazons_urls_are_handed_out),
        cmocka_unit_test(sns_asks_for_its_certificate_and_confirms_its_topic_only),
        cmocka_unit_test(receipts_of_smpp_are_read_as_vendors_write_them),
        cmocka_unit_test(times_are_read_in_every_form),
        cmocka_unit_test(a_status_that_the_ladder_does_not_have_is_refused),
        cmocka_unit_test(what_is_beyond_the_most_events_of_a_request_is_set_aside),
        cmocka_unit_test(a_dead_letter_holds_no_credential),
        cmocka_unit_test(what_stands_around_items_costs_once),
        cmocka_unit_test(a_lone_object_stands_for_an_array_of_one),
        cmocka_unit_test(bytes_that_json_escapes_are_kept),
        cmocka_unit_test(a_template_looks_further_and_further_out),
        cmocka_unit_test(a_multipart_body_without_a_boundary_has_no_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Records of topics in another form: what each becomes by the account of its topic. */
#include <glob.h>

#include "intake_fixture.h"
#include "receiptd/core/hash.h"
#include "receiptd/gateways/topics.h"

#define AT "2026-11-20T08:00:00Z"

struct world {
    struct rcpt_ladder *ladder;
    struct rcpt_gateway_topics *topics;
    struct rcpt_decoder *decoder;
    struct rcpt_record *record;
};

static struct rcpt_gateway_pair words[] = {
    {(char *)(uintptr_t) "dlvrd", (char *)(uintptr_t) "DELIVERED", 1, 1},
    {(char *)(uintptr_t) "3", (char *)(uintptr_t) "FAILED", 1, 1},
    {(char *)(uintptr_t) "spam", (char *)(uintptr_t) "DELIVERED+COMPLAINED", 1, 1},
    {(char *)(uintptr_t) "ping", (char *)(uintptr_t) "ignore", 1, 1},
};

#define TEXT(text) ((char *)(uintptr_t)(text))

static void begin(struct world *world)
{
    char *trim[] = {TEXT("trim"), TEXT("lower")};
    const struct rcpt_gateway_account_config configs[] = {
        {.name = TEXT("ours"), .gateway = TEXT("native"), .is_topic = true},
        {.name = TEXT("flat"),
         .gateway = TEXT("custom"),
         .is_topic = true,
         .id_forms = trim,
         .id_forms_count = 2,
         .custom = {.id = TEXT("id"),
                    .status = TEXT("state"),
                    .at = TEXT("at"),
                    .reason = TEXT("code"),
                    .statuses = words,
                    .statuses_count = COUNT(words)}},
        {.name = TEXT("nested"),
         .gateway = TEXT("custom"),
         .account = TEXT("legacy"),
         .org_id = TEXT("o1"),
         .is_topic = true,
         .custom = {.message_id = TEXT("/msg/id"),
                    .status = TEXT("/msg/state"),
                    .campaign_id = TEXT("../campaign"),
                    .items = TEXT("/events/*"),
                    .statuses = words,
                    .statuses_count = COUNT(words)}},
        {.name = TEXT("tw.raw"), .gateway = TEXT("twilio"), .is_topic = true},
        {.name = TEXT("ses"), .gateway = TEXT("ses_sns"), .is_topic = true},
    };
    struct rcpt_error error;
    memset(world, 0, sizeof(*world));
    world->ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    world->topics = rcpt_gateway_topics_new(configs, COUNT(configs), world->ladder, &error);
    assert_non_null(world->topics);
    world->decoder = rcpt_decoder_new(world->ladder, 4);
}

static void end(struct world *world)
{
    rcpt_record_free(world->record);
    rcpt_decoder_free(world->decoder);
    rcpt_gateway_topics_free(world->topics);
    rcpt_ladder_free(world->ladder);
}

/* Headers as "name: value" until NULL. */
static void decode(struct world *world, const char *topic, struct rcpt_text value,
                   const char *const *headers, bool is_item)
{
    struct rcpt_gateway_header given[8];
    struct rcpt_gateway_beside beside = {.headers = given, .is_item = is_item};
    struct rcpt_record_input input = {.topic = topic,
                                      .offset = 7,
                                      .timestamp_ms = 1795000000000,
                                      .value = value.at,
                                      .value_size = value.size};
    for (; headers != NULL && headers[beside.header_count] != NULL; beside.header_count++) {
        struct rcpt_text text = rcpt_text_of(headers[beside.header_count]);
        size_t colon = rcpt_text_find(text, ": ");
        given[beside.header_count] = (struct rcpt_gateway_header){
            rcpt_text_part(text, 0, colon), rcpt_text_part(text, colon + 2, text.size)};
    }
    input.form = rcpt_gateway_topics_form(world->topics, &input, &beside);
    rcpt_record_free(world->record);
    world->record = rcpt_record_decode(world->decoder, &input);
}

/* "INDEX id STATUS at=… ;" of each event and "INDEX !reason" of each reject, by index. */
static void describe(const struct world *world, char *text, size_t size)
{
    const struct rcpt_record *record = world->record;
    size_t used = 0;
    text[0] = '\0';
    for (int32_t index = -1; index < 100; index++) {
        for (uint32_t at = 0; at < record->event_count; at++) {
            const struct rcpt_event *event = &record->events[at];
            if ((int32_t)event->index == index)
                used += (size_t)snprintf(text + used, size - used, "%d %.*s %s %lld; ", index,
                                         event->id_size, event->id,
                                         rcpt_ladder_entry(world->ladder, event->entry)->name,
                                         (long long)event->at_us / 1000);
        }
        for (uint32_t at = 0; at < record->reject_count; at++)
            if (record->rejects[at].index == index)
                used += (size_t)snprintf(text + used, size - used, "%d !%s; ", index,
                                         rcpt_reject_name(record->rejects[at].reason));
    }
}

static const char *const binary[] = {"ce_specversion: 1.0", "ce_type: t", "ce_id: e1",
                                     ("ce_time: " AT), NULL};
static const char *const form_type[] = {"content-type: application/x-www-form-urlencoded", NULL};

#define ENVELOPE(data)                                                                             \
    "{\"specversion\":\"1.0\",\"type\":\"t\",\"id\":\"e1\",\"time\":\"" AT "\"," data "}"
#define EVENT "\"data\":{\"id\":\"a\",\"state\":\"dlvrd\"}"
#define STREAM(id, word)                                                                           \
    ENVELOPE("\"data\":{\"messageSid\":\"" id "\",\"messageStatus\":\"" word                       \
             "\",\"timestamp\":\"" AT "\",\"from\":\"+1\",\"to\":\"+2\"}")
#define SES                                                                                        \
    "{\"eventType\":\"Delivery\",\"mail\":{\"messageId\":\"s\",\"destination\":[\"a@x\",\"b@x\"]}" \
    ","                                                                                            \
    "\"delivery\":{\"timestamp\":\"" AT "\",\"recipients\":[\"a@x\",\"b@x\"]}}"
#define SES_ESCAPED                                                                                \
    "{\\\"eventType\\\":\\\"Delivery\\\",\\\"mail\\\":{\\\"messageId\\\":\\\"s\\\","               \
    "\\\"destination\\\":[\\\"a@x\\\"]},"                                                          \
    "\\\"delivery\\\":{\\\"timestamp\\\":\\\"" AT "\\\",\\\"recipients\\\":[\\\"a@x\\\"]}}"

static const struct {
    const char *topic, *value;
    const char *const *headers;
    const char *expected;
} forms[] = {
    /* a platform's own JSON */
    {"flat", "{\"id\":\" A1 \",\"state\":\"DLVRD\",\"at\":\"2026-11-20T10:00:00+02:00\"}", NULL,
     "0 a1 DELIVERED 1795161600000; "},
    {"flat", "{\"id\":17,\"state\":3,\"at\":1795161600}", NULL, "0 17 FAILED 1795161600000; "},
    {"flat", "{\"id\":\"a\",\"state\":\"3\",\"at\":1795161600123}", NULL,
     "0 a FAILED 1795161600123; "},
    {"flat", "{\"id\":\"a\",\"state\":3,\"at\":1795161600123456}", NULL,
     "0 a FAILED 1795161600123; "},
    {"flat", "{\"id\":\"a\",\"state\":3,\"at\":\"1795161600123456789\"}", NULL,
     "0 a FAILED 1795161600123; "},
    {"flat", "{\"id\":\"a\",\"state\":3,\"at\":\"2026-11-20 08:00:00\"}", NULL,
     "0 a FAILED 1795161600000; "},
    {"flat", "{\"id\":\"a\",\"state\":3}", NULL, "0 a FAILED 1795000000000; "},
    {"flat", "\xef\xbb\xbf{\"id\":\"a\",\"state\":3}", NULL, "0 a FAILED 1795000000000; "},
    {"flat",
     "[{\"id\":\"a\",\"state\":3},{\"id\":\"b\",\"state\":\"ping\"},{\"id\":\"c\",\"state\":"
     "\"spam\"}]",
     NULL, "0 a FAILED 1795000000000; 2 c DELIVERED 1795000000000; "},
    {"nested", "{\"campaign\":\"c\",\"events\":[{\"msg\":{\"id\":\"a\",\"state\":\"dlvrd\"}}]}",
     NULL, "0 a DELIVERED 1795000000000; "},
    {"flat", "id=a&state=dlvrd&at=1795161600", form_type, "0 a DELIVERED 1795161600000; "},
    /* raw webhooks */
    {"tw.raw", "MessageSid=SM1&MessageStatus=delivered&To=%2B1", NULL,
     "0 SM1 DELIVERED 1795000000000; "},
    {"tw.raw", "MessageStatus=failed&ErrorCode=30005&SmsSid=SM2\n", form_type,
     "0 SM2 REJECTED 1795000000000; "},
    {"ses", SES, NULL, "0 s|a@x DELIVERED 1795161600000; 1 s|b@x DELIVERED 1795161600000; "},
    {"ses",
     "{\"version\":\"0\",\"source\":\"aws.ses\",\"detail-type\":\"Email "
     "Delivered\",\"detail\":" SES "}",
     NULL, "0 s|a@x DELIVERED 1795161600000; 1 s|b@x DELIVERED 1795161600000; "},
    {"ses",
     "{\"Type\":\"Notification\",\"MessageId\":\"n\",\"TopicArn\":\"arn:aws:sns:eu-west-1:1:"
     "t\",\"Message\":\"" SES_ESCAPED "\"}",
     NULL, "0 s|a@x DELIVERED 1795161600000; "},
    /* CloudEvents */
    {"flat", ENVELOPE(EVENT), NULL, "0 a DELIVERED 1795161600000; "},
    {"flat", ENVELOPE("\"data\":\"id=a&state=dlvrd\""), NULL, "0 a DELIVERED 1795161600000; "},
    {"flat", ENVELOPE("\"data_base64\":\"eyJpZCI6ImEiLCJzdGF0ZSI6ImRsdnJkIn0=\""), NULL,
     "0 a DELIVERED 1795161600000; "},
    {"flat", "[" ENVELOPE(EVENT) "," ENVELOPE(EVENT) ",{\"id\":\"b\",\"state\":3}]", NULL,
     "0 a DELIVERED 1795161600000; 1 a DELIVERED 1795161600000; 2 b FAILED 1795000000000; "},
    {"flat", "{\"id\":\"a\",\"state\":\"dlvrd\"}", binary, "0 a DELIVERED 1795161600000; "},
    {"tw.raw", "[" STREAM("SM1", "DELIVERED") "," STREAM("SM2", "READ") "]", NULL,
     "0 SM1 DELIVERED 1795161600000; 1 SM2 OPENED 1795161600000; "},
    {"tw.raw",
     ENVELOPE("\"data\":{\"messageSid\":\"SM1\",\"eventName\":\"com.twilio.messaging.inbound-"
              "message.received\",\"body\":\"hi\"}"),
     NULL, ""},
    /* our own */
    {"ours", "{\"message_id\":\"a\",\"status\":\"SENT\"}", NULL, "0 a SENT 1795000000000; "},
    {"unknown", "{\"message_id\":\"a\",\"status\":\"SENT\"}", NULL, "0 a SENT 1795000000000; "},
    /* no receipts */
    {"flat", "[]", NULL, ""},
    {"flat", " ", NULL, ""},
    {"nested", "{\"events\":[]}", NULL, ""},
    /* refusals, alone and among neighbours */
    {"flat", "", NULL, "-1 !empty_record; "},
    {"flat", "{\"id\":", NULL, "-1 !invalid_json; "},
    {"flat", "{\"id\":\"a\",\"state\":\"lost\"}", NULL, "-1 !unknown_status; "},
    {"flat", "{\"id\":\"a\"}", NULL, "-1 !missing_status; "},
    {"flat", "{\"state\":3}", NULL, "-1 !missing_id; "},
    {"flat", "{\"x\":1}", NULL, "-1 !not_an_event; "},
    {"nested", "{\"x\":1}", NULL, "-1 !not_an_event; "},
    {"flat", "[{\"id\":\"a\",\"state\":\"lost\"},{\"id\":\"b\",\"state\":3},{\"id\":\"c\"},7]",
     NULL, "0 !unknown_status; 1 b FAILED 1795000000000; 2 !missing_status; 3 !not_an_event; "},
    {"flat", "[{\"id\":\"a\",\"state\":3},{\"id\":\"\xff\",\"state\":3}]", NULL,
     "0 a FAILED 1795000000000; 1 !invalid_utf8; "},
    {"flat", ENVELOPE("\"subject\":\"s\""), NULL, "-1 !missing_status; "},
};

static void each_form_becomes_its_receipts(void **state)
{
    struct world world;
    char text[1024];
    (void)state;
    begin(&world);
    for (size_t index = 0; index < COUNT(forms); index++) {
        decode(&world, forms[index].topic, rcpt_text_of(forms[index].value), forms[index].headers,
               false);
        describe(&world, text, sizeof(text));
        if (strcmp(text, forms[index].expected) != 0)
            fail_msg("case %zu, %s: %s\ngives %s\nand not %s", index, forms[index].topic,
                     forms[index].value, text, forms[index].expected);
        /* The anchor is that of the value as it came, whatever was made of it. */
        assert_int_equal(rcpt_record_crc(world.record),
                         rcpt_hash_record(NULL, 0, forms[index].value, strlen(forms[index].value)));
    }
    end(&world);
}

static void a_refusal_says_what_would_do(void **state)
{
    static const struct {
        const char *topic, *value, *detail, *payload;
    } cases[] = {
        {"flat", "{\"id\":\"a\",\"state\":\"dlvrt\"}",
         "topic flat as custom: the word \"dlvrt\" has no meaning; did you mean \"dlvrd\"?; known: "
         "dlvrd, 3, spam, ping",
         NULL},
        {"flat", "{\"id\":\"a\",\"state\":\"call 015112345678\"}",
         "topic flat as custom: the word \"call ############\" has no meaning; known: dlvrd, 3, "
         "spam, "
         "ping",
         NULL},
        {"nested", "{\"events\":[{\"msg\":{\"state\":\"dlvrd\"},\"+4915112345678\":1}]}",
         "topic nested, account legacy as custom: no id at /msg/id; its keys: msg, +#############",
         NULL},
        {"flat", "{\"Id\":\"a\",\"State\":3}",
         "topic flat as custom: no receipt: it has neither an id at id nor a status at state; its "
         "keys: Id, State",
         NULL},
        {"flat", "[{\"id\":\"a\"},{\"id\":\"b\",\"state\":3}]",
         "topic flat as custom: no status at state; its keys: id", "{\"id\":\"a\"}"},
        {"flat", "[" ENVELOPE("\"data\":{\"id\":\"a\"}") "," ENVELOPE(EVENT) "]",
         "topic flat as custom: no status at state; its keys: id",
         ENVELOPE("\"data\":{\"id\":\"a\"}")},
    };
    struct world world;
    (void)state;
    begin(&world);
    for (size_t index = 0; index < COUNT(cases); index++) {
        const char *payload =
            cases[index].payload != NULL ? cases[index].payload : cases[index].value;
        decode(&world, cases[index].topic, rcpt_text_of(cases[index].value), NULL, false);
        assert_int_equal(world.record->reject_count, 1);
        const struct rcpt_reject *reject = &world.record->rejects[0];
        assert_string_equal(rcpt_record_detail(world.record, reject), cases[index].detail);
        assert_int_equal(reject->payload_size, strlen(payload));
        assert_memory_equal(world.record->value + reject->payload, payload, strlen(payload));
    }
    end(&world);
}

/* PostgreSQL takes no half of a character. */
static void a_long_detail_is_cut_between_two_characters(void **state)
{
    struct rcpt_gateway_pair many[100];
    char names[100][32];
    struct rcpt_error error;
    (void)state;
    for (size_t shift = 0; shift < 3; shift++) {
        struct rcpt_gateway_account_config config = {.name = TEXT("t"),
                                                     .gateway = TEXT("custom"),
                                                     .is_topic = true,
                                                     .custom = {.id = TEXT("id"),
                                                                .status = TEXT("s"),
                                                                .statuses = many,
                                                                .statuses_count = COUNT(many)}};
        struct world world;
        for (size_t index = 0; index < COUNT(many); index++) {
            snprintf(names[index], sizeof(names[index]), "%.*s\xe2\x82\xac\xe2\x82\xac%zu",
                     index == 0 ? (int)shift : 0, "xxx", index);
            many[index] = (struct rcpt_gateway_pair){names[index], TEXT("SENT"), 1, 1};
        }
        begin(&world);
        rcpt_gateway_topics_free(world.topics);
        world.topics = rcpt_gateway_topics_new(&config, 1, world.ladder, &error);
        decode(&world, "t", RCPT_TEXT("{\"id\":\"a\",\"s\":\"lost\"}"), NULL, false);
        struct rcpt_text detail =
            rcpt_text_of(rcpt_record_detail(world.record, &world.record->rejects[0]));
        assert_true(detail.size > 390 && detail.size <= 400 && rcpt_text_is_utf8(detail));
        end(&world);
    }
}

/* Otherwise a word that is given a meaning between two reads of a record might lose its receipt. */
static void a_refusal_has_the_lane_of_its_message(void **state)
{
    struct world world;
    char value[64];
    (void)state;
    begin(&world);
    for (int id = 0; id < 50; id++) {
        uint32_t lane = 0;
        snprintf(value, sizeof(value), "{\"id\":\"M%d\",\"state\":\"lost\"}", id);
        decode(&world, "flat", rcpt_text_of(value), NULL, false);
        snprintf(value, sizeof(value), "m%d", id); /* in the account's form */
        while (world.record->lane_rejects[lane + 1] == 0)
            lane++;
        assert_int_equal(lane, rcpt_hash_text_extended(value, strlen(value), 0) & 3);
    }
    end(&world);
}

/* A letter of one event holds the item alone, and one of many an array of items. */
static void letters_are_read_as_items(void **state)
{
    struct world world;
    char text[256];
    (void)state;
    begin(&world);
    decode(&world, "nested", RCPT_TEXT("{\"msg\":{\"id\":\"a\",\"state\":\"dlvrd\"}}"), NULL, true);
    describe(&world, text, sizeof(text));
    assert_string_equal(text, "0 a DELIVERED 1795000000000; ");
    decode(&world, "nested",
           RCPT_TEXT("[{\"msg\":{\"id\":\"a\",\"state\":3}},{\"msg\":{\"id\":\"b\",\"state\":3}}]"),
           NULL, true);
    describe(&world, text, sizeof(text));
    assert_string_equal(text, "0 a FAILED 1795000000000; 1 b FAILED 1795000000000; ");
    decode(&world, "flat", RCPT_TEXT(ENVELOPE(EVENT)), NULL, true);
    describe(&world, text, sizeof(text));
    assert_string_equal(text, "0 a DELIVERED 1795161600000; ");
    end(&world);
}

static void many_receipts_keep_the_limits_of_a_record(void **state)
{
    struct world world;
    size_t used = 0, size = 4u << 20;
    char *value = malloc(size);
    (void)state;
    begin(&world);
    for (int count = 0; count <= 10000; count++)
        used += (size_t)snprintf(value + used, size - used, "%c{\"id\":\"%d\",\"state\":%d}",
                                 count == 0 ? '[' : ',', count, count % 2 == 0 ? 3 : 4);
    value[used] = ']';
    decode(&world, "flat", (struct rcpt_text){value, used + 1}, NULL, false);
    assert_int_equal(world.record->event_count, 0);
    assert_int_equal(world.record->reject_count, 1);
    assert_int_equal(world.record->rejects[0].reason, RCPT_REJECT_TOO_MANY_EVENTS);
    assert_int_equal(world.record->rejects[0].full_size, used + 1);
    assert_int_equal(world.record->rejects[0].payload_size, RCPT_RECORD_MAX_LETTER_BYTES);
    used -= strlen(",{\"id\":\"10000\",\"state\":3}");
    value[used] = ']';
    decode(&world, "flat", (struct rcpt_text){value, used + 1}, NULL, false);
    assert_int_equal(world.record->event_count, 5000);
    assert_int_equal(world.record->reject_count, RCPT_RECORD_OWN_LETTERS + 1);
    assert_int_equal(world.record->rejects[RCPT_RECORD_OWN_LETTERS].receipts,
                     5000 - RCPT_RECORD_OWN_LETTERS);
    free(value);
    end(&world);
}

/* Every sample of a POST gives the same events as a record of a topic. */
static void each_sample_of_a_webhook_gives_the_same_as_a_record(void **state)
{
    glob_t found;
    size_t count = 0;
    (void)state;
    assert_int_equal(glob("tests/payloads/*.json", 0, NULL, &found), 0);
    for (size_t file = 0; file < found.gl_pathc; file++) {
        struct fixture fixture;
        const char *reason;
        char *text = file_text(found.gl_pathv[file]);
        struct rcpt_arena arena;
        struct rcpt_error error;
        fixture_init(&fixture);
        rcpt_arena_init(&arena, 65536);
        const struct rcpt_node *root = rcpt_document_parse(rcpt_text_of(text), &arena, &reason);
        char *gateway = rcpt_text_terminated(&arena, rcpt_node_text_of(root, "gateway"));
        const struct rcpt_gateway_account_config config = {
            .name = TEXT("t"), .gateway = gateway, .is_topic = true};
        struct rcpt_gateway_topics *topics =
            rcpt_gateway_topics_new(&config, 1, fixture.ladder, &error);
        struct rcpt_decoder *decoder = rcpt_decoder_new(fixture.ladder, 1);
        fixture_gateway(&fixture, gateway);
        for (const struct rcpt_node *node = rcpt_node_get(root, "cases")->first; node != NULL;
             node = node->next) {
            fixture_sample(&fixture, rcpt_node_get(node, "request"));
            if (fixture.request.query.size > 0 || fixture.request.tail.size > 0 ||
                fixture.request.body.size == 0)
                continue;
            fixture_adapt(&fixture);
            struct rcpt_record_input input = {.topic = "t",
                                              .timestamp_ms = NOW_US / 1000,
                                              .value = fixture.request.body.at,
                                              .value_size = fixture.request.body.size};
            const struct rcpt_gateway_beside beside = {
                .headers = fixture.headers, .header_count = fixture.request.header_count};
            input.form = rcpt_gateway_topics_form(topics, &input, &beside);
            struct rcpt_record *record = rcpt_record_decode(decoder, &input);
            assert_int_equal(record->event_count, fixture.result.event_count);
            for (size_t index = 0; index < record->event_count; index++) {
                const struct rcpt_gateway_event *event = &fixture.result.events[index];
                struct rcpt_text id =
                    event->message_id.size > 0 ? event->message_id : event->gateway_message_id;
                assert_true(rcpt_text_equal(id, (struct rcpt_text){record->events[index].id,
                                                                   record->events[index].id_size}));
            }
            rcpt_record_free(record);
            count++;
        }
        rcpt_decoder_free(decoder);
        rcpt_gateway_topics_free(topics);
        rcpt_arena_fini(&arena);
        fixture_fini(&fixture);
        free(text);
    }
    globfree(&found);
    assert_true(count > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_becomes_its_receipts),
        cmocka_unit_test(a_refusal_says_what_would_do),
        cmocka_unit_test(a_long_detail_is_cut_between_two_characters),
        cmocka_unit_test(a_refusal_has_the_lane_of_its_message),
        cmocka_unit_test(letters_are_read_as_items),
        cmocka_unit_test(many_receipts_keep_the_limits_of_a_record),
        cmocka_unit_test(each_sample_of_a_webhook_gives_the_same_as_a_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

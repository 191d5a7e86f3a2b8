/* What single gateways send beside their samples: parts that are missing, words that are unknown.
 */
#include "intake_fixture.h"

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

static void expect_event(const struct fixture *fixture, const char *status, const char *flag)
{
    assert_int_equal(fixture->result.event_count, 1);
    const struct rcpt_gateway_event *event = &fixture->result.events[0];
    if (!rcpt_text_is(event->status, status))
        fail_msg("%.*s, not %s", (int)event->status.size, event->status.at, status);
    assert_int_equal(event->flag_count, flag != NULL);
    if (flag != NULL)
        assert_true(rcpt_text_is(event->flags[0], flag));
}

static void why_postmark_stops_sending_is_told_apart(void **state)
{
    static const struct {
        const char *why, *stopped, *status, *flag;
    } changes[] = {
        {"HardBounce", "true", "BOUNCED_HARD", NULL},
        {"SpamComplaint", "true", "DELIVERED", "COMPLAINED"},
        {"ManualSuppression", "true", "DELIVERED", "UNSUBSCRIBED"},
        {"HardBounce", "false", "DELIVERED", "RESUBSCRIBED"},
    };
    struct fixture fixture;
    (void)state;
    setup(&fixture, "postmark");
    for (size_t index = 0; index < COUNT(changes); index++) {
        char body[256];
        snprintf(body, sizeof(body),
                 "{\"RecordType\":\"SubscriptionChange\",\"MessageID\":\"m\","
                 "\"SuppressSending\":%s,\"SuppressionReason\":\"%s\"}",
                 changes[index].stopped, changes[index].why);
        fixture_post(&fixture, JSON, body);
        expect_event(&fixture, changes[index].status, changes[index].flag);
    }
    fixture_fini(&fixture);
}

/* The request's number goes into the answer only if it cannot break it. */
static void firehose_gets_back_a_number_that_is_one(void **state)
{
    static const struct {
        const char *id, *answer;
    } requests[] = {
        {"ed4acda5-034f-9f42-bba1-f29aea6d7d8f",
         "{\"requestId\":\"ed4acda5-034f-9f42-bba1-f29aea6d7d8f\",\"timestamp\":1760789445000}"},
        {"a\\\"b", "{\"requestId\":\"\",\"timestamp\":1760789445000}"},
        {"a b", "{\"requestId\":\"\",\"timestamp\":1760789445000}"},
        {"", "{\"requestId\":\"\",\"timestamp\":1760789445000}"},
    };
    struct fixture fixture;
    char body[512];
    (void)state;
    setup(&fixture, "aws_eum_sms");
    for (size_t index = 0; index < COUNT(requests); index++) {
        snprintf(body, sizeof(body), "{\"requestId\":\"%s\",\"records\":[]}", requests[index].id);
        fixture_post(&fixture, JSON, body);
        assert_int_equal(fixture.result.answer.code, 200);
        if (!rcpt_text_is(fixture.result.answer.body, requests[index].answer))
            fail_msg("%.*s", (int)fixture.result.answer.body.size, fixture.result.answer.body.at);
    }
    fixture_fini(&fixture);
}

static void a_word_that_aws_invents_is_unknown(void **state)
{
    struct fixture fixture;
    (void)state;
    setup(&fixture, "aws_eum_sms");
    fixture_post(&fixture, JSON, "{\"eventType\":\"TEXT_TELEPORTED\",\"messageId\":\"m\"}");
    expect_drop(&fixture, RCPT_GATEWAY_UNMAPPED, "unknown_status");
    fixture_post(&fixture, JSON, "{\"eventType\":\"RCS_READ\",\"messageId\":\"m\"}");
    expect_event(&fixture, "OPENED", NULL);
    fixture_fini(&fixture);
}

static void what_sns_carries_may_be_no_receipt(void **state)
{
    static const char begin[] = "{\"Type\":\"Notification\",\"MessageId\":\"1\",\"TopicArn\":\"a\","
                                "\"Timestamp\":\"2025-10-18T12:10:35.000Z\",\"Message\":\"";
    static const struct {
        const char *message, *reason;
        enum rcpt_gateway_drop_kind kind;
    } messages[] = {
        {"Successfully validated SNS topic", "notice", RCPT_GATEWAY_IGNORED},
        {"{\\\"eventType\\\":", "invalid_json", RCPT_GATEWAY_REJECTED},
    };
    struct fixture fixture;
    (void)state;
    setup(&fixture, "ses_sns");
    for (size_t index = 0; index < COUNT(messages); index++) {
        char body[512];
        snprintf(body, sizeof(body), "%s%s\"}", begin, messages[index].message);
        fixture_post(&fixture, "text/plain", body);
        expect_drop(&fixture, messages[index].kind, messages[index].reason);
        assert_int_equal(fixture.result.event_count, 0);
    }
    fixture_fini(&fixture);
}

static void a_recipient_of_ses_without_an_address_is_set_aside(void **state)
{
    struct fixture fixture;
    (void)state;
    setup(&fixture, "ses_sns");
    fixture_post(&fixture, JSON,
                 "{\"eventType\":\"Bounce\",\"mail\":{\"messageId\":\"m\"},\"bounce\":{"
                 "\"bounceType\":\"Permanent\",\"bouncedRecipients\":[{\"emailAddress\":\"a@b\"},"
                 "{\"action\":\"failed\"}]}}");
    expect_event(&fixture, "BOUNCED_HARD", NULL);
    assert_true(rcpt_text_is(fixture.result.events[0].gateway_message_id, "m|a@b"));
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "missing_id");
    fixture_fini(&fixture);
}

static void a_summary_of_sinch_without_recipients_belongs_to_no_message(void **state)
{
    struct fixture fixture;
    (void)state;
    setup(&fixture, "sinch");
    fixture_post(&fixture, JSON,
                 "{\"type\":\"delivery_report_sms\",\"batch_id\":\"b\",\"statuses\":["
                 "{\"status\":\"Delivered\",\"count\":2}]}");
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "summary_without_recipients");
    fixture_post(&fixture, JSON, "{\"type\":\"mo_text\",\"body\":\"hello\"}");
    expect_drop(&fixture, RCPT_GATEWAY_IGNORED, "inbound");
    fixture_fini(&fixture);
}

/* Its numbers: 10 to 12 delivered, above 20 failed; the part stands behind the last dot. */
static void numbers_of_dartmedia_are_read_by_their_range(void **state)
{
    static const struct {
        const char *body, *status;
        unsigned part;
    } receipts[] = {
        {"messageid=12345.2&status=10", "DELIVERED", 2},
        {"messageid=12345&status=12", "DELIVERED", 0},
        {"messageid=12345.x&status=21", "FAILED", 0},
        {"messageid=12345&status=3", "SENT", 0},
        {"messageid=12345&status=20", "SENT", 0},
    };
    struct fixture fixture;
    (void)state;
    setup(&fixture, "sms_simple_forms");
    for (size_t index = 0; index < COUNT(receipts); index++) {
        fixture_post(&fixture, FORM, receipts[index].body);
        expect_event(&fixture, receipts[index].status, NULL);
        assert_int_equal(fixture.result.events[0].part, receipts[index].part);
        assert_true(rcpt_text_is(fixture.result.answer.body, "000"));
    }
    fixture_post(&fixture, FORM, "messageid=12345&status=gone");
    expect_drop(&fixture, RCPT_GATEWAY_UNMAPPED, "unknown_status");
    fixture_fini(&fixture);
}

static void machines_of_sparkpost_are_told(void **state)
{
    static const char open[] = "[{\"msys\":{\"track_event\":{\"type\":\"open\","
                               "\"transmission_id\":\"t\",\"rcpt_to\":\"a@b\",\"event_id\":\"1\","
                               "\"user_agent_parsed\":{\"is_prefetched\":true}}}}]";
    static const char click[] = "[{\"msys\":{\"track_event\":{\"type\":\"amp_click\","
                                "\"transmission_id\":\"t\",\"rcpt_to\":\"a@b\",\"event_id\":\"2\","
                                "\"user_agent_parsed\":{\"is_prefetched\":true}}}}]";
    struct fixture fixture;
    (void)state;
    setup(&fixture, "sparkpost");
    fixture_post(&fixture, JSON, open);
    expect_event(&fixture, "OPENED", "MACHINE_OPEN");
    fixture_post(&fixture, JSON, click);
    expect_event(&fixture, "CLICKED", "BOT_CLICK");
    fixture_fini(&fixture);
}

static void machines_of_mailgun_are_told(void **state)
{
    static const char form[] = "{\"event-data\":{\"event\":\"%s\",\"timestamp\":1760789441.25,"
                               "\"message\":{\"headers\":{\"message-id\":\"m@x\"}},"
                               "\"client-info\":{\"bot\":\"apple\"}}}";
    char open[256], click[256];
    struct fixture fixture;
    (void)state;
    snprintf(open, sizeof(open), form, "opened");
    snprintf(click, sizeof(click), form, "clicked");
    setup(&fixture, "mailgun");
    fixture_post(&fixture, JSON, open);
    expect_event(&fixture, "OPENED", "MACHINE_OPEN");
    fixture_post(&fixture, JSON, click);
    expect_event(&fixture, "CLICKED", "BOT_CLICK");
    fixture_fini(&fixture);
}

/* ---- networks of scanners ---- */

/* Once from the network of a scanner and once from elsewhere: the address takes the place of @. */
static void expect_scanned(struct fixture *fixture, const struct rcpt_network_set *scanners,
                           const char *form, const char *status, const char *flag)
{
    static const char *const addresses[] = {"192.0.2.77", "198.51.100.1", "unknown"};
    for (size_t index = 0; index < COUNT(addresses); index++) {
        char body[1024];
        int head = (int)strcspn(form, "@");
        snprintf(body, sizeof(body), "%.*s%s%s", head, form, addresses[index], form + head + 1);
        rcpt_arena_reset(&fixture->arena, 65536);
        fixture_request(fixture, "POST", RCPT_TEXT(""), rcpt_text_of(body));
        fixture->request.scanners = scanners;
        fixture_adapt(fixture);
        expect_event(fixture, status, index == 0 ? flag : NULL);
        const struct rcpt_node *event = fixture_event(fixture, 0);
        if (rcpt_text_find(event->raw, addresses[index]) < event->raw.size)
            fail_msg("the address is in the event");
    }
}

static void scanners_are_told_by_their_network_and_the_address_goes_no_further(void **state)
{
    static const struct {
        const char *gateway, *form, *status, *flag;
    } cases[] = {
        {"sendgrid",
         "[{\"event\":\"open\",\"sg_message_id\":\"m\",\"sg_event_id\":\"1\",\"ip\":\"@\"}]",
         "OPENED", "MACHINE_OPEN"},
        {"sendgrid",
         "[{\"event\":\"click\",\"sg_message_id\":\"m\",\"sg_event_id\":\"1\",\"ip\":\"@\"}]",
         "CLICKED", "BOT_CLICK"},
        /* Here it is the address that the mail was sent from. */
        {"sendgrid",
         "[{\"event\":\"delivered\",\"sg_message_id\":\"m\",\"sg_event_id\":\"1\",\"ip\":\"@\"}]",
         "DELIVERED", NULL},
        {"mailgun",
         "{\"event-data\":{\"event\":\"clicked\",\"message\":{\"headers\":{\"message-id\":\"mx\"}},"
         "\"ip\":\"@\"}}",
         "CLICKED", "BOT_CLICK"},
        {"mailgun", "event=opened&Message-Id=m%40x&ip=@", "OPENED", "MACHINE_OPEN"},
        {"sparkpost",
         "[{\"msys\":{\"track_event\":{\"type\":\"click\",\"transmission_id\":\"t\",\"rcpt_to\":"
         "\"ab\",\"event_id\":\"1\",\"ip_address\":\"@\"}}}]",
         "CLICKED", "BOT_CLICK"},
        {"ses_sns",
         "{\"eventType\":\"Open\",\"mail\":{\"messageId\":\"s\",\"destination\":[\"ab\"]},"
         "\"open\":{\"ipAddress\":\"@\"}}",
         "OPENED", "MACHINE_OPEN"},
        {"ses_sns",
         "{\"eventType\":\"Click\",\"mail\":{\"messageId\":\"s\",\"destination\":[\"ab\"]},"
         "\"click\":{\"ipAddress\":\"@\"}}",
         "CLICKED", "BOT_CLICK"},
        {"postmark", "{\"RecordType\":\"Open\",\"MessageID\":\"m\",\"Geo\":{\"IP\":\"@\"}}",
         "OPENED", "MACHINE_OPEN"},
    };
    struct rcpt_network_fault fault;
    struct rcpt_network_set *scanners = rcpt_network_set_parse("192.0.2.64/26", &fault);
    (void)state;
    for (size_t index = 0; index < COUNT(cases); index++) {
        struct fixture fixture;
        setup(&fixture, cases[index].gateway);
        expect_scanned(&fixture, scanners, cases[index].form, cases[index].status,
                       cases[index].flag);
        expect_scanned(&fixture, NULL, cases[index].form, cases[index].status, NULL);
        fixture_fini(&fixture);
    }
    rcpt_network_set_free(scanners);
}

static void a_gateway_of_ones_own_says_where_the_address_is(void **state)
{
    static char custom[] = "custom", id[] = "/id", word[] = "/s", ip[] = "/from/ip",
                read[] = "read", opened[] = "OPENED";
    struct rcpt_gateway_pair pairs[] = {{read, opened, 1, 1}};
    struct rcpt_gateway_account_config config = account_config(custom);
    struct rcpt_network_fault fault;
    struct rcpt_network_set *scanners = rcpt_network_set_parse("192.0.2.64/26", &fault);
    struct fixture fixture;
    (void)state;
    config.custom = (struct rcpt_gateway_custom){
        .id = id, .status = word, .ip = ip, .statuses = pairs, .statuses_count = 1};
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    expect_scanned(&fixture, scanners, "{\"id\":\"m\",\"s\":\"read\",\"from\":{\"ip\":\"@\"}}",
                   "OPENED", "MACHINE_OPEN");
    fixture_fini(&fixture);
    rcpt_network_set_free(scanners);
}

#define WATERMARK(from, kind)                                                                      \
    "{\"object\":\"page\",\"entry\":[{\"messaging\":[{" from "\"timestamp\":1760789450000,\"" kind \
    "\":{\"watermark\":1760789440253}}]}]}"

/* Where no column of the inbox says to whom messages go, it is of no use. */
static void a_watermark_of_messenger_is_a_range_of_its_sender(void **state)
{
    static char gateway[] = "fb_messenger";
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    setup(&fixture, gateway);
    fixture_post(&fixture, JSON, WATERMARK("\"sender\":{\"id\":\"5678\"},", "read"));
    expect_drop(&fixture, RCPT_GATEWAY_IGNORED, "range_receipt");
    config.ranges = true;
    fixture_account(&fixture, &config);
    fixture_post(&fixture, JSON, WATERMARK("\"sender\":{\"id\":\"5678\"},", "read"));
    expect_event(&fixture, "OPENED", NULL);
    struct rcpt_text json = rcpt_gateway_event_json(fixture.account, &fixture.result.events[0],
                                                    (struct rcpt_text){NULL, 0}, &fixture.arena);
    assert_string_equal(rcpt_text_terminated(&fixture.arena, json),
                        "{\"recipient\":\"5678\",\"gateway\":\"acme\",\"gateway_status\":\"read\","
                        "\"status\":\"OPENED\",\"at\":\"2025-10-18T12:10:50Z\","
                        "\"until\":\"2025-10-18T12:10:40.253Z\",\"org_id\":\"o1\","
                        "\"channel\":\"messenger\"}");
    fixture_post(&fixture, JSON, WATERMARK("\"sender\":{\"id\":\"5678\"},", "delivery"));
    expect_event(&fixture, "DELIVERED", NULL);
    fixture_post(&fixture, JSON, WATERMARK("", "read"));
    expect_drop(&fixture, RCPT_GATEWAY_UNKNOWN_FORM, "unknown_form");
    fixture_fini(&fixture);
}

static void a_custom_account_may_send_ranges(void **state)
{
    static char gateway[] = "custom", status[] = "status", id[] = "id", recipient[] = "wa_id",
                until[] = "read_until", name[] = "read", value[] = "OPENED";
    static struct rcpt_gateway_pair pairs[] = {{.name = name, .value = value}};
    struct rcpt_gateway_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    config.custom = (struct rcpt_gateway_custom){.id = id,
                                                 .status = status,
                                                 .statuses = pairs,
                                                 .statuses_count = COUNT(pairs),
                                                 .recipient = recipient,
                                                 .until = until};
    config.ranges = true;
    fixture_init(&fixture);
    fixture_account(&fixture, &config);
    fixture_get(&fixture, "?status=read&wa_id=491700000000&read_until=1760789440");
    expect_event(&fixture, "OPENED", NULL);
    assert_true(rcpt_text_is(fixture.result.events[0].recipient, "491700000000"));
    fixture_get(&fixture, "?status=read&wa_id=491700000000&read_until=1760789440&id=m");
    expect_event(&fixture, "OPENED", NULL);
    assert_int_equal(fixture.result.events[0].recipient.size, 0);
    fixture_get(&fixture, "?status=read&wa_id=491700000000&read_until=soon");
    expect_drop(&fixture, RCPT_GATEWAY_REJECTED, "invalid_range");
    fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(why_postmark_stops_sending_is_told_apart),
        cmocka_unit_test(firehose_gets_back_a_number_that_is_one),
        cmocka_unit_test(a_word_that_aws_invents_is_unknown),
        cmocka_unit_test(what_sns_carries_may_be_no_receipt),
        cmocka_unit_test(a_recipient_of_ses_without_an_address_is_set_aside),
        cmocka_unit_test(a_summary_of_sinch_without_recipients_belongs_to_no_message),
        cmocka_unit_test(numbers_of_dartmedia_are_read_by_their_range),
        cmocka_unit_test(machines_of_sparkpost_are_told),
        cmocka_unit_test(machines_of_mailgun_are_told),
        cmocka_unit_test(scanners_are_told_by_their_network_and_the_address_goes_no_further),
        cmocka_unit_test(a_gateway_of_ones_own_says_where_the_address_is),
        cmocka_unit_test(a_watermark_of_messenger_is_a_range_of_its_sender),
        cmocka_unit_test(a_custom_account_may_send_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

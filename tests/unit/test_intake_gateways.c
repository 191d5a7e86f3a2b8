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

static void expect_drop(const struct fixture *fixture, enum rcpt_intake_drop_kind kind,
                        const char *reason)
{
    assert_int_equal(fixture->result.drop_count, 1);
    assert_int_equal(fixture->result.drops[0].kind, kind);
    assert_string_equal(fixture->result.drops[0].reason, reason);
}

static void expect_event(const struct fixture *fixture, const char *status, const char *flag)
{
    assert_int_equal(fixture->result.event_count, 1);
    const struct rcpt_intake_event *event = &fixture->result.events[0];
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
    expect_drop(&fixture, RCPT_INTAKE_UNMAPPED, "unknown_status");
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
        enum rcpt_intake_drop_kind kind;
    } messages[] = {
        {"Successfully validated SNS topic", "notice", RCPT_INTAKE_IGNORED},
        {"{\\\"eventType\\\":", "invalid_json", RCPT_INTAKE_REJECTED},
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
    expect_drop(&fixture, RCPT_INTAKE_REJECTED, "missing_id");
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
    expect_drop(&fixture, RCPT_INTAKE_REJECTED, "summary_without_recipients");
    fixture_post(&fixture, JSON, "{\"type\":\"mo_text\",\"body\":\"hello\"}");
    expect_drop(&fixture, RCPT_INTAKE_IGNORED, "inbound");
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
    expect_drop(&fixture, RCPT_INTAKE_UNMAPPED, "unknown_status");
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

#define WATERMARK(from, kind)                                                                      \
    "{\"object\":\"page\",\"entry\":[{\"messaging\":[{" from "\"timestamp\":1760789450000,\"" kind \
    "\":{\"watermark\":1760789440253}}]}]}"

/* Where no column of the inbox says to whom messages go, it is of no use. */
static void a_watermark_of_messenger_is_a_range_of_its_sender(void **state)
{
    static char gateway[] = "fb_messenger";
    struct rcpt_intake_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    setup(&fixture, gateway);
    fixture_post(&fixture, JSON, WATERMARK("\"sender\":{\"id\":\"5678\"},", "read"));
    expect_drop(&fixture, RCPT_INTAKE_IGNORED, "range_receipt");
    config.ranges = true;
    fixture_account(&fixture, &config);
    fixture_post(&fixture, JSON, WATERMARK("\"sender\":{\"id\":\"5678\"},", "read"));
    expect_event(&fixture, "OPENED", NULL);
    struct rcpt_text json = rcpt_intake_event_json(fixture.account, &fixture.result.events[0],
                                                   (struct rcpt_text){NULL, 0}, &fixture.arena);
    assert_string_equal(rcpt_text_terminated(&fixture.arena, json),
                        "{\"recipient\":\"5678\",\"gateway\":\"acme\",\"gateway_status\":\"read\","
                        "\"status\":\"OPENED\",\"at\":\"2025-10-18T12:10:50Z\","
                        "\"until\":\"2025-10-18T12:10:40.253Z\",\"org_id\":\"o1\","
                        "\"channel\":\"messenger\"}");
    fixture_post(&fixture, JSON, WATERMARK("\"sender\":{\"id\":\"5678\"},", "delivery"));
    expect_event(&fixture, "DELIVERED", NULL);
    fixture_post(&fixture, JSON, WATERMARK("", "read"));
    expect_drop(&fixture, RCPT_INTAKE_IGNORED, "range_receipt");
    fixture_fini(&fixture);
}

static void a_custom_account_may_send_ranges(void **state)
{
    static char gateway[] = "custom", status[] = "status", id[] = "id", recipient[] = "wa_id",
                until[] = "read_until", name[] = "read", value[] = "OPENED";
    static struct rcpt_intake_pair pairs[] = {{.name = name, .value = value}};
    struct rcpt_intake_account_config config = account_config(gateway);
    struct fixture fixture;
    (void)state;
    config.custom = (struct rcpt_intake_custom){.id = id,
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
    expect_drop(&fixture, RCPT_INTAKE_REJECTED, "invalid_range");
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
        cmocka_unit_test(a_watermark_of_messenger_is_a_range_of_its_sender),
        cmocka_unit_test(a_custom_account_may_send_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

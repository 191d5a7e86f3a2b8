/* A code does not hide the word that says more, nor the other way round: which field decides, for each adapter
 * that is told of failures in several. docs/gateways.md, "Which field decides". */
#include "intake_fixture.h"

#define FORM "application/x-www-form-urlencoded"
#define JSON "application/json"

#define MAILGUN(rest)                                                                              \
    "{\"event-data\":{\"event\":\"failed\",\"message\":{\"headers\":{\"message-id\":\"i\"}}," rest \
    "}}"
#define SENDGRID(rest) "[{\"event\":\"bounce\",\"sg_message_id\":\"i\"," rest "}]"
#define SES(type, subtype, diagnostic)                                                             \
    "{\"notificationType\":\"Bounce\",\"mail\":{\"messageId\":\"i\"},\"bounce\":{\"bounceType\":"  \
    "\"" type "\",\"bounceSubType\":\"" subtype                                                    \
    "\",\"bouncedRecipients\":[{\"emailAddress\":\"a@b\","                                         \
    "\"diagnosticCode\":\"" diagnostic "\"}]}}"
#define SPARKPOST(type, rest)                                                                      \
    "[{\"msys\":{\"message_event\":{\"type\":\"" type                                              \
    "\",\"transmission_id\":\"t\",\"rcpt_to\":\"a@b\"," rest "}}}]"
#define POSTMARK(type, details)                                                                    \
    "{\"RecordType\":\"Bounce\",\"MessageID\":\"i\",\"Type\":\"" type "\",\"Details\":\"" details  \
    "\"}"
#define VONAGE(code, title)                                                                        \
    "{\"message_uuid\":\"i\",\"status\":\"rejected\",\"error\":{\"type\":"                         \
    "\"https://developer.vonage.com/api-errors/messages#" code "\",\"title\":\"" title "\"}}"

static const struct {
    const char *gateway, *type, *body, *status, *class;
} receipts[] = {
    {"mailgun", JSON,
     MAILGUN("\"severity\":\"permanent\",\"reason\":\"old\",\"delivery-status\":{\"code\":602}"),
     "EXPIRED", "expired"},
    {"mailgun", JSON,
     MAILGUN(
         "\"severity\":\"permanent\",\"reason\":\"generic\",\"delivery-status\":{\"code\":602}"),
     "EXPIRED", "expired"},
    {"mailgun", JSON,
     MAILGUN("\"severity\":\"permanent\",\"reason\":\"old\",\"delivery-status\":{\"code\":550}"),
     "EXPIRED", "expired"},
    {"mailgun", JSON,
     MAILGUN(
         "\"severity\":\"permanent\",\"reason\":\"espblock\",\"delivery-status\":{\"code\":554}"),
     "BLOCKED", "blocked"},
    {"mailgun", JSON,
     MAILGUN(
         "\"severity\":\"permanent\",\"reason\":\"espblock\",\"delivery-status\":{\"code\":552}"),
     "BLOCKED", "blocked"},
    {"mailgun", JSON,
     MAILGUN("\"severity\":\"permanent\",\"reason\":\"generic\",\"delivery-status\":{\"code\":550,"
             "\"message\":\"550 5.7.1 blocked by policy\"}"),
     "BLOCKED", "blocked"},
    {"mailgun", JSON,
     MAILGUN("\"severity\":\"permanent\",\"reason\":\"bounce\",\"delivery-status\":{\"code\":550,"
             "\"message\":\"5.1.1 no such user\"}"),
     "BOUNCED_HARD", "invalid"},
    {"mailgun", JSON,
     MAILGUN(
         "\"severity\":\"permanent\",\"reason\":\"generic\",\"delivery-status\":{\"code\":605}"),
     "REJECTED", "invalid"},
    {"mailgun", JSON,
     MAILGUN("\"severity\":\"temporary\",\"reason\":\"old\",\"delivery-status\":{\"code\":602}"),
     "DEFERRED", NULL},
    {"mailgun", FORM, "event=dropped&Message-Id=i&reason=old&code=602", "EXPIRED", "expired"},
    {"mailgun", FORM, "event=bounced&Message-Id=i&code=550&error=5.7.1+blocked", "BLOCKED",
     "blocked"},
    {"sendgrid", JSON,
     SENDGRID("\"type\":\"expired\",\"status\":\"4.4.7\",\"reason\":\"unable to get mx info\""),
     "EXPIRED", "expired"},
    {"sendgrid", JSON, SENDGRID("\"type\":\"expired\",\"status\":\"5.1.1\""), "EXPIRED", "expired"},
    {"sendgrid", JSON,
     SENDGRID("\"type\":\"bounce\",\"status\":\"5.1.1\",\"bounce_classification\":\"Reputation\""),
     "BLOCKED", "spam"},
    {"sendgrid", JSON, SENDGRID("\"type\":\"bounce\",\"status\":\"5.7.1\""), "BLOCKED", "blocked"},
    {"sendgrid", JSON, SENDGRID("\"type\":\"bounce\",\"reason\":\"552 5.2.2 mailbox full\""),
     "BOUNCED_SOFT", "absent"},
    {"sendgrid", JSON,
     SENDGRID("\"type\":\"bounce\",\"status\":\"5.0.0\",\"reason\":\"550 unknown\""),
     "BOUNCED_HARD", "invalid"},
    {"sendgrid", JSON,
     "[{\"event\":\"dropped\",\"sg_message_id\":\"i\",\"status\":\"5.0.0\",\"reason\":"
     "\"Unsubscribed Address\"}]",
     "REJECTED", "opted_out"},
    {"ses_sns", JSON, SES("Permanent", "General", "smtp; 550 5.7.1 blocked"), "BLOCKED", "blocked"},
    {"ses_sns", JSON, SES("Permanent", "General", "smtp; 550 5.1.1 user unknown"), "BOUNCED_HARD",
     "invalid"},
    {"ses_sns", JSON, SES("Permanent", "General", "smtp; 552 5.2.2 over quota"), "BOUNCED_SOFT",
     "absent"},
    {"ses_sns", JSON, SES("Permanent", "OnAccountSuppressionList", "smtp; 550 5.7.1 x"), "REJECTED",
     "invalid"},
    {"ses_sns", JSON,
     SES("Transient", "General", "smtp; 554 4.4.7 Message expired: unable to deliver"), "EXPIRED",
     "expired"},
    {"ses_sns", JSON, SES("Transient", "CustomTimeoutExceeded", ""), "EXPIRED", "expired"},
    {"ses_sns", JSON, SES("Undetermined", "Undetermined", "smtp; 550 5.1.1 user unknown"),
     "BOUNCED_HARD", "invalid"},
    {"ses_sns", JSON, SES("Undetermined", "Undetermined", "from 5.1.1.9, no answer"),
     "BOUNCED_SOFT", "unknown"},
    {"sparkpost", JSON, SPARKPOST("out_of_band", "\"bounce_class\":\"10\",\"error_code\":\"550\""),
     "BOUNCED_HARD", "invalid"},
    {"sparkpost", JSON, SPARKPOST("out_of_band", "\"bounce_class\":\"22\",\"error_code\":\"550\""),
     "BOUNCED_SOFT", "absent"},
    {"sparkpost", JSON, SPARKPOST("out_of_band", "\"bounce_class\":\"25\",\"error_code\":\"550\""),
     "BLOCKED", "blocked"},
    {"sparkpost", JSON, SPARKPOST("out_of_band", "\"bounce_class\":51,\"error_code\":\"550\""),
     "BLOCKED", "spam"},
    {"sparkpost", JSON, SPARKPOST("out_of_band", "\"bounce_class\":\"100\""), "BOUNCED_SOFT",
     "unknown"},
    {"sparkpost", JSON, SPARKPOST("out_of_band", "\"bounce_class\":\"80\""), "DELIVERED", NULL},
    {"sparkpost", JSON, SPARKPOST("bounce", "\"bounce_class\":\"26\",\"error_code\":\"550\""),
     "REJECTED", "blocked"},
    {"sparkpost", JSON, SPARKPOST("bounce", "\"bounce_class\":\"22\",\"error_code\":\"552\""),
     "BOUNCED_SOFT", "absent"},
    {"postmark", JSON, POSTMARK("Unknown", "smtp;550 5.7.1 policy"), "BLOCKED", "blocked"},
    {"postmark", JSON, POSTMARK("HardBounce", "smtp;550 5.1.1 unknown"), "BOUNCED_HARD", "invalid"},
    {"twilio", FORM, "MessageSid=i&MessageStatus=failed&ErrorCode=30036", "EXPIRED", "expired"},
    {"twilio", FORM, "MessageSid=i&MessageStatus=undelivered&ErrorCode=21614", "BOUNCED_HARD",
     "invalid"},
    {"vonage_sms", FORM, "messageId=i&status=rejected&err-code=9", "BOUNCED_HARD", "invalid"},
    {"vonage_sms", FORM, "messageId=i&status=failed&err-code=53", "BLOCKED", "opted_out"},
    {"vonage_sms", FORM, "messageId=i&status=unknown&err-code=6", "BLOCKED", "spam"},
    {"vonage_messages", JSON, VONAGE("1360", "Rejected"), "EXPIRED", "expired"},
    {"vonage_messages", JSON, VONAGE("1240", "Rejected"), "BOUNCED_HARD", "invalid"},
    {"vonage_messages", JSON, VONAGE("1240", "1240"), "BOUNCED_HARD", "invalid"},
    {"vonage_messages", JSON, VONAGE("9999", "Rejected"), "REJECTED", "unknown"},
    {"messagebird", FORM, "id=i&status=delivery_failed&statusReason=opted+out", "BLOCKED",
     "opted_out"},
    {"messagebird", FORM,
     "id=i&status=delivery_failed&statusReason=unknown+subscriber&statusErrorCode=0",
     "BOUNCED_HARD", "invalid"},
    {"plivo", FORM, "MessageUUID=i&Status=failed&ErrorCode=420", "EXPIRED", "expired"},
    {"africastalking", FORM, "id=i&status=Rejected&failureReason=DoNotDisturbRejection", "BLOCKED",
     "opted_out"},
    {"africastalking", FORM, "id=i&status=Failed&failureReason=InsufficientCredit", "FAILED",
     "credit"},
    {"bandwidth", JSON,
     "[{\"type\":\"message-failed\",\"message\":{\"id\":\"i\"},\"errorCode\":4720}]",
     "BOUNCED_HARD", "invalid"},
    {"kaleyra", FORM, "id=i&status=Failed&status_trace=FAILED&description=EXPIRED", "EXPIRED",
     "expired"},
    {"sinch", JSON, "{\"batch_id\":\"b\",\"recipient\":\"1\",\"status\":\"Failed\",\"code\":406}",
     "EXPIRED", "expired"},
    {"msg91", JSON,
     "{\"requestId\":\"r\",\"number\":\"9\",\"status\":\"2\",\"failedReason\":\"NDNC number\"}",
     "BLOCKED", "blocked"},
    {"infobip", JSON,
     "{\"results\":[{\"messageId\":\"i\",\"status\":{\"name\":\"REJECTED_PREPAID_PACKAGE_EXPIRED\"}"
     ",\"error\":{\"name\":\"NO_ERROR\",\"id\":0}}]}",
     "REJECTED", "credit"},
    {"infobip", JSON,
     "{\"results\":[{\"messageId\":\"i\",\"status\":{\"name\":\"CANCELED_BY_USER\"}}]}", "SKIPPED",
     NULL},
    {"gupshup_whatsapp", JSON,
     "{\"type\":\"message-event\",\"payload\":{\"gsId\":\"i\",\"type\":\"failed\",\"payload\":{"
     "\"code\":131031}}}",
     "FAILED", "sender"},
    {"whatsapp_cloud", JSON,
     "{\"entry\":[{\"changes\":[{\"value\":{\"statuses\":[{\"id\":\"i\",\"status\":\"failed\","
     "\"errors\":[{\"code\":1},{\"code\":131050}]}]}}]}]}",
     "BLOCKED", "opted_out"},
};

static void the_field_that_says_most_decides(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(receipts); index++) {
        fixture_gateway(&fixture, receipts[index].gateway);
        fixture_post(&fixture, receipts[index].type, receipts[index].body);
        if (fixture.result.event_count != 1)
            fail_msg("%s: %zu events of %s", receipts[index].gateway, fixture.result.event_count,
                     receipts[index].body);
        const struct rcpt_gateway_event *event = &fixture.result.events[0];
        const char *class = event->reason_class != NULL ? event->reason_class : "none";
        if (!rcpt_text_is(event->status, receipts[index].status) ||
            strcmp(class, receipts[index].class != NULL ? receipts[index].class : "none") != 0)
            fail_msg("%s: %.*s, %s of %s", receipts[index].gateway, (int)event->status.size,
                     event->status.at, class, receipts[index].body);
    }
    fixture_fini(&fixture);
}

/* Texts of servers, which may name the address, are asked and not kept. */
static void a_reason_is_a_code_and_no_text(void **state)
{
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    fixture_gateway(&fixture, "postmark");
    fixture_post(&fixture, JSON, POSTMARK("Unknown", "smtp;550 5.7.1 <a@b> refused"));
    assert_int_equal(fixture.result.events[0].reason.size, 0);
    fixture_gateway(&fixture, "ses_sns");
    fixture_post(&fixture, JSON, SES("Permanent", "General", "smtp; 550 5.7.1 <a@b> refused"));
    assert_true(rcpt_text_is(fixture.result.events[0].reason, "General"));
    fixture_fini(&fixture);
}

#define ARF(type)                                                                                  \
    "{\"notificationType\":\"Complaint\",\"mail\":{\"messageId\":\"i\"},\"complaint\":{"           \
    "\"complainedRecipients\":[{\"emailAddress\":\"a@b\"}],\"complaintFeedbackType\":" type "}}"

static void what_is_called_no_spam_is_no_complaint(void **state)
{
    static const struct {
        const char *gateway, *body;
        bool complains;
    } reports[] = {
        {"ses_sns", ARF("\"abuse\""), true},
        {"ses_sns", ARF("null"), true},
        {"ses_sns", ARF("\"fraud\""), true},
        {"ses_sns", ARF("\"not-spam\""), false},
        {"ses_sns", ARF("\"Not-Spam\""), false},
        {"ses_sns", ARF("\"auth-failure\""), false},
        {"sparkpost", SPARKPOST("spam_complaint", "\"fbtype\":\"abuse\""), true},
        {"sparkpost", SPARKPOST("spam_complaint", "\"fbtype\":\"not-spam\""), false},
        {"postmark", "{\"RecordType\":\"SpamComplaint\",\"MessageID\":\"i\"}", true},
        {"postmark",
         "{\"RecordType\":\"SpamComplaint\",\"MessageID\":\"i\",\"FeedbackType\":\"not-spam\"}",
         false},
        {"postmark",
         "{\"RecordType\":\"SpamComplaint\",\"MessageID\":\"i\",\"Content\":\"a\\r\\nFeedback-Type:"
         " not-spam\\r\\nb\"}",
         false},
        {"postmark",
         "{\"RecordType\":\"SpamComplaint\",\"MessageID\":\"i\",\"Content\":\"a\\nFeedback-Type: "
         "abuse\\nb\"}",
         true},
        {"mailgun",
         "{\"event-data\":{\"event\":\"complained\",\"message\":{\"headers\":{\"message-id\":\"i\"}"
         "},\"feedback-type\":\"not-spam\"}}",
         false},
        {"sendgrid",
         "[{\"event\":\"spamreport\",\"sg_message_id\":\"i\",\"feedback_type\":\"not-spam\"}]",
         false},
        {"infobip",
         "{\"messageId\":\"i\",\"notificationType\":\"COMPLAINED\",\"feedbackType\":\"not-spam\"}",
         false},
    };
    struct fixture fixture;
    (void)state;
    fixture_init(&fixture);
    for (size_t index = 0; index < COUNT(reports); index++) {
        fixture_gateway(&fixture, reports[index].gateway);
        fixture_post(&fixture, JSON, reports[index].body);
        assert_int_equal(fixture.result.event_count, 1);
        const struct rcpt_gateway_event *event = &fixture.result.events[0];
        assert_true(rcpt_text_is(event->status, "DELIVERED"));
        if ((event->flag_count == 1) != reports[index].complains)
            fail_msg("%s: %u flags of %s", reports[index].gateway, event->flag_count,
                     reports[index].body);
    }
    fixture_fini(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_field_that_says_most_decides),
        cmocka_unit_test(a_reason_is_a_code_and_no_text),
        cmocka_unit_test(what_is_called_no_spam_is_no_complaint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

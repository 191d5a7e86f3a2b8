/* Twilio Programmable Messaging: a form with one receipt, in no kept order and without a time; a
 * carrier's date may come, to the minute and without zone. New fields appear without notice. Event
 * Streams have the same in JSON, with a time, as data of CloudEvents.
 * twilio.com/docs/messaging/guides/track-outbound-message-status
 * twilio.com/docs/events/event-types/messaging/outbound-message */
#include "../gateways.h"

/* The code is more precise than the word. A message that Twilio itself refused (failed) was not
 * sent, unless a code is about the recipient. */
#define FAILURE(word)                                                                              \
    {word, "21610", "REJECTED", "UNSUBSCRIBED"}, /* the recipient has sent STOP */                 \
        {word, "21211", "BOUNCED_HARD", NULL},   /* no number */                                   \
        {word, "21614", "BOUNCED_HARD", NULL},   /* no mobile number */                            \
        {word, "30036", "EXPIRED", NULL},                                                          \
        {word, "63024", "BOUNCED_HARD", NULL}, /* 63…: WhatsApp; no such recipient */            \
        {word, "63032", "BLOCKED", NULL},                                                          \
    {                                                                                              \
        word, "63049", "BLOCKED", NULL                                                             \
    }

static const struct rcpt_mapping statuses[] = {
    {"accepted", NULL, "IN_GTW", NULL},
    {"scheduled", NULL, "IN_GTW", NULL},
    {"queued", NULL, "IN_GTW", NULL},
    {"sending", NULL, "IN_GTW", NULL},
    {"sent", NULL, "SENT", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},
    FAILURE("undelivered"),
    {"undelivered", "30005", "BOUNCED_HARD", NULL}, /* unknown handset */
    {"undelivered", "30006", "BOUNCED_HARD", NULL}, /* landline */
    {"undelivered", "30004", "BLOCKED", NULL},
    {"undelivered", "30007", "BLOCKED", NULL}, /* carrier's filter */
    {"undelivered", "30032", "BLOCKED", NULL}, /* number not verified */
    {"undelivered", "30034", "BLOCKED", NULL}, /* number not registered */
    {"undelivered", NULL, "FAILED", NULL},
    FAILURE("failed"),
    {"failed", NULL, "REJECTED", NULL},
    {"canceled", NULL, "SKIPPED", NULL},
    {"receiv*", NULL, NULL, NULL}, /* a person's message */
    {"com.twilio.messaging.inbound*", NULL, NULL, NULL},
};

static const struct rcpt_reason reasons[] = {
    {"21211", RCPT_REASON_INVALID},   {"21610", RCPT_REASON_OPTED_OUT},
    {"21614", RCPT_REASON_INVALID},   {"30001", RCPT_REASON_NETWORK},
    {"30002", RCPT_REASON_SENDER},    {"30003", RCPT_REASON_ABSENT},
    {"30004", RCPT_REASON_BLOCKED},   {"30005", RCPT_REASON_INVALID},
    {"30006", RCPT_REASON_INVALID},   {"30007", RCPT_REASON_SPAM},
    {"30009", RCPT_REASON_NETWORK},   {"30010", RCPT_REASON_CREDIT},
    {"30032", RCPT_REASON_SENDER},    {"30034", RCPT_REASON_SENDER},
    {"30036", RCPT_REASON_EXPIRED},   {"63024", RCPT_REASON_INVALID},
    {"63032", RCPT_REASON_OPTED_OUT}, {"63049", RCPT_REASON_BLOCKED},
};

/* "whatsapp:+1555…" */
static void find_channel(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    static const char *const channels[] = {"whatsapp", "messenger", "rcs"};
    struct rcpt_text to = rcpt_reading_value(reading, "To");
    if (to.size == 0)
        to = rcpt_reading_value(reading, "to");
    struct rcpt_text scheme = rcpt_text_part(to, 0, rcpt_text_find(to, ":"));
    for (size_t index = 0; index < RCPT_COUNT_OF(channels); index++)
        if (scheme.size < to.size && rcpt_text_is(scheme, channels[index]))
            draft->channel = rcpt_text_of(channels[index]);
}

const struct rcpt_gateway rcpt_gateway_twilio = {
    .name = "twilio",
    .channel = "sms",
    .inbound = "{From}{Body,MediaUrl0}",
    .fields = {.id = "MessageSid,SmsSid,messageSid",
               .status = "MessageStatus,SmsStatus,messageStatus,eventName",
               .reason = "ErrorCode,errorCode",
               .at = "RawDlrDoneDate,timestamp",
               .event_id = "@i-twilio-idempotency-token,@ce_id",
               .channel = "ChannelPrefix"},
    .time_format = RCPT_GATEWAY_TIME_SHORT,
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_twilio,
    .item = find_channel,
};

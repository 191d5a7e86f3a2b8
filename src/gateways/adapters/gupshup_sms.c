/* Gupshup Enterprise SMS: GET with one receipt, or POST with up to 20 in the parameter `response`,
 * sometimes as an array in an array. In GET the customer chooses the names; here are the documented
 * ones. Documentation: docs.gupshup.io/docs/real-time-delivery-reports */
#include "../gateways.h"

/* The code here is the cause, which is more precise than the status. */
static const struct rcpt_mapping statuses[] = {
    {"SUCCESS*", NULL, "DELIVERED", NULL},
    {"DELIVERED*", NULL, "DELIVERED", NULL},
    {"*", "UNKNOWN_SUBSCRIBER", "BOUNCED_HARD", NULL},
    {"*", "DND_TIMEOUT", "REJECTED", NULL}, /* never sent: the list could not be asked */
    {"*", "OUTSIDE_WORKING_HOURS", "REJECTED", NULL},
    {"*", "DND*", "BLOCKED", NULL},
    {"*", "BLOCKED*", "BLOCKED", NULL},
    {"*", "EXPIRED*", "EXPIRED", NULL},
    {"FAIL*", NULL, "FAILED", NULL},
    {"UNKNOWN*", NULL, "UNKNOWN", NULL},
    {"SUBMITTED*", NULL, "SENT", NULL},
};

/* By the cause, behind the status. */
static const struct rcpt_reason reasons[] = {
    {"FAIL/ABSENT_SUBSCRIBER", RCPT_REASON_ABSENT},
    {"FAILURE/ABSENT_SUBSCRIBER", RCPT_REASON_ABSENT},
    {"FAILED/ABSENT_SUBSCRIBER", RCPT_REASON_ABSENT},
    {"FAIL/DND_FAIL", RCPT_REASON_OPTED_OUT},
    {"FAILURE/DND_FAIL", RCPT_REASON_OPTED_OUT},
    {"FAILED/DND_FAIL", RCPT_REASON_OPTED_OUT},
};

/* The cause is the reason while the row is looked up, then the code takes its place. */
static void add_cause(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_text cause = rcpt_reading_value(reading, "cause");
    struct rcpt_text code = rcpt_reading_value(reading, "errCode");
    struct rcpt_text word = draft->status;
    if (cause.size > 0 && !rcpt_text_is(cause, "SUCCESS") && !rcpt_text_equal_nocase(cause, word))
        draft->status = RCPT_TEXT_JOIN(reading->arena, word, RCPT_TEXT("/"), cause);
    draft->reason = cause;
    for (size_t index = 0; index < RCPT_COUNT_OF(statuses) && draft->mapped.raw == NULL; index++)
        if (rcpt_mapping_fits(&statuses[index], draft))
            draft->mapped = statuses[index];
    draft->reason = code.size > 0 ? code : cause;
}

const struct rcpt_gateway rcpt_gateway_gupshup_sms = {
    .name = "gupshup_sms",
    .channel = "sms",
    .json_in = "response",
    .items = "/*/*",
    .inbound = "{phoneno,phoneNo,mobile}{content,text,message}",
    .fields = {.id = "externalId,messageId",
               .status = "status,eventType",
               .at = "deliveredTS,eventTs"},
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .item = add_cause,
};

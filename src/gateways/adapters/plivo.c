/* Plivo: a form (or GET) with one receipt, numbered by `Sequence`. Times have no zone.
 * docs.plivo.com/docs/messaging/api/message/message-status-callbacks */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"queued", NULL, "IN_GTW", NULL},
    {"sent", NULL, "SENT", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},
    {"undelivered", "30", "BLOCKED", NULL},  /* spam */
    {"undelivered", "100", "BLOCKED", NULL}, /* prohibited by the carrier */
    {"undelivered", "50", "BOUNCED_HARD", NULL},
    {"undelivered", "70", "BOUNCED_HARD", NULL}, /* unavailable for good */
    {"undelivered", NULL, "FAILED", NULL},
    {"failed", NULL, "REJECTED", NULL},
    {"rejected", NULL, "REJECTED", NULL},
};

static const struct rcpt_reason reasons[] = {
    {"10", RCPT_REASON_CONTENT},  {"20", RCPT_REASON_NETWORK},  {"30", RCPT_REASON_SPAM},
    {"40", RCPT_REASON_SENDER},   {"50", RCPT_REASON_INVALID},  {"60", RCPT_REASON_NETWORK},
    {"70", RCPT_REASON_INVALID},  {"80", RCPT_REASON_ABSENT},   {"90", RCPT_REASON_NETWORK},
    {"100", RCPT_REASON_BLOCKED}, {"110", RCPT_REASON_CONTENT}, {"200", RCPT_REASON_OPTED_OUT},
    {"300", RCPT_REASON_NETWORK}, {"420", RCPT_REASON_EXPIRED}, {"450", RCPT_REASON_SENDER},
    {"900", RCPT_REASON_CREDIT},
};

/* Each callback repeats the times of the stages before it; that of its own stage counts. */
static void choose_time(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    static const struct {
        const char *status, *field;
    } times[] = {{"queued", "QueuedTime"},
                 {"sent", "SentTime"},
                 {"delivered", "DeliveryReportTime"},
                 {"undelivered", "DeliveryReportTime"},
                 {"read", "ReadTime"}};
    for (size_t index = 0; index < RCPT_COUNT_OF(times); index++)
        if (rcpt_text_is_nocase(draft->status, times[index].status))
            draft->at = rcpt_reading_value(reading, times[index].field);
}

const struct rcpt_gateway rcpt_gateway_plivo = {
    .name = "plivo",
    .channel = "sms",
    .fields = {.cost = "TotalAmount",
               .id = "MessageUUID",
               .status = "Status,status",
               .reason = "ErrorCode",
               .event_id = "{MessageUUID}:{Sequence}",
               .channel = "Type"},
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .verify = rcpt_verify_plivo,
    .item = choose_time,
};

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
    .verify = rcpt_verify_plivo,
    .item = choose_time,
};

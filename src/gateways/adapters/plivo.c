/* Plivo: a form (or GET) with one receipt, numbered by `Sequence`. Times have no zone.
 * docs.plivo.com/docs/messaging/api/message/message-status-callbacks */
#include <string.h>

#include "../gateways.h"

#define FAILURE(word)                                                                              \
    {word, "30", "BLOCKED", NULL},      /* spam */                                                 \
        {word, "100", "BLOCKED", NULL}, /* prohibited by the carrier */                            \
        {word, "50", "BOUNCED_HARD", NULL},                                                        \
        {word, "70", "BOUNCED_HARD", NULL}, /* unavailable for good */                             \
    {                                                                                              \
        word, "420", "EXPIRED", NULL                                                               \
    }

static const struct rcpt_mapping statuses[] = {
    {"queued", NULL, "IN_GTW", NULL},
    {"sent", NULL, "SENT", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},
    FAILURE("undelivered"),
    {"undelivered", NULL, "FAILED", NULL},
    FAILURE("failed"),
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

/* Reads the part of a long message that Plivo has split: "2 of 3", and the id of the whole. Other
 * receipts lack these fields, or have zeros or their own id in them. support.plivo.com, "How many
 * characters can I put in a single SMS?" */
static void take_part(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    static const char of[] = " of ";
    struct rcpt_text info = rcpt_reading_value(reading, "PartInfo");
    struct rcpt_text whole = rcpt_reading_value(reading, "ParentMessageUUID");
    size_t at = rcpt_text_find(info, of);
    unsigned part = 0, parts = 0;
    if (at >= info.size || whole.size == 0)
        return;
    struct rcpt_text number = rcpt_text_part(info, 0, at);
    struct rcpt_text total = rcpt_text_part(info, at + strlen(of), info.size);
    if (!rcpt_text_number(number, &part) || !rcpt_text_number(total, &parts) || parts < 2)
        return;
    draft->id = whole;
    draft->part = number;
    draft->parts = total;
}

static void read_item(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    choose_time(reading, draft);
    take_part(reading, draft);
}

const struct rcpt_gateway rcpt_gateway_plivo = {
    .name = "plivo",
    .channel = "sms",
    .inbound = "{From}{Text,Body,Media0}",
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
    .item = read_item,
};

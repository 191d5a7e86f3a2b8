/* Jasmin: a form or GET with one receipt. Level 1 is the SMSC's answer (ESME_…), level 2 the
 * handset's (words of SMPP). Everything but 200 with `ACK/Jasmin` is sent again. Its dates have no
 * zone. docs.jasminsms.com */
#include "../gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"ESME_ROK", NULL, "SENT", NULL},
    {"ESME_R*", NULL, "REJECTED", NULL},
};

/* Answers of the SMSC; `err` of a handset's receipt is each vendor's own. */
static const struct rcpt_reason reasons[] = {
    {"ESME_RINVDSTADR", RCPT_REASON_INVALID}, {"ESME_RINVSRCADR", RCPT_REASON_SENDER},
    {"ESME_RTHROTTLED", RCPT_REASON_NETWORK}, {"ESME_RMSGQFUL", RCPT_REASON_NETWORK},
    {"ESME_RSYSERR", RCPT_REASON_NETWORK},    {"ESME_RINVMSGLEN", RCPT_REASON_CONTENT},
};

const struct rcpt_gateway rcpt_gateway_jasmin = {
    .name = "jasmin",
    .channel = "sms",
    .inbound = "{from}{content,binary}",
    .fields = {.id = "id",
               .status = "message_status",
               .reason = "err",
               .at = "donedate",
               .event_id = "{id}:{level}:{message_status}"},
    .time_format = RCPT_GATEWAY_TIME_SHORT,
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .smpp_words = true,
    .answer_type = "text/plain",
    .answer = "ACK/Jasmin",
};

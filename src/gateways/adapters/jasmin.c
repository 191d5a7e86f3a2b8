/* Jasmin: a form or GET with one receipt. Level 1 is the SMSC's answer (ESME_…), level 2 the
 * handset's (words of SMPP). Everything but 200 with `ACK/Jasmin` is sent again. Its dates have no
 * zone. docs.jasminsms.com */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"ESME_ROK", NULL, "SENT", NULL},
    {"ESME_R*", NULL, "REJECTED", NULL},
};

const struct rcpt_gateway rcpt_gateway_jasmin = {
    .name = "jasmin",
    .channel = "sms",
    .fields = {.id = "id",
               .status = "message_status",
               .reason = "err",
               .at = "donedate",
               .event_id = "{id}:{level}:{message_status}"},
    .time_format = RCPT_INTAKE_TIME_SHORT,
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .smpp_words = true,
    .answer_type = "text/plain",
    .answer = "ACK/Jasmin",
};

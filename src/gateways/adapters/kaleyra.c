/* Kaleyra: GET or POST; the body is a template of the customer's, here with the documented
 * variables. Its times are Indian ones without saying so. A WhatsApp id ends in ":part".
 * developers.kaleyra.io/docs/sms-callback, …/sms-status-and-status-trace-codes */
#include "gateways/gateways.h"

static const struct rcpt_mapping statuses[] = {
    {"sent", NULL, "SENT", NULL},
    {"submitted", NULL, "SENT", NULL},
    {"queued", NULL, "IN_GTW", NULL},
    {"accepted", NULL, "IN_GTW", NULL},
    {"delivered", NULL, "DELIVERED", NULL},
    {"read", NULL, "OPENED", NULL},
    {"sent - no dlr", NULL, "UNKNOWN", NULL}, /* the operator's receipt never came */
    {"not-sent", "OPT-OUT", "REJECTED", "UNSUBSCRIBED"},
    {"not-sent", "OUTPUT-REJ", "REJECTED", "UNSUBSCRIBED"}, /* has left the group */
    {"not-sent", NULL, "REJECTED", NULL},
    {"*", "CON-DND", "BLOCKED", NULL}, /* the recipient wants no messages */
    {"*", "BLACKLIST", "BLOCKED", NULL},
    {"*", "REJECTED", "BLOCKED", NULL}, /* on a list of the operator's */
    {"*", "SERIES-BLK", "BLOCKED", NULL},
    {"*", "INV-NUMBER", "BOUNCED_HARD", NULL},
    {"*", "INVALID-SUB", "BOUNCED_HARD", NULL},
    {"*", "EXPIRED", "EXPIRED", NULL},
    {"*", "SNDRID-NOT-ALLOTED", "REJECTED", NULL},
    {"*", "NO-DLR-OPTR", "UNKNOWN", NULL},
    {"failed", NULL, "FAILED", NULL},
    {"undelivered", NULL, "FAILED", NULL},
    {"0", NULL, "FAILED", NULL},
};

const struct rcpt_gateway rcpt_gateway_kaleyra = {
    .name = "kaleyra",
    .inbound = "{from,mobile,sender}{message,text,body}",
    .fields = {.id = "id,kid",
               .status = "status",
               .reason = "status_trace,description",
               .at = "timestamp"},
    .time_zone = "+05:30",
    .statuses = statuses,
    .status_count = RCPT_COUNT_OF(statuses),
    .smpp_words = true,
};

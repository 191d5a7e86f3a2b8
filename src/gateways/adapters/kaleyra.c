/* Kaleyra: GET or POST; the body is a template of the customer's, here with the documented
 * variables. Its times are Indian ones without saying so. A WhatsApp id ends in ":part".
 * developers.kaleyra.io/docs/sms-callback, …/sms-status-and-status-trace-codes */
#include "../gateways.h"

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
    {"not-sent", "INV-NUMBER", "BOUNCED_HARD", NULL},
    {"not-sent", "INVALID-SUB", "BOUNCED_HARD", NULL},
    {"not-sent", "EXPIRED", "EXPIRED", NULL},
    {"not-sent", NULL, "REJECTED", NULL}, /* by Kaleyra, whatever list it is on */
    {"*", "CON-DND", "BLOCKED", NULL},    /* the recipient wants no messages */
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

static const struct rcpt_reason reasons[] = {
    {"OPT-OUT", RCPT_REASON_OPTED_OUT},
    {"OUTPUT-REJ", RCPT_REASON_OPTED_OUT},
    {"CON-DND", RCPT_REASON_OPTED_OUT},
    {"BLACKLIST", RCPT_REASON_BLOCKED},
    {"DND-NUMB", RCPT_REASON_OPTED_OUT},
    {"NOT-OPTIN", RCPT_REASON_OPTED_OUT},
    {"SPAM", RCPT_REASON_SPAM},
    {"NO-CREDITS", RCPT_REASON_CREDIT},
    {"ABSENT-SUB", RCPT_REASON_ABSENT},
    {"MOB-OFF", RCPT_REASON_ABSENT},
    {"HANDSET-BUSY", RCPT_REASON_ABSENT},
    {"MEM-EXEC", RCPT_REASON_ABSENT},
    {"NET-ERR", RCPT_REASON_NETWORK},
    {"SERVER-ERR", RCPT_REASON_NETWORK},
    {"TEMPLATE-*", RCPT_REASON_CONTENT},
    {"SENDER-ID-*", RCPT_REASON_SENDER},
    {"KLR-INV-NUMBER", RCPT_REASON_INVALID},
    {"INV-NUMBER", RCPT_REASON_INVALID},
    {"INVALID-SUB", RCPT_REASON_INVALID},
    {"SNDRID-NOT-ALLOTED", RCPT_REASON_SENDER},
    {"EXPIRED", RCPT_REASON_EXPIRED},
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
    .reasons = reasons,
    .reason_count = RCPT_COUNT_OF(reasons),
    .smpp_words = true,
};

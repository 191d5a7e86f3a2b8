/* The table of schemes: each one's verifier, and the parts that its signature covers. Read by
 * account.c and by the docs' test. */
#include "account.h"
#include "crypto.h"
#include "verify_support.h"

#define WHOLE "everything: the sender is known, not the request"
#define ANY   "anything, as long as the secret is good"
#define SAME  "the same receipt again, forever"
#define AGE   "the same receipt again, until `max_age`"
#define ONCE  "nothing while its number is remembered, then the same receipt until `max_age`"
#define BODY  RCPT_COVERS_BODY
#define QUERY RCPT_COVERS_QUERY
#define PATH  RCPT_COVERS_PATH

const struct rcpt_scheme rcpt_schemes[] = {
    {"shared", rcpt_verify_shared, RCPT_COVERS_REQUEST, {NULL}, false, WHOLE, ANY},
    {"basic", rcpt_verify_basic, RCPT_COVERS_REQUEST, {NULL}, false, WHOLE, ANY},
    {"bearer", rcpt_verify_bearer, RCPT_COVERS_REQUEST, {NULL}, false, WHOLE, ANY},
    {"header", rcpt_verify_header, RCPT_COVERS_REQUEST, {NULL}, false, WHOLE, ANY},
    {"query", rcpt_verify_query, RCPT_COVERS_REQUEST, {NULL}, false, WHOLE, ANY},
    {"address",
     rcpt_verify_address,
     RCPT_COVERS_REQUEST,
     {NULL},
     false,
     WHOLE,
     "nothing from another address"},
    {"hmac-hex", rcpt_verify_hmac_hex, BODY, {NULL}, false, "the body", SAME},
    {"hmac-base64", rcpt_verify_hmac_base64, BODY, {NULL}, false, "the body", SAME},
    {"standard-webhooks",
     rcpt_verify_standard,
     BODY,
     {"webhook-id", "svix-id"},
     false,
     "the body, and the headers id and timestamp",
     ONCE},
    {"telnyx",
     rcpt_verify_telnyx,
     BODY,
     {"telnyx-timestamp"},
     false,
     "the body, and the header `telnyx-timestamp`",
     AGE},
    {"url-hmac",
     rcpt_verify_url_hmac,
     RCPT_COVERS_REQUEST | RCPT_COVERS_ID,
     {NULL},
     false,
     "the message id, `campaign_id` and `exp`",
     "any receipt of this one message, until `exp`"},
    {"Twilio",
     rcpt_verify_twilio,
     BODY | QUERY | PATH,
     {NULL},
     true,
     "the URL, and the form's fields or the body (`bodySHA256`)",
     SAME},
    {"Vonage SMS",
     rcpt_verify_vonage_sms,
     BODY | QUERY,
     {NULL},
     false,
     "the parameters of the query, of the form or of the JSON, where `sig` stands",
     ONCE},
    {"Vonage Messages", rcpt_verify_vonage_messages, BODY, {NULL}, false, "the body", ONCE},
    {"MessageBird",
     rcpt_verify_messagebird,
     BODY | QUERY | PATH,
     {NULL},
     true,
     "the URL and the body",
     ONCE},
    {"Plivo V3",
     rcpt_verify_plivo,
     RCPT_COVERS_FORM | QUERY | PATH,
     {NULL},
     true,
     "the URL and the form's fields",
     "nothing while its number is remembered, then the same receipt forever"},
    {"SNS",
     rcpt_verify_sns,
     BODY,
     {"x-amz-sns-message-id"},
     false,
     "the members of the envelope that Amazon signs",
     AGE},
    {"SendGrid",
     rcpt_verify_sendgrid,
     BODY,
     {"x-twilio-email-event-webhook-timestamp"},
     false,
     "the body, and the timestamp's header",
     AGE},
    {"Mailgun",
     rcpt_verify_mailgun,
     RCPT_COVERS_REQUEST,
     {NULL},
     false,
     "its own timestamp and token: the sender is known, not the event",
     "nothing while its token is remembered, else **anything** until `max_age`"},
    {"Meta", rcpt_verify_meta, BODY, {NULL}, false, "the body", SAME},
    {"Viber", rcpt_verify_viber, BODY, {NULL}, false, "the body", SAME},
    {"LINE", rcpt_verify_line, BODY, {NULL}, false, "the body", SAME},
};
const size_t rcpt_scheme_count = RCPT_COUNT_OF(rcpt_schemes);

/* Every verifier has a row: a new one without fails here at once. */
const struct rcpt_scheme *rcpt_scheme_of(rcpt_verifier *verify)
{
    const struct rcpt_scheme *found = NULL;
    for (size_t index = 0; index < rcpt_scheme_count; index++)
        if (rcpt_schemes[index].verify == verify)
            found = &rcpt_schemes[index];
    RCPT_ASSERT(found != NULL);
    return found;
}

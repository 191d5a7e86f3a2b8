/* The fields of an entry of intake.accounts and of kafka.topics, the records of those keys in
 * table.c. Fields are checked together when the account is made (gateways/account.c), since
 * templates and statuses must be compiled for it. */
#include "rows.h"

/* A text that gateways/template.c compiles: it says where in a request a value stands. The limit of
 * 500 bytes bounds the compiled form. */
#define TEMPLATE(path, member, ...) TEXT(path, member, NULLABLE, NULL, 1, 500, __VA_ARGS__)

/* The names of choices. libcyaml writes the number beside the name into the member, which has the
 * size of an int for an enum and of a byte for a bool. */
static const cyaml_strval_t verify_modes[] = {
    {"required", RCPT_GATEWAY_VERIFY_REQUIRED},
    {"optional", RCPT_GATEWAY_VERIFY_OPTIONAL},
    {"off", RCPT_GATEWAY_VERIFY_OFF},
};
/* weak.c takes SHARED to QUERY as the methods that send the secret itself, so their enum values
 * must stay neighbours. */
static const cyaml_strval_t auths[] = {
    {"gateway", RCPT_GATEWAY_AUTH_GATEWAY},
    {"shared", RCPT_GATEWAY_AUTH_SHARED},
    {"basic", RCPT_GATEWAY_AUTH_BASIC},
    {"bearer", RCPT_GATEWAY_AUTH_BEARER},
    {"header", RCPT_GATEWAY_AUTH_HEADER},
    {"query", RCPT_GATEWAY_AUTH_QUERY},
    {"hmac-hex", RCPT_GATEWAY_AUTH_HMAC_HEX},
    {"hmac-base64", RCPT_GATEWAY_AUTH_HMAC_BASE64},
    {"standard-webhooks", RCPT_GATEWAY_AUTH_STANDARD},
    {"telnyx", RCPT_GATEWAY_AUTH_TELNYX},
    {"url-hmac", RCPT_GATEWAY_AUTH_URL_HMAC},
    {"address", RCPT_GATEWAY_AUTH_ADDRESS},
};
static const cyaml_strval_t time_formats[] = {
    {"auto", RCPT_GATEWAY_TIME_AUTO},
    {"short", RCPT_GATEWAY_TIME_SHORT},
};
static const cyaml_strval_t digests[] = {
    {"any", RCPT_GATEWAY_DIGEST_ANY},       {"md5hash", RCPT_GATEWAY_DIGEST_MD5HASH},
    {"md5", RCPT_GATEWAY_DIGEST_MD5},       {"sha1", RCPT_GATEWAY_DIGEST_SHA1},
    {"sha256", RCPT_GATEWAY_DIGEST_SHA256}, {"sha512", RCPT_GATEWAY_DIGEST_SHA512},
};

/* The entries of custom.statuses after the check, which has turned the map into a list. */
#define RECORD struct rcpt_gateway_pair
static const struct rcpt_config_row mapping_rows[] = {
    TEXT("name", name, REQUIRED, NULL, 0, 0, NULL),
    TEXT("value", value, REQUIRED, NULL, 0, 0, NULL),
    INTEGER("line", line, REQUIRED, NULL, 0, 0, NULL),
    INTEGER("column", column, REQUIRED, NULL, 0, 0, NULL),
};
static const struct rcpt_config_table mapping_record = RECORD_OF(mapping_rows);
#undef RECORD

/* The form of a gateway's receipts: the same in its requests and in records of a topic. The keys of
 * custom count for `gateway: custom` only: they describe a form for which no adapter is written. */
#define FORMAT_ROWS                                                                                \
    TEMPLATE("message_id", message_id, "template of our message id, where requests carry it"),     \
        TEMPLATE("campaign_id", campaign_id, "template of the campaign's id"),                     \
        LIST(                                                                                      \
            "message_id_form", id_forms, id_forms_count, 0, 8,                                     \
            "changes of each id before its look-up, in this order: `trim`, `lower`, `upper`, "     \
            "`strip_hyphens`, `strip_zeros`, `strip_suffix`, `hex_to_decimal`, `decimal_to_hex`"), \
        TEXT("channel", channel, NULLABLE, NULL, 1, 63,                                            \
             "channel of all receipts, instead of the adapter's"),                                 \
        TEXT("time_zone", time_zone, NULLABLE, NULL, 1, 63,                                        \
             "zone of times without one: an offset such as `+05:30`, or a name such as "           \
             "`Europe/Berlin` for summer time (needs the system's tzdata)"),                       \
        TEMPLATE("custom.id", custom.id, "template of the gateway's message id"),                  \
        TEMPLATE("custom.message_id", custom.message_id, "template of our message id"),            \
        TEMPLATE("custom.status", custom.status, "template of the gateway's word for the status"), \
        MAP("custom.statuses", custom.statuses, custom.statuses_count, 0, 500, mapping_record,     \
            "meaning of each word: `DELIVERED`, `DELIVERED+COMPLAINED` or `ignore`; a final `*` "  \
            "stands for any rest"),                                                                \
        TEMPLATE("custom.json_in", custom.json_in, "parameter that holds the JSON"),               \
        TEMPLATE(                                                                                  \
            "custom.items", custom.items,                                                          \
            "path to the receipts of a batch, `/events/*`; not set: a request is one receipt"),    \
        TEMPLATE("custom.at", custom.at, "template of the event's time"),                          \
        CHOICE("custom.time_format", custom.time_format, 0, "auto", time_formats,                  \
               "`auto`: RFC 3339, also without zone, or seconds to nanoseconds since "             \
               "1970; `short`: YYMMDDhhmm and longer"),                                            \
        TEMPLATE("custom.reason", custom.reason, "template of an error's code"),                   \
        TEMPLATE("custom.event_id", custom.event_id, "template of the event's id"),                \
        TEMPLATE("custom.org_id", custom.org_id,                                                   \
                 "template of the organisation, where receipts of several come together; "         \
                 "without it all are of `org_id`"),                                                \
        TEMPLATE("custom.campaign_id", custom.campaign_id, "template of the campaign's id"),       \
        TEMPLATE("custom.channel", custom.channel, "template of the channel"),                     \
        TEMPLATE("custom.part", custom.part, "template of the part's number, from 1"),             \
        TEMPLATE(                                                                                  \
            "custom.parts", custom.parts,                                                          \
            "template of the number of parts; a message is delivered when all its parts are"),     \
        TEMPLATE("custom.ip", custom.ip,                                                           \
                 "template of the address that opened or clicked, for `machine.networks`"),        \
        TEMPLATE("custom.recipient", custom.recipient,                                             \
                 "template of the person's id, for receipts without a message id that mean all "   \
                 "messages to a person up to a time"),                                             \
        TEMPLATE("custom.until", custom.until, "template of that time"),                           \
        TEMPLATE("custom.client_ref", custom.client_ref, "template of what the sender put in"),    \
        TEMPLATE("custom.link", custom.link, "template of the link that was clicked"),             \
        TEMPLATE("custom.cost", custom.cost, "template of the price, a decimal number"),           \
        TEMPLATE("custom.currency", custom.currency, "template of the price's currency")
/* The order is that of the reference page. Each row is REQUIRED or NULLABLE, or has a default;
 * lists and maps begin empty. */
#define RECORD struct rcpt_gateway_account_config
static const struct rcpt_config_row rows[] = {
    TEXT("name", name, REQUIRED, NULL, 1, 63,
         "name in the gateway's URL, `/dlr/NAME`: letters, digits, `-` and `_`"),
    TEXT("gateway", gateway, REQUIRED, NULL, 1, 63, "an adapter of docs/gateways.md, or `custom`"),
    TEXT("org_id", org_id, NULLABLE, NULL, 1, 255,
         "organisation of the receipts; they change only its messages"),
    TOPIC("topic", topic, NULLABLE, NULL, 1, 249,
          "topic of the receipts, so that no other account's burst delays them; not set: "
          "`intake.topic`; a new one needs a restart"),
    CHOICE("verify", verify, 0, "required", verify_modes,
           "`required`: valid credentials only; `optional`: also none, but no wrong ones; `off`"),
    CHOICE("auth", auth, 0, "gateway", auths,
           "kind of credentials; `gateway`: its own signature, or `shared` where it has none"),
    TEXT("auth_name", auth_name, NULLABLE, NULL, 1, 100, "header or parameter that `auth` reads"),
    LIST("secrets", secrets, secrets_count, SECRET, 20, "keys, all valid at once, for rotation"),
    TEXT("public_url", public_url, NULLABLE, NULL, 8, 2000,
         "URL that the gateway calls, with `/dlr/NAME`; needed where URLs are signed"),
    TEXT("verify_token", verify_token, NULLABLE | SECRET, NULL, 1, 500,
         "`hub.verify_token` of Meta; not set: its challenge is refused"),
    TEXT("topic_arn", topic_arn, NULLABLE, NULL, 1, 300,
         "only topic of Amazon SNS that may send; needed unless `verify: off`"),
    LIST("certificates", certificates, certificates_count, SECRET, 20,
         "certificates of Amazon SNS in PEM; empty: fetched from the message's URL, if that is "
         "Amazon's and in the topic's region"),
    CHOICE("digest", digest, 0, "any", digests,
           "only signature of Vonage SMS that counts, as in Vonage's dashboard; `md5hash` and "
           "`md5` are weak"),
    /* These two weaken the verification, so both are off unless the operator accepts the risk;
     * check-config prints a note for unsigned_ids. */
    BOOLEAN("plivo_v2", plivo_v2, 0, "false",
            "accepts Plivo's V2 signature too, which covers no parameter: a captured one is good "
            "for any receipt"),
    BOOLEAN("unsigned_ids", unsigned_ids, 0, "false",
            "accepts URL and headers where the signature covers only the body: a captured request "
            "can then name any message"),
    LIST("allow", allow, allow_count, 0, 200, "addresses or networks that may send; empty: all"),
    DURATION("max_age", max_age_ms, 0, "48h", 0, 365LL * 24 * 3600 * 1000,
             "how long signatures with a time are valid, and numbers used once are remembered; "
             "longer than the gateway retries; 0: without limit"),
    FORMAT_ROWS,
    INTEGER("custom.answer_code", custom.answer_code, 0, "200", 200, 299,
            "status code once everything is in Kafka"),
    TEXT("custom.answer_type", custom.answer_type, NULLABLE, NULL, 1, 100,
         "content type of the answer"),
    TEXT("custom.answer", custom.answer, NULLABLE, NULL, 1, 1000, "body of the answer"),
};

const struct rcpt_config_table rcpt_config_account_record = RECORD_OF(rows);

/* A topic has the same forms. Kafka lets its producers in, so there is no key for that. */
static const struct rcpt_config_row topic_rows[] = {
    TOPIC("name", name, REQUIRED, NULL, 1, 249, "name of the topic"),
    TEXT("gateway", gateway, 0, RCPT_GATEWAY_NATIVE, 1, 63,
         "form of the records: `native` is ours; an adapter of docs/gateways.md, or `custom`"),
    TEXT("account", account, NULLABLE, NULL, 1, 63,
         "name of the gateway in receipts, figures and aliases; not set: that of the topic"),
    TEXT("org_id", org_id, NULLABLE, NULL, 1, 255,
         "organisation of the receipts; they change only its messages"),
    FORMAT_ROWS,
};

const struct rcpt_config_table rcpt_config_topic_record = RECORD_OF(topic_rows);

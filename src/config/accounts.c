/* The fields of an entry of intake.accounts; table.c names this list as the record of that key.
 * What the fields mean together is checked when the account is made (gateways/account.c), because
 * templates and statuses must be compiled for it. */
#include "rows.h"

#include "receiptd/base/error.h"

#define FIELD(member)       MEMBER(struct rcpt_intake_account_config, member)
#define LIST(member, count) MEMBER_LIST(struct rcpt_intake_account_config, member, count)
/* A text that gateways/template.c compiles: it says where in a request a value stands. The limit of
 * 500 bytes bounds the compiled form. */
#define TEMPLATE(path, member, meaning)                                                            \
    {                                                                                              \
        (path), RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(member), .min = 1, .max = 500,       \
                                                                       .doc = (meaning)            \
    }

/* The names of choices. libcyaml writes the number beside the name into the member, which has the
 * size of an int for an enum and of a byte for a bool. */
static const cyaml_strval_t verify_modes[] = {
    {"required", RCPT_INTAKE_VERIFY_REQUIRED},
    {"optional", RCPT_INTAKE_VERIFY_OPTIONAL},
    {"off", RCPT_INTAKE_VERIFY_OFF},
};
/* weak.c takes SHARED to QUERY as the methods that send the secret itself, so their enum values
 * must stay neighbours. */
static const cyaml_strval_t auths[] = {
    {"gateway", RCPT_INTAKE_AUTH_GATEWAY},
    {"shared", RCPT_INTAKE_AUTH_SHARED},
    {"basic", RCPT_INTAKE_AUTH_BASIC},
    {"bearer", RCPT_INTAKE_AUTH_BEARER},
    {"header", RCPT_INTAKE_AUTH_HEADER},
    {"query", RCPT_INTAKE_AUTH_QUERY},
    {"hmac-hex", RCPT_INTAKE_AUTH_HMAC_HEX},
    {"hmac-base64", RCPT_INTAKE_AUTH_HMAC_BASE64},
    {"standard-webhooks", RCPT_INTAKE_AUTH_STANDARD},
    {"telnyx", RCPT_INTAKE_AUTH_TELNYX},
    {"url-hmac", RCPT_INTAKE_AUTH_URL_HMAC},
    {"address", RCPT_INTAKE_AUTH_ADDRESS},
};
static const cyaml_strval_t time_formats[] = {
    {"auto", RCPT_INTAKE_TIME_AUTO},
    {"short", RCPT_INTAKE_TIME_SHORT},
};
static const cyaml_strval_t digests[] = {
    {"any", RCPT_INTAKE_DIGEST_ANY},       {"md5hash", RCPT_INTAKE_DIGEST_MD5HASH},
    {"md5", RCPT_INTAKE_DIGEST_MD5},       {"sha1", RCPT_INTAKE_DIGEST_SHA1},
    {"sha256", RCPT_INTAKE_DIGEST_SHA256}, {"sha512", RCPT_INTAKE_DIGEST_SHA512},
};

/* The entries of custom.statuses after the check, which has turned the map into a list. */
#define PAIR(member)                                                                               \
    .offset = offsetof(struct rcpt_intake_pair, member),                                           \
    .size = sizeof(((struct rcpt_intake_pair *)NULL)->member)
static const struct rcpt_config_row mapping_rows[] = {
    {"name", RCPT_CONFIG_TEXT, RCPT_CONFIG_REQUIRED, PAIR(name)},
    {"value", RCPT_CONFIG_TEXT, RCPT_CONFIG_REQUIRED, PAIR(value)},
    {"line", RCPT_CONFIG_INTEGER, RCPT_CONFIG_REQUIRED, PAIR(line)},
    {"column", RCPT_CONFIG_INTEGER, RCPT_CONFIG_REQUIRED, PAIR(column)},
};
#undef PAIR
static const struct rcpt_config_table mapping_record = {mapping_rows, RCPT_COUNT_OF(mapping_rows),
                                                        sizeof(struct rcpt_intake_pair)};

/* The order is that of the reference page. Each row is REQUIRED or NULLABLE, or has a default;
 * lists and maps begin empty. */
static const struct rcpt_config_row rows[] = {
    {"name", RCPT_CONFIG_TEXT, RCPT_CONFIG_REQUIRED, FIELD(name), .min = 1, .max = 63,
     .doc = "the gateway calls `/dlr/NAME`; letters, digits, `-` and `_`"},
    {"gateway", RCPT_CONFIG_TEXT, RCPT_CONFIG_REQUIRED, FIELD(gateway), .min = 1, .max = 63,
     .doc = "an adapter (docs/gateways.md lists them) or `custom`"},
    {"org_id", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(org_id), .min = 1, .max = 255,
     .doc = "organisation whose receipts come here: they change messages of it only"},
    {"verify", RCPT_CONFIG_CHOICE, 0, FIELD(verify), .initial = "required", CHOICES(verify_modes),
     .doc = "`required`: only with valid credentials; `optional`: also without any, but not with "
            "wrong ones; `off`"},
    {"auth", RCPT_CONFIG_CHOICE, 0, FIELD(auth), .initial = "gateway", CHOICES(auths),
     .doc = "which credentials; `gateway`: its own signature, or `shared` where it has none"},
    {"auth_name", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(auth_name), .min = 1, .max = 100,
     .doc = "header or parameter that `auth` reads"},
    {"secrets", RCPT_CONFIG_LIST, RCPT_CONFIG_SECRET, LIST(secrets, secrets_count), .initial = "[]",
     .max = 20, .doc = "keys, all valid at once, so that they can be rotated"},
    {"public_url", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(public_url), .min = 8, .max = 2000,
     .doc = "URL that the gateway calls, up to and with `/dlr/NAME`; needed where URLs are signed"},
    {"verify_token", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE | RCPT_CONFIG_SECRET,
     FIELD(verify_token), .min = 1, .max = 500,
     .doc = "`hub.verify_token` of Meta; not set: its challenge is refused"},
    {"topic_arn", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(topic_arn), .min = 1, .max = 300,
     .doc = "the only topic of Amazon SNS that may send; needed unless `verify: off`"},
    {"certificates", RCPT_CONFIG_LIST, RCPT_CONFIG_SECRET, LIST(certificates, certificates_count),
     .initial = "[]", .max = 20,
     .doc = "certificates of Amazon SNS in PEM; empty: fetched from where the message says, when "
            "that is Amazon's and in the topic's region"},
    {"digest", RCPT_CONFIG_CHOICE, 0, FIELD(digest), .initial = "any", CHOICES(digests),
     .doc = "the one signature of Vonage SMS that counts, as Vonage's dashboard has it; `md5hash` "
            "and `md5` are weak"},
    /* These two weaken the verification, so both are off unless the operator accepts the risk;
     * check-config prints a note for unsigned_ids. */
    {"plivo_v2", RCPT_CONFIG_CHOICE, 0, FIELD(plivo_v2), .initial = "false", CHOICES(booleans),
     .doc = "also Plivo's V2 signature, which covers none of the parameters: a captured one is "
            "good for any receipt"},
    {"unsigned_ids", RCPT_CONFIG_CHOICE, 0, FIELD(unsigned_ids), .initial = "false",
     CHOICES(booleans),
     .doc = "URL and headers count also where the signature covers the body alone: a captured "
            "request can then name any message"},
    {"allow", RCPT_CONFIG_LIST, 0, LIST(allow, allow_count), .initial = "[]", .max = 200,
     .doc = "addresses or networks that may send; empty: all"},
    {"max_age", RCPT_CONFIG_DURATION, 0, FIELD(max_age_ms), .initial = "48h", .min = 0,
     .max = 365LL * 24 * 3600 * 1000,
     .doc = "signatures that carry a time are good for so long, and numbers used once are "
            "remembered; longer than the gateway retries; 0: without limit"},
    TEMPLATE("message_id", message_id, "template of our own message id, where requests carry it"),
    TEMPLATE("campaign_id", campaign_id, "template of the campaign's id"),
    {"message_id_form", RCPT_CONFIG_LIST, 0, LIST(id_forms, id_forms_count), .initial = "[]",
     .max = 8,
     .doc = "what is made of each id before it is looked up, in this order: `trim`, `lower`, "
            "`upper`, `strip_hyphens`, `strip_zeros`, `strip_suffix`, `hex_to_decimal`, "
            "`decimal_to_hex`"},
    {"channel", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(channel), .min = 1, .max = 63,
     .doc = "channel of all receipts, instead of the adapter's"},
    {"time_zone", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(time_zone), .min = 1, .max = 63,
     .doc = "zone of times that come without one: an offset such as `+05:30`, or a name such as "
            "`Europe/Berlin` where summer time changes it (needs the system's tzdata)"},
    /* The keys of custom count for `gateway: custom` only: they describe a format for which no
     * adapter is written. */
    TEMPLATE("custom.id", custom.id, "template of the gateway's message id"),
    TEMPLATE("custom.message_id", custom.message_id, "template of our message id"),
    TEMPLATE("custom.status", custom.status, "template of the gateway's word for the status"),
    {"custom.statuses", RCPT_CONFIG_MAP, 0, LIST(custom.statuses, custom.statuses_count),
     .initial = "{}", .max = 500, .record = &mapping_record,
     .doc = "what each word means: `DELIVERED`, `DELIVERED+COMPLAINED` or `ignore`; a `*` at the "
            "end of a word stands for anything"},
    TEMPLATE("custom.json_in", custom.json_in, "parameter that holds the JSON"),
    TEMPLATE("custom.items", custom.items,
             "path to the receipts of a batch, `/events/*`; not set: a request is one receipt"),
    TEMPLATE("custom.at", custom.at, "template of the event's time"),
    {"custom.time_format", RCPT_CONFIG_CHOICE, 0, FIELD(custom.time_format), .initial = "auto",
     CHOICES(time_formats),
     .doc = "`auto`: RFC 3339, the same without zone, seconds or milliseconds since 1970; `short`: "
            "YYMMDDhhmm and longer"},
    TEMPLATE("custom.reason", custom.reason, "template of an error's code"),
    TEMPLATE("custom.event_id", custom.event_id, "template of the event's id"),
    TEMPLATE("custom.campaign_id", custom.campaign_id, "template of the campaign's id"),
    TEMPLATE("custom.channel", custom.channel, "template of the channel"),
    TEMPLATE("custom.part", custom.part, "template of the part's number, from 1"),
    TEMPLATE(
        "custom.parts", custom.parts,
        "template of the number of parts: with it, a message is delivered when all its parts are"),
    TEMPLATE("custom.ip", custom.ip,
             "template of the address that opened or clicked, for `machine.networks`"),
    TEMPLATE(
        "custom.recipient", custom.recipient,
        "template of the person's id, for receipts without a message id that mean all messages "
        "to a person up to a time"),
    TEMPLATE("custom.until", custom.until, "template of that time"),
    TEMPLATE("custom.client_ref", custom.client_ref, "template of what the sender put in"),
    {"custom.answer_code", RCPT_CONFIG_INTEGER, 0, FIELD(custom.answer_code), .initial = "200",
     .min = 200, .max = 299, .doc = "answer once everything is in Kafka"},
    {"custom.answer_type", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(custom.answer_type),
     .min = 1, .max = 100, .doc = "content type of the answer"},
    {"custom.answer", RCPT_CONFIG_TEXT, RCPT_CONFIG_NULLABLE, FIELD(custom.answer), .min = 1,
     .max = 1000, .doc = "body of the answer"},
};
_Static_assert(RCPT_COUNT_OF(rows) <= RCPT_CONFIG_MAX_ROWS, "arrays with one entry per row");

const struct rcpt_config_table rcpt_config_account_record = {
    rows, RCPT_COUNT_OF(rows), sizeof(struct rcpt_intake_account_config)};

/* The pure half of the intake: one HTTP request as plain data in, receipts in our words out.
 *
 * An account is one gateway's configured endpoint. rcpt_gateway_adapt verifies a request, reads it
 * with the gateway's adapter and returns the answer. It opens no socket and no file and knows no
 * clock: the time of receipt comes with the request. The result asks the caller for everything that
 * needs the outside: the certificate of an SNS message, keys that were seen before, the alias
 * table, Kafka. An account is immutable, so any number of threads may use it, each with an arena of
 * its own. docs/gateways.md describes the requests of each gateway, and how an adapter is written.
 */
#ifndef RECEIPTD_GATEWAYS_ADAPTER_H
#define RECEIPTD_GATEWAYS_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receiptd/base/arena.h"
#include "receiptd/base/error.h"
#include "receiptd/base/network_set.h"
#include "receiptd/base/text.h"
#include "receiptd/core/ladder.h"

/* ---- accounts ---- */

enum rcpt_gateway_verify {
    RCPT_GATEWAY_VERIFY_REQUIRED, /* a request without valid credentials is refused */
    RCPT_GATEWAY_VERIFY_OPTIONAL, /* … without any is taken, with wrong ones refused */
    RCPT_GATEWAY_VERIFY_OFF,
};

enum rcpt_gateway_auth {
    RCPT_GATEWAY_AUTH_GATEWAY, /* what this gateway does; one that signs nothing: SHARED */
    RCPT_GATEWAY_AUTH_SHARED,  /* BASIC, BEARER, ?token= or the last segment of the path */
    RCPT_GATEWAY_AUTH_BASIC,   /* the secret is user:password, or the password alone */
    RCPT_GATEWAY_AUTH_BEARER,
    RCPT_GATEWAY_AUTH_HEADER,      /* the header auth_name is the secret */
    RCPT_GATEWAY_AUTH_QUERY,       /* the parameter auth_name is the secret */
    RCPT_GATEWAY_AUTH_HMAC_HEX,    /* header auth_name: hex HMAC-SHA256 of the body … */
    RCPT_GATEWAY_AUTH_HMAC_BASE64, /* … or in base64 */
    RCPT_GATEWAY_AUTH_STANDARD,    /* Standard Webhooks and Svix */
    RCPT_GATEWAY_AUTH_TELNYX,      /* Ed25519; the secret is the public key */
    RCPT_GATEWAY_AUTH_URL_HMAC,    /* ?sig= signs the parameter auth_name: the message id */
    RCPT_GATEWAY_AUTH_ADDRESS,     /* `allow` alone */
};

enum rcpt_gateway_time {
    RCPT_GATEWAY_TIME_AUTO,  /* RFC 3339, the same without zone, or epoch in s or ms */
    RCPT_GATEWAY_TIME_SHORT, /* YYMMDDhhmm, YYMMDDhhmmss, YYYYMMDDhhmm or YYYYMMDDhhmmss */
};

/* The digest of Vonage's SMS signatures, which is chosen in Vonage's dashboard. */
enum rcpt_gateway_digest {
    RCPT_GATEWAY_DIGEST_ANY,
    RCPT_GATEWAY_DIGEST_MD5HASH, /* of parameters and secret; the others are HMACs */
    RCPT_GATEWAY_DIGEST_MD5,
    RCPT_GATEWAY_DIGEST_SHA1,
    RCPT_GATEWAY_DIGEST_SHA256,
    RCPT_GATEWAY_DIGEST_SHA512,
};

/* A pair of the map `custom.statuses`: the gateway's word and its meaning. */
struct rcpt_gateway_pair {
    char *name;
    char *value;
    unsigned line, column; /* in the file, for errors */
};

/* `gateway: custom`: the places of values in a request. The texts are templates, see
 * docs/gateways.md: "/a/b" (JSON), "key" (form, query or JSON member), "?key" (query), "@name"
 * (header). Several of them may stand in braces with text between. NULL: not given. */
struct rcpt_gateway_custom {
    char *json_in; /* form or query parameter that holds the JSON */
    char *items;   /* path of what is one receipt each; NULL: the request is one */
    char *id;
    char *message_id;
    char *status;
    struct rcpt_gateway_pair *statuses;
    unsigned statuses_count;
    char *at;
    enum rcpt_gateway_time time_format;
    char *reason, *event_id, *org_id, *campaign_id, *channel, *part, *parts, *client_ref, *ip;
    char *recipient, *until; /* of a receipt without an id */
    char *link, *cost, *currency;
    unsigned answer_code;
    char *answer_type, *answer;
};

#define RCPT_GATEWAY_NATIVE "native" /* of a topic whose records are in our own form */

/* An entry of intake.accounts or kafka.topics, as the configuration holds it. Keys about requests
 * are not among those of a topic. */
struct rcpt_gateway_account_config {
    char *name;    /* /dlr/NAME, or the topic */
    char *gateway; /* an adapter's name, "custom", or RCPT_GATEWAY_NATIVE for a topic */
    char *account; /* of a topic: its name in receipts; NULL: that of the topic */
    char *topic;   /* of the intake's receipts; NULL: intake.topic */
    char *org_id;
    enum rcpt_gateway_verify verify;
    enum rcpt_gateway_auth auth;
    char *auth_name;
    char **secrets; /* all are valid at once, so that they can be rotated */
    unsigned secrets_count;
    char *public_url;    /* what the gateway calls, up to and with /dlr/NAME */
    char *verify_token;  /* hub.verify_token of Meta; NULL: its challenge is refused */
    char *topic_arn;     /* SNS: only this topic; NULL: any, with verify: off only */
    char **certificates; /* SNS: in PEM, instead of those that messages name */
    unsigned certificates_count;
    enum rcpt_gateway_digest digest; /* Vonage SMS */
    bool plivo_v2;                   /* also Plivo's V2, which covers no parameter */
    bool unsigned_ids;               /* URL and headers count, though no signature covers them */
    char **allow;                    /* addresses or networks (CIDR) that may send; none: all */
    unsigned allow_count;
    int64_t max_age_ms; /* signatures that carry a time: older ones are stale; 0: any age */
    char *message_id, *campaign_id; /* templates: our ids where the request carries them */
    char **id_forms;                /* message_id_form: what is made of each id, in this order */
    unsigned id_forms_count;
    char *channel;   /* instead of the adapter's */
    char *time_zone; /* "+05:30" or "Europe/Berlin": zone of times that carry none */
    struct rcpt_gateway_custom custom;
    bool ranges;   /* inbox.columns.recipient is set; no key of the account */
    bool is_topic; /* an entry of kafka.topics; no key either */
};

struct rcpt_gateway_account;

/* Checks the entry and copies its values. Errors are FATAL with EX_CONFIG, and name the account,
 * the key and the remedy; a gateway's name comes with the nearest known one. The ladder is borrowed
 * for as long as the account lives: every status in a result is in it. */
RCPT_MUST_CHECK struct rcpt_gateway_account *rcpt_gateway_account_new(
    const struct rcpt_gateway_account_config *config, const struct rcpt_ladder *ladder,
    struct rcpt_error *error);
void rcpt_gateway_account_free(struct rcpt_gateway_account *account);
const char *rcpt_gateway_account_name(const struct rcpt_gateway_account *account);
const char *rcpt_gateway_account_gateway(const struct rcpt_gateway_account *account);

/* Names of the built-in adapters, sorted; "custom" is not among them. */
const char *const *rcpt_gateway_list(size_t *count);

/* ---- a request ---- */

struct rcpt_gateway_header {
    struct rcpt_text name; /* any case */
    struct rcpt_text value;
};

struct rcpt_gateway_request {
    struct rcpt_text method; /* "POST" */
    struct rcpt_text tail;   /* what follows /dlr/NAME in the path, as sent: "", "/x/y" */
    struct rcpt_text query;  /* behind the ?, as sent; at == NULL: there was none */
    const struct rcpt_gateway_header *headers;
    size_t header_count;
    struct rcpt_text body;   /* as signed: no longer chunked or zipped */
    bool is_item;            /* the body is an item alone, or an array of items */
    struct rcpt_text source; /* address of the sender as text, without port */
    int64_t received_us;     /* since 1970 UTC */
    /* PEM of the certificate that a gateway names by URL, if the caller has it by now; terminated.
     * NULL function or result: the verdict becomes NEEDS_CERTIFICATE. */
    const char *(*find_certificate)(void *context, const char *url);
    void *context;
    /* Opens and clicks from these networks count as those of machines, as if the gateway had marked
     * them. NULL: none. */
    const struct rcpt_network_set *scanners;
};

/* ---- what comes out ---- */

enum rcpt_gateway_verdict {
    RCPT_GATEWAY_VERIFIED,
    RCPT_GATEWAY_UNVERIFIED,        /* and that is allowed: off, optional, or an empty probe */
    RCPT_GATEWAY_MISSING,           /* no credentials: refuse */
    RCPT_GATEWAY_BAD,               /* wrong ones: refuse */
    RCPT_GATEWAY_STALE,             /* right, but older than max_age: refuse */
    RCPT_GATEWAY_NEEDS_CERTIFICATE, /* fetch the provider's `certificate_url`, adapt again */
    RCPT_GATEWAY_VERDICT__COUNT,
};

const char *rcpt_gateway_verdict_name(
    enum rcpt_gateway_verdict verdict); /* "verified", "missing" … */

#define RCPT_GATEWAY_MAX_FLAGS 4

struct rcpt_gateway_event {
    /* Our id, if the request carries it. If it is empty, look gateway_message_id up in the aliases
     * of this account; without an alias, use it as message id. */
    struct rcpt_text message_id;
    struct rcpt_text gateway_message_id; /* may be empty when message_id is there */
    /* If both ids are empty, the event is a range: all messages to this person up to this time.
     * Otherwise both are empty. */
    struct rcpt_text recipient;
    int64_t until_us;
    struct rcpt_text gateway_status; /* as sent */
    struct rcpt_text status;         /* name in the ladder */
    bool has_at;
    int64_t at_us;
    struct rcpt_text gateway_at; /* 2025-10-18T12:10:29, when the zone is unknown */
    struct rcpt_text org_id;     /* that the item names; empty: that of the account */
    struct rcpt_text campaign_id, channel, reason, event_id, client_ref;
    const char *reason_class;                       /* of a failure: reason.h; NULL: it is none */
    struct rcpt_text link, cost, currency;          /* what was clicked; price as sent */
    struct rcpt_text flags[RCPT_GATEWAY_MAX_FLAGS]; /* names in the ladder */
    unsigned flag_count;
    unsigned part, parts; /* which, from 1, of how many; 0: unknown */
    uint32_t order;       /* its place among the events and drops of the request, from 0 */
};

enum rcpt_gateway_drop_kind {
    RCPT_GATEWAY_IGNORED,  /* no receipt: a ping, an inbound message, a status of no interest */
    RCPT_GATEWAY_UNMAPPED, /* a status that no table knows: count it, keep a sample of `status` */
    RCPT_GATEWAY_REJECTED, /* cannot be understood or attributed: dead letter with `reason` */
    RCPT_GATEWAY_UNKNOWN_FORM, /* may be a receipt, and nothing of one was found: as above */
    RCPT_GATEWAY_DROP__COUNT,
};

struct rcpt_gateway_drop {
    enum rcpt_gateway_drop_kind kind;
    const char *reason;      /* static: "invalid_json", "missing_id", "unknown_status", … */
    struct rcpt_text status; /* the gateway's word, where there is one */
    struct rcpt_text raw;    /* the bytes; may hold personal data */
    struct rcpt_text id;     /* of the message, as an event would have it; may be empty */
    uint32_t order;          /* as of events */
};

struct rcpt_gateway_answer {
    unsigned code;
    const char *content_type;     /* NULL: no body */
    struct rcpt_text body;        /* in the arena, the account or static */
    const char *www_authenticate; /* NULL, or the value of that header */
};

struct rcpt_gateway_result {
    enum rcpt_gateway_verdict verdict;
    /* static, for logs: "no header X-Twilio-Signature"; never a value */
    const char *verdict_reason;
    /* The caller remembers this key for max_age, per account, once Kafka has acknowledged
     * everything. A request whose key is remembered is a copy: send `answer`, and take no event.
     * Empty: no key. */
    struct rcpt_text replay_key;
    const char *certificate_url; /* for NEEDS_CERTIFICATE */
    const char *confirm_url;     /* GET this once (SNS subscription); NULL: nothing to confirm */

    const struct rcpt_gateway_event *events;
    size_t event_count;
    const struct rcpt_gateway_drop *drops;
    size_t drop_count;

    /* The answer to send once Kafka has acknowledged all events and dead letters; for refused
     * requests at once. If Kafka does not acknowledge, the caller answers 503 instead. */
    struct rcpt_gateway_answer answer;
};

/* Never fails: faults are in the result, which lives in the arena and points into the request.
 * Refused requests have no events and no drops. */
void rcpt_gateway_adapt(const struct rcpt_gateway_account *account,
                        const struct rcpt_gateway_request *request, struct rcpt_arena *arena,
                        struct rcpt_gateway_result *result);

/* The event as one JSON object, the form in which it goes to the topic. `message_id` is the id that
 * routing has found. Memory from the arena. */
struct rcpt_text rcpt_gateway_event_json(const struct rcpt_gateway_account *account,
                                         const struct rcpt_gateway_event *event,
                                         struct rcpt_text message_id, struct rcpt_arena *arena);

#endif

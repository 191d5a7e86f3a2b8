/* Amazon SNS: RSA over a canonical text, with a certificate that the message names. A sender that
 * may choose the certificate could sign anything, so its URL must be that of Amazon's certificates
 * in the topic's region. Amazon signs some members of the envelope; other members are not read.
 *
 * rcpt_verify_sns() sets the verdict: with pinned certificates at once, else with the one that
 * src/intake has fetched (NEEDS_CERTIFICATE until then). rcpt_sns_open() then opens the envelope
 * for the adapters behind it. */
#include "account.h"
#include "crypto.h"
#include "receiptd/core/timestamp.h"
#include "sns.h"
#include "verify_support.h"

/* Letters, digits and dashes: nothing that could end the host's name early. */
static bool is_region(struct rcpt_text text)
{
    for (size_t index = 0; index < text.size; index++) {
        char byte = text.at[index];
        if ((byte < 'a' || byte > 'z') && (byte < '0' || byte > '9') && byte != '-')
            return false;
    }
    return text.size > 0;
}

struct rcpt_text rcpt_sns_url_region(struct rcpt_text url, struct rcpt_text *path)
{
    static const char *const ends[] = {".amazonaws.com", ".amazonaws.com.cn"};
    struct rcpt_text none = {NULL, 0};
    if (url.at == NULL || !rcpt_text_begins(url, "https://sns."))
        return none;
    struct rcpt_text rest = rcpt_text_part(url, strlen("https://sns."), url.size);
    struct rcpt_text host = rcpt_text_part(rest, 0, rcpt_text_find(rest, "/"));
    *path = rcpt_text_part(rest, host.size, rest.size);
    if (host.size == rest.size || memchr(url.at, '\0', url.size) != NULL)
        return none;
    for (size_t index = 0; index < RCPT_COUNT_OF(ends); index++) {
        size_t size = strlen(ends[index]);
        struct rcpt_text region = rcpt_text_part(host, 0, host.size > size ? host.size - size : 0);
        if (is_region(region) && rcpt_text_is(rcpt_text_part(host, region.size, size), ends[index]))
            return region;
    }
    return none;
}

/* arn:aws…:sns:REGION:ACCOUNT:TOPIC. */
struct rcpt_text rcpt_sns_region(const char *arn)
{
    struct rcpt_text rest = rcpt_text_of(arn), none = {NULL, 0};
    if (!rcpt_text_begins(rest, "arn:aws"))
        return none;
    size_t partition = rcpt_text_find(rest, ":sns:");
    rest = rcpt_text_part(rest, partition + strlen(":sns:"), rest.size);
    struct rcpt_text region = rcpt_text_part(rest, 0, rcpt_text_find(rest, ":"));
    return region.size > 0 && region.size + 1 < rest.size && is_region(region) ? region : none;
}

/* /SimpleNotificationService-0123456789abcdef0123456789abcdef.pem and nothing else: any other path
 * under Amazon's name is no certificate. */
static bool is_certificate_path(struct rcpt_text path)
{
    static const char before[] = "/SimpleNotificationService-", after[] = ".pem";
    enum { DIGITS = 32 };
    if (path.size != strlen(before) + DIGITS + strlen(after) || !rcpt_text_begins(path, before))
        return false;
    struct rcpt_text rest = rcpt_text_part(path, strlen(before), path.size);
    for (size_t index = 0; index < DIGITS; index++)
        if (strchr("0123456789abcdef", rest.at[index]) == NULL)
            return false;
    return rcpt_text_is(rcpt_text_part(rest, DIGITS, rest.size), after);
}

/* Without a topic (verify: off) any region of Amazon's will do. */
static bool is_in_region(const struct rcpt_reading *reading, struct rcpt_text url,
                         struct rcpt_text *path)
{
    struct rcpt_text region = rcpt_sns_url_region(url, path);
    const char *arn = reading->account->topic_arn;
    return region.at != NULL && (arn == NULL || rcpt_text_equal(region, rcpt_sns_region(arn)));
}

/* Only texts count: the canonical form has no other. */
static struct rcpt_text member(const struct rcpt_node *envelope, const char *name)
{
    const struct rcpt_node *node = rcpt_node_get(envelope, name);
    return node != NULL && node->type == RCPT_NODE_STRING ? node->text
                                                          : (struct rcpt_text){NULL, 0};
}

/* ---- the signed members ---- */

enum { MOST_SIGNED = 8 };

/* The envelope of those members alone that its type signs; NULL: one is not there. */
static const struct rcpt_node *signed_members(const struct rcpt_reading *reading,
                                              const struct rcpt_node *envelope)
{
    static const char *const notification[] = {"Message",   "MessageId", "Subject",
                                               "Timestamp", "TopicArn",  "Type"};
    static const char *const confirmation[] = {"Message", "MessageId", "SubscribeURL", "Timestamp",
                                               "Token",   "TopicArn",  "Type"};
    bool notifies = rcpt_text_is(member(envelope, "Type"), "Notification");
    const char *const *keys = notifies ? notification : confirmation;
    size_t count = notifies ? RCPT_COUNT_OF(notification) : RCPT_COUNT_OF(confirmation);
    struct rcpt_node *all = rcpt_arena_alloc(reading->arena, (MOST_SIGNED + 1) * sizeof(*all));
    struct rcpt_node *next = all + 1;
    const struct rcpt_node **link = &all->first;
    *all = (struct rcpt_node){.type = RCPT_NODE_OBJECT, .raw = reading->raw};
    for (size_t index = 0; index < count; index++) {
        struct rcpt_text value = member(envelope, keys[index]);
        if (value.at == NULL && strcmp(keys[index], "Subject") == 0)
            continue;
        if (value.at == NULL)
            return NULL;
        *next = (struct rcpt_node){.type = RCPT_NODE_STRING,
                                   .key = rcpt_text_of(keys[index]),
                                   .text = value,
                                   .raw = value};
        *link = next;
        link = &next->next;
        next++;
    }
    return all;
}

/* Key\nValue\n of each. */
static struct rcpt_text canonical(const struct rcpt_node *members, struct rcpt_arena *arena)
{
    struct rcpt_text texts[MOST_SIGNED * 4 + 1];
    size_t used = 0;
    for (const struct rcpt_node *node = members->first; node != NULL; node = node->next) {
        texts[used++] = node->key;
        texts[used++] = RCPT_TEXT("\n");
        texts[used++] = node->text;
        texts[used++] = RCPT_TEXT("\n");
    }
    texts[used] = (struct rcpt_text){NULL, 0};
    return rcpt_text_join(arena, texts);
}

/* ---- verifying ---- */

#define MOST_BASE64_OF_RSA 1368u /* 8192 bits */

/* The text and signature that one certificate must verify. */
struct statement {
    const struct rcpt_node *members;
    struct rcpt_text text, signature;
    enum rcpt_digest digest;
};

/* Version 1 signs with SHA-1, version 2 with SHA-256. False: it cannot be a signature. */
static bool read_statement(const struct rcpt_reading *reading, const struct rcpt_node *envelope,
                           struct statement *statement)
{
    struct rcpt_text version = member(envelope, "SignatureVersion");
    struct rcpt_text signature = member(envelope, "Signature");
    if (signature.size > MOST_BASE64_OF_RSA ||
        (!rcpt_text_is(version, "1") && !rcpt_text_is(version, "2")))
        return false;
    statement->digest = rcpt_text_is(version, "2") ? RCPT_SHA256 : RCPT_SHA1;
    statement->signature = rcpt_base64_decode(signature, reading->arena);
    statement->members = signed_members(reading, envelope);
    if (statement->signature.at == NULL || statement->members == NULL)
        return false;
    statement->text = canonical(statement->members, reading->arena);
    return true;
}

static bool is_signed_by(const struct rcpt_reading *reading, const struct statement *statement,
                         const char *certificate)
{
    return rcpt_rsa_verify(certificate, reading->source.request->received_us, statement->digest,
                           statement->signature, statement->text, reading->arena);
}

/* Pinned certificates need no network; the URL in the message is not fetched. */
static void verify_pinned(struct rcpt_reading *reading, const struct statement *statement)
{
    bool same = false;
    for (size_t index = 0; index < reading->account->certificate_count; index++)
        same |= is_signed_by(reading, statement, reading->account->certificates[index]);
    rcpt_verdict_of(reading, same);
}

/* The first request that names a certificate waits until it is fetched, then it is read again. */
static void verify_named(struct rcpt_reading *reading, const struct statement *statement,
                         struct rcpt_text url)
{
    const struct rcpt_gateway_request *request = reading->source.request;
    const char *text = rcpt_text_terminated(reading->arena, url), *certificate = NULL;
    if (request->find_certificate != NULL)
        certificate = request->find_certificate(request->context, text);
    if (certificate != NULL) {
        rcpt_verdict_of(reading, is_signed_by(reading, statement, certificate));
        return;
    }
    reading->result->certificate_url = text;
    rcpt_verdict(reading, RCPT_GATEWAY_NEEDS_CERTIFICATE, "the certificate is not here yet");
}

/* From here on the envelope has only its signed members. */
static void view_envelope(struct rcpt_reading *reading, const struct statement *statement)
{
    reading->covers = RCPT_COVERS_ROOT;
    reading->source.root = statement->members;
    rcpt_cover_header(reading, "x-amz-sns-message-id", member(statement->members, "MessageId"));
}

/* The age is checked after the signature: the time is one of the signed members. */
static void verify_envelope(struct rcpt_reading *reading, const struct rcpt_node *envelope)
{
    const struct rcpt_gateway_account *account = reading->account;
    struct statement statement = {.members = NULL};
    struct rcpt_text url = member(envelope, "SigningCertURL"), path;
    int64_t signed_us = 0;
    bool pinned = account->certificate_count > 0;
    if (url.at == NULL)
        url = member(envelope, "SigningCertUrl");
    if ((url.at != NULL || !pinned) &&
        !(is_in_region(reading, url, &path) && is_certificate_path(path)))
        rcpt_verdict(reading, RCPT_GATEWAY_BAD, "SigningCertURL is not Amazon's");
    else if (!read_statement(reading, envelope, &statement))
        rcpt_verdict_of(reading, false);
    else if (pinned)
        verify_pinned(reading, &statement);
    else
        verify_named(reading, &statement, url);
    struct rcpt_text time = member(envelope, "Timestamp");
    if (rcpt_timestamp_parse(time.at != NULL ? time.at : "", time.size, &signed_us))
        rcpt_verdict_age(reading, signed_us);
    if (reading->result->verdict == RCPT_GATEWAY_VERIFIED)
        view_envelope(reading, &statement);
}

/* Only the members that Amazon writes: no tree is built of an unverified body. */
static const struct rcpt_node *shallow_envelope(const struct rcpt_reading *reading)
{
    static const char *const names[] = {
        "Type",         "TopicArn",         "Message",        "MessageId",
        "Subject",      "Timestamp",        "Signature",      "Token",
        "SubscribeURL", "SignatureVersion", "SigningCertURL", "SigningCertUrl"};
    const char *reason;
    size_t count = RCPT_COUNT_OF(names);
    struct rcpt_node *all = rcpt_arena_alloc(reading->arena, (count + 1) * sizeof(*all));
    *all = (struct rcpt_node){.type = RCPT_NODE_OBJECT, .raw = reading->raw};
    if (!rcpt_document_looks_like(rcpt_body_of(reading)) ||
        !rcpt_document_members(rcpt_body_of(reading), reading->arena, names, all + 1, &count,
                               &reason))
        return all;
    for (size_t index = count; index > 0; index--) {
        all[index].next = all->first;
        all->first = &all[index];
    }
    return all;
}

/* Whether the request names another topic, by header or member. A named topic has to be ours, also
 * without a signature. */
static bool is_other_topic(const struct rcpt_reading *reading, const struct rcpt_node *envelope)
{
    const char *arn = reading->account->topic_arn;
    struct rcpt_text named[] = {member(envelope, "TopicArn"),
                                rcpt_reading_header(reading, "x-amz-sns-topic-arn")};
    for (size_t index = 0; arn != NULL && index < RCPT_COUNT_OF(named); index++)
        if (named[index].size > 0 && !rcpt_text_is(named[index], arn))
            return true;
    return false;
}

/* Another topic's message is refused even when Amazon signed it: every customer of Amazon can have
 * one. */
void rcpt_verify_sns(struct rcpt_reading *reading)
{
    const struct rcpt_node *envelope = shallow_envelope(reading);
    bool is_signed = member(envelope, "Type").at != NULL && member(envelope, "Signature").size > 0;
    if (is_other_topic(reading, envelope)) {
        rcpt_verdict(reading, RCPT_GATEWAY_BAD, "TopicArn is not topic_arn");
    } else if (is_signed && member(envelope, "TopicArn").size > 0) {
        verify_envelope(reading, envelope);
    } else if (reading->account->secret_count > 0) {
        /* Raw delivery, Firehose, EventBridge: no signature at all. */
        reading->covers = RCPT_COVERS_REQUEST;
        rcpt_verify_shared(reading);
    } else {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, "no envelope of SNS with a signature");
    }
}

/* ---- opening ---- */

/* NULL: raw delivery. */
const struct rcpt_node *rcpt_sns_envelope(const struct rcpt_reading *reading)
{
    const struct rcpt_node *root = reading->source.root;
    return member(root, "Type").at != NULL && member(root, "TopicArn").at != NULL ? root : NULL;
}

/* The URL is called only for our own topic: a confirmed foreign subscription would let others
 * send. */
static void confirm(struct rcpt_reading *reading, const struct rcpt_node *envelope)
{
    const char *arn = reading->account->topic_arn;
    struct rcpt_text url = member(envelope, "SubscribeURL"), path;
    bool trusted = reading->result->verdict == RCPT_GATEWAY_VERIFIED ||
                   (arn != NULL && rcpt_text_is(member(envelope, "TopicArn"), arn));
    if (!is_in_region(reading, url, &path)) {
        rcpt_reading_reject(reading, "subscribe_url_not_amazon", reading->raw);
        return;
    }
    if (trusted)
        reading->result->confirm_url = rcpt_text_terminated(reading->arena, url);
    rcpt_reading_ignore(reading, trusted ? "subscription" : "subscription_not_trusted");
}

/* A known text inside an envelope is a notice of Amazon's own. */
static void take_text(struct rcpt_reading *reading, struct rcpt_text message)
{
    struct rcpt_draft draft = {.raw = reading->raw};
    if (rcpt_text_begins(message, "Successfully validated SNS topic"))
        rcpt_reading_ignore(reading, "notice");
    else
        rcpt_draft_set_aside(reading, &draft);
    reading->answered = true;
}

/* Amazon writes the message as a text; a service that passes it on may have made an object of it.
 * An object is never one of the signed members. */
void rcpt_sns_open(struct rcpt_reading *reading)
{
    const char *reason;
    const struct rcpt_node *envelope = rcpt_sns_envelope(reading);
    if (envelope == NULL)
        return; /* raw delivery */
    if (rcpt_text_is(member(envelope, "Type"), "SubscriptionConfirmation")) {
        confirm(reading, envelope);
        return;
    }
    if (rcpt_text_is(member(envelope, "Type"), "UnsubscribeConfirmation")) {
        rcpt_reading_ignore(reading, "unsubscribed");
        return;
    }
    const struct rcpt_node *object = rcpt_node_get(envelope, "Message");
    struct rcpt_text message = member(envelope, "Message");
    if (object != NULL && object->type == RCPT_NODE_OBJECT) {
        reading->source.root = object;
        return;
    }
    if (!rcpt_document_looks_like(message)) {
        take_text(reading, message);
        return;
    }
    reading->source.root = rcpt_document_parse(message, reading->arena, &reason);
    if (reading->source.root == NULL)
        rcpt_reading_reject(reading, reason, reading->raw);
}

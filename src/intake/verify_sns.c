/* Amazon SNS: RSA over a canonical text, with a certificate that the message names. Whoever may
 * choose the certificate could sign anything, so its URL has to be Amazon's. */
#include "account.h"
#include "crypto.h"
#include "receiptd/core/timestamp.h"
#include "sns.h"
#include "verify_support.h"

static bool is_region(struct rcpt_text text)
{
    for (size_t index = 0; index < text.size; index++) {
        char byte = text.at[index];
        if ((byte < 'a' || byte > 'z') && (byte < '0' || byte > '9') && byte != '-')
            return false;
    }
    return text.size > 0;
}

bool rcpt_sns_is_url(struct rcpt_text url)
{
    static const char *const ends[] = {".amazonaws.com", ".amazonaws.com.cn"};
    if (url.at == NULL || !rcpt_text_begins(url, "https://sns."))
        return false;
    struct rcpt_text rest = rcpt_text_part(url, strlen("https://sns."), url.size);
    struct rcpt_text host = rcpt_text_part(rest, 0, rcpt_text_find(rest, "/"));
    if (host.size == rest.size || memchr(url.at, '\0', url.size) != NULL)
        return false;
    for (size_t index = 0; index < RCPT_COUNT_OF(ends); index++) {
        size_t size = strlen(ends[index]);
        if (host.size > size &&
            rcpt_text_is(rcpt_text_part(host, host.size - size, size), ends[index]))
            return is_region(rcpt_text_part(host, 0, host.size - size));
    }
    return false;
}

static bool is_certificate_url(struct rcpt_text url)
{
    return rcpt_sns_is_url(url) && url.size > 4 &&
           rcpt_text_is(rcpt_text_part(url, url.size - 4, 4), ".pem");
}

static struct rcpt_text member(const struct rcpt_node *envelope, const char *name)
{
    const struct rcpt_node *node = rcpt_node_get(envelope, name);
    return node != NULL && node->type == RCPT_NODE_STRING ? node->text
                                                          : (struct rcpt_text){NULL, 0};
}

/* Key\nValue\n for the keys that this type signs; at == NULL: one is not there. */
static struct rcpt_text canonical(const struct rcpt_node *envelope, struct rcpt_arena *arena)
{
    static const char *const notification[] = {"Message",   "MessageId", "Subject",
                                               "Timestamp", "TopicArn",  "Type"};
    static const char *const confirmation[] = {"Message", "MessageId", "SubscribeURL", "Timestamp",
                                               "Token",   "TopicArn",  "Type"};
    bool notifies = rcpt_text_is(member(envelope, "Type"), "Notification");
    const char *const *keys = notifies ? notification : confirmation;
    size_t count = notifies ? RCPT_COUNT_OF(notification) : RCPT_COUNT_OF(confirmation);
    struct rcpt_text texts[RCPT_COUNT_OF(confirmation) * 4 + 1];
    size_t used = 0;
    for (size_t index = 0; index < count; index++) {
        struct rcpt_text value = member(envelope, keys[index]);
        if (value.at == NULL && strcmp(keys[index], "Subject") == 0)
            continue;
        if (value.at == NULL)
            return (struct rcpt_text){NULL, 0};
        texts[used++] = rcpt_text_of(keys[index]);
        texts[used++] = RCPT_TEXT("\n");
        texts[used++] = value;
        texts[used++] = RCPT_TEXT("\n");
    }
    texts[used] = (struct rcpt_text){NULL, 0};
    return rcpt_text_join(arena, texts);
}

static bool is_signed_by(const struct rcpt_reading *reading, const struct rcpt_node *envelope,
                         const char *certificate)
{
    struct rcpt_text text = canonical(envelope, reading->arena);
    struct rcpt_text version = member(envelope, "SignatureVersion");
    struct rcpt_text signature = rcpt_base64_decode(member(envelope, "Signature"), reading->arena);
    if (text.at == NULL || signature.at == NULL ||
        (!rcpt_text_is(version, "1") && !rcpt_text_is(version, "2")))
        return false;
    return rcpt_rsa_verify(certificate, reading->source.request->received_us,
                           rcpt_text_is(version, "2") ? RCPT_SHA256 : RCPT_SHA1, signature, text,
                           reading->arena);
}

static void verify_pinned(struct rcpt_reading *reading, const struct rcpt_node *envelope)
{
    bool same = false;
    for (size_t index = 0; index < reading->account->secret_count; index++)
        same |= is_signed_by(reading, envelope, reading->account->secrets[index].at);
    rcpt_verdict_of(reading, same);
}

static void verify_named(struct rcpt_reading *reading, const struct rcpt_node *envelope,
                         struct rcpt_text url)
{
    const struct rcpt_intake_request *request = reading->source.request;
    const char *text = rcpt_text_terminated(reading->arena, url), *certificate = NULL;
    if (request->find_certificate != NULL)
        certificate = request->find_certificate(request->context, text);
    if (certificate != NULL) {
        rcpt_verdict_of(reading, is_signed_by(reading, envelope, certificate));
        return;
    }
    reading->result->certificate_url = text;
    rcpt_verdict(reading, RCPT_INTAKE_NEEDS_CERTIFICATE, "the certificate is not here yet");
}

static void verify_envelope(struct rcpt_reading *reading, const struct rcpt_node *envelope)
{
    const struct rcpt_intake_account *account = reading->account;
    struct rcpt_text url = member(envelope, "SigningCertURL");
    int64_t signed_us = 0;
    bool pinned = account->secret_count > 0;
    if (url.at == NULL)
        url = member(envelope, "SigningCertUrl");
    if (account->topic_arn != NULL &&
        !rcpt_text_is(member(envelope, "TopicArn"), account->topic_arn))
        rcpt_verdict(reading, RCPT_INTAKE_BAD, "TopicArn is not topic_arn");
    else if ((url.at != NULL || !pinned) && !is_certificate_url(url))
        rcpt_verdict(reading, RCPT_INTAKE_BAD, "SigningCertURL is not Amazon's");
    else if (pinned)
        verify_pinned(reading, envelope);
    else
        verify_named(reading, envelope, url);
    struct rcpt_text time = member(envelope, "Timestamp");
    if (rcpt_timestamp_parse(time.at != NULL ? time.at : "", time.size, &signed_us))
        rcpt_verdict_age(reading, signed_us);
}

const struct rcpt_node *rcpt_sns_envelope(const struct rcpt_reading *reading)
{
    const char *reason;
    struct rcpt_text body = rcpt_body_of(reading);
    const struct rcpt_node *root = reading->source.root;
    if (root == NULL && rcpt_document_looks_like(body))
        root = rcpt_document_parse(body, reading->arena, &reason);
    return member(root, "Type").at != NULL && member(root, "TopicArn").at != NULL ? root : NULL;
}

void rcpt_verify_sns(struct rcpt_reading *reading)
{
    const struct rcpt_node *envelope = rcpt_sns_envelope(reading);
    if (envelope != NULL && member(envelope, "Signature").size > 0)
        verify_envelope(reading, envelope);
    else if (reading->account->secret_count > 0)
        rcpt_verify_shared(reading); /* raw delivery, Firehose, EventBridge: no signature at all */
    else
        rcpt_verdict(reading, RCPT_INTAKE_MISSING, "no envelope of SNS with a signature");
}

/* ---- opening ---- */

static void confirm(struct rcpt_reading *reading, const struct rcpt_node *envelope)
{
    const char *arn = reading->account->topic_arn;
    struct rcpt_text url = member(envelope, "SubscribeURL");
    bool trusted = reading->result->verdict == RCPT_INTAKE_VERIFIED ||
                   (arn != NULL && rcpt_text_is(member(envelope, "TopicArn"), arn));
    if (!rcpt_sns_is_url(url)) {
        rcpt_reading_reject(reading, "subscribe_url_not_amazon", reading->source.request->body);
        return;
    }
    if (trusted)
        reading->result->confirm_url = rcpt_text_terminated(reading->arena, url);
    rcpt_reading_ignore(reading, trusted ? "subscription" : "subscription_not_trusted");
}

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
    if (!rcpt_text_is(member(envelope, "Type"), "Notification")) {
        rcpt_reading_ignore(reading, "unsubscribed");
        return;
    }
    struct rcpt_text message = member(envelope, "Message");
    if (!rcpt_document_looks_like(message)) {
        rcpt_reading_ignore(reading, "notice");
        return;
    }
    reading->source.root = rcpt_document_parse(message, reading->arena, &reason);
    if (reading->source.root == NULL)
        rcpt_reading_reject(reading, reason, reading->source.request->body);
}

/* Decisions about a webhook without calling it: the class of a status, whether to retry and when,
 * and the URLs and headers that may be configured. Pure; called by webhook.c, actions, folds and
 * the configuration's check. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "receiptd/base/error.h"
#include "receiptd/http/webhook.h"

/* ---- classes of answers ---- */

const char *rcpt_webhook_class_name(enum rcpt_webhook_class class)
{
    static const char *const names[] = {
        [RCPT_WEBHOOK_DELIVERED] = "delivered",
        [RCPT_WEBHOOK_TIMEOUT] = "timeout",
        [RCPT_WEBHOOK_DNS] = "dns",
        [RCPT_WEBHOOK_CONNECTION] = "connection",
        [RCPT_WEBHOOK_TLS] = "tls",
        [RCPT_WEBHOOK_SERVER_ERROR] = "server_error",
        [RCPT_WEBHOOK_BUSY] = "busy",
        [RCPT_WEBHOOK_REFUSED] = "refused",
        [RCPT_WEBHOOK_FORBIDDEN] = "forbidden",
        [RCPT_WEBHOOK_CANCELLED] = "cancelled",
    };
    RCPT_ASSERT(class < RCPT_WEBHOOK_CLASS__COUNT);
    return names[class];
}

/* Redirects count as refused: following one would send the payload to an address that is not
 * configured. */
enum rcpt_webhook_class rcpt_webhook_classify(int status)
{
    if (status >= 200 && status < 300)
        return RCPT_WEBHOOK_DELIVERED;
    if (status == 408 || status == 429)
        return RCPT_WEBHOOK_BUSY;
    return status >= 500 && status < 600 ? RCPT_WEBHOOK_SERVER_ERROR : RCPT_WEBHOOK_REFUSED;
}

/* CANCELLED may be retried: receivers recognise a repetition by its webhook-id. */
bool rcpt_webhook_may_retry(enum rcpt_webhook_class class)
{
    return class != RCPT_WEBHOOK_DELIVERED && class != RCPT_WEBHOOK_REFUSED &&
           class != RCPT_WEBHOOK_FORBIDDEN;
}

/* A receiver cannot ask for more than the back-off's maximum. */
int64_t rcpt_webhook_wait_ms(struct rcpt_backoff *backoff, int64_t retry_after_ms)
{
    int64_t wait = rcpt_backoff_next_ms(backoff);
    int64_t asked = retry_after_ms < backoff->max_ms ? retry_after_ms : backoff->max_ms;
    return asked > wait ? asked : wait;
}

/* ---- rules for the configuration ---- */

/* No control characters: a value with CR LF would add headers of its own. */
bool rcpt_webhook_header_is_valid(const char *header)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t name = strspn(header, token);
    if (name == 0 || header[name] != ':')
        return false;
    for (const char *at = header + name + 1; *at != '\0'; at++) {
        if (iscntrl((unsigned char)*at) && *at != '\t')
            return false;
    }
    return true;
}

/* These headers carry identity and signature: no configuration may replace them. */
bool rcpt_webhook_header_is_ours(const char *header)
{
    static const char *const ours[] = {
        "webhook-id",       "webhook-timestamp", "webhook-signature", "receiptd-fencing-token",
        "receiptd-attempt", "traceparent",       "content-type",      "content-length",
        "transfer-encoding"};
    size_t name = strcspn(header, ":");
    for (size_t i = 0; i < RCPT_COUNT_OF(ours); i++)
        if (strlen(ours[i]) == name && strncasecmp(header, ours[i], name) == 0)
            return true;
    return false;
}

/* A user name in the URL would be logged and sent as credentials. */
bool rcpt_webhook_url_is_valid(const char *url)
{
    size_t scheme = strncmp(url, "https://", 8) == 0 ? 8 : strncmp(url, "http://", 7) == 0 ? 7 : 0;
    size_t host = strcspn(url + scheme, "/?#");
    if (scheme == 0 || host == 0 || memchr(url + scheme, '@', host) != NULL)
        return false;
    for (const char *at = url; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || (unsigned char)*at == 0x7f)
            return false;
    }
    return true;
}

/* What is decided about a call without making one. Pure. */
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "webhook.h"

/* ---- what an answer means ---- */

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

enum rcpt_webhook_class rcpt_webhook_classify(int status)
{
    if (status >= 200 && status < 300)
        return RCPT_WEBHOOK_DELIVERED;
    if (status == 408 || status == 429)
        return RCPT_WEBHOOK_BUSY;
    return status >= 500 && status < 600 ? RCPT_WEBHOOK_SERVER_ERROR : RCPT_WEBHOOK_REFUSED;
}

bool rcpt_webhook_may_retry(enum rcpt_webhook_class class)
{
    return class != RCPT_WEBHOOK_DELIVERED && class != RCPT_WEBHOOK_REFUSED &&
           class != RCPT_WEBHOOK_FORBIDDEN;
}

int64_t rcpt_webhook_wait_ms(struct rcpt_backoff *backoff, int64_t retry_after_ms)
{
    int64_t wait = rcpt_backoff_next_ms(backoff);
    int64_t asked = retry_after_ms < backoff->max_ms ? retry_after_ms : backoff->max_ms;
    return asked > wait ? asked : wait;
}

/* ---- what may be configured ---- */

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

bool rcpt_webhook_header_is_ours(const char *header)
{
    static const char *const ours[] = {
        "webhook-id",       "webhook-timestamp", "webhook-signature", "receiptd-fencing-token",
        "receiptd-attempt", "traceparent",       "content-type",      "content-length",
        "transfer-encoding"};
    size_t name = strcspn(header, ":");
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (strlen(ours[i]) == name && strncasecmp(header, ours[i], name) == 0)
            return true;
    return false;
}

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

/* ---- addresses that are not public ---- */

struct block {
    uint8_t prefix[16];
    unsigned bits;
};

static bool is_in(const uint8_t *address, const struct block *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned bytes = blocks[i].bits / 8, rest = blocks[i].bits % 8;
        if (memcmp(address, blocks[i].prefix, bytes) == 0 &&
            (rest == 0 || (address[bytes] ^ blocks[i].prefix[bytes]) >> (8 - rest) == 0))
            return true;
    }
    return false;
}

static bool is_public_v4(const uint8_t address[4])
{
    static const struct block blocks[] = {
        {{0}, 8},
        {{10}, 8},
        {{100, 64}, 10},
        {{127}, 8},
        {{169, 254}, 16},
        {{172, 16}, 12},
        {{192, 0, 0}, 24},
        {{192, 0, 2}, 24},
        {{192, 88, 99}, 24},
        {{192, 168}, 16},
        {{198, 18}, 15},
        {{198, 51, 100}, 24},
        {{203, 0, 113}, 24},
        {{224}, 4},
        {{240}, 4},
    };
    return !is_in(address, blocks, sizeof(blocks) / sizeof(blocks[0]));
}

static bool is_public_v6(const uint8_t address[16])
{
    static const struct block mapped = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96};
    static const struct block nat64 = {{0, 0x64, 0xff, 0x9b}, 96};
    static const struct block six_to_four = {{0x20, 0x02}, 16};
    static const struct block global = {{0x20}, 3};
    /* Protocol assignments with Teredo among them, documentation (old and new). */
    static const struct block blocks[] = {
        {{0x20, 0x01}, 23}, {{0x20, 0x01, 0x0d, 0xb8}, 32}, {{0x3f, 0xff}, 20}};
    if (is_in(address, &mapped, 1) || is_in(address, &nat64, 1))
        return is_public_v4(address + 12);
    if (is_in(address, &six_to_four, 1))
        return is_public_v4(address + 2);
    return is_in(address, &global, 1) &&
           !is_in(address, blocks, sizeof(blocks) / sizeof(blocks[0]));
}

bool rcpt_webhook_address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof(v4));
        return is_public_v4((const uint8_t *)&v4.sin_addr);
    }
    if (address->sa_family != AF_INET6)
        return false;
    struct sockaddr_in6 v6;
    memcpy(&v6, address, sizeof(v6));
    return is_public_v6(v6.sin6_addr.s6_addr);
}

/* The name that a request asks for. A foreign page may let its own name lead to this machine (DNS
 * rebinding), and then read answers as its own. The name in the request gives it away. Called by
 * request.c and by handlers. */
#include <arpa/inet.h>

#include "internal.h"

#define MOST_HOST 255u

/* "host", "host:port" or "[IPv6]:port" without the port; anything else has no name. */
static struct rcpt_text host_of(struct rcpt_text address)
{
    bool bracketed = address.size > 0 && address.at[0] == '[';
    size_t size = rcpt_text_find(address, bracketed ? "]" : ":");
    struct rcpt_text rest = rcpt_text_part(address, size + bracketed, address.size);
    struct rcpt_text port = rcpt_text_part(rest, 1, rest.size);
    bool good = rest.size == 0 ? !bracketed || size < address.size
                               : rest.at[0] == ':' && (port.size == 0 || rcpt_text_is_digits(port));
    if (!good)
        return RCPT_TEXT("");
    return bracketed ? rcpt_text_part(address, 1, size - 1) : rcpt_text_part(address, 0, size);
}

/* Whether the host is this machine: localhost, 127.0.0.0/8 or ::1 in any form. */
static bool is_own_name(struct rcpt_text host)
{
    char text[MOST_HOST + 1];
    struct in_addr four;
    struct in6_addr six;
    if (host.size == 0 || host.size > MOST_HOST)
        return false;
    if (rcpt_text_is_nocase(host, "localhost"))
        return true;
    memcpy(text, host.at, host.size);
    text[host.size] = '\0';
    if (inet_pton(AF_INET, text, &four) == 1)
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    return inet_pton(AF_INET6, text, &six) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127));
}

/* As the configuration has it: "127.0.0.1:8322". */
bool rcpt_http_is_loopback(const char *listen)
{
    return is_own_name(host_of(rcpt_text_of(listen)));
}

/* If the target has a name ("http://name/path"), that name counts (RFC 9112, 3.2.2). */
static struct rcpt_text asked_for(const struct rcpt_http_request *request)
{
    struct rcpt_http_text header = rcpt_http_header(request, "Host");
    struct rcpt_text target = {request->head.bytes, request->target_size};
    size_t scheme = rcpt_text_find(target, "://");
    if (target.size == 0 || target.at[0] == '/' || scheme == target.size)
        return host_of((struct rcpt_text){header.bytes, header.bytes != NULL ? header.size : 0});
    struct rcpt_text rest = rcpt_text_part(target, scheme + 3, target.size);
    return host_of(rcpt_text_part(rest, 0, strcspn(rest.at, "/?#")));
}

/* Names are compared without their ports. */
bool rcpt_http_asks_for(const struct rcpt_http_request *request, bool is_loopback,
                        const char *names)
{
    struct rcpt_text host = asked_for(request);
    if (is_loopback && is_own_name(host))
        return true;
    if (names == NULL)
        return !is_loopback;
    while (*names != '\0') {
        size_t size = strcspn(names, ",");
        struct rcpt_text name = rcpt_text_trim((struct rcpt_text){names, size});
        if (name.size > 0 && rcpt_text_equal_nocase(host, name))
            return true;
        names += size + (names[size] == ',');
    }
    return false;
}

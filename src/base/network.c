/* Addresses and networks, for trusted proxies, `allow` lists and calls to public addresses only. */
#include "receiptd/base/network.h"
#include "receiptd/base/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* Every address is kept as IPv6: an IPv4 network of n bits is one of 96 + n bits. */
#define MAPPED_BITS 96u /* of ::ffff:0:0/96, where IPv4 is */

/* ---- addresses ---- */

/* The text need not be terminated: it may be part of a header. */
bool rcpt_address_parse(const char *text, size_t size, struct rcpt_address *address)
{
    char copy[RCPT_ADDRESS_TEXT];
    if (size == 0 || size >= sizeof(copy))
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    *address = (struct rcpt_address){{[10] = 0xff, [11] = 0xff}};
    return inet_pton(AF_INET, copy, address->bytes + 12) == 1 ||
           inet_pton(AF_INET6, copy, address->bytes) == 1;
}

struct rcpt_address rcpt_address_of(const struct sockaddr *address)
{
    struct rcpt_address result = {{0}};
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof(v6));
        memcpy(result.bytes, &v6.sin6_addr, sizeof(result.bytes));
    } else if (address->sa_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof(v4));
        result.bytes[10] = result.bytes[11] = 0xff;
        memcpy(result.bytes + 12, &v4.sin_addr, sizeof(v4.sin_addr));
    }
    return result;
}

bool rcpt_address_is_v4(const struct rcpt_address *address)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(address->bytes, prefix, sizeof(prefix)) == 0;
}

void rcpt_address_text(const struct rcpt_address *address, char text[RCPT_ADDRESS_TEXT])
{
    if (rcpt_address_is_v4(address))
        inet_ntop(AF_INET, address->bytes + 12, text, RCPT_ADDRESS_TEXT);
    else
        inet_ntop(AF_INET6, address->bytes, text, RCPT_ADDRESS_TEXT);
}

/* ---- networks ---- */

/* An address without a slash is a network of one address. */
bool rcpt_network_parse(const char *text, struct rcpt_network *network)
{
    const char *slash = strchr(text, '/');
    size_t size = slash != NULL ? (size_t)(slash - text) : strlen(text);
    if (!rcpt_address_parse(text, size, &network->address))
        return false;
    bool is_v4 = memchr(text, ':', size) == NULL;
    unsigned most = is_v4 ? 32 : 128, bits = most;
    if (slash != NULL) {
        size_t digits = strspn(slash + 1, "0123456789");
        if (digits == 0 || digits > 3 || slash[1 + digits] != '\0')
            return false;
        bits = (unsigned)strtoul(slash + 1, NULL, 10);
    }
    /* "::ffff:10.0.0.0/8" means the IPv4 network to its author, and every IPv4 address to us. */
    if (bits > most || (!is_v4 && rcpt_address_is_v4(&network->address) && bits < MAPPED_BITS))
        return false;
    network->bits = bits + (is_v4 ? MAPPED_BITS : 0);
    return true;
}

/* Whole bytes first, then the leading bits of the byte in which the prefix ends. */
bool rcpt_network_has(const struct rcpt_network *network, const struct rcpt_address *address)
{
    unsigned whole = network->bits / 8, rest = network->bits % 8;
    return memcmp(network->address.bytes, address->bytes, whole) == 0 &&
           (rest == 0 ||
            (network->address.bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0);
}

bool rcpt_networks_have(const struct rcpt_network *networks, size_t count,
                        const struct rcpt_address *address)
{
    for (size_t i = 0; i < count; i++)
        if (rcpt_network_has(&networks[i], address))
            return true;
    return false;
}

/* ---- what is public ---- */

#define V4(bits, ...)                                                                              \
    {                                                                                              \
        {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, __VA_ARGS__}}, MAPPED_BITS + (bits)            \
    }

/* IANA's special-purpose addresses (RFC 6890): private, loopback, link-local, carrier NAT,
 * documentation, benchmarks, multicast, reserved. */
static bool is_public_v4(const struct rcpt_address *address)
{
    static const struct rcpt_network inside[] = {
        V4(8, 0),
        V4(8, 10),
        V4(10, 100, 64),
        V4(8, 127),
        V4(16, 169, 254),
        V4(12, 172, 16),
        V4(24, 192, 0, 0),
        V4(24, 192, 0, 2),
        V4(24, 192, 88, 99),
        V4(16, 192, 168),
        V4(15, 198, 18),
        V4(24, 198, 51, 100),
        V4(24, 203, 0, 113),
        V4(4, 224),
        V4(4, 240),
    };
    return !rcpt_networks_have(inside, RCPT_COUNT_OF(inside), address);
}

/* The IPv4 address that stands at `at`, as in NAT64 (RFC 6052) and 6to4. */
static struct rcpt_address embedded(const struct rcpt_address *address, size_t at)
{
    struct rcpt_address result = {{[10] = 0xff, [11] = 0xff}};
    memcpy(result.bytes + 12, address->bytes + at, 4);
    return result;
}

/* An IPv6 address that carries an IPv4 address is as public as that one. Otherwise a name that
 * resolves to 64:ff9b::10.0.0.1 would reach the network behind a NAT64. Only 2000::/3 is global. */
bool rcpt_address_is_public(const struct rcpt_address *address)
{
    static const struct rcpt_network nat64 = {{{0, 0x64, 0xff, 0x9b}}, 96};
    static const struct rcpt_network six_to_four = {{{0x20, 0x02}}, 16};
    static const struct rcpt_network global = {{{0x20}}, 3};
    /* Protocol assignments with Teredo among them, documentation (old and new). */
    static const struct rcpt_network inside[] = {
        {{{0x20, 0x01}}, 23}, {{{0x20, 0x01, 0x0d, 0xb8}}, 32}, {{{0x3f, 0xff}}, 20}};
    struct rcpt_address v4 = *address;
    if (rcpt_network_has(&nat64, address))
        v4 = embedded(address, 12);
    else if (rcpt_network_has(&six_to_four, address))
        v4 = embedded(address, 2);
    if (rcpt_address_is_v4(&v4))
        return is_public_v4(&v4);
    return rcpt_network_has(&global, address) &&
           !rcpt_networks_have(inside, RCPT_COUNT_OF(inside), address);
}

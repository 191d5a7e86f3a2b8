#include <arpa/inet.h>

#include "account.h"

#define MAPPED_BITS 96u /* of ::ffff:0:0/96 */

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_mapped(const unsigned char address[16])
{
    return memcmp(address, mapped, sizeof(mapped)) == 0;
}

static bool read_address(const char *text, unsigned char address[16], bool *is_v4)
{
    *is_v4 = inet_pton(AF_INET, text, address + sizeof(mapped)) == 1;
    if (!*is_v4)
        return inet_pton(AF_INET6, text, address) == 1;
    memcpy(address, mapped, sizeof(mapped));
    return true;
}

bool rcpt_network_parse(const char *text, struct rcpt_network *network)
{
    char address[64];
    bool is_v4;
    unsigned bits;
    struct rcpt_text whole = rcpt_text_of(text);
    struct rcpt_text host = rcpt_text_part(whole, 0, rcpt_text_find(whole, "/"));
    struct rcpt_text width = rcpt_text_part(whole, host.size + 1, whole.size);
    if (host.size >= sizeof(address))
        return false;
    memcpy(address, host.at, host.size);
    address[host.size] = '\0';
    if (!read_address(address, network->address, &is_v4))
        return false;
    network->bits = 128;
    if (host.size == whole.size)
        return true;
    if (!rcpt_text_number(width, &bits) || bits > (is_v4 ? 32 : 128))
        return false;
    /* "::ffff:10.0.0.0/8" means the IPv4 network to its author, and every IPv4 address to us. */
    if (!is_v4 && bits < MAPPED_BITS && is_mapped(network->address))
        return false;
    network->bits = bits + (is_v4 ? MAPPED_BITS : 0);
    return true;
}

bool rcpt_network_has(const struct rcpt_network *network, struct rcpt_text address)
{
    char text[64];
    unsigned char bytes[16];
    bool is_v4;
    if (address.size == 0 || address.size >= sizeof(text))
        return false;
    memcpy(text, address.at, address.size);
    text[address.size] = '\0';
    if (!read_address(text, bytes, &is_v4))
        return false;
    for (unsigned bit = 0; bit < network->bits; bit++) {
        unsigned char mask = (unsigned char)(0x80 >> bit % 8);
        if ((bytes[bit / 8] & mask) != (network->address[bit / 8] & mask))
            return false;
    }
    return true;
}

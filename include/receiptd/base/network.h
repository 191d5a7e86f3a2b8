/* IP addresses and networks: parsed strictly, compared, public or not. Pure.
 *
 * IPv4 is held as mapped IPv6 (::ffff:a.b.c.d), so that one comparison serves both families.
 */
#ifndef RECEIPTD_BASE_NETWORK_H
#define RECEIPTD_BASE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "receiptd/base/error.h"

#define RCPT_ADDRESS_TEXT 46u /* bytes of the longest text, with its NUL */

struct rcpt_address {
    uint8_t bytes[16];
};

struct rcpt_network {
    struct rcpt_address address;
    unsigned bits;
};

/* "192.0.2.1" or "2001:db8::1": no port, no brackets, no scope. */
RCPT_MUST_CHECK bool rcpt_address_parse(const char *text, size_t size,
                                        struct rcpt_address *address);
/* "::" for families other than IP. */
struct rcpt_address rcpt_address_of(const struct sockaddr *address);
bool rcpt_address_is_v4(const struct rcpt_address *address);
void rcpt_address_text(const struct rcpt_address *address, char text[RCPT_ADDRESS_TEXT]);
/* False: loopback, link-local, private, reserved, multicast, documentation (IANA's special-purpose
 * registries); addresses that carry an IPv4 address are judged by it. */
bool rcpt_address_is_public(const struct rcpt_address *address);

/* "192.0.2.0/24", "2001:db8::1"; false: neither address nor network. */
RCPT_MUST_CHECK bool rcpt_network_parse(const char *text, struct rcpt_network *network);
bool rcpt_network_has(const struct rcpt_network *network, const struct rcpt_address *address);
bool rcpt_networks_have(const struct rcpt_network *networks, size_t count,
                        const struct rcpt_address *address);

#endif

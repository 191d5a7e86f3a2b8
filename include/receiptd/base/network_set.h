/* Networks in any number, asked whether one of them has an address. Immutable, so any thread may
 * ask. Made from a list of addresses and networks, one a line. Pure: it reads no file.
 */
#ifndef RECEIPTD_BASE_NETWORK_SET_H
#define RECEIPTD_BASE_NETWORK_SET_H

#include "receiptd/base/network.h"

#define RCPT_NETWORK_LINE_BYTES 64u /* of what is shown of a line that is no network */

struct rcpt_network_set;

/* The place of a line that is no network, and its beginning. */
struct rcpt_network_fault {
    unsigned line;
    char value[RCPT_NETWORK_LINE_BYTES];
};

/* Each line is "192.0.2.0/24" or "2001:db8::1", with blanks around it; a # begins a comment. NULL:
 * the first line that is something else is in `fault`. `text` is terminated. */
RCPT_MUST_CHECK struct rcpt_network_set *rcpt_network_set_parse(const char *text,
                                                                struct rcpt_network_fault *fault);
void rcpt_network_set_free(struct rcpt_network_set *set);

/* How many disjoint ranges of addresses it has. */
size_t rcpt_network_set_count(const struct rcpt_network_set *set);
bool rcpt_network_set_has(const struct rcpt_network_set *set, const struct rcpt_address *address);

#endif

/* The meaning of a mail server's answer for a message that was not delivered, for adapters of
 * e-mail whose gateway's own word leaves it open. Rows go by subject and detail of the enhanced
 * status code (RFC 3463, section 3): an address is bad only if the code is about the address. The
 * row for the word alone comes after these rows. */
#ifndef RECEIPTD_GATEWAYS_MAIL_H
#define RECEIPTD_GATEWAYS_MAIL_H

/* clang-format off */
#define RCPT_MAIL_ROWS(word)                                                                       \
    {word, "4.4.7", "EXPIRED", NULL},      /* delivery time expired */                             \
    {word, "5.4.7", "EXPIRED", NULL},                                                              \
    {word, "4.7.*", "BLOCKED", NULL},      /* security or policy */                                \
    {word, "5.7.*", "BLOCKED", NULL},                                                              \
    {word, "5.1.7", "BLOCKED", NULL},      /* the sender's address, as is the next */              \
    {word, "5.1.8", "BLOCKED", NULL},                                                              \
    {word, "4.2.2", "BOUNCED_SOFT", NULL}, /* mailbox full */                                      \
    {word, "5.2.2", "BOUNCED_SOFT", NULL},                                                         \
    {word, "5.2.3", "BOUNCED_SOFT", NULL}, /* too large, as is 3.4 */                              \
    {word, "5.3.4", "BOUNCED_SOFT", NULL},                                                         \
    {word, "5.3.1", "BOUNCED_SOFT", NULL}, /* the mail system is full */                           \
    {word, "5.6.*", "BOUNCED_SOFT", NULL}  /* the content */
/* clang-format on */

#endif

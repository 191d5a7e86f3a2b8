/* One HTTP/1.1 request in memory, taken apart by the same parser as the server's (llhttp).
 *
 * For samples on the standard input: a text with bare line feeds is taken too, and the body may be
 * longer or shorter than Content-Length says, because editors change lengths. A compressed body is
 * undone, and what the server refuses for its headers is refused. No network.
 */
#ifndef RECEIPTD_HTTP_MESSAGE_H
#define RECEIPTD_HTTP_MESSAGE_H

#include <stddef.h>

#include "receiptd/base/error.h"

struct rcpt_http_message_header {
    const char *name, *value; /* not terminated */
    size_t name_size, value_size;
};

struct rcpt_http_message {
    const char *method;              /* "POST" */
    const char *path, *query, *body; /* as sent, not terminated; query NULL: there was none */
    size_t path_size, query_size, body_size;
    struct rcpt_http_message_header *headers;
    size_t header_count;
    char *head;   /* private: what the pointers above point into */
    char *joined; /* private: the body, when it came in chunks or compressed */
};

/* NULL: no request (REJECT). The caller frees it. */
RCPT_MUST_CHECK struct rcpt_http_message *rcpt_http_message_parse(const char *text, size_t size,
                                                                  struct rcpt_error *error);
void rcpt_http_message_free(struct rcpt_http_message *message);

#endif

/* One GET over HTTPS, in a thread of libuv's pool: certificates and confirmations that a gateway's
 * protocol asks for.
 *
 * The caller says which hosts are asked: no redirect is followed, nothing but https is spoken, and
 * the server's certificate must be valid for its name. Call from the loop's thread only.
 */
#ifndef RECEIPTD_HTTP_FETCH_H
#define RECEIPTD_HTTP_FETCH_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct rcpt_http_fetched {
    int status;        /* 0: nobody answered, see error */
    const char *bytes; /* ends in a NUL, valid during the callback */
    size_t size;
    const char *error; /* "" if there was an answer */
};

/* Called once, on the loop. An answer of more than max_bytes is an error. */
typedef void (*rcpt_http_on_fetched)(void *context, const struct rcpt_http_fetched *fetched);

void rcpt_http_fetch(uv_loop_t *loop, const char *url, size_t max_bytes, int64_t timeout_ms,
                     rcpt_http_on_fetched on_fetched, void *context);

#endif

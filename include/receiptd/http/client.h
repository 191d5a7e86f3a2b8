/* The HTTP client: GET and POST over libcurl's multi interface on the libuv loop.
 *
 * The only user of libcurl. Redirects are never followed, answers are cut at a limit, and calls
 * that ask for it reach public addresses only: each resolved address is checked. Does not retry.
 * Call from the loop's thread only. webhook.c signs and classifies on top of it; src/intake
 * (certificates) and src/trace (spans) use it directly.
 */
#ifndef RECEIPTD_HTTP_CLIENT_H
#define RECEIPTD_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "receiptd/base/error.h"

struct rcpt_client;      /* connections, and the calls in flight */
struct rcpt_client_call; /* one of them */

enum rcpt_client_failure {
    RCPT_CLIENT_ANSWERED,   /* there is a status, also where the body did not come to an end */
    RCPT_CLIENT_TIMEOUT,    /* no answer in time */
    RCPT_CLIENT_DNS,        /* the name could not be resolved */
    RCPT_CLIENT_CONNECTION, /* refused, reset, or an answer that is no HTTP */
    RCPT_CLIENT_TLS,        /* handshake or certificate */
    RCPT_CLIENT_FORBIDDEN,  /* its address is not public: not called */
    RCPT_CLIENT_CANCELLED,  /* whether it arrived is not known */
};

struct rcpt_client_request { /* borrowed for the call to rcpt_client_send */
    const char *url;
    const char *schemes;        /* "https" or "http,https": no other is spoken */
    const char *const *headers; /* "Name: value"; NULL: none */
    size_t header_count;
    const void *body; /* copied; NULL: GET instead of POST */
    size_t size;
    int64_t connect_timeout_ms; /* 0: timeout_ms alone counts */
    int64_t timeout_ms;         /* from start to last byte */
    size_t max_answer_bytes;    /* what is beyond is not read */
    bool public_only;           /* loopback, link-local, private networks … are not called */
    /* Keeps the connection for the next call, and ignores the environment's proxy, which would be
     * called in place of the receiver. */
    bool direct;
};

struct rcpt_client_answer { /* valid during the callback */
    enum rcpt_client_failure failure;
    int status;       /* 0: there was none */
    const char *body; /* ends in a NUL beyond its size */
    size_t size;
    bool cut;               /* the body was longer than the limit */
    int64_t retry_after_ms; /* 0: the receiver did not say */
    int64_t took_ms;
    const char *error; /* what went wrong below HTTP; "" if there was an answer */
};

/* The seconds from `now_s`, since 1970, that the value of a Retry-After asks for: digits, or a
 * date in any of the forms of RFC 9110, 5.6.7. Never less than 0, and a year at most; 0 as well
 * for a date that has passed and for anything else. */
int64_t rcpt_retry_after_s(const char *value, size_t size, int64_t now_s);

/* Called exactly once per call, never from inside rcpt_client_send. New calls may be made from
 * here, and the client may be closed. */
typedef void (*rcpt_client_on_answer)(void *context, const struct rcpt_client_answer *answer);

/* `ca_file` is copied; NULL: the system's authorities. */
struct rcpt_client *rcpt_client_new(uv_loop_t *loop, const char *ca_file);
struct rcpt_client_call *rcpt_client_send(struct rcpt_client *client,
                                          const struct rcpt_client_request *request,
                                          rcpt_client_on_answer on_answer, void *context);
/* Ends the call: on_answer is called from inside (CANCELLED). */
void rcpt_client_cancel(struct rcpt_client_call *call);
/* Cancels all calls, then frees the client and calls on_closed, which may be NULL. */
void rcpt_client_close(struct rcpt_client *client, void (*on_closed)(void *context), void *context);

#endif

/* Calls webhooks: signed POSTs through the HTTP client (client.h).
 *
 * Connections are kept alive, and HTTP/2 is used if the receiver can. Redirects and proxies are
 * never followed, and answers are cut at a limit. Addresses that are not public are refused unless
 * allowed; each resolved address is checked. Calls are signed by Standard Webhooks
 * (standardwebhooks.com, version v1). Does not retry and does not remember: the caller gets the
 * answer's class, and decides by rcpt_webhook_wait_ms when to try again. Call from the loop's
 * thread only.
 */
#ifndef RECEIPTD_HTTP_WEBHOOK_H
#define RECEIPTD_HTTP_WEBHOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "receiptd/base/backoff.h"
#include "receiptd/base/error.h"

struct rcpt_webhooks;         /* the client: connections and everything in flight */
struct rcpt_webhook_endpoint; /* one receiver */

#define RCPT_WEBHOOK_MOST_SECRETS 8u

struct rcpt_webhooks_settings {
    uv_loop_t *loop;
    bool allow_private;  /* loopback, link-local, private networks … may be called */
    const char *ca_file; /* NULL: the system's */
};

struct rcpt_webhook_endpoint_settings { /* copied */
    const char *name;                   /* for logs; the URL may hold a secret */
    const char *url;                    /* http or https */
    const char *const *secrets;         /* "whsec_…": each signs, so that they can be rotated */
    size_t secret_count;                /* 0: not signed */
    const char *const *headers;         /* "Name: value" */
    size_t header_count;
    int64_t connect_timeout_ms, timeout_ms; /* the latter from start to last byte */
    size_t max_answer_bytes;                /* what is beyond is not read */
    unsigned concurrency;                   /* calls in flight */
};

struct rcpt_webhook_call { /* borrowed for the call to rcpt_webhook_send */
    const char *id;        /* webhook-id: the same at every attempt */
    const void *body;
    size_t size;
    const char *content_type;   /* NULL: application/json */
    const char *traceparent;    /* NULL or "": none */
    const char *const *headers; /* "Name: value", beyond the endpoint's */
    size_t header_count;
};

enum rcpt_webhook_class {
    RCPT_WEBHOOK_DELIVERED,    /* 2xx */
    RCPT_WEBHOOK_TIMEOUT,      /* no answer in time */
    RCPT_WEBHOOK_DNS,          /* the name could not be resolved */
    RCPT_WEBHOOK_CONNECTION,   /* refused, reset, or an answer that is no HTTP */
    RCPT_WEBHOOK_TLS,          /* handshake or certificate */
    RCPT_WEBHOOK_SERVER_ERROR, /* 5xx */
    RCPT_WEBHOOK_BUSY,         /* 408, 429 */
    RCPT_WEBHOOK_REFUSED,      /* every other status: trying again is of no use */
    RCPT_WEBHOOK_FORBIDDEN,    /* its address is not public: not called */
    RCPT_WEBHOOK_CANCELLED,    /* the client was closed: whether it arrived is not known */
    RCPT_WEBHOOK_CLASS__COUNT,
};

struct rcpt_webhook_answer { /* valid during the callback */
    enum rcpt_webhook_class class;
    int status;       /* 0: there was none */
    const char *body; /* ends in a NUL beyond its size */
    size_t size;
    bool cut;               /* the body was longer than the limit */
    int64_t retry_after_ms; /* 0: the receiver did not say */
    int64_t took_ms;
    const char *error; /* what went wrong below HTTP; "" otherwise */
};

/* Called exactly once per call that was taken, never from inside rcpt_webhook_send. New calls may
 * be made from here. */
typedef void (*rcpt_webhook_on_answer)(void *context, const struct rcpt_webhook_answer *answer);

struct rcpt_webhooks *rcpt_webhooks_new(const struct rcpt_webhooks_settings *settings);
/* Ends all calls (CANCELLED, from inside), then frees client and endpoints and calls on_closed. */
void rcpt_webhooks_close(struct rcpt_webhooks *webhooks, void (*on_closed)(void *context),
                         void *context);

/* NULL with FATAL EX_CONFIG: no URL, a secret that is none, a header that is none. */
RCPT_MUST_CHECK struct rcpt_webhook_endpoint *rcpt_webhook_endpoint_new(
    struct rcpt_webhooks *webhooks, const struct rcpt_webhook_endpoint_settings *settings,
    struct rcpt_error *error);

/* How many more calls are taken now. */
unsigned rcpt_webhook_capacity(const struct rcpt_webhook_endpoint *endpoint);
/* False: no capacity; the call is not made, and on_answer is not called. */
RCPT_MUST_CHECK bool rcpt_webhook_send(struct rcpt_webhook_endpoint *endpoint,
                                       const struct rcpt_webhook_call *call,
                                       rcpt_webhook_on_answer on_answer, void *context);

/* ---- pure ---- */

const char *rcpt_webhook_class_name(enum rcpt_webhook_class class);
enum rcpt_webhook_class rcpt_webhook_classify(int status);
/* Whether trying again may help. */
bool rcpt_webhook_may_retry(enum rcpt_webhook_class class);
/* The wait before the next attempt: decorrelated jitter, never less than the receiver asked for
 * (of which at most the back-off's maximum is granted). */
int64_t rcpt_webhook_wait_ms(struct rcpt_backoff *backoff, int64_t retry_after_ms);

struct rcpt_webhook_secret {
    uint8_t bytes[64];
    size_t size;
};
/* "whsec_" (may be missing) and the base64 of 24 to 64 bytes. */
RCPT_MUST_CHECK bool rcpt_webhook_secret_parse(struct rcpt_webhook_secret *secret,
                                               const char *text);
/* The value of webhook-signature: one "v1,…" for each secret. The caller frees it. */
char *rcpt_webhook_sign(const struct rcpt_webhook_secret *secrets, size_t count, const char *id,
                        int64_t timestamp_s, const void *body, size_t size);

/* "Name: value" that cannot break out of its line. */
bool rcpt_webhook_header_is_valid(const char *header);
/* Whether each call already has a header of this name from us: a second one would make the first
 * doubtful. */
bool rcpt_webhook_header_is_ours(const char *header);
/* http or https, a host, no user name or password. */
bool rcpt_webhook_url_is_valid(const char *url);

#endif

/* An HTTP/1.1 server on the libuv loop: routes by prefix, answers now or later.
 *
 * The parser is a library (llhttp); src/http is the only user of it and of OpenSSL's libssl. A
 * handler sees complete requests only: the body is collected, chunks joined, gzip undone, limits
 * kept. The server itself answers a request that breaks a rule; it never reaches a handler. The
 * server does not know the purpose of routes. Call from the loop's thread only; the process ignores
 * SIGPIPE.
 *
 * Codes that the server gives by itself: 400 (not HTTP, no Host, damaged gzip), 401 (bearer token),
 * 404 (no route), 405 (method), 408 (slow), 411 (POST without a length), 413, 414, 415 (encoding),
 * 417, 421 (another name), 429 (rate of one source), 431, 501 (transfer coding), 503 (no memory, no
 * connection), 505.
 */
#ifndef RECEIPTD_HTTP_HTTP_H
#define RECEIPTD_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "receiptd/base/error.h"

struct rcpt_http_server;
struct rcpt_http_request;

enum rcpt_http_method {                    /* bits, for the set that a route takes */
                        RCPT_HTTP_GET = 1, /* brings HEAD with it */
                        RCPT_HTTP_HEAD = 2,
                        RCPT_HTTP_POST = 4,
                        RCPT_HTTP_PUT = 8,
                        RCPT_HTTP_PATCH = 16,
                        RCPT_HTTP_DELETE = 32,
                        RCPT_HTTP_OPTIONS = 64, /* without it the server answers by itself */
                        RCPT_HTTP_OTHER = 128,  /* any other, for a route that answers 405 */
};

struct rcpt_http_text { /* also ends in a NUL, which is not counted */
    const char *bytes;  /* NULL: absent */
    size_t size;
};

/* A complete request. It must be answered exactly once, by rcpt_http_answer or the streaming form,
 * now or later, also when the client is gone by then. */
typedef void (*rcpt_http_handler)(void *context, struct rcpt_http_request *request);

struct rcpt_http_route {
    const char *prefix; /* "/metrics" takes "/metrics", "/metrics/…" and "/metrics?…"; copied; the
                           longest that fits wins */
    unsigned methods;   /* of enum rcpt_http_method */
    const char *bearer_token; /* NULL: open to everybody; copied */
    size_t max_body_bytes;    /* 0: that of the server */
    bool unlimited_rate;      /* rate_per_source does not count here: probes */
    rcpt_http_handler handler;
    void *context;
};

struct rcpt_http_settings { /* 0 or NULL: the default in brackets */
    uv_loop_t *loop;
    const char *name;   /* for logs: "intake", "metrics" */
    const char *listen; /* "127.0.0.1:8080", "[::1]:0", ":8080" for all addresses */
    bool reuse_port;    /* several processes share the address, the kernel spreads connections */
    const char *tls_certificate, *tls_key; /* PEM files, chain and key; NULL: plain HTTP */
    const char *const *trusted_proxies; /* "10.0.0.0/8", "::1": X-Forwarded-For is believed there */
    size_t trusted_proxy_count;
    size_t
        max_connections;   /* [4096] above it the least useful is closed, or the new one gets 503 */
    size_t max_per_source; /* connections of one address [no limit] */
    bool share_connections;   /* above max_connections the address that has most gives up its oldest
                               for one that has fewer, whatever it is owed */
    size_t max_header_bytes;  /* request line and headers [16 KiB] */
    size_t max_body_bytes;    /* as sent and after decompression [1 MiB]; what is decompressed and
                                  above 64 KiB is at most 100 times what was sent */
    size_t max_memory_bytes;  /* bodies of all requests together [64 MiB]: 503 above it */
    unsigned max_pipelined;   /* requests of one connection that are not answered yet [16] */
    unsigned rate_per_source; /* requests a second and address, burst of two seconds [no limit];
                                  see rcpt_http_give_back */
    bool spare_neighbours;    /* rate_per_source does not count for addresses of private networks
                                  that are no trusted proxies */
    bool own_names_only;      /* requests for another name than one of this machine get 421 */
    int64_t header_timeout_ms; /* first byte, or connecting, to end of headers [10 s] */
    int64_t body_timeout_ms;   /* end of headers to end of body [30 s] */
    int64_t idle_timeout_ms;   /* between two requests, the first being answered and taken [75 s] */
    const char *problem_headers; /* the server's own answers are problems (RFC 9457), with these
                                    header lines; borrowed for life [plain text] */
    int64_t write_timeout_ms;    /* the client takes nothing of an answer for so long [20 s] */
};

struct rcpt_http_answer {
    int status;
    const char *content_type; /* NULL: none */
    const char *headers;      /* further lines, each "Name: value\r\n"; NULL: none */
    unsigned retry_after_s;   /* 0: no such header */
    const void *body;         /* borrowed for the call */
    size_t body_size;
};

struct rcpt_http_stats { /* since the start, but for the gauges */
    uint64_t accepted, refused_connections, evicted_connections, requests;
    uint64_t answers[6]; /* by the first digit of the status */
    uint64_t bytes_in, bytes_out, timeouts, rate_limited, tls_failures;
    size_t connections, waiting_requests, body_bytes; /* gauges */
};

/* Copies the settings and reads the certificate. NULL: the address or a file is unusable (FATAL).
 */
RCPT_MUST_CHECK struct rcpt_http_server *rcpt_http_new(const struct rcpt_http_settings *settings,
                                                       struct rcpt_error *error);
/* Before start only. */
void rcpt_http_route(struct rcpt_http_server *server, const struct rcpt_http_route *route);
/* Binds and listens. */
RCPT_MUST_CHECK bool rcpt_http_start(struct rcpt_http_server *server, struct rcpt_error *error);
/* The port that it listens on, also where the settings said 0. */
int rcpt_http_port(const struct rcpt_http_server *server);
/* Reads certificate and key again: new connections get the new one. The old one stays on error. */
RCPT_MUST_CHECK bool rcpt_http_reload_tls(struct rcpt_http_server *server,
                                          struct rcpt_error *error);
/* Takes no new connections, closes idle ones, lets handlers answer open requests and clients take
 * the answers. */
void rcpt_http_drain(struct rcpt_http_server *server);
/* True if no request waits for its answer, and no answer for its client. */
bool rcpt_http_is_idle(const struct rcpt_http_server *server);
/* Closes everything. Handlers may still answer the requests that they hold, but nothing is sent.
 * on_closed is the last call; the memory goes when the last request has been answered. */
void rcpt_http_close(struct rcpt_http_server *server, void (*on_closed)(void *context),
                     void *context);
const struct rcpt_http_stats *rcpt_http_stats(const struct rcpt_http_server *server);

/* ---- what a request says; valid until it is answered ---- */
enum rcpt_http_method rcpt_http_method(const struct rcpt_http_request *request);
/* Without the question mark; `bytes` tells an absent query from an empty one. */
struct rcpt_http_text rcpt_http_query(const struct rcpt_http_request *request);
/* The rest of the path behind the route's prefix: "" or "/…". */
struct rcpt_http_text rcpt_http_rest(const struct rcpt_http_request *request);
struct rcpt_http_text rcpt_http_header(const struct rcpt_http_request *request, const char *name);
size_t rcpt_http_header_count(const struct rcpt_http_request *request);
void rcpt_http_header_at(const struct rcpt_http_request *request, size_t index,
                         struct rcpt_http_text *name, struct rcpt_http_text *value);
struct rcpt_http_text rcpt_http_body(const struct rcpt_http_request *request);
/* Whether only this machine can reach the address to listen on. */
bool rcpt_http_is_loopback(const char *listen);
/* Whether the request asks for one of these names (separated by commas), or for a name of this
 * machine if the server listens on a loopback address. `names` NULL: any name will do if the
 * address is no loopback address. */
bool rcpt_http_asks_for(const struct rcpt_http_request *request, bool is_loopback,
                        const char *names);
/* Address of the client as text: behind a trusted proxy the one that it names. */
const char *rcpt_http_source(const struct rcpt_http_request *request);
/* The connection is that of a trusted proxy, so its other headers may be believed too. */
bool rcpt_http_is_proxied(const struct rcpt_http_request *request);
uint64_t rcpt_http_received_ns(const struct rcpt_http_request *request); /* uv_hrtime */

/* Takes the request out of rate_per_source again, because it was welcome. */
void rcpt_http_give_back(struct rcpt_http_request *request);
/* For routes of unlimited_rate that count by themselves: whether the source of the request is
 * within rate_per_source. Counts one more request of it. */
bool rcpt_http_is_within_rate(const struct rcpt_http_request *request);
void rcpt_http_charge(struct rcpt_http_request *request);
/* The request's connection, to be compared with those of others; NULL: it is gone. */
const void *rcpt_http_connection(const struct rcpt_http_request *request);

/* ---- answers ---- */
/* The header line "Allow" with these methods and OPTIONS. */
void rcpt_http_allow(unsigned methods, char line[96]);
void rcpt_http_answer(struct rcpt_http_request *request, const struct rcpt_http_answer *answer);
/* The same with a line of plain text as body. */
void rcpt_http_answer_text(struct rcpt_http_request *request, int status, const char *text);

/* An answer in pieces (server-sent events): begin, write …, end. `on_gone`, which may be NULL, is
 * called once if the client leaves or is too slow before the end; end must be called all the same.
 * `answer->body` is the first piece. Pieces that a slow client has not taken add up in memory to
 * `max_queued_bytes` at most: then it is cut off. */
void rcpt_http_answer_begin(struct rcpt_http_request *request,
                            const struct rcpt_http_answer *answer, size_t max_queued_bytes,
                            void (*on_gone)(void *context), void *context);
void rcpt_http_answer_write(struct rcpt_http_request *request, const void *bytes, size_t size);
/* Bytes of the answer that the client has not taken yet: write more when there are few. 0: it is
 * gone. */
size_t rcpt_http_answer_queued(const struct rcpt_http_request *request);
/* A piece that many clients get: it is made once, and copied for none of them (TLS aside). Its
 * maker releases it after the last rcpt_http_answer_share. The server keeps it for clients that
 * have not taken all of it. */
struct rcpt_http_piece;
struct rcpt_http_piece *rcpt_http_piece_new(const void *text, size_t size); /* size > 0 */
void rcpt_http_piece_release(struct rcpt_http_piece *piece);
/* Like write, but the piece goes to the socket at once. on_gone may be called from inside. */
void rcpt_http_answer_share(struct rcpt_http_request *request, struct rcpt_http_piece *piece);
/* For a client that stays for long and gets little. Its request is dropped, so do not ask for its
 * fields afterwards. The kernel holds only few unread bytes for the client. */
void rcpt_http_answer_slim(struct rcpt_http_request *request);
/* In place of end: the client sees that something is missing. */
void rcpt_http_answer_abort(struct rcpt_http_request *request);
void rcpt_http_answer_end(struct rcpt_http_request *request);

#endif

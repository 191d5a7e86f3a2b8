/* Shared by the files of src/http. No file outside includes this.
 *
 * server.c      settings, routes, listening, limits of connections, drain and end
 * connection_state.c  its states, deadlines, and worth when there are too many
 * accept.c      the beginning of a connection
 * connection.c  one client: bytes in, answers out in order, and its end
 * parse.c       the parser's callbacks: bytes become a request, or are refused
 * request.c     the memory of a request, and its checks
 * fields.c      method, target, headers and body of a request
 * shared.c      services of the server for the other files
 * answer.c      the way of a request to its handler, and answers, whole or in pieces
 * body.c        collected bodies, within the server's budget; gzip undone
 * source.c      the client's address, and how often it may ask
 * host.c        the host name of a request
 * tls.c         OpenSSL between the socket and the parser
 */
#ifndef RECEIPTD_HTTP_INTERNAL_H
#define RECEIPTD_HTTP_INTERNAL_H

#include <llhttp.h>

#include "receiptd/base/buffer.h"
#include "receiptd/base/log.h"
#include "receiptd/base/network.h"
#include "receiptd/base/text.h"
#include "receiptd/http/http.h"

#define HTTP_MAX_HEADERS 100u
#define HTTP_READ_BYTES  65536u
#define HTTP_HEAD_BYTES  2048u /* first size of a request's head */
#define HTTP_LINGER_MS   2000
#define HTTP_TICK_MS     200

struct http_field { /* of a header line; offsets in the head, each part ends in a NUL */
    uint32_t name, name_size, value, value_size;
};

enum http_coding {
    HTTP_CODING_NONE,
    HTTP_CODING_GZIP,
    HTTP_CODING_DEFLATE,
    HTTP_CODING_UNKNOWN, /* one that we cannot undo, or several */
};
/* Whether a body of so many bytes was sent in too few. */
bool http_is_bomb(size_t plain, size_t sent);
/* `before` and the words of another Content-Encoding. */
enum http_coding http_coding_add(enum http_coding before, const char *value, size_t size);

struct rcpt_http_request {
    struct rcpt_http_server *server;
    struct connection *connection; /* NULL: it is gone */
    struct rcpt_http_request *next;
    const struct http_route *route;
    uint64_t received_ns;
    struct rcpt_address peer, counted_for; /* counted_for: whose rate it counts in */
    struct rcpt_buffer head;               /* target, then names and values */
    struct rcpt_buffer body;
    struct rcpt_buffer answer;                                /* made before its turn came */
    size_t body_reserved;                                     /* counted in the server's budget */
    uint32_t target_size, path, path_size, query, query_size; /* query 0: none */
    struct http_field fields[HTTP_MAX_HEADERS];
    uint32_t field_count, host_count, length_count;
    enum rcpt_http_method method;
    enum http_coding coding;
    int refused; /* status to answer with instead of a handler's; 0: none */
    unsigned refused_retry_s;
    bool in_name, chunked, keep_alive, expects_continue, complete, head_only, head_done, http_1_1;
    bool counts, counted;  /* in the rate of its source: once it is complete; it has been */
    bool handed, answered; /* to the handler; completely, by it */
    bool streaming, chunked_answer, gone_reported;
    size_t max_queued_bytes;
    void (*on_gone)(void *context);
    void *gone_context;
    char source[RCPT_ADDRESS_TEXT]; /* made when asked for */
};

enum http_place {                   /* what the parser reads next */
                  HTTP_PLACE_START, /* the request line, or empty lines before it */
                  HTTP_PLACE_HEAD,  /* lines: of a head, or of the trailer behind the last chunk */
                  HTTP_PLACE_SIZE,  /* the line with the size of a chunk */
                  HTTP_PLACE_CHUNK, /* a chunk and its line end */
                  HTTP_PLACE_BODY,  /* of a known length */
};

enum connection_state {
    CONNECTION_IDLE,      /* the first byte of a request; idle_timeout while nothing is owed */
    CONNECTION_HEAD,      /* the rest of its headers, or of the handshake; header_timeout */
    CONNECTION_BODY,      /* the rest of its body; body_timeout */
    CONNECTION_HELD,      /* answers that are owed, before anything more is read */
    CONNECTION_LINGERING, /* the client's end, all being sent; HTTP_LINGER_MS */
    CONNECTION_CLOSED,    /* its last callback */
};

/* Gateways send raw bytes above 0x7f in targets, which llhttp takes until release 8 only. It reads
 * this byte in their place, which every release takes in the same places. */
#define HTTP_STAND_IN '"'

static inline bool is_raw(char byte)
{
    return ((unsigned char)byte & 0x80) != 0;
}

struct connection {
    struct rcpt_http_server *server;
    struct connection *next, *previous; /* all of the server */
    struct connection *next_dirty;
    uv_tcp_t tcp;
    llhttp_t parser;
    struct tls_session *tls;
    struct rcpt_address address;
    enum connection_state state;
    enum http_place place;
    char last_byte;      /* of the lines around what is sent; 0: none yet */
    char tail[11];       /* of the request line: " HTTP/1.1\r\n" */
    const char *raw;     /* bytes for which the parser gets a stand-in */
    size_t line_bytes;   /* of the lines since the last change of place */
    int64_t deadline_ms; /* of the state; INT64_MAX: none */
    int64_t since_ms;    /* in the state; of one that was never served: since it came */
    int64_t write_deadline_ms;
    struct rcpt_http_request *first, *last; /* not answered completely yet, in order */
    struct rcpt_http_request *incoming;     /* is being parsed */
    unsigned owed;                          /* requests in the list that are complete */
    struct rcpt_buffer held;                /* read and not parsed yet */
    struct rcpt_buffer out;                 /* to be sent by the next flush */
    size_t writing_bytes;                   /* given to libuv */
    size_t queued_bytes;                    /* in libuv, at the last tick */
    bool dirty, reading, close_after, client_ended, end_sent;
    bool served; /* a request of it was complete */
    bool slim;   /* keeps no buffer between two pieces */
};

/* The text, framed as one chunk; an HTTP/1.0 client gets the text alone. */
struct rcpt_http_piece {
    unsigned references;
    size_t text_at, text_size, size;
    char bytes[];
};

struct http_route {
    struct rcpt_http_route is;
    size_t prefix_size;
};

struct source_table;
struct tls_context;

struct rcpt_http_server {
    struct rcpt_http_settings settings;
    struct http_route *routes;
    size_t route_count;
    struct sockaddr_storage listen_address;
    char name[32], listen[128];
    char *certificate, *key;
    struct rcpt_network *trusted;
    size_t trusted_count;
    uv_tcp_t listener;
    uv_prepare_t flush;
    uv_timer_t tick;
    struct connection *connections;
    struct connection *dirty;
    struct source_table *sources;
    struct tls_context *tls;
    char *read_buffer, *plain_buffer;
    struct rcpt_http_stats stats;
    unsigned open_handles, references; /* references: itself until closed, and every request */
    bool listening, draining, closing, proxy_warned;
    int64_t date_at_s;
    char date[40];
    struct rcpt_http_request *spare; /* answered ones, to be used again */
    unsigned spare_count;
    void (*on_closed)(void *context);
    void *closed_context;
    /* Functions of server.c for the files below it. evict_body makes space for a body of
     * `receiver`; false: there is none. */
    bool (*evict_body)(struct rcpt_http_server *server, const struct connection *receiver);
    /* Makes space for this connection by one of a source that has more of them. */
    bool (*evict_share)(struct rcpt_http_server *server, const struct connection *newcomer);
    void (*free)(struct rcpt_http_server *server);
};

/* ---- shared.c ---- */
int64_t http_now(const struct rcpt_http_server *server);
const struct http_route *http_find_route(const struct rcpt_http_server *server, const char *path,
                                         size_t size);
void http_handle_closed(struct rcpt_http_server *server);
void http_release(struct rcpt_http_server *server);
void http_report_closed(struct rcpt_http_server *server);

/* ---- connection_state.c ---- */
void http_connection_set_state(struct connection *connection, enum connection_state state);
/* Call when bytes are to be sent, or more may be parsed: the next flush does it. */
void http_connection_touch(struct connection *connection);
/* The connection ends after the answers that are owed. */
void http_connection_end_after(struct connection *connection);
/* Whether the client's next request or end is awaited, and libuv holds nothing more for it. */
bool http_connection_waits_for_client(const struct connection *connection);
/* The order in which connections are closed when there are too many; CONNECTION_KEPT are not
 * closed. */
enum http_connection_worth {
    CONNECTION_UNPROVEN, /* has not brought one whole request yet */
    CONNECTION_SLOW,     /* has been at its request for long, or takes nothing of its answer */
    CONNECTION_RESTING,  /* asks for nothing now */
    CONNECTION_KEPT,     /* is owed an answer, or at its request */
};
enum http_connection_worth http_connection_worth(const struct connection *connection);
/* Whether the connection has been at its request for long, so that it may be closed for another. */
bool http_connection_is_slow(const struct connection *connection);

/* ---- accept.c ---- */
void http_connection_accept(struct rcpt_http_server *server);

/* ---- connection.c ---- */
void http_connection_read(struct connection *connection); /* from now on */
/* Ends reading and sending; its requests stay with their handlers. */
void http_connection_close(struct connection *connection);
/* Sends the content of `out` now. */
void http_connection_send(struct connection *connection);
/* Sends bytes of a piece now; `out` must be empty, and the connection without TLS. */
void http_connection_send_piece(struct connection *connection, struct rcpt_http_piece *piece,
                                size_t from, size_t size);
void http_connection_flush(struct rcpt_http_server *server);
/* Closes connections that have used up their time. */
void http_connection_expire(struct rcpt_http_server *server);
/* Plain bytes, from the socket or out of TLS. */
void http_connection_parse(struct connection *connection, const char *bytes, size_t size);

/* ---- parse.c ---- */
void http_parse_init(struct connection *connection);
/* How many of these bytes the parser may have next. 0: they break a rule that the parser does not
 * check. */
size_t http_parse_piece(struct connection *connection, const char *bytes, size_t size);
llhttp_errno_t http_parse_execute(struct connection *connection, const char *bytes, size_t piece);
/* The status for the parser's error. */
int http_parse_error_status(const struct connection *connection);

/* ---- request.c ---- */
struct rcpt_http_request *http_request_new(struct connection *connection);
void http_request_free(struct rcpt_http_request *request);
void http_request_refuse(struct rcpt_http_request *request, int status);
/* Finds the request's route, or the reason to refuse it. */
void http_request_check_head(struct rcpt_http_request *request, const llhttp_t *parser);

/* ---- fields.c ---- */
bool http_request_text_is(struct rcpt_http_text text, const char *expected); /* ignoring case */

/* ---- answer.c ---- */
/* The request is complete: hands it to the handler, or sends the refusal. */
void http_request_complete(struct rcpt_http_request *request);
/* Sends what the first requests of the list have ready. */
void http_answer_advance(struct connection *connection);
/* The client is gone: calls on_gone of a streamed answer. */
void http_answer_report_gone(struct rcpt_http_request *request);

/* ---- body.c ---- */
/* 0, or the status with which the request is refused. */
int http_body_append(struct rcpt_http_request *request, const char *bytes, size_t size);
int http_body_decode(struct rcpt_http_request *request);
void http_body_free(struct rcpt_http_request *request);
size_t http_body_limit(const struct rcpt_http_request *request);

/* ---- source.c ---- */
/* The client's address; behind a trusted proxy the one that the proxy names. */
struct rcpt_address http_source_of(const struct rcpt_http_request *request);
struct source_table *http_source_table_new(void);
void http_source_table_free(struct source_table *table);
/* http_source_connect() counts one more connection of this address; false: it has as many as it
 * may. http_source_disconnect() counts one less. */
bool http_source_connect(struct rcpt_http_server *server, const struct rcpt_address *address);
void http_source_disconnect(struct rcpt_http_server *server, const struct rcpt_address *address);
/* The number of connections that the address has now. */
uint32_t http_source_connections(struct rcpt_http_server *server,
                                 const struct rcpt_address *address);
/* Whether the address belongs to our own network, and to no trusted proxy. */
bool http_source_is_near(const struct rcpt_http_server *server, const struct rcpt_address *address);
/* False: this address has asked too often; `wait_s` says when to come again. */
bool http_source_admit(struct rcpt_http_server *server, const struct rcpt_address *address,
                       unsigned *wait_s);
/* `tokens` 1: a request of the address counts; -1: it does not count after all. */
void http_source_charge(struct rcpt_http_server *server, const struct rcpt_address *address,
                        int tokens);

/* ---- tls.c ---- */
RCPT_MUST_CHECK struct tls_context *http_tls_context_new(const char *certificate, const char *key,
                                                         struct rcpt_error *error);
void http_tls_context_free(struct tls_context *context);
struct tls_session *http_tls_session_new(struct tls_context *context);
void http_tls_session_free(struct tls_session *session);
/* Takes bytes from the socket and gives plain ones to `take`. False: the connection is broken. */
typedef void http_take(struct connection *connection, const char *bytes, size_t size);
RCPT_MUST_CHECK bool http_tls_receive(struct connection *connection, const char *bytes, size_t size,
                                      http_take *take);
/* Replaces the plain bytes in `out` by what goes to the socket. */
void http_tls_encrypt(struct connection *connection);
/* Leaves the session's goodbye to be encrypted and sent. */
void http_tls_say_goodbye(struct connection *connection);

#endif

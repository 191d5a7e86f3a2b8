/* A request between parser and handler: its memory (a free list), and the checks of its head.
 *
 * The parser calls http_request_check_head when the head is complete. The first refusal counts:
 * later checks do not overwrite it. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

#define SPARE_REQUESTS  256u
#define KEPT_HEAD_BYTES 8192u

/* ---- memory ---- */

/* Requests are used again with the memory of their heads: a steady load allocates nothing. */
static struct rcpt_http_request *take_spare(struct rcpt_http_server *server)
{
    struct rcpt_http_request *request = server->spare;
    if (request == NULL) {
        request = rcpt_calloc(1, sizeof(*request));
        rcpt_buffer_reserve(&request->head, HTTP_HEAD_BYTES);
        return request;
    }
    server->spare = request->next;
    server->spare_count--;
    request->next = NULL;
    return request;
}

/* Appends to the connection's list: answers leave in this order. */
struct rcpt_http_request *http_request_new(struct connection *connection)
{
    struct rcpt_http_server *server = connection->server;
    struct rcpt_http_request *request = take_spare(server);
    request->server = server;
    request->connection = connection;
    request->peer = connection->address;
    request->received_ns = uv_hrtime();
    request->method = RCPT_HTTP_GET;
    server->references++;
    if (connection->last != NULL)
        connection->last->next = request;
    else
        connection->first = request;
    connection->last = request;
    return request;
}

/* Clears everything but the fields, which are 1600 bytes and are overwritten anyway. */
static void wipe(struct rcpt_http_request *request)
{
    struct rcpt_buffer head = request->head;
    if (head.capacity > KEPT_HEAD_BYTES) {
        rcpt_buffer_free(&head);
        rcpt_buffer_reserve(&head, HTTP_HEAD_BYTES);
    }
    head.size = 0;
    memset(request, 0, offsetof(struct rcpt_http_request, fields));
    size_t rest = offsetof(struct rcpt_http_request, field_count);
    memset((char *)request + rest, 0, sizeof(*request) - rest);
    request->head = head;
}

/* Each request holds the server: the last one may free it. */
void http_request_free(struct rcpt_http_request *request)
{
    struct rcpt_http_server *server = request->server;
    http_body_free(request);
    rcpt_buffer_free(&request->answer);
    if (server->spare_count < SPARE_REQUESTS) {
        wipe(request);
        request->next = server->spare;
        server->spare = request;
        server->spare_count++;
    } else {
        rcpt_buffer_free(&request->head);
        free(request);
    }
    http_release(server);
}

/* ---- where it comes from ---- */

/* The text is made at the first call and kept in the request. */
const char *rcpt_http_source(const struct rcpt_http_request *request)
{
    char *text = ((struct rcpt_http_request *)(uintptr_t)request)->source;
    if (text[0] == '\0') {
        struct rcpt_address address = http_source_of(request);
        rcpt_address_text(&address, text);
    }
    return text;
}

const void *rcpt_http_connection(const struct rcpt_http_request *request)
{
    return request->connection;
}

uint64_t rcpt_http_received_ns(const struct rcpt_http_request *request)
{
    return request->received_ns;
}

/* ---- checks before the handler ---- */

/* The first reason stays. */
void http_request_refuse(struct rcpt_http_request *request, int status)
{
    if (request->refused == 0)
        request->refused = status;
}

static enum rcpt_http_method method_of(unsigned parsed)
{
    switch (parsed) {
    case HTTP_GET:
        return RCPT_HTTP_GET;
    case HTTP_HEAD:
        return RCPT_HTTP_HEAD;
    case HTTP_POST:
        return RCPT_HTTP_POST;
    case HTTP_PUT:
        return RCPT_HTTP_PUT;
    case HTTP_PATCH:
        return RCPT_HTTP_PATCH;
    case HTTP_DELETE:
        return RCPT_HTTP_DELETE;
    case HTTP_OPTIONS:
        return RCPT_HTTP_OPTIONS;
    default:
        return RCPT_HTTP_OTHER;
    }
}

/* Path and query of the target. It is "/path?query", "http://host/path?query" (a proxy's form), or
 * "*" (OPTIONS of the server), whose path is "*". llhttp has checked the characters. A fragment,
 * which no client should send, belongs to neither. */
static bool split_target(struct rcpt_http_request *request)
{
    const char *target = request->head.bytes, *path = target;
    if (target[0] != '/' && target[0] != '*') {
        const char *host = strstr(target, "://");
        if (host == NULL || strcspn(host + 3, "/?#") == 0)
            return false;
        path = host + 3 + strcspn(host + 3, "/?#");
    }
    request->path = (uint32_t)(path - target);
    request->path_size = (uint32_t)strcspn(path, "?#");
    const char *mark = path + request->path_size;
    if (*mark == '?') {
        request->query = (uint32_t)(mark + 1 - target);
        request->query_size = (uint32_t)strcspn(mark + 1, "#");
    }
    return true;
}

/* Codings that we cannot undo get 415. */
static void note_coding(struct rcpt_http_request *request, struct rcpt_http_text value)
{
    request->coding = http_coding_add(request->coding, value.bytes, value.size);
    if (request->coding == HTTP_CODING_UNKNOWN)
        http_request_refuse(request, 415);
}

/* The headers that concern the server itself. Everything that makes the length of a body ambiguous
 * is refused, though llhttp refuses most of it before: a proxy in front may have chosen the other
 * meaning (request smuggling). */
static void note_fields(struct rcpt_http_request *request)
{
    for (uint32_t i = 0; i < request->field_count; i++) {
        struct rcpt_http_text name, value;
        rcpt_http_header_at(request, i, &name, &value);
        if (http_request_text_is(name, "host")) {
            request->host_count++;
        } else if (http_request_text_is(name, "content-encoding")) {
            note_coding(request, value);
        } else if (http_request_text_is(name, "transfer-encoding")) {
            if (!http_request_text_is(value, "chunked"))
                http_request_refuse(request, 501);
            else if (request->chunked) /* in two lines */
                http_request_refuse(request, 400);
            request->chunked = true;
        } else if (http_request_text_is(name, "content-length")) {
            request->length_count++;
        } else if (http_request_text_is(name, "expect")) {
            request->expects_continue = true;
            if (!http_request_text_is(value, "100-continue"))
                http_request_refuse(request, 417);
        }
    }
}

/* In constant time, so that the time of an answer says nothing about the token. */
static bool equal_secrets(const char *left, const char *right, size_t size)
{
    unsigned char difference = 0;
    for (size_t i = 0; i < size; i++)
        difference |= (unsigned char)(left[i] ^ right[i]);
    return difference == 0;
}

static bool is_authorised(const struct rcpt_http_request *request)
{
    const char *token = request->route->is.bearer_token;
    if (token == NULL)
        return true;
    struct rcpt_http_text given = rcpt_http_header(request, "authorization");
    size_t size = strlen(token);
    return given.bytes != NULL && given.size == size + 7 &&
           strncasecmp(given.bytes, "Bearer ", 7) == 0 &&
           equal_secrets(given.bytes + 7, token, size);
}

/* Checks the rules of RFC 9112 for every request: one Host, one length, a version that we speak. */
static void check_form(struct rcpt_http_request *request, const llhttp_t *parser)
{
    bool sends = request->method & (RCPT_HTTP_POST | RCPT_HTTP_PUT | RCPT_HTTP_PATCH);
    if (parser->http_major != 1)
        http_request_refuse(request, 505);
    if (!split_target(request) || request->host_count > 1 || request->length_count > 1 ||
        (request->chunked && request->length_count > 0) ||
        (request->host_count == 0 && parser->http_minor >= 1) ||
        (request->chunked && parser->http_minor == 0))
        http_request_refuse(request, 400);
    /* Without a length there is no body (RFC 9112, section 6.3): the query alone may be meant. */
    if (sends && !request->chunked && request->length_count == 0 && request->query_size == 0)
        http_request_refuse(request, 411);
    if (request->refused == 0 && request->server->settings.own_names_only &&
        !rcpt_http_asks_for(request, true, NULL))
        http_request_refuse(request, 421);
}

/* Authorisation comes last: a wrong method or path says nothing about the token. */
static void check_route(struct rcpt_http_request *request, const llhttp_t *parser)
{
    const char *path = request->head.bytes + request->path;
    request->route = http_find_route(request->server, path, request->path_size);
    bool takes = request->route != NULL && (request->route->is.methods & (unsigned)request->method);
    if (parser->method == HTTP_OPTIONS && !takes) {
        if (request->route == NULL && !(request->path_size == 1 && path[0] == '*'))
            http_request_refuse(request, 404);
        http_request_refuse(request, 204);
    } else if (request->route == NULL) {
        http_request_refuse(request, 404);
    } else if (!takes) {
        http_request_refuse(request, 405);
    } else if (!is_authorised(request)) {
        http_request_refuse(request, 401);
    }
}

/* A proxy that is not named as trusted makes one source of all its clients. Logged once per server.
 */
static void warn_of_proxy(struct rcpt_http_request *request)
{
    struct rcpt_http_server *server = request->server;
    bool speaks = memcmp(&request->counted_for, &request->peer, sizeof(request->peer)) == 0;
    if (server->proxy_warned || !speaks ||
        rcpt_http_header(request, "x-forwarded-for").bytes == NULL)
        return;
    server->proxy_warned = true;
    rcpt_log_warn("http",
                  "%s: %s forwards requests of others and is no trusted proxy: X-Forwarded-For is "
                  "ignored; HINT: name it in %s.trusted_proxies",
                  server->name, rcpt_http_source(request), server->name);
}

/* Only asks here: the request is charged when it is complete (answer.c), so that unfinished ones
 * of others with the same address cannot use the rate up. */
static void check_rate(struct rcpt_http_request *request)
{
    const struct rcpt_http_server *server = request->server;
    if (server->settings.rate_per_source == 0 || request->refused != 0 ||
        request->route->is.unlimited_rate)
        return;
    request->counted_for = http_source_of(request);
    if (server->settings.spare_neighbours && http_source_is_near(server, &request->counted_for)) {
        warn_of_proxy(request);
        return;
    }
    request->counts =
        http_source_admit(request->server, &request->counted_for, &request->refused_retry_s);
    if (!request->counts) {
        request->server->stats.rate_limited++;
        http_request_refuse(request, 429);
    }
}

/* For handlers that know better than the address who the client is. */
void rcpt_http_give_back(struct rcpt_http_request *request)
{
    if (!request->counted)
        return;
    request->counted = false;
    http_source_charge(request->server, &request->counted_for, -1);
}

bool rcpt_http_is_within_rate(const struct rcpt_http_request *request)
{
    const struct rcpt_address source = http_source_of(request);
    unsigned wait_s;
    return http_source_admit(request->server, &source, &wait_s);
}

void rcpt_http_charge(struct rcpt_http_request *request)
{
    const struct rcpt_address source = http_source_of(request);
    http_source_charge(request->server, &source, 1);
}

/* A declared length is refused before its body comes, and "100 Continue" is sent only for a body
 * that will be read. */
static void check_size(struct rcpt_http_request *request, const llhttp_t *parser)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct connection *connection = request->connection;
    if (parser->content_length > http_body_limit(request))
        http_request_refuse(request, 413);
    if (request->refused == 0 && request->expects_continue && parser->http_minor >= 1 &&
        connection->first == request) {
        rcpt_buffer_append(&connection->out, go_on, sizeof(go_on) - 1);
        http_connection_touch(connection);
    }
}

/* The order of the checks is the order of the statuses: form before route, route before rate. */
void http_request_check_head(struct rcpt_http_request *request, const llhttp_t *parser)
{
    request->method = method_of(parser->method);
    request->http_1_1 = parser->http_minor >= 1;
    request->head_only = request->method == RCPT_HTTP_HEAD;
    note_fields(request);
    if (parser->method == HTTP_CONNECT) /* its target is no path either */
        http_request_refuse(request, 405);
    check_form(request, parser);
    if (request->refused == 0)
        check_route(request, parser);
    check_rate(request);
    check_size(request, parser);
}

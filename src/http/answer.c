/* Writes answers: head and body, whole or in pieces. Answers leave in the order of the requests:
 * the first in line writes to the connection's `out`, the others to a buffer of their own until
 * http_answer_advance() reaches them.
 *
 * Handlers answer through rcpt_http_answer*, the server itself through http_answer_refusal(). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

#include "receiptd/base/error.h"

#define SLIM_KERNEL_BYTES 16384 /* that a slim client may leave unread in this machine's kernel */

static const char *reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < RCPT_COUNT_OF(phrases); i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Other";
}

/* Made once a second: it is in every answer. */
static const char *date_line(struct rcpt_http_server *server)
{
    int64_t now_s = http_now(server) / 1000;
    if (server->date[0] == '\0' || server->date_at_s != now_s) {
        time_t now = time(NULL);
        struct tm parts;
        gmtime_r(&now, &parts);
        strftime(server->date, sizeof(server->date), "%a, %d %b %Y %H:%M:%S GMT", &parts);
        server->date_at_s = now_s;
    }
    return server->date;
}

/* Formatting costs as much as parsing the request did: numbers are written by hand. */
static void append_number(struct rcpt_buffer *out, size_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    rcpt_buffer_append(out, digits + at, sizeof(digits) - at);
}

/* `name` includes the colon and the blank. */
static void append_field(struct rcpt_buffer *out, const char *name, const char *value)
{
    rcpt_buffer_append_text(out, name);
    rcpt_buffer_append_text(out, value);
    rcpt_buffer_append_text(out, "\r\n");
}

static void append_number_field(struct rcpt_buffer *out, const char *name, size_t value)
{
    rcpt_buffer_append_text(out, name);
    append_number(out, value);
    rcpt_buffer_append_text(out, "\r\n");
}

RCPT_PRINTF(2, 3)
/* For short lines of the server's own: they always fit. */
static void append_line(struct rcpt_buffer *out, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    RCPT_ASSERT(size > 0 && size < (int)sizeof(line));
    rcpt_buffer_append(out, line, (size_t)size);
}

/* A stream to an HTTP/1.0 client has neither length nor chunks: the end of the connection ends
 * it. */
static void write_head(struct rcpt_http_request *request, struct rcpt_buffer *out,
                       const struct rcpt_http_answer *answer)
{
    bool bodiless = answer->status == 204 || answer->status == 304;
    rcpt_buffer_append_text(out, "HTTP/1.1 ");
    append_number(out, (size_t)answer->status);
    append_field(out, " ", reason_phrase(answer->status));
    append_field(out, "Date: ", date_line(request->server));
    if (answer->content_type != NULL)
        append_field(out, "Content-Type: ", answer->content_type);
    if (answer->retry_after_s > 0)
        append_number_field(out, "Retry-After: ", answer->retry_after_s);
    if (answer->headers != NULL)
        rcpt_buffer_append_text(out, answer->headers);
    if (request->chunked_answer)
        rcpt_buffer_append_text(out, "Transfer-Encoding: chunked\r\n");
    else if (!bodiless && !request->streaming)
        append_number_field(out, "Content-Length: ", answer->body_size);
    if (request->next == NULL && request->connection->close_after)
        rcpt_buffer_append_text(out, "Connection: close\r\n");
    else if (!request->http_1_1)
        rcpt_buffer_append_text(out, "Connection: keep-alive\r\n");
    rcpt_buffer_append_text(out, "\r\n");
}

/* The first request in line writes to the connection at once, the others wait for their turn. */
static struct rcpt_buffer *place(struct rcpt_http_request *request)
{
    struct connection *connection = request->connection;
    return connection->first == request ? &connection->out : &request->answer;
}

/* Counts also answers whose client is gone. */
static void count(struct rcpt_http_request *request, int status)
{
    struct rcpt_http_stats *stats = &request->server->stats;
    RCPT_ASSERT(status >= 100 && status < 600);
    stats->answers[status / 100]++;
}

/* False: the client is gone, nothing is to be sent. */
static bool begin(struct rcpt_http_request *request, const struct rcpt_http_answer *answer)
{
    struct connection *connection = request->connection;
    count(request, answer->status);
    if (connection == NULL)
        return false;
    if (!request->keep_alive || request->server->draining)
        http_connection_end_after(connection);
    write_head(request, place(request), answer);
    http_connection_touch(connection);
    return true;
}

/* A request without a connection has no list that frees it. */
static void finish(struct rcpt_http_request *request)
{
    if (request->handed)
        request->server->stats.waiting_requests--;
    request->answered = true;
    if (request->connection == NULL)
        http_request_free(request);
}

/* HEAD gets the length of the body that GET would get. */
void rcpt_http_answer(struct rcpt_http_request *request, const struct rcpt_http_answer *answer)
{
    RCPT_ASSERT(request->complete && !request->answered && !request->streaming);
    if (begin(request, answer) && !request->head_only && answer->status != 204)
        rcpt_buffer_append(place(request), answer->body, answer->body_size);
    finish(request);
}

void rcpt_http_answer_text(struct rcpt_http_request *request, int status, const char *text)
{
    struct rcpt_http_answer answer = {
        .status = status,
        .content_type = "text/plain; charset=utf-8",
        .body = text,
        .body_size = strlen(text),
    };
    rcpt_http_answer(request, &answer);
}

/* ---- the server's own ---- */

/* The header of 405 and of OPTIONS. GET brings HEAD with it. */
void rcpt_http_allow(unsigned methods, char line[96])
{
    static const struct {
        unsigned method;
        const char *name;
    } names[] = {
        {RCPT_HTTP_GET, ", GET"}, {RCPT_HTTP_HEAD, ", HEAD"},   {RCPT_HTTP_POST, ", POST"},
        {RCPT_HTTP_PUT, ", PUT"}, {RCPT_HTTP_PATCH, ", PATCH"}, {RCPT_HTTP_DELETE, ", DELETE"},
    };
    if (methods & RCPT_HTTP_GET)
        methods |= RCPT_HTTP_HEAD;
    size_t used = (size_t)snprintf(line, 96, "Allow: OPTIONS");
    for (size_t i = 0; i < RCPT_COUNT_OF(names); i++)
        if (methods & names[i].method)
            used += (size_t)snprintf(line + used, 96 - used, "%s", names[i].name);
    snprintf(line + used, 96 - used, "\r\n");
}

/* The advice to the client about a refusal. */
static const char *refusal_detail(int status)
{
    static const struct {
        int status;
        const char *detail;
    } details[] = {
        {400,
         "the bytes are no request of HTTP/1.1: one Host, one length, a body that can be read"},
        {401, "the header Authorization is to have the token: Bearer TOKEN"},
        {404, "there is no such path"},
        {405, "the header Allow names the methods of this path"},
        {408, "the request took too long to come: send it again"},
        {411, "a body needs the header Content-Length, or chunks"},
        {413, "the body is larger than it may be here"},
        {414, "the address is longer than it may be here"},
        {415, "the body is to be packed by gzip or deflate, or not at all"},
        {417, "of Expect only 100-continue is known"},
        {421, "the Host header names another machine"},
        {429, "too many requests came from this address: repeat after the time in Retry-After"},
        {431, "the headers are longer than they may be here"},
        {501, "the only known Transfer-Encoding is chunked"},
        {503, "the server is overloaded: repeat after the time in Retry-After"},
        {505, "the server speaks HTTP/1.0 and HTTP/1.1"},
    };
    for (size_t i = 0; i < RCPT_COUNT_OF(details); i++)
        if (details[i].status == status)
            return details[i].detail;
    return "the server refused the request";
}

/* The reason phrase as a word: "not_found". */
static void refusal_code(int status, char code[40])
{
    const char *phrase = reason_phrase(status);
    size_t size = 0;
    for (; size < 39 && phrase[size] != '\0'; size++)
        code[size] = (char)(phrase[size] == ' ' ? '_' : phrase[size] | 0x20);
    code[size] = '\0';
}

/* A line of text, or a problem where the server's users read those. Returns its type. */
static const char *refusal_body(const struct rcpt_http_server *server, int status, char text[320])
{
    char code[40];
    if (server->settings.problem_headers == NULL) {
        snprintf(text, 320, "%s\n", reason_phrase(status));
        return "text/plain; charset=utf-8";
    }
    refusal_code(status, code);
    snprintf(text, 320,
             "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"code\":\"%s\","
             "\"detail\":\"%s\"}",
             reason_phrase(status), status, code, refusal_detail(status));
    return "application/problem+json";
}

/* A 503 without a time of its own asks to come back after a second. */
static void refuse(struct rcpt_http_request *request)
{
    const char *more = request->server->settings.problem_headers;
    char line[96] = "", headers[1024], text[320];
    int status = request->refused;
    if (status == 405 || status == 204)
        rcpt_http_allow(request->route != NULL ? request->route->is.methods : 0, line);
    else if (status == 401)
        snprintf(line, sizeof(line), "WWW-Authenticate: Bearer\r\n");
    else if (status == 415)
        snprintf(line, sizeof(line), "Accept-Encoding: gzip, deflate\r\n");
    int size = snprintf(headers, sizeof(headers), "%s%s", line, more != NULL ? more : "");
    RCPT_ASSERT(size >= 0 && size < (int)sizeof(headers));
    const char *type = refusal_body(request->server, status, text);
    struct rcpt_http_answer answer = {
        .status = status,
        .content_type = status == 204 ? NULL : type,
        .headers = headers,
        .retry_after_s =
            status == 503 && request->refused_retry_s == 0 ? 1 : request->refused_retry_s,
        .body = text,
        .body_size = status == 204 ? 0 : strlen(text),
    };
    rcpt_http_answer(request, &answer);
}

/* The handler may answer at once, and so end the connection. */
void http_request_complete(struct rcpt_http_request *request)
{
    struct connection *connection = request->connection;
    request->complete = true;
    connection->incoming = NULL;
    connection->owed++;
    request->server->stats.requests++;
    if (request->counts) {
        request->counted = true;
        http_source_charge(request->server, &request->counted_for, 1);
    }
    if (request->refused == 0)
        request->refused = http_body_decode(request);
    if (request->refused != 0) {
        refuse(request);
        return;
    }
    request->handed = true;
    request->server->stats.waiting_requests++;
    request->route->is.handler(request->route->is.context, request);
}

/* ---- in order ---- */

static void append_and_free(struct rcpt_buffer *out, struct rcpt_buffer *more)
{
    rcpt_buffer_append(out, more->bytes, more->size);
    rcpt_buffer_free(more);
}

/* Moves finished answers to `out` and frees their requests, up to the first that is not finished;
 * of that one it moves the part that is ready. */
void http_answer_advance(struct connection *connection)
{
    struct rcpt_http_request *request = connection->first;
    while (request != NULL) {
        append_and_free(&connection->out, &request->answer);
        if (!request->answered)
            return;
        connection->first = request->next;
        connection->owed--;
        http_request_free(request);
        request = connection->first;
    }
    connection->last = NULL;
    if (connection->state == CONNECTION_IDLE) /* nothing is owed: its time begins */
        http_connection_set_state(connection, CONNECTION_IDLE);
}

/* ---- in pieces ---- */

/* Once per stream: its handler stops writing and calls end. */
void http_answer_report_gone(struct rcpt_http_request *request)
{
    if (!request->streaming || request->gone_reported || request->on_gone == NULL)
        return;
    request->gone_reported = true;
    request->on_gone(request->gone_context);
}

void rcpt_http_answer_begin(struct rcpt_http_request *request,
                            const struct rcpt_http_answer *answer, size_t max_queued_bytes,
                            void (*on_gone)(void *context), void *context)
{
    RCPT_ASSERT(request->complete && !request->answered && !request->streaming);
    request->streaming = true;
    request->max_queued_bytes = max_queued_bytes;
    request->on_gone = on_gone;
    request->gone_context = context;
    /* HTTP/1.0 knows no chunks: the end of the connection ends the body. */
    if (request->connection != NULL) {
        request->chunked_answer = request->http_1_1;
        if (!request->http_1_1)
            request->keep_alive = false;
    }
    begin(request, answer);
    rcpt_http_answer_write(request, answer->body, answer->body_size);
}

/* A client that does not take the pieces is cut off at its limit instead of filling the memory. */
void rcpt_http_answer_write(struct rcpt_http_request *request, const void *bytes, size_t size)
{
    struct connection *connection = request->connection;
    RCPT_ASSERT(request->streaming && !request->answered);
    if (connection == NULL || size == 0 || request->head_only)
        return;
    struct rcpt_buffer *out = place(request);
    if (out->size + connection->writing_bytes + size > request->max_queued_bytes) {
        http_connection_close(connection);
        return;
    }
    if (request->chunked_answer)
        append_line(out, "%zx\r\n", size);
    rcpt_buffer_append(out, bytes, size);
    if (request->chunked_answer)
        rcpt_buffer_append_text(out, "\r\n");
    http_connection_touch(connection);
}

/* Answers before this one count as well: it is behind them. */
size_t rcpt_http_answer_queued(const struct rcpt_http_request *request)
{
    const struct connection *connection = request->connection;
    if (connection == NULL)
        return 0;
    return connection->out.size + connection->writing_bytes + request->answer.size;
}

/* Closing the connection leaves the last chunk out. on_gone is not called: the handler knows. */
void rcpt_http_answer_abort(struct rcpt_http_request *request)
{
    RCPT_ASSERT(request->streaming && !request->answered);
    request->gone_reported = true;
    if (request->connection != NULL)
        http_connection_close(request->connection);
    finish(request);
}

/* Must be called also after on_gone: the request lives until then. */
void rcpt_http_answer_end(struct rcpt_http_request *request)
{
    struct connection *connection = request->connection;
    RCPT_ASSERT(request->streaming && !request->answered);
    if (connection != NULL) {
        if (request->chunked_answer && !request->head_only)
            rcpt_buffer_append_text(place(request), "0\r\n\r\n");
        http_connection_touch(connection);
    }
    finish(request);
}

/* ---- pieces for many ---- */

/* Made with its frame, so that sending it is one call. */
struct rcpt_http_piece *rcpt_http_piece_new(const void *text, size_t size)
{
    char head[24];
    RCPT_ASSERT(size > 0);
    size_t head_size = (size_t)snprintf(head, sizeof(head), "%zx\r\n", size);
    struct rcpt_http_piece *piece = rcpt_malloc(sizeof(*piece) + head_size + size + 2);
    *piece = (struct rcpt_http_piece){
        .references = 1, .text_at = head_size, .text_size = size, .size = head_size + size + 2};
    memcpy(piece->bytes, head, head_size);
    memcpy(piece->bytes + head_size, text, size);
    memcpy(piece->bytes + head_size + size, "\r\n", 2);
    return piece;
}

/* Unsent rests hold it, too. */
void rcpt_http_piece_release(struct rcpt_http_piece *piece)
{
    if (--piece->references == 0)
        free(piece);
}

/* TLS makes different bytes for each client, and earlier bytes must go first. In both cases the
 * piece is copied like any other. */
void rcpt_http_answer_share(struct rcpt_http_request *request, struct rcpt_http_piece *piece)
{
    struct connection *connection = request->connection;
    RCPT_ASSERT(request->streaming && !request->answered);
    if (connection == NULL || request->head_only)
        return;
    if (connection->tls != NULL || connection->first != request || connection->out.size > 0) {
        rcpt_http_answer_write(request, piece->bytes + piece->text_at, piece->text_size);
        return;
    }
    /* Only the frame of a chunk stands before and behind the text. */
    if (request->chunked_answer)
        http_connection_send_piece(connection, piece, 0, piece->size);
    else
        http_connection_send_piece(connection, piece, piece->text_at, piece->text_size);
}

/* A handler that streams has read its request. Bytes that the kernel would hold for each of a
 * thousand clients that do not read are memory of this machine, too. */
void rcpt_http_answer_slim(struct rcpt_http_request *request)
{
    struct connection *connection = request->connection;
    int bytes = SLIM_KERNEL_BYTES;
    RCPT_ASSERT(request->streaming && !request->answered);
    rcpt_buffer_free(&request->head);
    request->field_count = 0;
    request->path_size = request->query_size = request->query = request->target_size = 0;
    if (connection == NULL)
        return;
    connection->slim = true;
    uv_send_buffer_size((uv_handle_t *)&connection->tcp, &bytes);
}

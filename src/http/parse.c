/* Turns bytes into a request, or finds the reason why they are none: the callbacks of llhttp.
 *
 * connection.c hands its input over in pieces: http_parse_piece cuts them (one line of a head, one
 * line with a chunk's size, or data), then llhttp_execute reads each. A proxy in front may read a
 * request differently from llhttp, so that a second request could be smuggled past its checks. So
 * this file refuses forms on which readers disagree, before llhttp sees them: continued lines, line
 * ends other than CR LF, extensions of chunks, blanks in names, other protocols.
 *
 * A callback that returns an error ends the parsing and the connection; the status that the client
 * gets was noted in the request before. */
#include <ctype.h>
#include <string.h>

#include "internal.h"

#include "receiptd/base/error.h"

/* Limit of a head, or of one chunk's lines with the trailer: llhttp itself has no limit, and blanks
 * around values do not count in max_header_bytes. */
#define MAX_LINE_BYTES    (80u * 1024)
#define MAX_SKIPPED_BYTES 65536u /* of a refused request's body */

static struct rcpt_http_request *incoming(const llhttp_t *parser)
{
    return ((struct connection *)parser->data)->incoming;
}

/* ---- lines, before the parser sees them ---- */

/* CR and LF stand together and at the end. `bytes` is a line up to its LF, or a part of one; `last`
 * is the byte before it. */
static bool has_good_end(char last, const char *bytes, size_t size)
{
    const char *cr = memchr(bytes, '\r', size);
    if (last == '\r')
        return bytes[0] == '\n';
    if (cr == NULL)
        return bytes[size - 1] != '\n';
    size_t behind = size - (size_t)(cr - bytes) - 1;
    return behind == 0 || (behind == 1 && cr[1] == '\n');
}

/* A line that begins with a blank continues the one before for some readers only; one that begins
 * with a colon has no name. */
static bool is_good_line(char last, const char *bytes, size_t size)
{
    return (last != '\n' || memchr(" \t:", bytes[0], 3) == NULL) && has_good_end(last, bytes, size);
}

static bool is_line_end(char last, char byte)
{
    return last == '\r' ? byte == '\n' : byte == '\r';
}

/* Hexadecimal digits, CR, LF, and nothing else. */
static bool is_good_size(char last, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; last = bytes[i++])
        if (!is_line_end(last, bytes[i]) && (last == '\r' || !isxdigit((unsigned char)bytes[i])))
            return false;
    return true;
}

/* Keeps the end of the request line, which may come in several pieces, for is_http. Behind it
 * header lines follow; empty lines before it do not count. */
static void keep_tail(struct connection *connection, const char *bytes, size_t size)
{
    size_t more = size < sizeof(connection->tail) ? size : sizeof(connection->tail);
    size_t kept = sizeof(connection->tail) - more;
    memmove(connection->tail, connection->tail + more, kept);
    memcpy(connection->tail + kept, bytes + size - more, more);
    if (bytes[size - 1] != '\n')
        return;
    if (connection->tail[sizeof(connection->tail) - 3] != '\0')
        connection->place = HTTP_PLACE_HEAD;
    else
        memset(connection->tail, 0, sizeof(connection->tail));
}

/* llhttp also takes "POST /a RTSP/1.0" and "SOURCE /a ICE/1.0", and reports 1.0 for both. */
static bool is_http(const struct connection *connection)
{
    return memcmp(connection->tail, " HTTP/", 6) == 0;
}

static bool is_within_limit(struct connection *connection, size_t size)
{
    connection->line_bytes += size;
    if (connection->line_bytes <= MAX_LINE_BYTES)
        return true;
    if (connection->incoming != NULL)
        http_request_refuse(connection->incoming, 431);
    return false;
}

/* The number of leading bytes that the parser gets as they are, or that it does not get so. */
static size_t run_of_bytes(const char *bytes, size_t size)
{
    size_t run = 1;
    while (run < size && is_raw(bytes[run]) == is_raw(bytes[0]))
        run++;
    return run;
}

size_t http_parse_piece(struct connection *connection, const char *bytes, size_t size)
{
    uint64_t left = connection->parser.content_length; /* llhttp counts it down */
    bool has_data =
        connection->place == HTTP_PLACE_BODY || (connection->place == HTTP_PLACE_CHUNK && left > 0);
    if (has_data)
        return size < left ? size : (size_t)left;
    const char *end = memchr(bytes, '\n', size);
    size_t piece = end != NULL ? (size_t)(end - bytes) + 1 : size;
    bool good = true;
    switch (connection->place) {
    case HTTP_PLACE_START:
        piece = run_of_bytes(bytes, piece);
        good = has_good_end(connection->last_byte, bytes, piece);
        keep_tail(connection, bytes, piece);
        break;
    case HTTP_PLACE_HEAD:
        good = is_good_line(connection->last_byte, bytes, piece);
        break;
    case HTTP_PLACE_SIZE:
        good = is_good_size(connection->last_byte, bytes, piece);
        break;
    case HTTP_PLACE_CHUNK: /* its line end */
        piece = 1;
        good = is_line_end(connection->last_byte, bytes[0]);
        break;
    case HTTP_PLACE_BODY:
        break;
    }
    connection->last_byte = bytes[piece - 1];
    return good && is_within_limit(connection, piece) ? piece : 0;
}

/* Size of a method at the beginning of a request line that the parser would not know; 0: there is
 * none, or the line is not all here. */
static size_t unknown_method(const struct connection *connection, const char *bytes, size_t piece)
{
#define NAME(number, name, string) #string,
    static const char *const known[] = {HTTP_METHOD_MAP(NAME)};
#undef NAME
    size_t size = 0;
    if (connection->incoming != NULL || connection->line_bytes != piece ||
        memcmp(connection->tail, " HTTP/1.", 8) != 0)
        return 0;
    while (size < piece && ((bytes[size] >= 'A' && bytes[size] <= 'Z') || bytes[size] == '-'))
        size++;
    if (size == piece || bytes[size] != ' ')
        return 0;
    for (size_t i = 0; i < RCPT_COUNT_OF(known); i++)
        if (strlen(known[i]) == size && memcmp(known[i], bytes, size) == 0)
            return 0;
    return size;
}

llhttp_errno_t http_parse_execute(struct connection *connection, const char *bytes, size_t piece)
{
    static const char other[] = "TRACE"; /* which no route takes either */
    size_t unknown = unknown_method(connection, bytes, piece);
    connection->raw = NULL;
    if (unknown > 0 && llhttp_execute(&connection->parser, other, sizeof(other) - 1) == HPE_OK)
        return llhttp_execute(&connection->parser, bytes + unknown, piece - unknown);
    if (connection->place != HTTP_PLACE_START || !is_raw(bytes[0]))
        return llhttp_execute(&connection->parser, bytes, piece);
    static const char stand_in = HTTP_STAND_IN;
    llhttp_errno_t error = HPE_OK;
    for (size_t i = 0; i < piece && error == HPE_OK; i++) {
        connection->raw = bytes + i;
        error = llhttp_execute(&connection->parser, &stand_in, 1);
    }
    return error;
}

static void move_to(struct connection *connection, enum http_place place)
{
    connection->place = place;
    connection->line_bytes = 0;
    connection->last_byte = place == HTTP_PLACE_HEAD ? '\n' : '\0';
    if (place == HTTP_PLACE_START)
        memset(connection->tail, 0, sizeof(connection->tail));
}

/* ---- callbacks ---- */

/* The parser stops, http_connection_parse answers. */
static int refuse(struct rcpt_http_request *request, int status)
{
    http_request_refuse(request, status);
    return -1;
}

static int on_message_begin(llhttp_t *parser)
{
    struct connection *connection = parser->data;
    connection->incoming = http_request_new(connection);
    if (connection->state == CONNECTION_IDLE)
        http_connection_set_state(connection, CONNECTION_HEAD);
    return 0;
}

static int append_head(struct rcpt_http_request *request, const char *bytes, size_t size)
{
    size_t limit = request->server->settings.max_header_bytes;
    if (request->head.size + size > limit)
        return refuse(request, request->target_size == 0 && request->field_count == 0 ? 414 : 431);
    rcpt_buffer_append(&request->head, bytes, size);
    return 0;
}

/* llhttp until release 8 lets these two through. */
static int on_url(llhttp_t *parser, const char *bytes, size_t size)
{
    const struct connection *connection = parser->data;
    if (connection->raw != NULL)
        bytes = connection->raw;
    if (memchr(bytes, '\t', size) != NULL || memchr(bytes, '\f', size) != NULL)
        return refuse(incoming(parser), 400);
    return append_head(incoming(parser), bytes, size);
}

/* In the head each text ends in a NUL. */
static void end_text(struct rcpt_http_request *request)
{
    rcpt_buffer_append(&request->head, "", 1);
}

static int on_url_complete(llhttp_t *parser)
{
    struct rcpt_http_request *request = incoming(parser);
    request->target_size = (uint32_t)request->head.size;
    end_text(request);
    return 0;
}

static int on_header_field(llhttp_t *parser, const char *bytes, size_t size)
{
    struct rcpt_http_request *request = incoming(parser);
    if (request->head_done) /* a trailer, which no handler sees */
        return 0;
    /* llhttp until release 8 lets blanks in names through: others may read such a line differently.
     */
    if (memchr(bytes, ' ', size) != NULL)
        return refuse(request, 400);
    if (!request->in_name) {
        if (request->field_count == HTTP_MAX_HEADERS)
            return refuse(request, 431);
        request->in_name = true;
        request->fields[request->field_count++] =
            (struct http_field){.name = (uint32_t)request->head.size};
    }
    request->fields[request->field_count - 1].name_size += (uint32_t)size;
    return append_head(request, bytes, size);
}

static int on_header_field_complete(llhttp_t *parser)
{
    struct rcpt_http_request *request = incoming(parser);
    if (request->head_done)
        return 0;
    request->in_name = false;
    end_text(request);
    request->fields[request->field_count - 1].value = (uint32_t)request->head.size;
    return 0;
}

static int on_header_value(llhttp_t *parser, const char *bytes, size_t size)
{
    struct rcpt_http_request *request = incoming(parser);
    if (request->head_done)
        return 0;
    request->fields[request->field_count - 1].value_size += (uint32_t)size;
    return append_head(request, bytes, size);
}

static int on_header_value_complete(llhttp_t *parser)
{
    struct rcpt_http_request *request = incoming(parser);
    if (!request->head_done)
        end_text(request);
    return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct connection *connection = parser->data;
    struct rcpt_http_request *request = connection->incoming;
    bool tunnel = parser->method == HTTP_CONNECT;
    request->head_done = true;
    move_to(connection, (parser->flags & F_CHUNKED) != 0 ? HTTP_PLACE_SIZE : HTTP_PLACE_BODY);
    request->keep_alive = llhttp_should_keep_alive(parser) && !connection->server->draining;
    parser->upgrade = 0; /* no other protocol is spoken here: the offer is ignored */
    if (!is_http(connection))
        http_request_refuse(request, 400);
    http_request_check_head(request, parser);
    if (tunnel)
        return refuse(request, 405);
    /* A body that is refused and long, or of unknown length, is not read at all. */
    if (request->refused != 0 && (request->chunked || parser->content_length > MAX_SKIPPED_BYTES ||
                                  (request->expects_continue && parser->content_length > 0)))
        return refuse(request, request->refused);
    if (request->chunked || parser->content_length > 0)
        http_connection_set_state(connection, CONNECTION_BODY);
    return 0;
}

static int on_chunk_header(llhttp_t *parser)
{
    move_to(parser->data, parser->content_length > 0 ? HTTP_PLACE_CHUNK : HTTP_PLACE_HEAD);
    return 0;
}

static int on_chunk_complete(llhttp_t *parser)
{
    move_to(parser->data, HTTP_PLACE_SIZE);
    return 0;
}

static int on_body(llhttp_t *parser, const char *bytes, size_t size)
{
    struct rcpt_http_request *request = incoming(parser);
    if (request->refused != 0)
        return 0;
    int status = http_body_append(request, bytes, size);
    return status == 0 ? 0 : refuse(request, status);
}

static int on_message_complete(llhttp_t *parser)
{
    struct connection *connection = parser->data;
    struct rcpt_http_request *request = connection->incoming;
    bool keep_alive = request->keep_alive;
    move_to(connection, HTTP_PLACE_START);
    connection->served = true;
    http_connection_set_state(connection, CONNECTION_IDLE);
    if (!keep_alive)
        http_connection_end_after(connection);
    http_request_complete(request);
    /* One request at a time is parsed: its answer may end the connection, and the limit of
     * those that are owed applies between two. */
    if (connection->state == CONNECTION_CLOSED || !keep_alive)
        return -1;
    return connection->owed >= connection->server->settings.max_pipelined ? HPE_PAUSED : 0;
}

void http_parse_init(struct connection *connection)
{
    static const llhttp_settings_t callbacks = {
        .on_message_begin = on_message_begin,
        .on_url = on_url,
        .on_url_complete = on_url_complete,
        .on_header_field = on_header_field,
        .on_header_field_complete = on_header_field_complete,
        .on_header_value = on_header_value,
        .on_header_value_complete = on_header_value_complete,
        .on_headers_complete = on_headers_complete,
        .on_chunk_header = on_chunk_header,
        .on_chunk_complete = on_chunk_complete,
        .on_body = on_body,
        .on_message_complete = on_message_complete,
    };
    llhttp_init(&connection->parser, HTTP_REQUEST, &callbacks);
    connection->parser.data = connection;
}

int http_parse_error_status(const struct connection *connection)
{
    const struct rcpt_http_request *request = connection->incoming;
    if (request != NULL && request->refused != 0)
        return request->refused;
    return llhttp_get_errno(&connection->parser) == HPE_INVALID_VERSION ? 505 : 400;
}

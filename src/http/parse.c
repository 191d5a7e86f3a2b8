/* The only file that talks to http_parser: its callbacks fill the request that is coming in.
 *
 * A callback that returns an error ends the parsing; what the client is to be told was noted in the
 * request before. The parser gets the lines of a head and of chunks one by one: what other readers
 * could take differently (continued lines, extensions of chunks) is refused before it sees it.
 */
#include <ctype.h>
#include <string.h>

#include "internal.h"

static struct rcpt_http_request *incoming(const http_parser *parser)
{
    return ((struct connection *)parser->data)->incoming;
}

/* ---- lines, before the parser sees them ---- */

/* A line that begins with a blank continues the one before for some readers, for others it does
 * not. */
static bool is_good_line(char last, const char *bytes)
{
    return last != '\n' || (bytes[0] != ' ' && bytes[0] != '\t');
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

size_t parse_piece(struct connection *connection, const char *bytes, size_t size)
{
    uint64_t left = connection->parser.content_length;
    bool has_data =
        connection->place == HTTP_PLACE_BODY || (connection->place == HTTP_PLACE_CHUNK && left > 0);
    if (has_data)
        return size < left ? size : (size_t)left;
    const char *end = memchr(bytes, '\n', size);
    size_t piece = end != NULL ? (size_t)(end - bytes) + 1 : size;
    bool good = true;
    switch (connection->place) {
    case HTTP_PLACE_HEAD:
        good = is_good_line(connection->last_byte, bytes);
        break;
    case HTTP_PLACE_SIZE:
        good = is_good_size(connection->last_byte, bytes, piece);
        break;
    case HTTP_PLACE_CHUNK: /* what ends it */
        piece = 1;
        good = is_line_end(connection->last_byte, bytes[0]);
        break;
    case HTTP_PLACE_BODY:
        break;
    }
    connection->last_byte = bytes[piece - 1];
    return good ? piece : 0;
}

static void move_to(struct connection *connection, enum http_place place)
{
    connection->place = place;
    connection->last_byte = place == HTTP_PLACE_HEAD ? '\n' : '\0';
}

/* ---- callbacks ---- */

/* The parser stops, connection_parse answers. */
static int refuse(struct rcpt_http_request *request, int status)
{
    request_refuse(request, status);
    return -1;
}

static int on_message_begin(http_parser *parser)
{
    struct connection *connection = parser->data;
    connection->incoming = request_new(connection);
    if (connection->state == CONNECTION_IDLE)
        connection_set_state(connection, CONNECTION_HEAD);
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

static int on_url(http_parser *parser, const char *bytes, size_t size)
{
    return append_head(incoming(parser), bytes, size);
}

static void end_text(struct rcpt_http_request *request)
{
    rcpt_buffer_append(&request->head, "", 1);
}

/* A piece is complete when one of the other kind begins. */
static int on_header_field(http_parser *parser, const char *bytes, size_t size)
{
    struct rcpt_http_request *request = incoming(parser);
    if (request->head_done) /* a trailer: nobody asked for it */
        return 0;
    if (request->field_count == 0 && request->target_size == 0) {
        request->target_size = (uint32_t)request->head.size;
        end_text(request);
    }
    if (request->field_count == 0 || request->in_value) {
        if (request->field_count == HTTP_MAX_HEADERS)
            return refuse(request, 431);
        if (request->field_count > 0)
            end_text(request);
        request->in_value = false;
        request->fields[request->field_count++] =
            (struct http_field){.name = (uint32_t)request->head.size};
    }
    request->fields[request->field_count - 1].name_size += (uint32_t)size;
    return append_head(request, bytes, size);
}

static int on_header_value(http_parser *parser, const char *bytes, size_t size)
{
    struct rcpt_http_request *request = incoming(parser);
    if (request->head_done)
        return 0;
    struct http_field *field = &request->fields[request->field_count - 1];
    if (!request->in_value) {
        end_text(request);
        request->in_value = true;
        field->value = (uint32_t)request->head.size;
    }
    field->value_size += (uint32_t)size;
    return append_head(request, bytes, size);
}

static void end_head(struct rcpt_http_request *request)
{
    if (request->field_count == 0)
        request->target_size = (uint32_t)request->head.size;
    else if (!request->in_value) { /* a last line without a value */
        end_text(request);
        request->fields[request->field_count - 1].value = (uint32_t)request->head.size;
    }
    end_text(request);
    request->head_done = true;
}

static int on_headers_complete(http_parser *parser)
{
    struct connection *connection = parser->data;
    struct rcpt_http_request *request = connection->incoming;
    bool tunnel = parser->method == HTTP_CONNECT;
    end_head(request);
    move_to(connection, (parser->flags & F_CHUNKED) != 0 ? HTTP_PLACE_SIZE : HTTP_PLACE_BODY);
    request->keep_alive = http_should_keep_alive(parser) && !connection->server->draining;
    parser->upgrade = 0; /* no other protocol is spoken here: the offer is ignored */
    request_check_head(request, parser);
    if (tunnel)
        return refuse(request, 405);
    /* What would take long to throw away is not read at all. */
    if (request->refused != 0 &&
        (request->chunked || request->expects_continue || parser->content_length != 0) &&
        (request->chunked || request->expects_continue || parser->content_length > 65536) &&
        (request->chunked || parser->content_length != UINT64_MAX))
        return refuse(request, request->refused);
    if (request->chunked || (parser->content_length > 0 && parser->content_length != UINT64_MAX))
        connection_set_state(connection, CONNECTION_BODY);
    return 0;
}

static int on_chunk_header(http_parser *parser)
{
    move_to(parser->data, parser->content_length > 0 ? HTTP_PLACE_CHUNK : HTTP_PLACE_HEAD);
    return 0;
}

static int on_chunk_complete(http_parser *parser)
{
    move_to(parser->data, HTTP_PLACE_SIZE);
    return 0;
}

static int on_body(http_parser *parser, const char *bytes, size_t size)
{
    struct rcpt_http_request *request = incoming(parser);
    if (request->refused != 0)
        return 0;
    int status = body_append(request, bytes, size);
    return status == 0 ? 0 : refuse(request, status);
}

static int on_message_complete(http_parser *parser)
{
    struct connection *connection = parser->data;
    struct rcpt_http_request *request = connection->incoming;
    bool keep_alive = request->keep_alive;
    move_to(connection, HTTP_PLACE_HEAD);
    connection->served = true;
    connection_set_state(connection, CONNECTION_IDLE);
    if (!keep_alive)
        connection_end_after(connection);
    request_complete(request);
    /* One request at a time is looked at: its answer may end the connection, and the limit of
     * those that are owed stands between two. */
    if (connection->state == CONNECTION_CLOSED || !keep_alive)
        return -1;
    if (connection->owed >= connection->server->settings.max_pipelined)
        http_parser_pause(parser, 1);
    return 0;
}

void parse_settings(http_parser_settings *callbacks)
{
    http_parser_settings_init(callbacks);
    callbacks->on_message_begin = on_message_begin;
    callbacks->on_url = on_url;
    callbacks->on_header_field = on_header_field;
    callbacks->on_header_value = on_header_value;
    callbacks->on_headers_complete = on_headers_complete;
    callbacks->on_chunk_header = on_chunk_header;
    callbacks->on_chunk_complete = on_chunk_complete;
    callbacks->on_body = on_body;
    callbacks->on_message_complete = on_message_complete;
}

int parse_error_status(const struct connection *connection)
{
    const struct rcpt_http_request *request = connection->incoming;
    if (request != NULL && request->refused != 0)
        return request->refused;
    switch (HTTP_PARSER_ERRNO(&connection->parser)) {
    case HPE_HEADER_OVERFLOW:
        return 431;
    case HPE_INVALID_VERSION:
        return 505;
    default:
        return 400;
    }
}

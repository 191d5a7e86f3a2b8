/* A request in memory through http_parser; see http/message.h. */
#include "message.h"

#include <http_parser.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#define ZLIB_CONST
#include <zlib.h>

#define MAX_HEADERS     200u
#define MAX_PLAIN_BYTES (64u << 20)

struct parsing {
    struct rcpt_http_message *message;
    const char *target;
    size_t target_size;
    char *body; /* joined chunks */
    size_t body_size;
    bool in_value, head_done;
};

/* A complete message in one piece: every callback gets a whole text or its continuation. */
static int on_url(http_parser *parser, const char *bytes, size_t size)
{
    struct parsing *parsing = parser->data;
    parsing->target = parsing->target != NULL ? parsing->target : bytes;
    parsing->target_size += size;
    return 0;
}

static int on_header_field(http_parser *parser, const char *bytes, size_t size)
{
    struct parsing *parsing = parser->data;
    struct rcpt_http_message *message = parsing->message;
    if (parsing->head_done)
        return 0;
    if (message->header_count == 0 || parsing->in_value) {
        if (message->header_count == MAX_HEADERS)
            return -1;
        message->headers[message->header_count++].name = bytes;
    }
    parsing->in_value = false;
    message->headers[message->header_count - 1].name_size += size;
    return 0;
}

static int on_header_value(http_parser *parser, const char *bytes, size_t size)
{
    struct parsing *parsing = parser->data;
    if (parsing->head_done)
        return 0;
    struct rcpt_http_message_header *header =
        &parsing->message->headers[parsing->message->header_count - 1];
    if (header->value == NULL)
        header->value = bytes;
    parsing->in_value = true;
    header->value_size += size;
    return 0;
}

/* 1: no body. It is taken as it stands, unless it comes in chunks. */
static int on_headers_complete(http_parser *parser)
{
    struct parsing *parsing = parser->data;
    parsing->head_done = true;
    return (parser->flags & F_CHUNKED) != 0 ? 0 : 1;
}

static int on_body(http_parser *parser, const char *bytes, size_t size)
{
    struct parsing *parsing = parser->data;
    parsing->body = rcpt_realloc(parsing->body, parsing->body_size + size + 1);
    memcpy(parsing->body + parsing->body_size, bytes, size);
    parsing->body_size += size;
    return 0;
}

static int on_message_complete(http_parser *parser)
{
    http_parser_pause(parser, 1);
    return 0;
}

static bool is_blank(const char *text, size_t size)
{
    for (size_t index = 0; index < size; index++)
        if (text[index] != '\r' && text[index] != '\n')
            return false;
    return true;
}

/* Content-Length counts when nothing but line ends stand behind it: an editor adds one. */
static void take_rest(struct rcpt_http_message *message, const char *rest, size_t size)
{
    message->body = rest;
    message->body_size = size;
    for (size_t index = 0; index < message->header_count; index++) {
        const struct rcpt_http_message_header *header = &message->headers[index];
        char digits[20] = "";
        if (header->name_size != 14 || strncasecmp(header->name, "Content-Length", 14) != 0 ||
            header->value_size >= sizeof(digits))
            continue;
        memcpy(digits, header->value, header->value_size);
        size_t length = strtoul(digits, NULL, 10);
        if (length <= size && is_blank(rest + length, size - length))
            message->body_size = length;
    }
}

static void split_target(struct parsing *parsing)
{
    struct rcpt_http_message *message = parsing->message;
    const char *mark = memchr(parsing->target, '?', parsing->target_size);
    message->path = parsing->target;
    message->path_size = mark != NULL ? (size_t)(mark - parsing->target) : parsing->target_size;
    message->query = mark != NULL ? mark + 1 : NULL;
    message->query_size = mark != NULL ? parsing->target_size - message->path_size - 1 : 0;
}

static bool fail(struct rcpt_error *error, const char *problem)
{
    rcpt_error_set(error, RCPT_DECISION_REJECT, NULL, "not an HTTP/1.1 request: %s", problem);
    error->exit_code = EX_DATAERR;
    rcpt_error_hint(error, "a request line, headers, an empty line and the body: "
                           "\"POST /dlr/acme HTTP/1.1\"");
    return false;
}

static bool parse(struct parsing *parsing, const char *text, size_t size, struct rcpt_error *error)
{
    static const http_parser_settings callbacks = {
        .on_url = on_url,
        .on_header_field = on_header_field,
        .on_header_value = on_header_value,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body,
        .on_message_complete = on_message_complete,
    };
    http_parser parser;
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = parsing;
    size_t used = http_parser_execute(&parser, &callbacks, text, size);
    enum http_errno code = HTTP_PARSER_ERRNO(&parser);
    if (code != HPE_PAUSED && code != HPE_OK)
        return fail(error, http_errno_description(code));
    if (!parsing->head_done)
        return fail(error, "it ends before the empty line behind the headers");
    if (parsing->target == NULL)
        return fail(error, "there is no path");
    parsing->message->method = http_method_str((enum http_method)parser.method);
    /* The parser stops on the last line end of the head when there is no body for it. */
    if (used < size && text[used] == '\n' && used > 0 && (parser.flags & F_CHUNKED) == 0 &&
        text[used - 1] != '\n')
        used++;
    if ((parser.flags & F_CHUNKED) == 0)
        take_rest(parsing->message, text + used, size - used);
    split_target(parsing);
    return true;
}

static bool is_compressed(const struct rcpt_http_message *message)
{
    static const char *const codings[] = {"gzip", "x-gzip", "deflate"};
    for (size_t index = 0; index < message->header_count; index++) {
        const struct rcpt_http_message_header *header = &message->headers[index];
        if (header->name_size != strlen("content-encoding") ||
            strncasecmp(header->name, "content-encoding", header->name_size) != 0)
            continue;
        for (size_t coding = 0; coding < sizeof(codings) / sizeof(codings[0]); coding++)
            if (header->value_size == strlen(codings[coding]) &&
                strncasecmp(header->value, codings[coding], header->value_size) == 0)
                return true;
    }
    return false;
}

/* NULL: damaged, or more than MAX_PLAIN_BYTES. */
static char *inflate_body(const struct rcpt_http_message *message, size_t *size)
{
    z_stream stream = {.next_in = (const Bytef *)message->body,
                       .avail_in = (uInt)message->body_size};
    if (message->body_size > UINT_MAX || inflateInit2(&stream, 32 + MAX_WBITS) != Z_OK)
        return NULL;
    char *plain = rcpt_malloc(MAX_PLAIN_BYTES);
    stream.next_out = (Bytef *)plain;
    stream.avail_out = MAX_PLAIN_BYTES;
    int status = inflate(&stream, Z_FINISH);
    *size = MAX_PLAIN_BYTES - stream.avail_out;
    inflateEnd(&stream);
    if (status == Z_STREAM_END)
        return plain;
    free(plain);
    return NULL;
}

static bool undo_coding(struct rcpt_http_message *message, struct rcpt_error *error)
{
    if (message->body_size == 0 || !is_compressed(message))
        return true;
    size_t size;
    char *plain = inflate_body(message, &size);
    if (plain == NULL)
        return fail(error, "the body is not what Content-Encoding says, or longer than 64 MiB");
    free(message->joined);
    message->body = message->joined = plain;
    message->body_size = size;
    return true;
}

struct rcpt_http_message *rcpt_http_message_parse(const char *text, size_t size,
                                                  struct rcpt_error *error)
{
    struct parsing parsing = {.message = rcpt_calloc(1, sizeof(struct rcpt_http_message))};
    parsing.message->headers = rcpt_calloc(MAX_HEADERS, sizeof(struct rcpt_http_message_header));
    bool good = parse(&parsing, text, size, error);
    if (good && parsing.body != NULL) {
        parsing.message->body = parsing.body;
        parsing.message->body_size = parsing.body_size;
        parsing.message->joined = parsing.body;
        parsing.body = NULL;
    }
    free(parsing.body);
    if (good && undo_coding(parsing.message, error))
        return parsing.message;
    rcpt_http_message_free(parsing.message);
    return NULL;
}

void rcpt_http_message_free(struct rcpt_http_message *message)
{
    if (message == NULL)
        return;
    free(message->joined);
    free(message->headers);
    free(message);
}

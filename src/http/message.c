/* A request in memory through llhttp, for `receiptd intake try` and the like; see message.h. The
 * server's rules (parse.c) do not apply: samples come from editors, not from the Internet. */
#include "receiptd/http/message.h"
#include "receiptd/base/error.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#define ZLIB_CONST
#include <zlib.h>

#include "internal.h"

/* A sample beyond these bounds is refused: it is no webhook. */
#define MAX_HEADERS     200u
#define MAX_PLAIN_BYTES (64u << 20)

struct parsing {
    struct rcpt_http_message *message;
    const char *text, *target; /* as given */
    size_t target_size;
    struct rcpt_buffer head; /* with CR LF at the end of each line */
    struct rcpt_buffer body; /* joined chunks */
    bool in_value, head_done;
};

/* The head comes in one piece: every callback gets a whole text or its continuation. Its first line
 * is as long as that of the text, up to the line end. */
static int on_url(llhttp_t *parser, const char *bytes, size_t size)
{
    struct parsing *parsing = parser->data;
    parsing->target =
        parsing->target != NULL ? parsing->target : parsing->text + (bytes - parsing->head.bytes);
    parsing->target_size += size;
    return 0;
}

/* A name begins where no name was, or after a value. */
static int on_header_field(llhttp_t *parser, const char *bytes, size_t size)
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

/* A value that continues on another line (obsolete folding) is refused, as by the server. */
static int on_header_value(llhttp_t *parser, const char *bytes, size_t size)
{
    struct parsing *parsing = parser->data;
    if (parsing->head_done)
        return 0;
    struct rcpt_http_message_header *header =
        &parsing->message->headers[parsing->message->header_count - 1];
    if (header->value == NULL)
        header->value = bytes;
    else if (bytes != header->value + header->value_size) /* continued on the next line */
        return -1;
    parsing->in_value = true;
    header->value_size += size;
    return 0;
}

/* 1: no body. It is taken as it stands, unless it comes in chunks. */
static int on_headers_complete(llhttp_t *parser)
{
    struct parsing *parsing = parser->data;
    parsing->head_done = true;
    return (parser->flags & F_CHUNKED) != 0 ? 0 : 1;
}

static int on_body(llhttp_t *parser, const char *bytes, size_t size)
{
    struct parsing *parsing = parser->data;
    rcpt_buffer_append(&parsing->body, bytes, size);
    return 0;
}

/* Bytes behind the last chunk do not count. */
static int on_message_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

/* Copies the lines up to the empty one, each with CR LF: llhttp takes no other. Returns the number
 * of bytes of the text that were copied. */
static size_t take_head(struct rcpt_buffer *head, const char *text, size_t size)
{
    size_t at = 0, line = 1;
    while (at < size && line > 0) {
        const char *end = memchr(text + at, '\n', size - at);
        line = end != NULL ? (size_t)(end - text) - at : size - at;
        size_t next = at + line + (end != NULL);
        if (end != NULL && line > 0 && end[-1] == '\r')
            line--;
        rcpt_buffer_append(head, text + at, line);
        rcpt_buffer_append_text(head, end != NULL ? "\r\n" : "");
        at = next;
    }
    return at;
}

/* See HTTP_STAND_IN. */
static void hide_raw_bytes(char *line)
{
    for (char *at = line; *at != '\r' && *at != '\0'; at++)
        if (is_raw(*at))
            *at = HTTP_STAND_IN;
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

/* As in a request to the server, but for the proxy's form, which samples do not have. */
static void split_target(struct parsing *parsing)
{
    struct rcpt_http_message *message = parsing->message;
    const char *mark = memchr(parsing->target, '?', parsing->target_size);
    message->path = parsing->target;
    message->path_size = mark != NULL ? (size_t)(mark - parsing->target) : parsing->target_size;
    message->query = mark != NULL ? mark + 1 : NULL;
    message->query_size = mark != NULL ? parsing->target_size - message->path_size - 1 : 0;
}

/* llhttp's reasons begin with a capital. Always false, for the caller's return. */
static bool fail(struct rcpt_error *error, const char *problem)
{
    rcpt_error_set(error, RCPT_DECISION_REJECT, NULL, "not an HTTP/1.1 request: %c%s",
                   tolower((unsigned char)problem[0]), problem + 1);
    error->exit_code = EX_DATAERR;
    rcpt_error_hint(error, "a request line, headers, an empty line and the body: "
                           "\"POST /dlr/acme HTTP/1.1\"");
    return false;
}

/* PAUSED is the regular end: on_message_complete() stops the parser there. */
static bool execute(llhttp_t *parser, const char *bytes, size_t size, struct rcpt_error *error)
{
    llhttp_errno_t code = llhttp_execute(parser, bytes, size);
    return code == HPE_OK || code == HPE_PAUSED || fail(error, llhttp_get_error_reason(parser));
}

/* The head goes through llhttp as a copy with CR LF. A body in chunks goes through it too; any
 * other is taken as it stands. */
static bool parse(struct parsing *parsing, const char *text, size_t size, struct rcpt_error *error)
{
    static const llhttp_settings_t callbacks = {
        .on_url = on_url,
        .on_header_field = on_header_field,
        .on_header_value = on_header_value,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body,
        .on_message_complete = on_message_complete,
    };
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &callbacks);
    parser.data = parsing;
    parsing->text = text;
    size_t used = take_head(&parsing->head, text, size);
    rcpt_buffer_append(&parsing->head, "", 1);
    parsing->head.size--;
    hide_raw_bytes(parsing->head.bytes);
    if (!execute(&parser, parsing->head.bytes, parsing->head.size, error))
        return false;
    if (!parsing->head_done)
        return fail(error, "it ends before the empty line behind the headers");
    parsing->message->method = llhttp_method_name((llhttp_method_t)parser.method);
    split_target(parsing);
    if ((parser.flags & F_CHUNKED) != 0)
        return execute(&parser, text + used, size - used, error);
    take_rest(parsing->message, text + used, size - used);
    return true;
}

static bool header_is(const struct rcpt_http_message_header *header, const char *name)
{
    return header->name_size == strlen(name) &&
           strncasecmp(header->name, name, header->name_size) == 0;
}

static bool value_is(const struct rcpt_http_message_header *header, const char *value)
{
    return header->value_size == strlen(value) &&
           strncasecmp(header->value, value, header->value_size) == 0;
}

/* The status with which request.c refuses these headers; 0: it does not. Lengths are the editor's.
 */
static int find_refusal(const struct rcpt_http_message *message, enum http_coding *coding)
{
    unsigned hosts = 0, lengths = 0, chunked = 0;
    int refused = 0;
    for (size_t index = 0; index < message->header_count && refused == 0; index++) {
        const struct rcpt_http_message_header *header = &message->headers[index];
        if (header_is(header, "host"))
            hosts++;
        else if (header_is(header, "content-length"))
            lengths++;
        else if (header_is(header, "content-encoding"))
            *coding = http_coding_add(*coding, header->value, header->value_size);
        else if (header_is(header, "transfer-encoding") && !value_is(header, "chunked"))
            refused = 501;
        else if (header_is(header, "transfer-encoding"))
            chunked++;
        else if (header_is(header, "expect") && !value_is(header, "100-continue"))
            refused = 417;
        if (refused == 0 && *coding == HTTP_CODING_UNKNOWN)
            refused = 415;
    }
    if (hosts > 1 || lengths > 1 || chunked > 1 || (chunked == 1 && lengths == 1))
        return 400;
    return refused;
}

static bool is_method(const struct rcpt_http_message *message)
{
    static const char *const methods[] = {"GET", "HEAD", "POST"};
    for (size_t index = 0; index < RCPT_COUNT_OF(methods); index++)
        if (strcmp(message->method, methods[index]) == 0)
            return true;
    return false;
}

/* Refuses the samples that the server would refuse. */
static bool check(const struct rcpt_http_message *message, enum http_coding *coding,
                  struct rcpt_error *error)
{
    int refused = find_refusal(message, coding);
    if (refused == 0 && !is_method(message))
        refused = 405;
    if (refused == 0)
        return true;
    const char *problem = refused == 415   ? "Content-Encoding names no coding that can be undone"
                          : refused == 417 ? "Expect asks for something else than 100-continue"
                          : refused == 501 ? "Transfer-Encoding is not chunked"
                          : refused == 405 ? "the method is not GET, HEAD or POST"
                                           : "Host or a length of the body stands in it twice";
    rcpt_error_set(error, RCPT_DECISION_REJECT, NULL, "the server answers %d: %s", refused,
                   problem);
    error->exit_code = EX_DATAERR;
    rcpt_error_hint(error, "docs/intake.md, \"Limits\", has all that it refuses");
    return false;
}

/* NULL: damaged, or more than MAX_PLAIN_BYTES. */
static char *inflate_body(const struct rcpt_http_message *message, enum http_coding coding,
                          size_t *size)
{
    z_stream stream = {.next_in = (const Bytef *)message->body,
                       .avail_in = (uInt)message->body_size};
    int window = coding == HTTP_CODING_GZIP ? 16 + MAX_WBITS : MAX_WBITS;
    if (message->body_size > UINT_MAX || inflateInit2(&stream, window) != Z_OK)
        return NULL;
    char *plain = rcpt_malloc(MAX_PLAIN_BYTES);
    stream.next_out = (Bytef *)plain;
    stream.avail_out = MAX_PLAIN_BYTES;
    int status = inflate(&stream, Z_FINISH);
    while (status == Z_STREAM_END &&
           stream.avail_in > 0) /* gzip allows one member after the other */
        status = coding == HTTP_CODING_GZIP && inflateReset(&stream) == Z_OK
                     ? inflate(&stream, Z_FINISH)
                     : Z_DATA_ERROR;
    *size = MAX_PLAIN_BYTES - stream.avail_out;
    inflateEnd(&stream);
    if (status == Z_STREAM_END && !http_is_bomb(*size, message->body_size))
        return plain;
    free(plain);
    return NULL;
}

/* The server does the same for a request, with its own bound (body.c). */
static bool undo_coding(struct rcpt_http_message *message, struct rcpt_error *error)
{
    enum http_coding coding = HTTP_CODING_NONE;
    if (!check(message, &coding, error))
        return false;
    if (message->body_size == 0 || coding == HTTP_CODING_NONE)
        return true;
    size_t size;
    char *plain = inflate_body(message, coding, &size);
    if (plain == NULL)
        return fail(error, "the body does not match Content-Encoding, or is longer than 64 MiB");
    free(message->joined);
    message->body = message->joined = plain;
    message->body_size = size;
    return true;
}

/* The message owns both buffers, also where the text is refused: then it is freed with them. */
struct rcpt_http_message *rcpt_http_message_parse(const char *text, size_t size,
                                                  struct rcpt_error *error)
{
    struct rcpt_http_message *message = rcpt_calloc(1, sizeof(*message));
    struct parsing parsing = {.message = message};
    message->headers = rcpt_calloc(MAX_HEADERS, sizeof(struct rcpt_http_message_header));
    bool good = parse(&parsing, text, size, error);
    message->head = parsing.head.bytes;
    message->joined = parsing.body.bytes;
    if (parsing.body.size > 0) {
        message->body = parsing.body.bytes;
        message->body_size = parsing.body.size;
    }
    if (good && undo_coding(message, error))
        return message;
    rcpt_http_message_free(message);
    return NULL;
}

/* The texts of the message point into the buffers that are freed here, and into the caller's text.
 */
void rcpt_http_message_free(struct rcpt_http_message *message)
{
    if (message == NULL)
        return;
    free(message->head);
    free(message->joined);
    free(message->headers);
    free(message);
}

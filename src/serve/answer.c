/* The form of answers: the headers of all, problems (RFC 9457), and bodies with ETag, 304 and gzip.
 * Called by all files that answer. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>

#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/base/json.h"

#define LEAST_ZIPPED 1024u /* smaller bodies fit in a packet anyway */

const char serve_headers[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Frame-Options: DENY\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

static const char *title_of(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        {400, "The request is not understood"},
        {401, "Who asks is not known"},
        {403, "That is not allowed"},
        {404, "Not found"},
        {405, "The method does not fit"},
        {421, "That name is not ours"},
        {429, "Too much at a time"},
        {501, "That is not available here"},
        {503, "Not now"},
    };
    for (size_t index = 0; index < RCPT_COUNT_OF(titles); index++)
        if (titles[index].status == status)
            return titles[index].title;
    return "The server is at fault";
}

/* The path is not repeated: it may hold an id, and the client knows it. */
void serve_answer_problem(struct serve_request *request, int status, const char *code,
                          const char *format, ...)
{
    char detail[512], headers[1024], allow[96] = "", *text = NULL;
    size_t size = 0;
    struct rcpt_json json;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "type", "about:blank");
    rcpt_json_put_text(&json, "title", title_of(status));
    rcpt_json_put_int(&json, "status", status);
    rcpt_json_put_text(&json, "code", code);
    rcpt_json_put_text(&json, "detail", detail);
    rcpt_json_end_object(&json);
    RCPT_ASSERT(fclose(out) == 0);
    if (status == 405)
        rcpt_http_allow(request->methods, allow);
    snprintf(headers, sizeof(headers), "%sCache-Control: no-store\r\n%s%s", serve_headers, allow,
             status == 401 ? "WWW-Authenticate: Bearer\r\n" : "");
    const struct rcpt_http_answer answer = {.status = status,
                                            .content_type = "application/problem+json",
                                            .headers = headers,
                                            .retry_after_s = status == 503 || status == 429,
                                            .body = text,
                                            .body_size = size};
    request->status = status;
    rcpt_http_answer(request->http, &answer);
    free(text);
}

/* PostgreSQL's text may hold values, so only the kind of failure goes out. */
void serve_answer_failure(struct serve_request *request, const struct rcpt_error *error)
{
    if (error == NULL || error->code[0] == '\0')
        serve_answer_problem(request, 503, "database_busy", "the database cannot be asked now");
    else if (error->decision == RCPT_DECISION_REJECT)
        serve_answer_problem(request, 400, "invalid_parameter",
                             "a parameter has a value that means nothing here");
    else if (strcmp(error->code, "57014") == 0)
        serve_answer_problem(request, 503, "too_slow",
                             "the answer took longer than serve.statement_timeout");
    else
        serve_answer_problem(request, 503, "database_failed", "the database did not answer (%s)",
                             error->code);
}

/* ---- bodies ---- */

/* Whether a list of codings that commas separate has gzip; a quality of 0 takes it out. */
static bool accepts_gzip(const struct rcpt_http_request *http)
{
    struct rcpt_http_text header = rcpt_http_header(http, "Accept-Encoding");
    const char *found = header.bytes != NULL ? strcasestr(header.bytes, "gzip") : NULL;
    if (found == NULL)
        return false;
    const char *quality = found + 4 + strspn(found + 4, " \t");
    if (*quality != ';')
        return true;
    quality += 1 + strspn(quality + 1, " \t");
    return strncasecmp(quality, "q=", 2) != 0 || strtod(quality + 2, NULL) > 0;
}

/* False: it did not become smaller. */
static bool zip(const void *body, size_t size, struct rcpt_buffer *zipped)
{
    z_stream stream = {0};
    if (size < LEAST_ZIPPED || size > UINT32_MAX / 2 ||
        deflateInit2(&stream, 4, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    stream.next_in = (Bytef *)(uintptr_t)body;
    stream.avail_in = (uInt)size;
    stream.next_out = (Bytef *)rcpt_buffer_reserve(zipped, size);
    stream.avail_out = (uInt)size;
    bool good = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    zipped->size = size - stream.avail_out;
    deflateEnd(&stream);
    return good;
}

/* The ETag is weak, since gzip makes other bytes of the same content. */
void serve_answer_body(struct serve_request *request, const char *type, const char *caching,
                       const void *body, size_t size)
{
    struct rcpt_http_request *http = request->http;
    char tag[32], headers[1024];
    struct rcpt_buffer zipped = {0};
    struct rcpt_http_text known = rcpt_http_header(http, "If-None-Match");
    snprintf(tag, sizeof(tag), "\"%016" PRIx64 "\"",
             rcpt_text_hash((struct rcpt_text){body, size}));
    bool same =
        known.bytes != NULL && (strstr(known.bytes, tag) != NULL || strcmp(known.bytes, "*") == 0);
    bool gzip = !same && accepts_gzip(http) && zip(body, size, &zipped);
    snprintf(headers, sizeof(headers),
             "%sCache-Control: %s\r\nETag: W/%s\r\nVary: Accept-Encoding, Authorization\r\n%s",
             serve_headers, caching, tag, gzip ? "Content-Encoding: gzip\r\n" : "");
    struct rcpt_http_answer answer = {
        .status = same ? 304 : 200, .content_type = same ? NULL : type, .headers = headers};
    if (!same) {
        answer.body = gzip ? zipped.bytes : body;
        answer.body_size = gzip ? zipped.size : size;
    }
    request->status = answer.status;
    rcpt_http_answer(http, &answer);
    rcpt_buffer_free(&zipped);
}

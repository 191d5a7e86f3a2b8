/* Bodies: collected within the server's budget of memory, and decompressed within limits of size
 * and ratio. Called by parse.c and request.c.
 *
 * Every byte of capacity is counted in stats.body_bytes before it is allocated; when the budget is
 * used up, a slow client's body gives way (server.c), else the request gets 503. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "internal.h"

#define FREE_BYTES 65536u /* what comes out of decompression up to here may be anything, … */
#define MAX_RATIO  100u   /* … and above it at most so many times what was sent */

bool http_is_bomb(size_t plain, size_t sent)
{
    return plain > FREE_BYTES && plain / MAX_RATIO > sent;
}

/* ---- the server's budget ---- */

/* The route's own limit, or the server's. */
size_t http_body_limit(const struct rcpt_http_request *request)
{
    size_t own = request->route != NULL ? request->route->is.max_body_bytes : 0;
    return own > 0 ? own : request->server->settings.max_body_bytes;
}

/* Reserves space for `more` bytes within the server's budget. False: no memory is left for it. */
static bool reserve(struct rcpt_http_request *request, struct rcpt_buffer *buffer, size_t more)
{
    struct rcpt_http_server *server = request->server;
    size_t grown = rcpt_buffer_grown(buffer, more) - buffer->capacity;
    while (server->stats.body_bytes + grown > server->settings.max_memory_bytes && grown > 0)
        if (!server->evict_body(server, request->connection))
            return false;
    server->stats.body_bytes += grown;
    request->body_reserved += grown;
    rcpt_buffer_reserve(buffer, more);
    return true;
}

/* Gives the capacity back to the budget. */
static void drop(struct rcpt_http_request *request, struct rcpt_buffer *buffer)
{
    request->server->stats.body_bytes -= buffer->capacity;
    request->body_reserved -= buffer->capacity;
    rcpt_buffer_free(buffer);
}

void http_body_free(struct rcpt_http_request *request)
{
    drop(request, &request->body);
    RCPT_ASSERT(request->body_reserved == 0);
}

/* Returns 0, or the status to refuse with. */
int http_body_append(struct rcpt_http_request *request, const char *bytes, size_t size)
{
    if (request->body.size + size > http_body_limit(request))
        return 413;
    if (!reserve(request, &request->body, size))
        return 503;
    rcpt_buffer_append(&request->body, bytes, size);
    return 0;
}

/* ---- decompression ---- */

/* One call of inflate into the free capacity. The limits hold for what comes out, at every step: a
 * bomb is stopped before it has grown. */
static int inflate_some(struct rcpt_http_request *request, z_stream *stream,
                        struct rcpt_buffer *plain, int *status)
{
    if (!reserve(request, plain, 1))
        return 503;
    size_t free_bytes = plain->capacity - plain->size - 1;
    stream->next_out = (Bytef *)plain->bytes + plain->size;
    stream->avail_out = (uInt)(free_bytes < 1u << 30 ? free_bytes : 1u << 30);
    size_t before = stream->avail_out;
    *status = inflate(stream, Z_NO_FLUSH);
    plain->size += before - stream->avail_out;
    if (plain->size > http_body_limit(request) || http_is_bomb(plain->size, request->body.size))
        return 413;
    return *status == Z_OK || *status == Z_STREAM_END ||
                   (*status == Z_BUF_ERROR && stream->avail_out == 0)
               ? 0
               : 400;
}

/* Ends at the end of the input, not of the first stream: trailing bytes make the body invalid. */
static int inflate_all(struct rcpt_http_request *request, z_stream *stream,
                       struct rcpt_buffer *plain)
{
    stream->next_in = (Bytef *)request->body.bytes;
    stream->avail_in = (uInt)request->body.size;
    for (;;) {
        int status = Z_OK;
        int refused = inflate_some(request, stream, plain, &status);
        if (refused != 0)
            return refused;
        if (status != Z_STREAM_END)
            continue;
        if (stream->avail_in == 0)
            return 0;
        /* gzip allows one member after the other. */
        if (request->coding != HTTP_CODING_GZIP || inflateReset(stream) != Z_OK)
            return 400;
    }
}

/* The plain body replaces the compressed one; both count in the budget meanwhile. */
int http_body_decode(struct rcpt_http_request *request)
{
    if (request->coding == HTTP_CODING_NONE || request->body.size == 0)
        return 0;
    z_stream stream = {0};
    int window = request->coding == HTTP_CODING_GZIP ? 16 + MAX_WBITS : MAX_WBITS;
    if (inflateInit2(&stream, window) != Z_OK)
        return 503;
    struct rcpt_buffer plain = {0};
    int refused = inflate_all(request, &stream, &plain);
    inflateEnd(&stream);
    if (refused != 0) {
        drop(request, &plain);
        return refused;
    }
    plain.bytes[plain.size] = '\0';
    drop(request, &request->body);
    request->body = plain;
    return 0;
}

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "internal.h"

#define FIRST_BODY_BYTES 1024u
#define FREE_BYTES       65536u /* what comes out of decompression up to here may be anything, … */
#define MAX_RATIO        100u   /* … and above it at most so many times what was sent */

/* ---- growing buffers ---- */

void http_reserve(struct http_bytes *buffer, size_t more)
{
    size_t needed = buffer->size + more;
    if (needed <= buffer->capacity)
        return;
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : 512;
    while (capacity < needed)
        capacity *= 2;
    buffer->bytes = rcpt_realloc(buffer->bytes, capacity);
    buffer->capacity = capacity;
}

void http_append(struct http_bytes *buffer, const void *bytes, size_t size)
{
    if (size == 0)
        return;
    http_reserve(buffer, size);
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

void http_bytes_free(struct http_bytes *buffer)
{
    free(buffer->bytes);
    *buffer = (struct http_bytes){0};
}

/* ---- the server's budget ---- */

size_t body_limit(const struct rcpt_http_request *request)
{
    size_t own = request->route != NULL ? request->route->is.max_body_bytes : 0;
    return own > 0 ? own : request->server->settings.max_body_bytes;
}

/* Room for so many bytes and an ending NUL. False: there is no memory for it now. */
static bool make_room(struct rcpt_http_request *request, struct http_bytes *buffer, size_t more)
{
    struct rcpt_http_server *server = request->server;
    size_t before = buffer->capacity, needed = buffer->size + more + 1;
    if (needed <= before)
        return true;
    size_t capacity = before > 0 ? before : FIRST_BODY_BYTES;
    while (capacity < needed)
        capacity *= 2;
    while (server->stats.body_bytes + capacity - before > server->settings.max_memory_bytes)
        if (!server->evict_body(server, request->connection))
            return false;
    server->stats.body_bytes += capacity - before;
    request->body_reserved += capacity - before;
    buffer->bytes = rcpt_realloc(buffer->bytes, capacity);
    buffer->capacity = capacity;
    return true;
}

static void drop(struct rcpt_http_request *request, struct http_bytes *buffer)
{
    request->server->stats.body_bytes -= buffer->capacity;
    request->body_reserved -= buffer->capacity;
    http_bytes_free(buffer);
}

void body_free(struct rcpt_http_request *request)
{
    drop(request, &request->body);
    RCPT_ASSERT(request->body_reserved == 0);
}

int body_append(struct rcpt_http_request *request, const char *bytes, size_t size)
{
    if (request->body.size + size > body_limit(request))
        return 413;
    if (!make_room(request, &request->body, size))
        return 503;
    memcpy(request->body.bytes + request->body.size, bytes, size);
    request->body.size += size;
    request->body.bytes[request->body.size] = '\0';
    return 0;
}

/* ---- decompression ---- */

/* One call of inflate into what room there is; the limit holds for what comes out. */
static int inflate_some(struct rcpt_http_request *request, z_stream *stream,
                        struct http_bytes *plain, int *status)
{
    if (!make_room(request, plain, 1))
        return 503;
    size_t room = plain->capacity - plain->size - 1;
    stream->next_out = (Bytef *)plain->bytes + plain->size;
    stream->avail_out = (uInt)(room < 1u << 30 ? room : 1u << 30);
    size_t before = stream->avail_out;
    *status = inflate(stream, Z_NO_FLUSH);
    plain->size += before - stream->avail_out;
    if (plain->size > body_limit(request) ||
        (plain->size > FREE_BYTES && plain->size / MAX_RATIO > request->body.size))
        return 413;
    return *status == Z_OK || *status == Z_STREAM_END ||
                   (*status == Z_BUF_ERROR && stream->avail_out == 0)
               ? 0
               : 400;
}

static int inflate_all(struct rcpt_http_request *request, z_stream *stream,
                       struct http_bytes *plain)
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

int body_decode(struct rcpt_http_request *request)
{
    if (request->coding == HTTP_CODING_NONE || request->body.size == 0)
        return 0;
    z_stream stream = {0};
    int window = request->coding == HTTP_CODING_GZIP ? 16 + MAX_WBITS : MAX_WBITS;
    if (inflateInit2(&stream, window) != Z_OK)
        return 503;
    struct http_bytes plain = {0};
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

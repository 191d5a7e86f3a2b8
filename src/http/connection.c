/* One client: bytes in, answers out in order, and its end. The states are in connection_state.c.
 *
 * libuv reads into one buffer of the server; http_connection_parse feeds the parser, handlers fill
 * `out` (answer.c), and http_connection_flush sends once per turn of the loop. Backpressure: above
 * the limits of pipelined requests or unsent bytes the rest of the input is held and the socket is
 * not read (HELD). server.c accepts, evicts and ticks. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define KEPT_OUT_BYTES 4096u /* of an idle connection's buffer */
/* Nothing more is read from a client that takes no answers. */
#define MAX_UNSENT_BYTES (256u * 1024)

/* The rest that a full socket did not take: bytes of its own, or a share in a piece. */
struct write {
    uv_write_t request;
    struct connection *connection;
    char *bytes;
    struct rcpt_http_piece *piece;
    size_t size;
};

/* ---- the end ---- */

/* The second phase of the end: libuv is done with the handle, so the memory goes. */
static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    struct rcpt_http_server *server = connection->server;
    http_tls_session_free(connection->tls);
    rcpt_buffer_free(&connection->held);
    rcpt_buffer_free(&connection->out);
    free(connection);
    http_handle_closed(server);
}

/* Takes it out of both lists of the server. */
static void unlink_connection(struct connection *connection)
{
    struct rcpt_http_server *server = connection->server;
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    server->stats.connections--;
    http_source_disconnect(server, &connection->address);
    if (!connection->dirty)
        return;
    struct connection **link = &server->dirty;
    while (*link != connection)
        link = &(*link)->next_dirty;
    *link = connection->next_dirty;
}

/* Handlers keep the requests that they hold, without a connection; all others are freed. */
static void orphan_requests(struct connection *connection)
{
    struct rcpt_http_request *request = connection->first;
    connection->first = connection->last = connection->incoming = NULL;
    while (request != NULL) {
        struct rcpt_http_request *next = request->next;
        request->connection = NULL;
        request->next = NULL;
        if (request->handed && !request->answered)
            http_answer_report_gone(request);
        else
            http_request_free(request);
        request = next;
    }
}

/* Safe to call twice, and from inside callbacks: the memory stays until on_closed. */
void http_connection_close(struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSED)
        return;
    http_connection_set_state(connection, CONNECTION_CLOSED);
    unlink_connection(connection);
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
    orphan_requests(connection);
}

/* ---- out ---- */

/* A piece stays as long as one of its rests. */
static void free_write(struct write *write)
{
    free(write->bytes);
    if (write->piece != NULL)
        rcpt_http_piece_release(write->piece);
    free(write);
}

/* The client took some bytes: the time for the rest starts again. */
static void on_written(uv_write_t *handle, int status)
{
    struct write *write = (struct write *)handle;
    struct connection *connection = write->connection;
    connection->writing_bytes -= write->size;
    connection->write_deadline_ms =
        http_now(connection->server) + connection->server->settings.write_timeout_ms;
    free_write(write);
    if (status < 0) {
        http_connection_close(connection);
        return;
    }
    if (connection->writing_bytes == 0 &&
        http_connection_waits_for_client(connection)) /* its time begins now */
        http_connection_set_state(connection, connection->state);
    http_connection_touch(connection);
}

/* Takes over `write`, whose bytes or piece hold `from`. */
static void write_later(struct connection *connection, struct write *write, char *from, size_t size)
{
    write->connection = connection;
    write->size = size;
    if (connection->writing_bytes == 0)
        connection->write_deadline_ms =
            http_now(connection->server) + connection->server->settings.write_timeout_ms;
    connection->writing_bytes += size;
    uv_buf_t buffer = uv_buf_init(from, (unsigned)size);
    if (uv_write(&write->request, (uv_stream_t *)&connection->tcp, &buffer, 1, on_written) != 0) {
        connection->writing_bytes -= size;
        free_write(write);
        http_connection_close(connection);
    }
}

/* How many bytes the socket takes at once. SIZE_MAX: it is broken, and the connection closed. */
static size_t try_socket(struct connection *connection, const char *bytes, size_t size)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)size);
    int sent = connection->writing_bytes > 0
                   ? UV_EAGAIN
                   : uv_try_write((uv_stream_t *)&connection->tcp, &buffer, 1);
    connection->server->stats.bytes_out += size;
    if (sent >= 0 || sent == UV_EAGAIN)
        return sent >= 0 ? (size_t)sent : 0;
    http_connection_close(connection);
    return SIZE_MAX;
}

/* Most answers leave in one system call without an allocation. */
void http_connection_send(struct connection *connection)
{
    if (connection->tls != NULL)
        http_tls_encrypt(connection);
    if (connection->out.size == 0)
        return;
    size_t sent = try_socket(connection, connection->out.bytes, connection->out.size);
    if (sent == SIZE_MAX)
        return;
    if (sent < connection->out.size) {
        struct write *write = rcpt_calloc(1, sizeof(*write));
        size_t left = connection->out.size - sent;
        write->bytes = connection->out.bytes;
        connection->out = (struct rcpt_buffer){0};
        write_later(connection, write, write->bytes + sent, left);
    } else {
        connection->out.size = 0;
    }
    if (connection->out.capacity > (connection->slim ? 0 : KEPT_OUT_BYTES))
        rcpt_buffer_free(&connection->out);
}

/* The same for bytes of a piece, when nothing is there that goes first. */
void http_connection_send_piece(struct connection *connection, struct rcpt_http_piece *piece,
                                size_t from, size_t size)
{
    size_t sent = try_socket(connection, piece->bytes + from, size);
    RCPT_ASSERT(connection->tls == NULL && connection->out.size == 0);
    if (sent >= size) /* all of it, or the connection is gone */
        return;
    struct write *write = rcpt_calloc(1, sizeof(*write));
    write->piece = piece;
    piece->references++;
    write_later(connection, write, piece->bytes + from + sent, size - sent);
}

/* ---- in ---- */

/* One buffer serves all connections, since every read is parsed before the next. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    const struct connection *connection = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(connection->server->read_buffer, HTTP_READ_BYTES);
}

/* Whether the client asks faster than handlers answer, or than it takes answers. */
static bool is_full(const struct connection *connection)
{
    return connection->owed >= connection->server->settings.max_pipelined ||
           connection->out.size + connection->writing_bytes > MAX_UNSENT_BYTES;
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer);

/* Reads until the connection is held. */
void http_connection_read(struct connection *connection)
{
    uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read);
    connection->reading = true;
}

static void read_no_more(struct connection *connection)
{
    if (connection->reading)
        uv_read_stop((uv_stream_t *)&connection->tcp);
    connection->reading = false;
}

/* The bytes read so far stay with the connection; TCP makes the client wait with the rest. */
static void hold(struct connection *connection, const char *bytes, size_t size)
{
    rcpt_buffer_append(&connection->held, bytes, size);
    read_no_more(connection);
    if (connection->state == CONNECTION_IDLE)
        http_connection_set_state(connection, CONNECTION_HELD);
}

/* The input is not HTTP, or exceeds a limit: the answer goes out after those that are owed, and the
 * connection ends. */
static void refuse_input(struct connection *connection)
{
    int status = http_parse_error_status(connection);
    struct rcpt_http_request *request = connection->incoming;
    if (request == NULL)
        request = connection->incoming = http_request_new(connection);
    http_request_refuse(request, status);
    http_connection_end_after(connection);
    http_request_complete(request);
}

/* Parses one piece and cuts it off. False: nothing more is parsed now. A callback may have closed
 * the connection, so its state is read again. */
static bool parse_some(struct connection *connection, const char **bytes, size_t *size)
{
    llhttp_t *parser = &connection->parser;
    size_t piece = http_parse_piece(connection, *bytes, *size);
    llhttp_errno_t error = piece > 0 ? http_parse_execute(connection, *bytes, piece) : HPE_USER;
    if (connection->state == CONNECTION_CLOSED || connection->close_after)
        return false;
    if (error == HPE_PAUSED)
        piece = (size_t)(llhttp_get_error_pos(parser) - *bytes);
    *bytes += piece;
    *size -= piece;
    if (error == HPE_OK)
        return true;
    if (error == HPE_PAUSED) {
        llhttp_resume(parser);
        hold(connection, *bytes, *size);
        return false;
    }
    refuse_input(connection);
    return false;
}

/* Plain bytes, from the socket or out of TLS. Bytes after the last request of a connection are
 * dropped. */
void http_connection_parse(struct connection *connection, const char *bytes, size_t size)
{
    if (connection->close_after || connection->state == CONNECTION_LINGERING)
        return;
    if (connection->state == CONNECTION_HELD ||
        (connection->state == CONNECTION_IDLE && is_full(connection))) {
        hold(connection, bytes, size);
        return;
    }
    while (size > 0 && parse_some(connection, &bytes, &size))
        ;
}

/* A client may close its side and still wait for answers. */
static void on_client_ended(struct connection *connection)
{
    connection->client_ended = true;
    read_no_more(connection);
    if (connection->owed == 0 && connection->out.size == 0 && connection->writing_bytes == 0) {
        http_connection_close(connection);
        return;
    }
    http_connection_end_after(connection); /* nothing is held: that is not read past */
    http_connection_touch(connection);
}

/* Size 0 is libuv's EAGAIN: there was nothing more to read. */
static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct connection *connection = stream->data;
    if (size == 0)
        return; /* there was nothing more to read; for the parser no byte is the end of the input */
    if (size == UV_EOF) {
        on_client_ended(connection);
        return;
    }
    if (size < 0) {
        http_connection_close(connection);
        return;
    }
    connection->server->stats.bytes_in += (uint64_t)size;
    if (connection->tls == NULL) {
        http_connection_parse(connection, buffer->base, (size_t)size);
    } else if (!http_tls_receive(connection, buffer->base, (size_t)size, http_connection_parse)) {
        http_connection_close(connection);
    } else {
        http_connection_touch(connection);
    }
}

/* An answer went out: held bytes are parsed, and the socket is read again. */
static void resume(struct connection *connection)
{
    if (connection->state != CONNECTION_HELD || is_full(connection) || connection->close_after)
        return;
    struct rcpt_buffer held = connection->held;
    connection->held = (struct rcpt_buffer){0};
    /* In the middle of a body that was held for slow answers, the rest gets its whole time
     * again. */
    http_connection_set_state(connection, CONNECTION_IDLE);
    if (held.size > 0)
        http_connection_parse(connection, held.bytes, held.size);
    rcpt_buffer_free(&held);
    if (connection->state == CONNECTION_CLOSED || connection->state == CONNECTION_HELD)
        return;
    http_connection_read(connection);
}

/* Our end is closed; the connection goes when the client's is too. */
static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *connection = request->data;
    free(request);
    if (status < 0 || connection->client_ended)
        http_connection_close(connection);
}

/* Closes our end and awaits the client's: closing with bytes unread would reset the connection, and
 * the reset could destroy the answer on its way. */
static void begin_lingering(struct connection *connection)
{
    if (connection->end_sent)
        return;
    connection->end_sent = true;
    if (connection->tls != NULL) {
        http_tls_say_goodbye(connection);
        http_connection_send(connection);
    }
    if (connection->state == CONNECTION_CLOSED)
        return;
    http_connection_set_state(connection, CONNECTION_LINGERING);
    if (!connection->reading && !connection->client_ended)
        http_connection_read(connection);
    uv_shutdown_t *request = rcpt_calloc(1, sizeof(*request));
    request->data = connection;
    if (uv_shutdown(request, (uv_stream_t *)&connection->tcp, on_shutdown) != 0) {
        free(request);
        http_connection_close(connection);
    }
}

/* Each step may close the connection, so each next one checks the state. */
static void flush_one(struct connection *connection)
{
    http_answer_advance(connection);
    resume(connection);
    if (connection->state == CONNECTION_CLOSED)
        return;
    http_connection_send(connection);
    if (connection->state == CONNECTION_CLOSED || connection->first != NULL)
        return;
    if (connection->close_after)
        begin_lingering(connection);
    else if (connection->server->draining && connection->state == CONNECTION_IDLE &&
             connection->writing_bytes == 0)
        http_connection_close(connection);
}

/* Flushing one connection may touch another: the loop handles it too. */
void http_connection_flush(struct rcpt_http_server *server)
{
    while (server->dirty != NULL) {
        struct connection *connection = server->dirty;
        server->dirty = connection->next_dirty;
        connection->dirty = false;
        flush_one(connection);
    }
}

/* ---- time ---- */

/* Whether the client has taken something of what libuv holds for it since the last tick; if so, its
 * time starts again. */
static bool takes_answers(struct connection *connection)
{
    size_t queued = uv_stream_get_write_queue_size((uv_stream_t *)&connection->tcp);
    bool moved = queued != connection->queued_bytes;
    connection->queued_bytes = queued;
    if (moved)
        connection->write_deadline_ms =
            http_now(connection->server) + connection->server->settings.write_timeout_ms;
    return moved;
}

/* A request that was begun gets 408; a client that sent nothing is closed without a word. */
static void expire(struct connection *connection)
{
    struct rcpt_http_request *request = connection->incoming;
    bool asks = connection->state == CONNECTION_HEAD || connection->state == CONNECTION_BODY;
    connection->server->stats.timeouts += connection->state != CONNECTION_IDLE;
    if (!asks || request == NULL) {
        http_connection_close(connection);
        return;
    }
    http_request_refuse(request, 408);
    http_connection_end_after(connection);
    http_request_complete(request);
    connection->deadline_ms = INT64_MAX;
}

/* The server's tick. Closing unlinks the connection, hence `next`. */
void http_connection_expire(struct rcpt_http_server *server)
{
    int64_t now = http_now(server);
    struct connection *next;
    for (struct connection *each = server->connections; each != NULL; each = next) {
        next = each->next;
        if (each->writing_bytes > 0 && !takes_answers(each) && each->write_deadline_ms <= now) {
            server->stats.timeouts++;
            http_connection_close(each);
        } else if (each->deadline_ms <= now &&
                   (each->writing_bytes == 0 || !http_connection_waits_for_client(each))) {
            expire(each);
        }
    }
}

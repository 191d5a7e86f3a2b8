#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define SLOW_MS        1000  /* of one request, where others wait for a connection or memory */
#define KEPT_OUT_BYTES 4096u /* of an idle connection's buffer */
#define MAX_UNSENT_BYTES                                                                           \
    (256u * 1024)         /* nothing more is read from a client that takes no answers */
#define REFUSED_SLACK 64u /* connections above the limit that are told so */

struct write {
    uv_write_t request;
    struct connection *connection;
    char *bytes;
    size_t size;
};

/* ---- states ---- */

static int64_t deadline_of(const struct connection *connection, enum connection_state state)
{
    const struct rcpt_http_settings *settings = &connection->server->settings;
    int64_t now = http_now(connection->server);
    switch (state) {
    case CONNECTION_IDLE:
        return connection->first != NULL ? INT64_MAX : now + settings->idle_timeout_ms;
    case CONNECTION_HEAD:
        return now + settings->header_timeout_ms;
    case CONNECTION_BODY:
        return now + settings->body_timeout_ms;
    case CONNECTION_LINGERING:
        return now + HTTP_LINGER_MS;
    case CONNECTION_HELD:
    case CONNECTION_CLOSED:
        break;
    }
    return INT64_MAX;
}

void connection_set_state(struct connection *connection, enum connection_state state)
{
    static const bool legal[CONNECTION_CLOSED + 1][CONNECTION_CLOSED + 1] = {
        [CONNECTION_IDLE] = {[CONNECTION_IDLE] = true,
                             [CONNECTION_HEAD] = true,
                             [CONNECTION_HELD] = true,
                             [CONNECTION_LINGERING] = true,
                             [CONNECTION_CLOSED] = true},
        [CONNECTION_HEAD] = {[CONNECTION_IDLE] = true,
                             [CONNECTION_BODY] = true,
                             [CONNECTION_HELD] = true,
                             [CONNECTION_LINGERING] = true,
                             [CONNECTION_CLOSED] = true},
        [CONNECTION_BODY] = {[CONNECTION_IDLE] = true,
                             [CONNECTION_HELD] = true,
                             [CONNECTION_LINGERING] = true,
                             [CONNECTION_CLOSED] = true},
        [CONNECTION_HELD] = {[CONNECTION_IDLE] = true,
                             [CONNECTION_HELD] = true,
                             [CONNECTION_LINGERING] = true,
                             [CONNECTION_CLOSED] = true},
        [CONNECTION_LINGERING] = {[CONNECTION_LINGERING] = true, [CONNECTION_CLOSED] = true},
    };
    RCPT_ASSERT(legal[connection->state][state]);
    if (connection->served || connection->since_ms == 0)
        connection->since_ms = http_now(connection->server);
    connection->state = state;
    connection->deadline_ms = deadline_of(connection, state);
}

/* Slow heads and slow bodies come from those who never end a request: whoever has is worth more,
 * also while it rests. */
enum connection_worth connection_worth(const struct connection *connection)
{
    bool asks = connection->state == CONNECTION_HEAD || connection->state == CONNECTION_BODY;
    if (connection->owed > 0 || connection->out.size > 0 || connection->writing_bytes > 0 ||
        connection->state == CONNECTION_CLOSED)
        return CONNECTION_KEPT;
    if (!connection->served)
        return CONNECTION_UNPROVEN;
    if (!asks)
        return CONNECTION_RESTING;
    return connection_is_slow(connection) ? CONNECTION_SLOW : CONNECTION_KEPT;
}

bool connection_is_slow(const struct connection *connection)
{
    return http_now(connection->server) - connection->since_ms >= SLOW_MS;
}

/* ---- the end ---- */

static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    struct rcpt_http_server *server = connection->server;
    tls_session_free(connection->tls);
    rcpt_buffer_free(&connection->held);
    rcpt_buffer_free(&connection->out);
    free(connection);
    http_handle_closed(server);
}

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
    source_disconnect(server, &connection->address);
    if (!connection->dirty)
        return;
    struct connection **link = &server->dirty;
    while (*link != connection)
        link = &(*link)->next_dirty;
    *link = connection->next_dirty;
}

/* Handlers keep what they were given; the rest is nobody's. */
static void orphan_requests(struct connection *connection)
{
    struct rcpt_http_request *request = connection->first;
    connection->first = connection->last = connection->incoming = NULL;
    while (request != NULL) {
        struct rcpt_http_request *next = request->next;
        request->connection = NULL;
        request->next = NULL;
        if (request->handed && !request->answered)
            answer_tell_gone(request);
        else
            request_free(request);
        request = next;
    }
}

void connection_close(struct connection *connection)
{
    if (connection->state == CONNECTION_CLOSED)
        return;
    connection_set_state(connection, CONNECTION_CLOSED);
    unlink_connection(connection);
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
    orphan_requests(connection);
}

void connection_end_after(struct connection *connection)
{
    connection->close_after = true;
}

/* ---- out ---- */

void connection_touch(struct connection *connection)
{
    if (connection->dirty || connection->state == CONNECTION_CLOSED)
        return;
    connection->dirty = true;
    connection->next_dirty = connection->server->dirty;
    connection->server->dirty = connection;
}

/* For its next request, or for its end: not before it has taken what libuv holds for it. */
static bool waits_for_client(const struct connection *connection)
{
    return connection->state == CONNECTION_IDLE || connection->state == CONNECTION_LINGERING;
}

static void on_written(uv_write_t *handle, int status)
{
    struct write *write = (struct write *)handle;
    struct connection *connection = write->connection;
    connection->writing_bytes -= write->size;
    connection->write_deadline_ms =
        http_now(connection->server) + connection->server->settings.write_timeout_ms;
    free(write->bytes);
    free(write);
    if (status < 0) {
        connection_close(connection);
        return;
    }
    if (connection->writing_bytes == 0 && waits_for_client(connection)) /* its time begins now */
        connection_set_state(connection, connection->state);
    connection_touch(connection);
}

/* What the socket does not take at once goes to libuv, memory and all. */
static void send_rest(struct connection *connection, size_t sent)
{
    struct write *write = rcpt_calloc(1, sizeof(*write));
    write->connection = connection;
    write->bytes = connection->out.bytes;
    write->size = connection->out.size - sent;
    connection->out = (struct rcpt_buffer){0};
    if (connection->writing_bytes == 0)
        connection->write_deadline_ms =
            http_now(connection->server) + connection->server->settings.write_timeout_ms;
    connection->writing_bytes += write->size;
    uv_buf_t buffer = uv_buf_init(write->bytes + sent, (unsigned)write->size);
    if (uv_write(&write->request, (uv_stream_t *)&connection->tcp, &buffer, 1, on_written) != 0) {
        connection->writing_bytes -= write->size;
        free(write->bytes);
        free(write);
        connection_close(connection);
    }
}

void connection_send(struct connection *connection)
{
    if (connection->tls != NULL)
        tls_encrypt(connection);
    if (connection->out.size == 0)
        return;
    connection->server->stats.bytes_out += connection->out.size;
    uv_buf_t buffer = uv_buf_init(connection->out.bytes, (unsigned)connection->out.size);
    int sent = connection->writing_bytes > 0
                   ? UV_EAGAIN
                   : uv_try_write((uv_stream_t *)&connection->tcp, &buffer, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        connection_close(connection);
        return;
    }
    if (sent < 0 || (size_t)sent < connection->out.size)
        send_rest(connection, sent < 0 ? 0 : (size_t)sent);
    else
        connection->out.size = 0;
    if (connection->out.capacity > KEPT_OUT_BYTES)
        rcpt_buffer_free(&connection->out);
}

/* ---- in ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    const struct connection *connection = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(connection->server->read_buffer, HTTP_READ_BYTES);
}

static bool is_full(const struct connection *connection)
{
    return connection->owed >= connection->server->settings.max_pipelined ||
           connection->out.size + connection->writing_bytes > MAX_UNSENT_BYTES;
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer);

static void read_on(struct connection *connection)
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

/* No more is read while answers are owed to a client that asks ahead, or that takes none. */
static void hold(struct connection *connection, const char *bytes, size_t size)
{
    rcpt_buffer_append(&connection->held, bytes, size);
    read_no_more(connection);
    if (connection->state == CONNECTION_IDLE)
        connection_set_state(connection, CONNECTION_HELD);
}

/* Not HTTP, or too much of it: the answer goes out after those that are owed, then it is over. */
static void refuse_input(struct connection *connection)
{
    int status = parse_error_status(connection);
    struct rcpt_http_request *request = connection->incoming;
    if (request == NULL)
        request = connection->incoming = request_new(connection);
    request_refuse(request, status);
    connection_end_after(connection);
    request_complete(request);
}

/* The next piece, which is cut off. False: nothing more is parsed now. */
static bool parse_some(struct connection *connection, const char **bytes, size_t *size)
{
    llhttp_t *parser = &connection->parser;
    size_t piece = parse_piece(connection, *bytes, *size);
    llhttp_errno_t error = piece > 0 ? llhttp_execute(parser, *bytes, piece) : HPE_USER;
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

void connection_parse(struct connection *connection, const char *bytes, size_t size)
{
    if (connection->close_after || connection->state == CONNECTION_LINGERING)
        return; /* nobody asked for what comes now */
    if (connection->state == CONNECTION_HELD ||
        (connection->state == CONNECTION_IDLE && is_full(connection))) {
        hold(connection, bytes, size);
        return;
    }
    while (size > 0 && parse_some(connection, &bytes, &size))
        ;
}

/* The client has said its last word, and may still wait for answers. */
static void on_client_ended(struct connection *connection)
{
    connection->client_ended = true;
    read_no_more(connection);
    if (connection->owed == 0 && connection->out.size == 0 && connection->writing_bytes == 0) {
        connection_close(connection);
        return;
    }
    connection_end_after(connection); /* nothing is held: that is not read past */
    connection_touch(connection);
}

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
        connection_close(connection);
        return;
    }
    connection->server->stats.bytes_in += (uint64_t)size;
    if (connection->tls == NULL) {
        connection_parse(connection, buffer->base, (size_t)size);
    } else if (!tls_receive(connection, buffer->base, (size_t)size)) {
        connection_close(connection);
    } else {
        connection_touch(connection);
    }
}

/* An answer went out: what was held back may be looked at, and more be read. */
static void resume(struct connection *connection)
{
    if (connection->state != CONNECTION_HELD || is_full(connection) || connection->close_after)
        return;
    struct rcpt_buffer held = connection->held;
    connection->held = (struct rcpt_buffer){0};
    /* In the middle of a body that is held for slow answers, the rest has its time anew. */
    connection_set_state(connection, CONNECTION_IDLE);
    if (held.size > 0)
        connection_parse(connection, held.bytes, held.size);
    rcpt_buffer_free(&held);
    if (connection->state == CONNECTION_CLOSED || connection->state == CONNECTION_HELD)
        return;
    read_on(connection);
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct connection *connection = request->data;
    free(request);
    if (status < 0 || connection->client_ended)
        connection_close(connection);
}

/* Our end is closed and the client's awaited: closing with bytes unread would reset the connection
 * and could take the answer with it. */
static void begin_lingering(struct connection *connection)
{
    if (connection->shut)
        return;
    connection->shut = true;
    if (connection->tls != NULL)
        tls_say_goodbye(connection);
    if (connection->state == CONNECTION_CLOSED)
        return;
    connection_set_state(connection, CONNECTION_LINGERING);
    if (!connection->reading && !connection->client_ended)
        read_on(connection);
    uv_shutdown_t *request = rcpt_calloc(1, sizeof(*request));
    request->data = connection;
    if (uv_shutdown(request, (uv_stream_t *)&connection->tcp, on_shutdown) != 0) {
        free(request);
        connection_close(connection);
    }
}

static void flush_one(struct connection *connection)
{
    answer_advance(connection);
    resume(connection);
    if (connection->state == CONNECTION_CLOSED)
        return;
    connection_send(connection);
    if (connection->state == CONNECTION_CLOSED || connection->first != NULL)
        return;
    if (connection->close_after)
        begin_lingering(connection);
    else if (connection->server->draining && connection->state == CONNECTION_IDLE &&
             connection->writing_bytes == 0)
        connection_close(connection);
}

void connection_flush(struct rcpt_http_server *server)
{
    while (server->dirty != NULL) {
        struct connection *connection = server->dirty;
        server->dirty = connection->next_dirty;
        connection->dirty = false;
        flush_one(connection);
    }
}

/* ---- time ---- */

/* Whether the client has taken something of what libuv holds for it since the last look. */
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

static void expire(struct connection *connection)
{
    struct rcpt_http_request *request = connection->incoming;
    bool asks = connection->state == CONNECTION_HEAD || connection->state == CONNECTION_BODY;
    connection->server->stats.timeouts += connection->state != CONNECTION_IDLE;
    if (!asks || request == NULL) {
        connection_close(connection);
        return;
    }
    request_refuse(request, 408);
    connection_end_after(connection);
    request_complete(request);
    connection->deadline_ms = INT64_MAX;
}

void connection_expire(struct rcpt_http_server *server)
{
    int64_t now = http_now(server);
    struct connection *next;
    for (struct connection *each = server->connections; each != NULL; each = next) {
        next = each->next;
        if (each->writing_bytes > 0 && !takes_answers(each) && each->write_deadline_ms <= now) {
            server->stats.timeouts++;
            connection_close(each);
        } else if (each->deadline_ms <= now &&
                   (each->writing_bytes == 0 || !waits_for_client(each))) {
            expire(each);
        }
    }
}

/* ---- the beginning ---- */

static void link_connection(struct connection *connection)
{
    struct rcpt_http_server *server = connection->server;
    connection->next = server->connections;
    if (server->connections != NULL)
        server->connections->previous = connection;
    server->connections = connection;
    server->stats.connections++;
}

static void read_address(struct connection *connection)
{
    struct sockaddr_storage address = {0};
    int size = sizeof(address);
    uv_tcp_getpeername(&connection->tcp, (struct sockaddr *)&address, &size);
    connection->address = rcpt_address_of((const struct sockaddr *)&address);
}

/* Too many already: said in one line, without reading anything. */
static void turn_away(struct connection *connection)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
                               "Content-Length: 0\r\nConnection: close\r\n\r\n";
    connection->server->stats.refused_connections++;
    connection_end_after(connection);
    if (connection->tls != NULL ||
        connection->server->stats.connections >
            connection->server->settings.max_connections + REFUSED_SLACK) {
        connection_close(connection);
        return;
    }
    rcpt_buffer_append(&connection->out, text, sizeof(text) - 1);
    connection_touch(connection);
}

void connection_accept(struct rcpt_http_server *server)
{
    struct connection *connection = rcpt_calloc(1, sizeof(*connection));
    connection->server = server;
    uv_tcp_init(server->settings.loop, &connection->tcp);
    connection->tcp.data = connection;
    server->open_handles++;
    server->stats.accepted++;
    parse_init(connection);
    link_connection(connection);
    int status = uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&connection->tcp);
    if (status == 0)
        read_address(connection);
    bool allowed = source_connect(server, &connection->address);
    if (status != 0) {
        connection_close(connection);
        return;
    }
    uv_tcp_nodelay(&connection->tcp, 1);
    if (server->tls != NULL)
        connection->tls = tls_session_new(server->tls);
    connection_set_state(connection, CONNECTION_HEAD);
    read_on(connection);
    if (!allowed || server->stats.connections > server->settings.max_connections)
        turn_away(connection);
}

/* The beginning of a connection: it is linked, or turned away if there are too many. Called by
 * server.c for each connection that the listener has. */
#include "internal.h"

#define REFUSED_SLACK 64u /* connections above the limit that get an answer */

/* Into the list of the server, which evicts and ticks by it. */
static void link_connection(struct connection *connection)
{
    struct rcpt_http_server *server = connection->server;
    connection->next = server->connections;
    if (server->connections != NULL)
        server->connections->previous = connection;
    server->connections = connection;
    server->stats.connections++;
}

/* Fails only if the client is gone already: then the address is "::". */
static void read_address(struct connection *connection)
{
    struct sockaddr_storage address = {0};
    int size = sizeof(address);
    uv_tcp_getpeername(&connection->tcp, (struct sockaddr *)&address, &size);
    connection->address = rcpt_address_of((const struct sockaddr *)&address);
}

/* Too many connections: one line says so, without reading anything. Far above the limit, and where
 * TLS would need a handshake first, even that is too much. */
static void turn_away(struct connection *connection)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"
                               "Content-Length: 0\r\nConnection: close\r\n\r\n";
    connection->server->stats.refused_connections++;
    http_connection_end_after(connection);
    if (connection->tls != NULL ||
        connection->server->stats.connections >
            connection->server->settings.max_connections + REFUSED_SLACK) {
        http_connection_close(connection);
        return;
    }
    rcpt_buffer_append(&connection->out, text, sizeof(text) - 1);
    http_connection_touch(connection);
}

/* uv_accept needs an initialised handle, so the connection exists before it is known to be one. */
void http_connection_accept(struct rcpt_http_server *server)
{
    struct connection *connection = rcpt_calloc(1, sizeof(*connection));
    connection->server = server;
    uv_tcp_init(server->settings.loop, &connection->tcp);
    connection->tcp.data = connection;
    server->open_handles++;
    server->stats.accepted++;
    http_parse_init(connection);
    link_connection(connection);
    int status = uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)&connection->tcp);
    if (status == 0)
        read_address(connection);
    bool allowed = http_source_connect(server, &connection->address);
    if (status != 0) {
        http_connection_close(connection);
        return;
    }
    uv_tcp_nodelay(&connection->tcp, 1);
    if (server->tls != NULL)
        connection->tls = http_tls_session_new(server->tls);
    http_connection_set_state(connection, CONNECTION_HEAD);
    http_connection_read(connection);
    bool full = server->stats.connections > server->settings.max_connections;
    if (!allowed || (full && !server->evict_share(server, connection)))
        turn_away(connection);
}

/* The states of a connection (internal.h has the table of what each awaits): one setter, which arms
 * the state's deadline, and the questions of a server that has too many connections. A leaf: the
 * files around it do the work. */
#include "internal.h"

#include "receiptd/base/states.h"

#define SLOW_MS 1000 /* of one request, where others wait for a connection or memory */

/* In IDLE the client has its time only while nothing is owed to it. */
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

void http_connection_set_state(struct connection *connection, enum connection_state state)
{
    /* HELD leads to HEAD through IDLE: held bytes are parsed as if they came now. */
    static const unsigned successors[CONNECTION_CLOSED + 1] = {
        [CONNECTION_IDLE] = RCPT_TO(CONNECTION_IDLE) | RCPT_TO(CONNECTION_HEAD) |
                            RCPT_TO(CONNECTION_HELD) | RCPT_TO(CONNECTION_LINGERING) |
                            RCPT_TO(CONNECTION_CLOSED),
        [CONNECTION_HEAD] = RCPT_TO(CONNECTION_IDLE) | RCPT_TO(CONNECTION_BODY) |
                            RCPT_TO(CONNECTION_HELD) | RCPT_TO(CONNECTION_LINGERING) |
                            RCPT_TO(CONNECTION_CLOSED),
        [CONNECTION_BODY] = RCPT_TO(CONNECTION_IDLE) | RCPT_TO(CONNECTION_HELD) |
                            RCPT_TO(CONNECTION_LINGERING) | RCPT_TO(CONNECTION_CLOSED),
        [CONNECTION_HELD] = RCPT_TO(CONNECTION_IDLE) | RCPT_TO(CONNECTION_HELD) |
                            RCPT_TO(CONNECTION_LINGERING) | RCPT_TO(CONNECTION_CLOSED),
        [CONNECTION_LINGERING] = RCPT_TO(CONNECTION_LINGERING) | RCPT_TO(CONNECTION_CLOSED),
    };
    RCPT_ASSERT_FOLLOWS(successors, connection->state, state);
    /* A connection that was never served keeps the time of its beginning: it may be the first to
     * give way. */
    if (connection->served || connection->since_ms == 0)
        connection->since_ms = http_now(connection->server);
    connection->state = state;
    connection->deadline_ms = deadline_of(connection, state);
}

/* Whether an answer lies here and the client takes nothing of it. */
static bool is_stuck(const struct connection *connection)
{
    const struct rcpt_http_server *server = connection->server;
    int64_t took_ms = connection->write_deadline_ms - server->settings.write_timeout_ms;
    return connection->writing_bytes > 0 && http_now(server) - took_ms >= SLOW_MS;
}

/* Slow heads and slow bodies come from clients that never complete a request: one that has
 * completed a request is worth more, also while it rests. */
enum http_connection_worth http_connection_worth(const struct connection *connection)
{
    bool asks = connection->state == CONNECTION_HEAD || connection->state == CONNECTION_BODY;
    if (connection->state != CONNECTION_CLOSED && is_stuck(connection))
        return CONNECTION_SLOW;
    if (connection->owed > 0 || connection->out.size > 0 || connection->writing_bytes > 0 ||
        connection->state == CONNECTION_CLOSED)
        return CONNECTION_KEPT;
    if (!connection->served)
        return CONNECTION_UNPROVEN;
    if (!asks)
        return CONNECTION_RESTING;
    return http_connection_is_slow(connection) ? CONNECTION_SLOW : CONNECTION_KEPT;
}

bool http_connection_is_slow(const struct connection *connection)
{
    return http_now(connection->server) - connection->since_ms >= SLOW_MS;
}

void http_connection_end_after(struct connection *connection)
{
    connection->close_after = true;
}

/* The list is emptied once per turn of the loop, so that the answers of a turn leave in one
 * write. */
void http_connection_touch(struct connection *connection)
{
    if (connection->dirty || connection->state == CONNECTION_CLOSED)
        return;
    connection->dirty = true;
    connection->next_dirty = connection->server->dirty;
    connection->server->dirty = connection;
}

/* The next request, or the end of the connection, is the client's turn only when libuv holds
 * nothing more for it. */
bool http_connection_waits_for_client(const struct connection *connection)
{
    return connection->state == CONNECTION_IDLE || connection->state == CONNECTION_LINGERING;
}

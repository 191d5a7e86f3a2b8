/* Any bytes in any pieces: a request is refused or reaches the handler whole, and no byte of it is
 * read twice or out of bounds. The first byte of the input is the size of the pieces. */
#include <stdlib.h>
#include <string.h>

#include "http/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uv_loop_t loop;
static struct rcpt_http_server *server;

static void on_request(void *context, struct rcpt_http_request *request)
{
    struct rcpt_http_text name, value, body = rcpt_http_body(request),
                                       rest = rcpt_http_rest(request);
    size_t sum = rcpt_http_query(request).size + strlen(rcpt_http_source(request));
    (void)context;
    for (size_t i = 0; i < rcpt_http_header_count(request); i++) {
        rcpt_http_header_at(request, i, &name, &value);
        RCPT_ASSERT(strlen(name.bytes) == name.size && value.bytes[value.size] == '\0');
        sum += name.size + value.size;
    }
    RCPT_ASSERT(body.bytes[body.size] == '\0' && body.size <= 4096 && sum < 8192);
    RCPT_ASSERT(rest.size == 0 || rest.bytes[0] == '/');
    rcpt_http_answer_text(request, 200, "ok");
}

static void begin(void)
{
    struct rcpt_error error;
    const struct rcpt_http_settings settings = {.loop = &loop,
                                                .listen = "127.0.0.1:0",
                                                .max_body_bytes = 4096,
                                                .max_header_bytes = 4096,
                                                .max_memory_bytes = 1 << 20};
    const struct rcpt_http_route route = {
        .prefix = "/a", .methods = RCPT_HTTP_GET | RCPT_HTTP_POST, .handler = on_request};
    uv_loop_init(&loop);
    server = rcpt_http_new(&settings, &error);
    RCPT_ASSERT(server != NULL);
    rcpt_http_route(server, &route);
    server->open_handles = 1; /* the server never ends here */
}

static struct connection *open_connection(void)
{
    struct connection *connection = rcpt_calloc(1, sizeof(*connection));
    connection->server = server;
    uv_tcp_init(&loop, &connection->tcp);
    connection->tcp.data = connection;
    http_parse_init(connection);
    server->open_handles++;
    server->stats.connections++;
    server->connections = connection;
    http_connection_set_state(connection, CONNECTION_HEAD);
    return connection;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (server == NULL)
        begin();
    if (size == 0)
        return 0;
    struct connection *connection = open_connection();
    size_t piece = (size_t)data[0] + 1;
    for (size_t at = 1; at < size && connection->state != CONNECTION_CLOSED; at += piece) {
        size_t now = size - at < piece ? size - at : piece;
        char *copy = rcpt_malloc(now); /* so that reading behind it is seen */
        memcpy(copy, data + at, now);
        http_connection_parse(connection, copy, now);
        free(copy);
        http_answer_advance(connection);
        connection->out.size = 0;
    }
    http_connection_close(connection);
    while (server->open_handles > 1)
        uv_run(&loop, UV_RUN_NOWAIT);
    RCPT_ASSERT(server->stats.body_bytes == 0 && server->stats.waiting_requests == 0);
    return 0;
}

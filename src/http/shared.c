/* Services of the server for its parts: the time, the route of a path, counts, and the count of its
 * users. A leaf: it calls the server through the pointers that server.c has set. */
#include <string.h>

#include "internal.h"

int64_t http_now(const struct rcpt_http_server *server)
{
    return (int64_t)uv_now(server->settings.loop);
}

/* A prefix ends at the end of the path or before a slash: "/a" does not take "/ab". */
static bool route_fits(const struct http_route *route, const char *path, size_t size)
{
    return size >= route->prefix_size && memcmp(path, route->is.prefix, route->prefix_size) == 0 &&
           (size == route->prefix_size || path[route->prefix_size] == '/');
}

/* A handful of routes: a search of all is cheaper than a tree. */
const struct http_route *http_find_route(const struct rcpt_http_server *server, const char *path,
                                         size_t size)
{
    const struct http_route *best = NULL;
    for (size_t i = 0; i < server->route_count; i++) {
        const struct http_route *route = &server->routes[i];
        if ((best == NULL || route->prefix_size > best->prefix_size) &&
            route_fits(route, path, size))
            best = route;
    }
    return best;
}

const struct rcpt_http_stats *rcpt_http_stats(const struct rcpt_http_server *server)
{
    return &server->stats;
}

/* Requests that handlers still hold keep the server alive after its end. */
void http_release(struct rcpt_http_server *server)
{
    if (--server->references == 0)
        server->free(server);
}

/* The callback is last: it may free the objects that the server was given. */
void http_report_closed(struct rcpt_http_server *server)
{
    void (*on_closed)(void *context) = server->on_closed;
    void *context = server->closed_context;
    http_release(server);
    on_closed(context);
}

/* Called in the last callback of each libuv handle. */
void http_handle_closed(struct rcpt_http_server *server)
{
    if (--server->open_handles == 0)
        http_report_closed(server);
}

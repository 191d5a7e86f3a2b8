/* The server: settings, routes, listening, limits of connections, drain and end. Connections call
 * nothing here but through the pointers in struct rcpt_http_server. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "internal.h"

#include "receiptd/base/error.h"

/* Connections that the kernel accepts while the loop is busy. */
#define BACKLOG           1024
#define SPARE_DESCRIPTORS 64u /* for everything but clients */

/* ---- settings ---- */

/* 0 means the default, so that a caller sets only the limits that it decides. */
static void fill_defaults(struct rcpt_http_settings *settings)
{
    struct {
        size_t *value, initial;
    } sizes[] = {
        {&settings->max_connections, 4096},
        {&settings->max_header_bytes, 16384},
        {&settings->max_body_bytes, 1024 * 1024},
        {&settings->max_memory_bytes, 64 * 1024 * 1024},
    };
    struct {
        int64_t *value, initial;
    } times[] = {
        {&settings->header_timeout_ms, 10000},
        {&settings->body_timeout_ms, 30000},
        {&settings->idle_timeout_ms, 75000},
        {&settings->write_timeout_ms, 20000},
    };
    for (size_t i = 0; i < RCPT_COUNT_OF(sizes); i++)
        if (*sizes[i].value == 0)
            *sizes[i].value = sizes[i].initial;
    for (size_t i = 0; i < RCPT_COUNT_OF(times); i++)
        if (*times[i].value == 0)
            *times[i].value = times[i].initial;
    if (settings->max_pipelined == 0)
        settings->max_pipelined = 16;
}

/* "127.0.0.1:80", "[::1]:80", ":80", "*:80": host and port; host is "" for all addresses. */
static bool split_listen(const char *listen, char *host, size_t capacity, const char **port)
{
    const char *colon = strrchr(listen, ':');
    if (colon == NULL || colon[1] == '\0' || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    size_t size = (size_t)(colon - listen);
    if (size >= 2 && listen[0] == '[' && listen[size - 1] == ']') {
        listen++;
        size -= 2;
    } else if (memchr(listen, ':', size) != NULL) {
        return false;
    }
    if (size >= capacity || strtoul(colon + 1, NULL, 10) > 65535)
        return false;
    memcpy(host, listen, size);
    host[size] = '\0';
    if (strcmp(host, "*") == 0)
        host[0] = '\0';
    *port = colon + 1;
    return true;
}

/* May block on DNS: this runs before the loop does. */
static bool resolve_listen(struct rcpt_http_server *server, struct rcpt_error *error)
{
    char host[64];
    const char *port;
    if (!split_listen(server->listen, host, sizeof(host), &port)) {
        rcpt_error_fatal(error, EX_CONFIG, "%s: \"%s\" is no address to listen on", server->name,
                         server->listen);
        rcpt_error_hint(error, "host:port, [IPv6]:port or :port for all addresses");
        return false;
    }
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int status = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &found);
    if (status != 0 || found == NULL) {
        rcpt_error_fatal(error, EX_CONFIG, "%s: the address \"%s\" cannot be resolved: %s",
                         server->name, server->listen, gai_strerror(status));
        return false;
    }
    memcpy(&server->listen_address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

/* A network that cannot be read is fatal: skipping it would change which peers are trusted. */
static bool read_trusted(struct rcpt_http_server *server, struct rcpt_error *error)
{
    const struct rcpt_http_settings *settings = &server->settings;
    if (settings->trusted_proxy_count == 0)
        return true;
    server->trusted = rcpt_calloc(settings->trusted_proxy_count, sizeof(*server->trusted));
    for (size_t i = 0; i < settings->trusted_proxy_count; i++) {
        if (!rcpt_network_parse(settings->trusted_proxies[i], &server->trusted[i])) {
            rcpt_error_fatal(error, EX_CONFIG, "%s: \"%s\" is no network of trusted proxies",
                             server->name, settings->trusted_proxies[i]);
            rcpt_error_hint(error, "an address, or address/bits");
            return false;
        }
    }
    server->trusted_count = settings->trusted_proxy_count;
    return true;
}

/* Raises the soft limit of open files to the hard one, and lowers max_connections to fit it. */
static void fit_to_descriptors(struct rcpt_http_server *server)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    size_t *most = &server->settings.max_connections;
    if (limit.rlim_cur > 2 * SPARE_DESCRIPTORS && *most > limit.rlim_cur - SPARE_DESCRIPTORS) {
        *most = (size_t)limit.rlim_cur - SPARE_DESCRIPTORS;
        rcpt_log_warn("http", "%s: at most %zu connections, for the process may have %llu files",
                      server->name, *most, (unsigned long long)limit.rlim_cur);
    }
}

/* Called by shared.c when the last request has let go. */
static void free_server(struct rcpt_http_server *server)
{
    for (size_t i = 0; i < server->route_count; i++) {
        free((char *)(uintptr_t)server->routes[i].is.prefix);
        free((char *)(uintptr_t)server->routes[i].is.bearer_token);
    }
    while (server->spare != NULL) {
        struct rcpt_http_request *spare = server->spare;
        server->spare = spare->next;
        rcpt_buffer_free(&spare->head);
        free(spare);
    }
    http_tls_context_free(server->tls);
    http_source_table_free(server->sources);
    free(server->routes);
    free(server->trusted);
    free(server->certificate);
    free(server->key);
    free(server->read_buffer);
    free(server->plain_buffer);
    free(server);
}

/* Everything that can be wrong with the settings is found here, before start. */
static bool prepare(struct rcpt_http_server *server, struct rcpt_error *error)
{
    if (!resolve_listen(server, error) || !read_trusted(server, error))
        return false;
    if (server->certificate == NULL)
        return true;
    server->plain_buffer = rcpt_malloc(HTTP_READ_BYTES);
    server->tls = http_tls_context_new(server->certificate, server->key, error);
    return server->tls != NULL;
}

static bool evict_body(struct rcpt_http_server *server, const struct connection *receiver);
static bool evict_share(struct rcpt_http_server *server, const struct connection *newcomer);

/* The strings that are needed later are copied; those in `settings` may go. */
struct rcpt_http_server *rcpt_http_new(const struct rcpt_http_settings *settings,
                                       struct rcpt_error *error)
{
    struct rcpt_http_server *server = rcpt_calloc(1, sizeof(*server));
    server->settings = *settings;
    server->references = 1;
    server->free = free_server;
    server->evict_body = evict_body;
    server->evict_share = evict_share;
    fill_defaults(&server->settings);
    snprintf(server->name, sizeof(server->name), "%s",
             settings->name != NULL ? settings->name : "http");
    snprintf(server->listen, sizeof(server->listen), "%s", settings->listen);
    if (settings->tls_certificate != NULL) {
        server->certificate = rcpt_strdup(settings->tls_certificate);
        server->key =
            rcpt_strdup(settings->tls_key != NULL ? settings->tls_key : settings->tls_certificate);
    }
    server->read_buffer = rcpt_malloc(HTTP_READ_BYTES);
    server->sources = http_source_table_new();
    if (!prepare(server, error)) {
        free_server(server);
        return NULL;
    }
    return server;
}

/* Sessions go on with the old context, which OpenSSL counts. */
bool rcpt_http_reload_tls(struct rcpt_http_server *server, struct rcpt_error *error)
{
    if (server->tls == NULL)
        return true;
    struct tls_context *tls = http_tls_context_new(server->certificate, server->key, error);
    if (tls == NULL)
        return false;
    http_tls_context_free(server->tls);
    server->tls = tls;
    return true;
}

/* ---- routes ---- */

/* Before start only: requests hold pointers to their routes. The longest prefix decides. */
void rcpt_http_route(struct rcpt_http_server *server, const struct rcpt_http_route *route)
{
    RCPT_ASSERT(!server->listening && route->prefix[0] == '/');
    server->routes =
        rcpt_realloc(server->routes, (server->route_count + 1) * sizeof(*server->routes));
    struct http_route *added = &server->routes[server->route_count++];
    added->is = *route;
    added->is.prefix = rcpt_strdup(route->prefix);
    if (route->bearer_token != NULL)
        added->is.bearer_token = rcpt_strdup(route->bearer_token);
    added->prefix_size = strlen(route->prefix);
    /* "/" takes everything; other prefixes end where a segment does. */
    if (added->prefix_size == 1)
        added->prefix_size = 0;
    if (route->methods & RCPT_HTTP_GET)
        added->is.methods |= RCPT_HTTP_HEAD;
}

/* ---- connections beyond the limit, and those that take too long ---- */

/* Makes space for a new connection: closes one of the least worth, the one that has been so
 * longest. */
static bool evict(struct rcpt_http_server *server)
{
    struct connection *victim = NULL;
    enum http_connection_worth least = CONNECTION_KEPT;
    for (struct connection *each = server->connections; each != NULL; each = each->next) {
        enum http_connection_worth worth = http_connection_worth(each);
        if (worth < least ||
            (worth == least && victim != NULL && each->since_ms < victim->since_ms)) {
            victim = each;
            least = worth;
        }
    }
    if (victim == NULL)
        return false;
    server->stats.evicted_connections++;
    http_connection_close(victim);
    return true;
}

/* Each source keeps its share, however many connections another one opens. False: the newcomer's
 * source has as many as any other. */
static bool evict_share(struct rcpt_http_server *server, const struct connection *newcomer)
{
    struct connection *victim = NULL;
    uint32_t most = http_source_connections(server, &newcomer->address);
    if (!server->settings.share_connections)
        return false;
    for (struct connection *each = server->connections; each != NULL; each = each->next) {
        uint32_t count = http_source_connections(server, &each->address);
        if (count > most ||
            (count == most && victim != NULL && each->since_ms < victim->since_ms)) {
            victim = each;
            most = count;
        }
    }
    if (victim == NULL)
        return false;
    server->stats.evicted_connections++;
    http_connection_close(victim);
    return true;
}

/* Closes the slow client with the largest unfinished body. False: there is none. */
static bool evict_body(struct rcpt_http_server *server, const struct connection *receiver)
{
    struct connection *victim = NULL;
    size_t most = 0;
    for (struct connection *each = server->connections; each != NULL; each = each->next) {
        size_t held = each->incoming != NULL ? each->incoming->body_reserved : 0;
        if (each != receiver && held > most && http_connection_worth(each) < CONNECTION_KEPT &&
            http_connection_is_slow(each)) {
            victim = each;
            most = held;
        }
    }
    if (victim == NULL)
        return false;
    server->stats.evicted_connections++;
    http_connection_close(victim);
    return true;
}

/* Accepts also above the limit, to say 503 rather than nothing (connection.c). */
static void on_connection(uv_stream_t *listener, int status)
{
    struct rcpt_http_server *server = listener->data;
    if (status < 0) {
        rcpt_log_warn("http", "%s: accepting a connection failed: %s", server->name,
                      uv_strerror(status));
        return;
    }
    if (server->stats.connections >= server->settings.max_connections)
        evict(server);
    http_connection_accept(server);
}

/* Before the loop blocks: everything that its handlers wrote leaves now. */
static void on_flush(uv_prepare_t *handle)
{
    http_connection_flush(handle->data);
}

static void on_tick(uv_timer_t *timer)
{
    http_connection_expire(timer->data);
}

/* ---- start ---- */

/* The socket is made here, since SO_REUSEPORT must be set before bind. */
static int open_listener(struct rcpt_http_server *server)
{
    int family = server->listen_address.ss_family, yes = 1, no = 0;
    int descriptor = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -errno;
    socklen_t size = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (family == AF_INET6) /* ":8080" takes IPv4 as well */
        setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    if ((server->settings.reuse_port &&
         setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes)) != 0) ||
        bind(descriptor, (const struct sockaddr *)&server->listen_address, size) != 0) {
        int failed = -errno;
        close(descriptor);
        return failed;
    }
    return descriptor;
}

/* False: errno has the reason. */
static bool listen_now(struct rcpt_http_server *server)
{
    int descriptor = open_listener(server);
    int status = descriptor < 0 ? descriptor : uv_tcp_open(&server->listener, descriptor);
    if (status == 0)
        status = uv_listen((uv_stream_t *)&server->listener, BACKLOG, on_connection);
    errno = -status;
    return status == 0;
}

static const char *listen_hint(int failure)
{
    switch (failure) {
    case EADDRINUSE:
        return "is another process there? ss -ltnp shows it";
    case EACCES:
        return "a port below 1024 needs CAP_NET_BIND_SERVICE";
    case EADDRNOTAVAIL:
        return "no interface of this machine has the address; ip address shows them";
    default:
        return "an address that this machine has, and a file descriptor for it (ulimit -n)";
    }
}

/* The handles do not keep the loop alive; connections and the listener do. */
bool rcpt_http_start(struct rcpt_http_server *server, struct rcpt_error *error)
{
    uv_loop_t *loop = server->settings.loop;
    fit_to_descriptors(server);
    uv_tcp_init(loop, &server->listener);
    uv_prepare_init(loop, &server->flush);
    uv_timer_init(loop, &server->tick);
    server->listener.data = server->flush.data = server->tick.data = server;
    server->open_handles = 3;
    server->listening = true;
    if (!listen_now(server)) {
        int failure = errno;
        rcpt_error_fatal(error, failure == EACCES ? EX_NOPERM : EX_UNAVAILABLE,
                         "%s cannot listen on %s: %s", server->name, server->listen,
                         strerror(failure));
        rcpt_error_hint(error, "%s", listen_hint(failure));
        return false;
    }
    uv_prepare_start(&server->flush, on_flush);
    uv_unref((uv_handle_t *)&server->flush);
    uv_timer_start(&server->tick, on_tick, HTTP_TICK_MS, HTTP_TICK_MS);
    uv_unref((uv_handle_t *)&server->tick);
    rcpt_log_info("http", "%s listens on %s (port %d%s)", server->name, server->listen,
                  rcpt_http_port(server), server->tls != NULL ? ", TLS" : "");
    return true;
}

/* With ":0" the kernel chooses the port; tests ask for it. */
int rcpt_http_port(const struct rcpt_http_server *server)
{
    struct sockaddr_storage address;
    int size = sizeof(address);
    if (uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &size) != 0)
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

/* ---- the end ---- */

/* The three handles and each connection count; the last one reports the end. */
static void on_handle_closed(uv_handle_t *handle)
{
    http_handle_closed(handle->data);
}

/* Drain and close both come here. */
static void close_listener(struct rcpt_http_server *server)
{
    if (!uv_is_closing((uv_handle_t *)&server->listener))
        uv_close((uv_handle_t *)&server->listener, on_handle_closed);
}

/* Idle connections close now, the others after their last answer (flush_one). */
void rcpt_http_drain(struct rcpt_http_server *server)
{
    if (server->draining || !server->listening)
        return;
    server->draining = true;
    close_listener(server);
    struct connection *next;
    for (struct connection *each = server->connections; each != NULL; each = next) {
        next = each->next;
        if (each->state == CONNECTION_IDLE && each->owed == 0 && each->out.size == 0 &&
            each->writing_bytes == 0)
            http_connection_close(each);
    }
}

/* Bytes that libuv holds count: the client has not taken them. */
bool rcpt_http_is_idle(const struct rcpt_http_server *server)
{
    for (const struct connection *each = server->connections; each != NULL; each = each->next)
        if (each->owed > 0 || each->out.size > 0 || each->writing_bytes > 0)
            return false;
    return true;
}

/* A server that never listened has no handles to wait for. */
void rcpt_http_close(struct rcpt_http_server *server, void (*on_closed)(void *context),
                     void *context)
{
    RCPT_ASSERT(!server->closing);
    server->closing = server->draining = true;
    server->on_closed = on_closed;
    server->closed_context = context;
    if (!server->listening) {
        http_report_closed(server);
        return;
    }
    close_listener(server);
    uv_close((uv_handle_t *)&server->flush, on_handle_closed);
    uv_close((uv_handle_t *)&server->tick, on_handle_closed);
    while (server->connections != NULL)
        http_connection_close(server->connections);
}

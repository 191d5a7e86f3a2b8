/* What the tests of the HTTP server share: a server on one loop with its clients, which take turns.
 */
#ifndef RECEIPTD_TESTS_UNIT_HTTP_FIXTURE_H
#define RECEIPTD_TESTS_UNIT_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "receiptd/http/http.h"

#define ANSWER_BYTES 65536
#define LARGE_BYTES  ((size_t)8 << 20)

struct fixture {
    uv_loop_t loop;
    struct rcpt_http_server *server;
    struct rcpt_http_request *kept[512]; /* requests to /later, in order of arrival */
    size_t kept_count;
    unsigned echoed;
    bool closed, gone;
};

static inline void on_echo(void *context, struct rcpt_http_request *request)
{
    struct fixture *fixture = context;
    char text[512];
    struct rcpt_http_text query = rcpt_http_query(request), body = rcpt_http_body(request);
    fixture->echoed++;
    snprintf(text, sizeof(text), "[%s|%.*s|%.*s|%zu:%.64s]", rcpt_http_source(request),
             (int)rcpt_http_rest(request).size, rcpt_http_rest(request).bytes, (int)query.size,
             query.bytes != NULL ? query.bytes : "", body.size, body.bytes);
    rcpt_http_answer_text(request, 200, text);
}

static inline void on_later(void *context, struct rcpt_http_request *request)
{
    struct fixture *fixture = context;
    fixture->kept[fixture->kept_count++] = request;
}

/* What the request says of itself. */
static inline void on_what(void *context, struct rcpt_http_request *request)
{
    char text[512];
    struct rcpt_http_text rest = rcpt_http_rest(request), query = rcpt_http_query(request);
    (void)context;
    assert_in_range(uv_hrtime() - rcpt_http_received_ns(request), 0, UINT64_C(60000000000));
    snprintf(text, sizeof(text), "[%d|%.*s|%.*s|%zu]", rcpt_http_method(request), (int)rest.size,
             rest.bytes, (int)query.size, query.bytes != NULL ? query.bytes : "",
             rcpt_http_header_count(request));
    rcpt_http_answer_text(request, 200, text);
}

/* More than the sockets' buffers take. */
static inline void on_large(void *context, struct rcpt_http_request *request)
{
    char *body = malloc(LARGE_BYTES);
    (void)context;
    memset(body, 'x', LARGE_BYTES);
    rcpt_http_answer(
        request, &(struct rcpt_http_answer){.status = 200, .body = body, .body_size = LARGE_BYTES});
    free(body);
}

/* A stream that is at once more than may be queued. */
static inline void on_flood(void *context, struct rcpt_http_request *request)
{
    (void)context;
    rcpt_http_answer_begin(
        request, &(struct rcpt_http_answer){.status = 200, .body = "too much", .body_size = 8}, 4,
        NULL, NULL);
    rcpt_http_answer_end(request);
}

static inline void on_gone(void *context)
{
    ((struct fixture *)context)->gone = true;
}

static inline void on_closed(void *context)
{
    ((struct fixture *)context)->closed = true;
}

static inline void on_second_closed(void *context)
{
    *(bool *)context = true;
}

/* With one route more; NULL: without. */
static inline struct fixture *begin_with(struct rcpt_http_settings settings,
                                         const struct rcpt_http_route *more)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct rcpt_error error;
    uv_loop_init(&fixture->loop);
    settings.loop = &fixture->loop;
    if (settings.listen == NULL)
        settings.listen = "127.0.0.1:0";
    fixture->server = rcpt_http_new(&settings, &error);
    assert_non_null(fixture->server);
    const struct rcpt_http_route routes[] = {
        {.prefix = "/echo",
         .methods = RCPT_HTTP_GET | RCPT_HTTP_POST,
         .handler = on_echo,
         .context = fixture},
        {.prefix = "/later", .methods = RCPT_HTTP_GET, .handler = on_later, .context = fixture},
        {.prefix = "/secret",
         .methods = RCPT_HTTP_GET,
         .bearer_token = "swordfish",
         .handler = on_echo,
         .context = fixture},
        {.prefix = "/what",
         .methods =
             RCPT_HTTP_GET | RCPT_HTTP_POST | RCPT_HTTP_PUT | RCPT_HTTP_PATCH | RCPT_HTTP_DELETE,
         .handler = on_what,
         .context = fixture},
        {.prefix = "/large", .methods = RCPT_HTTP_GET, .handler = on_large, .context = fixture},
        {.prefix = "/flood", .methods = RCPT_HTTP_GET, .handler = on_flood, .context = fixture},
        {.prefix = "/small",
         .methods = RCPT_HTTP_POST,
         .max_body_bytes = 8,
         .handler = on_echo,
         .context = fixture},
    };
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        rcpt_http_route(fixture->server, &routes[i]);
    if (more != NULL)
        rcpt_http_route(fixture->server, more);
    assert_true(rcpt_http_start(fixture->server, &error));
    return fixture;
}

static inline struct fixture *begin(struct rcpt_http_settings settings)
{
    return begin_with(settings, NULL);
}

static inline void end(struct fixture *fixture)
{
    rcpt_http_close(fixture->server, on_closed, fixture);
    while (!fixture->closed)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture);
}

static inline int dial(struct fixture *fixture)
{
    int client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)rcpt_http_port(fixture->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    fcntl(client, F_SETFL, O_NONBLOCK);
    return client;
}

static inline void turn(struct fixture *fixture, int turns)
{
    while (turns-- > 0) {
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
        usleep(500);
    }
}

static inline void say(int client, const char *text)
{
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Everything that comes until `silence` turns of the loop brought nothing; -1 at the end of the
 * connection is told by `ended`. */
static inline const char *hear(struct fixture *fixture, int client, bool *ended)
{
    static char text[ANSWER_BYTES];
    size_t size = 0;
    bool end_seen = false;
    for (int silence = 0; silence < 12 && !end_seen; silence++) {
        turn(fixture, 1);
        ssize_t got = recv(client, text + size, sizeof(text) - 1 - size, 0);
        if (got > 0) {
            size += (size_t)got;
            silence = 0;
        } else if (got == 0 || errno != EAGAIN) {
            end_seen = true;
        }
    }
    text[size] = '\0';
    if (ended != NULL)
        *ended = end_seen;
    return text;
}

static inline int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static inline unsigned count(const char *text, const char *part)
{
    unsigned found = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        found++;
    return found;
}

#endif

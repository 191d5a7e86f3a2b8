/* The HTTP server over loopback: client and server take turns on one loop, so every case is
 * deterministic. */
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
#include <zlib.h>

#include <cmocka.h>

#include "receiptd/http.h"

#define ANSWER_BYTES 65536

struct fixture {
    uv_loop_t loop;
    struct rcpt_http_server *server;
    struct rcpt_http_request *kept[64]; /* requests to /later, in order of arrival */
    size_t kept_count;
    unsigned echoed;
    bool closed, gone;
};

static void on_echo(void *context, struct rcpt_http_request *request)
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

static void on_later(void *context, struct rcpt_http_request *request)
{
    struct fixture *fixture = context;
    fixture->kept[fixture->kept_count++] = request;
}

static void on_gone(void *context)
{
    ((struct fixture *)context)->gone = true;
}

static void on_closed(void *context)
{
    ((struct fixture *)context)->closed = true;
}

static void on_second_closed(void *context)
{
    *(bool *)context = true;
}

static struct fixture *begin(struct rcpt_http_settings settings)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct rcpt_error error;
    uv_loop_init(&fixture->loop);
    settings.loop = &fixture->loop;
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
        {.prefix = "/small",
         .methods = RCPT_HTTP_POST,
         .max_body_bytes = 8,
         .handler = on_echo,
         .context = fixture},
    };
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
        rcpt_http_route(fixture->server, &routes[i]);
    assert_true(rcpt_http_start(fixture->server, &error));
    return fixture;
}

static void end(struct fixture *fixture)
{
    rcpt_http_close(fixture->server, on_closed, fixture);
    while (!fixture->closed)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture);
}

static int dial(struct fixture *fixture)
{
    int client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)rcpt_http_port(fixture->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    fcntl(client, F_SETFL, O_NONBLOCK);
    return client;
}

static void turn(struct fixture *fixture, int turns)
{
    while (turns-- > 0) {
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
        usleep(500);
    }
}

static void say(int client, const char *text)
{
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Everything that comes until `silence` turns of the loop brought nothing; -1 at the end of the
 * connection is told by `ended`. */
static const char *hear(struct fixture *fixture, int client, bool *ended)
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

static int status_of(const char *answer)
{
    return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

static unsigned count(const char *text, const char *part)
{
    unsigned found = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        found++;
    return found;
}

/* ---- */

struct form {
    const char *says;
    int status;
    bool ends; /* the connection is closed afterwards */
    const char *contains;
};

static const struct form forms[] = {
    {"GET /echo/a%20b?x=1&y HTTP/1.1\r\nHost: h\r\n\r\n", 200, false,
     "[127.0.0.1|/a%20b|x=1&y|0:]"},
    {"GET /echo HTTP/1.0\r\n\r\n", 200, true, "Connection: close"},
    {"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, false, "Connection: keep-alive"},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 200, true, "Connection: close"},
    {"GET http://other/echo/z?q HTTP/1.1\r\nHost: h\r\n\r\n", 200, false, "|/z|q|"},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", 200, false, "5:hello"},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 200, false, "|0:]"},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
     "chunked\r\n\r\n3;a=b\r\nhel\r\n2\r\nlo\r\n0\r\n"
     "Trailer: t\r\n\r\n",
     200, false, "5:hello"},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 200,
     false, NULL},
    {"GET /echoes HTTP/1.1\r\nHost: h\r\n\r\n", 404, false, NULL},
    {"GET /../echo HTTP/1.1\r\nHost: h\r\n\r\n", 404, false, NULL},
    {"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab", 405, false,
     "Allow: OPTIONS, GET, HEAD, POST"},
    {"POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab", 405, false, NULL},
    {"OPTIONS /echo HTTP/1.1\r\nHost: h\r\n\r\n", 204, false, "Allow: OPTIONS, GET, HEAD, POST"},
    {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 204, false, NULL},
    {"OPTIONS /nowhere HTTP/1.1\r\nHost: h\r\n\r\n", 404, false, NULL},
    {"TRACE /echo HTTP/1.1\r\nHost: h\r\n\r\n", 405, false, NULL},
    {"CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 405, true, NULL},
    {"GET /secret HTTP/1.1\r\nHost: h\r\n\r\n", 401, false, "WWW-Authenticate: Bearer"},
    {"GET /secret HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer swordfisk\r\n\r\n", 401, false,
     NULL},
    {"GET /secret HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer swordfish\r\n\r\n", 200, false,
     NULL},
    {"GET /echo HTTP/1.1\r\n\r\n", 400, false, NULL},
    {"GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, false, NULL},
    {"nonsense\r\n\r\n", 400, true, NULL},
    {"\x16\x03\x01\x02", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nBad Header: x\r\n\r\n", 400, false, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400,
     true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, true, NULL},
    {"POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\n\r\n", 411, false, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501,
     true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx", 415,
     false, "Accept-Encoding: gzip"},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
     400, false, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nContent-Length: 1\r\n\r\nx", 417, true,
     NULL},
    {"POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n123456789", 413, false, NULL},
    {"POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
     "chunked\r\n\r\n9\r\n123456789\r\n0\r\n\r\n",
     413, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n", 413, true, NULL},
    {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505, true, NULL},
};

static void test_each_form_of_request_gets_its_code(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        int client = dial(fixture);
        bool ended;
        say(client, forms[i].says);
        const char *answer = hear(fixture, client, &ended);
        if (status_of(answer) != forms[i].status || ended != forms[i].ends ||
            (forms[i].contains != NULL && strstr(answer, forms[i].contains) == NULL))
            fail_msg("%s → %s (%s)", forms[i].says, answer, ended ? "ended" : "open");
        close(client);
    }
    end(fixture);
}

/* The same answers when every byte comes alone. */
static void test_pieces_make_no_difference(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        int client = dial(fixture);
        for (const char *at = forms[i].says; *at != '\0'; at++) {
            if (send(client, at, 1, MSG_NOSIGNAL) != 1)
                break;
            uv_run(&fixture->loop, UV_RUN_NOWAIT);
        }
        const char *answer = hear(fixture, client, NULL);
        if (status_of(answer) != forms[i].status)
            fail_msg("%s → %s", forms[i].says, answer);
        close(client);
    }
    end(fixture);
}

static void test_head_has_the_length_and_no_body(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial(fixture);
    say(client, "HEAD /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    const char *answer = hear(fixture, client, NULL);
    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(answer, "Content-Length: 16\r\n"));
    assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    close(client);
    end(fixture);
}

static void test_answers_keep_the_order_of_pipelined_requests(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_pipelined = 3});
    int client = dial(fixture);
    for (int i = 0; i < 8; i++)
        say(client, i % 2 == 0 ? "GET /later HTTP/1.1\r\nHost: h\r\n\r\n"
                               : "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_string_equal(hear(fixture, client, NULL), "");
    assert_int_equal(fixture->kept_count, 2); /* three are in hand, one of them an echo */
    rcpt_http_answer_text(fixture->kept[1], 202, "second");
    assert_string_equal(hear(fixture, client, NULL), "");
    rcpt_http_answer_text(fixture->kept[0], 201, "first");
    const char *answer = hear(fixture, client, NULL);
    const char *first = strstr(answer, "first"), *echo = strstr(answer, "[127"),
               *second = strstr(answer, "second");
    assert_true(first != NULL && echo > first && second > echo);
    for (size_t i = 2; i < 4; i++) {
        assert_true(fixture->kept_count > i);
        rcpt_http_answer_text(fixture->kept[i], 200, "more");
        assert_int_equal(count(hear(fixture, client, NULL), "HTTP/1.1 "), 2);
    }
    assert_true(rcpt_http_is_idle(fixture->server));
    close(client);
    end(fixture);
}

static void test_a_client_that_is_gone_can_be_answered(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial(fixture);
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, client, NULL);
    struct linger reset = {.l_onoff = 1};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(client);
    turn(fixture, 10);
    assert_int_equal(rcpt_http_stats(fixture->server)->connections, 0);
    assert_string_equal(rcpt_http_path(fixture->kept[0]).bytes + 1, "later");
    rcpt_http_answer_text(fixture->kept[0], 200, "late");
    end(fixture);
}

static void test_a_client_may_close_its_side_and_wait(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial(fixture);
    bool ended;
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    shutdown(client, SHUT_WR);
    hear(fixture, client, &ended);
    assert_false(ended);
    rcpt_http_answer_text(fixture->kept[0], 200, "one");
    rcpt_http_answer_text(fixture->kept[1], 200, "two");
    assert_int_equal(count(hear(fixture, client, &ended), "HTTP/1.1 200"), 2);
    assert_true(ended);
    close(client);
    end(fixture);
}

static void test_the_server_may_end_before_its_answers(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial(fixture);
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, client, NULL);
    struct rcpt_http_request *kept = fixture->kept[0];
    end(fixture);
    rcpt_http_answer_text(kept, 200, "nobody hears this");
    close(client);
}

static void test_draining_answers_and_closes(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int busy = dial(fixture), idle = dial(fixture);
    bool ended;
    say(idle, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    say(busy, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, idle, NULL);
    rcpt_http_drain(fixture->server);
    assert_false(rcpt_http_is_idle(fixture->server));
    hear(fixture, idle, &ended);
    assert_true(ended);
    rcpt_http_answer_text(fixture->kept[0], 200, "last");
    assert_non_null(strstr(hear(fixture, busy, &ended), "Connection: close"));
    assert_true(ended);
    assert_true(rcpt_http_is_idle(fixture->server));
    close(busy);
    close(idle);
    end(fixture);
}

/* ---- bodies ---- */

static size_t pack(int window, const void *plain, size_t size, unsigned char *packed,
                   size_t capacity)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)plain;
    stream.avail_in = (uInt)size;
    stream.next_out = packed;
    stream.avail_out = (uInt)capacity;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t packed_size = stream.total_out;
    deflateEnd(&stream);
    return packed_size;
}

static int post_packed(struct fixture *fixture, const char *coding, const void *bytes, size_t size,
                       const char **answer)
{
    char head[256];
    int client = dial(fixture);
    snprintf(
        head, sizeof(head),
        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: %s\r\nContent-Length: %zu\r\n\r\n",
        coding, size);
    say(client, head);
    assert_int_equal(send(client, bytes, size, MSG_NOSIGNAL), size);
    *answer = hear(fixture, client, NULL);
    close(client);
    return status_of(*answer);
}

static void test_compressed_bodies_are_opened(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    unsigned char packed[256];
    const char *answer;
    size_t size = pack(31, "compressed", 10, packed, sizeof(packed));
    assert_int_equal(post_packed(fixture, "gzip", packed, size, &answer), 200);
    assert_non_null(strstr(answer, "10:compressed"));
    size += pack(31, " twice", 6, packed + size, sizeof(packed) - size);
    assert_int_equal(post_packed(fixture, "X-GZIP", packed, size, &answer), 200);
    assert_non_null(strstr(answer, "16:compressed twice"));
    assert_int_equal(post_packed(fixture, "gzip", packed, size - 3, &answer), 400);
    size = pack(15, "deflated", 8, packed, sizeof(packed));
    assert_int_equal(post_packed(fixture, "deflate", packed, size, &answer), 200);
    assert_non_null(strstr(answer, "8:deflated"));
    assert_int_equal(rcpt_http_stats(fixture->server)->body_bytes, 0);
    end(fixture);
}

static void test_a_zip_bomb_is_refused_before_it_grows(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_memory_bytes = 4 << 20});
    size_t plain_size = 64u << 20;
    char *plain = calloc(1, plain_size);
    unsigned char *packed = malloc(1 << 20);
    const char *answer;
    size_t size = pack(31, plain, plain_size, packed, 1 << 20);
    assert_true(size < 1 << 20);
    assert_int_equal(post_packed(fixture, "gzip", packed, size, &answer), 413);
    assert_int_equal(fixture->echoed, 0);
    assert_int_equal(rcpt_http_stats(fixture->server)->body_bytes, 0);
    free(plain);
    free(packed);
    end(fixture);
}

static void test_bodies_stay_within_the_budget(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_memory_bytes = 20000});
    int first = dial(fixture), second = dial(fixture);
    char body[8001];
    memset(body, 'x', 8000);
    body[8000] = '\0'; /* buffers double: 16 KiB each when more than 8 KiB have come */
    say(first, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\nfrom the first:");
    say(first, body);
    say(first, "and 300 bytes that make it more than 8 KiB: ");
    say(first, &body[8000 - 256]);
    turn(fixture, 5);
    say(second, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n");
    say(second, body);
    const char *answer = hear(fixture, second, NULL);
    assert_int_equal(status_of(answer), 503);
    assert_non_null(strstr(answer, "Retry-After: "));
    body[9000 - 15 - 8000 - 44 - 256] = '\0';
    say(first, body);
    assert_int_equal(status_of(hear(fixture, first, NULL)), 200);
    close(first);
    close(second);
    end(fixture);
}

static void test_expect_is_answered_before_the_body(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial(fixture);
    bool ended;
    say(client,
        "POST /echo HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert_string_equal(hear(fixture, client, NULL), "HTTP/1.1 100 Continue\r\n\r\n");
    say(client, "ok");
    assert_int_equal(status_of(hear(fixture, client, NULL)), 200);
    say(client,
        "POST /small HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 20\r\n\r\n");
    assert_int_equal(status_of(hear(fixture, client, &ended)), 413);
    assert_true(ended);
    close(client);
    end(fixture);
}

/* ---- limits ---- */

static void test_heads_are_limited(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_header_bytes = 1000});
    char text[4096], *at = text;
    int client = dial(fixture);
    at += sprintf(at, "GET /echo HTTP/1.1\r\nHost: h\r\n");
    for (int i = 0; i < 60; i++)
        at += sprintf(at, "X-Header-%02d: 0123456789\r\n", i);
    strcpy(at, "\r\n");
    say(client, text);
    assert_int_equal(status_of(hear(fixture, client, NULL)), 431);
    close(client);
    memset(text, 'a', sizeof(text));
    memcpy(text, "GET /", 5);
    strcpy(text + 2000, " HTTP/1.1\r\nHost: h\r\n\r\n");
    client = dial(fixture);
    say(client, text);
    assert_int_equal(status_of(hear(fixture, client, NULL)), 414);
    close(client);
    client = dial(fixture);
    at = text + sprintf(text, "GET /echo HTTP/1.1\r\nHost: h\r\n");
    for (int i = 0; i < 120; i++)
        at += sprintf(at, "a:b\r\n");
    strcpy(at, "\r\n");
    say(client, text);
    assert_int_equal(status_of(hear(fixture, client, NULL)), 431);
    close(client);
    end(fixture);
}

static void test_slow_clients_are_told_and_dropped(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){
        .header_timeout_ms = 100, .body_timeout_ms = 100, .idle_timeout_ms = 100});
    int silent = dial(fixture), head = dial(fixture), body = dial(fixture), idle = dial(fixture),
        patient = dial(fixture);
    bool ended;
    say(head, "GET /echo HTTP/1.1\r\nHos");
    say(body, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe");
    say(idle, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    say(patient, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    turn(fixture, 1000);
    assert_string_equal(hear(fixture, silent, &ended), "");
    assert_true(ended);
    assert_int_equal(status_of(hear(fixture, head, &ended)), 408);
    assert_true(ended);
    assert_int_equal(status_of(hear(fixture, body, &ended)), 408);
    assert_true(ended);
    assert_int_equal(count(hear(fixture, idle, &ended), "HTTP/1.1 200"), 1);
    assert_true(ended);
    hear(fixture, patient, &ended);
    assert_false(ended); /* it waits for us */
    rcpt_http_answer_text(fixture->kept[0], 200, "at last");
    assert_int_equal(status_of(hear(fixture, patient, NULL)), 200);
    int all[] = {silent, head, body, idle, patient};
    for (size_t i = 0; i < 5; i++)
        close(all[i]);
    end(fixture);
}

static void test_idle_connections_make_room_for_new_ones(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_connections = 3});
    int clients[6];
    bool ended;
    for (int i = 0; i < 3; i++) {
        clients[i] = dial(fixture);
        say(clients[i], "GET /echo HTTP/1.1\r\nHost");
        turn(fixture, 4);
    }
    for (int i = 3; i < 6; i++) { /* all three slow ones give way */
        clients[i] = dial(fixture);
        say(clients[i], "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        turn(fixture, 4);
    }
    assert_int_equal(fixture->kept_count, 3);
    hear(fixture, clients[0], &ended);
    assert_true(ended);
    int refused = dial(fixture); /* those who wait for an answer do not */
    const char *answer = hear(fixture, refused, &ended);
    assert_int_equal(status_of(answer), 503);
    assert_true(ended);
    for (int i = 0; i < 3; i++)
        rcpt_http_answer_text(fixture->kept[i], 200, "done");
    for (int i = 0; i < 6; i++)
        close(clients[i]);
    close(refused);
    end(fixture);
}

static void test_who_has_been_served_stays_while_others_are_slow(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_connections = 4});
    int good = dial(fixture);
    bool ended;
    say(good, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(status_of(hear(fixture, good, NULL)), 200);
    int slow[20];
    for (int i = 0; i < 20; i++) { /* heads and bodies that do not end, one after the other */
        slow[i] = dial(fixture);
        say(slow[i], i % 2 == 0 ? "GET /echo HTTP/1.1\r\nHost"
                                : "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx");
        turn(fixture, 4);
    }
    hear(fixture, slow[16], &ended);
    assert_true(ended);
    say(good, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(status_of(hear(fixture, good, &ended)), 200);
    assert_false(ended);
    for (int i = 0; i < 20; i++)
        close(slow[i]);
    close(good);
    end(fixture);
}

static void test_a_source_has_its_rate(void **state)
{
    (void)state;
    const char *const proxies[] = {"127.0.0.0/8"};
    struct fixture *fixture = begin((struct rcpt_http_settings){
        .rate_per_source = 2, .trusted_proxies = proxies, .trusted_proxy_count = 1});
    int client = dial(fixture);
    int taken = 0, refused = 0;
    for (int i = 0; i < 8; i++) {
        say(client, "GET /echo HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.1\r\n\r\n");
        const char *answer = hear(fixture, client, NULL);
        taken += status_of(answer) == 200 && strstr(answer, "[192.0.2.1|") != NULL;
        refused += status_of(answer) == 429 && strstr(answer, "Retry-After: 1\r\n") != NULL;
    }
    assert_int_equal(taken, 4); /* two seconds' worth */
    assert_int_equal(refused, 4);
    say(client, "GET /echo HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 2001:db8::7\r\n\r\n");
    assert_non_null(strstr(hear(fixture, client, NULL), "[2001:db8::7|"));
    close(client);
    end(fixture);
}

static void test_connections_of_a_source_are_limited(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_per_source = 2});
    int clients[3];
    for (int i = 0; i < 3; i++)
        clients[i] = dial(fixture);
    assert_int_equal(status_of(hear(fixture, clients[2], NULL)), 503);
    close(clients[0]);
    close(clients[2]);
    turn(fixture, 5);
    clients[0] = dial(fixture);
    say(clients[0], "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(status_of(hear(fixture, clients[0], NULL)), 200);
    close(clients[0]);
    close(clients[1]);
    end(fixture);
}

/* ---- streams ---- */

static void test_an_answer_may_come_in_pieces(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial(fixture);
    struct rcpt_http_answer head = {.status = 200, .content_type = "text/event-stream"};
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, client, NULL);
    rcpt_http_answer_begin(fixture->kept[0], &head, 4096, on_gone, fixture);
    assert_non_null(strstr(hear(fixture, client, NULL), "Transfer-Encoding: chunked\r\n"));
    rcpt_http_answer_write(fixture->kept[0], "data: 1\n\n", 9);
    assert_string_equal(hear(fixture, client, NULL), "9\r\ndata: 1\n\n\r\n");
    rcpt_http_answer_end(fixture->kept[0]);
    const char *rest = hear(fixture, client, NULL);
    assert_true(strncmp(rest, "0\r\n\r\nHTTP/1.1 200 OK\r\n", 22) == 0);
    close(client);
    end(fixture);
}

static void test_a_stream_is_told_that_its_client_left(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    struct rcpt_http_answer head = {.status = 200};
    int client = dial(fixture);
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, client, NULL);
    rcpt_http_answer_begin(fixture->kept[0], &head, 1 << 20, on_gone, fixture);
    close(client);
    turn(fixture, 5);
    rcpt_http_answer_write(fixture->kept[0], "x", 1);
    turn(fixture, 5);
    rcpt_http_answer_write(fixture->kept[0], "y", 1);
    turn(fixture, 5);
    assert_true(fixture->gone);
    rcpt_http_answer_end(fixture->kept[0]);
    end(fixture);
}

static void test_what_a_server_cannot_be_told_is_named(void **state)
{
    static const char *const proxies[] = {"10.0.0.0/8", "10.0.0.0/33"}, *const words[] = {"proxy"},
                             *const bits[] = {"::1/129"}, *const rest[] = {"10.0.0.0/8x"};
    static const struct {
        struct rcpt_http_settings settings;
        const char *text, *hint;
    } cases[] = {
        {{.listen = "127.0.0.1"},
         "http: \"127.0.0.1\" is no address to listen on",
         "host:port, [IPv6]:port or :port for all addresses"},
        {{.listen = "127.0.0.1:http"}, "http: \"127.0.0.1:http\" is no address to listen on", NULL},
        {{.listen = "127.0.0.1:65536"},
         "http: \"127.0.0.1:65536\" is no address to listen on",
         NULL},
        {{.listen = "::1:80"}, "http: \"::1:80\" is no address to listen on", NULL},
        {{.listen = "host.invalid:80"},
         "http: the address \"host.invalid:80\" cannot be resolved",
         NULL},
        {{.listen = "127.0.0.1:0", .trusted_proxies = proxies, .trusted_proxy_count = 2},
         "http: \"10.0.0.0/33\" is no network of trusted proxies",
         "an address, or address/bits"},
        {{.listen = "127.0.0.1:0", .trusted_proxies = words, .trusted_proxy_count = 1},
         "http: \"proxy\" is no network of trusted proxies",
         NULL},
        {{.listen = "127.0.0.1:0", .trusted_proxies = bits, .trusted_proxy_count = 1},
         "http: \"::1/129\" is no network of trusted proxies",
         NULL},
        {{.listen = "127.0.0.1:0", .trusted_proxies = rest, .trusted_proxy_count = 1},
         "http: \"10.0.0.0/8x\" is no network of trusted proxies",
         NULL},
        {{.listen = "127.0.0.1:0",
          .tls_certificate = "/nonexistent/c",
          .tls_key = "/nonexistent/k"},
         "/nonexistent/c",
         NULL},
    };
    uv_loop_t loop;
    (void)state;
    uv_loop_init(&loop);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rcpt_error error;
        struct rcpt_http_settings settings = cases[i].settings;
        settings.loop = &loop;
        struct rcpt_http_server *server = rcpt_http_new(&settings, &error);
        assert_null(server);
        if (strstr(error.text, cases[i].text) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", error.text, cases[i].text);
        assert_int_equal(error.decision, RCPT_DECISION_FATAL);
        if (cases[i].hint != NULL)
            assert_string_equal(error.hint, cases[i].hint);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void test_a_port_that_is_taken_is_named(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_pipelined = 16});
    char listen[32];
    struct rcpt_error error;
    bool closed = false;
    snprintf(listen, sizeof(listen), "127.0.0.1:%d", rcpt_http_port(fixture->server));
    struct rcpt_http_server *second = rcpt_http_new(
        &(struct rcpt_http_settings){.loop = &fixture->loop, .listen = listen}, &error);
    assert_non_null(second);
    assert_false(rcpt_http_start(second, &error));
    assert_non_null(strstr(error.text, listen));
    assert_non_null(strstr(error.text, "already in use"));
    assert_int_equal(rcpt_http_port(second), 0);
    rcpt_http_close(second, on_second_closed, &closed);
    while (!closed)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    end(fixture);
}

/* A read that fills the server's buffer is followed by one that finds nothing, which is not the end
 * of anything: a body may be larger than the buffer and come in pieces of any size. */
static void test_a_body_may_fill_the_buffer_and_go_on_later(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_body_bytes = 1 << 20});
    static char text[3 * 65536];
    int client = dial(fixture);
    turn(fixture, 4);
    memset(text, 'x', sizeof(text));
    int head = snprintf(text, sizeof(text), "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: ");
    head += snprintf(text + head, sizeof(text) - (size_t)head, "%zu\r\n\r\n",
                     sizeof(text) - (size_t)head - strlen("000000\r\n\r\n"));
    text[head] = 'x';
    for (size_t sent = 0; sent < sizeof(text); sent += 65536) {
        assert_int_equal(send(client, text + sent, 65536, MSG_NOSIGNAL), 65536);
        turn(fixture, 4);
    }
    const char *answer = hear(fixture, client, NULL);
    char expected[32];
    snprintf(expected, sizeof(expected), "|%zu:xxxx", sizeof(text) - (size_t)head);
    assert_int_equal(status_of(answer), 200);
    assert_non_null(strstr(answer, expected));
    close(client);
    end(fixture);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_form_of_request_gets_its_code),
        cmocka_unit_test(test_pieces_make_no_difference),
        cmocka_unit_test(test_head_has_the_length_and_no_body),
        cmocka_unit_test(test_answers_keep_the_order_of_pipelined_requests),
        cmocka_unit_test(test_a_client_that_is_gone_can_be_answered),
        cmocka_unit_test(test_a_client_may_close_its_side_and_wait),
        cmocka_unit_test(test_the_server_may_end_before_its_answers),
        cmocka_unit_test(test_draining_answers_and_closes),
        cmocka_unit_test(test_compressed_bodies_are_opened),
        cmocka_unit_test(test_a_zip_bomb_is_refused_before_it_grows),
        cmocka_unit_test(test_bodies_stay_within_the_budget),
        cmocka_unit_test(test_expect_is_answered_before_the_body),
        cmocka_unit_test(test_heads_are_limited),
        cmocka_unit_test(test_slow_clients_are_told_and_dropped),
        cmocka_unit_test(test_idle_connections_make_room_for_new_ones),
        cmocka_unit_test(test_who_has_been_served_stays_while_others_are_slow),
        cmocka_unit_test(test_a_source_has_its_rate),
        cmocka_unit_test(test_connections_of_a_source_are_limited),
        cmocka_unit_test(test_an_answer_may_come_in_pieces),
        cmocka_unit_test(test_what_a_server_cannot_be_told_is_named),
        cmocka_unit_test(test_a_port_that_is_taken_is_named),
        cmocka_unit_test(test_a_body_may_fill_the_buffer_and_go_on_later),
        cmocka_unit_test(test_a_stream_is_told_that_its_client_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

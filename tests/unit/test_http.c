/* The HTTP server over loopback: client and server take turns on one loop, so every case is
 * deterministic. */
#include <zlib.h>

#include "http_fixture.h"

/* ---- */

struct form {
    const char *says;
    int status;
    bool ends; /* the connection is closed afterwards */
    const char *contains;
};

#define CHUNKED "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

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
     "chunked\r\n\r\n3\r\nhel\r\n02\r\nlo\r\n0\r\n"
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
    {"GET /echo HTTP/1.1\r\nHost: h\r\nBad Header: x\r\n\r\n", 400, true, NULL},
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
    {"POST /echo?a=1 HTTP/1.1\r\nHost: h\r\n\r\n", 200, false, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip, gzip\r\nContent-Length: "
     "1\r\n\r\nx",
     415, false, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: UTF-8\r\nContent-Length: 1\r\n\r\nx", 200,
     false, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: utf8, identity\r\nContent-Length: "
     "1\r\n\r\nx",
     200, false, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: none, zstd\r\nContent-Length: "
     "1\r\n\r\nx",
     415, false, NULL},
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
    {"GET / HTTP/12.0\r\nHost: h\r\n\r\n", 505, true, NULL},
    {"GET /what/a?b HTTP/1.1\r\nHost: h\r\nX-Last:\r\n\r\n", 200, false, "[1|/a|b|2]"},
    {"PUT /what HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 200, false, "[8|||2]"},
    {"PATCH /what HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", 200, false, "[16|"},
    {"DELETE /what HTTP/1.1\r\nHost: h\r\n\r\n", 200, false, "[32|"},
    {"PATCH /what HTTP/1.1\r\nHost: h\r\n\r\n", 411, false, NULL},
    /* What a proxy in front may read differently. Continued lines: */
    {"GET /echo HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nX: a\r\n\tb\r\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nX:\r\n b\r\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nX: a\r\n \r\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\nHost: h\nX: a\n b\n\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\n Host: h\r\n\r\n", 400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 400, true,
     NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n ,x\r\n\r\n0\r\n\r\n", 400,
     true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: a\r\n "
     "b\r\n\r\n",
     400, true, NULL},
    /* Line ends, names and versions: */
    {"GET /echo HTTP/1.1\nHost: h\n\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\nHost: h\r\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\nX: a\r\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nX:\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nX: a\r\n\n", 400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nX:\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, true,
     NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nX: a\rY: b\r\n\r\n", 400, true, NULL},
    {CHUNKED "0\r\nT: a\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\nContent-Length : 1\r\n\r\nx", 400, true, NULL},
    {"GET /echo HTTP/1.1\r\nHost: h\r\n: a\r\n\r\n", 400, true, NULL},
    {"GET /echo RTSP/1.0\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"SOURCE /echo ICE/1.0\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, true, NULL},
    {"GET /echo\tx HTTP/1.1\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"GET http:///echo HTTP/1.1\r\nHost: h\r\n\r\n", 400, false, NULL},
    {"\r\n\r\nGET /echo?#f HTTP/1.1\r\nHost: h\r\n\r\n", 200, false, "|||0:]"},
    /* Raw bytes above 0x7f: */
    {"GET /echo?\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n", 200, false, "||\xc3\xa4|0:]"},
    {"GET /echo/\xe4z?\xfc=\xff&\" HTTP/1.1\r\nHost: h\r\n\r\n", 200, false,
     "|/\xe4z|\xfc=\xff&\"|0:]"},
    {"GET \xe4 HTTP/1.1\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"GET \xe4://h/echo HTTP/1.1\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"GET http://\xe4/echo HTTP/1.1\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"GET\xe4 /echo HTTP/1.1\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"\xe4GET /echo HTTP/1.1\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"GET /echo \xe4HTTP/1.1\r\nHost: h\r\n\r\n", 400, true, NULL},
    {"GET /echo HTTP/1.1\xe4\r\nHost: h\r\n\r\n", 505, true, NULL},
    /* Chunks: */
    {CHUNKED "3;a=b\r\nhel\r\n0\r\n\r\n", 400, true, NULL},
    {CHUNKED "3;a\nb\r\nhel\r\n0\r\n\r\n", 400, true, NULL},
    {CHUNKED "3 \r\nhel\r\n0\r\n\r\n", 400, true, NULL},
    {CHUNKED " 3\r\nhel\r\n0\r\n\r\n", 400, true, NULL},
    {CHUNKED "3\nhel\r\n0\r\n\r\n", 400, true, NULL},
    {CHUNKED "3\r\r\nhel\r\n0\r\n\r\n", 400, true, NULL},
    {CHUNKED "3\r\nhel\n0\r\n\r\n", 400, true, NULL},
    {CHUNKED "3\r\nhelXX0\r\n\r\n", 400, true, NULL},
    {CHUNKED "3\r\nhel\rX0\r\n\r\n", 400, true, NULL},
    {CHUNKED "0x3\r\nhel\r\n0\r\n\r\n", 400, true, NULL},
    {CHUNKED "\r\n", 400, true, NULL},
    {CHUNKED "0;a\r\n\r\n", 400, true, NULL},
    {CHUNKED "ffffffffffffffffff\r\n", 400, true, NULL},
    {CHUNKED "A\r\n0123456789\r\n0\r\n\r\nGET /echo/next HTTP/1.1\r\nHost: h\r\n\r\n", 200, false,
     "[127.0.0.1|/next||0:]"},
    /* Which length it is: */
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400,
     true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501, true,
     NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\nContent-Length: "
     "1\r\n\r\nx",
     400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: "
     "5\r\n\r\n0\r\n\r\n",
     400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400,
     true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\nhello", 400, true, NULL},
    {"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\nhello", 400, true, NULL},
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

static void test_no_header_hides_something_behind_a_nul(void **state)
{
    static const char text[] = "GET /echo HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n";
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial(fixture);
    bool ended;
    assert_int_equal(send(client, text, sizeof(text) - 1, MSG_NOSIGNAL), sizeof(text) - 1);
    assert_int_equal(status_of(hear(fixture, client, &ended)), 400);
    assert_true(ended);
    close(client);
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

/* The same in one piece: what stands behind the last request that is looked at is not lost. */
static void test_requests_that_come_in_one_piece_are_all_answered(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_pipelined = 2});
    int client = dial(fixture);
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /echo/1 HTTP/1.1\r\nHost: h\r\n\r\n"
                "GET /echo/2 HTTP/1.1\r\nHost: h\r\n\r\nGET /echo/3 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_string_equal(hear(fixture, client, NULL), "");
    assert_int_equal(rcpt_http_stats(fixture->server)->requests, 2);
    rcpt_http_answer_text(fixture->kept[0], 200, "first");
    const char *answer = hear(fixture, client, NULL);
    assert_int_equal(count(answer, "HTTP/1.1 200"), 4);
    assert_non_null(strstr(strstr(strstr(answer, "|/1|"), "|/2|"), "|/3|"));
    close(client);
    end(fixture);
}

/* Whoever asks ahead of a server that stops is told by "Connection: close" what was not looked at.
 */
static void test_requests_behind_the_last_answer_are_left_unanswered(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_pipelined = 1});
    int client = dial(fixture);
    bool ended;
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, client, NULL);
    rcpt_http_drain(fixture->server);
    rcpt_http_drain(fixture->server); /* once is enough */
    rcpt_http_answer_text(fixture->kept[0], 200, "last");
    const char *answer = hear(fixture, client, &ended);
    assert_int_equal(count(answer, "HTTP/1.1 200"), 1);
    assert_non_null(strstr(answer, "Connection: close\r\n"));
    assert_true(ended);
    assert_int_equal(fixture->echoed, 0);
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
    assert_string_equal(rcpt_http_rest(fixture->kept[0]).bytes, "");
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

/* Its end is read behind all of its requests, also those that were held back. */
static void test_a_client_that_closed_its_side_gets_what_was_held_back(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_pipelined = 1});
    int client = dial(fixture);
    bool ended;
    for (int i = 0; i < 3; i++)
        say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    shutdown(client, SHUT_WR);
    for (size_t i = 0; i < 3; i++) {
        hear(fixture, client, &ended);
        assert_false(ended);
        assert_int_equal(fixture->kept_count, i + 1);
        rcpt_http_answer_text(fixture->kept[i], 200, "one of three");
        assert_int_equal(count(hear(fixture, client, &ended), "HTTP/1.1 200"), 1);
        assert_int_equal(ended, i == 2);
    }
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

static void test_a_stream_that_began_before_draining_ends_with_it(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    struct rcpt_http_answer head = {.status = 200};
    int client = dial(fixture);
    bool ended;
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, client, NULL);
    rcpt_http_answer_begin(fixture->kept[0], &head, 4096, NULL, NULL);
    hear(fixture, client, NULL);
    rcpt_http_drain(fixture->server);
    hear(fixture, client, &ended);
    assert_false(ended);
    rcpt_http_answer_write(fixture->kept[0], "last", 4);
    rcpt_http_answer_end(fixture->kept[0]);
    assert_string_equal(hear(fixture, client, &ended), "4\r\nlast\r\n0\r\n\r\n");
    assert_true(ended);
    close(client);
    end(fixture);
}

static void test_a_server_that_never_began_is_closed_at_once(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct rcpt_error error;
    bool closed = false;
    uv_loop_init(&loop);
    struct rcpt_http_server *server =
        rcpt_http_new(&(struct rcpt_http_settings){.loop = &loop, .listen = "*:0"}, &error);
    assert_non_null(server);
    assert_true(rcpt_http_reload_tls(server, &error)); /* there is nothing to read */
    rcpt_http_drain(server);
    rcpt_http_close(server, on_second_closed, &closed);
    assert_true(closed);
    assert_int_equal(uv_loop_close(&loop), 0);
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
    packed[size] = 'x'; /* deflate has one stream, and nothing behind it */
    assert_int_equal(post_packed(fixture, "deflate", packed, size + 1, &answer), 400);
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

static void test_what_a_body_becomes_is_within_the_budget_too(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_memory_bytes = 20000});
    static char plain[65536];
    unsigned char packed[1024];
    const char *answer;
    size_t size = pack(31, plain, sizeof(plain), packed, sizeof(packed));
    assert_int_equal(post_packed(fixture, "gzip", packed, size, &answer), 503);
    assert_non_null(strstr(answer, "Retry-After: 1\r\n"));
    assert_int_equal(rcpt_http_stats(fixture->server)->body_bytes, 0);
    size = pack(31, plain, 4000, packed, sizeof(packed));
    assert_int_equal(post_packed(fixture, "gzip", packed, size, &answer), 200);
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

/* Nobody can use up the budget with bodies that do not end: whoever needs it gets it after a
 * second.
 */
static void test_bodies_that_do_not_end_make_room(void **state)
{
    static const char half[] = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nx";
    static const char whole[] = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_memory_bytes = 4096});
    int slow[4], good;
    bool ended;
    for (int i = 0; i < 4; i++) {
        slow[i] = dial(fixture);
        say(slow[i], half);
    }
    turn(fixture, 5);
    good = dial(fixture);
    say(good, whole);
    assert_int_equal(status_of(hear(fixture, good, NULL)), 503); /* they may still be honest */
    close(good);
    usleep(1050 * 1000);
    turn(fixture, 4);
    good = dial(fixture);
    say(good, whole);
    assert_int_equal(status_of(hear(fixture, good, NULL)), 200);
    unsigned gone = 0;
    for (int i = 0; i < 4; i++) {
        hear(fixture, slow[i], &ended);
        gone += ended;
        close(slow[i]);
    }
    assert_int_equal(gone, 1);
    close(good);
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

/* The parser has a limit of its own. */
static void test_heads_are_limited_whatever_the_settings_say(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_header_bytes = 1 << 20});
    static char text[100000];
    int client = dial(fixture);
    memset(text, 'a', sizeof(text) - 1);
    memcpy(text, "GET /echo HTTP/1.1\r\nHost: h\r\nX: ", 32);
    say(client, text);
    turn(fixture, 4);
    say(client, text + 32); /* the parser looks at it when a piece ends */
    assert_int_equal(status_of(hear(fixture, client, NULL)), 431);
    close(client);
    client = dial(fixture); /* a large head that is in order, and a small one after it */
    memcpy(text + 20000, "\r\n\r\n", 5);
    say(client, text);
    assert_int_equal(status_of(hear(fixture, client, NULL)), 200);
    say(client, "GET /what HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_non_null(strstr(hear(fixture, client, NULL), "[1|||1]"));
    close(client);
    end(fixture);
}

/* Everything up to the end of the connection, which releases of libuv reach after more or fewer
 * turns. */
static const char *hear_end(struct fixture *fixture, int client)
{
    static char text[4096];
    bool ended = false;
    size_t size = 0;
    for (int tries = 0; tries < 10000 && !ended; tries++) {
        const char *more = hear(fixture, client, &ended);
        assert_true(size + strlen(more) < sizeof(text));
        memcpy(text + size, more, strlen(more) + 1);
        size += strlen(more);
    }
    assert_true(ended);
    return text;
}

static void test_slow_clients_are_told_and_dropped(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){
        .header_timeout_ms = 500, .body_timeout_ms = 500, .idle_timeout_ms = 500});
    int silent = dial(fixture), head = dial(fixture), body = dial(fixture), idle = dial(fixture),
        patient = dial(fixture);
    bool ended;
    say(head, "GET /echo HTTP/1.1\r\nHos");
    say(body, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhe");
    say(idle, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    say(patient, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_string_equal(hear_end(fixture, silent), "");
    assert_int_equal(status_of(hear_end(fixture, head)), 408);
    assert_int_equal(status_of(hear_end(fixture, body)), 408);
    assert_int_equal(count(hear_end(fixture, idle), "HTTP/1.1 200"), 1);
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

/* One that has been served and then does not end its next request gives way after a second. */
static void test_who_has_been_served_gives_way_when_it_is_slow(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_connections = 1});
    int slow = dial(fixture);
    bool ended;
    say(slow, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(status_of(hear(fixture, slow, NULL)), 200);
    say(slow, "GET /echo HTTP/1.1\r\nHost");
    turn(fixture, 4);
    int early = dial(fixture), late;
    assert_int_equal(status_of(hear(fixture, early, &ended)), 503);
    assert_true(ended);
    close(early);
    usleep(1050 * 1000);
    turn(fixture, 4);
    late = dial(fixture);
    say(late, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(status_of(hear(fixture, late, NULL)), 200);
    hear(fixture, slow, &ended);
    assert_true(ended);
    close(slow);
    close(late);
    end(fixture);
}

/* So many refused ones are told; to those beyond not even that is owed. */
static void test_a_crowd_in_front_of_the_door_is_not_all_answered(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_connections = 1});
    int clients[70];
    unsigned told = 0, silent = 0;
    clients[0] = dial(fixture);
    say(clients[0], "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    turn(fixture, 4);
    for (int i = 1; i < 70; i++) /* all of them between two turns */
        clients[i] = dial(fixture);
    for (int i = 1; i < 70; i++) {
        bool ended;
        const char *answer = hear(fixture, clients[i], &ended);
        assert_true(ended);
        told += status_of(answer) == 503;
        silent += answer[0] == '\0';
    }
    /* From 1.50 on libuv accepts one connection a turn: the first answers end before the last. */
    if (uv_version() < (1 << 16 | 50 << 8))
        assert_int_equal(told, 64);
    assert_true(told >= 64);
    assert_int_equal(told + silent, 69);
    assert_int_equal(rcpt_http_stats(fixture->server)->refused_connections, 69);
    rcpt_http_answer_text(fixture->kept[0], 200, "the one inside");
    assert_int_equal(status_of(hear(fixture, clients[0], NULL)), 200);
    for (int i = 0; i < 70; i++)
        close(clients[i]);
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
    uint64_t began_ns = uv_hrtime();
    for (int i = 0; i < 8; i++) {
        say(client, "GET /echo HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.1\r\n\r\n");
        const char *answer = hear(fixture, client, NULL);
        taken += status_of(answer) == 200 && strstr(answer, "[192.0.2.1|") != NULL;
        refused += status_of(answer) == 429 && strstr(answer, "Retry-After: 1\r\n") != NULL;
    }
    /* Two seconds' worth, and what a busy machine has added meanwhile. */
    assert_in_range(taken, 4, 4 + (uv_hrtime() - began_ns) * 2 / 1000000000);
    assert_int_equal(taken + refused, 8);
    say(client, "GET /echo HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 2001:db8::7\r\n\r\n");
    assert_non_null(strstr(hear(fixture, client, NULL), "[2001:db8::7|"));
    close(client);
    end(fixture);
}

/* Quiet time is saved up for two seconds' worth and no more. */
static void test_a_source_that_was_quiet_has_no_more_than_its_burst(void **state)
{
    (void)state;
    struct fixture *fixture =
        begin((struct rcpt_http_settings){.rate_per_source = 20, .max_pipelined = 100});
    char text[4096] = "";
    int client = dial(fixture);
    say(client, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(status_of(hear(fixture, client, NULL)), 200);
    usleep(300 * 1000); /* worth six requests */
    turn(fixture, 1);
    for (int i = 0; i < 60; i++)
        strcat(text, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    say(client, text);
    const char *answer = hear(fixture, client, NULL);
    assert_int_equal(count(answer, "HTTP/1.1 200"), 40);
    assert_int_equal(count(answer, "HTTP/1.1 429"), 20);
    close(client);
    end(fixture);
}

/* Each proxy's word counts as far as it can be read, from the nearest one on. */
static void test_forwarded_addresses_are_read_as_proxies_write_them(void **state)
{
    static const struct {
        const char *forwarded, *source;
    } examples[] = {
        {"[2001:db8::1]", "[2001:db8::1|"},
        {"192.0.2.9,\t192.0.2.1 \t, 127.0.0.2", "[192.0.2.1|"},
        {"::ffff:192.0.2.1", "[192.0.2.1|"},
        {"192.0.2.1, unknown", "[127.0.0.1|"},
        {"192.0.2.1, ", "[127.0.0.1|"},
        {"192.0.2.1, 2001:db8:0000:0000:0000:0000:0000:0001:0000:0000", "[127.0.0.1|"},
        {"", "[127.0.0.1|"},
        {"127.0.0.3", "[127.0.0.3|"},
    };
    (void)state;
    const char *const proxies[] = {"127.0.0.0/8"};
    struct fixture *fixture =
        begin((struct rcpt_http_settings){.trusted_proxies = proxies, .trusted_proxy_count = 1});
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        char text[256];
        int client = dial(fixture);
        snprintf(text, sizeof(text), "GET /echo HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: %s\r\n\r\n",
                 examples[i].forwarded);
        say(client, text);
        const char *answer = hear(fixture, client, NULL);
        if (strstr(answer, examples[i].source) == NULL)
            fail_msg("%s -> %s", examples[i].forwarded, answer);
        close(client);
    }
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

/* HTTP/1.0 knows no chunks: the end of the connection is the end of the body. */
static void test_an_old_client_gets_a_stream_until_the_connection_ends(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    struct rcpt_http_answer head = {.status = 200, .body = "one", .body_size = 3};
    int client = dial(fixture);
    bool ended;
    say(client, "GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    hear(fixture, client, NULL);
    rcpt_http_answer_begin(fixture->kept[0], &head, 4096, on_gone, fixture);
    const char *answer = hear(fixture, client, &ended);
    assert_null(strstr(answer, "Transfer-Encoding"));
    assert_non_null(strstr(answer, "Connection: close\r\n\r\none"));
    assert_false(ended);
    rcpt_http_answer_write(fixture->kept[0], "two", 3);
    rcpt_http_answer_end(fixture->kept[0]);
    assert_string_equal(hear(fixture, client, &ended), "two");
    assert_true(ended);
    close(client);
    end(fixture);
}

static void test_a_stream_that_nobody_takes_is_cut_off(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    struct rcpt_http_answer head = {.status = 200};
    char piece[1001];
    int client = dial(fixture);
    bool ended;
    memset(piece, 'x', sizeof(piece));
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, client, NULL);
    rcpt_http_answer_begin(fixture->kept[0], &head, 4096, on_gone, fixture);
    for (int i = 0; i < 10; i++) /* nothing is sent before the loop's next turn */
        rcpt_http_answer_write(fixture->kept[0], piece, sizeof(piece));
    assert_true(fixture->gone);
    assert_int_equal(rcpt_http_stats(fixture->server)->connections, 0);
    hear(fixture, client, &ended);
    assert_true(ended);
    rcpt_http_answer_end(fixture->kept[0]);
    close(client);
    end(fixture);
}

/* Also when it is the answer to what was held back. */
static void test_a_handler_may_lose_its_client_in_the_middle(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_pipelined = 1});
    int client = dial(fixture);
    bool ended;
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\nGET /flood HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_string_equal(hear(fixture, client, NULL), "");
    rcpt_http_answer_text(fixture->kept[0], 418, "a code of its own");
    hear(fixture, client, &ended);
    assert_true(ended);
    assert_int_equal(rcpt_http_stats(fixture->server)->connections, 0);
    assert_int_equal(rcpt_http_stats(fixture->server)->answers[4], 1);
    close(client);
    client = dial(fixture);
    say(client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hear(fixture, client, NULL);
    rcpt_http_answer_text(fixture->kept[1], 418, "a code of its own");
    assert_non_null(strstr(hear(fixture, client, NULL), "HTTP/1.1 418 Other\r\n"));
    close(client);
    end(fixture);
}

/* More of them at once than the server keeps memory for. */
static void test_many_requests_that_wait_are_all_answered(void **state)
{
    enum { CONNECTIONS = 5, EACH = 60 };
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.max_pipelined = EACH});
    int clients[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        clients[i] = dial(fixture);
        for (int j = 0; j < EACH; j++)
            say(clients[i], "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    turn(fixture, 20);
    assert_int_equal(fixture->kept_count, CONNECTIONS * EACH);
    for (int i = 0; i < CONNECTIONS * EACH; i++)
        rcpt_http_answer_text(fixture->kept[i], 200, "ok");
    for (int i = 0; i < CONNECTIONS; i++) {
        assert_int_equal(count(hear(fixture, clients[i], NULL), "HTTP/1.1 200"), EACH);
        close(clients[i]);
    }
    end(fixture);
}

/* Answers that are made and not sent yet do not hold up the end. */
static void test_the_server_may_end_between_answers_and_their_sending(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = dial(fixture);
        say(clients[i], "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        turn(fixture, 4);
    }
    for (int i = 2; i >= 0; i--)
        rcpt_http_answer_text(fixture->kept[i], 200, "not sent");
    end(fixture);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
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
        cmocka_unit_test(test_no_header_hides_something_behind_a_nul),
        cmocka_unit_test(test_head_has_the_length_and_no_body),
        cmocka_unit_test(test_answers_keep_the_order_of_pipelined_requests),
        cmocka_unit_test(test_a_client_that_is_gone_can_be_answered),
        cmocka_unit_test(test_a_client_may_close_its_side_and_wait),
        cmocka_unit_test(test_a_client_that_closed_its_side_gets_what_was_held_back),
        cmocka_unit_test(test_the_server_may_end_before_its_answers),
        cmocka_unit_test(test_draining_answers_and_closes),
        cmocka_unit_test(test_compressed_bodies_are_opened),
        cmocka_unit_test(test_a_zip_bomb_is_refused_before_it_grows),
        cmocka_unit_test(test_bodies_stay_within_the_budget),
        cmocka_unit_test(test_bodies_that_do_not_end_make_room),
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
        cmocka_unit_test(test_requests_that_come_in_one_piece_are_all_answered),
        cmocka_unit_test(test_requests_behind_the_last_answer_are_left_unanswered),
        cmocka_unit_test(test_a_stream_that_began_before_draining_ends_with_it),
        cmocka_unit_test(test_a_server_that_never_began_is_closed_at_once),
        cmocka_unit_test(test_what_a_body_becomes_is_within_the_budget_too),
        cmocka_unit_test(test_heads_are_limited_whatever_the_settings_say),
        cmocka_unit_test(test_who_has_been_served_gives_way_when_it_is_slow),
        cmocka_unit_test(test_a_crowd_in_front_of_the_door_is_not_all_answered),
        cmocka_unit_test(test_a_source_that_was_quiet_has_no_more_than_its_burst),
        cmocka_unit_test(test_forwarded_addresses_are_read_as_proxies_write_them),
        cmocka_unit_test(test_an_old_client_gets_a_stream_until_the_connection_ends),
        cmocka_unit_test(test_a_stream_that_nobody_takes_is_cut_off),
        cmocka_unit_test(test_a_handler_may_lose_its_client_in_the_middle),
        cmocka_unit_test(test_many_requests_that_wait_are_all_answered),
        cmocka_unit_test(test_the_server_may_end_between_answers_and_their_sending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

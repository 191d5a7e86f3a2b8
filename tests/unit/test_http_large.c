/* Answers that are larger than what the sockets take at once, and clients that take them slowly or
 * not at all. */
#include "http_fixture.h"

#include "http/internal.h"

/* A client whose socket takes little by itself. */
static int dial_narrow(struct fixture *fixture)
{
    int client = socket(AF_INET, SOCK_STREAM, 0), bytes = 8192;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)rcpt_http_port(fixture->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    fcntl(client, F_SETFL, O_NONBLOCK);
    return client;
}

/* Bytes that came, -1: the end. */
static ssize_t take(int client, size_t most)
{
    static char bytes[65536];
    ssize_t got = recv(client, bytes, most < sizeof(bytes) ? most : sizeof(bytes), 0);
    if (got > 0)
        return got;
    return got < 0 && errno == EAGAIN ? 0 : -1;
}

/* A little in each of so many twentieths of a second, and then as much as comes, until the wanted
 * bytes or the end. */
static size_t take_slowly(struct fixture *fixture, int client, int twentieths, size_t wanted)
{
    size_t sum = 0;
    ssize_t got = 0;
    for (int i = 0; i < twentieths && got >= 0; i++) {
        got = take(client, 4096);
        sum += got > 0 ? (size_t)got : 0;
        usleep(50 * 1000);
        turn(fixture, 1);
    }
    for (int silence = 0; sum < wanted && got >= 0 && silence < 4000; silence++) {
        got = take(client, 65536);
        sum += got > 0 ? (size_t)got : 0;
        silence = got > 0 ? 0 : silence;
        uv_run(&fixture->loop, UV_RUN_NOWAIT);
        if (got == 0)
            usleep(100);
    }
    return sum;
}

static size_t head_bytes(struct fixture *fixture, const char *request)
{
    char head[256];
    int client = dial(fixture);
    snprintf(head, sizeof(head), "HEAD%s", strchr(request, ' '));
    say(client, head);
    size_t size = strlen(hear(fixture, client, NULL));
    close(client);
    assert_in_range(size, 20, 400);
    return size;
}

/* The time that a connection may rest begins when the client has everything. */
static void test_an_answer_that_is_taken_slowly_arrives_whole(void **state)
{
    enum { REST_MS = 60000 };
    static const char request[] = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.idle_timeout_ms = REST_MS});
    size_t expected = head_bytes(fixture, request) + LARGE_BYTES;
    turn(fixture, 20); /* the connection of the head goes */
    int client = dial_narrow(fixture);
    say(client, request);
    size_t taken = take_slowly(fixture, client, 10, 1);
    struct connection *connection = fixture->server->connections;
    assert_null(connection->next);
    connection->deadline_ms = 0; /* so slowly that its rest would be over */
    taken += take_slowly(fixture, client, 10, 1);
    int64_t before_the_rest = http_now(fixture->server);
    assert_int_equal(taken + take_slowly(fixture, client, 0, expected - taken), expected);
    turn(fixture, 1);
    assert_in_range(connection->deadline_ms, before_the_rest + REST_MS, INT64_MAX - 1);
    close(client);
    end(fixture);
}

/* Longer than the two seconds for which the client's end is awaited. */
static void test_the_last_answer_that_is_taken_slowly_arrives_whole(void **state)
{
    static const char request[] = "GET /large HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    size_t expected = head_bytes(fixture, request) + LARGE_BYTES;
    int client = dial_narrow(fixture);
    say(client, request);
    assert_int_equal(take_slowly(fixture, client, 50, expected + 1), expected);
    assert_int_equal(take(client, 1), -1);
    assert_int_equal(rcpt_http_stats(fixture->server)->timeouts, 0);
    close(client);
    end(fixture);
}

static void test_draining_waits_for_who_takes_an_answer(void **state)
{
    static const char request[] = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    size_t expected = head_bytes(fixture, request) + LARGE_BYTES;
    int client = dial_narrow(fixture);
    say(client, request);
    turn(fixture, 10);
    rcpt_http_drain(fixture->server);
    assert_false(rcpt_http_is_idle(fixture->server));
    assert_int_equal(take_slowly(fixture, client, 4, expected + 1), expected);
    assert_int_equal(take(client, 1), -1); /* and is closed then */
    assert_true(rcpt_http_is_idle(fixture->server));
    close(client);
    end(fixture);
}

static void test_who_takes_nothing_is_dropped(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.write_timeout_ms = 300});
    int client = dial_narrow(fixture);
    say(client, "GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
    turn(fixture, 10);
    assert_int_equal(rcpt_http_stats(fixture->server)->connections, 1);
    assert_false(rcpt_http_is_idle(fixture->server));
    for (int i = 0; i < 300 && rcpt_http_stats(fixture->server)->connections > 0; i++)
        turn(fixture, 10);
    assert_int_equal(rcpt_http_stats(fixture->server)->connections, 0);
    assert_int_equal(rcpt_http_stats(fixture->server)->timeouts, 1);
    assert_true(rcpt_http_is_idle(fixture->server));
    close(client);
    end(fixture);
}

/* What is asked for by someone who takes no answers does not add up in memory. */
static void test_nothing_more_is_read_from_who_takes_no_answers(void **state)
{
    static const char request[] = "GET /large HTTP/1.1\r\nHost: h\r\n\r\n";
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    size_t head = head_bytes(fixture, request);
    int client = dial_narrow(fixture);
    for (int i = 0; i < 3; i++) {
        say(client, request);
        turn(fixture, 10);
    }
    assert_int_equal(rcpt_http_stats(fixture->server)->requests, 2); /* the head and the first */
    size_t expected = 3 * (head + LARGE_BYTES);
    assert_int_equal(take_slowly(fixture, client, 2, expected), expected);
    assert_int_equal(rcpt_http_stats(fixture->server)->requests, 4);
    close(client);
    end(fixture);
}

static void test_who_leaves_in_the_middle_of_an_answer_is_forgotten(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    struct linger reset = {.l_onoff = 1};
    int client = dial_narrow(fixture);
    say(client, "GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
    turn(fixture, 10);
    assert_false(rcpt_http_is_idle(fixture->server));
    setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(client);
    turn(fixture, 20);
    assert_int_equal(rcpt_http_stats(fixture->server)->connections, 0);
    assert_true(rcpt_http_is_idle(fixture->server));
    end(fixture);
}

static void test_the_server_may_end_in_the_middle_of_an_answer(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial_narrow(fixture);
    say(client, "GET /large HTTP/1.1\r\nHost: h\r\n\r\n");
    turn(fixture, 10);
    end(fixture);
    close(client);
}

/* One piece for several clients: each gets it whole and once, also who takes it slowly, and the memory
 * goes with the last of them. */
static void test_a_piece_is_shared_by_all_clients(void **state)
{
    (void)state;
    enum { SIZE = 1000000, CLIENTS = 4 };
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    const struct rcpt_http_answer head = {.status = 200};
    char *text = calloc(1, SIZE);
    int clients[CLIENTS];
    memset(text, 'x', SIZE);
    for (int i = 0; i < CLIENTS; i++) { /* the last one is of HTTP/1.0: without chunks */
        clients[i] = i == 0 ? dial_narrow(fixture) : dial(fixture);
        say(clients[i], i == CLIENTS - 1 ? "GET /later HTTP/1.0\r\n\r\n"
                                         : "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
        turn(fixture, 5);
        assert_int_equal(fixture->kept_count, i + 1);
        rcpt_http_answer_begin(fixture->kept[i], &head, 4096, on_gone, fixture);
        rcpt_http_answer_slim(fixture->kept[i]);
        assert_null(rcpt_http_header(fixture->kept[i], "Host").bytes);
        assert_non_null(strstr(hear(fixture, clients[i], NULL), "HTTP/1.1 200 OK"));
    }
    struct rcpt_http_piece *piece = rcpt_http_piece_new(text, SIZE);
    for (int i = 0; i < CLIENTS; i++)
        rcpt_http_answer_share(fixture->kept[i], piece);
    rcpt_http_piece_release(piece);
    assert_in_range(rcpt_http_answer_queued(fixture->kept[0]), SIZE / 2, SIZE + 16);
    for (int i = 0; i < CLIENTS; i++) {
        size_t framed = SIZE + (i == CLIENTS - 1 ? 0 : strlen("f4240\r\n\r\n"));
        assert_int_equal(take_slowly(fixture, clients[i], 2, framed), framed);
        assert_int_equal(rcpt_http_answer_queued(fixture->kept[i]), 0);
    }
    piece = rcpt_http_piece_new("end", 3); /* who leaves before it has taken a piece harms nobody */
    close(clients[0]);
    for (int i = 0; i < CLIENTS; i++)
        rcpt_http_answer_share(fixture->kept[i], piece);
    assert_string_equal(hear(fixture, clients[1], NULL), "3\r\nend\r\n");
    assert_string_equal(hear(fixture, clients[CLIENTS - 1], NULL), "end");
    rcpt_http_piece_release(piece);
    for (int i = 0; i < CLIENTS; i++)
        rcpt_http_answer_end(fixture->kept[i]);
    for (int i = 1; i < CLIENTS; i++)
        close(clients[i]);
    free(text);
    end(fixture);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_that_is_taken_slowly_arrives_whole),
        cmocka_unit_test(test_the_last_answer_that_is_taken_slowly_arrives_whole),
        cmocka_unit_test(test_draining_waits_for_who_takes_an_answer),
        cmocka_unit_test(test_who_takes_nothing_is_dropped),
        cmocka_unit_test(test_nothing_more_is_read_from_who_takes_no_answers),
        cmocka_unit_test(test_who_leaves_in_the_middle_of_an_answer_is_forgotten),
        cmocka_unit_test(test_the_server_may_end_in_the_middle_of_an_answer),
        cmocka_unit_test(test_a_piece_is_shared_by_all_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

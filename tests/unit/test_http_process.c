/* What the process and the machine give to the HTTP server: addresses, file descriptors. Children
 * try what cannot be taken back. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>

#include "http_fixture.h"

static struct rcpt_http_server *make(uv_loop_t *loop, const char *listen)
{
    struct rcpt_error error;
    struct rcpt_http_server *server =
        rcpt_http_new(&(struct rcpt_http_settings){.loop = loop, .listen = listen}, &error);
    assert_non_null(server);
    return server;
}

static void finish(uv_loop_t *loop, struct rcpt_http_server *server)
{
    bool closed = false;
    rcpt_http_close(server, on_second_closed, &closed);
    while (!closed)
        uv_run(loop, UV_RUN_ONCE);
    assert_int_equal(uv_loop_close(loop), 0);
}

static void test_as_many_descriptors_as_allowed_are_taken(void **state)
{
    struct rlimit before, limit;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = 256;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    end(begin((struct rcpt_http_settings){0}));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, before.rlim_max);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Runs in a child whose standard error is a pipe; what it wrote there. */
static const char *in_child(void (*act)(void))
{
    static char text[8192];
    int ends[2], status = -1;
    size_t size = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        act();
        exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t)got;
    text[size] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return text;
}

static void limit_descriptors(rlim_t most)
{
    struct rlimit limit = {.rlim_cur = most, .rlim_max = most};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        exit(1);
}

static void serve_with_few_descriptors(void)
{
    limit_descriptors(200);
    end(begin((struct rcpt_http_settings){0}));
}

static void test_no_more_connections_are_allowed_than_descriptors(void **state)
{
    (void)state;
    const char *text = in_child(serve_with_few_descriptors);
    if (strstr(text, "http: at most 136 connections, for the process may have 200 files") == NULL)
        fail_msg("%s", text);
}

static void listen_without_descriptors(void)
{
    struct rcpt_error error;
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct rcpt_http_server *server = make(&loop, "127.0.0.1:0");
    limit_descriptors(32);
    while (dup(STDERR_FILENO) >= 0)
        continue;
    if (!rcpt_http_start(server, &error))
        dprintf(STDERR_FILENO, "%d %s; %s", error.exit_code, error.text, error.hint);
    close(31);
    finish(&loop, server);
}

static void test_a_socket_that_cannot_be_made_is_a_failure_with_its_reason(void **state)
{
    (void)state;
    assert_string_equal(in_child(listen_without_descriptors),
                        "69 http cannot listen on 127.0.0.1:0: Too many open files; an address "
                        "that this machine has, and a file descriptor for it (ulimit -n)");
}

static void test_the_shortest_route_takes_what_no_other_does(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct rcpt_error error;
    (void)state;
    uv_loop_init(&fixture->loop);
    fixture->server = make(&fixture->loop, "127.0.0.1:0");
    rcpt_http_route(fixture->server, &(struct rcpt_http_route){.prefix = "/",
                                                               .methods = RCPT_HTTP_GET,
                                                               .handler = on_echo,
                                                               .context = fixture});
    assert_true(rcpt_http_start(fixture->server, &error));
    int client = dial(fixture);
    say(client, "GET /any/thing HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_non_null(strstr(hear(fixture, client, NULL), "[127.0.0.1|/any/thing||0:]"));
    say(client, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_non_null(strstr(hear(fixture, client, NULL), "[127.0.0.1|/||0:]"));
    close(client);
    end(fixture);
}

static void test_an_address_of_another_machine_is_named(void **state)
{
    struct rcpt_error error;
    uv_loop_t loop;
    (void)state;
    uv_loop_init(&loop);
    struct rcpt_http_server *server = make(&loop, "192.0.2.1:0");
    assert_false(rcpt_http_start(server, &error));
    assert_string_equal(error.text,
                        "http cannot listen on 192.0.2.1:0: Cannot assign requested address");
    assert_string_equal(error.hint,
                        "no interface of this machine has the address; ip address shows them");
    assert_int_equal(error.exit_code, EX_UNAVAILABLE);
    finish(&loop, server);
}

/* Not for root, who becomes nobody for a moment. */
static void test_a_port_that_needs_a_capability_is_named(void **state)
{
    struct rcpt_error error;
    uv_loop_t loop;
    (void)state;
    uv_loop_init(&loop);
    struct rcpt_http_server *server = make(&loop, "127.0.0.1:1");
    uid_t before = geteuid();
    if (before == 0)
        assert_int_equal(seteuid(65534), 0);
    bool good = rcpt_http_start(server, &error);
    if (before == 0)
        assert_int_equal(seteuid(before), 0);
    finish(&loop, server);
    if (good) {
        print_message("SKIP: this machine lets everybody listen on port 1\n");
        skip();
    }
    assert_string_equal(error.text, "http cannot listen on 127.0.0.1:1: Permission denied");
    assert_string_equal(error.hint, "a port below 1024 needs CAP_NET_BIND_SERVICE");
    assert_int_equal(error.exit_code, EX_NOPERM);
}

/* Whoever comes while there is no descriptor left is let go, and the next one is served. */
static void test_clients_without_a_descriptor_do_not_stop_the_others(void **state)
{
    struct rlimit before, limit;
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    int client = dial(fixture), last = dup(client);
    bool ended;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    limit = before;
    limit.rlim_cur = (rlim_t)last;
    close(last);
    for (int i = 3; i < client; i++) /* no gap below that one may be put into */
        if (fcntl(i, F_GETFD) < 0)
            assert_int_equal(dup2(client, i), i);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    hear(fixture, client, &ended);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rcpt_http_stats(fixture->server)->connections, 0);
    assert_true(ended);
    close(client);
    client = dial(fixture);
    say(client, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_int_equal(status_of(hear(fixture, client, NULL)), 200);
    close(client);
    end(fixture);
}

/* ":port" takes both families; the address that is told is what the client has. */
static void test_all_addresses_take_ipv4_and_ipv6(void **state)
{
    (void)state;
    struct fixture *fixture = begin((struct rcpt_http_settings){.listen = "[::]:0"});
    int client = dial(fixture);
    say(client, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_non_null(strstr(hear(fixture, client, NULL), "[127.0.0.1|"));
    close(client);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons((uint16_t)rcpt_http_port(fixture->server)),
                                   .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    client = socket(AF_INET6, SOCK_STREAM, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    fcntl(client, F_SETFL, O_NONBLOCK);
    say(client, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_non_null(strstr(hear(fixture, client, NULL), "[::1|"));
    close(client);
    end(fixture);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int descriptor = socket(AF_INET6, SOCK_STREAM, 0);
    bool good = descriptor >= 0 &&
                bind(descriptor, (const struct sockaddr *)&address, sizeof(address)) == 0;
    if (descriptor >= 0)
        close(descriptor);
    return good;
}

static void test_ipv6(void **state)
{
    if (!has_ipv6()) {
        print_message("SKIP: this machine has no IPv6\n");
        skip();
    }
    test_all_addresses_take_ipv4_and_ipv6(state);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_descriptors_as_allowed_are_taken),
        cmocka_unit_test(test_no_more_connections_are_allowed_than_descriptors),
        cmocka_unit_test(test_a_socket_that_cannot_be_made_is_a_failure_with_its_reason),
        cmocka_unit_test(test_the_shortest_route_takes_what_no_other_does),
        cmocka_unit_test(test_an_address_of_another_machine_is_named),
        cmocka_unit_test(test_a_port_that_needs_a_capability_is_named),
        cmocka_unit_test(test_clients_without_a_descriptor_do_not_stop_the_others),
        cmocka_unit_test(test_ipv6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Who the client is behind proxies, what it may ask for before it is known, and what its packed
 * bodies may become. */
#include <zlib.h>

#include "http_fixture.h"

static const char *const proxies[] = {"127.0.0.0/8", "10.0.0.0/8"};

static const char *ask(struct fixture *fixture, const char *headers)
{
    char text[1024];
    int client = dial(fixture);
    snprintf(text, sizeof(text), "GET /echo HTTP/1.1\r\nHost: h\r\n%s\r\n", headers);
    say(client, text);
    const char *answer = hear(fixture, client, NULL);
    close(client);
    return answer;
}

/* ---- X-Forwarded-For ---- */

/* The first line is what a client wrote, the last one is the proxy's. */
static void test_what_a_proxy_cannot_say_is_not_replaced_by_the_clients_word(void **state)
{
    static const struct {
        const char *headers, *source;
    } examples[] = {
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: unknown\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: _hidden\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For:\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: ,\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: , 10.0.0.1\r\n", "[10.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: 198.51.100.1\r\n", "[198.51.100.1|"},
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: 198.51.100.1:4711\r\n",
         "[198.51.100.1|"},
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: unknown, 10.0.0.1\r\n", "[10.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-For: 10.0.0.1:80\r\n", "[203.0.113.7|"},
        {"X-Forwarded-For: [2001:db8::1]:4711\r\n", "[2001:db8::1|"},
        {"X-Forwarded-For: \"[2001:db8::1]:4711\"\r\n", "[2001:db8::1|"},
        {"X-Forwarded-For: \"198.51.100.1\"\r\n", "[198.51.100.1|"},
        {"X-Forwarded-For: 198.51.100.1, \"10.0.0.1:80\" ,127.0.0.9\r\n", "[198.51.100.1|"},
        {"X-Forwarded-For: ::ffff:198.51.100.1\r\n", "[198.51.100.1|"},
        {"X-Forwarded-For: 203.0.113.7, 198.51.100.1:\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7, 198.51.100.1:123456\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7, 198.51.100.1:4x\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7, 198.051.100.001\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7, 0x0a.1\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7, fe80::1%eth0\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: 203.0.113.7, 2001:db8::1]:80\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: \"203.0.113.7, 10.0.0.1\"\r\n", "[127.0.0.1|"},
        {"X-Forwarded-For: \"\"\r\n", "[127.0.0.1|"},
    };
    (void)state;
    struct fixture *fixture =
        begin((struct rcpt_http_settings){.trusted_proxies = proxies, .trusted_proxy_count = 2});
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        const char *answer = ask(fixture, examples[i].headers);
        if (strstr(answer, examples[i].source) == NULL)
            fail_msg("%s -> %s", examples[i].headers, answer);
    }
    end(fixture);
}

static void test_a_network_means_what_it_says(void **state)
{
    static const struct {
        const char *network;
        bool good;
    } examples[] = {
        {"::ffff:10.0.0.0/104", true}, {"::ffff:10.0.0.0/8", false},
        {"::ffff:10.0.0.1", true},     {"::/0", true},
        {"10.0.0.0/33", false},        {"10.0.0.0/+8", false},
        {"10.0.0.0/", false},          {"010.0.0.0/8", false},
        {"fe80::1%lo", false},         {"10.0.0.0/8x", false},
        {"10.0.0.0/0008", false},
    };
    (void)state;
    uv_loop_t loop;
    uv_loop_init(&loop);
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        struct rcpt_error error;
        struct rcpt_http_settings settings = {.loop = &loop,
                                              .listen = "127.0.0.1:0",
                                              .trusted_proxies = &examples[i].network,
                                              .trusted_proxy_count = 1};
        struct rcpt_http_server *server = rcpt_http_new(&settings, &error);
        if ((server != NULL) != examples[i].good)
            fail_msg("%s", examples[i].network);
        bool closed = false;
        if (server != NULL)
            rcpt_http_close(server, on_second_closed, &closed);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- rates ---- */

static void on_welcome(void *context, struct rcpt_http_request *request)
{
    (void)context;
    rcpt_http_give_back(request);
    rcpt_http_give_back(request); /* once is enough */
    rcpt_http_answer_text(request, 200, "welcome");
}

#define RATE  5u  /* requests a second */
#define BURST 10u /* two seconds' worth */

#define CLOCK_NS UINT64_C(2000000) /* the loop's clock has milliseconds, and may lag by one */

/* How many a source may have asked since then: time goes on while the test does. */
static unsigned allowed_since(uint64_t begun_ns)
{
    return BURST + (unsigned)((uv_hrtime() - begun_ns + CLOCK_NS) * RATE / 1000000000u);
}

static struct fixture *begin_rate(struct rcpt_http_settings settings)
{
    struct rcpt_http_route route = {
        .prefix = "/echo/welcome", .methods = RCPT_HTTP_GET, .handler = on_welcome};
    settings.rate_per_source = RATE;
    settings.trusted_proxies = proxies;
    settings.trusted_proxy_count = 1;
    settings.max_pipelined = 100;
    return begin_with(settings, &route);
}

/* So many of them at once; how many were answered with 200. */
static unsigned ask_often(struct fixture *fixture, const char *path, const char *source, int times)
{
    static char text[65536];
    int client = dial(fixture);
    size_t size = 0;
    for (int i = 0; i < times; i++)
        size += (size_t)snprintf(text + size, sizeof(text) - size,
                                 "GET /echo%s HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: %s\r\n\r\n",
                                 path, source);
    say(client, text);
    const char *answer = hear(fixture, client, NULL);
    assert_int_equal(count(answer, "HTTP/1.1 200") + count(answer, "HTTP/1.1 429"), times);
    unsigned good = count(answer, "HTTP/1.1 200");
    close(client);
    return good;
}

/* The same for a source that has its whole burst: it gets that, and no more than time has brought. */
static unsigned use_up(struct fixture *fixture, const char *source, int times)
{
    uint64_t begun_ns = uv_hrtime();
    unsigned good = ask_often(fixture, "/other", source, times);
    if (good < BURST || good > allowed_since(begun_ns))
        fail_msg("%s: %u of %d", source, good, times);
    return good;
}

static void test_who_is_welcome_is_not_counted(void **state)
{
    (void)state;
    struct fixture *fixture = begin_rate((struct rcpt_http_settings){0});
    assert_int_equal(ask_often(fixture, "/welcome", "192.0.2.1", 90), 90);
    assert_int_equal(ask_often(fixture, "/welcome", "192.0.2.1", 90), 90);
    uint64_t begun_ns = uv_hrtime();
    unsigned used = use_up(fixture, "192.0.2.1", 40);
    /* It has used it up. Time may have brought one more, which all of the welcome ones give back. */
    if (ask_often(fixture, "/welcome", "192.0.2.1", 40) > 0)
        assert_in_range(used + 1, BURST, allowed_since(begun_ns));
    use_up(fixture, "192.0.2.2", 40); /* the neighbour has not */
    /* What is given back twice is not more than it was. */
    begun_ns = uv_hrtime();
    used = ask_often(fixture, "/other", "192.0.2.3", 5);
    assert_int_equal(ask_often(fixture, "/welcome", "192.0.2.3", 20), 20);
    used += ask_often(fixture, "/other", "192.0.2.3", 40);
    assert_in_range(used, BURST, allowed_since(begun_ns));
    end(fixture);
}

/* One customer has a /64: the whole of it has one rate. */
static void test_a_network_of_ipv6_is_one_source(void **state)
{
    (void)state;
    struct fixture *fixture = begin_rate((struct rcpt_http_settings){0});
    unsigned good = 0;
    uint64_t begun_ns = uv_hrtime();
    for (int i = 0; i < 20; i++) {
        char source[64];
        snprintf(source, sizeof(source), "2001:db8:0:1:%x::%x", i, i);
        good += ask_often(fixture, "/other", source, 2);
    }
    assert_in_range(good, BURST, allowed_since(begun_ns));
    use_up(fixture, "2001:db8:0:2::1", 20);
    end(fixture);
}

static void test_neighbours_may_be_spared(void **state)
{
    static const struct {
        const char *source;
        bool spared;
    } examples[] = {
        {"10.255.0.1", true},   {"172.31.0.1", true},    {"172.32.0.1", false},
        {"192.168.7.1", true},  {"192.169.0.1", false},  {"100.127.0.1", true},
        {"100.128.0.1", false}, {"169.254.169.1", true}, {"::1", true},
        {"fd00::1", true},      {"fe80::1", true},       {"2001:db8::1", false},
        {"8.8.8.8", false},     {"unknown", false}, /* it is the trusted proxy that is counted */
    };
    (void)state;
    struct fixture *fixture = begin_rate((struct rcpt_http_settings){.spare_neighbours = true});
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        if (!examples[i].spared)
            use_up(fixture, examples[i].source, 30);
        else if (ask_often(fixture, "/other", examples[i].source, 30) != 30)
            fail_msg("%s is not spared", examples[i].source);
    }
    end(fixture);
}

/* ---- packed bodies ---- */

static int post_packed(struct fixture *fixture, const unsigned char *plain, size_t size)
{
    static unsigned char packed[1 << 20];
    char head[256];
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)plain,
                       .avail_in = (uInt)size,
                       .next_out = packed,
                       .avail_out = sizeof(packed)};
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    int client = dial(fixture);
    snprintf(
        head, sizeof(head),
        "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: %lu\r\n\r\n",
        stream.total_out);
    say(client, head);
    for (size_t sent = 0; sent < stream.total_out;) {
        ssize_t more = send(client, packed + sent, stream.total_out - sent, MSG_NOSIGNAL);
        sent += more > 0 ? (size_t)more : 0;
        turn(fixture, 1);
    }
    int status = status_of(hear(fixture, client, NULL));
    close(client);
    return status;
}

static void test_a_packed_body_is_at_most_a_hundred_times_what_was_sent(void **state)
{
    (void)state;
    static unsigned char plain[1 << 20];
    struct fixture *fixture = begin((struct rcpt_http_settings){0});
    assert_int_equal(post_packed(fixture, plain, 65536), 200); /* a small one may be anything */
    assert_int_equal(post_packed(fixture, plain, sizeof(plain)), 413);
    for (size_t i = 0; i < sizeof(plain); i += 40) /* about 20 times */
        plain[i] = (unsigned char)((i * 2654435761u) >> 13);
    assert_int_equal(post_packed(fixture, plain, sizeof(plain)), 200);
    assert_int_equal(rcpt_http_stats(fixture->server)->body_bytes, 0);
    end(fixture);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_proxy_cannot_say_is_not_replaced_by_the_clients_word),
        cmocka_unit_test(test_a_network_means_what_it_says),
        cmocka_unit_test(test_who_is_welcome_is_not_counted),
        cmocka_unit_test(test_a_network_of_ipv6_is_one_source),
        cmocka_unit_test(test_neighbours_may_be_spared),
        cmocka_unit_test(test_a_packed_body_is_at_most_a_hundred_times_what_was_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The webhook client against the project's own HTTP server on the same loop. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include <cmocka.h>

#include "receiptd/base/network.h"
#include "receiptd/http/client.h"
#include "receiptd/http/http.h"
#include "receiptd/http/webhook.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SECRET       "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define OTHER_SECRET "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD2ExkHwUqyEM="

/* ---- pure ---- */

static void signatures_are_those_of_standard_webhooks(void **state)
{
    (void)state;
    struct rcpt_webhook_secret secrets[2];
    const char *body = "{\"test\": 2432232314}";
    assert_true(rcpt_webhook_secret_parse(&secrets[0], SECRET));
    assert_int_equal(secrets[0].size, 24);
    /* The example of the specification's own libraries. */
    char *one = rcpt_webhook_sign(secrets, 1, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body,
                                  strlen(body));
    assert_string_equal(one, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert_true(rcpt_webhook_secret_parse(&secrets[1], OTHER_SECRET));
    char *both = rcpt_webhook_sign(secrets, 2, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body,
                                   strlen(body));
    assert_memory_equal(both, one, strlen(one));
    assert_memory_equal(both + strlen(one), " v1,", 4);
    assert_int_equal(strlen(both), 2 * strlen(one) + 1);
    free(one);
    free(both);
}

static void secrets_of_another_form_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "whsec_",
                                      "whsec_short",
                                      "whsec_AAAA",
                                      "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
                                      "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa=w",
                                      "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS "};
    struct rcpt_webhook_secret secret;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(rcpt_webhook_secret_parse(&secret, bad[i]));
    assert_true(rcpt_webhook_secret_parse(&secret, &SECRET[strlen("whsec_")]));
    char text[100]; /* the base64 of 63, then of 66 bytes */
    memset(text, 'A', sizeof(text));
    text[84] = '\0';
    assert_true(rcpt_webhook_secret_parse(&secret, text));
    text[84] = 'A';
    text[88] = '\0';
    assert_false(rcpt_webhook_secret_parse(&secret, text));
}

static void what_a_status_means(void **state)
{
    (void)state;
    static const struct {
        int status;
        enum rcpt_webhook_class class;
        bool again;
    } examples[] = {
        {200, RCPT_WEBHOOK_DELIVERED, false},   {204, RCPT_WEBHOOK_DELIVERED, false},
        {301, RCPT_WEBHOOK_REFUSED, false},     {400, RCPT_WEBHOOK_REFUSED, false},
        {404, RCPT_WEBHOOK_REFUSED, false},     {408, RCPT_WEBHOOK_BUSY, true},
        {410, RCPT_WEBHOOK_REFUSED, false},     {429, RCPT_WEBHOOK_BUSY, true},
        {500, RCPT_WEBHOOK_SERVER_ERROR, true}, {503, RCPT_WEBHOOK_SERVER_ERROR, true},
        {600, RCPT_WEBHOOK_REFUSED, false},
    };
    for (size_t i = 0; i < COUNT(examples); i++) {
        assert_int_equal(rcpt_webhook_classify(examples[i].status), examples[i].class);
        assert_int_equal(rcpt_webhook_may_retry(examples[i].class), examples[i].again);
    }
}

static void the_receiver_is_given_the_time_it_asks_for(void **state)
{
    (void)state;
    struct rcpt_backoff backoff;
    rcpt_backoff_init(&backoff, 1000, 60000, 7);
    for (int i = 0; i < 100; i++) {
        int64_t wait = rcpt_webhook_wait_ms(&backoff, 5000);
        assert_in_range(wait, 5000, 60000);
    }
    assert_int_equal(rcpt_webhook_wait_ms(&backoff, 3600000), 60000);
}

static bool is_public(const char *text)
{
    struct rcpt_address address;
    assert_true(rcpt_address_parse(text, strlen(text), &address));
    return rcpt_address_is_public(&address);
}

/* 1 795 780 800 is Fri, 27 Nov 2026 12:00:00 GMT. */
static void a_time_that_has_passed_or_is_none_asks_for_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        int64_t seconds;
    } rows[] = {
        {"0", 0},
        {"120", 120},
        {" \t007 \r\n", 7},
        {"20270101", 20270101}, /* no date: seconds */
        {"31536000", 31536000},
        {"31536001", 31536000},
        {"99999999999999999999999999999", 31536000},
        {"-1", 0},
        {"-99999999999999999999", 0},
        {"+5", 0},
        {"1.5", 0},
        {"5 minutes", 0},
        {"", 0},
        {" ", 0},
        {"soon", 0},
        {"Fri, 27 Nov 2026 12:01:30 GMT", 90},
        {"Fri, 27 Nov 2026 12:00:00 GMT", 0},
        {"Fri, 27 Nov 2026 11:59:59 GMT", 0},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0},
        {"Wed, 31 Dec 1969 23:59:59 GMT", 0},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 31536000},
        {"Friday, 27-Nov-26 12:01:30 GMT", 90},
        {"Friday, 27-Nov-26 11:59:59 GMT", 0},
        {"Sunday, 06-Nov-94 08:49:37 GMT", 0},
        {"Fri Nov 27 12:01:30 2026", 90},
        {"Fri Nov 27 11:59:59 2026", 0},
        {"Sun Nov  6 08:49:37 1994", 0},
        {"Fri, 27 Nov 2026 25:61:61 GMT", 0},
        {"Fri, 27 Nov", 0},
        {"Fri, 27 Nov 2026 12:01:30 GMT Fri, 27 Nov 2026 12:01:30 GMT Fri, 27 Nov", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        if (rcpt_retry_after_s(rows[i].value, strlen(rows[i].value), 1795780800) != rows[i].seconds)
            fail_msg("Retry-After: %s", rows[i].value);
}

static void addresses_inside_are_told_from_those_outside(void **state)
{
    (void)state;
    static const char *const inside[] = {
        "0.0.0.0",         "10.255.0.1",      "100.64.0.1", "100.127.255.255",
        "127.0.0.1",       "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.0.0.8",       "192.168.1.1",     "198.19.0.1", "203.0.113.7",
        "224.0.0.1",       "255.255.255.255", "::",         "::1",
        "fe80::1",         "fd00::1",         "ff02::1",    "::ffff:10.0.0.1",
        "64:ff9b::7f00:1", "2002:a00:1::1",   "2001::1",    "2001:db8::1",
        "::127.0.0.1",     "100::1",          "fec0::1",    "3fff::1"};
    static const char *const outside[] = {"8.8.8.8",         "100.63.255.255", "100.128.0.0",
                                          "172.15.0.1",      "172.32.0.1",     "192.167.0.1",
                                          "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808",
                                          "2002:808:808::1", "2001:4860::8888"};
    for (size_t i = 0; i < COUNT(inside); i++)
        assert_false(is_public(inside[i]));
    for (size_t i = 0; i < COUNT(outside); i++)
        assert_true(is_public(outside[i]));
    struct rcpt_address local = rcpt_address_of(&(struct sockaddr){.sa_family = AF_UNIX});
    assert_false(rcpt_address_is_public(&local));
}

static void urls_and_headers_that_say_more_than_they_seem_are_refused(void **state)
{
    (void)state;
    assert_true(rcpt_webhook_url_is_valid("https://example.com/a?b=c"));
    assert_true(rcpt_webhook_url_is_valid("http://[::1]:80"));
    static const char *const urls[] = {"",
                                       "example.com",
                                       "ftp://example.com",
                                       "file:///etc/passwd",
                                       "https://",
                                       "https:///path",
                                       "https://user@example.com/",
                                       "https://example.com/\r\nX: y",
                                       "https://exa mple.com"};
    for (size_t i = 0; i < COUNT(urls); i++)
        assert_false(rcpt_webhook_url_is_valid(urls[i]));
    assert_true(rcpt_webhook_header_is_valid("X-Token: a b"));
    static const char *const headers[] = {"", "X-Token", ": a", "X Token: a", "X: a\r\nY: b"};
    for (size_t i = 0; i < COUNT(headers); i++)
        assert_false(rcpt_webhook_header_is_valid(headers[i]));
    assert_true(rcpt_webhook_header_is_ours("Webhook-Id: 7"));
    assert_true(rcpt_webhook_header_is_ours("receiptd-attempt:1"));
    assert_false(rcpt_webhook_header_is_ours("webhook-id-of-ours: 7"));
    assert_false(rcpt_webhook_header_is_ours("X-Token: webhook-id"));
}

/* ---- calls ---- */

struct fixture {
    uv_loop_t loop;
    struct rcpt_http_server *server;
    struct rcpt_webhooks *webhooks;
    struct rcpt_webhook_endpoint *endpoint;
    char seen[2048]; /* what the last request said */
    struct rcpt_http_request *kept[8];
    size_t kept_count;
    unsigned answers, closed;
    struct rcpt_webhook_answer answer;
    enum rcpt_client_failure failure;
    char body[64], error[256];
};

static void append(char *text, struct rcpt_http_request *request, const char *name)
{
    struct rcpt_http_text value = rcpt_http_header(request, name);
    sprintf(text + strlen(text), "%s=%s;", name, value.bytes != NULL ? value.bytes : "");
}

static void on_hook(void *context, struct rcpt_http_request *request)
{
    struct fixture *fixture = context;
    static const char *const names[] = {"webhook-id",
                                        "webhook-timestamp",
                                        "webhook-signature",
                                        "traceparent",
                                        "x-own",
                                        "x-more",
                                        "content-type",
                                        "expect"};
    fixture->seen[0] = '\0';
    for (size_t i = 0; i < COUNT(names); i++)
        append(fixture->seen, request, names[i]);
    snprintf(fixture->seen + strlen(fixture->seen), 64, "%s", rcpt_http_body(request).bytes);
    int status = atoi(rcpt_http_rest(request).bytes + 1);
    struct rcpt_http_answer answer = {
        .status = status,
        .headers = status == 302   ? "Location: /hook/200\r\n"
                   : status == 503 ? "Retry-After: 99999999\r\n"
                   : status == 502 ? "Retry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                   : status == 504 ? "retry-after: -1\r\n"
                                   : NULL,
        .retry_after_s = status == 429 ? 7 : 0,
        .body = "0123456789abcdefghij",
        .body_size = status == 201 ? 20 : 10};
    rcpt_http_answer(request, &answer);
}

static void on_silent(void *context, struct rcpt_http_request *request)
{
    struct fixture *fixture = context;
    assert_true(fixture->kept_count < COUNT(fixture->kept));
    fixture->kept[fixture->kept_count++] = request;
}

static void on_closed(void *context)
{
    ((struct fixture *)context)->closed++;
}

static void on_answer(void *context, const struct rcpt_webhook_answer *answer)
{
    struct fixture *fixture = context;
    fixture->answers++;
    fixture->answer = *answer;
    snprintf(fixture->body, sizeof(fixture->body), "%s", answer->body);
    snprintf(fixture->error, sizeof(fixture->error), "%s", answer->error);
}

static struct rcpt_webhook_endpoint *endpoint_at(struct fixture *fixture, const char *url,
                                                 int64_t timeout_ms, unsigned concurrency)
{
    static const char *const secrets[] = {SECRET, OTHER_SECRET};
    static const char *const headers[] = {"X-Own: mine"};
    struct rcpt_error error;
    struct rcpt_webhook_endpoint_settings settings = {.name = "test",
                                                      .url = url,
                                                      .secrets = secrets,
                                                      .secret_count = 2,
                                                      .headers = headers,
                                                      .header_count = 1,
                                                      .connect_timeout_ms = 60000,
                                                      .timeout_ms = timeout_ms,
                                                      .max_answer_bytes = 10,
                                                      .concurrency = concurrency};
    struct rcpt_webhook_endpoint *endpoint =
        rcpt_webhook_endpoint_new(fixture->webhooks, &settings, &error);
    assert_non_null(endpoint);
    return endpoint;
}

static struct rcpt_webhook_endpoint *endpoint_of(struct fixture *fixture, const char *path,
                                                 int64_t timeout_ms, unsigned concurrency)
{
    char url[128];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", rcpt_http_port(fixture->server), path);
    return endpoint_at(fixture, url, timeout_ms, concurrency);
}

static struct fixture *begin_at(const char *listen, bool allow_private)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct rcpt_error error;
    uv_loop_init(&fixture->loop);
    fixture->server = rcpt_http_new(
        &(struct rcpt_http_settings){.loop = &fixture->loop, .listen = listen}, &error);
    assert_non_null(fixture->server);
    rcpt_http_route(fixture->server, &(struct rcpt_http_route){.prefix = "/hook",
                                                               .methods = RCPT_HTTP_POST,
                                                               .handler = on_hook,
                                                               .context = fixture});
    rcpt_http_route(fixture->server, &(struct rcpt_http_route){.prefix = "/silent",
                                                               .methods = RCPT_HTTP_POST,
                                                               .handler = on_silent,
                                                               .context = fixture});
    assert_true(rcpt_http_start(fixture->server, &error));
    fixture->webhooks = rcpt_webhooks_new(
        &(struct rcpt_webhooks_settings){.loop = &fixture->loop, .allow_private = allow_private});
    return fixture;
}

static struct fixture *begin(bool allow_private)
{
    return begin_at("127.0.0.1:0", allow_private);
}

static void end(struct fixture *fixture)
{
    rcpt_webhooks_close(fixture->webhooks, on_closed, fixture);
    for (size_t i = 0; i < fixture->kept_count; i++)
        rcpt_http_answer_text(fixture->kept[i], 200, "late");
    rcpt_http_close(fixture->server, on_closed, fixture);
    while (fixture->closed < 2)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture);
}

static void send_one(struct fixture *fixture, struct rcpt_webhook_endpoint *endpoint)
{
    static const char *const headers[] = {"X-More: 7"};
    struct rcpt_webhook_call call = {.id = "msg_1",
                                     .body = "{\"a\":1}",
                                     .size = 7,
                                     .traceparent = "00-1-2-01",
                                     .headers = headers,
                                     .header_count = 1};
    assert_true(rcpt_webhook_send(endpoint, &call, on_answer, fixture));
}

static void wait_for_answers(struct fixture *fixture, unsigned answers)
{
    while (fixture->answers < answers)
        uv_run(&fixture->loop, UV_RUN_ONCE);
}

static enum rcpt_webhook_class ask(struct fixture *fixture, const char *path)
{
    struct rcpt_webhook_endpoint *endpoint = endpoint_of(fixture, path, 60000, 1);
    unsigned answers = fixture->answers;
    send_one(fixture, endpoint);
    assert_int_equal(fixture->answers, answers); /* never from inside */
    wait_for_answers(fixture, answers + 1);
    return fixture->answer.class;
}

static void a_call_says_who_and_is_signed_with_every_secret(void **state)
{
    (void)state;
    struct fixture *fixture = begin(true);
    assert_int_equal(ask(fixture, "/hook/201"), RCPT_WEBHOOK_DELIVERED);
    assert_int_equal(fixture->answer.status, 201);
    assert_true(fixture->answer.cut);
    assert_string_equal(fixture->body, "0123456789");
    long long timestamp = 0;
    assert_int_equal(sscanf(fixture->seen, "webhook-id=msg_1;webhook-timestamp=%lld;", &timestamp),
                     1);
    struct rcpt_webhook_secret secrets[2];
    char expected[512];
    assert_true(rcpt_webhook_secret_parse(&secrets[0], SECRET));
    assert_true(rcpt_webhook_secret_parse(&secrets[1], OTHER_SECRET));
    char *signature = rcpt_webhook_sign(secrets, 2, "msg_1", timestamp, "{\"a\":1}", 7);
    snprintf(expected, sizeof(expected),
             "webhook-signature=%s;traceparent=00-1-2-01;x-own=mine;x-more=7;"
             "content-type=application/json;expect=;{\"a\":1}",
             signature);
    assert_non_null(strstr(fixture->seen, expected));
    free(signature);
    end(fixture);
}

static void answers_are_told_apart(void **state)
{
    (void)state;
    struct fixture *fixture = begin(true);
    assert_int_equal(ask(fixture, "/hook/503"), RCPT_WEBHOOK_SERVER_ERROR);
    assert_int_equal(fixture->answer.retry_after_ms, INT64_C(365) * 86400 * 1000);
    assert_int_equal(ask(fixture, "/hook/502"), RCPT_WEBHOOK_SERVER_ERROR);
    assert_int_equal(fixture->answer.retry_after_ms, 0);
    assert_int_equal(ask(fixture, "/hook/504"), RCPT_WEBHOOK_SERVER_ERROR);
    assert_int_equal(fixture->answer.retry_after_ms, 0);
    assert_int_equal(ask(fixture, "/hook/404"), RCPT_WEBHOOK_REFUSED);
    assert_int_equal(ask(fixture, "/hook/302"), RCPT_WEBHOOK_REFUSED); /* not followed */
    assert_int_equal(fixture->answer.status, 302);
    assert_int_equal(ask(fixture, "/hook/429"), RCPT_WEBHOOK_BUSY);
    assert_int_equal(fixture->answer.retry_after_ms, 7000);
    /* One connection served them all. */
    assert_int_equal(rcpt_http_stats(fixture->server)->requests, 6);
    assert_true(rcpt_http_stats(fixture->server)->accepted < 6);
    end(fixture);
}

static void who_does_not_answer_is_given_up(void **state)
{
    (void)state;
    struct fixture *fixture = begin(true);
    struct rcpt_webhook_endpoint *endpoint = endpoint_of(fixture, "/silent", 50, 1);
    send_one(fixture, endpoint);
    wait_for_answers(fixture, 1);
    assert_int_equal(fixture->answer.class, RCPT_WEBHOOK_TIMEOUT);
    assert_int_equal(fixture->answer.status, 0);
    assert_true(fixture->error[0] != '\0');
    end(fixture);
}

/* A port that nobody listens on, and one whose owner speaks no TLS. */
static void failures_below_http_have_classes(void **state)
{
    (void)state;
    struct fixture *fixture = begin(true);
    char url[64];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int bound = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(bound, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(bound, (struct sockaddr *)&address, &size), 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", ntohs(address.sin_port));
    send_one(fixture, endpoint_at(fixture, url, 60000, 1));
    wait_for_answers(fixture, 1);
    assert_int_equal(fixture->answer.class, RCPT_WEBHOOK_CONNECTION);
    close(bound);
    snprintf(url, sizeof(url), "https://127.0.0.1:%d/", rcpt_http_port(fixture->server));
    send_one(fixture, endpoint_at(fixture, url, 60000, 1));
    wait_for_answers(fixture, 2);
    assert_int_equal(fixture->answer.class, RCPT_WEBHOOK_TLS);
    /* "invalid" is a name that never resolves (RFC 6761). */
    send_one(fixture, endpoint_at(fixture, "http://receiver.invalid/", 60000, 1));
    wait_for_answers(fixture, 3);
    assert_int_equal(fixture->answer.class, RCPT_WEBHOOK_DNS);
    end(fixture);
}

static void inside_addresses_are_not_called_unless_allowed(void **state)
{
    (void)state;
    struct fixture *fixture = begin(false);
    assert_int_equal(ask(fixture, "/hook/200"), RCPT_WEBHOOK_FORBIDDEN);
    assert_int_equal(rcpt_http_stats(fixture->server)->accepted, 0);
    end(fixture);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int tried = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = tried >= 0 && bind(tried, (struct sockaddr *)&here, sizeof(here)) == 0;
    if (tried >= 0)
        close(tried);
    return has;
}

static void on_client_answer(void *context, const struct rcpt_client_answer *answer)
{
    struct fixture *fixture = context;
    fixture->answers++;
    fixture->failure = answer->failure;
    snprintf(fixture->error, sizeof(fixture->error), "%s", answer->error);
}

/* A call that may reach any address leaves its connection to one that may not. */
static void check_kept_connections(const char *listen, const char *host)
{
    char url[64];
    struct fixture *fixture = begin_at(listen, true);
    struct rcpt_client *client = rcpt_client_new(&fixture->loop, NULL);
    snprintf(url, sizeof(url), "http://%s:%d/hook/200", host, rcpt_http_port(fixture->server));
    struct rcpt_client_request request = {.url = url,
                                          .schemes = "http",
                                          .body = "",
                                          .timeout_ms = 60000,
                                          .max_answer_bytes = 1000,
                                          .direct = true};
    rcpt_client_send(client, &request, on_client_answer, fixture);
    wait_for_answers(fixture, 1);
    assert_int_equal(fixture->failure, RCPT_CLIENT_ANSWERED);
    request.public_only = true;
    rcpt_client_send(client, &request, on_client_answer, fixture);
    wait_for_answers(fixture, 2);
    assert_int_equal(fixture->failure, RCPT_CLIENT_FORBIDDEN);
    assert_string_equal(fixture->error, "its address is not public");
    assert_int_equal(rcpt_http_stats(fixture->server)->requests, 1);
    rcpt_client_close(client, NULL, NULL);
    end(fixture);
}

static void inside_addresses_are_known_on_kept_connections_too(void **state)
{
    (void)state;
    check_kept_connections("127.0.0.1:0", "127.0.0.1");
    if (has_ipv6())
        check_kept_connections("[::1]:0", "[::1]");
}

static void what_an_endpoint_lacks_is_named(void **state)
{
    (void)state;
    static const char *const good[] = {SECRET}, *const bad[] = {SECRET, "whsec_short"},
                             *const many[] = {SECRET, SECRET, SECRET, SECRET, SECRET, SECRET,
                                              SECRET, SECRET, SECRET, SECRET, SECRET, SECRET},
                             *const headers[] = {"X-Own: mine", "no colon"};
    const struct {
        const char *url;
        const char *const *secrets;
        size_t secret_count, header_count;
        const char *message;
    } cases[] = {
        {"ftp://h/", good, 1, 0,
         "endpoint crm: the URL is not of http or https, or holds a user name"},
        {"http://user@h/", good, 1, 0,
         "endpoint crm: the URL is not of http or https, or holds a user name"},
        {"http://h/", many, COUNT(many), 0, "endpoint crm: 12 secrets, at most 8 sign"},
        {"http://h/", bad, 2, 0,
         "endpoint crm: secret 2 is not whsec_ and the base64 of 24 to 64 bytes"},
        {"http://h/", good, 1, 2, "endpoint crm: header 2 is not of the form Name: value"},
    };
    struct fixture *fixture = begin(true);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rcpt_error error;
        const struct rcpt_webhook_endpoint_settings settings = {
            .name = "crm",
            .url = cases[i].url,
            .secrets = cases[i].secrets,
            .secret_count = cases[i].secret_count,
            .headers = headers,
            .header_count = cases[i].header_count,
            .concurrency = 1};
        assert_null(rcpt_webhook_endpoint_new(fixture->webhooks, &settings, &error));
        assert_string_equal(error.text, cases[i].message);
        assert_int_equal(error.exit_code, EX_CONFIG);
    }
    end(fixture);
}

static void without_a_secret_a_call_has_its_id_and_no_signature(void **state)
{
    (void)state;
    char url[64];
    struct rcpt_error error;
    struct fixture *fixture = begin(true);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/hook/200", rcpt_http_port(fixture->server));
    const struct rcpt_webhook_endpoint_settings settings = {.name = "open",
                                                            .url = url,
                                                            .connect_timeout_ms = 60000,
                                                            .timeout_ms = 60000,
                                                            .concurrency = 1};
    struct rcpt_webhook_endpoint *endpoint =
        rcpt_webhook_endpoint_new(fixture->webhooks, &settings, &error);
    assert_non_null(endpoint);
    send_one(fixture, endpoint);
    wait_for_answers(fixture, 1);
    assert_non_null(strstr(fixture->seen, "webhook-id=msg_1;"));
    assert_non_null(strstr(fixture->seen, "webhook-signature=;"));
    end(fixture);
}

/* Calls and endpoints end in another order than that in which they began. */
static void an_answer_ends_its_own_call_only(void **state)
{
    (void)state;
    struct fixture *fixture = begin(true);
    struct rcpt_webhook_endpoint *quick = endpoint_of(fixture, "/hook/200", 60000, 1),
                                 *slow = endpoint_of(fixture, "/silent", 60000, 1);
    send_one(fixture, quick);
    send_one(fixture, slow);
    wait_for_answers(fixture, 1);
    assert_int_equal(fixture->answer.class, RCPT_WEBHOOK_DELIVERED);
    assert_int_equal(rcpt_webhook_capacity(quick), 1);
    assert_int_equal(rcpt_webhook_capacity(slow), 0);
    while (fixture->kept_count == 0)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    rcpt_http_answer_text(fixture->kept[--fixture->kept_count], 200, "at last");
    wait_for_answers(fixture, 2);
    assert_int_equal(rcpt_webhook_capacity(slow), 1);
    end(fixture);
}

static void a_file_of_authorities_that_is_not_there_is_a_failure_of_tls(void **state)
{
    (void)state;
    char url[64];
    struct fixture *fixture = begin(true);
    rcpt_webhooks_close(fixture->webhooks, on_closed, fixture);
    while (fixture->closed == 0)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    fixture->closed = 0;
    fixture->webhooks = rcpt_webhooks_new(&(struct rcpt_webhooks_settings){
        .loop = &fixture->loop, .allow_private = true, .ca_file = "/nonexistent/ca.pem"});
    snprintf(url, sizeof(url), "https://127.0.0.1:%d/", rcpt_http_port(fixture->server));
    send_one(fixture, endpoint_at(fixture, url, 60000, 1));
    wait_for_answers(fixture, 1);
    assert_int_equal(fixture->answer.class, RCPT_WEBHOOK_TLS);
    assert_non_null(strstr(fixture->error, "/nonexistent/ca.pem"));
    end(fixture);
}

static void classes_have_the_names_of_metrics_and_tables(void **state)
{
    (void)state;
    assert_string_equal(rcpt_webhook_class_name(RCPT_WEBHOOK_DELIVERED), "delivered");
    assert_string_equal(rcpt_webhook_class_name(RCPT_WEBHOOK_CANCELLED), "cancelled");
    for (unsigned class = 0; class < RCPT_WEBHOOK_CLASS__COUNT; class ++)
        assert_non_null(rcpt_webhook_class_name((enum rcpt_webhook_class) class));
}

static void an_endpoint_takes_as_many_calls_as_it_may(void **state)
{
    (void)state;
    struct fixture *fixture = begin(true);
    struct rcpt_webhook_endpoint *endpoint = endpoint_of(fixture, "/silent", 60000, 2);
    send_one(fixture, endpoint);
    send_one(fixture, endpoint);
    assert_int_equal(rcpt_webhook_capacity(endpoint), 0);
    struct rcpt_webhook_call call = {.id = "x", .body = "", .size = 0};
    assert_false(rcpt_webhook_send(endpoint, &call, on_answer, fixture));
    while (fixture->kept_count < 2)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    rcpt_http_answer_text(fixture->kept[--fixture->kept_count], 200, "done");
    wait_for_answers(fixture, 1);
    assert_int_equal(rcpt_webhook_capacity(endpoint), 1);
    rcpt_http_answer_text(fixture->kept[--fixture->kept_count], 200, "done");
    wait_for_answers(fixture, 2);
    assert_int_equal(fixture->answer.class, RCPT_WEBHOOK_DELIVERED);
    end(fixture);
}

static void closing_answers_whoever_waits(void **state)
{
    (void)state;
    struct fixture *fixture = begin(true);
    struct rcpt_webhook_endpoint *endpoint = endpoint_of(fixture, "/silent", 60000, 3);
    send_one(fixture, endpoint);
    while (fixture->kept_count < 1)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    send_one(fixture, endpoint); /* has not left yet */
    rcpt_webhooks_close(fixture->webhooks, on_closed, fixture);
    assert_int_equal(fixture->answers, 2);
    assert_int_equal(fixture->answer.class, RCPT_WEBHOOK_CANCELLED);
    fixture->webhooks = rcpt_webhooks_new(
        &(struct rcpt_webhooks_settings){.loop = &fixture->loop, .allow_private = true});
    while (fixture->closed < 1)
        uv_run(&fixture->loop, UV_RUN_ONCE);
    fixture->closed = 0;
    end(fixture);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_are_those_of_standard_webhooks),
        cmocka_unit_test(secrets_of_another_form_are_refused),
        cmocka_unit_test(what_a_status_means),
        cmocka_unit_test(the_receiver_is_given_the_time_it_asks_for),
        cmocka_unit_test(a_time_that_has_passed_or_is_none_asks_for_nothing),
        cmocka_unit_test(addresses_inside_are_told_from_those_outside),
        cmocka_unit_test(urls_and_headers_that_say_more_than_they_seem_are_refused),
        cmocka_unit_test(a_call_says_who_and_is_signed_with_every_secret),
        cmocka_unit_test(answers_are_told_apart),
        cmocka_unit_test(who_does_not_answer_is_given_up),
        cmocka_unit_test(failures_below_http_have_classes),
        cmocka_unit_test(inside_addresses_are_not_called_unless_allowed),
        cmocka_unit_test(inside_addresses_are_known_on_kept_connections_too),
        cmocka_unit_test(what_an_endpoint_lacks_is_named),
        cmocka_unit_test(without_a_secret_a_call_has_its_id_and_no_signature),
        cmocka_unit_test(an_answer_ends_its_own_call_only),
        cmocka_unit_test(a_file_of_authorities_that_is_not_there_is_a_failure_of_tls),
        cmocka_unit_test(classes_have_the_names_of_metrics_and_tables),
        cmocka_unit_test(an_endpoint_takes_as_many_calls_as_it_may),
        cmocka_unit_test(closing_answers_whoever_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

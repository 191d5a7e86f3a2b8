/* The HTTP client where nobody answers, or too much: an error in words, once, on the loop. What it does
 * for webhooks is in test_webhook.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/error.h"
#include "receiptd/http/client.h"
#include "receiptd/http/http.h"

struct heard {
    unsigned calls;
    int status;
    enum rcpt_client_failure failure;
    bool cut;
    size_t size;
    char error[300];
};

static void on_answer(void *context, const struct rcpt_client_answer *answer)
{
    struct heard *heard = context;
    *heard = (struct heard){.calls = heard->calls + 1,
                            .status = answer->status,
                            .failure = answer->failure,
                            .cut = answer->cut,
                            .size = answer->size};
    assert_int_equal(strlen(answer->body), answer->size);
    snprintf(heard->error, sizeof(heard->error), "%s", answer->error);
}

static struct heard call(uv_loop_t *loop, const char *url, const char *schemes, const char *body)
{
    struct heard heard = {0};
    struct rcpt_client *client = rcpt_client_new(loop, NULL);
    const struct rcpt_client_request request = {.url = url,
                                                .schemes = schemes,
                                                .body = body,
                                                .size = body != NULL ? strlen(body) : 0,
                                                .timeout_ms = 2000,
                                                .max_answer_bytes = 1000};
    assert_non_null(rcpt_client_send(client, &request, on_answer, &heard));
    assert_int_equal(heard.calls, 0); /* not before the loop runs */
    while (heard.calls == 0)
        uv_run(loop, UV_RUN_ONCE);
    assert_int_equal(heard.calls, 1);
    rcpt_client_close(client, NULL, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    return heard;
}

static void a_call_that_reaches_nobody_has_its_words(void **state)
{
    static const struct {
        const char *url, *schemes, *body, *error; /* part of it, as libcurl's versions differ */
    } examples[] = {
        {"http://127.0.0.1:1/c.pem", "https", NULL, "rotocol"},
        {"file:///dev/null", "https", NULL, "rotocol"},
        {"https://127.0.0.1:1/c.pem", "https", NULL, "onnect"},
        {"https://", "https", NULL, "URL"},
        {"http://127.0.0.1:1/v1", "http,https", "{}", "onnect"},
        {"ftp://127.0.0.1:1/v1", "http,https", "{}", "rotocol"},
        {"http://", "http,https", "{}", "URL"},
    };
    uv_loop_t loop;
    (void)state;
    uv_loop_init(&loop);
    for (size_t index = 0; index < sizeof(examples) / sizeof(examples[0]); index++) {
        struct heard heard =
            call(&loop, examples[index].url, examples[index].schemes, examples[index].body);
        assert_int_equal(heard.failure, RCPT_CLIENT_CONNECTION);
        assert_int_equal(heard.status, 0);
        assert_int_equal(heard.size, 0);
        if (strstr(heard.error, examples[index].error) == NULL)
            fail_msg("%s: %s", examples[index].url, heard.error);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void on_request(void *context, struct rcpt_http_request *request)
{
    static const char long_text[2000] = "";
    const struct rcpt_http_answer moved = {
        .status = 302, .headers = "Location: /long\r\n", .body = "x", .body_size = 1};
    const struct rcpt_http_answer large = {
        .status = 200, .body = long_text, .body_size = sizeof(long_text)};
    (void)context;
    struct rcpt_http_text rest = rcpt_http_rest(request);
    rcpt_http_answer(request, rest.size == strlen("/moved") ? &moved : &large);
}

static void on_closed(void *context)
{
    (void)context;
}

static void redirects_are_not_followed_and_long_answers_are_cut(void **state)
{
    uv_loop_t loop;
    char url[64];
    struct rcpt_error error;
    (void)state;
    uv_loop_init(&loop);
    struct rcpt_http_server *server =
        rcpt_http_new(&(struct rcpt_http_settings){.loop = &loop, .listen = "127.0.0.1:0"}, &error);
    assert_non_null(server);
    rcpt_http_route(server, &(struct rcpt_http_route){
                                .prefix = "/a", .methods = RCPT_HTTP_GET, .handler = on_request});
    assert_true(rcpt_http_start(server, &error));
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/a/moved", rcpt_http_port(server));
    assert_int_equal(call(&loop, url, "http", NULL).status, 302);
    assert_int_equal(rcpt_http_stats(server)->requests, 1);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/a/l", rcpt_http_port(server));
    struct rcpt_client *client = rcpt_client_new(&loop, NULL);
    struct heard heard = {0};
    const struct rcpt_client_request request = {
        .url = url, .schemes = "http", .timeout_ms = 2000, .max_answer_bytes = 0};
    rcpt_client_send(client, &request, on_answer, &heard);
    while (heard.calls == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_true(heard.cut);
    assert_int_equal(heard.size, 0);
    struct rcpt_client_call *stopped = rcpt_client_send(client, &request, on_answer, &heard);
    rcpt_client_cancel(stopped);
    assert_int_equal(heard.calls, 2);
    assert_int_equal(heard.failure, RCPT_CLIENT_CANCELLED);
    rcpt_client_close(client, NULL, NULL);
    rcpt_http_close(server, on_closed, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_reaches_nobody_has_its_words),
        cmocka_unit_test(redirects_are_not_followed_and_long_answers_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Samples on the standard input: what is taken for a request, and what is said of the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <zlib.h>

#include <cmocka.h>

#include "receiptd/http/message.h"

static struct rcpt_http_message *parse(const char *text)
{
    struct rcpt_error error;
    struct rcpt_http_message *message = rcpt_http_message_parse(text, strlen(text), &error);
    if (message == NULL)
        fail_msg("%s: %s", text, error.text);
    return message;
}

static void expect(const char *text, const char *method, const char *path, const char *body)
{
    struct rcpt_http_message *message = parse(text);
    assert_string_equal(message->method, method);
    assert_int_equal(message->path_size, strlen(path));
    assert_memory_equal(message->path, path, strlen(path));
    if (message->body_size != strlen(body) || memcmp(message->body, body, message->body_size) != 0)
        fail_msg("%s: the body is \"%.*s\"", text, (int)message->body_size, message->body);
    rcpt_http_message_free(message);
}

static void bodies_are_taken_as_editors_leave_them(void **state)
{
    (void)state;
    expect("POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", "POST", "/a", "{}");
    expect("POST /a HTTP/1.1\nContent-Length: 2\n\n{}\n", "POST", "/a", "{}");
    expect("POST /a HTTP/1.1\nContent-Length: 2\n\n{\"a\":1}", "POST", "/a", "{\"a\":1}");
    expect("POST /a HTTP/1.1\nContent-Length: 99\n\n{}", "POST", "/a", "{}");
    expect("GET /a?b=c HTTP/1.1\nHost: h\n\n", "GET", "/a", "");
    expect("GET /\xe4?b=\xc3\xa4 HTTP/1.1\nHost: h\n\n", "GET", "/\xe4", "");
    expect("POST /a HTTP/1.1\nTransfer-Encoding: chunked\n\n2\r\n{}\r\n3\r\nabc\r\n0\r\n\r\n",
           "POST", "/a", "{}abc");
    expect("POST /a HTTP/1.1\nTransfer-Encoding: chunked\n\n2\r\n{}\r\n0\r\nTrailer: t\r\n\r\n",
           "POST", "/a", "{}");
}

static void a_query_that_is_not_there_is_told_from_an_empty_one(void **state)
{
    (void)state;
    struct rcpt_http_message *message = parse("GET /a? HTTP/1.1\nHost: h\nX: y\n\n");
    assert_non_null(message->query);
    assert_int_equal(message->query_size, 0);
    assert_int_equal(message->header_count, 2);
    assert_memory_equal(message->headers[1].value, "y", 1);
    rcpt_http_message_free(message);
    message = parse("GET /a HTTP/1.1\nHost: h\n\n");
    assert_null(message->query);
    rcpt_http_message_free(message);
}

/* More bytes than `size` are written by none of the callers. */
static size_t packed_request(char *text, const char *coding, int window, const char *body)
{
    z_stream stream = {0};
    int head = sprintf(text, "POST /a HTTP/1.1\r\ncontent-ENCODING: %s\r\n\r\n", coding);
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)body;
    stream.avail_in = (uInt)strlen(body);
    stream.next_out = (Bytef *)text + head;
    stream.avail_out = 512;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t size = (size_t)head + stream.total_out;
    deflateEnd(&stream);
    return size;
}

static void compressed_bodies_are_opened(void **state)
{
    static const struct {
        const char *coding;
        int window;
    } codings[] = {{"gzip", 31}, {"X-GZIP", 31}, {"deflate", 15}};
    char text[1024];
    struct rcpt_error error;
    (void)state;
    for (size_t index = 0; index < sizeof(codings) / sizeof(codings[0]); index++) {
        size_t size = packed_request(text, codings[index].coding, codings[index].window, "plain");
        struct rcpt_http_message *message = rcpt_http_message_parse(text, size, &error);
        assert_non_null(message);
        assert_int_equal(message->body_size, 5);
        assert_memory_equal(message->body, "plain", 5);
        rcpt_http_message_free(message);
        assert_null(rcpt_http_message_parse(text, size - 4, &error)); /* its end is missing */
        assert_string_equal(error.text, "not an HTTP/1.1 request: the body does not match "
                                        "Content-Encoding, or is longer than 64 MiB");
    }
    size_t size = packed_request(text, "identity", 31, "plain");
    struct rcpt_http_message *message = rcpt_http_message_parse(text, size, &error);
    assert_non_null(message); /* as it is */
    assert_memory_equal(message->body, "\x1f\x8b", 2);
    rcpt_http_message_free(message);
}

static void what_is_no_request_is_said(void **state)
{
    static const struct {
        const char *text, *problem;
    } examples[] = {
        {"", "it ends before the empty line behind the headers"},
        {"{\"a\":1}", "invalid method encountered"},
        {"GET /a HTTP/1.1\nHost: h\n", "it ends before the empty line behind the headers"},
        {"GET /a HTTP/1.1\nno colon\n\n", "invalid header token"},
        {"POST /a HTTP/1.1\nTransfer-Encoding: chunked\n\nzz\r\n",
         "invalid character in chunk size"},
    };
    (void)state;
    for (size_t index = 0; index < sizeof(examples) / sizeof(examples[0]); index++) {
        struct rcpt_error error;
        char expected[160];
        snprintf(expected, sizeof(expected), "not an HTTP/1.1 request: %s",
                 examples[index].problem);
        assert_null(
            rcpt_http_message_parse(examples[index].text, strlen(examples[index].text), &error));
        assert_string_equal(error.text, expected);
        assert_int_equal(error.exit_code, EX_DATAERR);
        assert_non_null(strstr(error.hint, "\"POST /dlr/acme HTTP/1.1\""));
    }
    rcpt_http_message_free(NULL);
}

static void more_headers_than_the_limit_are_refused(void **state)
{
    char text[8192] = "GET /a HTTP/1.1\n";
    struct rcpt_error error;
    (void)state;
    for (int header = 0; header < 201; header++)
        strcat(text, "a: b\n");
    strcat(text, "\n");
    assert_null(rcpt_http_message_parse(text, strlen(text), &error));
    assert_non_null(strstr(error.text, "on_header_field"));
    memmove(strstr(text, "a: b"), strstr(text, "a: b") + 5, strlen(strstr(text, "a: b")) - 4);
    struct rcpt_http_message *message = parse(text);
    assert_int_equal(message->header_count, 200);
    rcpt_http_message_free(message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_taken_as_editors_leave_them),
        cmocka_unit_test(a_query_that_is_not_there_is_told_from_an_empty_one),
        cmocka_unit_test(compressed_bodies_are_opened),
        cmocka_unit_test(what_is_no_request_is_said),
        cmocka_unit_test(more_headers_than_the_limit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Fetching and posting where nobody answers: an error in words, once, on the loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "http/fetch.h"
#include "http/post.h"

struct heard {
    unsigned calls;
    int status;
    char error[300];
};

static void on_fetched(void *context, const struct rcpt_http_fetched *fetched)
{
    struct heard *heard = context;
    heard->calls++;
    heard->status = fetched->status;
    assert_int_equal(fetched->size, 0);
    assert_string_equal(fetched->bytes, "");
    snprintf(heard->error, sizeof(heard->error), "%s", fetched->error);
}

static void nothing_but_https_is_fetched_and_a_failure_has_its_words(void **state)
{
    static const struct {
        const char *url, *error; /* part of it, small letters where libcurl's versions differ */
    } examples[] = {
        {"http://127.0.0.1:1/c.pem", "rotocol"},
        {"file:///dev/null", "rotocol"},
        {"https://127.0.0.1:1/c.pem", "onnect"},
        {"https://", "URL"},
    };
    uv_loop_t loop;
    (void)state;
    uv_loop_init(&loop);
    for (size_t index = 0; index < sizeof(examples) / sizeof(examples[0]); index++) {
        struct heard heard = {0};
        rcpt_http_fetch(&loop, examples[index].url, 1000, 2000, on_fetched, &heard);
        assert_int_equal(heard.calls, 0); /* not before the loop runs */
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(heard.calls, 1);
        assert_int_equal(heard.status, 0);
        if (strstr(heard.error, examples[index].error) == NULL)
            fail_msg("%s: %s", examples[index].url, heard.error);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

static char *make_body(void *context, size_t *size)
{
    (void)context;
    *size = 2;
    return rcpt_strdup("{}");
}

static void on_posted(void *context, const struct rcpt_http_posted *posted)
{
    struct heard *heard = context;
    heard->calls++;
    heard->status = posted->status;
    snprintf(heard->error, sizeof(heard->error), "%s", posted->error);
}

static void a_post_that_reaches_nobody_has_its_words(void **state)
{
    static const char *const urls[] = {"http://127.0.0.1:1/v1", "ftp://127.0.0.1:1/v1", "http://"};
    uv_loop_t loop;
    (void)state;
    uv_loop_init(&loop);
    for (size_t index = 0; index < sizeof(urls) / sizeof(urls[0]); index++) {
        struct heard heard = {0};
        const struct rcpt_http_post_settings settings = {.loop = &loop,
                                                         .url = urls[index],
                                                         .content_type = "application/json",
                                                         .timeout_ms = 2000,
                                                         .make_body = make_body,
                                                         .on_posted = on_posted,
                                                         .context = &heard};
        assert_non_null(rcpt_http_post(&settings));
        uv_run(&loop, UV_RUN_DEFAULT);
        assert_int_equal(heard.calls, 1);
        assert_int_equal(heard.status, 0);
        assert_string_not_equal(heard.error, "");
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_but_https_is_fetched_and_a_failure_has_its_words),
        cmocka_unit_test(a_post_that_reaches_nobody_has_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

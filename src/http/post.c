#include "post.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct rcpt_http_post {
    uv_work_t work; /* first */
    struct rcpt_http_post_settings settings;
    _Atomic uint64_t deadline_ns; /* of uv_hrtime() */
    long status;
    char error[CURL_ERROR_SIZE];
};

static size_t on_bytes(const char *bytes, size_t one, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return one * count;
}

/* Asked at least once a second while nothing comes, and whenever something does. */
static int on_progress(void *context, curl_off_t to_get, curl_off_t got, curl_off_t to_send,
                       curl_off_t sent)
{
    struct rcpt_http_post *post = context;
    (void)to_get;
    (void)got;
    (void)to_send;
    (void)sent;
    return uv_hrtime() >= atomic_load(&post->deadline_ns);
}

static struct curl_slist *make_headers(const struct rcpt_http_post_settings *settings)
{
    char line[4200];
    snprintf(line, sizeof(line), "Content-Type: %s", settings->content_type);
    struct curl_slist *headers = curl_slist_append(NULL, line);
    headers = curl_slist_append(headers, "Expect:");
    if (settings->token != NULL) {
        snprintf(line, sizeof(line), "Authorization: Bearer %s", settings->token);
        headers = curl_slist_append(headers, line);
    }
    RCPT_ASSERT(headers != NULL);
    return headers;
}

static void set_options(CURL *curl, struct rcpt_http_post *post)
{
    curl_easy_setopt(curl, CURLOPT_URL, post->settings.url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)post->settings.timeout_ms);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "receiptd");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, post->error);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, post);
}

static void work(uv_work_t *handle)
{
    struct rcpt_http_post *post = (struct rcpt_http_post *)handle;
    size_t size = 0;
    char *body = post->settings.make_body(post->settings.context, &size);
    CURL *curl = curl_easy_init();
    RCPT_ASSERT(curl != NULL);
    struct curl_slist *headers = make_headers(&post->settings);
    set_options(curl, post);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &post->status);
    else if (code == CURLE_ABORTED_BY_CALLBACK)
        snprintf(post->error, sizeof(post->error), "no answer in time");
    else if (post->error[0] == '\0')
        snprintf(post->error, sizeof(post->error), "%s", curl_easy_strerror(code));
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    free(body);
}

static void after(uv_work_t *handle, int status)
{
    struct rcpt_http_post *post = (struct rcpt_http_post *)handle;
    if (status < 0)
        snprintf(post->error, sizeof(post->error), "%s", uv_strerror(status));
    struct rcpt_http_posted posted = {.status = (int)post->status,
                                      .error = post->status == 0 ? post->error : ""};
    post->settings.on_posted(post->settings.context, &posted);
    free(post);
}

static uint64_t in_ms(int64_t ms)
{
    return uv_hrtime() + (uint64_t)ms * 1000000;
}

struct rcpt_http_post *rcpt_http_post(const struct rcpt_http_post_settings *settings)
{
    struct rcpt_http_post *post = rcpt_calloc(1, sizeof(*post));
    post->settings = *settings;
    atomic_store(&post->deadline_ns, in_ms(settings->timeout_ms));
    RCPT_ASSERT(uv_queue_work(settings->loop, &post->work, work, after) == 0);
    return post;
}

void rcpt_http_post_hurry(struct rcpt_http_post *post, int64_t within_ms)
{
    uint64_t deadline_ns = in_ms(within_ms);
    if (deadline_ns < atomic_load(&post->deadline_ns))
        atomic_store(&post->deadline_ns, deadline_ns);
}

#include "fetch.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct fetch {
    uv_work_t work; /* first */
    char *url;
    size_t max_bytes;
    long timeout_ms;
    rcpt_http_on_fetched on_fetched;
    void *context;
    char *bytes;
    size_t size;
    long status;
    char error[CURL_ERROR_SIZE];
};

static size_t on_bytes(char *bytes, size_t one, size_t count, void *context)
{
    struct fetch *fetch = context;
    size_t size = one * count;
    if (fetch->size + size > fetch->max_bytes)
        return 0; /* ends the transfer with an error */
    fetch->bytes = rcpt_realloc(fetch->bytes, fetch->size + size + 1);
    memcpy(fetch->bytes + fetch->size, bytes, size);
    fetch->size += size;
    fetch->bytes[fetch->size] = '\0';
    return size;
}

static void set_options(CURL *curl, struct fetch *fetch)
{
    curl_easy_setopt(curl, CURLOPT_URL, fetch->url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, fetch->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "receiptd");
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, fetch->error);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, fetch);
}

static void work(uv_work_t *handle)
{
    struct fetch *fetch = (struct fetch *)handle;
    CURL *curl = curl_easy_init();
    RCPT_ASSERT(curl != NULL);
    set_options(curl, fetch);
    CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &fetch->status);
    else if (fetch->error[0] == '\0')
        snprintf(fetch->error, sizeof(fetch->error), "%s", curl_easy_strerror(code));
    curl_easy_cleanup(curl);
}

static void after(uv_work_t *handle, int status)
{
    struct fetch *fetch = (struct fetch *)handle;
    if (status < 0)
        snprintf(fetch->error, sizeof(fetch->error), "%s", uv_strerror(status));
    struct rcpt_http_fetched fetched = {
        .status = (int)fetch->status,
        .bytes = fetch->bytes != NULL ? fetch->bytes : "",
        .size = fetch->size,
        .error = fetch->status == 0 ? fetch->error : "",
    };
    fetch->on_fetched(fetch->context, &fetched);
    free(fetch->bytes);
    free(fetch->url);
    free(fetch);
}

void rcpt_http_fetch(uv_loop_t *loop, const char *url, size_t max_bytes, int64_t timeout_ms,
                     rcpt_http_on_fetched on_fetched, void *context)
{
    struct fetch *fetch = rcpt_calloc(1, sizeof(*fetch));
    fetch->url = rcpt_strdup(url);
    fetch->max_bytes = max_bytes;
    fetch->timeout_ms = (long)timeout_ms;
    fetch->on_fetched = on_fetched;
    fetch->context = context;
    RCPT_ASSERT(uv_queue_work(loop, &fetch->work, work, after) == 0);
}

#include "webhook.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "base/log.h"
#include "base/version.h"

#define MAX_HEADER_BYTES 65536u
#define MAX_IDLE_HANDLES 256u
#define MAX_CONNECTIONS  1024L /* kept alive, over all endpoints */

struct call {
    struct rcpt_webhook_endpoint *endpoint;
    struct call *previous, *next; /* of the client's calls in flight */
    CURL *curl;
    struct curl_slist *headers;
    void *body;
    rcpt_webhook_on_answer on_answer;
    void *context;
    uint64_t started_ns;
    char *answer;
    size_t answer_size, header_bytes;
    bool cut, forbidden;
    char error[CURL_ERROR_SIZE];
};

struct rcpt_webhook_endpoint {
    struct rcpt_webhooks *webhooks;
    char *name, *url;
    struct rcpt_webhook_secret secrets[RCPT_WEBHOOK_MOST_SECRETS];
    size_t secret_count;
    char **headers;
    size_t header_count;
    long connect_timeout_ms, timeout_ms;
    size_t max_answer_bytes;
    unsigned concurrency, in_flight;
    bool dropped, answering; /* inside on_answer, which may drop it */
    struct rcpt_webhook_endpoint *previous, *next;
};

struct rcpt_webhooks {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer;
    unsigned open; /* handles of libuv that are not closed */
    bool allow_private, closing;
    char *ca_file;
    struct call *calls;
    struct rcpt_webhook_endpoint *endpoints;
    CURL *idle[MAX_IDLE_HANDLES];
    size_t idle_count;
    void (*on_closed)(void *context);
    void *closed_context;
};

struct socket_watch {
    uv_poll_t poll; /* first */
    struct rcpt_webhooks *webhooks;
    curl_socket_t socket;
};

/* ---- one call: what libcurl asks ---- */

static size_t on_bytes(char *bytes, size_t one, size_t count, void *context)
{
    struct call *call = context;
    size_t size = one * count, room = call->endpoint->max_answer_bytes - call->answer_size;
    size_t taken = size < room ? size : room;
    call->answer = rcpt_realloc(call->answer, call->answer_size + taken + 1);
    memcpy(call->answer + call->answer_size, bytes, taken);
    call->answer_size += taken;
    call->answer[call->answer_size] = '\0';
    call->cut |= taken < size;
    return taken < size ? 0 : size; /* 0 ends the transfer; the status is known by then */
}

static size_t on_header(const char *bytes, size_t one, size_t count, void *context)
{
    struct call *call = context;
    (void)bytes;
    call->header_bytes += one * count;
    return call->header_bytes > MAX_HEADER_BYTES ? 0 : one * count;
}

static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *at)
{
    struct call *call = context;
    (void)purpose;
    if (!call->endpoint->webhooks->allow_private && !rcpt_webhook_address_is_public(&at->addr)) {
        call->forbidden = true;
        return CURL_SOCKET_BAD;
    }
    return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

static bool text_is_public(const char *text)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (uv_ip4_addr(text, 0, &v4) == 0)
        return rcpt_webhook_address_is_public((const struct sockaddr *)&v4);
    return uv_ip6_addr(text, 0, &v6) == 0 &&
           rcpt_webhook_address_is_public((const struct sockaddr *)&v6);
}

/* A connection that was kept from before the guard was switched on. */
/* libcurl prescribes the signature. NOLINTNEXTLINE(readability-non-const-parameter) */
static int on_connected(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct call *call = context;
    (void)local, (void)remote_port, (void)local_port;
    if (call->endpoint->webhooks->allow_private || text_is_public(remote))
        return CURL_PREREQFUNC_OK;
    call->forbidden = true;
    return CURL_PREREQFUNC_ABORT;
}

/* ---- one call: its request ---- */

static void add_header(struct call *call, const char *header)
{
    struct curl_slist *longer = curl_slist_append(call->headers, header);
    RCPT_ASSERT(longer != NULL);
    call->headers = longer;
}

static void add_value(struct call *call, const char *name, const char *value)
{
    char *header = rcpt_malloc(strlen(name) + strlen(value) + 3);
    sprintf(header, "%s: %s", name, value);
    add_header(call, header);
    free(header);
}

static void add_signature(struct call *call, const struct rcpt_webhook_call *request)
{
    const struct rcpt_webhook_endpoint *endpoint = call->endpoint;
    struct timespec now;
    char text[24];
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(text, sizeof(text), "%lld", (long long)now.tv_sec);
    add_value(call, "webhook-id", request->id);
    add_value(call, "webhook-timestamp", text);
    if (endpoint->secret_count == 0)
        return;
    char *signature = rcpt_webhook_sign(endpoint->secrets, endpoint->secret_count, request->id,
                                        now.tv_sec, request->body, request->size);
    add_value(call, "webhook-signature", signature);
    free(signature);
}

static void add_headers(struct call *call, const struct rcpt_webhook_call *request)
{
    const struct rcpt_webhook_endpoint *endpoint = call->endpoint;
    add_value(call, "Content-Type",
              request->content_type != NULL ? request->content_type : "application/json");
    add_header(call, "Expect:"); /* no waiting for 100-continue */
    add_signature(call, request);
    if (request->traceparent != NULL && request->traceparent[0] != '\0')
        add_value(call, "traceparent", request->traceparent);
    for (size_t i = 0; i < endpoint->header_count; i++)
        add_header(call, endpoint->headers[i]);
    for (size_t i = 0; i < request->header_count; i++)
        add_header(call, request->headers[i]);
}

static void set_request(struct call *call, size_t size)
{
    CURL *curl = call->curl;
    curl_easy_setopt(curl, CURLOPT_URL, call->endpoint->url);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, call);
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, call->headers);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "receiptd/" RCPT_VERSION);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, call->error);
}

static void set_limits(struct call *call)
{
    CURL *curl = call->curl;
    const struct rcpt_webhooks *webhooks = call->endpoint->webhooks;
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    /* The proxy of the environment would be called in place of the receiver. */
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    /* Giving up while a name is being resolved must not wait for the resolver. */
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, call->endpoint->connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, call->endpoint->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, call);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, call);
    if (webhooks->ca_file != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, webhooks->ca_file);
}

static CURL *take_handle(struct rcpt_webhooks *webhooks)
{
    CURL *curl =
        webhooks->idle_count > 0 ? webhooks->idle[--webhooks->idle_count] : curl_easy_init();
    RCPT_ASSERT(curl != NULL);
    return curl;
}

static void give_handle(struct rcpt_webhooks *webhooks, CURL *curl)
{
    if (webhooks->closing || webhooks->idle_count == MAX_IDLE_HANDLES) {
        curl_easy_cleanup(curl);
        return;
    }
    curl_easy_reset(curl);
    webhooks->idle[webhooks->idle_count++] = curl;
}

/* ---- one call: its end ---- */

static bool is_tls(CURLcode code)
{
    return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CIPHER ||
           code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_ISSUER_ERROR ||
           code == CURLE_SSL_ENGINE_INITFAILED || code == CURLE_SSL_INVALIDCERTSTATUS;
}

static enum rcpt_webhook_class classify(const struct call *call, CURLcode code, long status)
{
    if (call->forbidden)
        return RCPT_WEBHOOK_FORBIDDEN;
    if (status >= 200) /* what it said counts, also where its body did not come to an end */
        return rcpt_webhook_classify((int)status);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return RCPT_WEBHOOK_TIMEOUT;
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        return RCPT_WEBHOOK_DNS;
    return is_tls(code) ? RCPT_WEBHOOK_TLS : RCPT_WEBHOOK_CONNECTION;
}

static void fill_answer(const struct call *call, CURLcode code, struct rcpt_webhook_answer *answer)
{
    long status = 0;
    curl_off_t retry_after_s = 0;
    if (!call->forbidden) {
        curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(call->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
    }
    if (retry_after_s < 0 || retry_after_s > 365 * 86400)
        retry_after_s = 365 * 86400;
    *answer = (struct rcpt_webhook_answer){
        .class = classify(call, code, status),
        .status = status >= 200 ? (int)status : 0,
        .body = call->answer != NULL ? call->answer : "",
        .size = call->answer_size,
        .cut = call->cut,
        .retry_after_ms = retry_after_s * 1000,
        .took_ms = (int64_t)((uv_hrtime() - call->started_ns) / 1000000),
        .error = call->error,
    };
    if (call->forbidden)
        answer->error = "its address is not public";
    else if (status >= 200)
        answer->error = "";
    else if (call->error[0] == '\0')
        answer->error = curl_easy_strerror(code);
}

static void free_endpoint(struct rcpt_webhook_endpoint *endpoint)
{
    if (endpoint->previous != NULL)
        endpoint->previous->next = endpoint->next;
    else
        endpoint->webhooks->endpoints = endpoint->next;
    if (endpoint->next != NULL)
        endpoint->next->previous = endpoint->previous;
    for (size_t i = 0; i < endpoint->header_count; i++)
        free(endpoint->headers[i]);
    OPENSSL_cleanse(endpoint->secrets, sizeof(endpoint->secrets));
    free(endpoint->headers);
    free(endpoint->name);
    free(endpoint->url);
    free(endpoint);
}

static void unlink_call(struct call *call)
{
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        call->endpoint->webhooks->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
}

static void finish(struct call *call, const struct rcpt_webhook_answer *answer)
{
    struct rcpt_webhook_endpoint *endpoint = call->endpoint;
    RCPT_ASSERT(curl_multi_remove_handle(endpoint->webhooks->multi, call->curl) == CURLM_OK);
    unlink_call(call);
    endpoint->in_flight--;
    endpoint->answering = true;
    call->on_answer(call->context, answer);
    endpoint->answering = false;
    give_handle(endpoint->webhooks, call->curl);
    curl_slist_free_all(call->headers);
    free(call->body);
    free(call->answer);
    free(call);
    if (endpoint->dropped && endpoint->in_flight == 0)
        free_endpoint(endpoint);
}

static void finish_done(struct rcpt_webhooks *webhooks)
{
    int left;
    CURLMsg *message;
    while (!webhooks->closing && (message = curl_multi_info_read(webhooks->multi, &left)) != NULL) {
        struct call *call = NULL;
        struct rcpt_webhook_answer answer;
        RCPT_ASSERT(message->msg == CURLMSG_DONE);
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        fill_answer(call, message->data.result, &answer);
        finish(call, &answer);
    }
}

/* ---- libcurl on the loop ---- */

static void on_handle_closed(struct rcpt_webhooks *webhooks)
{
    if (--webhooks->open > 0 || !webhooks->closing)
        return;
    void (*on_closed)(void *) = webhooks->on_closed;
    void *context = webhooks->closed_context;
    free(webhooks->ca_file);
    free(webhooks);
    if (on_closed != NULL)
        on_closed(context);
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct socket_watch *watch = (struct socket_watch *)handle;
    struct rcpt_webhooks *webhooks = watch->webhooks;
    free(watch);
    on_handle_closed(webhooks);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_handle_closed(handle->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct socket_watch *watch = (struct socket_watch *)poll;
    struct rcpt_webhooks *webhooks = watch->webhooks;
    int running, flags = status < 0 ? CURL_CSELECT_ERR : 0;
    flags |= (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    flags |= (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
    curl_multi_socket_action(webhooks->multi, watch->socket, flags, &running);
    finish_done(webhooks);
}

static void on_timer(uv_timer_t *timer)
{
    struct rcpt_webhooks *webhooks = timer->data;
    int running;
    curl_multi_socket_action(webhooks->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    finish_done(webhooks);
}

static int on_set_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct rcpt_webhooks *webhooks = context;
    (void)multi;
    if (timeout_ms < 0 || webhooks->closing)
        uv_timer_stop(&webhooks->timer);
    else
        uv_timer_start(&webhooks->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

static struct socket_watch *watch_socket(struct rcpt_webhooks *webhooks, curl_socket_t socket)
{
    struct socket_watch *watch = rcpt_calloc(1, sizeof(*watch));
    watch->webhooks = webhooks;
    watch->socket = socket;
    RCPT_ASSERT(uv_poll_init(webhooks->loop, &watch->poll, socket) == 0);
    webhooks->open++;
    curl_multi_assign(webhooks->multi, socket, watch);
    return watch;
}

static int on_set_socket(CURL *curl, curl_socket_t socket, int what, void *context, void *assigned)
{
    struct rcpt_webhooks *webhooks = context;
    struct socket_watch *watch = assigned;
    (void)curl;
    if (what == CURL_POLL_REMOVE) {
        if (watch != NULL) {
            uv_poll_stop(&watch->poll);
            uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
            curl_multi_assign(webhooks->multi, socket, NULL);
        }
        return 0;
    }
    int events = (what & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    events |= (what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0;
    if (watch == NULL)
        watch = watch_socket(webhooks, socket);
    uv_poll_start(&watch->poll, events, on_poll);
    return 0;
}

struct rcpt_webhooks *rcpt_webhooks_new(const struct rcpt_webhooks_settings *settings)
{
    struct rcpt_webhooks *webhooks = rcpt_calloc(1, sizeof(*webhooks));
    webhooks->loop = settings->loop;
    webhooks->allow_private = settings->allow_private;
    webhooks->ca_file = settings->ca_file != NULL ? rcpt_strdup(settings->ca_file) : NULL;
    webhooks->multi = curl_multi_init();
    RCPT_ASSERT(webhooks->multi != NULL);
    uv_timer_init(settings->loop, &webhooks->timer);
    webhooks->timer.data = webhooks;
    webhooks->open = 1;
    curl_multi_setopt(webhooks->multi, CURLMOPT_SOCKETFUNCTION, on_set_socket);
    curl_multi_setopt(webhooks->multi, CURLMOPT_SOCKETDATA, webhooks);
    curl_multi_setopt(webhooks->multi, CURLMOPT_TIMERFUNCTION, on_set_timer);
    curl_multi_setopt(webhooks->multi, CURLMOPT_TIMERDATA, webhooks);
    curl_multi_setopt(webhooks->multi, CURLMOPT_MAXCONNECTS, MAX_CONNECTIONS);
    return webhooks;
}

void rcpt_webhooks_set_allow_private(struct rcpt_webhooks *webhooks, bool allow)
{
    webhooks->allow_private = allow;
}

void rcpt_webhooks_close(struct rcpt_webhooks *webhooks, void (*on_closed)(void *context),
                         void *context)
{
    static const struct rcpt_webhook_answer cancelled = {
        .class = RCPT_WEBHOOK_CANCELLED, .body = "", .error = "the client was closed"};
    webhooks->closing = true;
    webhooks->on_closed = on_closed;
    webhooks->closed_context = context;
    for (struct call *call = webhooks->calls, *next; call != NULL; call = next) {
        next = call->next;
        finish(call, &cancelled);
    }
    for (struct rcpt_webhook_endpoint *each = webhooks->endpoints, *next; each != NULL;
         each = next) {
        next = each->next;
        free_endpoint(each);
    }
    while (webhooks->idle_count > 0)
        curl_easy_cleanup(webhooks->idle[--webhooks->idle_count]);
    curl_multi_cleanup(webhooks->multi);
    uv_close((uv_handle_t *)&webhooks->timer, on_timer_closed);
}

/* ---- endpoints ---- */

static bool check_endpoint(const struct rcpt_webhook_endpoint_settings *settings,
                           struct rcpt_error *error)
{
    if (!rcpt_webhook_url_is_valid(settings->url))
        return rcpt_error_fatal(error, EX_CONFIG,
                                "endpoint %s: the URL is not of http or https, or holds a user "
                                "name",
                                settings->name);
    if (settings->secret_count > RCPT_WEBHOOK_MOST_SECRETS)
        return rcpt_error_fatal(error, EX_CONFIG, "endpoint %s: %zu secrets, at most %u sign",
                                settings->name, settings->secret_count, RCPT_WEBHOOK_MOST_SECRETS);
    for (size_t i = 0; i < settings->header_count; i++) {
        if (!rcpt_webhook_header_is_valid(settings->headers[i]))
            return rcpt_error_fatal(error, EX_CONFIG,
                                    "endpoint %s: header %zu is not of the form Name: value",
                                    settings->name, i + 1);
    }
    return true;
}

static bool parse_secrets(struct rcpt_webhook_endpoint *endpoint,
                          const struct rcpt_webhook_endpoint_settings *settings,
                          struct rcpt_error *error)
{
    for (size_t i = 0; i < settings->secret_count; i++) {
        if (!rcpt_webhook_secret_parse(&endpoint->secrets[i], settings->secrets[i]))
            return rcpt_error_fatal(error, EX_CONFIG,
                                    "endpoint %s: secret %zu is not whsec_ and the base64 of 24 "
                                    "to 64 bytes",
                                    settings->name, i + 1);
    }
    endpoint->secret_count = settings->secret_count;
    return true;
}

struct rcpt_webhook_endpoint *rcpt_webhook_endpoint_new(
    struct rcpt_webhooks *webhooks, const struct rcpt_webhook_endpoint_settings *settings,
    struct rcpt_error *error)
{
    if (!check_endpoint(settings, error))
        return NULL;
    struct rcpt_webhook_endpoint *endpoint = rcpt_calloc(1, sizeof(*endpoint));
    endpoint->webhooks = webhooks;
    endpoint->next = webhooks->endpoints;
    if (endpoint->next != NULL)
        endpoint->next->previous = endpoint;
    webhooks->endpoints = endpoint;
    if (!parse_secrets(endpoint, settings, error)) {
        free_endpoint(endpoint);
        return NULL;
    }
    endpoint->name = rcpt_strdup(settings->name);
    endpoint->url = rcpt_strdup(settings->url);
    endpoint->headers = rcpt_calloc(settings->header_count + 1, sizeof(char *));
    for (size_t i = 0; i < settings->header_count; i++)
        endpoint->headers[endpoint->header_count++] = rcpt_strdup(settings->headers[i]);
    endpoint->connect_timeout_ms = (long)settings->connect_timeout_ms;
    endpoint->timeout_ms = (long)settings->timeout_ms;
    endpoint->max_answer_bytes = settings->max_answer_bytes;
    endpoint->concurrency = settings->concurrency;
    return endpoint;
}

void rcpt_webhook_endpoint_drop(struct rcpt_webhook_endpoint *endpoint)
{
    endpoint->dropped = true;
    if (endpoint->in_flight == 0 && !endpoint->answering)
        free_endpoint(endpoint);
}

unsigned rcpt_webhook_room(const struct rcpt_webhook_endpoint *endpoint)
{
    bool shut = endpoint->dropped || endpoint->webhooks->closing;
    return shut || endpoint->in_flight >= endpoint->concurrency
               ? 0
               : endpoint->concurrency - endpoint->in_flight;
}

bool rcpt_webhook_send(struct rcpt_webhook_endpoint *endpoint,
                       const struct rcpt_webhook_call *request, rcpt_webhook_on_answer on_answer,
                       void *context)
{
    if (rcpt_webhook_room(endpoint) == 0)
        return false;
    struct rcpt_webhooks *webhooks = endpoint->webhooks;
    struct call *call = rcpt_calloc(1, sizeof(*call));
    call->endpoint = endpoint;
    call->on_answer = on_answer;
    call->context = context;
    call->started_ns = uv_hrtime();
    call->body = rcpt_malloc(request->size + 1);
    memcpy(call->body, request->body, request->size);
    call->curl = take_handle(webhooks);
    add_headers(call, request);
    set_request(call, request->size);
    set_limits(call);
    call->next = webhooks->calls;
    if (call->next != NULL)
        call->next->previous = call;
    webhooks->calls = call;
    endpoint->in_flight++;
    RCPT_ASSERT(curl_multi_add_handle(webhooks->multi, call->curl) == CURLM_OK);
    return true;
}

/* One easy handle per call in libcurl's multi handle; libuv watches its sockets and its timer.
 * Called by webhook.c, src/intake and src/trace.
 *
 * A call is in flight from rcpt_client_send until finish(), which calls back and frees it: after
 * its answer, its time-out or its cancellation. Easy handles are used again; libcurl keeps the
 * connections. */
#include "receiptd/http/client.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "receiptd/base/buffer.h"
#include "receiptd/base/network.h"
#include "receiptd/base/text.h"
#include "receiptd/base/version.h"

/* Bounds of a receiver's headers, and of memory and connections that are kept for the next call. A
 * Retry-After beyond a year counts as a year. */
#define MAX_HEADER_BYTES  65536u
#define MAX_IDLE_HANDLES  256u
#define MAX_CONNECTIONS   1024L /* kept alive, over all receivers */
#define MAX_RETRY_AFTER_S (365 * 86400)

struct rcpt_client_call {
    struct rcpt_client *client;
    struct rcpt_client_call *previous, *next; /* of the client's calls in flight */
    CURL *curl;
    struct curl_slist *headers;
    rcpt_client_on_answer on_answer;
    void *context;
    uint64_t started_ns;
    struct rcpt_buffer answer;
    size_t max_answer_bytes, header_bytes;
    int64_t retry_after_s;
    bool public_only, cut, forbidden;
    char error[CURL_ERROR_SIZE];
};

struct rcpt_client {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer;
    unsigned open; /* handles of libuv that are not closed */
    bool closing;
    char *ca_file;
    struct rcpt_client_call *calls;
    CURL *idle[MAX_IDLE_HANDLES];
    size_t idle_count;
    void (*on_closed)(void *context);
    void *closed_context;
};

struct socket_watch {
    uv_poll_t poll; /* first */
    struct rcpt_client *client;
    curl_socket_t socket;
};

/* ---- one call: what libcurl asks ---- */

/* Returning 0 ends the transfer; the status is known by then. */
static size_t on_bytes(char *bytes, size_t one, size_t count, void *context)
{
    struct rcpt_client_call *call = context;
    size_t size = one * count, capacity = call->max_answer_bytes - call->answer.size;
    size_t taken = size < capacity ? size : capacity;
    rcpt_buffer_append(&call->answer, bytes, taken);
    call->cut |= taken < size;
    return taken < size ? 0 : size;
}

/* No form of a date is longer than 64 bytes. libcurl knows all of them. */
int64_t rcpt_retry_after_s(const char *value, size_t size, int64_t now_s)
{
    char text[65];
    struct rcpt_text trimmed = rcpt_text_trim((struct rcpt_text){value, size});
    if (trimmed.size == 0 || trimmed.size >= sizeof(text))
        return 0;
    memcpy(text, trimmed.at, trimmed.size);
    text[trimmed.size] = '\0';
    int64_t asked = 0;
    if (strspn(text, "0123456789") == trimmed.size) {
        for (const char *digit = text; *digit != '\0' && asked <= MAX_RETRY_AFTER_S; digit++)
            asked = asked * 10 + (*digit - '0');
    } else {
        asked = (int64_t)curl_getdate(text, NULL) - now_s; /* -1, no date, has passed, too */
    }
    if (asked < 0)
        return 0;
    return asked > MAX_RETRY_AFTER_S ? MAX_RETRY_AFTER_S : asked;
}

/* Headers are not kept, apart from the last answer's Retry-After, and their size is bounded.
 * CURLINFO_RETRY_AFTER differs between releases of libcurl. */
static size_t on_header(const char *bytes, size_t one, size_t count, void *context)
{
    static const char name[] = "retry-after:", status_line[] = "http/";
    struct rcpt_client_call *call = context;
    size_t size = one * count, length = sizeof(name) - 1;
    call->header_bytes += size;
    if (size > length && strncasecmp(bytes, name, length) == 0)
        call->retry_after_s =
            rcpt_retry_after_s(bytes + length, size - length, (int64_t)time(NULL));
    else if (size > sizeof(status_line) - 1 &&
             strncasecmp(bytes, status_line, sizeof(status_line) - 1) == 0)
        call->retry_after_s = 0;
    return call->header_bytes > MAX_HEADER_BYTES ? 0 : size;
}

/* Checks the address itself, not the name: a name may resolve to another one at each call. */
static curl_socket_t on_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *at)
{
    struct rcpt_client_call *call = context;
    (void)purpose;
    struct rcpt_address address = rcpt_address_of(&at->addr);
    if (call->public_only && !rcpt_address_is_public(&address)) {
        call->forbidden = true;
        return CURL_SOCKET_BAD;
    }
    return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

/* Connections are kept by name: one may have been opened by a call that may reach any address. So
 * the address of a kept connection is checked here, before the request is sent on it. */
/* libcurl prescribes the signature. NOLINTNEXTLINE(readability-non-const-parameter) */
static int on_connected(void *context, char *remote, char *local, int remote_port, int local_port)
{
    struct rcpt_client_call *call = context;
    (void)local, (void)remote_port, (void)local_port;
    struct rcpt_address address;
    if (!call->public_only ||
        (rcpt_address_parse(remote, strlen(remote), &address) && rcpt_address_is_public(&address)))
        return CURL_PREREQFUNC_OK;
    call->forbidden = true;
    return CURL_PREREQFUNC_ABORT;
}

/* ---- one call: its request ---- */

/* libcurl borrows the list until the call ends. */
static void add_header(struct rcpt_client_call *call, const char *header)
{
    struct curl_slist *longer = curl_slist_append(call->headers, header);
    RCPT_ASSERT(longer != NULL);
    call->headers = longer;
}

/* COPYPOSTFIELDS comes after the size, so that libcurl copies that many bytes and not a C
 * string. */
static void set_request(struct rcpt_client_call *call, const struct rcpt_client_request *request)
{
    CURL *curl = call->curl;
    curl_easy_setopt(curl, CURLOPT_URL, request->url);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, call);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "receiptd/" RCPT_VERSION);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, call);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, call->error);
    for (size_t index = 0; index < request->header_count; index++)
        add_header(call, request->headers[index]);
    if (request->body != NULL) {
        add_header(call, "Expect:"); /* no waiting for 100-continue */
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
        curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, request->body);
    }
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, call->headers);
}

/* No redirects: a receiver could lead a signed call to another address. `direct` ignores the
 * proxies of the environment, and only direct connections are kept. */
static void set_limits(struct rcpt_client_call *call, const struct rcpt_client_request *request)
{
    CURL *curl = call->curl;
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, request->schemes);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    /* Giving up while a name is being resolved must not wait for the resolver. */
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, call);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, call);
    if (request->direct)
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, request->direct ? 0L : 1L);
    curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, request->direct ? 0L : 1L);
    if (call->client->ca_file != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, call->client->ca_file);
}

/* A handle that is used again saves libcurl's set-up; the settings are those of a new one. */
static CURL *take_handle(struct rcpt_client *client)
{
    CURL *curl = client->idle_count > 0 ? client->idle[--client->idle_count] : curl_easy_init();
    RCPT_ASSERT(curl != NULL);
    return curl;
}

static void give_handle(struct rcpt_client *client, CURL *curl)
{
    if (client->closing || client->idle_count == MAX_IDLE_HANDLES) {
        curl_easy_cleanup(curl);
        return;
    }
    curl_easy_reset(curl);
    client->idle[client->idle_count++] = curl;
}

/* The answer never comes from inside this call: libcurl begins with the loop's next turn. */
struct rcpt_client_call *rcpt_client_send(struct rcpt_client *client,
                                          const struct rcpt_client_request *request,
                                          rcpt_client_on_answer on_answer, void *context)
{
    struct rcpt_client_call *call = rcpt_calloc(1, sizeof(*call));
    RCPT_ASSERT(!client->closing);
    call->client = client;
    call->on_answer = on_answer;
    call->context = context;
    call->started_ns = uv_hrtime();
    call->max_answer_bytes = request->max_answer_bytes;
    call->public_only = request->public_only;
    call->curl = take_handle(client);
    set_request(call, request);
    set_limits(call, request);
    call->next = client->calls;
    if (call->next != NULL)
        call->next->previous = call;
    client->calls = call;
    RCPT_ASSERT(curl_multi_add_handle(client->multi, call->curl) == CURLM_OK);
    return call;
}

/* ---- one call: its end ---- */

static bool is_tls(CURLcode code)
{
    return code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION ||
           code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CIPHER ||
           code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_ISSUER_ERROR ||
           code == CURLE_SSL_ENGINE_INITFAILED || code == CURLE_SSL_INVALIDCERTSTATUS;
}

/* A final status counts as an answer even where the body was cut or broke off. */
static enum rcpt_client_failure failure_of(const struct rcpt_client_call *call, CURLcode code,
                                           long status)
{
    if (call->forbidden)
        return RCPT_CLIENT_FORBIDDEN;
    if (status >= 200)
        return RCPT_CLIENT_ANSWERED;
    if (code == CURLE_OPERATION_TIMEDOUT)
        return RCPT_CLIENT_TIMEOUT;
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        return RCPT_CLIENT_DNS;
    return is_tls(code) ? RCPT_CLIENT_TLS : RCPT_CLIENT_CONNECTION;
}

/* The texts and the body are borrowed from the call, for the callback. */
static void fill_answer(const struct rcpt_client_call *call, CURLcode code,
                        struct rcpt_client_answer *answer)
{
    long status = 0;
    if (!call->forbidden)
        curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &status);
    *answer = (struct rcpt_client_answer){
        .failure = failure_of(call, code, status),
        .status = status >= 200 ? (int)status : 0,
        .body = call->answer.bytes != NULL ? call->answer.bytes : "",
        .size = call->answer.size,
        .cut = call->cut,
        .retry_after_ms = call->retry_after_s * 1000,
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

static void unlink_call(struct rcpt_client_call *call)
{
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        call->client->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
}

/* The callback comes before the memory goes: `answer` may point into the call. */
static void finish(struct rcpt_client_call *call, const struct rcpt_client_answer *answer)
{
    struct rcpt_client *client = call->client;
    RCPT_ASSERT(curl_multi_remove_handle(client->multi, call->curl) == CURLM_OK);
    unlink_call(call);
    call->on_answer(call->context, answer);
    give_handle(client, call->curl);
    curl_slist_free_all(call->headers);
    rcpt_buffer_free(&call->answer);
    free(call);
}

/* A callback may send or cancel calls, so libcurl is asked again for each finished one. */
static void finish_done(struct rcpt_client *client)
{
    int left;
    CURLMsg *message;
    while (!client->closing && (message = curl_multi_info_read(client->multi, &left)) != NULL) {
        struct rcpt_client_call *call = NULL;
        struct rcpt_client_answer answer;
        RCPT_ASSERT(message->msg == CURLMSG_DONE);
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
        fill_answer(call, message->data.result, &answer);
        finish(call, &answer);
    }
}

static void cancel(struct rcpt_client_call *call, const char *reason)
{
    const struct rcpt_client_answer cancelled = {
        .failure = RCPT_CLIENT_CANCELLED, .body = "", .error = reason};
    finish(call, &cancelled);
}

void rcpt_client_cancel(struct rcpt_client_call *call)
{
    cancel(call, "no answer in time");
}

/* ---- libcurl on the loop ---- */

/* `open` counts the timer and each socket's watch; the last one to close frees the client. */
static void on_handle_closed(struct rcpt_client *client)
{
    if (--client->open > 0 || !client->closing)
        return;
    void (*on_closed)(void *) = client->on_closed;
    void *context = client->closed_context;
    free(client->ca_file);
    free(client);
    if (on_closed != NULL)
        on_closed(context);
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct socket_watch *watch = (struct socket_watch *)handle;
    struct rcpt_client *client = watch->client;
    free(watch);
    on_handle_closed(client);
}

static void on_timer_closed(uv_handle_t *handle)
{
    on_handle_closed(handle->data);
}

/* An error of the socket is passed on: libcurl finds its cause and ends the call. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct socket_watch *watch = (struct socket_watch *)poll;
    struct rcpt_client *client = watch->client;
    int running, flags = status < 0 ? CURL_CSELECT_ERR : 0;
    flags |= (events & UV_READABLE) != 0 ? CURL_CSELECT_IN : 0;
    flags |= (events & UV_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0;
    curl_multi_socket_action(client->multi, watch->socket, flags, &running);
    finish_done(client);
}

static void on_timer(uv_timer_t *timer)
{
    struct rcpt_client *client = timer->data;
    int running;
    curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    finish_done(client);
}

/* libcurl has one timer for all calls: -1 stops it. */
static int on_set_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct rcpt_client *client = context;
    (void)multi;
    if (timeout_ms < 0 || client->closing)
        uv_timer_stop(&client->timer);
    else
        uv_timer_start(&client->timer, on_timer, (uint64_t)timeout_ms, 0);
    return 0;
}

/* libcurl keeps the watch beside its socket, and hands it to on_set_socket(). */
static struct socket_watch *watch_socket(struct rcpt_client *client, curl_socket_t socket)
{
    struct socket_watch *watch = rcpt_calloc(1, sizeof(*watch));
    watch->client = client;
    watch->socket = socket;
    RCPT_ASSERT(uv_poll_init(client->loop, &watch->poll, socket) == 0);
    client->open++;
    curl_multi_assign(client->multi, socket, watch);
    return watch;
}

/* libcurl closes the socket itself, after REMOVE; the watch is freed when libuv has let go of
 * it. */
static int on_set_socket(CURL *curl, curl_socket_t socket, int what, void *context, void *assigned)
{
    struct rcpt_client *client = context;
    struct socket_watch *watch = assigned;
    (void)curl;
    if (what == CURL_POLL_REMOVE) {
        if (watch != NULL) {
            uv_poll_stop(&watch->poll);
            uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
            curl_multi_assign(client->multi, socket, NULL);
        }
        return 0;
    }
    int events = (what & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    events |= (what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0;
    if (watch == NULL)
        watch = watch_socket(client, socket);
    uv_poll_start(&watch->poll, events, on_poll);
    return 0;
}

struct rcpt_client *rcpt_client_new(uv_loop_t *loop, const char *ca_file)
{
    struct rcpt_client *client = rcpt_calloc(1, sizeof(*client));
    client->loop = loop;
    client->ca_file = ca_file != NULL ? rcpt_strdup(ca_file) : NULL;
    client->multi = curl_multi_init();
    RCPT_ASSERT(client->multi != NULL);
    uv_timer_init(loop, &client->timer);
    client->timer.data = client;
    client->open = 1;
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_set_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_set_timer);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, MAX_CONNECTIONS);
    return client;
}

/* A callback may not send again: finish() would never come to an end. */
void rcpt_client_close(struct rcpt_client *client, void (*on_closed)(void *context), void *context)
{
    client->closing = true;
    client->on_closed = on_closed;
    client->closed_context = context;
    for (struct rcpt_client_call *call = client->calls, *next; call != NULL; call = next) {
        next = call->next;
        cancel(call, "the client was closed");
    }
    while (client->idle_count > 0)
        curl_easy_cleanup(client->idle[--client->idle_count]);
    curl_multi_cleanup(client->multi);
    uv_close((uv_handle_t *)&client->timer, on_timer_closed);
}

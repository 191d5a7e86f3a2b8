/* Webhooks: endpoints with their secrets and limits, and calls to them, signed as Standard Webhooks
 * says. The client (client.c) makes the calls; this file gives their outcome a class. */
#include "receiptd/http/webhook.h"
#include "receiptd/base/clock.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "receiptd/http/client.h"

#define OWN_HEADERS 5u /* at most: content type, id, time, signature, traceparent */

/* The context that the client hands back. */
struct call {
    struct rcpt_webhook_endpoint *endpoint;
    rcpt_webhook_on_answer on_answer;
    void *context;
};

/* The client's list owns the endpoints: they live until it closes, since calls point to them. */
struct rcpt_webhook_endpoint {
    struct rcpt_webhooks *webhooks;
    char *name, *url;
    struct rcpt_webhook_secret secrets[RCPT_WEBHOOK_MOST_SECRETS];
    size_t secret_count;
    char **headers;
    size_t header_count;
    int64_t connect_timeout_ms, timeout_ms;
    size_t max_answer_bytes;
    unsigned concurrency, in_flight;
    struct rcpt_webhook_endpoint *next;
};

/* Endpoints that share connections, a CA file, and whether private addresses may be called. */
struct rcpt_webhooks {
    struct rcpt_client *client;
    bool allow_private, closing;
    struct rcpt_webhook_endpoint *endpoints;
    void (*on_closed)(void *context);
    void *closed_context;
};

/* ---- client ---- */

struct rcpt_webhooks *rcpt_webhooks_new(const struct rcpt_webhooks_settings *settings)
{
    struct rcpt_webhooks *webhooks = rcpt_calloc(1, sizeof(*webhooks));
    webhooks->client = rcpt_client_new(settings->loop, settings->ca_file);
    webhooks->allow_private = settings->allow_private;
    return webhooks;
}

/* Secrets are overwritten before their memory is freed. */
static void free_endpoint(struct rcpt_webhook_endpoint *endpoint)
{
    for (size_t i = 0; i < endpoint->header_count; i++)
        free(endpoint->headers[i]);
    OPENSSL_cleanse(endpoint->secrets, sizeof(endpoint->secrets));
    free(endpoint->headers);
    free(endpoint->name);
    free(endpoint->url);
    free(endpoint);
}

/* The owner's callback is last: it may free its context. */
static void on_client_closed(void *context)
{
    struct rcpt_webhooks *webhooks = context;
    void (*on_closed)(void *) = webhooks->on_closed;
    void *closed_context = webhooks->closed_context;
    free(webhooks);
    if (on_closed != NULL)
        on_closed(closed_context);
}

/* Closing the client answers all calls in flight as cancelled, before it returns. */
void rcpt_webhooks_close(struct rcpt_webhooks *webhooks, void (*on_closed)(void *context),
                         void *context)
{
    webhooks->closing = true;
    webhooks->on_closed = on_closed;
    webhooks->closed_context = context;
    rcpt_client_close(webhooks->client, on_client_closed, webhooks);
    while (webhooks->endpoints != NULL) { /* their calls are answered by now */
        struct rcpt_webhook_endpoint *endpoint = webhooks->endpoints;
        webhooks->endpoints = endpoint->next;
        free_endpoint(endpoint);
    }
}

/* ---- endpoints ---- */

/* The URL is not repeated in the messages: it may hold a secret. */
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

/* Each secret signs, so that receivers can change theirs one after the other. */
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

/* NULL with the error where URL, headers or secrets are not valid; nothing is kept then. */
struct rcpt_webhook_endpoint *rcpt_webhook_endpoint_new(
    struct rcpt_webhooks *webhooks, const struct rcpt_webhook_endpoint_settings *settings,
    struct rcpt_error *error)
{
    if (!check_endpoint(settings, error))
        return NULL;
    struct rcpt_webhook_endpoint *endpoint = rcpt_calloc(1, sizeof(*endpoint));
    endpoint->webhooks = webhooks;
    if (!parse_secrets(endpoint, settings, error)) {
        free_endpoint(endpoint);
        return NULL;
    }
    endpoint->name = rcpt_strdup(settings->name);
    endpoint->url = rcpt_strdup(settings->url);
    endpoint->headers = rcpt_calloc(settings->header_count + 1, sizeof(char *));
    for (size_t i = 0; i < settings->header_count; i++)
        endpoint->headers[endpoint->header_count++] = rcpt_strdup(settings->headers[i]);
    endpoint->connect_timeout_ms = settings->connect_timeout_ms;
    endpoint->timeout_ms = settings->timeout_ms;
    endpoint->max_answer_bytes = settings->max_answer_bytes;
    endpoint->concurrency = settings->concurrency;
    endpoint->next = webhooks->endpoints;
    webhooks->endpoints = endpoint;
    return endpoint;
}

/* How many more calls may be sent now. A caller that claims work asks this first. */
unsigned rcpt_webhook_capacity(const struct rcpt_webhook_endpoint *endpoint)
{
    if (endpoint->webhooks->closing || endpoint->in_flight >= endpoint->concurrency)
        return 0;
    return endpoint->concurrency - endpoint->in_flight;
}

/* ---- calls ---- */

/* A status counts even where the body did not come to its end. */
static enum rcpt_webhook_class class_of(const struct rcpt_client_answer *answer)
{
    static const enum rcpt_webhook_class classes[] = {
        [RCPT_CLIENT_TIMEOUT] = RCPT_WEBHOOK_TIMEOUT,
        [RCPT_CLIENT_DNS] = RCPT_WEBHOOK_DNS,
        [RCPT_CLIENT_CONNECTION] = RCPT_WEBHOOK_CONNECTION,
        [RCPT_CLIENT_TLS] = RCPT_WEBHOOK_TLS,
        [RCPT_CLIENT_FORBIDDEN] = RCPT_WEBHOOK_FORBIDDEN,
        [RCPT_CLIENT_CANCELLED] = RCPT_WEBHOOK_CANCELLED,
    };
    return answer->failure == RCPT_CLIENT_ANSWERED ? rcpt_webhook_classify(answer->status)
                                                   : classes[answer->failure];
}

/* The capacity is free before the callback, which may send the next call. */
static void on_answer(void *context, const struct rcpt_client_answer *answer)
{
    struct call *call = context;
    const struct rcpt_webhook_answer classified = {
        .class = class_of(answer),
        .status = answer->status,
        .body = answer->body,
        .size = answer->size,
        .cut = answer->cut,
        .retry_after_ms = answer->retry_after_ms,
        .took_ms = answer->took_ms,
        .error = answer->error,
    };
    call->endpoint->in_flight--;
    call->on_answer(call->context, &classified);
    free(call);
}

/* The caller frees the line. */
static char *header(const char *name, const char *value)
{
    char *line = rcpt_malloc(strlen(name) + strlen(value) + 3);
    sprintf(line, "%s: %s", name, value);
    return line;
}

/* The headers that receiptd makes, from malloc; returns their number. */
static size_t make_headers(const struct rcpt_webhook_endpoint *endpoint,
                           const struct rcpt_webhook_call *request, const char **lines)
{
    size_t count = 0;
    char text[24];
    const int64_t now = rcpt_wall_ns() / RCPT_NS_PER_S;
    snprintf(text, sizeof(text), "%" PRId64, now);
    const char *type = request->content_type != NULL ? request->content_type : "application/json";
    lines[count++] = header("Content-Type", type);
    lines[count++] = header("webhook-id", request->id);
    lines[count++] = header("webhook-timestamp", text);
    if (endpoint->secret_count > 0) {
        char *signature = rcpt_webhook_sign(endpoint->secrets, endpoint->secret_count, request->id,
                                            now, request->body, request->size);
        lines[count++] = header("webhook-signature", signature);
        free(signature);
    }
    if (request->traceparent != NULL && request->traceparent[0] != '\0')
        lines[count++] = header("traceparent", request->traceparent);
    return count;
}

/* False: no capacity, and on_answered will not be called. The client copies body and headers. */
bool rcpt_webhook_send(struct rcpt_webhook_endpoint *endpoint,
                       const struct rcpt_webhook_call *request, rcpt_webhook_on_answer on_answered,
                       void *context)
{
    if (rcpt_webhook_capacity(endpoint) == 0)
        return false;
    struct call *call = rcpt_calloc(1, sizeof(*call));
    *call = (struct call){endpoint, on_answered, context};
    size_t most = OWN_HEADERS + endpoint->header_count + request->header_count;
    const char **lines = rcpt_calloc(most, sizeof(*lines));
    size_t own = make_headers(endpoint, request, lines), count = own;
    for (size_t i = 0; i < endpoint->header_count; i++)
        lines[count++] = endpoint->headers[i];
    for (size_t i = 0; i < request->header_count; i++)
        lines[count++] = request->headers[i];
    const struct rcpt_client_request sent = {
        .url = endpoint->url,
        .schemes = "http,https",
        .headers = lines,
        .header_count = count,
        .body = request->body,
        .size = request->size,
        .connect_timeout_ms = endpoint->connect_timeout_ms,
        .timeout_ms = endpoint->timeout_ms,
        .max_answer_bytes = endpoint->max_answer_bytes,
        .public_only = !endpoint->webhooks->allow_private,
        .direct = true,
    };
    endpoint->in_flight++;
    rcpt_client_send(endpoint->webhooks->client, &sent, on_answer, call);
    while (own > 0)
        free((char *)(uintptr_t)lines[--own]);
    free(lines);
    return true;
}

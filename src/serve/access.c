/* Who asks: a token, a signed link, an organisation that a trusted proxy names, or, where
 * serve.open says so, anybody. Also whether the request asks for a name of ours. Called by serve.c,
 * which goes on in serve_admitted(). */
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "internal.h"

#define MOST_TOKEN 256u

/* ---- addresses and names ---- */

/* The host of "host:port" or "[IPv6]:port". */
static struct rcpt_text host_of(struct rcpt_text address)
{
    const char *end;
    if (address.at == NULL)
        return RCPT_TEXT("");
    if (address.size > 0 && address.at[0] == '[') {
        end = memchr(address.at, ']', address.size);
        return end != NULL ? (struct rcpt_text){address.at + 1, (size_t)(end - address.at) - 1}
                           : (struct rcpt_text){address.at, 0};
    }
    end = address.size > 0 ? memchr(address.at, ':', address.size) : NULL;
    return (struct rcpt_text){address.at, end != NULL ? (size_t)(end - address.at) : address.size};
}

static bool is_own_name(struct rcpt_text host)
{
    return rcpt_text_is_nocase(host, "localhost") || rcpt_text_is(host, "::1") ||
           (rcpt_text_begins(host, "127.") && strspn(host.at, "0123456789.") >= host.size);
}

bool serve_is_loopback(const char *listen)
{
    return is_own_name(host_of(rcpt_text_of(listen)));
}

/* A page elsewhere may have its own name lead to this machine (DNS rebinding), and would then read
 * answers as if they were its own: its name gives it away. */
bool serve_host_is_ours(const struct rcpt_serve *serve, const struct rcpt_http_request *http)
{
    struct rcpt_http_text header = rcpt_http_header(http, "Host");
    struct rcpt_text host = host_of((struct rcpt_text){header.bytes, header.size});
    const char *names = serve->settings.config->serve.hosts;
    if (serve->is_local && is_own_name(host))
        return true;
    if (names == NULL)
        return !serve->is_local;
    while (*names != '\0') {
        size_t size = strcspn(names, ",");
        struct rcpt_text name = rcpt_text_trim((struct rcpt_text){names, size});
        if (name.size > 0 && rcpt_text_equal_nocase(host, name))
            return true;
        names += size + (names[size] == ',');
    }
    return false;
}

/* ---- tokens ---- */

static void refuse(struct serve_request *request, const char *why)
{
    serve_answer_problem(request, 401, "%s", why);
    serve_request_free(request);
}

static unsigned scopes_of(const char *text)
{
    unsigned scopes = SERVE_ANY;
    if (strstr(text, "read") != NULL)
        scopes |= SERVE_READ;
    if (strstr(text, "support") != NULL)
        scopes |= SERVE_SUPPORT;
    if (strstr(text, "operate") != NULL)
        scopes |= SERVE_OPERATE;
    return scopes;
}

/* Columns of sql/serve/token. */
enum { TOKEN_SCOPES, TOKEN_ORG_ID, TOKEN_NAME };

/* The look-up is by the hash of a random token, so its time tells nothing. */
static void on_token(void *context, const struct rcpt_pg_rows *rows, const struct rcpt_error *error)
{
    struct serve_request *request = context;
    if (rows == NULL) {
        serve_answer_failure(request, error);
        serve_request_free(request);
        return;
    }
    if (rcpt_pg_rows_count(rows) == 0) {
        refuse(request, "the token is not known, or no longer: receiptd serve token list");
        return;
    }
    const char *organisation = rcpt_pg_rows_text(rows, 0, TOKEN_ORG_ID);
    request->scopes = scopes_of(rcpt_pg_rows_text(rows, 0, TOKEN_SCOPES));
    if (organisation != NULL)
        request->organisation = rcpt_text_terminated(&request->arena, rcpt_text_of(organisation));
    request->token =
        rcpt_text_terminated(&request->arena, rcpt_text_of(rcpt_pg_rows_text(rows, 0, TOKEN_NAME)));
    serve_admitted(request);
}

static void ask_for_token(struct serve_request *request, struct rcpt_http_text given)
{
    char hash[RCPT_SERVE_HASH_TEXT];
    if (given.size < 8 || given.size > MOST_TOKEN || strncasecmp(given.bytes, "Bearer ", 7) != 0) {
        refuse(request, "the header is to be: Authorization: Bearer TOKEN");
        return;
    }
    rcpt_serve_hash(given.bytes + 7, given.size - 7, hash);
    const char *const values[] = {hash};
    if (serve_ask(request->serve, "token", values, 1, on_token, request))
        return;
    serve_answer_failure(request, NULL);
    serve_request_free(request);
}

/* ---- links ---- */

static void check_link(struct serve_request *request, const char *link)
{
    const char *secret = request->serve->settings.config->serve.link_secret;
    char *campaign = secret == NULL ? NULL
                                    : rcpt_serve_link_campaign(secret, link, (int64_t)time(NULL),
                                                               &request->link_ends_s);
    if (campaign == NULL) {
        refuse(request, "the link is not ours, or its time is over: receiptd serve link CAMPAIGN");
        return;
    }
    request->scopes = SERVE_READ;
    request->campaign = rcpt_text_terminated(&request->arena, rcpt_text_of(campaign));
    free(campaign);
    serve_admitted(request);
}

/* ---- proxies ---- */

/* The one value of the header; more of them could be one of the client's and one of the proxy's. */
static struct rcpt_http_text proxy_value(const struct serve_request *request)
{
    const char *header = request->serve->settings.config->serve.proxy_header;
    struct rcpt_http_text found = {0}, name, value;
    unsigned count = 0;
    if (header == NULL || !rcpt_http_is_proxied(request->http))
        return found;
    for (size_t at = 0; at < rcpt_http_header_count(request->http); at++) {
        rcpt_http_header_at(request->http, at, &name, &value);
        if (strcasecmp(name.bytes, header) == 0) {
            found = value;
            count++;
        }
    }
    return count == 1 ? found : (struct rcpt_http_text){0};
}

static void admit_by_proxy(struct serve_request *request, struct rcpt_http_text organisation)
{
    if (!rcpt_utf8_is_text(organisation.bytes, organisation.size)) {
        refuse(request, "the proxy names an organisation that is no text");
        return;
    }
    request->scopes = SERVE_READ | SERVE_SUPPORT;
    if (strcmp(organisation.bytes, "*") != 0)
        request->organisation = rcpt_text_terminated(
            &request->arena, (struct rcpt_text){organisation.bytes, organisation.size});
    else
        request->scopes |= SERVE_OPERATE;
    serve_admitted(request);
}

/* What the request brings itself counts before what is true of everybody. */
void serve_access(struct serve_request *request)
{
    struct rcpt_http_text token = rcpt_http_header(request->http, "Authorization");
    struct rcpt_http_text proxy = proxy_value(request);
    const char *link = serve_query_value(&request->arena, rcpt_http_query(request->http), "link");
    if (token.bytes != NULL) {
        ask_for_token(request, token);
    } else if (link != NULL) {
        check_link(request, link);
    } else if (proxy.size > 0) {
        admit_by_proxy(request, proxy);
    } else if (request->serve->settings.config->serve.open) {
        request->scopes = SERVE_READ | SERVE_SUPPORT | SERVE_OPERATE;
        serve_admitted(request);
    } else {
        refuse(request, "a token is needed: receiptd serve token add --name NAME --scope read");
    }
}

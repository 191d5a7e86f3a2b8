/* Finds out who asks: by a token, a signed link, an organisation that a trusted proxy names, or
 * without proof if serve.open allows it. Called by serve.c, which goes on in when_admitted. */
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "internal.h"

#define MOST_TOKEN 256u

/* ---- tokens ---- */

uint64_t serve_caller(const char *kind, struct rcpt_text who)
{
    return rcpt_text_hash(rcpt_text_of(kind)) * 31 + rcpt_text_hash(who);
}

static void refuse(struct serve_request *request, const char *code, const char *why)
{
    serve_answer_problem(request, 401, code, "%s", why);
    serve_request_free(request);
}

static void check_token(struct serve_request *request, struct rcpt_http_text given)
{
    if (given.size < 8 || given.size > MOST_TOKEN || strncasecmp(given.bytes, "Bearer ", 7) != 0)
        refuse(request, "token_malformed", "the header is to be: Authorization: Bearer TOKEN");
    else
        serve_tokens_ask(request, (struct rcpt_text){given.bytes + 7, given.size - 7});
}

/* ---- links ---- */

static void check_link(struct serve_request *request, const char *link)
{
    const char *secret = request->serve->settings.config->serve.link_secret;
    char *campaign = secret == NULL ? NULL
                                    : rcpt_serve_link_campaign(secret, link, (int64_t)time(NULL),
                                                               &request->link_ends_s);
    if (campaign == NULL) {
        refuse(request, "link_unknown",
               "the link is not ours, or its time is over: receiptd serve link CAMPAIGN");
        return;
    }
    request->scopes = SERVE_READ;
    request->caller = serve_caller("link", rcpt_text_of(link));
    request->campaign = rcpt_text_terminated(&request->arena, rcpt_text_of(campaign));
    free(campaign);
    request->serve->when_admitted(request);
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
        refuse(request, "organisation_malformed",
               "the proxy names an organisation that is no text");
        return;
    }
    request->scopes = SERVE_READ | SERVE_SUPPORT;
    request->caller =
        serve_caller("proxy", (struct rcpt_text){organisation.bytes, organisation.size});
    if (strcmp(organisation.bytes, "*") != 0)
        request->organisation = rcpt_text_terminated(
            &request->arena, (struct rcpt_text){organisation.bytes, organisation.size});
    else
        request->scopes |= SERVE_OPERATE | SERVE_SUPPRESSIONS;
    request->serve->when_admitted(request);
}

/* The request's own proof counts before the rules for all requests. */
void serve_access(struct serve_request *request)
{
    struct rcpt_http_text token = rcpt_http_header(request->http, "Authorization");
    struct rcpt_http_text proxy = proxy_value(request);
    const char *link = serve_query_value(&request->arena, rcpt_http_query(request->http), "link");
    if (token.bytes != NULL) {
        check_token(request, token);
    } else if (link != NULL) {
        check_link(request, link);
    } else if (proxy.size > 0) {
        admit_by_proxy(request, proxy);
    } else if (request->serve->settings.config->serve.open) {
        request->scopes = SERVE_READ | SERVE_SUPPORT | SERVE_OPERATE | SERVE_SUPPRESSIONS;
        request->caller = serve_caller("open", rcpt_text_of(rcpt_http_source(request->http)));
        request->serve->when_admitted(request);
    } else {
        refuse(request, "token_missing",
               "a token is needed: receiptd serve token add --name NAME --scope read");
    }
}

/* URLs and parameters in the form in which gateways sign them. Pure; called by the verifiers of
 * gateways that sign the URL. */
#include <stdlib.h>

#include "account.h"
#include "verify_support.h"

/* Behind a proxy the URL that arrives is not the URL that was called, so its beginning comes from
 * the configuration. A query that is configured stands before one that only the request has. */
static struct rcpt_text configured_url(const struct rcpt_reading *reading, bool path_only)
{
    const struct rcpt_gateway_request *request = reading->source.request;
    struct rcpt_text url = rcpt_text_of(reading->account->public_url);
    size_t mark = rcpt_text_find(url, "?");
    struct rcpt_text path = rcpt_text_part(url, 0, mark);
    struct rcpt_text own = rcpt_text_part(url, mark + 1, url.size);
    struct rcpt_text query = request->query;
    struct rcpt_text tail = request->tail.at != NULL ? request->tail : RCPT_TEXT("");
    bool has_own = mark < url.size;
    if (path_only)
        return RCPT_TEXT_JOIN(reading->arena, path, tail);
    if (has_own && (query.size == 0 || rcpt_text_equal(own, query)))
        return RCPT_TEXT_JOIN(reading->arena, path, tail, RCPT_TEXT("?"), own);
    if (has_own)
        return RCPT_TEXT_JOIN(reading->arena, path, tail, RCPT_TEXT("?"), own, RCPT_TEXT("&"),
                              query);
    if (query.at == NULL)
        return RCPT_TEXT_JOIN(reading->arena, path, tail);
    return RCPT_TEXT_JOIN(reading->arena, path, tail, RCPT_TEXT("?"), query);
}

/* The same URL with its port left out, or with the port of its scheme put in. */
static struct rcpt_text other_port(const struct rcpt_reading *reading, struct rcpt_text url)
{
    bool secure = rcpt_text_begins(url, "https://");
    size_t begin = rcpt_text_find(url, "://") + 3;
    struct rcpt_text rest = rcpt_text_part(url, begin, url.size);
    struct rcpt_text host = rcpt_text_part(rest, 0, rcpt_text_find(rest, "/"));
    host.size = rcpt_text_find(host, "?");
    struct rcpt_text path = rcpt_text_part(rest, host.size, rest.size);
    const char *colon = host.size > 0 ? memrchr(host.at, ':', host.size) : NULL;
    bool has_port =
        colon != NULL && memchr(colon, ']', host.size - (size_t)(colon - host.at)) == NULL;
    struct rcpt_text port = secure ? RCPT_TEXT(":443") : RCPT_TEXT(":80");
    if (has_port) {
        host.size = (size_t)(colon - host.at);
        port.size = 0;
    }
    return RCPT_TEXT_JOIN(reading->arena, rcpt_text_part(url, 0, begin), host, port,
                          path.at != NULL ? path : RCPT_TEXT(""));
}

/* Gateways differ in whether they sign an implied port, so both forms are tried. */
unsigned rcpt_signed_urls(const struct rcpt_reading *reading, bool path_only,
                          struct rcpt_text urls[RCPT_MAX_URLS])
{
    if (reading->account->public_url == NULL)
        return 0;
    urls[0] = configured_url(reading, path_only);
    urls[1] = other_port(reading, urls[0]);
    return RCPT_MAX_URLS;
}

/* By bytes, as the recipes say. */
static int compare_fields(const void *left, const void *right)
{
    const struct rcpt_parameter *one = left, *other = right;
    int order = rcpt_text_compare(one->name, other->name);
    return order != 0 ? order : rcpt_text_compare(one->value, other->value);
}

/* The given form stays as it is. */
struct rcpt_form rcpt_sorted(const struct rcpt_form *form, bool once, struct rcpt_arena *arena)
{
    size_t count = 0;
    struct rcpt_parameter *fields =
        rcpt_arena_alloc(arena, (form->count + 1) * sizeof(struct rcpt_parameter));
    if (form->count > 0)
        memcpy(fields, form->fields, form->count * sizeof(*fields));
    qsort(fields, form->count, sizeof(*fields), compare_fields);
    for (size_t index = 0; index < form->count; index++)
        if (!once || count == 0 || compare_fields(&fields[count - 1], &fields[index]) != 0)
            fields[count++] = fields[index];
    return (struct rcpt_form){fields, count};
}

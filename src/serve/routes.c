/* The table of routes: routing and the checks of parameters come from it. A new route is a row
 * here, a file in sql/serve, and a path in openapi.json: a unit test compares it with the rows. */
#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

#include "receiptd/base/error.h"

#define CAMPAIGN                                                                                   \
    {                                                                                              \
        .name = "campaign", .in_path = true, .required = true                                      \
    }
#define LIMIT(usual)                                                                               \
    {                                                                                              \
        .name = "limit", .type = SERVE_INTEGER, .initial = (usual), .least = 1, .most = 500        \
    }
/* `next` of the page before, by the form that its statement gives it. */
#define AFTER(form)                                                                                \
    {                                                                                              \
        .name = "after", .pattern = (form)                                                         \
    }
#define CAMPAIGN_KEY                                                                               \
    "^[0-2]:(-?[0-9]{1,17}([.][0-9]{1,17})?(e[+-]?[0-9]{1,2})?|-?Infinity):[0-9]{1,2}:"
#define LETTER_KEY "^[0-9]{1,17}[|][^|]{1,249}[|][0-9]{1,9}[|][0-9]{1,18}[|]-?[0-9]{1,9}$"

#define BY                                                                                         \
    {                                                                                              \
        .name = "by", .type = SERVE_CHOICE,                                                        \
        .words = "reason|variant|channel|gateway|time_to_deliver|time_to_open|link"                \
    }

#define PENDING                                                                                    \
    {                                                                                              \
        .name = "pending", .type = SERVE_BOOLEAN, .words = "true|false", .first = "pending"        \
    }

/* NULL: no message expires. */
static char *expiry_rules(const struct rcpt_config *config)
{
    return config->inbox.expiry_count > 0 ? rcpt_config_expiry_rules(config) : NULL;
}

static bool has_series(const struct rcpt_config *config)
{
    return config->counters.series_ms > 0;
}

static bool has_gateways(const struct rcpt_config *config)
{
    return config->counters.gateways_ms > 0;
}

static bool has_customers(const struct rcpt_config *config)
{
    return rcpt_serve_columns_of(config).customer != NULL;
}

static const struct serve_route routes[] = {
    {RCPT_HTTP_GET, "/campaigns", SERVE_READ, false, false, SERVE_ROW, .statement = "campaigns",
     .parameters =
         {{.name = "q"},
          {.name = "sort",
           .type = SERVE_CHOICE,
           .initial = "match",
           .words = "match|changed|rate|problems|name|date|targeted|sent|delivered|opened|"
                    "clicked"},
          AFTER(CAMPAIGN_KEY),
          LIMIT("50"),
          {.name = "reverse", .type = SERVE_BOOLEAN, .initial = "false", .words = "true|false"}},
     .named = true},
    {RCPT_HTTP_GET, "/campaigns/{campaign}", SERVE_READ, true, false, SERVE_ROW,
     .statement = "funnel", .parameters = {CAMPAIGN, BY, PENDING}, .settings = expiry_rules,
     .named = true},
    {RCPT_HTTP_GET, "/campaigns/{campaign}/funnel", SERVE_READ, true, false, SERVE_ROW,
     .statement = "funnel", .parameters = {CAMPAIGN, BY, PENDING}, .settings = expiry_rules,
     .named = true},
    {RCPT_HTTP_GET, "/campaigns/{campaign}/timeline", SERVE_READ, true, false, SERVE_ROW,
     .statement = "timeline", .is_on = has_series,
     .off = "no series is counted: set counters.series, such as to 90d",
     .parameters =
         {CAMPAIGN,
          {.name = "step", .type = SERVE_CHOICE, .initial = "hour", .words = "hour|minute"}}},
    {RCPT_HTTP_GET, "/campaigns/{campaign}/recipients", SERVE_SUPPORT, false, false, SERVE_EXPORT,
     .statement = "recipients",
     .parameters =
         {CAMPAIGN,
          {.name = "status", .of_ladder = true},
          {.name = "format", .type = SERVE_CHOICE, .initial = "csv", .words = "csv|json"}}},
    {RCPT_HTTP_GET, "/messages", SERVE_SUPPORT, .one_of = true, .kind = SERVE_ROW,
     .statement = "messages",
     .parameters =
         {{.name = "q"},
          {.name = "customer",
           .statement = "messages_of_customer",
           .is_on = has_customers,
           .off = "no column names the customer of a message: set inbox.columns.customer_id"}}},
    {RCPT_HTTP_GET, "/messages/{message}", SERVE_SUPPORT, false, false, SERVE_ROW,
     .statement = "message",
     .parameters = {{.name = "message", .in_path = true, .required = true}}},
    {RCPT_HTTP_GET, "/gateways", SERVE_OPERATE, false, false, SERVE_ROW, .statement = "gateways",
     .costly = true, .is_on = has_gateways,
     .off = "nothing is counted by gateway: set counters.gateways, such as to 90d",
     .parameters =
         {{.name = "hours", .type = SERVE_INTEGER, .initial = "24", .least = 1, .most = 8760}}},
    {RCPT_HTTP_GET, "/pipelines", SERVE_OPERATE, false, false, SERVE_ROW, .statement = "pipelines"},
    {RCPT_HTTP_GET, "/pipelines/{pipeline}", SERVE_OPERATE, false, false, SERVE_ROW,
     .statement = "pipeline", .costly = true,
     .parameters = {{.name = "pipeline", .in_path = true, .required = true}}},
    {RCPT_HTTP_GET, "/actions", SERVE_OPERATE, false, false, SERVE_ROW, .statement = "actions",
     .costly = true,
     .parameters = {{.name = "status",
                     .type = SERVE_CHOICE,
                     .words = "pending|held|running|done|failed|cancelled|dead"},
                    {.name = "pipeline"},
                    {.name = "after", .type = SERVE_INTEGER, .least = 0, .most = INT64_MAX},
                    LIMIT("100")}},
    {RCPT_HTTP_GET, "/dead-letters", SERVE_OPERATE, false, false, SERVE_ROW,
     .statement = "dead_letters", .costly = true,
     .parameters = {{.name = "reason"}, AFTER(LETTER_KEY), LIMIT("100")}},
    {RCPT_HTTP_POST, "/dead-letters/redrive", SERVE_OPERATE, false, false, SERVE_REDRIVE,
     .is_on = serve_redrive_is_on,
     .off = "this interface only reads: set serve.operate_dsn, or run receiptd dead-letters "
            "--redrive"},
    {RCPT_HTTP_GET, "/status", SERVE_OPERATE, false, false, SERVE_ROW, .statement = "status",
     .costly = true},
    {RCPT_HTTP_GET, "/stream", SERVE_READ, true, false, SERVE_STREAM,
     .parameters = {{.name = "campaign"}}},
    {RCPT_HTTP_GET, "/me", SERVE_ANY, .by_link = true, .kind = SERVE_ME},
    {RCPT_HTTP_GET, "/openapi.json", SERVE_ANY, .by_link = true, .kind = SERVE_OPENAPI},
};

/* For openapi.json, figures and tests. */
const struct serve_route *serve_routes(size_t *count)
{
    *count = RCPT_COUNT_OF(routes);
    return routes;
}

/* ---- paths and queries ---- */

/* Cuts the next part up to `separator` off. */
static struct rcpt_text cut(struct rcpt_text *rest, char separator)
{
    const char *end = memchr(rest->at, separator, rest->size);
    struct rcpt_text part = {rest->at, end != NULL ? (size_t)(end - rest->at) : rest->size};
    size_t used = part.size + (end != NULL);
    *rest = (struct rcpt_text){rest->at + used, rest->size - used};
    return part;
}

/* How often a name is in a query, and its value as it came. */
static unsigned find_in_query(struct rcpt_http_text query, const char *name,
                              struct rcpt_text *value)
{
    struct rcpt_text rest = {query.bytes, query.bytes != NULL ? query.size : 0};
    const struct rcpt_text wanted = {name, strlen(name)};
    unsigned count = 0;
    while (rest.size > 0) {
        struct rcpt_text pair = cut(&rest, '&'), key = cut(&pair, '=');
        if (!rcpt_text_equal(key, wanted))
            continue;
        *value = pair;
        count++;
    }
    return count;
}

/* A name that is there twice could be read one way here and another way by a proxy. */
char *serve_query_value(struct rcpt_arena *arena, struct rcpt_http_text query, const char *name)
{
    struct rcpt_text value;
    return find_in_query(query, name, &value) == 1 ? rcpt_text_unescape(arena, value, true) : NULL;
}

/* ---- which route ---- */

/* Segment by segment: one in braces takes anything but nothing. */
static bool fits(const struct serve_route *route, struct rcpt_text path)
{
    struct rcpt_text pattern = rcpt_text_of(route->path);
    while (pattern.size > 0 && path.size > 0) {
        struct rcpt_text wanted = cut(&pattern, '/'), given = cut(&path, '/');
        if (wanted.size > 0 && wanted.at[0] == '{' ? given.size == 0
                                                   : !rcpt_text_equal(wanted, given))
            return false;
        if ((pattern.size > 0) != (path.size > 0))
            return false;
    }
    return pattern.size == 0 && path.size == 0;
}

int serve_routes_find(struct serve_request *request, enum rcpt_http_method method,
                      struct rcpt_http_text path)
{
    int status = 404;
    if (method == RCPT_HTTP_HEAD)
        method = RCPT_HTTP_GET;
    /* A slash at the end is a segment without a name. */
    if (path.size == 0 || path.bytes[path.size - 1] == '/')
        return status;
    for (size_t index = 0; index < RCPT_COUNT_OF(routes); index++) {
        if (!fits(&routes[index], (struct rcpt_text){path.bytes, path.size}))
            continue;
        request->methods |= (unsigned)routes[index].method;
        status = 405;
        if (routes[index].method == method)
            request->route = &routes[index];
    }
    return request->route != NULL ? 0 : status;
}

/* ---- parameters ---- */

/* The segment at the place of {name}, as it came. */
static struct rcpt_text segment_of(const struct serve_route *route, const char *name,
                                   struct rcpt_http_text path)
{
    struct rcpt_text pattern = rcpt_text_of(route->path), rest = {path.bytes, path.size};
    while (pattern.size > 0) {
        struct rcpt_text wanted = cut(&pattern, '/'), given = cut(&rest, '/');
        if (wanted.size == strlen(name) + 2 && wanted.at[0] == '{' &&
            memcmp(wanted.at + 1, name, wanted.size - 2) == 0)
            return given;
    }
    return (struct rcpt_text){0};
}

/* Words stand as in the table: a|b|c. */
static bool is_choice(const char *words, const char *value)
{
    struct rcpt_text rest = rcpt_text_of(words);
    while (rest.size > 0)
        if (rcpt_text_is(cut(&rest, '|'), value))
            return true;
    return false;
}

static size_t characters_of(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

static bool has_form(const char *pattern, const char *value)
{
    regex_t form;
    RCPT_ASSERT(regcomp(&form, pattern, REG_EXTENDED | REG_NOSUB) == 0);
    bool good = regexec(&form, value, 0, NULL, 0) == 0;
    regfree(&form);
    return good;
}

static bool is_in_range(const struct serve_parameter *parameter, const char *value)
{
    errno = 0;
    long long number = strtoll(value, NULL, 10);
    return rcpt_text_is_digits(rcpt_text_of(value)) && errno == 0 && number >= parameter->least &&
           number <= parameter->most;
}

/* False: `fault` names the fault and the right values. */
static bool is_good(const struct serve_parameter *parameter, const char *value, char fault[160])
{
    size_t size = value != NULL ? characters_of(value) : 0;
    fault[0] = '\0';
    if (value == NULL)
        snprintf(fault, 160, "is no text: UTF-8 without NUL, percent escapes of two digits");
    else if (size == 0 || size > SERVE_MOST_TEXT)
        snprintf(fault, 160, "has %zu characters: from 1 to %u are allowed", size, SERVE_MOST_TEXT);
    else if (parameter->words != NULL && !is_choice(parameter->words, value))
        snprintf(fault, 160, "must be one of %s", parameter->words);
    else if (parameter->pattern != NULL && !has_form(parameter->pattern, value))
        snprintf(fault, 160, "is no `next` of a page before");
    else if (parameter->type == SERVE_INTEGER && !is_in_range(parameter, value))
        snprintf(fault, 160, "has to be an integer from %" PRId64 " to %" PRId64, parameter->least,
                 parameter->most);
    return fault[0] == '\0';
}

/* From the path or the query; one that is absent has its initial value. */
static bool read_one(struct serve_request *request, size_t index, struct rcpt_http_text path,
                     struct rcpt_http_text query, char problem[256])
{
    const struct serve_parameter *parameter = &request->route->parameters[index];
    struct rcpt_text given = {0};
    unsigned count = 1;
    if (parameter->in_path)
        given = segment_of(request->route, parameter->name, path);
    else
        count = find_in_query(query, parameter->name, &given);
    request->values[index] = parameter->initial;
    if (count == 0 && !parameter->required)
        return true;
    char fault[160] = "is missing";
    if (count > 1)
        snprintf(fault, sizeof(fault), "is there more than once");
    if (count == 1) {
        request->values[index] = rcpt_text_unescape(&request->arena, given, !parameter->in_path);
        if (is_good(parameter, request->values[index], fault))
            return true;
    }
    snprintf(problem, 256, "the parameter %s %s", parameter->name, fault);
    return false;
}

/* An unknown name is a mistake of the client, which would otherwise have no effect and no
 * explanation. */
static bool knows_all(const struct serve_request *request, struct rcpt_http_text query)
{
    struct rcpt_text rest = {query.bytes, query.bytes != NULL ? query.size : 0};
    while (rest.size > 0) {
        struct rcpt_text pair = cut(&rest, '&'), key = cut(&pair, '=');
        bool known = key.size == 0 || rcpt_text_is(key, "link");
        for (size_t index = 0; index < SERVE_MOST_VALUES; index++) {
            const struct serve_parameter *parameter = &request->route->parameters[index];
            if (parameter->name != NULL && !parameter->in_path)
                known = known || rcpt_text_is(key, parameter->name);
        }
        if (!known)
            return false;
    }
    return true;
}

bool serve_parameter_is_on(const struct serve_parameter *parameter,
                           const struct rcpt_config *config)
{
    return parameter->name != NULL && (parameter->is_on == NULL || parameter->is_on(config));
}

void serve_routes_list_one_of(const struct serve_route *route, const struct rcpt_config *config,
                              char *names, size_t size)
{
    size_t used = 0;
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        if (serve_parameter_is_on(&route->parameters[index], config))
            used += (size_t)snprintf(names + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     route->parameters[index].name);
}

/* Whether exactly one of the parameters that exclude each other is given. */
static bool gives_one(const struct serve_request *request, char problem[256])
{
    unsigned given = 0;
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        given += request->values[index] != NULL;
    if (!request->route->one_of || given == 1)
        return true;
    char names[160];
    serve_routes_list_one_of(request->route, request->serve->settings.config, names, sizeof(names));
    snprintf(problem, 256, "%s takes exactly one of: %s", request->route->path, names);
    return false;
}

/* Reports the first fault only. */
bool serve_routes_read(struct serve_request *request, char problem[256])
{
    struct rcpt_http_text query = rcpt_http_query(request->http);
    struct rcpt_http_text path = rcpt_http_rest(request->http);
    if (!knows_all(request, query)) {
        snprintf(problem, 256, "the query names a parameter that %s does not have",
                 request->route->path);
        return false;
    }
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        if (request->route->parameters[index].name != NULL &&
            !read_one(request, index, path, query, problem))
            return false;
    return gives_one(request, problem);
}

const char *serve_value(const struct serve_request *request, const char *name)
{
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++) {
        const char *known = request->route->parameters[index].name;
        if (known != NULL && strcmp(known, name) == 0)
            return request->values[index];
    }
    return NULL;
}

/* The request's other memory lies in its arena. */
void serve_request_free(struct serve_request *request)
{
    serve_counts_add(request);
    rcpt_arena_fini(&request->arena);
    free(request);
}

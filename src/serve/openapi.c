/* The table of routes as OpenAPI 3.1, made once at the start. Called by serve.c. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"
#include "receiptd/base/json.h"
#include "receiptd/base/version.h"

static void put_words(struct rcpt_json *json, struct rcpt_text words)
{
    rcpt_json_key(json, "enum");
    rcpt_json_begin_array(json);
    while (words.size > 0) {
        size_t size = rcpt_text_find(words, "|");
        rcpt_json_bytes(json, words.at, size);
        words = rcpt_text_part(words, size + 1, words.size);
    }
    rcpt_json_end_array(json);
}

static void put_ladder(struct rcpt_json *json, const struct rcpt_ladder *ladder)
{
    rcpt_json_key(json, "enum");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < rcpt_ladder_entry_count(ladder); index++)
        rcpt_json_text(json, rcpt_ladder_entry(ladder, index)->name);
    rcpt_json_end_array(json);
}

static const char *const type_names[] = {[SERVE_TEXT] = "string",
                                         [SERVE_INTEGER] = "integer",
                                         [SERVE_CHOICE] = "string",
                                         [SERVE_BOOLEAN] = "boolean"};

/* The schema of a parameter, made from the columns of the row by which it is checked. */
static void put_schema(struct rcpt_json *json, const struct serve_parameter *parameter,
                       const struct rcpt_config *config)
{
    rcpt_json_key(json, "schema");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "type", type_names[parameter->type]);
    if (parameter->type == SERVE_INTEGER) {
        rcpt_json_put_text(json, "format", "int64");
        rcpt_json_put_int(json, "minimum", parameter->least);
        rcpt_json_put_int(json, "maximum", parameter->most);
    } else if (parameter->type == SERVE_CHOICE) {
        put_words(json, rcpt_text_of(parameter->words));
    } else if (parameter->of_ladder) {
        put_ladder(json, config->ladder);
    } else if (parameter->type == SERVE_TEXT) {
        rcpt_json_put_int(json, "minLength", 1);
        rcpt_json_put_int(json, "maxLength", SERVE_MOST_TEXT);
    }
    if (parameter->pattern != NULL)
        rcpt_json_put_text(json, "pattern", parameter->pattern);
    if (parameter->initial != NULL && parameter->type == SERVE_INTEGER)
        rcpt_json_put_int(json, "default", strtoll(parameter->initial, NULL, 10));
    else if (parameter->initial != NULL && parameter->type == SERVE_BOOLEAN)
        rcpt_json_put_bool(json, "default", strcmp(parameter->initial, "true") == 0);
    else if (parameter->initial != NULL)
        rcpt_json_put_text(json, "default", parameter->initial);
    rcpt_json_end_object(json);
}

/* How many parameters there are, of which exactly one has to be given; 0: any may. */
static size_t count_one_of(const struct serve_route *route, const struct rcpt_config *config)
{
    size_t count = 0;
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        count += route->one_of && serve_parameter_is_on(&route->parameters[index], config);
    return count;
}

/* One parameter; its doc line is the description. */
static void put_parameter(struct rcpt_json *json, const struct serve_route *route,
                          const struct serve_parameter *parameter, const struct rcpt_config *config)
{
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "name", parameter->name);
    rcpt_json_put_text(json, "in", parameter->in_path ? "path" : "query");
    rcpt_json_put_bool(json, "required", parameter->required || count_one_of(route, config) == 1);
    rcpt_json_put_text(json, "description", parameter->doc);
    put_schema(json, parameter, config);
    rcpt_json_end_object(json);
}

/* Writes a body of this type. */
static void put_body(struct rcpt_json *json, const char *type, const char *schema)
{
    rcpt_json_key(json, type);
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "schema");
    serve_schema_put(json, rcpt_text_of(schema));
    rcpt_json_end_object(json);
}

/* One status of an answer, up to its types. */
static void begin_answer(struct rcpt_json *json, const char *status, const char *what)
{
    rcpt_json_key(json, status);
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "description", what);
    rcpt_json_key(json, "content");
    rcpt_json_begin_object(json);
}

/* Ends the list of types and the answer. */
static void end_answer(struct rcpt_json *json)
{
    rcpt_json_end_object(json);
    rcpt_json_end_object(json);
}

/* The answer of a status that is no success. */
static void put_problem(struct rcpt_json *json, const char *status, const char *what)
{
    begin_answer(json, status, what);
    put_body(json, "application/problem+json", "Problem");
    end_answer(json);
}

/* OpenAPI has no word for the events of a stream: x-events names their components. */
static void put_success(struct rcpt_json *json, const struct serve_route *route)
{
    begin_answer(json, "200", route->doc);
    if (route->kind == SERVE_STREAM) {
        put_body(json, "text/event-stream", "text");
    } else {
        if (route->kind == SERVE_EXPORT)
            put_body(json, "text/csv", "text");
        put_body(json, "application/json", route->gives);
    }
    rcpt_json_end_object(json);
    if (route->kind == SERVE_STREAM) {
        rcpt_json_key(json, "x-events");
        rcpt_json_begin_object(json);
        rcpt_json_key(json, "campaign");
        serve_schema_put(json, rcpt_text_of(route->gives));
        rcpt_json_key(json, "health");
        serve_schema_put(json, RCPT_TEXT("Health"));
        rcpt_json_end_object(json);
    }
    rcpt_json_end_object(json);
}

/* Routes that only read take none. */
static void put_request_body(struct rcpt_json *json, const struct serve_route *route)
{
    rcpt_json_key(json, "requestBody");
    rcpt_json_begin_object(json);
    rcpt_json_put_bool(json, "required", true);
    rcpt_json_key(json, "content");
    rcpt_json_begin_object(json);
    put_body(json, "application/json", route->takes);
    rcpt_json_end_object(json);
    rcpt_json_end_object(json);
}

/* The word by which `serve token add --scope` gives it. */
static const char *scope_name(enum serve_scope scope)
{
    return scope == SERVE_READ      ? "read"
           : scope == SERVE_SUPPORT ? "support"
           : scope == SERVE_OPERATE ? "operate"
                                    : "any";
}

/* Writes one way to be admitted. */
static void put_requirement(struct rcpt_json *json, const char *scheme)
{
    rcpt_json_begin_object(json);
    rcpt_json_key(json, scheme);
    rcpt_json_begin_array(json);
    rcpt_json_end_array(json);
    rcpt_json_end_object(json);
}

/* The first part of the path. */
static void put_tag(struct rcpt_json *json, const char *path)
{
    rcpt_json_key(json, "tags");
    rcpt_json_begin_array(json);
    rcpt_json_bytes(json, path + 1, strcspn(path + 1, "/."));
    rcpt_json_end_array(json);
}

/* Parameters that exclude each other, for which OpenAPI has no word: a sentence for people, and
 * x-exactly-one-of for programs. */
static void put_one_of(struct rcpt_json *json, const struct serve_route *route,
                       const struct rcpt_config *config)
{
    char names[160], text[240];
    serve_routes_list_one_of(route, config, names, sizeof(names));
    snprintf(text, sizeof(text), "Takes exactly one of: %s. None or several: 400.", names);
    rcpt_json_put_text(json, "description", text);
    rcpt_json_key(json, "x-exactly-one-of");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        if (serve_parameter_is_on(&route->parameters[index], config))
            rcpt_json_text(json, route->parameters[index].name);
    rcpt_json_end_array(json);
}

/* One operation. x-scope and x-by-link tell who may ask, for which OpenAPI has no word. */
static void put_route(struct rcpt_json *json, const struct serve_route *route,
                      const struct rcpt_config *config)
{
    rcpt_json_key(json, route->method == RCPT_HTTP_POST ? "post" : "get");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "operationId", route->id);
    rcpt_json_put_text(json, "summary", route->doc);
    put_tag(json, route->path);
    bool chooses = count_one_of(route, config) > 1;
    if (chooses)
        put_one_of(json, route, config);
    rcpt_json_key(json, "security");
    rcpt_json_begin_array(json);
    put_requirement(json, "token");
    if (route->by_link)
        put_requirement(json, "link");
    rcpt_json_end_array(json);
    rcpt_json_put_text(json, "x-scope", scope_name(route->scope));
    rcpt_json_put_bool(json, "x-by-link", route->by_link);
    rcpt_json_key(json, "parameters");
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        if (serve_parameter_is_on(&route->parameters[index], config))
            put_parameter(json, route, &route->parameters[index], config);
    rcpt_json_end_array(json);
    if (route->takes != NULL)
        put_request_body(json, route);
    rcpt_json_key(json, "responses");
    rcpt_json_begin_object(json);
    const char *off = route->off;
    for (size_t index = 0; off == NULL && index < SERVE_MOST_VALUES; index++)
        off = route->parameters[index].off;
    put_success(json, route);
    if (chooses)
        put_problem(json, "400", "not exactly one of the parameters, or a bad value");
    if (off != NULL)
        put_problem(json, "501", off);
    put_problem(json, "default", "why not (RFC 9457)");
    rcpt_json_end_object(json);
    rcpt_json_end_object(json);
}

/* A trusted proxy is not among the schemes, because the client does not choose it. */
static void put_schemes(struct rcpt_json *json)
{
    rcpt_json_key(json, "securitySchemes");
    rcpt_json_begin_object(json);
    rcpt_json_key(json, "token");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "type", "http");
    rcpt_json_put_text(json, "scheme", "bearer");
    rcpt_json_put_text(json, "description", "receiptd serve token add --name NAME --scope SCOPES");
    rcpt_json_end_object(json);
    rcpt_json_key(json, "link");
    rcpt_json_begin_object(json);
    rcpt_json_put_text(json, "type", "apiKey");
    rcpt_json_put_text(json, "in", "query");
    rcpt_json_put_text(json, "name", "link");
    rcpt_json_put_text(json, "description", "of one campaign: receiptd serve link CAMPAIGN");
    rcpt_json_end_object(json);
    rcpt_json_end_object(json);
}

/* Rows of one path stand together if their methods differ; today no two do. */
char *serve_openapi(const struct rcpt_config *config, size_t *size)
{
    char *text = NULL;
    size_t count;
    const struct serve_route *routes = serve_routes(&count);
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&text, size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "openapi", "3.1.0");
    rcpt_json_key(&json, "info");
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "title", "receiptd");
    rcpt_json_put_text(&json, "version", RCPT_VERSION);
    rcpt_json_put_text(&json, "description",
                       "Funnels and messages of receiptd. A later release may add members.");
    rcpt_json_end_object(&json);
    rcpt_json_key(&json, "paths");
    rcpt_json_begin_object(&json);
    for (size_t index = 0; index < count; index++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", SERVE_BASE, routes[index].path);
        rcpt_json_key(&json, path);
        rcpt_json_begin_object(&json);
        put_route(&json, &routes[index], config);
        rcpt_json_end_object(&json);
    }
    rcpt_json_end_object(&json);
    rcpt_json_key(&json, "components");
    rcpt_json_begin_object(&json);
    rcpt_json_key(&json, "schemas");
    serve_schemas_put(&json);
    put_schemes(&json);
    rcpt_json_end_object(&json);
    rcpt_json_end_object(&json);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

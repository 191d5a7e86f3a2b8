/* openapi.json says of paths, scopes and parameters what the table of routes does, in each
 * configuration. */
#include <jansson.h>

#include "config_helpers.h"
#include "serve/internal.h"

static json_t *document_of(const struct rcpt_config *config)
{
    size_t size;
    json_error_t error;
    char *text = serve_openapi(config, &size);
    json_t *document = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (document == NULL)
        fail_msg("line %d: %s", error.line, error.text);
    assert_null(strchr(text, '@')); /* all marks are gone */
    free(text);
    return document;
}

/* Takes `wanted`. */
static void check_equal(const json_t *found, json_t *wanted, const char *what)
{
    if (json_equal(found, wanted) != 1)
        fail_msg("%s: is %s, by the table %s", what, json_dumps(found, JSON_ENCODE_ANY),
                 json_dumps(wanted, JSON_ENCODE_ANY));
    json_decref(wanted);
}

static json_t *words_of(const char *text)
{
    json_t *words = json_array();
    for (; text[0] != '\0'; text += strspn(text, "|")) {
        size_t size = strcspn(text, "|");
        json_array_append_new(words, json_stringn(text, size));
        text += size;
    }
    return words;
}

static json_t *names_of(const struct rcpt_ladder *statuses)
{
    json_t *names = json_array();
    for (size_t index = 0; index < rcpt_ladder_entry_count(statuses); index++)
        json_array_append_new(names, json_string(rcpt_ladder_entry(statuses, index)->name));
    return names;
}

static json_t *initial_of(const struct serve_parameter *parameter)
{
    if (parameter->type == SERVE_INTEGER)
        return json_integer(strtoll(parameter->initial, NULL, 10));
    return parameter->type == SERVE_BOOLEAN ? json_boolean(strcmp(parameter->initial, "true") == 0)
                                            : json_string(parameter->initial);
}

static json_t *schema_of(const struct serve_parameter *parameter, const struct rcpt_config *config)
{
    static const char *const types[] = {[SERVE_TEXT] = "string",
                                        [SERVE_INTEGER] = "integer",
                                        [SERVE_CHOICE] = "string",
                                        [SERVE_BOOLEAN] = "boolean"};
    json_t *schema = json_pack("{s:s}", "type", types[parameter->type]);
    if (parameter->type == SERVE_INTEGER)
        json_object_update_new(schema, json_pack("{s:s,s:I,s:I}", "format", "int64", "minimum",
                                                 (json_int_t)parameter->least, "maximum",
                                                 (json_int_t)parameter->most));
    else if (parameter->type == SERVE_CHOICE)
        json_object_set_new(schema, "enum", words_of(parameter->words));
    else if (parameter->of_ladder)
        json_object_set_new(schema, "enum", names_of(config->ladder));
    else if (parameter->type == SERVE_TEXT)
        json_object_update_new(
            schema, json_pack("{s:i,s:i}", "minLength", 1, "maxLength", (int)SERVE_MOST_TEXT));
    if (parameter->pattern != NULL)
        json_object_set_new(schema, "pattern", json_string(parameter->pattern));
    if (parameter->initial != NULL)
        json_object_set_new(schema, "default", initial_of(parameter));
    return schema;
}

/* Where exactly one has to be given, and `count` are offered. */
static void check_one_of(const json_t *operation, const struct serve_route *route, size_t count,
                         const struct rcpt_config *config)
{
    char names[160], sentence[240];
    bool chooses = route->one_of && count > 1;
    assert_int_equal(json_object_get(operation, "x-exactly-one-of") != NULL, chooses);
    assert_int_equal(json_object_get(json_object_get(operation, "responses"), "400") != NULL,
                     chooses);
    if (!chooses)
        return;
    serve_routes_list_one_of(route, config, names, sizeof(names));
    snprintf(sentence, sizeof(sentence), "Takes exactly one of: %s. None or several: 400.", names);
    check_equal(json_object_get(operation, "description"), json_string(sentence), route->path);
    assert_int_equal(json_array_size(json_object_get(operation, "x-exactly-one-of")), count);
}

static void check_parameters(const json_t *operation, const struct serve_route *route,
                             const struct rcpt_config *config)
{
    const json_t *described = json_object_get(operation, "parameters");
    size_t count = 0, offered = 0;
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        offered += serve_parameter_is_on(&route->parameters[index], config);
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++) {
        const struct serve_parameter *parameter = &route->parameters[index];
        if (!serve_parameter_is_on(parameter, config))
            continue;
        json_t *found = json_array_get(described, count++);
        assert_true(json_string_length(json_object_get(found, "description")) > 0);
        json_object_del(found, "description");
        check_equal(found,
                    json_pack("{s:s,s:s,s:b,s:o}", "name", parameter->name, "in",
                              parameter->in_path ? "path" : "query", "required",
                              parameter->required || (route->one_of && offered == 1), "schema",
                              schema_of(parameter, config)),
                    route->path);
    }
    assert_int_equal(json_array_size(described), count);
    check_one_of(operation, route, count, config);
}

static const char *off_of(const struct serve_route *route)
{
    const char *off = route->off;
    for (size_t index = 0; off == NULL && index < SERVE_MOST_VALUES; index++)
        off = route->parameters[index].off;
    return off;
}

static void check_answers(const json_t *operation, const struct serve_route *route)
{
    const json_t *answers = json_object_get(operation, "responses");
    const json_t *content = json_object_get(json_object_get(answers, "200"), "content");
    const char *off = off_of(route);
    assert_int_equal(json_object_get(content, "text/event-stream") != NULL,
                     route->kind == SERVE_STREAM);
    assert_int_equal(json_object_get(content, "text/csv") != NULL, route->kind == SERVE_EXPORT);
    assert_int_equal(json_object_get(content, "application/json") != NULL,
                     route->kind != SERVE_STREAM);
    assert_int_equal(json_object_get(answers, "501") != NULL, off != NULL);
    if (off != NULL)
        check_equal(json_object_get(json_object_get(answers, "501"), "description"),
                    json_string(off), route->path);
    assert_non_null(json_object_get(answers, "default"));
}

static void check_route(const json_t *operation, const struct serve_route *route,
                        const struct rcpt_config *config)
{
    static const char *const scopes[] = {[SERVE_ANY] = "any",
                                         [SERVE_READ] = "read",
                                         [SERVE_SUPPORT] = "support",
                                         [SERVE_OPERATE] = "operate",
                                         [SERVE_SUPPRESSIONS] = "suppressions"};
    if (operation == NULL)
        fail_msg("%s is not described", route->path);
    check_equal(json_object_get(operation, "x-scope"), json_string(scopes[route->scope]),
                route->path);
    check_equal(json_object_get(operation, "x-by-link"), json_boolean(route->by_link), route->path);
    assert_int_equal(json_object_get(operation, "requestBody") != NULL,
                     route->method == RCPT_HTTP_POST);
    check_parameters(operation, route, config);
    check_answers(operation, route);
}

static void check_table(const char *text)
{
    struct rcpt_config *config = parse_good(text);
    json_t *document = document_of(config);
    const json_t *paths = json_object_get(document, "paths");
    size_t count;
    const struct serve_route *routes = serve_routes(&count);
    assert_int_equal(json_object_size(paths), count);
    for (size_t index = 0; index < count; index++) {
        char path[128];
        snprintf(path, sizeof(path), "%s%s", SERVE_BASE, routes[index].path);
        const json_t *methods = json_object_get(paths, path);
        const char *method = routes[index].method == RCPT_HTTP_POST ? "post" : "get";
        assert_int_equal(json_object_size(methods), 1);
        check_route(json_object_get(methods, method), &routes[index], config);
    }
    json_decref(document);
    rcpt_config_free(config);
}

static void the_description_is_that_of_the_table(void **state)
{
    (void)state;
    check_table(SMALLEST);
}

static void a_parameter_that_may_be_off_is_described_where_it_is_on(void **state)
{
    (void)state;
    check_table(SMALLEST "inbox: {columns: {customer_id: c}}\n");
}

static void statuses_are_those_of_the_configured_ladder(void **state)
{
    (void)state;
    check_table(SMALL_LADDER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_description_is_that_of_the_table),
        cmocka_unit_test(a_parameter_that_may_be_off_is_described_where_it_is_on),
        cmocka_unit_test(statuses_are_those_of_the_configured_ladder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Routes that a statement answers with one row: a parameter's own statement is asked first, then
 * the route's. Answers of costly ones are kept (kept.c). Called by serve.c. */
#include <stdlib.h>

#include "internal.h"

#define TOO_LONG "" /* as a body: the question was ended by serve.statement_timeout */

struct asked {
    struct serve_question question;
    const char *values[SERVE_MOST_VALUES + SERVE_MORE_VALUES];
};

/* The one of the parameter that is given, if it has one, or the route's. NULL: that one is off. */
static const char *statement_of(const struct serve_request *request, const char **off)
{
    const struct serve_route *route = request->route;
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++) {
        const struct serve_parameter *parameter = &route->parameters[index];
        if (request->values[index] == NULL || parameter->statement == NULL)
            continue;
        *off = parameter->off;
        return parameter->is_on(request->serve->settings.config) ? parameter->statement : NULL;
    }
    return route->statement;
}

/* The parameter that is asked first; NULL: there is none. */
static const struct serve_parameter *first_of(const struct serve_request *request)
{
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        if (request->route->parameters[index].first != NULL)
            return &request->route->parameters[index];
    return NULL;
}

/* Parameters of a statement that shows names. Returns how many. */
static int put_names(const struct serve_request *request, const char **values)
{
    const struct serve_names *names = request->serve->names;
    const char *campaign = serve_value(request, "campaign");
    if (campaign == NULL) {
        serve_names_all(names, values);
        return SERVE_NAMES_VALUES;
    }
    const struct serve_name *name = serve_names_find(names, campaign, request->organisation);
    values[0] = name->name;
    values[1] = name->day;
    return 2;
}

/* Makes the question that the request has to ask now. */
static void make_question(const struct serve_request *request, struct asked *asked)
{
    const char *off;
    const struct serve_parameter *first = request->settings != NULL ? first_of(request) : NULL;
    *asked = (struct asked){.values = {request->organisation}};
    asked->question = (struct serve_question){
        .statement = first != NULL ? first->first : statement_of(request, &off),
        .values = asked->values,
        .count = 1,
        .caller = request->caller,
        .costly = first != NULL || request->route->costly};
    if (first != NULL) {
        asked->values[1] = serve_value(request, "campaign");
        asked->values[2] = request->settings;
        asked->question.count = 3;
        return;
    }
    for (size_t index = 0; index < SERVE_MOST_VALUES; index++)
        if (request->route->parameters[index].name != NULL)
            asked->values[asked->question.count++] = request->values[index];
    if (request->route->named)
        asked->question.count += put_names(request, asked->values + asked->question.count);
}

static void ask(struct serve_request *request);

/* Answers with the failure, which is not kept. */
static void fail(struct serve_request *request, const struct rcpt_error *error)
{
    serve_answer_failure(request, error);
    serve_request_free(request);
}

/* Without a body, the object does not exist, or belongs to another organisation. The answer of a
 * first question replaces its parameter. */
static void go_on(struct serve_request *request, const char *body)
{
    const struct serve_parameter *first = request->settings != NULL ? first_of(request) : NULL;
    if (body != NULL && strcmp(body, TOO_LONG) == 0) {
        struct rcpt_error error = {.code = "57014"};
        fail(request, &error);
        return;
    }
    if (first != NULL) {
        request->settings = NULL;
        request->values[first - request->route->parameters] =
            body != NULL ? rcpt_text_terminated(&request->arena, rcpt_text_of(body)) : NULL;
        ask(request);
        return;
    }
    if (body == NULL)
        serve_answer_problem(request, 404, "not_found", "nothing of that name is here for you");
    else
        serve_answer_body(request, "application/json", "no-cache", body, strlen(body));
    serve_request_free(request);
}

static int64_t now_of(const struct serve_request *request)
{
    return (int64_t)uv_now(request->serve->settings.loop);
}

/* A time-out is kept like an answer, and counts as costly. */
static void on_row(void *context, const struct rcpt_pg_rows *rows, const struct rcpt_error *error)
{
    struct serve_request *request = context;
    const struct rcpt_serve *serve = request->serve;
    struct asked asked;
    bool late = error != NULL && strcmp(error->code, "57014") == 0;
    const char *body = late ? TOO_LONG : NULL;
    if (rows != NULL && rcpt_pg_rows_count(rows) > 0)
        body = rcpt_pg_rows_text(rows, 0, 0);
    make_question(request, &asked);
    if (asked.question.costly && body != NULL)
        serve_kept_put(serve->kept, &asked.question, body, serve_pool_took_ms(serve->pool),
                       now_of(request));
    if (rows != NULL || late)
        go_on(request, body);
    else
        fail(request, error);
}

/* While the database is away, kept answers are not used, because they would look current. */
static void ask(struct serve_request *request)
{
    const struct rcpt_serve *serve = request->serve;
    const char *kept = NULL;
    struct asked asked;
    make_question(request, &asked);
    if (asked.question.costly && serve_pool_is_up(serve->pool))
        kept = serve_kept_find(serve->kept, &asked.question, now_of(request));
    if (kept != NULL) {
        go_on(request, kept);
    } else if (!serve_ask(request->serve, &asked.question, on_row, request)) {
        fail(request, NULL);
    }
}

/* The parameter's value decides whether its statement is asked. */
static void choose_first(struct serve_request *request, const struct serve_parameter *first)
{
    const char **value = &request->values[first - request->route->parameters];
    const char *wanted = *value;
    *value = NULL;
    if (wanted == NULL || strcmp(wanted, "true") != 0)
        return;
    char *settings = request->route->settings(request->serve->settings.config);
    if (settings != NULL)
        request->settings = rcpt_text_terminated(&request->arena, rcpt_text_of(settings));
    free(settings);
}

/* Answers for routes and parameters that are off before any question. */
void serve_row_begin(struct serve_request *request)
{
    const struct serve_parameter *first = first_of(request);
    const char *off = NULL;
    if (statement_of(request, &off) == NULL) {
        serve_answer_problem(request, 501, "off", "%s", off);
        serve_request_free(request);
        return;
    }
    if (first != NULL)
        choose_first(request, first);
    ask(request);
}

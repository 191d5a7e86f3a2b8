/* Lists without an end: the recipients of a campaign, page after page by key, each asked for when the
 * client has taken most of the one before. No snapshot stays open meanwhile, so each page is as
 * new as its question. A list that cannot go on is cut off, never ended as if it were whole. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

#define PAGE_ROWS   "10000"
#define MOST_QUEUED (16u * 1024 * 1024) /* a page of the longest ids */
#define LOW_QUEUED  (128u * 1024)       /* below it the next page is asked for */
#define MOST_LISTS  16u
#define MOST_OF_ONE 4u  /* of one caller */
#define PATIENCE    100 /* ticks for which the database may be away */

struct serve_export {
    struct serve_export *next;
    struct serve_request *request;
    char *last; /* message of the page before; NULL: none yet */
    bool is_json, begun, any, asked, whole, failed, gone;
    unsigned refused; /* ticks in a row in which nothing could be asked */
};

/* Called from inside writing too, so it only notes; the tick frees. */
static void on_gone(void *context)
{
    struct serve_export *list = context;
    list->gone = true;
}

/* The headers go out with the first page, so that a question that fails before it is answered with a
 * problem and its status. */
static void begin_answer(struct serve_export *list)
{
    char headers[1024];
    snprintf(headers, sizeof(headers),
             "%sCache-Control: no-store\r\nContent-Disposition: attachment; "
             "filename=\"recipients.%s\"\r\n",
             serve_headers, list->is_json ? "json" : "csv");
    const char *first =
        list->is_json ? "{\"recipients\":[" : "message_id,status,status_at,flags,updated_at\r\n";
    const struct rcpt_http_answer answer = {
        .status = 200,
        .content_type = list->is_json ? "application/json" : "text/csv; charset=utf-8",
        .headers = headers,
        .body = first,
        .body_size = strlen(first)};
    list->begun = true;
    list->request->status = answer.status;
    rcpt_http_answer_begin(list->request->http, &answer, MOST_QUEUED, on_gone, list);
}

/* A page is a list without its brackets; in JSON a comma joins it to the one before. */
static void write_page(struct serve_export *list, const char *page)
{
    struct rcpt_http_request *http = list->request->http;
    if (list->is_json && list->any)
        rcpt_http_answer_write(http, ",", 1);
    list->any = true;
    rcpt_http_answer_write(http, page, strlen(page));
}

/* Columns of sql/serve/recipients. */
enum { RECIPIENTS_BODY, RECIPIENTS_LAST, RECIPIENTS_IS_CAMPAIGN, RECIPIENTS_IS_STATUS };

static bool is_true(const struct rcpt_pg_rows *rows, int column)
{
    const char *text = rcpt_pg_rows_text(rows, 0, column);
    return text != NULL && strcmp(text, "true") == 0;
}

/* An empty list would say that the campaign has no such recipients. False: answered. */
static bool is_a_list(struct serve_export *list, const struct rcpt_pg_rows *rows)
{
    if (!is_true(rows, RECIPIENTS_IS_STATUS))
        serve_answer_problem(list->request, 400, "invalid_parameter",
                             "the parameter status names none of the ladder");
    else if (!is_true(rows, RECIPIENTS_IS_CAMPAIGN))
        serve_answer_problem(list->request, 404, "not_found",
                             "nothing of that name is here for you");
    else
        return true;
    list->failed = true;
    return false;
}

static void on_answer(void *context, const struct rcpt_pg_rows *rows,
                      const struct rcpt_error *error)
{
    struct serve_export *list = context;
    list->asked = false;
    if (rows == NULL) {
        /* Before the first page there is still time to say so. */
        if (!list->begun)
            serve_answer_failure(list->request, error);
        list->failed = true;
        return;
    }
    if (!list->begun && !is_a_list(list, rows))
        return;
    const char *page = rcpt_pg_rows_text(rows, 0, RECIPIENTS_BODY);
    const char *last = rcpt_pg_rows_text(rows, 0, RECIPIENTS_LAST);
    if (!list->begun)
        begin_answer(list);
    if (page != NULL && !list->gone)
        write_page(list, page);
    free(list->last);
    list->last = last != NULL ? rcpt_strdup(last) : NULL;
    list->whole = last == NULL;
}

static void ask(struct serve_export *list)
{
    const struct serve_request *request = list->request;
    const char *const values[] = {request->organisation,
                                  serve_value(request, "campaign"),
                                  serve_value(request, "status"),
                                  list->is_json ? "json" : "csv",
                                  list->last,
                                  PAGE_ROWS};
    const struct serve_question question = {.statement = "recipients",
                                            .values = values,
                                            .count = 6,
                                            .caller = request->caller,
                                            .costly = true};
    list->asked = serve_ask(request->serve, &question, on_answer, list);
    list->refused = list->asked ? 0 : list->refused + 1;
}

/* Frees the list; what the client has got is whole or cut off. */
static void end(struct serve_export *list)
{
    struct rcpt_http_request *http = list->request->http;
    if (list->begun && list->whole) {
        if (list->is_json)
            rcpt_http_answer_write(http, "]}", 2);
        rcpt_http_answer_end(http);
    } else if (list->begun) {
        rcpt_http_answer_abort(http);
    } else if (!list->failed) {
        serve_answer_failure(list->request, NULL);
    }
    free(list->last);
    serve_request_free(list->request);
    free(list);
}

void serve_exports_tick(struct rcpt_serve *serve)
{
    struct serve_export **link = &serve->exports;
    while (*link != NULL) {
        struct serve_export *list = *link;
        bool over = list->gone || list->whole || list->failed || serve->stopping ||
                    list->refused > PATIENCE;
        if (over && !list->asked) {
            *link = list->next;
            end(list);
            continue;
        }
        if (!list->asked && rcpt_http_answer_queued(list->request->http) < LOW_QUEUED)
            ask(list);
        link = &list->next;
    }
}

void serve_export_begin(struct serve_request *request)
{
    struct rcpt_serve *serve = request->serve;
    size_t count = 0, of_caller = 0;
    for (const struct serve_export *each = serve->exports; each != NULL; each = each->next) {
        bool goes_on = !each->whole && !each->failed && !each->gone; /* the tick ends the others */
        count += goes_on;
        of_caller += goes_on && each->request->caller == request->caller;
    }
    if (of_caller >= MOST_OF_ONE || count >= MOST_LISTS || !serve_pool_is_up(serve->pool)) {
        if (of_caller >= MOST_OF_ONE)
            serve_answer_problem(request, 429, "too_many",
                                 "as many lists as one caller may have are under way");
        else if (count >= MOST_LISTS)
            serve_answer_problem(request, 503, "too_many", "as many lists as may be are under way");
        else
            serve_answer_problem(request, 503, "database_busy", "the database is away");
        serve_request_free(request);
        return;
    }
    struct serve_export *list = rcpt_calloc(1, sizeof(*list));
    const char *format = serve_value(request, "format");
    list->request = request;
    list->is_json = format != NULL && strcmp(format, "json") == 0;
    list->next = serve->exports;
    serve->exports = list;
    ask(list);
}

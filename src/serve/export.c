/* Lists without an end: the recipients of a campaign, page after page by key, each asked for when
 * the client has taken most of the one before. No snapshot stays open meanwhile, so each page is as
 * new as its question. A list that cannot go on is cut off, and never looks complete. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/base/json.h"

#define PAGE_ROWS   "10000"
#define MOST_QUEUED (16u * 1024 * 1024) /* a page of the longest ids */
#define LOW_QUEUED  (128u * 1024)       /* below it the next page is asked for */
#define MOST_LISTS  16u
#define MOST_OF_ONE 4u  /* of one caller */
#define PATIENCE    100 /* ticks for which the database may be away */
#define MOST_NAME   60  /* characters of a name in the name of a file */
#define CSV_HEAD                                                                                   \
    "message_id,status,status_at,flags,updated_at,customer_id,channel,campaign_id,campaign_"       \
    "name\r\n"

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

/* The list goes into an object that names its content; this is the object's beginning, which the
 * caller frees. */
static char *object_begin(const struct serve_export *list)
{
    const struct serve_request *request = list->request;
    const char *campaign = serve_value(request, "campaign");
    struct rcpt_json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    rcpt_json_begin_object(&json);
    rcpt_json_put_text(&json, "campaign_id", campaign);
    rcpt_json_put_text(
        &json, "name",
        serve_names_find(request->serve->names, campaign, request->organisation)->name);
    fputs(",\"recipients\":[", out);
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

/* Characters that cannot be seen or turn the order of the text, and some signs beside them. */
static bool is_sign(const char *text)
{
    static const char *const blocks[] = {"\xC2",         "\xD8\x9C", "\xE1\xA0\x8E",
                                         "\xE2\x80",     "\xE2\x81", "\xE3\x80\x80",
                                         "\xEF\xBB\xBF", "\xEF\xBF", "\xF3\xA0"};
    for (size_t index = 0; index < RCPT_COUNT_OF(blocks); index++)
        if (strncmp(text, blocks[index], strlen(blocks[index])) == 0)
            return true;
    return false;
}

/* Keeps letters and digits of all scripts, and . _ -, but no dot in front. Other characters in
 * between become one hyphen, because systems have their own meaning for them. */
static void put_words(FILE *out, const char *text)
{
    bool gap = false;
    unsigned used = 0;
    for (size_t size; *text != '\0' && used < MOST_NAME; text += size) {
        size = rcpt_utf8_sequence(text, strlen(text));
        bool is_word = size > 1 ? !is_sign(text)
                                : isalnum((unsigned char)*text) || *text == '_' ||
                                      ((*text == '.' || *text == '-') && used > 0);
        if (is_word && gap && used > 0)
            fputc('-', out);
        if (is_word)
            fwrite(text, 1, size, out);
        used += is_word;
        gap = !is_word;
    }
}

/* "Spring-sale-11-recipients.csv": after the campaign, since people keep many such files. Once in
 * ASCII, and once as it is (RFC 6266). */
static void put_disposition(const struct serve_export *list, FILE *out)
{
    const struct serve_request *request = list->request;
    const char *campaign = serve_value(request, "campaign"),
               *status = serve_value(request, "status");
    const char *name =
        serve_names_find(request->serve->names, campaign, request->organisation)->name;
    char *text = NULL;
    size_t size = 0;
    FILE *words = rcpt_open_memory(&text, &size);
    if (name != NULL) {
        put_words(words, name);
        fputc('-', words);
    }
    put_words(words, campaign);
    fprintf(words, "-%s.%s", status != NULL ? status : "recipients",
            list->is_json ? "json" : "csv");
    RCPT_ASSERT(fclose(words) == 0);
    fputs("Content-Disposition: attachment; filename=\"", out);
    for (const char *at = text; *at != '\0'; at++)
        if (((unsigned char)*at & 0xC0) != 0x80) /* one for each character */
            fputc((unsigned char)*at < 0x80 ? *at : '_', out);
    fputs("\"; filename*=UTF-8''", out);
    for (const char *at = text; *at != '\0'; at++)
        fprintf(out, (unsigned char)*at < 0x80 ? "%c" : "%%%02X", (unsigned char)*at);
    fputs("\r\n", out);
    free(text);
}

/* The headers go out with the first page, so that a question that fails before it is answered with
 * a problem and its status. */
static void begin_answer(struct serve_export *list)
{
    char *headers = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&headers, &size);
    fprintf(out, "%sCache-Control: no-store\r\n", serve_headers);
    put_disposition(list, out);
    RCPT_ASSERT(fclose(out) == 0);
    char *first = list->is_json ? object_begin(list) : rcpt_strdup(CSV_HEAD);
    const struct rcpt_http_answer answer = {
        .status = 200,
        .content_type = list->is_json ? "application/json" : "text/csv; charset=utf-8",
        .headers = headers,
        .body = first,
        .body_size = strlen(first)};
    list->begun = true;
    list->request->status = answer.status;
    rcpt_http_answer_begin(list->request->http, &answer, MOST_QUEUED, on_gone, list);
    free(first);
    free(headers);
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
        /* Before the first page the failure can still be answered. */
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
    const char *campaign = serve_value(request, "campaign");
    const char *const values[] = {
        request->organisation,
        campaign,
        serve_value(request, "status"),
        list->is_json ? "json" : "csv",
        list->last,
        PAGE_ROWS,
        serve_names_find(request->serve->names, campaign, request->organisation)->name};
    const struct serve_question question = {.statement = "recipients",
                                            .values = values,
                                            .count = 7,
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

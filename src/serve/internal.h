/* Shared by the files of src/serve. No file outside includes this.
 *
 * serve.c     settings, life, and the way of a request: host, route, access, parameters, answer
 * routes.c    the table of routes: paths, scopes, parameters; the route of a request
 * openapi.c   openapi.json, the description of the routes, for this build and configuration
 * access.c    the caller: token, signed link, proxy
 * tokens.c    look-ups of tokens, many at once
 * link.c      signed links and hashes of tokens
 * pool.c      questions to the database: a few connections
 * queue.c     questions that wait for a connection: callers take turns
 * kept.c      answers of costly questions, kept for a while
 * stats.c     counts for the metrics
 * row.c       routes that a statement answers with one row
 * answer.c    the form of answers: headers, problems, ETag, gzip
 * export.c    lists without an end: page after page, as the client takes them
 * redrive.c   dead letters are tried again: the only request that writes
 * stream.c    server-sent events: one poll for all viewers
 * stream_text.c  the text of events
 * viewers.c   viewers of streams, and their audiences
 * page.c      the embedded page
 */
#ifndef RECEIPTD_SERVE_INTERNAL_H
#define RECEIPTD_SERVE_INTERNAL_H

#include <stdatomic.h>

#include "receiptd/base/arena.h"
#include "receiptd/base/buffer.h"
#include "receiptd/base/log.h"
#include "receiptd/base/text.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/postgres/statements.h"
#include "receiptd/serve/serve.h"

#define SERVE_BASE        "/api/v1"
#define SERVE_MOST_VALUES 6u
#define SERVE_MOST_TEXT   1000u
#define SERVE_MORE_VALUES 4u    /* of a statement, beside its route's parameters */
#define SERVE_QUEUE       2048u /* questions that wait for a connection; more get 503 */

/* ---- routes ---- */
enum serve_scope {
    SERVE_ANY = 0,
    SERVE_READ = 1,
    SERVE_SUPPORT = 2,
    SERVE_OPERATE = 4,
    SERVE_SUPPRESSIONS = 8
};

enum serve_type {
    SERVE_TEXT,    /* 1 to SERVE_MOST_TEXT characters of UTF-8 */
    SERVE_INTEGER, /* between least and most */
    SERVE_CHOICE,  /* one of `words` */
    SERVE_BOOLEAN, /* likewise: true|false */
};

struct serve_parameter {
    const char *name; /* NULL: behind the last */
    enum serve_type type;
    bool in_path, required;
    const char *words;   /* separated by | */
    const char *pattern; /* a regular expression that POSIX and JSON Schema read alike; NULL: any */
    bool of_ladder;      /* a name of the ladder; the statement knows which there are */
    const char *initial; /* NULL: absent means NULL */
    int64_t least, most;
    const char *statement; /* given, it has this statement answer, where `is_on`; otherwise 501 */
    /* If the value is "true", this costly statement (organisation, campaign, settings) is asked
     * first, and its answer replaces the value. Otherwise, or without settings, the value is NULL.
     */
    const char *first;
    bool (*is_on)(const struct rcpt_config *config);
    const char *off;
};

enum serve_kind {
    SERVE_ROW,     /* row.c: its statement answers with one row, whose first column is the body */
    SERVE_EXPORT,  /* export.c */
    SERVE_STREAM,  /* stream.c */
    SERVE_REDRIVE, /* redrive.c */
    SERVE_ME,      /* who asks */
    SERVE_OPENAPI, /* openapi.c */
};

/* The parameters of its statement: the organisation, those of the table in order, and names of
 * campaigns. */
struct serve_route {
    enum rcpt_http_method method;
    const char *path; /* "/campaigns/{campaign}/funnel"; its first part is the tag */
    enum serve_scope scope;
    bool by_link; /* a link to its campaign will do */
    bool one_of;  /* exactly one of its parameters has to be given */
    enum serve_kind kind;
    const char *statement;
    bool costly; /* may take long: not on all connections at once, and its answer is kept */
    bool (*is_on)(const struct rcpt_config *config); /* NULL: always; otherwise 501, too */
    const char *off;
    struct serve_parameter parameters[SERVE_MOST_VALUES];
    char *(*settings)(const struct rcpt_config *config); /* of what is asked first; freed */
    bool named; /* name and day of its campaign follow, or those of all (serve_names_all) */
};

/* "q, customer": of one_of, those that this configuration offers. */
void serve_routes_list_one_of(const struct serve_route *route, const struct rcpt_config *config,
                              char *names, size_t size);
/* Whether this configuration has the parameter; one that is off is answered with 501. */
bool serve_parameter_is_on(const struct serve_parameter *parameter,
                           const struct rcpt_config *config);
/* The table; `count` rows. */
const struct serve_route *serve_routes(size_t *count);

struct serve_request {
    struct rcpt_serve *serve;
    struct rcpt_http_request *http;
    const struct serve_route *route; /* NULL: none, or the page */
    bool is_page;
    int status;       /* that it was answered with; 0: not yet */
    unsigned methods; /* that the path takes */
    uint64_t began_ns;
    struct rcpt_arena arena;
    const char *values[SERVE_MOST_VALUES]; /* of the parameters, decoded; NULL: absent */
    const char *organisation;              /* NULL: all */
    uint64_t caller;      /* key of the caller, for shares of the database: serve_caller() */
    const char *settings; /* while what comes first is asked; otherwise NULL */
    unsigned scopes;
    const char *token;    /* name of the token in the Authorization header; NULL: another way */
    const char *campaign; /* that a link is for; NULL: there is none */
    int64_t link_ends_s;  /* likewise */
};

/* Finds the route of `path` (below the base), and the methods of the path. 0, or the status: 404,
 * 405. */
int serve_routes_find(struct serve_request *request, enum rcpt_http_method method,
                      struct rcpt_http_text path);
/* Reads path and query into `values`. False: `problem` names the fault. */
RCPT_MUST_CHECK bool serve_routes_read(struct serve_request *request, char problem[256]);
/* The value of a query's name, decoded; NULL: it is not there, or not well-formed. */
char *serve_query_value(struct rcpt_arena *arena, struct rcpt_http_text query, const char *name);
/* The value of a parameter by its name; NULL: absent. */
const char *serve_value(const struct serve_request *request, const char *name);
/* Call once the request is answered: counts it, and frees its memory. */
void serve_request_free(struct serve_request *request);

/* With the parameters and statuses that this configuration has; the caller frees it. */
char *serve_openapi(const struct rcpt_config *config, size_t *size);

/* ---- access.c ---- */
/* Finds out who asks, then calls when_admitted of struct rcpt_serve, or answers. */
void serve_access(struct serve_request *request);
/* The key of a caller: a token's hash, a link, an organisation of a proxy, an address. */
uint64_t serve_caller(const char *kind, struct rcpt_text who);

/* ---- tokens.c ---- */
struct serve_tokens;
struct serve_tokens *serve_tokens_new(struct rcpt_serve *serve);
void serve_tokens_free(struct serve_tokens *tokens); /* with no look-up waiting */
/* Finds the token, then calls when_admitted, or answers. */
void serve_tokens_ask(struct serve_request *request, struct rcpt_text token);
void serve_tokens_tick(struct serve_tokens *tokens);
unsigned serve_tokens_waiting(const struct serve_tokens *tokens); /* that are not asked yet */
bool serve_tokens_are_idle(const struct serve_tokens *tokens);

/* ---- kept.c ---- */
struct serve_question;
struct serve_kept;
struct serve_kept *serve_kept_new(void);
void serve_kept_free(struct serve_kept *kept);
/* The answer to this question that is kept, until the next call; NULL: there is none. */
const char *serve_kept_find(const struct serve_kept *kept, const struct serve_question *question,
                            int64_t now_ms);
/* Keeps the answer for ten times as long as the question took, if that was long. */
void serve_kept_put(struct serve_kept *kept, const struct serve_question *question,
                    const char *answer, int64_t took_ms, int64_t now_ms);

/* ---- pool.c ---- */
struct serve_pool;
/* `rows` NULL: there is no answer, for the reason in `error`. */
typedef void (*serve_on_answer)(void *context, const struct rcpt_pg_rows *rows,
                                const struct rcpt_error *error);
struct serve_pool *serve_pool_new(struct rcpt_serve *serve);
struct serve_question {
    const char *statement;
    const char *const *values;
    int count;
    uint64_t caller; /* whose turn it takes */
    bool costly;     /* it leaves a connection to the others */
};
#define SERVE_CALLER_TOKENS 1u /* callers that are no readers */
#define SERVE_CALLER_STREAM 2u
/* Texts are copied. False: the database is away, or too many wait; on_answer is not called. */
RCPT_MUST_CHECK bool serve_ask(struct rcpt_serve *serve, const struct serve_question *question,
                               serve_on_answer on_answer, void *context);
int64_t serve_pool_took_ms(const struct serve_pool *pool); /* the question that is answered now */
bool serve_pool_is_up(const struct serve_pool *pool);
bool serve_pool_is_idle(const struct serve_pool *pool);
void serve_pool_tick(struct serve_pool *pool); /* gives up what has waited for long */
void serve_pool_apply_config(struct serve_pool *pool);
void serve_pool_close(struct serve_pool *pool); /* calls when_part_closed */
struct serve_pool_figures {
    unsigned waiting, lines, up, busy;
};
struct serve_pool_figures serve_pool_figures(const struct serve_pool *pool);

/* ---- session.c ---- */
/* Settings that all reading connections share; outage, statements and callbacks are the caller's.
 */
struct rcpt_pg_settings serve_pg_settings(struct rcpt_serve *serve, const char *name);
const char *serve_dsn(const struct rcpt_config *config);

/* ---- names.c ---- */
#define SERVE_NAMES_VALUES 3u
struct serve_name {
    char *name, *day; /* NULL: the platform's view does not say it */
};
struct serve_names;
/* NULL: serve.campaigns is not set; the others take it. */
struct serve_names *serve_names_new(struct rcpt_serve *serve);
/* Valid until the loop turns. */
const struct serve_name *serve_names_find(const struct serve_names *names, const char *campaign,
                                          const char *organisation);
/* Ids, names and days of all campaigns as arrays of SQL, valid until the loop turns; NULL: nothing
 * is known. */
void serve_names_all(const struct serve_names *names, const char *values[SERVE_NAMES_VALUES]);
void serve_names_tick(struct serve_names *names);
void serve_names_apply_config(struct serve_names *names);
/* Not NULL. It is freed when on_closed is called. */
void serve_names_close(struct serve_names *names, void (*on_closed)(struct rcpt_serve *serve));

/* ---- stats.c ---- */
struct serve_counts;
struct serve_counts *serve_counts_new(void);
void serve_counts_add(const struct serve_request *request);
void serve_observe(struct rcpt_serve_histogram *histogram, uint64_t since_ns);

/* ---- answer.c ---- */
extern const char serve_headers[]; /* of every answer */
/* `code` is a word for programs: docs/serve.md lists them. */
void serve_answer_problem(struct serve_request *request, int status, const char *code,
                          const char *format, ...) RCPT_PRINTF(4, 5);
/* Answers a question that failed, or could not be asked (`error` NULL). */
void serve_answer_failure(struct serve_request *request, const struct rcpt_error *error);
/* With ETag, 304 and gzip. `caching` is the value of Cache-Control. */
void serve_answer_body(struct serve_request *request, const char *type, const char *caching,
                       const void *body, size_t size);

/* ---- row.c, export.c, redrive.c, stream.c, page.c ---- */
void serve_row_begin(struct serve_request *request); /* takes the request */
struct serve_export;
void serve_export_begin(struct serve_request *request); /* takes the request */
void serve_exports_tick(struct rcpt_serve *serve);
void serve_redrive_begin(struct serve_request *request); /* takes the request */
bool serve_redrive_is_on(const struct rcpt_config *config);
/* Whether a redrive by this caller would be accepted. */
bool serve_redrive_admits(const struct serve_request *request);
struct serve_stream;
struct serve_stream *serve_stream_new(struct rcpt_serve *serve);
void serve_stream_add(struct serve_request *request); /* takes the request */
void serve_stream_tick(struct serve_stream *stream);
size_t serve_stream_count(const struct serve_stream *stream); /* viewers */
/* The database answers again, or no longer. */
void serve_stream_health(struct serve_stream *stream);
void serve_stream_end(struct serve_stream *stream); /* of all viewers */
void serve_stream_free(struct serve_stream *stream);
/* False: there is no such file. */
bool serve_page_answer(struct serve_request *request, struct rcpt_http_text path);
struct serve_file {
    const char *name, *text;
    size_t size;
};
/* The files of the page, and openapi.json. Made by the build, ends with a NULL name. */
extern const struct serve_file serve_files[];

/* ---- serve.c ---- */
#define SERVE_TICK_MS       100
#define SERVE_MOST_REDRIVES 2u /* threads of the pool are four, and others need them, too */
struct rcpt_serve {
    struct rcpt_serve_settings settings;
    struct rcpt_http_server *http; /* NULL: closed */
    struct serve_pool *pool;
    struct serve_tokens *tokens;
    struct serve_kept *kept;
    struct serve_names *names; /* NULL: there are none */
    struct serve_stream *stream;
    struct serve_export *exports; /* all that are under way */
    uv_timer_t tick;
    char *openapi;
    size_t openapi_size;
    bool stopping, closing, is_local;
    struct serve_counts *counts; /* of requests */
    struct rcpt_serve_stats stats;
    atomic_bool ending;                      /* for workers: stop at the next page */
    unsigned redrives;                       /* under way */
    uint64_t redrivers[SERVE_MOST_REDRIVES]; /* whose they are; 0: no one's */
    unsigned open;                           /* parts that have to say that they are closed */
    /* Callbacks of serve.c for the files below it: the caller is known; the database begins or
     * ceases to answer; a part has closed. */
    void (*when_admitted)(struct serve_request *request);
    void (*when_pool_changed)(struct rcpt_serve *serve);
    void (*when_part_closed)(struct rcpt_serve *serve);
};

#endif

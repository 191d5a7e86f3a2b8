/* Questions to the database: a queue, and a few connections with one question each at a time. A
 * question that has been asked is answered once, also when its connection is lost. Who asks what
 * waits already gets the same answer: a change has a thousand viewers ask the same at once. One that
 * was sent is not joined, since it may not see that change. Called by access.c, serve.c, export.c
 * and stream.c. */
#include "internal.h"

#include <stdlib.h>

#include "postgres/statements.h"

#define MOST_CONNECTIONS 8u
#define MOST_PARAMETERS  (SERVE_MOST_VALUES + 2)
#define DROP_AFTER_MS    2000 /* a question that has waited longer is not asked any more */

struct asker {
    struct asker *next;
    serve_on_answer on_answer;
    void *context;
};

struct question {
    struct question *next;
    struct serve_pool *pool;
    struct line *line; /* NULL: it waits */
    const char *statement;
    char *values[MOST_PARAMETERS];
    int count;
    int64_t came_ms;
    uint64_t came_ns, sent_ns;
    uint64_t hash;        /* of statement and values */
    struct asker *askers; /* freed as they are answered */
};

struct line { /* a connection */
    struct serve_pool *pool;
    struct rcpt_pg *pg;
    bool up, busy;
    char name[24];
};

struct serve_pool {
    struct rcpt_serve *serve;
    struct line lines[MOST_CONNECTIONS];
    unsigned line_count, up_count, in_flight, closed_count;
    struct question *first, **last;
    unsigned waiting;
    struct rcpt_outage outage;
    bool closing;
};

/* The values are copies, since the request may end before its question is sent. */
static void free_question(struct question *question)
{
    for (int index = 0; index < question->count; index++)
        free(question->values[index]);
    free(question);
}

/* Each once; the question is in no queue by now, so an asker may ask the next one. */
static void answer(struct question *question, const struct rcpt_pg_rows *rows,
                   const struct rcpt_error *error)
{
    while (question->askers != NULL) {
        struct asker asker = *question->askers;
        free(question->askers);
        question->askers = asker.next;
        asker.on_answer(asker.context, rows, error);
    }
}

/* ---- asking ---- */

static void send_waiting(struct serve_pool *pool);

/* The answer may ask the next question: the line is free by then. */
static void on_result(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct question *question = context;
    struct serve_pool *pool = question->pool;
    struct line *line = question->line;
    line->busy = false;
    pool->in_flight--;
    serve_observe(&pool->serve->stats.question_seconds, question->sent_ns);
    answer(question, error == NULL && row_count == 1 ? rows[0] : NULL, error);
    /* A missing table or right does not come back on a session that has prepared without it. */
    if (error != NULL && error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0' &&
        rcpt_pg_is_ready(line->pg)) {
        rcpt_log_failure(RCPT_LOG_WARN, "serve", error, "the question \"%s\" failed",
                         question->statement);
        rcpt_pg_reconnect(line->pg, error);
    }
    free_question(question);
    send_waiting(pool);
}

/* From the head of the queue: questions are asked in the order in which they came. */
static struct question *take_first(struct serve_pool *pool)
{
    struct question *question = pool->first;
    pool->first = question->next;
    if (pool->first == NULL)
        pool->last = &pool->first;
    pool->waiting--;
    return question;
}

/* Answered without rows and without an error: the asker says 503. */
static void drop(struct serve_pool *pool)
{
    struct question *question = take_first(pool);
    pool->serve->stats.questions_dropped++;
    answer(question, NULL, NULL);
    free_question(question);
}

/* One question at a time for each connection, so a slow one delays no other. */
static void send_by(struct line *line, struct question *question)
{
    const struct rcpt_pg_query query = {
        .statement = question->statement,
        .params = {.count = question->count, .values = (const char *const *)question->values}};
    line->busy = true;
    line->pool->in_flight++;
    question->line = line;
    question->sent_ns = uv_hrtime();
    serve_observe(&line->pool->serve->stats.wait_seconds, question->came_ns);
    rcpt_pg_submit(line->pg, &query, 1, on_result, question);
}

/* In order, as far as connections are free. */
static void send_waiting(struct serve_pool *pool)
{
    for (unsigned index = 0; index < pool->line_count && pool->first != NULL; index++) {
        struct line *line = &pool->lines[index];
        if (line->up && !line->busy && rcpt_pg_is_ready(line->pg))
            send_by(line, take_first(pool));
    }
}

static bool same(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

static uint64_t hash_of(const char *statement, const char *const *values, int count)
{
    uint64_t hash = rcpt_text_hash(rcpt_text_of(statement));
    for (int index = 0; index < count; index++)
        hash =
            hash * 31 + (values[index] != NULL ? rcpt_text_hash(rcpt_text_of(values[index])) : 0);
    return hash;
}

/* The question that waits and is the same, its organisation, too; NULL: there is none. */
static struct question *find_waiting(const struct serve_pool *pool, const char *statement,
                                     const char *const *values, int count, uint64_t hash)
{
    for (struct question *each = pool->first; each != NULL; each = each->next) {
        bool equal = each->hash == hash && each->count == count && same(each->statement, statement);
        for (int index = 0; equal && index < count; index++)
            equal = same(each->values[index], values[index]);
        if (equal)
            return each;
    }
    return NULL;
}

static struct question *add_waiting(struct serve_pool *pool, const char *statement,
                                    const char *const *values, int count, uint64_t hash)
{
    struct question *question = rcpt_calloc(1, sizeof(*question));
    *question = (struct question){.pool = pool,
                                  .statement = statement,
                                  .count = count,
                                  .hash = hash,
                                  .came_ms = (int64_t)uv_now(pool->serve->settings.loop),
                                  .came_ns = uv_hrtime()};
    for (int index = 0; index < count; index++)
        question->values[index] = values[index] != NULL ? rcpt_strdup(values[index]) : NULL;
    *pool->last = question;
    pool->last = &question->next;
    pool->waiting++;
    return question;
}

bool serve_ask(struct rcpt_serve *serve, const char *statement, const char *const *values,
               int count, serve_on_answer on_answer, void *context)
{
    struct serve_pool *pool = serve->pool;
    RCPT_ASSERT(count <= (int)MOST_PARAMETERS);
    uint64_t hash = hash_of(statement, values, count);
    bool may = pool->up_count > 0 && !pool->closing;
    struct question *question = may ? find_waiting(pool, statement, values, count, hash) : NULL;
    if (!may || (question == NULL && pool->waiting >= SERVE_QUEUE)) {
        serve->stats.questions_dropped++;
        return false;
    }
    if (question == NULL)
        question = add_waiting(pool, statement, values, count, hash);
    struct asker *asker = rcpt_calloc(1, sizeof(*asker));
    *asker = (struct asker){question->askers, on_answer, context};
    question->askers = asker;
    send_waiting(pool);
    return true;
}

/* Who has waited for so long has gone, or will ask again. */
void serve_pool_tick(struct serve_pool *pool)
{
    int64_t now = (int64_t)uv_now(pool->serve->settings.loop);
    while (pool->first != NULL && now - pool->first->came_ms > DROP_AFTER_MS)
        drop(pool);
}

/* ---- connections ---- */

/* The first connection that is up ends the outage for all. */
static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct line *line = context;
    (void)pg;
    line->up = true;
    if (line->pool->up_count++ == 0)
        serve_pool_changed(line->pool->serve);
    send_waiting(line->pool);
}

/* Without any connection nothing waits: the answer is 503 at once. */
static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct line *line = context;
    struct serve_pool *pool = line->pool;
    (void)pg;
    (void)error; /* logged by the connection */
    if (!line->up)
        return;
    line->up = false;
    if (--pool->up_count > 0)
        return;
    while (pool->first != NULL)
        drop(pool);
    serve_pool_changed(pool->serve);
}

/* Without a connection string of its own it reads as the daemon does. */
static const char *dsn_of(const struct rcpt_config *config)
{
    return config->serve.dsn != NULL ? config->serve.dsn : config->postgres.dsn;
}

/* Sessions are read-only, and a statement is cancelled at its timeout: a reader cannot hold anything
 * up for long. */
static void open_line(struct line *line, unsigned number)
{
    struct rcpt_serve *serve = line->pool->serve;
    const struct rcpt_config *config = serve->settings.config;
    snprintf(line->name, sizeof(line->name), "serve-%u", number);
    struct rcpt_pg_settings settings = {
        .loop = serve->settings.loop,
        .name = line->name,
        .instance = serve->settings.instance,
        .dsn = dsn_of(config),
        .schema = config->postgres.schema,
        .read_only = true,
        .lock_timeout_ms = (int)config->serve.statement_timeout_ms,
        .statement_timeout_ms = (int)config->serve.statement_timeout_ms,
        .connect_timeout_ms = (int)config->postgres.connect_timeout_ms,
        .retry_min_ms = (int)config->postgres.retry_min_ms,
        .retry_max_ms = (int)config->postgres.retry_max_ms,
        .outage = &line->pool->outage,
        .context = line,
        .on_ready = on_ready,
        .on_down = on_down,
    };
    /* The inbox of our own has created_at; a table of the platform's only where a key names it. */
    bool dated = config->inbox.table == NULL || config->inbox.created_at != NULL;
    settings.statements = rcpt_serve_statements(
        config->inbox.customer_id, dated ? "created_at" : "message_id", &settings.statement_count);
    line->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(line->pg);
}

struct serve_pool *serve_pool_new(struct rcpt_serve *serve)
{
    struct serve_pool *pool = rcpt_calloc(1, sizeof(*pool));
    pool->serve = serve;
    pool->last = &pool->first;
    pool->line_count = serve->settings.config->serve.connections;
    for (unsigned index = 0; index < pool->line_count; index++) {
        pool->lines[index].pool = pool;
        open_line(&pool->lines[index], index);
    }
    return pool;
}

bool serve_pool_is_up(const struct serve_pool *pool)
{
    return pool->up_count > 0;
}

struct rcpt_serve_stats rcpt_serve_stats(const struct rcpt_serve *serve)
{
    struct rcpt_serve_stats stats = serve->stats;
    stats.viewers = serve_stream_count(serve->stream);
    stats.redrives = serve->redrives;
    stats.questions_waiting = serve->pool->waiting;
    stats.lines = serve->pool->line_count;
    stats.lines_up = serve->pool->up_count;
    stats.lines_busy = serve->pool->in_flight;
    return stats;
}

bool serve_pool_is_idle(const struct serve_pool *pool)
{
    return pool->in_flight == 0 && pool->first == NULL;
}

/* A new password takes effect with the next connection. */
void serve_pool_apply_config(struct serve_pool *pool)
{
    for (unsigned index = 0; index < pool->line_count; index++)
        rcpt_pg_set_dsn(pool->lines[index].pg, dsn_of(pool->serve->settings.config));
}

/* ---- the end ---- */

static void on_closed(void *context)
{
    struct serve_pool *pool = context;
    struct rcpt_serve *serve = pool->serve;
    if (++pool->closed_count < pool->line_count)
        return;
    free(pool);
    serve_part_closed(serve);
}

/* Questions in flight are answered as lost on the way. */
void serve_pool_close(struct serve_pool *pool)
{
    pool->closing = true;
    while (pool->first != NULL)
        drop(pool);
    for (unsigned index = 0; index < pool->line_count; index++)
        rcpt_pg_close(pool->lines[index].pg, on_closed, pool);
}

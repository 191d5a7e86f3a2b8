/* Questions to the database: a few connections with one question each at a time, and a queue of
 * those that wait for one (queue.h). Neither one caller nor costly questions ever have all
 * connections, so others are answered meanwhile. A question that has been asked is answered once,
 * also when its connection is lost. Called by tokens.c, serve.c, export.c and stream.c. */
#include <stdlib.h>

#include "queue.h"

#define MOST_CONNECTIONS 8u
#define DROP_AFTER_MS    2000 /* a question that has waited longer is dropped */

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
    struct queue queue;
    int64_t took_ms; /* of the last question */
    struct rcpt_outage outage;
    bool closing;
};

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
    pool->took_ms = (int64_t)((uv_hrtime() - question->sent_ns) / 1000000);
    queue_landed(&pool->queue, question);
    serve_observe(&pool->serve->stats.question_seconds, question->sent_ns);
    question_answer(question, error == NULL && row_count == 1 ? rows[0] : NULL, error);
    /* A missing table or right does not come back on a session that has prepared without it. */
    if (error != NULL && error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0' &&
        rcpt_pg_is_ready(line->pg)) {
        rcpt_log_failure(RCPT_LOG_WARN, "serve", error, "the question \"%s\" failed",
                         question->statement);
        rcpt_pg_reconnect(line->pg, error);
    }
    question_free(question);
    send_waiting(pool);
}

/* Answers without rows and without an error: the asker answers 503. */
static void drop(struct question *question)
{
    question_answer(question, NULL, NULL);
    question_free(question);
}

static void drop_later_than(struct serve_pool *pool, int64_t most_ms, int64_t most_costly_ms)
{
    int64_t now_ms = (int64_t)uv_now(pool->serve->settings.loop);
    struct question *question;
    while ((question = queue_take_late(&pool->queue, now_ms, most_ms, most_costly_ms)) != NULL)
        drop(question);
}

/* One question at a time for each connection, so a slow one delays no other. */
static void send_by(struct line *line, struct question *question)
{
    const struct rcpt_pg_query query = {
        .statement = question->statement,
        .params = {.count = question->count, .values = (const char *const *)question->values}};
    line->busy = true;
    line->pool->in_flight++;
    question->pool = line->pool;
    question->line = line;
    question->sent_ns = uv_hrtime();
    serve_observe(&line->pool->serve->stats.wait_seconds, question->came_ns);
    rcpt_pg_submit(line->pg, &query, 1, on_result, question);
}

/* Sends questions while connections are free; one stays free for the other callers. */
static void send_waiting(struct serve_pool *pool)
{
    unsigned share = pool->up_count > 1 ? pool->up_count - 1 : 1;
    for (unsigned index = 0; index < pool->line_count; index++) {
        struct line *line = &pool->lines[index];
        bool may = line->up && !line->busy && rcpt_pg_is_ready(line->pg);
        struct question *question = may ? queue_take(&pool->queue, share) : NULL;
        if (question != NULL)
            send_by(line, question);
    }
}

bool serve_ask(struct rcpt_serve *serve, const struct serve_question *asked,
               serve_on_answer on_answer, void *context)
{
    struct serve_pool *pool = serve->pool;
    int64_t now_ms = (int64_t)uv_now(serve->settings.loop);
    if (pool->up_count == 0 || pool->closing ||
        !queue_add(&pool->queue, asked, now_ms, on_answer, context))
        return false;
    send_waiting(pool);
    return true;
}

int64_t serve_pool_took_ms(const struct serve_pool *pool)
{
    return pool->took_ms;
}

/* Drops late questions: their clients have gone, or will ask again. A costly question may have to
 * wait for the end of another one. */
void serve_pool_tick(struct serve_pool *pool)
{
    drop_later_than(pool, DROP_AFTER_MS,
                    DROP_AFTER_MS + pool->serve->settings.config->serve.statement_timeout_ms);
}

/* ---- connections ---- */

/* The first connection that is up ends the outage for all. */
static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct line *line = context;
    (void)pg;
    line->up = true;
    if (line->pool->up_count++ == 0)
        line->pool->serve->when_pool_changed(line->pool->serve);
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
    drop_later_than(pool, -1, -1);
    pool->serve->when_pool_changed(pool->serve);
}

static void open_line(struct line *line, unsigned number)
{
    struct rcpt_serve *serve = line->pool->serve;
    snprintf(line->name, sizeof(line->name), "serve-%u", number);
    struct rcpt_pg_settings settings = serve_pg_settings(serve, line->name);
    settings.outage = &line->pool->outage;
    settings.context = line;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    const struct rcpt_serve_columns columns = rcpt_serve_columns_of(serve->settings.config);
    settings.statements = rcpt_serve_statements(&columns, &settings.statement_count);
    line->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(line->pg);
}

struct serve_pool *serve_pool_new(struct rcpt_serve *serve)
{
    struct serve_pool *pool = rcpt_calloc(1, sizeof(*pool));
    pool->serve = serve;
    queue_init(&pool->queue);
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

/* The present figures. */
struct serve_pool_figures serve_pool_figures(const struct serve_pool *pool)
{
    return (struct serve_pool_figures){.waiting = pool->queue.waiting,
                                       .lines = pool->line_count,
                                       .up = pool->up_count,
                                       .busy = pool->in_flight};
}

bool serve_pool_is_idle(const struct serve_pool *pool)
{
    return pool->in_flight == 0 && pool->queue.first == NULL;
}

/* A new password takes effect with the next connection. */
void serve_pool_apply_config(struct serve_pool *pool)
{
    for (unsigned index = 0; index < pool->line_count; index++)
        rcpt_pg_set_dsn(pool->lines[index].pg, serve_dsn(pool->serve->settings.config));
}

/* ---- the end ---- */

static void on_closed(void *context)
{
    struct serve_pool *pool = context;
    struct rcpt_serve *serve = pool->serve;
    if (++pool->closed_count < pool->line_count)
        return;
    free(pool);
    serve->when_part_closed(serve);
}

/* Questions in flight are answered as lost on the way. */
void serve_pool_close(struct serve_pool *pool)
{
    pool->closing = true;
    drop_later_than(pool, -1, -1);
    for (unsigned index = 0; index < pool->line_count; index++)
        rcpt_pg_close(pool->lines[index].pg, on_closed, pool);
}

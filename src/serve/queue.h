/* Questions that wait for a connection, by callers that take turns. Used by pool.c alone.
 *
 * A caller is a token, a link, an organisation or an address. Each has a queue of its own. A
 * question that several callers ask stands in the queue of each, and leaves all of them when the
 * first has its turn. The queue does not know connections.
 */
#ifndef RECEIPTD_SERVE_QUEUE_H
#define RECEIPTD_SERVE_QUEUE_H

#include "internal.h"

struct asker;
struct caller;
struct line;

struct question {
    struct question *next, **link; /* of those that wait, in the order in which they came */
    const char *statement;
    char *values[SERVE_MOST_VALUES + SERVE_MORE_VALUES];
    int count;
    bool costly;
    int64_t came_ms;
    uint64_t came_ns, hash; /* hash: of statement and values */
    struct asker *askers;   /* freed as they are answered */
    /* From its turn on. */
    struct serve_pool *pool;
    struct caller *caller; /* whose turn it was */
    struct line *line;
    uint64_t sent_ns;
};

struct queue {
    struct question *first, **last; /* all that wait */
    struct caller *callers; /* that have some, or one in flight; the first has the next turn */
    unsigned waiting, costly_in_flight;
};

void queue_init(struct queue *queue);
/* Adds the question; some places are always kept for each caller. False: there is no place. */
RCPT_MUST_CHECK bool queue_add(struct queue *queue, const struct serve_question *asked,
                               int64_t now_ms, serve_on_answer on_answer, void *context);
/* The question whose turn it is, taken out; NULL: none may be asked now. One caller has at most
 * `share` in flight, and so have all costly ones together. */
struct question *queue_take(struct queue *queue, unsigned share);
/* The first one that has waited for more than `most_ms`, a costly one for `most_costly_ms`, taken
 * out; NULL: there is none. */
struct question *queue_take_late(struct queue *queue, int64_t now_ms, int64_t most_ms,
                                 int64_t most_costly_ms);
/* The question, which queue_take() returned, is no longer in flight. */
void queue_landed(struct queue *queue, struct question *question);
/* Each asker once. The question is in no queue by now, so an asker may ask the next one. */
void question_answer(struct question *question, const struct rcpt_pg_rows *rows,
                     const struct rcpt_error *error);
void question_free(struct question *question);

#endif
